import importlib.util
import os
import shutil
import signal
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

import cleanrank as cr

# A shell starts what runs in its background with interrupts ignored, and its children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def _lacking(reason) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of the real data sets; without it the test skips, and under CI it fails."""
    found = os.environ.get("CLEANRANK_DATA", "")
    if not found or not Path(found).is_dir():
        _lacking("needs the real data sets: set CLEANRANK_DATA to the folder that holds MQ2008, OHSUMED, ...")
    return Path(found)


@pytest.fixture(scope="session")
def toy():
    """A small judged set with three grades, rows of a query not contiguous in the input."""
    rng = np.random.default_rng(5)
    qid = np.repeat(np.arange(40), 12)
    rng.shuffle(qid)
    X = rng.normal(size=(480, 4)).astype(np.float32)
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=480), [0.3, 1.2])
    return cr.from_arrays(X, y, qid=qid)


@pytest.fixture(scope="session")
def browser():
    """Chromium driven by Playwright; where either is missing the test skips, and under CI it fails."""
    if importlib.util.find_spec("playwright") is None:
        _lacking("needs Playwright: pip install playwright")
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        _lacking("needs Chromium: apt-get install chromium, or set CHROMIUM to the program")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        program = driver.chromium.launch(executable_path=found, args=list(FLAGS))
        yield program
        program.close()
