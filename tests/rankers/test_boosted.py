from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn.exceptions
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.utils.validation import check_is_fitted

import cleanrank as cr
from cleanrank.data.split import split
from cleanrank.errors import CleanrankError
from cleanrank.losses.trees.peer import Peers
from cleanrank.noise.profiles import NoiseProfile, uniform
from cleanrank.rankers import load_ranker
from cleanrank.rankers.base import NotFittedError, held_out, ranking_scorer
from cleanrank.rankers.boosted import ALPHAS, HELD_OUT, BoostedRanker, average_models
from cleanrank.rankers.trees import TreeParams
from tests.rankers.training import trained

SMALL = {"num_leaves": 7, "min_child_samples": 5, "n_estimators": 12}
PARAMS = {"num_leaves": 7, "min_data_in_leaf": 5, "learning_rate": 0.05}


@pytest.fixture
def shuffled(toy):
    place = np.random.default_rng(3).permutation(toy.n_docs)
    return toy.X[place], toy.y[place], toy.qid[place]


@pytest.mark.parametrize("objective", ["lambdarank", "lambdamart", "gbdt"])
def test_rows_in_any_order_give_scores_in_that_order(toy, objective):
    # Whole queries change places, rows within a query stay in order, as ties go by row.
    parts = np.split(np.arange(toy.n_docs), toy.indptr[1:-1])
    lots = np.random.default_rng(0).permutation(np.repeat(np.arange(toy.n_queries), toy.lengths))
    left = [list(part) for part in parts]
    place = np.array([left[q].pop(0) for q in lots])
    ranker = BoostedRanker(objective=objective, **SMALL).fit(toy.X[place], toy.y[place], qid=toy.qid[place])
    grouped = cr.from_arrays(toy.X[place], toy.y[place], qid=toy.qid[place])
    again = BoostedRanker(objective=objective, **SMALL).fit(grouped.X, grouped.y, group=grouped.lengths)
    np.testing.assert_array_equal(ranker.predict(toy.X[place]), again.predict(toy.X)[place])
    assert (ranker.predict(toy.X[place])[:50] != ranker.predict(toy.X)[:50]).any()


def test_it_is_lightgbms_lambdarank(toy):
    for objective in ("lambdarank", "lambdamart"):
        ours = BoostedRanker(objective=objective, implementation="parity", **SMALL)
        ours.fit(toy.X, toy.y, qid=toy.qid)
        own = trained(toy, objective=objective, params=PARAMS, n_estimators=12)
        np.testing.assert_allclose(ours.predict(toy.X), own.predict(toy.X), rtol=0, atol=1e-6)


def test_a_frame_with_a_qid_column_is_enough(shuffled):
    X, y, qid = shuffled
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(X.shape[1])]).assign(qid=qid)
    by_frame = BoostedRanker(**SMALL).fit(frame, y)
    by_array = BoostedRanker(**SMALL).fit(X, y, qid=qid)
    np.testing.assert_array_equal(by_frame.predict(frame), by_array.predict(X))
    assert by_frame.score(frame, y) == by_array.score(X, y, qid=qid)


@pytest.mark.parametrize("robust", [None, "peer", {"name": "gce", "q": 0.5}])
def test_parameters_can_be_read_set_and_cloned(robust):
    ranker = BoostedRanker(num_leaves=9, robust=robust)
    assert clone(ranker).get_params() == ranker.get_params()
    assert ranker.set_params(learning_rate=0.2).learning_rate == 0.2


def test_a_ranker_that_is_not_fitted_says_so_as_in_scikit_learn(toy, tmp_path):
    for error in (CleanrankError, NotFittedError, sklearn.exceptions.NotFittedError):
        with pytest.raises(error, match="must be fitted"):
            BoostedRanker().predict(np.zeros((1, 2)))
    with pytest.raises(NotFittedError, match="must be fitted before it predicts or is saved"):
        BoostedRanker().save(tmp_path / "model.txt")
    with pytest.raises(sklearn.exceptions.NotFittedError):
        check_is_fitted(BoostedRanker())
    frame = pd.DataFrame(toy.X[:, :2], columns=["a", "b"]).assign(qid=toy.qid)
    ranker = BoostedRanker(**SMALL).fit(frame, toy.y)
    check_is_fitted(ranker)
    assert ranker.n_features_in_ == 2
    assert ranker.feature_names_in_.tolist() == ["a", "b"]


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
    loaded = load_ranker(tmp_path / "model.txt")
    np.testing.assert_array_equal(loaded.predict(toy.X), ranker.predict(toy.X))
    assert loaded.score(held.X, held.y, qid=held.qid) == ranker.score(held.X, held.y, qid=held.qid)
    assert ranker.chosen_ == {
        "trees": ranker.model_.best_iteration,
        "validation": ranker.model_.validation_value,
    }


def test_positions_are_read_where_asked_for_and_carried_otherwise(toy):
    position = np.concatenate([np.arange(1, n + 1) for n in toy.lengths])
    shown = replace(toy, positions=position)
    plain = BoostedRanker(implementation="builtin", **SMALL).fit_data(shown)
    ranker = BoostedRanker(implementation="builtin", position_bias=True, **SMALL)
    biased = ranker.fit(toy.X, toy.y, qid=toy.qid, position=position)
    assert (plain.predict(toy.X) != biased.predict(toy.X)).any()
    np.testing.assert_array_equal(
        BoostedRanker(**SMALL).fit_data(shown).predict(toy.X),
        BoostedRanker(**SMALL).fit_data(toy).predict(toy.X),
    )
    with pytest.raises(CleanrankError, match="needs positions and implementation='builtin'"):
        BoostedRanker(position_bias=True, **SMALL).fit_data(shown)
    with pytest.raises(CleanrankError, match=r"does not read position=\. .*position_bias=True"):
        BoostedRanker(**SMALL).fit(toy.X, toy.y, qid=toy.qid, position=position)


@pytest.mark.parametrize("peers", ["sampled", "expected"])
def test_peers_train_the_peer_objective(toy, peers):
    ranker = BoostedRanker(robust="peer", alpha=0.2, peers=peers, **SMALL).fit(toy.X, toy.y, qid=toy.qid)
    own = trained(
        toy, implementation="exact", peers=Peers(0.2, peers),
        params=PARAMS | {"min_sum_hessian_in_leaf": 1e-3}, n_estimators=12,
    )  # fmt: skip
    np.testing.assert_array_equal(ranker.predict(toy.X), own.predict(toy.X))
    base = BoostedRanker(params={"min_sum_hessian_in_leaf": 1e-3}, **SMALL).fit(toy.X, toy.y, qid=toy.qid)
    assert (base.predict(toy.X) != ranker.predict(toy.X)).any()
    none = BoostedRanker(robust="peer", alpha=0.0, peers=peers, **SMALL).fit(toy.X, toy.y, qid=toy.qid)
    np.testing.assert_array_equal(none.predict(toy.X), base.predict(toy.X))


@pytest.mark.parametrize("objective", ["lambdarank", "hinge"])
def test_alpha_search_keeps_the_best_on_validation_data(toy, objective):
    train, held = split(toy, (0.7, 0.3), seed=0)
    options = {"robust": "peer", "objective": objective, **SMALL}
    ranker = BoostedRanker(alpha="search", **options).fit(
        train.X, train.y, qid=train.qid, eval_set=(held.X, held.y), eval_qid=held.qid
    )
    tried = {record["alpha"]: record["validation"] for record in ranker.tried_}
    assert tuple(tried) == ALPHAS
    for alpha in ALPHAS:
        one = BoostedRanker(alpha=alpha, **options).fit_data(train, held)
        assert one.model_.validation_value == tried[alpha]
        assert (one.alpha_, one.tried_) == (alpha, ())
    assert tried[ranker.alpha_] == max(tried.values())
    assert ranker.chosen_["alpha"] == ranker.alpha_
    assert ranker.score(held.X, held.y, qid=held.qid) == pytest.approx(tried[ranker.alpha_], abs=1e-12)


@pytest.mark.parametrize("objective", ["lambdarank", "hinge"])
@pytest.mark.parametrize("mapping", [False, True])
def test_alpha_auto_is_the_sum_of_the_flip_rates(toy, objective, mapping):
    noise = NoiseProfile([[0.9, 0.1], [0.25, 0.75]])
    clicks = toy.with_labels(toy.y > 0)
    options = {"objective": objective, "noise": noise, **SMALL}

    def scores(alpha, noise=noise):
        stated = (
            {"robust": {"name": "peer", "alpha": alpha}} if mapping else {"robust": "peer", "alpha": alpha}
        )
        given = options | stated | {"noise": noise}
        ranker = BoostedRanker(**given).fit_data(clicks)
        return ranker, ranker.predict(clicks.X)

    auto, automatic = scores("auto")
    assert float(auto.alpha_) == pytest.approx(0.35)
    assert auto.alpha_.approximate == (objective == "lambdarank")
    assert auto.tried_ == ()
    number, same = scores(float(auto.alpha_), noise=None)
    np.testing.assert_array_equal(automatic, same)
    assert (scores("auto", noise=uniform(0.02, 2))[1] != automatic).any()
    assert number.alpha_ == float(auto.alpha_)


def test_alpha_auto_without_noise_says_what_to_do(toy):
    remedy = r"alpha='auto' needs the noise.*noise= .*or search with alpha='search'"
    for options in ({"robust": "peer", "alpha": "auto"}, {"robust": {"name": "peer", "alpha": "auto"}}):
        with pytest.raises(CleanrankError, match=remedy):
            BoostedRanker(**options, **SMALL).fit_data(toy)
    with pytest.raises(CleanrankError, match=r"noise has no meaning for lambdarank.*alpha='auto'"):
        BoostedRanker(robust="peer", alpha=0.1, noise=uniform(0.1, 5), **SMALL).fit_data(toy)
    both = {
        "objective": "hinge",
        "robust": "peer",
        "pairs": "strict_both",
        "noise": uniform(0.1, toy.n_grades),
    }
    with pytest.raises(CleanrankError, match="no alpha undoes it"):
        BoostedRanker(alpha="auto", **both, **SMALL).fit_data(toy)


def test_alpha_search_without_validation_data_trains_on_all_rows_in_the_end(toy):
    ranker = BoostedRanker(robust="peer", **SMALL).fit_data(toy)
    again = BoostedRanker(
        robust="peer",
        alpha=ranker.alpha_,
        **SMALL | {"n_estimators": ranker.model_.best_iteration},
    ).fit_data(toy)
    np.testing.assert_array_equal(ranker.predict(toy.X), again.predict(toy.X))


def test_a_grid_is_searched_and_the_best_is_kept(toy):
    train, held = split(toy, (0.7, 0.3), seed=0)
    grid = {"num_leaves": [3, 7], "min_child_samples": [5, 200]}
    ranker = BoostedRanker(grid=grid, **SMALL).fit_data(train, held)
    assert [record["min_data_in_leaf"] for record in ranker.tried_] == [5, 5]  # too few rows for 200
    values = {}
    for leaves in (3, 7):
        one = BoostedRanker(**SMALL | {"num_leaves": leaves}).fit_data(train, held)
        values[leaves] = one.model_.validation_value
    assert {record["num_leaves"]: record["validation"] for record in ranker.tried_} == values
    assert ranker.chosen_["num_leaves"] == max(values, key=values.get)
    with pytest.raises(CleanrankError, match="must hold 3 queries or come with validation data"):
        BoostedRanker(grid=grid, **SMALL).fit_data(toy.select_queries([0, 1]))


@pytest.mark.parametrize("has_validation", [True, False])
def test_a_grid_can_be_averaged(toy, has_validation):
    train, held = split(toy, (0.7, 0.3), seed=0)
    grid = {"num_leaves": [3, 7]}
    validation = held if has_validation else None
    ranker = BoostedRanker(grid=grid, selection="average", **SMALL).fit_data(train, validation)
    assert ranker.chosen_["models"] == len(ranker.tried_) == 2
    rows = train if has_validation else toy
    if has_validation:
        each = [
            BoostedRanker(**SMALL | {"num_leaves": n}, selection="average").fit_data(train, held)
            for n in (3, 7)
        ]
        models = [one.model_ for one in each]
        mean = average_models(models, [m.predict(held.X) for m in models], held.indptr)
        np.testing.assert_allclose(ranker.predict(rows.X), mean.predict(rows.X))
        value = cr.evaluate(ranker.predict(held.X), held, "ndcg@10", order="data").means["ndcg@10"]
        assert ranker.chosen_["validation"] == pytest.approx(value)
        assert ranker.evals_result_ == {"valid_0": {"ndcg@10": [pytest.approx(value)]}}
    with pytest.raises(CleanrankError, match="selection must be 'best' where alpha is chosen"):
        BoostedRanker(robust="peer", selection="average").fit_data(toy)
    with pytest.raises(CleanrankError, match="unknown selection 'mean'"):
        BoostedRanker(selection="mean").fit_data(toy)


def test_models_are_averaged_at_the_same_spread_within_queries(toy):
    models = [BoostedRanker(**SMALL | {"n_estimators": n}).fit_data(toy).model_ for n in (2, 12)]
    scores = [m.predict(toy.X) for m in models]
    heavy = average_models(models, scores, toy.indptr, [0.9, 0.1]).predict(toy.X)

    def agreement(other):
        return np.corrcoef(heavy, other)[0, 1]

    assert agreement(scores[0]) > agreement(scores[1])
    flat = [scores[0], np.zeros(toy.n_docs)]  # a model without a split has nothing to say
    alone = average_models(models, flat, toy.indptr, [0.5, 0.5]).predict(toy.X)
    assert np.corrcoef(alone, scores[0])[0, 1] == pytest.approx(1)


def test_unknown_names_are_told(toy):
    with pytest.raises(CleanrankError, match=r"unknown objective 'lamdamart'\. Did you mean 'lambdamart'"):
        BoostedRanker(objective="lamdamart").fit_data(toy)
    with pytest.raises(CleanrankError, match="unknown implementation 'buildin'"):
        BoostedRanker(implementation="buildin").fit_data(toy)
    with pytest.raises(CleanrankError, match="unknown alpha 'best'"):
        BoostedRanker(robust="peer", alpha="best").fit_data(toy)
    with pytest.raises(CleanrankError, match="unknown measure 'ndgc'"):
        BoostedRanker(measure="ndgc@10").fit_data(toy)
    with pytest.raises(CleanrankError, match=r"unknown argument of BoostedRanker.fit 'gold'"):
        BoostedRanker().fit_data(toy, gold={})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": "gbdt", "robust": "peer"}, "robust goes with lambdarank or a pairwise loss"),
        ({"objective": "gbdt", "pairs": "strict"}, "pairs has no meaning for gbdt"),
        ({"objective": "hinge", "robust": "peer", "peers": "sampled"}, "peers must be expected"),
        ({"objective": "hinge", "params": {"label_gain": [0, 1, 2]}}, "what only lambdarank reads"),
        ({"robust": "peer", "alpha": 0.1, "implementation": "builtin"}, "'exact' or 'parity' with peers"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(toy, settings, message):
    with pytest.raises(CleanrankError, match=message):
        BoostedRanker(**settings, **SMALL).fit_data(toy)


def test_gains_of_grades_reach_lambdarank(toy):
    by_argument = BoostedRanker(label_gain=[0, 1, 2], **SMALL).fit_data(toy)
    by_params = BoostedRanker(params={"label_gain": [0, 1, 2]}, **SMALL).fit_data(toy)
    np.testing.assert_array_equal(by_argument.predict(toy.X), by_params.predict(toy.X))
    assert (by_argument.predict(toy.X) != BoostedRanker(**SMALL).fit_data(toy).predict(toy.X)).any()


def test_an_average_without_validation_data_is_trained_on_all_rows_by_the_trees_it_chose(toy):
    grid = {"num_leaves": [3, 7]}
    settings = SMALL | {"n_estimators": 60, "learning_rate": 0.5, "early_stopping_rounds": 3}
    ranker = BoostedRanker(grid=grid, selection="average", **settings).fit_data(toy)
    learn, held = held_out(toy, HELD_OUT, 0)
    chosen = [record["trees"] for record in ranker.tried_]
    assert max(chosen) < 60
    params = {"min_data_in_leaf": 5, "learning_rate": 0.5}
    trees = TreeParams(n_estimators=60, early_stopping_rounds=3, smoothing=10)
    parts = [replace(trees, params=params | {"num_leaves": leaves}).train(learn, held) for leaves in (3, 7)]
    assert chosen == [part.best_iteration for part in parts]
    models = [
        BoostedRanker(**settings | {"num_leaves": leaves, "n_estimators": n}).fit_data(toy).model_
        for leaves, n in zip((3, 7), chosen, strict=True)
    ]
    mean = average_models(models, [part.predict(held.X) for part in parts], held.indptr)
    np.testing.assert_allclose(ranker.predict(toy.X), mean.predict(toy.X))


def test_models_count_alike_however_large_their_scores_are(toy):
    """An average of a model and of the same model with scores ten times as large is that model's order."""
    one = BoostedRanker(**SMALL).fit_data(toy).model_
    other = BoostedRanker(objective="gbdt", **SMALL).fit_data(toy).model_
    scores = [one.predict(toy.X), other.predict(toy.X)]
    mean = average_models([one, other], scores, toy.indptr).predict(toy.X)

    def spread(values):
        return np.std(np.concatenate([q - q.mean() for q in np.split(values, toy.indptr[1:-1])]))

    wanted = sum(each / spread(each) for each in scores) / 2
    np.testing.assert_allclose(mean, wanted)


@pytest.mark.parametrize(
    "options",
    [
        {"label_gain": [0, 1, 20]},
        {"robust": "peer", "alpha": 0.5},
        {"robust": "peer", "alpha": 0.5, "permutations": 3},
        {"robust": "peer", "alpha": 0.5, "peers": "expected"},
        {"sigma": 3.0},
        {"truncation_level": 2},
    ],
)
def test_every_setting_of_lambdarank_is_read(toy, options):
    plain = {k: v for k, v in options.items() if k in ("robust", "alpha")} if len(options) > 2 else {}
    one, two = (BoostedRanker(**SMALL, **each).fit_data(toy) for each in (plain, options))
    assert (one.predict(toy.X) != two.predict(toy.X)).any()
