"""How often intervals of corrected measures hold the truth when the noise matrix is an estimate.

A judge with three grades labels 150 queries of 20 documents; 200 rows are judged again and give the matrix.
Intervals at 95 % are to hold the value of the population of queries (means over 20,000 of them), once with
the draws of the estimate, as the library and the command line compute them, once with its matrix taken for
the truth. Rows judged again are drawn at random or in equal numbers of each given grade (stratified).

    python benchmarks/corrected_coverage.py                # 200 repetitions, some minutes
    python benchmarks/corrected_coverage.py --repetitions 20 --no-write
"""

import argparse

import numpy as np
from timing import write_result

import cleanrank as cr
from cleanrank.metrics.noisy_labels import corrected

JUDGES = {
    "balanced errors": [[0.85, 0.10, 0.05], [0.10, 0.80, 0.10], [0.05, 0.15, 0.80]],
    "lenient": [[0.70, 0.20, 0.10], [0.05, 0.75, 0.20], [0.02, 0.08, 0.90]],
}
STRATEGIES = ("random", "stratified")
MEASURES = ("dcg@10", "precision@10")
DOCUMENTS = 20
POPULATION = 20_000


def queries(n, seed):
    """True grades by a hidden relevance, and the scores of a system that sees half of it."""
    rng = np.random.default_rng(seed)
    relevance, mistake, leniency = rng.normal(size=(3, n, DOCUMENTS))
    relevance = 0.7 * relevance + 0.3 * leniency[:, :1]
    y = np.digitize(relevance, [0.4, 1.0]).ravel()
    data = cr.from_arrays(np.zeros((n * DOCUMENTS, 1)), y, group=np.full(n, DOCUMENTS))
    return data, (relevance + 0.7 * mistake).ravel()


def simulate(judge, strategy, seed, n_queries, n_gold):
    """The intervals of one repetition, with and without the draws of the estimate."""
    truth, scores = queries(n_queries, seed)
    labelled = cr.corrupt(truth, np.array(JUDGES[judge]), seed=seed).data
    sample = cr.sample_gold(labelled, n_gold, strategy=strategy, seed=seed)
    estimate = cr.estimate_noise(labelled, gold=(sample.row_ids, truth.y[sample.rows]), seed=seed)
    if estimate.profile is None:
        return None
    return {
        way: corrected(scores, labelled, MEASURES, noise, seed=seed, resamples=2_000, allow_dependent=True)
        for way, noise in (("draws", estimate), ("matrix alone", estimate.profile))
    }


def coverage(repetitions, n_queries=150, n_gold=200, first_seed=1000):
    """Share of intervals that hold the population's value, by judge, strategy, measure and way."""
    population = cr.evaluate(*queries(POPULATION, first_seed - 1)[::-1], MEASURES).means
    rows = []
    for judge in JUDGES:
        for strategy in STRATEGIES:
            runs = [
                simulate(judge, strategy, seed, n_queries, n_gold)
                for seed in range(first_seed, first_seed + repetitions)
            ]
            answered = [run for run in runs if run is not None]
            for m, measure in enumerate(MEASURES):
                value = population[measure]
                row = {"judge": judge, "rows judged again": strategy, "measure": measure}
                for way in ("draws", "matrix alone"):
                    held = [run[way].low[m] <= value <= run[way].high[m] for run in answered]
                    width = np.mean([run[way].high[m] - run[way].low[m] for run in answered])
                    row |= {way: float(np.mean(held)), f"width, {way}": float(width)}
                row["bias"] = float(np.mean([run["draws"].means[m] for run in answered]) - value)
                row["bias as labelled"] = float(np.mean([run["draws"].noisy[m] for run in answered]) - value)
                row["refused"] = repetitions - len(answered)
                rows.append(row)
                print(row, flush=True)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--no-write", action="store_true")
    arguments = parser.parse_args()
    figures = coverage(arguments.repetitions)
    if not arguments.no_write:
        write_result("corrected_coverage", {"repetitions": arguments.repetitions, "rows": figures})
