import itertools

import numpy as np
import pytest
from scipy import stats

import cleanrank as cr
from cleanrank.clicks.evidence import click_evidence, estimate_examination
from cleanrank.clicks.models import CLICK_MODELS, EXAMINATION, make_click_model, relevance
from cleanrank.clicks.simulate import simulate_clicks
from cleanrank.errors import CleanrankError
from cleanrank.noise.corrupt import corrupt


@pytest.fixture(scope="module")
def judged():
    rng = np.random.default_rng(0)
    lengths = rng.integers(4, 16, 150)
    n = lengths.sum()
    return cr.from_arrays(np.zeros((n, 1)), rng.integers(0, 5, n), qid=np.repeat(np.arange(150), lengths))


@pytest.fixture(scope="module")
def shuffled(judged):
    return np.random.default_rng(1).normal(size=judged.n_docs)


def contradicted(evidence, ratio=100.0):
    """Rows whose clicks make another grade ``ratio`` times as likely as the given one."""
    rows = np.arange(len(evidence.given_grades))
    best = evidence.log_likelihood.argmax(axis=1)
    log_ratio = evidence.log_likelihood[rows, best] - evidence.log_likelihood[rows, evidence.given_grades]
    expected = evidence.relevance[evidence.given_grades]
    outside = (expected < evidence.low) | (expected > evidence.high)
    listed = np.flatnonzero((log_ratio >= np.log(ratio)) & (best != evidence.given_grades) & outside)
    return [(int(evidence.row_ids[row]), int(best[row])) for row in listed]


def test_likelihood_and_rate_of_one_document_by_hand():
    data = cr.from_arrays(np.zeros((2, 1)), [1, 0], qid=[1, 1])
    log = simulate_clicks(data, sessions=1)
    shows = [(1, True), (2, False), (3, True)]
    log = type(log)(
        data,
        np.zeros(3, int),
        np.arange(3),
        np.arange(4),
        np.zeros(3, int),
        np.array([k for k, _ in shows]),
        np.array([c for _, c in shows]),
    )
    found = click_evidence(log, top_grade=2, options={"way": "second"})
    theta = np.array(EXAMINATION[:3])
    for grade, r in enumerate([0.1, 0.4, 1.0]):
        expected = np.log(theta[0] * r) + np.log(1 - theta[1] * r) + np.log(theta[2] * r)
        assert found.log_likelihood[0, grade] == pytest.approx(expected)
    assert found.rate[0] == pytest.approx(2 / theta.sum())
    assert (found.impressions.tolist(), found.clicks.tolist()) == ([3, 0], [2, 0])
    low = stats.beta.ppf(0.025, 2, 2) / theta.mean()
    assert found.low[0] == pytest.approx(low)
    assert found.high[0] == 1.0
    # The second document was never shown.
    assert np.isnan(found.rate[1])
    assert (found.low[1], found.high[1]) == (0.0, 1.0)
    assert not found.log_likelihood[1].any()


# Flipped clicks hide where a walking user stopped, so flips are corrected for position-based users only.
@pytest.mark.parametrize(
    ("name", "flip"), [*((name, None) for name in CLICK_MODELS), ("pbm", (0.2, 0.05)), ("trust", 0.1)]
)
def test_rates_are_free_of_position(name, flip, judged, shuffled):
    """Documents of one grade have one rate, high in the list or low."""
    log = simulate_clicks(
        judged, name, scores=shuffled, sessions=300, seed=2, flip=flip, options={"way": "second"}
    )
    found = click_evidence(log, model=name, flip=flip, options={"way": "second"})
    users = make_click_model(name, {"way": "second"})
    expected = relevance(judged.y, 4, 0.1)
    place = np.empty(judged.n_docs, int)
    place[log.row] = log.position
    _, weight = users.chances(expected[log.row], log.position, log.indptr, log.click)
    seen = np.bincount(log.row, weights=weight, minlength=judged.n_docs)
    for grade, (low, high) in itertools.product(range(5), [(1, 3), (4, 7)]):
        rows = (judged.y == grade) & (place >= low) & (place <= high) & (seen > 1)
        if seen[rows].sum() < 500:
            continue
        mean = np.average(found.rate[rows], weights=seen[rows])
        assert mean == pytest.approx(expected[rows][0], abs=5 * np.sqrt(0.35 / seen[rows].sum()))


@pytest.mark.parametrize("level", [0.9, 0.99])
def test_intervals_cover(level, judged, shuffled):
    log = simulate_clicks(judged, scores=shuffled, sessions=60, seed=5, options={"way": "second"})
    found = click_evidence(log, level=level, options={"way": "second"})
    truth = relevance(judged.y, 4, 0.1)
    covered = ((found.low <= truth) & (truth <= found.high)).mean()
    assert covered >= level - 3 * np.sqrt(level * (1 - level) / judged.n_docs)


@pytest.mark.parametrize("name", CLICK_MODELS)
def test_clicks_find_wrong_labels_and_spare_right_ones(name, judged, shuffled):
    """Users see the true documents; the log is then held against corrupted labels."""
    noisy = corrupt(judged, rate=0.15, seed=3)
    options = {"way": "second"}
    log = simulate_clicks(judged, name, scores=shuffled, sessions=400, seed=4, options=options)
    found = contradicted(click_evidence(log, noisy.data, name, options=options))
    wrong = dict(zip(judged.row_ids.tolist(), noisy.changed.tolist(), strict=True))
    truth = dict(zip(judged.row_ids.tolist(), judged.y.tolist(), strict=True))
    hits = np.array([wrong[row] for row, _ in found])
    assert len(hits) > 20
    # Walking users' propensities take the given grades above as true, so wrong ones blur them.
    assert hits.mean() > (0.95 if name in ("pbm", "trust") else 0.5)
    close = [abs(truth[row] - grade) <= 1 for row, grade in found]
    assert np.mean(np.array(close)[hits]) > 0.9


@pytest.mark.parametrize("name", CLICK_MODELS)
def test_right_labels_are_rarely_contradicted(name, judged, shuffled):
    log = simulate_clicks(judged, name, scores=shuffled, sessions=100, seed=6, options={"way": "second"})
    evidence = click_evidence(log, model=name, options={"way": "second"})
    assert len(contradicted(evidence)) <= 0.04 * judged.n_docs
    assert len(contradicted(evidence, ratio=1.0)) >= len(contradicted(evidence))


def test_evidence_as_a_frame(judged, shuffled):
    log = simulate_clicks(judged, scores=shuffled, sessions=50, options={"way": "second"})
    frame = click_evidence(log, options={"way": "second"}).to_frame()
    assert list(frame.columns[:8]) == [
        "row_id",
        "query_id",
        "given_label",
        "impressions",
        "clicks",
        "rate",
        "low",
        "high",
    ]
    assert len(frame) == judged.n_docs


def test_rows_are_matched_by_row_id_not_by_place(judged, shuffled):
    log = simulate_clicks(judged, scores=shuffled, sessions=20, options={"way": "second"})
    whole = click_evidence(log, options={"way": "second"}, top_grade=4)
    keep = np.random.default_rng(0).random(judged.n_docs) < 0.5
    part = click_evidence(log, judged.select(keep), options={"way": "second"}, top_grade=4)
    np.testing.assert_array_equal(part.row_ids, whole.row_ids[keep])
    np.testing.assert_allclose(part.log_likelihood, whole.log_likelihood[keep])


def test_examination_is_estimated_from_clicks_and_grades(judged, shuffled):
    log = simulate_clicks(judged, scores=shuffled, sessions=500, seed=8, options={"way": "second"})
    found = estimate_examination(log, noise=0.1)
    np.testing.assert_allclose(found, EXAMINATION, atol=0.03)
    known = click_evidence(log, options={"way": "second"})
    estimated = click_evidence(log, examination=found, options={"way": "second"})
    np.testing.assert_allclose(estimated.rate, known.rate, rtol=0.4, atol=0.05)
    assert len(estimate_examination(log, depth=3, noise=0.1)) == 3


def test_examination_survives_label_noise(judged, shuffled):
    """Grades wrong at random scale the whole vector, and little."""
    log = simulate_clicks(judged, scores=shuffled, sessions=500, seed=8, options={"way": "second"})
    noisy = corrupt(judged, rate=0.2, seed=1).data
    blurred = type(log)(noisy, log.query, log.session, log.indptr, log.row, log.position, log.click)
    found = estimate_examination(blurred, noise=0.1)
    np.testing.assert_allclose(found / found[0], np.array(EXAMINATION) / EXAMINATION[0], atol=0.12)


def test_mistakes_are_named(judged):
    log = simulate_clicks(judged)
    with pytest.raises(CleanrankError, match="goes with position-based users; got ccm"):
        click_evidence(log, model="ccm", examination=[1.0])
    with pytest.raises(CleanrankError, match="level must lie strictly"):
        click_evidence(log, level=1.0)
    with pytest.raises(CleanrankError, match="keep more clicks than it flips"):
        click_evidence(log, flip=0.5)
    with pytest.raises(CleanrankError, match=r"at least 20 clicks at each rank up to 10; got \d+ at rank"):
        estimate_examination(log)
    with pytest.raises(CleanrankError, match=r"top_grade must be at least the highest grade \(4\); got 2"):
        click_evidence(log, top_grade=2)


def test_rows_of_other_data_have_no_evidence(judged):
    others = cr.from_arrays(np.zeros((2, 1)), [1, 0], qid=[1, 1])
    others = type(others)(others.X, others.y, others.indptr, others.query_ids, np.array([10**6, 10**6 + 1]))
    found = click_evidence(simulate_clicks(judged), others)
    assert found.impressions.tolist() == [0, 0]
    assert not len(contradicted(found))
