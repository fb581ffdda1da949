"""What is computed from features that stay on disk has the bits of what is computed in memory."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow.parquet
import pytest

import cleanrank as cr
from cleanrank.data.shards import read_shards, write_shards
from cleanrank.data.synthetic import make_ranking_chunks
from cleanrank.issues.find import DETECTORS
from cleanrank.rankers.base import options_of
from cleanrank.stored import StoredFeatures, as_array

SHAPE = {"n_features": 8, "docs_per_query": 15, "seed": 0}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same noisy data in memory and in several shards on disk."""
    folder = tmp_path_factory.mktemp("shards") / "data"
    write_shards(make_ranking_chunks(80, chunk_queries=11, **SHAPE), folder)
    noisy = [
        cr.corrupt(each, rate=0.1, seed=1) for each in (cr.make_ranking(80, **SHAPE), read_shards(folder))
    ]
    assert isinstance(noisy[1].data.X, StoredFeatures)
    return noisy


@pytest.fixture(scope="module")
def parts(both):
    """(training, validation) rows of each."""
    return [cr.split(each.data, (0.8, 0.2), seed=0) for each in both]


def model(ranker):
    return ranker.booster_.model_to_string()


@pytest.mark.parametrize("name", [name for name in DETECTORS if name != "clicks"])
def test_detectors_doubt_alike(both, name):
    wanted = {"start": 4, "end": 8, "folds": 2, "rounds": 10, "noise": both[0].profile, "n_estimators": 20}
    if name == "posterior":
        wanted["rounds"] = 2
    options = {key: value for key, value in wanted.items() if key in options_of(DETECTORS[name])}
    tables = [cr.find_label_issues(each.data, name, seed=5, **options) for each in both]
    for column in ("row_id", "doubt", "is_label_issue", "suggested_label"):
        np.testing.assert_array_equal(*(getattr(table, column) for table in tables))
    assert tables[0].reasons.keys() == tables[1].reasons.keys()
    for reason, values in tables[0].reasons.items():
        np.testing.assert_array_equal(values, tables[1].reasons[reason])


@pytest.mark.parametrize(
    "ranker",
    [
        cr.BoostedRanker(n_estimators=15),
        cr.BoostedRanker(n_estimators=8, grid={"num_leaves": [5, 9]}, selection="average"),
        cr.BoostedRanker(n_estimators=8, objective="gbdt"),
        cr.BoostedRanker(n_estimators=8, implementation="builtin"),
        cr.BoostedRanker(n_estimators=8, objective="ranknet", robust="peer", alpha=0.2),
        cr.SOURRanker(n_estimators=10, end=10),
        cr.SOURRanker(n_estimators=10, end=10, folds=2),
        cr.SOURRanker(n_estimators=20, variant="fly", patience=5),
        cr.RobustRanker(n_estimators=10),
    ],
    ids=str,
)
def test_rankers_of_trees_learn_and_predict_alike(parts, both, ranker):
    fitted = [ranker.__class__(**ranker.get_params()).fit_data(*each) for each in parts]
    assert model(fitted[0]) == model(fitted[1])
    X = both[1].data.X
    expected = fitted[0].predict(as_array(X))
    for rows in (X, X[100:103], X[:0], X[::-2]):
        places = np.arange(len(expected))
        picked = {X.shape[0]: places, 3: places[100:103], 0: places[:0]}.get(rows.shape[0], places[::-2])
        np.testing.assert_array_equal(fitted[1].predict(rows), expected[picked])


def test_fit_takes_them_as_it_takes_arrays(both):
    data, stored = (each.data for each in both)
    one = cr.BoostedRanker(n_estimators=5).fit(data.X, data.y, qid=data.qid)
    two = cr.BoostedRanker(n_estimators=5).fit(stored.X, stored.y, qid=stored.qid)
    assert model(one) == model(two)
    assert one.score(data.X, data.y, qid=data.qid) == two.score(stored.X, stored.y, qid=stored.qid)
    # Rows in another order are sorted without being read.
    order = np.random.default_rng(0).permutation(data.n_docs)
    again = cr.BoostedRanker(n_estimators=5).fit(stored.X[order], stored.y[order], qid=stored.qid[order])
    assert again.n_features_in_ == 8


def test_staged_scores_are_alike_however_many_trees_are_read_at_once(both, monkeypatch):
    data, stored = (each.data for each in both)
    fitted = cr.BoostedRanker(n_estimators=20, early_stopping_rounds=None).fit_data(data).model_
    expected = [scores.copy() for _, scores in fitted.staged_predict(data.X)]
    for most in (1, 1 << 31):
        monkeypatch.setattr("cleanrank.rankers._lightgbm.LEAVES_BYTES", most)
        found = [scores.copy() for _, scores in fitted.staged_predict(stored.X)]
        np.testing.assert_array_equal(found, expected)


def test_diagnosis_cleaning_gold_and_explanations_are_alike(both, tmp_path):
    data, stored = (each.data for each in both)
    assert str(cr.diagnose(data)) == str(cr.diagnose(stored))
    issues = [cr.find_label_issues(each, "sour", end=20) for each in (data, stored)]
    assert str(issues[0].explain(data, n=5)) == str(issues[1].explain(stored, n=5))
    cleaned = [cr.clean(each, table) for each, table in zip((data, stored), issues, strict=True)]
    np.testing.assert_array_equal(cleaned[0].data.X, as_array(cleaned[1].data.X))
    sheets = [cr.sample_gold(each, 20, seed=0) for each in (data, stored)]
    assert sheets[0].row_ids.tolist() == sheets[1].row_ids.tolist()
    for name in ("one.txt", "one.csv"):
        cr.write_data(data, tmp_path / name)
        cr.write_data(stored, tmp_path / f"two-{name}")
        assert (tmp_path / name).read_bytes() == (tmp_path / f"two-{name}").read_bytes()


def test_tables_are_written_some_queries_at_a_time(both, tmp_path, monkeypatch):
    monkeypatch.setattr("cleanrank.data.shard_sources.PIECE", 1 << 12)
    monkeypatch.setattr("cleanrank.data.shard_sources.LEAST_ROWS", 64)
    stored = both[1].data.select_queries(np.arange(40))
    for name in ("a.csv", "a.tsv.gz", "a.parquet"):
        cr.write_data(stored, tmp_path / name)
        again = cr.read_data(tmp_path / name)
        np.testing.assert_array_equal(again.X, as_array(stored.X))
        np.testing.assert_array_equal(again.y, stored.y)
    assert pyarrow.parquet.ParquetFile(tmp_path / "a.parquet").num_row_groups > 1


def test_training_does_not_read_all_features_at_once(parts, monkeypatch):
    def refuse(self, whole=StoredFeatures.toarray):
        assert self.shape[0] < 100, "all rows were read into memory"
        return whole(self)

    monkeypatch.setattr(StoredFeatures, "toarray", refuse)
    monkeypatch.setattr("cleanrank.data.duplicate_rows.BLOCK_VALUES", 400)
    train, validation = parts[1]
    ranker = cr.BoostedRanker(n_estimators=5).fit_data(train, validation)
    scores = ranker.predict(train.X)
    cr.evaluate(scores, train, ["ndcg@10"], order="data")
    table = cr.find_label_issues(train, end=10, method="sour")
    cr.clean(train, table, min_doubt=0.5)
    cr.find_label_issues(train, folds=2)
    cr.find_label_issues(train, "contradictions")
    cr.diagnose(train)
    cr.corrupt(train, rate=0.1, seed=0)


@pytest.mark.slow
def test_a_training_killed_ten_times_ends_in_the_same_bits(tmp_path):
    write_shards(
        make_ranking_chunks(300, chunk_queries=50, **{**SHAPE, "docs_per_query": 60}), tmp_path / "data"
    )
    rng = random.Random(0)
    words = [sys.executable, "-m", "cleanrank", "train", tmp_path / "data", "--trees", "100", "-o"]
    start = time.monotonic()
    subprocess.run([*words, tmp_path / "whole.txt"], check=True, capture_output=True)
    taken = time.monotonic() - start
    killed = 0
    for _ in range(10):
        with subprocess.Popen([*words, tmp_path / "made.txt"], stdout=subprocess.DEVNULL) as process:
            time.sleep(rng.uniform(0.2, 0.9) * taken)
            process.send_signal(signal.SIGKILL)
        killed += process.returncode == -signal.SIGKILL
        if (tmp_path / "made.txt").exists():
            assert (tmp_path / "made.txt").read_bytes() == (tmp_path / "whole.txt").read_bytes()
            os.unlink(tmp_path / "made.txt")
    assert killed >= 5
    subprocess.run([*words, tmp_path / "made.txt"], check=True, capture_output=True)
    assert (tmp_path / "made.txt").read_bytes() == (tmp_path / "whole.txt").read_bytes()
