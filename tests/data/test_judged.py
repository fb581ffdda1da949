import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.data.catalogue import find, part_files
from cleanrank.data.judged import NOT_JUDGED, read_judged, to_grades
from cleanrank.errors import BadFileError, InvalidInputError, MissingDataError, UnknownNameError
from cleanrank.experiments.sources import identity_of
from tests.oracles import same_data


def tables(folder, n_queries=10):
    """Made-up tables of dl19: grades of NIST and of a judge who left out the first row of every query."""
    rng = np.random.default_rng(3)
    n = 4 * n_queries
    ids = {"qid": np.repeat([f"q{i}" for i in range(n_queries)], 4), "docid": [f"d{i}" for i in range(n)]}
    labels = pd.DataFrame(
        {**ids, "nist": rng.integers(0, 4, n), "j:yes": rng.integers(0, 2, n).astype(float)}
    )
    labels.loc[::4, "j:yes"] = np.nan
    features = pd.DataFrame({**ids, "bm25": rng.random(n), "length": rng.random(n)})
    (folder / "trec-dl-judges").mkdir(parents=True, exist_ok=True)
    write(folder, labels, features)
    return labels, features


def write(folder, labels=None, features=None):
    for name, frame in (("labels", labels), ("features", features)):
        if frame is not None:
            frame.to_parquet(folder / "trec-dl-judges" / f"dl19.{name}.parquet")


def test_every_query_is_tested_once_and_rows_without_an_answer_are_tested_only(tmp_path):
    labels, features = tables(tmp_path)
    tested = []
    for fold in range(1, 6):
        splits = cr.load_dataset("dl19", fold, root=tmp_path, judge="yes")
        assert [part.n_queries for part in splits] == [6, 2, 2]
        assert not {*splits.train.query_ids} & {*splits.validation.query_ids, *splits.test.query_ids}
        tested += splits.test.query_ids.tolist()
        for part in splits:
            rows = part.row_ids
            assert (part.y == labels["nist"].to_numpy()[rows]).all()
            np.testing.assert_array_equal(part.X, features[["bm25", "length"]].to_numpy(np.float32)[rows])
            answers = labels["j:yes"].fillna(NOT_JUDGED).to_numpy()[rows]
            assert (part.extra["judge"] == answers).all()
        assert splits.train.n_docs == 18
        assert splits.test.n_docs == 8
    assert sorted(tested) == sorted(labels["qid"].unique())


def test_without_a_judge_all_rows_are_there_and_a_part_comes_alone(tmp_path):
    tables(tmp_path)
    splits = cr.load_dataset("dl19", 2, root=tmp_path)
    assert (splits.train.n_docs, splits.train.extra) == (24, None)
    assert same_data(cr.load_dataset("dl19", 2, "validation", tmp_path), splits.validation)


@pytest.mark.parametrize("scale", ["binary", "graded", "five", "share", "mean"])
def test_the_order_of_answers_is_never_reversed_and_grades_lie_on_nists_scale(scale):
    rng = np.random.default_rng(7)
    answers = {
        "binary": rng.integers(0, 2, 200),
        "graded": rng.integers(0, 4, 200),
        "five": rng.integers(0, 6, 200),
        "share": rng.random(200),
        "mean": 5 * rng.random(200),
    }[scale].astype(float)
    grades = to_grades(answers)
    assert set(grades) <= set(range(4))
    assert (np.diff(grades[np.argsort(answers, kind="stable")]) >= 0).all()
    if scale in ("binary", "graded"):
        assert (grades == answers).all()
    missing = to_grades([*answers, np.nan])
    assert missing.tolist() == [*grades, NOT_JUDGED]


def test_what_is_wrong_is_said(tmp_path):
    with pytest.raises(InvalidInputError, match="answers of a judge must lie between 0 and 5; got 0 to 7"):
        to_grades([1, 7])
    with pytest.raises(MissingDataError, match=r"dl19 is not on this machine. Looked for dl19\.labels"):
        cr.load_dataset("dl19", root=tmp_path)
    labels, features = tables(tmp_path)
    with pytest.raises(UnknownNameError, match=r"unknown judge 'no'. Known: yes"):
        cr.load_dataset("dl19", root=tmp_path, judge="no")
    write(tmp_path, features=features.iloc[::-1])
    with pytest.raises(BadFileError, match=r"must have the rows of dl19\.labels.parquet in the same order"):
        cr.load_dataset("dl19", root=tmp_path)
    write(tmp_path, labels=labels.drop(columns="nist"))
    with pytest.raises(BadFileError, match=r"must have the columns qid, docid, nist; 'nist' is not among"):
        cr.load_dataset("dl19", root=tmp_path)


def test_the_identity_is_that_of_both_tables(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEANRANK_DATA", str(tmp_path))
    labels, features = tables(tmp_path)
    before = identity_of("dl19", 1, {})
    write(tmp_path, labels=labels.assign(nist=0))
    changed = identity_of("dl19", 1, {})
    write(tmp_path, features=features.assign(bm25=0.0))
    assert len({before, changed, identity_of("dl19", 1, {})}) == 3


@pytest.mark.parametrize("name", ["dl19", "dl20"])
def test_the_real_tables_hold_what_the_catalogue_says(data_root, name):
    files = part_files(find(name, data_root), "all")
    plain = read_judged(*files)
    facts = {fact.what: fact.value for fact in find(name, data_root).facts}
    counts = plain.n_queries, plain.n_docs, plain.n_features
    assert counts == tuple(facts[what] for what in ("queries", "documents", "features"))
    judged = read_judged(*files, "umbrella_gpt-4_zeroshot").extra["judge"]
    assert 0.4 < (judged == plain.y).mean() < 0.9
    assert (read_judged(*files, "binary_gpt4").extra["judge"] == NOT_JUDGED).sum() == {"dl19": 2, "dl20": 32}[
        name
    ]
