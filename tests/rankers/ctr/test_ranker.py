import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

import cleanrank as cr
from cleanrank.data.behaviours import Layout
from cleanrank.metrics.clicks import auc, log_loss
from cleanrank.rankers.ctr import MODELS
from cleanrank.rankers.ctr.ranker import _decayed
from cleanrank.rankers.neural.checkpoint import read_tensors, write_tensors
from tests.rankers.ctr.planted import planted

QUICK = {"epochs": 4, "batch_size": 100, "learning_rate": 3e-3, "n_jobs": 1, "device": "cpu"}


@pytest.fixture(scope="module")
def rows():
    return planted()


@pytest.fixture(scope="module")
def held():
    return planted(600, seed=1, flips=(0, 0))


@pytest.mark.parametrize("model", MODELS)
def test_every_model_learns_the_planted_taste(model, rows, held):
    fitted = cr.CTRModel(model, **{**QUICK, "epochs": 9}).fit(rows, held)
    assert fitted.score(held) > 0.9
    assert fitted.score(held) == pytest.approx(roc_auc_score(held.y, fitted.predict(held)))
    # The best epoch was kept.
    values = [entry["value"] for entry in fitted.history_]
    assert fitted.model_.validation_value == max(values)
    assert fitted.score(held) == pytest.approx(max(values), abs=1e-6)


@pytest.mark.parametrize(
    "robust",
    [
        "peer",
        {"name": "peer", "mode": "sampled"},
        "label_smoothing",
        "bootstrap",
        {"name": "bootstrap", "hard": True},
        "gce",
        "sce",
        {"name": "taylor", "t": 6},
        "forward",
        "backward",
        ["label_smoothing", {"name": "clipped", "at": 3.0}],
        {"name": "coteaching", "forget": 0.05, "ramp": 2},
        "reweight",
        ["gce", "sour"],
    ],
    ids=str,
)
def test_every_robust_form_learns_and_repeats(robust, rows, held):
    model = cr.CTRModel("deepfm", robust=robust, noise=(0.95, 0.95), **QUICK)
    scores = model.fit(rows, held).predict(held)
    assert auc(held.y, scores) > 0.85
    assert (clone(model).fit(rows, held).predict(held) == scores).all()
    plain = cr.CTRModel("deepfm", **QUICK).fit(rows, held).predict(held)
    assert (plain != scores).any()


@pytest.mark.parametrize("peers", ["expected", "sampled"])
def test_peers_of_weight_0_are_the_base_to_the_last_bit(peers, rows):
    base = cr.CTRModel("din", **QUICK).fit(rows)
    peer = cr.CTRModel("din", robust="peer", alpha=0, peers=peers, **QUICK).fit(rows)
    assert (base.predict(rows) == peer.predict(rows)).all()
    assert base.history_ == peer.history_


def test_auto_is_the_sum_of_the_flip_rates_and_undoes_them(held):
    noisy = planted(4000, flips=(0.3, 0.3))
    options = {**QUICK, "epochs": 8}
    noise = [[0.7, 0.3], [0.3, 0.7]]
    model = cr.CTRModel("deepfm", robust="peer", alpha="auto", noise=noise, **options).fit(noisy, held)
    assert float(model.alpha_) == pytest.approx(0.6)
    stated = cr.CTRModel("deepfm", robust="peer", alpha=0.6, **options).fit(noisy, held)
    assert (stated.predict(held) == model.predict(held)).all()
    base = cr.CTRModel("deepfm", **options).fit(noisy, held)
    # Under flips the base is unsure; with peers probabilities are those without flips again.
    sure = [np.abs(each.predict_proba(held)[:, 1] - 0.5).mean() for each in (base, model)]
    assert sure[0] < 0.25 < 0.4 < sure[1]


def test_sour_leaves_out_rows_whose_label_is_wrong(held):
    noisy = planted(2000, seed=3, flips=(0.1, 0.1))
    truth = planted(2000, seed=3, flips=(0, 0)).y
    wrong = noisy.y != truth
    model = cr.CTRModel("deepfm", robust={"name": "sour", "start": 1}, **QUICK).fit(noisy, held)
    assert model.removed_.any()
    assert wrong[model.removed_].mean() > 0.8 > 5 * wrong.mean()
    clicks = cr.CTRModel("deepfm", robust={"name": "sour", "start": 1, "kind": "pos"}, **QUICK)
    clicks.fit(noisy, held)
    assert (noisy.y[clicks.removed_] == 1).all()


def test_weights_of_0_are_as_if_rows_were_not_there(rows):
    """Gradients without the rows; batches are the same because every batch holds all rows."""
    options = {**QUICK, "batch_size": len(rows) + 9, "model_options": {"dropout": 0.0}}
    keep = np.arange(len(rows)) % 3 > 0
    weighted = cr.CTRModel("deepfm", **options).fit(rows, sample_weight=keep)
    alone = cr.CTRModel("deepfm", **options).fit(rows.select(keep))
    np.testing.assert_allclose(weighted.predict(rows), alone.predict(rows), rtol=2e-3, atol=2e-3)


def test_l2_is_for_weights_alone(rows):
    network = MODELS["din"](rows.layout)
    decayed = _decayed(network)
    named = {name: decayed(name, p) for name, p in network.named_parameters()}
    assert not named["embed.table.weight"]
    assert not any(value for name, value in named.items() if name.endswith("bias"))
    assert any(named.values())


def test_saved_models_predict_the_same(rows, held, tmp_path):
    model = cr.CTRModel("sasrec", robust="peer", model_options={"embedding": 8}, **QUICK).fit(rows, held)
    model.save(tmp_path / "model")
    model.save(tmp_path / "one.safetensors")
    for place in ("model", "model/model.safetensors", "one.safetensors"):
        loaded = cr.load_ranker(tmp_path / place)
        assert isinstance(loaded, cr.CTRModel)
        loaded.n_jobs, loaded.device = 1, "cpu"
        assert (loaded.predict(held) == model.predict(held)).all()
        assert loaded.model_.layout == rows.layout
    assert (tmp_path / "one.safetensors").read_bytes() == (tmp_path / "model/model.safetensors").read_bytes()
    assert loaded.model_.record["robust"] == "peer"
    # Shorter histories are filled up.
    short = replace(held, histories=held.histories[:, :4], lengths=np.minimum(held.lengths, 4))
    full = replace(short, histories=np.pad(short.histories, ((0, 0), (0, 2), (0, 0))))
    assert (loaded.predict(short) == loaded.predict(full)).all()
    raw = bytearray((tmp_path / "one.safetensors").read_bytes())
    at = raw.index(b'\\"history\\": ')
    (tmp_path / "zero.safetensors").write_bytes(raw[: at + 13] + b"0" + raw[at + 14 :])
    with pytest.raises(cr.BadFileError, match="history must be an integer >= 1; got 0"):
        cr.load_ranker(tmp_path / "zero.safetensors")
    (tmp_path / "cut.safetensors").write_bytes(raw[:-100])
    with pytest.raises(cr.BadFileError):
        cr.load_ranker(tmp_path / "cut.safetensors")
    with pytest.raises(cr.MissingDataError, match=r"no file .*model.safetensors"):
        cr.load_ranker(tmp_path)


def test_a_broken_training_goes_on_to_the_same_bits(rows, held, tmp_path):
    options = {**QUICK, "robust": {"name": "peer", "mode": "sampled"}, "early_stopping_rounds": 0}
    whole = cr.CTRModel("dien", **options).fit(rows, held)
    file = tmp_path / "run.safetensors"
    cr.CTRModel("dien", **{**options, "epochs": 2}, checkpoint=file).fit(rows, held)
    resumed = cr.CTRModel("dien", **options, checkpoint=file).fit(rows, held)
    assert (resumed.predict(held) == whole.predict(held)).all()
    assert resumed.history_ == whole.history_
    with pytest.raises(cr.CleanrankError, match="must belong to this training"):
        cr.CTRModel("dien", **options, checkpoint=file).fit(held, rows)


def test_half_precision_learns_too(rows, held):
    half = cr.CTRModel("din", precision="bfloat16", **QUICK).fit(rows, held)
    assert half.score(held) > 0.9


@pytest.mark.slow
def test_two_processes_learn_what_one_learns(rows, held, tmp_path):
    script = tmp_path / "two.py"
    script.write_text(
        "import json, os, cleanrank as cr\n"
        "from tests.rankers.ctr.planted import planted\n"
        "model = cr.CTRModel('din', epochs=2, batch_size=100, n_jobs=1, device='cpu', random_state=3,\n"
        "                    model_options={'dropout': 0.0}).fit(planted(400), planted(200, seed=1))\n"
        "if os.environ.get('RANK', '0') == '0':\n"
        f"    json.dump(model.predict(planted(50, seed=2)).tolist(), open({str(tmp_path / 'out')!r}, 'w'))\n"
    )
    path = os.pathsep.join([os.getcwd(), *sys.path])
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    subprocess.run([*command, str(script)], check=True, env={**os.environ, "PYTHONPATH": path}, timeout=100)
    two = np.array(json.loads((tmp_path / "out").read_text()))
    options = {"epochs": 2, "batch_size": 100, "n_jobs": 1, "device": "cpu", "random_state": 3}
    one = cr.CTRModel("din", **options, model_options={"dropout": 0.0}).fit(
        planted(400), planted(200, seed=1)
    )
    np.testing.assert_allclose(two, one.predict(planted(50, seed=2)), atol=1e-4)


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_calibration_makes_probabilities_true(method, held, tmp_path):
    """Peers of a large weight are too sure of themselves; a curve on clean or on noisy rows mends that."""
    noise, flips = [[0.8, 0.2], [0.2, 0.8]], (0.2, 0.2)
    noisy, validation = planted(3000, flips=flips), planted(3000, seed=5, flips=flips)
    model = cr.CTRModel("deepfm", robust="peer", alpha=0.9, **QUICK).fit(noisy, validation)
    before = log_loss(held.y, model.predict_proba(held)[:, 1])
    order = model.predict(held)
    on_noisy = log_loss(held.y, model.calibrate(validation, method, noise=noise).predict_proba(held)[:, 1])
    on_clean = log_loss(
        held.y, model.calibrate(planted(3000, seed=6, flips=(0, 0)), method).predict_proba(held)[:, 1]
    )
    assert max(on_noisy, on_clean) < before
    assert (model.predict(held) == order).all()
    model.save(tmp_path / "model.safetensors")
    loaded = cr.load_ranker(tmp_path / "model.safetensors")
    np.testing.assert_allclose(loaded.predict_proba(held), model.predict_proba(held), atol=1e-6)
    np.testing.assert_allclose(loaded.predict_proba(held).sum(axis=1), 1)
    inside = cr.CTRModel("deepfm", robust="peer", alpha=0.9, noise=noise, calibration=method, **QUICK)
    again = log_loss(held.y, inside.fit(noisy, validation).predict_proba(held)[:, 1])
    assert again == pytest.approx(on_noisy)


def _other_fields(rows):
    return replace(rows, layout=Layout(rows.layout.user, {"product": 31, "category": 4}, rows.layout.context))


def _more_items(rows):
    item = np.array(rows.item)
    item[0, 0] = 40
    layout = Layout(rows.layout.user, {"item": 50, "category": 4}, rows.layout.context)
    return replace(rows, item=item, layout=layout)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "dinn"}, "unknown model 'dinn'. Did you mean 'din'"),
        ({"model_options": {"embeding": 8}}, "embeding"),
        ({"robust": "peers"}, "unknown robust loss 'peers'. Did you mean 'peer'"),
        ({"robust": "peer", "alpha": "auto"}, "alpha='auto' needs the noise"),
        ({"robust": "peer", "alpha": 1.5}, "alpha"),
        ({"robust": ["sour", "coteaching"]}, "must name one scheme"),
        ({"robust": ["peer", "coteaching"]}, "takes no peers"),
        ({"robust": {"name": "sour", "begin": 2}}, "unknown option of sour 'begin'"),
        ({"robust": {"name": "sour", "start": 99}}, "start of sour must leave epochs"),
        ({"robust": {"name": "coteaching", "forget": 1}}, "forget"),
        ({"robust": "coteaching", "checkpoint": "x.safetensors"}, "checkpoint must be None with coteaching"),
        ({"robust": "forward"}, "needs the matrix"),
        ({"noise": (0.05, 0.05), "robust": "peer", "alpha": "auto"}, "must be below 1"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"epochs": 0}, "epochs must be"),
        ({"binary": "zero_one"}, "zero_one"),
        ({"calibration": "plat"}, "unknown calibration 'plat'. Did you mean 'platt'"),
    ],
)
def test_wrong_settings(settings, message, rows, held):
    with pytest.raises(cr.CleanrankError, match=message):
        cr.CTRModel(**{"model": "deepfm", **QUICK, "epochs": 1, **settings}).fit(rows, held)


def test_wrong_rows(rows, held):
    model = cr.CTRModel("deepfm", **{**QUICK, "epochs": 1})
    with pytest.raises(cr.CleanrankError, match="must be fitted before"):
        model.predict(rows)
    with pytest.raises(cr.CleanrankError, match="training rows must be ClickRows; got ndarray"):
        model.fit(rows.item)
    fitted = cr.CTRModel("deepfm", **{**QUICK, "epochs": 1}).fit(rows)
    for use in (fitted.predict, fitted.score):
        with pytest.raises(cr.CleanrankError, match=r"rows must be ClickRows; got ndarray.*prepare_clicks"):
            use(rows.item)
    with pytest.raises(cr.CleanrankError, match="validation rows must have rows that were clicked"):
        model.fit(rows, held.select(held.y == 1))
    with pytest.raises(cr.CleanrankError, match=r"sample_weight must hold 1500 numbers >= 0"):
        model.fit(rows, sample_weight=[1.0])
    for change, message in (
        (_other_fields, r"must have the item fields of the training rows \(item, category\); got product"),
        (_more_items, r"must be coded as the training rows, with 31 codes in field 'item'; got 50"),
    ):
        with pytest.raises(cr.CleanrankError, match=message):
            model.fit(rows, change(held))
        with pytest.raises(cr.CleanrankError, match=message):
            model.fit(rows, held).predict(change(held))
    longer = planted(50, history=9)
    with pytest.raises(cr.CleanrankError, match="histories of at most 6 behaviours"):
        model.predict(longer)


def test_torch_keeps_its_streams(rows):
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    cr.CTRModel("din", **{**QUICK, "epochs": 1}).fit(rows)
    assert (torch.rand(3) == wanted).all()


def test_several_validations_of_an_epoch_keep_the_best_state(rows, held):
    options = {**QUICK, "epochs": 3, "early_stopping_rounds": 0, "learning_rate": 0.05}
    once, often = (cr.CTRModel("deepfm", validations=n, **options).fit(rows, held) for n in (1, 5))
    # Looking does not change what is learnt, and sees at least what one look sees.
    assert [e["loss"] for e in once.history_] == [e["loss"] for e in often.history_]
    values = [(a["value"], b["value"]) for a, b in zip(once.history_, often.history_, strict=True)]
    assert all(a <= b for a, b in values)
    assert any(a < b for a, b in values)
    assert often.model_.validation_value == max(b for _, b in values)
    assert often.score(held) == pytest.approx(often.model_.validation_value, abs=1e-6)
    many = cr.CTRModel("deepfm", validations=1000, **options).fit(rows, held)
    assert many.model_.validation_value >= often.model_.validation_value
    with pytest.raises(cr.CleanrankError, match="validations must be"):
        cr.CTRModel(validations=0).fit(rows, held)


@pytest.fixture(scope="module")
def splits():
    return cr.prepare_clicks(cr.read_events(random_log(0), item_fields=["category"]))


def random_log(seed, n=3000):
    rng = np.random.default_rng(seed)
    log = pd.DataFrame({"user": rng.integers(60, size=n), "item": rng.integers(40, size=n)})
    return log.assign(category=log["item"] % 3, time=np.arange(n))


def test_rows_of_other_ids_are_refused_even_if_sizes_agree(splits):
    model = cr.CTRModel("deepfm", **QUICK).fit(splits.train, splits.validation)
    shifted = random_log(0).assign(item=lambda log: log["item"] + 1)
    other = cr.prepare_clicks(cr.read_events(shifted, item_fields=["category"]))
    assert other.test.layout == splits.test.layout
    with pytest.raises(cr.CleanrankError, match="must be coded by the tables of the training rows"):
        model.predict(other.test)
    with pytest.raises(cr.CleanrankError, match="validation rows must be coded by the tables"):
        cr.CTRModel("deepfm", **QUICK).fit(splits.train, other.validation)
    with pytest.raises(cr.CleanrankError, match="got None"):
        model.predict(replace(splits.test, vocabulary=None))
    # Prepared again in the same way, rows are coded alike.
    again = cr.prepare_clicks(cr.read_events(random_log(0), item_fields=["category"]))
    assert (model.predict(again.test) == model.predict(splits.test)).all()


def test_a_saved_model_codes_a_later_log_as_before(splits, tmp_path):
    model = cr.CTRModel("din", **QUICK).fit(splits.train, splits.validation)
    model.save(tmp_path / "model")
    loaded = cr.load_ranker(tmp_path / "model")
    assert loaded.model_.vocabulary.fingerprint == splits.train.vocabulary.fingerprint
    events = cr.read_events(random_log(9, 200), item_fields=["category"])
    assert (loaded.predict(loaded.rows_of(events)) == model.predict(model.rows_of(events))).all()
    with pytest.raises(cr.CleanrankError, match="must know which ids its codes stand for"):
        cr.CTRModel("din", **QUICK).fit(planted()).rows_of(events)


def test_damaged_models_are_refused(splits, tmp_path):
    model = cr.CTRModel("deepfm", **QUICK).fit(splits.train, splits.validation)
    file = tmp_path / "m.safetensors"
    model.save(file)
    tensors, metadata = read_tensors(file)

    def refused(name, value, message):
        write_tensors(file, {**tensors, name: value}, metadata)
        with pytest.raises(cr.BadFileError, match=message):
            cr.load_ranker(file)

    weights = next(name for name in tensors if name.startswith("network/") and tensors[name].ndim == 2)
    for wrong in (np.nan, np.inf):
        damaged = tensors[weights].copy()
        damaged[0, 0] = wrong
        refused(weights, damaged, "are not all finite")
    ids = tensors["vocabulary/item/item"].copy()
    ids[-1] += 1
    refused("vocabulary/item/item", ids, "its tables of ids have the fingerprint")
    refused("vocabulary/item/item", ids[:-1], "fingerprint")
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(cr.CleanrankError, match="the folder of a model must not be a file"):
        model.save(tmp_path / "taken")
