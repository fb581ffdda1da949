"""Doubt by query: a misread query is wrong as a whole, and holds more of the doubt than any other."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from cleanrank.issues.table import EXPECTED, LabelIssues
from cleanrank.noise.signal import concordance
from cleanrank.ragged import group_rows

MOST_DOUBTED = 0.05  # of all rows
CONCENTRATED = 5.0  # times that share, in a query that is called misread
FEWEST = 5  # doubted rows of a query that is called misread


@dataclass(frozen=True)
class QueryDoubt:
    """How much the labels of one query are doubted together.

    Attributes:
        query_id: its id.
        documents: judged ones.
        doubted: those among the MOST_DOUBTED of all rows; equal doubts share the places left for them.
        share: the same, before it is rounded, as a share of its documents.
        given: their mean grade.
        expected: what models that never saw the query expect; NaN where the detector says nothing of it.
        order: the share of pairs of documents of different grades that these models put in the order of the
            grades; NaN where there are none.
        is_suspect: whether the query looks misread as a whole: FEWEST rows or more, and CONCENTRATED times
            the share of all queries, are among the most doubted.
    """

    query_id: Any
    documents: int
    doubted: int
    share: float
    given: float
    expected: float
    order: float
    is_suspect: bool


def doubt_by_query(issues: LabelIssues) -> list[QueryDoubt]:
    """Every query with its share of the most doubted rows, the largest first.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((4, 1)), [0, 1, 1, 0], qid=["a", "a", "b", "b"])
    >>> table = LabelIssues.of(data, doubt=[0.1, 0.2, 0.9, 0.3], is_label_issue=[False] * 4)
    >>> [(each.query_id, each.doubted) for each in doubt_by_query(table)]
    [('b', 1), ('a', 0)]
    """
    order, indptr, names = group_rows(issues.query_id)
    table = issues.select(order)
    most = max(1, round(MOST_DOUBTED * len(table)))
    first, last = (rankdata(-table.doubt, method=method) for method in ("min", "max"))
    doubted = np.clip((most - first + 1) / (last - first + 1), 0, 1)  # of equal doubts no row comes first
    expected = np.asarray(table.reasons.get(EXPECTED, np.full(len(table), np.nan)))
    parts = [slice(a, b) for a, b in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True)]
    shares = np.array([doubted[part].mean() for part in parts])
    found = []
    for name, part, share in zip(names.tolist(), parts, shares.tolist(), strict=True):
        y, score = table.given_label[part], expected[part]
        ends = np.array([0, len(y)])
        well = float("nan") if np.isnan(score).any() else concordance(y, score, ends, within=True)[0]
        rows = round(doubted[part].sum())
        suspect = share >= CONCENTRATED * MOST_DOUBTED and rows >= FEWEST
        found.append(
            QueryDoubt(name, len(y), rows, share, float(y.mean()), float(score.mean()), well, bool(suspect))
        )
    return sorted(found, key=lambda each: -each.share)
