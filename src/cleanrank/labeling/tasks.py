"""What people are asked about the documents of a query: grades, pairs, the best k.

Pairs are asked by algorithms that sort. Each is a plain function over a comparison; the comparison looks up
what was answered and stops at the first pair that was not, which is the next question. So no pair is asked
twice, and with ``transitive`` none that follows from others.

Top-k labelling (Niu et al. 2012) keeps the best k documents so far in a heap, the worst on top; every
further document is compared with the worst and may take its place; at the end the k are sorted. That takes
O(n log k) answers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.labeling.active import ActiveTask
from cleanrank.labeling.comparisons import (
    EQUAL,
    FIRST,
    NEITHER,
    SECOND,
    BestTask,
    ComparisonTask,
    Prefers,
)
from cleanrank.labeling.questions import Question, Task
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.types import IntArray
from cleanrank.validation import check_integer, check_number, check_seed, one_of

Judge: TypeAlias = Callable[[Question], int | None]


@dataclass(frozen=True)
class GradeTask(Task):
    """One grade for every document, in their order.

    >>> task = GradeTask(3, n_grades=2).answer(1).skip()
    >>> task.question, task.grades().tolist(), task.answer(0).preferences().tolist()
    (Question(documents=(2,)), [1, -1, -1], [[0, 2]])
    """

    n_grades: int = 2

    kind: ClassVar[str] = "grade"

    def __post_init__(self) -> None:
        check_integer("n_grades", self.n_grades, least=2)
        super().__post_init__()

    @property
    def values(self) -> tuple[int, ...]:
        """The grades."""
        return tuple(range(self.n_grades))

    @property
    def expected_left(self) -> float:
        """Documents without an answer."""
        return float(self.n_documents - len(self._answered))

    def grades(self) -> IntArray:
        """The answers; -1 where there is none."""
        grades = np.full(self.n_documents, -1, dtype=np.int64)
        for document, value in self._answered.items():
            grades[document] = -1 if value is None else value
        return grades

    def preferences(self) -> IntArray:
        """Pairs (better, worse) of documents whose grades differ, shape (m, 2)."""
        grades = self.grades()
        return np.argwhere((grades[:, None] > grades) & (grades >= 0)).astype(np.int64)

    @cached_property
    def _answered(self) -> dict[int, int | None]:
        return {answer.question.documents[0]: answer.value for answer in self.answers}

    def _next(self) -> Question | None:
        open_ = (d for d in range(self.n_documents) if d not in self._answered)
        return next((Question((d,)) for d in open_), None)

    def _asked_about(self) -> int:
        return 1


@dataclass(frozen=True)
class PairTask(ComparisonTask):
    """All pairs, or those that were named; with ``transitive`` about n log n of them.

    >>> task = PairTask(3, transitive=True).answer(2).answer(2)
    >>> [(a.question.key, a.value) for a in task.answers], task.preferences().tolist()
    ([('0,1', 2), ('2,0', 2)], [[0, 2], [1, 0], [1, 2]])
    """

    pairs: tuple[tuple[int, int], ...] | None = None

    kind: ClassVar[str] = "pairs"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pairs is not None:
            object.__setattr__(self, "pairs", tuple(tuple(pair) for pair in self.pairs))
            for pair in self.pairs:
                self._check_question(Question(pair))

    def run(self, prefers: Prefers) -> tuple[int, ...]:
        """Sorts by halving if that saves questions, then compares the pairs one by one."""
        if self.transitive and self.pairs is None:
            binary_insertion(self.n_documents, prefers)
        for a, b in self._all_pairs():
            prefers(a, b)
        return ()

    @property
    def expected_left(self) -> float:
        """The pairs that are open; a mean over random orders where most will follow from others."""
        if self.transitive and self.pairs is None:
            return super().expected_left
        outcome = self._comparisons.outcome
        return float(sum(outcome(a, b) is None for a, b in {tuple(sorted(p)) for p in self._all_pairs()}))

    def _all_pairs(self) -> tuple[tuple[int, int], ...]:
        return tuple(combinations(range(self.n_documents), 2)) if self.pairs is None else self.pairs

    def _compared(self) -> list[int]:
        return sorted({d for pair in self._all_pairs() for d in pair})


@dataclass(frozen=True)
class TopKTask(BestTask):
    """The best k in order, by a heap.

    Attributes:
        neither: whether "neither is relevant" (3) is an answer. Such documents come after all others and are
            not asked about again, so that fewer than k are found where fewer are relevant.

    >>> task = ask(TopKTask(5, k=2), [0, 3, 1, 3, 2])
    >>> task.best, task.grades().tolist(), len(task.answers)
    ((1, 3), [0, 1, 0, 1, 0], 6)
    >>> ask(TopKTask(5, k=4, neither=True), [0, 3, 0, 0, 0]).best
    (1,)
    """

    neither: bool = False

    kind: ClassVar[str] = "top-k"

    @property
    def values(self) -> tuple[int, ...]:
        """1 (the first), 2 (the second) and, where they are allowed, 0 (a tie) and 3 (neither)."""
        return (*super().values, NEITHER) if self.neither else super().values

    def run(self, prefers: Prefers) -> tuple[int, ...]:
        """The heap, without what is not relevant."""
        irrelevant = self._irrelevant

        def better(first: int, second: int) -> bool:
            if first in irrelevant or second in irrelevant:
                return first not in irrelevant
            return prefers(first, second)

        ranked = heap_top_k(self.n_documents, min(self.k, self.n_documents), better)
        best = tuple(document for document in ranked if document not in irrelevant)
        if best and irrelevant and best[-1] not in self._chosen:
            prefers(best[-1], min(irrelevant))  # no answer says yet that it is better than anything
        return best

    @cached_property
    def _irrelevant(self) -> frozenset[int]:
        """The documents that answers call not relevant."""
        return frozenset(d for a in self.answers if a.value == NEITHER for d in a.question.documents)

    @cached_property
    def _chosen(self) -> frozenset[int]:
        """The documents that some answer calls better than another, or as good."""
        sides: dict[int | None, tuple[int, ...]] = {FIRST: (0,), SECOND: (1,), EQUAL: (0, 1)}
        chosen = ((a.question.documents, sides.get(a.value, ())) for a in self.answers)
        return frozenset(documents[side] for documents, of in chosen for side in of)


def heap_top_k(n: int, k: int, prefers: Prefers) -> tuple[int, ...]:
    """The best k of n documents, best first, by a heap whose top is the worst.

    >>> heap_top_k(5, 3, lambda a, b: a > b)
    (4, 3, 2)
    """
    heap = list(range(k))

    def sift(at: int, size: int) -> None:
        while (child := 2 * at + 1) < size:
            if child + 1 < size and prefers(heap[child], heap[child + 1]):
                child += 1
            if not prefers(heap[at], heap[child]):
                return
            heap[at], heap[child] = heap[child], heap[at]
            at = child

    for at in reversed(range(k // 2)):
        sift(at, k)
    for document in range(k, n):
        if prefers(document, heap[0]):
            heap[0] = document
            sift(0, k)
    for last in reversed(range(k)):
        heap[0], heap[last] = heap[last], heap[0]
        sift(0, last)
    return tuple(heap)


def binary_insertion(n: int, prefers: Prefers) -> tuple[int, ...]:
    """All n documents, best first; each finds its place among the earlier ones by halving.

    >>> binary_insertion(4, lambda a, b: a > b)
    (3, 2, 1, 0)
    """
    order: list[int] = []
    for document in range(n):
        low, high = 0, len(order)
        while low < high:
            middle = (low + high) // 2
            if prefers(document, order[middle]):
                high = middle
            else:
                low = middle + 1
        order.insert(low, document)
    return tuple(order)


def label_judge(
    labels: npt.ArrayLike,
    error: float = 0.0,
    *,
    noise: Any = None,
    ties: bool = True,
    neither: bool = False,
    seed: int = 0,
) -> Judge:
    """A judge who knows the grades and errs at a known rate; the same question always gets the same answer.

    Args:
        labels: the true grade of every document.
        error: the probability of a wrong answer: the other document; for a grade any other grade.
        noise: for grades instead of ``error``, anything ``NoiseProfile.of`` takes.
        ties: whether documents of the same grade are called equally good (at an error, one of them is called
            better); else one of them is drawn.
        neither: whether two documents of grade 0 are called not relevant instead.
        seed: of the errors.

    Returns:
        A function from a Question to the value of an answer.

    >>> judge = label_judge([0, 2, 2])
    >>> judge(Question((1,))), judge(Question((0, 1))), judge(Question((1, 2)))
    (2, 2, 0)
    """
    grades = np.asarray(labels)
    if grades.ndim != 1 or not len(grades) or grades.dtype.kind not in "iu" or grades.min() < 0:
        raise invalid("labels", "must be one grade >= 0 for every document", repr(labels))
    check_number("error", error, least=0, most=1)
    check_seed(seed)
    n_grades = max(2, int(grades.max()) + 1)
    matrix = NoiseProfile.of(f"uniform:{error}" if noise is None else noise, n_grades).matrix

    def judge(question: Question) -> int:
        documents = question.documents
        rng = np.random.default_rng((seed, *sorted(documents)))
        if len(documents) == 1:
            return int(rng.choice(len(matrix), p=matrix[grades[documents[0]]]))
        wrong, low_is_better = rng.random() < error, rng.random() < 0.5
        difference = int(grades[documents[0]]) - int(grades[documents[1]])
        if difference:
            return FIRST if (difference > 0) != wrong else SECOND
        if neither and not wrong and grades[documents[0]] == 0:
            return NEITHER
        if ties and not wrong:
            return EQUAL
        return FIRST if (documents[0] < documents[1]) == low_is_better else SECOND

    return judge


def ask(task: Task, judge: Judge | npt.ArrayLike) -> Task:
    """Lets a judge answer until the task is done.

    Args:
        task: with or without answers so far.
        judge: a function from a Question to the value of an answer (None: skipped), or the grades of the
            documents, which then answer without error.

    Returns:
        The task with all answers.

    >>> ask(make_task("pairs", 3), [0, 1, 1]).preferences().tolist()
    [[1, 0], [2, 0]]
    """
    answer_of = (
        judge
        if callable(judge)
        else label_judge(judge, ties=EQUAL in task.values, neither=NEITHER in task.values)
    )
    while (question := task.question) is not None:
        value = answer_of(question)
        task = task.skip() if value is None else task.answer(value)
    return task


def make_task(kind: str, n_documents: int, **settings: Any) -> Task:
    """A task by its kind.

    Args:
        kind: of ``TASKS``: "grade", "pairs", "top-k" or "active".
        n_documents: of the query.
        **settings: ``n_grades`` of grades; ``ties`` and ``transitive`` of comparisons, further ``pairs`` of
            pairs, ``k`` and ``neither`` of top-k, ``k``, ``error`` and ``budget`` of active; ``answers`` that
            are known already.

    Returns:
        A task whose ``question`` is the next one, and whose ``answer``, ``skip`` and ``undo`` give the task
        after.

    >>> make_task("grade", 2, n_grades=5).answer(4).question
    Question(documents=(1,))
    """
    task = TASKS[one_of("task", kind, TASKS)]
    known = [name for name in task.__dataclass_fields__ if name != "n_documents"]
    for name in settings:
        one_of(f"setting of the task {kind!r}", name, known)
    return task(n_documents, **settings)


TASKS: dict[str, type[Task]] = {task.kind: task for task in (GradeTask, PairTask, TopKTask, ActiveTask)}
