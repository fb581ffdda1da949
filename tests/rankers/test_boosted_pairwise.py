from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import cleanrank as cr
from cleanrank.data.split import split
from cleanrank.errors import CleanrankError, InvalidInputError, UnknownNameError
from cleanrank.losses.binary import LOSSES, margin_loss
from cleanrank.rankers import load_ranker
from cleanrank.rankers.boosted import OBJECTIVES, BoostedRanker, has_peers

SMALL = {"num_leaves": 7, "min_child_samples": 5, "n_estimators": 8}


@pytest.mark.parametrize("loss", OBJECTIVES)
def test_every_objective_trains_a_model_that_ranks(toy, loss):
    ranker = BoostedRanker(objective=loss, **SMALL).fit(toy.X, toy.y, qid=toy.qid)
    scores = ranker.predict(toy.X)
    shuffled = np.random.default_rng(0).permutation(scores)
    learnt, chance = (
        cr.evaluate(s, toy, ["ndcg@10"], order="data").means["ndcg@10"] for s in (scores, shuffled)
    )
    assert learnt > chance + 0.1


@pytest.mark.parametrize(
    "robust",
    [
        "symmetrize",
        "gce",
        {"name": "peer", "alpha": 0.2},
        ["label_smoothing", {"name": "clipped", "at": 2.0}],
    ],
)
@pytest.mark.parametrize("loss", ["ranknet", "lambdarank"])
def test_robust_forms_train_and_differ_from_their_base(toy, loss, robust):
    base = BoostedRanker(objective=loss, **SMALL).fit(toy.X, toy.y, qid=toy.qid)
    ranker = BoostedRanker(objective=loss, robust=robust, **SMALL).fit(toy.X, toy.y, qid=toy.qid)
    found = ranker.predict(toy.X)
    assert np.isfinite(found).all()
    assert not np.array_equal(found, base.predict(toy.X))


def test_the_symmetrised_ranknet_is_the_sigmoid_loss(toy):
    a = BoostedRanker(objective="ranknet", robust="symmetrize", **SMALL).fit_data(toy)
    b = BoostedRanker(objective="soft_zero_one", **SMALL).fit_data(toy)
    np.testing.assert_allclose(a.predict(toy.X), b.predict(toy.X), rtol=1e-6)


def test_a_loss_of_ones_own(toy):
    arc = margin_loss("arc", lambda m: -np.arctan(m), lambda m: -1 / (1 + m * m), np.zeros_like)
    ranker = BoostedRanker(objective=arc, **SMALL).fit_data(toy)
    assert ranker.loss_.name == "arc"
    assert ranker.score(toy.X, toy.y, qid=toy.qid) > 0.5


def test_no_leaf_moves_a_score_by_more_than_two_logits(toy):
    ranker = BoostedRanker(
        objective="hinge", learning_rate=1.0, n_estimators=1, num_leaves=31, min_child_samples=1
    )
    assert np.abs(ranker.fit_data(toy).predict(toy.X)).max() <= 2.0 * (1 + 1e-4)


def test_early_stopping_saving_and_loading(toy, tmp_path):
    train, valid = split(toy, (0.7, 0.3), seed=0)
    ranker = BoostedRanker(
        objective="sigmoid", n_estimators=60, early_stopping_rounds=5, measure="map", num_leaves=7
    ).fit_data(train, valid)
    value = cr.evaluate(ranker.predict(valid.X), valid, ["map"], order="data").means["map"]
    assert ranker.model_.validation_value == pytest.approx(value)
    ranker.save(tmp_path / "model.txt")
    loaded = load_ranker(tmp_path / "model.txt")
    np.testing.assert_array_equal(loaded.predict(toy.X), ranker.predict(toy.X))


def test_threads_do_not_change_the_trees(toy):
    one, two = (
        BoostedRanker(objective="ramp", n_jobs=n, **SMALL).fit_data(toy).predict(toy.X) for n in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


def test_it_is_a_scikit_learn_estimator():
    ranker = BoostedRanker(objective="hinge", robust={"name": "peer", "alpha": 0.2}, sigma=2.0)
    assert clone(ranker).get_params() == ranker.get_params()


def test_settings_reach_the_objective(toy):
    def objective(**settings):
        return BoostedRanker(**settings).make_objective(toy)

    pairwise = objective(
        objective="hinge", weighting="sum", truncation_level=7, sigma=2.0, pairs="strict_both"
    )
    assert (pairwise.truncation_level, pairwise.sigmoid, pairwise.all_pairs) == (7, 2.0, False)
    assert set(pairwise.scale.tolist()) <= {0.0, 1.0}
    lambdas = objective(objective="lambdamart", robust="symmetrize", truncation_level=7)
    assert (lambdas.truncation_level, lambdas.norm) == (7, False)
    assert objective(objective="ranknet", robust="peer").tied.is_polynomial


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": "zero_one"}, "must have a gradient to train on"),
        ({"objective": "lambdarank", "weighting": "micro"}, "weighting has no meaning for lambdarank"),
        ({"objective": "lambdarank", "pairs": "strict"}, "pairs has no meaning for lambdarank"),
        ({"objective": "ranknet", "robust": "peer", "pairs": "strict"}, "pairs must be 'all_ordered'"),
        ({"objective": "hinge", "robust": "gce"}, "gce is made of probabilities"),
        ({"objective": "ranknet", "robust": {"name": "peer", "mode": "sampled"}}, "peers must be expected"),
    ],
)
def test_what_is_refused(toy, settings, message):
    with pytest.raises(InvalidInputError, match=message):
        BoostedRanker(**settings, **SMALL).fit_data(toy)


def test_unknown_losses_are_named(toy):
    with pytest.raises(UnknownNameError, match=r"unknown objective 'lambdrank'. Did you mean 'lambdarank'"):
        BoostedRanker(objective="lambdrank").fit_data(toy)


def test_positions_need_lightgbms_own_objective(toy):
    shown = replace(toy, positions=np.ones(toy.n_docs, np.int32))
    with pytest.raises(InvalidInputError, match="correction of position bias needs"):
        BoostedRanker(objective="sigmoid", position_bias=True, **SMALL).fit_data(shown)


def test_peers_are_found_in_specs():
    assert [has_peers(s) for s in (None, "peer", {"name": "peer"}, ["gce", "peer"], "gce")] == [
        False, True, True, True, False,
    ]  # fmt: skip
    assert "zero_one" not in OBJECTIVES
    assert set(OBJECTIVES) >= set(LOSSES) - {"zero_one"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sigma": 0}, "sigma must be a number > 0; got 0"),
        ({"sigma": "x"}, "sigma must be a number > 0; got 'x'"),
        ({"objective": ["hinge"]}, "unknown objective"),
        ({"robust": 3}, "robust must be a name"),
        ({"objective": "zero_one"}, "must have a gradient to train on.*Use 'sigmoid'"),
    ],
)
def test_complaints_use_the_names_of_the_arguments(options, message):
    data = cr.make_ranking(5, 3, docs_per_query=8, seed=0)
    with pytest.raises(CleanrankError, match=message):
        BoostedRanker(**{"objective": "sigmoid", "n_estimators": 1, **options}).fit_data(data)
