import json

import pytest

import cleanrank as cr
from cleanrank.noise.gold import from_gold, sample_gold
from cleanrank.rankers.trees import TreeModel

FEW = ("--trees", "5", "--option", "folds=2", "--model", "robust", "-o", "model.txt", "--json")


@pytest.fixture
def noisy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    corruption = cr.corrupt(cr.make_ranking(30, 4, docs_per_query=15, seed=0), rate=0.2, seed=1)
    cr.write_letor(corruption.data, tmp_path / "train.txt")
    return corruption


def test_robust_takes_noise_as_a_family(cli, noisy):
    done = cli("train", "train.txt", "--noise", "uniform:0.2", *FEW)
    assert done.code == 0, done.err
    record = json.loads(done.out)
    assert record["strategy"] == "posterior"
    assert TreeModel.load("model.txt").best_iteration == record["trees"]


def test_robust_takes_a_gold_sheet(cli, noisy):
    sheet = sample_gold(noisy.data, 60, seed=2)
    truth = noisy.true_labels[sheet.rows]
    lines = ["row_id,true_grade", *(f"{r},{g}" for r, g in zip(sheet.row_ids, truth, strict=True))]
    with open("sheet.csv", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    done = cli("train", "train.txt", "--gold", "sheet.csv", *FEW)
    assert done.code == 0, done.err
    record = json.loads(done.out)
    assert record["strategy"] == "auto"
    assert any("estimated: gold" in reason for reason in record["reasons"])


def test_an_estimate_that_is_not_trusted_is_not_used_and_says_why(cli, noisy):
    sheet = sample_gold(noisy.data, 10, seed=2)
    from_gold(noisy.data, sheet.row_ids, noisy.true_labels[sheet.rows]).save("estimate.json")
    done = cli("train", "train.txt", "--noise", "estimate.json", *FEW)
    assert done.code == 0, done.err
    record = json.loads(done.out)
    assert record["strategy"] == "auto"
    assert "so the noise is assumed from the data" in record["reasons"]
    assert any("too few" in reason for reason in record["reasons"])


def test_noise_belongs_to_robust(cli, noisy):
    done = cli("train", "train.txt", "--noise", "uniform:0.2", "-o", "model.txt")
    assert done.code == 2
    assert "--noise goes with --model robust" in done.err


def test_a_value_on_expected_gains_is_named_so_and_clean_labels_can_be_declared(cli, noisy):
    cr.write_letor(cr.make_ranking(10, 4, docs_per_query=15, seed=5), "valid.txt")
    words = ("train", "train.txt", "--valid", "valid.txt", "--noise", "uniform:0.2", "--force", *FEW)
    assert json.loads(cli(*words).out)["measure"] == "ndcg@10 of expected gains"
    record = json.loads(cli(*words, "--valid-clean").out)
    assert record["measure"] == "ndcg@10"
    assert record["strategy"] == "posterior"
    model, valid = cr.load_ranker("model.txt"), cr.read_data("valid.txt")
    assert record["validation"] == pytest.approx(model.score(valid.X, valid.y, qid=valid.qid))
    done = cli("train", "train.txt", "--valid-clean", "-o", "other.txt")
    assert (done.code, "--valid-clean goes with --model robust" in done.err) == (2, True)


def test_a_matrix_of_equal_rows_is_refused(cli, noisy):
    done = cli("train", "train.txt", "--noise", "uniform:0.8", *FEW)
    assert done.code == 2
    assert "noise matrix must have rows that differ" in done.err
