import math
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanrank.experiments.results import Result, export, pack, rows_of, split, to_json
from cleanrank.types import RunRecord
from tests.experiments.toys import unpack

FLOATS = st.floats(allow_nan=True, allow_infinity=False)


@given(
    st.integers(0, 5).flatmap(
        lambda n: st.dictionaries(
            st.sampled_from(["ndcg@10", "map:letor", "auc"]), st.lists(FLOATS, min_size=n, max_size=n)
        ).map(lambda values: (n, values))
    ),
    st.booleans(),
)
def test_results_travel_bit_by_bit(drawn, named):
    n, listed = drawn
    values = {m: np.array(v, dtype=np.float64) for m, v in listed.items()}
    means = {m: math.nan if not n else float(v[0]) for m, v in values.items()}
    ids = [f"q{i}" for i in range(n)] if named else list(range(n))
    sent = Result("done", values, means, ids, {"trees": 3}, "", {"numpy": "2"}, 0.25, "2026-01-01")
    got = unpack(pack(sent))
    assert list(got.query_ids) == ids
    assert {m: v.tobytes() for m, v in got.values.items()} == {m: v.tobytes() for m, v in values.items()}
    assert {m: np.float64(v).tobytes() for m, v in got.means.items() if not math.isnan(v)} == {
        m: np.float64(v).tobytes() for m, v in means.items() if not math.isnan(v)
    }
    assert all(math.isnan(got.means[m]) for m in means if math.isnan(means[m]))
    assert (got.chosen, got.versions, got.wall_seconds) == ({"trees": 3}, {"numpy": "2"}, 0.25)


def test_values_are_compressed():
    values = {"ndcg@10": np.zeros(100_000)}
    sent = pack(Result("done", values, {"ndcg@10": 0.0}, [0] * 100_000, {}, "", {}, 0.0, ""))
    assert len(sent) < 10_000


def test_a_failure_has_no_figures():
    header, _ = split(pack(Result("failed", error="Traceback: no luck", wall_seconds=2.0)))
    assert (header["status"], header["means"], header["error"]) == ("failed", {}, "Traceback: no luck")


def test_json_is_canonical():
    assert to_json({"b": [1, 0.1], "a": "é"}) == '{"a":"é","b":[1,0.1]}'
    with pytest.raises(ValueError, match="JSON compliant"):
        to_json({"a": math.nan})


def test_results_of_a_bare_machine_are_read_anywhere(monkeypatch):
    sent = Result("done", {"auc": np.array([0.5, 1.0])}, {"auc": 0.75}, [1, 2], {}, "", {}, 0.0, "")
    usual = pack(sent)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    bare = pack(sent)
    monkeypatch.undo()
    assert bare != usual
    assert unpack(bare).values["auc"].tolist() == unpack(usual).values["auc"].tolist() == [0.5, 1.0]


def record():
    """A cell that was asked for three measures and has two of them."""
    cell = {"dataset": "toy", "method": "a", "measures": ["map", "mrr", "auc"]}
    values = {name: np.array([0.25, 0.75]) for name in ("map", "auc")}
    return RunRecord("k", "toy", cell, "done", values, {"map": 0.5, "auc": 0.5}, np.arange(2), {})


def test_a_row_for_each_measure_that_is_there_and_wanted():
    assert [row["measure"] for row in rows_of([record()])] == ["auc", "map"]
    assert [row["measure"] for row in rows_of([record()], ["auc", "mrr"])] == ["auc"]


def test_measured_numbers_are_packed_byte_by_byte(tmp_path):
    export([record()], tmp_path / "toy.parquet", values=True)
    parts = pq.read_metadata(tmp_path / "toy.parquet").row_group(0).to_dict()["columns"]
    packed = {c["path_in_schema"] for c in parts if "BYTE_STREAM_SPLIT" in c["encodings"]}
    assert packed == {"mean", "query_se", "values.list.element"}


def test_the_standard_error_is_that_of_the_mean_of_the_queries_that_count():
    cell = {"dataset": "d", "measures": ["map"]}
    record = RunRecord("k", "r", cell, "done", {"map": np.array([0.0, np.nan, 1.0])}, {"map": 0.5})
    (row,) = rows_of([record])
    assert (row["mean"], row["n_queries"], row["query_se"]) == (0.5, 2, pytest.approx(0.5))
    (alone,) = rows_of([RunRecord("k", "r", cell, "done", {"map": np.array([1.0])}, {"map": 1.0})])
    assert (alone["n_queries"], alone["query_se"]) == (1, None)
    told = RunRecord("k", "r", cell, "done", {}, {"map": 0.5}, query_se={"map": 0.1}, n_queries={"map": 7})
    (row,) = rows_of([told])
    assert (row["n_queries"], row["query_se"]) == (7, 0.1)
