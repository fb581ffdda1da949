"""Ways to spend a budget on labels, and what each brings, on one common scale of truth.

The truth has C grades in proportions r; a way of judging has c <= C grades, obtained by merging neighbours of
the truth, and gives grade m to a document of true grade l with probability T[merge(l), m]. With J[l, m] the
joint shares of the labels that are kept, a pair of labels with m > m' is *correct* when l > l', *inverse*
when l < l' and *new-come* when l = l'. All ways are held against the same fine truth: a coarser scale then
has no floor of its own (it only yields fewer pairs), and the floor of top-k labelling is shown beside its
pNoise.

*Effective pairs* = (correct - inverse)^2 / all = all x (1 - 2 pNoise)^2: that many error-free pairs would
have the same ratio of signal to noise, if errors of pairs were independent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cleanrank.diagnosis.fragility import scale_name
from cleanrank.errors import invalid
from cleanrank.planning.judges import judge_matrix, judgements_needed, median_matrix, play_top_k
from cleanrank.types import FloatArray

_legendre = cache(np.polynomial.legendre.leggauss)
Groups: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Order:
    """What someone wants to buy; the fields are the arguments of ``plan_labels``."""

    budget: float
    cost: float
    documents: int
    proportions: tuple[float, ...]
    error: float | Mapping[int, float | npt.ArrayLike]
    scales: tuple[int, ...]
    repeats: tuple[int, ...]
    top_k: int | None
    pair_cost: float
    pair_error: float
    screen_cost: float | None
    pool: int
    shared: float
    profile: str
    queries: int | None
    seed: int


@dataclass(frozen=True)
class Option:
    """One way to buy labels and what it brings.

    Attributes:
        name: in words.
        grades: of the scale; None for top-k pairs.
        sampling: "natural", "balanced" or "top-k".
        repeats: judgements per label at most; the median counts.
        scale: the grades of the truth that each grade stands for, as in "0 | 1-4".
        judgements: mean judgements per query.
        screened: mean documents looked at per query.
        query_cost: money per query.
        queries: how many queries the budget covers.
        pairs: pairs with different labels, per query.
        pnoise: the share of wrong ones, against the common truth.
        floor: the pNoise of a judge without error.
        excess: pnoise - floor, what the errors do.
        signal_left: 1 - 2 pnoise.
        effective_pairs: error-free pairs of the same worth, over all queries.
        error_rate: the share of wrong labels on this scale; of wrong comparisons for top-k.
        problem: why it cannot be had; empty if it can.
    """

    name: str
    grades: int | None
    sampling: str
    repeats: int
    scale: str
    judgements: float
    screened: float
    query_cost: float
    queries: int
    pairs: float
    pnoise: float
    floor: float
    excess: float
    signal_left: float
    effective_pairs: float
    error_rate: float
    problem: str = ""


def options_of(order: Order) -> tuple[Option, ...]:
    """Every way to buy labels, the best first; those that cannot be had come last."""
    options = [
        graded(order, grades, sampling, repeats)
        for grades in order.scales
        for sampling in ("natural", "balanced")
        for repeats in order.repeats
    ]
    if order.top_k is not None:
        options += [pairwise(order, order.top_k, repeats) for repeats in order.repeats]
    return tuple(sorted(options, key=lambda o: (bool(o.problem), -o.effective_pairs, o.query_cost, o.name)))


@dataclass(frozen=True)
class Sample:
    """The labels of a query: their joint shares (true, given), pairs by kind, and the work behind them."""

    joint: FloatArray
    pairs: FloatArray
    judged: float
    screened: float
    screening_cost: float = 0.0


def graded(order: Order, grades: int, sampling: str, repeats: int) -> Option:
    """Judging on a scale, of documents as they come or of as many from each grade."""
    groups = coarsened(order.proportions, grades)
    once = judge_matrix(order.error, grades, order.profile)
    T = median_matrix(once, repeats, shared=order.shared)[groups]
    needed = judgements_needed(once, repeats, shared=order.shared)[groups]
    screened = sampling == "balanced" and order.screen_cost is not None
    take = _screened if screened else _balanced if sampling == "balanced" else _natural
    sample = take(order, T, groups)
    seen = sample.joint.sum(axis=1) if screened else np.asarray(order.proportions)
    judgements = sample.judged * float(seen @ needed)
    ways = "judged once" if repeats == 1 else f"{'majority' if grades == 2 else 'median'} of {repeats}"
    missing = f"needs {sample.screened:,.0f} documents a query, {order.pool:,} are there"
    return _option(
        order,
        name=f"{grades} grades, {sampling}, {ways}",
        grades=grades,
        sampling=sampling,
        repeats=repeats,
        scale=scale_name(groups),
        judgements=judgements,
        screened=sample.screened,
        query_cost=judgements * order.cost + sample.screening_cost,
        counts=sample.pairs,
        perfect=take(order, np.eye(grades)[groups], groups).pairs,
        error_rate=1 - float(sample.joint[np.arange(len(groups)), groups].sum()),
        problem=missing if sample.screened > order.pool else "",
    )


def _natural(order: Order, T: FloatArray, groups: Groups) -> Sample:
    """Documents as they come."""
    joint = np.asarray(order.proportions)[:, None] * T
    n = order.documents
    return Sample(joint, n * (n - 1) / 2 * pair_shares(joint), n, n)


def _balanced(order: Order, T: FloatArray, groups: Groups) -> Sample:
    """Judges judge until every grade is full; what they find depends on their own errors."""
    joint = np.asarray(order.proportions)[:, None] * T
    quotas = _quotas(order.documents, T.shape[1])
    drawn = expected_draws(joint.sum(axis=0), quotas)
    with np.errstate(invalid="ignore", divide="ignore"):
        kept = np.nan_to_num(quotas / order.documents * joint / joint.sum(axis=0))
    return Sample(kept, order.documents**2 / 2 * pair_shares(kept), drawn, drawn)


def _screened(order: Order, T: FloatArray, groups: Groups) -> Sample:
    """A screener who sees the true grade of the scale fills the quotas; judges judge what he hands over."""
    r = np.asarray(order.proportions)
    quotas = _quotas(order.documents, T.shape[1])
    shares = np.bincount(groups, weights=r, minlength=T.shape[1])
    within = r / shares[groups]
    joint = (quotas[groups] / order.documents * within)[:, None] * T
    pairs = order.documents**2 / 2 * pair_shares(joint)
    for g, quota in enumerate(quotas):  # a document makes no pair with itself
        pairs -= quota / 2 * pair_shares(np.where(groups == g, within, 0.0)[:, None] * T)
    drawn = expected_draws(shares, quotas)
    return Sample(joint, pairs, order.documents, drawn, drawn * float(order.screen_cost or 0.0))


def pairwise(order: Order, k: int, repeats: int) -> Option:
    """Top-k labelling by pairs; each comparison judged once or several times."""
    flips = np.array([[1 - order.pair_error, order.pair_error], [order.pair_error, 1 - order.pair_error]])
    error = float(median_matrix(flips, repeats, shared=order.shared)[0, 1])
    needed = float(judgements_needed(flips, repeats, shared=order.shared)[0])
    k = min(k, order.documents)
    played = play_top_k(order.documents, k, order.proportions, round(error, 12), seed=order.seed)
    perfect = play_top_k(order.documents, k, order.proportions, 0.0, seed=order.seed)
    ways = "judged once" if repeats == 1 else f"majority of {repeats}"
    return _option(
        order,
        name=f"top {k} by pairs, {ways}",
        grades=None,
        sampling="top-k",
        repeats=repeats,
        scale=f"order of the best {k}",
        judgements=played.judgements * needed,
        screened=float(order.documents),
        query_cost=played.judgements * needed * order.pair_cost,
        counts=np.array(played[1:]),
        perfect=np.array(perfect[1:]),
        error_rate=error,
    )


def pair_shares(joint: FloatArray) -> FloatArray:
    """Correct, inverse and new-come shares among ordered pairs of labels drawn from ``joint`` (true, given).

    >>> pair_shares(np.array([[0.4, 0.1], [0.1, 0.4]])).round(3).tolist()
    [0.32, 0.02, 0.16]
    """
    c = joint.shape[1]
    below = joint @ np.tril(np.ones((c, c)), -1).T  # [l, m]: documents of true grade l given a grade below m
    both = joint @ below.T  # [l, j]: the first document has the higher given grade
    return 2 * np.array([np.tril(both, -1).sum(), np.triu(both, 1).sum(), np.trace(both)])


def coarsened(proportions: Sequence[float], grades: int) -> Groups:
    """The grade of a coarser scale for each grade of the truth: the most balanced merge of neighbours.

    >>> coarsened((51.7, 32.5, 13.3, 1.7, 0.8), 2).tolist()
    [0, 1, 1, 1, 1]
    """
    r = np.asarray(proportions, dtype=np.float64)
    best, varied = None, -1.0
    for cuts in combinations(range(1, len(r)), grades - 1):
        shares = np.add.reduceat(r, (0, *cuts)) / r.sum()
        entropy = float(-(shares * np.log(np.where(shares > 0, shares, 1))).sum())
        if entropy > varied + 1e-12:
            best, varied = cuts, entropy
    if best is None:
        raise invalid("scales", f"must not have more grades than the truth ({len(r)})", grades)
    return np.searchsorted(best, np.arange(len(r)), side="right").astype(np.int64)


def expected_draws(shares: npt.ArrayLike, quotas: npt.ArrayLike) -> float:
    """How many documents one looks at, on average, until every quota is full.

    Documents come with shares p_m; if they came in a Poisson stream of rate 1, the quota k_m would be full by
    time t with probability P(Poisson(p_m t) >= k_m), independently, and the mean number looked at is the mean
    time:

        E = integral over t >= 0 of 1 - prod_m P(Poisson(p_m t) >= k_m).

    >>> round(expected_draws([0.5, 0.5], [1, 1]), 3)  # the coupon collector
    3.0
    """
    from scipy.special import gammainc

    p, k = np.asarray(shares, dtype=np.float64), np.asarray(quotas, dtype=np.float64)
    p, k = p[k > 0], k[k > 0]
    if (p <= 0).any():
        return float("inf")
    longest = float(((k + 12 * np.sqrt(k) + 40) / p).max())
    start = float((np.maximum(k - 12 * np.sqrt(k) - 1, 0) / p).max())
    nodes, weights = _legendre(200)  # the integrand is smooth
    t = start + (longest - start) * (nodes + 1) / 2
    full = np.prod(gammainc(k[:, None], p[:, None] * t), axis=0)
    return start + float(((1 - full) * weights).sum() * (longest - start) / 2)


def _option(
    order: Order,
    *,
    counts: FloatArray,
    perfect: FloatArray,
    query_cost: float,
    problem: str = "",
    **named: Any,
) -> Option:
    queries = int(order.budget / query_cost + 1e-9) if query_cost > 0 else 0
    if order.queries is not None:
        queries = min(queries, order.queries)
    every = float(counts.sum())
    noise, floor = (float((c[1] + c[2] / 2) / c.sum()) if c.sum() > 0 else 0.5 for c in (counts, perfect))
    if not problem and queries < 1:
        problem = f"one query costs {query_cost:,.2f}, more than the budget"
    return Option(
        query_cost=query_cost,
        queries=queries,
        pairs=every,
        pnoise=noise,
        floor=floor,
        excess=noise - floor,
        signal_left=1 - 2 * noise,
        effective_pairs=queries * every * (1 - 2 * noise) ** 2 if every > 0 else 0.0,
        problem=problem,
        **named,
    )


def _quotas(documents: int, grades: int) -> FloatArray:
    quotas = np.full(grades, documents // grades, dtype=np.float64)
    quotas[: documents % grades] += 1
    return quotas
