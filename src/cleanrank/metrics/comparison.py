"""Compare several systems on the same queries: differences, intervals, tests."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.data.inputs import as_judged
from cleanrank.errors import invalid
from cleanrank.metrics import significance
from cleanrank.metrics.evaluation import Evaluation, Scores, aligned, as_rows, evaluate, weighted_means
from cleanrank.metrics.measure import Measure, MeasureLike, as_measures
from cleanrank.types import FloatArray, IntArray
from cleanrank.validation import one_of


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
        figures = {"difference": self.differences, "low": self.low, "high": self.high, "p": self.p_values}
        counts = {"wins": self.wins, "ties": self.ties, "losses": self.losses}
        records = []
        for s, system in enumerate(self.systems):
            for m, measure in enumerate(self.measures):
                row: dict[str, Any] = {
                    "system": system,
                    "measure": str(measure),
                    "mean": float(self.means[s, m]),
                    "baseline": system == self.baseline,
                }
                if system != self.baseline:
                    row |= {name: float(values[s, m]) for name, values in figures.items()}
                    row["p_corrected"] = None if self.corrected is None else float(self.corrected[s, m])
                    row |= {name: int(values[s, m]) for name, values in counts.items()}
                records.append(row)
        return records

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


def compare(
    systems: "Mapping[str, Scores]",
    data: Any = None,
    measures: "MeasureLike | Iterable[MeasureLike]" = "ndcg@10",
    *,
    order: str | None = None,
    y: npt.ArrayLike | None = None,
    label: str | None = None,
    qid: Any = None,
    group: npt.ArrayLike | None = None,
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
        systems: name -> scores per row of the data, or a Run, as in ``evaluate``.
        data: the judged rows: a RankingData, or a frame with the columns ``label`` and ``qid``.
        measures: one or several.
        order: which order the scores are in, where the rows of ``data`` were regrouped by query: "input" as
            they stood in the input, "data" as in ``data.X``. Scores of a frame or of arrays are in its own.
        y: without a RankingData or a frame, the grades; with ``qid`` or ``group``.
        label: with a frame, its column of grades; "label" when not given.
        qid: with a frame, its column of query ids ("qid" when not given), else the query of every row.
        group: instead of ``qid``, documents per query.
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

    Returns:
        A Comparison: means, differences, intervals and p-values of every system and measure.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[1.0]] * 4, [1, 0, 0, 2], qid=[1, 1, 2, 2])
    >>> compare({"a": [1, 2, 2, 1], "b": [2, 1, 2, 1]}, data, "mrr").differences[1].tolist()
    [0.25]
    """
    names = system_names(systems)
    against = one_of("system", names[0] if baseline is None else baseline, names)
    one_of("test", test, significance.TESTS)
    one_of("alternative", alternative, significance.ALTERNATIVES)
    if correction is not None:
        one_of("correction", correction, ("holm",))
    judged, order = as_judged(systems, data, order, y=y, label=label, qid=qid, group=group)
    by_row, judged, convention = as_rows([systems[name] for name in names], judged, order)
    parsed = as_measures(measures, convention)
    evaluations = {
        name: replace(evaluate(scores, judged, parsed, order="data", n_jobs=n_jobs), convention=convention)
        for name, scores in zip(names, by_row, strict=True)
    }
    base = evaluations[against]
    blank = np.full((len(parsed), 4), np.nan)
    tested = np.stack(
        [
            blank if name == against
            else _figures(evaluations[name], base, test, alternative, permutations, level, seed, n_jobs)
            for name in names
        ]
    )  # fmt: skip
    change = np.stack([e.by_query - base.by_query for e in evaluations.values()])
    # A system has neither won nor lost against itself.
    counted = np.array([name != against for name in names])[:, None]
    return Comparison(
        systems=names,
        baseline=against,
        evaluations=evaluations,
        means=np.stack([weighted_means(e.by_query, e.weights) for e in evaluations.values()]),
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


def system_names(systems: Any) -> tuple[str, ...]:
    """The names of at least two systems in a mapping name -> scores."""
    if not isinstance(systems, Mapping) or not all(isinstance(name, str) for name in systems):
        value = f"names {list(systems)[:3]}" if isinstance(systems, Mapping) else type(systems).__name__
        remedy = "As in {'base': scores, 'new': others}."
        raise invalid("systems", "must map names (strings) to scores", value, remedy=remedy)
    if len(systems) < 2:
        raise invalid("systems", "must name at least two systems", len(systems))
    return tuple(systems)


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
