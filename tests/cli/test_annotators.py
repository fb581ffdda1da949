import json

import numpy as np
import pandas as pd
import pytest

from cleanrank.data.spreadsheet import read_frame


@pytest.fixture
def judged(tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 150)
    said = {
        name: np.where(rng.random(150) < rate, rng.integers(0, 3, 150), truth)
        for name, rate in (("=ann", 0.1), ("bob", 0.1), ("cy", 0.2), ("<b>dee</b>", 0.95))
    }
    docs = {"query_id": np.arange(150) // 10, "doc_id": [f"d{i}" for i in range(150)]}
    table = pd.DataFrame({**docs, **said}).melt(["query_id", "doc_id"], var_name="judge", value_name="rating")
    table.to_csv(tmp_path / "judged.csv", index=False)
    return tmp_path


def test_who_consensus_again_and_page(cli, judged):
    out, again, page = judged / "consensus.csv", judged / "again.xlsx", judged / "page.html"
    words = ("-o", out, "--again", again, "--n", 20, "--judge-cost", "0.1", "--html", page)
    done = cli("annotators", judged / "judged.csv", *words)
    assert done.code == 0, done.err
    assert done.out.splitlines()[1].startswith("<b>dee</b>")
    assert "Krippendorff" in done.out
    assert "lower bound" in done.err
    assert len(read_frame(out)) == 150
    assert len(read_frame(again)) == 20
    text = page.read_text()
    assert "&lt;b&gt;dee" in text
    assert "<b>dee" not in text
    for part in ("What to judge again", "P(given | true)", "Pairs of annotators"):
        assert part in text
    # The consensus serves as gold by query and document.
    record = json.loads(cli("annotators", judged / "judged.csv", "--json").out)
    assert record["annotators"][0]["verdict"].startswith(("unreliable", "noisier"))
    assert record["again"][0]["wrong_after"] <= record["again"][0]["wrong_before"]


def test_inputs_are_kept_and_headings_named(cli, judged):
    table = judged / "judged.csv"
    before = table.read_bytes()
    assert cli("annotators", table, "-o", table, "--force").code == 2
    assert table.read_bytes() == before
    frame = read_frame(table).rename(columns={"judge": "Prüfer", "rating": "Note"})
    frame.to_csv(judged / "de.csv", index=False, sep=";", encoding="cp1252")
    done = cli("annotators", judged / "de.csv")
    assert done.code == 2
    assert "(--columns), by role" in done.err
    done = cli("annotators", judged / "de.csv", "--columns", "annotator=Prüfer,grade=Note", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["judgements"] == 600


def test_gold_rows_make_the_grades(cli, judged):
    table = read_frame(judged / "judged.csv")
    truth = np.random.default_rng(0).choice(3, 150)  # as in the fixture
    rows = np.random.default_rng(1).choice(150, 60, replace=False)
    gold = pd.DataFrame({"qid": rows // 10, "docid": [f"d{i}" for i in rows], "grade": truth[rows]})
    gold.to_csv(judged / "gold.csv", index=False)
    out, page = judged / "grades.csv", judged / "page.html"
    words = ("--gold", judged / "gold.csv", "-o", out, "--html", page)
    done = cli("annotators", judged / "judged.csv", *words)
    assert done.code == 0, done.err
    assert "independent votes they count for" in done.out
    assert "right on gold rows left out" in done.out
    grades = read_frame(out)
    assert list(grades)[:4] == ["qid", "docid", "grade", "p0"]
    both = grades.merge(pd.DataFrame({"docid": [f"d{i}" for i in range(150)], "truth": truth}), on="docid")
    assert (both["grade"].astype(int) == both["truth"]).mean() > 0.9
    assert "Grades from all of them" in page.read_text()
    record = json.loads(cli("annotators", judged / "judged.csv", *words[:2], "--json").out)
    assert record["panel"]["gold_rows"] == 60
    assert record["panel"]["dependence"]["source"] == "gold"
    assert record["dependence"]["source"] == "judgements"
    assert record["dependence"]["is_high"] is False
    # Items with one name have gold rows by that name.
    item = table["query_id"].astype(str) + "/" + table["doc_id"]
    items = table.assign(item=item)[["item", "judge", "rating"]]
    items.to_csv(judged / "items.csv", index=False)
    named = pd.DataFrame({"item": (gold["qid"].astype(str) + "/" + gold["docid"]), "grade": gold["grade"]})
    named.to_csv(judged / "named.csv", index=False)
    done = cli("annotators", judged / "items.csv", "--gold", judged / "named.csv", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["panel"]["gold_rows"] == 60
    done = cli("annotators", judged / "items.csv", "--gold", judged / "gold.csv")
    assert done.code == 2
    assert "must have the columns item and grade" in done.err


def test_annotators_that_err_together_get_no_model(cli, tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 600)
    said = {}
    for name in ("a", "b", "c"):
        own = np.where(rng.random(600) < 0.4, rng.integers(0, 3, 600), truth)
        for copy in range(2):
            said[f"{name}{copy}"] = np.where(rng.random(600) < 0.1, rng.integers(0, 3, 600), own)
    pd.DataFrame({"item": np.arange(600), **said}).to_csv(tmp_path / "wide.csv", index=False)
    done = cli("annotators", tmp_path / "wide.csv")
    assert done.code == 0, done.err
    assert "err alike" in done.err
    assert "the consensus is the majority" in done.err
    binary = {**said, "yes or no": (truth > 0).astype(int)}
    pd.DataFrame({"item": np.arange(600), **binary}).to_csv(tmp_path / "scales.csv", index=False)
    assert "seem to use different scales" in cli("annotators", tmp_path / "scales.csv").err
