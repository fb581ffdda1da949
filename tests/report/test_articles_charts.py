import json
import re

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.diagnosis import diagnose
from cleanrank.planning import plan_labels
from cleanrank.report.articles import diagnosis_charts, plan_charts


@pytest.fixture(scope="module")
def found():
    data = cr.from_arrays(np.arange(90.0)[:, None], np.tile([0, 0, 0, 0, 1, 2], 15), group=[30, 60])
    return diagnose(data).to_dict()


def rows_of(picture):
    return picture["spec"]["data"]["values"]


def test_curves_draw_every_rate_of_every_profile(found):
    curves = next(p for p in diagnosis_charts(found) if p["id"] == "curves")
    drawn = {(r["method"], r["x"]): r["mean"] for r in rows_of(curves)}
    assert drawn == {
        (c["profile"], rate): value
        for c in found["curves"]
        for rate, value in zip(c["rates"], c["pnoise"], strict=True)
    }
    rule = curves["spec"]["layer"][0]
    assert rule["encoding"]["y"]["datum"] == 0.4


def test_known_sets_stand_beside_the_overall_form(found):
    known = next(p for p in diagnosis_charts(found) if p["id"] == "known")
    drawn = rows_of(known)
    mine = [r["mean"] for r in drawn if r["method"] == "these data"]
    assert mine == found["curves"][0]["overall"]
    assert {r["method"] for r in drawn} == {"these data", *(k["dataset"] for k in found["known"])}
    colours = known["spec"]["layer"][2]["encoding"]["color"]["scale"]["range"]
    assert colours[0] == "var(--ink)"
    assert len(set(colours)) == len(colours)


def test_bars_draw_shares_and_lengths(found):
    pictures = {p["id"]: p for p in diagnosis_charts(found)}
    assert [r["mean"] for r in rows_of(pictures["grade-shares"])] == found["grades"]["shares"]
    lengths = rows_of(pictures["lengths"])
    assert sum(r["mean"] for r in lengths) == found["queries"]
    assert [r["x"] for r in lengths] == found["lengths"]["edges"][:-1]
    assert [r["end"] for r in lengths] == found["lengths"]["edges"][1:]


def test_every_picture_has_words(found):
    for picture in (*diagnosis_charts(found), *plan_charts(plan_labels(500).to_dict())):
        assert len(picture["words"]) > 30
        assert picture["title"]


def test_without_pairs_there_are_no_curves():
    one = diagnose(cr.from_arrays([[1.0], [2.0]], [0, 0], qid=[1, 1])).to_dict()
    assert [p["id"] for p in diagnosis_charts(one)] == ["grade-shares", "lengths"]


def test_a_plan_draws_what_can_be_had():
    found = plan_labels(5000, cost=0.1)
    worth, wrong = plan_charts(found.to_dict())
    there = [o for o in found.options if not o.problem]
    assert [r["method"] for r in rows_of(worth)] == [o.name for o in there]
    scale = worth["spec"]["layer"][0]["encoding"]["color"]["scale"]
    colours = dict(zip(scale["domain"], scale["range"], strict=True))
    assert [name for name, colour in colours.items() if colour == "var(--c3)"] == [found.recommended]
    for option in there:
        parts = [r["mean"] for r in rows_of(wrong) if r["method"] == option.name]
        assert sum(parts) == pytest.approx(option.pnoise, abs=0.005)
    assert plan_charts(plan_labels(1).to_dict()) == []


def test_ticks_of_the_plan_are_told_apart():
    """Steps of .05 are not written with one digit."""
    _, wrong = plan_charts(plan_labels(5000, cost=0.1).to_dict())
    spec = wrong["spec"] | {"width": 400}
    svg = pytest.importorskip("vl_convert").vegalite_to_svg(json.dumps(spec))
    ticks = re.findall(r">(0\.\d+)</text>", svg)
    assert len(ticks) > 3
    assert len(set(ticks)) == len(ticks)
