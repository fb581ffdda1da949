import numpy as np
import pytest

from cleanrank.noise.signal import Signal, concordance, signal_of
from cleanrank.ragged import indptr_of, query_of_row


def pairwise_auc(y, scores, query):
    """The AUC by the definition: every pair of different grades, of one query."""
    well = pairs = 0.0
    for i in range(len(y)):
        for j in range(len(y)):
            if y[i] > y[j] and query[i] == query[j]:
                well += (scores[i] > scores[j]) + 0.5 * (scores[i] == scores[j])
                pairs += 1
    return well / pairs


@pytest.mark.parametrize("seed", range(8))
def test_the_auc_counts_pairs(seed):
    rng = np.random.default_rng(seed)
    indptr = indptr_of(rng.integers(0, 9, 7))
    y, scores = rng.integers(0, 4, indptr[-1]), rng.integers(0, 6, indptr[-1]).astype(float)
    query = query_of_row(indptr)
    assert concordance(y, scores, indptr, within=True)[0] == pytest.approx(pairwise_auc(y, scores, query))
    assert concordance(y, scores, indptr)[0] == pytest.approx(pairwise_auc(y, scores, 0 * query))


@pytest.mark.parametrize("within", [True, False])
def test_the_standard_error_is_that_over_queries(within):
    """Against the spread of the AUC over fresh draws of all queries; grades go together within a query."""
    rng = np.random.default_rng(0)
    indptr = indptr_of([12] * 40)
    values, errors = [], []
    for _ in range(200):
        level = np.repeat(rng.normal(size=40), 12)
        y = (level + rng.normal(size=480) > 0.5).astype(int)
        scores = 0.5 * y + 0.5 * level + rng.normal(size=480)
        auc, error = concordance(y, scores, indptr, within=within)
        values.append(auc)
        errors.append(error)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.15)


def test_noise_is_no_signal_and_a_little_help_is():
    rng = np.random.default_rng(1)
    indptr = indptr_of([20] * 50)
    shown = {0.0: 0, 0.5: 0}
    for help_ in shown:
        for _ in range(100):
            y = rng.integers(0, 3, 1000)
            shown[help_] += signal_of(y, help_ * y + rng.normal(size=1000), indptr).is_shown
    assert shown[0.0] <= 8
    assert shown[0.5] == 100


def test_what_cannot_be_measured_is_no_signal():
    y, scores = np.array([0, 1, 1, 0]), np.array([0.1, 0.9, 0.8, 0.2])
    assert signal_of(y, scores, np.array([0, 4])) == Signal(1.0, 0.0, 1.0)  # one query
    alone = signal_of(y, scores, np.arange(5))  # one document a query: pairs of all documents
    assert alone.auc == 1.0
    assert signal_of(y, 0 * scores, np.array([0, 2, 4])) == Signal(0.5, 0.5, 0.5)
    same = signal_of(np.ones(4, dtype=int), scores, np.array([0, 2, 4]))
    assert not same.is_shown
    assert str(same) == "no two documents of different grades"
    assert same.to_json() == {"auc": None, "low": 0.0, "high": 1.0}
    assert repr(Signal(0.488, 0.459, 0.517)) == "Signal(AUC .488 [.459, .517])"
