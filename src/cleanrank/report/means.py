"""Figures of single records, and rows of those that hold means and standard errors alone."""

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from cleanrank.types import Array, RunRecord


def has_measure(record: RunRecord, measure: str) -> bool:
    """Whether a record has a figure of a measure."""
    return measure in record.values or measure in record.means


def measures_of(record: RunRecord) -> list[str]:
    """The measures of a record, in its order."""
    return list(dict.fromkeys([*record.values, *record.means]))


def count_queries(record: RunRecord, measure: str) -> int:
    """The queries that count for a measure."""
    if measure in record.values:
        return int(np.count_nonzero(~np.isnan(record.values[measure])))
    return record.n_queries.get(measure, 0)


def most_queries(record: RunRecord) -> int:
    """The queries of a cell, whether they count for a measure or not."""
    return max((len(v) for v in record.values.values()), default=max(record.n_queries.values(), default=0))


def plain_mean(values: Array | Sequence[float]) -> float:
    """The mean of what is not NaN; NaN where nothing is."""
    counted = np.asarray(values)
    counted = counted[~np.isnan(counted)]
    return math.fsum(counted) / len(counted) if len(counted) else math.nan


def mean_of(record: RunRecord, measure: str) -> float:
    """The mean of a measure, in its own weighting where the record has it."""
    return float(record.means[measure]) if measure in record.means else plain_mean(record.values[measure])


def pooled_means(folds: Mapping[str, Sequence[RunRecord]], measure: str, confidence: float) -> dict[str, Any]:
    """Mean, interval, standard error and number of queries, from the records of each fold's seeds.

    Seeds of a fold share their queries, so their standard errors are averaged; folds have queries of their
    own, so their variances add. The interval is the normal one.

    Args:
        folds: the records of each fold.
        measure: text of the measure.
        confidence: of the interval.

    Returns:
        Fields of a Row; without an interval where a standard error is not known.

    >>> one, two = (RunRecord("k", "r", {}, "done", means={"auc": m}, query_se={"auc": 0.1},
    ...                       n_queries={"auc": 50}) for m in (0.4, 0.6))
    >>> round(pooled_means({"1": [one], "2": [two]}, "auc", 0.95)["query_se"], 4)
    0.0707
    """
    sizes = np.array([count_queries(records[0], measure) for records in folds.values()], float)
    means = np.array([np.mean([r.means[measure] for r in records]) for records in folds.values()])
    errors = np.array(
        [np.mean([r.query_se.get(measure, math.nan) for r in records]) for records in folds.values()]
    )
    weights = sizes / sizes.sum() if sizes.sum() else np.full(len(sizes), 1 / len(sizes))
    mean, se = float(weights @ means), float(np.sqrt(((weights * errors) ** 2).sum()))
    fields: dict[str, Any] = {"mean": None if math.isnan(mean) else mean, "n_queries": int(sizes.sum())}
    if math.isnan(se) or math.isnan(mean):
        return fields
    half = NormalDist().inv_cdf((1 + confidence) / 2) * se
    return fields | {"low": mean - half, "high": mean + half, "query_se": se}
