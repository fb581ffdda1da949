"""The Dask cluster in use: who takes ``client=`` puts it in use, by ``on_cluster``, for what is inside."""

import importlib
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import numpy as np

from cleanrank.errors import CleanrankError, LostWorkerError, error_text, invalid
from cleanrank.validation import require

RETRIES = 2
POLL_SECONDS = 0.5
NO_WORKER_SECONDS = 60.0  # a cluster without any worker is given up after that
CONNECT_SECONDS = 10
REMEDY = "Look at the memory and the logs of the workers; fewer threads per worker need less memory."


class ConnectionLostError(CleanrankError):
    """A worker lost the connection to another one with which it trains a model."""


class Cluster:
    """A client in use, and the features that its workers have already."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._placed: dict[Any, tuple[Any, Any]] = {}

    def place(self, X: Any) -> Any:
        """The future of an array that all workers have; it is sent once."""
        known = self._placed.get(identity(X))
        if known is None or known[1].status in ("lost", "cancelled"):
            known = X, self.client.scatter(X, broadcast=True, hash=False)
            self._placed[identity(X)] = known
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


def cluster_in_use() -> Cluster | None:
    """The cluster to which work is shared out; None where it stays here."""
    return _cluster.get()


def is_on_cluster() -> bool:
    """Whether work is shared out."""
    return _cluster.get() is not None


def checked_client(client: Any) -> Any:
    """Returns a client that is connected; else raises."""
    require("dask")
    remedy = "As in client=distributed.Client('tcp://scheduler:8786')."
    if not isinstance(client, distributed().Client):
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
        return distributed().Client(scheduler, set_as_default=False, timeout=CONNECT_SECONDS)
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


@contextmanager
def losses(*others: type[Exception]) -> Iterator[None]:
    """Errors of the cluster itself, but for some, as a loss."""
    try:
        yield
    except Exception as error:
        if isinstance(error, others) or not is_loss(error):
            raise
        raise ConnectionLostError(words_of(error)) from error


def is_loss(error: BaseException | None) -> bool:
    """Whether an error says that workers or data on them are lost, and nothing about the work."""
    dask = distributed()
    of_dask = (
        dask.KilledWorker,
        dask.client.FutureCancelledError,
        dask.client.FuturesCancelledError,
        dask.CancelledError,
        TimeoutError,
        dask.comm.CommClosedError,
    )
    return isinstance(error, (ConnectionLostError, ConnectionError, *of_dask))


def words_of(error: BaseException | None) -> str:
    """An error in one line."""
    text = next(iter(str(error).strip().splitlines()), "").rstrip(".:")
    return f"{type(error).__name__}: {text}." if not isinstance(error, ConnectionLostError) else f"{text}."


def distributed() -> Any:
    """Dask's library, loaded when it is needed."""
    return importlib.import_module("distributed")


def identity(X: Any) -> Any:
    """What features have in common that are the same memory; RankingData make views of theirs."""
    parts = [getattr(X, name) for name in ("data", "indices", "indptr")] if hasattr(X, "tocsr") else [X]
    if not all(isinstance(part, np.ndarray) for part in parts):
        return id(X)
    return tuple((part.__array_interface__["data"][0], part.shape, part.strides) for part in parts)
