"""Where cells are computed: processes of this machine, or a Dask cluster.

An engine takes (key, text) pairs, as lazily as it can, and yields (key, packed result) pairs as they come.
It writes nothing: the driver stores each result when it arrives, so whatever is killed loses only its cell.
"""

import importlib
import itertools
import logging
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO, TypeAlias, cast

from cleanrank.errors import invalid
from cleanrank.experiments.results import failure, pack
from cleanrank.experiments.worker import READY, read_frame, resolve, write_frame
from cleanrank.validation import require

Item: TypeAlias = tuple[str, str]
Done: TypeAlias = tuple[str, bytes]

CELL = "cleanrank.experiments.work:run_cell"
TRIES = 2
START_TRIES = 3
SHORT_SECONDS = 0.02
CONNECT_SECONDS = 10
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


@dataclass(eq=False)
class _Worker:
    """A process, the cells it was given in order, and whether it has come up."""

    process: "subprocess.Popen[bytes]"
    notes: IO[bytes]
    given: deque[Item] = field(default_factory=deque)
    ready: bool = False
    heard: float = field(default_factory=time.monotonic)
    ahead: int = 1

    def hear(self) -> None:
        """Notes a sign of life; after a short cell the next one is sent ahead, to hide the way there."""
        before, self.heard = self.heard, time.monotonic()
        self.ahead = 2 if self.heard - before < SHORT_SECONDS else 1

    def last_words(self) -> str:
        """The end of what it wrote to stderr, and how it ended."""
        code = self.process.wait()
        self.notes.seek(0)
        said = self.notes.read().decode(errors="replace").strip()[-4000:]
        how = f"ended with code {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"
        return f"the worker process {how}" + (f":\n{said}" if said else "")

    def end(self) -> None:
        """Kills the process and frees what belongs to it."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.notes):
            if stream is not None:
                _close(stream)


def run_local(
    items: Iterable[Item], *, jobs: int = 1, scheduler: str | None = None, target: str = CELL
) -> Iterator[Done]:
    """Computes cells in ``jobs`` processes of one thread each.

    Processes are started afresh, never forked, because OpenMP does not survive a fork. A process that dies
    is replaced; the cell it was at is tried once more, then given up as failed.
    """
    if scheduler is not None:
        raise invalid(
            "scheduler",
            "must not be given with the local engine",
            repr(scheduler),
            remedy="Add --engine dask.",
        )
    yield from _Pool(iter(items), jobs, target).run()


class _Pool:
    """The processes of one run and the cells that wait for them."""

    def __init__(self, items: Iterator[Item], jobs: int, target: str) -> None:
        self.items = items
        self.jobs = jobs
        self.target = target
        self.again: deque[Item] = deque()
        self.deaths: dict[str, int] = {}
        self.failed_starts = 0
        self.workers: list[_Worker] = []
        self.events: queue.SimpleQueue[tuple[_Worker, bytes | None]] = queue.SimpleQueue()

    def run(self) -> Iterator[Done]:
        try:
            first = self._next()
            if first is None:
                return
            self.again.append(first)
            for _ in range(self.jobs):
                self._start()
            while self._busy():
                worker, frame = self.events.get()
                if frame is None:
                    yield from self._bury(worker)
                elif frame == READY and not worker.ready:
                    worker.ready = True
                    self.failed_starts = 0
                    self._feed(worker)
                else:
                    key, _ = worker.given.popleft()
                    worker.hear()
                    self._feed(worker)
                    yield key, frame
        finally:
            for worker in self.workers:
                worker.end()

    def _busy(self) -> bool:
        return bool(self.again) or any(w.given for w in self.workers)

    def _next(self) -> Item | None:
        return self.again.popleft() if self.again else next(self.items, None)

    def _start(self) -> None:
        notes = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cleanrank.experiments.worker", self.target],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=notes,
            env=worker_environment(os.environ),
            # Ctrl-C is for the driver, which then ends its workers itself.
            start_new_session=True,
        )
        worker = _Worker(process, notes)
        self.workers.append(worker)
        threading.Thread(target=self._listen, args=(worker,), daemon=True).start()

    def _listen(self, worker: _Worker) -> None:
        stream = cast(BinaryIO, worker.process.stdout)
        frame: bytes | None = b""
        while frame is not None:
            try:
                frame = read_frame(stream)
            except (OSError, ValueError):  # closed by the driver while reading
                frame = None
            self.events.put((worker, frame))

    def _feed(self, worker: _Worker) -> None:
        """Gives a worker its next cell, and one ahead when cells are short."""
        while worker.ready and len(worker.given) < worker.ahead and (item := self._next()) is not None:
            worker.given.append(item)
            try:
                write_frame(cast(BinaryIO, worker.process.stdin), item[1].encode())
            except OSError:  # it died; its last event brings the cell back
                return

    def _bury(self, worker: _Worker) -> Iterator[Done]:
        """Replaces a dead worker and saves its cells."""
        said = worker.last_words()
        worker.end()
        self.workers.remove(worker)
        if not worker.ready:
            self.failed_starts += 1
            if self.failed_starts >= START_TRIES:
                raise invalid(
                    "worker processes",
                    "must start",
                    f"{START_TRIES} failures in a row",
                    remedy=f"Last: {said}",
                )
        unfinished = list(worker.given)
        if unfinished:
            key, _ = unfinished[0]
            self.deaths[key] = self.deaths.get(key, 0) + 1
            if self.deaths[key] >= TRIES:
                unfinished.pop(0)
                yield key, pack(failure(f"tried {TRIES} times, and each time {said}"))
        self.again.extendleft(reversed(unfinished))
        for other in self.workers:
            self._feed(other)
        if (waiting := self._next()) is not None:
            self.again.appendleft(waiting)
            self._start()


def worker_environment(outside: Mapping[str, str]) -> dict[str, str]:
    """The environment of a worker: one thread, and this process's import path."""
    path = os.pathsep.join(p for p in sys.path if p)
    return {**outside, **dict.fromkeys(THREAD_VARIABLES, "1"), "PYTHONPATH": path}


def run_dask(
    items: Iterable[Item], *, jobs: int = 1, scheduler: str | None = None, target: str = CELL
) -> Iterator[Done]:
    """Computes cells on a Dask cluster: the one at ``scheduler``, else a local one of ``jobs`` processes.

    The cluster's machines need cleanrank and, under their own CLEANRANK_DATA, the same data files.
    """
    require("dask")
    wanted = iter(items)
    if (first := next(wanted, None)) is None:
        return
    wanted = itertools.chain([first], wanted)
    distributed: Any = importlib.import_module("distributed")
    if scheduler is not None:
        try:
            outside = distributed.Client(scheduler, set_as_default=False, timeout=CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise invalid(
                "scheduler",
                "must be the address of a running Dask cluster",
                repr(scheduler),
                remedy=str(error),
            ) from error
        with outside as client:
            yield from _through(client, wanted, target)
        return
    with (
        distributed.LocalCluster(
            n_workers=jobs,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            # What Dask says when it is interrupted helps nobody; a worker's death is told by its cell.
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield from _through(client, wanted, target)


def _through(client: Any, items: Iterator[Item], target: str) -> Iterator[Done]:
    """Keeps a few cells per thread of the cluster in flight.

    When a worker dies, Dask blames every cell it held. So what it gives up is tried again alone: only the
    cell that kills a worker by itself is failed.
    """
    blamed: list[Item] = []
    for item, packed, _ in _flight(client, items, target, 4 * max(1, sum(client.nthreads().values()))):
        if packed is None:
            blamed.append(item)
        else:
            yield item[0], packed
    for alone in blamed:
        for item, packed, why in _flight(client, iter([alone]), target, 1):
            yield item[0], pack(failure(why)) if packed is None else packed


def _flight(
    client: Any, items: Iterator[Item], target: str, window: int
) -> Iterator[tuple[Item, bytes | None, str]]:
    """(cell, its packed result or None, why there is none) as they come, ``window`` of them at a time."""
    distributed: Any = importlib.import_module("distributed")
    under_way: dict[Any, Item] = {}
    flying = distributed.as_completed(loop=client.loop)

    def send() -> None:
        if (item := next(items, None)) is not None:
            future = client.submit(_compute, target, item[1], pure=False)
            under_way[future.key] = item
            flying.add(future)

    for _ in range(window):
        send()
    for future in flying:
        item = under_way.pop(future.key)
        send()
        try:
            found, why = future.result(), ""
        except Exception as error:  # a cell's own errors come as results: this one is the cluster's
            found, why = None, f"{type(error).__name__}: {error}"
        yield item, found, why
        future.release()


def _compute(target: str, text: str) -> bytes:
    return resolve(target)(text)


def _close(stream: Any) -> None:
    try:
        stream.close()
    except OSError:
        return


ENGINES: dict[str, Callable[..., Iterator[Done]]] = {"local": run_local, "dask": run_dask}
