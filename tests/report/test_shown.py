import pytest

from cleanrank.report.grid import Level
from cleanrank.report.published import Verdict
from cleanrank.report.shown import chunks, convention, level_value, names, p_value, value_cell, verdict_cell
from cleanrank.report.summaries import Row, summarise

from .grids import record


def row(**more):
    return Row("d", Level(), "m", "map", **{"done": 2, "failed": 0, "missing": 0, **more})


def test_conventions_are_spelled_out():
    assert "a query counts 0" in convention("ndcg@5:letor")
    assert convention("<odd>") == "<odd>"


def test_measures_come_five_at_a_time():
    assert [len(c) for c in chunks([str(i) for i in range(13)])] == [5, 5, 3]


def test_levels_sort_clean_first_and_rates_by_size():
    levels = [Level("u", 0.05), Level("u", 0.5), Level("u", 0.1), Level()]
    assert sorted(levels, key=level_value) == [Level(), Level("u", 0.05), Level("u", 0.1), Level("u", 0.5)]


@pytest.mark.parametrize(("failed", "word"), [(1, "failed"), (0, "not run")])
def test_no_mean_is_a_word_without_a_digit(failed, word):
    cell = value_cell(row(done=0, failed=failed, missing=2), None)
    assert word in cell.shown
    assert not any(c.isdigit() for c in cell.shown)
    assert cell.value is None
    assert value_cell(None, None).shown == "–"


def test_a_mean_with_its_interval_and_mark():
    cell = value_cell(row(mean=0.5, low=0.4, high=0.6, difference=0.1, p_holm=0.02), 0.5)
    assert cell.shown.startswith("<b>0.5000</b><small> ±0.100</small>")
    assert "▲" in cell.shown
    assert "better than the baseline, p = 0.0200" in cell.shown
    assert "incomplete" not in cell.shown
    assert "<b>" not in value_cell(row(mean=0.5), 0.7).shown


def test_an_incomplete_mean_says_so():
    cell = value_cell(row(mean=0.5, failed=1), None)
    assert "incomplete" in cell.shown
    assert "2 of 3 cells" in cell.shown


def test_p_values():
    assert [p_value(p) for p in (0.5, 0.0001, 0.00009)] == [
        "0.5000",
        "0.0001",
        "&lt; 0.0001".replace("&lt;", "<"),
    ]


def test_names_leave_noise_out_of_clean_grids():
    clean = summarise([record(values={"map": [0.1, 0.2]})], resamples=100)
    assert len(names(clean, "d", Level(), "m")) == 2


def test_a_verdict_has_a_shape_and_a_word():
    cell = verdict_cell(Verdict("d", Level(), "m", "map", "differs", note="see <x>"))
    assert "✕ differs" in cell.shown
    assert "see &lt;x&gt;" in cell.shown
