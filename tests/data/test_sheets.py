"""Cells that people and spreadsheets rewrote."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanrank.data.sheets import frame_sheet, match_ids, read_sheet_file, whole_numbers
from cleanrank.errors import BadFileError, InvalidInputError, UnknownNameError


@given(st.lists(st.integers(0, 10**9), min_size=1), st.sampled_from([",", ".", "'", " "]))
def test_groups_of_digits_are_read_in_every_country(numbers, sign):
    texts = [f"{number:,}".replace(",", sign) for number in numbers]
    if all(text.endswith(f"{sign}000") for text in texts) and sign in ",.":
        texts.append("7")
        numbers = [*numbers, 7]
    assert whole_numbers(texts) == numbers


@given(st.lists(st.integers(0, 10**6), min_size=1, unique=True))
def test_ids_are_found_however_a_spreadsheet_writes_them(numbers):
    ids = np.array([f"{number:08d}" for number in numbers])
    for written in (str, "{}.0".format):
        assert match_ids([written(n) for n in numbers], ids).tolist() == list(range(len(numbers)))
    assert match_ids(["x", ""], ids).tolist() == [-1, -1]


def test_a_number_that_two_ids_share_is_neither_of_them():
    assert match_ids(["7", "007"], np.array(["07", "007"])).tolist() == [-1, 1]


def test_headings_are_known_by_role_or_by_name():
    sheet = frame_sheet({"Topic": [1], "DOC-ID": ["a"], "my grade": [2]})
    assert sheet.headings(["query", "doc", "grade"]) == {"query": "Topic", "doc": "DOC-ID"}
    assert sheet.headings(["grade"], {"grade": "My Grade"}) == {"grade": "my grade"}
    with pytest.raises(UnknownNameError, match=r"has no column 'x'\. Columns: Topic, DOC-ID, my grade"):
        sheet.heading("grade", "x")


@pytest.mark.parametrize("kind", [pd.DataFrame, pa.table, dict])
def test_cells_are_texts_whatever_the_table(kind):
    sheet = frame_sheet(kind({"a": [" x ", "y"], "b": [1.0, float("nan")]}))
    assert (sheet.texts("a"), sheet.texts("b")[1], len(sheet)) == (["x", "y"], "", 2)


def test_what_is_no_table_is_refused(tmp_path):
    for table, words in (
        (3, "must be a table"),
        ({"a": 1}, "map headings"),
        ({"a": [1], "b": [1, 2]}, "1, 2"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            frame_sheet(table)
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(BadFileError, match="must have a line of headings"):
        read_sheet_file(tmp_path / "empty.csv")
