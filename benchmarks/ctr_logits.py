"""Why peers stop early: the logits of DIN on MovieLens-100K by epoch, with and without peers and flips.

    CLEANRANK_DATA=... python benchmarks/ctr_logits.py     # some minutes on a CPU

Settings are those of recipes/ctr/flips.toml without early stopping, seed 1. Nothing is chosen here.
"""

from typing import Any

import numpy as np
from timing import write_result

import cleanrank as cr
from cleanrank.experiments.noises import flip_clicks
from cleanrank.types import Array

EPOCHS, SEED, SURE = 6, 1, 0.05
SETTINGS: dict[str, Any] = {"epochs": EPOCHS, "batch_size": 1000, "learning_rate": 0.002}
# Noise, its rate, the weight of peers. Twice the rate is "auto" under flips of both labels.
CASES = (
    ("flips", 0.0, 0.0), ("flips", 0.0, 0.1),
    ("flips", 0.1, 0.1), ("flips", 0.1, 0.2),
    ("lost", 0.2, 0.1), ("invented", 0.2, 0.1),
)  # fmt: skip


def trained(noise: str, rate: float, alpha: float) -> dict[str, Any]:
    """The mean size of training logits and the validation AUC by epoch; the rows that the best is sure of."""
    clean = cr.load_dataset("ml-100k")
    parts = (clean.train, clean.validation)
    train, validation, _ = flip_clicks(noise, rate, parts, ("train", "validation"), SEED)
    sizes: list[float] = []

    def watch(_: int, logits: Array) -> None:
        sizes.append(float(np.abs(logits).mean()))

    robust: dict[str, Any] = {"robust": "peer", "alpha": alpha} if alpha else {}
    model = cr.CTRModel(
        "din", **SETTINGS, **robust, early_stopping_rounds=None, random_state=SEED, device="cpu", n_jobs=1
    )
    model.fit(train, validation, observer=watch)
    aucs = [epoch["value"] for epoch in model.history_]
    click = model.predict_proba(clean.validation)[:, 1]
    sure = {"surely_not": float((click < SURE).mean()), "surely": float((click > 1 - SURE).mean())}
    case = {"noise": noise, "rate": rate, "alpha": alpha}
    return {**case, "mean_size": sizes, "validation": aucs, "best_epoch": model.model_.best_epoch, **sure}


def main() -> None:
    """Trains, prints, writes."""
    lines = []
    for case in CASES:
        lines.append(trained(*case))
        print(lines[-1], flush=True)
    write_result("ctr_logits", {"settings": {**SETTINGS, "seed": SEED}, "results": lines})


if __name__ == "__main__":
    main()
