"""Where cells are computed: processes of this machine, or a Dask cluster.

An engine takes (key, text) pairs, as lazily as it can, and yields (key, packed result) pairs as they come.
A process stays with cells that share data, noise and seed, since they share work (``remember.py``). An engine
writes nothing: the driver stores each result when it arrives, so a process that is killed loses one cell.
"""

import importlib
import itertools
import json
import logging
import os
import pkgutil
import re
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, TypeAlias

from cleanrank.cluster.client import connected
from cleanrank.errors import invalid
from cleanrank.experiments.results import Result, pack
from cleanrank.validation import require

Item: TypeAlias = tuple[str, str]
Done: TypeAlias = tuple[str, bytes]

CELL = "cleanrank.experiments.cells:run_cell"
SHARED = ("data", "options", "identity", "fold", "derived", "noise", "rate", "on", "seed")
START_TRIES = 3
RESTART_SECONDS = 60
ORPHAN_SECONDS = 0.5
OUTPUT_SHOWN = 4000
THREADS = "NUMBA_NUM_THREADS"
# Figures of these libraries may round otherwise on several threads.
SINGLE = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def run_local(
    items: Iterable[Item], *, jobs: int = 1, scheduler: str | None = None, target: str = CELL
) -> Iterator[Done]:
    """Computes cells in ``jobs`` processes, which share the cores for trees and compiled loops.

    Processes are started afresh, never forked, because OpenMP does not survive a fork. A process that dies
    is replaced; its cell is tried once more, then given up as failed.
    """
    if scheduler is not None:
        rule = "must not be given with the local engine"
        raise invalid("scheduler", rule, repr(scheduler), remedy="Add --engine dask.")
    waiting = _Blocks(items)
    again: list[Item] = []
    tried: set[str] = set()
    under_way: dict[Future[Any], _Worker] = {}
    failed_starts = 0
    threads = max(1, cores() // jobs)

    def take(last: Item | None = None) -> Item | None:
        others = [each.item for each in under_way.values()]
        return again.pop() if again else waiting.take(last, others)

    def start() -> None:
        """Starts a process if a cell is left, which then takes the cell once it is ready."""
        if (item := take()) is not None:
            again.append(item)
            with _interrupts_deferred():
                worker = _Worker(target, threads)
                workers.callback(worker.end)
                under_way[worker.future] = worker

    with ExitStack() as workers:
        for _ in range(jobs):
            start()
        while under_way:
            future = next(iter(wait(under_way, return_when=FIRST_COMPLETED).done))
            worker, error = under_way.pop(future), future.exception()
            finished = worker.item
            if error is None:
                failed_starts = 0
                if (item := take(finished)) is None:
                    worker.end()
                else:
                    worker.compute(item)
                    under_way[worker.future] = worker
                if finished is not None:
                    yield finished[0], future.result()
                continue
            words = f"{_exit_words(error)}{worker.end()}"
            if finished is None:
                failed_starts += 1
                if failed_starts == START_TRIES:
                    tries = f"{START_TRIES} failures in a row"
                    raise invalid("worker processes", "must start", tries, remedy=f"Last: {words}")
            elif finished[0] in tried:
                yield finished[0], pack(Result("failed", error=f"tried twice, and each time {words}"))
            else:
                tried.add(finished[0])
                again.append(finished)
            start()


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Blocks:
    """Hands out items so that a process stays with the block of its last one, as long as there are others."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = iter(items)
        self._ahead: list[Item] = []  # of blocks that other processes are at

    def take(self, last: Item | None, others: Sequence[Item | None]) -> Item | None:
        """The next item for a process that had ``last``, while the others have theirs; None at the end."""
        mine, taken = _block(last), {_block(other) for other in others if other is not None}
        for place, item in enumerate(self._ahead):
            if _block(item) == mine or _block(item) not in taken:
                return self._ahead.pop(place)
        for item in self._items:
            if _block(item) == mine or _block(item) not in taken:
                return item
            self._ahead.append(item)
        return self._ahead.pop() if self._ahead else None


def _block(item: Item | None) -> str | None:
    """What cells have in common that share work; of other texts nothing is known."""
    if item is None:
        return None
    cell = json.loads(item[1])
    return json.dumps([cell.get(name) for name in SHARED]) if "fold" in cell else item[0]


class _Worker:
    """One process in a pool of its own, so that its death costs one cell and ends no other process."""

    def __init__(self, target: str, threads: int) -> None:
        from joblib.externals.loky import ProcessPoolExecutor

        self.target = target
        self.output = tempfile.NamedTemporaryFile(delete=False)  # noqa: SIM115 (lives as long as the process)
        self.pool = ProcessPoolExecutor(
            1,
            initializer=_start_worker,
            initargs=(os.getpid(), self.output.name, target),
            env={**dict.fromkeys(SINGLE, "1"), THREADS: str(threads)},
        )
        self.item: Item | None = None  # the cell it computes; none while it starts
        self.future: Future[Any] = self.pool.submit(os.getpid)

    def compute(self, item: Item) -> None:
        """Sends a cell; ``future`` will have its packed result."""
        self.item, self.future = item, self.pool.submit(_compute, self.target, item[1])

    def end(self) -> str:
        """Kills the process; returns the end of what it has printed, on a line of its own."""
        for _ in range(1000):  # loky cannot shut down beside a call that it has not picked up yet
            if self.future.running() or self.future.done():
                break
            time.sleep(0.001)
        self.pool.shutdown(kill_workers=True)
        if self.output.closed:
            return ""
        with self.output:
            text = self.output.read().decode(errors="replace").strip()[-OUTPUT_SHOWN:]
        Path(self.output.name).unlink(missing_ok=True)
        return f":\n{text}" if text else ""


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Ctrl-C is for the driver, once it knows the process that it starts, which begins with SIGINT blocked.

    A mask alone does not do: the kernel may hand the signal to a thread of another library.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # its start would unblock the signal
    interrupts: list[int] = []
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread:
        handler = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if in_main_thread:
            signal.signal(signal.SIGINT, handler)
    if interrupts:
        signal.raise_signal(signal.SIGINT)


def _exit_words(error: BaseException) -> str:
    """How a process ended; loky's message holds codes such as SIGKILL(-9) or EXIT(7)."""
    codes = re.search(r"exit codes of the workers are \{(.*?)\}", str(error))
    return f"the worker process ended with {codes[1] if codes else repr(error)}"


def _start_worker(driver: int, output: str, target: str) -> None:
    """Runs first in a process: output goes to a file, Ctrl-C to the driver, with which it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with open(output, "ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    with suppress(OSError):
        Path(output).unlink()  # the driver has it open: nobody need clean up should both be killed
    threading.Thread(target=_end_with, args=(driver,), daemon=True).start()
    # Data that stay in memory for the next cell are no leak for which loky should replace the process.
    loky: Any = importlib.import_module("joblib.externals.loky.process_executor")
    loky._MAX_MEMORY_LEAK_SIZE = float("inf")
    pkgutil.resolve_name(target)


def _end_with(driver: int) -> None:
    while os.getppid() == driver:
        time.sleep(ORPHAN_SECONDS)
    os._exit(1)


def _compute(target: str, text: str) -> bytes:
    packed: bytes = pkgutil.resolve_name(target)(text)
    return packed


def run_dask(
    items: Iterable[Item], *, jobs: int = 1, scheduler: str | None = None, target: str = CELL
) -> Iterator[Done]:
    """Computes cells on a Dask cluster: the one at ``scheduler``, else a local one of ``jobs`` processes.

    The cluster's machines need cleanrank and, under their own CLEANRANK_DATA, the same data files.
    """
    require("dask")
    waiting = iter(items)
    if (first := next(waiting, None)) is None:
        return
    waiting = itertools.chain([first], waiting)
    distributed: Any = importlib.import_module("distributed")
    with ExitStack() as stack:
        if scheduler is None:
            cluster = distributed.LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                # What Dask says when it is interrupted helps nobody; a worker's death is told by its cell.
                silence_logs=logging.CRITICAL,
            )
            client = distributed.Client(stack.enter_context(cluster), set_as_default=False)
        else:
            client = connected(scheduler)
        yield from _through(stack.enter_context(client), waiting, target)
        if scheduler is None:
            # A cluster cannot be closed while a worker that died is being started again.
            client.wait_for_workers(jobs, timeout=RESTART_SECONDS)


def _through(client: Any, items: Iterator[Item], target: str) -> Iterator[Done]:
    """Keeps a few cells per thread of the cluster in flight.

    When a worker dies, Dask blames every cell it held. So what it gives up is tried again alone: only the
    cell that kills a worker by itself is failed.
    """
    distributed: Any = importlib.import_module("distributed")
    under_way: dict[Any, Item] = {}
    blamed: list[Item] = []
    alone = False
    flying = distributed.as_completed(loop=client.loop)

    def send() -> None:
        nonlocal alone
        item = next(items, None)
        if item is None and blamed and not under_way:
            alone, item = True, blamed.pop()
        if item is not None:
            future = client.submit(_compute, target, item[1], pure=False)
            under_way[future.key] = item
            flying.add(future)

    for _ in range(4 * max(1, sum(client.nthreads().values()))):
        send()
    for future in flying:
        item = under_way.pop(future.key)
        packed = None
        try:
            packed = future.result()
        except Exception as error:  # a cell's own errors come as results: this one is the cluster's
            if alone:
                packed = pack(Result("failed", error=f"{type(error).__name__}: {error}"))
            else:
                blamed.append(item)
        send()
        if packed is not None:
            yield item[0], packed
        future.release()


ENGINES: dict[str, Callable[..., Iterator[Done]]] = {"local": run_local, "dask": run_dask}
