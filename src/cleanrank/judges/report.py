"""How good is a judge? A report on its labels beside gold labels, with systems where there are some."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cleanrank.errors import InvalidInputError, invalid
from cleanrank.judges.against_gold import (
    AgainstGold,
    Coverage,
    against_gold,
    coverage_of,
)
from cleanrank.judges.labels import (
    Labels,
    Pool,
    as_labels,
    as_runs,
    check_together,
    is_nested,
    numbers,
    pool_of,
    table_of,
)
from cleanrank.judges.system_order import SystemOrder, system_order
from cleanrank.judges.systems import check_retrieved, system_ranks, system_values
from cleanrank.judges.verdicts import Verdict, limits_of, verdicts_of
from cleanrank.metrics.measure import MeasureLike, as_measures
from cleanrank.noise.class_conditional import ClassConditionality, class_conditional_test
from cleanrank.types import FloatArray, IntArray, plain
from cleanrank.validation import check_number, is_frame

MEASURES = ("ndcg@10", "map", "precision@10")


@dataclass(frozen=True, eq=False, repr=False)
class JudgeReport:
    """A judge beside gold labels.

    Attributes:
        name: of the judge.
        coverage: which pairs both graded, and whether they are a random part.
        labels: matrix, agreement, pNoise, leniency on the common pairs.
        class_conditional: whether errors depend on the true grade alone.
        orders: per measure, systems under both sets of labels; empty without systems.
        verdicts: good enough to train on, to order systems, to report levels?
        limits: what cannot be claimed, in sentences.
        level: of the intervals.
        seed: of their draws.
    """

    name: str
    coverage: Coverage
    labels: AgainstGold
    class_conditional: ClassConditionality
    orders: tuple[SystemOrder, ...]
    verdicts: tuple[Verdict, ...]
    limits: tuple[str, ...]
    level: float
    seed: int

    def to_json(self) -> dict[str, Any]:
        """Plain values; what is not finite is None."""
        labels = self.labels
        return {
            "judge": self.name,
            "level": self.level,
            "seed": self.seed,
            "coverage": plain(asdict(self.coverage)),
            "counts": labels.counts.tolist(),
            "matrix": plain(labels.matrix),
            "matrix_low": plain(labels.matrix_low),
            "matrix_high": plain(labels.matrix_high),
            "agreement": {name: span.to_json() for name, span in labels.agreement.items()},
            "pnoise": labels.pnoise.to_json(),
            "leniency": labels.leniency.to_json(),
            "leniency_by_grade": [span.to_json() for span in labels.by_grade],
            "gold_by_judge_grade": [span.to_json() for span in labels.by_judge_grade],
            "leniency_by_query": [asdict(each) for each in labels.by_query],
            "leniency_spread_of_queries": plain(labels.query_spread),
            "class_conditional": self.class_conditional.to_json(),
            "systems": [order.to_json() for order in self.orders],
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
            "limits": list(self.limits),
        }

    def __repr__(self) -> str:
        labels, n = self.labels, self.coverage
        lines = [
            f"JudgeReport({self.name}: {n.common:,} pairs of {n.common_queries:,} queries with gold labels)",
            f"  agreement {labels.agreement['share']}, kappa {labels.agreement['kappa']}, "
            f"quadratic {labels.agreement['quadratic']}",
            f"  wrong pairs (pNoise) {labels.pnoise}, leniency {labels.leniency}",
            *(f"  {each.measure}: tau {each.tau}, bias {each.bias}" for each in self.orders),
            *(f"  {verdict.question}: {verdict.answer}. {verdict.evidence}" for verdict in self.verdicts),
            *(f"  note: {limit}" for limit in self.limits),
        ]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class JudgeReports(Mapping[str, JudgeReport]):
    """Reports on several judges, by name."""

    reports: tuple[JudgeReport, ...]

    def __getitem__(self, name: str) -> JudgeReport:
        return {report.name: report for report in self.reports}[name]

    def __iter__(self) -> Iterator[str]:
        return (report.name for report in self.reports)

    def __len__(self) -> int:
        return len(self.reports)

    def to_json(self) -> dict[str, Any]:
        """Plain values: ``judges``, a record each."""
        return {"judges": [report.to_json() for report in self.reports]}

    def __repr__(self) -> str:
        return "\n".join(repr(report) for report in self.reports)


def judge_report(
    gold: Any,
    judge: Any,
    runs: Any = None,
    *,
    features: Any = None,
    measures: "MeasureLike | Iterable[MeasureLike]" = MEASURES,
    mapping: Mapping[Any, Any] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> "JudgeReport | JudgeReports":
    """Says how good a judge is, from pairs that have gold labels.

    Args:
        gold: labels that count as right: a path (qrels, CSV, .xlsx, .parquet), a frame (qid, docid, grade,
            and probability where pairs were drawn with known ones) or a mapping {query: {document: grade}}.
        judge: the labels of the judge, likewise; or a mapping from names to the labels of several judges.
        runs: systems: a folder of runs, paths, frames (qid, docid, score), or a mapping from names to them.
        features: what errors may depend on besides query and rank: a path or frame with qid, docid and
            columns of numbers; those of pairs that are not in it count as average.
        measures: by which systems are compared; those that name no convention follow ``trec``.
        mapping: which grade a value of the judge's scale stands for, as in {0: 0, 1: 2}: the largest key that
            is not above the value. Of several judges, one for all, or a mapping from names to such mappings.
        level: of the intervals.
        seed: of the draws of queries and of the test's exchanges.

    Returns:
        A JudgeReport; of several judges, JudgeReports by name. With systems, both sets of labels are compared
        on the pairs that have both, all others counting as not relevant.

    >>> gold = {f"q{i}": {"a": i % 3, "b": 0, "c": 1} for i in range(12)}
    >>> judge = {q: {d: min(g + 1, 2) for d, g in of.items()} for q, of in gold.items()}
    >>> report = judge_report(gold, judge)
    >>> round(report.labels.leniency.value, 3), report.coverage.common
    (0.889, 36)
    """
    check_number("level", level, above=0, below=1)
    right = as_labels(gold, "gold")
    several = (
        isinstance(judge, Mapping) and not is_frame(judge) and not is_nested(judge) and not _table(judge)
    )
    judges = [
        as_labels(labels, str(name), _mapping_of(mapping, name))
        for name, labels in (judge.items() if several else [(_name_of(judge), judge)])
    ]
    for labels in judges:
        check_together(labels, right)
    systems = None if runs is None else as_runs(runs)
    pool = pool_of([right, *judges], systems)
    check_retrieved(pool)
    parsed = as_measures(measures, "trec") if systems else ()
    places = system_ranks(pool)
    covariates = {"rank": rank_exposure(places)[:, None]} if systems else {}
    if features is not None:
        covariates["features"] = feature_columns(features, pool)
    reports = tuple(
        _report(pool, line, labels, parsed, places, covariates, level, seed)
        for line, labels in enumerate(judges, start=1)
    )
    return JudgeReports(reports) if several else reports[0]


def rank_exposure(places: IntArray) -> FloatArray:
    """How high systems rank every document: the mean over systems of 1 / log2(1 + rank), 0 if not retrieved.

    This is the weight that DCG gives it; errors that rise with it bias the levels of systems.

    >>> rank_exposure(np.array([[1, 3], [3, 0]])).tolist()
    [0.75, 0.25]
    """
    discounts = np.concatenate(([0.0], 1.0 / np.log2(2.0 + np.arange(places.max(initial=0)))))
    mean: FloatArray = sum((discounts[each] for each in places), np.zeros(places.shape[1])) / len(places)
    return mean


def feature_columns(features: Any, pool: Pool) -> FloatArray:
    """(N, columns): the numbers of a table of features on the rows of a pool, means where there are none."""
    sheet, headings = table_of(features, "features", "")
    ids = [sheet.texts(headings[each]) for each in ("query", "doc")]
    row_of = {pair: row for row, pair in enumerate(zip(*ids, strict=True))}
    names = zip(pool.query_ids[pool.query].tolist(), pool.doc_ids.tolist(), strict=True)
    rows = np.array([row_of.get((str(q), str(d)), -1) for q, d in names])
    if not (rows >= 0).any():
        remedy = "Check whether both belong to the same collection."
        raise invalid("features", "must have pairs in common with the labels", "none", remedy=remedy)
    columns = []
    for heading, cells in sheet.values.items():
        if heading in headings.values():
            continue
        try:
            values = numbers(heading, cells)
        except InvalidInputError:  # texts
            continue
        own = np.where(np.isfinite(values), values, np.nan)
        if np.isfinite(own).any():
            columns.append(np.nan_to_num(np.append(own, np.nan)[rows], nan=float(np.nanmean(own))))
    if not columns:
        raise invalid("features", "must have columns of numbers", ", ".join(sheet.values))
    return np.stack(columns, axis=1)


def _report(
    pool: Pool,
    line: int,
    labels: Labels,
    measures: Any,
    places: IntArray,
    covariates: Mapping[str, FloatArray],
    level: float,
    seed: int,
) -> JudgeReport:
    true, given, query = pool.grades[0], pool.grades[line], pool.query
    both = (true >= 0) & (given >= 0)
    drawn = pool.probability[0][both]
    weights = None if np.isnan(drawn).any() else 1.0 / drawn
    coverage = coverage_of(pool, 0, line, places)
    compared = against_gold(
        true[both], given[both], query[both], pool.query_ids, weights=weights, level=level, seed=seed
    )
    columns = {name: values[both] for name, values in covariates.items()}
    tested = class_conditional_test(true[both], given[both], query[both], columns, seed=seed)
    orders: tuple[SystemOrder, ...] = ()
    if measures:
        asked = np.unique(query[both])
        rows = np.isin(query, asked)
        by_label = [
            system_values(pool, np.where(both, grades, -1), measures, rows)[:, :, asked]
            for grades in (true, given)
        ]
        orders = tuple(
            system_order(by_gold, by_judge, pool.systems, measure=str(measure), level=level)
            for measure, by_gold, by_judge in zip(measures, *by_label, strict=True)
        )
    verdicts = verdicts_of(compared, coverage, tested, orders)
    limits = limits_of(coverage, tested, orders, weighted=weights is not None)
    return JudgeReport(labels.name, coverage, compared, tested, orders, verdicts, limits, level, seed)


def _mapping_of(mapping: Mapping[Any, Any] | None, name: Any) -> Any:
    if mapping and any(isinstance(each, Mapping) for each in mapping.values()):
        return mapping.get(name)
    return mapping


def _table(judge: Mapping[Any, Any]) -> bool:
    """Whether a mapping is the columns of one table."""
    return "grade" in judge and not isinstance(judge["grade"], Mapping | str)


def _name_of(judge: Any) -> str:
    from os import PathLike
    from pathlib import Path

    if isinstance(judge, Labels):
        return judge.name
    return Path(judge).name.split(".")[0] if isinstance(judge, str | PathLike) else "judge"
