"""The cells of a grid: which are expected, which ran, which failed, which are missing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cleanrank.errors import invalid
from cleanrank.types import RunRecord


@dataclass(frozen=True, order=True)
class Level:
    """A kind of noise and its rate; rate 0 is clean whatever the kind.

    >>> Level("uniform", 0.2).label, Level("uniform", 0.0).label
    ('uniform 0.2', 'uniform 0')
    """

    noise: str = "none"
    rate: float = 0.0

    @property
    def clean(self) -> bool:
        """Whether labels are left as they are."""
        return self.rate == 0.0

    @property
    def label(self) -> str:
        """The level in a word."""
        return "clean" if self.noise == "none" else f"{self.noise} {self.rate:g}"


@dataclass(frozen=True)
class Cell:
    """One cell of the grid: what it is, whether it ran, and its mean per measure.

    ``status`` is "done", "failed" or "missing"; ``means`` is empty unless it is done.
    """

    dataset: str
    level: Level
    method: str
    fold: str
    seed: str
    status: str
    means: Mapping[str, float] = field(default_factory=dict)
    n_queries: int = 0
    chosen: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    wall_seconds: float = 0.0


CellId = tuple[str, Level, str, str, str]  # data set, level, fold, method, seed


def identity(cell: Mapping[str, Any]) -> CellId:
    """Data set, level, fold, method and seed of a cell; no noise and no rate mean clean.

    >>> identity({"dataset": "d", "method": "m", "noise": "uniform", "rate": 0.1})
    ('d', Level(noise='uniform', rate=0.1), '', 'm', '')
    """
    for key in ("dataset", "method"):
        if key not in cell:
            raise invalid("cell", f"must have the key {key!r}", sorted(cell))
    fold, seed = ("" if cell.get(key) is None else str(cell[key]) for key in ("fold", "seed"))
    noise = str(cell.get("noise") or "none")
    level = Level(noise, 0.0 if noise == "none" else float(cell.get("rate") or 0.0))
    return str(cell["dataset"]), level, fold, str(cell["method"]), seed


def by_cell(records: Sequence[RunRecord]) -> dict[CellId, RunRecord]:
    """The records by cell; of several with one key the last counts, two keys for one cell are refused."""
    latest = {r.key: r for r in records}
    cells: dict[CellId, RunRecord] = {}
    for record in latest.values():
        name = identity(record.cell)
        if name in cells:
            dataset, level, fold, method, seed = name
            raise invalid(
                "records",
                "must tell cells apart by data set, fold, noise, rate, method and seed",
                f"two of method {method!r} on {dataset} fold {fold}, {level.label}, seed {seed}",
                remedy="Give the methods different labels, or pass the records of one recipe.",
            )
        cells[name] = record
    return cells


def all_cells(
    records: Mapping[CellId, RunRecord], expected: Iterable[Mapping[str, Any]] | None
) -> list[CellId]:
    """The expected cells, or the whole grid that the records span."""
    if expected is not None:
        return list(dict.fromkeys([*(identity(cell) for cell in expected), *records]))
    levels: dict[str, dict[Level, None]] = {}
    repeats: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
    for dataset, level, fold, method, seed in records:
        levels.setdefault(dataset, {})[level] = None
        repeats.setdefault((dataset, method), {})[(fold, seed)] = None
    return [
        (dataset, level, fold, method, seed)
        for (dataset, method), pairs in repeats.items()
        for level in levels[dataset]
        for fold, seed in pairs
    ]


def plainly_clean(
    cells: list[CellId], records: Mapping[CellId, RunRecord]
) -> tuple[list[CellId], dict[CellId, RunRecord]]:
    """Calls rate 0 of the only kind of noise clean, which it is; several kinds keep their own rate 0."""
    if len({c[1].noise for c in cells}) != 1:
        return cells, dict(records)

    def plain(cell: CellId) -> CellId:
        return (cell[0], Level() if cell[1].clean else cell[1], *cell[2:])

    return [plain(c) for c in cells], {plain(c): r for c, r in records.items()}


def fold_and_seed(cell: CellId) -> tuple[Any, ...]:
    """Sorts cells by fold, then seed: whole numbers by size and before words."""
    return tuple((0, int(v), "") if v.isdecimal() else (1, 0, v) for v in (cell[2], cell[4]))
