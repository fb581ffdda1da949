"""Our lambdarank objectives against LightGBM's own: training time, and how far predictions lie apart.

    python benchmarks/objective.py [--pairs 8] [--rounds 60] [--quick]

One data set of 2,000 queries (about 240,000 documents, 136 features), binned once; every run trains the same
number of trees on two threads. Runs are interleaved in random order and ratios are taken within a round. Wall
time and processor time are both reported: on a busy machine the second is the steadier one.
"""

import argparse
import gc
import random
import statistics
import time
from typing import Any

import lightgbm
import numpy as np
from timing import write_result

import cleanrank as cr
from cleanrank.losses.trees.lambdarank import LambdaRankObjective

GOALS = {"exact": 0.95, "parity": 1.08}
PREDICTIONS = 1e-6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="3 pairs of 20 rounds; nothing is written")
    args = parser.parse_args()
    if args.quick:
        args.pairs, args.rounds = 3, 20
    data = cr.make_ranking(args.queries, seed=0)
    rows = lightgbm.Dataset(data.X, label=data.y, group=data.lengths, free_raw_data=False)
    settings: dict[str, Any] = {
        "learning_rate": 0.05, "num_leaves": 31, "verbosity": -1, "num_threads": args.threads, "seed": 0,
        "deterministic": True, "force_row_wise": True, "metric": "None",
        "label_gain": [2.0**g - 1 for g in range(data.n_grades)],
    }  # fmt: skip
    rows.params = dict(settings)
    rows.construct()

    def train(name: str, rounds: int) -> lightgbm.Booster:
        objective: Any = (
            "lambdarank" if name == "builtin" else LambdaRankObjective(data, mode=name, n_jobs=args.threads)
        )
        return lightgbm.train({**settings, "objective": objective}, rows, rounds)

    names = ("builtin", *GOALS)
    for name in names:
        train(name, 2)
    seconds = measure(names, lambda name: train(name, args.rounds), args.pairs)
    apart = 0.0
    if not args.quick:
        sample = data.X[:20_000]
        own, ours = (train(name, 100).predict(sample) for name in ("builtin", "parity"))
        apart = float(np.abs(np.asarray(own) - np.asarray(ours)).max())
    objective_ms = {name: gradient_ms(data, name) for name in GOALS}
    result = report(seconds, names, apart, objective_ms, data, args)
    print(result)
    if not args.quick:
        write_result("objective", result)


def measure(names: tuple[str, ...], run: Any, pairs: int) -> dict[str, dict[str, list[float]]]:
    """Wall and processor seconds of every run, in random order within a round."""
    rng = random.Random(0)
    found: dict[str, dict[str, list[float]]] = {
        kind: {n: [] for n in names} for kind in ("wall", "processor")
    }
    for _ in range(pairs):
        for name in rng.sample(names, len(names)):
            gc.collect()
            wall, processor = time.perf_counter(), time.process_time()
            run(name)
            found["wall"][name].append(time.perf_counter() - wall)
            found["processor"][name].append(time.process_time() - processor)
    return found


def gradient_ms(data: cr.RankingData, mode: str) -> float:
    """Processor time of one call on one thread, scores drifting as they do in training."""
    rng = np.random.default_rng(0)
    objective = LambdaRankObjective(data, mode=mode, n_jobs=1)
    scores = rng.normal(size=data.n_docs)
    taken = []
    for _ in range(9):
        scores += 0.01 * rng.normal(size=data.n_docs)
        start = time.process_time()
        objective(scores)
        taken.append(1e3 * (time.process_time() - start))
    return statistics.median(taken)


def report(
    seconds: dict[str, dict[str, list[float]]],
    names: tuple[str, ...],
    apart: float,
    objective_ms: dict[str, float],
    data: cr.RankingData,
    args: argparse.Namespace,
) -> dict[str, Any]:
    """Medians, ratios to the built-in objective with their quartiles, and the goals."""
    ratios: dict[str, Any] = {}
    for kind, times in seconds.items():
        for name in names[1:]:
            each = sorted(a / b for a, b in zip(times[name], times["builtin"], strict=True))
            low, mid, high = np.quantile(each, [0.25, 0.5, 0.75])
            ratios.setdefault(name, {})[kind] = {
                "median": round(float(mid), 4), "quartiles": [round(float(low), 4), round(float(high), 4)]
            }  # fmt: skip
    return {
        "documents": data.n_docs,
        "features": data.n_features,
        "rounds": args.rounds,
        "threads": args.threads,
        "pairs": args.pairs,
        "medians_s": {
            kind: {name: round(statistics.median(t), 3) for name, t in times.items()}
            for kind, times in seconds.items()
        },
        "ratios_to_builtin": ratios,
        "goals": GOALS,
        "parity_predictions_apart_after_100_trees": apart,
        "parity_goal": PREDICTIONS,
        "one_call_one_thread_ms": {name: round(ms, 2) for name, ms in objective_ms.items()},
    }


if __name__ == "__main__":
    main()
