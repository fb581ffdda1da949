"""The trial behind order preservation: queries, scorers of known quality, and many draws of label noise.

Symbols: Q queries with N documents in all; C grades, y the true ones; S scorers, scores (S, N); D draws of
the noise, labels (D, N). A risk is linear in weights that depend on the labels alone, so it is enough to
average these weights over the draws: the mean over D draws costs one evaluation of the loss.

    points  sum_i l(s_i, t_i) / (n Q)                t_i = y_i / (C - 1)
    pairs   sum_ij w_ij l(s_i - s_j, 1)              w_ij = 0 unless y_i > y_j

with the pair weights w_ij of a query

    macro       1 / (number of its pairs), mean over queries that have pairs (the risk of Haddad 2022)
    micro       1 / n^2, mean over queries
    prevalence  1 / (number of its pairs of *true* labels), mean over queries: macro with its repair
    gain        (2^y_i - 2^y_j) / n^2, mean over queries: micro for grades
    lambdarank  |delta NDCG@10| of the pair in the ranking by these very scores
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from cleanrank.jit import kernel, prange
from cleanrank.losses.binary import BinaryLoss
from cleanrank.metrics.evaluation import query_values, weighted_means
from cleanrank.metrics.measure import Measure
from cleanrank.ragged import indptr_of, query_of_row, ranks, segment_sum
from cleanrank.types import Array, FloatArray, IntArray
from cleanrank.validation import one_of

WEIGHTINGS: dict[str, str] = {
    "macro": "mean over the pairs of a query, then over queries",
    "micro": "pair sum / n^2, mean over queries",
    "prevalence": "pair sum / pairs of true labels, mean over queries",
    "gain": "pair sum weighted by the difference of gains / n^2, mean over queries",
    "lambdarank": "pair sum weighted by |delta NDCG@10|, mean over queries",
}
CUTOFF = 10
LOUDEST = 4.0
TILT = 1.5


@dataclass(frozen=True, eq=False)
class Trial:
    """What all losses and measures are tried on."""

    y: Array  # (N,) true grades
    indptr: IntArray  # (Q + 1,) row offsets
    n_grades: int  # C
    scores: FloatArray  # (S, N)
    labels: Array  # (D, N) noisy grades


def make_labels(
    prevalence: FloatArray, n_docs: int, rng: np.random.Generator, n_grades: int = 2
) -> tuple[Array, IntArray]:
    """True grades of queries with these shares of relevant documents; each has a grade 0 and a higher one."""
    relevant = np.clip(np.rint(prevalence * n_docs).astype(int), 1, n_docs - 1)
    y = (np.arange(n_docs) < relevant[:, None]).astype(np.int32)
    if n_grades > 2:
        y *= rng.integers(1, n_grades, size=y.shape, dtype=np.int32)
    return y.ravel(), indptr_of(np.full(len(prevalence), n_docs))


def shares(y: Array, indptr: IntArray) -> FloatArray:
    """The share of relevant documents of every query."""
    return np.asarray(segment_sum(y > 0, indptr) / np.maximum(np.diff(indptr), 1))


def even_scorers(y: Array, indptr: IntArray, n_grades: int, n: int, rng: np.random.Generator) -> FloatArray:
    """f_j = a_j ((2t - 1) + sd_j N(0, 1)): equally good on all queries; every second one scaled by 10."""
    return _scores(y, n_grades, np.linspace(0.1, LOUDEST, n)[:, None], rng)


def tilted_scorers(y: Array, indptr: IntArray, n_grades: int, n: int, rng: np.random.Generator) -> FloatArray:
    """As ``even_scorers``, but each better on some queries: balanced or lopsided ones, of low or high p.

    sd_jq = sd_j exp(1.5 (u_j b_q + v_j c_q)), u_j and v_j uniform on [-1, 1], b_q and c_q the places in
    [-1, 1] of p_q (1 - p_q) and of p_q among all queries.
    """
    p = shares(y, indptr)
    traits = np.stack([_place(p * (1.0 - p)), _place(p)])
    tilt = np.exp(TILT * (rng.uniform(-1.0, 1.0, (n, 2)) @ traits))[:, query_of_row(indptr)]
    return _scores(y, n_grades, np.linspace(0.1, LOUDEST, n)[rng.permutation(n), None] * tilt, rng)


def _scores(y: Array, n_grades: int, deviation: FloatArray, rng: np.random.Generator) -> FloatArray:
    """a_j ((2t - 1) + deviation N(0, 1)), (S, N); a_j is 1 and 10 in turn."""
    target, n = 2.0 * y / (n_grades - 1) - 1.0, len(deviation)
    scale = np.where(np.arange(n) % 2 == 1, 10.0, 1.0)[:, None]
    return np.asarray(scale * (target + deviation * rng.standard_normal((n, len(y)))))


def _place(values: FloatArray) -> FloatArray:
    """Values moved to [-1, 1]."""
    return np.asarray(2.0 * (values - values.min()) / max(float(np.ptp(values)), 1e-12) - 1.0)


def draw_labels(
    y: Array, indptr: IntArray, matrices: FloatArray, draws: int, rng: np.random.Generator
) -> Array:
    """(D, N) noisy grades; ``matrices`` (Q, C, C), one for every query."""
    steps = np.cumsum(matrices, axis=2)[query_of_row(indptr), y][:, :-1]
    labels = np.empty((draws, len(y)), dtype=np.int32)
    for d in range(draws):
        labels[d] = (rng.random(len(y))[:, None] >= steps).sum(axis=1)
    return labels


def point_risks(trial: Trial, loss: BinaryLoss) -> tuple[FloatArray, FloatArray]:
    """Clean and mean noisy risk of every scorer, (S,) each."""
    top = trial.n_grades - 1
    lengths = np.diff(trial.indptr)
    weight = np.repeat(1.0 / (np.maximum(lengths, 1) * len(lengths)), lengths)
    # A loss is linear in its target, so the mean over draws is the loss at the mean label.
    targets = trial.y / top, trial.labels.mean(axis=0) / top
    one, zero = (loss.value(trial.scores, t) for t in (1.0, 0.0))
    clean, noisy = ((t * one + (1.0 - t) * zero) @ weight for t in targets)
    return clean, noisy


def pair_risks(trial: Trial, loss: BinaryLoss, weighting: str) -> tuple[FloatArray, FloatArray]:
    """As ``point_risks`` for pairs under a weighting of WEIGHTINGS."""
    clean = pair_weights(trial, trial.y[None], weighting)
    noisy = pair_weights(trial, trial.labels, weighting)
    risks = np.zeros((2, len(trial.scores)))
    start = 0
    for low, high in pairwise(trial.indptr):
        stop = start + (high - low) ** 2
        both = np.stack((clean[start:stop], noisy[start:stop]))
        for s, scores in enumerate(trial.scores[:, low:high]):
            values = loss.value((scores[:, None] - scores[None, :]).ravel(), 1.0)
            if weighting == "lambdarank":
                values = values * _discount_steps(scores)
            risks[:, s] += both @ values
        start = stop
    return risks[0], risks[1]


def pair_weights(trial: Trial, labels: Array, weighting: str) -> FloatArray:
    """Weights of all ordered pairs, query by query, averaged over draws."""
    Q, C = len(trial.indptr) - 1, trial.n_grades
    lengths = np.diff(trial.indptr).astype(np.float64)
    grades = np.arange(C)
    counts = np.stack([np.add.reduceat(labels == g, trial.indptr[:-1], axis=1) for g in grades], axis=2)
    table = (grades[:, None] > grades[None, :]).astype(np.float64)
    if weighting in ("gain", "lambdarank"):
        table = np.maximum(np.exp2(grades)[:, None] - np.exp2(grades)[None, :], 0.0)
    with np.errstate(divide="ignore"):
        if weighting in ("micro", "gain"):
            scale = np.tile(1.0 / lengths**2, (len(labels), 1))
        elif weighting == "prevalence":
            true = np.stack([np.add.reduceat(trial.y == g, trial.indptr[:-1]) for g in grades], axis=1)
            scale = np.tile(1.0 / _pairs(true), (len(labels), 1))
        elif weighting == "macro":
            scale = 1.0 / _pairs(counts)
        else:
            scale = 1.0 / _ideal(counts)
    scale[~np.isfinite(scale)] = 0.0
    kept = (
        (_pairs(counts) > 0).sum(axis=1) if weighting in ("macro", "lambdarank") else np.full(len(labels), Q)
    )
    scale /= np.maximum(kept, 1)[:, None] * len(labels)
    return np.asarray(mean_pair_weights(labels, trial.indptr, table, scale))


def _pairs(counts: Array) -> FloatArray:
    """Pairs of different grades from counts of each grade (..., C)."""
    n = counts.sum(axis=-1).astype(np.float64)
    return np.asarray((n**2 - (counts.astype(np.float64) ** 2).sum(axis=-1)) / 2.0)


def _discounts(n: int) -> FloatArray:
    return np.where(np.arange(n) < CUTOFF, 1.0 / np.log2(np.arange(n) + 2.0), 0.0)


def _ideal(counts: Array) -> FloatArray:
    """The ideal DCG@10 from counts of each grade (D, Q, C)."""
    upto = np.concatenate(([0.0], np.cumsum(_discounts(int(counts.sum(axis=-1).max(initial=1))))))
    above = np.cumsum(counts[..., ::-1], axis=-1)
    gained = upto[above] - upto[above - counts[..., ::-1]]
    return np.asarray(gained @ (np.exp2(np.arange(counts.shape[-1]))[::-1] - 1.0))


def _discount_steps(scores: FloatArray) -> FloatArray:
    at = _discounts(len(scores))[ranks(scores, np.array([0, len(scores)])) - 1]
    steps: FloatArray = np.abs(at[:, None] - at[None, :]).ravel()
    return steps


def measure_values(trial: Trial, measures: tuple[Measure, ...]) -> tuple[FloatArray, FloatArray]:
    """Clean and mean noisy values, (M, S) each; queries that a measure leaves out are left out by draw."""
    S, Q = len(trial.scores), len(trial.indptr) - 1
    rows = np.concatenate(([0], (trial.indptr[1:] + len(trial.y) * np.arange(S)[:, None]).ravel()))
    scores = np.ascontiguousarray(trial.scores.ravel())

    def means(labels: Array) -> FloatArray:
        values, weights = query_values(measures, np.tile(labels, S), scores, rows)
        flat = weighted_means(values.reshape(-1, Q), weights.reshape(-1, Q))
        return flat.reshape(len(measures), S)

    noisy = np.zeros((len(measures), S))
    for labels in trial.labels:
        noisy += means(labels)
    return means(trial.y), noisy / len(trial.labels)


SCORERS: dict[str, Callable[..., FloatArray]] = {"even": even_scorers, "tilted": tilted_scorers}


def make_trial(
    y: Array, indptr: IntArray, matrices: FloatArray, *, scorers: str, n_scorers: int, draws: int, seed: Any
) -> Trial:
    """Scorers and noisy labels for given true grades."""
    make = SCORERS[one_of("scorers", scorers, SCORERS)]
    rng = np.random.default_rng(seed)
    n_grades = matrices.shape[-1]
    scores = make(y, indptr, n_grades, n_scorers, rng)
    return Trial(y, indptr, n_grades, scores, draw_labels(y, indptr, matrices, draws, rng))


@kernel()
def _one_query(labels: Array, table: Array, scale: Array, out: Array) -> None:
    draws, n = labels.shape
    for d in range(draws):
        if scale[d] == 0.0:
            continue
        for i in range(n):
            a = labels[d, i]
            for j in range(n):
                out[i * n + j] += scale[d] * table[a, labels[d, j]]


@kernel(parallel=True)
def mean_pair_weights(labels: Array, indptr: Array, table: Array, scale: Array) -> Array:
    """For every ordered pair (i, j) of a query: sum over draws d of scale[d, q] table[label_di, label_dj]."""
    n_queries = len(indptr) - 1
    starts = np.zeros(n_queries + 1, np.int64)
    for q in range(n_queries):
        starts[q + 1] = starts[q] + (indptr[q + 1] - indptr[q]) ** 2
    out = np.zeros(starts[-1], np.float64)
    for q in prange(n_queries):
        rows = labels[:, indptr[q] : indptr[q + 1]]
        _one_query(rows, table, scale[:, q], out[starts[q] : starts[q + 1]])
    return out
