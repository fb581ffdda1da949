"""Several detectors, one table: doubts are combined row by row, each detector keeps its reason column."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.issues.explain import PROBABILITY
from cleanrank.issues.table import LabelIssues
from cleanrank.types import FloatArray
from cleanrank.validation import one_of

HALF = 0.5 - 1e-12


def combine(
    tables: Mapping[str, LabelIssues],
    how: str = "rank",
    *,
    weights: Mapping[str, float] | None = None,
) -> LabelIssues:
    """One table from those of several detectors of the same rows.

    A row is an issue when detectors of at least half of the weight call it one; the suggested grade is the
    one with the most weight among those. Tables are matched by row id, in the order of the first one.

    Args:
        tables: name -> table; the names become the reason columns.
        how: "rank" averages the places of a row in each table, from 0 (least doubted) to 1, ties shared;
            "mean" averages the doubts, which is right for tables whose doubts are probabilities.
        weights: name -> weight; 1 where not given.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((3, 1)), [0, 0, 1], group=[3])
    >>> one = LabelIssues.of(data, doubt=[0.1, 0.2, 0.9], is_label_issue=[False, False, True])
    >>> two = LabelIssues.of(data, doubt=[0.0, 0.4, 0.3], is_label_issue=[False, True, False])
    >>> combine({"one": one, "two": two}).doubt.tolist()
    [0.0, 0.75, 0.75]
    """
    one_of("way of combining", how, WAYS)
    if not tables:
        raise invalid("tables", "must hold at least one table", "none")
    for name in weights or {}:
        one_of("table", name, tables)
    share = np.array([float((weights or {}).get(name, 1.0)) for name in tables])
    if not (np.isfinite(share).all() and (share >= 0).all() and share.sum() > 0):
        raise invalid("weights", "must be numbers from 0 on, not all of them 0", share.tolist())
    share /= share.sum()
    names, first = list(tables), next(iter(tables.values()))
    aligned = [first, *(_aligned(first, name, table) for name, table in list(tables.items())[1:])]
    doubt = sum(w * WAYS[how](each.doubt) for w, each in zip(share, aligned, strict=True))
    against = sum(w * each.is_label_issue for w, each in zip(share, aligned, strict=True))
    issues = np.asarray(against) >= HALF
    reasons: dict[str, Any] = {name: each.doubt for name, each in zip(names, aligned, strict=True)}
    for each in aligned:
        # Probabilities of all grades belong together: those of one table only.
        theirs = any(name.startswith(PROBABILITY) for name in reasons)
        # What a detector measured beside its doubt stays, unless it is the doubt under another name.
        extra = {k: v for k, v in each.reasons.items() if k not in reasons}
        whole = {k: v for k, v in extra.items() if k.startswith(PROBABILITY) and not theirs}
        rest = {k: v for k, v in extra.items() if not k.startswith(PROBABILITY)}
        reasons |= whole | {k: v for k, v in rest.items() if not np.array_equal(v, each.doubt)}
    return LabelIssues(
        row_id=first.row_id,
        query_id=first.query_id,
        given_label=first.given_label,
        doubt=np.clip(np.asarray(doubt), 0.0, 1.0),
        is_label_issue=issues,
        suggested_label=_suggested(aligned, share, issues),
        reasons=reasons,
    )


def places(doubt: FloatArray) -> FloatArray:
    """Places by ascending doubt, from 0 to 1; ties share the middle of theirs.

    >>> places(np.array([0.3, 0.1, 0.3, 0.9])).round(3).tolist()
    [0.5, 0.0, 0.5, 1.0]
    """
    from scipy.stats import rankdata

    if len(doubt) < 2:
        return np.zeros(len(doubt))
    found: FloatArray = (rankdata(doubt) - 1) / (len(doubt) - 1)
    return found


def _aligned(first: LabelIssues, name: str, table: LabelIssues) -> LabelIssues:
    order = np.argsort(table.row_id, kind="stable")
    if not np.array_equal(table.row_id[order], np.sort(first.row_id)):
        raise invalid(f"table {name!r}", "must have the rows of the first table", f"{len(table)} rows")
    found = table.select(order[np.searchsorted(table.row_id[order], first.row_id)])
    differs = found.given_label != first.given_label
    if differs.any():
        row = int(np.argmax(differs))
        raise invalid(
            f"given_label of table {name!r}", f"must be that of the first table ({first.given_label[row]})",
            found.given_label[row], at=f"row {first.row_id[row]}",
        )  # fmt: skip
    return found


def _suggested(tables: list[LabelIssues], share: FloatArray, issues: npt.NDArray[np.bool_]) -> Any:
    """The grade that detectors of the most weight suggest for an issue; the lower one of two alike."""
    given = tables[0].given_label
    most = max([int(t.suggested_label.max(initial=0)) for t in tables] + [int(given.max(initial=0))])
    votes = np.zeros((len(given), most + 1))
    rows = np.arange(len(given))
    for w, table in zip(share, tables, strict=True):
        votes[rows, table.suggested_label] += w * (table.suggested_label != given)
    known = issues & (votes.max(axis=1) > 0)
    return np.where(known, votes.argmax(axis=1), given).astype(given.dtype)


def _as_they_are(doubt: FloatArray) -> FloatArray:
    return doubt


WAYS: dict[str, Callable[[FloatArray], FloatArray]] = {"rank": places, "mean": _as_they_are}
