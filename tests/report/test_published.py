import math

import pytest

from cleanrank.errors import InvalidInputError
from cleanrank.report.published import (
    Published,
    compare_published,
    decimals_of,
    judge,
    tolerance,
)
from cleanrank.report.summaries import Level, summarise

from .grids import grid, record

FAST = {"resamples": 300, "permutations": 500}


def figure(value=0.5, dataset="d", method="m", measure="map", **more):
    return Published(dataset, method, measure, value, "Table 1", **more)


def test_the_tolerance_by_hand():
    assert tolerance(0.03, 0.04, 2) == pytest.approx(1.96 * 0.05 + 0.005)
    assert tolerance(None, None, 3) == pytest.approx(0.0005)  # the rounding alone
    assert tolerance(0.01, None, 4) == pytest.approx(0.0196 + 0.00005)


@pytest.mark.parametrize(
    ("ours", "published", "allowed", "verdict"),
    [
        (0.512, 0.51, 0.002, "agrees"),  # exactly the tolerance, which binary fractions miss
        (0.5120001, 0.51, 0.002, "differs"),
        (0.508, 0.51, 0.002, "agrees"),
        (0.5079, 0.51, 0.002, "differs"),
        (0.51, 0.51, 0.0, "agrees"),
        (None, 0.51, 1.0, "not run"),
        (0.5, None, 1.0, "no published figure"),
        (None, None, 1.0, "not run"),
    ],
)
def test_verdicts_at_the_edges(ours, published, allowed, verdict):
    assert judge(ours, published, allowed) == verdict


def test_digits_are_those_of_the_table():
    table = [figure(0.47), figure(0.4695), figure(0.1, measure="mrr")]
    assert [decimals_of(f, table) for f in table] == [4, 4, 1]
    assert decimals_of(figure(1.0)) == 0
    assert decimals_of(figure(1e-05)) == 5
    assert decimals_of(figure(0.47, decimals=3), table) == 3


def test_a_figure_must_be_a_number():
    with pytest.raises(InvalidInputError, match="must be finite"):
        figure(math.nan)


def small(values=(0.4, 0.6), **more):
    return summarise(
        [record(seed=s, values={"map": [v - 0.1, v + 0.1]}, **more) for s, v in enumerate(values)], **FAST
    )


def test_ours_beside_the_published_figure():
    summary = small()
    (row,) = summary.rows
    (verdict,) = compare_published(summary, [figure(0.51)])
    assert (verdict.ours, verdict.published, verdict.verdict) == (pytest.approx(0.5), 0.51, "agrees")
    assert verdict.tolerance == pytest.approx(1.96 * math.hypot(row.seed_sd, row.query_se) + 0.005)
    assert verdict.difference == pytest.approx(-0.01)
    far = 0.5 + 1.96 * math.hypot(row.seed_sd, row.query_se) + 0.02
    assert compare_published(summary, [figure(far, decimals=2)])[0].verdict == "differs"


def test_a_row_without_a_figure_says_so():
    (verdict,) = compare_published(small(), [])
    assert (verdict.verdict, verdict.published, verdict.ours) == (
        "no published figure",
        None,
        pytest.approx(0.5),
    )


def test_a_figure_without_a_row_is_not_run():
    verdict, alone = compare_published(small(), [figure(method="other")])
    assert (verdict.verdict, verdict.ours, verdict.tolerance) == ("not run", None, None)
    assert alone.verdict == "no published figure"


def test_an_incomplete_row_is_not_run():
    records = [record(fold=1, values={"map": [0.5, 0.5]}), record(fold=2, status="failed", error="x")]
    (verdict,) = compare_published(summarise(records, **FAST), [figure(0.5)])
    assert (verdict.verdict, verdict.ours, verdict.note) == ("not run", None, "1 of 2 cells")


def test_context_never_gets_a_verdict():
    """Not even where a row of ours has its name."""
    first, alone = compare_published(small(), [figure(0.9, context=True)])
    assert (first.verdict, first.ours, first.tolerance) == ("", None, None)
    assert alone.verdict == "no published figure"


def test_noise_and_rate_pick_the_level():
    summary = summarise(grid(failed=False, missing=False), **FAST)
    figures = [
        Published("MQ2008", "lambdamart", "NDCG@10", 0.5, "t"),
        Published("MQ2008", "lambdamart", "ndcg@10", 0.5, "t", noise="uniform", rate=0.3),
        Published("MQ2008", "lambdamart", "ndcg@10", 0.5, "t", noise="uniform", rate=0.25),
        Published("MQ2008", "lambdamart", "ndcg@10", 0.5, "t", noise="uniform"),  # three rates: which?
    ]
    found = compare_published(summary, figures)[:4]
    assert [v.level for v in found[:2]] == [Level(), Level("uniform", 0.3)]
    assert found[0].ours > found[1].ours
    assert [v.verdict for v in found[2:]] == ["not run", "not run"]


@pytest.mark.parametrize("kinds", [["none", "uniform"], ["none", "uniform", "adjacent"], ["uniform"]])
def test_rate_zero_of_any_noise_is_the_clean_level(kinds):
    clean = kinds[0]
    made = [record(noise=k, rate=0.0 if k == clean else 0.2, values={"map": [0.4, 0.6]}) for k in kinds]
    for noise in (None, "uniform", "adjacent"):
        (verdict, *_) = compare_published(summarise(made, **FAST), [figure(0.5, noise=noise, rate=0.0)])
        assert (verdict.verdict, verdict.level.clean, verdict.ours) == ("agrees", True, 0.5)


def test_a_figure_of_one_fold():
    records = [
        record(fold=f, seed=s, values={"map": [0.1 * f + 0.02 * s] * 4}) for f in (1, 2) for s in (0, 1)
    ]
    summary = summarise(records, **FAST)
    (row,) = summary.rows
    verdict = compare_published(summary, [figure(0.2, fold=2)])[0]
    assert verdict.ours == pytest.approx(0.21)
    spread = math.hypot(0.02 / math.sqrt(2), row.query_se * math.sqrt(8 / 4))
    assert verdict.tolerance == pytest.approx(1.96 * spread + 0.05)
    assert compare_published(summary, [figure(0.2, fold=9)])[0].verdict == "not run"
