import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from cleanrank.errors import InvalidInputError
from cleanrank.experiments import engines
from cleanrank.experiments.engines import ENGINES, run_dask, run_local
from cleanrank.experiments.results import split
from tests.experiments.toys import FIGURE, MOODY, THREADED, figure, unpack, workers_of

ROOT = Path(__file__).parents[2]
PATH = f"{ROOT}{os.pathsep}{ROOT / 'src'}"


def cells(n, **more):
    return [(f"k{i}", json.dumps({"seed": i, **more})) for i in range(n)]


def test_every_cell_comes_back_once_with_its_own_bits():
    asked = cells(50)
    found = list(run_local(asked, jobs=2, target=FIGURE))
    assert sorted(k for k, _ in found) == sorted(k for k, _ in asked)
    for key, packed in found:
        assert packed == figure(dict(asked)[key])


@pytest.mark.parametrize(("jobs", "threads"), [(1, "6"), (2, "3"), (7, "1")])
def test_processes_share_the_cores(monkeypatch, jobs, threads):
    monkeypatch.setattr(engines, "cores", lambda: 6)
    ((_, packed),) = run_local(cells(1), jobs=jobs, target=THREADED)
    assert split(packed)[0]["chosen"] == {"NUMBA_NUM_THREADS": threads, "OMP_NUM_THREADS": "1"}


def test_items_are_taken_only_as_fast_as_they_are_computed():
    taken = []

    def lazily():
        for item in cells(40, seconds=0.03):
            taken.append(item)
            yield item

    stream = run_local(lazily(), jobs=2, target=FIGURE)
    next(stream)
    assert len(taken) <= 6
    stream.close()


def test_a_failing_cell_is_a_failed_result():
    found = dict(run_local([("bad", json.dumps({"fails": True}))], target=MOODY))
    assert unpack(found["bad"]).status == "failed"
    assert unpack(found["bad"]).error == "no luck"


def test_a_worker_that_dies_at_a_cell_twice_fails_that_cell_alone():
    asked = [*cells(6), ("deadly", json.dumps({"dies": True})), *[(f"z{k}", t) for k, t in cells(6)]]
    found = dict(run_local(asked, jobs=2, target=MOODY))
    assert len(found) == len(asked)
    lost = unpack(found.pop("deadly"))
    assert lost.status == "failed"
    assert "ended with EXIT(7)" in lost.error
    assert "a last word" in lost.error
    assert {unpack(p).status for p in found.values()} == {"done"}


def test_what_a_cell_prints_stays_off_the_screen(capfd):
    ((_, packed),) = run_local([("k", json.dumps({"seed": 3, "prints": "loud"}))], target=MOODY)
    assert packed == figure(json.dumps({"seed": 3}))
    assert capfd.readouterr() == ("", "")


def test_the_signal_that_killed_a_worker_is_named():
    ((_, packed),) = run_local([("k", json.dumps({"killed": True}))], target=MOODY)
    assert "ended with SIGKILL(-9)" in unpack(packed).error


def test_a_cell_whose_worker_died_once_is_tried_again(tmp_path):
    asked = [("k", json.dumps({"seed": 3, "dies_once": str(tmp_path / "mark")}))]
    ((_, packed),) = run_local(asked, target=MOODY)
    assert packed == figure(json.dumps({"seed": 3}))


def test_killing_a_worker_from_outside_loses_nothing():
    asked = cells(30, seconds=0.02)
    found = {}
    for key, packed in run_local(asked, jobs=2, target=FIGURE):
        found[key] = packed
        if len(found) in (3, 10):
            workers_of(psutil.Process())[-1].send_signal(signal.SIGKILL)
    assert found == {k: figure(t) for k, t in asked}


def test_workers_that_cannot_start_end_the_run_with_their_words():
    with pytest.raises(InvalidInputError, match=r"worker processes must start(.|\n)*no_such_module"):
        list(run_local(cells(2), target="no_such_module:f"))


def test_closing_the_stream_ends_the_workers():
    stream = run_local(cells(100, seconds=0.05), jobs=2, target=FIGURE)
    next(stream)
    started = workers_of(psutil.Process())
    assert len(started) >= 1
    stream.close()
    _, alive = psutil.wait_procs(started, timeout=5)
    assert not alive


def test_workers_die_with_a_killed_driver():
    script = (
        "import json; from cleanrank.experiments.engines import run_local\n"
        "items = [(str(i), json.dumps({'seed': i, 'seconds': 30})) for i in range(4)]\n"
        "list(run_local(items, jobs=2, target='tests.experiments.toys:figure'))\n"
    )
    driver = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": PATH})
    try:
        workers = _wait_for(lambda: len(found := workers_of(psutil.Process(driver.pid))) == 2 and found)
        time.sleep(0.5)
    finally:
        driver.kill()
        driver.wait()
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert not alive


def test_a_script_needs_no_guard_around_its_main_part(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import json; from cleanrank.experiments.engines import run_local\n"
        "items = [(str(i), json.dumps({'seed': i})) for i in range(3)]\n"
        "print(len(list(run_local(items, jobs=2, target='tests.experiments.toys:figure'))))\n"
    )
    ran = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "PYTHONPATH": PATH},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ran.stdout, ran.stderr) == ("3\n", "")


@pytest.mark.parametrize("seconds", [0.0, 0.3, 1.5])
def test_an_interrupt_ends_driver_and_workers_without_a_word_of_theirs(seconds, tmp_path):
    script = (
        "import json; from cleanrank.experiments.engines import run_local\n"
        "items = [(str(i), json.dumps({'seed': i, 'seconds': 30})) for i in range(4)]\n"
        f"open({str(tmp_path / 'begun')!r}, 'w').close()\n"
        "try:\n"
        "    list(run_local(items, jobs=2, target='tests.experiments.toys:figure'))\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    driver = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": PATH},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    _wait_for((tmp_path / "begun").exists)
    workers = _wait_for(lambda: workers_of(psutil.Process(driver.pid)))
    time.sleep(seconds)
    os.killpg(driver.pid, signal.SIGINT)  # as Ctrl-C does: to all of them
    out, err = driver.communicate(timeout=120)
    assert (out, err, driver.returncode) == ("interrupted\n", "", 0)
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert not alive


def test_no_cells_start_no_workers(monkeypatch):
    assert list(run_local([], jobs=2, target="no_such_module:f")) == []
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed, "LocalCluster", None)
    assert list(run_dask([], jobs=2)) == []


def test_a_scheduler_needs_dask():
    with pytest.raises(InvalidInputError, match="--engine dask"):
        list(run_local(cells(1), scheduler="tcp://x"))


@pytest.mark.slow
def test_a_local_dask_cluster_gives_the_same_bits():
    asked = cells(12)
    assert dict(run_dask(asked, jobs=2, target=FIGURE)) == dict(run_local(asked, target=FIGURE))


@pytest.mark.slow
def test_a_cell_that_kills_dask_workers_is_a_failed_result():
    distributed = pytest.importorskip("distributed")
    asked = [*cells(3), ("deadly", json.dumps({"dies": True}))]
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        found = dict(run_dask(asked, scheduler=cluster.scheduler_address, target=MOODY))
        with distributed.Client(cluster) as client:
            client.wait_for_workers(2, timeout=60)  # one that is just starting cannot be closed
    assert unpack(found.pop("deadly")).status == "failed"
    assert {unpack(p).status for p in found.values()} == {"done"}


@pytest.mark.slow
def test_no_cluster_at_the_address_is_said(monkeypatch):
    monkeypatch.setattr("cleanrank.cluster.client.CONNECT_SECONDS", 1)
    with pytest.raises(InvalidInputError, match=r"running Dask cluster; got 'tcp://127\.0\.0\.1:9'"):
        list(run_dask(cells(1), scheduler="tcp://127.0.0.1:9", target=FIGURE))
    with pytest.raises(InvalidInputError, match="running Dask cluster; got 'nonsense://x'"):
        list(run_dask(cells(1), scheduler="nonsense://x", target=FIGURE))


def test_engines_are_listed():
    assert {"local": run_local, "dask": run_dask} == ENGINES


def _wait_for(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError("waited in vain")


def block_cells(blocks, methods):
    return [
        (f"{b} {m}", json.dumps({"fold": b, "seed": 1, "method": m}))
        for b in range(blocks)
        for m in range(methods)
    ]


def test_a_process_stays_with_the_cells_of_its_block_and_all_are_handed_out_once():
    asked = block_cells(3, 4)
    waiting = engines._Blocks(asked)
    first = waiting.take(None, [None])
    second = waiting.take(None, [first])
    assert [first[0], second[0]] == ["0 0", "1 0"]
    taken = [first, second]
    for _ in range(3):
        first = waiting.take(first, [second])
        taken.append(first)
    assert [key for key, _ in taken[2:]] == ["0 1", "0 2", "0 3"]
    first = waiting.take(first, [second])  # block 0 is done, somebody else is at block 1
    assert first[0] == "2 0"
    taken.append(first)
    while (first := waiting.take(first, [second])) is not None:  # at the end it helps out
        taken.append(first)
    assert sorted(taken) == sorted(asked)


def test_blocks_come_back_whole_from_processes():
    asked = block_cells(5, 3)
    found = list(run_local(asked, jobs=2, target=FIGURE))
    assert sorted(key for key, _ in found) == sorted(key for key, _ in asked)
