"""Compiled loops over events: in order of users and times, clicks seen before, negatives, histories."""

import numpy as np

from cleanrank.jit import kernel, mix64
from cleanrank.types import Array, IntArray

TRIES = 32
mixed = kernel(inline=True)(mix64)


@kernel()
def by_user(users: Array, n_users: int) -> tuple[IntArray, Array]:
    """Where each user's events begin, and the events in order of users; of one user in the order given."""
    indptr = np.zeros(n_users + 1, dtype=np.int64)
    for e in range(len(users)):
        indptr[users[e] + 1] += 1
    for u in range(n_users):
        indptr[u + 1] += indptr[u]
    place = indptr[:-1].copy()
    order = np.empty(len(users), dtype=np.uint32)
    for e in range(len(users)):
        order[place[users[e]]] = e
        place[users[e]] += 1
    return indptr, order


@kernel()
def sort_by_time(times: IntArray, indptr: IntArray, order: Array) -> int:
    """Sorts each user's part of ``order`` by time, in place and stably; how many events were out of order."""
    falls = 0
    for u in range(len(indptr) - 1):
        begin, end = indptr[u], indptr[u + 1]
        before = falls
        for e in range(begin + 1, end):
            falls += times[order[e]] < times[order[e - 1]]
        if falls > before:
            mine = order[begin:end].copy()
            order[begin:end] = mine[np.argsort(times[mine], kind="mergesort")]
    return falls


@kernel()
def clicked_before(items: Array, clicked: Array, indptr: IntArray, n_items: int) -> Array:
    """Whether the user of an event clicked its item earlier; events in order of users and times."""
    last = np.full(n_items, -1, dtype=np.int32)
    seen = np.zeros(len(items), dtype=np.bool_)
    for u in range(len(indptr) - 1):
        for e in range(indptr[u], indptr[u + 1]):
            seen[e] = last[items[e]] == u
            if clicked[e]:
                last[items[e]] = u
    return seen


@kernel()
def draw_negatives(
    items: Array, clicked: Array, indptr: IntArray, targets: Array, pool: Array,
    n_items: int, per_target: int, seed: int,
) -> Array:  # fmt: skip
    """Items out of the pool for each target that are not the target and that the user has not clicked before.

    ``targets`` are clicks, in rising order of events. Every draw is a function of the seed, the target's
    event and the number of the try; after ``TRIES`` misses the items that are left are listed and one of them
    is drawn (items of the pool count once then). -1 where none is left.
    """
    drawn = np.empty((len(targets), per_target), dtype=np.int32)
    last = np.full(n_items, -1, dtype=np.int32)
    key = mixed(np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15))
    size = np.uint64(len(pool))
    t = 0
    for u in range(len(indptr) - 1):
        for e in range(indptr[u], indptr[u + 1]):
            if t < len(targets) and targets[t] == e:
                stream = mixed(key ^ np.uint64(e))
                for k in range(per_target):
                    negative = -1
                    for attempt in range(TRIES):
                        word = mixed(stream + np.uint64(k * (TRIES + 1) + attempt))
                        candidate = pool[np.int64(word % size)]
                        if last[candidate] != u and candidate != items[e]:
                            negative = candidate
                            break
                    if negative < 0:
                        fresh = np.zeros(n_items, dtype=np.bool_)
                        for p in range(len(pool)):
                            fresh[pool[p]] = last[pool[p]] != u and pool[p] != items[e]
                        left = np.flatnonzero(fresh)
                        if len(left):
                            word = mixed(stream + np.uint64(k * (TRIES + 1) + TRIES))
                            negative = left[np.int64(word % np.uint64(len(left)))]
                    drawn[t, k] = negative
                t += 1
            if clicked[e]:
                last[items[e]] = u
    return drawn


@kernel()
def fill_histories(clicks: Array, codes: Array, begin: IntArray, end: IntArray, longest: int) -> Array:
    """The codes (items, fields) of ``clicks[begin:end]`` at the front of each history, 0 behind them."""
    histories = np.zeros((len(begin), longest, codes.shape[1]), dtype=np.int32)
    for h in range(len(begin)):
        for t in range(end[h] - begin[h]):
            for f in range(codes.shape[1]):
                histories[h, t, f] = codes[clicks[begin[h] + t], f]
    return histories
