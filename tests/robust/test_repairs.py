"""Repairs: what they rest on: repaired validation rows, answers, the assumed matrix, weights."""

from dataclasses import replace

import numpy as np
import pytest

from cleanrank.issues.posterior import posterior_of
from cleanrank.issues.table import expected_gains
from cleanrank.noise.assumed import possible_noise
from cleanrank.noise.gold import from_gold, sample_gold
from cleanrank.noise.gold_sheet import gold_answers
from cleanrank.robust import repairs
from cleanrank.robust.repairs import strategy_weights
from cleanrank.robust.targets import Target, given_probabilities
from tests.robust.test_robust_ranker import fitted, held, noisy

__all__ = ["held", "noisy"]  # fixtures


def noted(monkeypatch, name):
    """The calls of a function of the module: (positional arguments, options)."""
    calls, real = [], getattr(repairs, name)

    def note(*arguments, **options):
        calls.append((arguments, options))
        return real(*arguments, **options)

    monkeypatch.setattr(repairs, name, note)
    return calls


def test_noisy_validation_rows_are_repaired_as_training_rows_are(noisy, held):
    """Their gains are those of the posterior of further rows, which models choose and stop by."""
    ranker = fitted(noisy, held, noise=noisy.profile)
    (target,) = ranker._repaired.targets
    posterior = posterior_of(noisy.data, noisy.profile, others=[held.data], folds=2)
    assert target.train.gains == pytest.approx(expected_gains(posterior.probabilities)[0])
    assert target.validation.gains == pytest.approx(expected_gains(posterior.others[0])[0])
    assert abs(target.validation.gains - (2.0**held.data.y - 1)).max() > 1
    for each in fitted(noisy, held)._repaired.targets:
        assert each.validation.gains is not None


def test_validation_rows_that_are_said_to_be_clean_stay_as_they_are(noisy, held):
    for options in ({"noise": noisy.profile}, {}):
        for target in fitted(noisy, held, clean_validation=True, **options)._repaired.targets:
            assert target.validation.gains is None
            np.testing.assert_array_equal(target.validation.y, held.data.y)


def test_gold_rows_teach_all_strategies_but_the_assumed_one(noisy, held, monkeypatch):
    sheet = sample_gold(noisy.data, 80, seed=5)
    truth = noisy.true_labels[sheet.rows]
    calls, distilled = noted(monkeypatch, "posterior_target"), noted(monkeypatch, "distilled_target")
    ranker = fitted(noisy, held, gold=(sheet.row_ids, truth), rounds=1)
    (first, assumed) = calls
    assert [options["rounds"] for _, options in calls] == [1, 1]
    np.testing.assert_array_equal(first[1]["known"][sheet.rows], truth)
    assert (first[1]["known"] >= 0).sum() == 80
    assert assumed[1]["known"] is None
    np.testing.assert_array_equal(distilled[0][1]["known"], first[1]["known"])
    weights = list(ranker.report_.weights.values())
    assert max(weights) - min(weights) > 0.01
    p, _ = given_probabilities(noisy.data, held.data, 5, folds=2)
    np.testing.assert_allclose(assumed[0][2], possible_noise(p, noisy.data.y))
    assert first[0][2].matrix != pytest.approx(assumed[0][2])
    for target in ranker._repaired.targets:
        np.testing.assert_allclose(target.train.gains[sheet.rows], 2.0**truth - 1)


def test_the_posterior_takes_one_round_under_assumed_noise_and_two_else(noisy, held, monkeypatch):
    calls = noted(monkeypatch, "posterior_target")
    fitted(noisy, held)
    fitted(noisy, held, noise=noisy.profile)
    sheet = sample_gold(noisy.data, 80, seed=5)
    fitted(noisy, held, gold=(sheet.row_ids, noisy.true_labels[sheet.rows]))
    fitted(noisy, held, noise=noisy.profile, rounds=1)
    assert [options["rounds"] for _, options in calls] == [1, 2, 2, 1, 1]
    given = [options["probabilities"] is not None for _, options in calls]
    assert given == [True, False, False, True, False]


def test_equal_weights_count_as_much_as_fifty_gold_rows(noisy):
    """Of a right strategy and one that is uncorrelated with the truth, 50 rows give three quarters to one."""
    data = noisy.data.select(np.arange(noisy.data.n_docs) < 200)
    known = np.full(200, -1)
    known[:50] = np.tile([0, 1], 25)
    right, noise = np.zeros(200), np.zeros(200)
    right[:50], noise[:50] = known[:50], np.repeat([0, 1], 26)[:50]
    noise[24:26] = 0, 1
    assert abs(np.corrcoef(right[:50], noise[:50])[0, 1]) < 0.05
    targets = [Target("posterior", data, None, right), Target("grades", data, None, noise)]
    assert strategy_weights(targets, known)[0] == pytest.approx(0.75, abs=0.03)


def test_strategies_are_weighed_by_what_they_said_before_the_answers(noisy):
    """Gains of training rows have the answers in them, and would make every strategy right."""
    data, known = noisy.data, noisy.true_labels.astype(np.int64)
    gains = 2.0**known - 1
    shuffled = np.random.default_rng(0).permutation(gains)
    right = Target("posterior", replace(data, gains=shuffled), None, gains)
    wrong = Target("grades", replace(data, gains=gains), None, shuffled)
    assert strategy_weights([right, wrong], known)[0] > 0.9


def test_gold_rows_weigh_the_strategies_by_what_they_foretell(noisy):
    data, known = noisy.data, noisy.true_labels.astype(np.int64)
    gains = 2.0**known - 1
    right = Target("posterior", data, None, gains)
    wrong = Target("grades", data, None, np.random.default_rng(0).permutation(gains))
    assert strategy_weights([right, wrong], None).tolist() == [0.5, 0.5]
    weights = strategy_weights([right, wrong], known)
    assert weights.sum() == pytest.approx(1)
    assert weights[0] > 0.9
    few = np.where(np.arange(data.n_docs) < 5, known, -1)
    assert 0.5 < strategy_weights([right, wrong], few)[0] < weights[0]


def test_the_seed_draws_the_matrices_that_gold_rows_allow(noisy):
    rows = np.arange(60)
    answers = gold_answers((noisy.data.row_ids[rows], noisy.true_labels[rows]), noisy.data)
    assumed = np.full((5, 5), 0.05) + 0.75 * np.eye(5)
    draws = [repairs.know_noise(noisy.data, None, answers, assumed, seed)[0].draws for seed in (0, 3)]
    assert not np.array_equal(*draws)


def test_an_estimate_is_acted_on_only_if_it_is_trusted(noisy):
    rows = noisy.data.row_ids[:300]
    estimate = from_gold(noisy.data, rows, noisy.true_labels[:300])
    assert estimate.profile is not None
    for trusted in (True, False):
        assert repairs.is_given(replace(estimate, trusted=trusted)) is trusted
    assert repairs.is_given(noisy.profile)
    assert not repairs.is_given(None)


def test_four_queries_are_enough_to_repair_and_three_are_not(noisy):
    def reasons(queries):
        part = noisy.data.select(np.arange(noisy.data.indptr[queries]))
        return repairs.repair_labels(part, None, strategy="grades", folds=2).reasons

    assert not any("fewer than 4 queries" in reason for reason in reasons(4))
    with pytest.warns(UserWarning, match="fewer than 4 queries"):
        assert any("fewer than 4 queries" in reason for reason in reasons(3))
