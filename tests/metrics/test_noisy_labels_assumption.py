"""The correction by a matrix rests on errors that depend on the true grade alone."""

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError
from cleanrank.metrics.noisy_labels import UNCHECKED, corrected
from cleanrank.metrics.noisy_order import compare_corrected, order_probability
from cleanrank.noise.gold import from_gold
from cleanrank.ragged import ranks


@pytest.fixture(scope="module")
def judged():
    """Documents, scores, and a judge who is more lenient where the system ranks a document high."""
    clean = cr.make_ranking(n_queries=150, seed=4)
    rng = np.random.default_rng(0)
    scores = clean.X[:, 0] + clean.y + rng.normal(size=clean.n_docs)
    raised = rng.random(clean.n_docs) < np.where(ranks(scores, clean.indptr) <= 20, 0.7, 0.1)
    noisy = clean.with_labels(np.minimum(clean.y + raised, clean.n_grades - 1))
    sheet = cr.sample_gold(noisy, 400, "random", seed=1)
    return clean, noisy, scores, from_gold(noisy, sheet.row_ids, clean.y[sheet.rows])


def test_an_estimate_that_its_own_rows_contradict_is_refused(judged):
    _, noisy, scores, estimate = judged
    worse = scores + np.random.default_rng(1).normal(size=len(scores))
    for call in (
        lambda **options: corrected(scores, noisy, "dcg@10", noise=estimate, **options),
        lambda **options: order_probability(scores, worse, noisy, "dcg@10", estimate, **options),
        lambda **options: compare_corrected({"a": scores, "b": worse}, noisy, noise=estimate, **options),
    ):
        with pytest.raises(InvalidInputError, match=r"depend on the true grade alone.*allow_dependent=True"):
            call()
        call(allow_dependent=True)
    allowed = corrected(scores, noisy, "dcg@10", noise=estimate, allow_dependent=True)
    assert "the rank at which systems put the document p = 0.001" in allowed.assumption
    assert allowed.assumption in repr(allowed)


def test_on_other_data_the_test_made_with_the_estimate_counts(judged):
    clean, noisy, scores, estimate = judged
    other = clean.with_labels(np.where(noisy.y > 0, noisy.y - 1, 1))
    elsewhere = corrected(scores, other, "dcg@10", noise=estimate, allow_dependent=True)
    assert elsewhere.assumption == estimate.class_conditional.words
    assert [cause.name for cause in estimate.class_conditional.causes] == ["query", "features"]


def test_the_refused_correction_is_worse_than_none(judged):
    clean, noisy, scores, estimate = judged
    truth = cr.evaluate(scores, clean, "dcg@10").means["dcg@10"]
    allowed = corrected(scores, noisy, "dcg@10", noise=estimate, allow_dependent=True)
    assert allowed.noisy[0] > truth
    assert not allowed.low[0] <= truth <= allowed.high[0]


def test_a_matrix_alone_is_not_checked_and_says_so(judged):
    _, noisy, scores, estimate = judged
    plain = corrected(scores, noisy, "dcg@10", noise=estimate.matrix)
    assert plain.assumption == UNCHECKED
    assert "Not checked" in repr(plain)
