import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.issues.outliers import SOUR, Window

DATA = cr.corrupt(cr.make_ranking(30, 5, docs_per_query=15, seed=1), "uniform", 0.2, seed=1).data
HELD = cr.make_ranking(10, 5, docs_per_query=15, seed=2)
WINDOW = Window(cutoff=5, start=1, end=5, kind="all")


def network(**options):
    return cr.NeuralRanker(epochs=5, network_options={"hidden": (8,)}, n_jobs=1, **options)


def test_it_is_detection_over_epochs_then_training_on_the_rest():
    detector = SOUR.of(DATA, WINDOW)
    network().fit_data(DATA, observer=detector)
    outliers = detector.outliers()
    ranker, cleaned = cr.fit_without_outliers(network(), DATA, window=WINDOW)
    np.testing.assert_array_equal(cleaned.acted, outliers)
    assert 0 < outliers.sum() < DATA.n_docs
    alone = network().fit_data(DATA.drop(outliers))
    np.testing.assert_array_equal(ranker.predict(HELD.X), alone.predict(HELD.X))


def test_validation_rows_stop_the_final_network_alone():
    asked = network(early_stopping_rounds=1)
    ranker, cleaned = cr.fit_without_outliers(asked, DATA, HELD, window=WINDOW)
    _, without = cr.fit_without_outliers(asked, DATA, window=WINDOW)
    np.testing.assert_array_equal(cleaned.acted, without.acted)
    alone = network(early_stopping_rounds=1).fit_data(cleaned.data, HELD)
    np.testing.assert_array_equal(ranker.predict(HELD.X), alone.predict(HELD.X))
    assert not hasattr(asked, "model_")


def test_a_window_beyond_the_epochs_trains_as_many(monkeypatch):
    seen = []
    watch = SOUR.__call__
    monkeypatch.setattr(
        SOUR, "__call__", lambda self, epoch, *a: seen.append(epoch) or watch(self, epoch, *a)
    )
    cr.fit_without_outliers(network(), DATA, window=Window(cutoff=5, start=2, end=7))
    assert max(seen) == 7


def test_another_ranker_is_sent_to_the_one_that_takes_it():
    with pytest.raises(CleanrankError, match=r"ranker must be a NeuralRanker; got SOURRanker. For trees"):
        cr.fit_without_outliers(cr.SOURRanker(), DATA)


def test_a_window_without_epochs_is_refused():
    with pytest.raises(CleanrankError, match="start and end must satisfy"):
        cr.fit_without_outliers(network(), DATA, window=Window(start=5, end=5))
