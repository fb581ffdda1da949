import json

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.metrics import corrected, order_probability
from cleanrank.noise.gold import from_gold
from cleanrank.noise.profiles import read_noise


@pytest.fixture
def files(tmp_path, toy):
    cr.write_letor(toy, tmp_path / "data.txt")
    rng = np.random.default_rng(1)
    data = cr.read_letor(tmp_path / "data.txt", cache=False)
    for name, spread in (("good", 0.5), ("bad", 5.0)):
        np.savetxt(tmp_path / f"{name}.txt", data.y + spread * rng.normal(size=data.n_docs))
    return tmp_path


def test_compare_says_how_sure_the_order_is(cli, files):
    words = ("compare", files / "data.txt", f"bad={files / 'bad.txt'}", f"good={files / 'good.txt'}",
             "-m", "dcg@5", "--noise", "uniform:0.2")  # fmt: skip
    rows = json.loads(cli(*words, "--json").out)["rows"]
    data = cr.read_letor(files / "data.txt", cache=False)
    good, bad = (np.loadtxt(files / f"{name}.txt") for name in ("good", "bad"))
    profile = read_noise("uniform:0.2", data.n_grades)
    assert [row["system"] for row in rows] == ["bad", "good"]
    assert "order_probability" not in rows[0]
    assert rows[1]["corrected"] == corrected(good, data, "dcg@5", noise=profile).means[0]
    assert rows[1]["order_probability"] == order_probability(good, bad, data, "dcg@5", noise=profile)
    assert "P(order is right)" in cli(*words).out


def test_corrected_values_per_query_are_written(cli, files):
    target = files / "values.csv"
    done = cli("evaluate", files / "data.txt", files / "good.txt", "-m", "dcg@5", "--noise", "uniform:0.2",
               "--per-query", target, "--json")  # fmt: skip
    mean = json.loads(done.out)["measures"][0]["corrected"]
    assert pd.read_csv(target)["dcg@5"].mean() == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--format", "latex"), "table or json"),
        (("--baseline", "x"), "unknown system 'x'"),
        (("-m", "ndcg@10"), "cannot be corrected"),
    ],
)
def test_what_cannot_be_done_is_refused(cli, files, words, message):
    systems = (f"bad={files / 'bad.txt'}", f"good={files / 'good.txt'}")
    done = cli("compare", files / "data.txt", *systems, "--noise", "uniform:0.2", *words)
    assert done.code == 2
    assert message in done.err


def test_errors_that_depend_on_more_than_the_grade_are_refused(cli, files, monkeypatch):
    monkeypatch.chdir(files)
    clean = cr.read_letor("data.txt", cache=False)
    lenient = clean.with_labels(np.where(clean.X[:, 1] > 0, np.minimum(clean.y + 1, 2), clean.y))
    cr.write_letor(lenient, "lenient.txt")
    from_gold(lenient, lenient.row_ids, clean.y).save("lenient.json")
    np.savetxt("lenient.scores", lenient.X[:, 0])
    words = ["lenient.txt", "lenient.scores", "-m", "dcg@5", "--noise", "lenient.json"]
    refused = cli("evaluate", *words)
    assert refused.code == 2
    assert "features p = 0.001" in refused.err
    assert "--allow-dependent corrects all the same" in refused.err
    allowed = cli("evaluate", *words, "--allow-dependent")
    assert allowed.code == 0
    assert "Errors depend on more than the true grade" in allowed.err
    both = ["lenient.txt", "a=lenient.scores", "b=lenient.scores", *words[2:]]
    assert cli("compare", *both).code == 2
    assert cli("compare", *both, "--allow-dependent").code == 0
    assert "Not checked" in cli("evaluate", *words[:-1], "uniform:0.1").err
