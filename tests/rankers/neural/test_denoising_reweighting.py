import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.rankers.neural.denoising import agreement_weights


def test_one_feature_by_hand():
    # Bins below and from the median .9 on. Grade 0: 2 + 1 rows, grade 1: 0 + 2, each count plus one.
    data = cr.from_arrays([[0.0], [0.1], [0.9], [1.0], [1.0]], [0, 0, 1, 1, 0], group=[5])
    low0, high0, low1, high1 = 3 / 5, 2 / 5, 1 / 4, 3 / 4
    p0, p1 = 4 / 7, 3 / 7
    first = p0 * low0 / (p0 * low0 + p1 * low1)
    last = p0 * high0 / (p0 * high0 + p1 * high1)
    assert agreement_weights(data, bins=2) == pytest.approx([first, first, 1 - last, 1 - last, last])


def test_flipped_labels_weigh_less():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, 2000)
    X = (true[:, None] + rng.normal(size=(2000, 5))).astype(np.float32)
    flipped = rng.random(2000) < 0.1
    data = cr.from_arrays(X, np.where(flipped, 1 - true, true), group=[20] * 100)
    weights = agreement_weights(data)
    assert weights[flipped].mean() < 0.6 * weights[~flipped].mean()
    assert ((weights > 0) & (weights < 1)).all()


def test_missing_values_and_constant_columns_tell_nothing():
    X = np.array([[np.nan, 1.0], [np.nan, 1.0], [np.nan, 1.0]], dtype=np.float32)
    data = cr.from_arrays(X, [0, 1, 0], group=[3])
    assert agreement_weights(data) == pytest.approx([3 / 5, 2 / 5, 3 / 5])


def test_one_label_needs_no_weights():
    data = cr.from_arrays(np.zeros((3, 1)), [0, 0, 0], group=[3])
    assert agreement_weights(data).tolist() == [1.0, 1.0, 1.0]


def test_too_few_bins_are_refused():
    data = cr.from_arrays(np.zeros((3, 1)), [0, 1, 0], group=[3])
    with pytest.raises(CleanrankError, match="bins"):
        agreement_weights(data, bins=1)
