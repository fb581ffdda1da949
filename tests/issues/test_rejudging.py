"""Expected wins of judging again: against brute force over all true grades, and against known truth."""

import itertools

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError
from cleanrank.issues.rejudging import doubts_of_judged, plan_rejudging
from cleanrank.issues.table import LabelIssues
from cleanrank.noise.gold_sheet import gold_answers


def table_of(data, W, **more):
    doubt = 1 - W[np.arange(len(W)), data.y]
    reasons = {f"p_true_{l}": W[:, l] for l in range(W.shape[1])}
    return LabelIssues.of(data, doubt=doubt, is_label_issue=doubt > 0.5, reasons=reasons, **more)


@pytest.mark.parametrize("judge", [None, [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.0, 0.3, 0.7]]])
@pytest.mark.parametrize("seed", range(4))
def test_pairs_are_those_of_all_true_and_new_grades(seed, judge):
    """Every combination of true grades, and of answers of the judge, weighed by its probability."""
    rng = np.random.default_rng(seed)
    data = cr.from_arrays(np.zeros((5, 1)), rng.integers(0, 3, 5), qid=[1, 1, 1, 2, 2])
    W = rng.dirichlet(np.ones(3), 5)
    plan = plan_rejudging(table_of(data, W), data, rows=[2], cost=2.0, judge=judge)[0]
    doubt = 1 - W[np.arange(5), data.y]
    again = np.argsort(-doubt, kind="stable")[:2]
    E = np.eye(3) if judge is None else np.array(judge)
    sums = {"before": np.zeros(2), "after": np.zeros(2)}
    for truth in itertools.product(range(3), repeat=5):
        p = np.prod(W[np.arange(5), truth])
        for answers in itertools.product(range(3), repeat=2):
            chance = p * np.prod(E[np.array(truth)[again], answers])
            labels = data.y.copy()
            labels[again] = answers
            for name, given in (("before", data.y), ("after", labels)):
                pairs = cr.pnoise(np.array(truth), given, data.indptr)
                sums[name] += chance * np.array([pairs.inverse + 0.5 * pairs.new_come, pairs.total])
    assert plan.pnoise_before == pytest.approx(sums["before"][0] / sums["before"][1])
    assert plan.pnoise_after == pytest.approx(sums["after"][0] / sums["after"][1])
    assert plan.cost == 4.0
    assert plan.wrong == pytest.approx(doubt[again].sum())
    assert plan.at_random == pytest.approx(2 * doubt.mean())
    left = doubt.sum() - doubt[again].sum() + (W[again] @ (1 - np.diag(E))).sum()
    assert plan.wrong_left == pytest.approx(left)


def test_judged_rows_count_as_corrected_and_are_not_judged_again():
    data = cr.from_arrays(np.zeros((3, 1)), [1, 0, 0], group=[3])
    W = np.array([[1.0, 0.0], [0.6, 0.4], [0.9, 0.1]])
    plan = plan_rejudging(table_of(data, W), data, rows=[5], judged=[0])[0]
    assert plan.rows == 2
    assert plan.wrong == pytest.approx(0.5)
    assert np.isnan(plan.pnoise_before)  # all three are graded 0 now
    assert plan.pnoise_after == 0.0


def test_what_it_expects_comes_true():
    """With the true noise: wrong labels among the most doubted, and pNoise, as counted."""
    inside, errors = 0, []
    for seed in range(6):
        clean = cr.make_ranking(80, 8, docs_per_query=25, seed=seed)
        noisy = cr.corrupt(clean, "uniform", 0.15, seed=seed + 50)
        sheet = cr.sample_gold(noisy.data, 200, seed=seed)
        answers = (sheet.row_ids, clean.y[sheet.rows])
        noise = cr.estimate_noise(noisy.data, gold=answers)
        issues = cr.find_label_issues(noisy.data, gold=answers, folds=3, seed=seed)
        plan = plan_rejudging(
            issues, noisy.data, rows=[200], judged=sheet.row_ids, noise=noise, budget=200, seed=seed
        )[0]
        judged = np.isin(noisy.data.row_ids, sheet.row_ids)
        order = np.argsort(-np.where(judged, -1, issues.doubt), kind="stable")[:200]
        labels = np.where(judged, clean.y, noisy.data.y)
        wrong = int((labels[order] != clean.y[order]).sum())
        inside += plan.low <= wrong <= plan.high
        before = float(cr.pnoise(clean.y, labels, clean.indptr))
        labels[order] = clean.y[order]
        after = float(cr.pnoise(clean.y, labels, clean.indptr))
        errors.append((plan.pnoise_before - plan.pnoise_after) - (before - after))
        assert plan.wrong > 1.5 * plan.at_random
    assert inside >= 4
    assert abs(np.mean(errors)) < 0.02


def test_doubts_are_corrected_by_the_rows_that_were_judged():
    """A judge who errs where nobody expects it: half of the doubts come true, and the plan says so."""
    rng = np.random.default_rng(0)
    data = cr.from_arrays(np.zeros((4000, 1)), rng.integers(0, 2, 4000), group=[40] * 100)
    doubt = rng.beta(1, 2, 4000)
    wrong = rng.random(4000) < doubt / 2
    W = np.where(np.arange(2) == data.y[:, None], 1 - doubt[:, None], doubt[:, None])
    judged = rng.choice(4000, 300, replace=False)
    answers = gold_answers((judged, np.where(wrong, 1 - data.y, data.y)[judged]), data)
    table = table_of(data, W)
    check = doubts_of_judged(table, data, answers)
    plan = plan_rejudging(table, data, rows=[300], judged=judged, check=check)[0]
    left = np.setdiff1d(np.arange(4000), judged)
    first = left[np.argsort(-doubt[left], kind="stable")[:300]]
    assert plan.low <= wrong[first].sum() <= plan.high
    assert plan.high - plan.low < 150
    unchecked = plan_rejudging(table, data, rows=[300], judged=judged)[0]
    assert unchecked.low > 1.5 * wrong[first].sum()


def test_doubts_that_are_no_probabilities_are_refused():
    noisy = cr.corrupt(cr.make_ranking(30, 5, docs_per_query=15, seed=0), rate=0.1, seed=1)
    with pytest.raises(InvalidInputError, match=r"only order the rows.*gold= or noise="):
        plan_rejudging(cr.find_label_issues(noisy.data, folds=2), noisy.data)
    with pytest.raises(InvalidInputError, match="probability of every grade"):
        plan_rejudging(cr.find_label_issues(noisy.data, "confident", folds=2), noisy.data)


def test_budgets():
    data = cr.from_arrays(np.zeros((400, 1)), [0, 1] * 200, group=[400])
    table = table_of(data, np.tile([0.5, 0.5], (400, 1)))
    assert [p.rows for p in plan_rejudging(table, data, cost=0.1)] == [100, 300, 400]
    assert [p.rows for p in plan_rejudging(table, data, cost=0.1, budget=30)] == [100, 300]
    assert [p.rows for p in plan_rejudging(table, data, cost=0.1, budget=7)] == [70]
    with pytest.raises(InvalidInputError, match="must buy one judgement"):
        plan_rejudging(table, data, cost=0.1, budget=0.05)
