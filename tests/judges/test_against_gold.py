"""A judge's grades beside gold grades, as columns."""

import numpy as np
import pytest

from cleanrank.judges.against_gold import against_gold
from cleanrank.noise.agreement import table_agreement


def test_many_tables_agree_as_each_of_them_does():
    tables = np.random.default_rng(1).integers(0, 9, (5, 3, 3))
    together = table_agreement(tables)
    for i, table in enumerate(tables):
        for name, value in table_agreement(table).items():
            assert together[name][i] == pytest.approx(float(value))
    assert np.isnan(list(table_agreement(np.zeros((2, 2))).values())).all()


def test_weights_of_one_change_nothing():
    rng = np.random.default_rng(4)
    columns = rng.integers(0, 3, 50), rng.integers(0, 3, 50), rng.integers(0, 5, 50)
    plain = against_gold(*columns, np.arange(5))
    weighed = against_gold(*columns, np.arange(5), weights=np.full(50, 2.5))
    np.testing.assert_allclose(plain.matrix, weighed.matrix)
    assert plain.leniency.low == pytest.approx(weighed.leniency.low)


def test_one_query_has_values_and_no_intervals():
    labels = against_gold(np.array([0, 1, 2]), np.array([0, 2, 2]), np.zeros(3, int), np.array(["q"]))
    assert labels.leniency.value == pytest.approx(1 / 3)
    assert np.isnan(labels.leniency.low)
    assert [span.value for span in labels.by_grade] == pytest.approx([0, 1, 0])
    assert [span.value for span in labels.by_judge_grade] == pytest.approx([0, np.nan, 1.5], nan_ok=True)


def test_intervals_are_those_of_drawn_queries():
    rng = np.random.default_rng(3)
    true, query = rng.integers(0, 3, 300), np.repeat(np.arange(30), 10)
    given = np.minimum(true + (rng.random(300) < 0.3), 2)
    labels = against_gold(true, given, query, np.arange(30))
    assert labels.leniency.low < labels.leniency.value < labels.leniency.high
    for name, span in labels.agreement.items():
        assert span.low < span.value < span.high, name
