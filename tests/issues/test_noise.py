import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.noise.anchors import from_data
from cleanrank.noise.annotators import from_repeated
from cleanrank.noise.gold import from_gold
from cleanrank.noise.gold_sheet import GoldAnswers
from cleanrank.rankers.grade_model import cross_fit, fit_grades


@pytest.fixture(scope="module")
def noisy():
    return cr.corrupt(cr.make_ranking(40, 5, docs_per_query=20, seed=0), rate=0.2, seed=1)


@pytest.fixture(scope="module")
def sheet(noisy):
    return cr.sample_gold(noisy.data, 80, seed=2)


def test_gold_rows_in_any_form_give_what_from_gold_gives(noisy, sheet):
    truth = noisy.true_labels[sheet.rows]
    wanted = from_gold(noisy.data, sheet.row_ids, truth, level=0.9, seed=3)
    column = np.full(noisy.data.n_docs, -1)
    column[sheet.rows] = truth
    for gold in (
        (sheet.row_ids, truth),
        (sheet.row_ids, truth, np.ones(80)),
        dict(zip(sheet.row_ids.tolist(), truth.tolist(), strict=True)),
        GoldAnswers(sheet.row_ids, truth, np.ones(80)),
        column,
    ):
        estimate = cr.estimate_noise(noisy.data, gold=gold, level=0.9, seed=3)
        assert estimate.method == "gold"
        assert estimate.matrix == pytest.approx(wanted.matrix, abs=0.02)
    same = cr.estimate_noise(noisy.data, gold=(sheet.row_ids, truth), level=0.9, seed=3)
    np.testing.assert_array_equal(same.draws, wanted.draws)


def test_judgements_need_no_data():
    rng = np.random.default_rng(0)
    truth = np.repeat(rng.choice(2, 100), 3)
    table = {
        "item": np.repeat(np.arange(100), 3),
        "grade": np.where(rng.random(300) < 0.2, 1 - truth, truth),
    }
    estimate = cr.estimate_noise(judgements=table, model="pooled", draws=50, seed=4)
    np.testing.assert_array_equal(
        estimate.draws, from_repeated(table, model="pooled", draws=50, seed=4).draws
    )


def test_the_data_alone_are_cross_fitted_or_read_off_probabilities_at_hand(noisy):
    estimate = cr.estimate_noise(noisy.data, n_folds=3, seed=5)
    wanted = from_data(
        noisy.data, fit_predict=lambda *parts: fit_grades(*parts, n_grades=5, seed=5), n_folds=3, seed=5
    )
    assert estimate.method == "data"
    assert estimate.profile is None
    assert estimate.reasons == wanted.reasons
    np.testing.assert_array_equal(estimate.rejected.matrix, wanted.rejected.matrix)
    p, _ = cross_fit(noisy.data, lambda *parts: fit_grades(*parts, n_grades=5, seed=5), 3, seed=5)
    by_p = cr.estimate_noise(noisy.data, probabilities=p)
    np.testing.assert_array_equal(by_p.rejected.matrix, wanted.rejected.matrix)
    seen = []

    def shares(train, rows):
        seen.append(len(rows))
        return np.tile(np.bincount(train.y, minlength=5) / len(train), (len(rows), 1))

    cr.estimate_noise(noisy.data, fit_predict=shares, n_folds=2)
    assert sum(seen[:2]) == noisy.data.n_docs


def test_what_does_not_go_together_is_refused_in_words(noisy, sheet):
    gold = (sheet.row_ids, noisy.true_labels[sheet.rows])
    for given, words in (
        ({"gold": gold, "judgements": {}}, "takes either `gold` or `judgements`, not both"),
        ({"gold": gold, "family": "uniform"}, "unknown option of an estimate from gold 'family'"),
        ({"judgements": {}, "n_grades": 5}, "unknown option of an estimate from judgements 'n_grades'"),
        ({"modle": "pooled"}, "unknown option of an estimate from data 'modle'"),
        ({"gold": gold, "fit_predict": fit_grades}, "fit_predict goes with the data alone; got gold"),
        ({"gold": {}}, "gold must hold at least one row of known grade"),
    ):
        with pytest.raises(CleanrankError, match=words):
            cr.estimate_noise(noisy.data, **given)
    with pytest.raises(CleanrankError, match="data must be given for an estimate from gold"):
        cr.estimate_noise(gold=gold)
