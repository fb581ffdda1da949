"""The driver: skips cells that are stored, hands the rest to an engine, stores each result as it comes."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from cleanrank.errors import invalid
from cleanrank.experiments.cells import Cell
from cleanrank.experiments.engines import CELL, ENGINES
from cleanrank.experiments.results import split
from cleanrank.experiments.store import Store
from cleanrank.validation import one_of


@dataclass(frozen=True)
class Tally:
    """How far a run is.

    Attributes:
        total: cells asked for.
        stored: cells that were there before, or that another run finished meanwhile.
        done: cells computed now.
        failed: cells that failed now.
        seconds: time since the start.
        latest: the cell that came last, in words.
    """

    total: int
    stored: int = 0
    done: int = 0
    failed: int = 0
    seconds: float = 0.0
    latest: str = ""

    @property
    def finished(self) -> int:
        """Cells that need nothing more in this run."""
        return self.stored + self.done + self.failed

    @property
    def left_seconds(self) -> float | None:
        """An estimate of the time left, from the pace so far; None before the first cell."""
        computed = self.done + self.failed
        return (self.total - self.finished) * self.seconds / computed if computed else None


Watch: TypeAlias = Callable[[Tally], None]


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    recipe: str,
    *,
    jobs: int | None = None,
    engine: str = "local",
    scheduler: str | None = None,
    watch: Watch | None = None,
    target: str = CELL,
) -> Tally:
    """Computes the cells that have no figures yet; cells that failed before are tried again.

    Interrupted or killed at any moment, it leaves whole cells only, and the next call goes on from there.

    Args:
        cells: what to compute.
        store: where results go.
        recipe: the name under which they are asked for.
        jobs: processes; one per core unless given.
        engine: a key of ENGINES.
        scheduler: address of a Dask cluster.
        watch: called at the start and after every cell.
        target: ``module:function`` that computes a cell.
    """
    compute = ENGINES[one_of("engine", engine, ENGINES)]
    processes = default_jobs() if jobs is None else jobs
    if processes < 1:
        raise invalid("jobs", "must be at least 1", jobs)
    tell = watch or (lambda _: None)
    by_key = {c.key: c for c in cells}
    store.ask(recipe, {c.key: c.inputs for c in cells})
    stored = store.done_keys() & set(by_key)
    pending = [c for c in by_key.values() if c.key not in stored]
    start = time.monotonic()
    done = failed = 0
    found_late: list[str] = []

    def tally(latest: str = "") -> Tally:
        there = len(stored) + len(found_late)
        return Tally(len(by_key), there, done, failed, time.monotonic() - start, latest)

    def wanted() -> Iterator[tuple[str, str]]:
        for cell in pending:
            # Another run may have stored it since this one began.
            if store.is_done(cell.key):
                found_late.append(cell.key)
            else:
                yield cell.key, cell.text

    tell(tally())
    results = compute(wanted(), jobs=min(processes, max(1, len(pending))), scheduler=scheduler, target=target)
    with closing(cast(Any, results)):
        for key, packed in results:
            cell = by_key[key]
            if not store.add(key, recipe, cell.inputs, packed):
                found_late.append(key)
            elif split(packed)[0]["status"] == "done":
                done += 1
            else:
                failed += 1
            tell(tally(str(cell)))
    return tally()


def default_jobs() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
