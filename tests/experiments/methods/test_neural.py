import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data.split import Splits
from cleanrank.errors import CleanrankError
from cleanrank.experiments.cells import score
from cleanrank.experiments.methods import METHODS, NEURAL

SMALL = {"epochs": 2, "hidden": [8], "batch_queries": 16}


@pytest.fixture(scope="module")
def splits():
    return Splits(*(cr.make_ranking(60, 6, docs_per_query=10, seed=s) for s in (1, 2, 3)))


def cell(profile="pbm", rate=0.05, grid=None, **params):
    return {
        "algorithm": "neural",
        "noise": profile,
        "rate": rate,
        "on": ["train", "validation"],
        "params": {**NEURAL, **SMALL, **params},
        "grid": grid or {},
        "select": "ndcg@10:skip",
        "seed": 1,
    }


PEER = {"robust": "peer", "pairs": "all_ordered"}
FORMS = {
    "base": {},
    "hinge": {"loss": "pairwise", "binary": "hinge", "network": "linear"},
    "direct": {"loss": "direct", "network": "direct"},
    "lambdarank": {"loss": "lambdarank"},
    "peer": PEER,
    "sampled": {**PEER, "peers": "sampled"},
    "soft bootstrap": {"robust": "bootstrap", "options": {"beta": 0.95}},
    "hard bootstrap": {"robust": "bootstrap", "options": {"beta": 0.8, "hard": True}},
    "smoothing": {"robust": "label_smoothing", "options": {"eps": 0.05}},
    "gce": {"robust": "gce", "options": {"q": 0.5}},
    "sce": {"robust": "sce", "options": {"a": 1.0, "b": 1.0}},
    "taylor": {"robust": "taylor", "options": {"t": 2}},
    "forward": {"robust": "forward", "noise": "true"},
    "co-teaching": {"forget": 0.1},
    "reweighting": {"bins": 10},
    "ipw": {"debias": "ipw"},
    "dla": {"debias": "dla"},
    "pairdebias": {"debias": "pairdebias"},
    "ipw and peers": {"debias": "ipw", **PEER},
    "dla and peers": {"debias": "dla", **PEER},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_scores_test_documents(splits, form):
    found = score(cell(**FORMS[form]), splits)
    assert found.scores.shape == (splits.test.n_docs,)
    assert np.isfinite(found.scores).all()
    assert found.scores.std() > 0
    assert 0 < found.chosen["positives"] < 0.3


def test_forms_differ(splits):
    by_form = {form: score(cell(**FORMS[form]), splits).scores for form in ("base", "gce", "dla", "peer")}
    for a in by_form:
        for b in by_form:
            assert a == b or not np.allclose(by_form[a], by_form[b])


def test_alpha_is_taken_from_known_flips(splits):
    found = score(cell(noise="true", **PEER), splits)
    assert found.chosen["alpha"] == pytest.approx(0.1)
    given = score(cell(alpha=0.1, **PEER), splits)
    assert (found.scores == given.scores).all()


def test_alpha_of_attraction_is_not_known(splits):
    with pytest.raises(CleanrankError, match="noise"):
        score(cell("pbm-attracted", 0.1, noise="true", **PEER), splits)


def test_the_grid_is_judged_by_clicks(splits):
    grid = {"alpha": [0.05, 0.3]}
    both = score(cell(grid=grid, **PEER), splits)
    values = {a: score(cell(alpha=a, **PEER), splits) for a in grid["alpha"]}
    best = max(grid["alpha"], key=lambda a: values[a].chosen["validation"])
    assert both.chosen["alpha"] == best
    assert (both.scores == values[best].scores).all()


def test_the_last_epoch_needs_no_validation(splits):
    found = score(cell(last=True), splits)
    assert found.chosen["epochs"] == 2
    other = Splits(splits.train, splits.test, splits.test)
    assert (score(cell(last=True), other).scores == found.scores).all()


def test_test_labels_are_not_seen(splits):
    blank = splits.test.with_labels(np.zeros(splits.test.n_docs, dtype=np.int32))
    other = Splits(splits.train, splits.validation, blank)
    assert (score(cell(), splits).scores == score(cell(), other).scores).all()


def test_ipw_needs_users(splits):
    with pytest.raises(CleanrankError, match="random order"):
        score(cell("uniform", 0.1, debias="ipw"), splits)


def test_the_method_is_listed():
    assert METHODS["neural"].params is NEURAL
