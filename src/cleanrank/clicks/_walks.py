"""Compiled walks down result lists: entries in rank order, list by list, cut by ``indptr``.

Symbols: r = P(relevant) of an entry; (a1, a2, a3) = probabilities of going on after no click, after a click
on a document that is not relevant, after a click on one that is.
"""

import numpy as np

from cleanrank.jit import kernel
from cleanrank.types import Array, FloatArray, IntArray


@kernel()
def walk(
    r: FloatArray,
    indptr: IntArray,
    look: FloatArray,
    leave: FloatArray,
    a1: float,
    a2: float,
    a3: float,
    out: Array,
) -> None:
    """Clicks of users who go down a list one by one; ``look`` and ``leave`` are draws from [0, 1)."""
    for q in range(len(indptr) - 1):
        examined = True
        for i in range(indptr[q], indptr[q + 1]):
            out[i] = False
            if not examined:
                continue
            out[i] = look[i] < r[i]
            goes_on = a2 * (1 - r[i]) + a3 * r[i] if out[i] else a1
            examined = leave[i] < goes_on


@kernel()
def examined_given_clicks(
    r: FloatArray, clicks: Array, indptr: IntArray, a1: float, a2: float, a3: float, out: FloatArray
) -> None:
    """P(entry examined | the clicks above it): Bayes' rule from the top of each list down."""
    for q in range(len(indptr) - 1):
        e = 1.0
        for i in range(indptr[q], indptr[q + 1]):
            out[i] = e
            if clicks[i]:
                e = a2 * (1 - r[i]) + a3 * r[i]
            else:
                unseen = 1 - e * r[i]
                e = a1 * e * (1 - r[i]) / unseen if unseen > 0 else 0.0


def walk_numpy(
    r: FloatArray,
    indptr: IntArray,
    look: FloatArray,
    leave: FloatArray,
    a1: float,
    a2: float,
    a3: float,
    out: Array,
) -> None:
    """Clicks of users who go down a list one by one: all lists at once, rank by rank.

    >>> clicks = np.zeros(3, dtype=bool)
    >>> walk_numpy(np.ones(3), np.array([0, 3]), np.zeros(3), np.zeros(3), 1.0, 0.0, 0.0, clicks)
    >>> clicks.tolist()
    [True, False, False]
    """
    out[:] = False
    at, stop = indptr[:-1][np.diff(indptr) > 0], indptr[1:][np.diff(indptr) > 0]
    while len(at):
        clicked = look[at] < r[at]
        out[at] = clicked
        goes_on = np.where(clicked, a2 * (1 - r[at]) + a3 * r[at], a1)
        stays = (leave[at] < goes_on) & (at + 1 < stop)
        at, stop = at[stays] + 1, stop[stays]
