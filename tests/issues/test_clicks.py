import numpy as np
import pytest

import cleanrank as cr
from cleanrank.clicks.evidence import click_evidence
from cleanrank.errors import CleanrankError
from cleanrank.issues.clicks import find_against_clicks


@pytest.fixture(scope="module")
def judged():
    return cr.make_ranking(40, 4, docs_per_query=12, seed=0)


@pytest.fixture(scope="module")
def log(judged):
    order = np.random.default_rng(0).random(judged.n_docs)
    return cr.simulate_clicks(judged, "pbm", scores=order, sessions=300, seed=1)


def test_clicks_find_what_was_corrupted(judged, log):
    noisy = cr.corrupt(judged, rate=0.2, seed=2)
    found = find_against_clicks(noisy.data, clicks=log)
    assert found.average_precision(noisy) > 0.9
    assert found.precision(noisy) > 0.9
    right = found.suggested_label[found.is_label_issue] == noisy.true_labels[found.is_label_issue]
    assert right.mean() > 0.8


def test_a_zero_that_is_clicked_and_a_top_grade_that_is_not():
    true = cr.from_arrays(np.zeros((4, 1)), [2, 0, 0, 1], group=[4])
    log = cr.simulate_clicks(true, sessions=200, seed=3)
    given = true.with_labels([0, 0, 2, 1])
    found = find_against_clicks(given, clicks=log)
    assert found.is_label_issue.tolist() == [True, False, True, False]
    assert found.suggested_label.tolist() == [2, 0, 0, 1]
    assert found.reasons["click_rate_excess"][0] > 0.5
    assert found.reasons["click_rate_excess"][2] < -0.5


def test_bayes_rule_by_hand():
    data = cr.from_arrays(np.zeros((2, 1)), [0, 1], group=[2])
    log = cr.simulate_clicks(data, sessions=2, seed=0)
    evidence = click_evidence(log, data)
    found = find_against_clicks(data, clicks=evidence, trust=0.7)
    likely = np.exp(evidence.log_likelihood)
    for row, (given, other) in enumerate([(0, 1), (1, 0)]):
        kept, lost = 0.7 * likely[row, given], 0.3 * likely[row, other]
        assert found.doubt[row] == pytest.approx(lost / (kept + lost))


def test_rows_never_shown_keep_the_doubt_they_started_with(judged, log):
    part = log.select_lists(log.query < 3)
    found = find_against_clicks(judged, clicks=part, trust=0.8)
    unseen = found.reasons["impressions"] == 0
    assert unseen.sum() > 100
    np.testing.assert_allclose(found.doubt[unseen], 0.2)
    assert not found.is_label_issue[unseen].any()


def test_evidence_at_hand_gives_the_same(judged, log):
    noisy = cr.corrupt(judged, rate=0.2, seed=2).data
    one = find_against_clicks(noisy, clicks=log)
    two = find_against_clicks(noisy, clicks=click_evidence(log, noisy, top_grade=judged.n_grades - 1))
    np.testing.assert_array_equal(one.doubt, two.doubt)


def test_mistakes_are_named(judged, log):
    with pytest.raises(CleanrankError, match="trust must be a number > 0 and < 1"):
        find_against_clicks(judged, clicks=log, trust=1.0)
    with pytest.raises(CleanrankError, match="clicks must be evidence about the rows of data"):
        find_against_clicks(judged.drop([0]), clicks=click_evidence(log))


def test_evidence_must_know_every_grade_and_be_evidence():
    true = cr.from_arrays(np.zeros((2, 1)), [1, 0], group=[2])
    log = cr.simulate_clicks(true, sessions=20)
    with pytest.raises(CleanrankError, match="clicks must be a ClickLog or ClickEvidence; got int"):
        find_against_clicks(true, clicks=3)
    with pytest.raises(CleanrankError, match="must be evidence about all 3 grades; got 2"):
        find_against_clicks(true.with_labels([2, 0]), clicks=click_evidence(log, true))
