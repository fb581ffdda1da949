"""pNoise: the share of document pairs that label noise turns wrong (Niu et al. 2014, 2015).

A pair counts when its two *given* grades differ. It is *correct* when the true grades differ the same way,
*inverse* when they differ the other way, and *new-come* when they are equal:

    pNoise = (N_inverse + w N_new) / N_all,  w = 1/2.

T and r are a noise matrix and the proportions of the true grades.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.noise.profiles import NoiseProfile, make_profile, proportions_of
from cleanrank.types import FloatArray, IntArray
from cleanrank.validation import one_of

WEIGHTINGS = ("pooled", "macro")
KINDS = (np.uint8, np.int32, np.int64)


@dataclass(frozen=True)
class PairNoise:
    """How many pairs noise left correct, turned round or made up; ``float(...)`` is the ratio.

    ``counts`` holds the correct, inverse and new-come pairs of every query, shape (3, Q).
    """

    value: float
    correct: int
    inverse: int
    new_come: int
    new_weight: float
    weighting: str
    counts: IntArray = field(repr=False, compare=False)

    @property
    def total(self) -> int:
        """Pairs whose given grades differ."""
        return self.correct + self.inverse + self.new_come

    @property
    def per_query(self) -> FloatArray:
        """Each query's ratio; NaN where no pair has different given grades."""
        return _ratios(self.counts, self.new_weight)

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return (
            f"PairNoise({self.value:.4f} {self.weighting}: {self.correct:,} correct, "
            f"{self.inverse:,} inverse, {self.new_come:,} new-come at weight {self.new_weight:g})"
        )


def pnoise(
    true: npt.ArrayLike,
    given: npt.ArrayLike,
    indptr: npt.ArrayLike | None = None,
    *,
    new_weight: float = 0.5,
    weighting: str = "pooled",
    n_jobs: int | None = None,
) -> PairNoise:
    """Measures pNoise from true and given grades in O(n + C^2) a query, without looking at pairs.

    Queries with grades above 7 take O(n log n), whatever the scale.

    Args:
        true: true grades, row by row.
        given: noisy grades of the same rows.
        indptr: row offsets of the queries; without it all rows are one query.
        new_weight: what a new-come pair counts.
        weighting: "pooled" divides sums over queries, "macro" averages the queries' ratios.
        n_jobs: threads, for millions of rows; fewer are counted on one.

    >>> pnoise([0, 0, 1, 1], [0, 1, 0, 1])
    PairNoise(0.5000 pooled: 1 correct, 1 inverse, 2 new-come at weight 0.5)
    """
    from cleanrank.jit import threads
    from cleanrank.noise._pair_counts import SERIAL, pair_counts

    one_of("weighting", weighting, WEIGHTINGS)
    if not 0 <= new_weight <= 1:
        raise invalid("new_weight", "must lie in [0, 1]", new_weight)
    before, after = _alike(_grades("true", true), _grades("given", given))
    if before.shape != after.shape:
        raise invalid("given", f"must have as many grades as true ({len(before)})", len(after))
    offsets = _offsets(indptr, len(before))
    few = n_jobs is None and len(before) < SERIAL
    with nullcontext() if few else threads(n_jobs):
        counts = pair_counts(before, after, offsets)
    if counts[0].min(initial=0) < 0:
        _refuse(*(("true", before) if (before < 0).any() else ("given", after)))
    return _summary(counts, new_weight, weighting)


def pnoise_expected(
    profile: NoiseProfile | npt.ArrayLike,
    proportions: npt.ArrayLike,
    *,
    length: int | None = None,
    new_weight: float = 0.5,
) -> float:
    """The closed form of pNoise for a noise matrix T and proportions r of the true grades.

    With G(l, j) = P(given grade of l > given grade of j) and A = G + G', pairs of true grades l < j are wrong
    with probability G(l, j), pairs of equal grade are new-come with probability A(l, l):

        pNoise = [sum_l r_l^2/2 w A(l,l) + sum_{l<j} r_l r_j G(l,j)] / [the same with A].

    For lists of n documents r_l^2/2 becomes r_l (r_l - 1/n)/2.

    >>> from cleanrank.noise.profiles import uniform
    >>> round(pnoise_expected(uniform(0.1, 3), [70, 16, 14]), 4)
    0.1237
    """
    T = profile.matrix if isinstance(profile, NoiseProfile) else NoiseProfile(np.asarray(profile)).matrix
    r = proportions_of(proportions, len(T))
    if not 0 <= new_weight <= 1:
        raise invalid("new_weight", "must lie in [0, 1]", new_weight)
    if length is not None and length < 2:
        raise invalid("length", "must be at least 2 documents a query", length)
    above = np.tril(np.ones_like(T), -1)
    G = T @ above @ T.T
    A = G + G.T
    same = r * np.maximum(r - (0.0 if length is None else 1 / length), 0.0) / 2
    other = np.triu(np.outer(r, r), 1)
    pairs = same @ np.diag(A) + (other * A).sum()
    if pairs <= 0:
        return float("nan")
    return float((new_weight * (same @ np.diag(A)) + (other * G).sum()) / pairs)


def pnoise_curve(
    proportions: npt.ArrayLike,
    rates: npt.ArrayLike,
    profile: str = "uniform",
    *,
    length: int | None = None,
    new_weight: float = 0.5,
    options: Mapping[str, Any] | None = None,
) -> FloatArray:
    """The closed form of pNoise at several rates of document noise.

    Args:
        proportions: shares of the true grades.
        rates: probabilities that a document's grade changes.
        profile: the name of a family.
        length: documents per query; None means long lists.
        new_weight: what a new-come pair counts.
        options: further arguments of the family; with ``row_weights`` the proportions are these.

    >>> pnoise_curve([0.5, 0.5], [0.0, 0.1, 0.2]).round(12).tolist()
    [0.0, 0.1, 0.2]
    """
    r = proportions_of(proportions)
    chosen = dict(options or {})
    if "row_weights" in chosen:
        chosen.setdefault("proportions", r)

    def at(rate: float) -> float:
        found = make_profile(profile, float(rate), len(r), chosen)
        return pnoise_expected(found, r, length=length, new_weight=new_weight)

    return np.array([at(rate) for rate in np.atleast_1d(np.asarray(rates, dtype=np.float64))])


def signal_left(pair_noise: float | PairNoise) -> float:
    """The share of AUC's signal that noisy pairs keep, 1 - 2 pNoise; 0 at pNoise 1/2.

    >>> signal_left(0.25)
    0.5
    """
    return 1 - 2 * float(pair_noise)


_BLOCK = 1 << 20


def composition(counts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Pairs of equal grade (C,) and of grades l < j (C, C, upper triangle) from grade counts (Q, C).

    >>> same, other = composition(np.array([[2, 1], [0, 3]]))
    >>> same.tolist(), other.tolist()
    ([1.0, 3.0], [[0.0, 2.0], [0.0, 0.0]])
    """
    n = counts.astype(np.float64)
    return (n * (n - 1) / 2).sum(axis=0), np.triu(n.T @ n, 1)


def pooled_pnoise(
    matrix: npt.ArrayLike, same: FloatArray, other: FloatArray, *, new_weight: float = 0.5
) -> float:
    """Expected wrong pairs over expected pairs, summed over queries of a given composition."""
    G, A = _orders(np.asarray(matrix, dtype=np.float64))
    new = float(same @ np.diag(A))
    pairs = new + float((other * A).sum())
    return (new_weight * new + float((other * G).sum())) / pairs if pairs > 0 else float("nan")


def query_pnoise(matrix: npt.ArrayLike, counts: IntArray, *, new_weight: float = 0.5) -> FloatArray:
    """The same ratio for every query alone; NaN where a query expects no pair of different given grades."""
    G, A = _orders(np.asarray(matrix, dtype=np.float64))
    own = np.diag(A)
    ratios = np.empty(len(counts))
    rows = max(1, _BLOCK // counts.shape[1] ** 2)
    for start in range(0, len(counts), rows):
        n = counts[start : start + rows].astype(np.float64)
        new = (n * (n - 1) / 2) @ own
        wrong = np.einsum("ql,lj,qj->q", n, np.triu(G, 1), n)
        every = new + np.einsum("ql,lj,qj->q", n, np.triu(A, 1), n)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios[start : start + rows] = (new_weight * new + wrong) / every
    return ratios


def _orders(T: FloatArray) -> tuple[FloatArray, FloatArray]:
    G = T @ np.tril(np.ones_like(T), -1) @ T.T
    return G, G + G.T


def new_come_share(
    scores: npt.ArrayLike,
    true: npt.ArrayLike,
    indptr: npt.ArrayLike,
    *,
    given: npt.ArrayLike | None = None,
    ties: float = 0.0,
    pairs: int = 10_000,
    seed: int = 0,
) -> float:
    """Among pairs of equal true grade, the share whose first document a ranker scores higher.

    Near 1/2 the ranker has no opinion on such pairs, the reason for counting a new-come pair one half
    (Niu et al. 2015, Table 2, sampled pairs). But the first of a random pair is as likely to win as to lose,
    so that share is (1 - share of tied scores) / 2 for any ranker whatever. With ``given`` the check can
    fail: it takes every pair that noise has made up, the document of higher given grade first. Well above
    1/2, judges' errors follow the features, and new-come pairs are less wrong than one half.

    Args:
        scores: a ranker's scores.
        true: true grades.
        indptr: row offsets of the queries.
        given: noisy grades.
        ties: what a pair of equal scores counts; the paper's figures count it 0.
        pairs: how many to sample without ``given``.
        seed: same seed, same sample.

    >>> new_come_share([3.0, 2.0, 1.0], [0, 0, 1], [0, 3], given=[1, 0, 1])
    1.0
    """
    from cleanrank.noise._pair_counts import pair_counts

    found, grades = np.asarray(scores, dtype=np.float64), _grades("true", true)
    offsets = _offsets(indptr, len(grades))
    if found.shape != grades.shape or np.isnan(found).any():
        raise invalid(
            "scores", f"must hold a number for each of the {len(grades)} rows", f"shape {found.shape}"
        )
    order, groups = _equal_grades(grades, offsets)
    if given is not None:
        after = _grades("given", given)
        if after.shape != grades.shape:
            raise invalid("given", f"must have as many grades as true ({len(grades)})", len(after))
        place = np.unique(found, return_inverse=True)[1]
        counts = pair_counts(*_alike(place[order], after[order]), groups)
        won, lost, tied = counts.sum(axis=1)
        if not won + lost + tied:
            raise invalid("data", "must have a pair of equal true and different given grades", "none")
        return float((won + ties * tied) / (won + lost + tied))
    sizes = np.diff(groups)
    possible = sizes * (sizes - 1)
    if not possible.sum():
        raise invalid("data", "must have two documents of equal grade in some query", "none")
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(sizes), size=pairs, p=possible / possible.sum())
    first = (rng.random(pairs) * sizes[chosen]).astype(np.int64)
    second = (first + 1 + (rng.random(pairs) * (sizes[chosen] - 1)).astype(np.int64)) % sizes[chosen]
    a, b = found[order[groups[chosen] + first]], found[order[groups[chosen] + second]]
    return float(np.mean((a > b) + ties * (a == b)))


def _equal_grades(grades: npt.NDArray[np.integer], indptr: IntArray) -> tuple[IntArray, IntArray]:
    """Rows sorted by query and grade, and the offsets of the runs of equal query and grade."""
    query = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((grades, query))
    query, sorted_grades = query[order], grades[order]
    new = (query[1:] != query[:-1]) | (sorted_grades[1:] != sorted_grades[:-1])
    return order, np.concatenate(([0], np.flatnonzero(new) + 1, [len(order)])).astype(np.int64)


def _grades(name: str, values: npt.ArrayLike) -> npt.NDArray[np.integer]:
    grades = np.asarray(values)
    if grades.size == 0 and grades.ndim == 1:
        return grades.astype(np.int32)
    if grades.ndim != 1 or grades.dtype.kind not in "iub":
        raise invalid(name, "must be a list of whole grades", f"{grades.dtype} of shape {grades.shape}")
    return grades.view(np.uint8) if grades.dtype.kind == "b" else grades


def _alike(a: npt.NDArray[np.integer], b: npt.NDArray[np.integer]) -> tuple[Any, Any]:
    """Both in the first of KINDS that holds them, so that few kernels are compiled."""
    wide = next((k for k in KINDS if np.can_cast(a.dtype, k) and np.can_cast(b.dtype, k)), np.int64)
    return a.astype(wide, copy=False), b.astype(wide, copy=False)


def _refuse(name: str, grades: npt.NDArray[np.integer]) -> NoReturn:
    row = int(np.argmax(grades < 0))
    raise invalid(f"{name} grades", "must not be negative", grades[row], at=f"row {row}")


def _offsets(indptr: npt.ArrayLike | None, n: int) -> IntArray:
    if indptr is None:
        return np.array([0, n], dtype=np.int64)
    found = np.asarray(indptr)
    if found.ndim != 1 or not len(found) or found.dtype.kind not in "iu":
        raise invalid("indptr", "must be a list of row offsets", f"{found.dtype} of shape {found.shape}")
    offsets = np.ascontiguousarray(found, dtype=np.int64)
    if offsets[0] != 0 or offsets[-1] != n or (offsets[1:] < offsets[:-1]).any():
        ends = f"{offsets[0]}..{offsets[-1]}"
        raise invalid("indptr", f"must rise from 0 to the number of rows ({n})", ends)
    return offsets


def _ratios(counts: IntArray, new_weight: float) -> FloatArray:
    with np.errstate(invalid="ignore"):
        ratios: FloatArray = (counts[1] + new_weight * counts[2]) / counts.sum(axis=0)
    return ratios


def _summary(counts: IntArray, new_weight: float, weighting: str) -> PairNoise:
    correct, inverse, new = (int(row.sum()) for row in counts)
    total = correct + inverse + new
    if not total:
        value = float("nan")
    elif weighting == "macro":
        value = float(np.nanmean(_ratios(counts, new_weight)))
    else:
        value = (inverse + new_weight * new) / total
    return PairNoise(value, correct, inverse, new, new_weight, weighting, counts)
