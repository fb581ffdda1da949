import json

import numpy as np
import pytest
from typer.testing import CliRunner

import cleanrank as cr
from cleanrank.cli import diagnose as commands
from cleanrank.diagnosis import diagnose
from cleanrank.errors import InvalidInputError

runner = CliRunner()


@pytest.fixture(scope="module")
def app():
    return commands.app


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(0)
    data = cr.from_arrays(rng.normal(size=(200, 4)), rng.choice(3, 200, p=[0.7, 0.2, 0.1]), group=[20] * 10)
    path = tmp_path_factory.mktemp("data") / "train.txt"
    cr.write_letor(data, path)
    return path


def run(app, *words):
    done = runner.invoke(app, [str(w) for w in words])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done


def test_diagnose_prints_the_report(app, file):
    text = run(app, "diagnose", file).stdout
    assert text.startswith("train.txt: 10 queries, 200 documents, 4 features")
    assert "knee" in text


def test_diagnose_in_json_is_what_the_function_says(app, file):
    plainly = json.loads(
        run(app, "diagnose", file, "--json", "--profile", "adjacent", "--rate", "0.2").stdout
    )
    expected = diagnose(cr.read_letor(file), profiles=["adjacent"], rate=0.2, name="train.txt")
    assert plainly == json.loads(expected.to_json())


def test_several_files_are_one_set(app, file):
    assert json.loads(run(app, "diagnose", file, file, "--json").stdout)["documents"] == 400


def test_pages_are_written(app, file, tmp_path):
    pytest.importorskip("vl_convert")
    run(app, "diagnose", file, "--html", tmp_path / "a.html")
    run(app, "plan", "--budget", "100", "--html", tmp_path / "b.html")
    assert "Diagnosis of train.txt" in (tmp_path / "a.html").read_text()
    assert "Which labels to buy" in (tmp_path / "b.html").read_text()


def test_plan_takes_rates_by_scale_and_shares(app):
    words = [
        "plan",
        "--budget",
        "500",
        "--cost",
        "0.1",
        "--error",
        "2=0.1,3=0.2",
        "--proportions",
        "70:16:14",
        "--json",
    ]
    order = json.loads(run(app, *words).stdout)["order"]
    assert order["error"] == {"2": 0.1, "3": 0.2}
    assert order["proportions"] == pytest.approx([0.7, 0.16, 0.14])
    assert order["scales"] == [2, 3]


def test_plan_takes_its_shape_from_data(app, file):
    order = json.loads(run(app, "plan", "--budget", "500", "--like", file, "--json").stdout)["order"]
    assert order["documents"] == 20
    counts = np.bincount(cr.read_letor(file).y)
    assert order["proportions"] == pytest.approx((counts / counts.sum()).tolist())
    with pytest.raises(InvalidInputError, match="--like must not be given with"):
        run(app, "plan", "--budget", "5", "--like", file, "--prevalence", "0.1")


def test_plan_without_pairs_and_with_bad_numbers(app):
    text = run(app, "plan", "--budget", "500", "--top-k", "0").stdout
    assert "by pairs" not in text
    assert "Recommended:" in text
    with pytest.raises(InvalidInputError, match=r"--error must be numbers joined by ','; got 'x'"):
        run(app, "plan", "--budget", "5", "--error", "x")
    assert runner.invoke(app, ["plan"]).exit_code == 2
