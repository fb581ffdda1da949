import numpy as np
import pytest

import cleanrank as cr
from cleanrank.diagnosis import diagnose
from cleanrank.report.articles import WIDTH, spark

from .sets import plain, repeated


@pytest.fixture(scope="module")
def text():
    return repr(diagnose(plain(), name="a set"))


def test_the_report_holds_shape_curves_neighbours_and_advice(text):
    found = diagnose(plain())
    assert text.startswith(f"a set: {found.queries:,} queries, {found.documents:,} documents, 5 features")
    for curve in found.curves:
        line = next(li for li in text.splitlines() if li.startswith(curve.profile))
        assert f"{curve.at(0.1):.3f}" in line.split()
    assert "TD2003" in text
    assert "AUC signal left" in text
    assert "no identical rows" in text


def test_both_forms_show_when_they_differ(text):
    assert "by overall shares" in text
    alike = cr.from_arrays(np.arange(40_000.0)[:, None], np.tile([0, 1], 20_000), group=[20_000, 20_000])
    assert "by overall shares" not in repr(diagnose(alike))


def test_contradictions_are_shown_with_their_rows():
    found = diagnose(repeated())
    example = found.duplicates.within.examples[0]
    assert f"query {example.queries[0]}: rows {example.rows[0]}, " in repr(found)


def test_advice_fits_a_terminal(text):
    assert all(len(line) <= WIDTH for line in text.splitlines() if line[:2] in ("! ", "- ", "+ ", "  "))


def test_one_grade_gives_a_short_report():
    text = repr(diagnose(cr.from_arrays([[1.0], [2.0]], [0, 0], qid=[1, 1])))
    assert "nothing can be learnt" in text
    assert "pNoise" not in text


def test_a_histogram_of_nothing_is_blank():
    assert spark([]) == ""
    assert spark([0, 0]) == "  "
