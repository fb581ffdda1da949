"""Training on a Dask cluster: two workers of one thread each against one process with two, and its quality.

    python benchmarks/dask_speed.py [--documents 250000] [--trees 100] [--repeats 5] [--seeds 8] [--folds]

Both have the same cores, so what is more than 1 is the cost of sending the data, of histograms that travel
and of waiting for each other. Quality is NDCG@10 on queries held out: models of several seeds, with rows and
features drawn for every tree, trained in one process and on the cluster. With --folds independent models (the
folds of a detector) are compared too: their bits are the same, so there is time alone.
"""

import argparse
import logging
import os

import numpy as np
from distributed import Client, LocalCluster
from timing import interleaved, write_result

import cleanrank as cr

GOALS = {"times_of_one_process": 1.7, "ndcg_within_spread_of_seeds": True}
DRAWN = {"bagging_fraction": 0.8, "bagging_freq": 1, "feature_fraction": 0.8}
FEATURES, LENGTH = 136, 100


def ndcg(ranker, rows):
    return cr.evaluate(ranker.predict(rows.X), rows, ["ndcg@10"]).means["ndcg@10"]


def of_training(client, train, trees, repeats):
    settings = {"n_estimators": trees}
    found = interleaved(
        {
            "one process": lambda: cr.BoostedRanker(**settings, n_jobs=2).fit_data(train),
            "cluster": lambda: cr.BoostedRanker(**settings).fit_data(train, client=client),
        },
        repeats=repeats,
    )
    return {**found.summary(), "times_of_one_process": round(found.ratio("cluster", "one process"), 2)}


def of_folds(client, train, repeats):
    found = interleaved(
        {
            "one process": lambda: cr.find_label_issues(train, method="confident", n_jobs=2),
            "cluster": lambda: cr.find_label_issues(train, method="confident", client=client),
        },
        repeats=repeats,
    )
    return {**found.summary(), "times_of_one_process": round(found.ratio("cluster", "one process"), 2)}


def of_seeds(client, train, test, trees, seeds):
    """NDCG of models of several seeds; the mean of the cluster's must lie among those of one process."""
    values = {"one process": [], "cluster": []}
    for seed in range(seeds):
        for name, options in {"one process": {}, "cluster": {"client": client}}.items():
            ranker = cr.BoostedRanker(n_estimators=trees, random_state=seed, params=DRAWN, n_jobs=2)
            values[name].append(ndcg(ranker.fit_data(train, **options), test))
    one, many = values["one process"], values["cluster"]
    return {
        "ndcg@10": {name: [round(value, 5) for value in each] for name, each in values.items()},
        "means": {name: round(float(np.mean(each)), 5) for name, each in values.items()},
        "standard_deviations": {name: round(float(np.std(each, ddof=1)), 5) for name, each in values.items()},
        "ndcg_within_spread_of_seeds": bool(min(one) <= np.mean(many) <= max(one)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=250_000)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--folds", action="store_true", help="the folds of a detector too, for minutes")
    options = parser.parse_args()
    made = cr.make_ranking(options.documents * 5 // 4 // LENGTH, FEATURES, docs_per_query=LENGTH, seed=0)
    whole = cr.corrupt(made, rate=0.1, seed=1).data
    train, test = cr.split(whole, (0.8, 0.2), seed=0)
    load = os.getloadavg()[0]
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        result = {
            "documents": train.n_docs,
            "features": FEATURES,
            "trees": options.trees,
            "load_before": round(load, 2),
            "training": of_training(client, train, options.trees, options.repeats),
            **({"folds": of_folds(client, train, options.repeats)} if options.folds else {}),
            "quality": of_seeds(client, train, test, options.trees, options.seeds),
        }
    training, quality = result["training"], result["quality"]
    result["goals"] = GOALS
    result["met"] = {
        "times_of_one_process": training["times_of_one_process"] <= GOALS["times_of_one_process"],
        "ndcg_within_spread_of_seeds": quality["ndcg_within_spread_of_seeds"],
    }
    write_result("dask_speed", result)


if __name__ == "__main__":
    main()
