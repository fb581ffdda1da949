"""pNoise: the share of document pairs that label noise turns wrong (Niu et al. 2014, 2015).

A pair counts when its two *given* grades differ. It is *correct* (concordant) when the true grades differ
the same way, *inverse* (reversed) when they differ the other way, and *new-come* (spurious) when they are
equal:

    pNoise = (N_inverse + w N_new) / N_all,  w = 1/2.

T and r are a noise matrix and the proportions of the true grades.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.noise.profiles import NoiseProfile, make_profile, proportions_of
from cleanrank.ragged import query_of_row, row_order
from cleanrank.types import FloatArray, IntArray, RankingData
from cleanrank.validation import check_integer, check_number, check_numbers, one_of

WEIGHTINGS = ("pooled", "macro")
KINDS = (np.uint8, np.int32, np.int64)
Grades: TypeAlias = npt.NDArray[np.integer]


@dataclass(frozen=True)
class PairNoise:
    """Correct, inverse and new-come pairs; ``float(...)`` is pNoise.

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
    true: Any,
    given: Any,
    indptr: npt.ArrayLike | None = None,
    *,
    qid: npt.ArrayLike | None = None,
    group: npt.ArrayLike | None = None,
    new_weight: float = 0.5,
    weighting: str = "pooled",
    n_jobs: int | None = None,
) -> PairNoise:
    """Measures pNoise from true and given grades in O(n + C^2) a query; O(n log n) with grades above 7.

    Args:
        true: true grades, row by row; or a RankingData with them.
        given: noisy grades of the same rows; or a RankingData with them.
        indptr: row offsets of the queries; without it (and ``qid``, ``group``, RankingData) all rows are one
            query.
        qid: instead, the query of every row, in any order.
        group: instead, documents per query.
        new_weight: what a new-come pair counts.
        weighting: "pooled" divides sums over queries, "macro" averages the queries' ratios.
        n_jobs: threads, for millions of rows; smaller inputs are counted on one.

    Returns:
        The counts of pairs and their ratio, NaN where no pair has different given grades.

    >>> pnoise([0, 0, 1, 1], [0, 1, 0, 1])
    PairNoise(0.5000 pooled: 1 correct, 1 inverse, 2 new-come at weight 0.5)
    """
    from cleanrank.jit import threads
    from cleanrank.noise._pair_counts import SERIAL, pair_counts

    one_of("weighting", weighting, WEIGHTINGS)
    check_number("new_weight", new_weight, least=0, most=1)
    if isinstance(true, RankingData) and isinstance(given, RankingData):
        if not np.array_equal(true.row_ids, given.row_ids):
            raise invalid("true and given", "must have the same rows", "other row ids")
        true, given, indptr = true.y, given.y, true.indptr
    before, after = _common_type(*_grade_columns(true, given))
    if qid is not None or group is not None:
        order, indptr, _ = row_order(len(before), qid, group)
        before, after = before[order], after[order]
    offsets = _offsets(indptr, len(before))
    few = n_jobs is None and len(before) < SERIAL
    with nullcontext() if few else threads(n_jobs):
        counts = pair_counts(before, after, offsets)
    if counts[0].min(initial=0) < 0:
        name, grades = ("true", before) if (before < 0).any() else ("given", after)
        row = int(np.argmax(grades < 0))
        raise invalid(f"{name} grades", "must not be negative", grades[row], at=f"row {row}")
    correct, inverse, new = (int(row.sum()) for row in counts)
    total = correct + inverse + new
    if not total:
        value = float("nan")
    elif weighting == "macro":
        value = float(np.nanmean(_ratios(counts, new_weight)))
    else:
        value = (inverse + new_weight * new) / total
    return PairNoise(value, correct, inverse, new, new_weight, weighting, counts)


def order_probabilities(T: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(G, A) of a noise matrix or a batch of them, (..., C, C).

    G(l, j) = P(given grade of l > given grade of j) = (T L T')(l, j) with L the strictly lower triangle of
    ones, and A = G + G', the probability that the given grades differ.

    >>> order_probabilities(np.array([[0.9, 0.1], [0.2, 0.8]]))[0].round(2).tolist()
    [[0.09, 0.02], [0.72, 0.16]]
    """
    n_given = T.shape[-1]
    G = T @ np.tril(np.ones((n_given, n_given)), -1) @ np.swapaxes(T, -1, -2)
    return G, G + np.swapaxes(G, -1, -2)


def expected_pair_noise(
    T: FloatArray, same: FloatArray, other: FloatArray, *, new_weight: float = 0.5
) -> FloatArray:
    """The closed form of pNoise for one noise matrix or a batch of them.

        pNoise = [w sum_l same(l) A(l,l) + sum_{l<j} other(l,j) G(l,j)] / [the same with A and w = 1]

    Args:
        T: noise matrices, (..., C, C).
        same: pairs of equal true grade, (..., C), as numbers or shares.
        other: pairs of true grades l < j, (..., C, C), upper triangle.
        new_weight: what a new-come pair counts.

    Returns:
        The ratios, (...); NaN where no pair is expected to have different given grades.

    >>> T = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.8, 0.2], [0.2, 0.8]]])
    >>> expected_pair_noise(T, *pair_shares(np.array([0.5, 0.5]))).round(12).tolist()
    [0.1, 0.2]
    """
    G, A = order_probabilities(T)
    apart = np.diagonal(A, axis1=-2, axis2=-1)[..., None]
    new = (same[..., None, :] @ apart)[..., 0, 0]
    pairs = new + (other * A).sum(axis=(-2, -1))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio: FloatArray = (new_weight * new + (other * G).sum(axis=(-2, -1))) / pairs
    return np.where(pairs > 0, ratio, np.nan)


def pair_shares(r: FloatArray, length: int | None = None) -> tuple[FloatArray, FloatArray]:
    """(same, other) of ``expected_pair_noise`` for proportions (..., C) in lists of n documents.

    same(l) = r_l (r_l - 1/n) / 2 and other(l, j) = r_l r_j for l < j; 1/n = 0 without a length.
    """
    same = r * np.maximum(r - (0.0 if length is None else 1 / length), 0.0) / 2
    return same, np.triu(r[..., :, None] * r[..., None, :], 1)


def pnoise_matrices(
    profile: Any, n_grades: int | None = None, *, new_weight: float = 0.5
) -> tuple[FloatArray, FloatArray]:
    """The matrices A and D of Niu et al. (2015): with proportions r, pNoise of long lists is r'Dr / r'Ar.

    Both are upper triangular. For true grades l < j, A(l, j) is the probability that two documents of these
    grades are given different grades, and D(l, j) that they are given them in the wrong order. For equal
    grades A(l, l) is the probability that the first of two is given the higher one, and D(l, l) = w A(l, l).

    Args:
        profile: a noise matrix, as ``NoiseProfile.of`` reads it.
        n_grades: C, with ``family:rate``.
        new_weight: what a new-come pair counts, w.

    Returns:
        (A, D), each C x C.

    >>> A, D = pnoise_matrices("uniform:0.1", 2)
    >>> A.round(3).tolist(), D.round(3).tolist()
    ([[0.09, 0.82], [0.0, 0.09]], [[0.045, 0.01], [0.0, 0.045]])
    >>> r = np.array([0.5, 0.5])
    >>> round(float(r @ D @ r / (r @ A @ r)), 12)
    0.1
    """
    check_number("new_weight", new_weight, least=0, most=1)
    G, either = order_probabilities(NoiseProfile.of(profile, n_grades).matrix)
    equal = np.diag(np.diag(G))
    return np.triu(either, 1) + equal, np.triu(G, 1) + new_weight * equal


def pnoise_expected(
    profile: Any,
    proportions: npt.ArrayLike,
    *,
    length: int | None = None,
    new_weight: float = 0.5,
) -> float:
    """The closed form of pNoise for a noise matrix T and proportions r of the true grades.

        pNoise = [sum_l r_l^2/2 w A(l,l) + sum_{l<j} r_l r_j G(l,j)] / [the same with A and w = 1]

    with G(l, j) = P(given grade of l > given grade of j) and A = G + G'.

    Args:
        profile: a noise matrix, as ``NoiseProfile.of`` reads it.
        proportions: shares or counts of the true grades.
        length: documents per query, n: r_l^2/2 becomes r_l (r_l - 1/n)/2; None means long lists.
        new_weight: what a new-come pair counts, w.

    Returns:
        The expected share of wrong pairs; NaN where no pair of different given grades is expected.

    >>> from cleanrank.noise.profiles import uniform
    >>> round(pnoise_expected(uniform(0.1, 3), [70, 16, 14]), 4)
    0.1237
    """
    T = NoiseProfile.of(profile, len(np.atleast_1d(proportions))).matrix
    r = proportions_of(proportions, len(T))
    check_number("new_weight", new_weight, least=0, most=1)
    if length is not None:
        check_integer("length", length, least=2)
    return float(expected_pair_noise(T, *pair_shares(r, length), new_weight=new_weight))


def pnoise_curve(
    proportions: npt.ArrayLike,
    rates: npt.ArrayLike,
    profile: str = "uniform",
    *,
    length: int | None = None,
    new_weight: float = 0.5,
    options: Mapping[str, Any] | None = None,
) -> FloatArray:
    """The closed form of pNoise at several rates of document noise, one value a rate.

    Args:
        proportions: shares of the true grades.
        rates: probabilities that a document's grade changes.
        profile: the name of a family.
        length: documents per query; None means long lists.
        new_weight: what a new-come pair counts.
        options: further arguments of the family; with ``row_weights`` the proportions are these.

    Returns:
        pNoise at each rate.

    >>> pnoise_curve([0.5, 0.5], [0.0, 0.1, 0.2]).round(12).tolist()
    [0.0, 0.1, 0.2]
    """
    r = proportions_of(proportions)
    options = dict(options or {})
    if "row_weights" in options:
        options.setdefault("proportions", r)
    profiles = (
        make_profile(profile, float(rate), len(r), options)
        for rate in np.ravel(check_numbers("rates", rates))
    )
    return np.array([pnoise_expected(each, r, length=length, new_weight=new_weight) for each in profiles])


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
    T = np.asarray(matrix, dtype=np.float64)
    return float(expected_pair_noise(T, same, other, new_weight=new_weight))


def query_pnoise(matrix: npt.ArrayLike, counts: IntArray, *, new_weight: float = 0.5) -> FloatArray:
    """The same ratio for every query alone; NaN where a query expects no pair of different given grades."""
    G, A = order_probabilities(np.asarray(matrix, dtype=np.float64))
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

    Without ``given``, pairs are sampled (Niu et al. 2014, Table 2): the share is (1 - ties) / 2 for any
    ranker. With it, every new-come pair counts, the document of higher given grade first: well above 1/2,
    judges' errors follow the features, and new-come pairs are less wrong than one half.

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

    s, (grades, after) = np.asarray(scores, dtype=np.float64), _grade_columns(true, given)
    offsets = _offsets(indptr, len(grades))
    if s.shape != grades.shape or np.isnan(s).any():
        raise invalid("scores", f"must hold a number for each of the {len(grades)} rows", f"shape {s.shape}")
    order, groups = _equal_grades(grades, offsets)
    if given is not None:
        place = np.unique(s, return_inverse=True)[1]
        counts = pair_counts(*_common_type(place[order], after[order]), groups)
        won, lost, tied = counts.sum(axis=1)
        if not won + lost + tied:
            raise invalid("data", "must have a pair of equal true and different given grades", "none")
        return float((won + ties * tied) / (won + lost + tied))
    sizes = np.diff(groups)
    possible = sizes * (sizes - 1)
    if not possible.sum():
        raise invalid("data", "must have two documents of equal grade in some query", "none")
    rng = np.random.default_rng(seed)
    group = rng.choice(len(sizes), size=pairs, p=possible / possible.sum())
    first = (rng.random(pairs) * sizes[group]).astype(np.int64)
    second = (first + 1 + (rng.random(pairs) * (sizes[group] - 1)).astype(np.int64)) % sizes[group]
    a, b = s[order[groups[group] + first]], s[order[groups[group] + second]]
    return float(np.mean((a > b) + ties * (a == b)))


def _equal_grades(grades: Grades, indptr: IntArray) -> tuple[IntArray, IntArray]:
    """Rows sorted by query and grade, and the offsets of the runs of equal query and grade."""
    query = query_of_row(indptr)
    order = np.lexsort((grades, query))
    query, sorted_grades = query[order], grades[order]
    new = (query[1:] != query[:-1]) | (sorted_grades[1:] != sorted_grades[:-1])
    return order, np.concatenate(([0], np.flatnonzero(new) + 1, [len(order)])).astype(np.int64)


def _grade_columns(true: npt.ArrayLike, given: npt.ArrayLike | None) -> tuple[Grades, Grades]:
    """Both columns of grades, of one length; the true ones twice where there are no given ones."""
    columns = []
    for name, values in (("true", true), ("given", true if given is None else given)):
        grades = np.asarray(values)
        if grades.size == 0 and grades.ndim == 1:
            grades = grades.astype(np.int32)
        if grades.ndim != 1 or grades.dtype.kind not in "iub":
            raise invalid(name, "must be a list of whole grades", f"{grades.dtype} of shape {grades.shape}")
        columns.append(grades.view(np.uint8) if grades.dtype.kind == "b" else grades)
    if len(columns[0]) != len(columns[1]):
        raise invalid("given", f"must have as many grades as true ({len(columns[0])})", len(columns[1]))
    return columns[0], columns[1]


def _common_type(a: Grades, b: Grades) -> tuple[Any, Any]:
    """Both in the first of KINDS that holds them, so that few kernels are compiled."""
    wide = next((k for k in KINDS if np.can_cast(a.dtype, k) and np.can_cast(b.dtype, k)), np.int64)
    return a.astype(wide, copy=False), b.astype(wide, copy=False)


def _offsets(indptr: npt.ArrayLike | None, n: int) -> IntArray:
    if indptr is None:
        return np.array([0, n], dtype=np.int64)
    offsets = np.asarray(indptr)
    if offsets.ndim != 1 or not len(offsets) or offsets.dtype.kind not in "iu":
        raise invalid("indptr", "must be a list of row offsets", f"{offsets.dtype} of shape {offsets.shape}")
    offsets = np.ascontiguousarray(offsets, dtype=np.int64)
    if offsets[0] != 0 or offsets[-1] != n or (offsets[1:] < offsets[:-1]).any():
        ends = f"{offsets[0]}..{offsets[-1]}"
        raise invalid("indptr", f"must rise from 0 to the number of rows ({n})", ends)
    return offsets


def _ratios(counts: IntArray, new_weight: float) -> FloatArray:
    with np.errstate(invalid="ignore"):
        ratios: FloatArray = (counts[1] + new_weight * counts[2]) / counts.sum(axis=0)
    return ratios
