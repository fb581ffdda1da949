"""Rows of clicks: what their construction refuses, and how."""

from dataclasses import replace

import numpy as np
import pytest

from cleanrank.data.behaviours import ClickRows, ClickSplits, Layout
from cleanrank.errors import InvalidInputError


def small_rows() -> ClickRows:
    return ClickRows(
        user=np.array([[1], [1], [2]]),
        item=np.array([[4, 1], [2, 1], [3, 2]]),
        context=np.zeros((3, 0), dtype=np.int32),
        y=np.array([1, 0, 1]),
        history_of=np.array([0, 0, 1]),
        histories=np.array([[[1, 1], [3, 2], [0, 0]], [[2, 1], [0, 0], [0, 0]]]),
        lengths=np.array([2, 1]),
        layout=Layout(user={"user": 3}, item={"item": 5, "category": 3}),
        users=np.array([0, 0, 1]),
    )


WRONG = {
    "two_labels": ({"y": [1, 0]}, "user must have one entry per row of y (2); got shape (3, 1)."),
    "label_2": ({"y": [1, 2, 0]}, "y must be from 0 to 1; got 2 at entry 1. 1 says clicked, 0 not clicked."),
    "item_code": (
        {"item": [[4, 1], [5, 1], [3, 2]]},
        "codes in item of field 'item' must be from 0 to 4, below the size in the layout; got 5 at row 1. "
        "Code 0 stands for an unknown value.",
    ),
    "negative_code": ({"user": [[1], [-1], [2]]}, "user of field 'user' must be from 0 to 2"),
    "history_code": (
        {"histories": [[[1, 1], [3, 3], [0, 0]], [[2, 1], [0, 0], [0, 0]]]},
        "got 3 at behaviour 1 of history 0.",
    ),
    "columns": ({"item": [[4], [2], [3]]}, "item must have one column for each of the 2 fields"),
    "flat": ({"user": [1, 1, 2]}, "user must have 2 dimensions; got shape (3,)."),
    "fraction": ({"y": [0.5, 0, 1]}, "y must hold whole numbers; got dtype float64."),
    "wide": ({"item": [[2**40, 1], [2, 1], [3, 2]]}, "got 1099511627776 at entry 0, 0"),
    "history_of": ({"history_of": [0, 2, 1]}, "history_of must be from 0 to 1; got 2 at entry 1."),
    "lengths": ({"lengths": [2, 4]}, "lengths must be from 0 to 3; got 4 at entry 1."),
    "lengths_short": ({"lengths": [2]}, "lengths must have one entry per history (2); got shape (1,)."),
    "padding": (
        {"lengths": [1, 1]},
        "histories must be 0 behind the 1 valid behaviours; got [3, 2] at behaviour 1 of history 0.",
    ),
    "times": ({"times": [1, 2]}, "times must have one entry per row of y (3); got shape (2,)."),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_rows_are_refused_with_value_and_place(case):
    columns, message = WRONG[case]
    with pytest.raises(InvalidInputError) as caught:
        replace(small_rows(), **columns)
    assert message in str(caught.value)


def test_rows_are_read_only_and_the_callers_arrays_stay_writeable():
    rows, mine = small_rows(), np.array([0, 1, 0], dtype=np.int32)
    changed = rows.with_labels(mine)
    with pytest.raises(ValueError, match="read-only"):
        changed.y[0] = 1
    mine[0] = 1
    assert rows.y.tolist() == [1, 0, 1]
    assert rows.item.dtype == rows.histories.dtype == np.int32


def test_select_takes_masks_and_positions_in_their_order():
    rows = replace(small_rows(), times=[5, 6, 7])
    assert rows.select([2, 0, 0]).item[:, 0].tolist() == [3, 4, 4]
    assert rows.select(rows.y == 1).times.tolist() == [5, 7]
    assert rows.select([2]).histories.shape == rows.histories.shape
    for wrong in ([3], [-1], [True], [0.5]):
        with pytest.raises(InvalidInputError, match=r"^rows "):
            rows.select(wrong)


def test_splits_share_one_layout():
    rows = small_rows()
    train, validation, test = ClickSplits(rows, rows, rows)
    assert train is validation is test is rows
    other = replace(rows, layout=Layout(user={"user": 4}, item={"item": 5, "category": 3}))
    with pytest.raises(InvalidInputError, match="test rows must have the layout of the training rows"):
        ClickSplits(rows, rows, other)


def test_a_layout_needs_an_item_and_positive_sizes():
    with pytest.raises(InvalidInputError, match="item fields of a layout must not be empty"):
        Layout(user={}, item={})
    with pytest.raises(InvalidInputError, match="item field 'item' must be an integer >= 1; got 0"):
        Layout(user={}, item={"item": 0})
