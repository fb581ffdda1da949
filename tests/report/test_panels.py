import pytest

from cleanrank.report import panels
from cleanrank.report.summaries import Level, summarise

from .grids import grid, record

FAST = {"resamples": 200, "permutations": 500}


def test_curves_have_a_panel_per_data_set_and_the_numbers_of_the_rows(summary):
    found = panels.curves(summary, "ndcg@10")
    assert [p.title for p in found] == ["MQ2008", "OHSUMED"]
    assert found[0].xs == (0.0, 0.1, 0.2, 0.3)
    for point in found[0].points:
        level = Level("uniform", point.x) if point.x else Level()
        row = summary.find("MQ2008", level, point.method, "ndcg@10")
        assert (point.mean, point.low, point.high, point.mark) == (row.mean, row.low, row.high, row.mark)
        assert point.complete == (row.state == "complete")
    assert sum(not p.complete for p in found[0].points) == 1


def test_each_kind_of_noise_has_a_curve_that_starts_clean():
    levels = [("none", 0.0), ("uniform", 0.1), ("pairs", 0.2), ("pairs", 0.4)]
    records = [record(noise=n, rate=r, values={"map": [0.5, 0.6]}) for n, r in levels]
    found = panels.curves(summarise(records, **FAST), "map")
    assert {p.title: p.xs for p in found} == {
        "d, uniform noise": (0.0, 0.1),
        "d, pairs noise": (0.0, 0.2, 0.4),
    }


def test_one_rate_is_no_curve():
    records = [record(noise="uniform", rate=0.1, values={"map": [0.5, 0.6]})]
    assert panels.curves(summarise(records, **FAST), "map") == ()


def test_what_did_not_run_is_a_gap_not_a_point():
    records = [
        record(noise="uniform" if r else "none", rate=r, values={"map": [0.5, 0.6]}) for r in (0.0, 0.2)
    ]
    records.append(record(noise="uniform", rate=0.1, status="failed", error="x"))
    (panel,) = panels.curves(summarise(records, **FAST), "map")
    assert [p.x for p in panel.points] == [0.0, 0.2]
    assert panel.gaps == (panels.Gap("m", 0.1, "failed"),)
    assert "m at 0.1: failed." in panel.words


def test_bars_of_a_level(summary):
    first, second = panels.bars(summary, "map", Level("uniform", 0.2))
    assert (first.title, len(first.points)) == ("MQ2008, uniform 0.2", 3)
    assert [p.complete for p in second.points] == [True, False, True]


def test_heat_shows_differences_and_leaves_the_baseline_out(summary):
    first, second = panels.heat(summary, "ndcg@10")
    assert first.methods == ("sour neg", "peer α=auto")
    assert first.xs == ("clean", "0.1", "0.2", "0.3")
    for point in first.points:
        level = Level() if point.x == "clean" else Level("uniform", float(point.x))
        assert point.difference == summary.find("MQ2008", level, point.method, "ndcg@10").difference
    assert first.gaps == (panels.Gap("peer α=auto", "0.3", "incomplete"),)
    assert second.gaps == (panels.Gap("sour neg", "0.2", "incomplete"),)


def test_heat_has_one_scale_for_all_data_sets(summary):
    points = [p for panel in panels.heat(summary, "map") for p in panel.points]
    largest = max(abs(p.difference) for p in points)
    assert all(p.strength == pytest.approx(abs(p.difference) / largest) for p in points)


def test_heat_without_a_baseline_shows_means():
    found = panels.heat(summarise(grid(), **FAST), "map")
    assert all(p.difference is None for p in found[0].points)
    assert found[0].methods[0] == "lambdamart"
    assert found[0].gaps == ()


def test_words_tell_where_a_curve_begins_and_ends(summary):
    panel = panels.curves(summary, "map")[0]
    clean = summary.find("MQ2008", Level(), "lambdamart", "map").mean
    noisy = summary.find("MQ2008", Level("uniform", 0.3), "lambdamart", "map").mean
    assert f"lambdamart: {clean:.3f} at 0, {noisy:.3f} at 0.3." in panel.words
