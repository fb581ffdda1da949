import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.issues.table import read_issues
from cleanrank.noise.profiles import uniform
from cleanrank.rankers.trees import TreeParams

EASY = ("--option", "folds=3", "--noise", "uniform:.2")
QUICK = ("--method", "sour", "--start", "3", "--end", "8")


@pytest.fixture
def noisy(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cr.write_letor(cr.make_ranking(40, 6, docs_per_query=20, signal=0.95, seed=0), tmp_path / "clean.txt")
    assert cli("corrupt", "clean.txt", "--rate", ".2", "-o", "noisy.txt").code == 0
    return cr.read_data("noisy.txt")


def test_find_issues_writes_what_the_function_finds(cli, noisy, tmp_path):
    done = cli("find-issues", "noisy.txt", *QUICK, "-o", "issues.csv")
    assert done.code == 0, done.err
    issues = read_issues("issues.csv")
    wanted = cr.find_label_issues(noisy, "sour", start=3, end=8)
    np.testing.assert_array_equal(issues.doubt, wanted.doubt)
    np.testing.assert_array_equal(issues.is_label_issue, wanted.is_label_issue)
    assert f"{wanted.n_issues} of {len(wanted)} labels are doubted" in done.err
    assert "given grade" in done.out


def test_find_issues_measures_against_the_truth(cli, noisy):
    done = cli(
        "find-issues", "noisy.txt", *QUICK, "-o", "issues.parquet", "--truth", "noisy.txt.truth.csv", "--json"
    )
    assert done.code == 0, done.err
    quality = json.loads(done.out)["quality"]
    changed = pd.read_csv("noisy.txt.truth.csv").eval("true_grade != given_grade")
    assert quality["all"]["base_rate"] == pytest.approx(changed.mean())
    shown = cli("find-issues", "noisy.txt", *QUICK, "-o", "b.csv", "--truth", "noisy.txt.truth.csv")
    assert "average precision" in shown.out


@pytest.mark.parametrize(
    "words", ["--method isolation", "--method last-sour --end 5", "--option rule=reference"]
)
def test_other_detectors_and_options(cli, noisy, words):
    done = cli(
        "find-issues", "noisy.txt", *words.split(), *(QUICK if "option" in words else ()), "-o", "i.csv"
    )
    assert done.code == 0, done.err
    assert len(read_issues("i.csv")) == noisy.n_docs


def test_the_default_shows_the_worst_labels_with_reasons(cli, noisy):
    done = cli("find-issues", "noisy.txt", "-o", "issues.csv", "--top", "3", *EASY)
    assert done.code == 0, done.err
    wanted = cr.find_label_issues(noisy, noise=uniform(0.2, 5), folds=3)
    np.testing.assert_allclose(read_issues("issues.csv").doubt, wanted.doubt)
    assert "neighbours are graded" in done.out
    assert "by models that never saw it" in done.out
    shown = cli("find-issues", "noisy.txt", "-o", "b.csv", "--top", "3", *EASY, "--json")
    worst = json.loads(shown.out)["worst"]
    assert [each["row_id"] for each in worst] == wanted.worst(3).row_id.tolist()
    assert worst == [each.to_json() for each in wanted.explain(noisy, 3)]


def test_known_noise_comes_from_a_family_a_file_an_estimate_or_gold_rows(cli, noisy, tmp_path):
    T = cr.corrupt(noisy, rate=0.2).profile.matrix
    (tmp_path / "noise.json").write_text(json.dumps(T.tolist()))
    sheet = cr.sample_gold(noisy, 60, seed=0)
    truth = pd.read_csv("noisy.txt.truth.csv").set_index("row_id").true_grade
    estimate = cr.estimate_noise(noisy, gold=(sheet.row_ids, truth[sheet.row_ids]))
    estimate.save(tmp_path / "estimate.json")
    doubts = {}
    for words, noise in (("uniform:.2", T), ("noise.json", T), ("estimate.json", estimate)):
        done = cli(
            "find-issues", "noisy.txt", "--noise", words, "--option", "folds=3", "-o", "i.csv", "--force"
        )
        assert done.code == 0, done.err
        doubts[words] = read_issues("i.csv").doubt
        np.testing.assert_allclose(doubts[words], cr.find_label_issues(noisy, noise=noise, folds=3).doubt)
    assert not np.allclose(doubts["noise.json"], doubts["estimate.json"])


def test_gold_rows_are_settled_and_teach_the_noise(cli, noisy, tmp_path):
    assert cli("gold", "sample", "noisy.txt", "--n", "40", "-o", "sheet.csv").code == 0
    sheet = pd.read_csv("sheet.csv", dtype=str, keep_default_na=False)
    truth = pd.read_csv("noisy.txt.truth.csv").set_index("row_id").true_grade
    sheet["true_grade"] = truth[sheet.row_id.astype(int)].to_numpy()
    sheet.to_csv("sheet.csv", index=False)
    done = cli("find-issues", "noisy.txt", "--gold", "sheet.csv", "--option", "folds=3", "-o", "i.csv")
    assert done.code == 0, done.err
    assert "answers" in done.err
    issues = read_issues("i.csv")
    rows = np.isin(issues.row_id, sheet.row_id.astype(int))
    wrong = truth[issues.row_id[rows]].to_numpy() != issues.given_label[rows]
    np.testing.assert_array_equal(issues.is_label_issue[rows], wrong)


def test_a_click_log_is_held_against_the_grades(cli, noisy):
    from cleanrank.clicks.logs import write_click_log

    log = cr.simulate_clicks(cr.read_data("clean.txt"), sessions=50, seed=0)
    write_click_log(log, "clicks.csv")
    words = ("find-issues", "noisy.txt", "--method", "clicks", "--clicks")
    done = cli(*words, "clicks.csv", "-o", "i.csv")
    assert done.code == 0, done.err
    assert "times, " in done.out
    table = pd.read_csv("clicks.csv")
    pd.concat([table, table[:1].assign(row_id=10**6)]).to_csv("more.csv", index=False)
    refused = cli(*words, "more.csv", "-o", "more-issues.csv")
    assert "Say --option unknown=skip to leave such entries out" in refused.err
    assert cli(*words, "more.csv", "-o", "more-issues.csv", "--option", "unknown=skip").code == 0
    assert pd.read_csv("more-issues.csv").equals(pd.read_csv("i.csv"))


@pytest.mark.parametrize("mode", ["drop", "relabel", "reweight"])
@pytest.mark.parametrize("out", ["out.txt", "out.parquet", "out.csv"])
def test_clean_writes_data_and_audit(cli, noisy, tmp_path, mode, out):
    assert cli("find-issues", "noisy.txt", *QUICK, "-o", "issues.csv").code == 0
    done = cli("clean", "noisy.txt", "issues.csv", "-o", out, "--mode", mode, "--by", "ada")
    assert done.code == 0, done.err
    wanted = cr.clean(noisy, cr.find_label_issues(noisy, "sour", start=3, end=8), mode)
    cleaned = cr.read_data(out)
    np.testing.assert_array_equal(cleaned.y, wanted.data.y)
    if mode == "reweight" and out != "out.csv":
        np.testing.assert_allclose(cleaned.weights, wanted.data.weights, rtol=1e-6)
    audit = json.loads((tmp_path / f"{out}.audit.json").read_text())
    assert audit["by"] == "ada"
    assert audit["changed"] == len(audit["changes"]) == len(wanted.removed)
    again = ("clean", "noisy.txt", "issues.csv", "-o", out, "--mode", mode, "--by", "bob")
    assert cli(*again).code == 2
    assert cli(*again, "--force").code == 0
    assert json.loads((tmp_path / f"{out}.audit.json").read_text())["by"] == "bob"


def test_expected_gains_are_written(cli, noisy):
    words = (
        "find-issues",
        "noisy.txt",
        "--noise",
        "uniform:.2",
        "--option",
        "folds=3",
        "-o",
        "issues.parquet",
    )
    assert cli(*words).code == 0
    done = cli("clean", "noisy.txt", "issues.parquet", "-o", "out.parquet", "--mode", "posterior")
    assert done.code == 0, done.err
    cleaned = cr.read_data("out.parquet")
    wanted = cr.clean(noisy, read_issues("issues.parquet"), "posterior").data.gains
    np.testing.assert_allclose(cleaned.gains, wanted)


def test_emptied_queries_are_reported(cli, noisy):
    table = cr.find_label_issues(noisy, "sour", start=3, end=8).to_frame().reset_index()
    table["is_label_issue"] = table.query_id == table.query_id[0]
    table.to_csv("issues.csv", index=False)
    done = cli("clean", "noisy.txt", "issues.csv", "-o", "out.txt")
    assert done.code == 0, done.err
    assert "lost all its documents" in done.err
    assert cr.read_data("out.txt").n_queries == noisy.n_queries - 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("find-issues noisy.txt --method sourr -o a.csv", "Did you mean 'sour'"),
        ("find-issues noisy.txt -o issues.csv", "must not exist yet"),
        (
            "find-issues noisy.txt --method sour --option rul=paper -o a.csv",
            "unknown option of detector 'sour' 'rul'",
        ),
        ("find-issues none.txt -o a.csv", "none.txt"),
        ("find-issues noisy.txt --method sour --noise uniform:.2 -o a.csv", "noise goes with the detectors"),
        ("find-issues noisy.txt --method posterior -o a.csv", "needs --noise"),
        ("find-issues noisy.txt --noise uniform:.2 --gold a.csv -o b.csv", "must not be given together"),
        ("find-issues noisy.txt --model m.txt -o a.csv", "goes with --method sour or last-sour"),
        ("clean noisy.txt issues.csv -o a.txt --mode dorp", "Did you mean 'drop'"),
        ("clean noisy.txt issues.csv -o noisy.txt --force", "must differ from every input"),
        ("clean clean.txt issues.csv -o a.txt", "must be the grade in data"),
        ("clean noisy.txt noisy.txt.truth.csv -o a.txt", "must have the column"),
        ("clean noisy.txt issues.csv -o none/a.txt", "does not exist"),
    ],
)
def test_mistakes_are_named_and_leave_nothing(cli, noisy, tmp_path, words, message):
    assert cli("find-issues", "noisy.txt", *QUICK, "-o", "issues.csv").code == 0
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()}
    done = cli(*words.split())
    assert done.code == 2
    assert message in done.err
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == before


def test_a_saved_forest_is_drawn_and_the_picture_needs_one(cli, tmp_path, toy):
    cr.write_letor(toy, tmp_path / "toy.txt")
    model = TreeParams(n_estimators=20, params={"num_leaves": 7, "min_data_in_leaf": 5}).train(toy)
    model.save(tmp_path / "model.txt")
    words = (
        "find-issues",
        tmp_path / "toy.txt",
        "--method",
        "sour",
        "-o",
        tmp_path / "issues.csv",
        "--cutoff",
        "3",
        "--end",
        "20",
    )
    picture = ("--picture", tmp_path / "history.png")
    refused = cli(*words, *picture)
    assert refused.code == 2
    assert "--model" in refused.err
    done = cli(*words, *picture, "--model", tmp_path / "model.txt")
    assert done.code == 0, done.err
    assert (tmp_path / "history.png").read_bytes().startswith(b"\x89PNG")


def test_a_truth_file_must_be_there_and_whole(cli, noisy):
    pd.read_csv("noisy.txt.truth.csv").iloc[:-1].to_csv("short.csv", index=False)
    for name, words in (("short.csv", "must have every row of the data"), ("none.csv", "none.csv")):
        done = cli(
            "find-issues", "noisy.txt", "--method", "isolation", "-o", "a.csv", "--force", "--truth", name
        )
        assert done.code == 2, done.err
        assert words in done.err


def test_narrow_letor_files_are_padded_for_a_saved_forest(cli, noisy):
    """SVMlight leaves zeros out: what predict pads, find-issues pads too."""
    more = (np.arange(noisy.n_docs) % 2)[:, None]
    wide = cr.from_arrays(np.hstack([noisy.X, more]), noisy.y, qid=noisy.qid)
    TreeParams(n_estimators=8, params={"min_data_in_leaf": 5}).train(wide).save("model.txt")
    zeros = cr.from_arrays(np.hstack([noisy.X, np.zeros((noisy.n_docs, 1))]), noisy.y, qid=noisy.qid)
    for method in ("sour", "last-sour"):
        done = cli(
            "find-issues", "noisy.txt", "--method", method, "--end", "8", "--model", "model.txt",
            "-o", "issues.csv", "--force",
        )  # fmt: skip
        assert done.code == 0, done.err
        wanted = cr.find_label_issues(zeros, method, end=8, model="model.txt")
        np.testing.assert_array_equal(read_issues("issues.csv").doubt, wanted.doubt)
    cr.write_letor(cr.make_ranking(5, 9, docs_per_query=5, seed=0), "wide.txt")
    done = cli("find-issues", "wide.txt", "--method", "sour", "--model", "model.txt", "-o", "a.csv")
    assert done.code == 2
    assert "wide.txt must have the 7 features that the model was trained on; got 9" in " ".join(
        done.err.split()
    )


def test_bad_files_are_named_and_nothing_is_written(cli, noisy, tmp_path):
    frame = pd.DataFrame(noisy.X, columns=list("abcdef"))
    frame.assign(label=noisy.y, qid=noisy.qid).to_parquet("rows.parquet")
    whole = (tmp_path / "rows.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    frame.assign(label=noisy.y).to_csv("no_query.csv", index=False)
    for name in ("empty.txt", "empty.csv", "empty.parquet"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "bytes.csv").write_bytes(bytes(range(256)))
    (tmp_path / "folder").mkdir()
    cr.find_label_issues(noisy, "contradictions").save("issues.csv")
    other = cr.make_ranking(30, 6, docs_per_query=20, seed=9)
    cr.find_label_issues(other, "contradictions").save("other.csv")
    TreeParams(n_estimators=2).train(noisy).save("model.txt")
    text = (tmp_path / "model.txt").read_bytes()
    (tmp_path / "cut.txt").write_bytes(text[: text.index(b"end of trees") // 2])
    before = sorted(p.name for p in tmp_path.iterdir())
    bad = ("empty.txt", "empty.csv", "empty.parquet", "cut.parquet", "no_query.csv", "folder", "none.txt")
    commands = [f"find-issues {name} --method contradictions -o out.csv" for name in bad]
    commands += [f"clean {name} issues.csv -o out.txt" for name in bad]
    commands += [f"train {name} -o out.txt" for name in bad]
    # Scores need neither labels nor queries.
    commands += [f"predict model.txt {name} -o out.txt" for name in bad if name != "no_query.csv"]
    tables = ("empty.csv", "cut.parquet", "folder", "none.csv", "rows.parquet", "other.csv", "bytes.csv")
    commands += [f"clean noisy.txt {name} -o out.txt" for name in tables]
    models = ("empty.txt", "noisy.txt", "rows.parquet", "folder", "none.txt", "cut.txt")
    commands += [f"predict {name} noisy.txt -o out.txt" for name in models]
    commands += [f"find-issues noisy.txt --method sour --model {name} -o out.csv" for name in models]
    commands += [
        f"find-issues noisy.txt --method contradictions --truth {name} -o out.csv"
        for name in ("empty.csv", "cut.parquet", "folder", "none.csv", "rows.parquet")
    ]
    commands += [f"find-issues noisy.txt --noise {name} -o out.csv" for name in ("bytes.csv", "empty.csv")]
    for words in commands:
        done = cli(*words.split())
        assert done.code == 2, words
        assert done.err.startswith("error: "), words
        assert "Traceback" not in done.err, words
        assert sorted(p.name for p in tmp_path.iterdir()) == before, words


def test_an_interruption_leaves_no_file(cli, noisy, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    before = sorted(p.name for p in tmp_path.iterdir())
    monkeypatch.setattr("cleanrank.issues.table.LabelIssues.to_frame", stop)
    done = cli("find-issues", "noisy.txt", "--method", "contradictions", "-o", "out.csv")
    assert done.code == 130
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_a_wrong_join_is_said_and_nothing_is_cleaned(cli, noisy):
    rows = np.random.default_rng(0).permutation(noisy.n_docs)
    cr.write_letor(replace(noisy, X=noisy.X[rows]), "joined_wrong.txt")
    done = cli("find-issues", "joined_wrong.txt", "-o", "wrong.csv", "--json")
    record = json.loads(done.out)
    assert record["issues"] == 0
    assert record["signal"]["low"] < 0.5
    assert "is the join right" in done.err
    assert "UserWarning" not in done.err
    cleaned = cli("clean", "joined_wrong.txt", "wrong.csv", "-o", "cleaned.txt")
    assert cleaned.code == 2
    assert "AUC" in cleaned.err
    assert not Path("cleaned.txt").exists()
    assert cli("clean", "joined_wrong.txt", "wrong.csv", "-o", "cleaned.txt", "--min-doubt", "1").code == 0


def test_the_signal_stands_beside_the_counts(cli, noisy):
    done = cli("find-issues", "noisy.txt", "-o", "issues.csv", *EASY)
    assert f"signal of the features, out of fold: {read_issues('issues.csv').signal}" in done.err
