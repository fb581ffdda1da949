"""People who click through are flagged; honest ones, also biased, noisy or slow, at the stated rate."""

from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pandas as pd
import pytest

from cleanrank.errors import InvalidInputError
from cleanrank.noise.annotator_sequences import (
    answer_seconds,
    expected_runs,
    fastest_tenth,
    in_order,
    odd_sequences,
    run_disagreements,
)
from cleanrank.noise.judgement_table import read_judgements


def crowd(seed, *, people=8, n=120, ordered=False, change=None):
    """People with errors, bias and speeds of their own, who each saw some of n documents, in their order."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, n, p=[0.6, 0.25, 0.15])
    truth = np.sort(truth) if ordered else truth
    parts = []
    for a in range(people):
        seen = np.sort(rng.choice(n, rng.integers(n // 2, n), replace=False))
        wrong = np.minimum(truth + rng.integers(0, 3, n), 2) if a % 2 else rng.integers(0, 3, n)
        grade = np.where(rng.random(n) < rng.uniform(0.05, 0.4), wrong, truth)[seen]
        seconds = np.exp(rng.normal(rng.normal(2.3, 0.4), 0.6, len(seen)))
        frame = pd.DataFrame({"item": seen, "annotator": f"a{a}", "grade": grade, "seconds": seconds})
        parts.append(frame)
    if change is not None:
        change(parts[0])
    return pd.concat(parts)


def one_answer(frame):
    frame.loc[20:44, "grade"] = 2


def hurry(frame):
    frame.loc[20:34, "seconds"] = 0.4


def flags(table):
    return [(each.name, each.kind) for each in odd_sequences(read_judgements(table))]


@pytest.mark.parametrize("ordered", [False, True])
def test_honest_people_are_left_alone(ordered):
    """40 tables: two tests with false alarms in .01 of tables each flag more than 4 with a chance of .001."""
    assert sum(bool(flags(crowd(seed, ordered=ordered))) for seed in range(40)) <= 4


@pytest.mark.parametrize(("change", "kind"), [(one_answer, "constant"), (hurry, "fast")])
def test_who_clicks_through_is_flagged(change, kind):
    found = [flags(crowd(seed, change=change)) for seed in range(10)]
    assert sum(("a0", kind) in each for each in found) >= 9
    assert not any(name != "a0" for each in found for name, _ in each)


def test_the_same_answer_throughout():
    def all_ones(frame):
        frame["grade"] = 1

    table = crowd(0, change=all_ones)
    (flag,) = odd_sequences(read_judgements(table))
    assert flag.reason == f"all {(table['annotator'] == 'a0').sum()} answers are 1"
    agreed = table.assign(grade=1)  # where everybody says so, it is no reason for a flag
    assert flags(agreed.drop(columns="seconds")) == []


def test_runs_count_what_is_against_the_reference():
    rng = np.random.default_rng(0)
    grades, reference = rng.integers(0, 2, 200), rng.integers(0, 2, 200)
    expected = []
    for place in range(200):
        start = place
        while start and grades[start - 1] == grades[place]:
            start -= 1
        expected.append((grades[start : place + 1] != reference[start : place + 1]).sum())
    assert run_disagreements(grades, reference).tolist() == expected


@pytest.mark.parametrize("seed", range(6))
def test_expected_runs_are_those_of_all_exchanges(seed):
    rng = np.random.default_rng(seed)
    grades, reference = rng.integers(0, 2 + seed % 2, 7), rng.integers(0, 2, 7)
    classes = [np.flatnonzero(reference == c) for c in (0, 1)]
    for m in (1, 2, 3):
        stretches, reached = [], []
        for orders in product(*(permutations(each) for each in classes)):
            exchanged = grades.copy()
            for places, order in zip(classes, orders, strict=True):
                exchanged[places] = grades[list(order)]
            count = 0
            for i, j in combinations_with_replacement(range(7), 2):
                run = exchanged[i : j + 1]
                against = run != reference[i : j + 1]
                equal = (run == run[0]).all()
                count += equal and against[0] and against[-1] and against.sum() == m
            stretches.append(count)
            reached.append(run_disagreements(exchanged, reference).max() >= m)
        assert expected_runs(grades, reference, m) == pytest.approx(np.mean(stretches))
        assert np.mean(reached) <= np.mean(stretches) + 1e-12


def test_times_say_the_order_and_how_long_it_took():
    table = pd.DataFrame(
        {
            "item": [1, 2, 3, 1, 2],
            "annotator": ["ann", "ann", "ann", "bob", "bob"],
            "grade": [0, 1, 2, 0, 1],
            "timestamp": [
                "2024-05-01T10:00:09",
                "2024-05-01T10:00:02Z",
                "",
                "2024-05-01T12:00:00+02:00",
                "2024-05-02",
            ],
        }
    )
    judged = read_judgements(table)
    order = in_order(judged)
    assert order.tolist() == [1, 0, 2, 3, 4]
    assert answer_seconds(judged, order).tolist() == pytest.approx(
        [np.nan, 7, np.nan, np.nan, 50400], nan_ok=True
    )
    timed = read_judgements(table.assign(seconds=[3, "", "x", 1.5, 2]))
    assert answer_seconds(timed, in_order(timed)).tolist() == pytest.approx(
        [np.nan, 3, np.nan, 1.5, 2], nan_ok=True
    )
    assert answer_seconds(read_judgements(table.drop(columns="timestamp")), order) is None


def test_the_fastest_tenth_is_of_answers_in_a_row():
    slow = np.full(100, 9.0)
    scattered, in_a_row = slow.copy(), slow.copy()
    scattered[::5] = 1
    in_a_row[40:60] = 1
    assert fastest_tenth(scattered) == 9
    assert fastest_tenth(in_a_row) == 1


def test_alpha_is_checked_and_used():
    table = read_judgements(crowd(2, change=one_answer))
    assert odd_sequences(table, alpha=1e-30) == []
    with pytest.raises(InvalidInputError, match="alpha must"):
        odd_sequences(table, alpha=0)
