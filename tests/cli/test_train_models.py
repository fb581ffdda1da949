"""``cleanrank train``: every model and every option reaches the ranker that the same words make in Python."""

import json
import warnings

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.noise.gold import sample_gold
from cleanrank.noise.profiles import uniform
from cleanrank.rankers.configure import READERS, readers_of

FEW = {"n_estimators": 9, "num_leaves": 7, "min_child_samples": 5}
WORDS = ("--trees", "9", "--leaves", "7", "--min-docs", "5")
PEERS = {"robust": "peer", "alpha": 0.3, "peers": "expected"}


def trained(cli, *words):
    """The record and the model of a training by the command line."""
    done = cli("train", "train.txt", "-o", "model.txt", "--json", "--force", *words)
    assert done.code == 0, done.err
    return json.loads(done.out), cr.load_ranker("model.txt")


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--model", "lambdarank"), cr.BoostedRanker(**FEW)),
        (("--model", "lambdamart"), cr.BoostedRanker(objective="lambdamart", **FEW)),
        (("--model", "gbdt"), cr.BoostedRanker(objective="gbdt", **FEW)),
        (("--objective", "builtin"), cr.BoostedRanker(implementation="builtin", **FEW)),
        (("--learning-rate", ".3"), cr.BoostedRanker(learning_rate=0.3, **FEW)),
        (
            ("--model", "peer", "--option", "alpha=.3", "--option", "peers=expected"),
            cr.BoostedRanker(**PEERS, **FEW),
        ),
        (
            ("--model", "sour", "--option", "end=9", "--option", "kind=all", "--measure", "ndcg@3"),
            cr.SOURRanker(end=9, kind="all", cutoff=3, **FEW),
        ),
        (
            ("--model", "pairwise", "--noise", "uniform:.2", "--option", "weighting=prevalence"),
            cr.BoostedRanker(objective="sigmoid", noise=uniform(0.2, 3), weighting="prevalence", **FEW),
        ),
    ],
)
def test_the_model_is_the_one_that_was_asked_for(cli, files, words, wanted):
    data = cr.read_data("train.txt")
    _, ranker = trained(cli, *WORDS, *words)
    np.testing.assert_array_equal(ranker.predict(data.X), wanted.fit_data(data).predict(data.X))


def test_models_differ(cli, files):
    data = cr.read_data("train.txt")
    scores = {}
    for model in ("lambdarank", "lambdamart", "gbdt", "peer", "sour", "pairwise"):
        options = {"peer": ("--option", "alpha=.5"), "sour": ("--option", "end=5", "--option", "kind=all")}
        _, ranker = trained(cli, *WORDS, "--model", model, *options.get(model, ()))
        scores[model] = tuple(ranker.predict(data.X).tolist())
    assert len(set(scores.values())) == len(scores)


def test_validation_data_and_what_looks_at_them(cli, files):
    data, valid = cr.read_data("train.txt"), cr.read_data("valid.txt")
    record, ranker = trained(
        cli, *WORDS, "--trees", "200", "--learning-rate", ".5", "--valid", "valid.txt", "--measure", "map",
        "--stop-after", "4",
    )  # fmt: skip
    settings = {
        **FEW,
        "n_estimators": 200,
        "learning_rate": 0.5,
        "early_stopping_rounds": 4,
        "measure": "map",
    }
    wanted = cr.BoostedRanker(**settings).fit_data(data, valid)
    assert record["trees"] == wanted.model_.best_iteration < 50
    assert record["measure"] == "map"
    assert record["validation"] == pytest.approx(wanted.model_.validation_value)
    np.testing.assert_array_equal(ranker.predict(data.X), wanted.predict(data.X))


def test_robust_gets_noise_gold_rows_and_the_word_about_validation_labels(cli, files):
    data, valid = cr.read_data("train.txt"), cr.read_data("valid.txt")
    few = {"n_estimators": 6, "folds": 2, "early_stopping_rounds": 3}
    words = (
        "--model",
        "robust",
        "--trees",
        "6",
        "--option",
        "folds=2",
        "--stop-after",
        "3",
        "--valid",
        "valid.txt",
    )
    sheet = sample_gold(data, 40, seed=1)
    rows = "".join(
        f"{row},{grade}\n" for row, grade in zip(sheet.row_ids, (data.y[sheet.rows] + 1) % 3, strict=True)
    )
    (files / "gold.csv").write_text(f"row_id,true_grade\n{rows}")
    cases = (
        (("--noise", "uniform:.2"), {"noise": uniform(0.2, 3)}, {}),
        (
            ("--noise", "uniform:.2", "--valid-clean"),
            {"noise": uniform(0.2, 3), "clean_validation": True},
            {},
        ),
        (("--gold", "gold.csv"), {}, {"gold": (sheet.row_ids, (data.y[sheet.rows] + 1) % 3)}),
        (("--seed", "3"), {"random_state": 3}, {}),
    )
    seen = []
    for more, options, gold in cases:
        record, ranker = trained(cli, *words, *more)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = cr.RobustRanker(**few, **options).fit_data(data, valid, **gold)
        np.testing.assert_allclose(ranker.predict(data.X), wanted.predict(data.X))
        assert record["measure"] == wanted.validation_measure()
        seen.append((record["measure"], *ranker.predict(data.X).tolist()))
    assert len(set(seen)) == len(cases)


def test_scores_are_written_in_the_order_of_the_file(cli, files):
    _, ranker = trained(cli, *WORDS)
    lines = (files / "valid.txt").read_text().splitlines()
    place = np.random.default_rng(0).permutation(len(lines))
    (files / "mixed.txt").write_text("\n".join(lines[k] for k in place) + "\n")
    valid = cr.read_data("mixed.txt")
    assert (np.diff(valid.row_ids) < 0).any()
    assert cli("predict", "model.txt", "mixed.txt", "-o", "scores.npy").code == 0
    np.testing.assert_array_equal(np.load("scores.npy")[valid.row_ids], ranker.predict(valid.X))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--model rank-svm --trees 9", "--trees goes with --model lambdarank or lambdamart or"),
        ("--model rank-svm --epochs 9", "--epochs goes with --model neural or prank; got rank-svm"),
        ("--model list-net --learning-rate .1", "--learning-rate goes with --model"),
        ("--model robust --leaves 9", "--leaves goes with --model"),
        ("--model robust --objective parity", "--objective goes with --model lambdarank"),
        ("--model gbdt --objective parity", "--objective goes with --model lambdarank or lambdamart or peer"),
        ("--model neural --min-docs 9", "--min-docs goes with --model"),
        ("--epochs 9", "--epochs goes with --model"),
        (
            "--noise uniform:.1",
            "--noise goes with --model robust or peer or pairwise or neural; got lambdarank",
        ),
        ("--gold valid.txt", "--gold goes with --model robust"),
        ("--valid-clean --valid valid.txt", "--valid-clean goes with --model robust"),
        ("--model robust --valid-clean", "--valid-clean goes with --valid"),
        ("--stop-after 9", "--stop-after goes with --valid"),
        ("--measure map", "--measure goes with --valid"),
        ("--gold-columns query=a", "--gold-columns goes with --gold"),
        ("--label grade", "must go with CSV or Parquet"),
        ("--data ml-100k", "train needs DATA"),
        ("--model sour --measure map", "--measure must be ndcg@K for sour"),
    ],
)
def test_what_nothing_would_read_is_refused(cli, files, words, message):
    done = cli("train", "train.txt", "-o", "model.txt", *words.split())
    assert (done.code, message in " ".join(done.err.split())) == (2, True), done.err
    assert not (files / "model.txt").exists()


def test_options_of_clicks_and_of_rankings_are_not_mixed(cli, files):
    for words in (
        "--valid-clean",
        "--leaves 9",
        "--min-docs 9",
        "--objective parity",
        "--label a",
        "--trees 3",
    ):
        done = cli("train", "--task", "ctr", "--data", "ml-100k", "-o", "m", *words.split())
        name = words.split()[0]
        assert (done.code, f"{name} goes with --task rank; got --task ctr" in done.err) == (2, True), done.err
    trained(cli, *WORDS)
    done = cli("predict", "model.txt", "valid.txt", "-o", "scores.txt", "--part", "test")
    assert (done.code, "--part goes with a model of clicks; got model.txt" in done.err) == (2, True)


def test_readers_are_those_whose_arguments_they_are():
    assert readers_of("epochs") == ["neural", "prank"]
    assert "rank-svm" not in readers_of("n_estimators")
    assert "sour" in readers_of("measure")
    assert readers_of("gold") == list(READERS["gold"])
