"""Texts of queries and documents, from data and from tables beside them; ``test_projects`` has more."""

import gzip

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data.texts import read_texts, texts_of
from cleanrank.errors import BadFileError, InvalidInputError
from cleanrank.labeling.texts import documents_of, fields_by_row


def data(**columns):
    doc_ids = columns.pop("doc_ids", ["a", "b", "a"])
    return cr.from_arrays(np.zeros((3, 1)), [0, 1, 2], qid=[1, 2, 1], doc_ids=doc_ids, **columns)


def test_texts_that_came_with_the_data():
    texts = texts_of(data(extra={"query_text": ["x", "y", "x"], "url": ["u", None, "w"], "year": [1, 2, 3]}))
    assert texts.queries == {"1": "x", "2": "y"}
    # Rows were brought together by query; numbers are no texts.
    assert texts.fields == {"url": ["u", "w", ""]}
    assert texts_of(data()).queries == {}


@pytest.mark.parametrize(
    ("table", "fields"),
    [
        ({"row_id": [1, 0], "text": ["b", "a"]}, {"text": ["a", "", "b"]}),
        ({"doc_id": ["a"], "text": ["t"]}, {"text": ["t", "t", ""]}),
        ({"query_id": ["1", "2"], "doc_id": ["a", "b"], "text": ["t", "u"]}, {"text": ["t", "t", "u"]}),
        ({"query_id": ["2"], "query": ["two"]}, {}),
        ({"qid": ["2"], "text": ["two"]}, {}),
    ],
)
def test_texts_beside_the_data(table, fields):
    texts = read_texts(table, data())
    assert texts.fields == fields
    assert texts.queries == ({"2": "two"} if not fields else {})


def test_texts_of_packed_lines(tmp_path):
    line = b'{"doc_id": "b", "query_id": 2, "query": "two", "title": "B"}'
    (tmp_path / "texts.jsonl.gz").write_bytes(gzip.compress(line))
    texts = read_texts(tmp_path / "texts.jsonl.gz", data())
    assert (texts.queries, texts.fields) == ({"2": "two"}, {"title": ["", "", "B"]})


def test_texts_of_a_file(tmp_path):
    (tmp_path / "texts.csv").write_text("doc_id,query_id,query,title\nb,2.0,two,B\n")
    texts = read_texts(tmp_path / "texts.csv", data())
    assert (texts.queries, texts.fields) == ({"2": "two"}, {"title": ["", "", "B"]})


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"text": ["t"]}, "must have row_id, or query_id, doc_id or both, and columns of texts; got text"),
        ({"doc_id": ["a"]}, "and columns of texts; got doc_id"),
        ({"doc_id": ["z"], "text": ["t"]}, "must speak of rows of the data; none is there"),
        ({"query_id": ["1", "1"], "query": ["x", "y"]}, "query '1' must have one text, 'x'; got 'y'"),
    ],
)
def test_tables_without_texts_of_the_data_are_refused(table, words):
    with pytest.raises(BadFileError, match=words):
        read_texts(table, data())


def test_documents_need_ids_to_be_given_texts():
    with pytest.raises(InvalidInputError, match="data must have document ids to be given texts by document"):
        read_texts({"doc_id": ["a"], "text": ["t"]}, data(doc_ids=None))


def test_an_address_is_an_id_and_is_shown():
    documents, queries, _ = documents_of({"query": ["x"], "url": ["http://a"], "grade": [1]})
    assert (documents[0].doc_id, documents[0].fields, documents[0].given_label) == (
        "http://a",
        {"url": "http://a"},
        1,
    )
    assert queries == {"x": "x"}


def test_a_sheet_that_was_drawn_keeps_its_rows_and_hides_what_would_tell():
    sheet = {"row_id": [7, 3], "query_id": ["q", "q"], "doc_id": ["a", "b"], "text": ["t", "u"]}
    documents, _, shares = documents_of({**sheet, "stratum_share": [0.25, 1.0], "grade": ["", ""]})
    assert [(each.row, each.row_id, dict(each.fields)) for each in documents] == [
        (0, 7, {"text": "t"}),
        (1, 3, {"text": "u"}),
    ]
    assert shares == {0: 0.25, 1: 1.0}
    assert [each.row_id for each in documents_of({**sheet, "row_id": ["x", 3]})[0]] == [0, 1]


def test_fields_by_row():
    assert fields_by_row({"a": ["x", ""]}, 2) == [{"a": "x"}, {}]
    with pytest.raises(InvalidInputError, match="field 'a' must have a text for every row"):
        fields_by_row({"a": ["x"]}, 2)
