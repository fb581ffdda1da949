import re
import warnings

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.issues.confident import (
    PRUNING,
    QUALITIES,
    confident_grades,
    confident_joint,
    find_confident,
    thresholds,
)

CLEANLAB = {
    "noise-rate": "prune_by_noise_rate",
    "grade": "prune_by_class",
    "both": "both",
    "confident": "confident_learning",
    "predicted": "predicted_neq_given",
}


def probabilities(seed, n=400, C=4, sharp=2.0):
    """Random probabilities and grades drawn from them, some of them turned round."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(C, 1 / sharp), size=n)
    y = np.array([rng.choice(C, p=row) for row in p])
    flip = rng.random(n) < 0.2
    y[flip] = rng.integers(0, C, size=flip.sum())
    y[:C] = np.arange(C)
    return p, y.astype(np.int32)


def naive_joint(p, y):
    """Counts row by row, before scaling."""
    C = p.shape[1]
    limit = [np.mean([p[i, l] for i in range(len(y)) if y[i] == l]) for l in range(C)]
    found = np.zeros((C, C), dtype=int)
    for i in range(len(y)):
        sure = [l for l in range(C) if p[i, l] >= limit[l] - 1e-6]
        if sure:
            found[y[i], max(sure, key=lambda l: p[i, l]) if len(sure) > 1 else sure[0]] += 1
    return found


@pytest.mark.parametrize("seed", range(5))
def test_confident_rows_are_counted_as_defined(seed):
    p, y = probabilities(seed)
    guess = confident_grades(p, y)
    found = np.zeros((4, 4), dtype=int)
    np.add.at(found, (y[guess >= 0], guess[guess >= 0]), 1)
    np.testing.assert_array_equal(found, naive_joint(p, y))


@pytest.mark.parametrize("seed", range(5))
def test_the_joint_keeps_the_counts_of_the_given_grades(seed):
    p, y = probabilities(seed)
    joint = confident_joint(p, y)
    np.testing.assert_array_equal(joint.sum(axis=1), np.bincount(y))
    raw = naive_joint(p, y)
    assert abs(joint - raw / raw.sum(axis=1, keepdims=True) * np.bincount(y)[:, None]).max() <= 1


@pytest.mark.parametrize("C", [2, 3, 5])
@pytest.mark.parametrize("sharp", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("seed", range(6))
def test_results_are_those_of_cleanlab(seed, sharp, C):
    count = pytest.importorskip("cleanlab.count")
    filter_ = pytest.importorskip("cleanlab.filter")
    rank = pytest.importorskip("cleanlab.rank")
    p, y = probabilities(seed, n=37 if seed % 2 else 500, C=C, sharp=sharp)
    data = cr.from_arrays(np.zeros((len(y), 1)), y, group=[len(y)])
    np.testing.assert_allclose(thresholds(p, y), count.get_confident_thresholds(y, p))
    np.testing.assert_array_equal(confident_joint(p, y), count.compute_confident_joint(y, p))
    for ours, theirs in (("self-confidence", "self_confidence"), ("margin", "normalized_margin")):
        wanted = rank.get_label_quality_scores(y, p, method=theirs)
        np.testing.assert_allclose(
            find_confident(data, probabilities=p, score=ours).label_quality, wanted, atol=1e-12
        )
    for ours, theirs in CLEANLAB.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = filter_.find_label_issues(y, p, filter_by=theirs, n_jobs=1)
        found = find_confident(data, probabilities=p, by=ours)
        np.testing.assert_array_equal(found.is_label_issue, wanted, err_msg=ours)


def test_every_way_of_pruning_is_compared():
    assert set(CLEANLAB) == set(PRUNING)
    assert set(QUALITIES) == {"self-confidence", "margin"}


def test_a_grade_that_nobody_gave_is_never_confident():
    p, y = probabilities(0, C=3)
    y[y == 1] = 0
    assert np.isinf(thresholds(p, y)[1])
    assert (confident_grades(p, y) != 1).all()


def test_cross_fitted_forests_find_flipped_labels(toy):
    noisy = cr.corrupt(toy, rate=0.2, seed=3)
    found = find_confident(noisy.data, seed=1)
    assert found.average_precision(noisy) > 0.45 > 2 * noisy.rate
    changed = found.suggested_label != found.given_label
    np.testing.assert_array_equal(changed, found.is_label_issue)


def test_a_model_of_the_caller_is_cross_fitted(toy):
    seen = []

    def shares(train, rows):
        seen.append((set(train.query_ids), set(rows.query_ids)))
        return np.tile(np.bincount(train.y, minlength=3) / train.n_docs, (rows.n_docs, 1))

    found = find_confident(toy, folds=3, fit_predict=shares)
    assert len(seen) == 3
    assert not any(train & rows for train, rows in seen)
    assert len(np.unique(found.doubt)) <= 9


def test_mistakes_are_named(toy):
    with pytest.raises(CleanrankError, match="unknown way of pruning 'rate'"):
        find_confident(toy, by="rate")
    with pytest.raises(CleanrankError, match=r"column per grade \(480, 3\); got shape \(480, 2\)"):
        find_confident(toy, probabilities=np.full((480, 2), 0.5))
    with pytest.raises(CleanrankError, match="sum to 1"):
        find_confident(toy, probabilities=np.full((480, 3), 0.5))


def test_the_reason_is_the_probability_of_the_given_grade_whatever_the_score():
    """Words say it as a probability, which a margin is not."""
    data = cr.from_arrays(np.zeros((2, 1)), [0, 1], group=[2])
    p = [[0.3, 0.7], [0.4, 0.6]]
    found = find_confident(data, probabilities=p, score="margin")
    assert found.reasons["confident"].tolist() == pytest.approx([0.7, 0.4])
    assert found.doubt.tolist() == pytest.approx([0.7, 0.4])  # with two grades margin and probability agree
    three = find_confident(data, probabilities=[[0.3, 0.5, 0.2], [0.4, 0.6, 0.0]], score="margin")
    assert three.doubt.tolist() == pytest.approx([0.6, 0.4])
    assert three.reasons["confident"].tolist() == pytest.approx([0.7, 0.4])


@pytest.mark.parametrize("spoilt", [[np.nan, 0.5, 0.5], [-0.5, 1.0, 0.5], [0.5, 0.5, 0.5]])
def test_the_row_without_probabilities_is_named(toy, spoilt):
    p = np.full((toy.n_docs, 3), 1 / 3)
    p[4] = spoilt
    with pytest.raises(CleanrankError, match=rf"sum to 1; got .* {re.escape(toy.place(4))}"):
        find_confident(toy, probabilities=p)


def test_false_top_grades_are_found_by_the_default_detector_and_not_by_confident_learning(data_root):
    clean = cr.read_data(data_root / "MQ2008" / "Fold1" / "train.txt")
    noisy = cr.corrupt(clean, "one-way", 0.3, seed=1)

    def share_wrong(detector):
        doubt = cr.find_label_issues(noisy.data, detector, seed=1).aligned(noisy.data).doubt
        return noisy.changed[np.argsort(-doubt, kind="stable")[:300]].mean()

    assert share_wrong("confident") == 0.0
    assert share_wrong("auto") > 0.95
