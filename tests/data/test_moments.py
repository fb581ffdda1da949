"""Fields of the moment agree with pandas' calendar."""

import numpy as np
import pandas as pd
import pytest

from cleanrank.data.moments import CONTEXTS

CALENDAR = {
    "weekday": lambda times: times.day_of_week,
    "weekend": lambda times: times.day_of_week >= 5,
    "hour": lambda times: times.hour,
    "season": lambda times: times.quarter - 1,
    "half_month": lambda times: times.day > 15,
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_values_of_times(name):
    seconds = np.random.default_rng(0).integers(-(2**31), 2**33, size=5000)
    size, value_of = CONTEXTS[name]
    values = value_of(seconds)
    assert (values == np.asarray(CALENDAR[name](pd.to_datetime(seconds, unit="s")), dtype=int)).all()
    assert set(values) == set(range(size))
