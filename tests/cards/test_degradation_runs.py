import numpy as np
import pytest
from benchmarks.cards.degradation_runs import MAP, NDCG, averaged, beside_rivals
from benchmarks.cards.degradation_tables import closed_form_table, drops_table

from cleanrank.experiments.studies import CURVE_RATES
from cleanrank.report.summaries import summarise
from tests.report.grids import record


def runs(methods=("RankSVM", "random"), seeds=(1, 2, 3), rates=(0.0, 0.1, 0.2)):
    records = []
    for i, (method, fold, rate, seed) in enumerate(
        (m, f, r, s) for m in methods for f in (1, 2) for r in rates for s in seeds
    ):
        rng = np.random.default_rng(i)
        values = {NDCG: rng.uniform(size=5 + fold), MAP: rng.uniform(size=5 + fold)}
        chosen = {"train_dnoise": rate + seed / 1000, "train_pnoise": rate / 2} if rate else {}
        noise = "uniform" if rate else "none"
        records.append(record("d", fold, noise, rate, method, seed, values, chosen=chosen))
    return records


def test_averages_over_seeds_have_the_means_and_values_of_all_seeds():
    records = runs()
    few = averaged(records)
    assert len(few) == len(records) / 3
    small, whole = (summarise(each, measures=[NDCG, MAP]) for each in (few, records))
    for row in whole.rows:
        mine = small.find(row.dataset, row.level, row.method, row.measure)
        assert mine.mean == pytest.approx(row.mean)
        if row.measure == NDCG:
            np.testing.assert_allclose(mine.values, row.values)
            assert (mine.low, mine.high) == (pytest.approx(row.low), pytest.approx(row.high))
        else:
            assert mine.query_se == pytest.approx(row.query_se, rel=0.2)
    assert few[2].chosen["train_dnoise"] == pytest.approx(few[2].cell["rate"] + 0.002)


def test_rivals_are_those_of_the_same_rates_and_seeds():
    robust = runs(("RobustRanker",), seeds=(1,), rates=(0.0, 0.2))
    both = beside_rivals(robust, runs())
    assert {r.cell["method"] for r in both} == {"RobustRanker", "RankSVM", "random"}
    assert {(r.cell["seed"], r.cell["rate"]) for r in both} == {(1, 0.0), (1, 0.2)}


def test_drops_are_shares_of_the_clean_figure():
    values = {0.0: 0.5, 0.1: 0.4, 0.2: 0.25}
    records = [
        record("d", 1, "uniform" if rate else "none", rate, method, 1, {NDCG: np.full(4, mean)})
        for rate, mean in values.items()
        for method in ("RankSVM", "RankBoost")
    ]
    table = drops_table(dict.fromkeys(("grades", "balance"), summarise(records, measures=[NDCG])))
    lines = table.markdown().splitlines()[2:]
    assert lines[0].startswith("| d | RankBoost | NDCG@10 | 20 | 50 |")
    assert lines[1].startswith("| d | RankSVM | NDCG@10 | 20 | 50 |")


def test_the_table_of_closed_forms_has_a_line_a_scale():
    records = [
        record(
            "d", 1, "none", 0.0, name, 1, {f"pnoise at {rate:g}": np.array([rate]) for rate in CURVE_RATES}
        )
        for name in ("R1, uniform", "Rbest, uniform")
    ]
    lines = closed_form_table(summarise(records)).markdown().splitlines()
    assert lines[2] == "| d | R1, uniform | 0.100 | 0.200 | 0.300 | 0.400 | 0.500 |"
    assert len(lines) == 4
