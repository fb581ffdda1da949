"""Thirteen click models with and without peers on a GPU.

Training needs NumPy and torch alone, so that a bare GPU machine will do; rows are prepared elsewhere.

    python benchmarks/ctr_gpu.py prepare tmall rows.npz
    python benchmarks/ctr_gpu.py table rows.npz table.jsonl --processes 8
    python benchmarks/ctr_gpu.py popularity rows.npz popularity.jsonl --processes 8

``table`` does what recipes/ctr/table1.toml does: of a model and a seed three bases (other first weights) and
three weights of peers are trained, validation AUC chooses one of each, and both are measured on test rows.
Settings were fixed before any test row was looked at. Lines are appended as they come; what is there already
is not computed again.
"""

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from cleanrank.data.behaviours import ClickRows, ClickSplits, Layout
from cleanrank.rankers.ctr import MODELS

Cell: TypeAlias = Callable[[tuple[str, int, str]], dict[str, Any]]
ALPHAS = (0.05, 0.1, 0.3)
RESTARTS = (0, 1, 2)
SETTINGS: dict[str, Any] = {"epochs": 10, "batch_size": 4000, "learning_rate": 0.004, "precision": "tf32"}
# What recipes/ctr/table1.toml trains with.
RECIPE: dict[str, Any] = {"epochs": 10, "batch_size": 1000, "learning_rate": 0.002}
ARRAYS = ("user", "item", "context", "y", "history_of", "histories", "lengths", "users")


def prepare(name: str, out: Path) -> None:
    """Writes the rows of a data set of the catalogue as plain arrays."""
    import cleanrank as cr

    splits = cr.load_dataset(name)
    arrays = {f"{part}/{a}": getattr(getattr(splits, part), a) for part in parts() for a in ARRAYS}
    layout = splits.train.layout
    sizes = {kind: dict(getattr(layout, kind)) for kind in ("user", "item", "context")}
    np.savez_compressed(out, layout=json.dumps(sizes), **arrays)
    print(splits.train, splits.validation, splits.test, sep="\n")


def parts() -> tuple[str, ...]:
    """The names of the three parts."""
    return "train", "validation", "test"


def read(file: Path) -> ClickSplits:
    """Reads what ``prepare`` wrote."""
    with np.load(file, allow_pickle=False) as stored:
        layout = Layout(**json.loads(str(stored["layout"])))
        rows = {
            part: ClickRows(**{a: stored[f"{part}/{a}"] for a in ARRAYS}, layout=layout) for part in parts()
        }
    return ClickSplits(**rows)


def one_cell(task: tuple[str, int, str]) -> dict[str, Any]:
    """Trains the six candidates of a model and a seed; test rows see one base and one peer model."""
    from cleanrank.metrics.clicks import auc, compare_auc
    from cleanrank.rankers.ctr.ranker import CTRModel

    model, seed, file = task
    splits = read(Path(file))
    started = time.perf_counter()

    def fitted(restart: int, **robust: Any) -> CTRModel:
        state = 100 * seed + restart
        network = CTRModel(model, **SETTINGS, **robust, random_state=state, n_jobs=1)
        return network.fit(splits.train, splits.validation)

    candidates = {
        "base": {f"restart {r}": fitted(r) for r in RESTARTS},
        "peer": {f"alpha {a}": fitted(0, robust="peer", alpha=a) for a in ALPHAS},
    }
    line: dict[str, Any] = {"model": model, "seed": seed, **SETTINGS}
    scores = {}
    for kind, tried in candidates.items():
        values = {name: each.model_.validation_value for name, each in tried.items()}
        chosen = max(values, key=lambda name: values[name])
        scores[kind] = tried[chosen].predict(splits.test)
        line[kind] = {
            "validation": values,
            "chosen": chosen,
            "epochs": {name: each.model_.best_epoch for name, each in tried.items()},
            "auc": auc(splits.test.y, scores[kind]),
        }
    gain = compare_auc(splits.test.y, scores["peer"], scores["base"], splits.test.users)
    line["gain"] = {"value": gain.value, "interval": gain.interval, "error": gain.standard_error}
    return line | {"seconds": time.perf_counter() - started}


def against_popularity(task: tuple[str, int, str]) -> dict[str, Any]:
    """A model, trained once, beside the popularity of items on test rows."""
    from cleanrank.data.popularity import ItemPopularity
    from cleanrank.metrics.clicks import auc, compare_auc
    from cleanrank.rankers.ctr.ranker import CTRModel

    model, seed, file = task
    splits = read(Path(file))
    started = time.perf_counter()
    network = CTRModel(model, **RECIPE, random_state=seed, n_jobs=1).fit(splits.train, splits.validation)
    scores, popular = network.predict(splits.test), ItemPopularity.fit(splits.train).predict(splits.test)
    margin = compare_auc(splits.test.y, scores, popular, splits.test.users)
    return {
        "model": model,
        "seed": seed,
        **RECIPE,
        "auc": auc(splits.test.y, scores),
        "popularity": auc(splits.test.y, popular),
        "gain": {"value": margin.value, "interval": margin.interval, "error": margin.standard_error},
        "seconds": time.perf_counter() - started,
    }


def table(file: Path, out: Path, seeds: int, processes: int, cell: Cell = one_cell) -> None:
    """Every model and seed that is not in ``out`` yet, the slow ones first."""
    done = set()
    if out.exists():
        done = {(each["model"], each["seed"]) for each in map(json.loads, out.read_text().splitlines())}
    slow = ["dien", "mimn", "hpmn", "gru4rec"]
    models = slow + [name for name in MODELS if name not in slow]
    tasks = [(m, s, str(file)) for s in range(1, seeds + 1) for m in models if (m, s) not in done]
    with multiprocessing.get_context("spawn").Pool(processes) as pool, out.open("a") as lines:
        for line in pool.imap_unordered(cell, tasks):
            lines.write(json.dumps(line) + "\n")
            lines.flush()
            print(line["model"], line["seed"], f"{line['seconds']:.0f} s", line["gain"]["value"], flush=True)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=("prepare", "table", "popularity"))
    parser.add_argument("source", help="a data set of the catalogue, or the file of its rows")
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=8)
    asked = parser.parse_args()
    if asked.part == "prepare":
        prepare(asked.source, asked.out)
    else:
        cell = one_cell if asked.part == "table" else against_popularity
        table(Path(asked.source), asked.out, asked.seeds, asked.processes, cell)


if __name__ == "__main__":
    main()
