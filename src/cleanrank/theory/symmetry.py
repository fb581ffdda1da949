"""What flipped labels do to a loss and to AUC, in closed form (Haddad 2022).

gamma0 and gamma1 are the probabilities that a label 0 or 1 is kept, p the share of relevant documents.
"""

import numpy as np

from cleanrank.errors import invalid
from cleanrank.losses.binary import BinaryLoss, binary_loss
from cleanrank.types import FloatArray
from cleanrank.validation import check_integer, check_number, one_of

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
