"""pNoise: the share of document pairs that label noise turns wrong (Niu et al. 2014, 2015).

A pair counts when its two *given* grades differ. It is *correct* when the true grades differ the same way,
*inverse* when they differ the other way, and *new-come* when they are equal:

    pNoise = (N_inverse + w N_new) / N_all,  w = 1/2.

T and r are a noise matrix and the proportions of the true grades.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cleanrank import checks
from cleanrank.noise.profiles import NoiseProfile, make_profile, proportions_of
from cleanrank.types import FloatArray, IntArray

WEIGHTINGS = ("pooled", "macro")


@dataclass(frozen=True)
class PairNoise:
    """How many pairs noise left correct, turned round or made up; ``float(...)`` is the ratio.

    ``per_query`` holds each query's ratio, NaN where no pair has different given grades.
    """

    value: float
    correct: int
    inverse: int
    new_come: int
    new_weight: float
    weighting: str
    per_query: FloatArray

    @property
    def total(self) -> int:
        """Pairs whose given grades differ."""
        return self.correct + self.inverse + self.new_come

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

    Args:
        true: true grades, row by row.
        given: noisy grades of the same rows.
        indptr: row offsets of the queries; without it all rows are one query.
        new_weight: what a new-come pair counts.
        weighting: "pooled" divides sums over queries, "macro" averages the queries' ratios.
        n_jobs: threads.

    >>> pnoise([0, 0, 1, 1], [0, 1, 0, 1])
    PairNoise(0.5000 pooled: 1 correct, 1 inverse, 2 new-come at weight 0.5)
    """
    from cleanrank.compiled import threads
    from cleanrank.noise.kernels import pair_counts

    checks.known("weighting", weighting, WEIGHTINGS)
    if not 0 <= new_weight <= 1:
        checks.fail("new_weight", "must lie in [0, 1]", new_weight)
    before, after = _grades("true", true), _grades("given", given)
    if before.shape != after.shape:
        checks.fail("given", f"must have as many grades as true ({len(before)})", len(after))
    offsets = np.array([0, len(before)]) if indptr is None else np.asarray(indptr, dtype=np.int64)
    if offsets.ndim != 1 or offsets[0] != 0 or offsets[-1] != len(before) or (np.diff(offsets) < 0).any():
        checks.fail(
            "indptr", f"must rise from 0 to the number of rows ({len(before)})", offsets[[0, -1]].tolist()
        )
    with threads(n_jobs):
        counts = pair_counts(before, after, offsets)
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
    if length is not None and length < 2:
        checks.fail("length", "must be at least 2 documents a query", length)
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
    options: dict[str, object] | None = None,
) -> FloatArray:
    """The closed form of pNoise at several rates of document noise.

    >>> pnoise_curve([0.5, 0.5], [0.0, 0.1, 0.2]).round(12).tolist()
    [0.0, 0.1, 0.2]
    """
    r = proportions_of(proportions)
    return np.array(
        [
            pnoise_expected(
                make_profile(profile, float(rate), len(r), options), r, length=length, new_weight=new_weight
            )
            for rate in np.atleast_1d(np.asarray(rates, dtype=np.float64))
        ]
    )


def signal_left(pair_noise: float | PairNoise) -> float:
    """The share of AUC's signal that noisy pairs keep, 1 - 2 pNoise; 0 at pNoise 1/2.

    >>> signal_left(0.25)
    0.5
    """
    return 1 - 2 * float(pair_noise)


def new_come_share(
    scores: npt.ArrayLike, true: npt.ArrayLike, indptr: IntArray, *, pairs: int = 10_000, seed: int = 0
) -> float:
    """Samples pairs of equal true grade within queries; the share whose first document scores higher.

    Near 1/2 a ranker has no opinion on such pairs, which is why a new-come pair counts one half
    (Niu et al. 2015, Table 2). Ties count one half.
    """
    found, grades = np.asarray(scores, dtype=np.float64), np.asarray(true)
    group = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)) * (int(grades.max(initial=0)) + 1) + grades
    order = np.argsort(group, kind="stable")
    _, starts, sizes = np.unique(group[order], return_index=True, return_counts=True)
    possible = sizes * (sizes - 1)
    if not possible.sum():
        checks.fail("data", "must have two documents of equal grade in some query", "none")
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(sizes), size=pairs, p=possible / possible.sum())
    first = (rng.random(pairs) * sizes[chosen]).astype(np.int64)
    second = (first + 1 + (rng.random(pairs) * (sizes[chosen] - 1)).astype(np.int64)) % sizes[chosen]
    a, b = found[order[starts[chosen] + first]], found[order[starts[chosen] + second]]
    return float(np.mean((a > b) + 0.5 * (a == b)))


def _grades(name: str, values: npt.ArrayLike) -> npt.NDArray[np.integer]:
    grades = np.asarray(values)
    if grades.ndim != 1 or grades.dtype.kind not in "iu":
        checks.fail(name, "must be a list of whole grades", f"{grades.dtype} of shape {grades.shape}")
    return grades


def _summary(counts: IntArray, new_weight: float, weighting: str) -> PairNoise:
    if (counts < 0).any():
        checks.fail("grades", "must lie between 0 and 255", "others")
    totals = counts.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = (counts[:, 1] + new_weight * counts[:, 2]) / totals
    correct, inverse, new = (int(c) for c in counts.sum(axis=0))
    if weighting == "macro":
        value = float(np.nanmean(ratios)) if (totals > 0).any() else float("nan")
    else:
        total = correct + inverse + new
        value = (inverse + new_weight * new) / total if total else float("nan")
    return PairNoise(value, correct, inverse, new, new_weight, weighting, ratios)
