"""What the driver costs: 1,000 trivial cells, from a cold start of its workers to the stored results.

A cell ranks a tiny synthetic set at random. Overhead a cell is (wall time x processes - time inside cells) /
(processes x cells): starting workers and importing, sending, packing, storing. ``wall`` leaves nothing out.

    python benchmarks/grid.py
"""

import statistics
import tempfile
from pathlib import Path

from timing import write_result

from cleanrank.experiments.driver import reproduce
from cleanrank.experiments.recipe import Recipe, read_recipe

CELLS = 1000
REPEATS = 5
LIMIT_MS = 5.0
RECIPE = f"""\
# cleanrank reproduce grid.toml
title = "Trivial cells"
measures = ["ndcg@10"]
seeds = {list(range(CELLS))}
[[data]]
name = "synthetic"
options = {{ n_queries = 10, n_features = 2, docs_per_query = 5.0 }}
[[methods]]
method = "random"
"""


def measure(recipe: Recipe, folder: Path, jobs: int) -> dict[str, float]:
    """One run into a fresh store; milliseconds a cell."""
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        found = reproduce(recipe, store=Path(fresh) / "runs.sqlite", jobs=jobs)
    if found.tally.done != CELLS:
        raise SystemExit(f"{found.tally.failed} cells failed")
    inside = sum(r.wall_seconds for r in found.records)
    wall = found.tally.seconds
    return {
        "wall_ms": 1e3 * wall / CELLS,
        "inside_cell_ms": 1e3 * inside / CELLS,
        "overhead_ms": 1e3 * (wall - inside / jobs) / CELLS,
    }


def main() -> None:
    """Measures, prints, writes results/grid.json."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "grid.toml"
        path.write_text(RECIPE)
        recipe = read_recipe(path)
        found = {}
        for jobs in (1, 2):
            rounds = [measure(recipe, Path(folder), jobs) for _ in range(REPEATS)]
            found[f"jobs_{jobs}"] = {k: round(statistics.median(r[k] for r in rounds), 3) for k in rounds[0]}
    worst = max(f["wall_ms"] for f in found.values())
    write_result(
        "grid",
        {
            "cells": CELLS,
            "repeats": REPEATS,
            "median_ms_a_cell": found,
            "limit_overhead_ms": LIMIT_MS,
            "holds": max(f["overhead_ms"] for f in found.values()) <= LIMIT_MS,
        },
    )
    print(found, f"worst wall {worst:.2f} ms a cell")


if __name__ == "__main__":
    main()
