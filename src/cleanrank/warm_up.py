"""Compiles what the first calls need and keeps it on disk: ``python -m cleanrank.warm_up``.

Kernels are compiled when they are first used, which takes seconds. ``make install`` runs this, and whoever
builds an image for others may: data are read, written and evaluated once.
"""

import tempfile
from pathlib import Path

from cleanrank.data.letor import read_letor, write_letor
from cleanrank.data.synthetic import make_ranking
from cleanrank.metrics.evaluation import evaluate

MEASURES = ("ndcg@10", "map", "auc")


def warm_up() -> None:
    """Reads, writes and evaluates once.

    >>> warm_up()
    """
    data = make_ranking(30, 5, docs_per_query=20, seed=0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_letor(data, folder / "dense.txt")
        lines = (f"{k % 2} qid:{k // 4} {k + 1}:1 # d{k}" for k in range(40))
        (folder / "sparse.txt").write_text("\n".join(lines))
        for kind in ("dense", "sparse"):
            read_letor(folder / f"{kind}.txt", cache=False)
    evaluate(data.y, data, MEASURES, order="data")


if __name__ == "__main__":
    warm_up()
