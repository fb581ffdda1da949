import contextlib
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from types import SimpleNamespace
from unittest import mock

import pandas as pd
import pytest

from cleanrank.cli.main import main

RECIPE = """\
# cleanrank reproduce recipes/toys/tiny.toml
title = "A tiny grid"
measures = ["ndcg@10", "map:letor"]
seeds = [1, 2]
baseline = "chance"

[[data]]
name = "synthetic"
options = { n_queries = 40, n_features = 5, docs_per_query = 6.0 }

[[methods]]
label = "chance"
method = "random"

[[methods]]
label = "a feature"
method = "one_feature"

[quick]
seeds = [1]
"""
MAIN = [sys.executable, "-c", "from cleanrank.cli.main import main; main()"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("work") / "recipes" / "toys" / "tiny.toml"
    path.parent.mkdir(parents=True)
    path.write_text(RECIPE)
    path.with_name("bad.toml").write_text(
        RECIPE.replace('method = "random"', 'method = "lambdarank"\nparams = { num_leaves = 1 }')
    )
    path.with_name("long.toml").write_text(RECIPE.replace("seeds = [1, 2]", f"seeds = {list(range(3000))}"))
    return path.parents[2]


def cleanrank(folder, *arguments, typed=""):
    """Runs a command in this process; returns its exit code and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["cleanrank", *arguments]),
        mock.patch.object(sys, "stdin", io.StringIO(typed)),
    ):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())


@pytest.fixture(scope="module")
def ran(folder):
    done = cleanrank(folder, "reproduce", "toys/tiny", "--jobs", "2", "--json")
    assert done.returncode == 0, done.stderr
    return done


def test_a_run_prints_figures_and_writes_the_report(folder, ran):
    shown = json.loads(ran.stdout)
    assert (shown["tally"]["total"], shown["tally"]["done"]) == (4, 4)
    assert {(r["method"], r["measure"], r["state"]) for r in shown["rows"]} == {
        (m, k, "complete") for m in ("chance", "a feature") for k in ("ndcg@10", "map:letor")
    }
    assert "report: .cleanrank/reports/toys-tiny.html" in ran.stderr
    assert "A tiny grid" in (folder / ".cleanrank" / "reports" / "toys-tiny.html").read_text()


def test_pictures_and_a_markdown_page_on_request(folder, ran):
    done = cleanrank(folder, "reproduce", "toys/tiny", "--pictures", "new/p", "--markdown", "new/m/page.md")
    assert done.returncode == 0, done.stderr
    assert "4 pictures: new/p" in done.stderr
    assert {p.name for p in (folder / "new" / "p").iterdir()} == {
        f"{m}-bars.{e}" for m in ("ndcg-10", "map-letor") for e in ("png", "svg")
    }
    assert (folder / "new" / "m" / "page.md").read_text().startswith("# A tiny grid")


def test_a_second_run_computes_nothing(folder, ran):
    again = cleanrank(folder, "reproduce", "recipes/toys/tiny.toml", "--only", "seed=2")
    assert again.returncode == 0
    assert "2 cells: 2 were stored, 0 computed, 0 failed" in again.stderr
    assert "a feature" in again.stdout


def test_a_failed_cell_makes_the_exit_code_1(folder, ran):
    done = cleanrank(folder, "reproduce", "toys/bad", "--store", "bad.sqlite", "--jobs", "1")
    assert done.returncode == 1
    assert "4 cells: 0 were stored, 2 computed, 2 failed" in done.stderr
    key = done.stderr.partition("cleanrank runs show ")[2][:12]
    shown = cleanrank(folder, "runs", "show", key, "--store", "bad.sqlite")
    assert "Traceback" in shown.stdout
    again = cleanrank(folder, "reproduce", "toys/bad", "--store", "bad.sqlite", "--jobs", "1")
    assert again.returncode == 1
    assert "2 were stored, 0 computed, 2 failed" in again.stderr
    asked = cleanrank(folder, "runs", "gc", "--store", "bad.sqlite", typed="n\n")
    assert asked.returncode == 1
    assert "2 x superseded failure" in asked.stderr
    assert "removed 2 results" in cleanrank(folder, "runs", "gc", "--yes", "--store", "bad.sqlite").stderr
    assert "nothing to remove" in cleanrank(folder, "runs", "gc", "--store", "bad.sqlite").stderr
    assert "2 x failure" in cleanrank(folder, "runs", "gc", "--failed", "-y", "--store", "bad.sqlite").stderr


def test_where_every_cell_failed_the_report_says_so(folder):
    given = ("--only", "method=chance", "--store", "all bad.sqlite", "--report", "bad.html", "--json")
    done = cleanrank(folder, "reproduce", "toys/bad", *given)
    assert done.returncode == 1
    assert {(r["state"], r["mean"]) for r in json.loads(done.stdout)["rows"]} == {("failed", None)}
    assert "--store 'all bad.sqlite')" in done.stderr
    assert "num_leaves" in (folder / "bad.html").read_text()


def test_runs_are_listed_shown_and_exported(folder, ran):
    assert json.loads(cleanrank(folder, "runs", "list", "--json").stdout) == [
        {"recipe": "toys/tiny", "cells": 4, "done": 4, "failed": 0}
    ]
    rows = json.loads(cleanrank(folder, "runs", "list", "toys/tiny", "--json").stdout)
    assert sorted((r["method"], r["seed"]) for r in rows) == [
        ("a feature", 1),
        ("a feature", 2),
        ("chance", 1),
        ("chance", 2),
    ]
    shown = json.loads(cleanrank(folder, "runs", "show", rows[0]["key"], "--json").stdout)
    assert shown["status"] == "done"
    assert shown["cell"]["method"] == rows[0]["method"]
    done = cleanrank(folder, "runs", "export", "runs.parquet", "--recipe", "toys/tiny")
    assert "8 rows in runs.parquet" in done.stderr
    assert len(pd.read_parquet(folder / "runs.parquet")) == 8


def test_exports_of_two_runs_differ_in_times_only(folder, ran):
    for store in ("one", "two"):
        cleanrank(folder, "reproduce", "toys/tiny", "--store", f"{store}.sqlite", "--jobs", "2")
        cleanrank(folder, "runs", "export", f"{store}.parquet", "--store", f"{store}.sqlite")
    one, two = (pd.read_parquet(folder / f"{s}.parquet") for s in ("one", "two"))
    told = [c for c in one if not c.endswith(("_seconds", "_at"))]
    assert len(told) == len(one.columns) - 2
    pd.testing.assert_frame_equal(one[told], two[told], check_exact=True)


def test_the_matrix_has_every_figure_and_a_reason_where_there_is_none(folder, ran):
    done = cleanrank(folder, "reproduce", "--matrix", "--json", "--markdown", "matrix.md")
    lines = json.loads(done.stdout)["figures"]
    assert len(lines) == 615, done.stderr
    keys = ["source", "table", "row", "column", "expected", "observed", "verdict", "data", "why", "recipe"]
    assert all(list(line)[: len(keys)] == keys for line in lines)
    assert all(line["why"] for line in lines if line["observed"] is None)
    assert {line["data"] for line in lines} <= {"real", "stand-in", None}
    directions = {line["verdict"] for line in lines if line["data"] == "stand-in"}
    assert directions == {"same direction", "opposite direction"}
    assert (folder / ".cleanrank" / "reports" / "matrix.html").is_file()
    assert (folder / "matrix.md").read_text(encoding="utf-8").count("\n| ") > 615


@pytest.mark.parametrize(
    "words",
    ["toys/tiny", "--jobs 1", "--only seed=1", "--quick", "--engine dask", "--pictures drawn", "--recompute"],
)
def test_beside_the_matrix_nothing_that_runs_is_taken(folder, words):
    done = cleanrank(folder, "reproduce", "--matrix", *words.split())
    assert done.returncode == 2
    assert "must not be given with --matrix, which computes nothing" in " ".join(done.stderr.split())


def test_export_to_a_folder_writes_what_travels(folder, ran):
    cleanrank(folder, "runs", "export", "travel", "--recipe", "toys/tiny", "--values")
    frame = pd.read_parquet(folder / "travel" / "toys" / "tiny.parquet")
    assert frame["values"].map(len).min() > 1
    (first, *_) = known = sorted(set(frame["measure"]))
    cleanrank(folder, "runs", "export", "some.csv", "--recipe", "toys/tiny", "--measure", first)
    assert set(pd.read_csv(folder / "some.csv")["measure"]) == {first} < set(known)
    wrong = cleanrank(folder, "runs", "export", "other.csv", "--measure", "precision@999")
    assert "unknown measure 'precision@999'" in wrong.stderr


def test_export_to_a_folder_adds_to_what_is_there(folder, ran):
    path = folder / "added" / "toys" / "tiny.parquet"

    def exported(seed, *options):
        store = f"seed {seed}.sqlite"
        cleanrank(folder, "reproduce", "toys/tiny", "--store", store, "--only", f"seed={seed}", "--jobs", "1")
        cleanrank(folder, "runs", "export", "added", "--store", store, *options)
        frame = pd.read_parquet(path)
        return set(frame["seed"]), set(frame["measure"]), "values" in frame

    both = {"ndcg@10", "map:letor"}
    assert exported(1, "--values", "--measure", "map:letor") == ({1}, {"map:letor"}, True)
    assert exported(2) == ({1, 2}, {"map:letor"}, True)
    assert exported(2, *(word for m in both for word in ("--measure", m))) == ({1, 2}, both, True)
    assert exported(2, "--force") == ({2}, both, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("reproduce",), "name a recipe"),
        (("reproduce", "toys/tyni"), "Did you mean toys/tiny"),
        (("reproduce", "toys/tiny", "--only", "metod=x"), "unknown filter 'metod'. Did you mean 'method'"),
        (("reproduce", "toys/tiny", "--engine", "ray"), "unknown engine 'ray'"),
        (("reproduce", "toys/tiny", "--scheduler", "tcp://x"), "Add --engine dask"),
        (("reproduce", "recipes/toys"), "there is no recipe"),
        (("reproduce", "toys/tiny", "--store", "recipes/toys/tiny.toml/x"), "store must be usable"),
        (("runs", "list", "--store", "nowhere.sqlite"), "store must be an existing file"),
        (("reproduce", "--matrix", "--store", "nowhere.sqlite"), "store must be an existing file"),
        (("runs", "show", "zz"), "must be the start of one stored key; got 'zz', which fits 0"),
        (("runs", "list", "toys/tinny"), "unknown recipe 'toys/tinny'"),
        (("runs", "export", "runs.xls"), "output must be .csv, .tsv, .parquet, .xlsx; got 'runs.xls'"),
    ],
)
def test_mistakes_exit_with_2_and_one_message(folder, ran, arguments, message):
    store = () if "--store" in arguments or "runs" in arguments else ("--store", "fresh.sqlite")
    done = cleanrank(folder, *arguments, *store)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr


def test_interrupted_it_keeps_what_is_done_and_goes_on(folder):
    store = folder / "long.sqlite"
    command = [*MAIN, "reproduce", "toys/long", "--store", "long.sqlite", "--jobs", "2"]
    driver = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True)
    end = time.monotonic() + 300
    while time.monotonic() < end and _stored(store) < 5:
        time.sleep(0.05)
    os.killpg(driver.pid, signal.SIGINT)
    _, err = driver.communicate(timeout=120)
    assert driver.returncode == 130
    assert "The same command goes on from there" in err
    assert "Traceback" not in err
    before = _stored(store)
    assert 5 <= before < 6000
    again = cleanrank(folder, "reproduce", "toys/long", "--store", "long.sqlite", "--only", "seed=0,1,2")
    assert again.returncode == 0
    assert _stored(store) >= before


def _stored(path):
    if not path.is_file():
        return 0
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10) as db:
            return db.execute("SELECT count(*) FROM results WHERE status = 'done'").fetchone()[0]
    except sqlite3.OperationalError:  # just being made
        return 0


def test_recipes_are_listed_with_data_and_cells(folder):
    done = cleanrank(folder, "recipes", "--json")
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert rows["noise/quick"] == {
        "name": "noise/quick",
        "title": rows["noise/quick"]["title"],
        "data": "mq2008, ohsumed",
        "cells": 80,
        "quick": 8,
    }
    assert rows["toys/tiny"]["cells"] > 0
    assert json.loads(cleanrank(folder, "recipes", "recipes", "--json").stdout)[-1]["name"].startswith(
        "toys/"
    )
