"""RobustRanker's "auto" beside each of its single strategies: large synthetic data, three noises, 20 seeds.

Figures go to a store as they come, so that a run that is stopped goes on where it was. A store knows nothing
of changes of the code: after one, name another. ``--write`` makes results/strategies.json.

    python benchmarks/strategies.py --seeds 2
    python benchmarks/strategies.py --jobs 2 --write
    python benchmarks/strategies.py --stored          # compute nothing, show what there is
"""

import argparse
import json
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from cards.strategies import (
    LARGE,
    MEASURE,
    NOISES,
    Cell,
    cells_of,
    compare,
    comparison_table,
    read_store,
    run_cell,
    verdict,
)
from timing import write_result

from cleanrank.robust.robust_report import STRATEGIES

# Without gold rows the noise of "posterior" is the assumed one.
COMPARED = [name for name in STRATEGIES if name != "assumed"]


def main() -> None:
    """Runs the cells that are missing, prints the table, writes it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=20, help="how many, from 1 on")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--store", type=Path, default=Path(".cleanrank/strategies.jsonl"))
    parser.add_argument("--stored", action="store_true", help="compute nothing, show what is stored")
    parser.add_argument("--write", action="store_true", help="write results/strategies.json")
    asked = parser.parse_args()
    cells = cells_of(COMPARED, range(1, asked.seeds + 1))
    if not asked.stored:
        run([cell for cell in cells if cell not in read_store(asked.store)], asked.store, asked.jobs)
    lines = read_store(asked.store)
    values = {cell: lines[cell][MEASURE] for cell in cells if cell in lines}
    print(f"{len(values)} of {len(cells)} cells")
    comparison = compare(values, COMPARED)
    if comparison is None:
        print("Shares need two seeds with all their cells.")
        return
    print(f"{comparison_table(comparison).markdown()}\n\n{verdict(comparison)}")
    if asked.write:
        settings = {"data": dict(LARGE), "noises": [f"{name} {rate:g}" for name, rate in NOISES]}
        seconds = sum(lines[cell]["seconds"] for cell in values)
        write_result("strategies", {**settings, "seconds": round(seconds), **comparison.to_json()})


def run(cells: list[Cell], store: Path, jobs: int) -> None:
    """Computes cells and appends their lines to the store, each as soon as it is there."""
    store.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for done, future in enumerate(as_completed([pool.submit(run_cell, cell) for cell in cells]), 1):
            line = future.result()
            with store.open("a", encoding="utf-8") as out:
                out.write(json.dumps(line) + "\n")
            left = (time.monotonic() - start) / done * (len(cells) - done) / 60
            print(
                f"{done} of {len(cells)}, {left:.0f} min left: seed {line['seed']}, {line['noise']}, "
                f"{line['method']}: {line[MEASURE]:.4f} ({line['seconds']:.0f} s)",
                flush=True,
            )


if __name__ == "__main__":
    main()
