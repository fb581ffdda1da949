"""Questions to one judge about the documents of one query, and what a task does with the answers.

A task is a value: the settings and the answers so far. Which question comes next is a function of these
alone. So an answer makes a new task, undoing it gives the old one back, and a task that was interrupted goes
on from the answers that were kept.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from cleanrank.errors import invalid
from cleanrank.types import IntArray
from cleanrank.validation import check_integer, is_integer


@dataclass(frozen=True)
class Question:
    """What is asked: the grade of one document, or which of two is better, in the order shown.

    >>> Question((3, 7)).key
    '3,7'
    """

    documents: tuple[int, ...]

    @property
    def key(self) -> str:
        """The documents as text."""
        return ",".join(str(d) for d in self.documents)

    @classmethod
    def of(cls, key: str) -> Self:
        """The question of a key.

        >>> Question.of("3,7").documents
        (3, 7)
        """
        parts = str(key).split(",")
        if not all(part.isascii() and part.isdigit() for part in parts):
            raise invalid(
                "the key of a question", "must be positions of documents, as in '3' or '3,7'", repr(key)
            )
        return cls(tuple(int(part) for part in parts))


@dataclass(frozen=True)
class Answer:
    """A question and its answer.

    The value is a grade; for pairs 1 (the first), 2 (the second), 0 (equally good) or 3 (neither is
    relevant); None if it was skipped.
    """

    question: Question
    value: int | None


@dataclass(frozen=True)
class Task(ABC):
    """What one judge is asked about the documents 0 to n - 1 of one query, and what came out so far.

    Attributes:
        n_documents: n.
        answers: so far, the oldest first. Answers to questions that the task would not have asked count too.
    """

    n_documents: int
    answers: tuple[Answer, ...] = ()

    kind: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_integer("n_documents", self.n_documents, least=1)
        for answer in self.answers:
            self._check_question(answer.question)
            if answer.value is not None:
                self.check(answer.value)

    @property
    def settings(self) -> Mapping[str, Any]:
        """All arguments of ``make_task`` but the number of documents and the answers."""
        names = (f.name for f in fields(self) if f.name not in ("n_documents", "answers"))
        return {name: getattr(self, name) for name in names}

    @property
    @abstractmethod
    def values(self) -> tuple[int, ...]:
        """The values an answer may have."""

    @cached_property
    def question(self) -> Question | None:
        """The next question; None when all is known."""
        return self._next()

    @abstractmethod
    def _next(self) -> Question | None: ...

    @property
    @abstractmethod
    def expected_left(self) -> float:
        """How many questions are still to come, as far as one can tell; 0 when done."""

    @abstractmethod
    def preferences(self) -> IntArray:
        """Pairs (better, worse) that follow from the answers, shape (m, 2)."""

    @abstractmethod
    def grades(self) -> IntArray:
        """A grade for every document; -1 where it is not known."""

    @property
    def is_done(self) -> bool:
        """Whether there is no further question."""
        return self.question is None

    def check(self, value: Any) -> int:
        """Returns a value if an answer may have it; else raises."""
        if not is_integer(value) or value not in self.values:
            allowed = ", ".join(str(v) for v in self.values)
            raise invalid(
                "an answer", f"must be one of {allowed}", repr(value), remedy="Skip what cannot be answered."
            )
        return int(value)

    def answer(self, value: int) -> Self:
        """The task after an answer to the open question."""
        return self._with(self.check(value))

    def skip(self) -> Self:
        """The task after the open question was left unanswered; it is not asked again."""
        return self._with(None)

    def undo(self) -> Self:
        """The task before the last answer; its question is open again."""
        if not self.answers:
            raise invalid("undo", "needs an answer to take back", "none so far")
        return replace(self, answers=self.answers[:-1])

    def _with(self, value: int | None) -> Self:
        if self.question is None:
            raise invalid("an answer", "needs an open question", "a task that is done")
        return replace(self, answers=(*self.answers, Answer(self.question, value)))

    def _check_question(self, question: Question) -> None:
        documents = question.documents
        inside = all(is_integer(d) and 0 <= d < self.n_documents for d in documents)
        if not inside or len(set(documents)) != len(documents) or len(documents) != self._asked_about():
            rule = f"must be about {self._asked_about()} of the documents 0 to {self.n_documents - 1}"
            raise invalid("a question", rule, repr(question.key))

    def _asked_about(self) -> int:
        """Documents in a question."""
        return 2
