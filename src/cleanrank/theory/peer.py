"""The weight of peers that undoes the noise, and a bound on what is left (Wu et al. 2022).

Labels are 0 or 1; e_plus = P(given 0 | true 1), e_minus = P(given 1 | true 0). A peer of a point or pair is
the features of one and the label of another, drawn at random; its loss is subtracted with the weight alpha.

    points, symmetric loss          alpha* = (e_plus - e_minus) / (1 - 2 P(given 1))
    points, any other loss          alpha = e_plus + e_minus, and then with P = P(given 1)
                                    E noisy[peer loss] = (1 - alpha) E clean[loss]
                                                         + (e_minus - alpha P) E[l(., 1) - l(., 0)],
                                    exact where e_minus = alpha P, and else off by a shift of all scores
    all ordered pairs, any loss     alpha* = e_plus + e_minus, and then
                                    E noisy[peer loss] = (1 - e_plus - e_minus) E clean[loss]
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.losses.binary import BinaryLoss, binary_loss
from cleanrank.noise.pair_noise import order_probabilities
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.theory.bounds import Bound
from cleanrank.types import FloatArray
from cleanrank.validation import check_integer, check_number, is_number, one_of

READINGS: dict[str, str] = {
    "points": "documents on their own",
    "all_ordered": "all ordered pairs of a list, ties included; label 1 if the first alone is relevant",
    "strict_both": "pairs of different labels, in both orientations",
    "strict_positive": "pairs of different labels, the better document first",
}


AUTO = "auto"
MORE_GRADES = "there are more than two grades"
SAME = 0.01  # shares of ones that differ by less count as equal


@dataclass(frozen=True, repr=False)
class Alpha:
    """A weight of peers; a number wherever one is expected."""

    value: float  # alpha*
    approximate: bool  # whether theory covers less than what it is used for
    statement: str  # why, in words

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return f"{self.value:.4g} ({'approximate' if self.approximate else 'exact'}): {self.statement}"


def optimal_alpha(
    e_plus: float,
    e_minus: float,
    *,
    pairs: str = "all_ordered",
    prevalence: float | None = None,
    loss: "str | BinaryLoss" = "logistic",
    n_grades: int = 2,
    lambdarank: bool = False,
) -> Alpha:
    """The weight of peers for which the noisy peer loss is proportional to the clean loss.

    Args:
        e_plus: P(given 0 | true 1).
        e_minus: P(given 1 | true 0).
        pairs: "points" or what pairs there are; see READINGS.
        prevalence: P(true 1), needed for points.
        loss: for points alone, where the weight depends on whether it is label-symmetric.
        n_grades: C; with more than two, the result is an approximation.
        lambdarank: whether pairs are weighted by a change of NDCG, for which there is no proof.

    >>> optimal_alpha(0.05, 0.05).value, optimal_alpha(0.05, 0.05, lambdarank=True).approximate
    (0.1, True)
    """
    one_of("pairs", pairs, READINGS)
    check_number("e_plus", e_plus, least=0, most=1)
    check_number("e_minus", e_minus, least=0, most=1)
    check_integer("n_grades", n_grades, least=2)
    if e_plus + e_minus >= 1:
        raise invalid(
            "e_plus + e_minus", "must be below 1, else labels carry nothing or are swapped", e_plus + e_minus
        )
    if pairs == "points":
        return _points(e_plus, e_minus, prevalence, binary_loss(loss), n_grades)
    if pairs == "strict_positive":
        rule = "must include pairs with label 0, for with label 1 alone peers only rescale the loss"
        raise invalid("pairs", rule, repr(pairs), remedy="Use all_ordered.")
    doubts = []
    if n_grades > 2:
        doubts.append("with grades the signal kept differs with the distance of grades")
    if lambdarank:
        doubts.append("weights from noisy labels are not covered by the proof")
    if pairs == "strict_both":
        doubts.append("noise changes which pairs there are, and the proof needs all of them")
    exact = (
        "exact for two grades and any loss: noise scales the peer loss to 1 - e_plus - e_minus of the loss"
    )
    return Alpha(e_plus + e_minus, bool(doubts), "; ".join(doubts) or exact)


def _points(e_plus: float, e_minus: float, prevalence: Any, loss: BinaryLoss, n_grades: int) -> Alpha:
    if prevalence is None:
        raise invalid("prevalence", "must be given for points")
    check_number("prevalence", prevalence, above=0, below=1)
    noisy = prevalence * (1 - e_plus) + (1 - prevalence) * e_minus
    if loss.constant is None:
        return _points_of_any_loss(e_plus, e_minus, noisy, loss, n_grades)
    if abs(1 - 2 * noisy) < 1e-12:
        if e_plus != e_minus:
            rule = "must not balance the given labels unless flips are equal, for alpha has no value there"
            raise invalid("prevalence", rule, prevalence)
        return Alpha(0.0, n_grades > 2, "equal flips need no peers")
    value = (e_plus - e_minus) / (1 - 2 * noisy)
    grades = n_grades > 2
    words = MORE_GRADES if grades else f"exact for {loss.name}, which is label-symmetric"
    if not 0 <= value <= 1:
        words += "; outside [0, 1], where peers do not train: correct with the noise matrix instead"
    return Alpha(value, grades, words)


def _points_of_any_loss(e_plus: float, e_minus: float, noisy: float, loss: BinaryLoss, C: int) -> Alpha:
    """e_plus + e_minus, by the law at the head of this module."""
    value = e_plus + e_minus
    if not value:
        return Alpha(0.0, False, "no flips need no peers")
    if C > 2 or abs(e_minus / value - noisy) > SAME:
        words = f"{loss.name} is not label-symmetric: flips are undone but for a shift of all scores"
        return Alpha(value, True, MORE_GRADES if C > 2 else words)
    return Alpha(value, False, "exact for any loss: flips make as large a share of ones as there is anyway")


def peer_excess_risk_bound(
    n_pairs: int, e_plus: float, e_minus: float, *, alpha: float | None = None, delta: float = 0.05
) -> Bound:
    """(1 + alpha) / (1 - e_plus - e_minus) sqrt(2 log(2 / delta) / m), Lemma 2 of Wu et al. (2022).

    It takes m dependent pairs as independent and has no term for the richness of the class, so it holds for
    one scorer fixed beforehand, not for one that was chosen by training.

    Args:
        n_pairs: m.
        e_plus: P(given 0 | true 1).
        e_minus: P(given 1 | true 0).
        alpha: weight of peers; alpha* for all ordered pairs when None.
        delta: probability that the bound fails.

    >>> round(float(peer_excess_risk_bound(10_000, 0.05, 0.05)), 4)
    0.0332
    """
    best = float(optimal_alpha(e_plus, e_minus))
    weight = best if alpha is None else check_number("alpha", alpha, least=0, most=1)
    check_integer("n_pairs", n_pairs, least=1)
    check_number("delta", delta, above=0, below=1)
    value = (1 + weight) / (1 - e_plus - e_minus) * math.sqrt(2 * math.log(2 / delta) / n_pairs)
    vacuous = value >= 1.0
    setting = f"for one fixed scorer and {n_pairs:,} independent pairs, with probability {1 - delta:g}"
    note = ", which says nothing, for a risk is at most 1" if vacuous else ""
    return Bound(value, vacuous, f"the excess risk is at most {value:.3g} {setting}{note}.")


def peer_imbalance_bound(prevalence: float, *, largest: float = 1.0, published: bool = False) -> Bound:
    """2 |p - 1/2| max dG, what peers of weight 1 can cost where labels are out of balance (Theorem 3).

    The scorer with the least peer risk on noisy labels has a clean 0-1 risk within this of the best, whatever
    the noise. Wu et al. (2022) print 4 |p - 1/2| max dG; half of it suffices (erratum B5) and is reached:
    with p < 1/2 the peer risks of "always 1" and "always 0" are equal, and their risks 1 - 2 p apart.

    Args:
        prevalence: p, the clean share of points or pairs with label 1; of all ordered pairs below 1/2.
        largest: max dG, the largest weight of a pair; 1 where pairs weigh alike.
        published: the paper's constant, 4.

    >>> float(peer_imbalance_bound(0.4)), float(peer_imbalance_bound(0.4, published=True))
    (0.19999999999999996, 0.3999999999999999)
    """
    check_number("prevalence", prevalence, least=0, most=1)
    check_number("largest", largest, least=0)
    value = (4 if published else 2) * abs(prevalence - 0.5) * largest
    vacuous = value >= largest > 0
    note = ", which says nothing, for no risk is larger" if vacuous else ""
    setting = f"where {prevalence:.3g} of the labels are 1 and pairs weigh {largest:.3g} at the most"
    return Bound(value, vacuous, f"peers of weight 1 cost a risk of {value:.3g} at the most {setting}{note}.")


def stated_alpha(alpha: Any, noise: Any, *, searched: str = "") -> Alpha | None:
    """An estimator's weight of peers where it is a number, None where it is still to be found.

    Args:
        alpha: a number; "auto", which stands for e+ + e- of the noise; or the word ``searched``.
        noise: what "auto" needs.
        searched: the word of estimators that can choose alpha on validation data.

    >>> stated_alpha(0.2, None).value, stated_alpha("auto", [[0.9, 0.1], [0.1, 0.9]])
    (0.2, None)
    """
    if is_number(alpha):
        return Alpha(float(alpha), True, "given as a number")
    words = [word for word in (AUTO, searched) if word]
    if not isinstance(alpha, str):
        raise invalid("alpha", f"must be a number or {' or '.join(map(repr, words))}", repr(alpha))
    if one_of("alpha", alpha, words) == AUTO and noise is None:
        remedy = "Give noise= a matrix P(given | true), a NoiseProfile or a NoiseEstimate"
        remedy += f", or search with alpha={searched!r}." if searched else "."
        raise invalid("alpha='auto'", "needs the noise, for it is e+ + e-", remedy=remedy)
    return None


def pair_alpha(noise: Any, y: npt.ArrayLike, *, lambdarank: bool = False) -> Alpha:
    """The weight of peers over all ordered pairs under a noise.

    Args:
        noise: a matrix P(given | true), a NoiseProfile or a NoiseEstimate.
        y: the given grades; their shares tell which pairs are frequent.
        lambdarank: whether pairs are weighted by what a swap does to a measure.
    """
    grades = np.asarray(y)
    T = NoiseProfile.of(noise, max(2, int(grades.max(initial=1)) + 1)).matrix
    C = len(T)
    if C == 2:
        return optimal_alpha(float(T[1, 0]), float(T[0, 1]), lambdarank=lambdarank)
    kept = kept_signal(T)
    shares = _true_shares(T, np.bincount(grades.astype(np.int64), minlength=C))
    pairs = np.tril(np.outer(shares, shares), -1)
    mean = float((pairs * kept).sum() / pairs.sum()) if pairs.sum() > 0 else 0.0
    if not mean > 0:
        remedy = "No weight of peers mends labels that say nothing."
        raise invalid("noise", "must leave some of the order of pairs", f"{mean:.3g} of it", remedy=remedy)
    each = kept[np.tril_indices(C, -1)]
    words = (
        f"between {C} grades the noise keeps {each.min():.2f} to {each.max():.2f} of the signal, not one part"
    )
    more = "; weights from noisy labels are not covered by the proof" if lambdarank else ""
    return Alpha(float(np.clip(1.0 - mean, 0.0, 1.0)), True, words + more)


def point_alpha(noise: Any, relevant: npt.ArrayLike, loss: BinaryLoss) -> Alpha:
    """The weight of peers over documents that are given as relevant or not."""
    T = NoiseProfile.of(noise, 2).matrix
    if len(T) != 2:
        raise invalid("noise", "must be 2 x 2 for documents that are relevant or not", f"shape {T.shape}")
    e_plus, e_minus = float(T[1, 0]), float(T[0, 1])
    share = float(np.mean(np.asarray(relevant, dtype=np.float64)))
    true = float(np.clip((share - e_minus) / max(1 - e_plus - e_minus, 1e-12), 1e-9, 1 - 1e-9))
    alpha = optimal_alpha(e_plus, e_minus, pairs="points", prevalence=true, loss=loss)
    if not 0 <= alpha.value <= 1:
        rule = f"must come out in [0, 1] where {share:.3g} of the documents are given as relevant"
        remedy = "Give alpha as a number, or train on pairs, where e+ + e- is right."
        raise invalid("alpha='auto' over documents", rule, f"{alpha.value:.3g}", remedy=remedy)
    return alpha


def preference_alpha(noise: Any) -> Alpha:
    """The weight of peers over preferences in both orders: 2 e for preferences that are wrong with rate e.

    E noisy[l] = (1 - 2 e) l + 2 e m with m the mean of l over both targets, whatever the loss.
    """
    T = NoiseProfile.of(noise, 2).matrix
    if len(T) != 2 or abs(T[0, 1] - T[1, 0]) > 1e-9 or T[0, 1] >= 0.5:
        raise invalid("noise of preferences", "must be [[1 - e, e], [e, 1 - e]] with e below 1/2", T.tolist())
    return Alpha(float(2 * T[0, 1]), False, "exact for any loss: wrong preferences add 2 e of the peers")


def kept_signal(T: FloatArray) -> FloatArray:
    """P(right order) - P(wrong order) of the given grades for every pair of true grades; antisymmetric."""
    higher, _ = order_probabilities(T)
    return higher - higher.T


def _true_shares(T: FloatArray, counts: npt.NDArray[np.int64]) -> FloatArray:
    noisy = counts / max(counts.sum(), 1)
    true = np.clip(np.linalg.lstsq(T.T, noisy, rcond=None)[0], 0.0, None)
    return np.asarray(true / true.sum() if true.sum() > 0 else noisy)
