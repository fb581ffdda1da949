import gzip

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data.scores import is_qrels, read_judged_and_scores, read_scores
from cleanrank.errors import CleanrankError


@pytest.fixture
def shuffled():
    """Rows of queries 7 and 8 in turns, so that grouping moves them."""
    return cr.from_arrays(np.zeros((4, 1)), [0, 1, 2, 0], qid=[7, 8, 7, 8], doc_ids=["a", "b", "c", "d"])


def test_lines_follow_the_rows_of_the_input(shuffled, tmp_path):
    (tmp_path / "s.txt").write_text("0.1\n0.2\n0.3\n0.4\n\n")
    assert read_scores(tmp_path / "s.txt", shuffled).tolist() == [0.1, 0.3, 0.2, 0.4]
    np.save(tmp_path / "s.npy", np.array([1, 2, 3, 4], dtype=np.float32))
    assert read_scores(tmp_path / "s.npy", shuffled).tolist() == [1, 3, 2, 4]


def test_a_run_is_matched_by_query_and_document(shuffled, tmp_path):
    (tmp_path / "run").write_text("8 Q0 d 1 9.0 t\n7 Q0 c 1 5.0 t\n7 Q0 a 2 4.0 t\n8 Q0 b 2 1.0 t\n")
    assert read_scores(tmp_path / "run", shuffled).tolist() == [4.0, 5.0, 1.0, 9.0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1\n2\n3\n", r"one score per row of the data \(4\); got 3 scores"),
        ("1\n2\nx\n4\n", "one number on a line; got 'x' at .*line 3"),
        ("1\n2\n\n4\n", "one number on a line; got '' at .*line 3"),
    ],
)
def test_bad_score_files_are_named(shuffled, tmp_path, text, words):
    (tmp_path / "s.txt").write_text(text)
    with pytest.raises(CleanrankError, match=words):
        read_scores(tmp_path / "s.txt", shuffled)


def test_no_pickle_is_loaded(shuffled, tmp_path):
    np.save(tmp_path / "s.npy", np.array([1, "x", None, 2], dtype=object), allow_pickle=True)
    with pytest.raises(CleanrankError, match="plain array of numbers"):
        read_scores(tmp_path / "s.npy", shuffled)


def test_scores_of_a_selection_are_refused(shuffled, tmp_path):
    (tmp_path / "s.txt").write_text("1\n2\n3\n")
    with pytest.raises(CleanrankError, match="must hold all rows of its input"):
        read_scores(tmp_path / "s.txt", shuffled.drop([0]))


def test_qrels_with_several_runs_share_their_documents(tmp_path):
    (tmp_path / "qrels").write_text("1 0 a 2\n1 0 b 0\n1 0 c 1\n")
    (tmp_path / "one").write_text("1 Q0 a 1 3.0 x\n1 Q0 z 2 2.0 x\n")
    (tmp_path / "two").write_text("1 Q0 c 1 7.0 y\n1 Q0 a 2 5.0 y\n")
    read = read_judged_and_scores(tmp_path / "qrels", [tmp_path / "one", tmp_path / "two"])
    assert read.data.doc_ids.tolist() == ["z", "c", "b", "a"]
    assert read.data.y.tolist() == [0, 1, 0, 2]
    assert [scores.tolist() for scores in read.scores] == [[2.0, None, None, 3.0], [None, 7.0, None, 5.0]]
    assert read.convention == "trec"
    assert read.remarks[1].startswith("one: 2 documents retrieved, 1 of them not judged (grade 0); 2 judged")


def test_runs_go_with_any_data_that_have_document_ids(tmp_path):
    (tmp_path / "a.txt").write_text("2 qid:1 1:3 #docid = a\n0 qid:1 1:4 #docid = b\n")
    (tmp_path / "run").write_text("1 Q0 b 1 3.0 x\n1 Q0 z 2 2.0 x\n")
    read = read_judged_and_scores(tmp_path / "a.txt", [tmp_path / "run"])
    assert read.data.doc_ids.tolist() == ["z", "b", "a"]
    (tmp_path / "s").write_text("1\n2\n")
    mixed = read_judged_and_scores(tmp_path / "a.txt", [tmp_path / "run", tmp_path / "s"])
    assert [scores.tolist() for scores in mixed.scores] == [[None, 3.0], [1.0, 2.0]]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("q", "301 0 FR94-1 2\n", True),
        ("q", "301 0 FR94-1 -2\n", True),
        ("q", "301 0 FR94-1 1.5\n", True),
        ("a.txt", "# made by hand\n2 qid:1 1:3\n", False),
        ("a.txt", "2 qid:1 1:3 2:4\n", False),
        ("a.txt", "2 1:3 2:3 3:4\n", False),
        ("a.tsv", "label\tqid\tx\ty\n1\t1\t2\t3\n", False),
        ("a.csv", "label, qid, x, y\n1, 1, 2, 3\n", False),
    ],
)
def test_judgements_are_told_from_other_files(tmp_path, name, text, expected):
    (tmp_path / name).write_text(text)
    assert is_qrels(tmp_path / name) == expected
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    assert is_qrels(tmp_path / f"{name}.gz") == expected


def test_packed_scores_are_read(shuffled, tmp_path):
    (tmp_path / "s.gz").write_bytes(gzip.compress(b"1\n2\n3\n4\n"))
    assert read_scores(tmp_path / "s.gz", shuffled).tolist() == [1, 3, 2, 4]


def test_npy_files_that_are_none_are_named(shuffled, tmp_path):
    (tmp_path / "empty.npy").write_bytes(b"")
    np.savez(tmp_path / "s.npz", np.zeros(4))
    (tmp_path / "s.npz").rename(tmp_path / "renamed.npy")
    for name in ("empty.npy", "renamed.npy"):
        with pytest.raises(CleanrankError, match=name):
            read_scores(tmp_path / name, shuffled)


def test_what_a_join_leaves_out_is_said(tmp_path):
    (tmp_path / "qrels").write_text("1 0 a 2\n1 0 b -1\n2 0 a 1\n3 0 a 1\n")
    (tmp_path / "one").write_text("1 Q0 a 1 3.0 x\n9 Q0 z 2 2.0 x\n")
    said = read_judged_and_scores(tmp_path / "qrels", [tmp_path / "one"]).remarks
    assert said[0].startswith("3 topics: all judged topics count")
    assert said[1:3] == [
        "1 topics are not judged and left out: 9.",
        "1 documents with negative grades count as not judged.",
    ]
    assert said[3].endswith("2 judged topics are not answered: 2, 3.")
    (tmp_path / "two").write_text("2 Q0 a 1 3.0 x\n1 Q0 a 1 3.0 x\n")
    read = read_judged_and_scores(tmp_path / "qrels", [tmp_path / "one", tmp_path / "two"], topics="shared")
    assert read.data.query_ids.tolist() == ["1"]
    assert read.remarks[1] == "2 judged topics are left out: 2, 3."
    (tmp_path / "far").write_text("9 Q0 z 2 2.0 x\n")
    with pytest.raises(CleanrankError, match="must share topics"):
        read_judged_and_scores(tmp_path / "qrels", [tmp_path / "far"])


def test_columns_of_a_table_may_have_other_names(tmp_path):
    (tmp_path / "a.csv").write_text("grade,query,x\n1,7,2\n0,7,3\n")
    (tmp_path / "s").write_text("1\n2\n")
    named = {"label": "grade", "qid": "query"}
    assert read_judged_and_scores(tmp_path / "a.csv", [tmp_path / "s"], named).data.y.tolist() == [1, 0]
    (tmp_path / "a.txt").write_text("1 qid:7 1:2\n0 qid:7 1:3\n")
    with pytest.raises(CleanrankError, match="CSV or Parquet"):
        read_judged_and_scores(tmp_path / "a.txt", [tmp_path / "s"], named)


def test_data_without_rows_are_not_evaluated(tmp_path):
    cr.write_data(cr.from_arrays(np.zeros((1, 1)), [0], qid=[1]).select([]), tmp_path / "a.parquet")
    (tmp_path / "s").write_text("")
    with pytest.raises(CleanrankError, match=r"a\.parquet.*at least one row"):
        read_judged_and_scores(tmp_path / "a.parquet", [tmp_path / "s"])
