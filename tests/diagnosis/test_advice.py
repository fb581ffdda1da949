import numpy as np
import pytest

import cleanrank as cr
from cleanrank.diagnosis import diagnose
from cleanrank.diagnosis.advice import ADVISERS, KINDS
from cleanrank.noise.pair_noise import pnoise_expected
from cleanrank.noise.profiles import uniform

from .sets import plain, repeated


def said(data, **options):
    return {a.topic: a for a in diagnose(data, **options).advice}


def flawed():
    """A grade, values and queries missing; a constant column; infinite values; ids and rows twice."""
    X = np.array(
        [[1, 0, 5], [1, 0, 6], [2, 0, 5], [2, np.nan, 5], [3, 0, np.inf], [4, 0, 1], [5, 0, 2], [6, 0, 3]]
    )
    X = np.column_stack([X, np.full(8, 9.0), [1, 1, 1, 1, 2, 2, 2, 2]])
    X[1] = X[0]
    y = [0, 2, 0, 0, 2, 0, 0, 0]
    return cr.from_arrays(
        X, y, qid=[1, 1, 1, 1, 2, 2, 3, 3], doc_ids=["a", "a", "c", "d", "e", "f", "g", "g"]
    )


def by_grade():
    data = plain()
    rows = np.argsort(-data.y, kind="stable")
    return cr.from_arrays(data.X[rows], data.y[rows], qid=data.qid[rows])


SETS = {
    "by grade": (by_grade(), {}),
    "plain": (plain(), {}),
    "flawed": (flawed(), {}),
    "repeated": (repeated(), {}),
    "one grade": (cr.from_arrays(np.arange(4.0)[:, None], [1, 1, 1, 1], qid=[1, 1, 2, 2]), {}),
    "weight": (plain(), {"new_weight": 1.0}),
    "five": (cr.make_ranking(60, seed=1), {"profiles": ["geometric"]}),
}


@pytest.fixture(scope="module")
def everything():
    return {name: said(data, **options) for name, (data, options) in SETS.items()}


def test_every_adviser_speaks_somewhere(everything):
    assert {topic for found in everything.values() for topic in found} == set(ADVISERS)


def test_topics_and_kinds_are_the_known_ones(everything):
    for found in everything.values():
        kinds = [KINDS.index(a.kind) for a in found.values()]
        assert kinds == sorted(kinds)
        assert all(a.topic in ADVISERS and a.figures for a in found.values())
        assert all(isinstance(v, int | float) for a in found.values() for v in a.figures.values())


SHOWN = {
    "fragility": {"rate": ".0%", "pnoise": ".1%", "signal_left": ".0%"},
    "knee": {"knee": ".1%", "at": "g", "half": ".1%"},
    "neighbours": {"pnoise": ".3f"},
    "composition": {"pnoise": ".3f", "overall": ".3f", "rate": ".0%"},
    "grades": {"pnoise": ".3f", "asked_anew": ".3f", "merged": ".3f", "pairs_kept": ".0%", "rate": ".0%"},
    "balance": {"given": ".3f", "even": ".3f", "rate": ".0%"},
    "idle queries": {"queries": ",.0f", "share": ".1%"},
    "contradictions": {
        "groups": ",.0f",
        "contradicting_groups": ",.0f",
        "lower_bound": ".2%",
        "implied_rate": ".1%",
        "implied_low": ".1%",
        "implied_high": ".1%",
    },
    "features": {"auc": ".1%", "low": ".1%", "high": ".1%"},
    "row order": {"auc": ".1%"},
    "document ids": {"groups": ",.0f", "contradicting": ",.0f"},
    "columns": {"constant": ",.0f", "constant_in_queries": ",.0f"},
    "values": {"missing": ",.0f", "infinite": ",.0f"},
    "weight": {"new_weight": "g"},
}


@pytest.mark.parametrize("topic", SHOWN)
def test_the_words_hold_the_figures(everything, topic):
    heard = [found[topic] for found in everything.values() if topic in found and found[topic].kind != "fine"]
    assert heard or topic == "fragility"
    for advice in heard:
        for name, form in SHOWN[topic].items():
            if advice.figures.get(name):
                assert format(advice.figures[name], form) in advice.text, (advice, name)


def test_fragility_speaks_of_the_closed_form():
    data = cr.from_arrays(np.arange(20.0)[:, None], [0, 1] * 10, qid=[1] * 20)
    figures = said(data, rate=0.2)["fragility"].figures
    assert figures["pnoise"] == pytest.approx(pnoise_expected(uniform(0.2, 2), [0.5, 0.5], length=20))
    assert figures["signal_left"] == pytest.approx(1 - 2 * figures["pnoise"])


def test_balance_speaks_up_only_when_it_matters():
    even = cr.from_arrays(np.arange(40.0)[:, None], [0, 1] * 20, qid=[1] * 40)
    rare = cr.from_arrays(np.arange(40.0)[:, None], [1] + [0] * 39, qid=[1] * 40)
    assert said(even)["balance"].kind == "fine"
    assert said(rare)["balance"].kind == "act"
    assert said(rare)["knee"].kind == "act"
    assert "balance" not in said(even, new_weight=0.3)


def test_more_grades_are_judged_by_their_figures():
    """Five even grades beat any merge at the same error rate; MSLR's shares do not."""
    even = cr.from_arrays(np.arange(100.0)[:, None], np.arange(100) % 5, qid=[1] * 100)
    assert "Keeping all 5 grades is better" in said(even)["grades"].text
    shares = np.repeat(np.arange(5), [517, 325, 133, 17, 8])
    web = cr.from_arrays(np.arange(1000.0)[:, None], shares, qid=[1] * 1000)
    advice = said(web)["grades"]
    assert "not more robust" in advice.text
    assert advice.figures["asked_anew"] < advice.figures["pnoise"]


def test_clean_repeats_are_no_reproach():
    X = np.repeat(np.arange(5.0), 2)[:, None] + 1
    data = cr.from_arrays(X, np.repeat([0, 1, 0, 1, 1], 2), qid=[1] * 10)
    advice = said(data)["contradictions"]
    assert advice.kind == "fine"
    assert "5 groups" in advice.text
