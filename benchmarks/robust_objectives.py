"""Training on robust pairwise objectives against LightGBM's built-in lambdarank.

    python benchmarks/robust_objectives.py [--pairs 8] [--rounds 40] [--quick]

One data set of 2,000 queries (about 240,000 documents, 136 features), binned once; every run trains the same
number of trees on two threads. Runs are interleaved in random order and ratios are taken within a round. Wall
time and processor time are both reported: on a busy machine the second is the steadier one. Losses whose
slope is a polynomial of the probability of the wrong order run on whole vectors, the others from a table;
both kinds are here, on strict pairs, on all ordered pairs and in LambdaRank's weighting.
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

GOAL = 1.10
CANDIDATES: dict[str, dict[str, Any]] = {
    "ranknet": {"objective": "ranknet"},
    "sigmoid": {"objective": "sigmoid"},
    "hinge": {"objective": "hinge"},
    "ramp": {"objective": "ramp"},
    "ranknet gce": {"objective": "ranknet", "robust": "gce"},
    "ranknet taylor": {"objective": "ranknet", "robust": "taylor"},
    "ranknet label_smoothing": {"objective": "ranknet", "robust": "label_smoothing"},
    "ranknet bootstrap": {"objective": "ranknet", "robust": "bootstrap"},
    "ranknet clipped": {"objective": "ranknet", "robust": "clipped"},
    "ranknet peer, all ordered pairs": {"objective": "ranknet", "robust": "peer"},
    "hinge peer, all ordered pairs": {"objective": "hinge", "robust": "peer"},
    "ranknet, top 30": {"objective": "ranknet", "truncation_level": 30},
    "lambdarank": {"objective": "lambdarank"},
    "lambdarank symmetrize": {"objective": "lambdarank", "robust": "symmetrize"},
    "lambdarank gce": {"objective": "lambdarank", "robust": "gce"},
}
QUICK = (
    "ranknet",
    "hinge",
    "ranknet peer, all ordered pairs",
    "hinge peer, all ordered pairs",
    "lambdarank gce",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--quick", action="store_true", help="few losses, 2 pairs of 4 rounds; writes nothing"
    )
    args = parser.parse_args()
    if args.quick:
        args.pairs, args.rounds = 2, 4
    data = cr.make_ranking(args.queries, seed=0)
    rows = lightgbm.Dataset(data.X, label=data.y, group=data.lengths, free_raw_data=False)
    settings: dict[str, Any] = {
        "learning_rate": 0.05, "num_leaves": 31, "verbosity": -1, "num_threads": args.threads, "seed": 0,
        "deterministic": True, "force_row_wise": True, "metric": "None",
        "label_gain": [2.0**g - 1 for g in range(data.n_grades)],
    }  # fmt: skip
    rows.params = dict(settings)
    rows.construct()
    names = ("builtin", *(QUICK if args.quick else CANDIDATES))

    def train(name: str, rounds: int) -> None:
        objective: Any = "lambdarank" if name == "builtin" else objective_of(name, data, args.threads)
        lightgbm.train({**settings, "objective": objective}, rows, rounds)

    for name in names:
        train(name, 2)
    seconds: dict[str, dict[str, list[float]]] = {n: {"wall": [], "processor": []} for n in names}
    rng = random.Random(0)
    for _ in range(args.pairs):
        for name in rng.sample(names, len(names)):
            gc.collect()
            wall, processor = time.perf_counter(), time.process_time()
            train(name, args.rounds)
            seconds[name]["wall"].append(time.perf_counter() - wall)
            seconds[name]["processor"].append(time.process_time() - processor)
    result = report(seconds, data, args)
    for name, found in result["ratios_to_builtin"].items():
        print(f"{name:34} wall {found['wall']:.3f}  processor {found['processor']:.3f}")
    if not args.quick:
        write_result("robust_objectives", result)


def objective_of(name: str, data: cr.RankingData, threads: int) -> Any:
    """The compiled objective of a candidate."""
    ranker = cr.BoostedRanker(n_jobs=threads, **{"alpha": 0.1, **CANDIDATES[name]})
    return ranker.make_objective(data, ranker.alpha) or LambdaRankObjective(data, n_jobs=threads)


def gradient_ms(name: str, data: cr.RankingData) -> float:
    """Processor time of one call on one thread, scores drifting as they do in training."""
    rng = np.random.default_rng(0)
    objective = objective_of(name, data, 1)
    scores = rng.normal(size=data.n_docs)
    taken = []
    for _ in range(9):
        scores += 0.01 * rng.normal(size=data.n_docs)
        start = time.process_time()
        objective(scores)
        taken.append(1e3 * (time.process_time() - start))
    return statistics.median(taken)


def report(
    seconds: dict[str, dict[str, list[float]]], data: cr.RankingData, args: argparse.Namespace
) -> dict[str, Any]:
    """Medians over rounds of the ratio to the built-in objective within a round."""
    ratios = {
        name: {
            kind: round(
                statistics.median(a / b for a, b in zip(times[kind], seconds["builtin"][kind], strict=True)),
                4,
            )
            for kind in times
        }
        for name, times in seconds.items()
        if name != "builtin"
    }
    return {
        "documents": data.n_docs,
        "features": data.n_features,
        "rounds": args.rounds,
        "threads": args.threads,
        "pairs": args.pairs,
        "builtin_s": {kind: round(statistics.median(t), 3) for kind, t in seconds["builtin"].items()},
        "ratios_to_builtin": ratios,
        "goal": GOAL,
        "one_call_one_thread_ms": {name: round(gradient_ms(name, data), 2) for name in ratios},
    }


if __name__ == "__main__":
    main()
