"""Epochs of all models of clicks on a GPU, steps replayed as CUDA graphs against steps launched one by one.

    python benchmarks/ctr_epoch.py [--rows 131072] [--batch 4096] [--epochs 8]

Random rows with 20 behaviours of two fields and MovieLens-100K's vocabulary; embeddings of 16, dense layers
200-80. Epochs after the first three, in which graphs are recorded; NumPy and torch suffice.
"""

import argparse
import statistics
import time

import numpy as np
import torch
from timing import write_result

from cleanrank.data.behaviours import ClickRows, Layout
from cleanrank.rankers.ctr import MODELS
from cleanrank.rankers.ctr.ranker import CTRModel
from cleanrank.rankers.neural import loop

LAYOUT = Layout({"user": 944, "age": 8}, {"item": 1683, "genre": 20}, {"weekday": 8})
T, WARM_UP = 20, 3


def make_rows(n, seed=0):
    """Random rows; every one has a history of its own."""
    rng = np.random.default_rng(seed)

    def codes(part, *shape):
        return np.stack([rng.integers(1, size, (n, *shape)) for size in part.values()], axis=-1)

    lengths = rng.integers(1, T + 1, n)
    valid = np.arange(T) < lengths[:, None]
    return ClickRows(
        user=codes(LAYOUT.user), item=codes(LAYOUT.item), context=codes(LAYOUT.context),
        y=rng.integers(0, 2, n), history_of=np.arange(n), histories=codes(LAYOUT.item, T) * valid[:, :, None],
        lengths=lengths, layout=LAYOUT, users=rng.integers(0, 943, n),
    )  # fmt: skip


def epoch_seconds(model, rows, batch, epochs):
    """The median time of an epoch."""
    marks = []

    def mark(epoch, total):
        torch.cuda.synchronize()
        marks.append(time.perf_counter())

    settings = {"epochs": epochs, "batch_size": batch, "device": "cuda", "early_stopping_rounds": None}
    CTRModel(model, **settings, model_options={"embedding": 16, "layers": (200, 80)}).fit(rows, progress=mark)
    return statistics.median(np.diff(marks)[WARM_UP - 1 :].tolist())


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=131_072)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--epochs", type=int, default=8)
    arguments = parser.parse_args()
    rows, recorded, results = make_rows(arguments.rows), loop.RECORDED, {}
    for model in MODELS:
        seconds = {}
        for name, optimizers in (("replayed", recorded), ("launched", ())):
            loop.RECORDED = optimizers
            seconds[name] = epoch_seconds(model, rows, arguments.batch, arguments.epochs)
        results[model] = {
            "rows_per_second": {name: round(arguments.rows / taken) for name, taken in seconds.items()},
            "launched_over_replayed": round(seconds["launched"] / seconds["replayed"], 2),
        }
        print(model, results[model], flush=True)
    head = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, **vars(arguments)}
    write_result("ctr_epoch_cuda", {**head, "models": results})


if __name__ == "__main__":
    main()
