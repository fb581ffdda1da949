import pytest

from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.rankers import RANKERS
from cleanrank.rankers.configure import configured_ranker


@pytest.mark.parametrize("name", RANKERS)
def test_every_ranker_takes_the_shared_settings_that_it_knows(name):
    ranker = configured_ranker(name, {"random_state": 3, "n_estimators": 7, "epochs": 2, "unknown": 1}, {})
    assert isinstance(ranker, RANKERS[name].load())
    assert ranker.random_state == 3
    for setting, value in (("epochs", 2), ("n_estimators", 7)):
        assert getattr(ranker, setting, value) == value
    for preset, value in RANKERS[name].presets.items():
        assert getattr(ranker, preset) == value


def test_options_go_to_the_network_or_to_the_ranker():
    settings = {
        "learning_rate": None,
        "early_stopping_rounds": 3,
        "measure": "map",
        "random_state": 4,
        "n_jobs": 1,
        "epochs": 7,
    }
    ranker = configured_ranker("neural", settings, {"dropout": 0.1, "loss": "lambdarank"})
    assert ranker.network_options == {"dropout": 0.1}
    assert (ranker.loss, ranker.epochs, ranker.learning_rate) == ("lambdarank", 7, 1e-3)
    assert (ranker.early_stopping_rounds, ranker.measure, ranker.random_state) == (3, "map", 4)


def test_words_of_the_command_line_become_arguments():
    assert configured_ranker("pairwise", {}, {"loss": "ranknet"}).objective == "ranknet"
    assert configured_ranker("sour", {"measure": "ndcg@3"}, {"norm": False}).objective == "lambdamart"
    assert configured_ranker("sour", {"measure": "ndcg@3"}, {}).cutoff == 3
    assert configured_ranker("sour", {}, {}).early_stopping_rounds == 50


def test_what_no_ranker_takes_is_refused():
    with pytest.raises(UnknownNameError, match="unknown ranker 'lgbm'"):
        configured_ranker("lgbm", {}, {})
    with pytest.raises(UnknownNameError, match="Did you mean 'alpha'"):
        configured_ranker("peer", {}, {"alhpa": 1})
    with pytest.raises(InvalidInputError, match="must be ndcg@K for sour"):
        configured_ranker("sour", {"measure": "map"}, {})
