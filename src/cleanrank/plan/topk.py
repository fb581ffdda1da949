"""Top-k labelling by pairs (Niu et al. 2012): what it costs and what it yields.

A judge compares two documents at a time. A heap of the best k so far has its worst on top; every further
document is compared with that one and takes its place if preferred; at the end the heap is sorted. The
outcome is a total order on the top k, and each of them above each of the n - k others: N = k(k - 1)/2 + k(n -
k) pairs.

Against graded truth even a perfect judge shows a pNoise above 0, because he must order documents of equal
grade. With two grades and R <= k relevant documents it is (1 - R(n - R)/N)/2.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cleanrank.errors import invalid
from cleanrank.noise.profiles import proportions_of


@dataclass(frozen=True)
class TopK:
    """Means over simulated queries: judgements, and correct, inverse and new-come pairs."""

    judgements: float
    correct: float
    inverse: float
    new_come: float

    @property
    def pairs(self) -> float:
        """N, all pairs that come out."""
        return self.correct + self.inverse + self.new_come

    @property
    def pnoise(self) -> float:
        """The share of wrong pairs, new-come ones counted half."""
        return (self.inverse + self.new_come / 2) / self.pairs


def top_k_pairs(documents: int, k: int) -> int:
    """How many pairs top-k labelling yields.

    >>> top_k_pairs(50, 10)
    445
    """
    return k * (k - 1) // 2 + k * (documents - k)


def top_k_floor(documents: int, k: int, relevant: int) -> float:
    """The pNoise of a perfect judge against binary truth, for at most k relevant documents.

    >>> [round(top_k_floor(50, 10, r), 3) for r in (1, 2, 5, 10)]
    [0.445, 0.392, 0.247, 0.051]
    """
    if not 0 <= relevant <= k <= documents:
        raise invalid("relevant", f"must lie between 0 and k ({k}), and k not exceed {documents}", relevant)
    return (1 - relevant * (documents - relevant) / top_k_pairs(documents, k)) / 2


@lru_cache(maxsize=256)
def play_top_k(
    documents: int, k: int, proportions: tuple[float, ...], error: float, queries: int = 400, seed: int = 0
) -> TopK:
    """Plays top-k labelling on queries whose grades are drawn from ``proportions``, in random order.

    Args:
        documents: per query.
        k: how many to rank.
        proportions: of the true grades.
        error: the probability that a comparison of different grades goes wrong; equal grades are a coin.
        queries: how many to play.
        seed: of the grades and the judge.
    """
    from cleanrank.plan.kernels import play

    if not 1 <= k <= documents:
        raise invalid("k", f"must lie between 1 and the documents per query ({documents})", k)
    rng = np.random.default_rng(seed)
    grades = rng.choice(len(proportions), size=(queries, documents), p=proportions_of(proportions))
    depth = math.ceil(math.log2(k + 1))
    most = 2 * k * depth + (documents - k) * (1 + 2 * depth) + 2 * k * depth
    out = np.zeros((queries, 4), dtype=np.int64)
    play(grades, k, float(error), rng.random(queries * most), out)
    return TopK(*(float(v) for v in out.mean(axis=0)))
