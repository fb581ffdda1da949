import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate

import cleanrank as cr
from cleanrank.data.split import split
from cleanrank.errors import CleanrankError
from cleanrank.losses.trees.peer import Peers
from cleanrank.rankers.estimators import (
    ALPHAS,
    ESTIMATORS,
    FORESTS,
    BoostedRanker,
    PeerRanker,
    ranking_scorer,
)
from cleanrank.rankers.trees import load_trees, train_lambdarank

SMALL = {"num_leaves": 7, "min_child_samples": 5, "n_estimators": 12}
PARAMS = {"num_leaves": 7, "min_data_in_leaf": 5, "learning_rate": 0.05}


@pytest.fixture
def shuffled(toy):
    place = np.random.default_rng(3).permutation(toy.n_docs)
    return toy.X[place], toy.y[place], toy.qid[place]


@pytest.mark.parametrize("forest", FORESTS)
def test_rows_in_any_order_give_scores_in_that_order(toy, forest):
    # Whole queries change places, rows within a query stay in order, as ties go by row.
    parts = np.split(np.arange(toy.n_docs), toy.indptr[1:-1])
    lots = np.random.default_rng(0).permutation(np.repeat(np.arange(toy.n_queries), toy.lengths))
    left = [list(part) for part in parts]
    place = np.array([left[q].pop(0) for q in lots])
    ranker = BoostedRanker(forest=forest, **SMALL).fit(toy.X[place], toy.y[place], qid=toy.qid[place])
    grouped = cr.from_arrays(toy.X[place], toy.y[place], qid=toy.qid[place])
    again = BoostedRanker(forest=forest, **SMALL).fit(grouped.X, grouped.y, group=grouped.lengths)
    np.testing.assert_array_equal(ranker.predict(toy.X[place]), again.predict(toy.X)[place])
    assert (ranker.predict(toy.X[place])[:50] != ranker.predict(toy.X)[:50]).any()


def test_forests_are_the_trained_functions(toy):
    for forest, norm in (("lgbm", True), ("lambdamart", False)):
        ours = BoostedRanker(forest=forest, objective="parity", **SMALL).fit(toy.X, toy.y, qid=toy.qid)
        own = train_lambdarank(toy, norm=norm, params=PARAMS, rounds=12)
        np.testing.assert_allclose(ours.predict(toy.X), own.predict(toy.X), rtol=0, atol=1e-6)


def test_a_frame_with_a_qid_column_is_enough(shuffled):
    X, y, qid = shuffled
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(X.shape[1])]).assign(qid=qid)
    by_frame = BoostedRanker(**SMALL).fit(frame, y)
    by_array = BoostedRanker(**SMALL).fit(X, y, qid=qid)
    np.testing.assert_array_equal(by_frame.predict(frame), by_array.predict(X))
    assert by_frame.score(frame, y) == by_array.score(X, y, qid=qid)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_parameters_can_be_read_set_and_cloned(name):
    ranker = ESTIMATORS[name](num_leaves=9)
    assert clone(ranker).get_params() == ranker.get_params()
    assert ranker.set_params(learning_rate=0.2).learning_rate == 0.2
    with pytest.raises(CleanrankError, match="must be fitted"):
        ranker.predict(np.zeros((1, 2)))


def test_cross_validation_and_search_hand_the_queries_on(shuffled):
    X, y, qid = shuffled
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = BoostedRanker(**SMALL).set_fit_request(qid=True)
        found = cross_validate(
            ranker,
            X,
            y,
            cv=GroupKFold(3),
            scoring=ranking_scorer("ndcg@5"),
            params={"qid": qid, "groups": qid},
        )["test_score"]
        search = GridSearchCV(ranker, {"num_leaves": [3, 7]}, cv=GroupKFold(2), scoring=ranking_scorer())
        search.fit(X, y, qid=qid, groups=qid)
    train, test = next(GroupKFold(3).split(X, y, qid))
    by_hand = BoostedRanker(measure="ndcg@5", **SMALL).fit(X[train], y[train], qid=qid[train])
    assert found[0] == by_hand.score(X[test], y[test], qid=qid[test])
    assert search.best_params_["num_leaves"] in (3, 7)


def test_early_stopping_and_the_saved_model(toy, tmp_path):
    train, held = split(toy, (0.7, 0.3), seed=0)
    ranker = BoostedRanker(**SMALL | {"n_estimators": 80}, early_stopping_rounds=5)
    ranker.fit(train.X, train.y, qid=train.qid, eval_set=[(held.X, held.y)], eval_qid=[held.qid])
    assert ranker.model_.best_iteration < 80
    assert ranker.score(held.X, held.y, qid=held.qid) == pytest.approx(
        ranker.model_.validation_value, abs=1e-12
    )
    ranker.save(tmp_path / "model.txt")
    np.testing.assert_array_equal(load_trees(tmp_path / "model.txt").predict(toy.X), ranker.predict(toy.X))


def test_positions_go_to_lightgbm_and_nowhere_else(toy):
    position = np.concatenate([np.arange(1, n + 1) for n in toy.lengths])
    plain = BoostedRanker(objective="builtin", **SMALL).fit(toy.X, toy.y, qid=toy.qid)
    biased = BoostedRanker(objective="builtin", **SMALL).fit(toy.X, toy.y, qid=toy.qid, position=position)
    assert (plain.predict(toy.X) != biased.predict(toy.X)).any()
    with pytest.raises(CleanrankError, match="needs positions and objective='builtin'"):
        BoostedRanker(**SMALL).fit(toy.X, toy.y, qid=toy.qid, position=position)


@pytest.mark.parametrize("peers", ["sampled", "expected"])
def test_peer_ranker_trains_the_peer_objective(toy, peers):
    ranker = PeerRanker(alpha=0.2, peers=peers, **SMALL).fit(toy.X, toy.y, qid=toy.qid)
    own = train_lambdarank(
        toy, objective="exact", peers=Peers(0.2, peers), params=PARAMS | {"min_sum_hessian_in_leaf": 1e-3},
        rounds=12,
    )  # fmt: skip
    np.testing.assert_array_equal(ranker.predict(toy.X), own.predict(toy.X))
    base = BoostedRanker(params={"min_sum_hessian_in_leaf": 1e-3}, **SMALL).fit(toy.X, toy.y, qid=toy.qid)
    assert (base.predict(toy.X) != ranker.predict(toy.X)).any()
    none = PeerRanker(alpha=0.0, peers=peers, **SMALL).fit(toy.X, toy.y, qid=toy.qid)
    np.testing.assert_array_equal(none.predict(toy.X), base.predict(toy.X))


def test_alpha_auto_keeps_the_best_on_validation_data(toy):
    train, held = split(toy, (0.7, 0.3), seed=0)
    ranker = PeerRanker(**SMALL).fit(
        train.X, train.y, qid=train.qid, eval_set=(held.X, held.y), eval_qid=held.qid
    )
    assert set(ranker.tried_) == set(ALPHAS)
    for alpha in ALPHAS:
        one = PeerRanker(alpha=alpha, **SMALL).fit_data(train, held)
        assert one.model_.validation_value == ranker.tried_[alpha]
    assert ranker.tried_[ranker.alpha_] == max(ranker.tried_.values())
    assert ranker.score(held.X, held.y, qid=held.qid) == pytest.approx(
        ranker.tried_[ranker.alpha_], abs=1e-12
    )


def test_alpha_auto_without_validation_data_trains_on_all_rows_in_the_end(toy):
    ranker = PeerRanker(**SMALL).fit_data(toy)
    again = PeerRanker(
        alpha=ranker.alpha_, **SMALL | {"n_estimators": ranker.model_.best_iteration}
    ).fit_data(toy)
    np.testing.assert_array_equal(ranker.predict(toy.X), again.predict(toy.X))


def test_unknown_names_are_told(toy):
    with pytest.raises(CleanrankError, match=r"unknown forest 'lamdamart'\. Did you mean 'lambdamart'"):
        BoostedRanker(forest="lamdamart").fit_data(toy)
    with pytest.raises(CleanrankError, match="unknown alpha 'best'"):
        PeerRanker(alpha="best").fit_data(toy)
