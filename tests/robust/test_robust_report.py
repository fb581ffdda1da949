"""The report of RobustRanker: what it says in words and as plain values."""

import json

import numpy as np
import pytest

from cleanrank.noise.profiles import uniform
from cleanrank.robust.robust_report import AUTO, AVERAGED, AVERAGED_WITH_GOLD, STRATEGIES, RobustReport

TRIED = {"strategy": "grades", "objective": "gbdt", "num_leaves": 7, "trees": 12, "validation": 0.51234}


def report(weights, noise=None, doubted=None, tried=(TRIED,)):
    return RobustReport(AUTO, ("because",), weights, noise, None, 3, doubted, "ndcg@10", tried)


def test_averages_are_made_of_strategies():
    assert {AUTO, *AVERAGED, *AVERAGED_WITH_GOLD} <= set(STRATEGIES)


def test_words_say_strategy_reasons_weights_doubt_and_what_was_tried():
    text = repr(report({"posterior": 0.75, "grades": 0.25}, doubted=0.125))
    assert text.splitlines() == [
        f"auto: {STRATEGIES[AUTO]}",
        "  - because",
        "  weights: posterior 0.75, grades 0.25",
        "  12.5% of the training grades are expected to be wrong",
        "  validation: ndcg@10",
        "  strategy grades, objective gbdt, num_leaves 7: 0.5123, 12 trees",
    ]
    alone = repr(report({"grades": 1.0}, tried=()))
    assert alone.splitlines() == [f"auto: {STRATEGIES[AUTO]}", "  - because"]


def test_plain_values_go_through_json():
    values = json.loads(json.dumps(report({"posterior": 1.0}, uniform(0.2, 3), 0.1).to_json()))
    assert np.array(values.pop("matrix")) == pytest.approx(uniform(0.2, 3).matrix)
    assert values == {
        "strategy": AUTO,
        "reasons": ["because"],
        "weights": {"posterior": 1.0},
        "gold": 3,
        "doubted": 0.1,
        "measure": "ndcg@10",
        "tried": [TRIED],
    }
    assert report({}).to_json()["matrix"] is None
