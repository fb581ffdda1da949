"""What evaluation with a judge takes: systems, labels of a judge, gold labels; also beside ranking data."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cleanrank.errors import invalid
from cleanrank.judges.labels import Labels, Mapped, as_labels, as_runs, checked_labels, document_names
from cleanrank.metrics.measure import DEFAULT_CONVENTION
from cleanrank.ragged import match_rows, query_of_row
from cleanrank.types import RankingData, Run
from cleanrank.validation import is_frame


def read_inputs(
    runs: Any, judge: Any, gold: Any, mapping: Mapped = None
) -> tuple[dict[str, Run], Labels, Labels, str]:
    """Systems, the judge's labels, gold labels, and the convention of measures that name none.

    Beside a RankingData as ``judge``, ``runs`` may be scores of its rows (or a mapping from names to scores),
    and ``gold`` (row ids, grades); measures are then those of ranking data.
    """
    labels = as_labels(judge, "the judge", mapping)
    convention = "trec"
    if isinstance(judge, RankingData):
        if is_scores(runs):
            runs, convention = as_systems(runs, judge), DEFAULT_CONVENTION
        if isinstance(gold, tuple):
            gold = _gold_rows(gold, judge)
    return as_runs(runs), labels, as_labels(gold, "gold labels"), convention


def is_scores(runs: Any) -> bool:
    """Whether systems are given as scores of the rows of data, or as a mapping from names to scores."""
    scores = runs.values() if isinstance(runs, Mapping) else [runs]
    return all(not is_frame(each) and np.ndim(each) == 1 and _are_numbers(each) for each in scores)


def _are_numbers(values: Any) -> bool:
    return np.asarray(values).dtype.kind in "biuf"


def as_systems(runs: Any, data: RankingData) -> dict[str, Run]:
    """Systems from whatever a caller has, also from scores of the rows of ``data``."""
    if not is_scores(runs):
        return as_runs(runs)
    scores = runs if isinstance(runs, Mapping) else {"system": runs}
    return {str(name): _run_of_scores(each, data, str(name)) for name, each in scores.items()}


def _run_of_scores(scores: Any, data: RankingData, name: str) -> Run:
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (data.n_docs,) or not np.isfinite(values).all():
        raise invalid(
            "scores", f"must be {data.n_docs:,} finite numbers, one per row", f"shape {values.shape}"
        )
    documents, document = np.unique(document_names(data), return_inverse=True)
    return Run(data.query_ids.astype(str), documents, query_of_row(data.indptr), document, values, name)


def _gold_rows(gold: tuple[Any, Any], data: RankingData) -> Labels:
    ids, grades = (np.asarray(each) for each in gold)
    if ids.shape != grades.shape or ids.ndim != 1:
        shapes = f"{ids.size:,} and {grades.size:,}"
        raise invalid("gold", "must be as many row ids as grades", shapes, remedy="Give (row ids, grades).")
    rows = match_rows(data.row_ids, ids)
    if (rows < 0).any():
        raise invalid("gold row ids", "must be row ids of the data", int(ids[rows < 0][0]))
    docid = document_names(data)[rows]
    return checked_labels("gold labels", data.qid[rows].astype(str), docid, grades, None, None)
