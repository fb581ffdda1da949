"""Made-up run records that look like an experiment."""

import numpy as np

from cleanrank.types import RunRecord

DATASETS = {"MQ2008": (157, 0.52), "OHSUMED": (21, 0.44)}  # test queries a fold, level of the values
METHODS = {"lambdamart": (0.0, 1.0), "sour neg": (0.004, 0.7), "peer α=auto": (-0.006, 0.35)}
RATES = (0.0, 0.1, 0.2, 0.3)
MEASURES = ("ndcg@10", "map", "ndcg@5:letor")
FAILED = ("OHSUMED", 3, 0.2, "sour neg", 1)
MISSING = ("MQ2008", 5, 0.3, "peer α=auto", 2)
TRACEBACK = """Traceback (most recent call last):
  File "worker.py", line 41, in run
    model.fit(X, y, qid=qid)
ValueError: labels must be <finite> & whole; got nan at row 812 (query '17')."""


def record(dataset="d", fold=1, noise="none", rate=0.0, method="m", seed=0, values=(), status="done", **more):
    """One record; ``values`` maps measures to per-query values."""
    values = {k: np.asarray(v, dtype=float) for k, v in dict(values).items()}
    cell = {
        "dataset": dataset,
        "fold": fold,
        "noise": noise,
        "rate": rate,
        "method": method,
        "params": {},
        "seed": seed,
    }
    means = {k: float(np.nanmean(v)) if np.isfinite(v).any() else float("nan") for k, v in values.items()}
    n = max((len(v) for v in values.values()), default=0)
    fields = {
        "key": "|".join(str(v) for v in cell.values()),
        "recipe": "made-up",
        "cell": cell,
        "status": status,
        "values": values,
        "means": means,
        "query_ids": np.arange(n) + 1000 * int(fold or 0),
        "versions": {"numpy": "2.4.0", "lightgbm": "4.7.0", "cleanrank": "0.1.0"},
        "wall_seconds": 1.25,
        "started_at": f"2026-01-0{fold or 1}T10:00:0{seed or 0}Z",
    }
    return RunRecord(**{**fields, **more})


def grid(failed=True, missing=True, rates=RATES, methods=METHODS, measures=MEASURES):
    """The whole grid, with a failed cell and one that never ran unless told otherwise."""
    made = []
    for d, (dataset, (n, centre)) in enumerate(DATASETS.items()):
        for fold in range(1, 6):
            hard = np.random.default_rng([d, fold]).normal(size=n)
            for rate in rates:
                for m, (method, (shift, fall)) in enumerate(methods.items()):
                    for seed in range(3):
                        name = (dataset, fold, rate, method, seed)
                        if missing and name == MISSING:
                            continue
                        noise = "uniform" if rate else "none"
                        if failed and name == FAILED:
                            made.append(
                                record(
                                    dataset, fold, noise, rate, method, seed, status="failed", error=TRACEBACK
                                )
                            )
                            continue
                        rng = np.random.default_rng([d, fold, int(rate * 100), m, seed])
                        level = centre + shift - 0.35 * rate * fall
                        values = {}
                        for k, measure in enumerate(measures):
                            raw = level - 0.03 * k + 0.22 * hard + 0.03 * rng.normal(size=n)
                            values[measure] = np.clip(raw, 0, 1)
                        made.append(record(dataset, fold, noise, rate, method, seed, values))
    return made
