import json
import os
import random
import signal
import subprocess
import sys
import time

import psutil
import pytest

from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.experiments.cells import CellSpec
from cleanrank.experiments.driver import Tally, run_cells
from cleanrank.experiments.engines import cores
from cleanrank.experiments.results import rows_of, to_json
from cleanrank.experiments.store import Store
from tests.experiments.toys import FIGURE, MOODY, workers_of


def cells(n, **more):
    return [
        CellSpec(f"k{i}", {"seed": i, "dataset": "d", "fold": 1, "rate": 0.0, "method": "m", **more})
        for i in range(n)
    ]


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "runs.sqlite") as opened:
        yield opened


def figures(store):
    """Everything but the times, to the last bit."""
    return [
        (r.key, r.status, {m: v.tobytes() for m, v in r.values.items()}, to_json(dict(r.means)), r.error)
        for r in store.records()
    ]


def test_cells_are_computed_once(store):
    seen = []
    tally = run_cells(cells(6), store, "r", jobs=2, watch=seen.append, target=FIGURE)
    assert (tally.total, tally.stored, tally.done, tally.failed) == (6, 0, 6, 0)
    assert [t.finished for t in seen] == [0, 1, 2, 3, 4, 5, 6]
    again = run_cells(cells(8), store, "r", jobs=1, target=FIGURE)
    assert (again.stored, again.done) == (6, 2)
    assert len(store.records(recipe="r")) == 8


def test_nothing_to_do_starts_nothing(store):
    run_cells(cells(2), store, "r", target=FIGURE)
    assert run_cells(cells(2), store, "other", target="no_such_module:f").stored == 2
    assert store.recipes()["other"] == (2, 2, 0)


def test_failures_are_recorded_and_tried_again(store, tmp_path):
    bad = [*cells(2), CellSpec("bad", {**cells(1)[0].inputs, "fails": True})]
    tally = run_cells(bad, store, "r", jobs=1, target=MOODY)
    assert (tally.done, tally.failed) == (2, 1)
    assert [(r.key, r.error) for r in store.records() if r.status == "failed"] == [("bad", "no luck")]
    again = run_cells(bad, store, "r", jobs=1, target=FIGURE)
    assert (again.stored, again.done, again.failed) == (2, 1, 0)


def test_a_cell_that_another_run_stored_meanwhile_is_not_computed(store):
    asked = cells(12, seconds=0.05)
    other = []

    def watch(tally):
        if tally.done == 1 and not other:
            with Store(store.path) as second:
                other.append(run_cells(asked[6:], second, "r", jobs=1, target=FIGURE))

    tally = run_cells(asked, store, "r", jobs=1, watch=watch, target=FIGURE)
    assert other[0].done == 6
    assert tally.done + tally.stored == 12
    assert tally.done <= 7
    assert len(store.records()) == 12


def test_unknown_engines_and_no_processes_are_refused(store):
    with pytest.raises(UnknownNameError, match="unknown engine 'spark'"):
        run_cells(cells(1), store, "r", engine="spark")
    with pytest.raises(InvalidInputError, match="jobs must be an integer >= 1"):
        run_cells(cells(1), store, "r", jobs=0)
    assert cores() >= 1


def test_the_time_left_follows_the_pace():
    assert Tally(10, stored=2).seconds_left is None
    assert Tally(10, stored=2, done=3, failed=1, seconds=8.0).seconds_left == 8.0
    assert Tally(4, stored=2, done=2, seconds=8.0).seconds_left == 0.0


DRIVER = """
import sys
from cleanrank.experiments.driver import reproduce
reproduce(sys.argv[1], store=sys.argv[2], jobs=2)
"""


def start(recipe, path):
    return subprocess.Popen([sys.executable, "-c", DRIVER, str(recipe), str(path)], stderr=subprocess.PIPE)


def exported(path):
    """The rows of an export without times, and the values per query to the last bit."""
    with Store(path) as store:
        records = store.records()
    rows = [{k: v for k, v in row.items() if not k.endswith(("_seconds", "_at"))} for row in rows_of(records)]
    return rows, {r.key: {m: v.tobytes() for m, v in r.values.items()} for r in records}


def test_two_drivers_at_once_compute_every_cell_once(small_recipe, tmp_path):
    shared, alone = tmp_path / "shared.sqlite", tmp_path / "alone.sqlite"
    both = [start(small_recipe, shared) for _ in range(2)]
    for driver in both:
        assert driver.wait(timeout=100) == 0, driver.stderr.read()
    assert start(small_recipe, alone).wait(timeout=100) == 0
    assert exported(shared) == exported(alone)
    with Store(shared) as store:
        count = store._connection.execute("SELECT count(*), count(DISTINCT key) FROM results").fetchone()
    assert tuple(count) == (16, 16)


@pytest.mark.slow
def test_killed_ten_times_it_still_gives_the_same_rows_and_bits(tmp_path, small_recipe):
    """Each round kills a worker and then the driver, both at random moments."""
    text = small_recipe.read_text()
    text = text.replace("seeds = [1, 2]", f"seeds = {list(range(40))}").replace("rounds = 5", "rounds = 60")
    small_recipe.write_text(
        text.replace("num_queries", "n_queries").replace("n_queries = 40", "n_queries = 80")
    )
    killed, alone = tmp_path / "killed.sqlite", tmp_path / "alone.sqlite"
    rng = random.Random(20)
    progress = [0]
    for turn in range(10):
        driver = start(small_recipe, killed)
        me = psutil.Process(driver.pid)
        early = turn % 4 == 3  # while workers are still coming up
        _until_stored(killed, 0 if early else progress[-1] + rng.randrange(1, 15))
        time.sleep(rng.uniform(0, 0.3))
        workers = workers_of(me)
        for worker in rng.sample(workers, min(1, len(workers))):
            _kill(worker.pid)
        _until_stored(killed, 0 if early else _stored(killed) + rng.randrange(5))
        time.sleep(rng.uniform(0, 0.3))
        everyone = {*workers, *me.children()}
        _kill(driver.pid)
        assert driver.wait() == -signal.SIGKILL
        _, orphans = psutil.wait_procs(everyone, timeout=10)
        assert not orphans
        progress.append(_stored(killed))
    assert progress == sorted(progress)
    assert len(set(progress)) >= 6
    assert progress[-1] < 320, "the grid was finished before the last kill: make it larger"
    last = start(small_recipe, killed)
    assert last.wait(timeout=300) == 0, last.stderr.read()
    whole = start(small_recipe, alone)
    assert whole.wait(timeout=300) == 0, whole.stderr.read()
    assert exported(killed) == exported(alone)
    assert len(exported(alone)[0]) == 2 * 2 * 2 * 40 * 2


def _stored(path):
    with Store(path) as store:
        return len(store.done_keys())


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _until_stored(path, goal, seconds=60.0):
    end = time.monotonic() + seconds
    while _stored(path) < goal:
        assert time.monotonic() < end, "the run makes no progress"
        time.sleep(0.01)


@pytest.mark.slow
def test_dask_gives_the_same_bits_as_the_local_engine(small_recipe, tmp_path):
    from cleanrank.experiments.driver import reproduce

    stores = {}
    for engine, jobs in (("local", 1), ("local", 2), ("dask", 2)):
        path = tmp_path / f"{engine}{jobs}.sqlite"
        found = reproduce(small_recipe, store=path, engine=engine, jobs=jobs)
        assert (found.tally.done, found.tally.failed) == (16, 0)
        stores[engine, jobs] = exported(path)
    assert stores["dask", 2] == stores["local", 1] == stores["local", 2]


@pytest.mark.slow
def test_an_existing_cluster_is_used_by_address(small_recipe, tmp_path):
    distributed = pytest.importorskip("distributed")
    from cleanrank.experiments.driver import reproduce

    with distributed.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster:
        found = reproduce(
            small_recipe, store=tmp_path / "d.sqlite", engine="dask", scheduler=cluster.scheduler_address
        )
    assert found.tally.done == 16
    reproduce(small_recipe, store=tmp_path / "l.sqlite", jobs=2)
    assert exported(tmp_path / "d.sqlite") == exported(tmp_path / "l.sqlite")


def test_json_of_cells_is_what_workers_get():
    assert json.loads(cells(1)[0].text)["seed"] == 0
