import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import safetensors

from cleanrank.errors import BadFileError, CleanrankError
from cleanrank.rankers.neural.checkpoint import read_tensors, write_tensors
from cleanrank.rankers.neural.model import NeuralModel, load_network
from cleanrank.rankers.neural.networks import NETWORKS, build_network
from cleanrank.rankers.scaling import fit_scaling

OPTIONS = {"mlp": {"hidden": [6]}, "attention": {"width": 6}, "linear": {}, "direct": {"hidden": [5]}}


def made(name, toy):
    network = build_network(name, 4, seed=3, **OPTIONS[name]).eval()
    return NeuralModel(network, name, OPTIONS[name], fit_scaling(toy.X), 7, 0.5, {"loss": "ranknet"})


@pytest.mark.parametrize("name", NETWORKS)
def test_a_saved_network_predicts_the_same_bits(tmp_path, toy, name):
    model = made(name, toy)
    model.save(tmp_path / "m.safetensors")
    again = load_network(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(
        again.predict(toy.X, group=toy.lengths), model.predict(toy.X, group=toy.lengths)
    )
    assert (again.kind, again.best_epoch, again.validation_value) == (name, 7, 0.5)
    assert again.record == {"loss": "ranknet"}
    with safetensors.safe_open(tmp_path / "m.safetensors", "numpy") as file:
        assert "scaling/shift" in file.keys()  # noqa: SIM118 (not a mapping)


def test_scores_follow_the_rows_whatever_their_order(toy):
    place = np.random.default_rng(0).permutation(toy.n_docs)
    for name in ("mlp", "attention"):
        model = made(name, toy)
        wanted = model.predict(toy.X, qid=toy.qid)
        np.testing.assert_allclose(
            model.predict(toy.X[place], qid=toy.qid[place]), wanted[place], rtol=1e-4, atol=1e-5
        )
        frame = pd.DataFrame(toy.X).assign(qid=toy.qid)
        np.testing.assert_array_equal(model.predict(frame), wanted)


def test_lists_need_their_queries(toy):
    with pytest.raises(CleanrankError, match="network 'attention' sees whole lists"):
        made("attention", toy).predict(toy.X)
    with pytest.raises(CleanrankError, match="the 4 columns"):
        made("mlp", toy).predict(toy.X[:, :3])


def test_files_of_other_kinds_are_refused(tmp_path, toy):
    made("mlp", toy).save(tmp_path / "m")
    tensors, metadata = read_tensors(tmp_path / "m")
    write_tensors(tmp_path / "a", tensors, {**metadata, "format": "cleanrank training"})
    with pytest.raises(CleanrankError, match="must hold a cleanrank network of version 1"):
        load_network(tmp_path / "a")
    del tensors["network/output.weight"]
    write_tensors(tmp_path / "b", tensors, metadata)
    with pytest.raises(CleanrankError, match="must hold a whole network"):
        load_network(tmp_path / "b")
    write_tensors(tmp_path / "c", tensors, {**metadata, "network": "unknown"})
    with pytest.raises(CleanrankError, match="unknown network"):
        load_network(tmp_path / "c")


def test_columns_of_a_frame_are_found_by_name(toy):
    names = ("a", "b", "c", "d")
    model = replace(made("linear", toy), feature_names=names)
    frame = pd.DataFrame(toy.X, columns=list(names))
    wanted = model.predict(toy.X)
    np.testing.assert_array_equal(model.predict(frame[["c", "a", "d", "b"]].assign(label=1)), wanted)
    with pytest.raises(CleanrankError, match="none named 'b' and 1 more"):
        model.predict(frame[["a", "d"]])
    nameless = pd.DataFrame(toy.X, columns=list("wxyz"))
    np.testing.assert_array_equal(made("linear", toy).predict(nameless), wanted)


@pytest.mark.parametrize(
    ("name", "value"),
    [("options", "null"), ("options", "[1]"), ("best_epoch", '"a"'), ("record", "3"), ("scaling", '"z"'),
     ("network", '"mpl"'), ("validation_value", None), ("feature_names", "3")],
)  # fmt: skip
def test_a_model_file_with_strange_metadata_is_refused(toy, tmp_path, name, value):
    made("linear", toy).save(tmp_path / "m")
    tensors, metadata = read_tensors(tmp_path / "m")
    metadata = {k: v for k, v in metadata.items() if k != name}
    write_tensors(tmp_path / "m", tensors, metadata | ({} if value is None else {name: json.loads(value)}))
    with pytest.raises(CleanrankError):
        load_network(tmp_path / "m")


def test_every_cut_of_a_model_file_is_refused(toy, tmp_path):
    made("linear", toy).save(tmp_path / "m")
    raw = (tmp_path / "m").read_bytes()
    for size in range(0, len(raw), 5):
        (tmp_path / "cut").write_bytes(raw[:size])
        with pytest.raises(BadFileError, match="cut"):
            load_network(tmp_path / "cut")
