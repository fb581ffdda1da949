import codecs
import warnings

import numpy as np
import openpyxl
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanrank.data.spreadsheet import (
    MOST_ROWS,
    checked_delimiter,
    escaped,
    read_frame,
    read_records,
    read_text,
    unescaped,
    write_frame,
    write_workbook,
)
from cleanrank.errors import BadFileError, InvalidInputError, UnknownNameError

HOSTILE = ['=HYPERLINK("http://x")', "=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "'=1", "it's"]
HOSTILE += ["dé", "-3"]
FRAME = pd.DataFrame({"query_id": HOSTILE, "doubt": np.arange(10) / 10 - 0.5, "issue": [True, False] * 5})
ENCODINGS = {"utf-8": "utf-8", "bom": "utf-8-sig", "utf-16": "utf-16", "cp1252": "cp1252"}


@given(st.text(st.sampled_from("'=+-@\t1e.a"), max_size=5))
def test_every_text_comes_back_and_none_starts_a_formula(text):
    assert unescaped(escaped(text)) == text
    if escaped(text)[:1] in ("=", "+", "-", "@", "\t"):
        float(text)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".xlsx"])
def test_frames_come_back_with_hostile_texts_and_plain_numbers(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    write_frame(FRAME, path)
    back = read_frame(path)
    assert back.query_id.astype(str).tolist() == HOSTILE
    np.testing.assert_allclose(
        back.doubt.to_numpy(float), FRAME.doubt, rtol=1e-15 if suffix == ".xlsx" else 0
    )
    assert back.issue.tolist() == FRAME.issue.tolist()
    if suffix in (".csv", ".tsv"):
        raw = path.read_bytes()
        assert raw.startswith(codecs.BOM_UTF8)
        assert all(
            cell.strip('"')[:1] not in "=+@"
            for line in raw[3:].splitlines()[1:]
            for cell in line.decode().split(",")
        )
        assert b"-0.5" in raw  # numbers stay numbers
    if suffix == ".xlsx":
        cells = [row[0] for row in openpyxl.load_workbook(path).active.iter_rows(min_row=2)]
        assert {cell.data_type for cell in cells} == {"s"}


def test_what_a_workbook_cannot_hold_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="control characters"):
        write_frame(pd.DataFrame({"a": ["x\x00"]}), tmp_path / "a.xlsx")
    with pytest.raises(InvalidInputError, match="32,767"):
        write_frame(pd.DataFrame({"a": ["x" * 40_000]}), tmp_path / "a.xlsx")
    with pytest.raises(InvalidInputError, match="fewer than"):
        write_workbook(["a"], iter(()), MOST_ROWS, str(tmp_path / "a.xlsx"))
    with pytest.raises(UnknownNameError, match=r"unknown file ending '\.xls'"):
        write_frame(FRAME, tmp_path / "a.xls")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("first", ["", "sep={}\n", '"sep={}"\r\n'])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_tables_of_spreadsheets_in_any_encoding_and_delimiter(tmp_path, delimiter, first, encoding):
    path = tmp_path / "a.csv"
    lines = ["Row_ID,größe,true_grade", '1,"dé, x; y",2', "", "2,ü,0"]
    text = first.format(delimiter) + "\n".join(delimiter.join(split(line)) for line in lines) + "\n"
    path.write_bytes(text.encode(ENCODINGS[encoding]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        names, rows = read_records(path)
    assert names == ["Row_ID", "größe", "true_grade"]
    start = 3 if first else 2
    assert rows == [
        (start, {"Row_ID": "1", "größe": "dé, x; y", "true_grade": "2"}),
        (start + 2, {"Row_ID": "2", "größe": "ü", "true_grade": "0"}),
    ]
    note = f"{str(path)!r} is not UTF-8 and was read as Windows-1252. Save it as CSV UTF-8."
    assert [str(each.message) for each in caught] == ([note] if encoding == "cp1252" else [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert read_frame(path)["größe"].tolist() == ["dé, x; y", "ü"]


def split(line):
    return [cell.replace("§", ",") for cell in line.replace("dé, x", "dé§ x").split(",")]


def test_decimal_commas_go_with_semicolons(tmp_path):
    (tmp_path / "a.csv").write_text("a;b;c\n0,5;x,y;1\n1,25e-3;2;\n;z;3\n")
    frame = read_frame(tmp_path / "a.csv")
    np.testing.assert_array_equal(frame.a, [0.5, 0.00125, np.nan])
    assert frame.b.tolist() == ["x,y", "2", "z"]


@pytest.mark.parametrize("raw", [b"\xff\xfea", b"a,b\n1,\x81\n", b"\x80\x00,b\n", b"\xff\xfea\x00\xff\xdf"])
def test_bytes_that_are_no_text_are_refused_with_a_remedy(tmp_path, raw):
    (tmp_path / "a.csv").write_bytes(raw)
    with pytest.raises(BadFileError, match=r"a\.csv.* must be UTF-8 text; got .*Save it as CSV UTF-8"):
        read_text(tmp_path / "a.csv")


def test_bad_tables_are_refused_by_name(tmp_path):
    (tmp_path / "a.xlsx").write_text("no workbook")
    (tmp_path / "a.parquet").write_text("no table")
    (tmp_path / "a.csv").write_text('a,b\n"' + "x" * 200_000)
    (tmp_path / "b.csv").write_text("a,b\n1,2,3\n1,2\n1,2,3,4,5\n")
    for name in ("a.xlsx", "a.parquet", "b.csv"):
        with pytest.raises(BadFileError, match=name):
            read_frame(tmp_path / name)
    for name in ("a.xlsx", "a.csv"):
        with pytest.raises(BadFileError, match=name):
            read_records(tmp_path / name)


def test_workbooks_are_read_as_texts(tmp_path):
    book = openpyxl.Workbook()
    for row in (["row_id", None, "true_grade"], [], [1.0, "x", 2], [2, None, None]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    names, rows = read_records(tmp_path / "a.xlsx")
    assert (names, rows) == (
        ["row_id", "", "true_grade"],
        [(3, {"row_id": "1", "true_grade": "2"}), (4, {"row_id": "2", "true_grade": ""})],
    )


def test_delimiters_are_one_character():
    assert [checked_delimiter(text) for text in (";", "tab", r"\t")] == [";", "\t", "\t"]
    for text in ("", ";;", '"', "\n"):
        with pytest.raises(InvalidInputError, match="one character"):
            checked_delimiter(text)
