"""Plain frames are read as all others are, only faster; what is not plain is left to the slow way."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cleanrank.errors import InvalidInputError
from cleanrank.judges.labels import as_runs
from cleanrank.judges.plain_runs import plain_run


def test_a_plain_frame_reads_as_its_mapping():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"qid": rng.choice(["q1", "q2"], 40), "docid": [f"d{i % 25}" for i in range(40)]})
    frame = frame.drop_duplicates().assign(score=lambda f: rng.normal(size=len(f)))[::-1]
    nested = {q: dict(zip(part["docid"], part["score"], strict=True)) for q, part in frame.groupby("qid")}

    def pairs(run):
        topics, documents = run.topic_ids[run.topic], run.doc_ids[run.doc]
        return dict(zip(zip(topics, documents, strict=True), run.scores, strict=True))

    fast = plain_run(frame, "x")
    assert pairs(fast) == pairs(as_runs({"x": nested})["x"]) == pairs(as_runs({"x": frame})["x"])
    assert fast.tag == "x"


@pytest.mark.parametrize(
    "change",
    [
        {"qid": [1, 2]},
        {"qid": [" q", "q"]},
        {"qid": ["q", None]},
        {"docid": ["a", 1]},
        {"score": ["1", "2"]},
        {"score": [1.0, np.nan]},
        {"qid": ["q", "q"], "docid": ["a", "a"]},
    ],
)
def test_what_is_not_plain_goes_the_slow_way(change):
    frame = pd.DataFrame({"qid": ["q", "r"], "docid": ["a", "a"], "score": [1.0, 2.0]} | change)
    assert plain_run(frame, "x") is None
    if "score" in change and change["score"][1] != "2":
        with pytest.raises(InvalidInputError, match="finite"):
            as_runs({"x": frame})
    elif change.get("docid") == ["a", "a"]:
        with pytest.raises(InvalidInputError, match="twice"):
            as_runs({"x": frame})
    assert plain_run({"q": {"a": 1.0}}, "x") is None


def test_frames_of_polars_and_pyarrow_are_runs():
    frame = pd.DataFrame({"qid": [1, 1], "docid": [7, 8], "score": [2.0, 1.0]})
    for other in (pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        run = as_runs(other)["system"]
        assert run.doc_ids[run.doc].tolist() == ["7", "8"]
