from cleanrank.report.collapse import collapse
from cleanrank.report.markdown import (
    markdown_collapse,
    markdown_pair_noise,
    markdown_table,
    markdown_verdicts,
)
from cleanrank.report.published import Published, compare_published
from cleanrank.report.summaries import summarise
from cleanrank.report.traces import kept

from .grids import record

FAST = {"resamples": 200, "permutations": 500}


def cells(line):
    return [c.strip() for c in line.strip().strip("|").split(" | ")]


def test_the_table_has_the_rows_numbers(summary):
    head, rule, *lines = markdown_table(summary).split("\n\n")[0].splitlines()
    assert cells(head) == ["data set", "noise", "method", "ndcg@10", "map", "ndcg@5:letor"]
    assert cells(rule) == [":--", ":--", ":--", "--:", "--:", "--:"]
    assert len(lines) == 24
    row = summary.rows[1]
    assert cells(lines[1])[3] == f"{row.mean:.4f} ±{row.half_width:.3f} {row.mark}".strip()
    assert sum("incomplete: 14 of 15 cells" in line for line in lines) == 2


def test_clean_grids_have_no_column_for_noise():
    text = markdown_table(summarise([record(values={"map": [0.5]})], **FAST))
    assert text.splitlines()[2] == "| d | m | 0.5000 |"


def test_where_nothing_ran_there_is_a_word():
    records = [record(method="a", values={"map": [0.5]}), record(method="b|c", status="failed", error="x")]
    line = markdown_table(summarise(records, **FAST)).splitlines()[3]
    assert line == "| d | b\\|c | failed |"


def test_verdicts():
    summary = summarise([record(values={"map": [0.5, 0.5]})], **FAST)
    figures = [Published("d", "m", "map", 0.47, "T"), Published("d", "x", "map", 0.4695, "T", context=True)]
    lines = markdown_verdicts(compare_published(summary, figures)).splitlines()
    assert cells(lines[2]) == ["d", "clean", "m", "map", "0.4700", "0.5000", "±0.0001", "differs", "T"]
    assert cells(lines[3])[-2] == "for orientation"


def noted(dataset, rate, factor, value):
    chosen = {"train_dnoise": rate, "train_pnoise": rate * factor, "expected_pnoise": 0.25} if rate else {}
    noise = "uniform" if rate else "none"
    return record(dataset, 1, noise, rate, "m", 1, {"map": [value, value]}, chosen=chosen)


def test_noise_of_the_labels_beside_theory():
    summary = summarise([noted("d", r, 1.5, 0.5) for r in (0.0, 0.1)], resamples=50, permutations=50)
    assert markdown_pair_noise(summary).splitlines()[2:] == [
        "| d | uniform 0.1 | 0.1000 | 0.1500 | 0.2500 | – |"
    ]


def test_collapse_is_a_line_with_intervals():
    records = [
        noted(d, r, f, 0.8 * (1 - r * f)) for d, f in (("a", 1.0), ("b", 2.0)) for r in (0.0, 0.1, 0.2)
    ]
    found = collapse(kept(summarise(records, resamples=50, permutations=50), "map", "m"), resamples=20)
    line = markdown_collapse({"m, map": found}).splitlines()[2]
    assert line.startswith("| m, map | 4 | 2 | ")
    assert f"| {found.pnoise.r2:.2f} [{found.pnoise.r2_low:.2f}, {found.pnoise.r2_high:.2f}] |" in line
