"""The best k by the pairs that tell most.

Every document has a quality, normal before the first answer. An answer is right with probability 1 - error;
the qualities given the answers are held as one normal distribution, matched to the mean and covariance after
each answer (assumed density filtering). "Equally good" is a difference of 0, observed with a small spread.
The next pair is the one for which this is largest:

    expected fall of the variance of the difference of the two  x  P(one of the two is among the best k).

A pair whose order is as good as certain, or that is settled to be outside the best k, tells nothing.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np

from cleanrank.errors import invalid
from cleanrank.labeling.comparisons import EQUAL, FIRST, BestTask, Unknown
from cleanrank.labeling.questions import Answer, Question
from cleanrank.types import FloatArray
from cleanrank.validation import check_integer, check_number

MOST_DOCUMENTS = 300
SPREAD_OF_EQUALS = 0.1
HALVINGS = 40
LEAST_VARIANCE = 1e-9
FARTHEST = -30.0  # standard deviations; beyond, probabilities are too small for floating point


@dataclass(frozen=True)
class ActiveTask(BestTask):
    """The best k in order, by the pairs that tell most.

    Unlike a heap it survives wrong answers: what was answered early is weighed against what comes later.

    Attributes:
        error: the share of wrong answers that the choice of pairs reckons with.
        budget: questions to ask; without one n + k log2 n, fewer than the heap needs.

    >>> task = ActiveTask(3, k=1, budget=2).answer(2).answer(2)
    >>> [(a.question.key, a.value) for a in task.answers], task.best
    ([('0,1', 2), ('1,2', 2)], (2,))
    """

    error: float = 0.1
    budget: int | None = None

    kind: ClassVar[str] = "active"

    def __post_init__(self) -> None:
        check_number("error", self.error, least=0, below=0.5)
        if self.budget is not None:
            check_integer("budget", self.budget, least=1)
        super().__post_init__()
        if self.n_documents > MOST_DOCUMENTS:
            rule, remedy = f"must be at most {MOST_DOCUMENTS} for the task 'active'", "Use the task 'top-k'."
            raise invalid("n_documents", rule, self.n_documents, remedy=remedy)

    @property
    def expected_left(self) -> float:
        """What is left of the budget, or of the pairs if these are fewer."""
        return 0.0 if self.is_done else float(min(self._budget - len(self.answers), len(self._open)))

    @property
    def _budget(self) -> int:
        n = self.n_documents
        return math.ceil(n + min(self.k, n) * math.log2(n)) if self.budget is None else self.budget

    @cached_property
    def _open(self) -> list[tuple[int, int]]:
        """The pairs that are neither answered nor, with ``transitive``, implied."""
        outcome = self._comparisons.outcome
        return [(a, b) for a, b in combinations(range(self.n_documents), 2) if outcome(a, b) is None]

    @cached_property
    def _reached(self) -> Question | tuple[int, ...]:
        mean, covariance = believed_quality(self.n_documents, self.answers, self.error)
        if len(self.answers) < self._budget and self._open:
            worth = worth_of_pairs(mean, covariance, self.error, self.k)
            # Rounded, so that of equal pairs the first is asked on every machine.
            first, second = self._open[int(np.argmax(worth[tuple(np.transpose(self._open))].round(9)))]
            return Unknown(first, second).question
        return tuple(np.argsort(-mean.round(9), kind="stable")[: self.k].tolist())


def believed_quality(
    n_documents: int, answers: tuple[Answer, ...], error: float
) -> tuple[FloatArray, FloatArray]:
    """The mean (n,) and the covariance (n, n) of the documents' qualities, given the answers.

    Args:
        n_documents: n.
        answers: about pairs; skipped ones tell nothing.
        error: the probability that an answer is wrong.

    >>> mean, covariance = believed_quality(3, (Answer(Question((0, 1)), 1),), 0.0)
    >>> mean.round(3).tolist(), covariance[0].round(3).tolist()
    ([0.564, -0.564, 0.0], [0.682, 0.318, 0.0])
    """
    mean, covariance = np.zeros(n_documents), np.eye(n_documents)
    for answer in answers:
        if answer.value is None:
            continue
        a, b = answer.question.documents
        with_difference = covariance[:, a] - covariance[:, b]
        variance = max(float(with_difference[a] - with_difference[b]), LEAST_VARIANCE)
        difference = float(mean[a] - mean[b])
        if answer.value == EQUAL:
            fall = 1 / (variance + SPREAD_OF_EQUALS**2)
            rise = -difference * fall
        else:
            sign = 1 if answer.value == FIRST else -1
            z = max(sign * difference / math.sqrt(variance), FARTHEST)
            density = (1 - 2 * error) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi * variance)
            likelihood = error + (1 - 2 * error) * math.erfc(-z / math.sqrt(2)) / 2
            rise = density / likelihood
            fall = rise * (rise + z / math.sqrt(variance))
            rise *= sign
        mean = mean + with_difference * rise
        covariance = covariance - np.outer(with_difference, with_difference) * fall
    return mean, covariance


def worth_of_pairs(mean: FloatArray, covariance: FloatArray, error: float, k: int) -> FloatArray:
    """What asking each pair is worth, shape (n, n); the diagonal means nothing.

    The answer "a" has probability Z = error + (1 - 2 error) P(a > b). With d the slope of Z in the mean of
    the difference and v its variance, the variance falls by v^2 d^2 (1/Z + 1/(1 - Z)) on average.
    """
    from scipy.special import ndtr

    own = np.maximum(np.diagonal(covariance), LEAST_VARIANCE)
    variance = np.maximum(own[:, None] + own - 2 * covariance, LEAST_VARIANCE)
    z = (mean[:, None] - mean) / np.sqrt(variance)
    first = np.clip(error + (1 - 2 * error) * ndtr(z), 1e-12, 1 - 1e-12)
    slope = (1 - 2 * error) * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    among = _chance_among_best(mean, np.sqrt(own), k)
    counts = 1 - np.outer(1 - among, 1 - among)
    worth: FloatArray = counts * variance * slope**2 / (first * (1 - first))
    return worth


def _chance_among_best(mean: FloatArray, spread: FloatArray, k: int) -> FloatArray:
    """P(quality above the threshold), the threshold such that k documents are expected above it."""
    from scipy.special import ndtr

    low, high = float(mean.min()) - 10, float(mean.max()) + 10
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if ndtr((mean - middle) / spread).sum() > k:
            low = middle
        else:
            high = middle
    chance: FloatArray = ndtr((mean - low) / spread)
    return chance
