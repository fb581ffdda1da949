import json
import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from cleanrank.data import sqlite_file
from cleanrank.errors import BadFileError, InvalidInputError
from cleanrank.experiments.results import Result, pack
from cleanrank.experiments.store import SCHEMA_VERSION, Store

CELL = {"dataset": "d", "method": "m", "algorithm": "random", "version": 1, "fold": 1, "seed": 1}


def done(value, n=4):
    values = {"ndcg@10": np.full(n, value), "map": np.linspace(0, value, n)}
    means = {m: float(v.mean()) for m, v in values.items()}
    return pack(
        Result("done", values, means, [f"q{i}" for i in range(n)], {"trees": 7}, "", {"numpy": "2"}, 1.5, "t")
    )


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "deep" / "runs.sqlite") as opened:
        yield opened


def test_what_goes_in_comes_out(store):
    assert store.add("k1", "r", CELL, done(0.5))
    (record,) = store.records()
    assert (record.key, record.recipe, record.status, record.cell) == ("k1", "r", "done", CELL)
    assert record.means == {"ndcg@10": 0.5, "map": 0.25}
    assert record.values["map"].tolist() == np.linspace(0, 0.5, 4).tolist()
    assert record.query_ids.tolist() == ["q0", "q1", "q2", "q3"]
    assert (record.chosen, record.versions, record.wall_seconds, record.started_at) == (
        {"trees": 7},
        {"numpy": "2"},
        1.5,
        "t",
    )
    assert store.records(values=False)[0].values == {}


def test_the_first_figures_win(store):
    assert store.add("k", "r", CELL, done(0.5))
    assert not store.add("k", "r", CELL, done(0.9))
    assert not store.add("k", "r", CELL, pack(Result("failed", error="late")))
    (record,) = store.records()
    assert record.means["ndcg@10"] == 0.5


def test_a_success_stands_in_front_of_failures(store):
    store.add("k", "r", CELL, pack(Result("failed", error="one")))
    store.add("k", "r", CELL, pack(Result("failed", error="two")))
    assert [(r.status, r.error, r.means) for r in store.records()] == [("failed", "two", {})]
    assert not store.is_done("k")
    store.add("k", "r", CELL, done(0.5))
    assert [(r.status, r.error) for r in store.records()] == [("done", "")]
    assert store.done_keys() == {"k"}


def test_results_cannot_be_changed(store):
    store.add("k", "r", CELL, done(0.5))
    with sqlite3.connect(store.path) as other, pytest.raises(sqlite3.IntegrityError, match="only ever added"):
        other.execute("UPDATE results SET means = '{}'")


def test_two_done_results_of_a_key_are_impossible_even_by_hand(store):
    store.add("k", "r", CELL, done(0.5))
    with sqlite3.connect(store.path) as other, pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        other.execute(
            "INSERT INTO results SELECT 99, key, recipe, status, cell, means, chosen, error, versions, "
            "wall_seconds, started_at, stored_at, query_values FROM results"
        )


def test_a_cell_shows_under_the_labels_of_each_recipe(store):
    store.add_recipe("a", {"k": CELL, "never run": CELL})
    store.add("k", "a", CELL, done(0.5))
    store.add_recipe("b", {"k": {**CELL, "method": "other label"}})
    assert [r.cell["method"] for r in store.records(recipe="a")] == ["m"]
    assert [r.cell["method"] for r in store.records(recipe="b")] == ["other label"]
    assert store.records(recipe="c") == []
    assert store.recipes() == {"a": (2, 1, 0), "b": (1, 1, 0)}


def test_records_by_key_and_prefix(store):
    for key in ("aa1", "ab2", "b3"):
        store.add(key, "r", CELL, done(0.5))
    assert [r.key for r in store.records(keys=["b3", "aa1"])] == ["aa1", "b3"]
    assert [r.key for r in store.find("a")] == ["aa1", "ab2"]
    assert store.find_one("ab").key == "ab2"
    for prefix, count in (("a", 2), ("c", 0)):
        with pytest.raises(
            InvalidInputError, match=f"the start of one stored key; got '{prefix}', which fits {count}"
        ):
            store.find_one(prefix)


def test_the_figures_are_open_to_plain_sql(store):
    store.add("k", "r", CELL, done(0.5))
    with sqlite3.connect(store.path) as other:
        assert other.execute("SELECT measure, mean FROM figures ORDER BY measure").fetchall() == [
            ("map", 0.25),
            ("ndcg@10", 0.5),
        ]


def test_clean_up_takes_superseded_and_outdated_results(store):
    store.add("k1", "r", CELL, pack(Result("failed", error="one")))
    store.add("k1", "r", CELL, done(0.5))
    store.add("k2", "r", {**CELL, "version": 0}, done(0.5))
    store.add("k3", "r", CELL, pack(Result("failed", error="stands")))
    found = store.superseded({"random": 1})
    assert [why for _, why in found] == ["superseded failure", "old version of random"]
    assert [why for _, why in store.superseded({"random": 1}, failed=True)][-1] == "failure"
    store.remove(row for row, _ in found)
    assert [(r.key, r.status) for r in store.records()] == [("k1", "done"), ("k3", "failed")]
    assert store.superseded({"random": 1}) == []
    assert store.recipes() == {"r": (2, 1, 1)}  # nobody asks for an old version
    store.remove(row for row, _ in store.superseded({"random": 1}, failed=True))
    assert store.recipes() == {"r": (2, 1, 0)}  # a failed cell is still wanted


def test_reopening_keeps_everything(tmp_path):
    with Store(tmp_path / "s") as store:
        store.add("k", "r", CELL, done(0.5))
    with Store(tmp_path / "s", create=False) as store:
        assert store.is_done("k")


def test_a_store_that_is_not_there(tmp_path):
    with pytest.raises(InvalidInputError, match="store must be an existing file"):
        Store(tmp_path / "none", create=False)


@pytest.mark.parametrize(
    "content", [b"hello, this is no database at all" * 40, b"SQLite format 3\0" + b"\7" * 5000]
)
def test_a_damaged_file_is_named(tmp_path, content):
    path = tmp_path / "runs.sqlite"
    path.write_bytes(content)
    with pytest.raises(BadFileError, match=r"undamaged SQLite file.*runs\.sqlite"):
        Store(path)
    assert path.read_bytes() == content


def test_a_file_damaged_in_the_middle_is_named(tmp_path):
    path = tmp_path / "runs.sqlite"
    with Store(path) as store:
        for i in range(200):
            store.add(f"k{i}", "r", CELL, done(i / 200, n=50))
    content = bytearray(path.read_bytes())
    content[4096 * 3 : -4096] = b"\xff" * (len(content) - 4096 * 4)
    path.write_bytes(content)
    with pytest.raises(BadFileError, match=r"runs\.sqlite"), Store(path) as store:
        store.records()


@pytest.mark.parametrize(
    ("column", "damage"),
    [
        ("means", '{"a":'),
        ("means", "[1, 2]"),
        ("chosen", "\x00"),
        ("query_values", b"no values"),
        ("query_values", b""),
    ],
)
def test_a_damaged_result_is_named(tmp_path, column, damage):
    path = tmp_path / "runs.sqlite"
    with Store(path) as store:
        store.add("k7", "r", CELL, done(0.5))
    with sqlite3.connect(path) as other:
        other.execute("DROP TRIGGER append_only")
        other.execute(f"UPDATE results SET {column} = ?", (damage,))
    with (
        Store(path, create=False) as store,
        pytest.raises(BadFileError, match=r"as cleanrank wrote them; got .*at key 'k7' in .*runs\.sqlite"),
    ):
        store.records()


def test_another_programs_file_is_left_alone(tmp_path):
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (a)")
    with pytest.raises(BadFileError, match="another program's SQLite file"):
        Store(path)
    with sqlite3.connect(path) as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_newer_schema_is_refused(tmp_path):
    path = tmp_path / "runs.sqlite"
    with Store(path):
        pass
    with sqlite3.connect(path) as other:
        other.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(BadFileError, match=f"schema version {SCHEMA_VERSION}"):
        Store(path)


def test_a_folder_is_no_store(tmp_path):
    with pytest.raises(BadFileError, match="must be usable"):
        Store(tmp_path)


def test_a_store_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadFileError, match=r"store must be usable; got .*file"):
        Store(tmp_path / "file" / "runs.sqlite")


def test_reading_does_not_wait_for_a_run_that_writes(tmp_path):
    path = tmp_path / "runs.sqlite"
    with Store(path) as writer:
        writer.add("k", "r", CELL, done(0.5))
        with writer._write(), Store(path, create=False) as reader:
            assert reader.is_done("k")


def test_a_lock_that_is_never_given_back_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.1)
    with Store(tmp_path / "runs.sqlite") as holder, Store(tmp_path / "runs.sqlite") as other:
        with holder._write(), pytest.raises(BadFileError, match=r"database is locked.*Another run holds it"):
            other.add("k", "r", CELL, done(0.5))
        assert other.add("k", "r", CELL, done(0.5))


def test_a_store_that_nobody_can_write_is_read_all_the_same(tmp_path, monkeypatch):
    path = tmp_path / "shared # ?" / "runs.sqlite"
    with Store(path) as store:
        store.add("k", "r", CELL, done(0.5))
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    with Store(path, create=False) as store:
        assert store.recipes() == {"r": (1, 1, 0)}
        with pytest.raises(BadFileError, match="must be usable; got attempt to write a readonly database"):
            store.add("k2", "r", CELL, done(0.5))
    assert [p.name for p in path.parent.iterdir()] == ["runs.sqlite"]


def test_a_full_disk_is_said_and_leaves_the_store_usable(store):
    store.add("k", "r", CELL, done(0.5))
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(BadFileError, match=r"disk is full.*Free space"):
        store.add("large", "r", {**CELL, "about": "x" * 100_000}, done(0.5))
    store._connection.execute("PRAGMA max_page_count = 100000")
    assert store.add("later", "r", CELL, done(0.5))


def test_many_writers_at_once_lose_and_double_nothing(tmp_path):
    script = (
        "import sys, numpy as np\n"
        "from cleanrank.experiments.results import Result, pack\n"
        "from cleanrank.experiments.store import Store\n"
        "won = 0\n"
        "with Store(sys.argv[1]) as store:\n"
        "    for i in range(100):\n"
        "        v = {'m': np.full(3, float(sys.argv[2]))}\n"
        "        r = Result('done', v, {'m': 0.0}, [1, 2, 3], {}, '', {}, 0.0, '')\n"
        "        won += store.add(f'k{i}', 'r', {'by': sys.argv[2]}, pack(r))\n"
        "print(won)\n"
    )
    path = str(tmp_path / "runs.sqlite")
    writers = [
        subprocess.Popen([sys.executable, "-c", script, path, str(w)], stdout=subprocess.PIPE)
        for w in range(3)
    ]
    won = [int(w.communicate()[0]) for w in writers]
    assert [w.returncode for w in writers] == [0, 0, 0]
    assert sum(won) == 100
    with Store(path) as store:
        records = store.records()
    assert len(records) == 100
    assert all(r.values["m"].tolist() == [float(r.cell["by"])] * 3 for r in records)


def test_hashes_of_files_are_noted(store):
    assert store.file_hash("/a", 1, 2) is None
    store.note_file("/a", 1, 2, "abc")
    store.note_file("/a", 1, 2, "abc")
    assert store.file_hash("/a", 1, 2) == "abc"
    assert store.file_hash("/a", 1, 3) is None


def test_cells_are_kept_as_json(store):
    store.add("k", "r", {**CELL, "params": {"norm": True, "rate": 0.1}}, done(0.5))
    with sqlite3.connect(store.path) as other:
        (text,) = other.execute("SELECT cell FROM results").fetchone()
    assert json.loads(text)["params"] == {"norm": True, "rate": 0.1}


def test_without_a_recipe_labels_are_those_of_the_first_by_name(store):
    store.add("k", "b", {**CELL, "method": "of b"}, done(0.5))
    store.add_recipe("a", {"k": {**CELL, "method": "of a"}})
    store.add_recipe("c", {"k": {**CELL, "method": "of c"}})
    assert [(each.recipe, each.cell["method"]) for each in store.records()] == [("a", "of a")]


def test_of_several_failures_a_clean_up_leaves_the_latest(store):
    for error in ("one", "two", "three"):
        store.add("k", "r", CELL, pack(Result("failed", error=error)))
    store.remove(row for row, _ in store.superseded({"random": 1}))
    with sqlite3.connect(store.path) as other:
        assert other.execute("SELECT error FROM results").fetchall() == [("three",)]
