"""Who of several annotators is reliable, what they agree on, and what to judge again.

The consensus is the most probable true grade under the model of Dawid and Skene (``annotators.py``), which
weighs every person by the errors they are estimated to make; without enough judgements, or where annotators
err together (``dependence.py``), it is the majority.
One more judgement of an item with probabilities p, by somebody with the average noise matrix T, makes its
consensus right with probability sum_m max_l p_l T[l, m] in place of max_l p_l: the difference is what that
judgement wins.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cleanrank.errors import InvalidInputError
from cleanrank.noise.agreement import Agreement, PairAgreement, agreement, pair_agreements, with_majority
from cleanrank.noise.annotator_pairs import AnnotatorPairs, annotator_pairs
from cleanrank.noise.annotator_sequences import OddSequence, odd_sequences
from cleanrank.noise.annotators import (
    ENOUGH_JUDGEMENTS,
    annotator_noise,
    check_enough,
    dawid_skene,
    judged_dependence,
)
from cleanrank.noise.dependence import Dependence
from cleanrank.noise.estimate import NoiseEstimate, check_level
from cleanrank.noise.judgement_table import JudgedItems, read_judgements
from cleanrank.types import Array, FloatArray, IntArray

USELESS = 0.4  # pNoise beyond which a fifth of the signal or less is left
CHANCE = 0.1  # kappa with the majority of the others that is next to chance
NOISY = 1.5  # times the median error rate
BIASED = 0.1  # grades
SIZES = (100, 300, 1000)


@dataclass(frozen=True, eq=False)
class Annotator:
    """One person's judgements.

    Attributes:
        name: as in the table.
        judgements: how many.
        agrees: share of judgements that are the majority of the others, where these have one.
        kappa: the same, corrected for chance.
        noise: the estimated noise; None where there are too few judgements for the model, or annotators err
            together.
        bias: expected grade given minus true grade; above 0 is lenient. None without ``noise``.
        bias_interval: its interval.
        verdict: in words: *unreliable* where even the lower end of the interval of pNoise is above .4, or
            agreement with the others is next to chance; *noisier than most* where the lower end of the error
            rate is above 1.5 times the median annotator's; *lenient* or *strict* where the bias is above .1
            grades and its interval excludes 0; *constant answers* and *fast answers* where
            ``odd_sequences`` says so. Empty otherwise.
    """

    name: str
    judgements: int
    agrees: float
    kappa: float
    noise: NoiseEstimate | None
    bias: float | None
    bias_interval: tuple[float, float] | None
    verdict: str


@dataclass(frozen=True)
class Again:
    """What one more judgement of each of ``items`` items costs, and the consensus labels expected wrong."""

    items: int
    cost: float
    wrong_before: float
    wrong_after: float


@dataclass(frozen=True, eq=False)
class AnnotatorReport:
    """What is known about annotators and items.

    Attributes:
        judged: the judgements.
        agreement: of all.
        pairs: of every two with items in common.
        annotators: the least reliable first.
        grades: consensus of every item, on the scale of the table.
        probabilities: (I, C) of every true grade; shares of votes where the model is not used.
        order: items, the ones to judge again first.
        wins: (I,) by how much one more judgement raises the probability that the consensus is right.
        is_modelled: whether the model could be fitted, and annotators do not err together.
        notes: what a reader must know, in words.
        dependence: how far annotators err together; None where the model could not be fitted.
        pair_noise: every annotator's pNoise against true grades or the majority of the others, the worst
            first; empty where items have no queries.
        odd: annotators with constant or fast answers.
        level: probability that an interval is meant to hold.
    """

    judged: JudgedItems
    agreement: Agreement
    pairs: Sequence[PairAgreement]
    annotators: Sequence[Annotator]
    grades: IntArray
    probabilities: FloatArray
    order: IntArray
    wins: FloatArray
    is_modelled: bool
    notes: Sequence[str]
    dependence: Dependence | None = None
    pair_noise: Sequence[AnnotatorPairs] = ()
    odd: Sequence[OddSequence] = ()
    level: float = 0.95

    @property
    def certainty(self) -> FloatArray:
        """The probability of every item's consensus."""
        top: FloatArray = self.probabilities.max(axis=1)
        return top

    def consensus(self) -> Any:
        """A pandas frame: the items' names, grade, probability, judgements and votes (grade:times)."""
        import pandas as pd

        return pd.DataFrame(
            {
                **self.judged.keys,
                "grade": self.grades,
                "probability": self.certainty.round(6),
                "judgements": self.judged.judgements.per_item.sum(axis=1),
                "votes": _votes(self.judged),
            }
        )

    def to_judge_again(self, n: int | None = None) -> Any:
        """The consensus frame of the items to judge again, the ones where a judgement wins most first."""
        frame = self.consensus()
        if self.is_modelled:
            frame["wins"] = self.wins.round(6)
        return frame.iloc[self.order[:n]].reset_index(drop=True)

    def checked(self) -> dict[str, float] | None:
        """Against known true grades: items, shares of right consensus and majority, and what is expected."""
        truth = self.judged.truth
        if truth is None or not (truth >= 0).any():
            return None
        known = truth >= 0
        majority = self.judged.judgements.per_item.argmax(axis=1) + self.judged.lowest
        return {
            "items": int(known.sum()),
            "consensus": float((self.grades == truth)[known].mean()),
            "majority": float((majority == truth)[known].mean()),
            "expected": float(self.certainty[known].mean()),
        }

    def again(self, cost: float = 1.0, sizes: Sequence[int] = SIZES) -> list[Again]:
        """What one more judgement of the first items of ``order`` costs and wins; empty without a model."""
        if not self.is_modelled:
            return []
        before = float((1 - self.certainty).sum())
        won = np.cumsum(self.wins[self.order])
        counts = sorted({min(n, len(won)) for n in sizes})
        return [Again(n, n * cost, before, before - float(won[n - 1])) for n in counts]


def annotator_report(
    table: Any, *, level: float = 0.95, draws: int = 1000, seed: int = 0, **columns: Any
) -> AnnotatorReport:
    """Looks at the annotators of a table of judgements.

    Args:
        table: as ``read_judgements`` takes it, or JudgedItems.
        level: probability that an interval is meant to hold.
        draws: of the posterior of every annotator's noise.
        seed: same seed, same draws.
        columns: further arguments of ``read_judgements``.

    Returns:
        The report; where there are too few judgements for a model it says so and counts votes.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.choice(3, 200)
    >>> said = {f"a{i}": np.where(rng.random(200) < rate, rng.choice(3, 200), truth)
    ...         for i, rate in enumerate((0.1, 0.1, 0.1, 0.9))}
    >>> report = annotator_report({"item": np.arange(200), **said}, draws=200)
    >>> report.annotators[0].name, bool((report.grades == truth).mean() > 0.95)
    ('a3', True)
    """
    check_level(level)
    judged = table if isinstance(table, JudgedItems) else read_judgements(table, **columns)
    judgements = judged.judgements
    notes = [*judged.notes]
    noise: dict[str, NoiseEstimate] = {}
    votes = judgements.per_item
    p = votes / votes.sum(axis=1, keepdims=True)
    wins = np.zeros(len(p))
    dependence = None
    try:
        check_enough(judgements)
    except InvalidInputError as error:
        notes.append(f"no error rates: {error} The consensus is the majority, of a tie the lower grade.")
    else:
        fit = dawid_skene(judgements, seed=seed)
        dependence = judged_dependence(judgements, fit, level)
    if dependence is not None and dependence.is_high:
        rest = "there are no error rates, and the consensus is the majority, of a tie the lower grade"
        notes += [*dependence.reasons, f"errors are not independent: {rest}"]
    elif dependence is not None:
        noise = annotator_noise(judgements, level=level, draws=draws, seed=seed)
        p = fit.posterior
        share = np.bincount(judgements.annotator) / len(judgements)
        average = np.einsum("a,acd->cd", share, fit.matrices)
        wins = np.maximum((p[:, :, None] * average).max(axis=1).sum(axis=1) - p.max(axis=1), 0.0)
    agrees, kappa = with_majority(judgements)
    median = float(np.median([each.rate for each in noise.values()])) if noise else float("nan")
    odd = odd_sequences(judged, seed=seed)
    people = [
        _annotator(str(name), int(n), float(agrees[a]), float(kappa[a]), noise.get(str(name)), median, odd)
        for a, (name, n) in enumerate(
            zip(judgements.annotators, np.bincount(judgements.annotator), strict=True)
        )
    ]
    people.sort(key=lambda each: (-each.noise.rate if each.noise else 0.0, each.agrees, each.name))
    return AnnotatorReport(
        judged,
        agreement(judgements),
        pair_agreements(judgements),
        people,
        p.argmax(axis=1) + judged.lowest,
        p,
        np.lexsort((p.max(axis=1), -wins)),
        wins,
        bool(noise),
        notes,
        dependence,
        annotator_pairs(judged, level=level, draws=draws, seed=seed) if judged.query is not None else (),
        odd,
        level,
    )


def _annotator(
    name: str,
    n: int,
    agrees: float,
    kappa: float,
    noise: NoiseEstimate | None,
    median: float,
    odd: Sequence[OddSequence],
) -> Annotator:
    flags = [f"{each.kind} answers" for each in odd if each.name == name]
    if noise is None:
        return Annotator(name, n, agrees, kappa, None, None, None, ", ".join(flags))
    step = np.arange(noise.n_grades) - np.arange(noise.n_grades)[:, None]
    biases = np.einsum("sl,slm,lm->s", noise.proportion_draws, noise.draws, step)
    low, high = np.quantile(biases, [(1 - noise.level) / 2, (1 + noise.level) / 2])
    bias = float(biases.mean())
    words = []
    if noise.pnoise_interval[0] > USELESS or _next_to_chance(agrees, kappa, n):
        words.append("unreliable")
    elif noise.rate_interval[0] > NOISY * median:
        words.append("noisier than most")
    if abs(bias) > BIASED and low * high > 0:
        words.append("lenient" if bias > 0 else "strict")
    if n < ENOUGH_JUDGEMENTS:
        words.append("few judgements")
    words += flags
    return Annotator(name, n, agrees, kappa, noise, bias, (float(low), float(high)), ", ".join(words))


def _next_to_chance(agrees: float, kappa: float, n: int) -> bool:
    """Whether the upper end of a 95 % interval of kappa is below CHANCE."""
    if n < ENOUGH_JUDGEMENTS or not kappa < 1:
        return False
    beyond_chance = (1 - agrees) / (1 - kappa)
    margin = 1.96 * float(np.sqrt(agrees * (1 - agrees) / n)) / max(beyond_chance, 1e-9)
    return kappa + margin < CHANCE


def _votes(judged: JudgedItems) -> Array:
    """Texts such as ``0:1 2:3``: grades and how often each was given."""
    texts = np.full(len(judged.judgements.items), "", dtype=object)
    for grade, times in enumerate(judged.judgements.per_item.T):
        given = times > 0
        texts[given] += np.array([f" {grade + judged.lowest}:{n}" for n in times[given]], dtype=object)
    return np.array([text.strip() for text in texts], dtype=object)
