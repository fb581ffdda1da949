"""The walk down result lists in plain NumPy, for machines without numba; symbols as in ``kernels``."""

import numpy as np

from cleanrank.types import Array, FloatArray, IntArray


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
    """Clicks of users who go down a list one by one: all lists at once, rank by rank.

    >>> clicks = np.zeros(3, dtype=bool)
    >>> walk(np.ones(3), np.array([0, 3]), np.zeros(3), np.zeros(3), 1.0, 0.0, 0.0, clicks)
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
