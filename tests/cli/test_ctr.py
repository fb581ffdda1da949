import json

import numpy as np
import pytest

import cleanrank as cr

FEW = ("--epochs", "2", "--option", "batch_size=64", "--option", "embedding=4", "--option", "device=cpu")


@pytest.fixture
def log(tmp_path, monkeypatch):
    """A folder with a log in MovieLens' layout, whose users like items of one of three kinds."""
    rng = np.random.default_rng(0)
    user, kind = rng.integers(60, size=1500), rng.integers(3, size=1500)
    item = 3 * rng.integers(30, size=1500) + kind
    rating = np.where(kind == user % 3, 5, 1)
    (tmp_path / "ml-100k").mkdir()
    columns = np.column_stack([user + 1, item + 1, rating, 10**9 + np.arange(1500) * 3600])
    np.savetxt(tmp_path / "ml-100k/u.data", columns, fmt="%d", delimiter="\t")
    monkeypatch.setenv("CLEANRANK_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_train_saves_a_folder_and_predict_scores_rows(cli, log):
    train = ("train", "--task", "ctr", "--data", "ml-100k", "-o", "model/")
    done = cli(*train, "--model", "deepfm", "--seed", "3", "--json", *FEW, "--option", "history=7")
    assert done.code == 0, done.err
    record = json.loads(done.out)
    splits = cr.load_dataset("ml-100k", history=7)
    options = {"epochs": 2, "batch_size": 64, "device": "cpu", "random_state": 3, "n_jobs": 1}
    wanted = cr.CTRModel("deepfm", model_options={"embedding": 4}, **options)
    wanted.fit(splits.train, splits.validation)
    assert record["validation"] == wanted.model_.validation_value
    assert (record["rows"], record["epochs"]) == (len(splits.train), wanted.model_.best_epoch)
    done = cli("predict", "model/", "ml-100k", "-o", "scores.txt", "--json")
    assert done.code == 0, done.err
    np.testing.assert_allclose(np.loadtxt("scores.txt"), wanted.predict_proba(splits.test)[:, 1], atol=1e-6)
    assert json.loads(done.out)["auc"] == pytest.approx(wanted.score(splits.test))
    done = cli("predict", "model/model.safetensors", "movielens", "-o", "v.npy", "--part", "validation")
    assert done.code == 0, done.err
    np.testing.assert_allclose(np.load("v.npy"), wanted.predict_proba(splits.validation)[:, 1], atol=1e-6)
    assert "must not exist yet" in cli(*train, *FEW).err
    noise = ("--option", "robust=peer", "--option", "alpha=auto", "--noise", "uniform:0.1", "--force")
    done = cli(*train, *FEW, *noise)
    assert done.code == 0, done.err
    assert "alpha: 0.2" in done.err
    assert cr.load_ranker("model").model_.kind == "din"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--data", "ml-100k", "--model", "dinn"), "unknown model of clicks 'dinn'. Did you mean 'din'"),
        (("--data", "ml-100"), "ml-100"),
        (("--data", "mq2008"), "mq2008"),
        ((), "needs one log of the catalogue"),
        (("--data", "ml-100k", "--option", "embeding=4"), "unknown option of a model of clicks 'embeding'"),
        (("--data", "ml-100k", "--option", "robust=sours"), "unknown robust loss 'sours'"),
        (("--data", "ml-100k", "--measure", "map"), "--measure goes with --task rank; got --task ctr"),
        (("--data", "ml-100k", "--option", "context=hour,weekdy"), "unknown context 'weekdy'"),
        (("--data", "ml-100k", "--option", "protocol=sounds"), "unknown protocol 'sounds'"),
    ],
)
def test_wrong_words(cli, log, words, message):
    done = cli("train", "--task", "ctr", "-o", "model", *words)
    assert done.code != 0
    assert message.lower() in done.err.lower()
    assert "Traceback" not in done.err


def test_wrong_tasks_and_data(cli, log):
    assert "unknown task 'click'" in cli("train", "--task", "click", "-o", "m").err
    assert "train needs DATA" in cli("train", "-o", "m").err
    assert cli("train", "ml-100k", "--task", "ctr", "-o", "m.safetensors", *FEW).code == 0
    (log / "taobao").mkdir()
    done = cli("predict", "m.safetensors", "taobao", "-o", "scores.txt")
    assert "DATA must be ml-100k, which the model was trained on; got taobao" in done.err
    assert (
        "unknown part 'tests'" in cli("predict", "m.safetensors", "ml-100k", "-o", "s", "--part", "tests").err
    )
