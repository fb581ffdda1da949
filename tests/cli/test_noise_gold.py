import csv
import json
import shlex
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import cleanrank as cr
from cleanrank.cli import noise
from cleanrank.errors import BadFileError, InvalidInputError
from cleanrank.noise.estimate import NoiseEstimate
from cleanrank.noise.profiles import uniform


@pytest.fixture
def run():
    def call(*words):
        return CliRunner().invoke(noise.app, ["gold", *(str(word) for word in words)])

    return call


@pytest.fixture(scope="module")
def truth():
    return cr.make_ranking(60, 4, docs_per_query=40, grades=[0.6, 0.3, 0.1], seed=2)


@pytest.fixture
def files(tmp_path, truth):
    noisy = uniform(0.2, 3).apply(truth, 1).data
    cr.write_letor(noisy, tmp_path / "noisy.txt")
    return tmp_path


def answer(path, truth):
    grades = dict(zip(truth.row_ids.tolist(), truth.y.tolist(), strict=True))
    rows = answer_rows(path)
    for row in rows:
        row["true_grade"] = grades[int(row["row_id"])]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def test_from_sample_to_estimate(run, files, truth):
    sheet, data, out = files / "sheet.csv", files / "noisy.txt", files / "noise.json"
    done = run("sample", data, "-o", sheet, "--n", 300)
    assert done.exit_code == 0, done.output
    assert "0: 100, 1: 100, 2: 100" in done.stderr
    assert "gold read" in done.stderr
    assert done.stdout == ""
    answer(sheet, truth)
    done = run("read", sheet, data, "-o", out)
    assert done.exit_code == 0, done.output
    assert "given 2" in done.stdout
    assert "wrong pairs (pNoise)" in done.stdout
    assert "Enough" in done.stdout
    estimate = NoiseEstimate.load(out)
    assert estimate.rate == pytest.approx(0.2, abs=0.07)
    assert estimate.n == 300


def test_json_is_the_estimate_without_its_draws(run, files, truth):
    sheet, data = files / "sheet.csv", files / "noisy.txt"
    run("sample", data, "-o", sheet, "--n", 30)
    answer(sheet, truth)
    done = run("read", sheet, data, "--json")
    record = json.loads(done.stdout)
    assert record["n"] == 30
    assert len(record["matrix"]) == 3
    assert record["too_few"]
    assert "draws" not in record


def test_the_page_holds_rates_and_matrix(run, files, truth):
    sheet, data, page = files / "sheet.csv", files / "noisy.txt", files / "noise.html"
    run("sample", data, "-o", sheet, "--n", 60)
    answer(sheet, truth)
    done = run("read", sheet, data, "--html", page)
    assert done.exit_code == 0, done.output
    text = page.read_text()
    for part in ("of pairs are wrong", "given 2", "Too few", "noisy.txt"):
        assert part in text
    page.write_text("mine")
    assert "must not exist yet" in str(run("read", sheet, data, "--html", page).exception)


def test_few_answers_are_called_too_few(run, files, truth):
    sheet, data = files / "sheet.csv", files / "noisy.txt"
    run("sample", data, "-o", sheet, "--n", 30)
    answer(sheet, truth)
    done = run("read", sheet, data)
    assert "Too few" in done.stdout
    assert "more judgements" in done.stdout


def test_a_filled_in_sheet_is_not_overwritten(run, files):
    sheet, data = files / "sheet.csv", files / "noisy.txt"
    sheet.write_text("answers")
    done = run("sample", data, "-o", sheet)
    assert isinstance(done.exception, InvalidInputError)
    assert sheet.read_text() == "answers"
    assert run("sample", data, "-o", sheet, "--force").exit_code == 0


def test_unanswered_rows_stop_it_unless_allowed(run, files, truth):
    sheet, data = files / "sheet.csv", files / "noisy.txt"
    run("sample", data, "-o", sheet, "--n", 60)
    answer(sheet, truth)
    lines = sheet.read_text().splitlines()
    lines[5] = lines[5].rsplit(",", 1)[0] + ","
    sheet.write_text("\n".join(lines))
    done = run("read", sheet, data)
    assert isinstance(done.exception, BadFileError)
    assert "line 6" in str(done.exception)
    done = run("read", sheet, data, "--allow-unanswered")
    assert done.exit_code == 0
    assert "1 rows without an answer" in done.stderr


def test_doubt_and_letor(run, files, truth):
    data, scores = files / "noisy.txt", files / "doubt.txt"
    scores.write_text("".join(f"{i % 17}\n" for i in range(truth.n_docs)))
    done = run("sample", data, "-o", files / "s.csv", "--strategy", "doubt", "--doubt", scores)
    assert done.exit_code == 0, done.output
    assert "stratum_share" in (files / "s.csv").read_text()
    done = run("sample", data, "-o", files / "s.txt", "--show-given")
    assert done.exit_code == 0
    assert (files / "s.txt").read_text().startswith("? qid:")
    assert "given_grade" in (files / "s.txt").read_text()


def test_gold_by_query_and_document(run, cli, files, truth):
    """A CSV with other headings and TREC qrels give what the same answers by row id give."""
    names = [f"doc{i}" for i in range(truth.n_docs)]
    noisy = uniform(0.2, 3).apply(truth, 1).data
    data = replace(noisy, doc_ids=np.array(names))
    cr.write_data(data, files / "noisy.csv")
    sheet = cr.sample_gold(data, 300, "random", seed=1)
    grades = truth.y[sheet.rows]
    lines = [f"{q};{d};{g}" for q, d, g in zip(sheet.query_ids, sheet.doc_ids, grades, strict=True)]
    (files / "human.csv").write_text("\n".join(["Suche;Treffer;Note", *lines]), encoding="cp1252")
    lines = [line.replace(";", " 0 ", 1).replace(";", " ") for line in lines]
    (files / "human.qrels").write_text("\n".join([*lines, "nowhere 0 x 2"]) + "\n")
    columns = "query=Suche,doc=Treffer,grade=Note"
    by_row = cr.estimate_noise(data, gold=(sheet.row_ids, grades))
    for words in (("human.csv", "--gold-columns", columns), ("human.qrels",)):
        done = run("read", files / words[0], files / "noisy.csv", "--json", *words[1:])
        assert done.exit_code == 0, done.output
        record = json.loads(done.stdout)
        assert record["rate"] == pytest.approx(by_row.rate, abs=1e-6)
        assert any("random" in reason for reason in record["reasons"])
    assert "1 of 301 answers are for documents not in the data" in record["reasons"][-2]
    done = cli("find-issues", files / "noisy.csv", "--gold", files / "human.qrels", "-o", files / "i.csv")
    assert done.code == 0, done.err
    assert "taken as a random choice" in done.err
    assert "has no column" not in done.err
    done = cli("find-issues", files / "noisy.csv", "--gold", files / "human.csv", "-o", files / "j.csv")
    assert done.code == 2
    assert "(--gold-columns), by role" in done.err


def test_gold_of_qrels(cli, tmp_path, monkeypatch):
    """Judgements of people against those of a model, both TREC qrels; negative grades are no judgements."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 240)
    given = np.where(rng.random(240) < 0.2, (true + 1) % 3, true)
    given[:5] = -1
    for name, grades in (("human", true), ("llm", given)):
        lines = [f"t{i // 12} 0 d{i} {grade}" for i, grade in enumerate(grades)]
        (tmp_path / f"{name}.qrels").write_text("\n".join(lines) + "\n")
    lines = [f"t{i // 12},d{i},{grade}" for i, grade in enumerate(true)]
    (tmp_path / "human.csv").write_text("\n".join(["query_id,doc_id,grade", *lines]))
    for sheet in ("human.qrels", "human.csv"):
        done = cli("gold", "read", sheet, "llm.qrels", "-o", f"{sheet}.json", "--json")
        assert done.code == 0, done.err
        record = json.loads(done.out)
        assert record["n"] == 235
        assert record["answers"] == np.bincount(true[5:]).tolist()
        assert np.diag(record["matrix"])[1] == pytest.approx(
            (given == true)[5:][true[5:] == 1].mean(), abs=0.02
        )
    done = cli("gold", "sample", "llm.qrels", "--n", "30", "-o", "sheet.csv")
    assert done.code == 0, done.err
    rows = answer_rows(tmp_path / "sheet.csv")
    assert len(rows) == 30
    assert all(int(row["doc_id"][1:]) >= 5 for row in rows)


def test_the_next_step_names_the_columns(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = ["my grade,query,url,bm25", *(f"{i % 3},q{i // 6},u{i},{i / 7}" for i in range(60))]
    (tmp_path / "shop.csv").write_text("\n".join(lines))
    names = ("--label", "my grade", "--qid", "query", "--doc-id", "url")
    done = cli("gold", "sample", "shop.csv", *names, "--n", "12", "-o", "gs.csv")
    assert done.code == 0, done.err
    words = shlex.split(done.err.split("then: ")[1])
    assert words == ["cleanrank", "gold", "read", "gs.csv", "shop.csv", *names]
    rows = answer_rows(tmp_path / "gs.csv")
    text = "".join(f"{row['row_id']},{int(row['doc_id'][1:]) % 3}\n" for row in rows)
    (tmp_path / "gs.csv").write_text("row_id,true_grade\n" + text)
    assert cli(*words[1:]).code == 0


def answer_rows(path):
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))
