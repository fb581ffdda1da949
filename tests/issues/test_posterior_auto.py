from dataclasses import replace

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.issues import posterior
from cleanrank.issues.by_grade import find_by_grade
from cleanrank.issues.confident import find_confident
from cleanrank.issues.posterior import MOST_ISSUES, find_auto
from cleanrank.issues.table import LabelIssues
from cleanrank.noise.anchors import from_data
from cleanrank.noise.assumed import LEAST, MISSED, possible_noise
from cleanrank.noise.gold import from_gold
from cleanrank.noise.gold_sheet import GoldAnswers
from cleanrank.noise.profiles import NoiseProfile, one_way, uniform


@pytest.fixture(scope="module")
def clean():
    return cr.make_ranking(160, 8, docs_per_query=30, signal=0.9, seed=0)


@pytest.fixture(scope="module")
def noisy(clean):
    return cr.corrupt(clean, rate=0.2, seed=1)


@pytest.fixture(scope="module")
def found(noisy):
    return find_auto(noisy.data, seed=2)


def anchored(share, C, n=1000):
    """Rows surely of grade 0 that are given the grades with these shares, and others."""
    p = np.full((2 * n, C), 0.5 / (C - 1))
    p[:, 0] = 0.5
    p[:n, 0], p[:n, 1:] = 0.9, 0.1 / (C - 1)
    y = np.repeat(np.arange(C), np.round(np.array(share) * n).astype(int))
    return p[: len(y)], np.random.default_rng(0).permutation(y)


def test_uniform_anchors_give_the_uniform_matrix():
    p, y = anchored([0.8, 0.1, 0.1], 3)
    np.testing.assert_allclose(possible_noise(p, y), uniform(0.2, 3).matrix, atol=0.04)


def test_a_grade_given_more_often_than_the_one_below_it_is_noise_and_a_nearer_one_may_be_hardness():
    p, y = anchored([0.7, 0.15, 0.04, 0.01, 0.1], 5, n=20_000)
    T = possible_noise(p, y)
    assert T[0, 4] == pytest.approx(0.1, abs=0.02)
    np.testing.assert_allclose(T[0, 1:4], T[2, 3], atol=1e-12)
    assert T[0, 1] == pytest.approx(0.01, abs=0.005)


def test_missed_documents_are_always_thought_of():
    p, y = anchored([1.0, 0.0, 0.0], 3)
    T = possible_noise(p, y)
    np.testing.assert_allclose(T[1:, 0], MISSED)
    assert T[0, 1] == T[0, 2] == LEAST


@pytest.mark.parametrize("share", [[0.2, 0.4, 0.4], [0.0, 0.5, 0.5], [0.1, 0.0, 0.9]])
def test_the_assumed_matrix_is_a_matrix_whatever_the_data(share):
    p, y = anchored(share, 3)
    T = NoiseProfile(possible_noise(p, y))
    assert (np.diag(T.matrix) > 0).all()


def test_the_default_beats_plain_confident_learning_and_the_given_grade(noisy, found):
    plain = find_confident(noisy.data, seed=2)
    assert found.average_precision(noisy) > plain.average_precision(noisy)
    assert found.average_precision(noisy) > find_by_grade(noisy.data, noise=noisy).average_precision(noisy)
    assert found.precision(noisy) > 0.5 > noisy.rate


def test_one_way_noise_is_found_without_being_told(clean):
    noisy = cr.corrupt(clean, one_way(0.1, clean.n_grades), seed=3)
    found, plain = find_auto(noisy.data, seed=1), find_confident(noisy.data, seed=1)
    assert found.average_precision(noisy) > plain.average_precision(noisy) + 0.2


def test_known_noise_helps_where_it_cannot_be_read_off_the_data(clean):
    T = np.eye(clean.n_grades)
    T[1:] *= 0.6
    T[1:, 0] = 0.4
    noisy = NoiseProfile(T, "missed").apply(clean, 4)
    told, untold = find_auto(noisy.data, noise=T, seed=1), find_auto(noisy.data, seed=1)
    assert told.average_precision(noisy) > untold.average_precision(noisy) + 0.02
    assert (told.doubt[noisy.data.y > 0] < 1e-6).all()


def test_doubts_under_the_true_matrix_are_probabilities(noisy):
    found = find_auto(noisy.data, noise=noisy.profile, seed=2)
    assert found.doubt.mean() == pytest.approx(noisy.rate, abs=0.03)
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        rows = (found.doubt >= low) & (found.doubt < low + 0.2)
        if rows.sum() > 150:
            assert noisy.changed[rows].mean() == pytest.approx(found.doubt[rows].mean(), abs=0.12)


def test_reasons_carry_the_posterior_and_the_out_of_fold_grade(noisy, found):
    p = np.stack([found.reasons[f"p_true_{g}"] for g in range(5)], axis=1)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    rows = np.arange(len(found))
    far = (p * abs(np.arange(5) - noisy.data.y[:, None])).sum(axis=1) / 4
    # Probabilities are those of the noise that may be there. They order the doubts, which are no larger.
    most = np.sqrt((1 - p[rows, noisy.data.y]) * far)
    by_doubt = np.argsort(found.doubt, kind="stable")
    assert (np.diff(most[by_doubt]) >= -1e-9).all()
    assert found.doubt.mean() < most.mean()
    # Issues follow the least noise; under more of it nearly all of them are likelier of another grade too.
    assert (p.argmax(axis=1) != noisy.data.y)[found.is_label_issue].mean() > 0.5
    # A grade may have more issues than that where the order of grades shows its errors: here grade 3 alone.
    assert [g for g, share in found.shares_by_grade().items() if share > MOST_ISSUES] == [3]
    assert ((found.reasons["expected_grade"] >= 0) & (found.reasons["expected_grade"] <= 4)).all()
    assert "ranked" in found.explain(noisy.data, 1)[0].why
    assert "probability" in found.explain(noisy.data, 1)[0].why


def test_the_given_grade_of_a_row_has_no_say_in_its_expected_grade(noisy, found):
    # Swap the labels of one query: out of fold, nothing that its forests saw in that round has changed.
    y = noisy.data.y.copy()
    first = slice(0, noisy.data.indptr[1])
    y[first] = 4 - y[first]
    again = find_auto(noisy.data.with_labels(y), seed=2)
    before, after = (t.reasons["expected_grade"][first] for t in (found, again))
    assert np.corrcoef(before, after)[0, 1] > 0.9


def test_an_estimate_that_was_refused_counts_as_none(noisy, found):
    shuffled = noisy.data.with_labels(np.random.default_rng(0).permutation(noisy.data.y))
    p = np.tile(np.bincount(noisy.data.y) / noisy.data.n_docs, (noisy.data.n_docs, 1))
    refused = from_data(shuffled, p, family="uniform")
    assert refused.profile is None
    again = find_auto(noisy.data, noise=refused, seed=2)
    assert again.doubt.tobytes() == found.doubt.tobytes()


def test_gold_rows_are_settled(noisy):
    known = np.full(noisy.data.n_docs, -1)
    known[:200] = noisy.true_labels[:200]
    for noise in (None, noisy.profile):
        found = find_auto(noisy.data, noise=noise, known=known, seed=2, folds=3)
        np.testing.assert_array_equal(found.is_label_issue[:200], noisy.changed[:200])
        changed = found.select(np.flatnonzero(noisy.changed[:200]))
        np.testing.assert_array_equal(changed.suggested_label, noisy.true_labels[:200][noisy.changed[:200]])


@pytest.mark.parametrize("highest", [4, 6])
def test_the_scale_reaches_to_the_highest_grade_of_the_data_or_of_gold_rows(monkeypatch, highest):
    data = cr.make_ranking(20, 5, docs_per_query=10, seed=3)
    answers = GoldAnswers(np.arange(40), np.where(np.arange(40) == 7, highest, data.y[:40]), np.ones(40))
    asked = []

    def estimate(self, data, *, n_grades, assumed, **options):
        asked.append((n_grades, assumed.shape))
        return from_gold(data, self.row_ids, self.true_grades, n_grades=n_grades, **options)

    monkeypatch.setattr(GoldAnswers, "estimate", estimate)
    find_auto(data, noise=answers, folds=2, repeats=1, params={"num_leaves": 4})
    assert asked == [(highest + 1, (highest + 1, highest + 1))]


def test_mistakes_are_named(noisy):
    with pytest.raises(CleanrankError, match=r"known must be a whole grade per row \(4739\)"):
        find_auto(noisy.data, known=[1, 2], folds=2)
    for known, words in ((7, "must be grades from 0 to 4, -1 where unknown; got 7 at row 3"), (-2, "got -2")):
        truth = np.full(noisy.data.n_docs, -1)
        truth[3] = known
        with pytest.raises(CleanrankError, match=words):
            find_auto(noisy.data, noise=noisy.profile, known=truth, folds=2)
    for options in ({"seed": -1}, {"n_jobs": 0}, {"folds": 2.5}, {"params": {"num_leafs": 3}}):
        with pytest.raises(CleanrankError):
            find_auto(noisy.data, **options)
    with pytest.raises(CleanrankError, match="at least one row and two grades"):
        possible_noise(np.zeros((0, 2)), np.zeros(0, dtype=int))
    assert isinstance(find_auto(noisy.data.select(np.arange(60)), folds=2), LabelIssues)


def test_a_label_is_an_issue_only_under_the_least_noise_too(noisy, found, monkeypatch):
    """Where the least noise is none, no label is called an issue, however much noise is suspected."""
    assert found.is_label_issue.any()
    assume = posterior.assume_noise

    def without_least(*arguments, **options):
        assumed = assume(*arguments, **options)
        return replace(assumed, least=np.eye(len(assumed.least)))

    monkeypatch.setattr(posterior, "assume_noise", without_least)
    assert not find_auto(noisy.data, folds=2).is_label_issue.any()


def test_a_misread_query_is_doubted_as_a_whole_where_queries_differ_in_their_errors(clean):
    rng, y = np.random.default_rng(3), clean.y.copy()
    misread = np.repeat(np.arange(clean.n_queries) < 8, clean.lengths)
    y[misread & (y == 0) & (rng.random(len(y)) < 0.5)] = y.max()
    data = clean.with_labels(y)
    wrong = y != clean.y
    found = {how: find_auto(data, queries_differ=how, folds=3) for how in ("relevance", "errors")}
    precision = {how: table.average_precision(wrong) for how, table in found.items()}
    assert precision["errors"] > precision["relevance"] + 0.05, precision


def test_predictions_are_means_over_cuts_of_the_queries(noisy):
    small = noisy.data.select_queries(np.arange(40))
    one, two = (find_auto(small, folds=2, repeats=n, seed=5) for n in (1, 2))
    other = find_auto(small, folds=2, seed=5 + posterior.CUT)
    p = [1 - each.reasons["confident"] for each in (one, two, other)]
    np.testing.assert_allclose(p[1], (p[0] + p[2]) / 2)


@pytest.mark.parametrize("options", [{"repeats": 0}, {"queries_differ": "judges"}])
def test_wrong_settings_of_queries_are_refused(noisy, options):
    with pytest.raises(CleanrankError):
        find_auto(noisy.data, **options)
