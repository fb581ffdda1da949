"""Trainings that must not depend on how batches are cut; as a script it runs them, also under torchrun."""

import json
import os
import sys

import numpy as np

import cleanrank as cr

# Adam blows rounding up where a gradient is 0.
COMMON = {
    "epochs": 3, "batch_queries": 7, "network_options": {"hidden": (8,)}, "device": "cpu", "n_jobs": 1,
    "optimizer": "sgd", "learning_rate": 0.3,
}  # fmt: skip
CASES = {
    "ranknet": {},
    "pooled": {"loss_options": {"weighting": "pooled"}},
    "lambdarank": {"loss": "lambdarank", "learning_rate": 0.1},
    "peers": {"pairs": "all_ordered", "robust": "peer", "alpha": 0.4},
    "listnet": {"loss": "listnet"},
    "points": {"loss": "pointwise"},
    "attention": {"network": "attention", "network_options": {"width": 8}, "learning_rate": 0.05},
}


def rows():
    """Training and validation rows; two queries of one grade, which have no pairs."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(189, 6)), np.tile(np.arange(9) % 3, 21)
    y[27:45] = 1
    y[60:63] = 0
    X[:, 0] += y
    data = cr.from_arrays(X.astype(np.float32), y, qid=np.repeat(np.arange(21), 9))
    return data.select_queries(list(range(15))), data.select_queries(list(range(15, 21)))


def main(out):
    """Writes scores and losses of all cases, and refuses a break that changes a bit."""
    train, held = rows()
    found = {}
    for name, options in CASES.items():
        ranker = cr.NeuralRanker(**{**COMMON, **options}).fit_data(train, held)
        scores = ranker.predict(held.X, qid=held.qid)
        found[name] = scores.tolist(), [entry["loss"] for entry in ranker.history_]
    rank = os.environ.get("RANK", "alone")
    for accumulate in (1, 2):
        settings = {**COMMON, "accumulate": accumulate}
        broken = {**settings, "checkpoint": f"{out}.{accumulate}.{os.environ.get('WORLD_SIZE', '1')}"}
        whole = cr.NeuralRanker(**settings).fit_data(train, held)
        cr.NeuralRanker(**{**broken, "epochs": 1}).fit_data(train, held)
        resumed = cr.NeuralRanker(**broken).fit_data(train, held)
        assert resumed.history_ == whole.history_
        assert (resumed.predict(held.X) == whole.predict(held.X)).all()
    with open(f"{out}.{rank}", "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(sys.argv[1])
