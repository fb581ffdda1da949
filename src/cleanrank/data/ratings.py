"""Ratings on any scale as grades 0, 1, 2, ..., and opinions of several people as one grade or as gains.

Rules from ratings to grades (``ratings=``):

* ``"whole"``: ratings are grades already, whole numbers from 0;
* ``"levels"``: the different ratings in order: 0, 1, 10 and 100 become 0, 1, 2 and 3;
* ``"even:N"``: N classes of equal width between the lowest and the highest rating;
* cuts such as ``[0.2, 0.5]`` or ``"0.2,0.5"``: a grade is the number of cuts that a rating reaches.

Without a rule, whole numbers up to 10 are grades, at most ten different ratings are levels, and any others
fall into five even classes; a warning says so unless they are grades already. Ratings that are no grades stay
as gains, so that measures and objectives see them as they were.
"""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.types import FloatArray, IntArray
from cleanrank.validation import check_numbers, one_of

MOST_WHOLE, MOST_LEVELS, EVEN = 10, 10, 5
COMBINATIONS = ("majority", "median", "expected")
REMEDY = "As in levels, whole, even:5 or cuts such as 0.2,0.5."


@dataclass(frozen=True, eq=False)
class Graded:
    """Grades of ratings.

    Attributes:
        grades: from 0.
        gains: the ratings, where they are no grades themselves.
        rule: what was done, in words.
    """

    grades: IntArray
    gains: FloatArray | None
    rule: str


def to_grades(ratings: npt.ArrayLike, rule: Any = None) -> Graded:
    """Ratings as grades by a rule of this module.

    >>> graded = to_grades([100.0, 0.0, 1.0, 10.0], "levels")
    >>> graded.grades.tolist(), graded.gains.tolist(), graded.rule
    ([3, 0, 1, 2], [100.0, 0.0, 1.0, 10.0], 'ratings 0, 1, 10, 100 are grades 0, 1, 2, 3')
    >>> to_grades([0.1, 0.3, 0.5], [0.2, 0.5]).grades.tolist()
    [0, 1, 2]
    """
    values = check_numbers("ratings", ratings)
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise invalid("ratings", "must be finite and not negative", values[row], at=f"row {row}")
    levels = np.unique(values)
    is_whole = bool((levels == np.floor(levels)).all())
    if rule is None:
        return _by_default(values, levels, is_whole)
    if isinstance(rule, str) and rule == "whole":
        if not is_whole:
            part = float(levels[levels != np.floor(levels)][0])
            raise invalid(
                "ratings", "must be whole numbers to be grades", part, remedy="Give another rule: ratings=."
            )
        return Graded(values.astype(np.int64), None, "ratings are grades")
    if isinstance(rule, str) and rule == "levels":
        return _by_levels(values, levels)
    if isinstance(rule, str) and (even := re.fullmatch(r"even:([1-9]\d?)", rule)):
        return _by_even(values, levels, int(even[1]))
    return _by_cuts(values, _cuts(rule))


def _by_default(values: FloatArray, levels: FloatArray, is_whole: bool) -> Graded:
    if is_whole and (not len(levels) or levels[-1] <= MOST_WHOLE):
        return Graded(values.astype(np.int64), None, "ratings are grades")
    graded = _by_levels(values, levels) if len(levels) <= MOST_LEVELS else _by_even(values, levels, EVEN)
    words = f"{graded.rule}; gains keep the ratings. ratings= (--ratings) sets another rule"
    warnings.warn(f"{words}, {REMEDY.lower()}", stacklevel=2)
    return graded


def _by_levels(values: FloatArray, levels: FloatArray) -> Graded:
    listed = ", ".join(f"{level:g}" for level in levels[:MOST_LEVELS])
    more = ", ..." if len(levels) > MOST_LEVELS else ""
    grades = ", ".join(map(str, range(min(len(levels), MOST_LEVELS))))
    words = f"ratings {listed}{more} are grades {grades}{more}"
    return Graded(np.searchsorted(levels, values), values, words)


def _by_even(values: FloatArray, levels: FloatArray, classes: int) -> Graded:
    if not len(levels):
        return Graded(np.zeros(0, dtype=np.int64), values, "no ratings")
    graded = _by_cuts(values, levels[0] + (levels[-1] - levels[0]) * np.arange(1, classes) / classes)
    return Graded(graded.grades, values, f"ratings {levels[0]:g} to {levels[-1]:g}: {graded.rule}")


def _by_cuts(values: FloatArray, cuts: FloatArray) -> Graded:
    words = f"grades 0 to {len(cuts)} by cuts at {', '.join(f'{cut:g}' for cut in cuts)}"
    return Graded(np.searchsorted(cuts, values, side="right"), values, words)


def _cuts(rule: Any) -> FloatArray:
    try:
        listed = rule.split(",") if isinstance(rule, str) else rule
        cuts = np.asarray([float(cut) for cut in listed])
    except (TypeError, ValueError):
        rule_text = "must be whole, levels, even:N or cuts"
        raise invalid("ratings=", rule_text, repr(rule), remedy=REMEDY) from None
    if not len(cuts) or not np.isfinite(cuts).all() or (np.diff(cuts) <= 0).any():
        raise invalid("cuts in ratings=", "must be rising numbers", repr(rule), remedy=REMEDY)
    return cuts


def gains_of_distribution(shares: npt.ArrayLike) -> FloatArray:
    """The expected gain 2^grade - 1 of every row under its distribution over grades.

    >>> gains_of_distribution([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]).tolist()
    [1.5, 1.0]
    """
    table = np.asarray(shares, dtype=np.float64)
    return np.asarray(table @ (np.exp2(np.arange(table.shape[1])) - 1))


def check_distribution(shares: npt.ArrayLike, names: Sequence[str]) -> FloatArray:
    """Shares of grades, a row each; raises unless they are from 0 and sum to 1 (to within 0.001)."""
    table = np.asarray(shares, dtype=np.float64)
    wrong = ~((table >= 0).all(axis=1) & (np.abs(table.sum(axis=1) - 1) <= 1e-3))
    if wrong.any():
        row = int(np.argmax(wrong))
        subject, rule = f"the distribution {', '.join(names)}", "must have shares from 0 that sum to 1"
        raise invalid(subject, rule, [round(share, 6) for share in table[row].tolist()], at=f"row {row}")
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def combined(votes: npt.ArrayLike, how: str = "majority") -> tuple[IntArray, FloatArray | None]:
    """One grade per row, and gains for "expected", of how many people (or which share) gave every grade.

    Args:
        votes: (N, C) votes.
        how: "majority" (of a tie the lowest grade), "median" (of two the lower one), "expected": the median
            with the expected gain 2^grade - 1 of the votes.

    >>> combined([[1, 1, 1], [0, 1, 2]])
    (array([0, 2]), None)
    >>> combined([[1, 1, 1], [0, 1, 1]], "expected")
    (array([1, 1]), array([1.33333333, 2.        ]))
    """
    table = np.asarray(votes, dtype=np.float64)
    one_of("way to combine opinions", how, COMBINATIONS)
    if how == "majority":
        return np.argmax(table, axis=1), None
    total = table.sum(axis=1, keepdims=True)
    grades = np.argmax(2 * np.cumsum(table, axis=1) >= total, axis=1)
    return grades, gains_of_distribution(table / total) if how == "expected" else None
