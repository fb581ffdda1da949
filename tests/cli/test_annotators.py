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
