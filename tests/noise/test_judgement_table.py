"""Long and wide tables of judgements by hand."""

import numpy as np
import pandas as pd
import pytest

from cleanrank.errors import BadFileError, InvalidInputError
from cleanrank.noise.judgement_table import read_judgements

LONG = {
    "query": ["q", "q", "q", "q", "r", "q"],
    "doc": ["a", "b", "a", "b", "a", "a"],
    "worker": ["ann", "ann", "bob", "bob", "bob", "ann"],
    "grade": ["3", "", "1.0", "-2", "2", "1"],
    "truth": ["3", "1", "3", "1", "", "3"],
}


def test_a_long_table_keeps_the_first_judgement_and_says_what_it_leaves_out():
    found = read_judgements(LONG)
    assert repr(found.judgements) == "Judgements(3 of 2 items by 2 annotators, 3 grades)"
    assert {name: list(keys) for name, keys in found.keys.items()} == {
        "query_id": ["q", "r"],
        "doc_id": ["a", "a"],
    }
    assert (found.lowest, list(found.truth)) == (1, [3, -1])
    assert list(found.judgements.grade) == [2, 0, 1]
    assert sorted(found.notes) == [
        "1 blank grades were left out",
        "1 further judgements of an item by the same person were left out",
        "1 negative grades are no grades and were left out",
    ]


def test_a_wide_table_is_the_long_one():
    wide = {"item": ["q a", "r a"], "ann": [3, None], "bob": [1, 2]}
    found = read_judgements(wide, lowest=0)
    assert repr(found.judgements) == "Judgements(3 of 2 items by 2 annotators, 4 grades)"
    assert list(found.judgements.grade) == [3, 1, 2]
    assert found.notes == ("columns taken as annotators: ann, bob",)


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        ({"item": ["a"], "grade": [1]}, BadFileError, "must have the columns item"),
        (
            {"item": ["a"], "worker": ["x"], "grade": ["good"]},
            BadFileError,
            "whole number; got 'good' at row 0",
        ),
        ({"item": ["a"], "worker": ["x"], "grade": [""]}, InvalidInputError, "at least one grade"),
    ],
)
def test_tables_without_judgements_are_refused(table, error, words):
    with pytest.raises(error, match=words):
        read_judgements(table)


def test_times_and_true_grades_travel_with_the_judgements():
    table = pd.DataFrame(
        {
            "query": ["q", "q", "q", "q"],
            "doc": ["a", "b", "a", "b"],
            "worker": ["ann", "ann", "bob", "bob"],
            "grade": [1, 3, 2, None],
            "gold_grade": [None, None, 2, None],
            "duration": [4.5, "", 2, 1],
            "at": ["2024-05-01T10:00:00Z", "soon", "2024-05-01T10:00:05Z", ""],
        }
    )
    judged = read_judgements(table)
    assert judged.truth.tolist() == [2, -1]  # known where one row of the item says so
    assert judged.seconds.tolist() == pytest.approx([4.5, np.nan, 2], nan_ok=True)
    assert np.isnat(judged.at).tolist() == [False, True, False]
    assert judged.query.tolist() == [0, 0]
    ann = judged.of(["ann"])
    assert ann["grade"].tolist() == [1, 3]
    assert ann["true_grade"].isna().tolist() == [False, True]
    both = read_judgements(judged.of(["ann", "bob"]))
    assert both.judgements.grade.tolist() == judged.judgements.grade.tolist()
    assert both.truth.tolist() == judged.truth.tolist()
    assert both.seconds.tolist() == pytest.approx(judged.seconds.tolist(), nan_ok=True)
    assert (both.at[[0, 2]] == judged.at[[0, 2]]).all()
    wide = read_judgements({"item": [1, 2], "seconds": [3, 4], "ann": [0, 1], "bob": [1, 0]})
    assert list(wide.judgements.annotators) == ["ann", "bob"]
    assert wide.query is None
