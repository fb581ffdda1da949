"""What a labelling project is made of: documents, batches of units, events."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cleanrank.errors import invalid
from cleanrank.types import FloatArray

KINDS = ("grade", "pairs", "top-k", "active", "review")
PURPOSES = ("label", "gold", "evaluation", "repair")
EVENTS = ("answer", "skip", "undo")
LONGEST_NAME = 64


@dataclass(frozen=True, eq=False)
class Document:
    """A document of a query, as it is shown.

    Attributes:
        row: its number in the project.
        query_id: its query.
        doc_id: its name.
        row_id: the row of the data that it came from.
        given_label: the grade that it had there.
        fields: what there is to read: title, text, url or others.
        features: numbers, named by the project's ``feature_names``.
    """

    row: int
    query_id: str
    doc_id: str
    row_id: int | None = None
    given_label: int | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    features: FloatArray | None = None


@dataclass(frozen=True)
class Scale:
    """The grades 0, 1, ... with their descriptions."""

    descriptions: tuple[str, ...]

    @property
    def n_grades(self) -> int:
        """How many grades there are."""
        return len(self.descriptions)


@dataclass(frozen=True)
class Unit:
    """Documents of one query, in the order shown, that one annotator judges together.

    Attributes:
        position: its place in the batch.
        rows: the documents.
        about: why it is there: doubt, reasons, suggested_label, the probability of being drawn; is_gold and
            true_grade of a question with a known answer, which everybody is asked; answered_in, the batch
            in which it was answered before.
    """

    position: int
    rows: tuple[int, ...]
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Batch:
    """Units that are asked in one way, for one purpose.

    Attributes:
        id: its number in the project.
        name: for people.
        kind: one of KINDS: how it is asked.
        purpose: one of PURPOSES: what the answers are for.
        settings: of the task, such as k.
        annotators_per_unit: by how many people each unit is judged.
        blind: whether the given grade is hidden.
    """

    id: int
    name: str
    kind: str
    purpose: str
    settings: Mapping[str, Any]
    annotators_per_unit: int
    blind: bool


@dataclass(frozen=True)
class Event:
    """Something that an annotator did.

    Attributes:
        id: the order of all events.
        at: when, ISO 8601, UTC.
        annotator: who.
        batch: in which batch.
        unit: the position of the unit.
        kind: one of EVENTS.
        question: its key, such as "3" or "3,7": positions of documents in the unit.
        value: the answer; None of a skip or undo.
        seconds: how long it took, where that is known.
        request: made by the client; what comes twice with the same request is stored once.
        undoes: the event that an undo takes back.
    """

    id: int
    at: str
    annotator: str
    batch: int
    unit: int
    kind: str
    question: str
    value: int | str | None
    seconds: float | None
    request: str
    undoes: int | None = None


@dataclass(frozen=True)
class Annotator:
    """Somebody who was invited or has answered; ``n_answers`` counts what stands, without skips."""

    name: str
    has_token: bool
    n_answers: int


def checked_units(
    units: Iterable[Sequence[int] | tuple[Sequence[int], Mapping[str, Any]]],
    query_of: Mapping[int, str],
    kind: str,
) -> list[Unit]:
    """The units of a batch; raises unless each has different documents of one query.

    Args:
        units: the rows of each unit, or (rows, about).
        query_of: document -> its query.
        kind: of the batch.
    """
    checked = []
    for position, unit in enumerate(units):
        rows, about = _rows_and_about(unit)
        at = f"unit {position}"
        unknown = next((row for row in rows if row not in query_of), None)
        if unknown is not None:
            raise invalid("rows of a unit", "must be documents of the project", unknown, at=at)
        if not rows or len(set(rows)) < len(rows) or len({query_of[row] for row in rows}) > 1:
            rule = "must be different documents of one query"
            raise invalid("rows of a unit", rule, list(rows)[:10], at=at)
        if kind == "review" and len(rows) > 1:
            raise invalid("units of a review", "must have one row each", len(rows), at=at)
        checked.append(Unit(position, rows, about))
    if not checked:
        raise invalid("units", "must be at least one", "none")
    return checked


def _rows_and_about(unit: Any) -> tuple[tuple[int, ...], Mapping[str, Any]]:
    rows, about = unit if len(unit) == 2 and isinstance(unit[1], Mapping) else (unit, {})
    return tuple(int(row) for row in rows), about


def check_annotator(name: Any) -> str:
    """Returns the name of an annotator; raises where it could not be shown or would be mistaken."""
    if (
        not isinstance(name, str)
        or name != name.strip()
        or not name.isprintable()
        or not 0 < len(name) <= LONGEST_NAME
    ):
        rule = f"must be a name of 1 to {LONGEST_NAME} printable characters without blanks around it"
        raise invalid("annotator", rule, repr(name)[:80])
    return str(name)
