"""The peer objective for trees (Peer-lambda-LGBM): LambdaRank gradients less those of shuffled labels.

A peer of a document keeps its features and takes the label of another one. With g, h the gradients of the
given labels and g', h' those of the peers at the same scores,

    g - alpha g',   max(h - alpha h', .001 h)   (alpha h' where h is 0).

*Sampled* peers permute the labels at random in every round. *Expected* peers are the mean over all
permutations of a query: for documents i, j at ranks with discounts D_i, D_j and a = s_i - s_j

    g'_i = sigma |D_i - D_j| gbar / Z (1 / (1 + exp(-sigma a)) - 1/2),   gbar = mean |G_a - G_b| over a != b,

divided by .01 + |a| with ``norm``. The factor log2(1 + S) / S of ``norm`` is not linear in the labels;
expected peers take it at the mean of S. Without ``norm`` they are the exact mean.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cleanrank.errors import invalid
from cleanrank.losses.objectives import LambdaRankObjective, peer_pairs
from cleanrank.types import FloatArray, RankingData
from cleanrank.validation import one_of

KINDS: dict[str, str] = {
    "sampled": "labels permuted at random in every round",
    "expected": "the mean over all permutations of a query",
}
WITHIN = ("query", "batch")


@dataclass(frozen=True)
class Peers:
    """How peers are made.

    Attributes:
        alpha: weight of the peers' gradients, >= 0.
        kind: one of KINDS.
        within: labels are permuted within a query or over the whole batch; expected peers: query only.
        permutations: how many random permutations are averaged.
        seed: same seed, same permutations, whatever the number of threads.
    """

    alpha: float
    kind: str = "sampled"
    within: str = "query"
    permutations: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        one_of("kind of peers", self.kind, KINDS)
        one_of("range of peers", self.within, WITHIN)
        if not (np.isfinite(self.alpha) and self.alpha >= 0):
            raise invalid("alpha", "must be a finite number >= 0", self.alpha)
        if self.permutations < 1:
            raise invalid("permutations", "must be at least 1", self.permutations)
        if self.kind == "expected" and self.within != "query":
            raise invalid("within", "must be 'query' for expected peers", self.within)


class PeerObjective(LambdaRankObjective):
    """LambdaRank less ``alpha`` times the gradients of peers; ``options`` as of ``LambdaRankObjective``."""

    def __init__(self, data: RankingData, peers: Peers, **options: Any) -> None:
        super().__init__(data, **options)
        self.peers = peers
        self._peer_grad, self._peer_hess = (np.empty_like(self._grad) for _ in range(2))
        self._scale = peer_pairs.mean_gain_gap(self.gains, self.ranking.indptr) * self._inverse_ideal

    def _base(self, scores: FloatArray) -> None:
        super()._base(scores)
        if self.peers.alpha == 0:
            return
        if self.peers.kind == "expected":
            ranking = self.ranking
            peer_pairs.expected_gradients(
                scores, ranking.indptr, ranking.bounds, ranking.order, self._discount, self._scale,
                self.sigmoid, self.norm, self.truncation_level, self._peer_grad, self._peer_hess,
            )  # fmt: skip
        else:
            self._sampled(scores)
        peer_pairs.subtract_peers(
            self._grad, self._hess, self._peer_grad, self._peer_hess, float(self.peers.alpha)
        )

    def _sampled(self, scores: FloatArray) -> None:
        """The mean gradients of this round's permutations."""
        times = self.peers.permutations
        gains = np.empty_like(self.gains)
        grad, hess = np.empty_like(self._grad), np.empty_like(self._hess)
        sums = np.zeros((2, len(gains)))
        for key in np.random.SeedSequence([self.peers.seed, self.rounds]).generate_state(times, np.uint64):
            if self.peers.within == "query":
                peer_pairs.permute_within(self.gains, self.ranking.indptr, key, gains)
                inverse_ideal = self._inverse_ideal
            else:
                peer_pairs.permute_all(self.gains, key, gains)
                inverse_ideal = self._ideal(gains)
            self._lambdas(scores, gains, inverse_ideal, grad, hess)
            sums[0] += grad
            sums[1] += hess
        self._peer_grad[:], self._peer_hess[:] = sums / times
