import numpy as np
import pytest

from cleanrank.errors import InvalidInputError
from cleanrank.losses.binary import LOSSES
from cleanrank.losses.robust import bootstrap, clipped, label_smoothing, symmetrize

LOGITS = np.linspace(-6, 6, 121)


def test_the_symmetrised_logistic_loss_is_the_sigmoid_loss() -> None:
    found = symmetrize("logistic")
    for part in ("value", "gradient", "curvature"):
        for t in (0, 1, 0.4):
            expected = getattr(LOSSES["sigmoid"], part)(LOGITS, t)
            np.testing.assert_allclose(getattr(found, part)(LOGITS, t), expected, atol=1e-13)


def test_symmetrised_hinge_expanded_by_hand() -> None:
    # At logit 0.5: l1 = .5, l0 = 1.5, so e^-.5 / (e^-.5 + e^-1.5) = 1 / (1 + e^-1) is the right one's share.
    assert symmetrize("hinge").value(0.5, 1) == pytest.approx(1 - 1 / (1 + np.exp(-1)))
    assert symmetrize("hinge").value(0.5, 0) == pytest.approx(1 / (1 + np.exp(-1)))


@pytest.mark.parametrize("name", ["zero_one", "ramp", "unhinged", "sigmoid"])
def test_a_symmetric_loss_comes_back_as_it_is(name: str) -> None:
    assert symmetrize(name) is LOSSES[name]


def test_nothing_smoothed_and_nothing_bootstrapped_is_cross_entropy() -> None:
    for t in (0, 1):
        expected = LOSSES["logistic"].value(LOGITS, t)
        np.testing.assert_allclose(label_smoothing("logistic", 0.0).value(LOGITS, t), expected, atol=1e-14)
        for hard in (False, True):
            found = bootstrap("logistic", 1.0, hard).value(LOGITS, t)
            np.testing.assert_allclose(found, expected, atol=1e-13)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("y", [0, 1])
def test_bootstrapping_as_published(hard: bool, y: int) -> None:
    beta, p = 0.8, 1 / (1 + np.exp(-LOGITS))
    classes = np.stack([1 - p, p])
    opinion = np.stack([p < 0.5, p >= 0.5]) * 1.0 if hard else classes
    given = np.zeros_like(classes)
    given[y] = 1
    expected = -((beta * given + (1 - beta) * opinion) * np.log(classes)).sum(axis=0)
    np.testing.assert_allclose(bootstrap("logistic", beta, hard).value(LOGITS, y), expected, atol=1e-12)


def test_soft_bootstrapping_needs_a_log_odds() -> None:
    with pytest.raises(InvalidInputError, match=r"bootstrap needs a loss whose logit is a log-odds.*'hinge'"):
        bootstrap("hinge")
    assert bootstrap("hinge", hard=True).value(0.5, 1) == pytest.approx(0.5)


def test_smoothing_has_the_opposite_sign_of_peers() -> None:
    # (1 - eps) l + eps m, m the mean over both targets.
    eps, m = 0.2, (LOSSES["logistic"].value(LOGITS, 1) + LOSSES["logistic"].value(LOGITS, 0)) / 2
    expected = (1 - eps) * LOSSES["logistic"].value(LOGITS, 1) + eps * m
    np.testing.assert_allclose(label_smoothing("logistic", eps).value(LOGITS, 1), expected, atol=1e-13)


def test_clipping_cuts_value_and_gradient() -> None:
    loss = clipped("logistic", 2.0)
    edge = -np.log(np.exp(2.0) - 1)  # log(1 + e^-m) = 2
    assert loss.kinks == pytest.approx((-abs(edge), abs(edge)), abs=1e-12)
    assert loss.value(edge - 1, 1) == 2.0
    assert loss.gradient(edge - 1e-6, 1) == 0.0
    assert loss.gradient(edge + 1e-6, 1) == pytest.approx(LOSSES["logistic"].gradient(edge, 1), abs=1e-5)
    assert clipped("sigmoid", 2.0).constant == 1.0
    assert clipped("unhinged", 2.0).constant is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: label_smoothing("logistic", 1.2), r"eps must be a number >= 0 and <= 1; got 1.2"),
        (lambda: bootstrap("logistic", -0.1), r"beta must be a number >= 0 and <= 1; got -0.1"),
        (lambda: clipped("logistic", 0.0), "at must be a number > 0; got 0.0"),
        (lambda: clipped("logistic", float("nan")), "at must be a number > 0; got nan"),
    ],
)
def test_options_out_of_range_are_refused(make: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()
