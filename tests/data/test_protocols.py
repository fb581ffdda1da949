"""Rows of clicks out of logs: both protocols against plain loops, and the laws that hold for any log."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from cleanrank.data.behaviours import ClickRows
from cleanrank.data.events import Events, read_events
from cleanrank.data.protocols import prepare_clicks
from cleanrank.errors import InvalidInputError, UnknownNameError


def random_log(seed, n=600, n_users=12, n_items=60, *, times=True):
    """A log in no order, with ties in time; ``place`` is the row, which breaks them."""
    random = np.random.default_rng(seed)
    log = pd.DataFrame(
        {
            "user": [f"u{u}" for u in random.integers(n_users, size=n)],
            "item": random.zipf(1.3, size=n) % n_items + 1000,
            "time": random.integers(1_500_000_000, 1_500_500_000, size=n) // 3600 * 3600,
        }
    )
    log["category"] = log["item"] % 7
    return log if times else log.drop(columns="time")


def by_user(log):
    """user -> its (time, item) in order of time, ties in the order of the log."""
    users = {}
    for row in log.itertuples():
        users.setdefault(row.user, []).append((getattr(row, "time", 0), row.item))
    return {user: sorted(rows, key=lambda row: row[0]) for user, rows in users.items()}


def item_of_code(log, counted, rare):
    """code -> item id, by the rule: codes rise with ids that have ``rare`` counted clicks."""
    clicks = Counter(counted)
    return dict(enumerate((item for item in sorted(set(log["item"])) if clicks[item] >= rare), start=1))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("least", "targets", "repeats"), [(1, None, False), (3, None, True), (2, 2, False)])
def test_sound_rows_equal_plain_loops(seed, least, targets, repeats):
    log = random_log(seed)
    options = {"least": least, "targets": targets, "repeats": repeats}
    events = read_events(log, item_fields=["category"])
    splits = prepare_clicks(events, history=5, rare=2, **options)
    times = np.sort(log["time"].to_numpy())
    cuts = times[int(0.8 * len(times))], times[int((0.8 + 0.1) * len(times))]
    names = item_of_code(log, log["item"][log["time"] < cuts[0]], 2)
    codes = {item: code for code, item in names.items()}
    wanted = ([], [], [])
    for user, rows in by_user(log).items():
        mine = ([], [], [])
        for place, (time, item) in enumerate(rows):
            earlier = [each for _, each in rows[:place]]
            if len(earlier) >= least and (repeats or item not in earlier):
                part = int(time >= cuts[0]) + int(time >= cuts[1])
                mine[part].append((user, time, codes.get(item, 0), [codes.get(i, 0) for i in earlier[-5:]]))
        for part in range(3):
            wanted[part].extend(mine[part][-targets:] if targets else mine[part])
    for part, rows in zip(wanted, splits, strict=True):
        clicked = np.flatnonzero(rows.y)
        assert len(rows) == 2 * len(part)
        got = [
            (
                events.user_ids[rows.users[row]],
                int(rows.times[row]),
                int(rows.item[row, 0]),
                rows.histories[rows.history_of[row], : rows.lengths[rows.history_of[row]], 0].tolist(),
            )
            for row in clicked
        ]
        assert sorted(got) == sorted(part)


@pytest.mark.parametrize("draw", ["uniform", "popular"])
def test_sound_negatives_were_never_clicked_before(draw):
    log = random_log(7, n=900, n_items=80)
    events = read_events(log)
    splits = prepare_clicks(events, rare=1, negatives=3, draw=draw, shares=(0.98, 0.01, 0.01))
    history = by_user(log)
    items = np.array(sorted(set(log["item"])))
    train = item_of_code(log, log["item"][log["time"] < splits.validation.times.min()], 1)
    assert len(train) > len(items) - 10
    rows = splits.train
    for row in np.flatnonzero(rows.y == 0):
        clicked = row - 1 - (row % 4 - 1)
        assert rows.y[clicked] == 1
        assert rows.users[row] == rows.users[clicked]
        if not rows.item[row, 0]:
            continue
        user, item = events.user_ids[rows.users[row]], train[rows.item[row, 0]]
        before = [each for time, each in history[user] if time < rows.times[row]]
        assert item not in before
        assert rows.item[row, 0] != rows.item[clicked, 0]


def test_negatives_are_drawn_evenly_or_as_often_as_items_are_clicked():
    log = pd.DataFrame({"user": np.repeat(np.arange(5000), 2), "time": np.arange(10_000)})
    log["item"] = np.random.default_rng(0).zipf(1.5, size=10_000) % 50
    popular = np.bincount(log["item"], minlength=50) / 10_000
    events = read_events(log)
    for draw, shares in (("uniform", np.full(50, 1 / 50)), ("popular", popular)):
        rows = prepare_clicks(events, draw=draw, rare=1, repeats=True, shares=(0.99, 0.005, 0.005)).train
        drawn = np.bincount(rows.item[rows.y == 0, 0] - 1, minlength=50) / rows.y.sum()
        # Items that the user has not clicked: the chance of those that many have clicked is lower.
        free = shares * (1 - 2 * popular)
        assert drawn == pytest.approx(free / free.sum(), abs=0.015 if draw == "uniform" else 0.05)
        assert np.corrcoef(drawn, popular)[0, 1] > 0.8 or draw == "uniform"


def test_nothing_of_a_later_part_is_known_in_an_earlier_one():
    splits = prepare_clicks(read_events(random_log(1)))
    assert splits.train.times.max() < splits.validation.times.min()
    assert splits.validation.times.max() < splits.test.times.min()


def test_rows_hang_on_the_seed_and_not_on_the_order_of_users():
    log = random_log(2)
    log["time"] = np.random.default_rng(0).permutation(len(log))
    one, same, other = (prepare_clicks(read_events(log), seed=seed).train for seed in (0, 0, 1))
    assert (one.item == same.item).all()
    assert (one.item != other.item).any()
    assert (one.item[one.y == 1] == other.item[other.y == 1]).all()
    shuffled = prepare_clicks(read_events(log.sample(frac=1, random_state=0))).train
    assert (shuffled.histories == one.histories).all()
    assert (shuffled.item == one.item).all()


def test_without_times_the_last_click_tests_and_the_one_before_validates():
    log = pd.DataFrame({"user": [1, 2, 1, 1, 2, 1, 2], "item": [5, 5, 6, 7, 7, 8, 9]})
    splits = prepare_clicks(read_events(log, time=None), rare=1)
    codes = {5: 1, 6: 2}  # items clicked in training: 5 and 6 of user 1, 5 of user 2
    tested = splits.test
    assert tested.histories[tested.history_of[tested.y == 1], :3, 0].tolist() == [[1, 2, 0], [1, 0, 0]]
    assert splits.train.item[splits.train.y == 1, 0].tolist() == [codes[6]]
    assert tested.lengths.tolist() == [3, 2]
    assert tested.times is None


def test_given_parts_decide():
    random = np.random.default_rng(0)
    users = np.repeat(np.arange(30, dtype=np.int32), 5)
    items = random.integers(40, size=150).astype(np.int32)
    part = np.repeat(np.arange(30) % 3, 5).astype(np.int8)
    events = Events(users, items, np.arange(30), np.arange(40), parts=part, anonymous=True)
    splits = prepare_clicks(events)
    for number, rows in enumerate(splits):
        assert set(rows.users % 3) == {number}
        assert not rows.user.any()
    assert splits.train.layout.user == {"user": 1}


def test_what_was_shown_and_not_clicked_takes_the_place_of_negatives():
    log = random_log(3)
    log["did"] = np.where(np.random.default_rng(0).random(len(log)) < 0.4, "view", "click")
    events = read_events(log, behaviour="did", clicks=["click"], shown=["view"])
    splits = prepare_clicks(events, repeats=True)
    rows = splits.train
    assert len(rows) == len(rows.histories)
    assert 0.3 < 1 - rows.y.mean() < 0.5
    in_order = log.sort_values("time", kind="stable")
    wanted = []
    for _, mine in in_order[in_order["time"] <= rows.times.max()].groupby("user"):
        clicks = (mine["did"] == "click").to_numpy()
        before = np.cumsum(clicks) - clicks
        wanted += [(int(did), min(n, 20)) for did, n in zip(clicks, before, strict=True) if n]
    assert sorted(zip(rows.y.tolist(), rows.lengths.tolist(), strict=True)) == sorted(wanted)
    viewed = set(log["item"]) - set(log["item"][log["did"] == "click"])
    assert len(viewed) + rows.layout.item["item"] - 1 <= len(events.item_ids)
    more = prepare_clicks(events, repeats=True, negatives=2).train
    assert more.y.sum() == rows.y.sum()
    assert len(more) == len(rows) + 2 * rows.y.sum()


@pytest.mark.parametrize("seed", range(3))
def test_ubr_rows_equal_plain_loops(seed):
    log = random_log(seed, n=300, n_users=40)
    splits = prepare_clicks(read_events(log), protocol="ubr", history=4)
    codes = {item: code for code, item in item_of_code(log, log["item"], 1).items()}
    kept = {user: rows for user, rows in sorted(by_user(log).items()) if len(rows) > 3}
    assert splits.report["users with fewer than 4 clicks, dropped"] == len(by_user(log)) - len(kept)
    for number, rows in enumerate(splits):
        assert rows.y.tolist() == [1, 0] * len(kept)
        for place, mine in enumerate(kept.values()):
            history = [codes[item] for _, item in mine[:-3]][-4:]
            assert rows.histories[place, : rows.lengths[place], 0].tolist() == history
            assert rows.item[2 * place, 0] == codes[mine[-3 + number][1]]


@pytest.mark.parametrize("own", [0.0, 0.5, 1.0])
def test_ubr_takes_its_negatives_from_the_history(own):
    log = random_log(5, n=4000, n_users=400, n_items=2000)
    log["item"] = np.random.default_rng(0).integers(100_000, size=len(log))
    rows = prepare_clicks(read_events(log), protocol="ubr", history=50, own=own).test
    negative = rows.y == 0
    inside = (rows.histories[rows.history_of[negative], :, 0] == rows.item[negative]).any(axis=1).mean()
    assert inside == pytest.approx(own, abs=0.09 if 0 < own < 1 else 0.01)


def test_moments_become_fields():
    rows = prepare_clicks(read_events(random_log(4)), context=["hour", "weekend"]).train
    hours = pd.to_datetime(rows.times, unit="s").hour
    assert (rows.context[:, 0] == hours + 1).all()
    assert rows.layout.context == {"hour": 25, "weekend": 3}


def test_drops_are_counted():
    log = pd.concat([random_log(0), pd.DataFrame({"user": ["lone"], "item": [5], "time": [1_500_000_000]})])
    report = prepare_clicks(read_events(log), least=2, targets=3).report
    ordered = sum(
        later < earlier
        for rows in log.groupby("user")["time"]
        for earlier, later in zip(rows[1][:-1], rows[1][1:], strict=True)
    )
    assert report["events that were out of order and were sorted by time"] == ordered
    sizes = log["user"].value_counts()
    assert report["users with too few clicks for a target"] == (sizes <= 2).sum() > 0
    assert report["events with fewer than 2 earlier clicks, no targets"] == np.minimum(sizes, 2).sum()
    assert report["targets beyond the last 3 of a user"] > 0


def test_a_target_for_which_no_item_is_left_is_dropped_and_counted():
    rows = [(user, item, 10 * place + user) for user in (1, 2) for place, item in enumerate([1, 2, 3])]
    rows += [(3, 1, 100), (3, 2, 200), (3, 1, 300), (4, 2, 90), (4, 3, 210), (4, 1, 310)]
    log = pd.DataFrame(rows, columns=["user", "item", "time"])
    splits = prepare_clicks(read_events(log), rare=1, repeats=True, shares=(0.6, 0.2, 0.2))
    # Items 1, 2, 3: the third click of users 1, 2 and 4 leaves nothing; user 3 has item 3 left.
    assert splits.report["targets without an item that could be a negative"] == 3
    assert sum(int(part.y.sum()) for part in splits) == 8 - 3


REFUSED = {
    "protocol": ({"protocol": "usr"}, UnknownNameError, "unknown protocol 'usr'. Did you mean 'ubr'?"),
    "history": ({"history": 0}, InvalidInputError, "history must be an integer >= 1; got 0"),
    "shares": ({"shares": (0.8, 0.3, 0.1)}, InvalidInputError, "three numbers above 0 that add up to 1"),
    "draw": ({"draw": "popluar"}, UnknownNameError, "Did you mean 'popular'?"),
    "targets": ({"targets": 0}, InvalidInputError, "targets must be an integer >= 1"),
    "context": ({"context": ["day"]}, UnknownNameError, "unknown context 'day'"),
    "text": ({"context": "hour"}, InvalidInputError, "context= must be a list of names; got 'hour'"),
    "own": ({"own": 0.8}, InvalidInputError, "own= must be left out with protocol='sound'; got 0.8."),
    "ubr": ({"protocol": "ubr", "rare": 1}, InvalidInputError, "rare= must be left out with protocol='ubr'"),
    "many": ({"protocol": "ubr", "negatives": 2}, InvalidInputError, "must be 1 sampled item"),
    "least": (
        {"least": 1000},
        InvalidInputError,
        "must have targets in each part; got none in the train",
    ),
    "seed": ({"seed": -1}, InvalidInputError, "seed must be an integer >= 0"),
    "negatives": ({"negatives": 0}, InvalidInputError, "negatives must be an integer >= 1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_settings_are_refused(case):
    options, kind, message = REFUSED[case]
    with pytest.raises(kind) as caught:
        prepare_clicks(read_events(random_log(0)), **options)
    assert message in str(caught.value)


def test_moments_need_times():
    with pytest.raises(InvalidInputError, match="context needs times in the log; got hour"):
        prepare_clicks(read_events(random_log(0, times=False), time=None), context=["hour"])


def test_rows_are_whole():
    for rows in prepare_clicks(read_events(random_log(0), item_fields=["category"])):
        assert isinstance(rows, ClickRows)
        assert rows.layout.item.keys() == {"item", "category"}
        known = rows.item[:, 0] > 0
        assert (rows.item[known, 1] > 0).all()


@pytest.mark.parametrize(
    ("days", "cuts"), [([1] * 7 + [2] * 9 + [3], (2, 3)), ([1] * 9 + [2] * 4 + [3] * 9, (2, 3))]
)
def test_parts_begin_at_different_times_where_many_clicks_share_one(days, cuts):
    log = pd.DataFrame([(u, u * 20 + n, day) for u in range(30) for n, day in enumerate(days)])
    log.columns = ["user", "item", "time"]
    splits = prepare_clicks(read_events(log))
    assert splits.validation.times.min() == splits.validation.times.max() == 2
    assert splits.test.times.min() == 3
