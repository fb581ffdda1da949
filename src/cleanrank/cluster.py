"""Work on a Dask cluster: models that are independent side by side, and one model by all workers together.

Who takes ``client=`` puts the cluster in use for what is inside (``on_cluster``), and who has work to share
out asks for it: ``each`` computes independent tasks, one per thread of the cluster, with the bits that they
have without one; ``together`` runs one task on every worker at the same time, which talk to each other over
sockets of their own. A worker that is lost does not end the work: Dask computes its tasks elsewhere, and what
workers do together starts again on those that are left, RETRIES times at the most.
"""

import functools
import importlib
import os
import queue
import socket
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from cleanrank.errors import CleanrankError, LostWorkerError, error_text, invalid
from cleanrank.types import Progress, RankingData
from cleanrank.validation import require

T = TypeVar("T")

RETRIES = 2
POLL_SECONDS = 0.5
NO_WORKER_SECONDS = 60.0  # a cluster without any worker is given up after that
CUT_OFF_SECONDS = 10.0  # workers that were cut off are restarted when they are still busy after that
CONNECT_SECONDS = 10
REMEDY = "Look at the memory and the logs of the workers; fewer threads per worker need less memory."
# Sockets that keep a port of this process until the task that was promised it starts.
_kept_ports: dict[int, socket.socket] = {}


class ConnectionLostError(CleanrankError):
    """A worker lost the connection to another one with which it trains a model."""


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
        worker = _distributed().get_worker()
        return lambda step, steps: worker.log_event(self.topic, [step, steps])


class Cluster:
    """A client in use, and the features that its workers have already."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._placed: dict[Any, tuple[Any, Any]] = {}

    def place(self, X: Any) -> Any:
        """The future of an array that all workers have; it is sent once."""
        known = self._placed.get(_identity(X))
        if known is None or known[1].status in ("lost", "cancelled"):
            known = X, self.client.scatter(X, broadcast=True, hash=False)
            self._placed[_identity(X)] = known
        return known[1]

    def let_go(self) -> None:
        """Lets the workers forget the features."""
        with suppress(Exception):
            self.client.cancel([future for _, future in self._placed.values()])
        self._placed.clear()

    def workers(self) -> dict[str, int]:
        """Address -> threads of the workers there are; waits for the first one."""
        until = time.monotonic() + NO_WORKER_SECONDS
        while True:
            if self.client.status not in ("running", "connecting"):
                rule, status = "must stay connected", f"status {self.client.status!r}"
                remedy = "Look whether its scheduler is running."
                raise LostWorkerError(error_text("the Dask cluster", rule, status, remedy=remedy))
            if found := dict(self.client.nthreads()):
                return found
            if time.monotonic() > until:
                rule = "must have a worker"
                raise LostWorkerError(error_text("the Dask cluster", rule, "none", remedy=REMEDY))
            time.sleep(POLL_SECONDS)


_cluster: ContextVar[Cluster | None] = ContextVar("cluster", default=None)


@contextmanager
def on_cluster(client: Any) -> Iterator[None]:
    """Work inside is shared out to the workers of a ``distributed.Client``; of None it stays here."""
    if client is None:
        yield
        return
    cluster = Cluster(checked_client(client))
    token = _cluster.set(cluster)
    try:
        with client.as_current():
            yield
    finally:
        _cluster.reset(token)
        cluster.let_go()


def is_on_cluster() -> bool:
    """Whether work is shared out."""
    return _cluster.get() is not None


def checked_client(client: Any) -> Any:
    """Returns a client that is connected; else raises."""
    require("dask")
    remedy = "As in client=distributed.Client('tcp://scheduler:8786')."
    if not isinstance(client, _distributed().Client):
        raise invalid("client", "must be a distributed.Client", type(client).__name__, remedy=remedy)
    if client.asynchronous:
        raise invalid("client", "must not be asynchronous", repr(client), remedy=remedy)
    if client.status != "running":
        raise invalid("client", "must be connected to a cluster", f"status {client.status!r}", remedy=remedy)
    return client


def connected(scheduler: str) -> Any:
    """A client of the cluster at an address."""
    require("dask")
    try:
        return _distributed().Client(scheduler, set_as_default=False, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        rule = "must be the address of a running Dask cluster"
        raise invalid("scheduler", rule, repr(scheduler), remedy=str(error)) from error


@contextmanager
def at_scheduler(scheduler: str | None) -> Iterator[Any]:
    """A client of the cluster at an address, closed at the end; None without one."""
    if scheduler is None:
        yield None
        return
    with connected(scheduler) as client:
        yield client


# Independent tasks


def each(
    task: Callable[..., T],
    shared: Sequence[Any],
    items: Iterable[Sequence[Any]],
    progress: Progress | None = None,
) -> Iterator[T]:
    """task(*shared, *item) for each item in turn, on the workers of the cluster in use where there is one.

    Args:
        task: a function whose result follows from its arguments.
        shared: what all tasks are given; features (X) among it are sent once to every worker.
        items: what each of them is given besides.
        progress: called with (tasks done, tasks).

    >>> list(each(pow, [2], [[1], [2], [3]]))
    [2, 4, 8]
    """
    todo, cluster = list(items), _cluster.get()
    if cluster is None:
        for done, item in enumerate(todo, start=1):
            yield task(*shared, *item)
            if progress is not None:
                progress(done, len(todo))
        return
    results: dict[int, T] = {}  # those whose turn has not come
    finished: set[int] = set()
    lost: BaseException | None = None
    turn = 0
    for _ in range(1 + RETRIES):
        try:
            rest = {place: item for place, item in enumerate(todo) if place not in finished}
            for place, result in _computed(cluster, task, shared, rest):
                results[place] = result
                finished.add(place)
                if progress is not None:
                    progress(len(finished), len(todo))
                while turn in results:
                    yield results.pop(turn)
                    turn += 1
            return
        except Exception as error:
            if not _is_loss(error):
                raise
            lost = error
        if isinstance(lost, _distributed().KilledWorker):
            break  # Dask has tried that task on several workers
    rest_words = f"{len(todo) - len(finished)} of {len(todo)} are not done"
    rule = f"must keep the workers that compute its tasks ({rest_words})"
    raise LostWorkerError(error_text("the Dask cluster", rule, _words(lost), remedy=REMEDY)) from lost


def _computed(
    cluster: Cluster, task: Callable[..., T], shared: Sequence[Any], items: Mapping[int, Sequence[Any]]
) -> Iterator[tuple[int, T]]:
    """(place, result) of tasks as they finish; raises when what they need is lost."""
    distributed, client = _distributed(), cluster.client
    sent, features = _sent(cluster, shared)
    waiting = {
        client.submit(_unpacked_call, task, sent, features, item, pure=False): place
        for place, item in items.items()
    }
    try:
        while waiting:
            with suppress(TimeoutError):
                distributed.wait(list(waiting), timeout=POLL_SECONDS, return_when="FIRST_COMPLETED")
            for future in [each for each in waiting if each.done()]:
                yield waiting[future], future.result()
                del waiting[future]
            cluster.workers()
            if any(each.status in ("lost", "cancelled") for each in (sent, *features)):
                raise ConnectionLostError("what was sent to the workers is lost with them")
    finally:
        client.cancel(list(waiting))


def _sent(cluster: Cluster, shared: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The futures of what all tasks are given: everything but features, and these."""
    features: list[Any] = []
    packed = _Box([_packed(value, features) for value in shared])
    placed = [cluster.place(X) for X in features]
    return cluster.client.scatter(packed, broadcast=True, hash=False), placed


@dataclass(frozen=True, eq=False)
class _Box:
    """What is sent as one value, which Dask does not look into."""

    value: Any


@dataclass(frozen=True, eq=False)
class _Rows:
    """A RankingData whose features are sent by themselves."""

    place: int  # of its features
    values: tuple[Any, ...]


def _packed(value: Any, features: list[Any]) -> Any:
    """A value with RankingData, in lists too, as _Rows; their features are added to ``features``."""
    if isinstance(value, list | tuple):
        return type(value)(_packed(each, features) for each in value)
    if not isinstance(value, RankingData):
        return value
    places = [place for place, X in enumerate(features) if _identity(X) == _identity(value.X)]
    if not places:
        features.append(value.X)
    _, values = value.__reduce__()
    assert fields(value)[0].name == "X"
    return _Rows(places[0] if places else len(features) - 1, values[1:])


def _identity(X: Any) -> Any:
    """What features have in common that are the same memory; RankingData make views of theirs."""
    parts = [getattr(X, name) for name in ("data", "indices", "indptr")] if hasattr(X, "tocsr") else [X]
    if not all(isinstance(part, np.ndarray) for part in parts):
        return id(X)
    return tuple((part.__array_interface__["data"][0], part.shape, part.strides) for part in parts)


def _unpacked(value: Any, features: Sequence[Any]) -> Any:
    """The inverse of ``_packed``."""
    if isinstance(value, list | tuple):
        return type(value)(_unpacked(each, features) for each in value)
    return RankingData(features[value.place], *value.values) if isinstance(value, _Rows) else value


def _unpacked_call(task: Callable[..., T], rest: _Box, features: Sequence[Any], item: Sequence[Any]) -> T:
    return task(*_unpacked(rest.value, features), *item)


# One task on all workers at once


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
    cluster = _cluster.get()
    assert cluster is not None
    for attempt in range(1 + RETRIES):
        try:
            return _attempt(cluster, task, parts, shared, n_jobs, progress)
        except ConnectionLostError as error:
            lost = error
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
    with _losses():
        threads = cluster.workers()
    makers = parts(len(threads))
    workers = sorted(threads)[: len(makers)]
    topic = "" if progress is None else f"cleanrank-{uuid.uuid4().hex}"
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()
    futures: list[Any] = []
    machines: tuple[tuple[str, int], ...] = ()
    try:
        with _losses():
            ports = client.run(_keep_port, workers=workers)
            machines = tuple(ports[worker] for worker in workers)
            sent, features = _sent(cluster, shared)
            own = [
                client.scatter(_Box(make()), workers=[w], hash=False)
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
        with _losses():
            return list(client.gather(futures))
    except BaseException:
        _abandon(cluster, futures, workers, [port for _, port in machines])
        raise
    finally:
        if progress is not None:
            client.unsubscribe_topic(topic)
        client.cancel(futures)


def _call_with_others(
    task: Callable[..., T], network: Network, part: _Box, rest: _Box, features: Sequence[Any]
) -> T:
    network.release_port()
    return task(part.value, network, *_unpacked(rest.value, features))


def _wait_for_all(
    cluster: Cluster,
    futures: Sequence[Any],
    workers: Sequence[str],
    told: "queue.SimpleQueue[Any]",
    progress: Progress | None,
) -> None:
    """Waits until all have finished; raises when one fails or a worker is gone."""
    while True:
        with suppress(TimeoutError), _losses(TimeoutError):
            _distributed().wait(futures, timeout=POLL_SECONDS, return_when="FIRST_COMPLETED")
        while progress is not None and not told.empty():
            progress(*told.get())
        if any(future.status in ("error", "lost", "cancelled") for future in futures):
            raise _first_error(futures)
        if all(future.status == "finished" for future in futures):
            return
        with _losses():
            gone = sorted(set(workers) - set(cluster.client.nthreads()))
        if gone:
            raise ConnectionLostError(f"{', '.join(gone)} is gone.")
        if any(future.status == "finished" for future in futures):
            time.sleep(POLL_SECONDS / 10)


def _first_error(futures: Sequence[Any]) -> Exception:
    """What went wrong first: an error of the work itself, else the loss of a worker."""
    time.sleep(POLL_SECONDS)  # the others notice what one of them ran into
    errors: list[Exception] = [future.exception() for future in futures if future.status == "error"]
    of_work = [error for error in errors if not _is_loss(error)]
    if of_work:
        return of_work[0]
    return ConnectionLostError(_words(errors[0]) if errors else "what a worker computed is lost.")


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


@contextmanager
def _losses(*others: type[Exception]) -> Iterator[None]:
    """Errors of the cluster itself, but for some, as a loss."""
    try:
        yield
    except Exception as error:
        if isinstance(error, others) or not _is_loss(error):
            raise
        raise ConnectionLostError(_words(error)) from error


def _is_loss(error: BaseException | None) -> bool:
    """Whether an error says that workers or data on them are lost, and nothing about the work."""
    distributed = _distributed()
    of_dask = (
        distributed.KilledWorker,
        distributed.client.FutureCancelledError,
        distributed.client.FuturesCancelledError,
        distributed.CancelledError,
        TimeoutError,
        distributed.comm.CommClosedError,
    )
    return isinstance(error, (ConnectionLostError, ConnectionError, *of_dask))


def _words(error: BaseException | None) -> str:
    text = next(iter(str(error).strip().splitlines()), "").rstrip(".:")
    return f"{type(error).__name__}: {text}." if not isinstance(error, ConnectionLostError) else f"{text}."


def _distributed() -> Any:
    return importlib.import_module("distributed")
