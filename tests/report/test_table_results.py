import json

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.metrics.comparison import compare
from cleanrank.metrics.evaluation import Evaluation, evaluate
from cleanrank.report.table import comparison_table, evaluation_table, mark, to_json


def results_table(result, digits=4):
    return (evaluation_table if isinstance(result, Evaluation) else comparison_table)(result, digits)


@pytest.fixture(scope="module")
def data():
    return cr.from_arrays(np.ones((200, 1)), np.arange(200) % 4, qid=np.arange(200) // 10)


@pytest.fixture(scope="module")
def found(data):
    rng = np.random.default_rng(0)
    systems = {"base_1 & co": rng.normal(size=200), "good|one": data.y + 0.1 * rng.normal(size=200)}
    return compare(systems, data, ["ndcg@10", "auc"], permutations=1000)


def cells(line):
    return [c.strip() for c in line.replace(r"\|", "¦").strip("|").split("|")]


def test_markdown_has_a_row_per_system_and_the_conventions(found):
    lines = results_table(found).markdown().splitlines()
    assert cells(lines[0]) == ["system", "ndcg@10", "auc"]
    assert len({len(cells(line)) for line in lines[:4]}) == 1
    assert cells(lines[3])[0] == "good¦one"
    assert "**" in lines[3]
    assert "(+0." in lines[3]
    assert "**" not in lines[2]
    assert any("gain 2^y - 1" in line for line in lines)
    assert "against base_1 & co: Fisher's randomisation test (1000 permutations" in lines[-1]


def test_latex_is_escaped(found):
    text = results_table(found).latex()
    assert r"base\_1 \& co" in text
    assert text.count(r"\\") == 3
    assert text.startswith(r"\begin{tabular}{lrr}")


def test_json_holds_no_nan(found, data):
    rows = json.loads(to_json(found))["rows"]
    assert rows[0]["baseline"] is True
    assert rows[2]["p"] == pytest.approx(found.p_values[1, 0])
    values = json.loads(to_json(found, per_query=True))["values"]["good|one"]["ndcg@10"]
    assert len(values) == 20
    skipped = evaluate(np.zeros(200), data.with_labels(np.zeros(200, int)), ["ndcg@10:skip", "mrr"])
    told = json.loads(to_json(skipped, per_query=True))
    assert told["means"] == {"ndcg@10:skip": None, "mrr": 0.0}
    assert told["values"]["ndcg@10:skip"] == [None] * 20


def test_an_evaluation_has_a_row_per_measure(data):
    found = evaluate(data.y * 1.0, data, ["ndcg@10", "mrr"])
    lines = results_table(found, digits=2).markdown().splitlines()
    assert cells(lines[2]) == ["ndcg@10", "1.00", "[1.00, 1.00]", "20"]
    assert r"\toprule" in results_table(found).latex()
    empty = evaluate(np.zeros(200), data.with_labels(np.zeros(200, int)), "ndcg@10:skip")
    assert "| - |" in results_table(empty).markdown()


def test_without_correction_the_raw_p_is_shown(data):
    rng = np.random.default_rng(1)
    found = compare(
        {"a": rng.normal(size=200), "b": rng.normal(size=200)}, data, "mrr", test="t", correction=None
    )
    assert f"p={found.p_values[1, 0]:.3g}" in results_table(found).markdown()
    assert "paired t-test, two-sided." in results_table(found).markdown()


def test_the_long_form_has_a_row_per_system_and_measure(found):
    table = comparison_table(found, long=True)
    assert list(table.head)[:4] == ["system", "measure", "mean", "difference"]
    assert len(table.rows) == 4
    assert table.texts[0][3:] == ["baseline", "", "", "", ""]
    row = found.rows()[2]
    assert table.texts[2][4] == f"[{row['low']:+.4f}, {row['high']:+.4f}]"
    assert table.texts[2][-1] == f"{row['wins']}/{row['ties']}/{row['losses']}"
    assert table.notes[-1].startswith("Against base_1 & co: Fisher's randomisation test (1000")


def test_the_level_of_intervals_can_be_chosen(data):
    rng = np.random.default_rng(2)
    evaluation = evaluate(data.y + rng.normal(size=200), data, "mrr")
    low, high = evaluation.intervals(0.5, 3)["mrr"]
    table = evaluation_table(evaluation, level=0.5, seed=3)
    assert table.head[2] == "50% interval"
    assert table.texts[0][2] == f"[{low:.4f}, {high:.4f}]"


def test_marks():
    assert [mark(p) for p in (0.05, 0.049, 0.01, 0.009, None)] == ["", "*", "*", "**", ""]
