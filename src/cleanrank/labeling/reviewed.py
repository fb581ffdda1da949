"""Reviewed labels back in the data: what people kept, changed and dropped, with who, when and from what."""

import tempfile
from os import PathLike
from typing import Any

import numpy as np

from cleanrank.cleaning import Cleaned, apply_review
from cleanrank.data.files import existing_file
from cleanrank.data.inputs import Source
from cleanrank.data.project_file import is_project
from cleanrank.errors import invalid
from cleanrank.issues.table import LabelIssues
from cleanrank.labeling.decisions import Decision, decisions
from cleanrank.labeling.imports import import_judgements
from cleanrank.labeling.projects import make_project
from cleanrank.labeling.shown import answer_words
from cleanrank.labeling.store import Project, open_project
from cleanrank.labeling.work import DROP
from cleanrank.ragged import match_rows
from cleanrank.types import RankingData

KEEP, RELABEL, NO_DECISION = "keep", "relabel", "unsure"
MOST_GRADES = 20  # of a sheet without a scale


def clean_reviewed(
    data: Any,
    review: str | PathLike[str] | Project,
    *,
    combine: str = "majority",
    annotator: str | None = None,
    label: str | None = None,
    qid: Any = None,
) -> Cleaned:
    """The data with the labels that people decided on.

    Args:
        data: what the project was made from: a RankingData, or a frame with the columns ``label`` and
            ``qid``.
        review: a project, or a sheet of judgements as ``export_judgements`` writes it. All grades and reviews
            count, whatever they were asked for.
        combine: how several opinions become one, see ``decisions``; who is unsure has no vote.
        annotator: the opinions of this person alone.
        label: with a frame, its column of grades; "label" when not given.
        qid: with a frame, its column of query ids; "qid" when not given.

    Returns:
        A Cleaned: the data, the audit trail (from which label to which, by whom, when), ``undo``.
    """
    source = Source.of(data, label=label, qid=qid)
    settings: dict[str, Any] = {"combine": combine, "annotator": annotator}
    if isinstance(review, Project):
        return _cleaned(source, review, settings)
    file = existing_file(review)
    if is_project(file):
        with open_project(file) as project:
            return _cleaned(source, project, settings)
    with tempfile.TemporaryDirectory() as folder:
        path, grades = f"{folder}/sheet.sqlite", max(MOST_GRADES, source.data.n_grades)
        with make_project(path, source.data, name="sheet", scale=[f"{g}" for g in range(grades)]) as project:
            import_judgements(project, file, annotator=annotator)
            return _cleaned(source, project, {**settings, "annotator": None})


def _cleaned(source: Source, project: Project, settings: dict[str, Any]) -> Cleaned:
    data = source.data
    made = decisions(project, **settings)
    if not made:
        raise invalid("a review", "must have answers", "none", remedy="Review some labels first.")
    places = _places(project, data, made)
    new, doubt = data.y.astype(np.int64), np.zeros(data.n_docs)
    audit = {name: np.full(data.n_docs, "", dtype=object) for name in ("action", "by", "at", "why")}
    for place, each in zip(places, made, strict=True):
        grade = new[place] if each.value is None else -1 if each.value == DROP else int(each.value)
        action = NO_DECISION if each.value is None else _action(grade, int(new[place]))
        for name, text in zip(audit, (action, *_trail(each, project)), strict=True):
            audit[name][place] = text
        new[place] = grade
        doubt[place] = max((opinion.doubt or 0.0 for opinion in each.opinions), default=0.0)
    changed = new != data.y
    table = LabelIssues(data.row_ids, data.qid, data.y, doubt, changed, new)
    counts = {action: int((audit["action"] == action).sum()) for action in (KEEP, RELABEL, DROP, NO_DECISION)}
    options = {**settings, "reviewed": len(made), **counts, "ties": sum(each.is_tie for each in made)}
    people = sorted({opinion.annotator for each in made for opinion in each.opinions})
    last = max(opinion.at for each in made for opinion in each.opinions)
    return apply_review(source, table, audit=audit, by=", ".join(people), at=last, options=options)


def _action(grade: int, given: int) -> str:
    return DROP if grade < 0 else KEEP if grade == given else RELABEL


def _trail(each: Decision, project: Project) -> tuple[str, str, str]:
    """By whom, when last, and what everybody said."""
    who = ", ".join(opinion.annotator for opinion in each.opinions)
    given = project.document(each.row).given_label
    words = [f"{o.annotator}: {answer_words(o.value, project.scale, given)}" for o in each.opinions]
    return (
        who,
        max(opinion.at for opinion in each.opinions),
        "; ".join(words) + ("; a tie" if each.is_tie else ""),
    )


def _places(project: Project, data: RankingData, made: list[Decision]) -> list[int]:
    """The rows of the data that decisions are about; the data must be those of the project."""
    documents = [project.document(each.row) for each in made]
    rows = [each.row if each.row_id is None else each.row_id for each in documents]
    places: list[int] = match_rows(data.row_ids, rows).tolist()
    queries = data.qid
    for place, document, row in zip(places, documents, rows, strict=True):
        own = None if place < 0 else (str(queries[place]), int(data.y[place]))
        label = document.given_label if document.given_label is not None or own is None else own[1]
        if own != (document.query_id, label):
            rule = "must be the data that the project was made from"
            there = "no such row" if own is None else f"query {own[0]!r} and label {own[1]}"
            value = f"{there} for query {document.query_id!r} and label {label}"
            raise invalid("data", rule, value, at=f"row {row}")
    return places
