import json

import numpy as np
import pandas as pd
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
        ((), "needs one log of clicks"),
        (("--data", "ml-100k", "--option", "embeding=4"), "unknown option of a model of clicks 'embeding'"),
        (("--data", "ml-100k", "--option", "robust=sours"), "unknown robust loss 'sours'"),
        (("--data", "ml-100k", "--measure", "map"), "--measure goes with --task rank; got --task ctr"),
        (("--data", "ml-100k", "--option", "context=hour,weekdy"), "unknown context 'weekdy'"),
        (("--data", "ml-100k", "--option", "protocol=sounds"), "unknown protocol 'sounds'"),
        (("--data", "ml-100k", "--option", "user=uid"), "unknown option of a model of clicks 'user'"),
        (("--data", "ml-100k", "--delimiter", ";"), "--delimiter goes with a log in a file; got ml-100k"),
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


@pytest.fixture
def own_log(tmp_path, monkeypatch):
    """A log of clicks and of items that were shown, whose users like items of one of three kinds."""
    rng = np.random.default_rng(0)
    user, kind = rng.integers(60, size=2500), rng.integers(3, size=2500)
    frame = pd.DataFrame({"user": [f"u{u}" for u in user], "item": 3 * rng.integers(30, size=2500) + kind})
    frame["category"], frame["timestamp"] = kind, 10**9 + np.arange(2500) * 3600
    frame["behaviour"] = np.where(kind == user % 3, "pv", "show")
    frame.to_csv(tmp_path / "log.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return frame


MEANING = ("--option", "clicks=pv", "--option", "shown=show")


def test_an_own_log_is_learnt_from_and_a_later_one_is_coded_alike(cli, own_log, tmp_path):
    train = ("train", "--task", "ctr", "--data", "log.csv", "-o", "model", "--json", "--model", "deepfm")
    done = cli(*train, *FEW, *MEANING, "--option", "context=weekday", "--option", "history=5")
    assert done.code == 0, done.err
    assert json.loads(done.out)["log"]["events read"] == 2500
    events = cr.read_events(
        own_log,
        time="timestamp",
        behaviour="behaviour",
        clicks=["pv"],
        shown=["show"],
        item_fields=["category"],
    )
    splits = cr.prepare_clicks(events, history=5, context=["weekday"])
    options = {"epochs": 2, "batch_size": 64, "device": "cpu", "n_jobs": 1}
    wanted = cr.CTRModel("deepfm", model_options={"embedding": 4}, **options)
    wanted.fit(splits.train, splits.validation)
    # The same file and part: the test rows of the preparation.
    done = cli("predict", "model", "log.csv", "-o", "test.txt", "--part", "test", "--json")
    assert done.code == 0, done.err
    np.testing.assert_allclose(np.loadtxt("test.txt"), wanted.predict_proba(splits.test)[:, 1], atol=1e-6)
    # A later file, in another form and order: a score for every row, ids as they were coded.
    later = own_log.iloc[::-2].reset_index(drop=True)
    later.loc[3, "user"], later.loc[4, "item"], later.loc[5, "behaviour"] = "nobody", 9999, "buy"
    later.loc[6, "user"] = None
    later.to_parquet("later.parquet")
    done = cli("predict", "model", "later.parquet", "-o", "later.npy", "--json")
    assert done.code == 0, done.err
    record = json.loads(done.out)
    assert (record["rows"], record["not scored"], record["part"]) == (len(later) - 2, 2, "all")
    counted = later.drop(index=[5, 6])
    new = ~np.isin(counted["item"], splits.train.vocabulary.item["item"])
    assert new[4]
    assert (record["unknown"]["user"], record["unknown"]["item"]) == (1, new.sum())
    assert "1 rows with a user that was rare in training or is new" in done.err
    scores = np.load("later.npy")
    assert np.flatnonzero(np.isnan(scores)).tolist() == [5, 6]
    loaded = cr.load_ranker("model")
    rows = loaded.rows_of(
        cr.read_events(
            counted,
            time="timestamp",
            behaviour="behaviour",
            clicks=["pv"],
            shown=["show"],
            item_fields=["category"],
        )
    )
    np.testing.assert_allclose(scores[counted.index], loaded.predict_proba(rows)[:, 1])
    assert record["auc"] == pytest.approx(loaded.score(rows))
    assert record["auc"] > 0.8
    # Alone, a row has no history; together with the clicks before it, it has.
    assert rows.lengths.max() == 5
    # Parts are prepared anew, with other codes: refused.
    done = cli("predict", "model", "later.parquet", "-o", "part.txt", "--part", "test")
    assert "must be coded" in done.err


def test_wrong_logs_are_refused(cli, own_log, tmp_path):
    train = ("train", "--task", "ctr", "-o", "model", *FEW)
    assert "--option clicks=pv" in cli(*train, "--data", "log.csv").err
    assert "there is no file 'lgo.csv'" in cli(*train, "--data", "lgo.csv").err
    done = cli(*train, "--data", "log.csv", *MEANING, "--option", "user=uesr")
    assert "there is no column 'uesr' (--option user=NAME)" in done.err
    assert "Did you mean 'user'" in done.err
    done = cli(*train, "--data", "log.csv", *MEANING, "--option", "time=user")
    assert "must have one use each" in done.err
    assert "--qid goes with --task rank" in cli(*train, "--data", "log.csv", "--qid", "q").err
    assert cli(*train, "--data", "log.csv", *MEANING).code == 0
    own_log.drop(columns="category").to_csv("bare.csv", index=False)
    assert "there is no column 'category'" in cli("predict", "model", "bare.csv", "-o", "s").err
    own_log.assign(item=own_log["item"] + 10**6).to_csv("strange.csv", index=False)
    assert "must have items of the training log" in cli("predict", "model", "strange.csv", "-o", "s").err
    assert "DATA must be a file" in cli("predict", "model", "ml-100k", "-o", "s").err
    assert "must not exist yet" in cli("predict", "model", "log.csv", "-o", "bare.csv").err
    (tmp_path / "taken").write_text("a file")
    done = cli("train", "--task", "ctr", "--data", "log.csv", *FEW, *MEANING, "-o", "taken", "--force")
    assert "the folder of a model must not be a file" in done.err
    assert (tmp_path / "taken").read_text() == "a file"
