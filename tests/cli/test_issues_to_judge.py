"""find-issues says what to judge next: not what was just judged, with words, documents and a price."""

import json
from dataclasses import replace

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.cli.issues import _noise
from cleanrank.data.spreadsheet import read_frame, write_frame
from cleanrank.issues.table import read_issues
from cleanrank.noise.gold_sheet import gold_answers


@pytest.fixture(scope="module")
def noisy():
    clean = cr.make_ranking(60, 5, docs_per_query=20, seed=4)
    docs = np.array([f"doc{i}" for i in range(clean.n_docs)])
    titles = np.array([f"=title, {i}" for i in range(clean.n_docs)], dtype=object)
    clean = replace(clean, doc_ids=docs, extra={"title": titles})
    return cr.corrupt(clean, "uniform", 0.15, seed=5)


@pytest.fixture
def folder(tmp_path, noisy):
    sheet = cr.sample_gold(noisy.data, 120, seed=1)
    gold = {"Row_ID": sheet.row_ids, "true_grade": noisy.true_labels[sheet.rows]}
    import pandas as pd

    write_frame(pd.DataFrame(gold), tmp_path / "gold.xlsx")
    cr.write_data(noisy.data, tmp_path / "data.parquet")
    return tmp_path


@pytest.mark.parametrize("suffix", ["csv", "xlsx", "parquet"])
def test_the_table_lists_what_to_judge_next(cli, folder, noisy, suffix):
    out = folder / f"issues.{suffix}"
    words = ("find-issues", folder / "data.parquet", "--gold", folder / "gold.xlsx", "-o", out, "--json")
    done = cli(*words, "--option", "folds=3", "--top", 60, "--judge-cost", "0.1", "--budget", 20)
    assert done.code == 0, done.err
    record = json.loads(done.out)
    frame = read_frame(out)
    judged = set(read_frame(folder / "gold.xlsx")["Row_ID"].tolist())
    assert len(record["worst"]) == 60
    assert not judged & {each["row_id"] for each in record["worst"]}
    assert record["worst"][0]["doc_id"] == noisy.data.doc_ids[record["worst"][0]["row_id"]]
    # The most doubted first, those judged already last; every issue has its sentence.
    unjudged = frame[~frame["row_id"].isin(judged)]
    assert frame["rank"].tolist() == list(range(1, len(frame) + 1))
    assert frame["judged"].tolist() == [False] * len(unjudged) + [True] * len(judged)
    assert (np.diff(unjudged["doubt"]) <= 0).all()
    assert (frame.loc[frame["is_label_issue"], "why"].str.startswith("graded ")).all()
    assert frame["why"].notna().sum() >= 1000
    assert frame["title"].tolist() == noisy.data.extra["title"][frame["row_id"]].tolist()
    # Everything that clean needs is read back, in any order.
    write_frame(frame.sample(frac=1, random_state=0), out)
    table = read_issues(out).aligned(noisy.data)
    direct = cr.find_label_issues(noisy.data, gold=folder / "gold.xlsx", folds=3)
    assert table.doubt == pytest.approx(direct.doubt)
    assert table.reasons.keys() == direct.reasons.keys()
    # What judging again costs and wins.
    plans = record["rejudging"]
    assert [(plan["rows"], plan["cost"]) for plan in plans][-1] == (200, 20.0)
    assert all(plan["low"] <= plan["wrong"] <= plan["high"] for plan in plans)


def test_the_seed_draws_the_matrices_that_gold_rows_allow(noisy):
    answers = gold_answers((np.arange(90), noisy.true_labels[:90]), noisy.data)
    draws = [_noise(None, answers, noisy.data, seed).draws for seed in (0, 3)]
    assert not np.array_equal(*draws)
    np.testing.assert_array_equal(draws[1], answers.estimate(noisy.data, seed=3).draws)


def test_without_an_issue_the_most_doubted_are_shown(cli, tmp_path):
    clean = cr.make_ranking(30, 5, docs_per_query=10, seed=4)
    cr.write_letor(clean, tmp_path / "clean.txt")
    out, page = tmp_path / "i.csv", tmp_path / "i.html"
    words = ("--method", "contradictions", "--top", 5, "--html", page)
    done = cli("find-issues", tmp_path / "clean.txt", "-o", out, *words)
    assert done.code == 0, done.err
    assert "No label is doubted enough to act on; these are the most doubted." in done.err
    assert "signal of the features" not in done.err  # this method has none
    assert [" graded " in line for line in done.out.splitlines()[-6:]] == [False, *[True] * 5]
    assert "No label is doubted enough" in page.read_text()
    assert "they are no probabilities" in page.read_text()
    page.write_text("mine")
    again = cli("find-issues", tmp_path / "clean.txt", "-o", tmp_path / "j.csv", *words)
    assert again.code == 2
    assert "must not exist yet" in again.err


def test_the_signal_of_the_features_is_told(cli, folder):
    words = ("--method", "confident", "--option", "folds=2")
    done = cli("find-issues", folder / "data.parquet", "-o", folder / "i.csv", *words)
    assert "signal of the features, out of fold: " in done.err
    assert "out of fold: None" not in done.err


def test_a_price_needs_probabilities(cli, folder):
    words = ("find-issues", folder / "data.parquet", "-o", folder / "i.csv", "--judge-cost", "1")
    done = cli(*words)
    assert done.code == 2
    assert "--gold or --noise" in done.err
    assert cli(*words, "--method", "confident", "--noise", "uniform:.1").code == 2
    done = cli("find-issues", folder / "data.parquet", "-o", folder / "i.csv", "--budget", "1")
    assert "goes with --judge-cost" in done.err


def test_the_page_holds_rows_reasons_and_prices_and_escapes_ids(cli, tmp_path):
    noisy = cr.corrupt(cr.make_ranking(30, 4, docs_per_query=20, seed=4), "uniform", 0.2, seed=5)
    docs = np.array([f"<script>{i}</script>" for i in range(noisy.data.n_docs)])
    titles = np.array([f"a title & {i}" for i in range(noisy.data.n_docs)])
    cr.write_data(replace(noisy.data, doc_ids=docs, extra={"title": titles}), tmp_path / "data.csv")
    page = tmp_path / "page.html"
    words = ("-o", tmp_path / "i.csv", "--noise", "uniform:.2", "--judge-cost", 2, "--html", page)
    done = cli("find-issues", tmp_path / "data.csv", *words, "--option", "folds=2")
    assert done.code == 0, done.err
    text = page.read_text()
    for part in (
        "What to judge next",
        "ranked",
        "Issues by given grade",
        "pNoise after",
        "200.00",
        "Signal of the features",
        f"10 of {noisy.data.n_docs:,} labels are listed here; i.csv has all of them.",
        "Doubt is the probability that the label is wrong",
        "a title &amp; ",
        'data-name="given"',
    ):
        assert part in text
    assert "&lt;script&gt;" in text
    assert "<script>1" not in text
