import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.rankers._lightgbm import LIGHTGBM_MEASURES, lightgbm_measure, stopping_measure
from tests.rankers.training import trained


@pytest.mark.parametrize("name", LIGHTGBM_MEASURES)
def test_every_measure_of_lightgbm_can_stop_a_forest(name):
    data = cr.make_ranking(12, 4, docs_per_query=10, seed=0)
    measure = f"lightgbm:{name}@5" if LIGHTGBM_MEASURES[name] else f"lightgbm:{name}"
    model = trained(data, data, objective="gbdt", n_estimators=3, measure=measure)
    if name == "ndcg":  # exponential gains, cut at 5, as ours
        ours = cr.evaluate(model.predict(data.X), data, "ndcg@5").means["ndcg@5"]
        assert model.validation_value == pytest.approx(ours, abs=1e-6)
    assert np.isfinite(model.validation_value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("foo", "unknown measure of LightGBM 'foo'"),
        ("ndcg", "ndcg needs a cut-off"),
        ("ndcg@x", "ndcg needs a cut-off"),
        ("auc@3", "auc has no cut-off"),
    ],
)
def test_wrong_ones_are_named(name, words):
    with pytest.raises(CleanrankError, match=words):
        lightgbm_measure(name)


def test_our_measures_need_no_setting_of_lightgbm():
    data = cr.make_ranking(4, 3, docs_per_query=10, seed=0)
    settings, value = stopping_measure("NDCG@10", data, 1)
    assert settings == {"metric": "None"}
    scores = data.y.astype(float)
    assert value(scores, None)[1:] == (cr.evaluate(scores, data, "ndcg@10").means["ndcg@10"], True)
    with pytest.raises(CleanrankError, match="measure must be text or a Measure"):
        stopping_measure(10, data, 1)
