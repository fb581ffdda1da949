"""Labels and runs from paths, frames and mappings, and their join."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cleanrank.errors import InvalidInputError
from cleanrank.judges.labels import as_labels, as_runs, check_together, pool_of

JUDGE = {"q1": {"a": 3, "b": 0}, "q2": {"a": 1, "c": 2}}


def frame(nested, value):
    rows = [(q, d, v) for q, each in nested.items() for d, v in each.items()]
    return pd.DataFrame(rows, columns=["qid", "docid", value])


def test_paths_frames_and_mappings_say_the_same(tmp_path):
    table = frame(JUDGE, "grade")
    qrels, sheet = tmp_path / "judge.qrels", tmp_path / "judge.csv"
    qrels.write_text("".join(f"{r.qid} 0 {r.docid} {r.grade}\n" for r in table.itertuples()))
    table.to_csv(sheet, index=False)
    for source in (JUDGE, table, qrels, str(sheet)):
        labels = as_labels(source)
        assert {(q, d): g for q, d, g in zip(labels.qid, labels.docid, labels.grade, strict=True)} == {
            (q, d): g for q, each in JUDGE.items() for d, g in each.items()
        }


def test_runs_come_from_a_folder_a_list_or_a_mapping(tmp_path):
    run = {"q1": {"a": 2.0, "x": 1.0}}
    (tmp_path / "bm25.txt").write_text("q1 Q0 a 1 2.0 t\nq1 Q0 x 2 1.0 t\n")
    for source, name in (
        (tmp_path, "bm25"),
        ([tmp_path / "bm25.txt"], "bm25"),
        ({"new": run}, "new"),
        (run, "system"),
    ):
        runs = as_runs(source)
        assert list(runs) == [name]
        assert runs[name].scores.tolist() == [2.0, 1.0]


def test_a_pool_needs_no_systems():
    pool = pool_of([as_labels(JUDGE), as_labels({"q1": {"b": 1}})])
    assert pool.grades.tolist() == [[0, 3, 2, 1], [1, -1, -1, -1]]
    assert pool.scores.shape == (0, 4)


def test_a_pool_holds_what_each_source_says_of_every_pair():
    gold = pd.DataFrame({"qid": ["q2"], "docid": ["c"], "grade": [3], "probability": [0.25]})
    runs = as_runs({"one": {"q1": {"a": 2.0, "x": 1.0}}, "two": {"q2": {"c": 5.0}}})
    pool = pool_of([as_labels(JUDGE), as_labels(gold)], runs)
    assert pool.systems == ("one", "two")
    rows = {
        (str(pool.query_ids[q]), str(d)): (*pool.grades[:, i], *pool.scores[:, i])
        for i, (q, d) in enumerate(zip(pool.query, pool.doc_ids, strict=True))
    }
    never = -np.inf
    assert rows == {
        ("q1", "a"): (3, -1, 2.0, never),
        ("q1", "b"): (0, -1, never, never),
        ("q1", "x"): (-1, -1, 1.0, never),
        ("q2", "a"): (1, -1, never, never),
        ("q2", "c"): (2, 3, never, 5.0),
    }
    assert np.nanmax(pool.probability[1]) == 0.25
    assert np.isnan(pool.probability).sum() == 9


def test_a_mapping_brings_a_judge_to_the_scale_of_gold():
    labels = as_labels({"q": {"a": 0.1, "b": 0.5, "c": 0.9, "d": -1}}, mapping={0: 0, 0.5: 1, 0.8: 3})
    assert labels.grade.tolist() == [0, 1, 3]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({}, "at least one pair"),
        ({"q": {"a": 0.5}}, "must be whole numbers and at most 1,000; got 0.5 at query 'q', document 'a'"),
        (pd.DataFrame({"qid": ["q", "q"], "docid": ["a", "a"], "grade": [1, 2]}), "'a' twice. Keep one"),
        (pd.DataFrame({"qid": ["q"], "grade": [1]}), "(no docid)"),
        (
            pd.DataFrame({"qid": ["q", "q"], "docid": ["a", "b"], "grade": ["1", "x"]}),
            "must hold numbers; got 'x' at row 1",
        ),
        (
            pd.DataFrame({"qid": ["q"], "docid": ["a"], "grade": [1], "probability": [0]}),
            "must be > 0 and <= 1",
        ),
        ({"q": {"a": -1}}, "at least one grade >= 0"),
        (3, "must be a path, a frame"),
    ],
)
def test_bad_labels_are_refused_with_their_place(source, words):
    with pytest.raises(InvalidInputError) as error:
        as_labels(source, "judge")
    assert words in str(error.value)


def test_judge_and_gold_must_share_pairs_and_scale():
    gold = as_labels({"q1": {"a": 3, "b": 1}}, "gold")
    with pytest.raises(InvalidInputError, match="must have pairs in common"):
        check_together(as_labels({"q1": {"z": 3}}, "judge"), gold)
    binary = as_labels({"q1": {"a": 1, "b": 0}}, "judge")
    with pytest.raises(InvalidInputError, match=r"mapping=\{0: 0, 1: 3\}"):
        check_together(binary, gold)
    check_together(as_labels({"q1": {"a": 1, "b": 0}}, "judge", mapping={0: 0, 1: 2}), gold)
    scales = [as_labels(replace(each, n_grades=4)) for each in (binary, gold)]  # known to be one
    check_together(*scales)
    with pytest.raises(InvalidInputError, match="must answer on the scale"):
        check_together(scales[0], gold)
