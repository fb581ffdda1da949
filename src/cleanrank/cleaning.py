"""Cleaning: a data set and a LabelIssues become a cleaner data set and the list of what was changed.

Nothing is changed silently: every change has a row in the audit trail, with what was there before, why and by
whom, and can be undone.
"""

import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cleanrank.data.files import FRAMES, written_whole
from cleanrank.data.inputs import Source
from cleanrank.data.spreadsheet import write_frame
from cleanrank.errors import invalid
from cleanrank.issues.table import PROBABILITY, BoolArray, LabelIssues, expected_gains
from cleanrank.ragged import match_rows
from cleanrank.types import Array, FloatArray, RankingData
from cleanrank.validation import check_integer, check_number, one_of

Options: TypeAlias = Mapping[str, Any]
REVIEW = "review"  # what people decided, row by row


@dataclass(frozen=True, eq=False, repr=False)
class Cleaned:
    """What ``clean`` returns.

    Attributes:
        data: the cleaned rows.
        before: the rows as they were.
        issues: the table that was acted on, in the order of ``before``.
        acted: which rows of ``before`` were changed or dropped.
        mode: one of MODES.
        by: who or what decided.
        at: when, ISO 8601, UTC.
        emptied: ids of queries that lost all their documents.
        options: settings of the mode.
        source: what was cleaned.
        audit: columns of the audit trail that are known row by row of ``before``: action, by, at, why; an
            empty text says nothing.
    """

    data: RankingData
    before: RankingData
    issues: LabelIssues
    acted: BoolArray
    mode: str
    by: str
    at: str
    emptied: tuple[Any, ...]
    options: Options
    source: Source
    audit: Mapping[str, Array] = field(default_factory=dict)

    @property
    def frame(self) -> Any:
        """The frame that was passed to ``clean``, in its own order, with all its columns.

        Dropped rows are gone, labels are the new ones; with "reweight" there is a column weight more, with
        "posterior" a column gain.
        """
        added: dict[str, Any] = {
            "reweight": {"weight": self.data.weights},
            "posterior": {"gain": self.data.gains},
        }
        return self.source.frame_of(self.data, added.get(self.mode))

    @property
    def removed(self) -> Any:
        """The audit trail: one row per changed document, with what, why and by whom; a pandas DataFrame."""
        import pandas as pd

        part = self.issues.select(self.acted)
        reasons = [
            "; ".join(f"{name} {values[i]:.4g}" for name, values in part.reasons.items()) or "doubted"
            for i in range(len(part))
        ]
        weights = self.before.weights
        columns: dict[str, Any] = {
            "row_id": part.row_id,
            "query_id": part.query_id,
            "action": self.mode,
            "given_label": part.given_label,
            "new_label": self._after("y", part.given_label),
            "old_weight": np.ones(len(part)) if weights is None else weights[self.acted],
            "new_weight": self._after("weights", np.ones(len(part))),
            **self._gains(),
            "doubt": part.doubt,
            "why": reasons,
            "by": self.by,
            "at": self.at,
        }
        for name, values in self.audit.items():
            known = values[self.acted]
            columns[name] = np.where(known == "", columns[name], known)
        return pd.DataFrame(columns)

    def undo(self, rows: Sequence[int] | None = None) -> "RankingData | Cleaned":
        """The data as they were; with row ids, the cleaning without these rows, as a new result."""
        if rows is None:
            return self.before
        ids = np.atleast_1d(np.asarray(rows))
        unknown = ~np.isin(ids, self.before.row_ids[self.acted])
        if unknown.any():
            raise invalid("rows", "must be ids of changed rows", ids[np.argmax(unknown)])
        acted = self.acted & ~np.isin(self.before.row_ids, ids)
        return _cleaned(
            self.source, self.issues, acted, self.mode, self.by, self.at, self.options, self.audit
        )

    def to_json(self) -> dict[str, Any]:
        """The audit trail with its summary, JSON-like."""
        return {**self.summary(), "changes": json.loads(self.removed.to_json(orient="records"))}

    def summary(self) -> dict[str, Any]:
        """Counts and shares: of all documents, and of the documents of each given grade."""
        acted, y = self.acted, self.before.y
        by_grade = {
            str(g): {"documents": int((y == g).sum()), "changed": int(acted[y == g].sum())}
            for g in np.unique(y)
        }
        return {
            "mode": self.mode,
            "by": self.by,
            "at": self.at,
            "options": dict(self.options),
            "documents_before": self.before.n_docs,
            "documents_after": self.data.n_docs,
            "queries_before": self.before.n_queries,
            "queries_after": self.data.n_queries,
            "changed": int(acted.sum()),
            "share": float(acted.mean()) if len(acted) else 0.0,
            "by_grade": by_grade,
            "emptied_queries": [str(q) for q in self.emptied],
        }

    def save_audit(self, path: str | Path) -> None:
        """Writes the audit trail: JSON with a summary, or its rows alone as .csv, .tsv, .xlsx or .parquet."""
        if str(path).lower().endswith(FRAMES):
            write_frame(self.removed, path)
            return
        with written_whole(path) as part:
            part.write_text(json.dumps(self.to_json(), indent=2) + "\n", encoding="utf-8")

    def __repr__(self) -> str:
        empty = f", {len(self.emptied)} queries emptied" if self.emptied else ""
        documents = f"{self.acted.sum():,} of {self.before.n_docs:,} documents"
        return f"Cleaned({documents} {WORDS[self.mode]}{empty})"

    def _after(self, name: str, missing: Array) -> Array:
        """A column of the changed rows after cleaning; ``missing`` where there is no such column."""
        place = match_rows(self.data.row_ids, self.before.row_ids[self.acted])
        column = getattr(self.data, name)
        values = missing if column is None or not len(column) else np.asarray(column[place])
        return np.where(place < 0, np.nan, values) if (place < 0).any() else values

    def _gains(self) -> dict[str, Array]:
        """Gains before and after, where the mode changes them."""
        if self.mode != "posterior":
            return {}
        _, old = _gains(self.before, self.issues, self.options)
        return {"old_gain": old[self.acted], "new_gain": self._after("gains", old[self.acted])}


def clean(
    data: Any,
    issues: Any = None,
    mode: str = "drop",
    *,
    y: npt.ArrayLike | None = None,
    label: str | None = None,
    qid: Any = None,
    group: npt.ArrayLike | None = None,
    features: Sequence[str] | None = None,
    min_doubt: float | None = None,
    weight: float | None = None,
    label_gain: Sequence[float] | None = None,
    n_grades: int | None = None,
    by: str = "cleanrank",
    at: str | None = None,
) -> Cleaned:
    """Drops, relabels or reweights the doubted documents, or gives all expected gains.

    ``data`` stays untouched. With "posterior" the gain of a document becomes
    sum_c P(true grade c | features, given grade) g_c, with g_c = 2^c - 1 or ``label_gain``; the objectives
    "exact" and "parity" train on it. Grades and weights stay.

    Queries that lose all their documents go too, and are named in the result. A table without signal
    (``LabelIssues.caution``), in which nobody marked an issue, is refused unless ``min_doubt`` is given.

    Args:
        data: rows to clean: a RankingData, a frame with the columns ``label`` and ``qid``, or features with
            ``y``.
        issues: a LabelIssues, what a detector found in them; rows are matched by id, so their order does not
            matter. That of ``find_label_issues(data)`` when not given.
        mode: "drop"; "relabel" to the suggested grade; "reweight" by 1 - doubt (or ``weight``);
            "posterior", which needs the probabilities of the detectors "auto" or "posterior" and acts on
            every row whose gain changes unless ``min_doubt`` is given.
        y: with features as ``data``, the grades.
        label: with a frame, its column of grades; "label" when not given.
        qid: with a frame, its column of query ids ("qid" when not given), else the query of every row.
        group: instead of ``qid``, documents per query.
        features: with a frame, its columns of features; else all of numbers and categories.
        min_doubt: act on rows doubted at least so much, instead of the detector's own issues.
        weight: with "reweight", the factor for every issue.
        label_gain: with "posterior", the gain of each grade, else 2^c - 1.
        n_grades: with "relabel", the number of grades of the scale, when the highest does not occur in
            ``data``; a suggested grade beyond the scale is refused.
        by: who decides, for the audit trail.
        at: when, for the audit trail; now unless given.

    Returns:
        A Cleaned: the data, what was changed and why, and ``undo``; ``frame`` is the caller's own, cleaned.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((3, 1)), [0, 1, 0], qid=["a", "a", "b"])
    >>> issues = LabelIssues.of(data, doubt=[0, 0.2, 1], is_label_issue=[False, False, True])
    >>> cleaned = cr.clean(data, issues)
    >>> cleaned, cleaned.emptied, cleaned.undo() is data
    (Cleaned(1 of 3 documents dropped, 1 queries emptied), ('b',), True)
    """
    one_of("mode", mode, MODES)
    if min_doubt is not None:
        check_number("min_doubt", min_doubt, above=0, most=1)
    if weight is not None and (mode != "reweight" or not 0 <= weight <= 1):
        raise invalid("weight", "must lie in [0, 1] and needs mode='reweight'", weight)
    if label_gain is not None and mode != "posterior":
        raise invalid("label_gain", "goes with mode='posterior'", mode)
    source = Source.of(data, y, label=label, qid=qid, group=group, features=features)
    data = source.data
    if issues is None:
        from cleanrank.issues.find import find_label_issues

        issues = find_label_issues(data)
    if not isinstance(issues, LabelIssues):
        rule, remedy = "must be a LabelIssues", "Make it with cr.find_label_issues(data)."
        raise invalid("issues", rule, type(issues).__name__, remedy=remedy)
    table = issues.aligned(data)
    if table.caution and min_doubt is None and not table.n_issues:
        remedy = "Mend the data, mark issues by hand, or give min_doubt to act all the same."
        raise invalid(
            "issues",
            "must rest on features that tell something about the grades",
            str(table.signal),
            remedy=remedy,
        )
    acted = table.is_label_issue if min_doubt is None else table.doubt >= min_doubt
    if mode == "relabel":
        acted = acted & (table.suggested_label != table.given_label)
        _check_scale(data, table, acted, n_grades)
    if acted.all() and mode == "drop" and data.n_docs:
        rule = "must leave at least one document"
        raise invalid("issues", rule, "all are issues", remedy="Raise min_doubt.")
    gains = None if label_gain is None else [float(gain) for gain in label_gain]
    settings = {"min_doubt": min_doubt, "weight": weight, "label_gain": gains}
    options = {name: value for name, value in settings.items() if value is not None}
    if mode == "posterior" and min_doubt is None:
        new, old = _gains(data, table, options)
        acted = new != old
    now = at or datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return _cleaned(source, table, acted, mode, by, now, options)


def apply_review(
    source: Source,
    table: LabelIssues,
    *,
    audit: Mapping[str, Array],
    by: str,
    at: str,
    options: Options,
) -> Cleaned:
    """Data whose labels people reviewed.

    Args:
        source: what was reviewed.
        table: its rows in order: the label that each should have, -1 for a row to drop.
        audit: action, by, at and why of every row.
        by: who decided.
        at: when the last of them did.
        options: how opinions were combined, and what else to note.
    """
    acted = table.suggested_label != table.given_label
    if (acted & (table.suggested_label < 0)).all() and len(acted):
        raise invalid("a review", "must leave at least one document", "all dropped")
    return _cleaned(source, table, acted, REVIEW, by, at, options, audit)


def _check_scale(data: RankingData, table: LabelIssues, acted: BoolArray, n_grades: int | None) -> None:
    """Suggested grades must be on the scale: that of the data, of the table's probabilities, or as told."""
    if n_grades is not None:
        check_integer("n_grades", n_grades, least=data.n_grades)
    C = max(data.n_grades, n_grades or 0, sum(name.startswith(PROBABILITY) for name in table.reasons))
    beyond = acted & ((table.suggested_label < 0) | (table.suggested_label >= C))
    if beyond.any():
        row = int(np.argmax(beyond))
        rule, remedy = (
            f"must be a grade from 0 to {C - 1}",
            "Correct the table, or give n_grades if the scale is longer.",
        )
        raise invalid(
            "suggested_label", rule, int(table.suggested_label[row]), at=data.place(row), remedy=remedy
        )


def _cleaned(
    source: Source,
    table: LabelIssues,
    acted: BoolArray,
    mode: str,
    by: str,
    at: str,
    options: Options,
    audit: Mapping[str, Array] | None = None,
) -> Cleaned:
    data = source.data
    after = (
        _reviewed(data, table, acted, audit) if mode == REVIEW else MODES[mode](data, table, acted, options)
    )
    gone = match_rows(after.row_ids, data.row_ids) < 0
    left = np.diff(np.concatenate(([0], np.cumsum(~gone)))[data.indptr])
    emptied = tuple(data.query_ids[(left == 0) & (data.lengths > 0)].tolist())
    return Cleaned(after, data, table, acted, mode, by, at, emptied, options, source, audit or {})


def _reviewed(
    data: RankingData, table: LabelIssues, acted: BoolArray, audit: Mapping[str, Array] | None
) -> RankingData:
    dropped = acted & (table.suggested_label < 0)
    relabelled = acted & ~dropped
    if data.judged is not None:  # what nobody had judged before is judged now
        decided = acted | (audit["action"] == "keep" if audit else False)
        data = replace(data, judged=data.judged | decided)
    return (_relabel(data, table, relabelled, {}) if relabelled.any() else data).drop(dropped)


def _relabel(data: RankingData, table: LabelIssues, acted: BoolArray, options: Options) -> RankingData:
    if data.gains is not None:
        raise invalid("data", "must have grades only to be relabelled", "real-valued gains")
    return data.with_labels(np.where(acted, table.suggested_label, data.y))


def _reweight(data: RankingData, table: LabelIssues, acted: BoolArray, options: Options) -> RankingData:
    old = np.ones(data.n_docs, dtype=np.float32) if data.weights is None else data.weights
    factor = np.where(acted, options.get("weight", table.label_quality), 1.0)
    return replace(data, weights=(old * factor).astype(np.float32))


def _posterior(data: RankingData, table: LabelIssues, acted: BoolArray, options: Options) -> RankingData:
    new, old = _gains(data, table, options)
    return replace(data, gains=np.where(acted, new, old))


def _gains(data: RankingData, table: LabelIssues, options: Options) -> tuple[FloatArray, FloatArray]:
    """Expected gains of all rows, and the gains of their given grades."""
    if data.gains is not None:
        raise invalid("data", "must have grades only to be given expected gains", "real-valued gains")
    expected, of_grade = expected_gains(table.probabilities(), options.get("label_gain"))
    return expected, of_grade[data.y]


MODES: dict[str, Callable[[RankingData, LabelIssues, BoolArray, Options], RankingData]] = {
    "drop": lambda data, table, acted, options: data.drop(acted),
    "relabel": _relabel,
    "reweight": _reweight,
    "posterior": _posterior,
}
WORDS = {
    REVIEW: "changed by review",
    "drop": "dropped",
    "relabel": "relabelled",
    "reweight": "reweighted",
    "posterior": "given expected gains",
}
