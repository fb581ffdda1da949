import pytest

from cleanrank.report.collapse import collapse, kept
from cleanrank.report.grid_tables import (
    chunks,
    collapse_table,
    fold_table,
    gap_table,
    measure_table,
    p_value,
    pair_noise_table,
    results_table,
    value_cell,
    verdict_cell,
    verdict_table,
)
from cleanrank.report.published import Published, compare_published
from cleanrank.report.summaries import Level, Row, summarise
from cleanrank.report.table import convention

from .grids import TRACEBACK, record

FAST = {"resamples": 200, "permutations": 500}


def cells(line):
    return [c.strip() for c in line.strip().strip("|").split(" | ")]


def row(**more):
    return Row("d", Level(), "m", "map", **{"done": 2, "failed": 0, "missing": 0, **more})


def small():
    records = [record(fold=f, method=m, values={"map": [0.1 * f, 0.2 * f]}) for f in (1, 2) for m in "ab"]
    return summarise(
        [*records[:-1], record(fold=2, method="b", status="failed", error="x")], baseline="a", **FAST
    )


def test_the_markdown_table_has_the_rows_numbers(summary):
    head, rule, *lines = results_table(summary).markdown().split("\n\n")[0].splitlines()
    assert cells(head) == ["Data set", "Noise", "Method", "ndcg@10", "map", "ndcg@5:letor"]
    assert cells(rule) == [":--", ":--", ":--", "--:", "--:", "--:"]
    assert len(lines) == 24
    first = summary.rows[1]
    assert cells(lines[1])[3] == f"{first.mean:.4f} ±{first.half_width:.3f} {first.mark}".strip()
    assert sum("incomplete: 14 of 15 cells" in line for line in lines) == 2


def test_the_foot_names_the_baseline(summary):
    foot = results_table(summary).markdown().split("\n\n")[1]
    assert foot.startswith("Mean ± half the 95% bootstrap interval over queries.")
    assert "worse than lambdamart with p < .05" in foot


def test_clean_grids_have_no_column_for_noise():
    text = results_table(summarise([record(values={"map": [0.5]})], **FAST)).markdown()
    assert text.splitlines()[2] == "| d | m | 0.5000 |"


def test_where_nothing_ran_there_is_a_word():
    records = [record(method="a", values={"map": [0.5]}), record(method="b|c", status="failed", error="x")]
    line = results_table(summarise(records, **FAST)).markdown().splitlines()[3]
    assert line == "| d | b\\|c | failed |"


def test_the_best_complete_mean_is_bold():
    records = [record(method=m, values={"map": v}) for m, v in (("a", [0.1, 0.2]), ("b", [0.3, 0.4]))]
    records += [record(method="c", fold=f, values={"map": [0.9, 0.9]}) for f in (1,)]
    expected = [r.cell for r in records] + [record(method="c", fold=2).cell]
    markup = results_table(summarise(records, expected=expected, **FAST)).html()
    assert "<b>0.3500</b>" in markup
    assert "<b>0.9000</b>" not in markup  # the highest, but incomplete


def test_conventions_are_spelled_out():
    assert "a query counts 0" in convention("ndcg@5:letor")
    assert convention("<odd>") == "<odd>"


def test_measures_come_five_at_a_time():
    assert [len(c) for c in chunks([str(i) for i in range(13)])] == [5, 5, 3]


@pytest.mark.parametrize(("failed", "word"), [(1, "failed"), (0, "not run")])
def test_no_mean_is_a_word_without_a_digit(failed, word):
    cell = value_cell(row(done=0, failed=failed, missing=2))
    for shown in (cell.text, cell.html):
        assert word in shown
        assert not any(c.isdigit() for c in shown)
    assert cell.value is None
    assert value_cell(None).text == "–"


def test_a_mean_with_its_interval_and_mark():
    cell = value_cell(row(mean=0.5, low=0.4, high=0.6, difference=0.1, p_holm=0.02), 0.5)
    assert cell.text == "0.5000 ±0.100 ▲"
    assert cell.html.startswith("<b>0.5000</b><small> ±0.100</small>")
    assert "▲" in cell.html
    assert "better than the baseline, p = 0.0200" in cell.html
    assert "incomplete" not in cell.html
    assert "<b>" not in value_cell(row(mean=0.5), 0.7).html


def test_an_incomplete_mean_says_so():
    cell = value_cell(row(mean=0.5, failed=1))
    assert cell.text == "0.5000 (incomplete: 2 of 3 cells)"
    assert "incomplete" in cell.html
    assert "2 of 3 cells" in cell.html


def test_p_values():
    assert [p_value(p).text for p in (0.5, 0.0001, 0.00009, None)] == ["0.5000", "0.0001", "< 0.0001", "–"]


def test_a_verdict_has_a_shape_and_a_word():
    cell = verdict_cell("differs", "see <x>")
    assert cell.text == "differs (see <x>)"
    assert "✕ differs" in cell.html
    assert "see &lt;x&gt;" in cell.html


def test_verdicts_show_the_tolerance_used():
    figures = [
        Published("d", "a", "map", 0.5, "Paper <1>"),
        Published("d", "b", "map", 0.2, "Paper <1>"),
        Published("d", "c", "map", 0.3, "Paper <2>", context=True),
    ]
    verdicts = compare_published(small(), figures)
    table = verdict_table(verdicts)
    first, second, third = table.texts[:3]
    assert first[4:8] == ["0.5", "0.2250", "−0.2750", f"±{verdicts[0].tolerance:.4f}"]
    assert second[5:8] == ["–", "–", "–"]
    assert "1 of 2 cells" in second[8]
    assert third[8] == "for orientation"
    assert "Paper &lt;1&gt;" in table.html()


def test_verdicts_in_markdown():
    summary = summarise([record(values={"map": [0.5, 0.5]})], **FAST)
    figures = [Published("d", "m", "map", 0.47, "T"), Published("d", "x", "map", 0.4695, "T", context=True)]
    lines = verdict_table(compare_published(summary, figures)).markdown().splitlines()
    assert cells(lines[2]) == [
        "d", "clean", "m", "map", "0.4700", "0.5000", "+0.0300", "±0.0001", "differs", "T",
    ]  # fmt: skip
    assert cells(lines[3])[-2] == "for orientation"


def test_details_of_a_measure():
    summary = small()
    table = measure_table(summary, "map")
    assert [line[:2] for line in table.texts] == [["d", "a"], ["d", "b"]]
    a = summary.find("d", Level(), "a", "map")
    assert table.texts[0][2:4] == [f"{a.mean:.4f}", f"{a.low:.4f} – {a.high:.4f}"]
    assert [line[table.head.index("Cells")] for line in table.texts] == ["2 of 2", "1 of 2"]
    assert "pill warn" in table.html()


def test_folds_are_means_over_their_seeds():
    lines = fold_table(small(), "d", ["map"]).texts
    assert ["a", "2", "1 of 1", "0.3000"] in lines
    assert ["b", "2", "0 of 1", "–"] in lines


def test_gaps_show_the_traceback_escaped():
    summary = summarise([record(method="a"), record(method="b", status="failed", error=TRACEBACK)], **FAST)
    markup = gap_table(summary).html()
    assert "labels must be &lt;finite&gt; &amp; whole" in markup
    assert "<finite>" not in markup
    assert "Traceback (most recent call last)" in markup


def noted(dataset, rate, factor, value):
    chosen = {"train_dnoise": rate, "train_pnoise": rate * factor, "expected_pnoise": 0.25} if rate else {}
    noise = "uniform" if rate else "none"
    return record(dataset, 1, noise, rate, "m", 1, {"map": [value, value]}, chosen=chosen)


def test_noise_of_the_labels_beside_theory():
    summary = summarise([noted("d", r, 1.5, 0.5) for r in (0.0, 0.1)], resamples=50, permutations=50)
    assert pair_noise_table(summary).markdown().splitlines()[2:] == [
        "| d | uniform 0.1 | 0.1000 | 0.1500 | 0.2500 | – |"
    ]


def test_collapse_is_a_line_with_intervals():
    records = [
        noted(d, r, f, 0.8 * (1 - r * f)) for d, f in (("a", 1.0), ("b", 2.0)) for r in (0.0, 0.1, 0.2)
    ]
    found = collapse(kept(summarise(records, resamples=50, permutations=50), "map", "m"), resamples=20)
    line = collapse_table({"m, map": found}).markdown().splitlines()[2]
    assert line.startswith("| m, map | 4 | 2 | ")
    r2 = found.pnoise.r2
    assert f"| {r2.value:.2f} [{r2.low:.2f}, {r2.high:.2f}] |" in line
