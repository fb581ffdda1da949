import os
from pathlib import Path

import pytest


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
