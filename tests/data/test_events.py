"""Logs of events: the same from CSV, Parquet and frames, and what is refused or counted."""

import numpy as np
import pandas as pd
import polars
import pytest

import cleanrank.data.events as module
from cleanrank.data.events import Events, codes_of, read_events
from cleanrank.errors import BadFileError, InvalidInputError, MissingDataError, UnknownNameError


def small_log():
    return pd.DataFrame(
        {
            "user": [7, 7, 9, 9, 7],
            "item": ["a", "b", "a", "c", "a"],
            "time": [30, 10, 20, 40, 50],
            "did": ["pv", "buy", "pv", "fav", "pv"],
            "category": ["x", "y", "x", "z", "w"],
        }
    )


def same(one, other):
    for name in ("users", "items", "times", "clicked", "user_ids", "item_ids"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert all(np.array_equal(one.item_fields[name], other.item_fields[name]) for name in one.item_fields)
    assert one.report == other.report


def test_files_and_frames_give_the_same_events(tmp_path, monkeypatch):
    log = small_log()
    log.to_csv(tmp_path / "log.csv", index=False)
    log.to_csv(tmp_path / "bare.txt", index=False, header=False, sep="\t")
    log.to_csv(tmp_path / "log.csv.gz", index=False)
    log.to_parquet(tmp_path / "log.parquet")
    options = {"behaviour": "did", "clicks": ["pv", "buy"], "shown": ["fav"], "item_fields": ["category"]}
    events = read_events(log, **options)
    assert events.user_ids[events.users].tolist() == [7, 7, 9, 9, 7]
    assert events.item_ids[events.items].tolist() == ["a", "b", "a", "c", "a"]
    assert events.clicked.tolist() == [True, True, True, False, True]
    assert events.item_fields["category"].tolist() == [1, 2, 3]
    assert events.values["category"].tolist() == ["x", "y", "z"]  # "w" is never the first of its item
    assert events.report["events that change the category of their item"] == 1
    same(events, read_events(polars.from_pandas(log), **options))
    same(events, read_events(tmp_path / "log.csv", **options))
    same(events, read_events(tmp_path / "log.csv.gz", **options))
    same(events, read_events(tmp_path / "bare.txt", names=list(log.columns), delimiter="\t", **options))
    monkeypatch.setattr(module, "PIECE", 2)
    same(events, read_events(tmp_path / "log.parquet", **options))


def test_ids_are_numbered_in_their_order_however_sparse_they_are():
    random = np.random.default_rng(0)
    for top in (50, 2**31 - 1, 2**62):
        log = pd.DataFrame({"user": random.integers(-5 if top == 50 else 0, top, size=300), "item": 1})
        events = read_events(log, time=None)
        assert np.array_equal(events.user_ids, np.unique(log["user"]))
        assert np.array_equal(events.user_ids[events.users], log["user"])


def test_times_may_be_timestamps():
    log = small_log()
    stamped = log.assign(time=pd.to_datetime(log["time"], unit="s"))
    assert read_events(stamped).times.tolist() == log["time"].tolist()


def test_events_without_a_user_an_item_or_a_time_are_dropped_and_counted():
    log = small_log().astype({"user": "Int64", "time": "Int64"})
    log.loc[0, "user"] = log.loc[2, "time"] = pd.NA
    log.loc[3, "item"] = None
    events = read_events(log, behaviour="did", clicks=["pv", "fav"])
    assert len(events) == 1
    assert events.report["events read"] == 5
    assert events.report["events without a user, an item or a time"] == 3
    assert events.report["events of other behaviours"] == 1


REFUSED = {
    "column": (
        {"item": "itme"},
        UnknownNameError,
        "there is no column 'itme' (item=NAME). Did",
    ),
    "click": (
        {"behaviour": "did", "clicks": ["pw"]},
        InvalidInputError,
        "clicks= must name behaviours of the log; got 'pw'. It has: buy, fav, pv.",
    ),
    "unknown": (
        {"behaviour": "did", "clicks": ["pv"], "known": ["pv", "buy"]},
        InvalidInputError,
        "behaviours of the log must be one of pv, buy; got 'fav'. Remove or rename such events.",
    ),
    "alone": ({"clicks": ["pv"]}, InvalidInputError, "behaviour= and clicks= must be given together."),
    "one_text": (
        {"behaviour": "did", "clicks": "pv"},
        InvalidInputError,
        "clicks= must be a list of names; got 'pv'. Write ['pv'].",
    ),
    "twice": (
        {"item_fields": ["item"]},
        InvalidInputError,
        "columns of the log must have one use each; got 'item' twice.",
    ),
    "text_time": (
        {"time": "did"},
        InvalidInputError,
        "times in column 'did' must be whole seconds or timestamps; got 'pv' (type string)",
    ),
}


def test_times_with_gaps_are_whole_numbers_and_events_without_one_are_counted():
    log = small_log()
    log["time"] = log["time"].astype(float)
    log.loc[1, "time"] = np.nan
    assert read_events(log).report["events without a user, an item or a time"] == 1
    for wrong in (0.5, np.inf, 1e300):
        log.loc[1, "time"] = wrong
        with pytest.raises(InvalidInputError, match="must be whole seconds or timestamps"):
            read_events(log)


def test_columns_that_are_no_texts_are_named(tmp_path):
    log = small_log()
    with pytest.raises(InvalidInputError, match="column 'item' must hold numbers or texts; got list"):
        read_events(log.assign(item=[[1]] * len(log)))
    (tmp_path / "log.csv").write_bytes(b"user,item,time\n1,a\xff,3\n2,b,4\n")
    with pytest.raises(BadFileError, match=r"log.csv.*column 'item' must hold numbers or texts; got binary"):
        read_events(tmp_path / "log.csv")


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_logs_are_refused(case, tmp_path):
    options, kind, message = REFUSED[case]
    with pytest.raises(kind) as caught:
        read_events(small_log().astype({"did": "str"}), **options)
    assert message.replace("string)", "") in str(caught.value).replace("large_string", "string")
    small_log().to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises((BadFileError, kind)) as caught:
        read_events(tmp_path / "log.csv", **options)
    assert message in str(caught.value)
    assert case in ("alone", "one_text", "twice") or "log.csv" in str(caught.value)


def test_files_that_are_none_or_empty_are_refused(tmp_path):
    with pytest.raises(MissingDataError, match="there is no file"):
        read_events(tmp_path / "gone.csv")
    (tmp_path / "torn.csv").write_text("user,item,time\n1,2,3\n1,2\n")
    with pytest.raises(BadFileError, match=r"torn.csv' cannot be read as a log .*Expected 3 columns"):
        read_events(tmp_path / "torn.csv")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(BadFileError, match=r"torn.parquet' cannot be read"):
        read_events(tmp_path / "torn.parquet")
    (tmp_path / "bare.csv").write_text("user,item,time\n")
    with pytest.raises(InvalidInputError, match="must hold at least one event that counts"):
        read_events(tmp_path / "bare.csv")
    with pytest.raises(InvalidInputError, match="a frame must be"):
        read_events([1, 2, 3])


def test_empty_ids_in_a_file_are_missing(tmp_path):
    (tmp_path / "log.csv").write_text("user,item,clicked\nann,x,1\n,y,1\nbob,,0\nbob,x,0\n")
    events = read_events(tmp_path / "log.csv", time=None, behaviour="clicked", clicks=[1], shown=[0])
    assert events.user_ids.tolist() == ["ann", "bob"]
    assert events.clicked.tolist() == [True, False]
    assert events.report["events without a user, an item or a time"] == 2


def test_a_missing_value_of_a_field_is_a_value(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PIECE", 2)
    log = pd.DataFrame({"user": 1, "item": [1, 2, 3, 4], "brand": pd.array([5, 6, None, 5], dtype="Int64")})
    texts = log.assign(brand=log["brand"].astype("string"))
    for frame in (log, texts):
        codes = read_events(frame, time=None, item_fields=["brand"]).item_fields["brand"].tolist()
        assert codes == [2, 3, 1, 2]


def test_numbers_beyond_the_ids_are_refused():
    ids = np.arange(3)
    with pytest.raises(
        InvalidInputError, match=r"items must be from 0 to 2, the places of the ids; got 3 at event 1"
    ):
        Events(np.array([0, 1]), np.array([0, 3]), ids, ids)
    with pytest.raises(InvalidInputError, match="times must have one entry per event"):
        Events(np.array([0, 1]), np.array([0, 1]), ids, ids, times=np.array([1]))
    with pytest.raises(InvalidInputError, match="item field 'brand' must have one code >= 0 per item"):
        Events(np.array([0]), np.array([0]), ids, ids, item_fields={"brand": np.array([1, 2])})
    with pytest.raises(InvalidInputError, match=r"parts must be 0 .* or 2 .*; got 3 at event 0"):
        Events(np.array([0]), np.array([0]), ids, ids, parts=np.array([3], dtype=np.int8))
    with pytest.raises(InvalidInputError, match="events must not be empty"):
        Events(np.array([], dtype=int), np.array([], dtype=int), ids, ids)


def test_ids_that_a_side_table_lacks_are_unknown():
    codes, values, missing = codes_of(np.array([1, 4, 9]), np.array([9, 1, 2]), np.array(["m", "f", "x"]))
    assert values[codes[[0, 2]] - 1].tolist() == ["f", "m"]
    assert codes[1] == 0
    assert missing == 1
