"""Grades and balance: merge grades, sample queries to given proportions, find the best proportions.

The derived sets of Niu et al. (2014, 2015) are such merges and samples; ``DERIVED`` lists them by name.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from cleanrank.errors import invalid
from cleanrank.noise.pair_noise import pnoise_expected, pnoise_matrices
from cleanrank.noise.profiles import NoiseProfile, make_profile, proportions_of
from cleanrank.ragged import query_of_row
from cleanrank.types import Array, FloatArray, IntArray, RankingData
from cleanrank.validation import check_integer, one_of

Merge: TypeAlias = Sequence[Sequence[int]] | Mapping[int, int]
SHORT = ("drop", "take")
STARTS = 24
MOST_GRADES = 256


@dataclass(frozen=True, eq=False)
class Resampled:
    """A sample of every query, and what could not be sampled.

    Attributes:
        data: the sample.
        counts: documents of each grade that a query should have.
        short: ids of the queries that lack documents of some grade.
        available: documents of each grade those queries have, one row for each.
        kept_short: whether those queries are in ``data`` with what they have, or left out.
    """

    data: RankingData
    counts: tuple[int, ...]
    short: Array
    available: IntArray
    kept_short: bool
    seed: int

    def __repr__(self) -> str:
        if not self.counts:
            return f"Resampled({self.data.n_queries:,} queries, all documents, {self.data.n_grades} grades)"
        fate = "kept with what they have" if self.kept_short else "left out"
        counts = "+".join(str(c) for c in self.counts)
        return (
            f"Resampled({self.data.n_queries:,} queries of {counts} documents, seed {self.seed}; "
            f"{len(self.short):,} with too few {fate})"
        )


@dataclass(frozen=True)
class BestProportions:
    """The proportions of grades at which noise turns the fewest pairs wrong.

    ``balanced`` is pNoise when all grades have the same share; ``counts`` go with a list length.
    """

    proportions: tuple[float, ...]
    pnoise: float
    balanced: float
    counts: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Derived:
    """How a derived set comes from its source: grades merged, then documents of each grade per query."""

    source: str
    merge: tuple[tuple[int, ...], ...] | None = None
    counts: tuple[int, ...] | None = None


def check_few_grades(data: RankingData) -> None:
    """Refuses grades of 256 and more: matrices and models of grades grow with the highest one."""
    if data.n_grades > MOST_GRADES:
        remedy = "Give real-valued relevance as gains= and few grades as labels, or merge_grades first."
        raise invalid(
            "labels", f"must be grades below {MOST_GRADES}", data.n_grades - 1,
            at=data.place(int(data.y.argmax())), remedy=remedy,
        )  # fmt: skip


def merge_grades(data: RankingData, mapping: Merge) -> RankingData:
    """Gives several grades one grade: groups listed from the lowest new grade, or a mapping old -> new.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((5, 1)), [0, 1, 2, 3, 4], qid=[1] * 5)
    >>> merge_grades(data, [[0, 1], [2, 3, 4]]).y.tolist()
    [0, 0, 1, 1, 1]
    """
    if isinstance(mapping, Mapping):
        pairs = [(int(old), int(new)) for old, new in mapping.items()]
    else:
        pairs = [(int(old), new) for new, group in enumerate(mapping) for old in group]
    new_grade: dict[int, int] = {}
    for old, new in pairs:
        if old in new_grade:
            raise invalid("mapping", "must name every grade once", f"{old} twice")
        if old < 0 or new < 0:
            raise invalid("mapping", "must go from and to grades >= 0", f"{old} -> {new}")
        new_grade[old] = new
    present = np.unique(data.y)
    missing = [int(g) for g in present if int(g) not in new_grade]
    if missing:
        raise invalid("mapping", f"must say what becomes of every grade in the data ({missing})", dict(pairs))
    table = np.array([new_grade.get(g, 0) for g in range(data.n_grades)], dtype=np.int32)
    return data.with_labels(table[data.y])


def resample(
    data: RankingData,
    counts: Sequence[int] | None = None,
    *,
    proportions: Sequence[float] | None = None,
    size: int | None = None,
    short: str = "drop",
    seed: int = 0,
) -> Resampled:
    """Samples every query to the same number of documents of each grade, without replacement.

    Args:
        data: what to sample from.
        counts: documents of each grade in a query, lowest grade first.
        proportions: instead of ``counts``, shares of the grades, with ``size``; rounded by largest remainder.
        size: documents in a query.
        short: a query that lacks documents of some grade is left out ("drop") or kept with what it has
            ("take"); either way it is listed in the result.
        seed: same seed, same sample; rows keep their order and their row_ids.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((6, 1)), [0, 0, 0, 1, 0, 0], group=[4, 2])
    >>> resample(data, proportions=[2, 1], size=3)
    Resampled(1 queries of 2+1 documents, seed 0; 1 with too few left out)
    """
    one_of("treatment of short queries", short, SHORT)
    target = _counts(counts, proportions, size)
    grades = max(len(target), data.n_grades)
    limit = np.zeros(grades, dtype=np.int64)
    limit[: len(target)] = target
    cell = query_of_row(data.indptr) * grades + data.y
    has = data.grade_counts(grades)
    lacking = (has < limit).any(axis=1)
    draws = np.random.default_rng(seed).random(data.n_docs)
    order = np.lexsort((draws, cell))
    starts = np.concatenate(([0], np.cumsum(has.ravel())))[:-1]
    place = np.empty(data.n_docs, dtype=np.int64)
    place[order] = np.arange(data.n_docs) - starts[cell[order]]
    keep = place < limit[data.y]
    if short == "drop":
        keep &= ~np.repeat(lacking, data.lengths)
    if not keep.any():
        remedy = "Ask for fewer documents or say short='take'."
        raise invalid("resampling", "must keep a query", "none that has enough documents", remedy=remedy)
    available = has[lacking][:, : len(target)]
    return Resampled(
        data.select(keep), tuple(target), data.query_ids[lacking], available, short == "take", seed
    )


def derive(data: RankingData, name: str, *, seed: int = 0, short: str = "drop") -> Resampled:
    """A derived set of Niu et al. by its name in ``DERIVED``; ``data`` is its source.

    The papers draw five samples: seeds 0 to 4. Test data stay as they are.
    """
    recipe = DERIVED[one_of("derived set", name, DERIVED)]
    merged = data if recipe.merge is None else merge_grades(data, recipe.merge)
    if recipe.counts is not None:
        return resample(merged, recipe.counts, short=short, seed=seed)
    none = np.zeros((0, merged.n_grades), dtype=np.int64)
    return Resampled(merged, (), merged.query_ids[:0], none, False, seed)


def best_proportions(
    profile: str | NoiseProfile,
    n_grades: int | None = None,
    *,
    rate: float | None = None,
    length: int | None = None,
    options: Mapping[str, object] | None = None,
) -> BestProportions:
    """The proportions of true grades that make pNoise smallest, by numerical search from many starts.

    A share may come out as 0: then the scale is better without that grade.

    Args:
        profile: a NoiseProfile, or the name of a family with ``n_grades`` and ``rate``.
        n_grades: C, with a name.
        rate: the noise rate, with a name.
        length: documents in a query; the answer is then whole numbers of documents.
        options: further arguments of the family.

    >>> best = best_proportions("uniform", 3, rate=0.1)
    >>> [round(share, 2) for share in best.proportions], round(best.pnoise, 4), round(best.balanced, 4)
    ([0.39, 0.22, 0.39], 0.0797, 0.0821)
    """
    if not isinstance(profile, NoiseProfile):
        if n_grades is None:
            raise invalid("n_grades", "must be given with the name of a profile")
        profile = make_profile(profile, rate, n_grades, options)
    elif n_grades is not None or rate is not None or options:
        raise invalid("n_grades, rate and options", "go with a named profile, not with a matrix")
    C = profile.n_grades
    even = np.full(C, 1 / C)
    best = _smallest(profile, C)
    counts = None
    if length is not None:
        counts = _whole(profile, best, length)
        best = np.array(counts) / length
    value = pnoise_expected(profile, best, length=length)
    balanced = pnoise_expected(profile, even, length=length)
    return BestProportions(tuple(float(b) for b in best), value, balanced, counts)


def _counts(counts: Sequence[int] | None, proportions: Sequence[float] | None, size: int | None) -> list[int]:
    if (counts is None) == (proportions is None) or (size is None) != (proportions is None):
        raise invalid("resampling", "needs either `counts`, or `proportions` and `size`")
    if counts is not None:
        sizes = np.asarray(counts)
        if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any() or not sizes.any():
            raise invalid("counts", "must list documents of each grade, whole and not all 0", counts)
        return [int(c) for c in sizes]
    size = check_integer("size", size, least=1)
    exact = proportions_of(np.asarray(proportions)) * size
    whole = np.floor(exact + 1e-9).astype(int)
    by_remainder = np.argsort(-(exact - whole), kind="stable")
    whole[by_remainder[: size - int(whole.sum())]] += 1
    return [int(c) for c in whole]


def _smallest(profile: NoiseProfile, C: int) -> FloatArray:
    """Minimises r'Dr / r'Ar over the simplex from many starts; balanced proportions if nothing beats them."""
    from scipy.optimize import minimize

    A, D = (matrix + matrix.T for matrix in pnoise_matrices(profile))

    def value(r: FloatArray) -> tuple[float, FloatArray]:
        top, bottom = r @ D @ r, r @ A @ r
        if bottom <= 0:  # no pair left: worse than any
            return 1.0, np.zeros(C)
        return float(top / bottom), 2 * (D @ r * bottom - A @ r * top) / bottom**2

    even = np.full(C, 1 / C)
    if not even @ A @ even > 0:
        return even
    rng = np.random.default_rng(0)
    starts = [even, *(0.98 * rng.dirichlet(np.ones(C), size=STARTS) + 0.02 / C)]
    best, lowest = even, value(even)[0]
    settings: dict[str, Any] = {
        "jac": True,
        "method": "SLSQP",
        "bounds": [(0.0, 1.0)] * C,
        "constraints": {"type": "eq", "fun": lambda r: r.sum() - 1, "jac": lambda r: np.ones(C)},
        "options": {"ftol": 1e-14, "maxiter": 500},
    }
    for start in starts:
        minimum = minimize(value, start, **settings).x
        shares = np.where(minimum < 1e-6, 0.0, minimum)
        shares /= shares.sum()
        reached = value(shares)[0]
        if np.isfinite(reached) and reached < lowest - 1e-10:
            best, lowest = shares, reached
    return best


def _whole(profile: NoiseProfile, shares: FloatArray, length: int) -> tuple[int, ...]:
    """Whole documents near the shares, improved by moving one document at a time."""
    check_integer("length", length, least=2)

    def value(counts: IntArray) -> float:
        expected = pnoise_expected(profile, counts, length=length)
        return expected if np.isfinite(expected) else 1.0

    counts = np.array(_counts(None, list(shares), length))
    lowest = value(counts)
    improved = True
    while improved:
        improved = False
        for take, give in itertools.permutations(range(len(counts)), 2):
            if not counts[take]:
                continue
            counts[take] -= 1
            counts[give] += 1
            reached = value(counts)
            if reached < lowest - 1e-12:
                lowest, improved = reached, True
            else:
                counts[take] += 1
                counts[give] -= 1
    return tuple(int(c) for c in counts)


DERIVED: dict[str, Derived] = {
    "OHSUMED2G": Derived("ohsumed", merge=((0,), (1, 2))),
    "MSLR2G": Derived("mslr-web10k", merge=((0, 1), (2, 3, 4))),
    "TD2003P1": Derived("td2003", counts=(8, 8)),
    "TD2003P7": Derived("td2003", counts=(14, 2)),
    "MSLR2GP5": Derived("mslr-web10k", merge=((0, 1), (2, 3, 4)), counts=(85, 17)),
    "MSLR2GP50": Derived("mslr-web10k", merge=((0, 1), (2, 3, 4)), counts=(100, 2)),
}
