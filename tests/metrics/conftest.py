import numpy as np
import pytest

import cleanrank as cr


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 200)
    y[:10] = 0
    return cr.from_arrays(np.ones((200, 1)), y, qid=np.repeat(np.arange(20), 10))


@pytest.fixture
def scores(data):
    rng = np.random.default_rng(1)
    return {name: data.y + rng.normal(0, spread, 200) for name, spread in (("a", 1), ("b", 2), ("c", 4))}
