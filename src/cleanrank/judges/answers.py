"""What several judges answered on the same pairs, each on a scale of its own if need be."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cleanrank.data.sheets import frame_sheet, read_sheet_file
from cleanrank.errors import invalid
from cleanrank.judges.labels import Labels, as_labels
from cleanrank.noise.judgement_table import JudgedItems
from cleanrank.types import Array, FloatArray, IntArray
from cleanrank.validation import is_frame, one_of

COLUMNS = {"qid": "query", "docid": "doc", "judge": "annotator", "grade": "grade"}
NEVER = 10  # expected answers above a judge's highest from which on its scale is another one


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers of judges, one a row.

    Attributes:
        judges: names, in order.
        qid: (N,) query ids of the pairs, ascending.
        docid: (N,) document ids of the pairs.
        query: (N,) the place of every pair's query among the queries.
        pair: (M,) the pair of every answer.
        judge: (M,) the judge of every answer.
        value: (M,) the answer, a number >= 0.
    """

    judges: tuple[str, ...]
    qid: Array
    docid: Array
    query: IntArray
    pair: IntArray
    judge: IntArray
    value: FloatArray

    @property
    def table(self) -> FloatArray:
        """(N, A), NaN where a judge gave no answer."""
        answers = np.full((len(self.qid), len(self.judges)), np.nan)
        answers[self.pair, self.judge] = self.value
        return answers

    @property
    def tops(self) -> FloatArray:
        """(A,) the highest answer of every judge."""
        tops = np.zeros(len(self.judges))
        np.maximum.at(tops, self.judge, self.value)
        return tops

    @property
    def odd(self) -> str:
        """A judge who answers on another scale than the others, in words; empty where there is none.

        An answer that is no whole number, or no answer above some grade where at least NEVER were to be
        expected from what all judges answer. People who saw few pairs may never give a grade: judges with
        fewer than half of the pairs count where a quarter of all answers come from such.
        """
        broken = self.value != np.floor(self.value)
        if broken.any():
            at = int(np.argmax(broken))
            return f"{self.judges[self.judge[at]]!r} answered {self.value[at]:g}"
        tops, count = self.tops, np.bincount(self.judge, minlength=len(self.judges))
        above = 1 - np.searchsorted(np.sort(self.value), tops, side="right") / len(self.value)
        lower = count * above >= NEVER
        if count[lower].sum() < len(self.value) / 4:
            lower &= count >= len(self.qid) / 2
        if not lower.any():
            return ""
        at = int(np.argmax(lower))
        return f"{self.judges[at]!r} answers 0 to {tops[at]:g}, others to {tops.max():g}"

    def places(self, labels: Labels) -> IntArray:
        """The pair of every label, -1 where no judge answered."""
        place = {pair: i for i, pair in enumerate(zip(self.qid.tolist(), self.docid.tolist(), strict=True))}
        pairs = zip(labels.qid.tolist(), labels.docid.tolist(), strict=True)
        return np.array([place.get(pair, -1) for pair in pairs], dtype=np.int64)


def read_answers(source: Any, mapping: Mapping[Any, Any] | None = None) -> Answers:
    """Answers from whatever a caller has.

    Args:
        source: a frame or a file (CSV, .xlsx, .parquet) with the columns qid, docid, judge and grade, a
            mapping from judges to labels as ``as_labels`` takes them, or JudgedItems.
        mapping: grade of every value of the scale, for all judges, or by judge: {judge: {value: grade}}.

    >>> read_answers({"a": {"q1": {"d1": 1}}, "b": {"q1": {"d1": 0.5, "d2": 2}}}).value.tolist()
    [1.0, 0.5, 2.0]
    """
    by_judge = _by_judge(source)
    if len(by_judge) < 2:
        raise invalid("judgements", "must hold the answers of two or more judges", len(by_judge))
    own = mapping is not None and any(isinstance(each, Mapping) for each in mapping.values())
    for name in mapping or () if own else ():
        one_of("judge of a mapping", str(name), by_judge)
    labels = []
    for name in sorted(by_judge):
        scale = (mapping or {}).get(name) if own else mapping
        labels.append(as_labels(by_judge[name], f"judge {name!r}", scale, whole=False))
    queries, query = np.unique(np.concatenate([each.qid for each in labels]), return_inverse=True)
    documents, document = np.unique(np.concatenate([each.docid for each in labels]), return_inverse=True)
    keys, pair = np.unique(query * len(documents) + document, return_inverse=True)
    of_pair, docid = np.divmod(keys, len(documents))
    return Answers(
        tuple(sorted(by_judge)),
        queries[of_pair],
        documents[docid],
        of_pair,
        pair,
        np.repeat(np.arange(len(labels)), [len(each) for each in labels]),
        np.concatenate([each.grade for each in labels]).astype(np.float64),
    )


def item_labels(source: str | os.PathLike[str]) -> Labels:
    """Gold labels of items that have one name, from a table with the columns item and grade."""
    sheet = read_sheet_file(source)
    headings = sheet.headings(("item", "true grade"))
    if len(headings) < 2:
        rule = "must have the columns item and grade, as the judgements have items"
        raise invalid(str(source), rule, ", ".join(sheet.values) or "none")
    items = sheet.values[headings["item"]]
    return as_labels({"qid": items, "docid": items, "grade": sheet.values[headings["true grade"]]}, "gold")


def with_true_grades(judged: JudgedItems, gold: Labels) -> JudgedItems:
    """Judgements whose items have the true grades of gold labels, besides those they had already."""
    grades = dict(
        zip(zip(gold.qid.tolist(), gold.docid.tolist(), strict=True), gold.grade.tolist(), strict=True)
    )
    names = list(judged.keys.values())
    items = zip(names[0].tolist(), names[-1].tolist(), strict=True)
    truth = np.array([grades.get(item, -1) for item in items], dtype=np.int64)
    return replace(judged, truth=truth if judged.truth is None else np.where(truth >= 0, truth, judged.truth))


def _columns_of(judged: JudgedItems) -> dict[str, Any]:
    """The columns of judgements whose items have a query and a document, or one name for both."""
    table, names = judged.judgements, list(judged.keys.values())
    # Items of a table are numbered in the order of their names' appearance.
    return {
        "qid": names[0][table.items[table.item]],
        "docid": names[-1][table.items[table.item]],
        "judge": table.annotators[table.annotator],
        "grade": table.grade + judged.lowest,
    }


def _by_judge(source: Any) -> dict[str, Any]:
    if isinstance(source, JudgedItems):
        source = _columns_of(source)
    is_file = isinstance(source, str | os.PathLike)
    columns = isinstance(source, Mapping) and "grade" in source and "qid" in source
    if isinstance(source, Mapping) and not columns:
        return {str(name): each for name, each in source.items()}
    if not (is_file or columns or is_frame(source)):
        rule = "must be a path, a frame (qid, docid, judge, grade) or a mapping from judges to labels"
        raise invalid("judgements", rule, f"a {type(source).__name__}")
    sheet = read_sheet_file(source) if is_file else frame_sheet(source, "judgements")
    headings = {name: name if name in sheet.values else sheet.heading(role) for name, role in COLUMNS.items()}
    missing = [name for name, heading in headings.items() if heading is None]
    if missing:
        listed = f"{', '.join(sheet.values) or 'none'} (no {', '.join(missing)})"
        raise invalid(sheet.name, f"must have the columns {', '.join(COLUMNS)}", listed)
    cells = {name: np.array(sheet.values[str(heading)], dtype=object) for name, heading in headings.items()}
    if not len(cells["judge"]):
        raise invalid(sheet.name, "must hold at least one answer", "none")
    names, judge = np.unique(np.array(sheet.texts(str(headings["judge"]))), return_inverse=True)
    if "" in names:
        at = f"{sheet.unit} {sheet.lines[int(np.argmax(judge == 0))]}"
        raise invalid("judges", "must have names", "a blank", at=at)
    order = np.argsort(judge, kind="stable")
    ends = np.cumsum(np.bincount(judge, minlength=len(names)))[:-1]
    return {
        str(name): {column: cells[column][rows].tolist() for column in ("qid", "docid", "grade")}
        for name, rows in zip(names, np.split(order, ends), strict=True)
    }
