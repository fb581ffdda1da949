"""Simulated people: scales, rates of errors, floors of perfect judges, costs, active asking."""

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from cleanrank.data.split import Splits
from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.experiments.sources import load_splits
from cleanrank.experiments.studies import BUDGETS, STUDIES, StudyTask
from cleanrank.experiments.studies.labeling import (
    MODELS,
    SCALES,
    Query,
    majority_judge,
    make_queries,
    pairs_of,
    person,
)
from cleanrank.labeling.comparisons import EQUAL, FIRST, SECOND
from cleanrank.labeling.questions import Question
from cleanrank.labeling.tasks import make_task
from cleanrank.noise.profiles import uniform
from cleanrank.planning.judges import threshold_matrix, top_k_floor


def inquiry(study, rate=0.0, relevant=5, n_docs=50, n_queries=3, seed=1, **params):
    share = relevant / n_docs
    options = {"n_queries": n_queries, "n_docs": n_docs, "lowest": share, "highest": share}
    splits = load_splits("prevalence", 1, options)
    settings = {**STUDIES[study].params, **params}
    return StudyTask(splits, splits.train, splits.validation, uniform(rate, 2), settings, "map", seed)


def run(study, rate=0.0, **options):
    return STUDIES[study].run(inquiry(study, rate, **options))


def many(n=4000, relevant=0.2, seed=0):
    rng = np.random.default_rng(seed)
    quality = np.sort(rng.normal(size=n))
    return Query((np.arange(n) >= n * (1 - relevant)).astype(int), quality)


@pytest.mark.parametrize("finer", SCALES)
@pytest.mark.parametrize("n_grades", [2, 3, 5])
@pytest.mark.parametrize("relevant", [1, 5, 40])
def test_finer_grades_follow_quality_and_divide_the_two(finer, n_grades, relevant):
    query = make_queries(inquiry("judging", relevant=relevant, n_queries=1))[0]
    grades = query.grades(n_grades, finer)
    first_relevant = len(SCALES[finer][n_grades][0])
    assert ((grades >= first_relevant) == (query.relevant == 1)).all()
    assert (np.diff(grades[np.argsort(query.quality)]) >= 0).all()
    assert grades.max() == n_grades - 1
    assert query.quality[query.relevant == 1].min() > query.quality[query.relevant == 0].max()


def test_shares_of_finer_grades_are_those_of_the_scale():
    query = many()
    assert np.bincount(query.grades(5)).tolist() == [1920, 960, 320, 400, 400]
    assert np.bincount(query.grades(5, "relevant ones")).tolist() == [3200, 200, 200, 200, 200]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("n_grades", [2, 3])
def test_grades_are_wrong_at_the_rate_of_the_model(model, n_grades):
    query = many(relevant=0.5)
    task = make_task("grade", len(query.quality), n_grades=n_grades)
    judge = person(query, task, model, 0.1, seed=3)
    said = np.array([judge(Question((d,))) for d in range(len(query.quality))])
    wrong = (said != query.grades(n_grades)).mean()
    if model == "steps":
        shares = np.bincount(query.grades(n_grades)) / len(said)
        assert wrong == pytest.approx(shares @ (1 - np.diag(threshold_matrix(0.1, n_grades))), abs=0.02)
    elif model == "answers" or n_grades == 2:
        assert wrong == pytest.approx(0.1, abs=0.015)
    else:  # next to a step
        assert wrong > 0.1
    assert said.tolist() == [judge(Question((d,))) for d in range(len(said))]


@pytest.mark.parametrize("model", ["answers", "perception"])
def test_pairs_are_wrong_at_the_rate(model):
    query = many()
    task = make_task("top-k", len(query.quality), ties=False)
    judge = person(query, task, model, 0.2, seed=1)
    pairs = np.random.default_rng(0).choice(len(query.quality), (3000, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]].tolist()
    said = [judge(Question((a, b))) for a, b in pairs]
    right = [FIRST if query.quality[a] > query.quality[b] else SECOND for a, b in pairs]
    assert np.mean(np.array(said) != right) == pytest.approx(0.2, abs=0.025)
    turned = {FIRST: SECOND, SECOND: FIRST}
    assert [judge(Question((b, a))) for a, b in pairs] == [turned[value] for value in said]


@pytest.mark.parametrize("model", ["answers", "perception"])
def test_who_may_say_so_calls_documents_of_a_grade_of_five_equal(model):
    query = many(50)
    judge = person(query, make_task("top-k", 50, ties=True), model, 0.0, seed=1)
    grades = query.grades(5)
    for a, b in combinations(range(50), 2):
        assert (judge(Question((a, b))) == EQUAL) == (grades[a] == grades[b])


@pytest.mark.parametrize("relevant", [1, 2, 5, 10])
def test_a_perfect_judge_has_the_floor_and_nothing_else(relevant):
    best = run("judging", task="top-k", relevant=relevant).means
    assert best["pnoise"] == best["floor"] == pytest.approx(top_k_floor(50, 10, relevant))
    assert best["floor stated"] == pytest.approx(best["floor"])
    assert best["pairs"] == 445
    assert (best["corrected"], best["auc"]) == (0, 1)
    graded = run("judging", n_grades=5, relevant=relevant).means
    grades = many(50, relevant / 50).grades(5)
    count = Counter(int(a) // 3 != int(b) // 3 for a, b in combinations(grades, 2) if a != b)
    assert graded["floor"] == pytest.approx(count[False] / 2 / (count[True] + count[False]))
    assert graded["corrected"] == graded["corrected stated"] == 0
    assert graded["judgements"] == 50


def test_pairs_and_costs_are_those_counted_one_by_one():
    task = inquiry("judging", 0.3, n_grades=3, votes=3, seed=4)
    found = STUDIES["judging"].run(task)
    right = wrong = new = 0
    auc = []
    for q, query in enumerate(make_queries(task)):
        blank = make_task("grade", 50, n_grades=3)
        people = [person(query, blank, "answers", 0.3, 4 * 1_000_003 + 31 * q + vote) for vote in range(3)]
        said = [np.median([judge(Question((d,))) for judge in people]) for d in range(50)]
        scores = []
        for a, b in combinations(range(50), 2):
            given, true = np.sign(said[a] - said[b]), np.sign(query.relevant[a] - query.relevant[b])
            right, wrong = right + (given * true > 0), wrong + (given * true < 0)
            new += bool(given) and not true
            scores += [(1 + given * true) / 2] if true else []
        auc.append(np.mean(scores))
    assert found.means["pnoise"] == pytest.approx((wrong + new / 2) / (right + wrong + new))
    assert found.values["auc"].tolist() == pytest.approx(auc)
    assert found.means["judgements"] == 150
    assert set(found.means) == set(found.values) == set(STUDIES["judging"].measures)


def test_the_middle_answer_of_several_counts():
    def several(*values):
        return majority_judge([lambda question, value=value: value for value in values])

    assert several(FIRST, SECOND, FIRST)(Question((0, 1))) == FIRST
    assert several(FIRST, SECOND, EQUAL)(Question((0, 1))) == EQUAL
    assert several(SECOND, SECOND, EQUAL)(Question((0, 1))) == SECOND
    assert several(0, 4, 1)(Question((0,))) == 1
    assert pairs_of(np.array([[0, 1], [1, 0], [1, 2]]), np.array([1, 0, 0])).tolist() == [1, 1, 1]


def test_three_people_are_better_than_one_and_ties_save_questions():
    one, three = (run("judging", 0.2, n_grades=5, votes=n, n_queries=6).means for n in (1, 3))
    assert three["auc"] > one["auc"]
    plain, ties = (run("judging", 0.0, task="top-k", ties=t, n_queries=6).means for t in (False, True))
    assert ties["judgements"] < plain["judgements"]


def test_active_asking_reaches_the_floor_and_its_answers_are_looked_at_in_between():
    found = run("active_judging", 0.0, relevant=3, n_docs=20, n_queries=2, k=4)
    assert set(found.means) == set(found.values) == set(STUDIES["active_judging"].measures)
    last = BUDGETS[-1]
    assert found.means[f"corrected at {last}"] == pytest.approx(0)
    assert found.means[f"pnoise at {last}"] == pytest.approx(top_k_floor(20, 4, 3))
    assert found.means[f"auc at {last}"] == 1
    noisy = run("active_judging", 0.3, relevant=3, n_docs=20, n_queries=2, k=4)
    assert noisy.means[f"auc at {last}"] < 1
    assert (
        noisy.means != run("active_judging", 0.3, relevant=3, n_docs=20, n_queries=2, k=4, assumed=0.3).means
    )


def test_what_does_not_fit_is_refused():
    with pytest.raises(InvalidInputError, match="votes must be an odd number"):
        run("judging", votes=2)
    with pytest.raises(InvalidInputError, match="n_grades must be one of 2, 3, 5; got 4"):
        run("judging", n_grades=4)
    with pytest.raises(UnknownNameError, match="unknown model of errors 'steeps'"):
        run("judging", model="steeps")
    with pytest.raises(UnknownNameError, match="unknown documents that finer grades divide 'none'"):
        run("judging", finer="none")
    task = inquiry("judging")
    data = task.clean.train
    graded = data.with_labels(np.where(np.arange(data.n_docs) == 0, 2, data.y))
    with pytest.raises(InvalidInputError, match=r"must have the grades 0 and 1; got 0, 1, 2"):
        STUDIES["judging"].run(replace(task, clean=Splits(graded, graded, graded)))
