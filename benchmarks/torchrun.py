"""Networks in one process, in two, in parts and from disk: NDCG@10 and time on MQ2008, five seeds.

    python benchmarks/torchrun.py [--seeds 5] [--quick]

Each row trains fold 1 with early stopping on its validation queries and is measured on its test queries. Two
processes are started by torchrun (gloo) and share every batch; ``accumulate`` cuts a batch into parts that go
through the network one after the other; ``from disk`` reads batches from a folder of shards. What differs
between rows is rounding, which training blows up, so their means are compared with the spread of seeds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from timing import machine_facts, write_result

ROWS: dict[str, dict[str, Any]] = {
    "one process": {},
    "two processes": {},
    "accumulate=4": {"accumulate": 4},
    "from disk": {},
}
SETTINGS: dict[str, Any] = {
    "loss": "lambdarank",
    "epochs": 60,
    "early_stopping_rounds": 15,
    "batch_queries": 64,
    "network_options": {"hidden": (64, 32)},
    "device": "cpu",
    "n_jobs": 1,
}


def train(row: str, seeds: int, out: Path) -> None:
    """Trains with every seed; the first process writes the figures."""
    import cleanrank as cr
    from cleanrank.data.shards import read_shards, write_shards

    splits = cr.load_dataset("mq2008", fold=1)
    train, valid, test = splits.train, splits.validation, splits.test
    if row == "from disk":
        parts = []
        for name, part in (("train", train), ("valid", valid)):
            write_shards(part, out.parent / name)
            parts.append(read_shards(out.parent / name))
        train, valid = parts
    found: dict[str, Any] = {"ndcg@10": [], "epochs": [], "seconds": []}
    for seed in range(seeds):
        started = time.perf_counter()
        ranker = cr.NeuralRanker(**SETTINGS, **ROWS[row], random_state=seed).fit_data(train, valid)
        found["seconds"].append(round(time.perf_counter() - started, 2))
        measured = cr.evaluate(ranker.predict(test.X), test, ["ndcg@10"], order="data")
        found["ndcg@10"].append(round(float(measured.means["ndcg@10"]), 5))
        found["epochs"].append(ranker.model_.best_epoch)
    if os.environ.get("RANK", "0") == "0":
        out.write_text(json.dumps(found))


def run(row: str, seeds: int) -> dict[str, Any]:
    """One row, in processes of its own."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "figures.json"
        start = launch if row == "two processes" else []
        arguments = ["--train", row, str(out), "--seeds", str(seeds)]
        subprocess.run([sys.executable, *start, __file__, *arguments], check=True)
        found: dict[str, Any] = json.loads(out.read_text())
    values = found["ndcg@10"]
    summary = {
        "mean": round(statistics.mean(values), 4),
        "deviation": round(statistics.stdev(values), 4) if seeds > 1 else None,
        "median_seconds": statistics.median(found["seconds"]),
    }
    print(row, summary, flush=True)
    return summary | found


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one seed; nothing is written")
    parser.add_argument("--train", nargs=2, metavar=("ROW", "OUT"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.train:
        train(asked.train[0], asked.seeds, Path(asked.train[1]))
        return
    rows = {row: run(row, 1 if asked.quick else asked.seeds) for row in ROWS}
    result = {"data": "MQ2008 fold 1", "settings": SETTINGS, "rows": rows}
    if asked.quick:
        print(json.dumps({**result, "machine": machine_facts()}, indent=2))
    else:
        write_result("torchrun", result)


if __name__ == "__main__":
    main()
