import json

import numpy as np
import pytest
from benchmarks.cards.clicks import (
    flips_of_records,
    gain_of,
    gain_of_blocks,
    read_lines,
    table_of_lines,
    table_of_records,
)

from cleanrank.types import RunRecord


def record(method, seed, values, noise="flips", rate=0.1, **more):
    cell = {"method": method, "seed": seed, "noise": noise, "rate": rate, "params": {"model": "din"}}
    values = {name: np.asarray(each, dtype=float) for name, each in values.items()}
    means = {name: float(each.mean()) for name, each in values.items()}
    means |= {"log loss": 0.5, "calibration error": 0.1}
    return RunRecord(
        f"{method} {seed} {noise}", "ctr", cell, "done", values, means, chosen={"epochs": 3} | more
    )


def test_the_interval_holds_the_truth_as_often_as_it_says():
    """Seeds and users both vary: an interval over one of them alone would be too short."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(500):
        d = 0.01 + rng.normal(0, 0.01, (5, 1)) + rng.normal(0, 0.1, (1, 200)) + rng.normal(0, 0.02, (5, 200))
        gain = gain_of_blocks(d)
        hits += gain["low"] < 0.01 < gain["high"]
    assert 0.93 < hits / 500 <= 0.995


def test_seeds_that_agree_leave_the_error_of_users():
    gain = gain_of([0.02, 0.02], 0.01)
    assert (gain["low"], gain["high"]) == pytest.approx((0.02 - 0.0196, 0.02 + 0.0196), abs=1e-4)


def test_methods_are_compared_on_the_seeds_that_both_have():
    users = np.linspace(0, 1, 10)
    records = [record("DIN", seed, {"auc": users}) for seed in (1, 2, 3)]
    records += [record("peers (tuned)", s, {"auc": users + 0.1 * s}, alpha=0.1) for s in (1, 2)]
    records += [record("peers (auto)", s, {"auc": users + 0.1 * s - 0.3}, alpha=0.2) for s in (2, 3)]
    records += [record("DIN", 1, {"auc": users}, noise="none", rate=0.0)]
    rows = flips_of_records(records)
    assert [(r["noise"], r["method"]) for r in rows] == [
        ("none", "DIN"), ("flips", "DIN"), ("flips", "peers (tuned)"), ("flips", "peers (auto)"),
    ]  # fmt: skip
    assert rows[2]["gain"]["mean"] == pytest.approx(0.15)
    assert rows[3]["auto"]["seeds"] == 1
    assert rows[3]["auto"]["mean"] == pytest.approx(-0.3)


def test_lines_and_records_of_a_table_give_the_same_figures(tmp_path):
    def line(seed, gain):
        return {
            "model": "din",
            "seed": seed,
            "base": {
                "chosen": "restart 1", "epochs": {"restart 1": 9},
                "validation": {"restart 1": 0.5}, "auc": 0.8,
            },
            "peer": {
                "chosen": "alpha 0.1", "epochs": {"alpha 0.1": 2, "alpha 0.3": 1}, "auc": 0.8 + gain,
                "validation": {"alpha 0.1": 0.75, "alpha 0.3": 0.5},
            },
            "gain": {"value": gain, "error": 0.0},
        }  # fmt: skip

    file = tmp_path / "table.jsonl"
    file.write_text("\n".join(json.dumps(line(seed, gain)) for seed, gain in ((2, 0.02), (1, 0.01))))
    chosen = {"alpha": 0.1, "base epochs": 9, "validation": 0.75, "base validation": 0.5}
    records = [
        record("DIN", s, {"auc": [0.8 + g] * 4, "base auc": [0.8] * 4, "gain": [g] * 4}, **chosen, epochs=2)
        for s, g in ((1, 0.01), (2, 0.02))
    ]
    (one,), (other,) = table_of_lines(read_lines(file)), table_of_records(records)
    assert one.pop("epochs of the largest alpha") == [1, 1]
    assert one.pop("gain") == pytest.approx(other.pop("gain"))
    assert (one.pop("base"), one.pop("peer")) == pytest.approx((other.pop("base"), other.pop("peer")))
    assert one == other
    assert one["base epochs"] == [9, 9]
