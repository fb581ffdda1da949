"""The weight of peers that undoes the noise, and a bound on what is left (Wu et al. 2022).

Labels are 0 or 1; e_plus = P(given 0 | true 1), e_minus = P(given 1 | true 0). A peer of a point or pair is
the features of one and the label of another, drawn at random; its loss is subtracted with the weight alpha.

    points, symmetric loss          alpha* = (e_plus - e_minus) / (1 - 2 P(given 1))
    all ordered pairs, any loss     alpha* = e_plus + e_minus, and then
                                    E noisy[peer loss] = (1 - e_plus - e_minus) E clean[loss]
"""

import math
from dataclasses import dataclass
from typing import Any

from cleanrank.errors import invalid
from cleanrank.losses.binary import BinaryLoss, binary_loss
from cleanrank.theory.bounds import Bound
from cleanrank.validation import is_integer, one_of

READINGS: dict[str, str] = {
    "points": "documents on their own",
    "all_ordered": "all ordered pairs of a list, ties included; label 1 if the first alone is relevant",
    "strict_both": "pairs of different labels, in both orientations",
    "strict_positive": "pairs of different labels, the better document first",
}


@dataclass(frozen=True, repr=False)
class Alpha:
    """A weight of peers; a number wherever one is expected.

    Attributes:
        value: alpha*.
        approximate: whether theory covers less than what it is used for.
        statement: why, in words.
    """

    value: float
    approximate: bool
    statement: str

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
        loss: for points alone: no alpha is exact unless it is label-symmetric.
        n_grades: C; with more than two, the result is an approximation.
        lambdarank: whether pairs are weighted by a change of NDCG, for which there is no proof.

    >>> optimal_alpha(0.05, 0.05).value, optimal_alpha(0.05, 0.05, lambdarank=True).approximate
    (0.1, True)
    >>> round(float(optimal_alpha(0.5037, 0.0373, pairs="points", prevalence=0.0281, loss="sigmoid")), 4)
    0.5185
    """
    one_of("pairs", pairs, READINGS)
    for name, rate in (("e_plus", e_plus), ("e_minus", e_minus)):
        if not 0 <= rate <= 1:
            raise invalid(name, "must be a probability", rate)
    if not is_integer(n_grades) or n_grades < 2:
        raise invalid("n_grades", "must be a whole number from 2 on", repr(n_grades))
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
    if prevalence is None or not 0 < prevalence < 1:
        raise invalid("prevalence", "must be given for points, strictly between 0 and 1", prevalence)
    given = prevalence * (1 - e_plus) + (1 - prevalence) * e_minus
    if abs(1 - 2 * given) < 1e-12:
        if e_plus != e_minus:
            rule = (
                "must not make the given labels balanced unless flips are equal, for alpha has no value there"
            )
            raise invalid("prevalence", rule, prevalence)
        return Alpha(0.0, loss.constant is None or n_grades > 2, "equal flips need no peers")
    value = (e_plus - e_minus) / (1 - 2 * given)
    doubts = []
    if loss.constant is None:
        doubts.append(f"{loss.name} is not label-symmetric, so no alpha is exact")
    if n_grades > 2:
        doubts.append("there are more than two grades")
    words = "; ".join(doubts) or f"exact for {loss.name}, which is label-symmetric"
    if not 0 <= value <= 1:
        words += "; outside [0, 1], where peers do not train: correct with the noise matrix instead"
    return Alpha(value, bool(doubts), words)


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
    weight = best if alpha is None else alpha
    if not 0 <= weight <= 1:
        raise invalid("alpha", "must lie in [0, 1], as the weight of peers does", weight)
    if not is_integer(n_pairs) or n_pairs < 1:
        raise invalid("n_pairs", "must be a whole number from 1 on", repr(n_pairs))
    if not 0 < delta < 1:
        raise invalid("delta", "must lie strictly between 0 and 1", delta)
    value = (1 + weight) / (1 - e_plus - e_minus) * math.sqrt(2 * math.log(2 / delta) / n_pairs)
    vacuous = value >= 1.0
    words = f"for one fixed scorer and {n_pairs:,} independent pairs, with probability {1 - delta:g}"
    says = ", which says nothing, for a risk is at most 1" if vacuous else ""
    return Bound(value, vacuous, f"the excess risk is at most {value:.3g} {words}{says}.")
