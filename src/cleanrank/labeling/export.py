"""Judgements out of a project: data sets with one grade per document, or everybody's answers.

``letor``, ``qrels`` and ``labels`` have one grade per document (``decisions``); dropped rows and rows without
a decision are left out, and that is said. ``judgements`` has an answer a row, ``preferences`` a pair a row,
``label-studio`` a task per document with everybody's annotations.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from cleanrank.data.files import FRAMES, check_suffix, written_whole
from cleanrank.data.project_file import COLUMNS
from cleanrank.data.spreadsheet import write_frame
from cleanrank.data.tables import write_data
from cleanrank.data.trec import write_qrels
from cleanrank.errors import invalid
from cleanrank.labeling.answers import GRADED, data_of
from cleanrank.labeling.decisions import Opinion, decisions, opinions_by_row, words
from cleanrank.labeling.records import Document
from cleanrank.labeling.store import Project
from cleanrank.labeling.work import Work
from cleanrank.types import RankingData
from cleanrank.validation import check_path, is_integer, one_of

OF_SUFFIX = {".qrels": "qrels", ".json": "label-studio", **dict.fromkeys(FRAMES, "judgements")}
ONE_GRADE = ("letor", "qrels", "labels")
GRADE = "grade"  # the name of the choice in a Label Studio project
Written: TypeAlias = tuple[int, Sequence[str]]  # rows, and notes
Writer: TypeAlias = Callable[[Project, Path, str, str | None], Written]


@dataclass(frozen=True)
class Exported:
    """What was written.

    Attributes:
        path: the file.
        form: one of FORMATS.
        rows: documents, judgements or pairs.
        notes: what was left out or decided, in words.
    """

    path: Path
    form: str
    rows: int
    notes: tuple[str, ...] = ()


def export_judgements(
    project: Project,
    path: str | PathLike[str],
    *,
    form: str | None = None,
    combine: str | None = None,
    annotator: str | None = None,
) -> Exported:
    """Writes the answers of a project, whole or not at all.

    Args:
        project: an open project.
        path: the file.
        form: one of FORMATS; by default qrels for .qrels, label-studio for .json, judgements for .csv, .tsv,
            .xlsx and .parquet, else letor.
        combine: "majority" (unless given) or "median", where several people judged a document; of formats
            with one grade per document.
        annotator: the answers of this person alone.

    Returns:
        What was written.
    """
    target = check_path(path)
    suffix = target.suffix.lower()
    kind = OF_SUFFIX.get(suffix, "letor") if form is None else one_of("format", form, FORMATS)
    writer, suffixes = FORMATS[kind]
    check_suffix(target, suffixes)
    if combine is not None and kind not in ONE_GRADE:
        rule = f"goes with one grade per document: the formats {', '.join(ONE_GRADE)}"
        raise invalid("combine", rule, f"format {kind!r}")
    rows, notes = writer(project, target, combine or "majority", annotator)
    return Exported(target, kind, rows, tuple(notes))


def graded_data(
    project: Project, *, combine: str = "majority", annotator: str | None = None
) -> tuple[RankingData, list[str]]:
    """One grade per document as data with features, texts and row ids; and notes on what was left out.

    Documents that were compared and never graded get levels of preference from 0, the median of those of all
    people whose task is done.

    Args:
        project: an open project.
        combine: "majority" or "median".
        annotator: the answers of this person alone.
    """
    made = decisions(project, combine=combine, annotator=annotator)
    grades = {each.row: int(each.value) for each in made if is_integer(each.value)}
    notes = words(made)
    if not made:
        grades = _levels(project, annotator)
        if grades:
            notes.append("documents were compared, not graded: their grades are levels of preference")
    if not grades:
        raise invalid(
            "project", "must have grades to be written", "none", remedy="Judge some documents first."
        )
    return _data([project.document(row) for row in grades], list(grades.values()), project), notes


def _levels(project: Project, annotator: str | None) -> dict[int, int]:
    levels: dict[int, list[int]] = {}
    for batch in project.batches():
        work = Work.of(project, batch.id)
        for (unit, who), task in work.tasks().items():
            if task.is_done and annotator in (None, who):
                for row, level in zip(work.units[unit].rows, task.grades().tolist(), strict=True):
                    levels.setdefault(row, []).append(level)
    known = {row: sorted(level for level in each if level >= 0) for row, each in sorted(levels.items())}
    return {row: each[(len(each) - 1) // 2] for row, each in known.items() if each}


def _data(documents: Sequence[Document], grades: Sequence[int], project: Project) -> RankingData:
    names = dict.fromkeys(name for each in documents for name in each.fields)
    texts = {name: [each.fields.get(name, "") for each in documents] for name in names}
    queries = [project.query_text(each.query_id) for each in documents]
    if any(queries):
        texts = {"query": queries, **texts}
    clash = {*project.feature_names, "label", "qid", "doc_id"}
    extra = {name: np.array(column, dtype=object) for name, column in texts.items() if name not in clash}
    data = data_of(documents, grades, feature_names=project.feature_names, extra=extra)
    row_ids = {each.row: each.row if each.row_id is None else each.row_id for each in documents}
    return replace(data, row_ids=np.array([row_ids[row] for row in data.row_ids.tolist()]))


def _letor(project: Project, path: Path, combine: str, annotator: str | None) -> Written:
    data, notes = graded_data(project, combine=combine, annotator=annotator)
    if not data.n_features:
        notes.append("the documents have no features")
    write_data(replace(data, extra=None), path)
    return data.n_docs, notes


def _labels(project: Project, path: Path, combine: str, annotator: str | None) -> Written:
    data, notes = graded_data(project, combine=combine, annotator=annotator)
    write_data(data, path)
    return data.n_docs, notes


def _qrels(project: Project, path: Path, combine: str, annotator: str | None) -> Written:
    data, notes = graded_data(project, combine=combine, annotator=annotator)
    pairs = list(zip(data.qid.tolist(), (data.doc_ids if data.doc_ids is not None else ()), strict=True))
    if len(set(pairs)) < len(pairs):
        query, document = next(pair for at, pair in enumerate(pairs) if pair in pairs[:at])
        rule, value = (
            "must hold a document once in a query",
            f"{str(document)!r} twice in query {str(query)!r}",
        )
        raise invalid("qrels", rule, value, remedy="Write another format.")
    write_qrels(data, path)
    return data.n_docs, notes


def judgement_frame(project: Project, annotator: str | None = None) -> Any:
    """Everybody's answers as a pandas frame, one a row; ``import_judgements`` and all commands read it.

    The column answer holds what was said: a grade, or "drop" or "unsure" of a review; grade is blank then.
    """
    import pandas as pd

    names = {batch.id: batch for batch in project.batches()}
    records = []
    for row, said in sorted(opinions_by_row(project, annotator=annotator).items()):
        document = project.document(row)
        for each in said.values():
            batch = names[each.batch]
            grade = each.value if is_integer(each.value) else None
            records.append((document.query_id, document.doc_id, document.row_id, each.annotator, grade,
                            each.seconds, each.at, batch.name, batch.purpose, document.given_label,
                            str(each.value)))  # fmt: skip
    columns = [name for name in COLUMNS if name not in ("gold_grade", "project_row")]
    frame = pd.DataFrame(records, columns=[*columns, "answer"])
    return frame.astype({"row_id": "Int64", "grade": "Int64", "given_label": "Int64", "seconds": "float64"})


def _judgements(project: Project, path: Path, combine: str, annotator: str | None) -> Written:
    frame = judgement_frame(project, annotator)
    if not len(frame):
        if len(preference_frame(project, annotator)):
            got, remedy = "comparisons alone", "Write them with the format preferences, or labels."
        else:
            got, remedy = "none", "Judge some documents first."
        raise invalid("project", "must have grades to be written as judgements", got, remedy=remedy)
    is_sheet = path.suffix.lower() == ".xlsx"  # whose cells know no missing numbers
    write_frame(frame.astype(object).where(frame.notna(), None) if is_sheet else frame, path)
    return len(frame), ()


def preference_frame(project: Project, annotator: str | None = None) -> Any:
    """The pairs that follow from comparisons as a pandas frame: query_id, better, worse, annotator, batch."""
    import pandas as pd

    records = []
    for batch in project.batches():
        if batch.kind in GRADED:
            continue
        work = Work.of(project, batch.id)
        for (unit, who), task in sorted(work.tasks().items()):
            if annotator in (None, who):
                documents = [project.document(row) for row in work.units[unit].rows]
                for better, worse in task.preferences().tolist():
                    pair = documents[better].doc_id, documents[worse].doc_id
                    records.append((documents[0].query_id, *pair, who, batch.name))
    return pd.DataFrame(records, columns=["query_id", "better", "worse", "annotator", "batch"])


def _preferences(project: Project, path: Path, combine: str, annotator: str | None) -> Written:
    frame = preference_frame(project, annotator)
    if not len(frame):
        rule, remedy = "must have compared documents to be written as preferences", "Compare some first."
        raise invalid("project", rule, "none", remedy=remedy)
    write_frame(frame, path)
    return len(frame), ()


def label_studio_tasks(project: Project, annotator: str | None = None) -> list[dict[str, Any]]:
    """All documents as tasks of Label Studio, those that were judged with everybody's annotations."""
    said = opinions_by_row(project, annotator=annotator)
    return [_task(project, each, said.get(each.row, {}).values()) for each in project.documents()]


def _task(project: Project, document: Document, said: Iterable[Opinion]) -> dict[str, Any]:
    data = {"query_id": document.query_id, "doc_id": document.doc_id, "row_id": document.row_id,
            "query": project.query_text(document.query_id), "given_label": document.given_label}  # fmt: skip
    annotations = [
        {
            "completed_by": {"email": each.annotator},
            "created_at": each.at,
            "lead_time": each.seconds,
            "was_cancelled": False,
            "result": [
                {
                    "from_name": GRADE,
                    "to_name": "text",
                    "type": "choices",
                    "value": {"choices": [_choice(project, each.value)]},
                }
            ],
        }
        for each in said
    ]
    shown = {name: text for name, text in document.fields.items() if name not in data}
    return {"id": document.row + 1, "data": {**data, **shown}, "annotations": annotations}


def _choice(project: Project, value: int | str) -> str:
    return f"{value}: {project.scale.descriptions[value]}" if is_integer(value) else str(value)


def _label_studio(project: Project, path: Path, combine: str, annotator: str | None) -> Written:
    tasks = label_studio_tasks(project, annotator)
    with written_whole(path) as part:
        part.write_text(json.dumps(tasks, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    judged = sum(bool(task["annotations"]) for task in tasks)
    return len(tasks), [f"{judged:,} of {len(tasks):,} tasks have annotations"]


FORMATS: dict[str, tuple[Writer, Sequence[str]]] = {
    "letor": (_letor, ("", ".gz", ".bz2", ".xz", ".zst")),
    "qrels": (_qrels, ("",)),
    "labels": (_labels, (".csv", ".tsv", ".parquet", ".pq")),
    "judgements": (_judgements, FRAMES),
    "preferences": (_preferences, FRAMES),
    "label-studio": (_label_studio, (".json",)),
}
