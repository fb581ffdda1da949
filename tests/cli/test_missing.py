import gzip
import json

import numpy as np
import pandas as pd
import pytest

from cleanrank.data.trec import read_qrels


@pytest.fixture
def holes(tmp_path, monkeypatch):
    """A folder with judgements of 20 queries, a run that retrieves more, and the truth."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    judged, run, truth = [], [], {}
    for q in range(20):
        relevant = random.random(20) < 0.3
        scores = relevant + 0.5 * random.normal(size=20)
        for d in range(20):
            truth[f"q{q}", f"d{d}"] = int(relevant[d])
            run.append(f"q{q} Q0 d{d} 1 {scores[d]:.4f} bm25\n")
            if d < 14:
                judged.append(f"q{q} 0 d{d} {int(relevant[d])}\n")
    (tmp_path / "judged.qrels").write_text("".join(judged))
    (tmp_path / "run.txt").write_text("".join(run))
    return truth


def test_the_table_is_of_unjudged_pairs_the_likeliest_first(cli, holes):
    done = cli("missing", "judged.qrels", "--runs", "run.txt", "-o", "missing.csv", "--json")
    assert done.code == 0, done.err
    table = pd.read_csv("missing.csv")
    assert len(table) == 20 * 6
    assert table.probability.is_monotonic_decreasing
    labels = np.array([holes[pair] for pair in zip(table.query_id, table.doc_id, strict=True)])
    assert labels[:20].mean() > 2 * labels.mean()
    record = json.loads(done.out)
    assert record["expected"] == pytest.approx(table.probability.sum(), rel=1e-5)
    assert record["judged"] == 20 * 14
    assert any(each["found"] >= 0.8 for each in record["plan"])


def test_what_was_judged_goes_into_the_judgements_and_calibrates(cli, holes):
    words = ("missing", "judged.qrels", "--runs", "run.txt", "-o", "missing.csv")
    done = cli(*words, "--sheet", "sheet.csv", "--n", 40, "--pool", "pool.qrels")
    assert done.code == 0, done.err
    sheet = pd.read_csv("sheet.csv")
    assert list(sheet) == ["row_id", "query_id", "doc_id", "true_grade"]
    sheet["true_grade"] = [holes[pair] for pair in zip(sheet.query_id, sheet.doc_id, strict=True)]
    assert set(sheet.true_grade) == {0, 1}
    sheet.rename(columns={"true_grade": "grade"}).assign(annotator="ada").to_csv("sheet.csv", index=False)
    done = cli("clean", "pool.qrels", "--review", "sheet.csv", "-o", "repaired.qrels")
    assert done.code == 0, done.err
    before, after = read_qrels("pool.qrels"), read_qrels("repaired.qrels")
    grade = {
        (q, d): (int(y), bool(j))
        for q, d, y, j in zip(after.qid, after.doc_ids, after.y, after.judged, strict=True)
    }
    assert after.judged.sum() == before.judged.sum() + 40
    pairs = zip(sheet.query_id, sheet.doc_id, strict=True)
    assert all(grade[pair] == (holes[pair], True) for pair in pairs)
    done = cli(*words, "--gold", "sheet.csv", "--force", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["calibrated_on"] == "gold"
    assert len(pd.read_csv("missing.csv")) == 20 * 6 - 40


def test_the_table_makes_a_project(cli, holes):
    cli("missing", "judged.qrels", "--runs", "run.txt", "-o", "missing.csv")
    done = cli("label", "missing.csv", "-o", "p.sqlite", "--prepare", "--annotator", "ann")
    assert done.code == 0, done.err


def test_negatives_that_look_like_positives_are_taken_out(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    words = [f"w{n}" for n in range(200)]
    lines, false = [], set()
    for _ in range(60):
        topic = random.choice(words, 5, replace=False).tolist()
        like = [" ".join([*random.permutation(topic)[:4], *random.choice(words, 1)]) for _ in range(4)]
        false.add(like[3])
        other = [" ".join(random.choice(words, 5)) for _ in range(4)]
        lines.append({"query": " ".join(topic[:2]), "pos": like[:3], "neg": [like[3], *other]})
    lines[0]["neg"].append("!?")  # nothing is known about a text without words
    (tmp_path / "mined.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    done = cli("missing", "mined.jsonl", "-o", "missing.csv", "--kept", "kept.jsonl", "--threshold", 0.3)
    (tmp_path / "packed.jsonl.gz").write_bytes(gzip.compress((tmp_path / "mined.jsonl").read_bytes()))
    assert cli("missing", "packed.jsonl.gz", "-o", "packed.csv").code == 0
    assert (tmp_path / "packed.csv").read_text() == (tmp_path / "missing.csv").read_text()
    assert done.code == 0, done.err
    kept = [json.loads(line) for line in (tmp_path / "kept.jsonl").read_text().splitlines()]
    left = sum(text in false for line in kept for text in line["neg"])
    assert left < 20
    assert not any("!?" in line["neg"] for line in kept)
    assert sum(len(line["neg"]) for line in kept) - left > 0.9 * 60 * 4
    assert all(score < 0.3 for line in kept for score in line["neg_scores"])


def test_refused(cli, holes):
    done = cli("missing", "judged.qrels", "-o", "missing.csv")
    assert (done.code, "Give runs" in done.err) == (2, True)
    done = cli("missing", "judged.qrels", "--runs", "run.txt", "-o", "m.csv", "--kept", "kept.jsonl")
    assert (done.code, "goes with mined negatives" in done.err) == (2, True)
