import json

import numpy as np
import pandas as pd
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


@pytest.mark.parametrize("rule", ["dla", "pairdebias", "ipw"])
def test_clicks_are_debiased_by_their_ranks(cli, files, rule):
    data = cr.read_data("train.txt")
    frame = pd.DataFrame(data.X.toarray() if hasattr(data.X, "toarray") else data.X).add_prefix("f")
    frame["qid"], frame["label"] = data.qid, (data.y > 1).astype(int)
    frame["position"] = frame.groupby("qid").cumcount() + 1
    frame.to_csv("clicks.csv", index=False)
    rates = ("--option", "click_rates=0.5,0.3,0.1") if rule == "ipw" else ()
    done = cli("train", "clicks.csv", "-o", "m", *FEW, "--option", f"debias={rule}", *rates)
    assert done.code == 0, done.err
    plain = cli("train", "clicks.csv", "-o", "p", *FEW)
    assert plain.code == 0, plain.err
    rows = cr.read_data("clicks.csv")
    options = {"click_rates": [0.5, 0.3, 0.1]} if rates else {}
    settings = {"epochs": 2, "network_options": {"hidden": (8, 4)}, "n_jobs": 1}
    wanted = cr.NeuralRanker(debias=rule, **options, **settings).fit_data(rows)
    np.testing.assert_array_equal(load_network("m").predict(rows.X), wanted.predict(rows.X))
    assert (load_network("p").predict(rows.X) != wanted.predict(rows.X)).any()


def test_what_debiasing_lacks_is_said_in_options(cli, files):
    debias = ("--option", "debias=ipw")
    done = cli("train", "train.txt", "-o", "m", *FEW, *debias)
    assert done.code == 2
    assert "labels must be clicks, 0 or 1, for --option debias=ipw" in " ".join(done.err.split())
    (files / "clicks.csv").write_text("label,qid,f1\n1,1,0.5\n0,1,0.2\n0,1,0.1\n")
    done = cli("train", "clicks.csv", "-o", "m", *FEW, *debias)
    assert done.code == 2
    assert "click_rates must be given for --option debias=ipw" in " ".join(done.err.split())
    done = cli("train", "clicks.csv", "-o", "m", *FEW, "--option", "debias=dla")
    assert done.code == 2
    assert "must have positions" in done.err
    assert not (files / "m").exists()


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
