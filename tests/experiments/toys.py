"""A small recipe, and functions that stand in for a cell's work; workers import them by name."""

import json
import os
import signal
import time
from pathlib import Path

import numpy as np

from cleanrank.experiments.results import Result, or_nan, pack, split, unpack_values

# What workers are told to import.
FIGURE, MOODY, THREADED = (f"{__name__}:{name}" for name in ("figure", "moody", "threaded"))

RECIPE = """\
# cleanrank reproduce recipes/toys/small.toml
title = "A small grid"
measures = ["ndcg@10", "map:letor"]
seeds = [1, 2]
baseline = "norm on"

[[data]]
name = "synthetic"
folds = [1, 2]
options = { n_queries = 40, n_features = 8, docs_per_query = 8.0 }

[[noise]]
profile = "uniform"
rates = [0.0, 0.3]

[[methods]]
label = "norm on"
method = "lambdarank"
params = { norm = true, rounds = 5, min_data_in_leaf = 5, feature_fraction = 0.7 }

[[methods]]
label = "chance"
method = "random"

[quick]
folds = [1]
seeds = [1]
"""


OPTIONS = {"n_queries": 40, "n_features": 8, "docs_per_query": 8.0}  # of its data


def cell_of(cells, **wanted):
    """The first of the cells with these inputs."""
    return next(c for c in cells if all(c.inputs[k] == v for k, v in wanted.items()))


def write_small(folder: Path) -> Path:
    """The small recipe, 16 cells, as a file."""
    path = folder / "recipes" / "toys" / "small.toml"
    path.parent.mkdir(parents=True)
    path.write_text(RECIPE)
    return path


def figure(text: str) -> bytes:
    """A result that depends on the cell alone; "seconds" makes it slow."""
    cell = json.loads(text)
    time.sleep(cell.get("seconds", 0))
    rng = np.random.default_rng(cell["seed"])
    values = {"ndcg@10": rng.random(5), "map": rng.random(5)}
    means = {m: float(v.mean()) for m, v in values.items()}
    return pack(Result("done", values, means, [1, 2, 3, 4, 5], {}, "", {}, 0.0, "2026-01-01T00:00:00"))


def unpack(packed: bytes) -> Result:
    """The inverse of pack."""
    header, blob = split(packed)
    values, query_ids = unpack_values(blob)
    means = {m: or_nan(v) for m, v in header.pop("means").items()}
    return Result(values=values, means=means, query_ids=query_ids, **header)


def moody(text: str) -> bytes:
    """Does what the cell says: dies, dies once, is killed, fails, or gives a figure."""
    cell = json.loads(text)
    if "prints" in cell:
        print(cell["prints"], flush=True)
    if cell.get("dies") or ("dies_once" in cell and _first_time(Path(cell["dies_once"]))):
        print("a last word", flush=True)
        os._exit(7)
    if cell.get("killed"):
        os.kill(os.getpid(), signal.SIGKILL)
    if cell.get("fails"):
        return pack(Result("failed", error="no luck"))
    return figure(text)


def workers_of(driver):
    """The worker processes of a driver, without loky's tracker of resources."""
    return [c for c in driver.children() if "popen_loky" in " ".join(c.cmdline())]


def _first_time(path: Path) -> bool:
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def threaded(text: str) -> bytes:
    """Tells the numbers of threads that its process was given."""
    names = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")
    return pack(Result("done", chosen={name: os.environ.get(name) for name in names}))
