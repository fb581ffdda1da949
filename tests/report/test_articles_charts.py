import re

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.diagnosis import diagnose
from cleanrank.planning import plan_labels
from cleanrank.report.articles import diagnosis_panels, plan_panels
from cleanrank.report.images import inline_picture


@pytest.fixture(scope="module")
def found():
    data = cr.from_arrays(np.arange(90.0)[:, None], np.tile([0, 0, 0, 0, 1, 2], 15), group=[30, 60])
    return diagnose(data).to_dict()


def values_of(panel):
    return {(p.method, p.x): p.mean for p in panel.points}


def test_curves_draw_every_rate_of_every_profile(found):
    curves = diagnosis_panels(found)["curves"]
    assert values_of(curves) == {
        (c["profile"], rate): value
        for c in found["curves"]
        for rate, value in zip(c["rates"], c["pnoise"], strict=True)
    }
    assert curves.rules == ((0.4, "knee"),)


def test_known_sets_stand_beside_the_overall_form(found):
    known = diagnosis_panels(found)["known"]
    assert [p.mean for p in known.points if p.method == "these data"] == found["curves"][0]["overall"]
    assert set(known.methods) == {"these data", *(k["dataset"] for k in found["known"])}
    assert known.colours[0] == -1
    assert len(set(known.colours)) == len(known.colours)


def test_bars_draw_shares_and_lengths(found):
    panels = diagnosis_panels(found)
    assert [p.mean for p in panels["grade-shares"].points] == found["grades"]["shares"]
    lengths = panels["lengths"]
    assert sum(p.mean for p in lengths.points) == found["queries"]
    assert list(lengths.xs) == found["lengths"]["edges"]


def test_every_picture_has_words(found):
    for panel in (*diagnosis_panels(found).values(), *plan_panels(plan_labels(500).to_dict()).values()):
        assert len(panel.words) > 30
        assert panel.title


def test_without_pairs_there_are_no_curves():
    one = diagnose(cr.from_arrays([[1.0], [2.0]], [0, 0], qid=[1, 1])).to_dict()
    assert list(diagnosis_panels(one)) == ["grade-shares", "lengths"]


def test_a_plan_draws_what_can_be_had():
    found = plan_labels(5000, cost=0.1)
    worth, wrong = plan_panels(found.to_dict()).values()
    there = [o for o in found.options if not o.problem]
    assert worth.methods == tuple(o.name for o in there)
    colours = dict(zip(worth.methods, worth.colours, strict=True))
    assert [name for name, colour in colours.items() if colour == 3] == [found.recommended]
    for option in there:
        parts = [p.mean for p in wrong.points if p.method == option.name]
        assert sum(parts) == pytest.approx(option.pnoise, abs=0.005)
    assert plan_panels(plan_labels(1).to_dict()) == {}


@pytest.mark.parametrize("width", [350, 540])
def test_ticks_of_the_plan_are_told_apart(width):
    """Steps of .05 are not written with one digit."""
    wrong = plan_panels(plan_labels(5000, cost=0.1).to_dict())["wrong"]
    svg = inline_picture(wrong, "wrong", (width,))["drawn"][0]
    ticks = re.findall(r">(0\.\d+)</text>", svg)
    assert len(ticks) > 3
    assert len(set(ticks)) == len(ticks)
