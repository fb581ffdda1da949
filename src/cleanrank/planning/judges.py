"""How judges err on a scale, and what judging again makes of it.

T[l, m] = P(judged m | truly l) on a scale of c grades. *Same error per threshold*: a scale of c grades asks c
- 1 questions "better than this step?", each answered wrongly with probability e, and the grade is the number
of steps passed, so that

    T[l, .] = distribution of Bin(l, 1 - e) + Bin(c - 1 - l, e).

Two grades then err at rate e, and more grades err more: the more steps, the more ways to slip.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from math import comb
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.jit import kernel
from cleanrank.noise.profiles import NoiseProfile, make_profile, proportions_of
from cleanrank.types import Array, FloatArray, IntArray
from cleanrank.validation import check_number


def threshold_matrix(error: float, n_grades: int) -> FloatArray:
    """The matrix of a judge who errs at the same rate at every step of the scale.

    >>> threshold_matrix(0.1, 3).round(2).tolist()
    [[0.81, 0.18, 0.01], [0.09, 0.82, 0.09], [0.01, 0.18, 0.81]]
    """
    check_number("error rate", error, least=0, most=1)
    matrix = np.empty((n_grades, n_grades))
    for l in range(n_grades):
        row = np.ones(1)
        for step in range(n_grades - 1):
            passed = 1 - error if step < l else error
            row = np.convolve(row, [1 - passed, passed])
        matrix[l] = row
    return matrix


def judge_matrix(
    error: float | Mapping[int, float | npt.ArrayLike], n_grades: int, profile: str = "geometric"
) -> FloatArray:
    """The matrix on a scale: from one rate per step, or from what is known of this scale.

    Args:
        error: one rate, taken as the error per step; or, by number of grades, the share of wrong judgements
            on that scale (spread by ``profile``) or a whole matrix.
        n_grades: of the scale.
        profile: the family that spreads a scale's own rate.
    """
    if not isinstance(error, Mapping):
        return threshold_matrix(float(error), n_grades)
    if n_grades not in error:
        scales = ", ".join(str(g) for g in sorted(error)) + " grades"
        raise invalid("error", "must give a rate for every scale", scales, remedy=f"Add one for {n_grades}.")
    own = error[n_grades]
    if isinstance(own, int | float):
        return make_profile(profile, float(own), n_grades).matrix
    matrix = NoiseProfile.of(own).matrix
    if len(matrix) != n_grades:
        rule = f"must give a matrix of {n_grades} grades for that scale"
        raise invalid("error", rule, f"{len(matrix)} grades")
    return matrix


def median_matrix(matrix: npt.ArrayLike, judges: int, *, shared: float = 0.0) -> FloatArray:
    """The matrix of the median of several judgements; with two grades that is the majority.

    With F_l the distribution function of one judgement, P(median <= m) = P(Bin(judges, F_l(m)) > judges/2),
    exactly.

    Args:
        matrix: of one judgement.
        judges: an odd number.
        shared: the share of cases in which all judges give the same answer, right or wrong; 0 when they err
            independently.

    >>> median_matrix([[0.9, 0.1], [0.1, 0.9]], 3)[0].round(3).tolist()
    [0.972, 0.028]
    """
    T = np.asarray(matrix, dtype=np.float64)
    _check_odd(judges)
    check_number("shared", shared, least=0, most=1)
    below = np.clip(np.cumsum(T, axis=1), 0, 1)
    reached = np.zeros_like(below)  # P(Bin(judges, below) > judges/2)
    for k in range(judges // 2 + 1, judges + 1):
        reached += comb(judges, k) * below**k * (1 - below) ** (judges - k)
    alone = np.diff(np.concatenate((np.zeros((len(T), 1)), reached), axis=1), axis=1)
    combined: FloatArray = shared * T + (1 - shared) * alone
    return combined


def judgements_needed(matrix: npt.ArrayLike, judges: int, *, shared: float = 0.0) -> FloatArray:
    """Mean judgements per true grade when one stops as soon as the rest cannot move the median.

    After t judgements the median of ``judges`` = 2h + 1 lies between the (t - h)-th and the (h + 1)-th
    smallest.

    >>> judgements_needed([[0.9, 0.1], [0.1, 0.9]], 3).round(2).tolist()
    [2.18, 2.18]
    """
    T = np.asarray(matrix, dtype=np.float64)
    _check_odd(judges)
    half = (judges - 1) // 2
    mean = np.full(len(T), float(half + 1))
    for t in range(half + 1, judges):
        answers = np.indices((T.shape[1],) * t).reshape(t, -1)
        ordered = np.sort(answers, axis=0)
        open_ = answers[:, ordered[t - 1 - half] != ordered[half]]
        mean += T[:, open_].prod(axis=1).sum(axis=1)
    needed: FloatArray = shared * (half + 1) + (1 - shared) * mean
    return needed


def _check_odd(judges: int) -> None:
    if judges < 1 or judges % 2 == 0:
        raise invalid("judges", "must be an odd number, so that there is a median", judges)


class TopK(NamedTuple):
    """Means over simulated queries: judgements, and correct, inverse and new-come pairs."""

    judgements: float
    correct: float
    inverse: float
    new_come: float


def top_k_floor(documents: int, k: int, relevant: int) -> float:
    """The pNoise of a perfect judge against binary truth, for at most k relevant documents.

    >>> [round(top_k_floor(50, 10, r), 3) for r in (1, 2, 5, 10)]
    [0.445, 0.392, 0.247, 0.051]
    """
    if not 0 <= relevant <= k <= documents:
        raise invalid("relevant", f"must lie between 0 and k ({k}), and k not exceed {documents}", relevant)
    pairs = k * (k - 1) // 2 + k * (documents - k)
    return (1 - relevant * (documents - relevant) / pairs) / 2


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
    if not 1 <= k <= documents:
        raise invalid("k", f"must lie between 1 and the documents per query ({documents})", k)
    rng = np.random.default_rng(seed)
    grades = rng.choice(len(proportions), size=(queries, documents), p=proportions_of(proportions))
    depth = math.ceil(math.log2(k + 1))
    most = 2 * k * depth + (documents - k) * (1 + 2 * depth) + 2 * k * depth
    out = np.zeros((queries, 4), dtype=np.int64)
    play(grades, k, float(error), rng.random(queries * most), out)
    return TopK(*(float(v) for v in out.mean(axis=0)))


# State of a game: judgements made so far, draws used so far.


@kernel()
def _prefers(a: Any, b: Any, grades: Array, error: float, draws: FloatArray, state: IntArray) -> Any:
    """Whether the judge puts document a above b; equal grades are a coin."""
    u = draws[state[1]]
    state[1] += 1
    state[0] += 1
    if grades[a] == grades[b]:
        return u < 0.5
    return (grades[a] > grades[b]) == (u >= error)


@kernel()
def _sift(
    heap: IntArray, at: Any, size: Any, grades: Array, error: float, draws: FloatArray, state: IntArray
) -> None:
    """Lets a document sink until no child is worse."""
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _prefers(heap[child], heap[child + 1], grades, error, draws, state):
            child += 1
        if not _prefers(heap[at], heap[child], grades, error, draws, state):
            break
        heap[at], heap[child] = heap[child], heap[at]
        at = child


@kernel()
def play(grades: Array, k: int, error: float, draws: FloatArray, out: IntArray) -> None:
    """Labels queries (rows of ``grades``, in random order) and counts what comes out.

    The heap keeps the best k so far, the worst on top. ``out[q]`` gets judgements and correct, inverse and
    new-come pairs against ``grades``. ``draws`` are uniform and at least as many as judgements can be.
    """
    n = grades.shape[1]
    state = np.zeros(2, dtype=np.int64)
    order = np.empty(k, dtype=np.int64)
    for q in range(grades.shape[0]):
        mine = grades[q]
        state[0] = 0
        heap = np.arange(k)
        for at in range(k // 2 - 1, -1, -1):
            _sift(heap, at, k, mine, error, draws, state)
        outside = np.ones(n, dtype=np.bool_)
        for d in range(k, n):
            if _prefers(d, heap[0], mine, error, draws, state):
                heap[0] = d
                _sift(heap, 0, k, mine, error, draws, state)
        for place in range(k - 1, -1, -1):
            order[place] = heap[0]
            heap[0] = heap[place]
            _sift(heap, 0, place, mine, error, draws, state)
        out[q, :] = 0
        out[q, 0] = state[0]
        outside[order] = False
        for i in range(k):
            for j in range(i + 1, k):
                _count(mine[order[i]], mine[order[j]], out[q])
            for d in range(n):
                if outside[d]:
                    _count(mine[order[i]], mine[d], out[q])


@kernel()
def _count(above: Any, below: Any, out: IntArray) -> None:
    if above > below:
        out[1] += 1
    elif above < below:
        out[2] += 1
    else:
        out[3] += 1
