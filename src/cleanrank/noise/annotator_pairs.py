"""pNoise of every annotator, counted on the pairs of documents that they graded differently, and who stays.

What an annotator says is held against true grades where they are known (gold questions mixed into the work,
a column of true grades) and else against the majority of the others, themselves left out. Counts are summed
over queries; intervals come from a bootstrap over queries.

Somebody who judges on a finer scale than the reference, or ranks the best k, must put documents of equal
true grade in some order. Such new-come pairs count one half each, so that even a perfect annotator has

    floor = pNoise of the same grades, given to the documents of every query in their true order.

With k places and R <= k relevant documents of n this is (1 - R (n - R) / N) / 2, N = k (k - 1) / 2 + k (n -
k). On a scale no finer than the reference's the floor is 0. pNoise - floor is what errors add; it is at most
1/2 - floor, so thresholds apply to the share of that, half of it being guesses:

    corrected = (pNoise - floor) / (1 - 2 floor):  0 for a perfect annotator, 1/2 for one who guesses.

The floor takes every new-come pair of a finer scale for fineness, though errors make such pairs too. So
between 0 and 1/2 a finer scale looks better than a coarser one with as many errors: compare people of one
scale. The *wrong order* needs no floor, as it counts the pairs of different true grades alone:

    wrong order = (inverse + given equal grades / 2) / all pairs of different true grades = 1 - AUC for two.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cleanrank.errors import invalid
from cleanrank.noise.agreement import Judgements, majority_of_others
from cleanrank.noise.estimate import check_level
from cleanrank.noise.judgement_table import JudgedItems
from cleanrank.noise.pair_noise import pnoise
from cleanrank.types import FloatArray, IntArray
from cleanrank.validation import check_integer, check_number, check_seed, one_of

REFERENCES = {
    "auto": "gold where everybody has enough pairs with true grades, else both",
    "gold": "true grades alone",
    "majority": "the majority of the others alone",
    "both": "true grades where they are known, elsewhere the majority of the others",
}
LEAST_QUERIES = 5  # fewer make no interval
LEAST_PAIRS = 20  # with true grades on both sides, for an annotator to be held against these alone
STREAM = 41_201


@dataclass(frozen=True)
class AnnotatorPairs:
    """The pairs of documents that one annotator graded differently.

    Attributes:
        name: of the annotator.
        queries: with such a pair.
        pairs: how many.
        gold_items: judged items whose true grade is known.
        pnoise: the share of wrong pairs, new-come ones counting one half; NaN without a pair.
        floor: the pNoise of a perfect annotator on the same scale.
        corrected: (pnoise - floor) / (1 - 2 floor).
        wrong_order: of the pairs of different true grades, those in the wrong order; ties count one half.
        pnoise_interval: over queries; NaN with fewer than 5 of them.
        corrected_interval: the same.
    """

    name: str
    queries: int
    pairs: int
    gold_items: int
    pnoise: float
    floor: float
    corrected: float
    wrong_order: float
    pnoise_interval: tuple[float, float]
    corrected_interval: tuple[float, float]

    @property
    def is_unsure(self) -> bool:
        """Whether there is no interval, with fewer than 5 queries or no pair."""
        return bool(np.isnan(self.corrected_interval[0]))

    @property
    def excess(self) -> float:
        """What errors add: pnoise - floor."""
        return self.pnoise - self.floor


@dataclass(frozen=True)
class Filtered:
    """Who stays, and who was dropped and why."""

    kept: tuple[str, ...]
    dropped: Mapping[str, str] = field(default_factory=dict)


def annotator_pairs(
    judged: JudgedItems,
    *,
    against: str = "auto",
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> list[AnnotatorPairs]:
    """Measures the pNoise of every annotator, the worst first.

    Args:
        judged: judgements of items that have queries.
        against: one of REFERENCES.
        level: probability that an interval is meant to hold.
        draws: resamples of queries.
        seed: of the resamples.

    Returns:
        One value per annotator, by falling corrected pNoise; those without an interval last.

    >>> from cleanrank.noise.judgement_table import read_judgements
    >>> table = {"query": [1, 1, 1, 2, 2], "doc": [1, 2, 3, 1, 2], "truth": [0, 1, 2, 0, 1]}
    >>> judged = read_judgements(table | {"ann": [0, 1, 2, 0, 1], "bob": [0, 2, 1, 1, 0]})
    >>> [(each.name, each.pairs, each.pnoise) for each in annotator_pairs(judged)]
    [('bob', 4, 0.5), ('ann', 4, 0.0)]
    """
    check_level(level)
    check_integer("draws", draws, least=1)
    check_seed(seed)
    query = judged.query
    if query is None:
        remedy = "Give the columns of query and document; pairs across queries mean nothing."
        raise invalid("pNoise of annotators", "needs the query of every item", "none", remedy=remedy)
    said = judged.judgements
    reference = reference_grades(judged, against)
    rows = np.flatnonzero(reference >= 0)
    of_group, group = _groups(said, query, rows)
    counts, perfect, ordered = _counts(reference[rows], said.grade[rows], group)
    finer = _grades_used(said.grade, said.annotator, len(said.annotators)) > len(np.unique(reference[rows]))
    gold = np.zeros(len(said.annotators), dtype=np.int64)
    if judged.truth is not None:
        np.add.at(gold, said.annotator, judged.truth[said.item] >= 0)
    people = []
    for a, name in enumerate(said.annotators):
        own = of_group == a
        wrong_order = float(_noises(ordered[own].sum(axis=0), np.zeros(3, dtype=np.int64))[0])
        own[own] = counts[own].sum(axis=1) > 0
        floors = perfect[own] if finer[a] else np.zeros((int(own.sum()), 3), dtype=np.int64)
        rng = np.random.default_rng((seed, STREAM, a))
        people.append(_summary(str(name), counts[own], floors, wrong_order, int(gold[a]), level, draws, rng))
    return sorted(people, key=lambda each: (each.is_unsure, np.nan_to_num(-each.corrected, nan=1), each.name))


def reference_grades(judged: JudgedItems, against: str = "auto") -> IntArray:
    """What each judgement is held against, on the scale of the table; -1 where nothing is known.

    Args:
        judged: the judgements.
        against: one of REFERENCES. The majority of the others must be clear: a tie says nothing.
    """
    one_of("reference of annotators", against, REFERENCES)
    said = judged.judgements
    gold = np.full(len(said), -1, dtype=np.int64)
    if judged.truth is not None:
        gold = np.where(judged.truth >= 0, judged.truth, -1)[said.item]
    if against == "gold" and not (gold >= 0).any():
        raise invalid("the reference 'gold'", "needs items whose true grade is known", "none")
    if against == "gold" or (against == "auto" and _enough_gold(judged, gold)):
        return gold
    majority = majority_of_others(said)
    majority = np.where(majority >= 0, majority + judged.lowest, -1)
    known = (gold >= 0) & (against != "majority")
    return np.where(known, gold, majority)


def _enough_gold(judged: JudgedItems, gold: IntArray) -> bool:
    """Whether every annotator has LEAST_PAIRS pairs of different grades whose true grades are known."""
    said, query = judged.judgements, judged.query
    rows = np.flatnonzero(gold >= 0)
    if query is None or not len(rows):
        return False
    of_group, group = _groups(said, query, rows)
    pairs = _counts(gold[rows], said.grade[rows], group)[0].sum(axis=1)
    each = np.bincount(of_group, weights=pairs, minlength=len(said.annotators))
    return bool((each >= LEAST_PAIRS).all())


def _groups(said: Judgements, query: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """One group per annotator and query: the annotator of each, and the group of each judgement in rows."""
    n_queries = query.max() + 1
    groups, group = np.unique(said.annotator[rows] * n_queries + query[said.item[rows]], return_inverse=True)
    return groups // n_queries, group


def _counts(reference: IntArray, grade: IntArray, group: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Pairs of every group, (G, 3) each.

    Returns:
        Correct, inverse and new-come ones; the same with the grades given in true order; and among those of
        different reference grades the correct, inverse and tied ones.
    """
    indptr = np.concatenate(([0], np.cumsum(np.bincount(group))))
    by_reference, by_grade = np.lexsort((reference, group)), np.lexsort((grade, group))
    pairs = (
        (reference[by_reference], grade[by_reference]),
        (reference[by_reference], grade[by_grade]),
        (grade[by_reference], reference[by_reference]),
    )
    counts, perfect, ordered = (pnoise(true, given, indptr).counts.T for true, given in pairs)
    return counts, perfect, ordered


def _grades_used(grade: IntArray, annotator: IntArray, n: int) -> IntArray:
    """Different grades that every annotator gave."""
    pairs = np.unique(np.stack((annotator, grade)), axis=1)
    return np.bincount(pairs[0], minlength=n)


def _summary(
    name: str,
    counts: IntArray,
    floors: IntArray,
    wrong_order: float,
    gold: int,
    level: float,
    draws: int,
    rng: np.random.Generator,
) -> AnnotatorPairs:
    queries = len(counts)
    noise, floor, corrected = (
        float(v[0]) for v in _noises(counts.sum(axis=0)[None], floors.sum(axis=0)[None])
    )
    own = ends = (float("nan"), float("nan"))
    if queries >= LEAST_QUERIES:
        times = rng.multinomial(queries, np.full(queries, 1 / queries), size=draws)
        drawn = _noises(times @ counts, times @ floors)
        tails = expanded_tails(level, queries)
        own, ends = (
            (float(low), float(high)) for low, high in (np.nanquantile(drawn[i], tails) for i in (0, 2))
        )
    pairs = int(counts.sum())
    return AnnotatorPairs(name, queries, pairs, gold, noise, floor, corrected, wrong_order, own, ends)


def expanded_tails(level: float, n: int) -> tuple[float, float]:
    """Where to cut a bootstrap over n units, wider than (1 -+ level) / 2 since n units spread too little.

    tails = Phi(-+ t sqrt(n / (n - 1))), t the quantile of Student's t with n - 1 degrees of freedom.

    Hesterberg (2015), What Teachers Should Know About the Bootstrap.

    >>> [round(tail, 4) for tail in expanded_tails(0.95, 20)]
    [0.0159, 0.9841]
    """
    from scipy.stats import norm, t

    z = t.ppf((1 + level) / 2, n - 1) * np.sqrt(n / (n - 1))
    return float(norm.cdf(-z)), float(norm.cdf(z))


def _noises(counts: IntArray, floors: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """pNoise, floor and corrected pNoise of counts (..., 3)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        noise = (counts[..., 1] + counts[..., 2] / 2) / counts.sum(axis=-1)
        floor = np.where(floors.any(axis=-1), floors[..., 2] / 2 / np.maximum(floors.sum(axis=-1), 1), 0.0)
        corrected = np.where(floor < 0.5, (noise - floor) / (1 - 2 * floor), np.nan)
    return noise, floor, corrected


def filter_annotators(
    people: Sequence[AnnotatorPairs], *, above: float | None = None, keep: int | None = None
) -> Filtered:
    """Who stays.

    Args:
        people: of ``annotator_pairs``.
        above: drop those whose corrected pNoise is above this beyond doubt, that is, with the lower end of
            its interval; who has no interval stays.
        keep: or keep so many, those with the least corrected pNoise; who has no interval goes first.

    Returns:
        Names of those who stay, in alphabetical order, and for the others the reason in words.

    >>> pairs = AnnotatorPairs("bob", 9, 300, 0, 0.47, 0.0, 0.47, 0.47, (0.43, 0.51), (0.43, 0.51))
    >>> filter_annotators([pairs], above=0.4).dropped
    {'bob': 'pNoise 0.47 [0.43, 0.51] is above 0.4'}
    """
    if (above is None) == (keep is None):
        got = "neither" if keep is None else "both"
        raise invalid("a filter of annotators", "needs either above or keep", got)
    dropped = {}
    if above is not None:
        check_number("above", above, least=0, most=1)
        dropped = {
            each.name: f"{_words(each)} is above {above:g}"
            for each in people
            if each.corrected_interval[0] > above
        }
    if keep is not None:
        check_integer("keep", keep, least=1)
        best = sorted(
            people, key=lambda each: (each.is_unsure, np.nan_to_num(each.corrected, nan=1), each.name)
        )
        dropped = {each.name: f"{_words(each)} is not among the best {keep}" for each in best[keep:]}
    return Filtered(tuple(sorted(each.name for each in people if each.name not in dropped)), dropped)


def _words(each: AnnotatorPairs) -> str:
    if np.isnan(each.corrected):
        return "pNoise, which no pair tells,"
    low, high = each.corrected_interval
    ends = "" if np.isnan(low) else f" [{low:.2f}, {high:.2f}]"
    what = "pNoise" if each.floor == 0 else f"pNoise, corrected for a floor of {each.floor:.2f},"
    return f"{what} {each.corrected:.2f}{ends}"
