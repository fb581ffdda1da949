import subprocess
import sys

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import BadFileError, MissingDataError, UnknownNameError
from cleanrank.rankers import CLASSIC, RANKERS, load_ranker, make_ranker
from cleanrank.rankers.base import BaseRanker

SMALL = {
    "sour": {"end": 6, "n_estimators": 6, "num_leaves": 4},
    "robust": {"n_estimators": 4, "folds": 2, "noise": (0.9, 0.8)},
    "neural": {"epochs": 1, "network_options": {"hidden": (4,)}},
}


@pytest.fixture(scope="module")
def binary():
    data = cr.make_ranking(20, 4, docs_per_query=12, seed=0)
    return data.with_labels(np.minimum(data.y, 1))


@pytest.mark.parametrize("name", RANKERS)
def test_every_ranker_is_fitted_saved_and_read_back(binary, name, tmp_path):
    classic = RANKERS[name].target.startswith(CLASSIC)
    ranker = make_ranker(name, **SMALL.get(name, {} if classic else {"n_estimators": 6, "num_leaves": 4}))
    for key, value in RANKERS[name].presets.items():
        assert ranker.get_params()[key] == value
    ranker.fit(binary.X, binary.y, qid=binary.qid)
    ranker.save(tmp_path / "model")
    again = load_ranker(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(binary.X), ranker.predict(binary.X))
    assert not classic or again.get_params() == ranker.get_params()
    assert 0 < ranker.score(binary.X, binary.y, qid=binary.qid) <= 1
    assert isinstance(ranker, BaseRanker) or name == "neural"
    assert RANKERS[name].about


def test_names_and_parameters_are_checked():
    assert make_ranker("lambdamart", num_leaves=5).get_params()["num_leaves"] == 5
    with pytest.raises(UnknownNameError, match=r"unknown ranker 'lambdamert'\. Did you mean 'lambdamart'"):
        make_ranker("lambdamert")
    with pytest.raises(TypeError, match="trees"):
        make_ranker("gbdt", trees=3)


def test_files_that_are_no_model_are_named(tmp_path):
    wrong = tmp_path / "model.txt"
    for content in (b"1 qid:1 1:0.5\n", b"", b"\x00\x01"):
        wrong.write_bytes(content)
        with pytest.raises(
            BadFileError, match="must be LightGBM's text, which begins with 'tree', a network"
        ):
            load_ranker(wrong)
    wrong.write_text("tree\nversion=v4\n")
    with pytest.raises(BadFileError, match="must be whole"):
        load_ranker(wrong)
    wrong.write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00{")
    with pytest.raises(BadFileError):
        load_ranker(wrong)
    with pytest.raises(MissingDataError, match="there is no file"):
        load_ranker(tmp_path / "none")


def test_the_registry_loads_neither_torch_nor_lightgbm():
    heavy = ("torch", "lightgbm", "sklearn", "numba")
    code = f"import sys, cleanrank.rankers; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
