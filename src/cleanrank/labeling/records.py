"""What a labelling project is made of: documents, batches of units, events."""

from collections.abc import Mapping
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
