"""Repaired targets: what they mix, out of fold, and what they leave alone."""

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.issues.table import expected_gains
from cleanrank.noise.assumed import possible_noise
from cleanrank.robust.targets import distilled_target, gain_of, given_probabilities, posterior_target


@pytest.fixture(scope="module")
def rows():
    clean = cr.make_ranking(60, 6, docs_per_query=15, seed=1)
    noisy = cr.corrupt(clean, rate=0.3, seed=2).data
    return clean, *cr.split(noisy, (0.75, 0.25), seed=0)


@pytest.mark.parametrize("kind", ["grades", "gains"])
def test_nothing_of_a_prediction_leaves_the_labels_as_they_are(rows, kind):
    _, train, validation = rows
    target = distilled_target(train, validation, kind, mixing=0.0, folds=2)
    assert target.train.gains == pytest.approx(2.0**train.y - 1)
    assert target.validation.gains == pytest.approx(2.0**validation.y - 1)
    np.testing.assert_array_equal(target.train.y, train.y)


@pytest.mark.parametrize("kind", ["grades", "gains"])
def test_a_prediction_is_out_of_fold(rows, kind):
    _, train, validation = rows
    target = distilled_target(train, validation, kind, mixing=1.0, folds=3)
    first = train.indptr[1]
    y = train.y.copy()
    y[:first] = y[:first].max() - y[:first]  # what a query was given does not reach its own prediction
    again = distilled_target(train.with_labels(y), validation, kind, mixing=1.0, folds=3)
    np.testing.assert_allclose(again.train.gains[:first], target.train.gains[:first])
    assert not np.allclose(again.train.gains[first:], target.train.gains[first:])
    assert (target.train.gains >= 0).all()


@pytest.mark.parametrize("kind", ["grades", "gains"])
def test_the_mixture_is_nearer_to_the_truth_than_the_labels(kind):
    clean = cr.make_ranking(200, 8, docs_per_query=15, signal=0.95, seed=5)
    noisy = cr.corrupt(clean, "one-way", 0.2, seed=6).data
    target = distilled_target(noisy, None, kind, folds=3)
    assert target.validation is None
    truth = 2.0**clean.y - 1
    error = ((target.train.gains - truth) ** 2).mean()
    assert error < 0.5 * ((2.0**noisy.y - 1 - truth) ** 2).mean()


def test_known_grades_are_certain_and_teach(rows):
    clean, train, validation = rows
    known = np.full(train.n_docs, -1)
    known[:10] = clean.y[train.row_ids[:10]]
    target = distilled_target(train, validation, "grades", known=known, folds=2)
    assert target.train.gains[:10] == pytest.approx(2.0 ** known[:10] - 1)
    plain = distilled_target(train, validation, "grades", folds=2)
    assert plain.unjudged == pytest.approx(plain.train.gains)
    assert not np.allclose(target.unjudged[:10], target.train.gains[:10])


def test_the_posterior_knows_what_it_would_have_said_without_judgements(rows):
    clean, train, validation = rows
    noise = possible_noise(given_probabilities(train, None, 5, folds=2)[0], train.y)
    known = np.full(train.n_docs, -1)
    known[:10] = clean.y[train.row_ids[:10]]
    target, posterior = posterior_target(train, validation, noise, known=known, folds=2)
    assert target.train.gains[:10] == pytest.approx(2.0 ** known[:10] - 1)
    assert target.unjudged == pytest.approx(expected_gains(posterior.unjudged)[0])
    assert not np.allclose(target.unjudged[:10], target.train.gains[:10])
    np.testing.assert_allclose(target.unjudged[10:], target.train.gains[10:])


def test_gains_of_grades_between_whole_ones():
    assert gain_of(np.array([0.0, 0.5, 2.0])) == pytest.approx([0, 2**0.5 - 1, 3])
    assert gain_of(np.array([0.5, 3.0]), [0, 2, 3, 10]) == pytest.approx([1, 10])


def test_grades_are_mixed_before_their_gain_is_taken_and_gains_after(rows):
    """2^x - 1 bends upwards: the gain of a mean lies below the mean of gains; only models of grades rank."""
    _, train, _ = rows
    by_grade = distilled_target(train, None, "grades", mixing=0.5, folds=2)
    assert by_grade.means is not None
    p = by_grade.means.predictions
    np.testing.assert_allclose(
        by_grade.train.gains, 2.0 ** (0.5 * np.maximum(p, 0) + 0.5 * train.y) - 1, rtol=1e-6
    )
    assert distilled_target(train, None, "gains", folds=2).means is None
