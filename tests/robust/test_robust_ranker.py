"""RobustRanker: which strategy it takes, what it trains on, and that it says so."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold

import cleanrank as cr
from cleanrank.metrics.evaluation import evaluate_mean
from cleanrank.noise.assumed import possible_noise
from cleanrank.noise.gold import from_gold, sample_gold
from cleanrank.noise.gold_sheet import GoldAnswers, gold_answers
from cleanrank.noise.profiles import uniform
from cleanrank.rankers.grade_model import cross_fit_means
from cleanrank.rankers.trees import TreeParams
from cleanrank.robust.robust_ranker import GRID, RobustRanker, every_other
from cleanrank.robust.robust_report import AVERAGED, STRATEGIES
from cleanrank.robust.targets import given_probabilities

QUICK = {"n_estimators": 8, "folds": 2, "early_stopping_rounds": 5}
GRID_OF_TWO = {"num_leaves": (4, 8), "min_data_in_leaf": (20,)}


@pytest.fixture(scope="module")
def noisy():
    return cr.corrupt(cr.make_ranking(60, 6, docs_per_query=15, seed=1), rate=0.2, seed=2)


@pytest.fixture(scope="module")
def held():
    return cr.corrupt(cr.make_ranking(20, 6, docs_per_query=15, seed=3), rate=0.2, seed=4)


def fitted(noisy, held=None, *, gold=None, **options):
    pair = {} if held is None else {"eval_set": (held.data.X, held.data.y), "eval_qid": held.data.qid}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RobustRanker(**{**QUICK, "grid": GRID_OF_TWO, **options}).fit(
            noisy.data.X, noisy.data.y, qid=noisy.data.qid, gold=gold, **pair
        )


def test_the_default_grid_has_four_cells(noisy, held):
    assert sorted(GRID) == ["min_data_in_leaf", "num_leaves"]
    ranker = RobustRanker(noise=noisy.profile, **QUICK).fit_data(noisy.data, held.data)
    assert len(ranker.report_.tried) == 4 + 1  # by lambdarank, and by least squares, which has no grid


def test_few_documents_get_small_leaves_only():
    tiny = cr.corrupt(cr.make_ranking(12, 4, docs_per_query=12, seed=0), rate=0.2, seed=1)
    ranker = RobustRanker(noise=tiny.profile, n_estimators=3, folds=2).fit_data(tiny.data)
    assert {cell.get("min_data_in_leaf") for cell in ranker.report_.tried} == {20, None}


def test_with_a_matrix_it_trains_on_expected_gains(noisy, held):
    one = {"num_leaves": (4,)}
    ranker = fitted(noisy, held, noise=noisy.profile, grid=one, early_stopping_rounds=None)
    assert ranker.chosen_["strategy"] == ranker.report_.strategy == "posterior"
    gains = ranker.cleaned_.data.gains
    columns = np.stack([ranker.issues_.reasons[f"p_true_{g}"] for g in range(5)], axis=1)
    assert gains == pytest.approx(columns @ [0, 1, 3, 7, 15])
    repaired = noisy.data.with_labels(noisy.data.y, gains=gains)
    parts = [
        TreeParams(n_estimators=8, params={"num_leaves": 4}).train(repaired),
        cross_fit_means(noisy.data, np.log2(1 + gains), 2).model,
    ]
    rest = held.data
    each = [part.predict(rest.X) for part in parts]
    spread = [np.std(np.concatenate([q - q.mean() for q in np.split(s, rest.indptr[1:-1])])) for s in each]
    mean = sum(s / spread_ for s, spread_ in zip(each, spread, strict=True)) / 2
    assert ranker.predict(rest.X) == pytest.approx(mean)


def test_without_judgements_strategies_are_averaged(noisy, held):
    ranker = fitted(noisy, held)
    report = ranker.report_
    assert ranker.chosen_["strategy"] == report.strategy == "auto"
    assert report.weights == dict.fromkeys(AVERAGED, 0.5)
    assert {(r["strategy"], r["objective"]) for r in report.tried} == {
        (strategy, objective) for strategy in AVERAGED for objective in ("lambdarank", "gbdt")
    }
    assert "nothing is known about the noise" in repr(report)
    assert 0 < ranker.chosen_["trees"] <= sum(record["trees"] for record in report.tried)
    assert ranker.chosen_["models"] == len(report.tried) == 4


def test_strategies_by_themselves_are_what_is_averaged(noisy, held):
    """With a grid of one cell, which all of them have."""
    one = {"num_leaves": (4,)}
    scores = [fitted(noisy, held, strategy=name, grid=one).predict(held.data.X) for name in AVERAGED]
    assert fitted(noisy, held, grid=one).predict(held.data.X) == pytest.approx(np.mean(scores, axis=0))


def test_strategies_share_out_the_grid(noisy, held):
    grid = {"num_leaves": (4, 8), "min_data_in_leaf": (5, 20)}
    tried = [r for r in fitted(noisy, held, grid=grid).tried_ if r["objective"] == "lambdarank"]
    cells = {name: [tuple(r[k] for k in grid) for r in tried if r["strategy"] == name] for name in AVERAGED}
    assert cells == {"posterior": [(4, 5), (8, 20)], "grades": [(4, 20), (8, 5)]}
    three = every_other([{"a": 1}, {"a": 2}, {"a": 3}], 0)
    assert three == [{"a": [1]}, {"a": [3]}]
    assert every_other([{"a": 1}], 0) == every_other([{"a": 1}], 1) == [{"a": [1]}]


def test_least_squares_are_bagged_over_folds_and_obey_params(noisy, held):
    ranker = fitted(noisy, held, strategy="grades", folds=3)
    (record,) = (r for r in ranker.tried_ if r["objective"] == "gbdt")
    means = cross_fit_means(noisy.data, noisy.data.y.astype(float), 3)
    assert (record["folds"], record["trees"]) == (3, means.model.best_iteration)
    (target,) = ranker._repaired.targets
    value = evaluate_mean(means.model.predict(held.data.X), target.validation, "ndcg@10")
    assert record["validation"] == pytest.approx(value)
    rising = fitted(noisy, held, strategy="grades", params={"monotone_constraints": [1] * 6})
    X = np.repeat(held.data.X[:1], 2, axis=0)
    X[1] += 1
    assert np.diff(rising.predict(X)) >= 0


@pytest.mark.parametrize("strategy", sorted(set(STRATEGIES) - {"auto"}))
def test_every_strategy_can_be_had_by_itself(noisy, held, strategy):
    ranker = fitted(noisy, held, strategy=strategy)
    assert ranker.chosen_["strategy"] == strategy
    assert list(ranker.report_.weights) == [strategy]
    assert (ranker.issues_ is None) == (strategy not in ("posterior", "assumed"))
    assert np.isfinite(ranker.predict(held.data.X)).all()


def test_the_best_cell_on_validation_data_is_kept_if_asked(noisy, held):
    ranker = fitted(noisy, held, noise=noisy.profile, selection="best")
    tried = ranker.report_.tried
    *cells, by_means = tried
    assert [r["objective"] for r in tried] == ["lambdarank", "lambdarank", "gbdt"]
    best = max(cells, key=lambda r: r["validation"])
    assert ranker.chosen_["trees"] == best["trees"] + by_means["trees"]


@pytest.mark.parametrize("kind", ["matrix", "profile", "estimate", "answers"])
def test_noise_comes_in_many_forms(noisy, held, kind):
    sheet = sample_gold(noisy.data, 60, seed=5)
    truth = noisy.true_labels[sheet.rows]
    form = {
        "matrix": noisy.profile.matrix,
        "profile": noisy.profile,
        "estimate": from_gold(noisy.data, sheet.row_ids, truth),
        "answers": GoldAnswers(sheet.row_ids, truth, np.ones(60)),
    }[kind]
    report = fitted(noisy, held, noise=form).report_
    assert report.strategy == ("auto" if kind == "answers" else "posterior")
    assert report.noise is not None


def test_gold_rows_are_known_and_estimate_the_noise(noisy, held):
    sheet = sample_gold(noisy.data, 80, seed=5)
    truth = noisy.true_labels[sheet.rows]
    ranker = fitted(noisy, held, gold=(sheet.row_ids, truth))
    assumed = possible_noise(given_probabilities(noisy.data, None, 5, folds=2)[0], noisy.data.y)
    wanted = from_gold(noisy.data, sheet.row_ids, truth, seed=0, assumed=assumed)
    assert ranker.report_.noise.matrix == pytest.approx(wanted.matrix)
    assert ranker.report_.n_gold == 80
    assert ranker.cleaned_.data.gains[sheet.rows] == pytest.approx(2.0**truth - 1)


def test_gold_rows_add_a_strategy_to_those_that_need_none(noisy, held):
    sheet = sample_gold(noisy.data, 80, seed=5)
    ranker = fitted(noisy, held, gold=(sheet.row_ids, noisy.true_labels[sheet.rows]))
    assert list(ranker.report_.weights) == ["posterior", "assumed", "grades"]
    assert any(reason.startswith("errors ") for reason in ranker.report_.reasons)  # of documents or a matrix
    assert sum(ranker.report_.weights.values()) == pytest.approx(1)


def test_gold_rows_are_named_by_place_in_the_input_even_when_rows_are_shuffled(noisy):
    order = np.random.default_rng(0).permutation(noisy.data.n_docs)
    gold = np.full(noisy.data.n_docs, -1)
    gold[:50] = noisy.true_labels[order[:50]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker = RobustRanker(**QUICK, grid=GRID_OF_TWO, noise=noisy.profile).fit(
            noisy.data.X[order], noisy.data.y[order], qid=noisy.data.qid[order], gold=gold
        )
    found = ranker.cleaned_.data
    place = np.argsort(found.row_ids)
    assert found.gains[place][:50] == pytest.approx(2.0 ** gold[:50] - 1)


def test_the_forms_of_gold_rows_say_the_same(noisy):
    by_row = np.full(noisy.data.n_docs, -1)
    by_row[[3, 7]] = [1, 0]
    for form in (by_row, {3: 1, 7: 0}, ([3, 7], [1, 0]), ([3, 7], [1, 0], [1.0, 1.0])):
        found = gold_answers(form, noisy.data)
        assert found.row_ids.tolist() == [3, 7]
        assert found.true_grades.tolist() == [1, 0]
        assert found.shares.tolist() == [1, 1]
    assert gold_answers(None, noisy.data) is None
    with pytest.raises(cr.CleanrankError, match="gold must be"):
        gold_answers([1, 2], noisy.data)


def test_the_baseline_is_tuned_alike(noisy, held):
    ranker = fitted(noisy, held, strategy="baseline")
    assert ranker.cleaned_ is None
    tuned = cr.BoostedRanker(
        grid=GRID_OF_TWO, selection="average", n_estimators=8, early_stopping_rounds=5
    ).fit_data(noisy.data, held.data)
    scores = tuned.predict(held.data.X)
    ratio = ranker.predict(held.data.X) / scores  # its scores are brought to a spread of 1
    assert ratio == pytest.approx(np.full(len(scores), ratio[0]))


def test_too_few_queries_lead_to_the_baseline(noisy, held):
    with pytest.warns(UserWarning, match="tuned baseline: fewer than 4 queries"):
        ranker = RobustRanker(**QUICK).fit_data(noisy.data.select_queries([0, 1, 2]), held.data)
    assert ranker.chosen_["strategy"] == "baseline"


def test_a_few_gold_rows_change_little(noisy, held):
    sheet = sample_gold(noisy.data, 6, seed=5)
    ranker = fitted(noisy, held, gold=(sheet.row_ids, noisy.true_labels[sheet.rows]))
    nothing = fitted(noisy, held)
    assert abs(ranker.report_.noise.matrix - nothing.report_.noise.matrix).max() < 0.2
    assert any("too few" in reason for reason in ranker.report_.reasons)


def test_without_validation_data_all_rows_are_used_in_the_end(noisy):
    ranker = fitted(noisy, noise=noisy.profile)
    assert ranker.cleaned_.data.n_docs == noisy.data.n_docs
    assert ranker.model_.best_iteration == ranker.model_.booster.current_iteration()


def test_it_behaves_like_an_estimator(noisy, held):
    ranker = RobustRanker(noise=uniform(0.2, 5), **QUICK, grid=GRID_OF_TWO)
    assert clone(ranker).get_params()["folds"] == 2
    a, b = (clone(ranker).fit_data(noisy.data, held.data) for _ in range(2))
    assert a.predict(held.data.X).tolist() == b.predict(held.data.X).tolist()
    with pytest.raises(cr.CleanrankError, match="must be fitted"):
        ranker.predict(noisy.data.X)


def test_progress_reaches_its_end(noisy, held):
    seen = []
    RobustRanker(noise=uniform(0.2, 5), **QUICK, grid=GRID_OF_TWO).fit_data(
        noisy.data, held.data, progress=lambda step, steps: seen.append((step, steps))
    )
    assert seen[-1] == (8, 8)
    assert [step for step, _ in seen] == sorted(step for step, _ in seen)


def test_other_gains_of_grades_are_respected(noisy, held):
    ranker = fitted(noisy, held, noise=noisy.profile, label_gain=[0, 1, 2, 3, 4])
    columns = np.stack([ranker.issues_.reasons[f"p_true_{g}"] for g in range(5)], axis=1)
    assert ranker.cleaned_.data.gains == pytest.approx(columns @ [0, 1, 2, 3, 4])


def test_the_report_is_plain_values(noisy, held):
    import json

    found = json.loads(json.dumps(fitted(noisy, held, noise=noisy.profile).report_.to_json()))
    assert found["strategy"] == "posterior"
    assert found["matrix"][0][0] == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"grid": {"num_leaves": 7}}, r"grid\['num_leaves'\] must be a list of values"),
        ({"grid": {"num_leaves": []}}, "must be a list of values to choose from"),
        ({"grid": {"num_leafs": [7]}}, "unknown parameter of LightGBM"),
        ({"grid": {"num_leaves": [7]}, "params": {"max_leaves": 3}}, "must leave num_leaves to params"),
        ({"rounds": 3}, "rounds must be 1 or 2"),
        ({"folds": 1}, "folds must be a whole number"),
        ({"random_state": -1}, "seed must be"),
        ({"noise": np.eye(2)}, "a row for each of the 5 grades"),
        ({"noise": np.ones((5, 5))}, "rows that sum to 1"),
        ({"noise": {"uniform": 0.2}}, "noise must be a square matrix"),
    ],
)
def test_mistakes_are_named(noisy, held, options, words):
    with pytest.raises(cr.CleanrankError, match=words):
        fitted(noisy, held, **{"noise": noisy.profile, **options})


def test_a_grid_by_other_names_is_the_grid(noisy, held):
    ranker = fitted(noisy, held, grid={"max_leaves": (4, 8), "min_child_samples": (5, 2000)})
    cells = {(r["num_leaves"], r["min_data_in_leaf"]) for r in ranker.tried_ if "folds" not in r}
    assert cells == {(4, 5), (8, 5)}
    fixed = RobustRanker(**QUICK, params={"min_child_samples": 5}).fit_data(noisy.data, held.data)
    assert {r["num_leaves"] for r in fixed.tried_ if "folds" not in r} == {7, 31}
    assert all("min_data_in_leaf" not in record for record in fixed.tried_)


def test_what_params_fix_is_used(noisy, held):
    ranker = fitted(noisy, held, noise=noisy.profile, params={"eta": 0.3}, grid={"num_leaves": (4,)})
    text = ranker.model_.booster.model_to_string()
    assert "[learning_rate: 0.3]" in text


def test_gold_rows_must_lie_in_the_data_whatever_is_known_of_the_noise(noisy, held):
    for gold, words in (({10**6: 1}, "rows of the data"), (([0, 0], [1, 2]), "every row once")):
        with pytest.raises(cr.CleanrankError, match=words):
            fitted(noisy, held, noise=noisy.profile, gold=gold)
    answers = gold_answers({0: 1}, noisy.data)
    with pytest.raises(cr.CleanrankError, match="gold must not be given beside answers as noise"):
        fitted(noisy, held, noise=answers, gold={0: 1})
    with pytest.raises(cr.CleanrankError, match="a row for each of the 10 grades"):
        fitted(noisy, held, noise=noisy.profile, gold={0: 9})


def test_validation_data_may_have_a_grade_that_training_data_lack(noisy, held):
    higher = held.data.y.copy()
    higher[0] = 6
    ranker = RobustRanker(**QUICK, grid=GRID_OF_TWO).fit_data(noisy.data, held.data.with_labels(higher))
    assert ranker.report_.noise.n_grades == 7


def test_data_that_cannot_be_learnt_from_are_refused(noisy, held):
    def fit(train, validation=None):
        RobustRanker(noise=noisy.profile, **QUICK).fit_data(train, validation)

    narrow = cr.from_arrays(held.data.X[:, :3], held.data.y, group=held.data.lengths)
    with pytest.raises(cr.CleanrankError, match="validation data must have the 6 features"):
        fit(noisy.data, narrow)
    with pytest.raises(cr.CleanrankError, match="must hold 3 queries or come with validation data"):
        fit(noisy.data.select_queries([0, 1]))
    with pytest.raises(cr.CleanrankError, match="at least one document"):
        fit(noisy.data.select([]), held.data)
    with pytest.raises(cr.CleanrankError, match="must differ between documents"):
        fit(cr.from_arrays(np.ones((30, 6)), [0, 1, 2] * 10, group=[10] * 3), held.data)
    gains = replace(noisy.data, gains=noisy.data.y.astype(float))
    with pytest.raises(cr.CleanrankError, match="must have grades only"):
        fit(gains, held.data)


@pytest.mark.parametrize("kind", ["missing values", "sparse"])
def test_unusual_data_are_learnt_from(noisy, held, kind):
    train, rest = noisy.data, held.data
    if kind == "missing values":
        X = train.X.copy()
        X[::3, 0] = np.nan
        train = replace(train, X=X)
    else:
        train, rest = (replace(each, X=scipy.sparse.csr_matrix(each.X)) for each in (train, rest))
    ranker = RobustRanker(noise=noisy.profile, **QUICK, grid=GRID_OF_TWO).fit_data(train, rest)
    assert np.isfinite(ranker.predict(rest.X)).all()
    assert ranker.issues_.row_id.tolist() == train.row_ids.tolist()


def test_threads_change_nothing(noisy, held):
    one, three = (fitted(noisy, held, noise=noisy.profile, n_jobs=n) for n in (1, 3))
    np.testing.assert_array_equal(one.issues_.doubt, three.issues_.doubt)
    np.testing.assert_array_equal(one.predict(held.data.X), three.predict(held.data.X))


def test_a_grid_search_of_scikit_learn_goes_through(noisy):
    frame = pd.DataFrame(noisy.data.X, columns=list("abcdef")).assign(qid=noisy.data.qid)
    search = GridSearchCV(
        RobustRanker(noise=noisy.profile, **QUICK, grid={"num_leaves": [4]}),
        {"learning_rate": [0.05, 0.2]},
        cv=GroupKFold(2),
        scoring=lambda ranker, X, y: float(np.corrcoef(ranker.predict(X), y)[0, 1]),
        error_score="raise",
    )
    search.fit(frame, noisy.data.y, groups=noisy.data.qid)
    assert search.best_params_["learning_rate"] in (0.05, 0.2)
    assert search.predict(frame).shape == (noisy.data.n_docs,)


def test_an_interruption_passes_through_and_leaves_no_model(noisy, held):
    def stop(step, steps):
        raise KeyboardInterrupt

    ranker = RobustRanker(noise=noisy.profile, **QUICK, grid=GRID_OF_TWO)
    with pytest.raises(KeyboardInterrupt):
        ranker.fit_data(noisy.data, held.data, progress=stop)
    with pytest.raises(cr.CleanrankError, match="must be fitted before it predicts or is saved"):
        ranker.save("model.txt")


@pytest.fixture(scope="module")
def issues(noisy):
    return cr.find_label_issues(noisy.data, "posterior", noise=noisy.profile, folds=2)


def test_issues_that_carry_probabilities_stand_in_for_the_noise(noisy, held, issues):
    by_noise = fitted(noisy, held, noise=noisy.profile)
    by_issues = RobustRanker(**QUICK, grid=GRID_OF_TWO).fit_data(noisy.data, held.data, issues=issues)
    assert by_issues.chosen_["strategy"] == by_issues.report_.strategy == "posterior"
    assert by_issues.report_.reasons == ("the probabilities of true grades were given",)
    assert by_issues.report_.doubted == pytest.approx(issues.doubt.mean())
    np.testing.assert_array_equal(by_issues.cleaned_.data.gains, by_noise.cleaned_.data.gains)
    np.testing.assert_array_equal(by_issues.issues_.doubt, issues.doubt)
    # Without validation data the held-out rows have expected gains too: then the two are one.
    by_noise, by_issues = (
        RobustRanker(**QUICK, grid=GRID_OF_TWO, noise=noise).fit_data(noisy.data, issues=table)
        for noise, table in ((noisy.profile, None), (None, issues))
    )
    np.testing.assert_array_equal(by_issues.predict(noisy.data.X), by_noise.predict(noisy.data.X))


def test_find_and_fit_compose_on_a_part_of_the_data_and_on_arrays():
    data = cr.make_ranking(60, 6, docs_per_query=15, signal=0.95, seed=1)
    train, validation = cr.split(cr.corrupt(data, rate=0.2, seed=2).data, (0.8, 0.2), seed=0)
    issues = cr.find_label_issues(train, folds=2)
    ranker = RobustRanker(**QUICK, grid=GRID_OF_TWO)
    by_id = ranker.fit_data(train, validation, issues=issues).predict(train.X)
    assert ranker.chosen_["strategy"] == "posterior"
    pair = {"eval_set": (validation.X, validation.y), "eval_qid": validation.qid}
    by_place = clone(ranker).fit(train.X, train.y, qid=train.qid, issues=issues, **pair).predict(train.X)
    np.testing.assert_array_equal(by_place, by_id)
    shuffled = issues.select(np.random.default_rng(0).permutation(len(issues)))
    again = clone(ranker).fit_data(train, validation, issues=shuffled).predict(train.X)
    np.testing.assert_array_equal(again, by_id)


def test_issues_without_signal_lead_to_the_baseline(noisy):
    data = noisy.data
    with pytest.warns(UserWarning, match="coin toss"):
        issues = cr.find_label_issues(np.zeros_like(data.X), data.y, qid=data.qid, folds=2)
    with pytest.warns(UserWarning, match="tuned baseline: The features"):
        ranker = RobustRanker(**QUICK, grid=GRID_OF_TWO).fit_data(data, issues=issues)
    assert ranker.chosen_["strategy"] == "baseline"
    assert "coin toss" in ranker.report_.reasons[0]


def test_other_tables_are_refused_in_a_sentence(noisy, issues):
    ranker = RobustRanker(**QUICK, grid=GRID_OF_TWO)
    isolated = cr.find_label_issues(noisy.data, "isolation")
    with pytest.raises(cr.CleanrankError, match=r"issues must hold the probability of every grade .*'auto'"):
        ranker.fit_data(noisy.data, issues=isolated)
    with pytest.raises(cr.CleanrankError, match="issues must be a LabelIssues; got DataFrame"):
        ranker.fit_data(noisy.data, issues=issues.to_frame())
    with pytest.raises(cr.CleanrankError, match="either `issues` or `gold` or `noise`"):
        ranker.fit_data(noisy.data, issues=issues, gold={0: 1})
    with pytest.raises(cr.CleanrankError, match="either `issues` or `gold` or `noise`"):
        RobustRanker(noise=noisy.profile, **QUICK).fit_data(noisy.data, issues=issues)
    other = cr.make_ranking(60, 6, docs_per_query=15, seed=9)
    with pytest.raises(cr.CleanrankError, match=r"must have a row for every row|must be the grade in data"):
        ranker.fit_data(other, issues=issues)
    with pytest.raises(cr.CleanrankError, match="unknown objective 'hinge'"):
        RobustRanker(objective="hinge", noise=noisy.profile, **QUICK).fit_data(noisy.data)


@pytest.mark.parametrize("noise", [np.full((5, 5), 0.2), np.tile([0.6, 0.1, 0.1, 0.1, 0.1], (5, 1))])
def test_a_matrix_of_equal_rows_is_refused(noisy, held, noise):
    with pytest.raises(cr.CleanrankError, match=r"noise matrix must have rows that differ.*5 equal rows"):
        fitted(noisy, held, noise=noise)
    with pytest.raises(cr.CleanrankError, match="noise matrix must have rows that differ"):
        cr.find_label_issues(noisy.data, "posterior", noise=noise)


def test_values_on_expected_gains_are_named_as_such(noisy, held):
    given = fitted(noisy, held, noise=noisy.profile)
    assert given.validation_measure() == given.report_.measure == "ndcg@10 of expected gains"
    assert "validation: ndcg@10 of expected gains" in repr(given.report_)
    alone = fitted(noisy, None, noise=noisy.profile)
    assert alone.report_.measure == "ndcg@10 of expected gains"  # of held-out training rows
    assert fitted(noisy, held, strategy="baseline").report_.measure == "ndcg@10"


def test_clean_validation_labels_can_be_declared(noisy, held):
    clean = fitted(noisy, held, noise=noisy.profile, clean_validation=True)
    assert clean.chosen_["strategy"] == "posterior"
    assert clean.report_.measure == "ndcg@10"
    value = cr.evaluate(clean.predict(held.data.X), held.data, "ndcg@10").means["ndcg@10"]
    assert clean.chosen_["validation"] == pytest.approx(value, abs=1e-12)
    noisy_labels = fitted(noisy, held, noise=noisy.profile)
    np.testing.assert_array_equal(noisy_labels.cleaned_.data.gains, clean.cleaned_.data.gains)
