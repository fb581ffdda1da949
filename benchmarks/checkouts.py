"""Did a change slow anything down? Times public functions of two checkouts against each other, in one run.

    python benchmarks/checkouts.py OLD/.venv/bin/python NEW/.venv/bin/python

Each checkout runs in a process of its own, with its own environment. In every round both do every task once,
in random order; ratios are taken within a round (new / old) before the median is taken over rounds.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROUNDS = 11


def tasks() -> dict[str, Callable[[], object]]:
    """What is timed, by public names that both checkouts have."""
    import numpy as np

    import cleanrank as cr

    data = cr.make_ranking(1000, 40, docs_per_query=100, seed=1)
    noisy = cr.corrupt(data, "uniform", 0.2, seed=2)
    rng = np.random.default_rng(3)
    scores = {name: data.X[:, 0] + rng.normal(size=data.n_docs) for name in "ab"}
    small = cr.make_ranking(200, 20, docs_per_query=60, seed=4)
    path = Path(tempfile.mkdtemp()) / "train.txt"
    cr.write_letor(data, path)
    trees = {"n_estimators": 20, "early_stopping_rounds": 0}
    return {
        "read_letor": repeated(5, lambda: cr.read_letor(path, cache=False)),
        "measures": repeated(50, lambda: cr.evaluate(scores["a"], data, ["ndcg@10", "map", "err@10", "auc"])),
        "fisher": repeated(10, lambda: cr.compare(scores, data, ["ndcg@10"], seed=0)),
        "objective": lambda: cr.BoostedRanker(**trees).fit_data(noisy.data),
        "sour": lambda: cr.find_label_issues(small, "sour", end=40, seed=0),
        "pnoise": repeated(1000, lambda: cr.pnoise(noisy.true_labels, noisy.data.y, data.indptr)),
        "posterior": lambda: cr.find_label_issues(small, "posterior", noise=noisy.profile, seed=0),
    }


def repeated(times: int, run: Callable[[], object]) -> Callable[[], object]:
    """The same many times, where once is too short to be timed."""
    return lambda: [run() for _ in range(times)] and None


def serve() -> None:
    """Runs the tasks that arrive by name, and answers with seconds."""
    known = tasks()
    for run in known.values():
        run()  # compiles
    print(json.dumps(list(known)), flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        known[line.strip()]()
        print(time.perf_counter() - start, flush=True)


def main() -> None:
    """Times both checkouts and prints a table of ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("python", nargs=2, help="the interpreters of the old and the new checkout")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    args = parser.parse_args()
    pipe = subprocess.PIPE
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import checkouts; checkouts.serve()"
    )
    workers = [
        subprocess.Popen([python, "-c", code], stdin=pipe, stdout=pipe, text=True) for python in args.python
    ]
    names, _ = (json.loads(worker.stdout.readline()) for worker in workers)
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    order = random.Random(0)
    for _ in range(args.rounds):
        for name in order.sample(names, len(names)):
            took = [0.0, 0.0]
            for side in order.sample([0, 1], 2):
                print(name, file=workers[side].stdin, flush=True)
                took[side] = float(workers[side].stdout.readline())
            seconds[name].append((took[0], took[1]))
    for worker in workers:
        worker.stdin.close()
        worker.wait()
    print(f"{'task':12} {'old s':>8} {'new s':>8} {'new / old':>10}   quartiles")
    for name, pairs in seconds.items():
        old, new = (statistics.median(side) for side in zip(*pairs, strict=True))
        low, middle, high = statistics.quantiles([b / a for a, b in pairs], n=4)
        print(f"{name:12} {old:8.4f} {new:8.4f} {middle:10.3f}   {low:.3f} to {high:.3f}")


if __name__ == "__main__":
    main()
