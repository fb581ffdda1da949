import math

import numpy as np
import pandas as pd
import pytest

from cleanrank.errors import UnknownNameError
from cleanrank.experiments.results import COLUMNS, export, rows_of
from cleanrank.types import RunRecord


def record(key, seed=1, fold=1, status="done", **more):
    cell = {
        "dataset": "d",
        "fold": fold,
        "noise": "uniform",
        "rate": 0.1,
        "method": "m",
        "algorithm": "random",
        "version": 1,
        "seed": seed,
        "params": {"b": 1, "a": 2},
        "grid": {},
        "select": "ndcg@10",
        "measures": ["ndcg@10", "auc"],
    }
    values = {"ndcg@10": np.array([0.0, 1.0]), "auc": np.array([math.nan, 0.25])}
    done = {"values": values, "means": {"ndcg@10": 0.5, "auc": 0.25}} if status == "done" else {}
    return RunRecord(key, "r", cell, status, versions={"numpy": "2"}, **{**done, **more})


def test_one_row_per_cell_and_measure():
    rows = rows_of([record("k1")])
    assert [(r["measure"], r["mean"], r["n_queries"]) for r in rows] == [
        ("auc", 0.25, 1),
        ("ndcg@10", 0.5, 2),
    ]
    assert tuple(rows[0]) == COLUMNS
    assert rows[0]["params"] == '{"a":2,"b":1}'
    assert [r["measure"] for r in rows_of([record("k1")], measures=["auc"])] == ["auc"]
    assert [r["measure"] for r in rows_of([record("k1", means={"auc": 0.25})])] == ["auc"]


def test_rows_are_in_the_order_of_inputs_whatever_the_order_of_records():
    records = [record("k3", seed=10), record("k1", seed=2), record("k2", fold=2)]
    assert rows_of(records) == rows_of(records[::-1])
    assert [r["seed"] for r in rows_of(records)][::2] == [2, 10, 1]


def test_a_failed_cell_has_no_figure():
    rows = rows_of([record("k", status="failed", error="Traceback\n  deep\nValueError: no luck\n")])
    assert [(r["status"], r["mean"], r["n_queries"], r["error"]) for r in rows] == [
        ("failed", None, None, "ValueError: no luck")
    ] * 2


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_files_hold_the_rows_and_repeat_to_the_byte(tmp_path, ending):
    records = [record("k1"), record("k2", seed=2, status="failed", error="x")]
    path = tmp_path / f"runs.{ending}"
    assert export(records, path) == 4
    first = path.read_bytes()
    export(records[::-1], path)
    assert path.read_bytes() == first
    frame = pd.read_parquet(path) if ending == "parquet" else pd.read_csv(path)
    assert tuple(frame.columns) == COLUMNS
    assert frame["mean"].tolist()[:2] == [0.25, 0.5]
    assert frame["mean"].isna().tolist() == [False, False, True, True]
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_an_empty_store_exports_the_columns(tmp_path):
    assert export([], tmp_path / "none.parquet") == 0
    assert tuple(pd.read_parquet(tmp_path / "none.parquet").columns) == COLUMNS


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(UnknownNameError, match=r"unknown file ending '\.parket'\. Did you mean '\.parquet'"):
        export([], tmp_path / "runs.parket")


def test_noise_of_the_training_labels_has_columns_of_its_own(tmp_path):
    noisy = record(
        "k1", chosen={"trees": 3, "train_dnoise": 0.125, "train_pnoise": 0.25, "expected_pnoise": 0.2}
    )
    export([noisy, record("k2", seed=2)], tmp_path / "runs.parquet")
    table = pd.read_parquet(tmp_path / "runs.parquet")
    assert table["train_dnoise"].tolist()[:2] == [0.125, 0.125]
    assert table["train_pnoise"].tolist()[:2] == [0.25, 0.25]
    assert table["expected_pnoise"].tolist()[:2] == [0.2, 0.2]
    assert table["train_pnoise"][2:].isna().all()
