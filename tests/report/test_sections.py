from cleanrank.report import sections
from cleanrank.report.summaries import summarise

from .grids import TRACEBACK, grid, record

FAST = {"resamples": 100, "permutations": 200}


def test_the_header_counts_the_grid():
    summary = summarise(grid(rates=(0.0, 0.3)), **FAST)
    made = sections.header(summary, "A <title>", "run it", ["a note"], judged=True)
    assert "A &lt;title&gt;" in made
    assert "MQ2008, OHSUMED · 3 methods · 2 noise levels · 5 folds · 3 seeds · 179 of 180 cells done" in made
    assert 'href="#gaps"' in made
    assert 'href="#published"' in made


def test_a_whole_grid_needs_no_notice():
    summary = summarise([record(values={"map": [0.1, 0.2]})], **FAST)
    assert sections.notice(summary) is None
    assert sections.gaps(summary) is None
    assert "1 cell failed" in sections.notice(
        summarise([record(), record(method="b", status="failed")], **FAST)
    )


def test_gaps_show_the_traceback_escaped():
    summary = summarise([record(method="a"), record(method="b", status="failed", error=TRACEBACK)], **FAST)
    made = sections.gaps(summary)
    assert "labels must be &lt;finite&gt; &amp; whole" in made
    assert "<finite>" not in made
    assert "Traceback (most recent call last)" in made


def test_the_best_complete_mean_is_bold():
    records = [record(method=m, values={"map": v}) for m, v in (("a", [0.1, 0.2]), ("b", [0.3, 0.4]))]
    records += [record(method="c", fold=f, values={"map": [0.9, 0.9]}) for f in (1,)]
    asked = [r.cell for r in records] + [record(method="c", fold=2).cell]
    made = sections.results(summarise(records, expected=asked, **FAST))
    assert "<b>0.3500</b>" in made
    assert "<b>0.9000</b>" not in made  # the highest, but incomplete


def test_provenance_lists_versions_seeds_and_conventions():
    records = [
        record(seed=0, values={"ndcg@5:letor": [0.1]}),
        record(seed=4, values={"ndcg@5:letor": [0.1]}, versions={"numpy": "2.3.0"}),
    ]
    made = sections.provenance(summarise(records, **FAST), records, "run it")
    assert "numpy 2.4.0 and 2.3.0" in made
    assert "<dd>0, 4</dd>" in made
    assert "discount 1 at rank 1" in made
    assert "100 resamples" in made
