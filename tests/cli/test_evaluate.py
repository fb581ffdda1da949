import json

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr


@pytest.fixture
def files(tmp_path, toy):
    cr.write_letor(toy, tmp_path / "data.txt")
    data = cr.read_letor(tmp_path / "data.txt", cache=False)
    rng = np.random.default_rng(1)
    for name, noise in (("good", 0.5), ("bad", 5.0)):
        np.savetxt(tmp_path / f"{name}.txt", data.y + noise * rng.normal(size=data.n_docs))
    return tmp_path


def test_evaluate_prints_the_library_s_own_figures(cli, files):
    done = cli("evaluate", files / "data.txt", files / "good.txt", "-m", "ndcg@5", "-m", "map:skip", "--json")
    rows = {row["measure"]: row for row in json.loads(done.out)["measures"]}
    data = cr.read_letor(files / "data.txt", cache=False)
    expected = cr.evaluate(np.loadtxt(files / "good.txt"), data, ["ndcg@5", "map:skip"])
    for measure, mean in expected.means.items():
        assert rows[measure]["mean"] == mean
        assert rows[measure]["interval"] == list(expected.intervals()[measure])
    assert done.code == 0
    half = cli("evaluate", files / "data.txt", files / "good.txt", "-m", "ndcg@5", "--level", "0.5", "--json")
    assert json.loads(half.out)["measures"][0]["interval"] == list(expected.intervals(0.5)["ndcg@5"])


def test_the_table_goes_to_stdout_and_the_conventions_to_stderr(cli, files):
    done = cli("evaluate", files / "data.txt", files / "good.txt", "-m", "ndcg@5:letor")
    assert "ndcg@5:letor" in done.out
    assert "discount 1 at rank 1" in done.err
    assert "discount" not in done.out


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_values_per_query_are_written(cli, files, suffix):
    target = files / f"values.{suffix}"
    cli("evaluate", files / "data.txt", files / "good.txt", "-m", "mrr", "--per-query", target)
    frame = pd.read_csv(target) if suffix == "csv" else pd.read_parquet(target)
    assert list(frame.columns) == ["query_id", "mrr"]
    assert len(frame) == 40


def test_evaluate_against_noisy_labels(cli, files):
    done = cli(
        "evaluate", files / "data.txt", files / "good.txt", "-m", "dcg@5", "--noise", "uniform:0.2", "--json"
    )
    row = json.loads(done.out)["measures"][0]
    assert row["interval"][0] < row["corrected"] < row["interval"][1]
    assert row["corrected"] != row["as_labelled"]
    refused = cli(
        "evaluate", files / "data.txt", files / "good.txt", "-m", "ndcg@5", "--noise", "uniform:0.2"
    )
    assert refused.code == 2
    assert "ndcg" in refused.err


def test_qrels_and_a_run(cli, tmp_path):
    (tmp_path / "qrels").write_text("q 0 a 1\nq 0 b 0\n")
    (tmp_path / "run").write_text("q Q0 b 1 2.0 t\nq Q0 a 2 1.0 t\n")
    done = cli("evaluate", tmp_path / "qrels", tmp_path / "run", "-m", "mrr", "--json")
    assert json.loads(done.out)["measures"][0]["mean"] == 0.5


@pytest.mark.parametrize("form", ["markdown", "latex", "json", "table"])
def test_compare_in_every_form(cli, files, form):
    done = cli(
        "compare", files / "data.txt", f"bad={files / 'bad.txt'}", f"good={files / 'good.txt'}",
        "-m", "ndcg@5", "--permutations", "999", "--format", form,
    )  # fmt: skip
    assert done.code == 0, done.err
    data = cr.read_letor(files / "data.txt", cache=False)
    systems = {name: np.loadtxt(files / f"{name}.txt") for name in ("bad", "good")}
    wanted = cr.compare(systems, data, "ndcg@5", permutations=999, order="input")
    for name, mean in zip(wanted.systems, wanted.means[:, 0], strict=True):
        assert name in done.out
        assert f"{mean:.4f}".lstrip("0")[:4] in done.out
    if form == "json":
        rows = json.loads(done.out)["rows"]
        assert [row["mean"] for row in rows] == wanted.means[:, 0].tolist()
        assert rows[1]["p"] == wanted.p_values[1, 0]


def test_explain_shows_conventions_and_reasons(cli, files):
    done = cli("explain-ndcg", "--grades", "0,2,1,0", "-k", "3")
    assert done.code == 0, done.err
    for word in ("lightgbm", "letor", "linear", "trec"):
        assert word in done.out
    one = cli("explain-ndcg", files / "data.txt", files / "good.txt", "--query", "3", "--json")
    data = cr.read_letor(files / "data.txt", cache=False)
    values = cr.evaluate(np.loadtxt(files / "good.txt"), data, ["ndcg@10", "ndcg@10:letor"], order="input")
    place = data.query_ids.tolist().index(3)
    shown = json.loads(one.out)["values"]
    assert shown["lightgbm"] == pytest.approx(values["ndcg@10"][place])
    assert shown["letor"] == pytest.approx(values["ndcg@10:letor"][place])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("evaluate", "{dir}/none.txt", "{dir}/good.txt"), "there is no file"),
        (("evaluate", "{dir}/data.txt", "{dir}/good.txt", "-m", "ndgc@5"), "Did you mean 'ndcg'"),
        (("evaluate", "{dir}/data.txt", "{dir}/short.txt"), "one score per row"),
        (("compare", "{dir}/data.txt", "a={dir}/good.txt"), "at least two systems"),
        (("compare", "{dir}/data.txt", "{dir}/good.txt", "{dir}/good.txt"), "names of their own"),
        (("compare", "{dir}/data.txt", "={dir}/good.txt", "b={dir}/good.txt"), "NAME=SCORES"),
        (
            ("evaluate", "{dir}/data.txt", "{dir}/good.txt", "--per-query", "{dir}/a.xls"),
            ".csv, .tsv, .parquet, .xlsx",
        ),
        (("evaluate", "{dir}/data.txt", "{dir}/good.txt", "--label", "grade"), "CSV or Parquet"),
        (("explain-ndcg",), "DATA SCORES --query ID or as --grades"),
        (("explain-ndcg", "--grades", "1,x"), "whole numbers"),
        (("explain-ndcg", "{dir}/data.txt", "{dir}/good.txt", "--query", "x"), "unknown query 'x'"),
    ],
)
def test_bad_input_gets_a_sentence_and_exit_code_2(cli, files, words, message):
    (files / "short.txt").write_text("1\n2\n")
    done = cli(*(word.format(dir=files) for word in words))
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


def test_names_of_systems_are_printed_as_they_are(cli, files):
    systems = (f"bm25[k1]={files / 'bad.txt'}", f":x:={files / 'good.txt'}")
    done = cli("compare", files / "data.txt", *systems, "--level", "0.975")
    assert "bm25[k1]" in done.out
    assert ":x:" in done.out
    assert "97.5% interval" in done.out


def test_what_a_join_leaves_out_is_noted(cli, tmp_path):
    (tmp_path / "qrels").write_text("q 0 a 1\nq 0 b 0\nother 0 a 1\n")
    (tmp_path / "run").write_text("q Q0 b 1 2.0 t\n")
    done = cli("evaluate", tmp_path / "qrels", tmp_path / "run", "-m", "mrr", "--json")
    assert json.loads(done.out)["queries"] == 2
    assert "1 judged topics are not answered: other" in done.err
    assert "2 judged ones not retrieved (never found)" in done.err
    shared = cli("evaluate", tmp_path / "qrels", tmp_path / "run", "--topics", "shared", "--json")
    assert json.loads(shared.out)["queries"] == 1
    assert "left out: other" in shared.err


def test_ties_of_trec_eval_follow_the_document_ids(cli, tmp_path):
    (tmp_path / "data.txt").write_text("0 qid:1 1:1 # docid = z\n1 qid:1 1:1 # docid = a\n")
    (tmp_path / "s.txt").write_text("1\n1\n")
    tools = json.loads(cli("explain-ndcg", tmp_path / "data.txt", tmp_path / "s.txt", "--json").out)["tools"]
    assert tools["ir_measures nDCG"] == pytest.approx(1 / np.log2(3))


def test_columns_of_a_table_are_named(cli, tmp_path):
    (tmp_path / "a.csv").write_text("grade,query,x\n1,7,2\n0,7,3\n")
    (tmp_path / "s.txt").write_text("1\n2\n")
    named = ("--label", "grade", "--qid", "query", "-m", "mrr", "--json")
    done = cli("evaluate", tmp_path / "a.csv", tmp_path / "s.txt", *named)
    assert json.loads(done.out)["measures"][0]["mean"] == 0.5


def test_soft_grades_go_from_the_file_to_the_objective_and_the_measures(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"qid": np.repeat(np.arange(20), 15), "a": rng.normal(size=300)})
    table["b"] = rng.normal(size=300)
    # The likeliest grade is 0 everywhere: only the shares of grade 2 say what is relevant.
    table["p2"] = 0.4 / (1 + np.exp(-3 * table.b))
    table = table.assign(p0=1 - table.p2, p1=0.0, gains=3 * table.p2)
    table.to_csv("soft.csv", index=False)
    soft = "--features a,b --distribution p0,p1,p2"
    assert cli(*f"train soft.csv {soft} --trees 20 --min-docs 5 -o model.txt".split()).code == 0
    assert cli("predict", "model.txt", "soft.csv", "-o", "scores.txt").code == 0
    done = cli(*f"evaluate soft.csv scores.txt {soft} -m dcg@5 -m ndcg@5 --json".split())
    dcg, ndcg = (each["mean"] for each in json.loads(done.out)["measures"])
    assert ndcg > 0.9
    ranked = table.assign(score=np.loadtxt("scores.txt")).sort_values(
        ["qid", "score"], ascending=[True, False]
    )
    top = ranked.gains.to_numpy().reshape(20, 15)[:, :5] / np.log2(np.arange(2, 7))
    assert dcg == pytest.approx(top.sum(axis=1).mean())
    by_gains = cli(*f"evaluate soft.csv scores.txt {soft[:14]} --gains gains --label p1 -m dcg@5".split())
    assert f"{dcg:.4f}" in by_gains.out
    assert "Gains are those of the data" in by_gains.err
