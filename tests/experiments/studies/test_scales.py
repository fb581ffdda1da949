import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data.split import Splits
from cleanrank.errors import InvalidInputError
from cleanrank.experiments.studies import CURVE_RATES, STUDIES, StudyTask
from cleanrank.experiments.studies.scales import regraded
from cleanrank.noise.profiles import uniform


def made(grades, length=10, seed=0):
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(grades)), grades))
    return cr.from_arrays(np.zeros((len(y), 3)), y, group=[length] * (len(y) // length))


def study(name, splits, **params):
    task = StudyTask(
        splits, splits.train, splits.validation, uniform(0.0, 3), {**STUDIES[name].params, **params}, "map", 0
    )
    return STUDIES[name].run(task).means


def test_statistics_count_all_three_parts():
    means = study("statistics", Splits(made((70, 16, 14)), made((10, 0, 0)), made((0, 5, 5), length=5)))
    assert [means[name] for name in ("queries", "documents", "documents per query", "features")] == [
        13,
        120,
        120 / 13,
        3,
    ]
    shares = [means[f"grade {grade} (%)"] for grade in range(5)]
    np.testing.assert_allclose(shares, [100 * 80 / 120, 100 * 21 / 120, 100 * 19 / 120, 0, 0])


def test_closed_form_is_the_curve_of_the_shares_and_better_balances_are_better():
    splits = Splits(made((70, 16, 14)), made((10, 0, 0)), made((0, 5, 5)))
    own, halfway, best = (
        np.array(list(study("closed_form", splits, balance=name).values()))
        for name in ("own", "halfway", "best")
    )
    np.testing.assert_allclose(own, cr.pnoise_curve([70, 16, 14], CURVE_RATES))
    assert (best < halfway).all()
    assert (halfway < own).all()
    two = list(study("closed_form", splits, grades=2, profile="geometric").values())
    np.testing.assert_allclose(two, cr.pnoise_curve([70, 30], CURVE_RATES))


@pytest.mark.parametrize(
    ("counts", "grades", "shares"),
    [
        ([50, 30, 10, 6, 4], 2, [0.8, 0.2]),
        ([50, 30, 10, 6, 4], 3, [0.5, 0.3, 0.2]),
        ([70, 20, 10], 5, [0.7, 0.1, 0.1, 0.05, 0.05]),
        ([92, 8], 5, [0.92, 0.02, 0.02, 0.02, 0.02]),
        ([92, 8], 0, [0.92, 0.08]),
    ],
)
def test_grades_are_merged_as_in_the_papers_or_split_evenly(counts, grades, shares):
    np.testing.assert_allclose(regraded(np.array(counts, dtype=float), grades), shares)


def test_a_scale_that_cannot_be_reached_is_refused():
    with pytest.raises(InvalidInputError, match="a scale that 3 grades can be brought to"):
        regraded(np.array([3.0, 2.0, 1.0]), 4)
