"""Bounds on the excess risk of empirical risk minimisation under flipped labels (Haddad 2022, Sect. 4.4).

gamma is the probability that a label is kept, the same for both classes; S the shatter coefficient of affine
half-spaces of R^d, 2 sum_{i=0..d} C(n - 1, i); f_n the scorer that minimises the noisy empirical risk.

    Thm 4.10   P(L(f_n) - inf L > eps) <= 8 S exp(-n eps^2 (2 gamma - 1)^2 / 128)
    inverted   E L(f_n) - inf L <= 16 sqrt(log(8 e S) / (2 n (2 gamma - 1)^2))
    Thm 4.12   P(L(f_n) - inf L > eps) <= delta_n + 8 S exp(-n (eps (2 gamma - 1) - eps_n)^2 / 128)

They hold for the 0-1 loss of points. AUC is a mean over pairs of documents, of which only floor(n / 2) are
independent, so n becomes floor(n / 2), and its pairs must be weighted micro. All is computed in logarithms.
"""

import math
from dataclasses import dataclass

import numpy as np

from cleanrank.validation import check_integer, check_number, one_of

LOSSES: dict[str, str] = {
    "zero_one": "0-1 loss of points, n independent documents",
    "auc": "AUC with micro weights, floor(n / 2) independent pairs",
}


@dataclass(frozen=True, repr=False)
class Bound:
    """A bound that says what it is worth; a number wherever one is expected."""

    value: float  # the bound
    vacuous: bool  # whether it says nothing: a risk or a probability is at most 1 anyway
    statement: str  # the same in words

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return f"{self.value:.4g} ({'vacuous' if self.vacuous else 'informative'}): {self.statement}"


@dataclass(frozen=True, repr=False)
class Samples:
    """A number of documents, and what it buys."""

    n: int
    statement: str

    def __int__(self) -> int:
        return self.n

    def __float__(self) -> float:
        return float(self.n)

    def __repr__(self) -> str:
        return f"{self.n:.3g}: {self.statement}"


def log_shatter(n: int, dim: int, *, origin: bool = False) -> float:
    """Log of the shatter coefficient of n points and half-spaces in R^dim, through the origin or not."""
    return math.log(2.0) + _log_sum(n - 1, dim - 1 if origin else dim)


def _log_sum(n: int, most: int) -> float:
    """Log sum_{i=0..most} C(n, i); n log 2 once all terms are there."""
    if most >= n:
        return n * math.log(2.0)
    # C(n, i) as a product: differences of log-gammas lose every digit for n beyond 1e15.
    i = np.arange(most, dtype=np.float64)
    steps = np.log(float(n) - i) - np.log(i + 1.0)
    return float(np.logaddexp.reduce(np.concatenate(([0.0], np.cumsum(steps)))))


def excess_risk_bound(
    n: int, dim: int, gamma: float, *, loss: str = "zero_one", origin: bool = False
) -> Bound:
    """Bounds the expected excess risk of the scorer that minimises the noisy empirical risk.

    Args:
        n: documents with noisy labels.
        dim: features of a linear scorer.
        gamma: probability that a label is kept, in (1/2, 1].
        loss: "zero_one" or "auc".
        origin: whether the scorer has no intercept.

    >>> round(float(excess_risk_bound(n=500, dim=5, gamma=0.9)), 2)
    3.47
    """
    used = _independent(n, loss)
    _check(dim, gamma)
    value = _excess(used, dim, gamma, origin)
    vacuous = value >= 1.0
    note = "which says nothing, for a risk is at most 1" if vacuous else "on average over samples"
    setting = f"with {n:,} documents, {dim} features and labels kept with probability {gamma:g}"
    return Bound(value, vacuous, f"the excess risk is at most {value:.3g} {setting}, {note}.")


def _excess(used: int, dim: int, gamma: float, origin: bool) -> float:
    logs = math.log(8.0) + 1.0 + log_shatter(used, dim, origin=origin)
    return 16.0 * math.sqrt(logs / (2.0 * used)) / (2.0 * gamma - 1.0)


def samples_needed(
    excess: float, dim: int, gamma: float, *, loss: str = "zero_one", origin: bool = False
) -> Samples:
    """The fewest documents for which ``excess_risk_bound`` is at most ``excess``.

    >>> f"{int(samples_needed(excess=0.1, dim=5, gamma=0.9)):.3g}"
    '1.39e+06'
    """
    check_number("excess", excess, above=0)
    _check(dim, gamma)
    one_of("loss", loss, LOSSES)
    high = 1
    while _excess(high, dim, gamma, origin) > excess:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _excess(middle, dim, gamma, origin) <= excess else (middle, high)
    n = high if loss == "zero_one" else 2 * high
    words = f"{n:,} documents with labels kept with probability {gamma:g} bound the excess risk by {excess:g}"
    return Samples(n, f"{words} ({dim} features; {LOSSES[loss]}).")


def deviation_bound(
    excess: float,
    n: int,
    dim: int,
    gamma: float,
    *,
    slack: float = 0.0,
    slack_probability: float = 0.0,
    loss: str = "zero_one",
    origin: bool = False,
) -> Bound:
    """Bounds the probability that the excess risk is above ``excess`` (Theorems 4.10 and 4.12).

    Args:
        excess: eps.
        n: documents with noisy labels.
        dim: features of a linear scorer.
        gamma: probability that a label is kept, in (1/2, 1].
        slack: eps_n, how far training may stay above the least noisy empirical risk.
        slack_probability: delta_n, the probability that it stays further above.
        loss: "zero_one" or "auc".
        origin: whether the scorer has no intercept.

    >>> deviation_bound(0.1, n=500, dim=5, gamma=0.9).vacuous
    True
    """
    used = _independent(n, loss)
    _check(dim, gamma)
    check_number("excess", excess, above=0)
    check_number("slack", slack, least=0)
    check_number("slack_probability", slack_probability, least=0, most=1)
    gap = excess * (2.0 * gamma - 1.0) - slack
    value = 1.0
    if gap > 0:
        logs = math.log(8.0) + log_shatter(used, dim, origin=origin) - used * gap**2 / 128.0
        value = min(1.0, slack_probability + (math.exp(logs) if logs < 0 else 1.0))
    vacuous = value >= 1.0
    note = "which says nothing" if vacuous else f"with {n:,} documents"
    return Bound(
        value, vacuous, f"the excess risk is above {excess:g} with probability at most {value:.3g}, {note}."
    )


def _independent(n: int, loss: str) -> int:
    """How many independent members n documents make."""
    one_of("loss", loss, LOSSES)
    check_integer("n", n, least=1 if loss == "zero_one" else 2)
    return n if loss == "zero_one" else n // 2


def _check(dim: int, gamma: float) -> None:
    check_integer("dim", dim, least=1)
    # At 1/2 labels carry nothing; below it the classes are swapped.
    check_number("gamma", gamma, above=0.5, most=1)
