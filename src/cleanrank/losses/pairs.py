"""Which pairs of documents a loss sees and how they weigh: the names that torch and trees share."""

from typing import Any

from cleanrank.errors import invalid
from cleanrank.losses.binary import Values, namespace
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.types import FloatArray
from cleanrank.validation import one_of

PAIR_SETS: dict[str, str] = {
    "strict": "pairs of different grades, the better document first",
    "strict_both": "pairs of different grades in both orders",
    "all_ordered": "all pairs in both orders, ties included",
}
PAIR_WEIGHTINGS: dict[str, str] = {
    "micro": "sum over pairs / n^2, n documents in a list; keeps the order of models under noise",
    "macro": "mean over the pairs of a list, then over lists with pairs",
    "prevalence": "as macro, with the pairs a list would have without noise; needs the noise matrix",
    "pooled": "every pair of every list counts the same",
    "sum": "as pooled, not divided by the number of pairs",
}


def check_weighting(
    weighting: str, pairs: str, noise: Any = None, n_grades: int | None = None
) -> FloatArray | None:
    """Checks a set of pairs with its weighting; returns the noise matrix that "prevalence" undoes."""
    one_of("set of pairs", pairs, PAIR_SETS)
    one_of("weighting", weighting, PAIR_WEIGHTINGS)
    if (weighting == "prevalence") != (noise is not None):
        rule = "must be given for weighting='prevalence', and for it alone"
        remedy = "Pass noise=(gamma0, gamma1), the probabilities that a label is kept, or a matrix."
        raise invalid("noise", rule, f"weighting={weighting!r}", remedy=remedy)
    if noise is None:
        return None
    if pairs == "all_ordered":
        rule = "must not be 'prevalence' for all_ordered pairs, whose number no label changes"
        raise invalid("weighting", rule, remedy="Use 'macro'.")
    return NoiseProfile.of(noise, n_grades, invertible=True).matrix


def check_peer_pairs(pairs: str, *, both_orders: bool = True) -> None:
    """Refuses pairs on which peers do not work; ``both_orders`` says whether "strict_both" will do."""
    one_of("set of pairs", pairs, PAIR_SETS)
    if pairs == "all_ordered" or (pairs == "strict_both" and both_orders):
        return
    why = {
        "strict": "strict pairs all have target 1, so that peers only shrink the loss by 1 - alpha",
        "strict_both": "which pairs are strict depends on the noise, so that no alpha undoes it",
    }[pairs]
    remedy = "Give pairs='all_ordered', and compare with a base on the same pairs."
    raise invalid("pairs", f"must be 'all_ordered' with peers: {why}", repr(pairs), remedy=remedy)


def clean_pair_share(shares: Values, n: Values, matrix: Values) -> Values:
    """The share of pairs y_i > y_j of all n^2 that every list would have without noise, estimated.

    The shares of the given grades (Q, C) are multiplied by the inverse of the noise matrix and put back among
    the shares; at the least one document stands against the n - 1 others.

    >>> import numpy as np
    >>> clean_pair_share(np.array([[0.75, 0.25]]), np.array([4.0]), np.eye(2)).tolist()
    [0.1875]
    """
    xp = namespace(shares)
    true = xp.linalg.solve(matrix.T, shares.T).T.clip(min=0)
    true = true / true.sum(1)[:, None].clip(min=xp.finfo(true.dtype).tiny)
    return xp.maximum(0.5 * (1 - (true * true).sum(1)), (n - 1) / (n * n))
