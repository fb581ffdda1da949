"""All formats: what is written reads back the same, content tells them apart, options are used or refused."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data.tables import FORMATS, kind_of_file, read_rows
from cleanrank.errors import (
    BadFileError,
    CleanrankError,
    InvalidInputError,
    MissingDataError,
    UnknownNameError,
)

QUERIES = ["star wars", "ü =x", "007", "7"]


def texts(values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def judgements(*, grades=(0, 1, 2, 3), gains=None, judged=None):
    """Judged pairs as tools have them: the text of a query is its id."""
    queries = np.repeat(QUERIES, [2, 3, 1, 2])
    data = cr.from_arrays(
        np.zeros((8, 0)),
        np.resize(grades, 8),
        qid=queries,
        doc_ids=["d 1", "d2", "d2", "-3", '"4', "d5", "d1", "é"],
        gains=gains,
        extra={"query": texts(queries.tolist())},
    )
    return data if judged is None else replace(data, judged=np.asarray(judged))


def plain(**changes):
    """Judgements that TREC and BEIR can hold."""
    data = judgements()
    docs = [f"d{i}" for i in range(8)]
    extra = {
        "query": data.extra["query"],
        "title": texts([f"t{i}" for i in range(8)]),
        "text": texts(["é\n"] * 8),
    }
    return replace(data, doc_ids=np.array(docs), extra=extra, **changes)


def features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 3)).astype(np.float32)
    X[2, 1] = np.nan
    return replace(judgements(), X=X, feature_names=("bm25", "title match", "é"), extra=None)


def words(data):
    names = np.array([f"q{i}" for i in range(data.n_queries)])
    return replace(data, query_ids=names, extra=None)


MIXED = [True, False, True, True, True, False, True, True]
HALVES = [0.5, 1.5, 0.0, 2.5, 0.5, 1.5, 0.0, 2.5]
# format -> (name of the file, what it can hold)
CASES = {
    "csv": ("a.csv", features),
    "parquet": ("a.parquet", features),
    "letor": ("a.txt", lambda: replace(words(plain()), X=np.ones((8, 2)))),
    "qrels": ("a.qrels", lambda: words(plain(judged=np.array(MIXED)))),
    "beir": ("folder/", lambda: plain(judged=np.array(MIXED))),
    "quepid-csv": ("a.csv", judgements),
    "opensearch": ("a.json", judgements),
    "quepid-book": ("a.json", lambda: judgements(judged=MIXED)),
    "rre": ("a.json", judgements),
    "label-studio": ("a.json", lambda: judgements(judged=MIXED)),
    "ltr-log": ("a.ndjson", features),
    "shards": ("folder/", features),
}
RATED = ("quepid-csv", "opensearch", "quepid-book", "rre", "label-studio", "ltr-log")


def assert_same(back, data, *, without=()):
    known = np.ones(data.n_docs, dtype=bool) if data.judged is None else data.judged
    assert back.query_ids.tolist() == data.query_ids.tolist()
    assert back.indptr.tolist() == data.indptr.tolist()
    assert back.y.tolist() == np.where(known, data.y, 0).tolist()
    assert (None if back.judged is None else back.judged.tolist()) == (
        None if known.all() else known.tolist()
    )
    for name in {"doc_ids", "gains", "X"} - set(without):
        one, two = getattr(back, name), getattr(data, name)
        np.testing.assert_array_equal(np.asarray(one), np.asarray(two), err_msg=name)
    assert (back.feature_names or None) == (data.feature_names or None)
    if "extra" not in without:
        assert sorted(back.extra or {}) == sorted(data.extra or {})
        for name, column in (data.extra or {}).items():
            assert back.extra[name].tolist() == column.tolist()


def test_every_format_that_is_written_has_a_case():
    assert set(CASES) == {name for name, each in FORMATS.items() if each.write is not None}


@pytest.mark.parametrize("form", CASES)
def test_what_is_written_reads_back_the_same(tmp_path, form):
    name, make = CASES[form]
    data, path = make(), f"{tmp_path}/{name}"
    cr.write_data(data, path, form=form)
    # Nothing half written stays behind.
    assert [each.name for each in tmp_path.iterdir()] == [name.rstrip("/")]
    assert_same(cr.read_data(path), data)
    assert_same(cr.read_data(path, form=form), data)
    again = f"{tmp_path}/again-{name}"
    cr.write_data(cr.read_data(path), again, form=form)
    assert_same(cr.read_data(again), data)


@pytest.mark.parametrize("form", [form for form in CASES if form not in ("parquet", "beir")])
def test_a_format_is_known_by_its_content(tmp_path, form):
    name, make = CASES[form]
    cr.write_data(make(), tmp_path / name, form=form)
    (tmp_path / name).rename(tmp_path / "unknown")
    assert_same(cr.read_data(tmp_path / "unknown"), make())


@pytest.mark.parametrize("form", RATED)
def test_real_valued_ratings_stay_as_gains_and_grades_follow_the_rule(tmp_path, form):
    name, _ = CASES[form]
    data = judgements(gains=HALVES) if form != "ltr-log" else replace(features(), gains=np.array(HALVES))
    cr.write_data(data, tmp_path / name, form=form)
    with pytest.warns(UserWarning, match=r"ratings 0, 0.5, 1.5, 2.5 are grades 0, 1, 2, 3; gains keep"):
        back = cr.read_data(tmp_path / name)
    assert back.gains.tolist() == HALVES
    assert back.y.tolist() == [1, 2, 0, 3, 1, 2, 0, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        back = cr.read_data(tmp_path / name, ratings="1,2")
    assert back.gains.tolist() == HALVES
    assert back.y.tolist() == [0, 1, 0, 2, 0, 1, 0, 2]
    with pytest.raises(BadFileError, match=r"a\.\w+'?: ratings must be whole numbers"):
        cr.read_data(tmp_path / name, ratings="whole")


def test_suffixes_and_slashes_say_what_is_written(tmp_path):
    cr.write_data(words(plain()), tmp_path / "a.qrels")
    assert (tmp_path / "a.qrels").read_text().splitlines()[1] == "q0 0 d1 1"
    cr.write_data(features(), tmp_path / "a.jsonl")
    assert kind_of_file(tmp_path / "a.jsonl") == "json-lines"
    cr.write_data(plain(), f"{tmp_path}/beir/")
    assert kind_of_file(tmp_path / "beir") == "beir"
    with pytest.raises(InvalidInputError, match="new or empty folder"):
        cr.write_data(plain(), tmp_path / "beir")
    with pytest.raises(InvalidInputError, match="form= one of opensearch, quepid-book, rre, label-studio"):
        cr.write_data(plain(), tmp_path / "a.json")
    with pytest.raises(InvalidInputError, match=r"must be one that is written .*ltr-log.*; got 'folder'"):
        cr.write_data(plain(), tmp_path / "b", form="folder")
    with pytest.raises(UnknownNameError, match="Did you mean 'opensearch'"):
        cr.write_data(plain(), tmp_path / "b", form="opensearsh")


def test_options_of_other_formats_are_refused(tmp_path):
    cr.write_data(judgements(), tmp_path / "a.json", form="opensearch")
    cr.write_data(words(plain()), tmp_path / "a.qrels")
    cr.write_data(features(), tmp_path / "a.csv")
    for name, options, said in (
        ("a.json", {"features": ["x"]}, "features= must go with CSV or Parquet; got .*a.json', JSON"),
        ("a.json", {"combine": "median"}, "combine= goes with ratings of several people"),
        ("a.qrels", {"label": "x"}, "label= must go with CSV or Parquet"),
        ("a.csv", {"combine": "median"}, "combine= must go with a CSV file of Quepid or"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            cr.read_data(tmp_path / name, **options)
    with pytest.raises(UnknownNameError, match="unknown argument 'labels' for CSV"):
        cr.read_data(tmp_path / "a.csv", labels="x")


def test_what_is_no_data_is_refused_by_what_it_is(tmp_path):
    for text, said in (
        ('{"querySetQueries": [{"queryText": "x"}]}', "a query set of OpenSearch, which has no judgments"),
        ('{"action_name": "click"}\n{"action_name": "click"}', "a log of User Behavior Insights"),
        ('{"_id": "1", "text": "x"}\n{"_id": "2"}', "name the folder that holds it"),
        ('{"query": "x", "positive": "y"}\n{}', "texts to train embeddings with"),
        ("[]", "got a list at"),
        ("{}", "got a dict at"),
        ("[[", "must be JSON; got"),
    ):
        (tmp_path / "a.json").write_text(text)
        (tmp_path / "a").write_text(text)
        for name in ("a", "a.json") if "\n" not in text else ("a",):
            with pytest.raises(BadFileError, match=said):
                cr.read_data(tmp_path / name)
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        MissingDataError, match=r"must be a folder of shards, of BEIR .* or of Parquet files; got nothing"
    ):
        cr.read_data(tmp_path / "empty")
    with pytest.raises(CleanrankError, match="there is no file"):
        cr.read_data(tmp_path / "none")


def test_rows_to_score_need_no_grades(tmp_path):
    data = replace(features(), judged=np.zeros(8, dtype=bool))
    cr.write_data(data, tmp_path / "a.ndjson")
    with pytest.raises(BadFileError, match="must have grades beside its features"):
        cr.read_data(tmp_path / "a.ndjson")
    rows = read_rows(tmp_path / "a.ndjson")
    np.testing.assert_array_equal(rows.X, data.X)
    assert rows.judged is None
