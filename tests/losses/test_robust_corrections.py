import numpy as np
import pytest

from cleanrank.errors import InvalidInputError
from cleanrank.losses.binary import LOSSES
from cleanrank.losses.robust import backward, forward
from cleanrank.noise.profiles import NoiseProfile

LOGITS = np.linspace(-6, 6, 121)
T = np.array([[0.9, 0.1], [0.3, 0.7]])


@pytest.mark.parametrize("name", LOSSES)
def test_the_mean_of_the_backward_loss_over_the_noise_is_the_clean_loss(name: str) -> None:
    corrected = backward(name, T)
    for true in (0, 1):
        mean = T[true, 0] * corrected.value(LOGITS, 0) + T[true, 1] * corrected.value(LOGITS, 1)
        np.testing.assert_allclose(mean, LOSSES[name].value(LOGITS, true), rtol=1e-12, atol=1e-10)


def test_forward_is_cross_entropy_of_the_noisy_probability() -> None:
    p = 1 / (1 + np.exp(-LOGITS))
    given = np.stack([1 - p, p], axis=1) @ T
    loss = forward("logistic", T)
    for t in (0, 1):
        np.testing.assert_allclose(loss.value(LOGITS, t), -np.log(given[:, t]), atol=1e-12)


def test_the_forward_loss_is_least_at_the_true_probability() -> None:
    # Proper: at noisy frequencies of true probability .8 the best logit is log(.8 / .2).
    true = np.array([0.2, 0.8])
    given = true @ T
    grid = np.linspace(-4, 4, 8001)
    loss = forward("logistic", T)
    risk = given[0] * loss.value(grid, 0) + given[1] * loss.value(grid, 1)
    assert grid[risk.argmin()] == pytest.approx(np.log(4), abs=1e-3)


def test_no_noise_changes_nothing() -> None:
    for t in (0, 1):
        expected = LOSSES["logistic"].value(LOGITS, t)
        np.testing.assert_allclose(forward("logistic", np.eye(2)).value(LOGITS, t), expected, atol=1e-12)
        np.testing.assert_allclose(backward("logistic", np.eye(2)).value(LOGITS, t), expected, atol=1e-12)


def test_equal_flips_keep_a_symmetric_constant() -> None:
    assert backward("sigmoid", [[0.8, 0.2], [0.2, 0.8]]).constant == 1.0
    assert backward("sigmoid", T).constant is None


def test_a_profile_stands_for_its_matrix() -> None:
    profile = NoiseProfile(T, "judges")
    assert backward("hinge", profile).value(-1.0, 1) == backward("hinge", T).value(-1.0, 1)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.5, 0.5], [0.5, 0.5]], "must keep the grades apart"),
        (np.eye(3), r"must be 2 x 2, .* got shape \(3, 3\)"),
        ([[0.9, 0.2], [0.1, 0.9]], "must have rows that sum to 1"),
    ],
)
@pytest.mark.parametrize("correction", [forward, backward])
def test_matrices_that_cannot_be_undone_are_refused(correction: object, matrix: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        correction("logistic", matrix)


def test_forward_needs_a_log_odds() -> None:
    with pytest.raises(InvalidInputError, match="forward correction needs a loss whose logit is a log-odds"):
        forward("hinge", T)
