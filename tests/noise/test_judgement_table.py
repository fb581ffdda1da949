"""Long and wide tables of judgements by hand."""

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
