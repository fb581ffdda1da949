"""Figures of records that hold means and standard errors alone, against those of the values themselves."""

import math

import numpy as np
import pytest

from cleanrank.report.means import (
    count_queries,
    has_measure,
    mean_of,
    measures_of,
    most_queries,
    plain_mean,
    pooled_means,
)
from cleanrank.types import RunRecord


def record(values=None, **more):
    return RunRecord(
        "k", "r", {}, "done", values={} if values is None else {"map": np.asarray(values)}, **more
    )


def test_values_count_where_they_are_and_numbers_where_they_are_not():
    whole, alone = record([0.5, math.nan, 1.0]), record(means={"auc": 0.7}, n_queries={"auc": 9})
    assert [has_measure(whole, "map"), has_measure(whole, "auc"), has_measure(alone, "auc")] == [
        True,
        False,
        True,
    ]
    assert (measures_of(whole), measures_of(alone)) == (["map"], ["auc"])
    assert (count_queries(whole, "map"), count_queries(alone, "auc"), count_queries(alone, "map")) == (
        2,
        9,
        0,
    )
    assert (most_queries(whole), most_queries(alone), most_queries(record())) == (3, 9, 0)
    assert mean_of(whole, "map") == 0.75
    assert mean_of(record([0.5, 1.0], means={"map": 0.6}), "map") == 0.6
    assert math.isnan(plain_mean([math.nan]))


def test_folds_of_means_have_the_error_of_their_queries_together():
    rng = np.random.default_rng(0)
    folds = [rng.random(n) for n in (40, 70)]
    records = {
        str(place): [
            record(
                means={"map": values.mean()},
                query_se={"map": values.std() / math.sqrt(len(values))},
                n_queries={"map": len(values)},
            )
        ]
        for place, values in enumerate(folds)
    }
    found = pooled_means(records, "map", 0.95)
    together = np.concatenate(folds)
    within = math.sqrt(sum(len(v) * v.var() for v in folds)) / len(together)
    assert (found["mean"], found["n_queries"]) == (pytest.approx(together.mean()), 110)
    assert found["query_se"] == pytest.approx(within)
    assert (found["high"] - found["low"]) / 2 == pytest.approx(1.959964 * within)


def test_seeds_of_a_fold_share_their_queries_and_an_unknown_error_gives_no_interval():
    seeds = [record(means={"map": m}, query_se={"map": 0.1}, n_queries={"map": 5}) for m in (0.2, 0.4)]
    found = pooled_means({"1": seeds}, "map", 0.95)
    assert (found["mean"], found["query_se"], found["n_queries"]) == (
        pytest.approx(0.3),
        pytest.approx(0.1),
        5,
    )
    unknown = pooled_means({"1": [record(means={"map": 0.2}, n_queries={"map": 5})]}, "map", 0.95)
    assert unknown == {"mean": 0.2, "n_queries": 5}
