import math
import statistics

import numpy as np
import pytest

from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.metrics.significance import bootstrap_interval, fisher_test, holm
from cleanrank.report.summaries import Level, summarise
from cleanrank.report.table import canonical

from .grids import FAILED, MISSING, grid, record

FAST = {"resamples": 200, "permutations": 500}


def two_folds_two_seeds():
    """Fold 1 has two test queries, fold 2 one; two seeds each."""
    return [
        record(fold=1, seed=0, values={"map": [0.2, 0.4]}),
        record(fold=1, seed=1, values={"map": [0.4, 0.6]}),
        record(fold=2, seed=0, values={"map": [0.9]}),
        record(fold=2, seed=1, values={"map": [0.7]}),
    ]


def test_queries_are_averaged_over_seeds_and_pooled_over_folds():
    (row,) = summarise(two_folds_two_seeds(), **FAST).rows
    np.testing.assert_allclose(row.values, [0.3, 0.5, 0.8])
    assert row.mean == pytest.approx((0.3 + 0.5 + 0.8) / 3)  # not (0.4 + 0.8) / 2, the mean of the folds
    assert row.queries == (("1", "1000"), ("1", "1001"), ("2", "2000"))
    assert (row.n_queries, row.cells, row.state) == (3, 4, "complete")


def test_the_spread_over_seeds_is_that_of_their_pooled_means():
    (row,) = summarise(two_folds_two_seeds(), **FAST).rows
    assert row.seed_sd == pytest.approx(statistics.stdev([(0.2 + 0.4 + 0.9) / 3, (0.4 + 0.6 + 0.7) / 3]))


def test_one_seed_has_no_spread():
    (row,) = summarise([record(values={"map": [0.1, 0.2]})], **FAST).rows
    assert row.seed_sd is None


def test_the_interval_is_the_bootstrap_over_pooled_queries():
    (row,) = summarise(two_folds_two_seeds(), seed=3, confidence=0.9, resamples=500).rows
    low, high = bootstrap_interval([0.3, 0.5, 0.8], level=0.9, resamples=500, seed=3)
    assert (row.low, row.high) == pytest.approx((low, high))
    assert row.query_se == pytest.approx((high - low) / (2 * 1.6448536269514722))
    assert row.half_width == pytest.approx((high - low) / 2)


def test_queries_left_out_by_the_convention_do_not_count():
    nan = math.nan
    records = [record(fold=1, values={"map": [0.2, nan, 0.6]}), record(fold=2, values={"map": [nan]})]
    (row,) = summarise(records, **FAST).rows
    assert row.mean == pytest.approx(0.4)
    assert row.n_queries == 2


def test_only_left_out_queries_give_no_mean():
    (row,) = summarise([record(values={"map": [math.nan, math.nan]})], **FAST).rows
    assert (row.mean, row.low, row.n_queries) == (None, None, 0)


def test_a_measure_with_its_own_weighting_keeps_it():
    """Fold means .5 and .9 over one and three queries: .8; no interval, no test."""
    records = [
        record(fold=1, method=m, values={"auc:pooled": [0.1]}, means={"auc:pooled": 0.5}) for m in ("a", "b")
    ] + [
        record(fold=2, method=m, values={"auc:pooled": [0.1, 0.2, 0.3]}, means={"auc:pooled": 0.9})
        for m in ("a", "b")
    ]
    a, b = summarise(records, baseline="a", **FAST).rows
    assert (a.mean, b.mean) == (pytest.approx(0.8), pytest.approx(0.8))
    assert (b.low, b.p, b.mark) == (None, None, "")
    assert b.difference == pytest.approx(0.0)


def test_a_measure_that_is_nowhere_defined_has_no_mean():
    nan = math.nan
    records = [record(seed=s, values={"auc:pooled": [0.0, 0.5]}, means={"auc:pooled": nan}) for s in (0, 1)]
    (row,) = summarise(records, **FAST).rows
    assert (row.mean, row.low, row.seed_sd) == (None, None, None)


def test_queries_that_count_for_some_seeds_alone_leave_each_cell_its_mean():
    """A precision whose issues lie in other queries for each seed: .5 and 1, not their one common query."""
    nan = math.nan
    records = [
        record(seed=1, values={"precision": [0.0, 1.0, nan]}),
        record(seed=2, values={"precision": [nan, 1.0, 1.0]}),
        record(seed=3, values={"precision": [nan, nan, nan]}),
    ]
    (row,) = summarise(records, **FAST).rows
    assert row.mean == pytest.approx(0.75)
    assert (row.low, row.own_mean) == (None, True)


def test_a_failed_cell_makes_the_mean_incomplete():
    records = [*two_folds_two_seeds()[:3], record(fold=2, seed=1, status="failed", error="no")]
    (row,) = summarise(records, **FAST).rows
    assert (row.state, row.done, row.failed, row.missing) == ("incomplete", 3, 1, 0)
    assert row.mean == pytest.approx((0.3 + 0.5 + 0.9) / 3)
    assert row.seed_sd is None  # one seed alone ran every fold


def test_values_of_a_failed_record_are_never_used():
    bad = record(fold=2, status="failed", values={"map": [0.9]}, error="late")
    (row,) = summarise([record(fold=1, values={"map": [0.1, 0.3]}), bad], **FAST).rows
    assert row.mean == pytest.approx(0.2)


def test_nothing_done_gives_no_number():
    records = [record(method="a", values={"map": [0.5, 0.7]}), record(method="b", status="failed", error="x")]
    a, b = summarise(records, baseline="a", **FAST).rows
    assert b.state == "failed"
    numbers = (b.mean, b.low, b.high, b.query_se, b.seed_sd, b.difference, b.p, b.p_holm, b.values)
    assert numbers == (None,) * 9
    assert a.state == "complete"


def test_a_cell_that_was_asked_for_and_never_ran():
    asked = [record(method=m).cell for m in ("a", "b")]
    summary = summarise([record(method="a", values={"map": [0.5, 0.7]})], expected=asked, **FAST)
    assert [r.state for r in summary.rows] == ["complete", "not run"]
    assert [(c.method, c.status) for c in summary.gaps] == [("b", "missing")]


def test_tests_are_fisher_over_the_same_queries_with_holm_over_a_measure():
    rng = np.random.default_rng(0)
    base = rng.uniform(size=40)
    values = {"base": base, "better": base + 0.1, "same": base[::-1].copy(), "worse": base - 0.05}
    records = [record(method=m, values={"map": v}) for m, v in values.items()]
    summary = summarise(records, baseline="base", permutations=2000, seed=5)
    rows = {r.method: r for r in summary.rows}
    raw = {m: fisher_test(v, base, permutations=2000, seed=5) for m, v in values.items() if m != "base"}
    corrected = dict(zip(raw, holm(list(raw.values())), strict=True))
    assert {m: rows[m].p for m in raw} == raw
    assert {m: rows[m].p_holm for m in raw} == pytest.approx(corrected)
    assert (rows["better"].mark, rows["same"].mark, rows["worse"].mark) == ("▲▲", "", "▼▼")
    assert (rows["base"].p, rows["base"].difference, rows["base"].mark) == (None, None, "")


def test_each_measure_is_a_family_of_its_own():
    rng = np.random.default_rng(1)
    values = {m: {"map": rng.uniform(size=9), "mrr": rng.uniform(size=9)} for m in "abc"}
    summary = summarise([record(method=m, values=v) for m, v in values.items()], baseline="a", **FAST)
    for measure in ("map", "mrr"):
        family = [r for r in summary.rows if r.measure == measure and r.p is not None]
        assert [r.p_holm for r in family] == pytest.approx(list(holm([r.p for r in family])))


def test_incomplete_rows_are_not_tested(summary):
    for dataset, _, rate, method, _ in (FAILED, MISSING):
        row = summary.find(dataset, Level("uniform", rate), method, "ndcg@10")
        assert (row.state, row.done, row.cells) == ("incomplete", 14, 15)
        assert (row.difference, row.p, row.p_holm, row.mark) == (None, None, None, "")


def test_an_incomplete_baseline_tests_nobody():
    records = [record(fold=f, method=m, values={"map": [0.1, 0.2]}) for f in (1, 2) for m in "ab"][:-2]
    records += [
        record(fold=2, method="b", values={"map": [0.1, 0.2]}),
        record(fold=2, method="a", status="failed"),
    ]
    rows = summarise(records, baseline="a", **FAST).rows
    assert [(r.method, r.state, r.p) for r in rows] == [("a", "incomplete", None), ("b", "complete", None)]


def test_the_order_of_the_records_does_not_matter_to_the_numbers(summary):
    backward = summarise(grid()[::-1], baseline="lambdamart", **FAST)
    for row in summary.rows:
        other = backward.find(row.dataset, row.level, row.method, row.measure)
        assert (row.mean, row.low, row.p) == (other.mean, other.low, other.p)


def test_rows_come_by_measure_data_set_level_and_method():
    summary = summarise(grid(failed=False, missing=False), **FAST)
    names = [(r.measure, r.dataset, r.level.rate, r.method) for r in summary.rows]
    assert len(names) == 3 * 2 * 4 * 3
    assert names[:4] == [
        ("ndcg@10", "MQ2008", 0.0, "lambdamart"),
        ("ndcg@10", "MQ2008", 0.0, "sour neg"),
        ("ndcg@10", "MQ2008", 0.0, "peer α=auto"),
        ("ndcg@10", "MQ2008", 0.1, "lambdamart"),
    ]
    assert summary.gaps == ()


def test_measures_can_be_chosen_by_any_of_their_texts():
    summary = summarise(grid(rates=(0.0,)), measures=["MAP", "ndcg@5:letor"], **FAST)
    assert summary.measures == ("map", "ndcg@5:letor")


def test_bad_input_is_refused():
    with pytest.raises(InvalidInputError, match="at least one run"):
        summarise([])
    with pytest.raises(UnknownNameError, match="lambdamart"):
        summarise(grid(rates=(0.0,)), baseline="lambdamrt", **FAST)
    with pytest.raises(UnknownNameError, match="ndcg@10"):
        summarise(grid(rates=(0.0,)), measures=["ndcg@11"], **FAST)


def test_a_part_of_a_plan_without_the_baseline_is_not_tested():
    records = [record(method="b", values={"map": [0.1, 0.2]})]
    summary = summarise(records, baseline="a", expected=[r.cell for r in records], **FAST)
    assert (summary.baseline, summary.rows[0].p) == (None, None)


def test_seeds_with_different_queries_are_refused():
    records = [
        record(seed=0, values={"map": [0.1, 0.2]}),
        record(seed=1, values={"map": [0.1, 0.2]}, query_ids=np.array([5, 6])),
    ]
    with pytest.raises(InvalidInputError, match="same test queries for every seed"):
        summarise(records)


def test_a_baseline_with_different_queries_is_refused():
    records = [
        record(method="a", values={"map": [0.1, 0.2]}),
        record(method="b", values={"map": [0.1, 0.2]}, query_ids=np.array([5, 6])),
    ]
    with pytest.raises(InvalidInputError, match="a method and the baseline"):
        summarise(records, baseline="a")


def test_texts_of_measures():
    assert canonical("AP") == "map"
    assert canonical("log loss of clicks") == "log loss of clicks"


def test_a_part_of_a_summary_is_the_summary_of_that_part():
    records = grid(rates=(0.0, 0.3))
    whole = summarise(records, baseline="lambdamart", **FAST)
    part = summarise(records, measures=["map", "ndcg@10"], baseline="lambdamart", **FAST)
    assert part.measures == ("map", "ndcg@10")
    rows = [r for measure in part.measures for r in whole.rows if r.measure == measure]
    for a, b in zip(rows, part.rows, strict=True):
        assert repr(a) == repr(b)
        np.testing.assert_array_equal(a.values, b.values)
    with pytest.raises(UnknownNameError, match="measure"):
        summarise(records, measures=["mrr"], **FAST)
