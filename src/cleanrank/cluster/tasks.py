"""Independent tasks, on the workers of the cluster in use where there is one.

Their results have the bits that they have without it. A task of a worker that is lost is computed elsewhere,
by Dask; where what was sent to the workers is lost with them all, it is sent again, RETRIES times at the
most.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from cleanrank.cluster.client import (
    POLL_SECONDS,
    REMEDY,
    RETRIES,
    Cluster,
    ConnectionLostError,
    cluster_in_use,
    distributed,
    identity,
    is_loss,
    words_of,
)
from cleanrank.errors import LostWorkerError, error_text
from cleanrank.types import Progress, RankingData

T = TypeVar("T")


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
    todo, cluster = list(items), cluster_in_use()
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
            if not is_loss(error):
                raise
            lost = error
        if isinstance(lost, distributed().KilledWorker):
            break  # Dask has tried that task on several workers
    rest_words = f"{len(todo) - len(finished)} of {len(todo)} are not done"
    rule = f"must keep the workers that compute its tasks ({rest_words})"
    raise LostWorkerError(error_text("the Dask cluster", rule, words_of(lost), remedy=REMEDY)) from lost


def _computed(
    cluster: Cluster, task: Callable[..., T], shared: Sequence[Any], items: Mapping[int, Sequence[Any]]
) -> Iterator[tuple[int, T]]:
    """(place, result) of tasks as they finish; raises when what they need is lost."""
    dask, client = distributed(), cluster.client
    sent, features = send(cluster, shared)
    waiting = {
        client.submit(_unpacked_call, task, sent, features, item, pure=False): place
        for place, item in items.items()
    }
    try:
        while waiting:
            with suppress(TimeoutError):
                dask.wait(list(waiting), timeout=POLL_SECONDS, return_when="FIRST_COMPLETED")
            for future in [each for each in waiting if each.done()]:
                yield waiting[future], future.result()
                del waiting[future]
            cluster.workers()
            if any(each.status in ("lost", "cancelled") for each in (sent, *features)):
                raise ConnectionLostError("what was sent to the workers is lost with them")
    finally:
        client.cancel(list(waiting))


def send(cluster: Cluster, shared: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The futures of what all tasks are given: everything but features, and these."""
    features: list[Any] = []
    box = Box([packed(value, features) for value in shared])
    placed = [cluster.place(X) for X in features]
    return cluster.client.scatter(box, broadcast=True, hash=False), placed


@dataclass(frozen=True, eq=False)
class Box:
    """What is sent as one value, which Dask does not look into."""

    value: Any


@dataclass(frozen=True, eq=False)
class _Rows:
    """A RankingData whose features are sent by themselves."""

    place: int  # of its features
    values: tuple[Any, ...]


def packed(value: Any, features: list[Any]) -> Any:
    """A value with RankingData, in lists too, as _Rows; their features are added to ``features``."""
    if isinstance(value, list | tuple):
        return type(value)(packed(each, features) for each in value)
    if not isinstance(value, RankingData):
        return value
    places = [place for place, X in enumerate(features) if identity(X) == identity(value.X)]
    if not places:
        features.append(value.X)
    _, values = value.__reduce__()
    assert fields(value)[0].name == "X"
    return _Rows(places[0] if places else len(features) - 1, values[1:])


def unpacked(value: Any, features: Sequence[Any]) -> Any:
    """The inverse of ``_packed``."""
    if isinstance(value, list | tuple):
        return type(value)(unpacked(each, features) for each in value)
    return RankingData(features[value.place], *value.values) if isinstance(value, _Rows) else value


def _unpacked_call(task: Callable[..., T], rest: Box, features: Sequence[Any], item: Sequence[Any]) -> T:
    return task(*unpacked(rest.value, features), *item)
