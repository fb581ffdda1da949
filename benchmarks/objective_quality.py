"""Do the three lambdarank objectives rank equally well? NDCG@10 on real test queries, paired.

Forests of up to 300 trees (31 leaves, learning rate .05, stopping after 50 rounds without gain in validation
NDCG@10) learn from MQ2008 and OHSUMED, all folds. Test queries of the folds are pooled. Differences from
LightGBM's built-in objective come with their 95 % bootstrap interval and Fisher's two-sided p.

    python benchmarks/objective_quality.py
"""

import argparse
import json

import numpy as np
from timing import write_result

import cleanrank as cr
from cleanrank.metrics.significance import bootstrap_interval, fisher_test
from cleanrank.rankers.trees import TreeParams

MEASURE = "ndcg@10"
OBJECTIVES = ("builtin", "parity", "exact")


def of_fold(name, fold, norm):
    """Objective -> NDCG@10 of each test query of a fold, and the trees kept."""
    splits = cr.load_dataset(name, fold=fold)
    values, trees = {}, {}
    for objective in OBJECTIVES:
        settings = TreeParams(
            objective="lambdarank" if norm else "lambdamart", implementation=objective, n_estimators=300
        )
        model = settings.train(splits.train, splits.validation)
        values[objective] = np.asarray(
            cr.evaluate(model.predict(splits.test.X), splits.test, MEASURE, order="data")[MEASURE]
        )
        trees[objective] = model.best_iteration
    return values, trees


def of_set(name, norm):
    """Means and paired differences over the test queries of all folds."""
    folds = [of_fold(name, fold, norm) for fold in (1, 2, 3, 4, 5)]
    pooled = {o: np.concatenate([values[o] for values, _ in folds]) for o in OBJECTIVES}
    base = pooled["builtin"]
    found = {"queries": len(base)}
    for objective, values in pooled.items():
        low, high = bootstrap_interval(values - base)
        found[objective] = {
            "mean": round(float(values.mean()), 4),
            "difference": round(float((values - base).mean()), 4),
            "low": round(float(low), 4),
            "high": round(float(high), 4),
            "p": round(float(fisher_test(values, base)), 4),
            "largest_difference_of_a_query": float(np.abs(values - base).max()),
            "trees": [trees[objective] for _, trees in folds],
        }
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", nargs="+", default=["mq2008", "ohsumed"])
    parser.add_argument("--no-write", action="store_true")
    given = parser.parse_args()
    results = {
        f"{name}, {'lambda-LGBM' if norm else 'lambda-MART'}": of_set(name, norm)
        for name in given.sets
        for norm in (True, False)
    }
    print(json.dumps(results, indent=2))
    if not given.no_write:
        write_result("objective_quality", results)


if __name__ == "__main__":
    main()
