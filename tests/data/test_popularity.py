"""Item popularity counts every training click once."""

import numpy as np
import pandas as pd
import pytest

from cleanrank.data.events import read_events
from cleanrank.data.popularity import ItemPopularity
from cleanrank.data.protocols import prepare_clicks
from cleanrank.errors import InvalidInputError


@pytest.mark.parametrize("least", [1, 3])
def test_counts_are_those_of_the_log(least):
    random = np.random.default_rng(0)
    log = pd.DataFrame({"user": random.integers(40, size=900), "item": random.zipf(1.4, size=900) % 30})
    log["time"] = np.arange(900)
    splits = prepare_clicks(read_events(log), least=least, rare=1, repeats=True)
    popularity = ItemPopularity.fit(splits.train)
    training = log[log["time"] < 720]
    counted = training[training.groupby("user")["item"].transform("size") > least]
    assert popularity.counts[1:].sum() >= 0.98 * len(counted)  # a target without a negative is no row
    by_item = counted["item"].value_counts().sort_index()
    assert np.corrcoef(by_item, popularity.counts[1:])[0, 1] > 0.999
    with pytest.raises(InvalidInputError, match="must have the item codes of the training rows"):
        ItemPopularity(np.zeros(3, dtype=np.int64)).predict(splits.test)
