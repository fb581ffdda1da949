"""Runs the cells of a recipe where only NumPy, torch, msgspec and joblib are installed; on a GPU if any.

    PYTHONPATH=src python benchmarks/peerrank.py --recipe recipes/peerrank/here.toml --workers 16 --out DIR

It writes ``DIR/runs.sqlite``, the store that ``cleanrank reproduce`` reads: copied to a machine with the
whole package, ``cleanrank reproduce RECIPE --store runs.sqlite`` finds every cell done and writes the report.
It can be stopped at any time, or by ``--minutes``; the same command goes on where it ended.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from cleanrank.experiments.cells import filter_cells
from cleanrank.experiments.driver import Tally, plan, run_cells
from cleanrank.experiments.recipe import read_recipe
from cleanrank.experiments.store import Store


class OutOfTime(Exception):
    """The minutes are over."""


def main() -> None:
    """Runs what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--recipe", nargs="+", required=True, help="TOML files, run one after the other")
    parser.add_argument("--out", default=".", help="folder of runs.sqlite")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--only", action="append", default=[], help="field=value, as for cleanrank reproduce")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="no cell is waited for after that"
    )
    given = parser.parse_args()
    if given.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if given.device == "cuda":
        import torch

        assert torch.cuda.is_available(), "no GPU is visible"
    out = Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * given.minutes

    def watch(tally: Tally) -> None:
        left = f", {tally.seconds_left:.0f} s left" if tally.seconds_left else ""
        done = f"{tally.finished}/{tally.total} ({tally.failed} failed)"
        print(f"{done} after {tally.seconds:.0f} s{left}: {tally.latest}", flush=True)
        if time.monotonic() > end:
            raise OutOfTime

    with Store(out / "runs.sqlite") as store:
        try:
            for path in given.recipe:
                recipe = read_recipe(path)
                cells = filter_cells(plan(recipe, store), given.only)
                run_cells(cells, store, recipe.name, jobs=given.workers, watch=watch)
        except OutOfTime:
            print("out of time: the same command goes on from here", flush=True)
        for record in store.records(values=False):
            if record.status != "done":
                print(f"failed: {record.cell['method']} {record.error[-600:]}", file=sys.stderr)
    # One file comes home: what the log of changes holds is written into it.
    subprocess.run(
        [sys.executable, "-c", CHECKPOINT, str(out / "runs.sqlite")],
        check=True,
    )


CHECKPOINT = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('PRAGMA wal_checkpoint(TRUNCATE)')"

if __name__ == "__main__":
    main()
