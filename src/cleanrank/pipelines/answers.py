"""Rows of known true grade, in the forms that people have them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cleanrank.errors import invalid
from cleanrank.noise.sheets import GoldAnswers
from cleanrank.types import Array, IntArray, RankingData


def gold_answers(gold: Any, data: RankingData) -> GoldAnswers | None:
    """Rows of known true grade as answers, whatever way they were given.

    Args:
        gold: the answers of a gold sheet; a pair (row ids, true grades) or a triple with the ``shares`` of
            ``from_gold``; a mapping from row id to true grade; or a grade per row, -1 where it is not known.
        data: the rows meant.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((3, 1)), [0, 1, 1], qid=[1, 1, 1])
    >>> gold_answers([-1, -1, 0], data).row_ids.tolist(), gold_answers({2: 0}, data).true_grades.tolist()
    ([2], [0])
    """
    if gold is None:
        return None
    shares = None
    if isinstance(gold, GoldAnswers):
        rows, grades, shares = gold.row_ids, gold.true_grades, gold.shares
    elif isinstance(gold, Mapping):
        rows, grades = np.array(list(gold)), np.array(list(gold.values()))
    elif isinstance(gold, tuple) and len(gold) in (2, 3):
        rows, grades = np.asarray(gold[0]), np.asarray(gold[1])
        shares = None if len(gold) == 2 else np.asarray(gold[2], dtype=np.float64)
    else:
        column = np.asarray(gold)
        if column.shape != (data.n_docs,) or column.dtype.kind not in "iu":
            rule = f"must be answers, (row ids, grades), or a whole grade per row ({data.n_docs}), -1 unknown"
            raise invalid("gold", rule, f"{column.dtype}, shape {column.shape}")
        rows = np.flatnonzero(column >= 0)
        grades = column[rows]
    if not rows.size:
        return None
    _check_gold(rows, grades, data)
    return GoldAnswers(rows, grades, np.ones(len(rows)) if shares is None else shares)


def _check_gold(rows: Array, grades: Array, data: RankingData) -> None:
    if rows.ndim != 1 or rows.shape != grades.shape:
        rule = "must name one true grade for every row"
        raise invalid("gold", rule, f"rows of shape {rows.shape}, grades of shape {grades.shape}")
    for name, values in (("row ids of gold", rows), ("true grades of gold", grades)):
        if values.dtype.kind not in "iu" or (values < 0).any():
            first = values[0] if values.dtype.kind not in "iu" else values[np.argmax(values < 0)]
            raise invalid(name, "must be whole numbers from 0 on", repr(first.item()))
    outside = ~np.isin(rows, data.row_ids)
    if outside.any():
        raise invalid("row ids of gold", "must be rows of the data", int(rows[np.argmax(outside)]))
    ids, times = np.unique(rows, return_counts=True)
    if (times > 1).any():
        twice = int(ids[np.argmax(times > 1)])
        said = ", ".join(str(g) for g in grades[rows == twice].tolist()[:5])
        raise invalid("gold", "must name every row once", f"row {twice} as {said}")


def known_grades(data: RankingData, answers: GoldAnswers | None) -> IntArray | None:
    """The true grade of every row of the data, -1 where it is not known."""
    if answers is None:
        return None
    order = np.argsort(answers.row_ids, kind="stable")
    place = np.minimum(np.searchsorted(answers.row_ids, data.row_ids, sorter=order), len(order) - 1)
    found = answers.row_ids[order[place]] == data.row_ids
    return np.where(found, answers.true_grades[order[place]], -1).astype(np.int64)
