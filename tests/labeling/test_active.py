from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleanrank.errors import InvalidInputError
from cleanrank.labeling.active import ActiveTask, believed_quality, worth_of_pairs
from cleanrank.labeling.questions import Answer, Question
from cleanrank.labeling.tasks import TopKTask, ask, label_judge


def pnoise(grades, task):
    better, worse = task.preferences().T
    return ((grades[better] < grades[worse]) + (grades[better] == grades[worse]) / 2).mean()


def sampled_moments(answer, error, draws=400_000):
    """Mean and covariance of three qualities after one answer, by weighting draws."""
    qualities = np.random.default_rng(0).normal(size=(draws, 3))
    a, b = answer.question.documents
    right = (qualities[:, a] > qualities[:, b]) == (answer.value == 1)
    weights = np.where(right, 1 - error, error)
    mean = np.average(qualities, axis=0, weights=weights)
    return mean, np.cov(qualities.T, aweights=weights)


@pytest.mark.parametrize("error", [0.0, 0.2])
@pytest.mark.parametrize("value", [1, 2])
def test_beliefs_after_an_answer_are_those_of_bayes(error, value):
    answer = Answer(Question((2, 0)), value)
    mean, covariance = believed_quality(3, (answer,), error)
    expected_mean, expected_covariance = sampled_moments(answer, error)
    assert mean == pytest.approx(expected_mean, abs=0.01)
    assert covariance == pytest.approx(expected_covariance, abs=0.01)


def test_equal_documents_come_together_and_skipped_pairs_tell_nothing():
    first = Answer(Question((0, 1)), 1)
    apart, _ = believed_quality(3, (first,), 0.1)
    together, covariance = believed_quality(3, (first, Answer(Question((1, 0)), 0)), 0.1)
    assert abs(together[0] - together[1]) < 0.05 * (apart[0] - apart[1])
    assert covariance[0, 1] > 0.4
    skipped, _ = believed_quality(3, (first, Answer(Question((1, 2)), None)), 0.1)
    assert skipped.tolist() == apart.tolist()


def test_the_worth_of_a_pair_is_the_fall_of_its_variance_times_its_chance_to_count():
    error, answers = (
        0.15,
        (Answer(Question((0, 1)), 1), Answer(Question((1, 2)), 1), Answer(Question((3, 0)), 2)),
    )
    mean, covariance = believed_quality(4, answers, error)
    worth = worth_of_pairs(mean, covariance, error, 4)  # all are among the best 4: every pair counts
    assert worth == pytest.approx(worth.T)
    for a, b in combinations(range(4), 2):
        x = np.zeros(4)
        x[[a, b]] = 1, -1
        before = x @ covariance @ x
        chance = error + (1 - 2 * error) * np.mean(
            np.random.default_rng(1).normal(x @ mean, np.sqrt(before), 400_000) > 0
        )
        after = [believed_quality(4, (*answers, Answer(Question((a, b)), v)), error)[1] for v in (1, 2)]
        expected = chance * (x @ after[0] @ x) + (1 - chance) * (x @ after[1] @ x)
        assert worth[a, b] == pytest.approx(before - expected, rel=0.02, abs=1e-4)
    few = worth_of_pairs(mean, covariance, error, 1)
    assert few[2, 3] / worth[2, 3] < few[0, 1] / worth[0, 1]  # 0 is likely the best: its pairs count


@settings(deadline=None, max_examples=30)
@given(grades=st.permutations(range(8)), k=st.integers(1, 8))
def test_all_pairs_of_an_exact_judge_give_the_true_order(grades, k):
    task = ask(ActiveTask(8, k=k, error=0.05, budget=28), grades)
    assert list(task.best) == sorted(range(8), key=lambda d: -grades[d])[:k]


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000), error=st.sampled_from([0.0, 0.1, 0.4]))
def test_contradictions_break_nothing(seed, error):
    """Coins answer every pair: beliefs stay finite, their covariance a covariance."""
    rng = np.random.default_rng(seed)
    task = ask(ActiveTask(7, k=3, error=error, budget=99), lambda question: int(rng.integers(0, 3)))
    assert len(task.answers) == 21
    mean, covariance = believed_quality(7, task.answers, error)
    assert np.isfinite(mean).all()
    assert np.linalg.eigvalsh(covariance).min() > -1e-6
    assert len(set(task.best)) == 3


def test_budgets_and_what_is_left():
    task = ActiveTask(50, k=10)
    assert task.expected_left == 107  # 50 + 10 log2 50
    assert task.expected_left < TopKTask(50, k=10).expected_left
    assert ActiveTask(50, budget=5).answer(1).expected_left == 4
    assert ActiveTask(3, budget=99).expected_left == 3
    assert ask(ActiveTask(20, budget=9), np.arange(20)).expected_left == 0
    assert ActiveTask(1).is_done
    assert ActiveTask(1).best == (0,)
    with pytest.raises(InvalidInputError, match="at most 300 for the task 'active'; got 301"):
        ActiveTask(301)
    for wrong in ({"error": 0.5}, {"budget": 0}):
        with pytest.raises(InvalidInputError, match="must be"):
            ActiveTask(5, **wrong)


def test_what_follows_is_not_asked_with_transitivity():
    grades = np.random.default_rng(3).permutation(9)
    task = ask(ActiveTask(9, k=9, budget=99, error=0.0, transitive=True), grades)
    assert len(task.answers) < 36
    assert list(task.best) == np.argsort(-grades).tolist()


@pytest.mark.parametrize("error", [0.1, 0.2])
def test_fewer_answers_bring_less_noise_than_the_heap(error):
    rng = np.random.default_rng(4)
    noise, answers = [], []
    for seed in range(15):
        grades = rng.permutation(40)
        judge = label_judge(grades, error, ties=False, seed=seed)
        heap = ask(TopKTask(40, k=8, ties=False), judge)
        active = ask(ActiveTask(40, k=8, ties=False, budget=80), judge)
        noise.append((pnoise(grades, heap), pnoise(grades, active)))
        answers.append(len(heap.answers))
    assert np.mean(answers) > 80
    heap_noise, active_noise = np.mean(noise, axis=0)
    assert active_noise < 0.8 * heap_noise
