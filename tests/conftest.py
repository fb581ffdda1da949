import os
from pathlib import Path

import numpy as np
import pytest

import cleanrank as cr


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of the real data sets; without it the test skips, and under CI it fails."""
    found = os.environ.get("CLEANRANK_DATA", "")
    if found and Path(found).is_dir():
        return Path(found)
    reason = "needs the real data sets: set CLEANRANK_DATA to the folder that holds MQ2008, OHSUMED, ..."
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def toy():
    """A small judged set with three grades, rows of a query not contiguous in the input."""
    rng = np.random.default_rng(5)
    qid = np.repeat(np.arange(40), 12)
    rng.shuffle(qid)
    X = rng.normal(size=(480, 4)).astype(np.float32)
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=480), [0.3, 1.2])
    return cr.from_arrays(X, y, qid=qid)
