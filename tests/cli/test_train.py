import json
import resource
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.noise.profiles import uniform
from cleanrank.rankers.boosted import ALPHAS
from cleanrank.rankers.trees import TreeModel, TreeParams
from cleanrank.theory.peer import pair_alpha

FEW = ("--trees", "12", "--leaves", "7", "--min-docs", "5")


def test_train_saves_the_forest_and_predict_scores_rows(cli, files):
    done = cli("train", "train.txt", "--valid", "valid.txt", "-o", "model.txt", "--json", *FEW)
    assert done.code == 0, done.err
    record = json.loads(done.out)
    data, valid = cr.read_data("train.txt"), cr.read_data("valid.txt")
    settings = TreeParams(params={"num_leaves": 7, "min_data_in_leaf": 5}, n_estimators=12)
    wanted = settings.train(data, valid)
    assert record["trees"] == wanted.best_iteration
    assert record["validation"] == pytest.approx(wanted.validation_value)
    assert record["documents"] == data.n_docs
    done = cli("predict", "model.txt", "valid.txt", "-o", "scores.txt", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["documents"] == valid.n_docs
    np.testing.assert_array_equal(np.loadtxt("scores.txt"), wanted.predict(valid.X))
    assert cli("predict", "model.txt", "valid.txt", "-o", "scores.npy").code == 0
    np.testing.assert_array_equal(np.load("scores.npy"), wanted.predict(valid.X))
    done = cli("evaluate", "valid.txt", "scores.txt", "--json")
    assert done.code == 0, done.err


def test_scores_follow_the_rows_of_the_file(cli, files):
    assert cli("train", "train.txt", "-o", "model.txt", *FEW).code == 0
    lines = (files / "valid.txt").read_text().splitlines()
    place = np.random.default_rng(0).permutation(len(lines))
    (files / "mixed.txt").write_text("\n".join(lines[k] for k in place) + "\n")
    for name in ("valid", "mixed"):
        assert cli("predict", "model.txt", f"{name}.txt", "-o", f"{name}.scores").code == 0
    np.testing.assert_array_equal(np.loadtxt("mixed.scores"), np.loadtxt("valid.scores")[place])


@pytest.mark.parametrize(
    ("model", "more"),
    [
        ("lambdamart", ()),
        ("gbdt", ()),
        ("peer", ("--option", "alpha=.1", "--option", "peers=expected")),
        ("sour", ("--option", "end=10", "--option", "start=5")),
        ("pairwise", ("--option", "loss=ranknet", "--option", 'robust={"name": "gce", "q": 0.5}')),
    ],
)
def test_every_model_can_be_trained_and_read_back(cli, files, model, more):
    done = cli("train", "train.txt", "--model", model, "-o", "model.txt", *FEW, *more)
    assert done.code == 0, done.err
    assert "wrote model.txt" in done.err
    assert TreeModel.load("model.txt").best_iteration > 0


@pytest.mark.parametrize("model", ["peer", "pairwise"])
def test_alpha_is_a_number_the_flips_of_a_noise_or_a_search(cli, files, model):
    peers = () if model == "peer" else ("--option", "robust=peer", "--option", "loss=ranknet")
    base = ("train", "train.txt", "--valid", "valid.txt", "--model", model, *peers, *FEW, "--json", "--force")
    grades = cr.read_data("train.txt")
    wanted = float(pair_alpha(uniform(0.2, 3), grades.y))

    def trained(*more):
        done = cli(*base, "-o", "model.txt", *more)
        assert done.code == 0, done.err
        return json.loads(done.out), done.err, (files / "model.txt").read_text()

    auto, _, forest = trained("--option", "alpha=auto", "--noise", "uniform:.2")
    assert auto["alpha"] == pytest.approx(wanted)
    _, _, same = trained("--option", f"alpha={wanted!r}")
    assert forest.partition("parameters:")[0] == same.partition("parameters:")[0]
    search, _, _ = trained("--option", "alpha=search")
    assert search["alpha"] in ALPHAS
    plain = cli(*base, "-o", "plain.txt", "--option", "alpha=0")
    assert plain.code == 0, plain.err
    assert (files / "plain.txt").read_text().partition("parameters:")[0] != forest.partition("parameters:")[0]
    done = cli(*base, "-o", "model.txt", "--option", "alpha=auto")
    assert (done.code, "alpha=auto needs the noise" in done.err) == (2, True)
    done = cli(*base, "-o", "model.txt", "--option", "alpha=.1", "--noise", "uniform:.2")
    assert done.code == 2


@pytest.mark.parametrize("model", ["prank", "rank-svm", "rank-boost", "list-net", "ada-rank"])
def test_classic_rankers_are_written_as_json_which_trees_are_not(cli, files, model):
    done = cli("train", "train.txt", "--model", model, "--valid", "valid.txt", "-o", "model.json")
    assert done.code == 0, done.err
    assert cli("predict", "model.json", "valid.txt", "-o", "scores.txt").code == 0
    wanted = cr.load_ranker("model.json").predict(cr.read_data("valid.txt").X)
    np.testing.assert_array_equal(np.loadtxt("scores.txt"), wanted)
    done = cli("train", "train.txt", "-o", "trees.json", *FEW)
    assert (done.code, "must be a text file" in done.err) == (2, True)


def test_what_is_wrong_is_said_and_nothing_is_written(cli, files):
    done = cli("train", "train.txt", "--model", "lamdamart", "-o", "model.txt")
    assert done.code == 2
    assert "Did you mean 'lambdamart'?" in done.err
    done = cli("train", "train.txt", "--model", "peer", "--option", "alhpa=.1", "-o", "model.txt")
    assert done.code == 2
    assert "Did you mean 'alpha'?" in done.err
    assert not (files / "model.txt").exists()
    done = cli("predict", "train.txt", "valid.txt", "-o", "scores.txt")
    assert done.code == 2
    assert "must be LightGBM's text" in done.err
    cli("train", "train.txt", "-o", "model.txt", *FEW)
    done = cli("train", "train.txt", "-o", "model.txt", *FEW)
    assert done.code == 2
    assert "--force" in done.err
    (files / "wide.txt").write_text("1 qid:1 1:0.5 99:1\n0 qid:1 1:0.2\n")
    (files / "narrow.csv").write_text("label,qid,f1\n1,1,0.5\n0,1,0.2\n")
    for name, n_features in (("wide.txt", 99), ("narrow.csv", 1)):
        done = cli("predict", "model.txt", name, "-o", "scores.txt")
        assert done.code == 2
        assert f"features that the model was trained on; got {n_features}" in " ".join(done.err.split())
    assert not (files / "scores.txt").exists()


def test_letor_rows_may_leave_out_the_last_columns(cli, files):
    assert cli("train", "train.txt", "-o", "model.txt", *FEW).code == 0
    forest = TreeModel.load("model.txt")
    (files / "narrow.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:-0.2 2:1.5\n")
    assert cli("predict", "model.txt", "narrow.txt", "-o", "scores.txt").code == 0
    rows = np.zeros((2, forest.n_features))
    rows[0, 0], rows[1, :2] = 0.5, (-0.2, 1.5)
    np.testing.assert_array_equal(np.loadtxt("scores.txt"), forest.booster.predict(rows.astype(np.float32)))


@pytest.mark.parametrize("wider", ["train", "valid"])
def test_training_and_validation_files_may_end_at_different_columns(cli, files, wider):
    last = cr.read_data("train.txt").n_features + 1
    path = files / f"{wider}.txt"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([f"{lines[0].partition('#')[0]} {last}:1", *lines[1:]]) + "\n")
    done = cli("train", "train.txt", "--valid", "valid.txt", "-o", "model.txt", *FEW)
    assert done.code == 0, done.err
    assert TreeModel.load("model.txt").n_features == last


@pytest.fixture
def tables(files):
    """plain.csv, and its rows with columns reordered, without labels, in other formats; with a position."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 3)), columns=["a", "b b", "c"]).astype(np.float32)
    frame["qid"], frame["label"] = np.arange(120) // 10, (frame["a"] > 0.2).astype(int)
    frame.to_csv("plain.csv", index=False)
    frame.assign(position=np.arange(120) % 10 + 1, title="x").to_csv("shown.csv", index=False)
    frame.iloc[:, ::-1].to_csv("reordered.csv", index=False)
    rows = frame[["c", "b b", "a"]]
    rows.assign(title="t").to_csv("unlabelled.csv", index=False)
    rows.to_parquet("unlabelled.parquet")
    frame[["a", "b b"]].to_csv("narrow.csv", index=False)
    frame.assign(label="").to_csv("blank.csv", index=False)
    lines = [
        f"1:{row[0]!r} 2:{row[1]!r} 3:{row[2]!r}" for row in frame[["a", "b b", "c"]].to_numpy().tolist()
    ]
    (files / "bare.txt").write_text("\n".join(lines) + "\n")
    queries = [f"qid:{q} {line}" for q, line in zip(frame["qid"], lines, strict=True)]
    (files / "qids.txt").write_text("\n".join(queries) + "\n")
    return frame


def test_rows_are_scored_by_the_names_of_their_columns_with_or_without_labels(cli, tables):
    assert cli("train", "plain.csv", "-o", "plain.txt", *FEW).code == 0
    assert cli("predict", "plain.txt", "plain.csv", "-o", "scores.npy").code == 0
    scores = np.load("scores.npy")
    assert len(set(scores)) > 3
    plain = lightgbm.Booster(model_file="plain.txt")
    assert plain.feature_name() == ["a", "b%20b", "c"]
    np.testing.assert_array_equal(plain.predict(tables[["a", "b b", "c"]]), scores)
    for name in (
        "reordered.csv", "unlabelled.csv", "unlabelled.parquet", "blank.csv", "bare.txt", "qids.txt"
    ):  # fmt: skip
        done = cli("predict", "plain.txt", name, "-o", "other.npy", "--force")
        assert done.code == 0, done.err
        np.testing.assert_array_equal(np.load("other.npy"), scores, err_msg=name)
    done = cli("predict", "plain.txt", "narrow.csv", "-o", "narrow.npy")
    assert done.code == 2
    assert "none named 'c'" in done.err
    assert "Traceback" not in done.err


def test_a_column_of_positions_is_carried_and_not_read(cli, tables):
    assert cli("train", "shown.csv", "-o", "shown.txt", *FEW).code == 0
    assert cli("train", "plain.csv", "-o", "plain.txt", *FEW).code == 0
    assert Path("shown.txt").read_bytes() == Path("plain.txt").read_bytes()


@pytest.mark.parametrize("model", ["lambdarank", "sour", "pairwise", "robust", "neural"])
def test_data_without_a_pair_are_refused_before_a_file_is_written(cli, files, model):
    lines = (files / "train.txt").read_text().splitlines()
    (files / "equal.txt").write_text("\n".join("1" + line[1:] for line in lines) + "\n")
    single = [f"{line.split()[0]} qid:{k} {' '.join(line.split()[2:])}" for k, line in enumerate(lines)]
    (files / "single.txt").write_text("\n".join(single) + "\n")
    for name, words in (("equal", "labels must differ"), ("single", "one document a query")):
        noise = ("--noise", "uniform:.1") if model == "robust" else ()
        done = cli("train", f"{name}.txt", "--model", model, "-o", "model.txt", *noise)
        assert (done.code, words in done.err) == (2, True), done.err
        assert not (files / "model.txt").exists()


def test_a_model_that_cannot_be_written_is_a_sentence(cli, files):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    cr.read_data("train.txt")  # the cache is there already
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        done = cli("train", "train.txt", "-o", "model.txt", *FEW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert done.code == 2
    assert "File too large" in done.err
    assert "Traceback" not in done.err
    assert not (files / "model.txt").exists()
