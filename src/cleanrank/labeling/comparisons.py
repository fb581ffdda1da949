"""Tasks that ask which of two documents is better, and what follows from the answers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np

from cleanrank.labeling.questions import Answer, Question, Task
from cleanrank.types import IntArray
from cleanrank.validation import check_integer

FIRST, SECOND, EQUAL, NEITHER = 1, 2, 0, 3
Prefers: TypeAlias = Callable[[int, int], bool]


class Comparisons:
    """What is known of pairs of documents: what was answered and, if wanted, what follows from it.

    ``prefers`` is the comparison that sorting runs on; it raises ``Unknown`` at the first pair nobody has
    answered. A pair that was skipped counts as equal.
    """

    def __init__(self, n_documents: int, answers: Iterable[Answer] = (), *, transitive: bool = False) -> None:
        self.known: dict[tuple[int, int], int] = {}
        # Bit j of at_least[i]: i is at least as good as j; of better[i]: and better.
        self._at_least = [1 << i for i in range(n_documents)] if transitive else []
        self._better = [0] * len(self._at_least)
        for answer in answers:
            first, second = answer.question.documents
            self.learn(first, second, answer.value)

    def learn(self, first: int, second: int, value: int | None) -> None:
        """Takes in an answer."""
        outcome = {FIRST: 1, SECOND: -1}.get(value or EQUAL, 0)
        self.known[first, second], self.known[second, first] = outcome, -outcome
        if self._at_least and value is not None:
            if outcome >= 0:
                self._follow(first, second, outcome > 0)
            if outcome <= 0:
                self._follow(second, first, outcome < 0)

    def _follow(self, high: int, low: int, strictly: bool) -> None:
        below, far_below = self._at_least[low], self._better[low]
        for i, reached in enumerate(self._at_least):
            if reached >> high & 1:
                self._better[i] |= below if strictly or self._better[i] >> high & 1 else far_below
                self._at_least[i] |= below

    def outcome(self, first: int, second: int) -> int | None:
        """1: the first is better; -1: the second; 0: they are equal or were skipped; None: unknown."""
        known = self.known.get((first, second))
        if known is not None or not self._at_least:
            return known
        if self._better[first] >> second & 1:
            return 1
        if self._better[second] >> first & 1:
            return -1
        equal = self._at_least[first] >> second & 1 and self._at_least[second] >> first & 1
        return 0 if equal else None

    def prefers(self, first: int, second: int) -> bool:
        """Whether the first is better; raises ``Unknown`` if that has to be asked."""
        outcome = self.outcome(first, second)
        if outcome is None:
            raise Unknown(first, second)
        return outcome > 0


class Unknown(Exception):
    """A pair has to be asked."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(first, second)
        # Sides change from pair to pair: neither the earlier nor the later document always stands first.
        low, high = min(first, second), max(first, second)
        self.question = Question((low, high) if (low + high) % 2 else (high, low))


def equal_classes(n_documents: int, answers: Iterable[Answer]) -> list[int]:
    """For every document the first one that answers call equally good, directly or along a chain.

    >>> equal_classes(4, [Answer(Question((2, 0)), EQUAL), Answer(Question((3, 2)), EQUAL)])
    [0, 1, 0, 0]
    """
    first = list(range(n_documents))
    for answer in answers:
        if answer.value == EQUAL:
            one, other = sorted(first[d] for d in answer.question.documents)
            first = [one if f == other else f for f in first]
    return first


def pair_array(pairs: Iterable[tuple[int, int]]) -> IntArray:
    """Pairs as an array of shape (m, 2)."""
    return np.array(list(pairs), dtype=np.int64).reshape(-1, 2)


@dataclass(frozen=True)
class ComparisonTask(Task):
    """Which of two documents is better, asked by an algorithm that sorts.

    Attributes:
        ties: whether "equally good" is an answer.
        transitive: whether what follows from other answers is not asked.
    """

    ties: bool = True
    transitive: bool = False

    @property
    def values(self) -> tuple[int, ...]:
        """1 (the first), 2 (the second) and, where ties are allowed, 0."""
        return (FIRST, SECOND, EQUAL) if self.ties else (FIRST, SECOND)

    @property
    def expected_left(self) -> float:
        """The mean over random orders, by how many documents came up so far."""
        if self.question is None:
            return 0.0
        seen: set[int] = set()
        since = 0  # answers since a document came up for the first time
        for answer in self.answers:
            since += 1
            if not seen.issuperset(answer.question.documents):
                seen.update(answer.question.documents)
                since = 0
        left = _left_by_documents(replace(self, answers=()))
        return max(1.0, left[len(seen)] - since)

    def preferences(self) -> IntArray:
        """Pairs (better, worse) as answered and, with ``transitive``, what follows from them."""
        outcome, n = self._comparisons.outcome, self.n_documents
        return pair_array((a, b) for a in range(n) for b in range(n) if a != b and outcome(a, b) == 1)

    def grades(self) -> IntArray:
        """Levels of preference from 0, once the task is done; -1 before, and for what was in no pair."""
        grades = np.full(self.n_documents, -1, dtype=np.int64)
        if self.is_done:
            better, worse = self.preferences().T
            count = np.bincount
            balance = count(better, minlength=self.n_documents) - count(worse, minlength=self.n_documents)
            compared = self._compared()
            grades[compared] = np.unique(balance[compared], return_inverse=True)[1]
        return grades

    def run(self, prefers: Prefers) -> tuple[int, ...]:
        """The algorithm: asks ``prefers`` until it knows enough; returns the best documents, best first."""
        raise NotImplementedError

    def _compared(self) -> list[int]:
        """The documents that get a grade."""
        return list(range(self.n_documents))

    @cached_property
    def _comparisons(self) -> Comparisons:
        return Comparisons(self.n_documents, self.answers, transitive=self.transitive)

    @cached_property
    def _reached(self) -> Question | tuple[int, ...]:
        """The next question, or what came out."""
        try:
            return self.run(self._comparisons.prefers)
        except Unknown as unknown:
            return unknown.question

    def _next(self) -> Question | None:
        return self._reached if isinstance(self._reached, Question) else None


@dataclass(frozen=True)
class BestTask(ComparisonTask):
    """The best k in order.

    Once done, every one of the best is preferred to those behind it and to all other documents, except where
    answers called the two equal (directly or along a chain) or the pair was skipped.

    Attributes:
        k: how many to put in order.
    """

    k: int = 10

    def __post_init__(self) -> None:
        check_integer("k", self.k, least=1)
        super().__post_init__()

    @property
    def best(self) -> tuple[int, ...]:
        """The best k, best first; empty until the task is done."""
        return () if isinstance(self._reached, Question) else self._reached

    def preferences(self) -> IntArray:
        """The order of the best and these before all others; until done, the answers."""
        if not self.is_done:
            return super().preferences()
        return order_preferences(self.n_documents, self.best, self.answers)


def order_preferences(n_documents: int, best: tuple[int, ...], answers: tuple[Answer, ...]) -> IntArray:
    """Pairs (better, worse) of an order of the best, and of these with the rest; none among equals."""
    same = equal_classes(n_documents, answers)
    direct = Comparisons(n_documents, answers).known
    behind = [*best, *sorted(set(range(n_documents)).difference(best))]

    def differ(a: int, b: int) -> bool:
        outcome = direct.get((a, b))
        return same[a] != same[b] if outcome is None else outcome != 0

    return pair_array((a, b) for place, a in enumerate(best, 1) for b in behind[place:] if differ(a, b))


@lru_cache(maxsize=256)
def _left_by_documents(task: ComparisonTask) -> tuple[float, ...]:
    """By the number of documents that came up so far: the mean of questions left, over random orders."""
    rng = np.random.default_rng(0)
    orders = (rng.permutation(task.n_documents).tolist() for _ in range(max(4, 1000 // task.n_documents)))
    asked = np.array([_asked_by_documents(task, place) for place in orders])
    return tuple((asked[:, -1:] - asked).mean(axis=0).tolist())


def _asked_by_documents(task: ComparisonTask, place: list[int]) -> list[int]:
    """Questions until 0, 1, ... n documents had come up, and all, where documents have known places."""
    comparisons = Comparisons(task.n_documents, transitive=task.transitive)
    asked = 0
    seen: set[int] = set()
    asked_at = [0]

    def prefers(a: int, b: int) -> bool:
        nonlocal asked
        if comparisons.outcome(a, b) is None:
            asked += 1
            comparisons.learn(a, b, FIRST if place[a] < place[b] else SECOND)
            asked_at.extend([asked] * len({a, b} - seen))
            seen.update((a, b))
        return comparisons.prefers(a, b)

    task.run(prefers)
    return [*asked_at, *[asked] * (task.n_documents + 2 - len(asked_at))]
