import numpy as np
import pytest

from cleanrank.errors import InvalidInputError
from cleanrank.losses.binary import LOSSES, BinaryLoss
from cleanrank.losses.robust import peer

LOGITS = np.linspace(-6, 6, 121)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5, 1.0])
def test_ranknet_with_balanced_peers_is_a_mixture_with_the_unhinged_loss(alpha: float) -> None:
    found = peer("logistic", alpha).value(LOGITS, 1)
    expected = (1 - alpha) * np.log1p(np.exp(-LOGITS)) - alpha * LOGITS / 2
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_the_gradient_of_expected_peers() -> None:
    p = 1 / (1 + np.exp(-LOGITS))
    for t in (0, 1):
        expected = (p - t) - 0.3 * (p - 0.5)
        np.testing.assert_allclose(peer("logistic", 0.3).gradient(LOGITS, t), expected, atol=1e-13)


def mean_over_ordered_pairs(loss: BinaryLoss, scores: np.ndarray, clicks: np.ndarray) -> np.ndarray:
    """The mean over all ordered pairs of one list, ties among them, for every row of ``clicks``."""
    first, second = np.nonzero(~np.eye(len(scores), dtype=bool))
    d = scores[first] - scores[second]
    wins = clicks[:, first] > clicks[:, second]
    return np.where(wins, loss.value(d, 1), loss.value(d, 0)).mean(axis=1)


@pytest.mark.parametrize("name", ["logistic", "hinge", "zero_one", "exponential"])
@pytest.mark.parametrize(("missed", "added"), [(0.05, 0.05), (0.4, 0.1)])
def test_the_right_alpha_undoes_flipped_clicks(name: str, missed: float, added: float) -> None:
    """Over all 2^n flips: E[noisy peer loss] = (1 - e+ - e-) E[clean loss], up to what no label changes."""
    rng = np.random.default_rng(1)
    scores = rng.normal(size=6)
    alpha, kept = missed + added, 1 - missed - added
    corrected = peer(name, alpha)
    flips = (np.arange(64)[:, None] >> np.arange(6)) & 1
    clean, noisy = [], []
    for number in range(64):
        clicks = (number >> np.arange(6)) & 1
        rate = np.where(clicks == 1, missed, added)
        chance = np.where(flips == 1, rate, 1 - rate).prod(axis=1)
        clean.append(mean_over_ordered_pairs(LOSSES[name], scores, clicks[None])[0])
        noisy.append(chance @ mean_over_ordered_pairs(corrected, scores, clicks ^ flips))
    np.testing.assert_allclose(noisy, kept * np.array(clean), rtol=1e-9)


def test_constants_of_peers() -> None:
    assert peer("logistic", 1.0).constant == 0.0
    assert peer("logistic", 1.0, prior=0.3).constant is None
    assert peer("ramp", 0.25).constant == 0.75
    assert peer("ramp", 0.25, prior=0.3).constant is None
    assert peer("l1", 1.0).bounded


def test_what_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"alpha must lie in \[0, 1\].*got 1.1.*sum of the two flip"):
        peer("logistic", 1.1)
    with pytest.raises(InvalidInputError, match="prior must be a number >= 0 and <= 1; got 2"):
        peer("logistic", 0.1, prior=2)
