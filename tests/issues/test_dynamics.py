import itertools

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.issues.dynamics import Course, find_by_loss, find_forgotten, pair_losses, watch_run
from cleanrank.rankers.grade_model import watch_boosting


@pytest.fixture(scope="module")
def noisy():
    return cr.corrupt(cr.make_ranking(60, 8, docs_per_query=25, signal=0.95, seed=0), rate=0.1, seed=1)


def run_of(n, C, looks, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.dirichlet(np.ones(C), size=n) for _ in range(looks)]


def test_a_run_of_probabilities_is_counted_as_defined(toy):
    run = run_of(toy.n_docs, 3, 7)
    course = Course(toy).watch(iter(run))
    for i in (0, 17, 333):
        given = toy.y[i]
        right = [int(p[i].argmax()) == given for p in run]
        assert course.right[i] == sum(right)
        assert course.forgotten[i] == sum(a and not b for a, b in itertools.pairwise(right))
        assert course.mean_loss[i] == pytest.approx(np.mean([-np.log(p[i, given]) for p in run]))
        assert course.likely[i] == np.mean([p[i] for p in run], axis=0).argmax()
        wanted = 1.0 if not any(right) else course.forgotten[i] / 3
        assert course.forgetting[i] == pytest.approx(wanted)


def test_pair_losses_are_those_of_a_naive_loop(toy):
    scores = np.random.default_rng(1).normal(size=toy.n_docs) * 30
    found = np.zeros(toy.n_docs)
    pair_losses(scores, toy.y, toy.indptr, found)
    for q in (0, 7, 39):
        a, b = toy.indptr[q : q + 2]
        for i in range(a, b):
            others = [j for j in range(a, b) if toy.y[j] != toy.y[i]]
            losses = [
                np.logaddexp(0, -(scores[i] - scores[j]) * np.sign(int(toy.y[i]) - int(toy.y[j])))
                for j in others
            ]
            assert found[i] == pytest.approx(np.mean(losses) if losses else 0.0)


def test_scores_in_the_order_of_the_grades_are_right_and_never_forgotten(toy):
    rng = np.random.default_rng(0)
    run = [toy.y + 0.4 * rng.random(toy.n_docs) for _ in range(4)]
    course = Course(toy).watch(run)
    assert (course.right == 4).all()
    assert not course.forgotten.any()
    np.testing.assert_array_equal(course.likely, toy.y)
    turned = Course(toy).watch([-scores for scores in run])
    assert turned.mean_loss.mean() > course.mean_loss.mean()


def test_a_row_that_is_never_right_is_doubted_most():
    data = cr.from_arrays(np.zeros((2, 1)), [0, 1], group=[2])
    run = [np.array([[0.9, 0.1], [0.9, 0.1]])] * 3
    found = find_forgotten(data, run=run)
    assert found.doubt.tolist() == [0.0, 1.0]
    assert found.suggested_label.tolist() == [0, 0]
    assert found.reasons["rounds_wrong"].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("find", [find_by_loss, find_forgotten])
@pytest.mark.parametrize("objective", ["grades", "ranking"])
@pytest.mark.parametrize("folds", [0, 3])
def test_forests_find_more_than_chance(noisy, find, objective, folds):
    found = find(noisy.data, objective=objective, folds=folds, rounds=20)
    assert found.average_precision(noisy) > 1.3 * noisy.rate
    changed = found.suggested_label != found.given_label
    np.testing.assert_array_equal(changed, found.is_label_issue)


def test_out_of_fold_rows_are_seen_by_forests_that_never_saw_their_query(noisy):
    # Shuffled labels cannot be learnt by a forest that has not seen them.
    data = noisy.data
    shuffled = data.with_labels(np.random.default_rng(0).permutation(data.y))
    options = {"rounds": 60, "params": {"num_leaves": 63, "min_data_in_leaf": 2, "lambda_l2": 0.0}}
    inside = watch_run(shuffled, folds=0, **options)
    outside = watch_run(shuffled, folds=3, **options)
    assert inside.mean_loss.mean() < 0.5 * outside.mean_loss.mean()
    assert outside.looks == 60


def test_the_first_looks_do_not_depend_on_how_long_the_run_is(noisy):
    short, long = [], []
    for seen, trees in ((short, 5), (long, 9)):
        watch_boosting(noisy.data, None, lambda i, p, to=seen: to.append(p.copy()), n_estimators=trees)
    np.testing.assert_array_equal(short, long[:5])


def test_mistakes_are_named(toy):
    with pytest.raises(CleanrankError, match="must hold at least one set of predictions"):
        find_by_loss(toy, run=[])
    with pytest.raises(CleanrankError, match=r"one row per document \(480\)"):
        find_by_loss(toy, run=[np.zeros(3)])
    with pytest.raises(CleanrankError, match="must be finite; got nan or infinite at look 2"):
        find_by_loss(toy, run=[np.zeros(480), np.full(480, np.nan)])
    with pytest.raises(CleanrankError, match="a column for each of 3 grades"):
        find_by_loss(toy, run=[np.full((480, 2), 0.5)])
    with pytest.raises(CleanrankError, match="share must be a number > 0 and <= 1"):
        find_by_loss(toy, share=0.0)
    with pytest.raises(CleanrankError, match="unknown objective 'rank'"):
        find_forgotten(toy, objective="rank")


def test_a_run_is_of_one_kind_and_settings_are_checked(noisy):
    n, C = noisy.data.n_docs, 5
    probable = np.full((n, C), 1 / C)
    for run in ([np.zeros(n), probable], [probable, np.zeros(n)]):
        with pytest.raises(CleanrankError, match=r"probabilities all along, or scores all along.* look 2"):
            find_by_loss(noisy.data, run=run)
    with pytest.raises(CleanrankError, match="must keep their shape"):
        find_by_loss(noisy.data, run=[probable, np.full((n, 6), 1 / 6)])
    for least in (0.0, 2.0, float("nan")):
        with pytest.raises(CleanrankError, match="least must be a number > 0 and <= 1"):
            find_forgotten(noisy.data, least=least, run=[probable])
    for options in ({"rounds": 0}, {"rounds": 2.5}, {"folds": 1}, {"folds": -1}, {"seed": -1}, {"n_jobs": 0}):
        with pytest.raises(CleanrankError, match=f"{next(iter(options))} must be"):
            find_by_loss(noisy.data, **options)


def test_threads_change_nothing(noisy):
    runs = [np.random.default_rng(s).normal(size=noisy.data.n_docs) for s in range(3)]
    one, all_ = (find_by_loss(noisy.data, run=runs, n_jobs=n).doubt for n in (1, -1))
    np.testing.assert_array_equal(one, all_)
