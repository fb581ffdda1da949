"""Estimates from sampled documents: unbiased whatever the judge is worth, and equal to enumeration."""

import numpy as np
import pytest

from cleanrank.errors import InvalidInputError
from cleanrank.judges import documents
from cleanrank.judges.documents import Frame, calibrated, check_measure, parts, rank_weights
from cleanrank.metrics.evaluation import evaluate_arrays
from cleanrank.metrics.measure import Measure
from cleanrank.ragged import indptr_of, query_of_row

Q, LENGTH, CUT = 30, 40, 5


def collection(rng, judge_noise=0.3, systems=2):
    """True grades, a judge who errs by query and rank, and ranks of some systems."""
    query = np.repeat(np.arange(Q), LENGTH)
    relevance = rng.normal(size=Q * LENGTH) + rng.normal(size=Q)[query] * 0.5
    truth = np.digitize(relevance, [0.5, 1.2, 2.0])
    lenient = rng.normal(size=Q)[query] * judge_noise
    judge = np.digitize(relevance + lenient + rng.normal(size=len(query)) * judge_noise, [0.3, 1.2, 2.0])
    ranks = []
    for _ in range(systems):
        scores = relevance + rng.normal(size=len(query))
        order = np.lexsort((-scores, query))
        rank = np.empty(len(query), dtype=np.int64)
        rank[order] = np.tile(np.arange(1, LENGTH + 1), Q)
        ranks.append(rank)
    return truth, judge, np.array(ranks)


def frame_of(truth, judge, ranks, measure, sampled, probability):
    lengths = np.full(len(truth), LENGTH)
    return Frame(
        indptr_of([LENGTH] * Q),
        judge,
        np.where(sampled, truth, -1),
        probability,
        np.array([rank_weights(measure, rank, lengths) for rank in ranks]),
        (1 / ranks).mean(axis=0),
        4,
    )


def true_means(truth, ranks, measure):
    values = [evaluate_arrays(truth, -rank.astype(float), indptr_of([LENGTH] * Q), measure) for rank in ranks]
    return np.array([each[str(measure)].mean() for each in values])


MEASURES = ["dcg@5", "precision@5", "ndcg@5", "recall@5:trec", "ndcg@5:linear", "dcg:letor", "ndcg@5:letor"]


@pytest.mark.parametrize("text", MEASURES)
def test_gold_labels_of_everything_give_the_measure_itself(text):
    measure = Measure.parse(text)
    truth, judge, ranks = collection(np.random.default_rng(0))
    everything = np.ones(len(truth), dtype=bool)
    frame = frame_of(truth, judge, ranks, measure, everything, np.ones(len(truth)))
    for use_judge in (True, False):
        estimate = parts(frame, measure, use_judge=use_judge)
        assert estimate.corrected.mean(axis=1) == pytest.approx(true_means(truth, ranks, measure))
        assert (estimate.spread == 0).all()


@pytest.mark.parametrize("text", ["dcg@5", "ndcg@5"])
def test_estimates_are_unbiased_and_their_intervals_hold_the_truth(text):
    from scipy import stats

    measure = Measure.parse(text)
    rng = np.random.default_rng(1)
    truth, judge, ranks = collection(rng, judge_noise=0.8)
    right = true_means(truth, ranks, measure)
    probability = np.clip(0.6 / np.sqrt(ranks.min(axis=0)), 0.05, 1)
    errors, held, widths = [], [], []
    for _ in range(150):
        sampled = rng.random(len(truth)) < probability
        frame = frame_of(truth, judge, ranks, measure, sampled, probability)
        for use_judge in (True, False):
            estimate = parts(frame, measure, use_judge=use_judge)
            spread = estimate.spread / Q
            variance = (spread**2).sum(axis=1)
            df = 2 * variance**2 / (spread**4).sum(axis=1)
            error = estimate.corrected.mean(axis=1) - right
            reach = stats.t.ppf(0.975, df) * np.sqrt(variance)
            if use_judge:
                errors.append(error)
                held.append(np.abs(error) <= reach)
            widths.append(reach)
    deviation = np.std(errors, axis=0)
    second_order = 0.0 if text.startswith("dcg") else 0.25 * deviation
    assert (np.abs(np.mean(errors, axis=0)) < 4 * deviation / np.sqrt(150) + second_order).all()
    assert np.mean(held) > 0.91
    assert np.mean(widths[::2]) < (0.9 if text == "dcg@5" else 1.0) * np.mean(widths[1::2])


def test_leave_one_out_predictions_are_those_of_models_without_the_row():
    rng = np.random.default_rng(2)
    for n, p in ((40, 6), (10, 25)):
        X, Y = rng.normal(size=(n, p)), rng.normal(size=(n, 2))
        variance = rng.random(p) * (np.arange(p) != 3)
        coefficients, held_out = documents._ridge(X, Y, variance)
        assert coefficients[3] == pytest.approx(0)
        for row in range(n):
            others = np.arange(n) != row
            again, _ = documents._ridge(X[others], Y[others], variance)
            assert X[row] @ again == pytest.approx(held_out[row])


def test_the_model_sees_that_a_query_is_judged_leniently():
    rng = np.random.default_rng(3)
    truth, _, ranks = collection(rng)
    query = query_of_row(indptr_of([LENGTH] * Q))
    judge = np.minimum(truth + (query % 2), 3)
    measure = Measure.parse("dcg@5")
    sampled = rng.random(len(truth)) < 0.5
    above, held_out = calibrated(frame_of(truth, judge, ranks, measure, sampled, np.full(len(truth), 0.5)))
    expected = above[:, 1:].sum(axis=1)
    assert expected[(judge == 2) & (query % 2 == 1)].mean() < 1.4
    assert expected[(judge == 2) & (query % 2 == 0)].mean() > 1.6
    assert np.abs(held_out[:, 1:].sum(axis=1) - truth[sampled]).mean() < 0.4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("map", "must be one of dcg, precision, ndcg, recall"),
        ("ndcg@5:ties=average", "must break ties by row or document id"),
        ("ndcg@5:skip", "must give queries without relevant documents a value"),
    ],
)
def test_measures_that_need_whole_queries_are_refused(text, words):
    with pytest.raises(InvalidInputError) as error:
        check_measure(Measure.parse(text))
    assert words in str(error.value)
