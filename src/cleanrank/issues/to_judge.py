"""What to judge next: the rows of a table of issues by doubt, with the words and texts that a judge needs."""

from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.data.texts import columns_of_text
from cleanrank.issues.explain import explain
from cleanrank.issues.table import COLUMNS, BoolArray, LabelIssues
from cleanrank.ragged import match_rows
from cleanrank.types import IntArray, RankingData

# Neighbours are looked for among all rows: a second for a thousand rows of 35,000 with 46 features.
WITH_NEIGHBOURS = 1000


def places_to_judge(table: LabelIssues, judged: npt.ArrayLike | None = None) -> IntArray:
    """The places of all rows, the most doubted first, then by row id; rows already judged come last.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((3, 1)), [0, 1, 1], qid=[1, 1, 1])
    >>> table = LabelIssues.of(data, doubt=[0.1, 0.9, 0.4], is_label_issue=[False, True, False])
    >>> places_to_judge(table).tolist(), places_to_judge(table, judged=[1]).tolist()
    ([1, 2, 0], [2, 0, 1])
    """
    return np.lexsort((table.row_id, -table.doubt, is_judged(table, judged)))


def next_to_judge(table: LabelIssues, n: int, judged: npt.ArrayLike | None = None) -> IntArray:
    """The places of the ``n`` most doubted rows that nobody judged again, issues or not."""
    order = places_to_judge(table, judged)
    return order[~is_judged(table, judged)[order]][:n]


def is_judged(table: LabelIssues, judged: npt.ArrayLike | None) -> BoolArray:
    """Which rows of the table were judged again, by their row ids."""
    if judged is None:
        return np.zeros(len(table), dtype=np.bool_)
    return np.asarray(match_rows(np.asarray(judged), table.row_id) >= 0)


def text_columns(data: RankingData, row_ids: npt.ArrayLike) -> dict[str, Any]:
    """The columns of text that came with the data, for some rows."""
    rows = match_rows(data.row_ids, np.asarray(row_ids))
    return {name: column[rows] for name, column in columns_of_text(data).items()}


def frame_to_judge(table: LabelIssues, data: RankingData, judged: npt.ArrayLike | None = None) -> Any:
    """The table as a pandas frame for people: the most doubted rows first, with sentences and texts.

    All issues get a sentence, and at least WITH_NEIGHBOURS rows; neighbours are named in that many only.

    Args:
        table: what a detector found in ``data``.
        data: the judged rows; their document ids and text columns come along.
        judged: row ids that were judged again: they come last.

    Returns:
        Columns rank, row_id, query_id, doc_id, given_label, doubt, is_label_issue, suggested_label, judged,
        why, texts, and what the table keeps besides; ``read_issues`` reads it in any order.
    """
    import pandas as pd

    order = places_to_judge(table, judged)
    table = table.select(order)
    rows = match_rows(data.row_ids, table.row_id)
    explained = table.is_label_issue | (np.arange(len(table)) < WITH_NEIGHBOURS)
    ids = table.row_id[explained]
    words = [*explain(table, data, rows=ids[:WITH_NEIGHBOURS])] if len(ids) else []
    if len(ids) > WITH_NEIGHBOURS:
        words += explain(table, data, rows=ids[WITH_NEIGHBOURS:], neighbours=0)
    why = np.full(len(table), "", dtype=object)
    why[explained] = [each.why for each in words]
    columns: dict[str, Any] = {"rank": np.arange(1, len(table) + 1), "row_id": table.row_id}
    columns["query_id"] = table.query_id
    if data.doc_ids is not None:
        columns["doc_id"] = data.doc_ids[rows]
    columns |= {name: getattr(table, name) for name in COLUMNS if name not in columns}
    if judged is not None:
        columns["judged"] = is_judged(table, judged)
    columns["why"] = why
    for name, values in text_columns(data, table.row_id).items():
        if name not in table.reasons:
            columns.setdefault(name, values)
    frame = table.to_frame().reset_index(drop=True)
    return pd.concat([pd.DataFrame(columns), frame.drop(columns=[c for c in frame if c in columns])], axis=1)
