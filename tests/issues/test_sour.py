import itertools

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.issues.outliers import SOUR, Window
from cleanrank.issues.sour import find_sour, watch_folds, watch_last, watch_model, watch_training
from cleanrank.rankers.trees import TreeModel, TreeParams
from tests.oracles import naive_outliers

PARAMS = {"num_leaves": 7, "min_data_in_leaf": 5, "learning_rate": 0.2}


@pytest.fixture(scope="module")
def noisy():
    return cr.corrupt(cr.make_ranking(25, 6, docs_per_query=25, seed=0), rate=0.1, seed=1).data


def naive_counts(data, booster, window):
    """Predicts with 1, 2, ... trees and counts, from the definition."""
    found = np.zeros(data.n_docs, int)
    for trees in range(window.first, window.end + 1):
        scores = (
            booster.predict(data.X, num_iteration=trees, raw_score=True) if trees else np.zeros(data.n_docs)
        )
        for a, b in itertools.pairwise(data.indptr):
            neg, pos = naive_outliers(scores[a:b], data.y[a:b], min(window.cutoff, b - a), window.rule)
            found[a + np.array(sorted({"neg": neg, "pos": pos, "all": neg | pos}[window.kind]), int)] += 1
    return found


@pytest.mark.parametrize("rule", ["paper", "reference"])
@pytest.mark.parametrize("implementation", ["exact", "parity", "builtin"])
def test_watching_the_training_the_saved_model_and_naive_predictions_agree(
    noisy, rule, implementation, tmp_path
):
    window = Window(5, 2, 12, "all", rule)
    during, model = watch_training(noisy, window, TreeParams(implementation=implementation, params=PARAMS))
    model.save(tmp_path / "model.txt")
    after = watch_model(noisy, TreeModel.load(tmp_path / "model.txt"), window)
    np.testing.assert_array_equal(during.counts, after.counts)
    np.testing.assert_array_equal(during.counts, naive_counts(noisy, model.booster, window))
    assert during.seen == after.seen == 10
    assert during.outliers().any()


@pytest.mark.parametrize(
    "params",
    [
        {"bagging_fraction": 0.5, "bagging_freq": 1},
        {"data_sample_strategy": "goss"},
        {"extra_trees": True},
        {"use_quantized_grad": True},
    ],
)
def test_agreement_holds_for_other_ways_to_grow(noisy, params):
    window = Window(5, 0, 8, "all", include_f0=True)
    during, model = watch_training(noisy, window, TreeParams(params={**PARAMS, **params}))
    np.testing.assert_array_equal(during.counts, watch_model(noisy, model, window).counts)
    np.testing.assert_array_equal(during.counts, naive_counts(noisy, model.booster, window))


def test_watching_changes_nothing_and_threads_do_not_matter(noisy):
    window = Window(5, 0, 10, "all")
    one, model = watch_training(noisy, window, TreeParams(params=PARAMS, n_jobs=1))
    two, _ = watch_training(noisy, window, TreeParams(params=PARAMS, n_jobs=2))
    alone = TreeParams(params=PARAMS, n_estimators=10).train(noisy)
    np.testing.assert_array_equal(one.counts, two.counts)
    np.testing.assert_array_equal(model.predict(noisy.X), alone.predict(noisy.X))


def test_dart_is_refused(noisy):
    with pytest.raises(CleanrankError, match="dart"):
        watch_training(noisy, Window(5, 0, 3), TreeParams(params={**PARAMS, "boosting": "dart"}))


def test_folds_watch_models_that_never_saw_the_query(noisy):
    window = Window(5, 2, 6, "all")
    settings = TreeParams(params=PARAMS, seed=3, n_estimators=6)
    found, scores = watch_folds(noisy, window, settings, n_folds=3)
    from cleanrank.data.split import fold_of_query

    fold = np.repeat(fold_of_query(noisy, 3, 3), noisy.lengths)
    for part in range(3):
        rows = fold == part
        model = settings.train(noisy.drop(rows))
        alone = watch_model(noisy.select(rows), model, window)
        np.testing.assert_array_equal(found.counts[rows], alone.counts)
        np.testing.assert_array_equal(scores[rows], model.predict(noisy.X[rows]))


def test_the_last_model_alone(noisy):
    model = TreeParams(params=PARAMS, n_estimators=7).train(noisy)
    found = watch_last(noisy, model, Window(5, 0, 7, "all", min_frequency=0.5))
    single = SOUR.of(noisy, Window(5, 6, 7, "all")).watch([(7, model.predict(noisy.X))])
    np.testing.assert_array_equal(found.outliers(), single.outliers())
    early = watch_last(noisy, model, Window(5, 0, 3, "all"))  # of the window, all trees count all the same
    np.testing.assert_array_equal(early.outliers(), single.outliers())


def test_a_query_of_more_than_ten_thousand_documents(noisy):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_020, 3)).astype(np.float32)
    y = ((X[:, 0] > 1) ^ (rng.random(12_020) < 0.05)).astype(int)
    data = cr.from_arrays(X, y, group=[12_000, 20])
    window = Window(1000, 2, 6, "all")
    found, model = watch_training(data, window, TreeParams(params=PARAMS))
    np.testing.assert_array_equal(found.counts, watch_model(data, model, window).counts)
    assert found.outliers().any()


def test_the_window_starts_in_the_middle_unless_told(noisy):
    options = {"end": 9, "params": PARAMS, "cutoff": 5, "kind": "all", "min_frequency": 0.5}
    doubts = [find_sour(noisy, start=start, **options).doubt for start in (None, 4, 3)]
    np.testing.assert_array_equal(doubts[0], doubts[1])
    assert not np.array_equal(doubts[0], doubts[2])
