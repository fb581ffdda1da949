"""What the default detector condemns when features know little, and what it finds when labels are wrong.

Random features, a permuted join, labels that depend on something unseen, OHSUMED as published and cleaned,
and average precision and issues under injected noise. ``--write`` makes results/no_signal.json; figures of
another checkout come from running this script with its ``src`` on PYTHONPATH.

    python benchmarks/no_signal.py --quick
    python benchmarks/no_signal.py --write
"""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from timing import write_result

import cleanrank as cr

SHARES = {"80:15:5": (0.8, 0.15, 0.05), "even": (1 / 3, 1 / 3, 1 / 3), "50:30:20": (0.5, 0.3, 0.2)}
NOISES = (("uniform", 0.1), ("uniform", 0.2), ("uniform", 0.3), ("one-way", 0.1), ("adjacent", 0.2))


def main() -> None:
    """Runs every part and prints it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few seeds, one fold")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be repeated")
    parser.add_argument("--write", action="store_true", help="write results/no_signal.json")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    lines: list[dict[str, Any]] = []
    for part in asked.part or PARTS:
        for line in PARTS[part](asked.quick):
            lines.append({"part": part, **line})
            print(lines[-1], flush=True)
    if asked.write:
        write_result("no_signal", {"lines": lines})


def random_features(quick: bool) -> list[dict[str, Any]]:
    """Labels that the features cannot know."""
    lines = []
    for n in (400, 4000):
        for name, shares in SHARES.items():
            found = []
            for seed in range(5 if quick else 50):
                rng = np.random.default_rng(seed)
                y = rng.choice(3, n, p=shares)
                found.append(issues_of(cr.from_arrays(rng.normal(size=(n, 20)), y, group=[20] * (n // 20))))
            lines.append({"rows": n, "shares": name, **summary(found)})
    return lines


def permuted_join(quick: bool) -> list[dict[str, Any]]:
    """Features of real sets in another order than their labels."""
    lines = []
    for name in ("mq2008", "ohsumed"):
        train = cr.load_dataset(name, fold=1).train
        found = []
        for seed in range(2 if quick else 10):
            order = np.random.default_rng(seed).permutation(train.n_docs)
            found.append(issues_of(replace(train, X=train.X[order])))
        lines.append({"data": name, **summary(found)})
    return lines


def unseen(quick: bool) -> list[dict[str, Any]]:
    """Right labels, of which the features see a part; the rest is normal, or has heavy tails."""
    lines = []
    for tails in ("normal", "exponential"):
        for weight in (0.3, 0.5, 0.7):
            found = []
            for seed in range(3 if quick else 10):
                rng = np.random.default_rng(seed)
                draw = rng.standard_normal if tails == "normal" else rng.standard_exponential
                X = draw(size=(4000, 6))
                utility = weight * X[:, 0] + (1 - weight) * draw(size=4000)
                y = np.digitize(utility, np.quantile(utility, [0.8, 0.95]))
                found.append(issues_of(cr.from_arrays(X, y, group=[20] * 200)))
            lines.append({"visible weight": weight, "tails": tails, **summary(found)})
    return lines


def published(quick: bool) -> list[dict[str, Any]]:
    """OHSUMED and MQ2008 as they are, by fold, and test NDCG@10 of a ranker before and after cleaning."""
    lines = []
    for name in ("ohsumed", "mq2008"):
        before, after = [], []
        for fold in range(1, 2 if quick else 6):
            parts = cr.load_dataset(name, fold=fold)
            issues = issues_of(parts.train)
            lines.append({"data": name, "fold": fold, **summary([issues])})
            kept = parts.train.drop(issues.is_label_issue)
            before.append(test_ndcg(parts.train, parts))
            after.append(before[-1] if kept.n_docs == parts.train.n_docs else test_ndcg(kept, parts))
        raw, cleaned = np.concatenate(before), np.concatenate(after)
        means = {"ndcg": raw.mean(), "ndcg cleaned": cleaned.mean(), "p": cr.fisher_test(cleaned, raw)}
        lines.append({"data": name, **{key: round(float(value), 4) for key, value in means.items()}})
    return lines


def injected(quick: bool) -> list[dict[str, Any]]:
    """Average precision of the doubts, precision and recall of the issues, under noise that is known."""
    sets: dict[str, Callable[[int], Any]] = {
        "mq2008": lambda seed: cr.load_dataset("mq2008", fold=1).train,
        "ohsumed": lambda seed: cr.load_dataset("ohsumed", fold=1).train,
        "synthetic": lambda seed: cr.make_ranking(200, 20, docs_per_query=30, seed=seed),
    }
    lines = []
    for name, make in sets.items():
        for profile, rate in NOISES:
            values = []
            for seed in range(1 if quick else 3):
                noisy = cr.corrupt(make(seed), profile, rate, seed=200 + seed)
                table = issues_of(noisy.data)
                values.append([table.average_precision(noisy), table.precision(noisy), table.recall(noisy)])
            ap, precision, recall = np.nanmean(values, axis=0)
            figures = {"average precision": ap, "precision": precision, "recall": recall}
            rounded = {key: round(float(value), 3) for key, value in figures.items()}
            lines.append({"data": name, "noise": f"{profile} {rate}", **rounded})
    return lines


def issues_of(data: Any) -> Any:
    """What the default detector finds."""
    return cr.find_label_issues(data, seed=0)


def summary(found: list[Any]) -> dict[str, Any]:
    """Mean and largest share of issues, mean share by grade, mean signal where there is one."""
    signals = [table.signal.auc for table in found if getattr(table, "signal", None) is not None]
    by_grade = [list(table.shares_by_grade().values()) for table in found]
    return {
        "issues": round(float(np.mean([table.share for table in found])), 4),
        "most": round(float(max(table.share for table in found)), 4),
        "by grade": np.mean(by_grade, axis=0).round(3).tolist(),
        "AUC": round(float(np.mean(signals)), 3) if signals else None,
    }


def test_ndcg(train: Any, parts: Any) -> Any:
    """Test NDCG@10 by query of a ranker with default settings that stops on validation data."""
    ranker = cr.BoostedRanker(n_estimators=300, early_stopping_rounds=50, num_leaves=7)
    held = parts.validation
    ranker.fit(train.X, train.y, qid=train.qid, eval_set=(held.X, held.y), eval_qid=held.qid)
    return cr.evaluate(ranker.predict(parts.test.X), parts.test, ["ndcg@10"])["ndcg@10"]


PARTS: dict[str, Callable[[bool], list[dict[str, Any]]]] = {
    "random": random_features,
    "join": permuted_join,
    "unseen": unseen,
    "injected": injected,
    "published": published,
}

if __name__ == "__main__":
    main()
