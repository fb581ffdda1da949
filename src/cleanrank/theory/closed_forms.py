"""What flipped labels do to a loss, to AUC and to empirical risk minimisation, in closed form (Haddad 2022).

gamma0 and gamma1 are the probabilities that a label 0 or 1 is kept, p the share of relevant documents. The
bounds of Sect. 4.4 have one gamma for both classes; S the shatter coefficient of affine
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

from cleanrank.errors import invalid
from cleanrank.losses.binary import BinaryLoss, binary_loss
from cleanrank.types import FloatArray
from cleanrank.validation import check_integer, check_number, one_of

LOSSES: dict[str, str] = {
    "zero_one": "0-1 loss of points, n independent documents",
    "auc": "AUC with micro weights, floor(n / 2) independent pairs",
}


# Far beyond |a| = 1, where hinge and l1 still look symmetric, and at logits of no special kind.
PROBES = np.concatenate([np.linspace(-6.0, 6.0, 481), np.geomspace(6.0, 40.0, 20), [-1 / 3, 1 / 7, -40.0]])
TOLERANCE = 1e-9


def is_label_symmetric(loss: str | BinaryLoss) -> bool:
    """Whether l(a, 1) + l(a, 0) is the same for every logit a (Haddad 2022, Definition 3.2).

    The constant that a loss states is checked against its values at |a| up to 40; a loss that states none is
    judged by its values. True for zero_one, ramp, unhinged and sigmoid. Haddad lists hinge and l1 too: their
    sums, 1 + |a| and 2 |a| for |a| > 1, are constant between -1 and 1 only.

    >>> is_label_symmetric("sigmoid"), is_label_symmetric("hinge")
    (True, False)
    """
    base = binary_loss(loss)
    total = base.value(PROBES, 1) + base.value(PROBES, 0)
    flat = bool(np.ptp(total) <= TOLERANCE * (1 + np.abs(total).max()))
    if base.constant is None:
        return flat
    if not flat or not np.isclose(total[0], base.constant, rtol=TOLERANCE, atol=TOLERANCE):
        worst = int(np.abs(total - base.constant).argmax())
        subject, rule = f"the constant of loss {base.name!r}", "must be l(a, 1) + l(a, 0) for every logit"
        value, at = f"{base.constant:g} where the sum is {total[worst]:g}", f"logit {PROBES[worst]:g}"
        raise invalid(subject, rule, value, at=at, remedy="State constant=None.")
    return True


def auc_slope(
    *, prevalence: float, gamma0: float, gamma1: float, weighting: str = "macro", n_docs: int | None = None
) -> float:
    """The share of AUC's signal that survives class-conditional noise: noisy - 1/2 = slope * (clean - 1/2).

    With p' = gamma1 p + (1 - gamma0)(1 - p), the share of ones after the noise, the ratio per query has

        slope = (gamma0 + gamma1 - 1) p (1 - p) / (p' (1 - p')),

    which depends on the prevalence, so that a mean over queries of unequal prevalence can change the order of
    two rankers. Haddad (2022) states 2 gamma - 1, which is right for p = 1/2 alone. ``weighting="micro"``
    divides the pair sum by n^2 instead of the number of pairs: its slope is gamma0 + gamma1 - 1 at any
    prevalence. The macro slope equals 1 - 2 pNoise of two grades in long lists (Niu et al. 2015). NaN when
    noise leaves one class only.

    Args:
        prevalence: p.
        gamma0: probability that a 0 is kept.
        gamma1: probability that a 1 is kept.
        weighting: "macro" or "micro".
        n_docs: the length n of the list, for the exact macro slope of n p relevant documents among n; long
            lists without it. With A the noisy ones among the other n - 2 documents of a pair, it is
            (gamma0 + gamma1 - 1) n1 n0 E[1 / ((A + 1)(n - 1 - A))] / P(both classes are left).

    >>> round(auc_slope(prevalence=0.1, gamma0=0.9, gamma1=0.9), 4)
    0.4878
    """
    one_of("weighting", weighting, ("macro", "micro"))
    check_number("gamma0", gamma0, least=0, most=1)
    check_number("gamma1", gamma1, least=0, most=1)
    check_number("prevalence", prevalence, above=0, below=1)
    kept = gamma0 + gamma1 - 1
    if weighting == "micro":
        return kept
    if n_docs is not None:
        return kept * _short_list(n_docs, prevalence, gamma0, gamma1)
    noisy = gamma1 * prevalence + (1 - gamma0) * (1 - prevalence)
    if noisy * (1 - noisy) <= 0:
        return float("nan")
    return kept * prevalence * (1 - prevalence) / (noisy * (1 - noisy))


def _short_list(n: int, prevalence: float, gamma0: float, gamma1: float) -> float:
    check_integer("n_docs", n, least=2)
    n1 = round(prevalence * n)
    if not 0 < n1 < n:
        raise invalid("n_docs", "must leave both classes in the list", f"{n} with {n1} relevant")
    others = _ones(n1 - 1, n - n1 - 1, gamma0, gamma1)
    a = np.arange(n - 1)
    share = float((others / ((a + 1.0) * (n - 1.0 - a))).sum())
    every = _ones(n1, n - n1, gamma0, gamma1)
    left = 1.0 - float(every[0]) - float(every[-1])
    return n1 * (n - n1) * share / left if left > 0 else float("nan")


def _ones(n1: int, n0: int, gamma0: float, gamma1: float) -> FloatArray:
    """The distribution of noisy ones among n1 ones and n0 zeros."""
    from scipy import stats

    kept = stats.binom.pmf(np.arange(n1 + 1), n1, gamma1)
    false = stats.binom.pmf(np.arange(n0 + 1), n0, 1 - gamma0)
    return np.convolve(kept, false)


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
