"""Twins that disagree: documents with the same features and different grades.

Identical rows of one query cannot be told apart by any ranker; if their grades differ, some are wrong, or the
features leave something out. Twins across queries share their features only, so their relevance may truly
differ. Rows whose features are all 0 say nothing about the document and are no twins of anyone.

doubt = share of a row's twins with another grade; suggested = the most frequent grade among the twins and the
row itself, where it is more frequent than the given one.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from cleanrank.data.duplicate_rows import changes, first_rows, shared_rows, within_queries
from cleanrank.issues.table import LabelIssues
from cleanrank.ragged import query_of_row
from cleanrank.types import Array, FloatArray, IntArray, RankingData
from cleanrank.validation import check_number

CLEARLY = 0.5


def find_contradictions(
    data: RankingData,
    *,
    across: bool = False,
    tolerance: float = 0.0,
    blanks: bool = False,
    seed: int = 0,
) -> LabelIssues:
    """Doubts labels whose twins are graded otherwise; needs no model and no assumption about the noise.

    Args:
        data: judged rows.
        across: look for twins in all queries, not in the row's own alone.
        tolerance: features are first rounded to steps of so many standard deviations of their column, so that
            nearly identical rows are twins too; two rows on either side of a step are not.
        blanks: count rows whose features are all 0 as twins of one another.
        seed: not used; nothing here is random.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[1, 2], [1, 2], [1, 2], [3, 4]], [2, 2, 0, 0], group=[4])
    >>> issues = find_contradictions(data)
    >>> issues.doubt.tolist(), issues.suggested_label.tolist()
    ([0.5, 0.5, 1.0, 0.0], [2, 2, 2, 0])
    """
    check_number("tolerance", tolerance, least=0)
    rounded = replace(data, X=_stepped(data.X, tolerance)) if tolerance else data
    first, blank = first_rows(rounded)
    shared = shared_rows(first)
    if not blanks:
        shared &= ~blank
    if across:
        group = np.where(shared, first, -1)
    else:
        group = within_queries(first, query_of_row(data.indptr), shared)
    twins, agreeing, likely, likely_count = _votes(group, data.y)
    doubt: FloatArray = np.where(twins > 0, (twins - agreeing) / np.maximum(twins, 1), 0.0)
    issues = (doubt > CLEARLY) & (likely_count > agreeing + 1)
    return LabelIssues.of(
        data,
        doubt=doubt,
        is_label_issue=issues,
        suggested_label=np.where(issues, likely, data.y).astype(data.y.dtype),
        reasons={"contradiction": doubt, "twins": twins},
    )


def _votes(group: IntArray, y: Array) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Per row: its twins, those of its grade, the group's most frequent grade and how often it has it."""
    n = len(y)
    twins, agreeing = np.zeros(n, np.int64), np.zeros(n, np.int64)
    likely, likely_count = y.astype(np.int64), np.zeros(n, np.int64)
    rows = np.flatnonzero(group >= 0)
    if not len(rows):
        return twins, agreeing, likely, likely_count
    order = rows[np.lexsort((y[rows], group[rows]))]
    new_group, new_cell = changes(group[order]), changes(group[order]) | changes(y[order])
    of_group, of_cell = np.cumsum(new_group) - 1, np.cumsum(new_cell) - 1
    sizes, cells = np.bincount(of_group), np.bincount(of_cell)
    cell_group, cell_grade = of_group[new_cell], y[order][new_cell]
    # The last cell of each group by ascending size and descending grade: ties go to the lower grade.
    best = np.lexsort((-cell_grade, cells, cell_group))
    last = np.append(np.flatnonzero(np.diff(cell_group[best])), len(best) - 1)
    winner = best[last]
    twins[order], agreeing[order] = sizes[of_group] - 1, cells[of_cell] - 1
    likely[order], likely_count[order] = cell_grade[winner][of_group], cells[winner][of_group]
    return twins, agreeing, likely, likely_count


def _stepped(X: Any, tolerance: float) -> Any:
    """Features as whole numbers of steps; a column at a time, so that memory stays that of a copy."""
    if isinstance(X, np.ndarray):
        stepped = np.empty_like(X)
        for column in range(X.shape[1]):
            values = X[:, column].astype(np.float64)
            spread = float(np.nanstd(values)) if np.isfinite(values).any() else 0.0
            stepped[:, column] = np.rint(values / (tolerance * spread)) if spread > 0 else values
        return stepped
    steps = X.astype(np.float64)
    n = max(X.shape[0], 1)
    mean = np.asarray(steps.sum(axis=0)).ravel() / n
    square = np.asarray(steps.multiply(steps).sum(axis=0)).ravel() / n
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))[steps.indices]
    steps.data = np.where(
        spread > 0, np.rint(steps.data / np.where(spread > 0, tolerance * spread, 1)), steps.data
    )
    return steps.astype(np.float32)
