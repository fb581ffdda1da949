import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.issues.outliers import SOUR, Window
from cleanrank.issues.sour import Growing, watch_training
from cleanrank.losses.trees.lambdarank import LambdaRankObjective
from cleanrank.robust._phases import FilteringObjective, grow_in_phases, grow_while_filtering

PARAMS = {"num_leaves": 7, "min_data_in_leaf": 5, "learning_rate": 0.2}


@pytest.fixture(scope="module")
def noisy():
    return cr.corrupt(cr.make_ranking(25, 6, docs_per_query=25, seed=0), rate=0.1, seed=1).data


def test_phases_learn_without_nested_sets_and_the_last_from_all(noisy):
    growing = Growing(params=PARAMS)
    detector, _ = watch_training(noisy, Window(5, 0, 8, "all"), growing, keep="lead")
    model, sizes = grow_in_phases(noisy, None, detector, (2, 5, 8), growing, rounds=12)
    assert sizes == sorted(sizes, reverse=True)
    assert model.booster.current_iteration() == 12
    first = growing.train(noisy.drop(detector.outliers(end=2)), rounds=2)
    second = growing.train(noisy.drop(detector.outliers(end=5)), rounds=3, init_model=first)
    wanted = second.booster.predict(noisy.X, num_iteration=5)
    np.testing.assert_array_equal(model.booster.predict(noisy.X, num_iteration=5), wanted)


@pytest.mark.parametrize("ends", [(0, 5), (5, 5), (5, 12)])
def test_ends_must_rise(noisy, ends):
    detector = SOUR.of(noisy, Window(5, 0, 12), keep="lead")
    with pytest.raises(CleanrankError, match="ends must rise"):
        grow_in_phases(noisy, None, detector, ends, Growing(), rounds=12)


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
    growing = Growing(params=PARAMS)
    model, _, out = grow_while_filtering(
        noisy, None, Window(5, 3, 20, "all"), growing, patience=5, rounds=20, every=1
    )
    assert model.best_iteration == 20
    assert out.any()
    plain = growing.train(noisy, rounds=20)
    assert (plain.predict(noisy.X) != model.predict(noisy.X)).any()
    same = plain.booster.predict(noisy.X, num_iteration=8) == model.booster.predict(noisy.X, num_iteration=8)
    assert same.all()  # nobody can be left out before 3 + 5 trees


def test_the_built_in_objective_cannot_leave_documents_out(noisy):
    with pytest.raises(CleanrankError, match="needs objective"):
        grow_while_filtering(noisy, None, Window(), Growing(objective="builtin"), patience=5, rounds=9)
    with pytest.raises(CleanrankError, match="patience must lie"):
        grow_while_filtering(noisy, None, Window(), Growing(), patience=50, rounds=9)
