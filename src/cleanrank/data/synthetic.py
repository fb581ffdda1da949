"""Synthetic ranking data: a web-search shape of any size, and Haddad's generator.

Every document has K hidden traits z, part of which its query shares. Features are noisy readings of traits
(heavy-tailed counts, shares, scores, correlated groups), constants of the query, or plain noise. The utility
g(z) is non-linear with interactions; grades cut g(z) plus judging noise at the wanted proportions.

Queries come in blocks with a generator of their own, so the result depends on the seed alone: not on the
size of chunks, the number of threads or the number of queries asked for (fewer queries are a prefix of more).
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.ragged import from_arrays, indptr_of
from cleanrank.types import Array, FloatArray, IntArray, RankingData
from cleanrank.validation import (
    check_integer,
    check_memory,
    check_n_jobs,
    check_number,
    check_seed,
    is_number,
    one_of,
)

TRAITS = 10
BLOCK = 32
CALIBRATION = 200_000
SIGNAL = 0.7
LENGTHS, STRUCTURE, CALIBRATE, BLOCKS = range(4)
Float32: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Shape:
    """The published outline of a data set: columns, log-normal list lengths, shares of the grades.

    ``docs`` is the mean of the documents per query, ``spread`` the standard deviation of their logarithm.
    """

    n_features: int
    docs: float
    spread: float
    grades: tuple[float, ...]
    source: str


@dataclass(frozen=True)
class _Columns:
    """What every column reads: two traits and their weights, its noise, and its kind."""

    first: IntArray
    second: IntArray
    load: npt.NDArray[np.float32]
    load2: npt.NDArray[np.float32]
    noise: npt.NDArray[np.float32]
    counts: slice
    shares: slice
    scores: slice
    constants: slice


@dataclass(frozen=True)
class _Plan:
    """What determines the rows; ``indptr`` runs to the end of the last block of queries."""

    seed: int
    indptr: IntArray
    signal: float
    n_features: int
    columns: _Columns
    cuts: FloatArray
    centre: float
    scale: float


def make_ranking(
    n_queries: int = 1000,
    n_features: int | None = None,
    *,
    docs_per_query: float | tuple[float, float] | None = None,
    grades: Sequence[float] | None = None,
    signal: float = SIGNAL,
    shape: str = "mslr",
    seed: int = 0,
    n_jobs: int | None = 1,
) -> RankingData:
    """A synthetic data set of web-search shape; nothing in it was ever judged by a person.

    Args:
        n_queries: number of queries.
        n_features: number of columns; the shape's when not given.
        docs_per_query: mean documents per query, or (mean, standard deviation of the log length); list
            lengths are log-normal, at least 1. The shape's when not given.
        grades: shares of grade 0, 1, ...; they must sum to 1. The shape's when not given.
        signal: correlation between the utility and what the judge saw, in [0, 1]; 1 means clean grades.
        shape: whose outline (features, list lengths, grade shares) is imitated, one of ``SHAPES``. The
            values are made up all the same.
        seed: same seed, same data.
        n_jobs: threads; -1 or None means all. The result is the same for any number.

    Returns:
        The data; the same for any number of threads.

    >>> make_ranking(20, 8, docs_per_query=30, seed=1)
    RankingData(20 queries, ... documents, 8 features (dense), grades {...})
    """
    check_n_jobs(n_jobs)
    check_memory("n_queries", size_of(n_queries, n_features, docs_per_query, shape))
    plan = _plan(n_queries, n_features, docs_per_query, grades, signal, shape, seed)
    return _piece(plan, 0, n_queries, n_jobs)[0]


def size_of(
    n_queries: int,
    n_features: int | None = None,
    docs_per_query: float | tuple[float, float] | None = None,
    shape: str = "mslr",
) -> float:
    """About how many bytes the features that ``make_ranking`` gives take; 0 for arguments that it refuses.

    >>> size_of(1000, 10, docs_per_query=50)
    2000000.0
    """
    outline = SHAPES[one_of("shape", shape, SHAPES)]
    docs = outline.docs if docs_per_query is None else docs_per_query
    mean = docs[0] if isinstance(docs, tuple) and docs else docs
    columns = outline.n_features if n_features is None else n_features
    if not all(is_number(value) for value in (n_queries, columns, mean)):
        return 0.0
    return float(n_queries) * float(columns) * float(mean) * 4


def make_ranking_chunks(
    n_queries: int = 1000, n_features: int | None = None, *, chunk_queries: int = 2048, **outline: Any
) -> Iterator[RankingData]:
    """The data of ``make_ranking`` in pieces of ``chunk_queries`` queries; only one piece is in memory.

    The other arguments are those of ``make_ranking``. Query and row ids run on from piece to piece.

    >>> [piece.n_queries for piece in make_ranking_chunks(70, 4, docs_per_query=5, chunk_queries=30)]
    [30, 30, 10]
    """
    check_integer("chunk_queries", chunk_queries, least=1)
    for name in outline:
        one_of("argument", name, ("docs_per_query", "grades", "signal", "shape", "seed"))
    plan = _plan(n_queries, n_features, **outline)
    starts = range(0, n_queries, chunk_queries)
    return (_piece(plan, start, min(start + chunk_queries, n_queries))[0] for start in starts)


def make_haddad(
    n_queries: int = 20,
    n_docs: int = 500,
    *,
    dim: int = 5,
    theta: str = "per-query",
    tau: float = 0.5,
    seed: int = 0,
) -> RankingData:
    """Binary relevance from a linear model per query (Haddad 2022).

    x ~ N(0, I), theta_q ~ N(0, I), P(y = 1 | x) = sigma(<theta_q, x>). With ``theta="per-query"`` nothing
    carries over from query to query; ``theta="shared"`` sets theta_q = theta_0 + tau * N(0, I) instead, so
    that one model can serve all.

    >>> make_haddad(2, 50).n_docs
    100
    """
    one_of("theta", theta, THETAS)
    check_seed(seed)
    for name, size in (("n_queries", n_queries), ("n_docs", n_docs), ("dim", dim)):
        check_integer(name, size, least=1)
    check_memory("n_queries, n_docs and dim", 8.0 * n_queries * n_docs * dim)
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    shared = rng.standard_normal(dim)
    thetas = rng.standard_normal((n_queries, dim))
    if theta == "shared":
        thetas = shared + tau * thetas
    X = rng.standard_normal((n_queries, n_docs, dim))
    logit = np.einsum("qnd,qd->qn", X, thetas)
    y = rng.random((n_queries, n_docs)) < 1 / (1 + np.exp(-logit))
    return from_arrays(X.reshape(-1, dim), y.reshape(-1), group=np.full(n_queries, n_docs))


def _plan(
    n_queries: int,
    n_features: int | None,
    docs_per_query: float | tuple[float, float] | None = None,
    grades: Sequence[float] | None = None,
    signal: float = SIGNAL,
    shape: str = "mslr",
    seed: int = 0,
) -> _Plan:
    outline = SHAPES[one_of("shape", shape, SHAPES)]
    n_features = outline.n_features if n_features is None else n_features
    shares = tuple(outline.grades if grades is None else grades)
    check_seed(seed)
    check_integer("n_queries", n_queries, least=1)
    check_integer("n_features", n_features, least=1)
    if len(shares) < 2 or min(shares) < 0 or not np.isclose(sum(shares), 1, atol=1e-3):
        raise invalid("grades", "must be two or more shares that sum to 1", shares)
    check_number("signal", signal, least=0, most=1)
    docs = (outline.docs, outline.spread) if docs_per_query is None else docs_per_query
    pair: tuple[float, ...] = docs if isinstance(docs, tuple) else (docs, outline.spread)
    if len(pair) != 2 or not (pair[0] >= 1 and pair[1] >= 0):
        raise invalid("docs_per_query", "must have a mean of at least 1 and a spread of at least 0", docs)
    mean, spread = pair
    blocks = -(-n_queries // BLOCK)
    log_length = _rng(seed, LENGTHS).standard_normal(blocks * BLOCK) * spread - spread**2 / 2
    lengths = np.clip(np.rint(mean * np.exp(log_length)), 1, 20 * mean).astype(np.int64)
    z, _ = _traits(_rng(seed, CALIBRATE), np.full(CALIBRATION // 100, 100))
    utility = _utility(z)
    centre, scale = float(utility.mean()), float(utility.std())
    seen = _seen((utility - centre) / scale, signal, _rng(seed, CALIBRATE, 1))
    cuts = np.quantile(seen, np.clip(np.cumsum(shares)[:-1], 0, 1))
    columns = _columns(n_features, _rng(seed, STRUCTURE))
    return _Plan(seed, indptr_of(lengths), signal, n_features, columns, cuts, centre, scale)


def _rng(seed: int, *key: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=key)))


def _traits(rng: np.random.Generator, lengths: IntArray) -> tuple[Float32, Float32]:
    """Hidden traits of every document, a quarter of whose variance its query shares, and the query's own."""
    query = rng.standard_normal((len(lengths), TRAITS), dtype=np.float32)
    own = rng.standard_normal((int(lengths.sum()), TRAITS), dtype=np.float32)
    return np.float32(0.5) * np.repeat(query, lengths, axis=0) + np.float32(0.75**0.5) * own, query


def _utility(z: Float32) -> FloatArray:
    """g(z): a linear part that a straight line finds, and bends and interactions that it does not."""
    t = z.astype(np.float64).T
    straight = 0.5 * t[0] + 0.4 * t[1] + 0.3 * t[2]
    bends = 0.9 * np.minimum(t[0], t[3]) - 0.5 * np.abs(t[4]) + 0.8 * np.tanh(2 * t[5] * t[6])
    gates = np.where(t[1] > 0, 0.9 * t[7], -0.5 * t[7]) + 0.7 * ((t[2] > 0.5) & (t[8] > 0))
    return np.asarray(straight + bends + gates, dtype=np.float64)


def _seen(utility: FloatArray, signal: float, rng: np.random.Generator) -> FloatArray:
    noise = float((1 - signal**2) ** 0.5)
    return signal * utility + noise * rng.standard_normal(len(utility))


def _columns(n: int, rng: np.random.Generator) -> _Columns:
    """Lays the columns out kind by kind: counts, shares, scores, constants of the query, plain noise."""
    ends = np.rint(np.cumsum([0.35, 0.2, 0.25, 0.08]) * n).astype(int)
    first = rng.permutation(np.arange(n) % TRAITS)
    noise = rng.uniform(0.4, 1.4, n).astype(np.float32)
    load = np.ones(n, dtype=np.float32)
    load2 = rng.uniform(-0.3, 0.3, n).astype(np.float32)
    load[ends[3] :] = 0
    load2[ends[3] :] = 0
    second = (first + 1 + rng.integers(0, TRAITS - 1, n)) % TRAITS
    kinds = [slice(int(a), int(b)) for a, b in zip([0, *ends[:3]], ends, strict=True)]
    return _Columns(first, second, load, load2, noise, *kinds)


def _fill(X: Array, plan: _Plan, z: Float32, query: Float32, lengths: IntArray, rng: Any) -> None:
    """Turns traits into the columns of one block."""
    c = plan.columns
    rng.standard_normal(out=X, dtype=np.float32)
    X *= c.noise
    X += z[:, c.first] * c.load
    X += z[:, c.second] * c.load2
    counts, shares, scores = X[:, c.counts], X[:, c.shares], X[:, c.scores]
    np.floor(np.exp(np.minimum(np.float32(1.3) * counts + np.float32(0.5), np.float32(16))), out=counts)
    words = np.repeat(rng.integers(1, 7, len(lengths)), lengths).astype(np.float32)[:, None]
    np.divide(np.rint(words / (1 + np.exp(-2 * shares))), words, out=shares)
    scores *= np.float32(4)
    scores += np.float32(20)
    np.maximum(scores, 0, out=scores)
    constants = np.exp(query[:, c.first[c.constants]])
    X[:, c.constants] = np.repeat(constants, lengths, axis=0)
    heavy = X[:, c.constants.stop :: 2]
    np.exp(heavy, out=heavy)


def _piece(plan: _Plan, start: int, end: int, n_jobs: int | None = 1) -> tuple[RankingData, FloatArray]:
    """Queries ``start`` to ``end``; whole blocks are made and what lies outside is cut away."""
    blocks = range(start // BLOCK, -(-end // BLOCK))
    base = int(plan.indptr[blocks[0] * BLOCK])
    stop = int(plan.indptr[(blocks[-1] + 1) * BLOCK])
    X = np.empty((stop - base, plan.n_features), dtype=np.float32)
    y = np.empty(stop - base, dtype=np.int32)
    utility = np.empty(stop - base)

    def fill(block: int) -> None:
        bounds = plan.indptr[block * BLOCK : (block + 1) * BLOCK + 1] - base
        rows, lengths = slice(int(bounds[0]), int(bounds[-1])), np.diff(bounds)
        rng = _rng(plan.seed, BLOCKS, block)
        z, query = _traits(rng, lengths)
        utility[rows] = (_utility(z) - plan.centre) / plan.scale
        y[rows] = np.searchsorted(plan.cuts, _seen(utility[rows], plan.signal, rng), side="right")
        _fill(X[rows], plan, z, query, lengths, rng)

    if n_jobs == 1:
        for block in blocks:
            fill(block)
    else:
        with ThreadPoolExecutor(os.cpu_count() if n_jobs is None or n_jobs < 0 else n_jobs) as pool:
            list(pool.map(fill, blocks))
    first, last = int(plan.indptr[start]), int(plan.indptr[end])
    rows = slice(first - base, last - base)
    data = RankingData(
        X=X[rows],
        y=y[rows],
        indptr=plan.indptr[start : end + 1] - first,
        query_ids=np.arange(start, end),
        row_ids=np.arange(first, last),
    )
    return data, utility[rows]


THETAS: tuple[str, ...] = ("per-query", "shared")
MARCUZZI = "Marcuzzi et al. 2022, Tab. 1"
NIU = "Niu et al. 2015, Tab. 1"
SHAPES: Mapping[str, Shape] = {
    "mslr": Shape(136, 120.0, 0.6, (0.517, 0.325, 0.133, 0.017, 0.008), NIU),
    "yahoo": Shape(519, 23.72, 0.45, (0.2609, 0.3580, 0.2855, 0.0767, 0.0189), MARCUZZI),
    "istella": Shape(220, 2679.14, 0.45, (0.99827, 0.00099, 0.00019, 0.00036, 0.00019), MARCUZZI),
    "td2003": Shape(64, 981.0, 0.1, (0.992, 0.008), NIU),
    "ohsumed": Shape(45, 152.0, 0.43, (0.70, 0.16, 0.14), NIU),
    "mq2008": Shape(46, 19.4, 0.73, (0.8072, 0.1316, 0.0612), "counted in the files of LETOR 4.0"),
}
