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


@pytest.fixture
def timed(tmp_path):
    """Seven people with seconds; one guesses, one clicks through a quarter; a third of items has gold."""
    rng = np.random.default_rng(0)
    n = 300
    truth = rng.choice(3, n, p=[0.6, 0.25, 0.15])
    gold = pd.array(truth, dtype="Int64")
    gold[np.arange(n) % 3 > 0] = pd.NA
    keys = {"query_id": np.arange(n) // 15, "doc_id": [f"d{i}" for i in range(n)], "gold_grade": gold}
    parts = []
    for who, rate in (
        ("ann", 0.1),
        ("bob", 0.1),
        ("cy", 0.1),
        ("dee", 0.2),
        ("eve", 0.2),
        ("fay", 1),
        ("gus", 0.1),
    ):
        grade = np.where(rng.random(n) < rate, rng.integers(0, 3, n), truth)
        seconds = np.exp(rng.normal(2.3 + rng.normal(0, 0.2), 0.5, n))
        if who == "gus":
            grade[150:220], seconds[150:220] = 0, 0.5
        parts.append(pd.DataFrame({**keys, "annotator": who, "grade": grade, "seconds": seconds.round(2)}))
    pd.concat(parts).to_csv(tmp_path / "timed.csv", index=False)
    return tmp_path


def test_who_is_dropped_and_whose_judgements_stay(cli, timed):
    kept, page = timed / "kept.csv", timed / "page.html"
    done = cli("annotators", timed / "timed.csv", "--filter", ".4", "-o", kept, "--html", page)
    assert done.code == 0, done.err
    assert "dropped fay: pNoise 0." in done.err
    assert "is above 0.4" in done.err
    assert "6 annotators stay" in done.err
    before, after = read_frame(timed / "timed.csv"), read_frame(kept)
    expected = before[before["annotator"] != "fay"].rename(columns={"gold_grade": "true_grade"})
    pd.testing.assert_frame_equal(after, expected[list(after)].reset_index(drop=True), check_dtype=False)
    assert "constant answers, fast answers" in done.out
    for part in ("Wrong pairs of each", "Constant or fast answers", "dropped"):
        assert part in page.read_text()
    again = json.loads(cli("annotators", kept, "--filter", ".4", "--json").out)
    assert again["filter"]["dropped"] == {}
    assert len(again["pair_noise"]) == 6
    assert {each["annotator" if "annotator" in each else "name"] for each in again["odd_sequences"]} == {
        "gus"
    }
    best = json.loads(cli("annotators", timed / "timed.csv", "--keep", 2, "--json").out)
    assert len(best["filter"]["kept"]) == 2
    least = sorted(best["pair_noise"], key=lambda each: each["corrected"])[:2]
    assert sorted(each["name"] for each in least) == best["filter"]["kept"]


def test_the_screen_says_how_many_stay_because_nothing_is_known_of_them(cli, timed):
    table = read_frame(timed / "timed.csv")
    few = (table["annotator"] == "eve") & (table["query_id"] >= 3)
    table[~few].to_csv(timed / "few.csv", index=False)
    done = cli("annotators", timed / "few.csv", "--filter", ".4")
    assert "6 annotators stay, 1 of them with too few queries or pairs for an interval" in done.err


def test_gold_of_a_file_counts_as_true_grades(cli, judged):
    table = pd.read_csv(judged / "judged.csv").drop_duplicates(["query_id", "doc_id"])
    gold = table.head(40)[["query_id", "doc_id"]].assign(grade=np.arange(40) % 3)
    gold.to_csv(judged / "gold.csv", index=False)
    record = json.loads(cli("annotators", judged / "judged.csv", "--gold", judged / "gold.csv", "--json").out)
    assert {each["gold_items"] for each in record["pair_noise"]} == {40}


def test_a_filter_needs_queries_and_one_rule(cli, tmp_path):
    rng = np.random.default_rng(0)
    wide = {"item": np.arange(40), **{who: rng.integers(0, 2, 40) for who in ("ann", "bob", "cy")}}
    pd.DataFrame(wide).to_csv(tmp_path / "items.csv", index=False)
    done = cli("annotators", tmp_path / "items.csv", "--filter", ".4")
    assert done.code == 2
    assert "needs the query of every item" in done.err
    assert cli("annotators", tmp_path / "items.csv").code == 0
    pd.DataFrame(wide).assign(query=0, doc=np.arange(40)).to_csv(tmp_path / "both.csv", index=False)
    done = cli("annotators", tmp_path / "both.csv", "--annotators", "ann,bob", "--filter", ".4", "--keep", 1)
    assert done.code == 2
    assert "needs either above or keep" in done.err
