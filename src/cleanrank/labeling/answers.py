"""What stands in a project: the labels that the data came with, and the answers that nobody took back."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from cleanrank.data.project_file import majority as majority_of
from cleanrank.labeling.records import Batch, Document, Event, Unit
from cleanrank.labeling.store import Project
from cleanrank.ragged import from_arrays
from cleanrank.types import RankingData

GRADED = ("grade", "review")  # kinds of batches whose questions are about one document


def given_data(project: Project) -> RankingData | None:
    """The documents with a given label as judged data; row ids are the numbers of the documents.

    Args:
        project: an open project.

    Returns:
        The data, with features where every such document has some; None without given labels.

    >>> import tempfile
    >>> from cleanrank.labeling.store import Document, Scale, create_project
    >>> documents = [Document(0, "q", "a", given_label=1), Document(1, "q", "b")]
    >>> documents.append(Document(2, "q", "c", given_label=0))
    >>> scale = Scale(("not relevant", "relevant"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with create_project(f"{folder}/p.sqlite", documents, name="demo", scale=scale) as project:
    ...         data = given_data(project)
    >>> data.y.tolist(), data.row_ids.tolist()
    ([1, 0], [0, 2])
    """
    labelled = [(each, each.given_label) for each in project.documents() if each.given_label is not None]
    if not labelled:
        return None
    documents, labels = zip(*labelled, strict=True)
    return data_of(documents, labels, feature_names=project.feature_names)


def data_of(
    documents: Sequence[Document],
    labels: Sequence[int],
    *,
    feature_names: tuple[str, ...] = (),
    extra: Any = None,
) -> RankingData:
    """Documents of a project as judged data; row ids are the numbers of the documents.

    Args:
        documents: at least one.
        labels: the grade of each.
        feature_names: of the features, if wanted; the data have them where every document has some.
        extra: further columns.
    """
    features = [each.features for each in documents if feature_names and each.features is not None]
    complete = len(features) == len(documents)
    data = from_arrays(
        np.stack(features) if complete else np.zeros((len(documents), 0)),
        labels,
        qid=[each.query_id for each in documents],
        doc_ids=[each.doc_id for each in documents],
        feature_names=feature_names if complete else None,
        extra=extra,
    )
    return replace(data, row_ids=np.array([each.row for each in documents])[data.row_ids])


def standing(events: Iterable[Event]) -> list[Event]:
    """The answers and skips that were not taken back, in order."""
    listed = list(events)
    undone = {event.undoes for event in listed if event.kind == "undo"}
    return [event for event in listed if event.kind != "undo" and event.id not in undone]


class Graded(NamedTuple):
    """An answer about one document, or a skip (``event.value`` is None)."""

    batch: Batch
    unit: Unit
    row: int
    event: Event


def graded(
    project: Project, *, annotator: str | None = None, batches: Iterable[Batch] | None = None
) -> Iterator[Graded]:
    """The answers and skips that stand in batches of grades and reviews, batch by batch.

    Args:
        project: an open project.
        annotator: of this person alone.
        batches: of these alone; others are passed over.
    """
    for batch in project.batches() if batches is None else batches:
        if batch.kind in GRADED:
            units = project.units(batch.id)
            for event in standing(project.events(batch.id, annotator)):
                unit = units[event.unit]
                yield Graded(batch, unit, unit.rows[int(event.question)], event)


def rows_by_name(data: RankingData) -> dict[tuple[str, str], int]:
    """(query, document) -> row id, of data with names of documents."""
    assert data.doc_ids is not None
    pairs = zip(data.qid.tolist(), data.doc_ids.tolist(), strict=True)
    return dict(zip(pairs, data.row_ids.tolist(), strict=True))


def known_grades(project: Project) -> dict[int, int]:
    """Document -> true grade, of the questions with a known answer (``Unit.about``)."""
    return {
        row: int(unit.about["true_grade"])
        for batch in project.batches()
        for unit in project.units(batch.id)
        for row in unit.rows
        if unit.about.get("is_gold") and unit.about.get("true_grade") is not None
    }


def majority(grades: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Document -> the grade that most people gave it; of a tie the lower one.

    Args:
        grades: (document, grade), one for each judgement.

    >>> majority([(7, 2), (7, 1), (7, 2), (8, 3), (8, 0)])
    {7: 2, 8: 0}
    """
    votes: dict[int, list[int]] = {}
    for document, grade in grades:
        votes.setdefault(document, []).append(grade)
    most = {row: majority_of(given) for row, given in votes.items()}
    return {row: grade for row, grade in most.items() if grade is not None}
