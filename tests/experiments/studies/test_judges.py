"""Studies of judges, on a small collection whose judge is lenient with some queries."""

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data.judged import JUDGE
from cleanrank.data.split import Splits
from cleanrank.errors import InvalidInputError
from cleanrank.experiments.studies import STUDIES, StudyTask
from cleanrank.experiments.studies.judges import class_conditionality, coverage, order
from cleanrank.noise.profiles import make_profile

Q, LENGTH, SYSTEMS = 30, 20, 6


def task(study, lenient=1.0, features=True, **params):
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(Q), LENGTH)
    relevance = rng.normal(size=len(query))
    judged = relevance + lenient * rng.normal(size=Q)[query] + 0.3 * rng.normal(size=len(query))
    columns = []
    for s in range(SYSTEMS):
        scores = relevance + (0.3 + 0.4 * s) * rng.normal(size=len(query))
        rank = np.empty(len(query))
        rank[np.lexsort((-scores, query))] = np.tile(np.arange(1, LENGTH + 1), Q)
        columns.append(1 / rank)
    cuts = [0.3, 1.0, 1.6]
    data = cr.from_arrays(
        np.array(columns).T,
        np.digitize(relevance, cuts),
        qid=query,
        doc_ids=[f"d{i}" for i in range(len(query))],
        feature_names=[f"rr:{s}" if features else f"x{s}" for s in range(SYSTEMS)],
        extra={JUDGE: np.digitize(judged, cuts)},
    )
    thirds = Splits(*(data.select(np.isin(query % 3, [k])) for k in range(3)))
    profile = make_profile("uniform", 0.0, 4)
    settings = {**STUDIES[study].params, **params}
    return StudyTask(thirds, thirds.train, thirds.validation, profile, settings, "ndcg@10", 1)


@pytest.mark.parametrize(
    "params",
    [
        {"gold": 12},
        {"gold": 12, "target": "queries like these"},
        {"gold": 12, "difference": True},
        {"design": "documents", "gold": 150, "measure": "dcg@10:lightgbm", "draws": 40},
        {"design": "documents", "gold": 150, "draw": "evenly", "draws": 20},
        {"design": "documents", "gold": 150, "difference": True, "draws": 20},
    ],
)
def test_coverage_is_near_the_level_and_names_every_system(params):
    result = coverage(task("judge_coverage", **{"draws": 200, **params}))
    assert set(STUDIES["judge_coverage"].measures) == set(result.means) == set(result.values)
    assert result.query_ids == [str(s) for s in range(SYSTEMS)]
    assert 0.88 < result.means["coverage"] <= 1
    assert result.means["least coverage"] <= result.means["coverage"]
    assert result.means["error"] < result.means["width"]
    for name in ("coverage", "width", "error"):
        assert result.values[name].shape == (SYSTEMS,)


def test_the_order_of_systems_is_kept_best_by_the_judge_that_knows_most():
    result = order(task("judge_order", lenient=0.0, gold=150, draws=10))
    assert set(result.means) == set(STUDIES["judge_order"].measures)
    assert result.means["tau of the judge"] > 0.7
    assert (np.abs(result.values["tau of gold alone"]) <= 1).all()


def test_leniency_by_query_is_rejected_and_its_absence_is_not():
    assert class_conditionality(task("class_conditionality", draws=10)).means["rejected"] > 0.8


@pytest.mark.parametrize("study", ["judge_coverage", "judge_order", "class_conditionality"])
def test_the_same_seed_gives_the_same_figures(study):
    once, again = (STUDIES[study].run(task(study, gold=12, draws=5)) for _ in range(2))
    assert set(once.values) == set(once.means) == set(STUDIES[study].measures)
    np.testing.assert_equal(once.means, again.means)
    assert all(values.shape == (len(once.query_ids),) for values in once.values.values())


def test_data_without_systems_are_refused():
    with pytest.raises(InvalidInputError, match="rr:NAME"):
        coverage(task("judge_coverage", features=False))


@pytest.mark.data
@pytest.mark.parametrize("target", ["these queries", "queries like these"])
def test_intervals_of_real_systems_hold_the_truth(data_root, target):
    splits = cr.load_dataset("dl19", 1, root=data_root, judge="umbrella_gpt-4_zeroshot")
    settings = {**STUDIES["judge_coverage"].params, "target": target, "draws": 300}
    cell = StudyTask(
        splits, splits.train, splits.validation, make_profile("uniform", 0.0, 4), settings, "", 1
    )
    means = coverage(cell).means
    assert 0.92 < means["coverage"] < 0.97
    assert means["least coverage"] > 0.88
    assert means["coverage of the judge alone"] < 0.3
    assert means["width / gold alone"] < 0.9
