import numpy as np
import pytest
import scipy.sparse
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from cleanrank.errors import CleanrankError
from cleanrank.rankers.scaling import SCALINGS, fit_scaling


@pytest.mark.parametrize("kind", SCALINGS)
@pytest.mark.parametrize("sparse", [False, True])
def test_scales_are_those_of_scikit_learn(kind, sparse):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(50, 4)) * [1, 10, 0.1, 1] + [0, 5, 0, 0]).astype(np.float32)
    X[:, 3] = 0
    X[rng.random(X.shape) < 0.3] = 0
    new = rng.normal(size=(9, 4)).astype(np.float32)
    new[:, 3] = 0
    peers = {"zscore": StandardScaler(), "minmax": MinMaxScaler((-1, 1)), "none": None}
    peer = peers[kind]
    wanted = new if peer is None else peer.fit(X.astype(float)).transform(new.astype(float))
    if kind == "minmax":
        wanted[:, 3] = 0  # a column that never changes says nothing; scikit-learn puts it at -1
    given_, asked = (scipy.sparse.csr_matrix(a) if sparse else a for a in (X, new))
    found = fit_scaling(given_, kind).apply(asked)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert found.dtype == np.float32


def test_missing_values_are_passed_over_and_become_zero():
    X = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, np.nan]], dtype=np.float32)
    found = fit_scaling(X, "zscore").apply(X)
    np.testing.assert_allclose(found, [[-1, 0], [1, 0], [0, 0]])
    assert np.isnan(X).sum() == 4
    assert fit_scaling(X, "none").apply(X)[2].tolist() == [0, 0]


def test_large_offsets_do_not_drown_the_deviation():
    column = 1e6 + np.arange(1000.0)[:, None]
    found = fit_scaling(column, "zscore").apply(column)
    assert found.std() == pytest.approx(1, abs=1e-2)


def test_other_columns_than_in_training_are_refused():
    scaling = fit_scaling(np.ones((3, 2)), "none")
    with pytest.raises(CleanrankError, match="the 2 columns that the model was trained on"):
        scaling.apply(np.ones((3, 4)))
    with pytest.raises(CleanrankError, match="Did you mean 'zscore'"):
        fit_scaling(np.ones((3, 2)), "z-score")


@pytest.mark.parametrize("kind", SCALINGS)
def test_infinite_features_are_refused_with_their_place(kind):
    X = np.arange(12.0).reshape(4, 3)
    X[2, 1] = -np.inf
    with pytest.raises(CleanrankError, match=r"nan where a value is missing; got -inf at row 2, column 1\."):
        fit_scaling(X, kind)
    with pytest.raises(CleanrankError, match=r"got -inf at row 70, column 1"):
        fit_scaling(scipy.sparse.csr_matrix(X), kind, rows=np.array([50, 60, 70, 80]))
    scaling = fit_scaling(X[:2], kind)
    with pytest.raises(CleanrankError, match=r"validation data must be finite.* at row 2, column 1"):
        scaling.apply(X, subject="validation data")
    with pytest.raises(CleanrankError, match="got inf at row 0, column 0"):
        scaling.apply(np.full((1, 3), 1e300))


def test_a_value_that_its_scale_blows_up_is_refused():
    scaling = fit_scaling(np.array([[0.0], [1e-30]]))
    with pytest.raises(
        CleanrankError, match="finite on the scale of the training rows; got inf at row 1, column 0"
    ):
        scaling.apply([[0.0], [1e30]])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([["a", "b"]], "X must hold numbers"),
        ([[1.0], [1.0, 2.0]], "X must hold numbers in rows of one length"),
        ([1.0, 2.0], r"two dimensions \(documents, features\); got shape \(2,\). One row is X"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(wrong, words):
    with pytest.raises(CleanrankError, match=words):
        fit_scaling(np.ones((3, 2))).apply(wrong)


def test_double_precision_keeps_what_single_precision_rounds_away():
    column = 1e9 + np.arange(100.0)[:, None]
    scaled = fit_scaling(column, dtype=np.float64).apply(column)
    assert scaled.dtype == np.float64
    np.testing.assert_allclose(np.diff(scaled[:, 0]), 1 / column.std(), rtol=1e-6)
