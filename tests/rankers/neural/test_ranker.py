import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold

import cleanrank as cr
from cleanrank.data.split import split
from cleanrank.errors import CleanrankError
from cleanrank.issues.outliers import SOUR, Window
from cleanrank.rankers.base import ranking_scorer
from cleanrank.rankers.neural.networks import NETWORKS
from cleanrank.rankers.neural.objective import LOSSES
from cleanrank.rankers.neural.ranker import NeuralRanker

OPTIONS = {"mlp": {"hidden": (16,)}, "attention": {"width": 8, "heads": 1, "blocks": 1}, "direct": {}}
SMALL = {"epochs": 3, "network_options": {"hidden": (16,)}, "batch_queries": 8, "n_jobs": 1, "device": "cpu"}


def weights(ranker):
    return torch.cat([p.detach().ravel() for p in ranker.model_.network.parameters()])


@pytest.mark.parametrize("network", NETWORKS)
def test_every_network_learns_to_rank(toy, network):
    settings = {**SMALL, "network_options": OPTIONS.get(network), "epochs": 12, "learning_rate": 0.01}
    ranker = NeuralRanker(network=network, **settings).fit_data(toy)
    scores = ranker.predict(toy.X, qid=toy.qid)
    found = cr.evaluate(scores, toy, "ndcg@10", order="data").means["ndcg@10"]
    untrained = np.mean(
        [
            cr.evaluate(np.random.default_rng(s).random(toy.n_docs), toy, "ndcg@10", order="data").means[
                "ndcg@10"
            ]
            for s in (0, 1)
        ]
    )
    assert found > untrained + 0.08
    assert ranker.score(toy.X, toy.y, qid=toy.qid) == pytest.approx(found)
    assert ranker.history_[-1]["loss"] < ranker.history_[0]["loss"]


def test_rows_in_any_order_give_scores_in_that_order(toy):
    """Whole queries change places; rows of a query keep their order, as sums round by it."""
    order = np.random.default_rng(0).permutation(toy.n_queries)
    rows = np.concatenate([np.arange(toy.indptr[q], toy.indptr[q + 1]) for q in order])
    mixed = np.argsort(np.random.default_rng(1).permutation(np.repeat(np.arange(40), 12)), kind="stable")
    place = rows[np.argsort(mixed, kind="stable")]
    ranker = NeuralRanker(**SMALL).fit(toy.X[place], toy.y[place], qid=toy.qid[place])
    grouped = cr.from_arrays(toy.X[place], toy.y[place], qid=toy.qid[place])
    again = NeuralRanker(**SMALL).fit_data(grouped)
    assert torch.equal(weights(ranker), weights(again))
    np.testing.assert_allclose(
        ranker.predict(toy.X[place]), again.predict(toy.X)[place], rtol=1e-5, atol=1e-6
    )


def test_frames_sparse_matrices_and_arrays_train_alike(toy):
    by_array = NeuralRanker(**SMALL).fit(toy.X, toy.y, qid=toy.qid)
    frame = pd.DataFrame(toy.X, columns=list("abcd")).assign(qid=toy.qid)
    by_frame = NeuralRanker(**SMALL).fit(frame, toy.y)
    sparse = scipy.sparse.csr_matrix(toy.X)
    by_sparse = NeuralRanker(**SMALL).fit(sparse, toy.y, qid=toy.qid)
    assert torch.equal(weights(by_array), weights(by_frame))
    assert torch.equal(weights(by_array), weights(by_sparse))
    np.testing.assert_array_equal(by_sparse.predict(sparse), by_frame.predict(frame))


def test_features_are_scaled_by_training_rows(toy):
    far = toy.X * 1000 + 5000
    near, wide = (NeuralRanker(**SMALL).fit(X, toy.y, qid=toy.qid) for X in (toy.X, far))
    np.testing.assert_allclose(near.predict(toy.X), wide.predict(far), rtol=1e-2, atol=1e-2)
    assert near.model_.scaling.kind == "zscore"
    raw = NeuralRanker(scaling="none", **SMALL).fit(toy.X, toy.y, qid=toy.qid)
    assert not torch.equal(weights(raw), weights(near))


def test_seeds_repeat_and_differ(toy):
    one, same, other = (NeuralRanker(random_state=s, **SMALL).fit_data(toy) for s in (0, 0, 1))
    assert torch.equal(weights(one), weights(same))
    assert not torch.equal(weights(one), weights(other))


def test_early_stopping_keeps_the_best_epoch(toy):
    train, held = split(toy, (0.7, 0.3), seed=0)
    ranker = NeuralRanker(
        **{**SMALL, "epochs": 40}, early_stopping_rounds=3, measure="map", learning_rate=0.05
    ).fit(train.X, train.y, qid=train.qid, eval_set=[(held.X, held.y)], eval_qid=[held.qid])
    values = [h["value"] for h in ranker.history_]
    assert ranker.model_.best_epoch == int(np.argmax(values)) + 1
    assert len(values) == min(40, ranker.model_.best_epoch + 3)
    found = cr.evaluate(ranker.predict(held.X), held, "map", order="data").means["map"]
    assert ranker.model_.validation_value == pytest.approx(found) == pytest.approx(max(values))


def test_weight_two_is_twice_the_row(toy):
    """A document of weight 0 is as good as gone from every pair."""
    drop = np.random.default_rng(0).random(toy.n_docs) < 0.3
    settings = {**SMALL, "scaling": "none", "epochs": 1, "batch_queries": 100, "optimizer": "sgd"}
    weighted = NeuralRanker(**settings).fit(toy.X, toy.y, qid=toy.qid, sample_weight=1.0 - drop)
    dropped = NeuralRanker(**settings).fit(toy.X[~drop], toy.y[~drop], qid=toy.qid[~drop])
    torch.testing.assert_close(weights(weighted), weights(dropped), rtol=1e-5, atol=1e-6)


def test_observers_see_every_epoch_and_sour_takes_them(toy):
    found = SOUR.of(toy, Window(cutoff=3, start=1, end=4))
    seen = {}

    def watch(epoch, scores):
        seen[epoch] = scores.copy()
        found(epoch, scores)

    ranker = NeuralRanker(**{**SMALL, "epochs": 4}).fit_data(toy, observer=watch)
    assert list(seen) == [1, 2, 3, 4]
    np.testing.assert_array_equal(seen[4], ranker.predict(toy.X))
    again = SOUR.of(toy, Window(cutoff=3, start=1, end=4)).watch(seen.items())
    np.testing.assert_array_equal(found.outliers(), again.outliers())
    assert 0 < found.outliers().sum() < toy.n_docs
    place = np.random.default_rng(0).permutation(toy.n_docs)
    mixed = {}
    ranker = NeuralRanker(**SMALL).fit(
        toy.X[place], toy.y[place], qid=toy.qid[place], observer=lambda e, s: mixed.update({e: s})
    )
    np.testing.assert_allclose(mixed[3], ranker.predict(toy.X[place]), rtol=1e-5, atol=1e-6)


def test_peers_change_the_network_and_say_how_sure_their_weight_is(toy):
    binary = toy.with_labels(np.minimum(toy.y, 1))
    settings = {**SMALL, "pairs": "all_ordered"}
    base = NeuralRanker(**settings).fit_data(binary)
    none = NeuralRanker(robust="peer", alpha=0.0, **settings).fit_data(binary)
    auto = NeuralRanker(robust="peer", alpha="auto", noise=[[0.9, 0.1], [0.1, 0.9]], **settings).fit_data(
        binary
    )
    assert torch.equal(weights(base), weights(none))
    assert not torch.equal(weights(base), weights(auto))
    assert float(auto.alpha_) == pytest.approx(0.2)
    assert not auto.alpha_.approximate
    assert auto.model_.record["alpha"] == pytest.approx(0.2)
    with pytest.raises(CleanrankError, match="must be 'all_ordered' with peers"):
        NeuralRanker(robust="peer", **SMALL).fit_data(binary)


def test_preferences_alone_teach_an_order():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).astype(np.float32)
    worth = X @ [1.0, -1.0, 0.5]
    pairs = rng.integers(0, 200, (2000, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    pairs = np.where((worth[pairs[:, 0]] > worth[pairs[:, 1]])[:, None], pairs, pairs[:, ::-1])
    for more in ({}, {"robust": "peer", "alpha": 0.2}, {"robust": "peer", "peers": "sampled"}):
        settings = {**SMALL, "network": "linear", "network_options": None, "learning_rate": 0.05}
        ranker = NeuralRanker(**settings, **more).fit_preferences(X, pairs, batch_pairs=128)
        order = np.corrcoef(np.argsort(np.argsort(ranker.predict(X))), np.argsort(np.argsort(worth)))[0, 1]
        assert order > 0.95, more
    for wrong, words in (
        ([[0, 0]], "must name two different rows"),
        ([[0, 999]], "rows from 0 to 199"),
        ([0, 1], "better document, worse document"),
    ):
        with pytest.raises(CleanrankError, match=words):
            NeuralRanker(**SMALL).fit_preferences(X, wrong)
    with pytest.raises(CleanrankError, match="score documents one by one"):
        NeuralRanker(network="attention", epochs=1).fit_preferences(X, pairs)


def test_it_can_be_cloned_searched_saved_and_loaded(toy, tmp_path):
    ranker = NeuralRanker(loss="lambdarank", **SMALL)
    assert clone(ranker).get_params() == ranker.get_params()
    with pytest.raises(CleanrankError, match="must be fitted"):
        ranker.predict(toy.X)
    ranker.fit_data(toy)
    ranker.save(tmp_path / "m.safetensors")
    again = NeuralRanker.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(toy.X), ranker.predict(toy.X))
    assert again.model_.record["loss"] == "lambdarank"
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            NeuralRanker(**{**SMALL, "epochs": 1}).set_fit_request(qid=True),
            {"learning_rate": [1e-3, 1e-2]},
            scoring=ranking_scorer("ndcg@5"),
            cv=GroupKFold(2),
        ).fit(toy.X, toy.y, groups=toy.qid, qid=toy.qid)
    assert set(search.best_params_) == {"learning_rate"}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"measure": "ndgc@10"}, "Did you mean 'ndcg'"),
        ({"scaling": "zscor"}, "Did you mean 'zscore'"),
        ({"network": "mpl"}, "Did you mean 'mlp'"),
        ({"batch_queries": 0}, "batch_queries must be"),
        ({"random_state": -1}, "seed must be"),
        ({"optimizer": "adan"}, "Did you mean 'adam'"),
        ({"loss": "ranknett"}, "Did you mean 'ranknet'"),
        ({"device": "mps"}, "device must be 'auto', 'cpu', 'cuda'"),
        ({"loss_options": {"sigm": 1}}, "Did you mean 'sigma'"),
        ({"loss_options": {"pairs": "strict"}}, "a parameter of its own; got 'pairs'"),
        ({"loss_options": 3}, "loss_options must map names to values"),
        ({"network_options": 3}, "network_options must map names to values"),
        ({"network_options": {"hidden": 16}}, "hidden must list the widths"),
        ({"network_options": {"dropout": "a"}}, "dropout must be a number"),
        ({"robust": "peer", "pairs": "all_ordered", "alpha": None}, "alpha must be a number or 'auto'"),
        ({"robust": "peer", "pairs": "all_ordered", "alpha": "auto"}, "alpha='auto' needs the noise"),
        ({"loss": "listnet", "binary": "hinge"}, "binary has no meaning for listnet; got 'hinge'"),
    ],
)
def test_wrong_parameters_are_named_when_it_is_fitted(toy, wrong, words):
    with pytest.raises(CleanrankError, match=words):
        NeuralRanker(**{**SMALL, **wrong}).fit_data(toy)


def test_a_checkpoint_of_other_data_or_settings_is_refused(toy, tmp_path):
    settings = {**SMALL, "epochs": 1, "checkpoint": tmp_path / "c"}
    NeuralRanker(**settings).fit_data(toy)
    with pytest.raises(CleanrankError, match=r"whose learning_rate is 0\.5"):
        NeuralRanker(**settings, learning_rate=0.5).fit_data(toy)
    with pytest.raises(CleanrankError, match="must belong to this training, whose data is"):
        NeuralRanker(**settings).fit_data(toy.with_labels(toy.y[::-1].copy()))


TRAIN = """
import sys, time
import numpy as np
import cleanrank as cr
rng = np.random.default_rng(0)
X, y = rng.normal(size=(600, 8)).astype("f4"), rng.integers(0, 3, 600)
X[:, 0] += y
data = cr.from_arrays(X, y, qid=np.repeat(np.arange(60), 10))

def progress(epoch, epochs):
    print(epoch, flush=True)
    time.sleep(float(sys.argv[2]))

cr.NeuralRanker(
    epochs=8, batch_queries=8, network_options={"hidden": (16,), "dropout": 0.2}, device="cpu", n_jobs=1,
    pairs="all_ordered", robust="peer", peers="sampled",
    checkpoint=sys.argv[1] + ".checkpoint" if float(sys.argv[2]) else None,
).fit_data(data, progress=progress).save(sys.argv[1])
"""


@pytest.mark.slow
def test_a_killed_training_resumes_to_the_same_weights(tmp_path):
    """Killed outright in the fourth epoch; dropout and sampled peers are drawn anew after the break."""
    (tmp_path / "train.py").write_text(TRAIN)

    def command(name, pause):
        return [sys.executable, str(tmp_path / "train.py"), str(tmp_path / name), str(pause)]

    whole = subprocess.run(command("whole", 0), capture_output=True, text=True)
    assert whole.returncode == 0, whole.stderr
    with subprocess.Popen(command("parts", 0.5), stdout=subprocess.PIPE, text=True) as broken:
        for line in broken.stdout:
            if line.strip() == "4":
                os.kill(broken.pid, signal.SIGKILL)
    assert broken.returncode == -signal.SIGKILL
    assert not (tmp_path / "parts").exists()
    resumed = subprocess.run(command("parts", 0.01), capture_output=True, text=True)
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout.split()[0] in ("4", "5")
    assert (tmp_path / "parts").read_bytes() == (tmp_path / "whole").read_bytes()


def test_numpy_and_torch_are_enough_to_train(tmp_path):
    """Every other package is made to look absent; saving says which one to install."""
    code = f"""
import sys
absent = ("numba", "scipy", "sklearn", "pandas", "pyarrow", "lightgbm", "safetensors", "rich", "typer",
          "matplotlib", "polars", "zstandard", "platformdirs", "llvmlite")
sys.modules.update(dict.fromkeys(absent))
import numpy as np
import cleanrank as cr
rng = np.random.default_rng(0)
X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 2, 60), np.repeat(np.arange(6), 10)
ranker = cr.NeuralRanker(
    epochs=2, pairs="all_ordered", robust="peer", alpha="auto", noise=[[0.9, 0.1], [0.1, 0.9]],
    network_options={{"hidden": (4,)}}, device="cpu",
)
ranker.fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)
assert ranker.predict(X).shape == y.shape
started = []
for use in (
    lambda: ranker.save({str(tmp_path / "m")!r}),
    lambda: cr.NeuralRanker.load({str(tmp_path / "m")!r}),
    lambda: ranker.set_params(checkpoint={str(tmp_path / "c")!r}).fit(
        X, y, qid=qid, progress=lambda *epochs: started.append(epochs)
    ),
):
    try:
        use()
    except ImportError as error:
        assert "this needs safetensors" in str(error) and "cleanrank[nn]" in str(error), error
    else:
        raise AssertionError("saved without safetensors")
assert not started  # refused before the first epoch
print(ranker.get_params()["epochs"], [name for name in absent if sys.modules[name] is not None])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "2 []", done.stderr


def test_named_columns_of_frames_may_come_in_any_order(toy, tmp_path):
    frame = pd.DataFrame(toy.X, columns=list("abcd"))
    turned = frame[["d", "b", "a", "c"]]
    ranker = NeuralRanker(**SMALL).fit(
        frame.assign(qid=toy.qid), toy.y, eval_set=(turned.assign(qid=toy.qid), toy.y)
    )
    wanted = NeuralRanker(**SMALL).fit_data(toy, toy)
    assert ranker.history_ == wanted.history_
    ranker.save(tmp_path / "m")
    for each in (ranker, NeuralRanker.load(tmp_path / "m")):
        np.testing.assert_array_equal(each.predict(turned), wanted.predict(toy.X))


def test_bad_features_are_named_by_the_row_of_the_caller(toy):
    place = np.random.default_rng(0).permutation(toy.n_docs)
    X = toy.X[place]
    X[17, 2] = np.inf
    for fit in (
        lambda: NeuralRanker(**SMALL).fit(X, toy.y[place], qid=toy.qid[place]),
        lambda: NeuralRanker(**SMALL).fit_preferences(X, [[0, 1]]),
        lambda: NeuralRanker(**SMALL).fit_data(toy).predict(X),
    ):
        with pytest.raises(CleanrankError, match="got inf at row 17, column 2"):
            fit()
    X[17, 2] = np.nan  # missing
    ranker = NeuralRanker(**SMALL).fit(X, toy.y[place], qid=toy.qid[place])
    assert np.isfinite(ranker.predict(X)).all()


def test_a_training_touches_no_stream_of_others(toy):
    torch.manual_seed(3)
    before, mine = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    NeuralRanker(
        **{**SMALL, "network_options": {"hidden": (8,), "dropout": 0.5}}, pairs="all_ordered",
        robust="peer", peers="sampled",
    ).fit_data(toy)  # fmt: skip
    assert torch.equal(before, torch.get_rng_state())
    assert (mine == np.random.get_state()[1]).all()  # noqa: NPY002


@pytest.mark.parametrize("loss", LOSSES)
def test_one_query_is_enough_and_labels_that_say_nothing_are_refused(toy, loss):
    ranker = NeuralRanker(**{**SMALL, "epochs": 1, "loss": loss})
    assert np.isfinite(ranker.fit(toy.X, toy.y, qid=np.zeros(toy.n_docs)).predict(toy.X)).all()
    with pytest.raises(CleanrankError, match="labels must differ between documents"):
        ranker.fit(toy.X, np.ones(toy.n_docs), qid=toy.qid)
    single = (toy.X, toy.y)
    if loss == "pointwise":
        assert np.isfinite(ranker.fit(*single, qid=np.arange(toy.n_docs)).predict(toy.X)).all()
        return
    with pytest.raises(CleanrankError, match="must have two documents of different labels in at least one q"):
        ranker.fit(*single, qid=np.arange(toy.n_docs))


def test_validation_data_without_documents_are_refused(toy):
    with pytest.raises(CleanrankError, match="validation data must have documents"):
        NeuralRanker(**SMALL).fit(
            toy.X, toy.y, qid=toy.qid, eval_set=(toy.X[:0], toy.y[:0]), eval_qid=toy.qid[:0]
        )


def test_a_loss_that_learns_beside_the_ranker_has_no_checkpoint(toy, tmp_path):
    def loss(scores, labels, mask, generator=None, positions=None):
        return (scores * mask).sum()

    loss.resumable = False
    with pytest.raises(CleanrankError, match="checkpoint must be None with a loss that learns"):
        NeuralRanker(loss, **SMALL, checkpoint=tmp_path / "c").fit_data(toy)


def test_a_training_with_a_loss_of_ones_own_goes_on_in_another_process(toy, tmp_path):
    settings = {**SMALL, "checkpoint": tmp_path / "c"}
    NeuralRanker(lambda s, y, m, g: (s * m).sum(), **settings).fit_data(toy)
    again = NeuralRanker(lambda s, y, m, g: (s * m).sum(), **{**settings, "epochs": 4}).fit_data(toy)
    assert len(again.history_) == 4


def test_early_stopping_none_never_stops(toy):
    ranker = NeuralRanker(**{**SMALL, "epochs": 5}, early_stopping_rounds=None, learning_rate=1e-30)
    assert len(ranker.fit_data(toy, toy).history_) == 5
