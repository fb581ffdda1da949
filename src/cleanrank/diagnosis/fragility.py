"""How fast label errors spoil the pairs of a data set: the closed form of pNoise over its real queries.

The labels as given stand in for the truth. With counts n_ql of grade l in query q,

    same_l = sum_q n_ql (n_ql - 1)/2,   other_lj = sum_q n_ql n_qj,

the expected pooled pNoise of a matrix T is [w sum_l same_l A(l,l) + sum_{l<j} other_lj G(l,j)] / [the same
with A and w = 1], with G(l,j) = P(given grade of l > given grade of j) and A = G + G' (Niu et al. 2015).
Overall proportions r alone put r_l^2/2 and r_l r_j in the place of same and other: right when all queries are
alike and long.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
import numpy.typing as npt

from cleanrank.data.catalogue import entry_of
from cleanrank.noise.pair_noise import (
    composition,
    order_probabilities,
    pnoise_curve,
    pnoise_expected,
    pooled_pnoise,
    query_pnoise,
    signal_left,
)
from cleanrank.noise.profiles import make_profile, proportions_of
from cleanrank.noise.scales import best_proportions
from cleanrank.types import FloatArray, IntArray

RATES = tuple(round(0.05 * i, 2) for i in range(11))
DEFAULT_PROFILES = ("uniform", "geometric", "adjacent")
FAMILIES = ("uniform", "geometric", "power", "adjacent")  # judges' errors that fit any number of grades
TURNING_POINT = 0.4
STEPS = 200


@dataclass(frozen=True)
class Limits:
    """Error rates at which a curve of pNoise crosses key thresholds; None where it never does.

    Attributes:
        half: the rate at which half of the signal is left (pNoise 1/4).
        turning_point: the knee: the rate at which pNoise reaches ``at``, and 1 - 2 ``at`` of AUC's signal
            is left.
        bend: the rate at which the curve lies farthest above the line from its start to its end: up to there
            the first errors cost most. None for a curve that does not bend upwards.
        at: the value of pNoise that counts as the turning point.
    """

    half: float | None
    turning_point: float | None
    bend: float | None
    at: float


@dataclass(frozen=True)
class Curve:
    """pNoise and the signal left at several rates under one profile.

    Attributes:
        profile: the family of the noise.
        rates: label error rates.
        pnoise: over the real queries, pooled.
        overall: from the overall proportions alone.
        signal_left: 1 - 2 pNoise, the share of AUC's signal that is kept.
        worst_tenth: pNoise that a tenth of the queries with two grades or more reach or exceed.
        limits: where the curve crosses which line.
    """

    profile: str
    rates: tuple[float, ...]
    pnoise: tuple[float, ...]
    overall: tuple[float, ...]
    signal_left: tuple[float, ...]
    worst_tenth: tuple[float, ...]
    limits: Limits

    def at(self, rate: float) -> float:
        """The pNoise at one of the rates (or between two of them)."""
        return float(np.interp(rate, self.rates, self.pnoise))


def curves_of(
    counts: IntArray,
    rates: Sequence[float] = RATES,
    profiles: Sequence[str] = DEFAULT_PROFILES,
    *,
    new_weight: float = 0.5,
    turning_point: float = TURNING_POINT,
) -> tuple[Curve, ...]:
    """Curves for a (Q, C) table of documents per query and grade; profiles that coincide are given once.

    With two grades all symmetric families are the same. Without two grades there are no pairs and no curves.
    """
    C = counts.shape[1]
    if (counts.sum(axis=0) > 0).sum() < 2:
        return ()
    same, other = composition(counts)
    teaching = counts[(counts > 0).sum(axis=1) > 1]

    def pooled(profile: str, rate: float) -> float:
        matrix = make_profile(profile, float(rate), C).matrix
        return pooled_pnoise(matrix, same, other, new_weight=new_weight)

    curves: dict[bytes, Curve] = {}
    for name in profiles:
        matrices = np.array([make_profile(name, float(rate), C).matrix for rate in rates])
        key = matrices.round(12).tobytes()
        if key in curves:
            continue
        pnoise = tuple(pooled(name, rate) for rate in rates)
        overall = pnoise_curve(counts.sum(axis=0), list(rates), name, new_weight=new_weight)
        curves[key] = Curve(
            name,
            tuple(rates),
            pnoise,
            tuple(float(v) for v in overall),
            tuple(signal_left(v) for v in pnoise),
            tuple(_upper_tenth(query_pnoise(T, teaching, new_weight=new_weight)) for T in matrices),
            limits_of(partial(pooled, name), (C - 1) / C, turning_point),
        )
    return tuple(curves.values())


def limits_of(pnoise: Callable[[float], float], highest: float, at: float = TURNING_POINT) -> Limits:
    """Finds the limits of a curve on [0, ``highest``], where labels have lost all information at the latest.

    >>> limits_of(lambda rate: rate, 0.5)
    Limits(half=0.25, turning_point=0.4, bend=None, at=0.4)
    """
    rates = np.linspace(0.0, highest, STEPS + 1)
    values = np.array([pnoise(float(r)) for r in rates])
    if not np.isfinite(values).any():
        return Limits(None, None, None, at)
    values = np.nan_to_num(values)
    half, turning_point = (_crossing(pnoise, rates, values, level) for level in (0.25, at))
    return Limits(half, turning_point, _bend(rates, values), at)


def _crossing(
    pnoise: Callable[[float], float], rates: FloatArray, values: FloatArray, level: float
) -> float | None:
    """The first rate at which the curve reaches a level, by bisection to 1e-6."""
    above = np.flatnonzero(values >= level - 1e-12)
    if not len(above) or above[0] == 0:
        return float(rates[0]) if len(above) else None
    low, high = float(rates[above[0] - 1]), float(rates[above[0]])
    while high - low > 1e-7:
        middle = (low + high) / 2
        low, high = (low, middle) if pnoise(middle) >= level - 1e-12 else (middle, high)
    return round(high, 6)


def _bend(rates: FloatArray, values: FloatArray) -> float | None:
    """The rate of the largest height above the chord (Satopaa et al. 2011), if there is a clear one."""
    if values[-1] <= values[0]:
        return None
    height = (values - values[0]) / (values[-1] - values[0]) - rates / rates[-1]
    place = int(height.argmax())
    return float(round(rates[place], 6)) if height[place] > 0.02 else None


def _upper_tenth(values: FloatArray) -> float:
    finite = values[np.isfinite(values)]
    return float(np.quantile(finite, 0.9)) if len(finite) else float("nan")


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
    C, used = counts.shape[1], int((counts.sum(axis=0) > 0).sum())
    fine = make_profile(profile, rate, C).matrix
    _, other = composition(counts)
    if not other.any():
        return ()  # no query holds two documents of different grades
    merges = {}
    for cuts in (*combinations(range(1, C), 1), *combinations(range(1, C), 2)):
        groups = tuple(int(g) for g in np.searchsorted(cuts, range(C), side="right"))
        merged = np.add.reduceat(counts, (0, *cuts), axis=1)
        documents = merged.sum(axis=0)
        if (documents > 0).all() and used > len(documents):
            same, apart = composition(merged)
            asked = make_profile(profile, rate, len(documents)).matrix
            merges[tuple(documents)] = Merge(
                scale_name(groups),
                groups,
                tuple(float(s) for s in documents / documents.sum()),
                pooled_pnoise(asked, same, apart, new_weight=new_weight),
                merged_pnoise(fine, groups, counts, new_weight=new_weight),
                float(apart.sum() / other.sum()),
            )
    return tuple(sorted(merges.values(), key=lambda m: (m.asked_anew, m.name)))


def merged_pnoise(
    matrix: npt.ArrayLike, groups: Sequence[int], counts: IntArray, *, new_weight: float = 0.5
) -> float:
    """Pooled pNoise when labels drawn from ``matrix`` on the fine scale, and the truth, are merged."""
    new = np.asarray(groups)
    G, A = order_probabilities(np.asarray(matrix, dtype=np.float64) @ np.eye(new.max() + 1)[new])
    same, other = composition(counts)
    tied = new[:, None] == new[None, :]
    new_come = float(same @ np.diag(A)) + float((other * A * tied).sum())
    wrong, apart = float((other * G * ~tied).sum()), float((other * A * ~tied).sum())
    return (new_weight * new_come + wrong) / (new_come + apart)


def balance_of(counts: IntArray, profile: str, rate: float) -> Balance:
    """Compares the given shares of the grades with even ones and the best ones.

    The most even shares are not the best where there are more than two grades: with three grades and uniform
    errors at 10 % the best are about 39 : 22 : 39.

    >>> balance = balance_of(np.array([[70, 16, 14]]), "uniform", 0.1)
    >>> round(balance.given, 4), round(balance.even, 4), round(balance.best, 4)
    (0.1237, 0.0821, 0.0797)
    """
    matrix = make_profile(profile, rate, counts.shape[1])
    best = best_proportions(matrix)
    return Balance(pnoise_expected(matrix, counts.sum(axis=0)), best.balanced, best.pnoise, best.proportions)


def scale_name(groups: Sequence[int] | IntArray) -> str:
    """Which grades go together on a coarser scale, from the new grade of each.

    >>> scale_name([0, 1, 1])
    '0 | 1-2'
    """
    members = [[l for l, g in enumerate(groups) if g == new] for new in range(max(groups) + 1)]
    return " | ".join(str(m[0]) if len(m) == 1 else f"{m[0]}-{m[-1]}" for m in members)


@dataclass(frozen=True)
class KnownCurve:
    """pNoise of a published data set at the rates of a diagnosis, from its overall proportions."""

    dataset: str
    shares: tuple[float, ...]
    source: str
    profile: str
    pnoise: tuple[float, ...]


def known_shares() -> dict[str, tuple[tuple[float, ...], str]]:
    """Shares of the grades and where they were published, by data set.

    >>> shares, source = known_shares()["TD2003"]
    >>> shares, source
    ((0.992, 0.008), 'Niu et al. 2015')
    """
    published = {}
    for name, literature in KNOWN.items():
        if literature is None:
            facts = [f for f in entry_of(name).facts if f.what.startswith("grade ") and f.part == "all"]
            facts.sort(key=lambda fact: int(fact.what.removeprefix("grade ")))
            literature = tuple(float(f.value) for f in facts), facts[0].source
        shares, source = literature
        published[name] = (tuple(round(float(s), 4) for s in proportions_of(shares)), source)
    return published


def known_curves(rates: Sequence[float], profile: str, new_weight: float = 0.5) -> tuple[KnownCurve, ...]:
    """The curves of all known data sets under one profile."""
    curves = []
    for name, (shares, source) in known_shares().items():
        values = pnoise_curve(shares, list(rates), profile, new_weight=new_weight)
        curves.append(KnownCurve(name, shares, source, profile, tuple(float(v) for v in values)))
    return tuple(curves)


# Shares in percent and their source; None: counted in the catalogue.
KNOWN: dict[str, tuple[tuple[float, ...], str] | None] = {
    "MSLR": ((51.7, 32.5, 13.3, 1.7, 0.8), "Niu et al. 2015"),
    "Yahoo set 1": None,
    "OHSUMED": None,
    "MQ2008": None,
    "TD2003": ((99.2, 0.8), "Niu et al. 2015"),
}
