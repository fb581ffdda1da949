"""No command overwrites what it reads, or what it did not write; all of them look before they work."""

import json
import os
import re
import shlex
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.data.frames import to_frame

# What is run with {out} in place, the endings it writes, the files it reads.
COMMANDS = {
    "demo --html {out}": (".html", ()),
    "diagnose data.csv --html {out}": (".html", ("data.csv",)),
    "plan --budget 100 --like data.csv --html {out}": (".html", ("data.csv",)),
    "find-issues data.csv --gold sheet.csv --truth truth.csv -o {out}":
        (".csv", ("data.csv", "sheet.csv", "truth.csv")),
    "find-issues data.csv --clicks log.csv --noise noise.json -o {out}": (".xlsx", ("log.csv", "noise.json")),
    "find-issues data.csv --model model.txt --method sour -o i.csv --picture {out}": (".png", ("model.txt",)),
    "clean data.csv issues.csv -o {out}": (".txt", ("data.csv", "issues.csv")),
    "train data.csv --valid valid.csv -o {out}": (".txt", ("data.csv", "valid.csv")),
    "train data.csv --model robust --gold sheet.csv -o {out}": ("", ("sheet.csv",)),
    "predict model.txt data.csv -o {out}": (".npy", ("model.txt", "data.csv")),
    "corrupt data.csv --matrix noise.json -o {out}": (".parquet", ("data.csv", "noise.json")),
    "clicks data.csv --scores scores.txt -o {out}": (".csv", ("data.csv", "scores.txt")),
    "gold sample data.csv --strategy doubt --doubt scores.txt -o {out}": (
        ".xlsx",
        ("data.csv", "scores.txt"),
    ),
    "gold read sheet.csv data.csv -o {out}": (".json", ("sheet.csv", "data.csv")),
    "gold read sheet.csv data.csv --html {out}": (".html", ("sheet.csv", "data.csv")),
    "annotators sheet.csv -o {out}": (".csv", ("sheet.csv",)),
    "annotators sheet.csv --again {out}": (".xlsx", ("sheet.csv",)),
    "annotators sheet.csv --html {out}": (".html", ("sheet.csv",)),
    "find-issues data.csv -o i.csv --html {out}": (".html", ("data.csv",)),
    "evaluate data.csv scores.txt --per-query {out}": (".tsv", ("data.csv", "scores.txt")),
    "runs export {out} --store runs.sqlite": (".csv", ("runs.sqlite",)),
    "reproduce mine.toml --report {out}": (".html", ("mine.toml",)),
    "reproduce mine.toml --markdown {out}": (".md", ("mine.toml",)),
}  # fmt: skip
FILES = (
    "data.csv",
    "valid.csv",
    "sheet.csv",
    "truth.csv",
    "log.csv",
    "noise.json",
    "model.txt",
    "issues.csv",
)
FILES += ("scores.txt", "runs.sqlite", "mine.toml")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of these names; what they hold does not matter, since outputs are looked at first."""
    folder = tmp_path_factory.mktemp("outputs")
    for name in FILES:
        (folder / name).write_text(f"this is {name}")
    return folder


def state(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("command", COMMANDS)
def test_hostile_outputs_are_refused_before_the_work(cli, folder, monkeypatch, command):
    monkeypatch.chdir(folder)
    suffix, inputs = COMMANDS[command]
    there = folder / f"there{suffix}"
    there.write_text("precious")
    makes_folders, takes_folders = "reproduce" in command, "runs export" in command
    hostile = [
        *([] if makes_folders else [(f"nowhere/new{suffix}", "does not exist")]),
        (there.name, "must not exist yet"),
        *([] if takes_folders else [(".", "output must be|is a folder")]),
        (f"new{'.npz' if suffix == '.json' else '.json'}", "Change its ending"),
    ]
    for out, message in hostile:
        refused(cli, folder, command.format(out=out), message)
    for name in inputs:
        for link, make in ((f"soft{suffix}", os.symlink), (f"hard{suffix}", os.link)):
            make(folder / name, folder / link)
            refused(cli, folder, f"{command.format(out=link)} --force", "must differ from every input")
            (folder / link).unlink()
    with monkeypatch.context() as patch:
        patch.setattr("os.access", lambda path, mode, **_: not mode & os.W_OK)
        refused(cli, folder, command.format(out=f"new{suffix}"), "must be writable")
    there.unlink()


def refused(cli, folder, command, message):
    before = state(folder)
    done = cli(*command.split())
    assert done.code == 2, (command, done)
    assert re.search(message, done.err), (command, done.err)
    assert "Traceback" not in done.err
    assert state(folder) == before


def test_devices_are_no_outputs(cli, folder, monkeypatch):
    monkeypatch.chdir(folder)
    done = cli("train", "data.csv", "-o", "/dev/null", "--force")
    assert (done.code, "must be a file" in done.err) == (2, True)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """A folder with data whose query ids are formulas."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = cr.make_ranking(8, 4, docs_per_query=(8, 0.1), seed=1)
    names = ["=1+1", "=HYPERLINK(1)", "@x", "+a", "-b", "'=c", "d", "-3"]
    data = cr.from_arrays(
        made.X, made.y, qid=np.repeat(names, made.lengths), doc_ids=[f"=cmd|{i}" for i in range(made.n_docs)]
    )
    cr.write_data(data, "data.parquet")
    np.savetxt("scores.txt", made.X[:, 0])
    return tmp_path


def test_formulas_are_escaped_in_what_people_open_and_matched_when_it_comes_back(cli, judged):
    assert cli("gold", "sample", "data.parquet", "--n", 12, "-o", "sheet.csv", "--show-given").code == 0
    assert cli("gold", "sample", "data.parquet", "--n", 12, "-o", "sheet.xlsx").code == 0
    assert cli("evaluate", "data.parquet", "scores.txt", "--per-query", "queries.csv").code == 0
    assert cli("corrupt", "data.parquet", "--rate", 0.2, "-o", "noisy.parquet").code == 0
    done = cli(
        "find-issues",
        "noisy.parquet",
        "-o",
        "issues.csv",
        "--truth",
        "noisy.parquet.truth.csv",
        "--method",
        "by-grade",
        "--noise",
        "uniform:.2",
    )
    assert done.code == 0, done.err
    done = cli(
        "clean",
        "noisy.parquet",
        "issues.csv",
        "-o",
        "clean.parquet",
        "--mode",
        "reweight",
        "--min-doubt",
        1e-9,
    )
    assert done.code == 0, done.err
    for name in ("sheet.csv", "queries.csv", "noisy.parquet.truth.csv", "issues.csv"):
        text = (judged / name).read_text(encoding="utf-8")
        assert text.startswith("\ufeff"), name
        assert "'=1+1" in text, name
        cells = [cell for line in text[1:].splitlines() for cell in line.replace('"', "").split(",")]
        assert not [cell for cell in cells if cell[:1] in tuple("=+@") or cell[:2] == "-b"], name
    lines = (judged / "sheet.csv").read_text(encoding="utf-8").splitlines()
    (judged / "sheet.csv").write_text("\n".join([lines[0], *(line.rstrip(",") + ",1" for line in lines[1:])]))
    done = cli("gold", "read", "sheet.csv", "data.parquet", "-o", "noise.json")
    assert done.code == 0, done.err


def test_tables_keep_the_names_of_their_columns(cli, tmp_path, monkeypatch):
    """What corrupt and clean write is read with the options that the clean table needs."""
    monkeypatch.chdir(tmp_path)
    data = cr.make_ranking(30, 3, docs_per_query=10, grades=[0.5, 0.3, 0.2], seed=1)
    frame = to_frame(data).rename(columns={"label": "grade", "qid": "query"})
    features = frame.columns[2:]
    frame.assign(url=[f"u{i}" for i in range(len(frame))]).to_csv("shop.csv", index=False)
    names = ("--label", "grade", "--qid", "query", "--doc-id", "url")
    done = cli("corrupt", "shop.csv", *names, "--rate", "0.3", "-o", "noisy.csv", "--json")
    assert done.code == 0, done.err
    record = json.loads(done.out)
    assert " ".join(names) in record["command"]
    first = Path("noisy.csv").read_bytes()
    assert cli(*shlex.split(record["command"])[1:], "--force").code == 0
    assert Path("noisy.csv").read_bytes() == first
    truth = ("--truth", "noisy.csv.truth.csv", "--option", "folds=2")
    done = cli("find-issues", "noisy.csv", *names, *truth, "-o", "issues.csv", "--json")
    assert done.code == 0, done.err
    assert "quality" in json.loads(done.out)
    done = cli("clean", "noisy.csv", "issues.csv", *names, "--min-doubt", "0.9", "-o", "clean.parquet")
    assert done.code == 0, done.err
    for table in (pd.read_csv("noisy.csv"), pd.read_parquet("clean.parquet")):
        assert set(table.columns) == {"grade", "query", "url", *features}
