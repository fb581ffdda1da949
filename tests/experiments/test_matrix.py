"""Verdicts of the matrix: values on the paper's own data, directions on others, checks of claims, reasons."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cleanrank.experiments import matrix as matrix_module
from cleanrank.experiments.cells import expand
from cleanrank.experiments.figures import Check, Figure, StandIn
from cleanrank.experiments.matrix import matrix
from cleanrank.experiments.recipe import read_recipe
from cleanrank.experiments.results import export
from cleanrank.experiments.sources import identity_of
from cleanrank.types import RunRecord

TOML = """
title = "Toy"
measures = ["map", "ndcg@10"]
seeds = [1, 2]

[[data]]
name = "synthetic"
label = "own"
[[data]]
name = "synthetic"
label = "other"
options = { n_queries = 30 }
[[data]]
name = "istella-x"
label = "absent"

[[noise]]
profile = "uniform"
rates = [0.0, 0.2]

[[methods]]
label = "a"
method = "random"
[[methods]]
label = "b"
method = "gbdt"
"""
# mean of map by data set, method and rate; ndcg@10 is .1 above
MEANS = {
    ("own", "a", 0.0): 0.5, ("own", "b", 0.0): 0.6, ("own", "a", 0.2): 0.4, ("own", "b", 0.2): 0.45,
    ("other", "a", 0.0): 0.3, ("other", "b", 0.0): 0.2, ("other", "a", 0.2): 0.1, ("other", "b", 0.2): 0.15,
}  # fmt: skip


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A folder of results of the toy recipe; per-query spread is 0 but for data "own"."""
    path = tmp_path / "recipes" / "toy.toml"
    path.parent.mkdir()
    path.write_text(TOML)
    recipe = read_recipe(path)
    monkeypatch.setattr(matrix_module, "find_recipe", lambda name: path)
    records = []
    for cell in expand(recipe, lambda *data: "" if data[0] == "istella-x" else identity_of(*data)):
        mean = MEANS.get((cell.inputs["dataset"], cell.inputs["method"], cell.inputs["rate"]))
        if mean is not None:
            off = 0.02 if cell.inputs["dataset"] == "own" else 0.0
            values = {"map": np.array([mean - off, mean + off] * 8)}
            values["ndcg@10"] = values["map"] + 0.1
            means = {m: math.fsum(v) / len(v) for m, v in values.items()}
            versions = {"cleanrank": "1"}
            records.append(
                RunRecord(cell.key, "toy", cell.inputs, "done", values, means, np.arange(16), {},
                          versions=versions, started_at="2026-05-01T10:00:00")
            )  # fmt: skip
    export(records, tmp_path / "toy.parquet")
    return tmp_path


def figure(value, row="a", **more):
    fields = {"recipe": "toy", "dataset": "own", "measure": "map", "decimals": 3, "method": row} | more
    return Figure("Paper", "Tab. 1", row, "MAP", value, **fields)


def judged(results, *figures):
    return matrix(results=results, figures=figures)


@pytest.mark.parametrize(
    ("value", "more", "verdict"),
    [
        (0.5, {}, "agrees"),
        (0.51, {}, "agrees"),  # 1.96 x .005 + .0005
        (0.511, {}, "differs"),
        (0.4, {"noise": "uniform", "rate": 0.2}, "agrees"),
        (0.6, {"measure": "ndcg@10"}, "agrees"),
        (0.45, {"relation": ">"}, "agrees"),
        (0.45, {"relation": "<"}, "differs"),
        (0.2, {"noise": "uniform", "rate": 0.2, "drop": True}, "agrees"),
        (0.3, {"noise": "uniform", "rate": 0.2, "drop": True}, "differs"),
        (0.5, {"erratum": "s3"}, "wrong in the paper"),
    ],
)
def test_a_number_on_the_papers_own_data(results, value, more, verdict):
    (line,) = judged(results, figure(value, why="ours is larger", **more))
    assert (line.verdict, line.data) == (verdict, "real")
    assert line.origin == {"from": "results/toy.parquet", "ran": "2026-05-01", "versions": "cleanrank 1"}
    assert line.command == "cleanrank reproduce toy --only dataset=own --recompute"
    assert ("ours is larger" in line.why) == (verdict == "differs")


def test_a_drop_has_the_interval_that_it_is_judged_by(results):
    (line,) = judged(results, figure(0.23, noise="uniform", rate=0.2, drop=True))
    half = 1.96 * math.hypot(0.005, 0.005) / 0.5
    assert (line.observed, line.verdict) == (pytest.approx(0.2), "differs")
    assert (line.observed - line.low, line.high - line.observed) == pytest.approx((half, half), rel=0.05)
    (near,) = judged(results, figure(line.high - 0.001, noise="uniform", rate=0.2, drop=True))
    assert near.verdict == "agrees"


def test_the_error_of_a_drop_comes_from_folds_of_the_same_queries(tmp_path, monkeypatch):
    """Folds differ much in their level, and all lose a fifth: nothing is uncertain but the digits."""
    path = tmp_path / "toy.toml"
    path.write_text(TOML.replace('label = "own"', 'label = "own"\nfolds = [1, 2, 3]'))
    monkeypatch.setattr(matrix_module, "find_recipe", lambda name: path)

    def judged_with(last):
        records = []
        for cell in expand(
            read_recipe(path), lambda *data: "" if data[0] == "istella-x" else identity_of(*data)
        ):
            at = cell.inputs
            if (at["dataset"], at["method"]) == ("own", "a"):
                mean = 0.2 * at["fold"] * ({1: 0.8, 2: 0.8, 3: last}[at["fold"]] if at["rate"] else 1)
                records.append(RunRecord(cell.key, "toy", at, "done", {}, {"map": mean}, chosen={},
                                         query_se={"map": 0.05}, n_queries={"map": 20}))  # fmt: skip
        export(records, tmp_path / "toy.parquet")
        return judged(tmp_path, figure(0.2, noise="uniform", rate=0.2, drop=True))[0]

    line = judged_with(0.8)
    assert (line.observed, line.low, line.high) == pytest.approx((0.2, 0.2, 0.2))
    assert line.verdict == "agrees"
    line = judged_with(0.7)
    ratio = (0.16 + 0.32 + 0.42) / 1.2
    off = [0.16 - ratio * 0.2, 0.32 - ratio * 0.4, 0.42 - ratio * 0.6]
    assert line.high - line.observed == pytest.approx(
        1.96 * math.sqrt(sum(e**2 for e in off) * 3 / 2) / 1.2, rel=1e-3
    )


def absent(value, row, **more):
    other = StandIn("toy", "other", why="small")
    return figure(value, row, dataset="absent", stand_in=(other,), **more)


@pytest.mark.parametrize(
    ("a", "b", "rate", "verdict"),
    [
        (0.9, 0.8, None, "same direction"),
        (0.8, 0.9, None, "opposite direction"),
        (0.9, 0.9, None, "opposite direction"),
        (0.8, 0.9, 0.2, "same direction"),
    ],
)
def test_a_stand_in_is_judged_by_the_side_of_its_reference(results, a, b, rate, verdict):
    level = {} if rate is None else {"noise": "uniform", "rate": rate}
    first, second = judged(results, absent(a, "a", reference="b", **level), absent(b, "b", **level))
    assert (first.verdict, first.data, first.dataset) == (verdict, "stand-in", "other")
    assert first.why.startswith("Against b: ")
    assert first.why.endswith("Small.")
    assert first.clear is (True if a != b else None)  # there is no spread on these data
    # the reference has nothing to be compared with
    assert (second.verdict, second.data, second.observed) == ("not computable here", None, None)


def test_a_stand_in_refutes_no_figure_and_is_only_mentioned(results):
    first, _ = judged(results, absent(0.9, "a", reference="b", erratum="s3"), absent(0.8, "b"))
    assert (first.verdict, first.data, first.observed) == ("wrong in the paper", None, None)
    mean = MEANS["other", "a", 0.0]
    assert first.why.startswith(f"On other, a stand-in, it is {mean:.4f}. Against b: ")


def test_a_figure_is_never_compared_with_itself(results):
    (line,) = judged(results, absent(0.9, "a", reference="a"))
    assert (line.verdict, line.data) == ("not computable here", None)


def test_own_data_come_before_stand_ins(results):
    both = replace(figure(0.5), stand_in=(StandIn("toy", "other"),), reference="b")
    (line,) = judged(results, both, figure(0.6, "b"))[:1]
    assert (line.data, line.verdict) == ("real", "agrees")


def test_a_bound_on_other_data_is_a_direction(results):
    above, below = judged(results, absent(0.2, "a", relation=">"), absent(0.2, "b", relation="<", decimals=1))
    assert (above.verdict, below.verdict) == ("same direction", "opposite direction")


@pytest.mark.parametrize(
    ("checks", "verdict"),
    [
        ([Check("<", than={"method": "b"})], "agrees"),
        ([Check("<", than={"method": "b"}, margin=0.2)], "differs"),
        ([Check(">", value=0.45), Check("=", value=0.5)], "agrees"),
        ([Check(">", value=0.45), Check("=", value=0.6)], "differs"),
        ([Check(">", than={"noise": "uniform", "rate": 0.2})], "agrees"),
        ([Check(">", method="b", measure="ndcg@10", value=0.69)], "agrees"),
    ],
)
def test_a_claim_holds_where_all_its_checks_do(results, checks, verdict):
    (line,) = judged(results, figure("a beats b", checks=tuple(checks)))
    assert line.verdict == verdict
    assert line.observed.startswith(f"{len(checks) if verdict == 'agrees' else len(checks) - 1} of")
    elsewhere = absent("a beats b", "a", checks=(Check(">", than={"method": "b"}),))
    assert judged(results, elsewhere)[0].verdict == "same direction"


def test_what_is_not_measured_has_a_reason(results):
    lines = judged(
        results,
        figure(0.5, dataset="absent"),
        figure(0.5, "nobody", recipe="", why="The text is lost."),
        figure(0.5, "nobody else", recipe=""),
        figure("in words", "words"),
    )
    assert [line.verdict for line in lines] == ["not computable here"] * 4
    assert "official files of istella-x" in lines[0].why
    assert [line.why for line in lines[1:3]] == ["The text is lost.", "No recipe measures it."]
    assert all(line.why and line.data is None for line in lines)


def test_a_part_of_the_cells_is_no_figure(results):
    frame = pd.read_parquet(results / "toy.parquet")
    frame[frame.seed == 1].to_parquet(results / "toy.parquet")
    (line,) = judged(results, figure(0.5))
    assert (line.verdict, line.observed) == ("not run", None)
    assert line.why.startswith("1 of 2 cells have run: run cleanrank reproduce toy")


def test_a_tie_lies_on_neither_side():
    assert [matrix_module._sign(value) for value in (-0.2, 0.0, 0.2, 3.0)] == [-1, 0, 1, 1]
