from dataclasses import replace

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.issues.outliers import SOUR, Window
from cleanrank.issues.sour import watch_training
from cleanrank.losses.trees.lambdarank import LambdaRankObjective
from cleanrank.rankers.trees import TreeParams
from cleanrank.robust.sour import FilteringObjective, train_in_phases, train_while_filtering

PARAMS = {"num_leaves": 7, "min_data_in_leaf": 5, "learning_rate": 0.2}


@pytest.fixture(scope="module")
def noisy():
    return cr.corrupt(cr.make_ranking(25, 6, docs_per_query=25, seed=0), rate=0.1, seed=1).data


def test_phases_learn_without_nested_sets_and_the_last_from_all(noisy):
    settings = TreeParams(params=PARAMS, n_estimators=12)
    detector, _ = watch_training(noisy, Window(5, 0, 8, "all"), settings, keep="lead")
    model, sizes = train_in_phases(noisy, None, detector, (2, 5, 8), settings)
    assert sizes == sorted(sizes, reverse=True)
    assert model.booster.current_iteration() == 12
    first = replace(settings, n_estimators=2).train(noisy.drop(detector.outliers(end=2)))
    second = replace(settings, n_estimators=3).train(noisy.drop(detector.outliers(end=5)), init_model=first)
    wanted = second.booster.predict(noisy.X, num_iteration=5)
    np.testing.assert_array_equal(model.booster.predict(noisy.X, num_iteration=5), wanted)


@pytest.mark.parametrize("ends", [(0, 5), (5, 5), (5, 12)])
def test_ends_must_rise(noisy, ends):
    detector = SOUR.of(noisy, Window(5, 0, 12), keep="lead")
    with pytest.raises(CleanrankError, match="ends must rise"):
        train_in_phases(noisy, None, detector, ends, TreeParams(n_estimators=12))


def test_left_out_documents_get_no_gradients_and_the_others_those_of_the_rest(noisy):
    scores = np.random.default_rng(0).normal(size=noisy.n_docs)
    detector = SOUR.of(noisy, Window(5, 0, 50, "all"), keep="streak")
    objective = FilteringObjective(noisy, detector, patience=3, every=1)
    plain = LambdaRankObjective(noisy)(scores)
    for _ in range(2):
        for given, wanted in zip(objective(scores), plain, strict=True):
            np.testing.assert_array_equal(given, wanted)
    for _ in range(3):
        grad, hess = objective(scores)
    out = objective.left_out
    assert out.any()
    assert not grad[out].any()
    assert not hess[out].any()
    rest = LambdaRankObjective(noisy.drop(out))(scores[~out])
    np.testing.assert_allclose(grad[~out], rest[0], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(hess[~out], rest[1], rtol=1e-5, atol=1e-7)


def test_documents_come_back_when_forests_stop_flagging_them(noisy):
    rng = np.random.default_rng(0)
    detector = SOUR.of(noisy, Window(5, 0, 50, "all"), keep="streak")
    objective = FilteringObjective(noisy, detector, patience=2, every=1)
    scores = rng.normal(size=noisy.n_docs)
    for _ in range(5):
        objective(scores)
    assert objective.left_out.any()
    ideal = noisy.y + 0.01 * rng.random(noisy.n_docs)
    for _ in range(3):
        objective(ideal)
    assert not objective.left_out.any()


def test_one_run_leaves_documents_out(noisy):
    settings = TreeParams(params=PARAMS, n_estimators=20)
    model, _, out = train_while_filtering(noisy, None, Window(5, 3, 20, "all"), settings, patience=5, every=1)
    assert model.best_iteration == 20
    assert out.any()
    plain = settings.train(noisy)
    assert (plain.predict(noisy.X) != model.predict(noisy.X)).any()
    same = plain.booster.predict(noisy.X, num_iteration=8) == model.booster.predict(noisy.X, num_iteration=8)
    assert same.all()  # nobody can be left out before 3 + 5 trees


def test_the_built_in_objective_cannot_leave_documents_out(noisy):
    few = TreeParams(n_estimators=9)
    with pytest.raises(CleanrankError, match="needs implementation"):
        train_while_filtering(noisy, None, Window(), replace(few, implementation="builtin"), patience=5)
    with pytest.raises(CleanrankError, match="patience must lie"):
        train_while_filtering(noisy, None, Window(), few, patience=50)
