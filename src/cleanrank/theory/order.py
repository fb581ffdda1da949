"""Order preservation: how a measure on noisy labels depends on the same measure on clean ones.

Labels are 0 or 1. gamma0 and gamma1 are the probabilities that a label 0 or 1 is *kept*; p is the prevalence,
the share of ones. Where noisy = slope * clean + constant, rankers keep their order if the slope is positive.
"""

from cleanrank import checks

WEIGHTINGS = ("macro", "micro")


def auc_slope(*, prevalence: float, gamma0: float, gamma1: float, weighting: str = "macro") -> float:
    """The share of AUC's signal that survives class-conditional noise: noisy - 1/2 = slope * (clean - 1/2).

    With p' = gamma1 p + (1 - gamma0)(1 - p), the share of ones after the noise, the ratio per query has

        slope = (gamma0 + gamma1 - 1) p (1 - p) / (p' (1 - p')),

    which depends on the prevalence, so that a mean over queries of unequal prevalence can change the order of
    two rankers. Haddad (2022) states 2 gamma - 1, which is right for p = 1/2 alone. ``weighting="micro"``
    divides the pair sum by n^2 instead of the number of pairs: its slope is gamma0 + gamma1 - 1 at any
    prevalence. The macro slope equals 1 - 2 pNoise of two grades in long lists (Niu et al. 2015). NaN when
    noise leaves one class only.

    >>> round(auc_slope(prevalence=0.1, gamma0=0.9, gamma1=0.9), 4)
    0.4878
    """
    checks.known("weighting", weighting, WEIGHTINGS)
    for name, value in (("gamma0", gamma0), ("gamma1", gamma1)):
        if not 0 <= value <= 1:
            checks.fail(name, "must be the probability that a label is kept, in [0, 1]", value)
    if not 0 < prevalence < 1:
        checks.fail("prevalence", "must lie strictly between 0 and 1", prevalence)
    kept = gamma0 + gamma1 - 1
    if weighting == "micro":
        return kept
    noisy = gamma1 * prevalence + (1 - gamma0) * (1 - prevalence)
    if noisy * (1 - noisy) <= 0:
        return float("nan")
    return kept * prevalence * (1 - prevalence) / (noisy * (1 - noisy))
