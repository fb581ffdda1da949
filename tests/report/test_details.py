import re

from cleanrank.report.details import against_published, details
from cleanrank.report.published import Published, compare_published
from cleanrank.report.summaries import summarise

from .grids import record

FAST = {"resamples": 100, "permutations": 200}


def small():
    records = [record(fold=f, method=m, values={"map": [0.1 * f, 0.2 * f]}) for f in (1, 2) for m in "ab"]
    return summarise(
        [*records[:-1], record(fold=2, method="b", status="failed", error="x")], baseline="a", **FAST
    )


def rows(markup):
    found = re.findall(r"<tr[^>]*>(.*?)</tr>", markup, re.S)
    return [
        [re.sub(r"<[^>]*>", "", c) for c in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", r, re.S)] for r in found
    ]


def test_verdicts_show_the_tolerance_used():
    summary = small()
    figures = [
        Published("d", "a", "map", 0.5, "Paper <1>"),
        Published("d", "b", "map", 0.2, "Paper <1>"),
        Published("d", "c", "map", 0.3, "Paper <2>", context=True),
    ]
    verdicts = compare_published(summary, figures)
    made = against_published(verdicts, summary)
    listed = rows(made)
    assert listed[1][3:6] == ["0.5", "0.2250", "−0.2750"]
    assert listed[1][6] == f"{verdicts[0].tolerance:.4f}"
    assert listed[2][4:7] == ["–", "–", "–"]
    assert "1 of 2 cells" in listed[2][7]
    assert "For orientation" in made
    assert "Paper &lt;1&gt;" in made
    assert "agrees: 0 · differs: 1 · not run: 1." in made


def test_figures_of_ours_alone_are_counted():
    summary = small()
    one = against_published(compare_published(summary, [Published("d", "a", "map", 0.5, "x")]), summary)
    assert "No published figure for 1 figure of ours" in one
    none = against_published(
        compare_published(summary, [Published("d", "c", "map", 0.5, "x", context=True)]), summary
    )
    assert "No published figure for 2 figures of ours" in none


def test_no_figures_no_section():
    assert against_published((), small()) is None


def test_details_fold_away_measures_and_folds():
    made = details(small())
    assert made.count("<details>") == 2
    by_fold = [r for r in rows(made) if len(r) == 4 and r[1] in ("1", "2")]
    assert ["a", "2", "1 of 1", "0.3000"] in by_fold
    assert ["b", "2", "0 of 1", "–"] in by_fold
