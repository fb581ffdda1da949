"""Judgements that exist already, as answers of named people in a project: all of them or none."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from os import PathLike
from typing import Any

from cleanrank.data.files import existing_file
from cleanrank.data.json_files import Node, read_json
from cleanrank.data.relevance_tools.label_studio import annotations, person_of, task_sheet, value_of
from cleanrank.data.relevance_tools.tools import TOOLS
from cleanrank.data.scores import is_qrels
from cleanrank.data.sheets import Sheet, frame_sheet, read_sheet_file, whole_numbers
from cleanrank.data.trec import read_qrels
from cleanrank.errors import error_text, invalid
from cleanrank.labeling.decisions import check_grade
from cleanrank.labeling.records import Batch, Document, check_annotator
from cleanrank.labeling.store import Project
from cleanrank.labeling.work import DROP, UNSURE
from cleanrank.types import RankingData
from cleanrank.validation import one_of

PURPOSES = ("label", "gold")


@dataclass(frozen=True)
class Said:
    """A judgement from elsewhere, with the place where it stands."""

    place: str
    row: str
    query: str
    doc: str
    annotator: str
    value: int | str
    at: str | None = None
    seconds: float | None = None


def import_judgements(
    project: Project,
    source: Any,
    *,
    annotator: str | None = None,
    name: str | None = None,
    purpose: str = "label",
) -> Batch:
    """Stores judgements that exist already as answers; what does not fit is refused, and nothing stored then.

    Args:
        project: an open project.
        source: TREC qrels (file or what ``read_qrels`` gives); a sheet (.csv, .tsv, .xlsx, .parquet, frame or
            another project) with row_id, or query_id and doc_id, and grade, and where known annotator,
            seconds and at; or JSON of Label Studio (tasks with annotations), OpenSearch, Quepid or RRE.
        annotator: whose they are, where the source does not say.
        name: of the batch, for people.
        purpose: "label"; "gold" for a random sample among the rows of each given label.

    Returns:
        A batch with all documents that were judged, each with the answers of everybody; nobody is asked.
    """
    one_of("purpose of an import", purpose, PURPOSES)
    said = list(_read(source, annotator, project.scale.descriptions))
    rows = _rows(project, said)
    seen: dict[tuple[int, str], str] = {}
    for each, row in zip(said, rows, strict=True):
        check_annotator(each.annotator)
        check_grade(each.value, project.scale.n_grades, each.place)
        if seen.setdefault((row, each.annotator), each.place) != each.place:
            rule = "must have one judgement of each document"
            value = f"a second one after {seen[row, each.annotator]}"
            raise invalid(f"annotator {each.annotator!r}", rule, value, at=each.place, remedy="Keep one.")
    if not said:
        raise invalid("judgements", "must be at least one", "none")
    reviewed = any(each.value in (DROP, UNSURE) for each in said)
    position = {row: at for at, row in enumerate(dict.fromkeys(rows))}
    with project.writing():
        batch = project.add_batch(
            [[row] for row in position],
            name=name or "Judgements from elsewhere",
            kind="review" if reviewed else "grade",
            purpose="repair" if reviewed and purpose == "label" else purpose,
        )
        for number, (each, row) in enumerate(zip(said, rows, strict=True)):
            project.append(
                annotator=each.annotator,
                batch=batch.id,
                unit=position[row],
                kind="answer",
                question="0",
                value=each.value,
                seconds=each.seconds,
                request=f"import {batch.id} {number}",
                at=each.at,
            )
    return batch


def _rows(project: Project, said: Sequence[Said]) -> list[int]:
    """The documents of the project that judgements speak of."""
    documents = project.documents()
    by_row = {str(doc.row if doc.row_id is None else doc.row_id): doc for doc in documents}
    by_pair: dict[tuple[str, str], list[Document]] = {}
    for doc in documents:
        by_pair.setdefault((doc.query_id, doc.doc_id), []).append(doc)
    rows = []
    for each in said:
        found = by_pair.get((each.query, each.doc), [])
        named = by_row.get(each.row)
        if each.row and named is not None and (not each.query or each.query == named.query_id):
            rows.append(named.row)
        elif not each.row and len(found) == 1:
            rows.append(found[0].row)
        else:
            what = f"row {each.row!r}, " if each.row else ""
            rule = "must be one of the project" if len(found) < 2 else "must be in its query once"
            value = f"{what}query {each.query!r}, document {each.doc!r}"
            remedy = "Was the project made from these data?"
            raise invalid("a judged document", rule, value, at=each.place, remedy=remedy)
    return rows


def _read(source: Any, annotator: str | None, scale: Sequence[str]) -> Iterator[Said]:
    if isinstance(source, RankingData):
        return _of_qrels(source, annotator)
    if not isinstance(source, str | PathLike):
        return _of_sheet(frame_sheet(source, "judgements"), annotator)
    file = existing_file(source)
    if file.suffix.lower() == ".json":
        document = read_json(file)
        if any(tool.matches(document) for name, tool in TOOLS.items() if name != "label-studio"):
            return _of_sheet(read_sheet_file(file), annotator)
        return _of_tasks(document, annotator, scale)
    if is_qrels(file):
        return _of_qrels(read_qrels(file), annotator)
    return _of_sheet(read_sheet_file(file), annotator)


def _named(annotator: str | None) -> str:
    if annotator is None:
        remedy = "Say whose they are: annotator= (--annotator)."
        raise invalid("judgements", "must name who gave them", "no annotator", remedy=remedy)
    return annotator


def _of_qrels(qrels: RankingData, annotator: str | None) -> Iterator[Said]:
    if qrels.doc_ids is None:
        raise invalid("judgements", "must have document ids", "none")
    known = qrels if qrels.judged is None else qrels.select(qrels.judged)
    assert known.doc_ids is not None
    columns = zip(known.qid.tolist(), known.doc_ids.tolist(), known.y.tolist(), strict=True)
    for number, (query, doc, grade) in enumerate(columns, start=1):
        yield Said(f"judgement {number}", "", str(query), str(doc), _named(annotator), grade)


def _of_sheet(sheet: Sheet, annotator: str | None) -> Iterator[Said]:
    headings = sheet.headings(("row", "query", "doc", "annotator", "true grade", "seconds", "at"))
    answers = next((name for name in sheet.values if name.casefold() == "answer"), None)
    grades = answers or (sheet.heading("grade") if "annotator" in headings else headings.get("true grade"))
    if grades is None or not ("row" in headings or {"query", "doc"} <= headings.keys()):
        rule = "must have the columns grade, and row_id or query_id and doc_id"
        raise sheet.bad(error_text(sheet.name, rule, ", ".join(sheet.values) or "none"))
    empty = [""] * len(sheet)
    roles = ("row", "query", "doc", "annotator", "seconds", "at")
    columns = [sheet.texts(headings[role]) if role in headings else empty for role in roles]
    texts = sheet.texts(grades)
    rows = whole_numbers(columns[0])
    for line, text, number, row, cells in zip(
        sheet.lines, texts, whole_numbers(texts), rows, zip(*columns, strict=True), strict=True
    ):
        if text:
            place = f"{sheet.unit} {line}"
            own_row = cells[0] if row is None else str(row)
            _, query, doc, who, seconds, at = cells
            value = text if number is None else number
            said = Said(place, own_row, query, doc, who or _named(annotator), value)
            yield replace(said, at=_moment(at, place), seconds=_seconds(seconds, place))


def _of_tasks(document: Node, annotator: str | None, scale: Sequence[str]) -> Iterator[Said]:
    if not isinstance(document.value, list) or not all(isinstance(each, dict) for each in document.value):
        rule = "must be a list of tasks, as Label Studio exports them (JSON)"
        raise document.bad(rule, type(document.value).__name__)
    for number, task in enumerate(document.entries(), start=1):
        place = f"task {task.value.get('id', number)}"
        sheet = task_sheet(task)
        headings = sheet.headings(("row", "query", "doc"))
        row, query, doc = (
            sheet.texts(headings[role])[0] if role in headings else "" for role in ("row", "query", "doc")
        )
        for each in annotations(task):
            value = value_of(each)
            if value is not None:
                said = each.value
                who = person_of(each) or _named(annotator)
                at, seconds = _moment(said.get("created_at"), place), _seconds(said.get("lead_time"), place)
                yield Said(place, row, query, doc, who, _grade(value, scale), at, seconds)


def _grade(node: Node, scale: Sequence[str]) -> int | str:
    """What an annotation says as a grade: its number, or the place of its description; else the word."""
    text = str(node.value).strip()
    number = whole_numbers([text])[0]
    return number if number is not None else scale.index(text) if text in scale else text


def _moment(text: Any, place: str) -> str | None:
    """A time as the store has it, ISO 8601 in UTC; None where there is none."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        rule = "must be ISO 8601, as in 2026-01-31T12:00:00Z"
        raise invalid("the time of a judgement", rule, repr(text), at=place) from None
    known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return known.astimezone(UTC).isoformat(timespec="milliseconds")


def _seconds(value: Any, place: str) -> float | None:
    if value is None or value == "":
        return None
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise invalid("the seconds of a judgement", "must be a number from 0", repr(value), at=place)
    return seconds
