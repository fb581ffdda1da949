import numpy as np
import pytest

import cleanrank as cr
from cleanrank.noise.assumed import (
    LEAST,
    MISSED,
    SHARES,
    assume_noise,
    error_likelihoods,
    least_noise,
    possible_noise,
    suspected_noise,
)


def binormal(distance, errors, n=(3000, 400), seed=0):
    """Rows given 0 and 1 whose scores are normal, a share ``errors`` of those given 1 being of grade 0."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n)
    shift = np.where((y == 1) & (rng.random(len(y)) >= errors), -distance, 0.0)
    p0 = 1 / (1 + np.exp(-(rng.normal(size=len(y)) + shift)))
    order = rng.permutation(len(y))
    data = cr.from_arrays(np.zeros((len(y), 1)), y[order], group=[len(y) // 100] * 100)
    return data, np.stack([p0, 1 - p0], axis=1)[order]


@pytest.mark.parametrize(("distance", "errors"), [(2.0, 0.5), (3.0, 0.3), (2.0, 0.8)])
def test_the_share_of_errors_is_recovered(distance, errors):
    data, p = binormal(distance, errors)
    assert SHARES[np.argmax(error_likelihoods(data, p, 1))] == pytest.approx(errors, abs=0.12)
    T = least_noise(data, p)
    assert T[0, 1] == pytest.approx(400 * errors / (3000 + 400 * errors), rel=0.3)


@pytest.mark.parametrize("distance", [0.0, 0.3, 1.0, 2.0])
def test_weak_features_are_no_errors(distance):
    refuted = [least_noise(*binormal(distance, 0.0, seed=seed))[0, 1] > LEAST for seed in range(20)]
    assert np.mean(refuted) <= 0.15


def test_without_signal_only_the_floor_is_assumed():
    data, p = binormal(2.0, 0.5)
    np.testing.assert_allclose(
        least_noise(data, p, has_signal=False), [[1 - LEAST, LEAST], [MISSED, 1 - MISSED]]
    )


def test_what_must_be_there_is_never_more_than_what_may_be():
    data, p = binormal(2.0, 0.5)
    assumed = assume_noise(data, p)
    off = ~np.eye(2, dtype=bool)
    assert (possible_noise(p, data.y)[off] >= assumed.least[off]).all()
    np.testing.assert_allclose(assumed.suspected.sum(axis=1), 1)
    np.testing.assert_allclose(assumed.least.sum(axis=1), 1)


def test_grades_that_hardly_occur_say_nothing():
    rng = np.random.default_rng(0)
    y = np.array([0] * 50 + [1] * 50 + [2] * 3 + [4])
    p = rng.dirichlet(np.ones(5), size=len(y))
    data = cr.from_arrays(np.zeros((len(y), 1)), y, group=[52, 52])
    T = least_noise(data, p)
    assert (np.diag(T) > 0).all()
    assert T[0, 2] == T[0, 3] == T[0, 4]


def test_rows_are_suspected_as_judges_are_generous_or_strict():
    rng = np.random.default_rng(1)
    anchors = rng.choice(3, size=1000, p=[0.8, 0.15, 0.05])
    for others, missed in (([0.9, 0.05, 0.05], 0.15), ([0.1, 0.6, 0.3], 0.03)):
        y = np.concatenate((anchors, rng.choice(3, size=4000, p=others)))
        p = np.where(np.arange(5000)[:, None] < 1000, [0.9, 0.06, 0.04], [0.5, 0.3, 0.2])
        T, possible = suspected_noise(p, y), possible_noise(p, y)
        np.testing.assert_allclose(T.sum(axis=1), 1)
        assert T[1, 0] == pytest.approx(max(missed, T[1, 2]))
        if missed == 0.15:  # strict: what may be hardness is no error
            assert T[0] == pytest.approx(possible[0])
        else:  # generous: each grade keeps its share of the anchors
            share = np.bincount(anchors, minlength=3) / 1000
            assert T[0, 1:] == pytest.approx(share[1:])
