"""Which criterion picks the best model when validation labels are noisy?

Twelve LightGBM models (trees of 4, 8 and 31 leaves; 5, 15, 50 and 150 rounds) learn from noisy training
labels. Each criterion picks one of them on noisy validation labels, drawn anew ten times. The pick is
judged on *true* labels: whether it is the model with the best NDCG@10 of the validation queries, and what it
lacks in NDCG@10 on the test queries against the model that is best there. "auto" is cr.select with the noise
known and 30 repetitions. "saved" is the regret of NDCG@10, which early stopping watches, minus that of the
criterion; intervals are over folds and seeds. About four minutes on one core:

    NUMBA_NUM_THREADS=1 python benchmarks/selection.py
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from timing import write_result

import cleanrank as cr
from cleanrank.metrics.evaluation import evaluate
from cleanrank.metrics.measure import as_measures
from cleanrank.metrics.selection import means_of
from cleanrank.noise.profiles import make_profile
from cleanrank.rankers.trees import TreeParams

CRITERIA = ("auc:micro", "pairacc:micro", "dcg@10", "dcg", "ndcg@10", "ndcg", "map", "auc")
LEAVES, ROUNDS = (4, 8, 31), (5, 15, 50, 150)
TARGET = "ndcg@10"
EARLY_STOPPING = CRITERIA.index("ndcg@10")
REPETITIONS = 30


def candidates(train, validation, test, seed):
    """Scores of every model on validation and test rows."""
    found = []
    for leaves in LEAVES:
        params = {"num_leaves": leaves, "min_data_in_leaf": 20, "learning_rate": 0.1}
        settings = TreeParams(implementation="builtin", n_estimators=ROUNDS[-1], params=params, seed=seed)
        model = settings.train(train)
        for rounds in ROUNDS:
            found.append([model.booster.predict(d.X, num_iteration=rounds) for d in (validation, test)])
    return [list(scores) for scores in zip(*found, strict=True)]


def one(name, fold, profile_name, rate, seed, draws):
    """Per criterion: agreement with the clean winner and regret on test, means over draws."""
    splits = cr.load_dataset(name, fold=fold)
    profile = make_profile(profile_name, rate, splits.train.n_grades)
    rng = np.random.default_rng([seed, fold])
    train = splits.train.with_labels(profile.sample(splits.train.y, rng))
    on_validation, on_test = candidates(train, splits.validation, splits.test, seed)
    measures = as_measures(CRITERIA)
    truth = means_of(as_measures(TARGET), on_validation, splits.validation.y, splits.validation)[0]
    test = np.array([evaluate(s, splits.test, TARGET, order="data").means[TARGET] for s in on_test])
    right, regret, own = (np.zeros(len(CRITERIA) + 1) for _ in range(3))
    systems = {str(i): s for i, s in enumerate(on_validation)}
    for _ in range(draws):
        given = profile.sample(splits.validation.y, rng)
        picks = means_of(measures, on_validation, given, splits.validation).argmax(axis=1)
        noisy = splits.validation.with_labels(given)
        auto = cr.select_model(
            systems, noisy, noise=profile, target=TARGET, repetitions=REPETITIONS, seed=seed
        )
        picks = np.append(picks, int(auto.winner))
        right += truth[picks] == truth.max()
        own += truth.max() - truth[picks]
        regret += test.max() - test[picks]
    clean = means_of(measures, on_validation, splits.validation.y, splits.validation).argmax(axis=1)
    return {
        "agreement": (right / draws).tolist(),
        "validation_regret": (own / draws).tolist(),
        "test_regret": (regret / draws).tolist(),
        # With clean labels there is no noise for "auto" to weigh criteria by.
        "clean_choice": [*(test.max() - test[clean]).tolist(), None],
        "random_test_regret": float((test.max() - test).mean()),
    }


def mean_or_none(values):
    """The mean, or None where there are no values."""
    return None if None in values else float(np.mean(values))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", nargs="+", default=["mq2008", "ohsumed"])
    parser.add_argument("--folds", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument("--rates", nargs="+", type=float, default=[0.1, 0.2, 0.3])
    parser.add_argument("--profile", default="uniform")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    rows = []
    for name in asked.data:
        for rate in asked.rates:
            cells = [
                one(name, fold, asked.profile, rate, seed, asked.draws)
                for fold in asked.folds
                for seed in range(1, asked.seeds + 1)
            ]
            rng = np.random.default_rng(0)
            again = rng.integers(len(cells), size=(2000, len(cells)))
            for c, criterion in enumerate((*CRITERIA, "auto")):
                regret = np.array([cell["test_regret"][c] for cell in cells])
                low, high = np.quantile(regret[again].mean(axis=1), [0.025, 0.975])
                saved = np.array([cell["test_regret"][EARLY_STOPPING] for cell in cells]) - regret
                least, most = np.quantile(saved[again].mean(axis=1), [0.025, 0.975])
                rows.append(
                    {
                        "data": name, "rate": rate, "criterion": criterion,
                        "agreement": float(np.mean([cell["agreement"][c] for cell in cells])),
                        "validation_regret": float(np.mean([cell["validation_regret"][c] for cell in cells])),
                        "test_regret": float(regret.mean()), "low": float(low), "high": float(high),
                        "saved": float(saved.mean()), "saved_low": float(least), "saved_high": float(most),
                        "clean_choice": mean_or_none([cell["clean_choice"][c] for cell in cells]),
                        "random": float(np.mean([cell["random_test_regret"] for cell in cells])),
                    }
                )  # fmt: skip
                print(json.dumps(rows[-1]), flush=True)
    settings = {"folds": asked.folds, "seeds": asked.seeds, "draws": asked.draws, "profile": asked.profile,
                "repetitions": REPETITIONS, "target": TARGET,
                "models": len(LEAVES) * len(ROUNDS)}  # fmt: skip
    write_result("selection" if asked.out is None else str(asked.out), {"settings": settings, "rows": rows})


if __name__ == "__main__":
    sys.exit(main())
