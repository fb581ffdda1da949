import math

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.issues.features import (
    MOST_SYSTEMS,
    judgements_of,
    judges_of,
    pair_features,
    score_columns,
    systems_of,
)
from cleanrank.issues.run_features import rank_table

QRELS = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"a": 0, "d": 1}}
RUNS = {
    "one": {"q1": {"a": 9.0, "b": 5.0, "x": 5.0}, "q2": {"d": 1.0}, "other": {"a": 1.0}},
    "two": {"q1": {"c": 3.0, "a": 1.0}},
}


@pytest.fixture
def data():
    return judgements_of(QRELS)


def column(data, name):
    return data.X[:, data.feature_names.index(name)].tolist()


def test_ranks_break_ties_by_falling_id_and_scores_are_scaled(data):
    ranks, scores = rank_table(systems_of(RUNS), data)
    # Of the tie in q1 the higher id, x, comes before b.
    np.testing.assert_array_equal(ranks[0], [1, 3, np.nan, np.nan, 1])
    np.testing.assert_array_equal(scores[0], [1.0, 0.0, np.nan, np.nan, 1.0])
    np.testing.assert_array_equal(ranks[1], [2, np.nan, 1, np.nan, np.nan])


def test_features_of_runs_by_system_and_together(data):
    found = pair_features(data, runs=RUNS)
    assert column(found, "run:one:rr") == pytest.approx([1, 1 / 3, 0, 0, 1])
    assert column(found, "runs:retrieved") == pytest.approx([1, 1 / 2, 1 / 2, 0, 1 / 2])
    assert column(found, "runs:best") == pytest.approx([1, 1 / 3, 1, 0, 1])
    assert column(found, "runs:fusion")[0] == pytest.approx((1 + 61 / 62) / 2)
    spread = column(found, "runs:spread")
    assert spread[0] == pytest.approx(np.std([0, np.log(2)], ddof=1))
    assert np.isnan(spread[1:]).all()


def test_many_systems_are_features_together_only(data):
    found = pair_features(data, runs={f"s{n}": RUNS["one"] for n in range(MOST_SYSTEMS + 1)})
    assert not any(name.startswith("run:") for name in found.feature_names)
    assert found.extra["run:s3:rr"].tolist() == pytest.approx([1, 1 / 3, 0, 0, 1])


def test_a_run_file_holds_several_runs_told_apart_by_their_tags(tmp_path):
    several, single = tmp_path / "several.txt", tmp_path / "single.txt"
    several.write_text("q1 Q0 a 1 2 A\nq1 Q0 a 1 3 B\nq1 Q0 b 2 1 B\n")
    single.write_text("q1 Q0 a 1 2 A\n")
    found = systems_of([several, single])
    assert {name: len(run.scores) for name, run in found.items()} == {"A": 1, "B": 2, "single": 1}
    (tmp_path / "again.txt").write_text("q1 Q0 a 1 2 A\nq1 Q0 a 1 3 C\n")
    assert list(systems_of([several, tmp_path / "again.txt"])) == ["A", "B", "again:A", "C"]
    assert list(systems_of(tmp_path)) == ["A", "C", "several:A", "B", "single"]


def test_texts_come_from_one_table_or_from_two(data):
    documents = {"doc_id": ["a", "b", "c", "z"], "title": ["Apple", "Pear", "Apple pie", "Zebra"]}
    documents |= {"url": ["u"] * 4, "year": ["1999"] * 4}
    queries = {"query_id": ["q1", "q2"], "query": ["apple pie", "zebra"]}
    found = pair_features(data, texts=[documents, queries])
    assert column(found, "text:coverage")[:3] == pytest.approx([0.5, 0, 1])
    assert np.isnan(column(found, "text:coverage")[4])  # no text of document d
    assert found.extra["title"].tolist() == ["Apple", "Pear", "Apple pie", "Apple", ""]
    assert {*found.extra} == {"title", "query"}  # neither addresses nor numbers


def test_tables_with_the_same_field_fill_each_other(data):
    """As a collection in several files."""
    parts = [{"doc_id": ["a", "b"], "text": ["Apple", "Pear"]}, {"doc_id": ["c"], "text": ["Apple pie"]}]
    found = pair_features(data, texts=[{"query_id": ["q1"], "query": ["apple pie"]}, *parts])
    assert found.extra["text"].tolist() == ["Apple", "Pear", "Apple pie", "Apple", ""]
    assert column(found, "text:coverage")[:3] == pytest.approx([0.5, 0, 1])


def test_tables_of_different_fields_may_hold_different_further_documents(data):
    texts = [
        {"query_id": ["q1"], "query": ["apple pie"]},
        {"doc_id": ["a", "x"], "title": ["Apple", "Zebra"]},
        {"doc_id": ["a", "y", "z"], "text": ["A pie", "Yak", "Ox"]},
    ]
    found = pair_features(data, texts=texts)
    assert column(found, "text:coverage")[0] == pytest.approx(1)


def test_scores_and_judges_beside_each_other(data):
    scores = pd.DataFrame({"qid": ["q1", "q1", "q9"], "docid": ["a", "c", "a"], "bert": [0.1, 0.9, 7.0]})
    found = pair_features(data, scores=scores, judges={"llm": {"q1": {"b": 1}, "q2": {"a": 0.5}}})
    np.testing.assert_allclose(column(found, "score:bert"), [0.1, np.nan, 0.9, np.nan, np.nan])
    np.testing.assert_array_equal(column(found, "place:bert"), [0.0, np.nan, 1.0, np.nan, np.nan])
    np.testing.assert_array_equal(column(found, "judge:llm"), [np.nan, 1, np.nan, 0.5, np.nan])


def test_an_embedding_has_no_places(data):
    wide = {"qid": ["q1"], "docid": ["a"]} | {f"e{n}": [float(n)] for n in range(20)}
    assert {name.partition(":")[0] for name in score_columns(wide, data)} == {"score"}


def test_judgements_of_files_and_tables_agree(tmp_path, data):
    (tmp_path / "a.qrels").write_text("q1 0 a 2\nq1 0 b 0\nq1 0 c 1\nq2 0 a 0\nq2 0 d 1\nq2 0 e -1\n")
    (tmp_path / "a.csv").write_text(
        "query_id,doc_id,relevance\nq1,a,2\nq1,b,0\nq1,c,1\nq2,a,0\nq2,d,1\nq2,e,\n"
    )
    for name in ("a.qrels", "a.csv"):
        read = judgements_of(tmp_path / name)
        assert read.judged.tolist() == [True] * 5 + [False]
        assert (read.y[:5].tolist(), read.doc_ids[:5].tolist()) == (data.y.tolist(), data.doc_ids.tolist())


def test_a_run_is_no_judgements(tmp_path):
    (tmp_path / "a.txt").write_text("q1 Q0 a 1 2 A\n")
    with pytest.raises(CleanrankError, match=r"must be grades; got a run, .*Give it as runs"):
        judgements_of(tmp_path / "a.txt")


def test_judgements_are_no_run_and_no_rows_of_letor(tmp_path):
    (tmp_path / "a.qrels").write_text("q1 0 a 1\n")
    with pytest.raises(CleanrankError, match=r"got judgements, .*Give them as qrels"):
        systems_of(tmp_path / "a.qrels")
    for name in ("b.txt", "b.qrels"):
        (tmp_path / name).write_text("q1 0 1 a\n")
        with pytest.raises(CleanrankError, match=r"a grade must be a whole number; got 'a' at .*line 1"):
            judgements_of(tmp_path / name)
        (tmp_path / name).write_text("")
        with pytest.raises(CleanrankError, match=rf"at least one pair; got none in .*{name}"):
            judgements_of(tmp_path / name)


def test_a_tab_for_a_blank_makes_no_table_of_judgements_and_runs(tmp_path):
    """As in qrels.dev.small.tsv of MS MARCO."""
    (tmp_path / "q.tsv").write_text("q1\t0\ta\t1\nq1\t0\tb\t0\n")
    (tmp_path / "r.tsv").write_text("q1\tQ0\tb\t1\t2.5\tA\n")
    data = judgements_of(tmp_path / "q.tsv")
    assert (data.doc_ids.tolist(), data.y.tolist()) == (["a", "b"], [1, 0])
    assert cr.read_data(tmp_path / "q.tsv").y.tolist() == [1, 0]
    assert systems_of(tmp_path / "r.tsv")["r"].scores.tolist() == [2.5]
    (tmp_path / "wide.txt").write_text("q1 Q0 b 1 2.5 A\n", encoding="utf-16")  # as PowerShell writes
    assert systems_of(tmp_path / "wide.txt")["wide"].scores.tolist() == [2.5]
    assert judges_of(tmp_path / "q.tsv")["q"].grade.tolist() == [1, 0]
    (tmp_path / "t.tsv").write_text("query_id\tdoc_id\tgrade\tquery\ttitle\ttext\nq1\ta\t2\tx\ty\tz\n")
    assert judgements_of(tmp_path / "t.tsv").y.tolist() == [2]
    (tmp_path / "f.tsv").write_text("label\tqid\t0\t1\n2\t1\t5\t6\n")
    assert cr.read_data(tmp_path / "f.tsv").X.tolist() == [[5, 6]]
    (tmp_path / "j.jsonl").write_text('{"query-id": "q", "corpus-id": "d", "score": 1}\n')
    with pytest.raises(CleanrankError, match="judgements of BEIR: name the folder"):
        judgements_of(tmp_path / "j.jsonl")


def test_judgements_without_document_ids_are_refused():
    with pytest.raises(
        CleanrankError, match=r"must have document ids .* find-issues doubts them without any"
    ):
        pair_features(cr.from_arrays([[3.0], [4.0]], [0, 1], qid=["q1", "q1"]), runs=RUNS)


def test_queries_that_are_named_by_their_words_have_texts():
    """As in a CSV file of Quepid."""
    columns = {"docid": ["a", "b", "a"], "rating": [1, 0, 1], "text": ["Apple pie", "Zebra", "Apple pie"]}
    found = pair_features(judgements_of({"query": ["apple pie"] * 2 + ["fruit"], **columns}))
    assert column(found, "text:coverage") == pytest.approx([1, 0, 0])
    assert judgements_of({"query": ["q1", "q1", "q2"], **columns}).extra.keys() == {"text"}  # ids


def test_features_and_texts_that_the_data_have_are_kept():
    own = cr.from_arrays(
        [[3.0], [4.0]], [0, 1], qid=["q1", "q1"], doc_ids=["a", "b"], feature_names=("price",),
        extra={"query": ["red", "red"], "title": ["Red one", "Blue"]},
    )  # fmt: skip
    found = pair_features(own)
    assert (column(found, "price"), column(found, "text:coverage")) == ([3.0, 4.0], [1.0, 0.0])


@pytest.mark.parametrize(
    ("qrels", "evidence", "words"),
    [
        (QRELS, {}, "evidence must be there to doubt a label; got grades alone"),
        (
            QRELS,
            {"runs": {"far": {"q9": {"a": 1}}}},
            "run 'far' must share topics and .*; got topics such as .'q9'. where the data have .'q1'",
        ),
        (QRELS, {"runs": {"far": {"q1": {"z": 1}}}}, "documents such as .'z'. where the data have .'a'"),
        (QRELS, {"judges": {"far": {"q9": {"a": 1}}}}, "judge 'far' must share topics and documents"),
        (QRELS, {"judges": {"me": QRELS}}, "column 'judge:me' must not be the judgements themselves"),
        (QRELS, {"texts": {"doc_id": ["a"], "text": ["t"]}}, "texts must hold the texts of queries"),
        (QRELS, {"texts": {"qid": ["q1"], "query": ["t"]}}, "texts must hold texts of documents"),
        (QRELS, {"texts": {"doc_id": ["a"], "n": [1]}}, "texts must hold the texts of queries; got no texts"),
        (QRELS, {"scores": {"qid": ["q1"], "docid": ["a"], "s": ["x"]}}, "and columns of numbers"),
        (
            QRELS,
            {"scores": {"docid": ["a", "b"], "s": [1, math.inf]}},
            "'s', must hold finite .* 'inf' at row 1",
        ),
        (
            QRELS,
            {"scores": {"docid": ["a", "b"], "v": [[1, 2], [3]]}},
            "vectors of 2 numbers; got .3. at",
        ),
        (QRELS, {"scores": {"docid": ["a", "b"], "s": [1, 1e39]}}, "must hold finite numbers"),
        (
            QRELS,
            {"scores": {"docid": [*"abc"], "s": ["1", "2", "?"]}},
            "must hold finite .*; got '\\?' at row 2",
        ),
        (
            QRELS,
            {"scores": {"qid": ["q1"] * 2, "docid": ["a", "a"], "s": [1, 2]}},
            "must be '1', as row 0 says of the same ids",
        ),
        (
            QRELS,
            {"texts": {"docid": ["a", "a"], "text": ["t", "u"]}},
            "must be 't', as row 0 says .* got 'u' at row 1",
        ),
        (QRELS, {"texts": {"docid": [], "text": []}}, "texts must hold at least one row"),
        ({"q1": {"a": 0, "b": 300}}, {"runs": RUNS}, "labels must be grades below 256; got 300"),
        (QRELS, {"scores": {"qid": ["q9"], "docid": ["a"], "s": [1]}}, "must hold pairs that were judged"),
        (QRELS, {"runs": []}, "runs must hold at least one system"),
        ({}, {"runs": RUNS}, "must hold at least one pair"),
        ({"q1": {"a": 0.5}}, {"runs": RUNS}, "must be whole numbers .* Make grades of ratings first"),
        ({"qid": [], "docid": [], "grade": []}, {"runs": RUNS}, "must hold at least one pair; got none"),
        (
            pd.DataFrame({"qid": ["q1", "q1"], "docid": ["a", "a"], "grade": [0, 1]}),
            {"runs": RUNS},
            "the judgements must hold a pair of query and document once only",
        ),
    ],
)
def test_what_does_not_fit_is_refused(qrels, evidence, words):
    with pytest.raises(CleanrankError, match=words):
        pair_features(judgements_of(qrels), **evidence)


def test_judges_need_names_of_their_own(tmp_path):
    (tmp_path / "llm.qrels").write_text("q1 0 a 1\n")
    assert list(judges_of([tmp_path / "llm.qrels"])) == ["llm"]
    with pytest.raises(CleanrankError, match="judges must have names of their own; got 'llm' twice"):
        judges_of([tmp_path / "llm.qrels"] * 2)


def test_a_column_of_vectors_is_an_embedding_and_no_text():
    pair = {"qid": ["q1"], "docid": ["a"], "query": ["red"], "text": ["red pie"], "v": [np.ones(3)]}
    texts = pd.DataFrame(pair)
    assert set(pair_features(judgements_of(QRELS), texts=texts).extra) == {"query", "text"}
    vectors = pd.DataFrame({"qid": ["q1", "q1"], "docid": ["a", "b"], "v": [[1.0, 2.0], None]})
    found = score_columns(vectors, judgements_of({"q1": {"b": 0, "a": 1}}))
    assert list(found) == ["score:v:0", "place:v:0", "score:v:1", "place:v:1"]
    np.testing.assert_array_equal(found["score:v:1"], [np.nan, 2.0])


@pytest.mark.parametrize("kind", ["polars", "lazy", "pyarrow", "reader", "duckdb"])
def test_frames_of_any_kind_are_judgements_runs_texts_and_scores(kind):
    make = {
        "polars": pl.from_pandas,
        "lazy": lambda frame: pl.from_pandas(frame).lazy(),
        "pyarrow": pa.Table.from_pandas,
        "reader": lambda frame: pa.Table.from_pandas(frame).to_reader(),
        "duckdb": duckdb.from_df,
    }[kind]
    pairs = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docid": ["a", "b", "a"]})

    def found(of):
        evidence = {
            "runs": {"new": of(pairs.assign(score=[1.0, 2.0, 3.0]))},
            "texts": of(pairs.assign(query="red", text=["red", "blue", "red pie"])),
            "scores": of(pairs.assign(ce=[0.5, 0.25, None])),
            "judges": {"llm": of(pairs.assign(grade=[0, 2, 1]))},
        }
        return pair_features(judgements_of(of(pairs.assign(grade=[1, 0, 1]))), **evidence)

    ours, plain = found(make), found(lambda frame: frame)
    assert (ours.feature_names, ours.doc_ids.tolist()) == (plain.feature_names, plain.doc_ids.tolist())
    np.testing.assert_array_equal(ours.X, plain.X)
