"""Annotators who seem to click through: the same answer on and on, or answers faster than reading takes.

Two tests, each with a stated rate of false alarms: where nobody does, the chance that anybody of all
annotators is flagged by it is at most ``alpha``.

*Constant.* A run of equal answers counts the documents in it whose grade (true, or the majority of the
others) is another one; the statistic is the largest count m. If an answer depends on the document's grade but
not on when it was asked, answers to documents of the same grade can be exchanged. p is the expected number,
among all exchanges, of stretches of equal answers that begin and end at the first and last of m documents of
other grades; the chance of a count of m or more is not larger. Errors and bias of a person are no reason for
a flag, nor are documents that come sorted. Where all answers are equal there is nothing to exchange: then p
is the chance that answers drawn from those that all people gave to the same documents would all be equal.

*Fast.* The median seconds of every five answers in a row; of these the tenth part that is fastest. People
read at different speed: flagged is who lies so far below the median annotator, in the logarithm of that tenth
or of its ratio to their own median, that it would hardly happen to anybody of as many draws from Student's t
with 5 degrees of freedom, whose tails are heavier than those of honest people's speeds; spread is measured by
the median distance from the median.
"""

from dataclasses import dataclass

import numpy as np

from cleanrank.noise.agreement import Judgements
from cleanrank.noise.annotator_pairs import reference_grades
from cleanrank.noise.judgement_table import JudgedItems
from cleanrank.types import Array, FloatArray, IntArray
from cleanrank.validation import check_number, check_seed

ALPHA = 0.01
ENOUGH_ANSWERS = 20
ENOUGH_PEOPLE = 5
ROW = 5
TAILS = 5
DRAWS = 1999
STREAM = 41_202


@dataclass(frozen=True)
class OddSequence:
    """Answers of one annotator that look as if nobody had read the documents.

    Attributes:
        name: of the annotator.
        kind: "constant" or "fast".
        reason: in words.
        p_value: of all annotators together: the chance that anybody would look so odd by chance.
    """

    name: str
    kind: str
    reason: str
    p_value: float


def odd_sequences(judged: JudgedItems, *, alpha: float = ALPHA, seed: int = 0) -> list[OddSequence]:
    """Flags annotators with constant or fast answers.

    Answers are in the order of the table or, where it says when they were given, of time.

    Args:
        judged: the judgements.
        alpha: of each of the two tests, the chance of any false alarm.
        seed: of the draws that speeds are held against.

    Returns:
        One value per flag, in the order of names; constant answers before fast ones.

    >>> from cleanrank.noise.judgement_table import read_judgements
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 3, 60)
    >>> said = {who: np.where(rng.random(60) < 0.2, rng.integers(0, 3, 60), truth) for who in "abc"}
    >>> said["d"] = np.where(np.arange(60) < 30, said["a"], 1)
    >>> [(each.name, each.reason) for each in odd_sequences(read_judgements({"item": range(60), **said}))]
    [('d', '30 answers in a row are 1, 18 of them against the reference')]
    """
    check_number("alpha", alpha, above=0, below=1)
    check_seed(seed)
    flags = [*_constant(judged, alpha), *_fast(judged, alpha, seed)]
    return sorted(flags, key=lambda each: (each.name, each.kind))


def in_order(judged: JudgedItems) -> IntArray:
    """Judgements by annotator and, within each, by time; those without a time as in the table, last."""
    who = judged.judgements.annotator
    if judged.at is None:
        return np.argsort(who, kind="stable")
    return np.lexsort((judged.at.astype(np.int64), np.isnat(judged.at), who))


def _constant(judged: JudgedItems, alpha: float) -> list[OddSequence]:
    said = judged.judgements
    people = len(said.annotators)
    reference = reference_grades(judged, "both")
    order = in_order(judged)
    flags = []
    for a, name in enumerate(said.annotators):
        own = order[said.annotator[order] == a]
        compared = own[reference[own] >= 0]
        if len(compared) < ENOUGH_ANSWERS:
            continue
        grades, known = said.grade[compared] + judged.lowest, reference[compared]
        if (said.grade[own] == said.grade[own[0]]).all():
            p, reason = _all_equal(said, own), f"all {len(own)} answers are {grades[0]}"
        else:
            against = run_disagreements(grades, known)
            last, most = int(np.argmax(against)), int(against.max())
            p = expected_runs(grades, known, most) if most else 1.0
            length = _run_length(grades, last)
            reason = f"{length} answers in a row are {grades[last]}, {most} of them against the reference"
        # Two tests a person: of runs, and of answers that are all equal.
        if 2 * people * p <= alpha:
            flags.append(OddSequence(str(name), "constant", reason, min(1.0, 2 * people * p)))
    return flags


def run_disagreements(grades: Array, reference: IntArray) -> IntArray:
    """Up to each place, in the run of equal grades that it stands in: how many are not the reference's.

    >>> run_disagreements(np.array([[1, 1, 0, 0, 0, 2]]), np.array([1, 0, 0, 1, 1, 2])).tolist()
    [[0, 1, 0, 1, 2, 0]]
    """
    differs = grades != reference
    counts = np.cumsum(differs, axis=-1)
    starts = np.ones(grades.shape, dtype=bool)
    starts[..., 1:] = grades[..., 1:] != grades[..., :-1]
    # Counts only grow: the largest one at a start so far is that of the latest start.
    return counts - np.maximum.accumulate(np.where(starts, counts - differs, 0), axis=-1)


def _run_length(grades: IntArray, place: int) -> int:
    """Of the run of equal grades around a place."""
    ends = np.flatnonzero(np.diff(grades, prepend=-1, append=-1))
    return int(ends[np.searchsorted(ends, place, side="right")] - ends[ends <= place][-1])


def expected_runs(grades: IntArray, reference: IntArray, m: int) -> float:
    """The expected number of runs with m disagreements when grades of equal reference are exchanged.

    A stretch that holds m_c of the N_c documents of reference grade c, K_c of which were given the grade g,
    is all g with probability prod_c [K_c]_{m_c} / [N_c]_{m_c}, falling factorials.

    >>> expected_runs(np.array([1, 1, 0, 0]), np.array([0, 0, 0, 0]), 2)  # 11 at three of six exchanges
    0.5
    """
    from scipy.special import gammaln

    _, reference_class = np.unique(reference, return_inverse=True)
    member = np.eye(reference_class.max() + 1)[reference_class]
    before = np.concatenate((np.zeros((1, member.shape[1])), np.cumsum(member, axis=0)))
    total, expected = before[-1], 0.0
    for grade in np.unique(grades):
        places = np.flatnonzero(reference != grade)
        first, last = places[: max(len(places) - m + 1, 0)], places[m - 1 :]
        held = before[last + 1] - before[first]
        given = member[grades == grade].sum(axis=0)
        possible = (held <= given).all(axis=1)
        left = np.maximum(given - held, 0.0)
        chance = gammaln(given + 1) - gammaln(left + 1) - gammaln(total + 1) + gammaln(total - held + 1)
        expected += float(np.exp(chance.sum(axis=1))[possible].sum())
    return expected


def _all_equal(said: Judgements, own: IntArray) -> float:
    """The chance that answers drawn from all that were given to the same items are all equal."""
    votes = said.per_item[said.item[own]]
    return float(np.prod(votes / votes.sum(axis=1, keepdims=True), axis=0).sum())


def _fast(judged: JudgedItems, alpha: float, seed: int) -> list[OddSequence]:
    order = in_order(judged)
    seconds = answer_seconds(judged, order)
    if seconds is None:
        return []
    who = judged.judgements.annotator[order]
    names, fastest, usual = [], [], []
    for a, name in enumerate(judged.judgements.annotators):
        own = seconds[(who == a) & (seconds > 0)]
        if len(own) >= ENOUGH_ANSWERS:
            names.append(str(name))
            fastest.append(fastest_tenth(own))
            usual.append(float(np.median(own)))
    if len(names) < ENOUGH_PEOPLE:
        return []
    rng = np.random.default_rng((seed, STREAM))
    drawn = _below_median(rng.standard_t(TAILS, size=(DRAWS, len(names)))).max(axis=1)
    speeds = np.log(np.stack((fastest, np.divide(fastest, usual))))
    below = _below_median(speeds).max(axis=0)  # of two statistics, so that p-values count twice
    p_values = np.minimum(2 * (1 + (drawn[:, None] >= below).sum(axis=0)) / (1 + DRAWS), 1.0)
    median = float(np.median(fastest))
    return [
        OddSequence(
            names[i],
            "fast",
            f"a tenth takes {fastest[i]:.1f} seconds or less, half {usual[i]:.1f}; the median annotator's "
            f"tenth {median:.1f}",
            float(p_values[i]),
        )
        for i in np.flatnonzero(p_values <= alpha)
    ]


def answer_seconds(judged: JudgedItems, order: IntArray) -> FloatArray | None:
    """Seconds of judgements in ``order``: as the table says, else between two in a row of one annotator."""
    if judged.seconds is not None:
        return judged.seconds[order]
    if judged.at is None:
        return None
    who = judged.judgements.annotator[order]
    steps = np.diff(judged.at[order]).astype("timedelta64[ns]")
    passed = np.where(np.isnat(steps), np.nan, steps.astype(np.float64) / 1e9)
    return np.concatenate(([np.nan], np.where(who[1:] == who[:-1], passed, np.nan)))


def fastest_tenth(seconds: FloatArray) -> float:
    """The tenth part of medians of ROW answers in a row.

    >>> fastest_tenth(np.array([9.0, 8, 9, 9, 9, 1, 1, 1, 7, 7]))
    1.0
    """
    rows = len(seconds) // ROW
    medians = np.median(seconds[: rows * ROW].reshape(rows, ROW), axis=1)
    return float(np.quantile(medians, 0.1, method="inverted_cdf"))


def _below_median(values: FloatArray) -> FloatArray:
    """How far values lie below their median, in median distances from it."""
    below = np.median(values, axis=-1, keepdims=True) - values
    spread = np.median(np.abs(below), axis=-1, keepdims=True)
    return np.where(below > 0, below / np.maximum(spread, 1e-12), 0.0)
