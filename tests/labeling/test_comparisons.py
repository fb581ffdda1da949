from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanrank.labeling.comparisons import EQUAL, FIRST, SECOND, Comparisons, Unknown, equal_classes
from cleanrank.labeling.questions import Answer, Question


@st.composite
def partial_answers(draw):
    """Grades, and exact answers to some of their pairs."""
    grades = draw(st.lists(st.integers(0, 3), min_size=2, max_size=7))
    pairs = draw(st.lists(st.permutations(range(len(grades))).map(lambda p: tuple(p[:2])), max_size=12))
    value = {1: FIRST, -1: SECOND, 0: EQUAL}
    sign = [(grades[a] > grades[b]) - (grades[a] < grades[b]) for a, b in pairs]
    return grades, [Answer(Question(pair), value[s]) for pair, s in zip(pairs, sign, strict=True)]


def closure(n, answers):
    """(a, b) -> 0 or 1 where a is at least as good as b; by repeated composition of relations."""
    at_least = {(a, a): 0 for a in range(n)}
    for answer in answers:
        a, b = answer.question.documents
        if answer.value in (FIRST, EQUAL):
            at_least[a, b] = int(answer.value == FIRST)
        if answer.value in (SECOND, EQUAL):
            at_least[b, a] = int(answer.value == SECOND)
    for _ in range(n):
        for (a, b), strict in list(at_least.items()):
            for (c, d), further in list(at_least.items()):
                if b == c:
                    at_least[a, d] = max(at_least.get((a, d), 0), strict, further)
    return at_least


@given(partial_answers())
def test_what_follows_is_what_repeated_composition_finds(case):
    grades, answers = case
    comparisons = Comparisons(len(grades), answers, transitive=True)
    at_least = closure(len(grades), answers)
    for a, b in combinations(range(len(grades)), 2):
        if (a, b) in at_least:
            expected = at_least[a, b]
        elif (b, a) in at_least:
            expected = -1 if at_least[b, a] else None
        else:
            expected = None
        if expected == 0 and (b, a) not in at_least:
            expected = None
        assert comparisons.outcome(a, b) == expected
        assert comparisons.outcome(b, a) == (None if expected is None else -expected)


@given(partial_answers())
def test_equal_classes_follow_chains_of_ties(case):
    grades, answers = case
    first = equal_classes(len(grades), answers)
    ties = [answer for answer in answers if answer.value == EQUAL]
    linked = closure(len(grades), ties)
    for a, b in combinations(range(len(grades)), 2):
        assert (first[a] == first[b]) == ((a, b) in linked)


def test_a_skipped_pair_counts_as_equal_but_nothing_follows_from_it():
    answers = [Answer(Question((0, 1)), None), Answer(Question((1, 2)), EQUAL)]
    comparisons = Comparisons(3, answers, transitive=True)
    assert comparisons.outcome(0, 1) == 0
    assert comparisons.outcome(0, 2) is None


def test_an_open_pair_stops_the_algorithm_and_sides_change():
    sides = []
    for a, b in combinations(range(20), 2):
        with pytest.raises(Unknown) as stop:
            Comparisons(20).prefers(a, b)
        assert sorted(stop.value.question.documents) == [a, b]
        sides.append(stop.value.question.documents[0] == a)
    assert 0.4 < sum(sides) / len(sides) < 0.6
