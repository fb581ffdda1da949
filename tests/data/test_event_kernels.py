"""The compiled loops over events against plain Python; the rows they make are tested with the protocols."""

import numpy as np
import pytest

from cleanrank.data._event_kernels import (
    by_user_and_time,
    choose_targets,
    count_clicks,
    draw_negatives,
    fill_histories,
    first_values,
    sorted_places,
    users_of,
)


def random_events(seed, n=200, users=7, items=9):
    rng = np.random.default_rng(seed)
    return rng.integers(0, users, n), rng.integers(0, items, n), rng.integers(0, 40, n)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("timed", [True, False])
def test_events_are_ordered_by_user_then_time_then_place(seed, timed):
    users, items, times = random_events(seed)
    times = times if timed else times[:0]
    indptr, order, items_in_order, times_in_order, falls = by_user_and_time(users, items, times, 7, True)
    keys = (np.arange(len(users)), times, users) if timed else (np.arange(len(users)), users)
    expected = np.lexsort(keys)
    assert order.tolist() == expected.tolist()
    assert items_in_order.tolist() == items[expected].tolist()
    assert times_in_order.tolist() == (times[expected].tolist() if timed else [])
    assert indptr.tolist() == np.searchsorted(users[expected], np.arange(8)).tolist()
    behind = sum((np.diff(times[users == user]) < 0).sum() for user in range(7)) if timed else 0
    assert falls == behind


def plain_targets(users, items, clicked, part, least, repeats, most):
    chosen, dropped = [], np.zeros(4, dtype=int)
    for user in range(7):
        mine, seen, clicks = [], set(), 0
        for e in np.flatnonzero(users == user):
            if clicks < least:
                dropped[0] += 1
            elif items[e] in seen and not repeats:
                dropped[1] += 1
            else:
                mine.append(e)
            if clicked[e]:
                seen.add(items[e])
                clicks += 1
        dropped[3] += clicks <= least
        for which in range(3):
            of_part = [e for e in mine if part[e] == which]
            dropped[2] += max(len(of_part) - most, 0)
            chosen += of_part[-most:]
    return sorted(chosen), dropped


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("least", "repeats", "most"), [(1, False, 100), (3, True, 2), (2, False, 1)])
def test_targets_and_drops_equal_plain_loops(seed, least, repeats, most):
    users, items, _ = random_events(seed)
    users = np.sort(users)
    rng = np.random.default_rng(seed)
    clicked, part = rng.random(len(users)) < 0.7, rng.integers(0, 3, len(users))
    indptr = np.searchsorted(users, np.arange(8))
    chosen, dropped = choose_targets(items, clicked, part, indptr, 9, least, repeats, most)
    expected, reasons = plain_targets(users, items, clicked, part, least, repeats, most)
    assert chosen.tolist() == expected
    assert dropped.tolist() == reasons.tolist()


def test_negatives_are_new_to_the_user_and_missing_only_where_none_is_left():
    users, items, _ = random_events(0)
    users = np.sort(users)
    indptr = np.searchsorted(users, np.arange(8))
    targets, clicked = np.arange(len(users)), np.ones(len(users), dtype=bool)
    drawn = draw_negatives(items, clicked, indptr, targets, np.arange(9), 9, 3, 5)
    for e in targets:
        known = {*items[indptr[users[e]] : e], items[e]}
        if len(known) == 9:
            assert (drawn[e] == -1).all()
        else:
            assert not known & set(drawn[e].tolist())
            assert (drawn[e] >= 0).all()
    again = draw_negatives(items, clicked, indptr, targets[50:], np.arange(9), 9, 3, 5)
    np.testing.assert_array_equal(again, drawn[50:])  # a draw hangs on its own event alone


def test_histories_stand_at_the_front():
    codes = np.array([[1, 10], [2, 20], [3, 30]])
    histories = fill_histories(np.array([2, 0, 1, 1]), codes, np.array([0, 3]), np.array([2, 3]), 3)
    assert histories.tolist() == [[[3, 30], [1, 10], [0, 0]], [[0, 0]] * 3]


@pytest.mark.parametrize("top", [1, 200, 70_000, 2**40, 2**64 - 1])
def test_sorting_is_stable_for_keys_of_any_size(top):
    rng = np.random.default_rng(top % 1000)
    keys = rng.integers(0, top, 300, dtype=np.uint64, endpoint=True)
    keys[::3] = keys[0]
    buffers = np.zeros(400, dtype=np.uint64), np.zeros(400, dtype=np.int32)
    places = sorted_places(keys.copy(), np.arange(300, dtype=np.int32), *buffers, 300)
    assert places.tolist() == np.argsort(keys, kind="stable").tolist()


def test_first_values_of_owners_and_how_many_differ():
    rng = np.random.default_rng(0)
    owners, values = rng.integers(0, 30, 400), rng.integers(0, 3, 400)
    table, has_value = np.zeros(31, dtype=np.int64), np.zeros(31, dtype=np.bool_)
    differ = sum(
        first_values(owners[k : k + 90], values[k : k + 90], table, has_value) for k in range(0, 400, 90)
    )
    first = {owner: values[np.argmax(owners == owner)] for owner in owners}
    assert [table[owner] for owner in first] == list(first.values())
    assert differ == sum(value != first[owner] for owner, value in zip(owners, values, strict=True))
    assert not has_value[30]


def test_clicks_are_counted_and_events_find_their_users():
    users, items, _ = random_events(3)
    users = np.sort(users) + 1  # user 0 has no events
    rng = np.random.default_rng(3)
    clicked, part = rng.random(200) < 0.6, rng.integers(0, 3, 200).astype(np.int8)
    indptr = np.searchsorted(users, np.arange(10))
    of_user, of_item = count_clicks(items, clicked, part, indptr, 9)
    counted = clicked & (part == 0)
    assert of_user.tolist() == np.bincount(users[counted], minlength=9).tolist()
    assert of_item.tolist() == np.bincount(items[counted], minlength=9).tolist()
    some = np.flatnonzero(rng.random(200) < 0.3)
    assert users_of(indptr, some).tolist() == users[some].tolist()
