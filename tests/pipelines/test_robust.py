"""RobustRanker: which road it takes, what it trains on, and that it says so."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import cleanrank as cr
from cleanrank.noise.gold import from_gold, gold_sample
from cleanrank.noise.profiles import uniform
from cleanrank.noise.sheets import GoldAnswers
from cleanrank.pipelines.robust import GRID, RobustRanker, gold_answers
from cleanrank.rankers.trees import train_lambdarank

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


def test_the_default_grid_has_four_cells():
    assert len(RobustRanker().cells()) == 4
    assert sorted(GRID) == ["min_data_in_leaf", "num_leaves"]


def test_few_documents_get_small_leaves_only():
    assert {cell["min_data_in_leaf"] for cell in RobustRanker().cells(100)} == {20}
    assert RobustRanker().cells(10) == [{"num_leaves": 7, "min_data_in_leaf": 20}]
    tiny = cr.corrupt(cr.make_ranking(12, 4, docs_per_query=12, seed=0), rate=0.2, seed=1)
    ranker = RobustRanker(noise=tiny.profile, n_estimators=3, folds=2)
    assert len(ranker.fit_data(tiny.data).report_.tried) == 2


def test_with_a_matrix_it_trains_on_expected_gains(noisy, held):
    ranker = fitted(noisy, held, noise=noisy.profile)
    assert ranker.chosen_["road"] == ranker.report_.chosen == "posterior"
    gains = ranker.cleaned_.data.gains
    columns = np.stack([ranker.issues_.reasons[f"p_true_{g}"] for g in range(5)], axis=1)
    assert gains == pytest.approx(columns @ [0, 1, 3, 7, 15])
    again = train_lambdarank(
        noisy.data.with_labels(noisy.data.y, gains=gains),
        rounds=ranker.chosen_["trees"],
        objective="exact",
        params={"num_leaves": ranker.chosen_["num_leaves"], "min_data_in_leaf": 20},
    )
    assert ranker.predict(noisy.data.X) == pytest.approx(again.predict(noisy.data.X))


def test_the_best_cell_on_validation_data_is_kept(noisy, held):
    ranker = fitted(noisy, held, noise=noisy.profile)
    values = [cell["validation"] for cell in ranker.report_.tried]
    assert len(values) == 2
    assert ranker.chosen_["validation"] == max(values)


@pytest.mark.parametrize("kind", ["matrix", "profile", "estimate", "answers"])
def test_noise_comes_in_many_forms(noisy, held, kind):
    sheet = gold_sample(noisy.data, 60, seed=5)
    truth = noisy.true_labels[sheet.rows]
    form = {
        "matrix": noisy.profile.matrix,
        "profile": noisy.profile,
        "estimate": from_gold(noisy.data, sheet.row_ids, truth),
        "answers": GoldAnswers(sheet.row_ids, truth, np.ones(60)),
    }[kind]
    assert fitted(noisy, held, noise=form).report_.chosen == "posterior"


def test_gold_rows_are_known_and_estimate_the_noise(noisy, held):
    sheet = gold_sample(noisy.data, 80, seed=5)
    truth = noisy.true_labels[sheet.rows]
    ranker = fitted(noisy, held, gold=(sheet.row_ids, truth))
    wanted = from_gold(noisy.data, sheet.row_ids, truth, seed=0)
    assert ranker.report_.noise.matrix == pytest.approx(wanted.matrix)
    assert ranker.report_.n_gold == 80
    assert ranker.cleaned_.data.gains[sheet.rows] == pytest.approx(2.0**truth - 1)


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


def test_without_knowledge_it_falls_back_to_the_tuned_baseline_and_says_so(noisy, held):
    ranker = RobustRanker(**QUICK, grid=GRID_OF_TWO)
    with pytest.warns(UserWarning, match="fell back to the tuned baseline"):
        ranker.fit_data(noisy.data, held.data)
    assert ranker.chosen_["road"] == ranker.report_.chosen == "baseline"
    assert ranker.cleaned_ is None
    assert "judge about 100 rows" in repr(ranker.report_)
    models = [
        train_lambdarank(
            noisy.data, held.data, objective="exact", rounds=8, early_stopping_rounds=5,
            params={"num_leaves": leaves, "min_data_in_leaf": 20},
        )
        for leaves in (4, 8)
    ]  # fmt: skip
    best = max(models, key=lambda model: model.validation_value)
    assert ranker.predict(held.data.X) == pytest.approx(best.predict(held.data.X))


def test_too_few_gold_rows_are_not_trusted(noisy, held):
    sheet = gold_sample(noisy.data, 10, seed=5)
    with pytest.warns(UserWarning, match="too few"):
        ranker = RobustRanker(**QUICK, grid=GRID_OF_TWO).fit_data(
            noisy.data, held.data, gold=(sheet.row_ids, noisy.true_labels[sheet.rows])
        )
    assert ranker.report_.chosen == "baseline"


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
    assert seen[-1] == (4, 4)
    assert [step for step, _ in seen] == sorted(step for step, _ in seen)


def test_other_gains_of_grades_are_respected(noisy, held):
    ranker = fitted(noisy, held, noise=noisy.profile, label_gain=[0, 1, 2, 3, 4])
    columns = np.stack([ranker.issues_.reasons[f"p_true_{g}"] for g in range(5)], axis=1)
    assert ranker.cleaned_.data.gains == pytest.approx(columns @ [0, 1, 2, 3, 4])


def test_the_report_is_plain_values(noisy, held):
    import json

    found = json.loads(json.dumps(fitted(noisy, held, noise=noisy.profile).report_.to_json()))
    assert found["chosen"] == "posterior"
    assert found["matrix"][0][0] == pytest.approx(0.8)
