"""Rows of known true grade: every form says the same, and what cannot be is refused."""

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.noise.gold_sheet import GoldAnswers, gold_answers, known_grades


@pytest.fixture
def data():
    """Ids that are no places: rows 1, 3 and 5 of six, queries in the order of the file."""
    whole = cr.from_arrays(np.arange(6.0)[:, None], [0, 1, 2, 0, 1, 2], qid=[9, 9, 9, 7, 7, 7])
    return whole.select([1, 3, 5])


def test_grades_travel_with_row_ids(data):
    found = gold_answers({5: 0, 1: 2}, data)
    assert known_grades(data, found).tolist() == [2, -1, 0]
    assert known_grades(data, None) is None


@pytest.mark.parametrize(
    ("gold", "words"),
    [
        ({2: 0}, "row ids of gold must be rows of the data; got 2"),
        ({100: 0}, "must be rows of the data; got 100"),
        (([1, 1], [0, 2]), "gold must name every row once; got row 1 as 0, 2"),
        (([1, 3], [0]), "must be one true grade per row id"),
        ({1: 1.5}, "true grades of gold must be integers >= 0; got 1.5"),
        ({1: -1}, "true grades of gold must be integers >= 0; got -1"),
        ({"1": 1}, "row ids of gold must be integers"),
        ([0, 1], "gold must be answers"),
        (GoldAnswers(np.array([2]), np.array([0]), np.ones(1)), "must be rows of the data; got 2"),
    ],
)
def test_rows_that_cannot_be_meant_are_refused(data, gold, words):
    with pytest.raises(CleanrankError, match=words):
        gold_answers(gold, data)


def test_nobody_asked_is_no_answer(data):
    assert gold_answers(None, data) is None
    assert gold_answers({}, data) is None


def test_the_estimate_of_answers_knows_what_rows_stand_for():
    """Half of the answers come from the fifth of rows that is wrong; without shares noise looks larger."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=1000)
    rows = cr.from_arrays(np.zeros((1000, 1)), y, group=[1000])
    ids = rng.permutation(1000)[:200]
    shares = np.where(np.arange(200) < 100, 0.2, 0.8)
    truth = np.where(np.arange(200) < 100, 1 - y[ids], y[ids])
    answers = GoldAnswers(ids, truth, shares)
    found = answers.estimate(rows)
    assert found.rate == pytest.approx(0.2, abs=0.05)
    assert GoldAnswers(ids, truth, np.ones(200)).estimate(rows).rate == pytest.approx(0.5, abs=0.07)
