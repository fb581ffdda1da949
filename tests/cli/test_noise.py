import json
import shlex

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.clicks.models import CLICK_MODELS
from cleanrank.clicks.simulate import simulate_clicks
from cleanrank.noise.dependent import DEPENDENT
from cleanrank.noise.profiles import PROFILES


@pytest.fixture
def clean(toy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cr.write_data(toy, tmp_path / "clean.csv")
    cr.write_letor(toy, tmp_path / "clean.txt")
    return toy


def test_corrupt_writes_three_files(cli, clean, tmp_path):
    done = cli(
        "corrupt", "clean.txt", "--profile", "uniform", "--rate", ".2", "--seed", "7", "-o", "noisy.txt"
    )
    assert done.code == 0, done.err
    expected = cr.corrupt(clean, rate=0.2, seed=7)
    np.testing.assert_array_equal(cr.read_data("noisy.txt").y, expected.data.y)
    record = json.loads((tmp_path / "noisy.txt.noise.json").read_text())
    assert record["changed"] == expected.changed.sum()
    assert f"{record['changed']} of 480 grades changed" in done.err
    truth = pd.read_csv("noisy.txt.truth.csv")
    np.testing.assert_array_equal(truth.true_grade, clean.y)
    assert "true grade" in done.out


@pytest.mark.parametrize(
    "words",
    [
        "--profile geometric --rate .3 --option rho=.25",
        "--rate .2 --spread .3",
        "--profile adjacent --rate .1 --option row_weights=1,2,2 --n-grades 3",
        "--profile one-way --rate .3 --option source=1",
        "--profile hard-documents --rate .3",
        "--profile lenient-queries --rate .1 --n-grades 4",
        "--matrix m.json",
    ],
)
def test_the_recorded_command_repeats_the_file_exactly(cli, clean, words, tmp_path):
    (tmp_path / "m.json").write_text("[[0.9, 0.1, 0], [0.2, 0.8, 0], [0, 0.5, 0.5]]")
    done = cli("corrupt", "clean.csv", *words.split(), "--seed", "3", "-o", "noisy.csv", "--json")
    assert done.code == 0, done.err
    record = json.loads(done.out)
    first = (tmp_path / "noisy.csv").read_bytes()
    again = cli(*shlex.split(record["command"])[1:], "--force")
    assert again.code == 0, again.err
    assert (tmp_path / "noisy.csv").read_bytes() == first
    assert json.loads((tmp_path / "noisy.csv.noise.json").read_text())["counts"] == record["counts"]


def test_formats_follow_the_suffix(cli, clean, tmp_path):
    done = cli("corrupt", "clean.csv", "--rate", "0", "-o", "same.parquet", "--truth", "parquet")
    assert done.code == 0, done.err
    np.testing.assert_array_equal(cr.read_data("same.parquet").y, clean.y)
    assert pd.read_parquet("same.parquet.truth.parquet").true_grade.tolist() == clean.y.tolist()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--rate .2 -o taken.txt", "must not exist yet"),
        ("--rate .2 -o clean.csv --force", "must differ from every input"),
        ("-o a.txt", "rate must be given"),
        ("--rate 2 -o a.txt", "noise rate must be a number >= 0"),
        ("--profile unifrom --rate .2 -o a.txt", "Did you mean 'uniform'"),
        ("--rate .2 --option rho=1 -o a.txt", "unknown option of noise profile 'uniform' 'rho'"),
        ("--profile hard-documents --rate .2 --option rho=1 -o a.txt", "do not go with hard-documents noise"),
        ("--rate .2 --option rho -o a.txt", "must read NAME=VALUE"),
        ("--rate .2 --matrix m.json -o a.txt", "must not be given with --matrix"),
        ("--rate .2 -o none/a.txt", "does not exist"),
        ("--rate .2 -o a.txt --truth xml", "unknown kind of truth file"),
    ],
)
def test_corrupt_mistakes_are_named_and_leave_nothing(cli, clean, tmp_path, words, message):
    (tmp_path / "taken.txt").write_text("mine")
    (tmp_path / "m.json").write_text("[[1, 0, 0], [0, 1, 0], [0, 0, 1]]")
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()}
    done = cli("corrupt", "clean.csv", *words.split())
    assert done.code == 2
    assert message in done.err
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == before


def test_clicks_write_a_log(cli, clean, tmp_path):
    scores = np.random.default_rng(0).normal(size=clean.n_docs)
    np.save(tmp_path / "scores.npy", scores)
    done = cli(
        "clicks", "clean.csv", "--model", "ccm", "--sessions", "4", "--seed", "2", "--scores", "scores.npy",
        "--way", "second", "-o", "log.parquet",
    )  # fmt: skip
    assert done.code == 0, done.err
    expected = simulate_clicks(
        cr.read_data("clean.csv"), "ccm", scores=scores, sessions=4, seed=2, options={"way": "second"}
    )
    pd.testing.assert_frame_equal(pd.read_parquet("log.parquet"), expected.to_frame())
    record = json.loads((tmp_path / "log.parquet.clicks.json").read_text())
    assert record["clicks"] == expected.click.sum()
    assert record["model"] == "ccm"
    assert record["parameters"]["noise"] == 0.1
    assert record["lists"] == 4 * clean.n_queries
    assert f"{expected.click.mean():.4f}" in done.out


def test_flips_cutoff_and_empty_lists(cli, clean, tmp_path):
    done = cli(
        "clicks", "clean.txt", "--flip", ".5,.04", "--cutoff", "5", "--skip-empty", "--option", "eta=2",
        "-o", "log.csv", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    record = json.loads(done.out)
    assert record["flip"] == [0.5, 0.04]
    assert record["parameters"]["eta"] == 2
    frame = pd.read_csv("log.csv")
    assert frame.position.max() == 5
    assert frame.groupby(["session", "query_id"]).click.max().min() == 1
    assert record["empty_lists"] + record["lists"] == clean.n_queries


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-o log.txt", "output must be .csv, .parquet"),
        ("--model pmb -o log.csv", "Did you mean 'pbm'"),
        ("--flip often -o log.csv", "must be one rate or two"),
        ("--way third -o log.csv", "unknown way"),
        ("--scores none.npy -o log.csv", "none.npy"),
        ("--option a1=1 -o log.csv", "unknown option of click model 'pbm' 'a1'"),
    ],
)
def test_clicks_mistakes_are_named_and_leave_nothing(cli, clean, tmp_path, words, message):
    before = sorted(p.name for p in tmp_path.iterdir() if p.is_file())
    done = cli("clicks", "clean.csv", *words.split())
    assert done.code == 2
    assert message in done.err
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == before


def test_help_lists_families_and_kinds_of_users(cli):
    """The lists come from the mappings, so that a new family needs no second entry."""
    for command, names in (("corrupt", (*PROFILES, *DEPENDENT)), ("clicks", CLICK_MODELS)):
        shown = " ".join(cli(command, "--help").out.replace("│", " ").split())
        assert ", ".join(names) in shown
