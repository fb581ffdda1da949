"""From run records to the numbers that tables and plots show; nothing is drawn here.

A cell is one (data set, fold, noise, rate, method, seed). One ``Row`` sums up the cells of a data set, a
noise level, a method and a measure:

* the values of a query are averaged over the seeds that ran its fold;
* the queries of all folds' test sets are pooled, each counting once, and ``mean`` is their mean (NaN
  queries, dropped by the measure's convention, do not count);
* ``low, high`` is a bootstrap interval over these queries and ``query_se`` the standard error it stands
  for: its length over 2z, z the normal quantile of the confidence (3.92 for 95 %);
* ``seed_sd`` is the standard deviation, over seeds that ran every fold, of that seed's mean over all queries;
* the test against the baseline is Fisher's randomisation over the same queries, two-sided, with Holm's
  correction over all comparisons of one measure.

A measure whose mean is not the plain mean of its per-query values (one weighted by pairs, say) keeps its
own: the average of the cells' means, weighted by the queries of each fold (a cell without a mean, such as
the precision of no findings, does not count); it gets no interval and no test. The same holds where a query
counts for one seed and not for another. Records without values per query count with their means.

Failed and missing cells are never numbers. A row that lacks cells is incomplete: it shows the mean of what
ran, says so, and is not tested.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np

from cleanrank.errors import invalid
from cleanrank.metrics.significance import fisher_test, holm, mean_intervals
from cleanrank.report.means import (
    count_queries,
    has_measure,
    mean_of,
    measures_of,
    most_queries,
    plain_mean,
    pooled_means,
)
from cleanrank.report.table import canonical, mark
from cleanrank.types import Array, FloatArray, RunRecord
from cleanrank.validation import one_of

BETTER, WORSE = "▲", "▼"
AT_ONCE = 64  # rows of one bootstrap: its sums take 10,000 x 2 x 64 floats


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


@dataclass(frozen=True, eq=False)
class Row:
    """The cells of one data set, noise level, method and measure, summed up.

    Numbers are None where there is nothing to show. ``own_mean`` says that the measure weighs queries in a
    way of its own. ``values`` holds one value per pooled test query, averaged over seeds; ``queries`` names
    them as (fold, query id).
    """

    dataset: str
    level: Level
    method: str
    measure: str
    done: int
    failed: int
    missing: int
    n_queries: int = 0
    mean: float | None = None
    own_mean: bool = False
    low: float | None = None
    high: float | None = None
    query_se: float | None = None
    seed_sd: float | None = None
    difference: float | None = None
    p: float | None = None
    p_holm: float | None = None
    values: FloatArray | None = field(default=None, repr=False)
    queries: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def state(self) -> str:
        """One of "complete", "incomplete", "failed" and "not run"."""
        if self.done:
            return "incomplete" if self.failed or self.missing else "complete"
        return "failed" if self.failed else "not run"

    @property
    def cells(self) -> int:
        """How many cells are expected."""
        return self.done + self.failed + self.missing

    @property
    def half_width(self) -> float | None:
        """Half the length of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def mark(self) -> str:
        """The significance mark: one triangle for p < .05 after Holm, two for p < .01; up is better."""
        if self.difference is None:
            return ""
        return mark(self.p_holm, BETTER if self.difference > 0 else WORSE)


@dataclass(frozen=True, eq=False)
class Summary:
    """Everything a report shows of a grid; names are in the order in which the records bring them."""

    rows: tuple[Row, ...]
    cells: tuple[Cell, ...]
    datasets: tuple[str, ...]
    levels: tuple[Level, ...]
    methods: tuple[str, ...]
    measures: tuple[str, ...]
    baseline: str | None
    confidence: float
    resamples: int
    permutations: int
    seed: int

    def find(self, dataset: str, level: Level, method: str, measure: str) -> Row | None:
        """The row of these four, if the grid has it."""
        return self._index.get((dataset, level, method, measure))

    @property
    def gaps(self) -> tuple[Cell, ...]:
        """The cells that failed or are missing."""
        return tuple(c for c in self.cells if c.status != "done")

    @cached_property
    def _index(self) -> dict[tuple[str, Level, str, str], Row]:
        return {(r.dataset, r.level, r.method, r.measure): r for r in self.rows}


def identity(cell: Mapping[str, Any]) -> CellId:
    """Data set, level, fold, method and seed of a cell; no noise and no rate mean clean."""
    for key in ("dataset", "method"):
        if key not in cell:
            raise invalid("cell", f"must have the key {key!r}", sorted(cell))
    fold, seed = ("" if cell.get(key) is None else str(cell[key]) for key in ("fold", "seed"))
    noise = str(cell.get("noise") or "none")
    level = Level(noise, 0.0 if noise == "none" else float(cell.get("rate") or 0.0))
    return str(cell["dataset"]), level, fold, str(cell["method"]), seed


def by_cell(records: Sequence[RunRecord]) -> dict[CellId, RunRecord]:
    """The records by cell; of several with one key the last counts, two keys for one cell are refused."""
    cells: dict[CellId, RunRecord] = {}
    for record in {r.key: r for r in records}.values():
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


def summarise(
    records: Sequence[RunRecord],
    *,
    measures: Sequence[str] | None = None,
    baseline: str | None = None,
    expected: Iterable[Mapping[str, Any]] | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
    permutations: int = 100_000,
    seed: int = 0,
) -> Summary:
    """Sums up run records.

    Args:
        records: what ran; of several with one key the last counts.
        measures: the measures to show, as their text; all that occur unless given.
        baseline: the method the others are tested against; where ``expected`` leaves it out, nothing is
            tested.
        expected: the cells of the plan; a cell without a record is missing. Unless given, every
            method of a data set is expected at each of its noise levels with the folds and seeds that the
            method has anywhere.
        confidence: of the bootstrap interval.
        resamples: of the bootstrap.
        permutations: of Fisher's test.
        seed: of the bootstrap and the test.
    """
    if not records:
        raise invalid("records", "must hold at least one run", 0, remedy="Run the recipe first.")
    expected = None if expected is None else list(expected)
    ran = by_cell(records)
    cells, ran = plainly_clean(all_cells(ran, expected), ran)
    names = tuple(dict.fromkeys(m for r in ran.values() if r.status == "done" for m in measures_of(r)))
    if measures:
        chosen = tuple(canonical(name) for name in measures)
        names = tuple(one_of("measure", name, names) for name in chosen) if names else chosen
    methods = tuple(dict.fromkeys(c[3] for c in cells))
    if baseline not in methods and expected is not None:
        baseline = None  # a part of a plan need not hold it
    if baseline is not None:
        one_of("baseline", baseline, methods)
    groups: dict[tuple[str, Level, str], list[CellId]] = {}
    for each in cells:
        groups.setdefault((each[0], each[1], each[3]), []).append(each)
    levels = tuple(sorted({c[1] for c in cells}, key=lambda v: (not v.clean, v)))
    datasets = tuple(dict.fromkeys(c[0] for c in cells))
    # the order of the pages, whatever order the cells ran in
    order = sorted(groups, key=lambda g: (datasets.index(g[0]), levels.index(g[1]), methods.index(g[2])))
    rows = [_row(g, m, groups[g], ran, confidence) for m in names for g in order]
    rows = _with_intervals(rows, confidence=confidence, resamples=resamples, seed=seed)
    if baseline is not None:
        rows = _tested(rows, baseline, permutations=permutations, seed=seed)
    listed = tuple(_cell(i, ran.get(i), names) for g in order for i in sorted(groups[g], key=fold_and_seed))
    settings = (confidence, resamples, permutations, seed)
    return Summary(tuple(rows), listed, datasets, levels, methods, names, baseline, *settings)


def _cell(name: CellId, record: RunRecord | None, measures: Sequence[str]) -> Cell:
    dataset, level, fold, method, seed = name
    cell = Cell(dataset, level, method, fold, seed, "missing")
    if record is None:
        return cell
    cell = replace(cell, wall_seconds=record.wall_seconds)
    if record.status != "done":
        return replace(cell, status="failed", error=record.error)
    means = {m: mean_of(record, m) for m in measures if has_measure(record, m)}
    n_queries = most_queries(record)
    return replace(cell, status="done", means=means, n_queries=n_queries, chosen=record.chosen)


def _row(
    group: tuple[str, Level, str],
    measure: str,
    cells: Sequence[CellId],
    records: Mapping[CellId, RunRecord],
    confidence: float,
) -> Row:
    ran = {c: records[c] for c in cells if c in records}
    done = {c: r for c, r in ran.items() if r.status == "done" and has_measure(r, measure)}
    failed = sum(r.status != "done" for r in ran.values())
    row = Row(*group, measure, done=len(done), failed=failed, missing=len(cells) - len(done) - failed)
    if not done:
        return row
    row = replace(row, seed_sd=_seed_sd(cells, done, measure))
    if any(measure not in r.values for r in done.values()):
        folds = {fold: [r for _, r in repeats] for fold, repeats in _by_fold(done).items()}
        return replace(row, **pooled_means(folds, measure, confidence))
    values, queries = _pooled(done, measure)
    row = replace(row, values=values, queries=queries)
    if _weighs_its_own_way(done, measure):
        means = [(mean_of(r, measure), len(r.values[measure])) for r in done.values()]
        means = [(mean, size) for mean, size in means if not math.isnan(mean)]
        own = np.average([m for m, _ in means], weights=[n for _, n in means]) if means else None
        return replace(row, mean=None if own is None else float(own), n_queries=len(values), own_mean=True)
    counted = values[~np.isnan(values)]
    return replace(row, n_queries=len(counted), mean=plain_mean(counted) if len(counted) else None)


def _weighs_its_own_way(done: Mapping[CellId, RunRecord], measure: str) -> bool:
    """Whether a cell's mean is not the plain one, or a query counts for one seed and not for another."""
    first: dict[str, Array] = {}
    for name, record in done.items():
        values = record.values[measure]
        plain, own, gaps = plain_mean(values), mean_of(record, measure), np.isnan(values)
        alike = math.isclose(plain, own, rel_tol=1e-9, abs_tol=1e-12) or (plain != plain and own != own)
        if not alike or not np.array_equal(first.setdefault(name[2], gaps), gaps):
            return True
    return False


def _with_intervals(rows: Sequence[Row], *, confidence: float, resamples: int, seed: int) -> list[Row]:
    """Adds the bootstrap intervals; rows with equally many queries share their resamples, and the work."""
    by_size: dict[int, list[int]] = {}
    for i, row in enumerate(rows):
        if row.mean is not None and row.values is not None and not row.own_mean and row.n_queries > 1:
            by_size.setdefault(row.n_queries, []).append(i)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    made = list(rows)
    for places in by_size.values():
        for part in (places[k : k + AT_ONCE] for k in range(0, len(places), AT_ONCE)):
            values = np.stack([v[~np.isnan(v)] for i in part if (v := rows[i].values) is not None])
            lows, highs = mean_intervals(values, np.ones_like(values), confidence, resamples, seed)
            for i, low, high in zip(part, lows, highs, strict=True):
                se = float(high - low) / (2 * z)
                made[i] = replace(rows[i], low=float(low), high=float(high), query_se=se)
    return made


def _pooled(done: Mapping[CellId, RunRecord], measure: str) -> tuple[FloatArray, tuple[tuple[str, str], ...]]:
    """One value per query of all folds, averaged over the seeds that ran the fold, and the queries' names."""
    parts, queries = [], []
    for fold, repeats in _by_fold(done).items():
        names = [
            [str(q) for q in (range(len(r.values[measure])) if r.query_ids is None else r.query_ids)]
            for _, r in repeats
        ]
        for (cell, _), other in zip(repeats, names, strict=True):
            if other != names[0]:
                raise invalid(
                    "records",
                    "of one fold must have the same test queries for every seed",
                    f"{len(names[0])} and {len(other)} queries that differ",
                    at=f"{cell[0]} fold {fold}, method {cell[3]!r}, seed {cell[4]}",
                )
        parts.append(np.mean([record.values[measure] for _, record in repeats], axis=0))
        queries += [(fold, q) for q in names[0]]
    return np.concatenate(parts).astype(np.float64), tuple(queries)


def _by_fold(done: Mapping[CellId, RunRecord]) -> dict[str, list[tuple[CellId, RunRecord]]]:
    by_fold: dict[str, list[tuple[CellId, RunRecord]]] = {}
    for name, record in sorted(done.items(), key=lambda item: fold_and_seed(item[0])):
        by_fold.setdefault(name[2], []).append((name, record))
    return by_fold


def _seed_sd(cells: Sequence[CellId], done: Mapping[CellId, RunRecord], measure: str) -> float | None:
    """Standard deviation over the seeds that ran every fold."""
    by_seed: dict[str, list[CellId]] = {}
    for cell in cells:
        by_seed.setdefault(cell[4], []).append(cell)
    means: list[float] = []
    for repeats in by_seed.values():
        if all(c in done for c in repeats):
            sizes = [count_queries(done[c], measure) for c in repeats]
            by_fold = [mean_of(done[c], measure) if n else 0.0 for c, n in zip(repeats, sizes, strict=True)]
            if sum(sizes):
                means.append(float(np.average(by_fold, weights=sizes)))
    means = [m for m in means if not math.isnan(m)]
    return float(np.std(means, ddof=1)) if len(means) > 1 else None


def _tested(rows: Sequence[Row], baseline: str, *, permutations: int, seed: int) -> list[Row]:
    """Adds differences and p-values; Holm's family is all comparisons of one measure."""
    base = {(r.dataset, r.level, r.measure): r for r in rows if r.method == baseline}
    tested: list[Row] = []
    families: dict[str, dict[int, float]] = {}
    for i, row in enumerate(rows):
        other = base.get((row.dataset, row.level, row.measure))
        if row.method != baseline and other is not None:
            row = _against(row, other, permutations=permutations, seed=seed)
        tested.append(row)
        if row.p is not None:
            families.setdefault(row.measure, {})[i] = row.p
    for family in families.values():
        for i, p in zip(family, holm(list(family.values())), strict=True):
            tested[i] = replace(tested[i], p_holm=float(p))
    return tested


def _against(row: Row, base: Row, *, permutations: int, seed: int) -> Row:
    if row.state != "complete" or base.state != "complete" or row.mean is None or base.mean is None:
        return row
    row = replace(row, difference=row.mean - base.mean)
    if row.low is None or base.low is None or row.values is None or base.values is None:
        return row
    if row.queries != base.queries:
        raise invalid(
            "records",
            "must have the same test queries for a method and the baseline",
            f"{len(row.queries)} and {len(base.queries)} queries that differ",
            at=f"{row.dataset}, {row.level.label}, {row.method!r} against {base.method!r}",
        )
    both = ~(np.isnan(row.values) | np.isnan(base.values))
    p = fisher_test(row.values[both], base.values[both], permutations=permutations, seed=seed, n_jobs=1)
    return replace(row, p=float(p))
