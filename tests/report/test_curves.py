import numpy as np
import pytest

import cleanrank as cr
from cleanrank.diagnosis import diagnose
from cleanrank.planning import plan_labels
from cleanrank.report.curves import COLOURS, diagnosis_pictures, plan_pictures


@pytest.fixture(scope="module")
def found():
    data = cr.from_arrays(np.arange(90.0)[:, None], np.tile([0, 0, 0, 0, 1, 2], 15), group=[30, 60])
    return diagnose(data).to_dict()


def rows_of(picture):
    spec = picture["spec"]
    if "data" in spec:
        return spec["data"]["values"]
    return spec["layer"][-1]["data"]["values"]


def test_curves_draw_every_rate_of_every_profile(found):
    curves = next(p for p in diagnosis_pictures(found) if p["id"] == "curves")
    drawn = {(r["line"], r["rate"]): r["pnoise"] for r in rows_of(curves)}
    assert drawn == {
        (c["profile"], rate): value
        for c in found["curves"]
        for rate, value in zip(c["rates"], c["pnoise"], strict=True)
    }
    rule = curves["spec"]["layer"][0]
    assert rule["data"]["values"][0]["at"] == 0.4


def test_known_sets_stand_beside_the_overall_form(found):
    known = next(p for p in diagnosis_pictures(found) if p["id"] == "known")
    drawn = rows_of(known)
    mine = [r["pnoise"] for r in drawn if r["line"] == "these data"]
    assert mine == found["curves"][0]["overall"]
    assert {r["line"] for r in drawn} == {"these data", *(k["dataset"] for k in found["known"])}


def test_bars_draw_shares_and_lengths(found):
    pictures = {p["id"]: p for p in diagnosis_pictures(found)}
    assert [r["share"] for r in rows_of(pictures["grade-shares"])] == found["grades"]["shares"]
    lengths = rows_of(pictures["lengths"])
    assert sum(r["queries"] for r in lengths) == found["queries"]
    assert [r["from"] for r in lengths] == found["lengths"]["edges"][:-1]


def test_every_picture_has_words(found):
    for picture in (*diagnosis_pictures(found), *plan_pictures(plan_labels(500).to_dict())):
        assert len(picture["words"]) > 30
        assert picture["title"]


def test_without_pairs_there_are_no_curves():
    one = diagnose(cr.from_arrays([[1.0], [2.0]], [0, 0], qid=[1, 1])).to_dict()
    assert [p["id"] for p in diagnosis_pictures(one)] == ["grade-shares", "lengths"]


def test_a_plan_draws_what_can_be_had():
    found = plan_labels(5000, cost=0.1)
    worth, wrong = plan_pictures(found.to_dict())
    there = [o for o in found.options if not o.problem]
    assert [r["way"] for r in rows_of(worth)] == [o.name for o in there]
    assert [r["way"] for r in rows_of(worth) if r["chosen"]] == [found.recommended]
    for option in there:
        parts = [r["value"] for r in rows_of(wrong) if r["way"] == option.name]
        assert sum(parts) == pytest.approx(option.pnoise, abs=0.005)
    assert plan_pictures(plan_labels(1).to_dict()) == []


def test_every_colour_has_a_light_and_a_dark_form():
    assert COLOURS.count("--c0:") == 3
    assert COLOURS.count("--c7:") == 3
