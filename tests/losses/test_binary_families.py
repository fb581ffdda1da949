import numpy as np
import pytest

from cleanrank.errors import InvalidInputError
from cleanrank.losses.binary import LOSSES, gce, sce, taylor

LOGITS = np.linspace(-6, 6, 121)
P = 1 / (1 + np.exp(-LOGITS))
PROBABILITY = {1: P, 0: 1 - P}


@pytest.mark.parametrize("t", [0, 1])
def test_gce_1_and_taylor_1_are_the_sigmoid_loss(t: int) -> None:
    for part in ("value", "gradient", "curvature"):
        expected = getattr(LOSSES["sigmoid"], part)(LOGITS, t)
        np.testing.assert_allclose(getattr(gce(1.0), part)(LOGITS, t), expected, atol=1e-14)
        np.testing.assert_allclose(getattr(taylor(1), part)(LOGITS, t), expected, atol=1e-14)


@pytest.mark.parametrize("t", [0, 1])
def test_far_ends_are_cross_entropy(t: int) -> None:
    expected = LOSSES["logistic"].value(LOGITS, t)
    near = np.abs(LOGITS) < 4
    np.testing.assert_allclose(gce(1e-9).value(LOGITS, t), expected, rtol=1e-7)
    np.testing.assert_allclose(taylor(200).value(LOGITS, t)[near], expected[near], atol=5e-3)
    assert (taylor(200).value(LOGITS, t) <= expected + 1e-12).all()


@pytest.mark.parametrize("t", [0, 1])
def test_formulas_as_published(t: int) -> None:
    p = PROBABILITY[t]
    np.testing.assert_allclose(gce(0.3).value(LOGITS, t), (1 - p**0.3) / 0.3, atol=1e-13)
    series = sum((1 - p) ** i / i for i in range(1, 7))
    np.testing.assert_allclose(taylor(6).value(LOGITS, t), series, atol=1e-13)
    both = 0.1 * -np.log(p) + 2.0 * 4 * (1 - p)
    np.testing.assert_allclose(sce(0.1, 2.0).value(LOGITS, t), both, atol=1e-12)


def test_sce_without_cross_entropy_is_symmetric() -> None:
    assert sce(0.0, 1.0).constant == 4.0
    assert sce(0.1, 1.0).constant is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gce(0.0), r"q must be a number > 0 and <= 1; got 0.0"),
        (lambda: gce(1.5), r"q must be a number > 0 and <= 1; got 1.5"),
        (lambda: taylor(0), "t must be an integer >= 1; got 0"),
        (lambda: taylor(2.5), "t must be an integer >= 1; got 2.5"),
        (lambda: sce(-1.0, 1.0), "a must be a number >= 0; got -1.0"),
        (lambda: sce(0.0, 0.0), "a and b must not both be 0"),
    ],
)
def test_options_out_of_range_are_refused(make: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()
