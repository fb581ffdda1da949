"""TREC judgements and runs on the command line."""

import json

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import UntrustedNoiseWarning
from cleanrank.metrics import corrected
from cleanrank.noise.estimate import NoiseEstimate
from cleanrank.noise.gold import from_gold


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Judgements of 30 topics, runs of ten documents, and one unjudged document a topic."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    qrels, runs = [], {"good": [], "poor": [], "nothing": []}
    for topic in range(30):
        grades = rng.choice([0, 1, 2], 25, p=[0.6, 0.3, 0.1])
        qrels += [f"{topic} 0 d{d} {g}" for d, g in enumerate(grades[:20])]
        for name, spread in (("good", 0.5), ("poor", 3.0)):
            score = grades + spread * rng.normal(size=25)
            runs[name] += [f"{topic} Q0 d{d} 0 {score[d]} {name}" for d in np.argsort(-score)[:10]]
        runs["nothing"].append(f"{topic} Q0 unknown 0 1 x")
    (tmp_path / "qrels.txt").write_text("\n".join(qrels))
    for name, lines in runs.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(lines))
    return tmp_path


def test_evaluate_and_compare_give_the_same_figures(cli, folder):
    names = ("-m", "recall_100", "-m", "map")
    alone = json.loads(
        cli("evaluate", "qrels.txt", "poor.txt", "-m", "recall_100", "-m", "map", "--json").out
    )
    done = cli("compare", "qrels.txt", "good.txt", "poor.txt", "nothing.txt", *names, "--json")
    rows = json.loads(done.out)["rows"]
    means = {(r["system"], r["measure"]): r["mean"] for r in rows}
    for row in alone["measures"]:
        assert row["measure"].endswith(":trec")
        assert row["mean"] == means["poor", row["measure"]]
        assert means["nothing", row["measure"]] == 0
    assert "30 topics: all judged topics count" in done.err
    assert "nothing.txt: 30 documents retrieved, 30 of them not judged" in done.err


def test_documents_that_nobody_judged_carry_no_noise(cli, folder):
    """Finding A5."""
    names = ("-m", "precision@1", "-m", "dcg@10")
    done = cli("evaluate", "qrels.txt", "nothing.txt", *names, "--noise", "uniform:0.1", "--json")
    for row in json.loads(done.out)["measures"]:
        assert (row["corrected"], row["interval"], row["as_labelled"]) == (0, [0, 0], 0)


def test_corrected_intervals_hold_the_uncertainty_of_the_estimate(cli, folder):
    """Finding A4: the interval of the command line is that of Python, wider than with the matrix alone."""
    qrels = cr.read_qrels("qrels.txt")
    noisy = cr.corrupt(qrels, rate=0.2, seed=1).data
    rows = np.arange(0, qrels.n_docs, 4)
    estimate = from_gold(noisy, qrels.row_ids[rows], qrels.y[rows])
    estimate.save("noise.json")
    words = ("qrels.txt", "poor.txt", "-m", "dcg@10", "--json", "--noise")
    shown = json.loads(cli("evaluate", *words, "noise.json").out)["measures"][0]["interval"]
    loaded = NoiseEstimate.load("noise.json")
    run = cr.read_run("poor.txt")
    ours = corrected(run, qrels, "dcg@10", noise=loaded)
    assert shown == [ours.low[0], ours.high[0]]
    assert ours.n_draws == len(loaded.draws)
    alone = corrected(run, qrels, "dcg@10", noise=loaded.matrix)
    assert ours.high[0] - ours.low[0] > alone.high[0] - alone.low[0]
    by_path = corrected(run, qrels, "dcg@10", noise="noise.json")
    assert (by_path.low[0], by_path.high[0]) == (ours.low[0], ours.high[0])


def test_an_untrusted_estimate_is_said(cli, folder):
    qrels = cr.read_qrels("qrels.txt")
    rows = np.flatnonzero(qrels.y < 2)[:12]
    estimate = from_gold(qrels, qrels.row_ids[rows], qrels.y[rows], n_grades=3)
    assert not estimate.trusted
    estimate.save("noise.json")
    with pytest.warns(UntrustedNoiseWarning, match="is not trusted"):
        corrected(cr.read_run("poor.txt"), qrels, "dcg@10", noise=estimate, level=0.2)
    with pytest.warns(UntrustedNoiseWarning, match="is not trusted"):
        cr.NoiseProfile.of("noise.json")


def test_draws_that_cannot_be_inverted_widen_the_interval():
    """Finding C7: few of them count as beyond both ends; many are refused in words about the estimate."""
    data = cr.make_ranking(60, 3, seed=0)
    scores = data.y + np.random.default_rng(0).normal(size=data.n_docs)
    matrix = cr.NoiseProfile.of("uniform:0.2", data.n_grades).matrix
    draws = np.repeat(matrix[None], 1000, axis=0)
    some = draws.copy()
    some[:10] = 1 / data.n_grades
    whole = corrected(scores, data, "dcg@10", noise=matrix, matrix_draws=draws)
    part = corrected(scores, data, "dcg@10", noise=matrix, matrix_draws=some)
    assert part.n_singular == 10
    assert part.low[0] < whole.low[0] < whole.high[0] < part.high[0]
    some[:40] = 1 / data.n_grades
    with pytest.raises(cr.CleanrankError, match=r"all but 0\.025 of its draws .* got 40 of 1,000 draws"):
        corrected(scores, data, "dcg@10", noise=matrix, matrix_draws=some)


def test_qrels_are_corrupted_as_qrels(cli, folder):
    done = cli("corrupt", "qrels.txt", "--rate", "0.5", "-o", "noisy.txt", "--json")
    assert done.code == 0, done.err
    clean, noisy = cr.read_qrels("qrels.txt"), cr.read_qrels("noisy.txt")
    assert noisy.doc_ids.tolist() == clean.doc_ids.tolist()
    assert int((noisy.y != clean.y).sum()) == json.loads(done.out)["changed"] > 0
    assert "doc_id" in (folder / "noisy.txt.truth.csv").read_text().splitlines()[0]
    assert cli("compare", "noisy.txt", "good.txt", "poor.txt").code == 0


@pytest.mark.parametrize("option", ["--gains x", "--label x", "--features x", "--ratings levels"])
def test_options_of_tables_are_refused_with_judgements(cli, folder, option):
    done = cli("evaluate", "qrels.txt", "good.txt", *option.split())
    assert (done.code, f"{option.split()[0]} must go with" in done.err) == (2, True)
