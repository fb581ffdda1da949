"""The peer objective for trees (Peer-lambda-LGBM): LambdaRank gradients minus those of shuffled labels.

A peer of a document keeps its features and takes the label of another one. With g, h the gradients of the
given labels and g', h' those of the peers at the same scores,

    g - alpha g',   max(h - alpha h', .001 h)   (alpha h' where h is 0).

*Sampled* peers permute the labels at random for every tree. *Expected* peers are the mean over all
permutations of a query: for documents i, j at ranks with discounts D_i, D_j and a = s_i - s_j

    g'_i = sigma |D_i - D_j| gbar / Z (1 / (1 + exp(-sigma a)) - 1/2),   gbar = mean |G_a - G_b| over a != b,

divided by .01 + |a| with ``norm``. The factor log2(1 + S) / S of ``norm`` is not linear in the labels;
expected peers take it at the mean of S. Without ``norm`` they are the exact mean.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cleanrank.errors import invalid
from cleanrank.jit import kernel, mix64, prange
from cleanrank.losses.trees._pair_kernels import exponential_factor, load_ranked, longest_query, store_sums
from cleanrank.losses.trees.lambdarank import LambdaRankObjective
from cleanrank.types import Array, FloatArray, RankingData
from cleanrank.validation import check_integer, check_number, one_of

KINDS = ("sampled", "expected")


@dataclass(frozen=True)
class Peers:
    """How peers are made."""

    alpha: float  # weight of the peers' gradients, >= 0
    kind: str = "sampled"  # "sampled" or "expected"
    # Labels are permuted within a query or over the whole batch; expected peers: query only.
    within: str = "query"
    permutations: int = 1  # how many random permutations are averaged
    seed: int = 0  # same seed, same permutations, whatever the number of threads

    def __post_init__(self) -> None:
        one_of("kind of peers", self.kind, KINDS)
        one_of("range of peers", self.within, ("query", "batch"))
        check_number("alpha", self.alpha, least=0)
        check_integer("permutations", self.permutations, least=1)
        if self.kind == "expected" and self.within != "query":
            raise invalid("within", "must be 'query' for expected peers", self.within)


class PeerObjective(LambdaRankObjective):
    """LambdaRank minus ``alpha`` times the gradients of peers; ``options`` as of ``LambdaRankObjective``."""

    def __init__(self, data: RankingData, peers: Peers, **options: Any) -> None:
        super().__init__(data, **options)
        self.peers = peers
        self._peer_grad, self._peer_hess = (np.empty_like(self._grad) for _ in range(2))
        self._scale = mean_gain_gap(self.gains, self.ranking.indptr) * self._inverse_ideal
        self._first = 0  # the number of the first query, where these are a part

    def part(self, first: int, last: int) -> Self:
        """The objective of the queries first, ..., last - 1 alone."""
        if self.peers.within == "batch":
            rule = "must be 'query' on a cluster, whose workers do not see each other's labels"
            raise invalid("within", rule, repr(self.peers.within))
        part = super().part(first, last)
        part._first, part._scale = self._first + first, self._scale[first:last]
        part._peer_grad, part._peer_hess = (np.empty_like(part._grad) for _ in range(2))
        return part

    def _base(self, scores: FloatArray) -> None:
        super()._base(scores)
        if self.peers.alpha == 0:
            return
        if self.peers.kind == "expected":
            ranking = self.ranking
            expected_gradients(
                scores, ranking.indptr, ranking.bounds, ranking.order, self._discount, self._scale,
                self.sigmoid, self.norm, self.truncation_level, self._peer_grad, self._peer_hess,
            )  # fmt: skip
        else:
            self._sampled(scores)
        subtract_peers(self._grad, self._hess, self._peer_grad, self._peer_hess, float(self.peers.alpha))

    def _sampled(self, scores: FloatArray) -> None:
        """The mean gradients of this tree's permutations."""
        times = self.peers.permutations
        gains = np.empty_like(self.gains)
        grad, hess = np.empty_like(self._grad), np.empty_like(self._hess)
        sums = np.zeros((2, len(gains)))
        for key in np.random.SeedSequence([self.peers.seed, self.rounds]).generate_state(times, np.uint64):
            if self.peers.within == "query":
                permute_within(self.gains, self.ranking.indptr, key, gains, self._first)
                inverse_ideal = self._inverse_ideal
            else:
                permute_all(self.gains, key, gains)
                inverse_ideal = self._ideal(gains)
            self._lambdas(scores, gains, inverse_ideal, grad, hess)
            sums[0] += grad
            sums[1] += hess
        self._peer_grad[:], self._peer_hess[:] = sums / times


_mix = kernel(inline=True)(mix64)


@kernel()
def _mixed(z: np.uint64) -> np.uint64:
    """One step of splitmix64: neighbours among counters become unrelated words."""
    return _mix(z + np.uint64(0x9E3779B97F4A7C15))


@kernel()
def _shuffle(values: Array, key: np.uint64) -> None:
    for k in range(len(values) - 1, 0, -1):
        # The high half of a word times the size: uniform to 2^-32 of a share.
        word = _mixed(key + np.uint64(k)) >> np.uint64(32)
        m = np.int64((word * np.uint64(k + 1)) >> np.uint64(32))
        values[k], values[m] = values[m], values[k]


@kernel(parallel=True)
def permute_within(gain: Array, indptr: Array, key: np.uint64, out: Array, first: int = 0) -> None:
    """Permutes the gains of every query; a query's permutation depends on the key and its number alone.

    ``first`` is the number of the first query.
    """
    for q in prange(len(indptr) - 1):
        a, b = indptr[q], indptr[q + 1]
        out[a:b] = gain[a:b]
        _shuffle(out[a:b], _mixed(key ^ _mixed(np.uint64(first + q))))


@kernel()
def permute_all(gain: Array, key: np.uint64, out: Array) -> None:
    """Permutes the gains of all rows."""
    out[:] = gain
    _shuffle(out, _mixed(key))


@kernel(parallel=True)
def mean_gain_gap(gain: Array, indptr: Array) -> Array:
    """The mean |G_a - G_b| over the pairs a != b of every query; 0 for a single document."""
    gaps = np.zeros(len(indptr) - 1)
    for q in prange(len(indptr) - 1):
        rising = np.sort(gain[indptr[q] : indptr[q + 1]])
        n = len(rising)
        for k in range(n):
            gaps[q] += (2 * k - n + 1) * rising[k]
        if n > 1:
            gaps[q] *= 2.0 / (n * (n - 1.0))
    return gaps


# Slices as arguments of a function of its own: written inline this loop is not vectorised.
@kernel(fastmath=True)
def _below(
    e: Array, s: Array, d: Array, inverse_e: float, score: float, discount: float, distance: float,
    lam: Array, hess: Array,
) -> tuple[float, float, float]:  # fmt: skip
    own, own_hess, total = 0.0, 0.0, 0.0
    for j in range(len(s)):
        x = e[j] * inverse_e
        inverse = 1.0 / (1.0 + x)
        delta = discount - d[j]
        if distance > 0.0:
            delta /= distance + (score - s[j])
        l = delta * (inverse - 0.5)
        h = delta * x * inverse * inverse
        own += l
        own_hess += h
        total += delta
        lam[j] -= l
        hess[j] += h
    return own, own_hess, total


@kernel()
def _query_expected(
    score: Array, order: Array, discount: Array, scale: float, sigma: float, norm: bool, level: int,
    grad: Array, hess: Array, work: Array,
) -> None:  # fmt: skip
    n = len(order)
    e, s, lam, h = work[0, :n], work[1, :n], work[2, :n], work[3, :n]
    d = discount[:n]
    spread = load_ranked(score, order, sigma, s, e, lam, h)
    distance = 0.01 if norm and spread != 0.0 else 0.0
    total = 0.0
    for i in range(min(level, n - 1)):
        inverse_e = exponential_factor(s, e, i, sigma, spread)
        own, own_hess, size = _below(
            e[i + 1 :], s[i + 1 :], d[i + 1 :], inverse_e, s[i], d[i], distance, lam[i + 1 :], h[i + 1 :]
        )
        lam[i] += own
        h[i] += own_hess
        total += size
    factor = sigma * scale
    # |lambda| is sigma delta times p or 1 - p, each half of the time: the mean of S = 2 sum |lambda|.
    store_sums(lam, h, order, factor, sigma, norm, total * factor, grad, hess)


@kernel(parallel=True)
def expected_gradients(
    score: Array, indptr: Array, bounds: Array, order: Array, discount: Array, scale: Array, sigma: float,
    norm: bool, level: int, grad: Array, hess: Array,
) -> None:  # fmt: skip
    """Mean gradients over all permutations of each query; ``scale`` is gbar / Z, ``order`` is up to date."""
    for piece in prange(len(bounds) - 1):
        first, last = bounds[piece], bounds[piece + 1]
        work = np.empty((4, longest_query(indptr, first, last)))
        for q in range(first, last):
            a, b = indptr[q], indptr[q + 1]
            if b - a < 2 or scale[q] == 0.0:
                grad[a:b] = np.float32(0.0)
                hess[a:b] = np.float32(0.0)
            else:
                _query_expected(
                    score[a:b], order[a:b], discount, scale[q], sigma, norm, level, grad[a:b], hess[a:b], work
                )


@kernel(parallel=True)
def subtract_peers(grad: Array, hess: Array, peer_grad: Array, peer_hess: Array, alpha: float) -> None:
    """Puts g - alpha g' and max(h - alpha h', .001 h) in place; alpha h' stands in where h is 0."""
    for k in prange(len(grad)):
        h, peer = np.float64(hess[k]), alpha * peer_hess[k]
        grad[k] = np.float32(grad[k] - alpha * peer_grad[k])
        hess[k] = np.float32(max(h - peer, 1e-3 * h) if h > 0.0 else peer)
