import dataclasses

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.cleaning import clean
from cleanrank.errors import CleanrankError
from cleanrank.experiments.methods import METHODS, Judge, MethodTask, Unjudged
from cleanrank.noise.gold import from_gold, sample_gold
from cleanrank.rankers.boosted import average_models
from cleanrank.rankers.trees import TreeParams
from cleanrank.robust.robust_ranker import RobustRanker

QUICK = {"rounds": 12, "early_stopping_rounds": 6, "min_data_in_leaf": 5}
GRID = {"num_leaves": [3, 15]}


@pytest.fixture(scope="module")
def made():
    whole = cr.make_ranking(240, 6, docs_per_query=12, signal=0.95, seed=4)
    train, validation, test = (
        whole.select(np.repeat(np.arange(240) % 3 == part, whole.lengths)) for part in range(3)
    )
    noisy = cr.corrupt(train, rate=0.2, seed=5)
    return noisy, cr.corrupt(validation, rate=0.2, seed=6).data, test


def task(made, name, **changes):
    noisy, validation, test = made
    params = {**METHODS[name].params, **QUICK, **changes}
    judge = Judge(noisy.true_labels, params["gold"])
    return MethodTask(
        noisy.data, validation, Unjudged(test.X, test.indptr), params, GRID, seed=3, judge=judge,
        profile=noisy.profile if params.get("noise") == "true" else None,
    )  # fmt: skip


def trained(made, data, validation=None):
    """What the grid gives on other training data, by hand."""
    _, noisy_validation, test = made
    held = noisy_validation if validation is None else validation
    models = [
        TreeParams(
            n_estimators=12,
            early_stopping_rounds=6,
            smoothing=10,
            seed=3,
            params={"lambdarank_truncation_level": 30, "min_data_in_leaf": 5, "num_leaves": leaves},
        ).train(data, held)
        for leaves in GRID["num_leaves"]
    ]
    return average_models(models, [m.predict(held.X) for m in models], held.indptr).predict(test.X)


def test_nothing_bought_is_the_noisy_baseline_and_everything_the_clean_one(made):
    noisy, _, _ = made
    for gold, data in ((0, noisy.data), (-1, noisy.data.with_labels(noisy.true_labels))):
        given = task(made, "corrected", gold=gold)
        np.testing.assert_allclose(METHODS["corrected"].run(given).scores, trained(made, data))
        assert given.judge.n_judged == (0 if gold == 0 else noisy.data.n_docs)


def test_bought_rows_are_put_right_and_paid_for(made):
    noisy, _, _ = made
    given = task(made, "corrected", gold=40, strategy="random")
    found = METHODS["corrected"].run(given)
    rows = sample_gold(noisy.data, 40, "random", 3).rows
    y = noisy.data.y.copy()
    y[rows] = noisy.true_labels[rows]
    np.testing.assert_allclose(found.scores, trained(made, noisy.data.with_labels(y)))
    assert given.judge.n_judged == 40


def test_the_most_doubtful_rows_are_the_most_doubtful_and_estimate_no_matrix(made):
    noisy, _, _ = made
    asked = []

    class Watching(Judge):
        def __call__(self, rows):
            asked.extend(np.asarray(rows).tolist())
            return super().__call__(rows)

    given = task(made, "corrected", gold=30, strategy="doubtful")
    METHODS["corrected"].run(dataclasses.replace(given, judge=Watching(noisy.true_labels, 30)))
    doubt = cr.find_label_issues(noisy.data, "confident", seed=3).doubt
    assert doubt[asked].min() >= np.delete(doubt, asked).max()
    for name, options in (
        ("cleaned", {"detector": "posterior", "mode": "posterior", "noise": "gold"}),
        ("robust", {}),
    ):
        with pytest.raises(CleanrankError, match="strategy must draw rows at random for a noise matrix"):
            METHODS[name].run(task(made, name, gold=30, strategy="doubtful", **options))


def test_a_detector_and_a_cleaner_then_the_grid(made):
    noisy, _, _ = made
    found = METHODS["cleaned"].run(task(made, "cleaned", detector="confident", mode="relabel"))
    done = clean(noisy.data, cr.find_label_issues(noisy.data, "confident", seed=3), "relabel")
    np.testing.assert_allclose(found.scores, trained(made, done.data))
    assert found.chosen["acted"] == done.acted.sum() > 0


def test_the_posterior_is_told_the_matrix_or_estimates_it_from_bought_rows(made):
    noisy, _, _ = made
    options = {"detector": "posterior", "mode": "posterior"}
    told = METHODS["cleaned"].run(task(made, "cleaned", noise="true", **options)).scores
    table = cr.find_label_issues(noisy.data, "posterior", noise=noisy.profile, seed=3)
    np.testing.assert_allclose(told, trained(made, clean(noisy.data, table, "posterior").data))
    given = task(made, "cleaned", noise="gold", gold=60, **options)
    bought = METHODS["cleaned"].run(given).scores
    assert given.judge.n_judged == 60
    sheet = sample_gold(noisy.data, 60, seed=3)
    truth = noisy.true_labels[sheet.rows]
    known = np.full(noisy.data.n_docs, -1)
    known[sheet.rows] = truth
    estimate = from_gold(noisy.data, sheet.row_ids, truth, n_grades=5, seed=3)
    table = cr.find_label_issues(noisy.data, "posterior", noise=estimate, known=known, seed=3)
    np.testing.assert_allclose(bought, trained(made, clean(noisy.data, table, "posterior").data))


def test_rows_that_were_judged_again_are_never_dropped(made, monkeypatch):
    from cleanrank.experiments.methods import trees

    seen = []
    monkeypatch.setattr(trees, "_trained_on", lambda train, task, **facts: seen.append(train))
    METHODS["cleaned"].run(task(made, "cleaned", gold=50))
    noisy, _, _ = made
    sheet = sample_gold(noisy.data, 50, seed=3)
    left = dict(zip(seen[0].row_ids.tolist(), seen[0].y.tolist(), strict=True))
    assert len(left) < noisy.data.n_docs
    assert [left[r] for r in sheet.row_ids.tolist()] == noisy.true_labels[sheet.rows].tolist()


def test_robust_ranker_gets_the_rows_and_the_grid(made):
    noisy, validation, test = made
    given = task(made, "robust", gold=60)
    found = METHODS["robust"].run(given)
    assert given.judge.n_judged == 60
    assert found.chosen["strategy"] == "auto"
    sheet = sample_gold(noisy.data, 60, seed=3)
    others = ("repair", "noise", "gold", "strategy", "objective", "selection", "norm", "num_leaves")
    counts = ("rounds", "early_stopping_rounds")
    trees = {k: v for k, v in given.params.items() if k not in (*others, *counts)}
    ranker = RobustRanker(
        grid=GRID, n_estimators=12, early_stopping_rounds=6, random_state=3, params=trees
    ).fit_data(noisy.data, validation, gold=(sheet.row_ids, noisy.true_labels[sheet.rows]))  # fmt: skip
    np.testing.assert_allclose(found.scores, ranker.predict(test.X))


def test_one_model_of_the_grid_can_be_kept_and_least_squares_be_asked_for(made):
    best = METHODS["corrected"].run(task(made, "corrected", selection="best"))
    assert best.chosen["num_leaves"] in GRID["num_leaves"]
    averaged = METHODS["corrected"].run(task(made, "corrected"))
    assert averaged.chosen["models"] == len(GRID["num_leaves"])
    noisy, validation, test = made
    ranker = cr.BoostedRanker(
        objective="gbdt", grid=GRID, selection="average", n_estimators=12, early_stopping_rounds=6,
        random_state=3, params={"min_data_in_leaf": 5},
    ).fit_data(noisy.data, validation)  # fmt: skip
    squares = METHODS["corrected"].run(task(made, "corrected", objective="gbdt"))
    np.testing.assert_allclose(squares.scores, ranker.predict(test.X))


def test_unknown_sources_and_strategies_are_named(made):
    with pytest.raises(CleanrankError, match="unknown source of the noise 'guess'"):
        METHODS["cleaned"].run(task(made, "cleaned", noise="guess"))
    with pytest.raises(CleanrankError, match="unknown sampling strategy 'best'"):
        METHODS["corrected"].run(task(made, "corrected", gold=9, strategy="best"))


def test_rows_bought_by_doubt_carry_the_shares_that_they_were_drawn_from(made, monkeypatch):
    """Without the shares the most doubtful rows would stand for all, and the noise would look far larger."""
    from cleanrank.experiments.methods import trees

    noisy, _, _ = made
    doubt = cr.find_label_issues(noisy.data, "confident", seed=3).doubt
    sheet = sample_gold(noisy.data, 60, "doubt", 3, doubt=doubt)
    assert len(set(sheet.shares.tolist())) > 1
    truth = noisy.true_labels[sheet.rows]
    options = {"detector": "posterior", "mode": "posterior", "noise": "gold", "strategy": "doubt"}
    seen = {}
    monkeypatch.setattr(trees, "find_label_issues", _noting(seen, cr.find_label_issues))
    METHODS["cleaned"].run(task(made, "cleaned", gold=60, **options))
    wanted = from_gold(noisy.data, sheet.row_ids, truth, shares=sheet.shares, n_grades=5, seed=3)
    np.testing.assert_array_equal(seen["noise"].matrix, wanted.matrix)

    class Watched(RobustRanker):
        def fit_data(self, train, validation=None, **given):
            seen.update(given)
            raise KeyboardInterrupt

    monkeypatch.setattr(trees, "RobustRanker", Watched)
    with pytest.raises(KeyboardInterrupt):
        METHODS["robust"].run(task(made, "robust", gold=60, strategy="doubt"))
    rows, grades, shares = seen["gold"]
    np.testing.assert_array_equal(rows, sheet.row_ids)
    np.testing.assert_array_equal(grades, truth)
    np.testing.assert_array_equal(shares, sheet.shares)


def _noting(seen, find):
    """``find_label_issues`` that notes its options."""

    def noted(*arguments, **options):
        seen.update(options)
        return find(*arguments, **options)

    return noted
