"""What the least sum of Hessians in a leaf does: quality, and how many documents leaves really hold.

LightGBM estimates the documents of a leaf from its Hessians, so ``min_data_in_leaf`` (20 here) is not kept
for objectives whose Hessians differ. Lambdarank (exact, 31 leaves, learning rate .05, up to 300 trees,
stopped on validation NDCG@10) is trained with several least sums, and with Hessians raised to a share of
their mean.
Data: all folds of MQ2008 and OHSUMED; five synthetic sets (150 queries x 60 documents x 30 features), as they
are and with a fifth of the training and validation labels changed at random (uniform), test labels clean.
Test queries are pooled; differences from a least sum of .001 come with 95 % bootstrap intervals.

    python benchmarks/leaf_sums.py
"""

import argparse
import json
import re

import numpy as np
from timing import write_result

import cleanrank as cr
from cleanrank.losses.trees.lambdarank import LambdaRankObjective
from cleanrank.metrics.significance import bootstrap_interval, fisher_test
from cleanrank.rankers.trees import TreeParams

MEASURE = "ndcg@10"
BASE = "sum .001"
SEEDS = range(5)
DOCUMENTS = 20


class RaisedHessians(LambdaRankObjective):
    """Lambdarank whose Hessians are at least a share of their mean."""

    share = 0.0

    def __call__(self, scores, dataset=None):
        """Gradients and raised Hessians."""
        grad, hess = super().__call__(scores, dataset)
        return grad, np.maximum(hess, np.float32(self.share * hess.mean()))


def trained(train, validation, least, share):
    settings = TreeParams(n_estimators=300, params={"min_sum_hessian_in_leaf": least})
    if not share:
        return settings.train(train, validation)
    objective = RaisedHessians(train)
    objective.share = share
    return settings.train(train, validation, objective=objective)


VARIANTS = {
    "sum 0": (0.0, 0.0),
    BASE: (1e-3, 0.0),
    "sum .1": (0.1, 0.0),
    "sum 1": (1.0, 0.0),
    "raised to .1 of the mean": (1e-3, 0.1),
    "raised to .5 of the mean": (1e-3, 0.5),
}


def parts_of(name):
    """(train, validation, test) of every fold or seed."""
    if name in ("mq2008", "ohsumed"):
        for fold in (1, 2, 3, 4, 5):
            splits = cr.load_dataset(name, fold=fold)
            yield splits.train, splits.validation, splits.test
        return
    for seed in SEEDS:
        data = cr.make_ranking(150, 30, docs_per_query=60, seed=seed)
        train, validation, test = cr.split(data, (0.4, 0.2, 0.4), seed=seed)
        if name == "synthetic, noise .2":
            train, validation = (cr.corrupt(d, "uniform", 0.2, seed=seed).data for d in (train, validation))
        yield train, validation, test


def of_set(name):
    values = {variant: [] for variant in VARIANTS}
    leaves = {variant: [] for variant in VARIANTS}
    for train, validation, test in parts_of(name):
        for variant, (least, share) in VARIANTS.items():
            model = trained(train, validation, least, share)
            values[variant].append(cr.evaluate(model.predict(test.X), test, MEASURE)[MEASURE])
            text = model.booster.model_to_string(num_iteration=model.best_iteration)
            leaves[variant] += [
                int(n) for line in re.findall("\nleaf_count=(.*)", text) for n in line.split()
            ]
    pooled = {variant: np.concatenate(each) for variant, each in values.items()}
    base = pooled[BASE]
    results = {"queries": len(base)}
    for variant, each in pooled.items():
        low, high = bootstrap_interval(each - base)
        counts = np.array(leaves[variant])
        results[variant] = {
            "mean": round(float(each.mean()), 4),
            "difference": round(float((each - base).mean()), 4),
            "low": round(float(low), 4),
            "high": round(float(high), 4),
            "p": round(float(fisher_test(each, base)), 4),
            "leaves": len(counts),
            "leaves_below_the_setting": round(float((counts < DOCUMENTS).mean()), 4),
            "smallest_leaf": int(counts.min()),
            "median_leaf": float(np.median(counts)),
        }
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--sets", nargs="+", default=["mq2008", "ohsumed", "synthetic", "synthetic, noise .2"]
    )
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    results = {name: of_set(name) for name in options.sets}
    print(json.dumps(results, indent=2))
    if not options.no_write:
        write_result("leaf_sums", results)


if __name__ == "__main__":
    main()
