"""Bounds on the excess risk of empirical risk minimisation under flipped labels (Haddad 2022, Sect. 4.4).

gamma is the probability that a label is kept, the same for both classes; S the shatter coefficient of affine
half-spaces of R^d, 2 sum_{i=0..d} C(n - 1, i); f_n the scorer that minimises the noisy empirical risk.

    Thm 4.10   P(L(f_n) - inf L > eps) <= 8 S exp(-n eps^2 (2 gamma - 1)^2 / 128)
    inverted   E L(f_n) - inf L <= 16 sqrt(log(8 e S) / (2 n (2 gamma - 1)^2))
    Thm 4.11   P(L(f_n) - inf L > eps) <= delta_n + P(2 sup_f |D(f)| > eps (2 gamma - 1) - eps_n)
    Thm 4.12   P(L(f_n) - inf L > eps) <= delta_n + 8 S exp(-n (eps (2 gamma - 1) - eps_n)^2 / 128)

D(f) is the noisy empirical risk of f minus its noisy risk. Thm 4.11 holds for every order-preserving loss and
class of scorers, given a bound on sup |D|; the others for the 0-1 loss of points, for which
P(sup_f |D(f)| > t) <= 8 S exp(-n t^2 / 32). AUC is a mean over pairs of documents, of which only floor(n / 2)
are independent, so n becomes floor(n / 2), and its pairs must be weighted micro. All is computed in
logarithms.
"""

import math
from collections.abc import Callable
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
    log_count = math.log(8.0) + log_shatter(used, dim, origin=origin)

    def deviation(t: float) -> float:
        return math.exp(min(0.0, log_count - used * t**2 / 32.0))

    return excess_probability(excess, gamma, deviation, slack=slack, slack_probability=slack_probability)


def excess_probability(
    excess: float,
    gamma: float,
    deviation: Callable[[float], float],
    *,
    slack: float = 0.0,
    slack_probability: float = 0.0,
) -> Bound:
    """Bounds the probability of an excess risk above ``excess``, for any order-preserving loss (Thm 4.11).

    Args:
        excess: eps.
        gamma: probability that a label is kept, in (1/2, 1].
        deviation: maps t > 0 to a bound on the probability that the noisy empirical risk of some scorer of
            the class lies more than t away from its noisy risk.
        slack: eps_n, how far training may stay above the least noisy empirical risk.
        slack_probability: delta_n, the probability that it stays further above.

    Returns:
        The bound, at most 1.

    >>> import math
    >>> def hoeffding(t, scorers=20, n=5000):  # of a finite class and a loss in [0, 1]
    ...     return 2 * scorers * math.exp(-2 * n * t**2)
    >>> round(float(excess_probability(0.1, 0.9, hoeffding)), 6)
    5e-06
    """
    check_number("excess", excess, above=0)
    _check_gamma(gamma)
    check_number("slack", slack, least=0)
    check_number("slack_probability", slack_probability, least=0, most=1)
    gap = excess * (2.0 * gamma - 1.0) - slack
    tail = check_number("deviation", deviation(gap / 2.0), least=0) if gap > 0 else 1.0
    value = min(1.0, slack_probability + tail)
    note = "which says nothing" if value >= 1.0 else f"with labels kept with probability {gamma:g}"
    statement = f"the excess risk is above {excess:g} with probability at most {value:.3g}, {note}."
    return Bound(value, value >= 1.0, statement)


def _independent(n: int, loss: str) -> int:
    """How many independent members n documents make."""
    one_of("loss", loss, LOSSES)
    check_integer("n", n, least=1 if loss == "zero_one" else 2)
    return n if loss == "zero_one" else n // 2


def _check(dim: int, gamma: float) -> None:
    check_integer("dim", dim, least=1)
    _check_gamma(gamma)


def _check_gamma(gamma: float) -> None:
    # At 1/2 labels carry nothing; below it the classes are swapped.
    check_number("gamma", gamma, above=0.5, most=1)
