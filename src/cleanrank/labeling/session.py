"""Who is asked what next: one annotator's work on a batch, for the browser and the terminal alike."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cleanrank.errors import BadFileError, InvalidInputError, invalid
from cleanrank.labeling.questions import Question, Task
from cleanrank.labeling.records import Document, Event, Unit, check_annotator
from cleanrank.labeling.store import Project
from cleanrank.labeling.work import WORDS, Work


@dataclass(frozen=True, eq=False)
class Asked:
    """The open question of an annotator.

    Attributes:
        unit: what it belongs to.
        question: its ``key`` goes back with the answer.
        documents: those of the question, in the order shown.
        query_id: the query.
        query_text: its text; empty where the data have none.
        n_answered: how many answers and skips of the annotator in this batch stand.
        n_expected: these, and those expected to come if nobody else answers.
        values: what may be answered.
    """

    unit: Unit
    question: Question
    documents: tuple[Document, ...]
    query_id: str
    query_text: str
    n_answered: int
    n_expected: float
    values: tuple[int | str, ...]


class Session:
    """One annotator's work on a batch; cheap to make, all it knows is in the project.

    >>> import tempfile
    >>> from cleanrank.labeling.records import Document, Scale
    >>> from cleanrank.labeling.store import create_project
    >>> documents = [Document(i, "q", f"d{i}") for i in range(3)]
    >>> folder = tempfile.TemporaryDirectory()
    >>> project = create_project(
    ...     f"{folder.name}/p.sqlite", documents, name="demo", scale=Scale(("bad", "good"))
    ... )
    >>> batch = project.add_batch([[0, 1, 2]], name="all", kind="grade")
    >>> session = Session(project, batch.id, "ann")
    >>> event = session.answer(1, unit=0, question=session.asked().question.key, request="first")
    >>> session.asked().question.key, session.undo("second").undoes == event.id, session.asked().question.key
    ('1', True, '0')
    >>> project.close(); folder.cleanup()
    """

    def __init__(self, project: Project, batch_id: int, annotator: str) -> None:
        self.project = project
        self.batch = project.batch(batch_id)
        self.annotator = check_annotator(annotator)

    def asked(self, *, claim: bool = True) -> Asked | None:
        """The open question; None when there is none for this annotator.

        Args:
            claim: keep the unit for the annotator, so that others get others; False only looks.
        """
        with self.project.lock:
            work = Work.of(self.project, self.batch.id)
            unit = work.current_unit(self.annotator)
            if unit is None:
                unit = work.next_unit(self.annotator)
            if claim and unit is not None and not work.is_held(unit, self.annotator):
                with self._changing() as work:
                    unit = self._claimed(work)
            return None if unit is None else self._asked(work, work.units[unit])

    def answer(
        self, value: int | str, *, unit: int, question: str, seconds: float | None = None, request: str
    ) -> Event:
        """Stores an answer to the open question; any other is refused.

        Args:
            value: a grade; of pairs 1 (first), 2 (second) or 0 (equally good); of a review a grade (the given
                one to keep it), "drop" or "unsure".
            unit: the position of the unit that was asked about.
            question: the key of the question.
            seconds: how long it took.
            request: made anew for every answer; the same one again is stored once.

        Returns:
            The event, which is on the disk.
        """
        return self._store("answer", value, unit, question, seconds, request)

    def skip(self, *, unit: int, question: str, seconds: float | None = None, request: str) -> Event:
        """Stores that the open question was passed over; arguments as of ``answer``."""
        return self._store("skip", None, unit, question, seconds, request)

    def history(self) -> tuple[Event, ...]:
        """The answers and skips of the annotator in the batch that stand, in order."""
        with self.project.lock:
            return Work.of(self.project, self.batch.id).history(self.annotator)

    def undo(self, request: str) -> Event:
        """Takes the last answer or skip back; its question is open again."""
        with self._changing() as work:
            earlier = self.project.event_of(self.annotator, request)
            if earlier is not None and earlier.kind == "undo" and earlier.batch == self.batch.id:
                return earlier
            history = work.history(self.annotator)
            if not history:
                raise invalid("undo", "needs an answer to take back", "none so far")
            last = history[-1]
            return self.project.append(
                annotator=self.annotator,
                batch=self.batch.id,
                unit=last.unit,
                kind="undo",
                question=last.question,
                request=request,
                undoes=last.id,
            )

    def _store(
        self, kind: str, value: Any, unit: int, question: str, seconds: float | None, request: str
    ) -> Event:
        with self._changing() as work:
            if self.project.event_of(self.annotator, request) is None:
                self._check(work, kind, value, unit, question)
            event = self.project.append(
                annotator=self.annotator,
                batch=self.batch.id,
                unit=unit,
                kind=kind,
                question=question,
                value=value,
                seconds=seconds,
                request=request,
            )
            work.refresh()
            self._claimed(work)
            return event

    def _check(self, work: Work, kind: str, value: Any, unit: int, question: str) -> None:
        """Raises unless this is an answer to the open question."""
        current = work.current_unit(self.annotator)
        task = None if current is None else work.task(current, self.annotator)
        open_key = "" if task is None or task.question is None else task.question.key
        if task is None or type(unit) is not int or (unit, question) != (current, open_key):
            rule, remedy = "must be to the open question", "Load the question again and answer that one."
            got = f"question {str(question)[:40]!r} of unit {str(unit)[:20]}"
            place = "" if task is None else f", where question {open_key!r} of unit {current} is open"
            raise invalid("an answer", rule, got + place, remedy=remedy)
        if kind == "answer" and not (self.batch.kind == "review" and value in WORDS):
            task.check(value)

    def _claimed(self, work: Work) -> int | None:
        """The unit that the annotator has before them, or the next one; it is claimed unless it is held."""
        unit = work.current_unit(self.annotator)
        if unit is None:
            unit = work.next_unit(self.annotator)
        if unit is not None and not work.is_held(unit, self.annotator):
            self.project.claim(self.batch.id, unit, self.annotator)
            work.refresh()
        return unit

    @contextmanager
    def _changing(self) -> Iterator[Work]:
        """A transaction with the work of the batch, which is read anew if it cannot be completed."""
        try:
            with self.project.writing():
                yield Work.of(self.project, self.batch.id)
        except BaseException as error:
            refused = isinstance(error, InvalidInputError) and not isinstance(error, BadFileError)
            if not refused:  # nothing was written for what is refused
                self.project.remembered.pop(self.batch.id, None)
            raise

    def _asked(self, work: Work, unit: Unit) -> Asked:
        task: Task = work.task(unit.position, self.annotator)
        assert task.question is not None
        documents = tuple(self.project.document(unit.rows[i]) for i in task.question.documents)
        n_answered = work.n_answers(self.annotator)
        query_id = documents[0].query_id
        return Asked(
            unit=unit,
            question=task.question,
            documents=documents,
            query_id=query_id,
            query_text=self.project.query_text(query_id),
            n_answered=n_answered,
            n_expected=n_answered + work.expected_left(self.annotator),
            values=(*task.values, *(WORDS if self.batch.kind == "review" else ())),
        )
