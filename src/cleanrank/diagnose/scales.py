"""What other grades or another balance would do to pNoise.

Two questions about merging grades are kept apart, because their answers differ (Niu et al. 2015 ask the first
only): *asked anew*, judges use the coarser scale and err at the same rate; *merged*, the labels at hand are
merged, so errors inside a merged grade vanish and the others stay.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from cleanrank.diagnose.fragility import composition, pooled_pnoise
from cleanrank.noise.grades import best_proportions
from cleanrank.noise.pnoise import pnoise_expected
from cleanrank.noise.profiles import make_profile
from cleanrank.types import IntArray


@dataclass(frozen=True)
class Merge:
    """A coarser scale and pNoise on it.

    Attributes:
        name: the grades that go together, as in "0 | 1-4".
        groups: the new grade of each old one.
        shares: of the new grades.
        asked_anew: pNoise when judges err at the same rate on the new scale.
        merged: pNoise when the given labels are merged.
        pairs_kept: pairs of different grades, as a share of those on the full scale.
    """

    name: str
    groups: tuple[int, ...]
    shares: tuple[float, ...]
    asked_anew: float
    merged: float
    pairs_kept: float


@dataclass(frozen=True)
class Balance:
    """pNoise of long lists at the given shares, at even shares and at the best ones."""

    given: float
    even: float
    best: float
    best_shares: tuple[float, ...]


def merges_of(counts: IntArray, profile: str, rate: float, *, new_weight: float = 0.5) -> tuple[Merge, ...]:
    """All merges of neighbouring grades into two or three, the most robust (asked anew) first.

    Grades that no document has go with their lower neighbour.
    """
    C = counts.shape[1]
    used = counts.sum(axis=0) > 0
    found = {}
    for groups in _cuts(C):
        merged = merge_counts(counts, groups)
        if (merged.sum(axis=0) > 0).all() and used.sum() > merged.shape[1]:
            found[tuple(merged.sum(axis=0))] = _merge(counts, merged, groups, profile, rate, new_weight)
    return tuple(sorted(found.values(), key=lambda m: (m.asked_anew, m.name)))


def merge_counts(counts: IntArray, groups: Sequence[int]) -> IntArray:
    """Adds up the columns of merged grades.

    >>> merge_counts(np.array([[3, 2, 1]]), (0, 1, 1)).tolist()
    [[3, 3]]
    """
    found = np.zeros((len(counts), max(groups) + 1), dtype=np.int64)
    for old, new in enumerate(groups):
        found[:, new] += counts[:, old]
    return found


def _merge(
    counts: IntArray, merged: IntArray, groups: tuple[int, ...], profile: str, rate: float, new_weight: float
) -> Merge:
    _, other = composition(counts)
    coarse_same, coarse_other = composition(merged)
    asked = make_profile(profile, rate, merged.shape[1]).matrix
    fine = make_profile(profile, rate, counts.shape[1]).matrix
    shares = merged.sum(axis=0) / merged.sum()
    return Merge(
        " | ".join(_range([l for l, g in enumerate(groups) if g == new]) for new in range(max(groups) + 1)),
        groups,
        tuple(float(s) for s in shares),
        pooled_pnoise(asked, coarse_same, coarse_other, new_weight=new_weight),
        merged_pnoise(fine, groups, counts, new_weight=new_weight),
        float(coarse_other.sum() / other.sum()),
    )


def merged_pnoise(
    matrix: npt.ArrayLike, groups: Sequence[int], counts: IntArray, *, new_weight: float = 0.5
) -> float:
    """Pooled pNoise when labels drawn from ``matrix`` on the fine scale, and the truth, are merged."""
    new = np.asarray(groups)
    T = np.asarray(matrix, dtype=np.float64) @ np.eye(new.max() + 1)[new]
    G = T @ np.tril(np.ones((T.shape[1], T.shape[1])), -1) @ T.T
    A = G + G.T
    same, other = composition(counts)
    tied = new[:, None] == new[None, :]
    new_come = float(same @ np.diag(A)) + float((other * A * tied).sum())
    wrong, apart = float((other * G * ~tied).sum()), float((other * A * ~tied).sum())
    return (new_weight * new_come + wrong) / (new_come + apart)


def balance_of(counts: IntArray, profile: str, rate: float) -> Balance:
    """Compares the given shares of the grades with even ones and the best ones.

    The most even shares are not the best where there are more than two grades: with three grades and uniform
    errors at 10 % the best are about 39 : 22 : 39.

    >>> found = balance_of(np.array([[70, 16, 14]]), "uniform", 0.1)
    >>> round(found.given, 4), round(found.even, 4), round(found.best, 4)
    (0.1237, 0.0821, 0.0797)
    """
    matrix = make_profile(profile, rate, counts.shape[1])
    best = best_proportions(matrix)
    return Balance(pnoise_expected(matrix, counts.sum(axis=0)), best.balanced, best.pnoise, best.proportions)


def _cuts(C: int) -> Iterator[tuple[int, ...]]:
    for parts in (2, 3):
        for cuts in combinations(range(1, C), parts - 1):
            yield tuple(int(np.searchsorted(cuts, g, side="right")) for g in range(C))


def _range(grades: Sequence[int]) -> str:
    return str(grades[0]) if len(grades) == 1 else f"{grades[0]}-{grades[-1]}"
