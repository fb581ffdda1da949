"""Tasks of Label Studio with the annotations of several people (its JSON export).

A task's ``data`` name the query and the document under any usual heading (query_id, query, doc_id, url, ...);
a query that is named by its words has them as its text too. An annotation says a choice ("2", or
"2: relevant"), a rating or a number.
"""

from collections.abc import Iterator
from typing import Any

from cleanrank.data.json_files import Node
from cleanrank.data.relevance_tools.opinions import QUERY_TEXT, Opinions, written_rating, written_rows
from cleanrank.data.sheets import Sheet, frame_sheet, whole_numbers
from cleanrank.data.texts import query_heading
from cleanrank.errors import BadFileError
from cleanrank.types import RankingData

GRADE = "grade"  # the name of the choice among several results


def is_tasks(document: Node) -> bool:
    """Whether a document looks like a list of tasks."""
    tasks = document.value
    return isinstance(tasks, list) and bool(tasks) and all(_is_task(each) for each in tasks[:10])


def _is_task(task: Any) -> bool:
    return isinstance(task, dict) and any(name in task for name in ("annotations", "completions"))


def task_opinions(document: Node) -> Opinions:
    """The grades of all annotations; skipped tasks count for nothing."""
    opinions = Opinions()
    for task in document.entries():
        sheet, holder = task_sheet(task), _holder(task)
        headings = sheet.headings(("query", "doc"))
        if len(headings) < 2:
            listed = ", ".join(sheet.values) or "none"
            raise holder.bad("must name a query and a document", listed, "As in query_id and doc_id.")
        query, doc = (holder.child(headings[role]) for role in ("query", "doc"))
        opinions.add_pair(query.text(), doc.text(), _texts(sheet, headings))
        for each in annotations(task):
            rating = value_of(each)
            if rating is not None:
                _check_grade(rating)
                opinions.add(query, doc, rating, person_of(each))
    return opinions


def _check_grade(rating: Node) -> None:
    """Raises where a choice is a word alone."""
    try:
        rating.number()
    except BadFileError:
        value, remedy = repr(rating.value), "As in 2, or 2: relevant."
        raise rating.bad("must be a number or begin with one", value, remedy) from None


def task_sheet(task: Node) -> Sheet:
    """What a task is about, as a sheet of one row; its members where it has no ``data``."""
    return frame_sheet({name: [each.value] for name, each in _holder(task).members()}, "task")


def _holder(task: Node) -> Node:
    data = task.find("data")
    return data if isinstance(data.value, dict) else task


def _texts(sheet: Sheet, headings: dict[str, str]) -> dict[str, Any]:
    shown = {name: cells[0] for name, cells in sheet.values.items() if name not in headings.values()}
    texts = {name: text for name, text in shown.items() if isinstance(text, str) and name != "label"}
    if headings["query"] == query_heading(sheet):
        texts[QUERY_TEXT] = sheet.texts(headings["query"])[0]
    return texts


def annotations(task: Node) -> Iterator[Node]:
    """The annotations of a task that were not skipped."""
    given = task.find("annotations") if task.find("annotations").value else task.find("completions")
    for each in given.entries() if given.value else ():
        if each.find("was_cancelled").value is not True:
            yield each


def person_of(annotation: Node) -> str:
    """Who gave an annotation: an e-mail address, a name or a number; "" where that is not said."""
    by = annotation.find("completed_by")
    if isinstance(by.value, dict):
        names = (by.find(name).value for name in ("email", "username", "first_name", "id"))
        return str(next((name for name in names if name), ""))
    return "" if by.value is None else by.text()


def value_of(annotation: Node) -> Node | None:
    """The grade that an annotation says, as a node; None where it says none."""
    results = annotation.find("result")
    parts = (
        [each for each in results.entries() if isinstance(each.find("value").value, dict)]
        if results.value
        else []
    )
    named = [each for each in parts if each.find("from_name").value == GRADE] or parts
    for each in named:
        value = each.child("value")
        if value.find("choices").value:
            choice = next(value.child("choices").entries())
            number = whole_numbers([choice.text().partition(":")[0].strip()])[0]
            return choice if number is None else Node(number, choice.file, choice.place)
        said = next((value.child(name) for name in ("rating", "number") if name in value), None)
        if said is not None:
            return said
    return None


def tasks_of(data: RankingData) -> list[dict[str, Any]]:
    """A task for every row, with one annotation by nobody in particular where it is judged."""
    made: list[dict[str, Any]] = []
    for query, rows in written_rows(data):
        for row, doc in rows:
            shown = {name: column[row] for name, column in (data.extra or {}).items()}
            texts = {name: value for name, value in shown.items() if isinstance(value, str)}
            rating = written_rating(data, row)
            result = {"from_name": GRADE, "to_name": "text", "type": "number", "value": {"number": rating}}
            said = [] if rating is None else [{"was_cancelled": False, "result": [result]}]
            ids = {"query_id": query, "doc_id": doc}
            made.append({"id": len(made) + 1, "data": {**texts, **ids}, "annotations": said})
    return made
