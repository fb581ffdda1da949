"""One task on every worker at the same time, such as training a model of which each has a part of the rows.

The workers talk to each other over sockets of their own. When one is lost the connections of the others are
cut, which native code would wait in, and all start again on the workers that are left, RETRIES times at the
most.
"""

import functools
import importlib
import os
import queue
import socket
import time
import uuid
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from cleanrank.cluster.client import (
    POLL_SECONDS,
    REMEDY,
    RETRIES,
    Cluster,
    ConnectionLostError,
    cluster_in_use,
    distributed,
    is_loss,
    losses,
    words_of,
)
from cleanrank.cluster.tasks import Box, send, unpacked
from cleanrank.errors import LostWorkerError, error_text
from cleanrank.types import Progress

T = TypeVar("T")

CUT_OFF_SECONDS = 10.0  # workers that were cut off are restarted when they are still busy after that
# Sockets that keep a port of this process until the task that was promised it starts.
_kept_ports: dict[int, socket.socket] = {}


@dataclass(frozen=True)
class Network:
    """Where the workers that train together listen, and what this one has."""

    machines: tuple[tuple[str, int], ...]  # host and port of each, in the order of their parts
    place: int  # of this worker among them
    threads: int
    topic: str = ""  # where progress is told; empty: nobody listens

    def release_port(self) -> None:
        """Lets go of the port that was kept for this task."""
        with suppress(KeyError):
            _kept_ports.pop(self.machines[self.place][1]).close()

    def progress(self) -> Progress | None:
        """Tells the caller of (step, steps); one worker does for all."""
        if not self.topic or self.place:
            return None
        worker = distributed().get_worker()
        return lambda step, steps: worker.log_event(self.topic, [step, steps])


def together(
    task: Callable[..., T],
    parts: Callable[[int], Sequence[Callable[[], Any]]],
    shared: Sequence[Any],
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> list[T]:
    """[task(part, network, *shared)] for the parts of the work, one worker each, all at the same time.

    Args:
        task: what a worker does; it connects to the others by its Network, and is given what it can report
            progress to as ``network.progress()``.
        parts: gives what makes each of so many parts, or of fewer; a part is made when it is sent.
        shared: what all workers are given.
        n_jobs: threads of a task; those of the worker where it is 1, None or -1.
        progress: called with what the first worker reports.
    """
    cluster = cluster_in_use()
    assert cluster is not None
    for attempt in range(1 + RETRIES):
        try:
            return _attempt(cluster, task, parts, shared, n_jobs, progress)
        except ConnectionLostError as error:
            lost = str(error)  # without its traceback, which keeps what was sent
        if attempt < RETRIES:
            text = f"a worker of the Dask cluster was lost; training starts again on those left ({lost})"
            warnings.warn(text, stacklevel=2)
            time.sleep(POLL_SECONDS)
    rule = f"must keep its workers while they train together; {1 + RETRIES} times it did not"
    raise LostWorkerError(error_text("the Dask cluster", rule, remedy=f"{lost} {REMEDY}"))


def _attempt(
    cluster: Cluster,
    task: Callable[..., T],
    parts: Callable[[int], Sequence[Callable[[], Any]]],
    shared: Sequence[Any],
    n_jobs: int | None,
    progress: Progress | None,
) -> list[T]:
    client = cluster.client
    with losses():
        threads = cluster.workers()
    makers = parts(len(threads))
    workers = sorted(threads)[: len(makers)]
    topic = "" if progress is None else f"cleanrank-{uuid.uuid4().hex}"
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()
    futures: list[Any] = []
    machines: tuple[tuple[str, int], ...] = ()
    try:
        with losses():
            ports = client.run(_keep_port, workers=workers)
            machines = tuple(ports[worker] for worker in workers)
            sent, features = send(cluster, shared)
            own = [
                client.scatter(Box(make()), workers=[w], hash=False)
                for w, make in zip(workers, makers, strict=True)
            ]
        if progress is not None:
            client.subscribe_topic(topic, lambda event: told.put(event[1]))
        for place, (worker, part) in enumerate(zip(workers, own, strict=True)):
            most = threads[worker] if n_jobs in (None, -1, 1) else n_jobs
            call = functools.partial(_call_with_others, task, Network(machines, place, int(most or 1), topic))
            pinned = {"workers": [worker], "allow_other_workers": False, "pure": False}
            futures.append(client.submit(call, part, sent, features, **pinned))
        del own, part
        _wait_for_all(cluster, futures, workers, told, progress)
        with losses():
            return list(client.gather(futures))
    except BaseException:
        _abandon(cluster, futures, workers, [port for _, port in machines])
        raise
    finally:
        if progress is not None:
            client.unsubscribe_topic(topic)
        client.cancel(futures)


def _call_with_others(
    task: Callable[..., T], network: Network, part: Box, rest: Box, features: Sequence[Any]
) -> T:
    network.release_port()
    return task(part.value, network, *unpacked(rest.value, features))


def _wait_for_all(
    cluster: Cluster,
    futures: Sequence[Any],
    workers: Sequence[str],
    told: "queue.SimpleQueue[Any]",
    progress: Progress | None,
) -> None:
    """Waits until all have finished; raises when one fails or a worker is gone."""
    while True:
        with suppress(TimeoutError), losses(TimeoutError):
            distributed().wait(futures, timeout=POLL_SECONDS, return_when="FIRST_COMPLETED")
        while progress is not None and not told.empty():
            progress(*told.get())
        if any(future.status in ("error", "lost", "cancelled") for future in futures):
            raise _first_error(futures)
        if all(future.status == "finished" for future in futures):
            return
        with losses():
            gone = sorted(set(workers) - set(cluster.client.nthreads()))
        if gone:
            raise ConnectionLostError(f"{', '.join(gone)} is gone.")
        if any(future.status == "finished" for future in futures):
            time.sleep(POLL_SECONDS / 10)


def _first_error(futures: Sequence[Any]) -> Exception:
    """What went wrong first: an error of the work itself, else the loss of a worker."""
    time.sleep(POLL_SECONDS)  # the others notice what one of them ran into
    errors: list[Exception] = [future.exception() for future in futures if future.status == "error"]
    of_work = [error for error in errors if not is_loss(error)]
    if of_work:
        return of_work[0]
    return ConnectionLostError(words_of(errors[0]) if errors else "what a worker computed is lost.")


def _abandon(cluster: Cluster, futures: Sequence[Any], workers: Sequence[str], ports: Sequence[int]) -> None:
    """Ends the tasks of all workers: cuts their connections, and restarts those that are still busy."""
    client = cluster.client
    with suppress(Exception):
        until = time.monotonic() + CUT_OFF_SECONDS
        while True:
            alive = set(client.nthreads()) & set(workers)
            at_work = [(f, w) for f, w in zip(futures, workers, strict=False) if not f.done() and w in alive]
            if not at_work:
                return
            client.run(_cut_off, ports, workers=[w for _, w in at_work], on_error="ignore")
            if time.monotonic() > until:
                client.restart_workers([w for _, w in at_work], raise_for_error=False)
                return
            time.sleep(POLL_SECONDS)


def _keep_port(dask_worker: Any) -> tuple[str, int]:
    """A worker's host and a port of it that nobody else takes meanwhile."""
    kept = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("", 0))
    port = int(kept.getsockname()[1])
    _kept_ports[port] = kept
    return socket.gethostbyname(dask_worker.ip), port


def _cut_off(ports: Sequence[int]) -> None:
    """Makes reads and writes on the connections of these ports fail, wherever native code waits in one.

    A closed connection alone does not do: LightGBM takes the end of a stream for a short read and asks again.
    Where it listens it is left alone: it ends the process when that fails.
    """
    psutil: Any = importlib.import_module("psutil")
    process = psutil.Process()
    connections = getattr(process, "net_connections", None) or process.connections
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        for each in connections(kind="tcp"):
            ends = {each.laddr.port, each.raddr.port if each.raddr else 0}
            if each.fd < 0 or each.status == psutil.CONN_LISTEN or not ends & set(ports):
                continue
            with suppress(OSError), socket.socket(fileno=os.dup(each.fd)) as ours:
                ours.shutdown(socket.SHUT_RDWR)
            os.dup2(nothing, each.fd)
    finally:
        os.close(nothing)
    for port in ports:
        with suppress(KeyError):
            _kept_ports.pop(port).close()
