import numpy as np
import pytest

import cleanrank as cr
from cleanrank.checks import CleanrankError
from cleanrank.data.scores import read_judged_and_scores, read_scores


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
    data, (one, two) = read_judged_and_scores(tmp_path / "qrels", [tmp_path / "one", tmp_path / "two"])
    assert sorted(data.doc_ids.tolist()) == ["a", "b", "c", "z"]
    by_doc = dict(zip(data.doc_ids.tolist(), data.y.tolist(), strict=True))
    assert by_doc == {"a": 2, "b": 0, "c": 1, "z": 0}
    of = dict(zip(data.doc_ids.tolist(), one.tolist(), strict=True))
    assert of["a"] == 3.0
    assert of["z"] == 2.0
    assert of["b"] < 2.0
    assert data.doc_ids[np.argmax(two)] == "c"
