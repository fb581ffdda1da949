"""Rankers and detectors on a Dask cluster: the same bits, or where one model is trained the same quality."""

import os
import signal
import warnings

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data.shards import write_shards
from cleanrank.errors import InvalidInputError, LostWorkerError
from cleanrank.issues.sour import watch_model
from cleanrank.rankers.grade_model import cross_fit_means
from tests.cluster.clusters import local_cluster

TREES = {"n_estimators": 30, "num_leaves": 7, "min_child_samples": 5, "learning_rate": 0.2}


@pytest.fixture(scope="module")
def client():
    with local_cluster() as client:
        yield client


@pytest.fixture(scope="module")
def rows():
    data = cr.corrupt(cr.make_ranking(150, 6, docs_per_query=20, seed=0), rate=0.1, seed=1).data
    return cr.split(data, (0.6, 0.2, 0.2), seed=0)


def text(model):
    return model.booster.model_to_string(num_iteration=-1)


def both(client, rows, ranker, **options):
    """The ranker fitted here and on the cluster."""
    kind, settings = type(ranker), ranker.get_params()
    return [
        kind(**settings).fit_data(rows[0], rows[1], **options),
        kind(**settings).fit_data(rows[0], rows[1], client=client, **options),
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"grid": {"num_leaves": [3, 7]}},
        {"grid": {"num_leaves": [3, 7]}, "selection": "average"},
        {"robust": "peer", "peers": "expected"},
    ],
    ids=str,
)
def test_models_to_choose_from_have_the_same_bits(client, rows, options):
    here, there = both(client, rows, cr.BoostedRanker(**TREES, **options))
    assert text(here.model_) == text(there.model_)
    assert here.chosen_ == there.chosen_
    assert here.tried_ == there.tried_
    assert here.evals_result_ == there.evals_result_


def test_a_robust_ranker_has_the_same_bits(client, rows):
    grid = {"num_leaves": [4, 8], "min_data_in_leaf": [10]}
    here, there = both(client, rows, cr.RobustRanker(n_estimators=10, folds=2, grid=grid))
    assert text(here.model_) == text(there.model_)
    assert here.report_.weights == there.report_.weights


@pytest.mark.parametrize("method", ["auto", "confident", "loss", ["posterior", "forgetting"], "isolation"])
def test_detectors_have_the_same_bits(client, rows, method):
    options = {} if method == "isolation" else {"folds": 3}
    if "posterior" in method:
        options["noise"] = "uniform:0.1"
    here, there = (
        cr.find_label_issues(rows[0], method=method, client=each, **options) for each in (None, client)
    )
    assert np.array_equal(here.doubt, there.doubt)
    assert np.array_equal(here.suggested_label, there.suggested_label)


def test_models_of_folds_have_the_same_bits(client, rows):
    from cleanrank.cluster.client import on_cluster

    here = cross_fit_means(rows[0], rows[0].y.astype(float), 3)
    with on_cluster(client):
        there = cross_fit_means(rows[0], rows[0].y.astype(float), 3)
    assert text(here.model) == text(there.model)
    assert np.array_equal(here.predictions, there.predictions)
    one, two = (cr.find_label_issues(rows[0], "sour", folds=3, end=20, client=c) for c in (None, client))
    assert np.array_equal(one.doubt, two.doubt)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"objective": "gbdt"},
        {"implementation": "builtin"},
        {"implementation": "parity"},
        {"objective": "ranknet", "weighting": "pooled"},
        {"robust": "peer", "alpha": 0.2},
        {"params": {"tree_learner": "voting"}},
        {"measure": "lightgbm:ndcg@5"},
    ],
    ids=str,
)
def test_one_model_by_all_workers_ranks_as_well(client, rows, options):
    here, there = both(client, rows, cr.BoostedRanker(**TREES, **options))
    value = [
        cr.evaluate(each.predict(rows[2].X), rows[2], ["ndcg@10"]).means["ndcg@10"] for each in (here, there)
    ]
    assert abs(value[0] - value[1]) < 0.05
    assert len(there.evals_result_["valid_0"]) == 1
    model = text(there.model_)
    assert "[num_machines: 1]" in model
    assert "127.0.0.1" not in model
    # What stopped the training is what the model scores.
    if "measure" not in options:
        found = cr.evaluate(there.predict(rows[1].X), rows[1], ["ndcg@10"]).means["ndcg@10"]
        assert found == pytest.approx(there.chosen_["validation"], abs=1e-12)


def test_the_same_run_has_the_same_bits(client, rows):
    one, two = (cr.BoostedRanker(**TREES).fit_data(*rows[:2], client=client) for _ in range(2))
    assert text(one.model_) == text(two.model_)


def test_rows_in_any_order_sparse_ones_and_progress(client, rows):
    from scipy.sparse import csr_matrix

    data, seen = rows[0], []
    order = np.random.default_rng(0).permutation(data.n_docs)
    ranker = cr.BoostedRanker(**TREES)
    ranker.fit(
        csr_matrix(data.X)[order], data.y[order], qid=data.qid[order], client=client,
        progress=lambda *step: seen.append(step),
    )  # fmt: skip
    assert seen == [(k, 30) for k in range(1, 31)]
    assert ranker.score(data.X, data.y, qid=data.qid) > 0.5


@pytest.mark.parametrize("variant", ["sour", "last", "curr", "fly"])
def test_sour_trains_on_all_workers(client, rows, variant):
    settings = {"end": 20, "start": 5, "kind": "all", "cutoff": 4, "patience": 5}
    ranker = cr.SOURRanker(**TREES, variant=variant, **settings)
    if variant == "curr":
        ranker.set_params(start=0, ends=(10, 20))
    ranker.fit_data(rows[0], rows[1], client=client)
    assert ranker.issues_.is_label_issue.any()
    if variant == "sour":
        seen = watch_model(rows[0], ranker.base_, ranker.window())
        assert np.array_equal(ranker.issues_.doubt, seen.doubt)
        assert np.array_equal(ranker.issues_.is_label_issue, seen.outliers())


def test_the_detector_sees_the_rows_of_all_workers(client, rows):
    issues = cr.find_label_issues(rows[0], "sour", end=20, evidence="score", client=client)
    builtin = cr.find_label_issues(rows[0], "sour", end=20, objective="builtin", client=client)
    assert issues.average_precision is not None
    assert (issues.doubt > 0).any()
    assert (builtin.doubt > 0).any()


def test_workers_open_a_folder_of_shards_themselves(client, rows, tmp_path):
    write_shards(rows[0], tmp_path / "train")
    write_shards(rows[1], tmp_path / "held")
    stored = [cr.read_data(tmp_path / name) for name in ("train", "held")]
    here, there = (cr.BoostedRanker(**TREES).fit_data(*each, client=client) for each in (rows[:2], stored))
    assert text(here.model_) == text(there.model_)
    one, two = (cr.find_label_issues(each, folds=2, client=client) for each in (rows[0], stored[0]))
    assert np.array_equal(one.doubt, two.doubt)


def test_more_workers_than_queries(client):
    data = cr.make_ranking(1, 3, docs_per_query=60, seed=0)
    ranker = cr.BoostedRanker(**TREES)
    assert ranker.fit_data(data, client=client).predict(data.X).shape == (data.n_docs,)


@pytest.mark.parametrize(
    ("settings", "options", "words"),
    [
        ({}, {"callbacks": [print]}, "callbacks must be left out with client="),
        ({"params": {"machines": "a:1"}}, {}, "params must leave 'machines' to the cluster"),
        ({"params": {"tree_learner": "feature"}}, {}, "unknown tree_learner on a cluster 'feature'"),
        ({"robust": "peer", "alpha": 0.2, "within": "batch"}, {}, "within must be 'query' on a cluster"),
    ],
)
def test_what_does_not_go_with_a_cluster_is_refused(client, rows, settings, options, words):
    with pytest.raises(ValueError, match=words):
        cr.BoostedRanker(**TREES, **settings).fit_data(rows[0], client=client, **options)


def test_bias_of_positions_is_refused(client, rows):
    from dataclasses import replace

    data = replace(rows[0], positions=np.ones(rows[0].n_docs, dtype=int))
    ranker = cr.BoostedRanker(**TREES, implementation="builtin", position_bias=True)
    with pytest.raises(InvalidInputError, match="position_bias must be off on a cluster"):
        ranker.fit_data(data, client=client)


def test_rankers_that_are_no_trees_take_no_client(client, rows):
    with pytest.raises(ValueError, match=r"unknown argument of PRank.fit 'client'"):
        cr.PRank().fit_data(rows[0], client=client)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_killed_in_the_middle_of_a_fit(how):
    data = cr.make_ranking(600, 30, docs_per_query=50, seed=0)
    with local_cluster() as client:
        workers, killed = client.run(os.getpid), []

        def kill(step, _):
            if step >= 20 and not killed:
                killed.append(next(iter(workers.values())))
                os.kill(killed[0], how)

        ranker = cr.BoostedRanker(n_estimators=300)
        with pytest.warns(UserWarning, match="a worker of the Dask cluster was lost; training starts again"):
            ranker.fit_data(data, client=client, progress=kill)
        assert killed
        assert ranker.best_iteration_ == 300
        # The workers are fit for work again.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cr.BoostedRanker(n_estimators=5).fit_data(data, client=client)


@pytest.mark.slow
def test_a_fit_that_loses_its_workers_again_and_again_leaves_nothing(monkeypatch):
    data = cr.make_ranking(300, 30, docs_per_query=50, seed=0)
    with local_cluster() as client:

        def kill(step, _):
            for process in client.run(os.getpid, on_error="ignore").values():
                os.kill(process, signal.SIGKILL)

        ranker = cr.BoostedRanker(n_estimators=300)
        with pytest.warns(UserWarning, match="training starts again"), pytest.raises(LostWorkerError):
            ranker.fit_data(data, client=client, progress=kill)
        assert not hasattr(ranker, "model_")
