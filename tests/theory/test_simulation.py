import numpy as np
import pytest

from cleanrank.losses.binary import LOSSES
from cleanrank.metrics.measure import as_measures
from cleanrank.ragged import indptr_of
from cleanrank.theory import simulation
from cleanrank.theory.simulation import SCORERS, WEIGHTINGS, Trial, make_labels, make_trial


def trial(n_grades=2, draws=7, seed=0):
    """Queries of unequal length, so that no shape is taken for another."""
    rng = np.random.default_rng(seed)
    indptr = indptr_of([4, 7, 5])
    y = rng.integers(0, n_grades, size=16).astype(np.int32)
    y[[0, 4, 11]], y[[1, 5, 12]] = 0, n_grades - 1
    T = np.full((n_grades, n_grades), 0.3 / (n_grades - 1))
    np.fill_diagonal(T, 0.7)
    return make_trial(y, indptr, np.tile(T, (3, 1, 1)), scorers="even", n_scorers=5, draws=draws, seed=seed)


def queries(t):
    return [slice(a, b) for a, b in zip(t.indptr[:-1], t.indptr[1:], strict=True)]


def naive_points(t, labels, scores, loss):
    top = t.n_grades - 1
    return np.mean(
        [
            np.mean([loss.value(s, g / top) for s, g in zip(scores[q], labels[q], strict=True)])
            for q in queries(t)
        ]
    )


def naive_pairs(t, labels, scores, loss, weighting):
    values, kept = [], 0
    for q in queries(t):
        s, y, true = scores[q], labels[q], t.y[q]
        n = len(s)
        rank = np.argsort(np.argsort(-s, kind="stable"))
        discount = [1 / np.log2(r + 2) if r < 10 else 0.0 for r in rank]
        ideal = sum((2.0**g - 1) / np.log2(i + 2) for i, g in enumerate(sorted(y, reverse=True)[:10]))
        total, pairs, true_pairs = 0.0, 0, 0
        for i in range(n):
            for j in range(n):
                true_pairs += true[i] > true[j]
                if y[i] <= y[j]:
                    continue
                pairs += 1
                weight = 1.0
                if weighting == "gain":
                    weight = 2.0 ** y[i] - 2.0 ** y[j]
                elif weighting == "lambdarank":
                    weight = (2.0 ** y[i] - 2.0 ** y[j]) * abs(discount[i] - discount[j]) / ideal
                total += weight * float(loss.value(s[i] - s[j], 1))
        kept += pairs > 0
        size = {"macro": pairs, "micro": n * n, "gain": n * n, "prevalence": true_pairs, "lambdarank": 1}
        values.append(total / size[weighting] if pairs else 0.0)
    return sum(values) / (kept if weighting in ("macro", "lambdarank") else len(values))


@pytest.mark.parametrize("n_grades", [2, 4])
@pytest.mark.parametrize("loss", ["zero_one", "logistic", "hinge"])
def test_point_risks_are_means_over_draws_of_the_plain_risk(n_grades, loss):
    t = trial(n_grades)
    clean, noisy = simulation.point_risks(t, LOSSES[loss])
    for s in range(5):
        assert clean[s] == pytest.approx(naive_points(t, t.y, t.scores[s], LOSSES[loss]))
        each = [naive_points(t, labels, t.scores[s], LOSSES[loss]) for labels in t.labels]
        assert noisy[s] == pytest.approx(np.mean(each))


@pytest.mark.parametrize("n_grades", [2, 4])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_pair_risks_are_means_over_draws_of_the_plain_risk(n_grades, weighting):
    t = trial(n_grades)
    clean, noisy = simulation.pair_risks(t, LOSSES["logistic"], weighting)
    for s in range(5):
        assert clean[s] == pytest.approx(naive_pairs(t, t.y, t.scores[s], LOSSES["logistic"], weighting))
        each = [naive_pairs(t, labels, t.scores[s], LOSSES["logistic"], weighting) for labels in t.labels]
        assert noisy[s] == pytest.approx(np.mean(each))


def test_pairs_of_the_zero_one_loss_are_auc():
    t = trial(draws=20)
    measures = as_measures(["auc", "auc:micro"])
    values = simulation.measure_values(t, measures)
    for m, weighting in enumerate(["macro", "micro"]):
        risks = simulation.pair_risks(t, LOSSES["zero_one"], weighting)
        # Micro risk and micro AUC add up to the share of pairs, which is the same for all scorers.
        for risk, value in zip(risks, values, strict=True):
            np.testing.assert_allclose(np.ptp(risk + value[m]), 0, atol=1e-12)
    np.testing.assert_allclose(simulation.pair_risks(t, LOSSES["zero_one"], "macro")[0] + values[0][0], 1)


def test_labels_have_the_prevalence_that_was_asked_and_both_classes():
    rng = np.random.default_rng(0)
    y, indptr = make_labels(np.array([0.001, 0.3, 0.999]), 50, rng)
    assert np.add.reduceat(y, indptr[:-1]).tolist() == [1, 15, 49]
    graded, _ = make_labels(np.array([0.5] * 40), 50, rng, n_grades=5)
    counts = np.bincount(graded, minlength=5)
    assert counts[0] == 1000
    assert counts[1:].min() > 200


def test_draws_follow_the_matrix_of_their_query():
    y = np.repeat([0, 1, 0, 1], 2000).astype(np.int32)
    matrices = np.array([[[0.9, 0.1], [0.4, 0.6]], [[1.0, 0.0], [0.0, 1.0]]])
    drawn = simulation.draw_labels(y, indptr_of([4000, 4000]), matrices, 3, np.random.default_rng(1))
    ones = drawn.reshape(3, 4, 2000).mean(axis=(0, 2))
    np.testing.assert_allclose(ones, [0.1, 0.6, 0.0, 1.0], atol=0.02)


@pytest.mark.parametrize("name", SCORERS)
def test_every_second_scorer_is_ten_times_louder(name):
    y, indptr = make_labels(np.linspace(0.1, 0.9, 20), 50, np.random.default_rng(0))
    scores = SCORERS[name](y, indptr, 2, 10, np.random.default_rng(0))
    assert scores.shape == (10, 1000)
    np.testing.assert_allclose(scores[1::2].mean(axis=1) / 10, scores[0::2].mean(axis=1), atol=1.5)
    assert np.abs(scores[1::2]).mean() > 5 * np.abs(scores[0::2]).mean()


def test_a_query_of_one_class_is_left_out_of_macro_risks():
    y = np.array([0, 1, 0, 1], dtype=np.int32)
    labels = np.array([[1, 1, 0, 1]], dtype=np.int32)
    t = Trial(y, np.array([0, 2, 4]), 2, np.array([[0.0, 1.0, 1.0, 0.0]]), labels)
    clean, noisy = simulation.pair_risks(t, LOSSES["zero_one"], "macro")
    assert clean.tolist() == [0.5]
    assert noisy.tolist() == [1.0]
