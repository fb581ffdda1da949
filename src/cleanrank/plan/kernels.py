"""Top-k labelling by pairs, played with a judge who errs."""

from typing import Any

import numpy as np

from cleanrank.compiled import kernel
from cleanrank.types import Array, FloatArray, IntArray

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
