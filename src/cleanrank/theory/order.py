"""Order preservation: how a measure on noisy labels depends on the same measure on clean ones.

Labels are 0 or 1. gamma0 and gamma1 are the probabilities that a label 0 or 1 is *kept*; p is the prevalence,
the share of ones. Where noisy = slope * clean + constant, rankers keep their order if the slope is positive.
"""

import numpy as np

from cleanrank.errors import invalid
from cleanrank.types import FloatArray
from cleanrank.validation import is_integer, one_of

SLOPE_WEIGHTINGS = ("macro", "micro")


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
    >>> round(auc_slope(prevalence=0.1, gamma0=0.9, gamma1=0.9, n_docs=50), 4)
    0.5114
    """
    one_of("weighting", weighting, SLOPE_WEIGHTINGS)
    for name, value in (("gamma0", gamma0), ("gamma1", gamma1)):
        if not 0 <= value <= 1:
            raise invalid(name, "must be the probability that a label is kept, in [0, 1]", value)
    if not 0 < prevalence < 1:
        raise invalid("prevalence", "must lie strictly between 0 and 1", prevalence)
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
    if not is_integer(n) or n < 2:
        raise invalid("n_docs", "must be a whole number from 2 on", repr(n))
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
