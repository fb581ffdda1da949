"""Labels that contradict those of duplicates, documents with the same features.

Identical rows of one query cannot be told apart by any ranker; if their grades differ, some are wrong, or the
features leave something out. Duplicates across queries share their features only, so their relevance may
truly differ. doubt = share of a row's duplicates with another grade.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from cleanrank.data.duplicate_rows import first_rows, shared_rows, within_queries
from cleanrank.issues.table import LabelIssues
from cleanrank.ragged import query_of_row
from cleanrank.stored import as_array, is_dense
from cleanrank.types import FloatArray, RankingData
from cleanrank.validation import check_number


def find_contradictions(
    data: RankingData,
    *,
    across: bool = False,
    tolerance: float = 0.0,
    blanks: bool = False,
    seed: int = 0,
) -> LabelIssues:
    """Doubts labels whose twins are graded otherwise; suggests the most frequent grade among them.

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
    first, blank = first_rows(replace(data, X=_stepped(data.X, tolerance)) if tolerance else data)
    shared = shared_rows(first) & (blanks | ~blank)
    if across:
        group = np.where(shared, first, -1)
    else:
        group = within_queries(first, query_of_row(data.indptr), shared)
    C = max(data.n_grades, 1)
    _, code = np.unique(group, return_inverse=True)
    counts = np.bincount(code * C + data.y, minlength=(code.max(initial=-1) + 1) * C).reshape(-1, C)
    alike = counts[code, data.y]
    twins = np.where(group < 0, 0, counts.sum(axis=1)[code] - 1)
    doubt: FloatArray = np.where(group < 0, 0, twins - alike + 1) / np.maximum(twins, 1)
    return LabelIssues.of(
        data,
        doubt=doubt,
        is_label_issue=(doubt > 0.5) & (counts.max(axis=1)[code] > alike),
        suggested_label=counts.argmax(axis=1)[code],  # the lower grade of two alike
        reasons={"contradiction": doubt, "twins": twins},
    )


def _stepped(X: Any, tolerance: float) -> Any:
    """Features as whole numbers of steps; a column at a time, so that memory stays that of a copy."""
    if is_dense(X):
        X = as_array(X)
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
