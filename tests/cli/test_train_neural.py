import json

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.rankers.neural.model import load_network

FEW = ("--model", "neural", "--epochs", "2", "--option", "hidden=8,4")


def test_train_saves_the_network_and_predict_scores_rows(cli, files):
    done = cli("train", "train.txt", "--valid", "valid.txt", "-o", "m.safetensors", "--json", *FEW)
    assert done.code == 0, done.err
    record = json.loads(done.out)
    data, valid = cr.read_data("train.txt"), cr.read_data("valid.txt")
    wanted = cr.NeuralRanker(epochs=2, network_options={"hidden": (8, 4)}, n_jobs=1).fit_data(data, valid)
    assert record["epochs"] == wanted.model_.best_epoch
    assert record["validation"] == pytest.approx(wanted.model_.validation_value)
    assert record["alpha"] is None
    done = cli("predict", "m.safetensors", "valid.txt", "-o", "scores.txt", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["epochs"] == wanted.model_.best_epoch
    np.testing.assert_array_equal(np.loadtxt("scores.txt"), wanted.predict(valid.X))


def test_peers_take_their_weight_from_the_noise_and_say_so(cli, files):
    more = ("--option", "robust=peer", "--option", "pairs=all_ordered", "--option", "alpha=auto")
    done = cli("train", "train.txt", "-o", "m", *FEW, *more, "--noise", "uniform:0.2")
    assert done.code == 0, done.err
    assert "(approximate): between 3 grades" in done.err
    done = cli("train", "train.txt", "-o", "n", *FEW, *more)
    assert done.code == 2
    assert "alpha=auto needs the noise" in done.err
    done = cli("train", "train.txt", "-o", "n", *FEW, "--noise", "uniform:0.2")
    assert done.code == 2
    assert "--noise is read by neural for --option alpha=auto alone; got --option alpha=0.1" in done.err


def test_attention_knows_the_queries_of_the_file(cli, files):
    few = ("--model", "neural", "--epochs", "1", "--option", "network=attention", "--option", "width=8")
    assert cli("train", "train.txt", "-o", "m", *few).code == 0
    assert cli("predict", "m", "valid.txt", "-o", "scores.npy").code == 0
    valid = cr.read_data("valid.txt")
    wanted = load_network("m").predict(valid.X, group=valid.lengths)
    np.testing.assert_array_equal(np.load("scores.npy"), wanted)


def test_what_is_wrong_is_said(cli, files):
    done = cli("train", "train.txt", "-o", "m", *FEW, "--option", "los=ranknet")
    assert done.code == 2
    assert "Did you mean 'loss'" in done.err
    done = cli("train", "train.txt", "-o", "m", *FEW, "--option", "network=linear")
    assert done.code == 2
    assert "unknown option of neural 'hidden'" in done.err
    assert not (files / "m").exists()


def test_only_the_first_process_writes(cli, files, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    assert cli("train", "train.txt", "-o", "m", *FEW).code == 0
    assert not (files / "m").exists()
