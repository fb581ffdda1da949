import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.rankers.stopping import LIGHTGBM_MEASURES, Watched, lightgbm_measure
from cleanrank.rankers.trees import train_gbdt


@pytest.mark.parametrize("name", LIGHTGBM_MEASURES)
def test_every_measure_of_lightgbm_can_stop_a_forest(name):
    data = cr.make_ranking(12, 4, docs_per_query=10, seed=0)
    measure = f"lightgbm:{name}@5" if LIGHTGBM_MEASURES[name] else f"lightgbm:{name}"
    model = train_gbdt(data, data, rounds=3, measure=measure)
    assert model.validation_value is not None


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
    assert Watched("NDCG@10", None, 1).name == "ndcg@10"
    assert Watched("map", None, 1).settings == {"metric": "None"}
