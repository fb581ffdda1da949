"""Evaluate one system, compare several: values per query, means, intervals, tests.

Scores must be finite, one per row, in the order of the rows of the data. Where the data carry real-valued
gains, dcg and ndcg use them; every other measure reads the grades.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import CleanrankError, invalid
from cleanrank.jit import has_numba, threads
from cleanrank.metrics import _reference, significance
from cleanrank.metrics._encoding import check_grades, make_plan
from cleanrank.metrics.measure import Measure, MeasureLike, as_measures, describe_parts
from cleanrank.types import Array, FloatArray, IntArray, RankingData
from cleanrank.validation import one_of


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Mapping[str, FloatArray]):
    """Values of measures per query; a mapping from the text of a measure to an array of Q values.

    NaN marks a query that the measure leaves out. Any text that means an evaluated measure is a key.

    Attributes:
        measures: what was measured, in order.
        by_query: (M, Q).
        weights: (M, Q), what a query weighs in the mean: 1, or its number of pairs where pairs are pooled.
        query_ids: the queries, in order.
    """

    measures: tuple[Measure, ...]
    by_query: FloatArray
    weights: FloatArray
    query_ids: Array

    def __getitem__(self, measure: MeasureLike) -> FloatArray:
        row: FloatArray = self.by_query[self.index(measure)]
        return row

    def __iter__(self) -> Iterator[str]:
        return (str(m) for m in self.measures)

    def __len__(self) -> int:
        return len(self.measures)

    def __contains__(self, measure: object) -> bool:
        try:
            return as_measures(measure)[0] in self.measures  # type: ignore[arg-type]
        except CleanrankError:
            return False

    def get(self, measure: MeasureLike, default: Any = None) -> Any:
        """The values of a measure, or ``default`` where it was not evaluated."""
        return self[measure] if measure in self else default  # noqa: SIM401 (it would call itself)

    def index(self, measure: MeasureLike) -> int:
        """The line of a measure in ``by_query``."""
        wanted = as_measures(measure)[0]
        if wanted not in self.measures:
            one_of("evaluated measure", str(wanted), list(self))
        return self.measures.index(wanted)

    @property
    def means(self) -> dict[str, float]:
        """The mean over queries of each measure, in its own weighting."""
        found = weighted_means(self.by_query, self.weights)
        return {str(m): float(v) for m, v in zip(self.measures, found, strict=True)}

    def intervals(
        self, level: float = 0.95, seed: int = 0, resamples: int = 10_000
    ) -> dict[str, tuple[float, float]]:
        """Bootstrap intervals of the means over queries."""
        low, high = significance.mean_intervals(self.by_query, self.weights, level, resamples, seed)
        return {str(m): (float(a), float(b)) for m, a, b in zip(self.measures, low, high, strict=True)}

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row per query and a column per measure."""
        import pandas as pd

        columns = {str(m): row for m, row in zip(self.measures, self.by_query, strict=True)}
        return pd.DataFrame(columns, index=pd.Index(self.query_ids, name="query_id"))

    def __repr__(self) -> str:
        rows = [("measure", "mean", "queries", "convention")]
        for m, mean, values in zip(self.measures, self.means.values(), self.by_query, strict=True):
            used = int((~np.isnan(values)).sum())
            rows.append((str(m), f"{mean:.4f}", f"{used:,}", describe_parts(m)))
        return aligned(rows)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Several systems on the same queries, each against the baseline; renders nothing.

    Arrays have a line per system and a column per measure; the line of the baseline holds NaN where a
    comparison with itself would stand.

    Attributes:
        systems: names, in order.
        baseline: the name of the one compared with.
        evaluations: values per query of each system.
        means: (S, M).
        differences: (S, M), the mean of the system minus that of the baseline.
        low: (S, M), lower end of the bootstrap interval of the difference.
        high: (S, M), upper end.
        p_values: (S, M).
        corrected: (S, M), corrected over the systems and measures compared; None without correction.
        wins: (S, M), queries on which the system is better than the baseline.
        ties: (S, M), on which it is equal.
        losses: (S, M), on which it is worse.
        settings: test, alternative, permutations, level, seed, correction.
    """

    systems: tuple[str, ...]
    baseline: str
    evaluations: Mapping[str, Evaluation]
    means: FloatArray
    differences: FloatArray
    low: FloatArray
    high: FloatArray
    p_values: FloatArray
    corrected: FloatArray | None
    wins: IntArray
    ties: IntArray
    losses: IntArray
    settings: Mapping[str, Any]

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What was measured, in order."""
        return self.evaluations[self.baseline].measures

    def rows(self) -> list[dict[str, Any]]:
        """One plain record per system and measure: what tables and files show."""
        found = []
        for s, system in enumerate(self.systems):
            for m, measure in enumerate(self.measures):
                row: dict[str, Any] = {
                    "system": system,
                    "measure": str(measure),
                    "mean": float(self.means[s, m]),
                    "baseline": system == self.baseline,
                }
                if system != self.baseline:
                    row |= {
                        "difference": float(self.differences[s, m]),
                        "low": float(self.low[s, m]),
                        "high": float(self.high[s, m]),
                        "p": float(self.p_values[s, m]),
                        "p_corrected": None if self.corrected is None else float(self.corrected[s, m]),
                        "wins": int(self.wins[s, m]),
                        "ties": int(self.ties[s, m]),
                        "losses": int(self.losses[s, m]),
                    }
                found.append(row)
        return found

    def __repr__(self) -> str:
        table = [("system", "measure", "mean", "difference", "interval", "p", "p corrected", "w/t/l")]
        for r in self.rows():
            if r["baseline"]:
                table.append((r["system"], r["measure"], f"{r['mean']:.4f}", "baseline", "", "", "", ""))
                continue
            corrected = "" if r["p_corrected"] is None else f"{r['p_corrected']:.4g}"
            table.append(
                (r["system"], r["measure"], f"{r['mean']:.4f}", f"{r['difference']:+.4f}",
                 f"[{r['low']:+.4f}, {r['high']:+.4f}]", f"{r['p']:.4g}", corrected,
                 f"{r['wins']}/{r['ties']}/{r['losses']}")
            )  # fmt: skip
        return aligned(table)


def evaluate(
    scores: npt.ArrayLike,
    data: RankingData,
    measures: "MeasureLike | Iterable[MeasureLike]" = "ndcg@10",
    *,
    n_jobs: int | None = None,
) -> Evaluation:
    """Measures the ranking that ``scores`` give on judged data.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[1.0]] * 4, [1, 0, 0, 2], qid=[1, 1, 2, 2])
    >>> evaluate([0.1, 0.2, 0.3, 0.4], data, ["ndcg@10", "mrr"]).means
    {'ndcg@10': 0.8154648767857288, 'mrr': 0.75}
    """
    wanted = as_measures(measures)
    values, weights = query_values(wanted, data.y, scores, data.indptr, data.gains, n_jobs=n_jobs, data=data)
    return Evaluation(wanted, values, weights, data.query_ids)


def evaluate_mean(
    scores: npt.ArrayLike, data: RankingData, measure: MeasureLike, *, n_jobs: int | None = None
) -> float:
    """The mean over queries of one measure, in its own weighting: what models are chosen by.

    >>> import cleanrank as cr
    >>> evaluate_mean([0.1, 0.2], cr.from_arrays([[1.0]] * 2, [1, 0], qid=[1, 1]), "mrr")
    0.5
    """
    (mean,) = evaluate(scores, data, [measure], n_jobs=n_jobs).means.values()
    return mean


def evaluate_arrays(
    y: npt.ArrayLike,
    scores: npt.ArrayLike,
    indptr: npt.ArrayLike,
    measures: "MeasureLike | Iterable[MeasureLike]" = "ndcg@10",
    gains: npt.ArrayLike | None = None,
    *,
    n_jobs: int | None = None,
) -> Evaluation:
    """``evaluate`` for plain arrays: grades and scores per row, Q + 1 row offsets of the queries.

    >>> evaluate_arrays([0, 1], [2.0, 1.0], [0, 2], "map")["map"].tolist()
    [0.5]
    """
    grades, offsets = np.asarray(y), np.asarray(indptr)
    if grades.ndim != 1 or offsets.ndim != 1 or not len(offsets):
        shapes = f"shapes {grades.shape} and {offsets.shape}"
        raise invalid("y and indptr", "must be lists of grades and of row offsets", shapes)
    data = RankingData(
        X=np.zeros((len(grades), 0), dtype=np.float32),
        y=grades,
        indptr=offsets,
        query_ids=np.arange(len(offsets) - 1),
        row_ids=np.arange(len(grades)),
        gains=None if gains is None else np.asarray(gains),
    )
    return evaluate(scores, data, measures, n_jobs=n_jobs)


def query_values(
    measures: tuple[Measure, ...],
    y: Array,
    scores: npt.ArrayLike,
    indptr: IntArray,
    gains: Array | None = None,
    *,
    n_jobs: int | None = None,
    data: RankingData | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Values and weights (M, Q) of checked grades; compiled where numba is installed."""
    found = checked_scores(scores, len(y), data)
    check_grades(measures, y, gains)
    if not has_numba():
        return _reference.query_measures(measures, y, found, indptr, gains)
    from cleanrank.metrics import _kernels

    plan = make_plan(measures, y, indptr)
    values = np.empty((len(measures), len(indptr) - 1))
    weights = np.empty_like(values)
    given = np.zeros(0) if gains is None else gains
    with threads(n_jobs) if n_jobs is not None else nullcontext():
        _kernels.query_measures(
            plan.rows, found, plan.code, indptr, plan.bounds, given, plan.gain_of, plan.discounts, plan.top,
            values, weights,
        )  # fmt: skip
    return values, weights


def checked_scores(scores: npt.ArrayLike, n: int, data: RankingData | None = None) -> Array:
    """Finite scores as float32 or float64, one per row."""
    found = np.asarray(scores)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.shape != (n,):
        raise invalid("scores", f"must hold one number per row ({n})", f"shape {found.shape}")
    if found.dtype.kind not in "iufb":
        raise invalid("scores", "must be numbers", f"dtype {found.dtype}")
    narrow = found.dtype in (np.float32, np.float16)
    found = np.ascontiguousarray(found, dtype=np.float32 if narrow else np.float64)
    # The least and the largest tell of NaN and infinity without a mask of n entries.
    if n and not (np.isfinite(found.min()) and np.isfinite(found.max())):
        row = int(np.argmin(np.isfinite(found)))
        at = f"row {row}" if data is None else data.place(row)
        raise invalid("scores", "must be finite", found[row], at=at,
                    remedy="Look for overflow or missing features where the scores were made.")  # fmt: skip
    return found


def weighted_means(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted means of the lines of ``values`` without NaN; NaN where nothing is left."""
    kept = ~np.isnan(values)
    w = np.where(kept, weights, 0.0)
    with np.errstate(invalid="ignore"):
        means: FloatArray = (np.where(kept, values, 0.0) * w).sum(axis=1) / w.sum(axis=1)
    return means


def compare(
    systems: Mapping[str, npt.ArrayLike],
    data: RankingData,
    measures: "MeasureLike | Iterable[MeasureLike]" = "ndcg@10",
    *,
    baseline: str | None = None,
    test: str = "fisher",
    alternative: str = "two-sided",
    permutations: "int | str" = 100_000,
    level: float = 0.95,
    seed: int = 0,
    correction: str | None = "holm",
    n_jobs: int | None = None,
) -> Comparison:
    """Compares systems with a baseline, query by query.

    Args:
        systems: name -> scores per row of the data.
        data: the judged rows.
        measures: one or several.
        baseline: the name compared with; the first when None.
        test: "fisher" (randomisation) or "t" (paired t).
        alternative: "two-sided", "greater" (the system beats the baseline) or "less".
        permutations: of the randomisation test.
        level: of the bootstrap intervals.
        seed: of test and bootstrap.
        correction: "holm" over all systems and measures compared, or None.
        n_jobs: threads; results do not depend on it.

    The test is on the differences per query; for pooled measures these are query_weight x value over the
    mean weight, so that their mean is the pooled figure.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[1.0]] * 4, [1, 0, 0, 2], qid=[1, 1, 2, 2])
    >>> compare({"a": [1, 2, 2, 1], "b": [2, 1, 2, 1]}, data, "mrr").differences[1].tolist()
    [0.25]
    """
    if not isinstance(systems, Mapping) or not all(isinstance(name, str) for name in systems):
        found_kind = f"names {list(systems)[:3]}" if isinstance(systems, Mapping) else type(systems).__name__
        remedy = "As in {'base': scores, 'new': others}."
        raise invalid("systems", "must map names (strings) to scores", found_kind, remedy=remedy)
    names = tuple(systems)
    if len(names) < 2:
        raise invalid("systems", "must name at least two systems", f"{len(names)}")
    against = one_of("system", names[0] if baseline is None else baseline, names)
    one_of("test", test, significance.TESTS)
    one_of("alternative", alternative, significance.ALTERNATIVES)
    if correction is not None:
        one_of("correction", correction, ("holm",))
    wanted = as_measures(measures)
    found = {name: evaluate(systems[name], data, wanted, n_jobs=n_jobs) for name in names}
    base = found[against]
    blank = np.full((len(wanted), 4), np.nan)
    tested = np.stack(
        [
            blank if name == against
            else _figures(found[name], base, test, alternative, permutations, level, seed, n_jobs)
            for name in names
        ]
    )  # fmt: skip
    change = np.stack([e.by_query - base.by_query for e in found.values()])
    # A system has neither won nor lost against itself.
    counted = np.array([name != against for name in names])[:, None]
    return Comparison(
        systems=names,
        baseline=against,
        evaluations=found,
        means=np.stack([weighted_means(e.by_query, e.weights) for e in found.values()]),
        differences=tested[:, :, 0],
        low=tested[:, :, 1],
        high=tested[:, :, 2],
        p_values=tested[:, :, 3],
        corrected=_holm_all(tested[:, :, 3]) if correction == "holm" else None,
        wins=(change > 0).sum(axis=2) * counted,
        ties=(change == 0).sum(axis=2) * counted,
        losses=(change < 0).sum(axis=2) * counted,
        settings={"test": test, "alternative": alternative, "permutations": permutations, "level": level,
                  "seed": seed, "correction": correction},
    )  # fmt: skip


def _figures(
    system: Evaluation, base: Evaluation, test: str, alternative: str, permutations: "int | str",
    level: float, seed: int, n_jobs: int | None,
) -> FloatArray:  # fmt: skip
    """(M, 4): difference, both ends of its interval, p-value."""
    change = system.by_query - base.by_query
    low, high = significance.mean_intervals(change, base.weights, level, 10_000, seed, n_jobs)
    p_values = []
    for m, measure in enumerate(base.measures):
        a, b, w = system.by_query[m], base.by_query[m], base.weights[m]
        if (np.isnan(a) != np.isnan(b)).any():
            at = base.query_ids[int(np.argmax(np.isnan(a) != np.isnan(b)))]
            raise invalid(str(measure), "must be defined for both systems or none", "one", at=f"query {at}",
                        remedy=f"Give such queries a value, as in '{measure}:empty=zero'.")  # fmt: skip
        if np.isnan(a).all():
            p_values.append(float("nan"))
            continue
        if measure.weighting == "pooled":
            a, b = a * (w / w.mean()), b * (w / w.mean())
        p_values.append(
            significance.paired_t_test(a, b, alternative)
            if test == "t"
            else significance.fisher_test(a, b, permutations, alternative, seed, n_jobs=n_jobs)
        )
    return np.column_stack((weighted_means(change, base.weights), low, high, p_values))


def _holm_all(p_values: FloatArray) -> FloatArray:
    corrected = np.full(p_values.shape, np.nan)
    tested = ~np.isnan(p_values)
    corrected[tested] = significance.holm(p_values[tested])
    return corrected


def aligned(rows: Sequence[tuple[str, ...]]) -> str:
    """Rows of words as a plain table; the first is the head."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    return "\n".join("  ".join(w.ljust(n) for w, n in zip(row, widths, strict=True)).rstrip() for row in rows)
