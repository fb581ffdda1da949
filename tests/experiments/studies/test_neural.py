import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data.split import Splits
from cleanrank.experiments.studies import EPOCHS, STUDIES, StudyTask
from cleanrank.noise.corrupt import corrupt
from cleanrank.noise.profiles import uniform
from cleanrank.rankers.neural.ranker import NeuralRanker


def task(**params):
    splits = Splits(*(cr.make_ranking(60, 6, docs_per_query=10, seed=s) for s in (1, 2, 3)))
    profile = uniform(0.3, 5)
    train, validation = (
        corrupt(part, profile, seed=s).data for s, part in enumerate((splits.train, splits.validation))
    )
    settings = {**STUDIES["epochs"].params, "hidden": [8], **params}
    return StudyTask(splits, train, validation, profile, settings, "ndcg@10", seed=3)


def test_one_training_gives_the_whole_curve():
    asked = task(epochs=8)
    found = STUDIES["epochs"].run(asked)
    curves = found.chosen["curves"]
    assert [len(curves[name]) for name in ("true", "given")] == [8, 8]
    # A training of its own for each epoch ends in the same networks.
    for epochs in (1, 4):
        ranker = NeuralRanker(
            epochs=epochs, network_options={"hidden": (8,)}, random_state=3, n_jobs=1, early_stopping_rounds=0
        ).fit_data(asked.train)
        scores = ranker.predict(asked.clean.validation.X)
        for name, judged in (("true", asked.clean.validation), ("given", asked.validation)):
            value = cr.evaluate(scores, judged, ["ndcg@10"]).means["ndcg@10"]
            assert curves[name][epochs - 1] == pytest.approx(value, abs=1e-6)
            assert found.means[f"{name} labels, epoch {epochs}"] == curves[name][epochs - 1]
    assert all(np.isnan(found.means[f"true labels, epoch {e}"]) for e in EPOCHS if e > 8)


def test_nothing_stops_it_and_peers_change_it():
    plain, peers = (
        STUDIES["epochs"]
        .run(task(epochs=20, pairs="all_ordered", learning_rate=0.05, **robust))
        .chosen["curves"]["true"]
        for robust in ({}, {"robust": "peer", "alpha": 0.5, "peers": "sampled"})
    )
    assert len(plain) == len(peers) == 20
    assert plain != peers
