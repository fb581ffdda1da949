"""Compiled loops over events: in order of users and times, clicks seen before, negatives, histories."""

import numpy as np

from cleanrank.jit import kernel, mix64
from cleanrank.types import Array, IntArray

TRIES = 32
mixed = kernel(inline=True)(mix64)


@kernel()
def by_user_and_time(
    users: Array, items: Array, times: IntArray, n_users: int, wants_order: bool
) -> tuple[IntArray, Array, Array, IntArray, int]:
    """Where each user's events begin; the events in order of users and times; their items and times.

    Events of one user at one time stay in the order given; without times (an empty array) all of them do. The
    order is left empty unless it is wanted. The last value says how many events stood right behind a later
    one of their user.
    """
    n, has_times = len(users), len(times) > 0
    indptr = np.zeros(n_users + 1, dtype=np.int64)
    for e in range(n):
        indptr[users[e] + 1] += 1
    longest = 0
    for u in range(n_users):
        longest = max(longest, indptr[u + 1])
        indptr[u + 1] += indptr[u]
    place = indptr[:-1].copy()
    order = np.empty(n if wants_order else 0, dtype=np.uint32)
    items_in_order = np.empty(n, dtype=np.int32)
    times_in_order = np.empty(len(times), dtype=np.int64)
    for e in range(n):
        p = place[users[e]]
        place[users[e]] = p + 1
        if wants_order:
            order[p] = e
        items_in_order[p] = items[e]
        if has_times:
            times_in_order[p] = times[e]
    falls = 0
    if not has_times:
        return indptr, order, items_in_order, times_in_order, falls
    keys, other_keys = np.empty(longest, dtype=np.uint64), np.empty(longest, dtype=np.uint64)
    places, other_places = np.empty(longest, dtype=np.int32), np.empty(longest, dtype=np.int32)
    for u in range(n_users):
        begin, end = indptr[u], indptr[u + 1]
        before, low = falls, times_in_order[begin] if begin < end else 0
        for e in range(begin + 1, end):
            falls += times_in_order[e] < times_in_order[e - 1]
            low = min(low, times_in_order[e])
        if falls > before:
            for e in range(begin, end):
                keys[e - begin] = np.uint64(times_in_order[e]) - np.uint64(low)
                places[e - begin] = e - begin
            sorting = sorted_places(keys, places, other_keys, other_places, end - begin)
            if wants_order:
                order[begin:end] = order[begin:end][sorting]
            items_in_order[begin:end] = items_in_order[begin:end][sorting]
            times_in_order[begin:end] = times_in_order[begin:end][sorting]
    return indptr, order, items_in_order, times_in_order, falls


@kernel()
def sorted_places(keys: Array, places: Array, other_keys: Array, other_places: Array, n: int) -> Array:
    """The first n places in rising order of their keys, equal ones as they stand; all four are written to.

    Eight bits at a time, the lowest first; a user's times share their high bits, and those cost nothing.
    """
    highest = np.uint64(0)
    for i in range(n):
        highest = max(highest, keys[i])
    counts = np.empty(257, dtype=np.int64)
    shift = np.uint64(0)
    while shift < np.uint64(64) and highest >> shift > np.uint64(0):
        counts[:] = 0
        for i in range(n):
            counts[((keys[i] >> shift) & np.uint64(255)) + np.uint64(1)] += 1
        for digit in range(256):
            counts[digit + 1] += counts[digit]
        for i in range(n):
            digit_of = (keys[i] >> shift) & np.uint64(255)
            p = counts[digit_of]
            counts[digit_of] = p + 1
            other_keys[p], other_places[p] = keys[i], places[i]
        keys, other_keys = other_keys, keys
        places, other_places = other_places, places
        shift += np.uint64(8)
    return places[:n]


@kernel()
def first_values(owners: Array, values: Array, table: Array, has_value: Array) -> int:
    """Puts the first value of each owner into the table; how many values differ from that in the table."""
    differ = 0
    for e in range(len(owners)):
        owner = owners[e]
        if has_value[owner]:
            differ += table[owner] != values[e]
        else:
            has_value[owner] = True
            table[owner] = values[e]
    return differ


@kernel()
def count_clicks(
    items: Array, clicked: Array, part: Array, indptr: IntArray, n_items: int
) -> tuple[IntArray, IntArray]:
    """How many clicks of part 0 each user and each item has."""
    of_user = np.zeros(len(indptr) - 1, dtype=np.int64)
    of_item = np.zeros(n_items, dtype=np.int64)
    for u in range(len(indptr) - 1):
        for e in range(indptr[u], indptr[u + 1]):
            if clicked[e] and part[e] == 0:
                of_user[u] += 1
                of_item[items[e]] += 1
    return of_user, of_item


@kernel()
def users_of(indptr: IntArray, events: Array) -> Array:
    """The users of events in rising order."""
    users = np.empty(len(events), dtype=np.int32)
    u = 0
    for k in range(len(events)):
        while indptr[u + 1] <= events[k]:
            u += 1
        users[k] = u
    return users


@kernel()
def choose_targets(
    items: Array, clicked: Array, part: Array, indptr: IntArray, n_items: int,
    least: int, repeats: bool, most: int,
) -> tuple[IntArray, IntArray]:  # fmt: skip
    """The events that become rows, and how many do not, by reason.

    The reasons: fewer than ``least`` earlier clicks, an item that the user had clicked before (unless
    ``repeats``), targets beyond the last ``most`` of a user in a part; then users without enough clicks.
    """
    chosen = np.zeros(len(items), dtype=np.bool_)
    dropped = np.zeros(4, dtype=np.int64)
    last = np.full(n_items, -1, dtype=np.int32)
    for u in range(len(indptr) - 1):
        clicks = 0
        for e in range(indptr[u], indptr[u + 1]):
            seen = last[items[e]] == u
            if clicks < least:
                dropped[0] += 1
            elif seen and not repeats:
                dropped[1] += 1
            else:
                chosen[e] = True
            if clicked[e]:
                last[items[e]] = u
                clicks += 1
        dropped[3] += clicks <= least
        kept = np.zeros(3, dtype=np.int64)
        for e in range(indptr[u + 1] - 1, indptr[u] - 1, -1):
            if chosen[e]:
                kept[part[e]] += 1
                if kept[part[e]] > most:
                    chosen[e] = False
                    dropped[2] += 1
    return np.flatnonzero(chosen), dropped


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
