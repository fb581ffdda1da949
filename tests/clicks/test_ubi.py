"""Logs of User Behavior Insights: a real one, and small ones in its layout."""

import gzip
import json

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.clicks.logs import clicks_from_log
from cleanrank.clicks.ubi import read_ubi, write_ubi
from cleanrank.errors import BadFileError


@pytest.fixture
def real_log(data_root):
    return data_root / "relevance-tools/opensearch.ubi_queries_events.ndjson.gz"


def event(action, query, doc, ordinal, text="lamp", application="shop"):
    place = {} if ordinal is None else {"position": {"ordinal": ordinal}}
    return {
        "application": application, "action_name": action, "query_id": query, "user_query": text,
        "event_attributes": {"object": {"object_id": doc, "object_id_field": "id"}, **place},
    }  # fmt: skip


def saved(path, records, bulk=False):
    action = json.dumps({"index": {"_index": "ubi_events"}}) + "\n" if bulk else ""
    path.write_text("".join(f"{action}{json.dumps(record)}\n" for record in records))
    return path


def entries(log):
    table = log.to_frame()
    return list(zip(table.session, table.query_id, table.doc_id, table.position, table.click, strict=True))


@pytest.mark.data
def test_a_log_as_opensearch_has_it(real_log):
    log = read_ubi(real_log)
    assert log.n_lists == 258
    # Of 262 query_ids with impressions, and 1,999 impressions; 4 query_ids lack the text of their query.
    raw = [json.loads(line) for line in gzip.decompress(real_log.read_bytes()).splitlines()]
    shown = [each for each in raw if each.get("action_name") == "impression"]
    assert len(shown) == 1999
    of_sample = [each for each in shown if each["application"] == "esci_ubi_sample"]
    assert {each["event_attributes"]["position"]["ordinal"] for each in of_sample} == {0, 1, 2, 3, 4}
    first, text = of_sample[0]["event_attributes"], of_sample[0]["user_query"]
    assert first["position"]["ordinal"] == 0
    rows = log.to_frame().query(f"query_id == {text!r} and doc_id == {first['object']['object_id']!r}")
    assert set(rows.position) == {1}  # this application counts from 0, the other one from 1
    assert (log.position.min(), log.position.max()) == (1, 20)
    assert log.settings["shown documents without the text of their query"] == 67
    assert log.data.judged is not None
    assert not log.data.judged.any()


@pytest.mark.data
def test_what_is_written_reads_back_the_same(real_log, tmp_path):
    log = read_ubi(real_log)
    for name in ("a.ndjson", "a.ndjson.gz"):
        write_ubi(log, tmp_path / name)
        assert read_ubi(tmp_path / name).to_frame().equals(log.to_frame())


def test_lists_positions_and_clicks(tmp_path):
    records = [
        {"application": "shop", "query_id": "2", "user_query": "chair", "client_id": "c"},
        event("impression", "1", "b", 1),
        event("impression", "1", "a", 0),
        event("click", "1", "b", 1),
        event("click", "1", "b", 1),
        event("product_hover", "1", "c", 2),
        event("click", "1", "d", 4),
        event("impression", "2", "a", 0, None),
        event("impression", "3", "a", 1, application="other"),
        event("impression", "3", "b", 2, application="other"),
        event("impression", "4", "b", 2, ""),
        event("click", "1", "z", None),
    ]
    expected = [
        (0, "chair", "a", 1, 0), (1, "lamp", "a", 1, 0), (1, "lamp", "b", 2, 1), (1, "lamp", "d", 5, 1),
        (2, "lamp", "a", 1, 0), (2, "lamp", "b", 2, 0),
    ]  # fmt: skip
    for bulk in (False, True):
        log = read_ubi(saved(tmp_path / "a.ndjson", records, bulk))
        assert entries(log) == expected
        assert dict(log.settings) == {
            "source": "a.ndjson",
            "events without a position": 1,
            "shown documents without the text of their query": 1,
        }
    hovered = read_ubi(tmp_path / "a.ndjson", clicks=["product_hover"], shown=["impression", "click"])
    assert (1, "lamp", "c", 3, 1) in entries(hovered)
    assert (1, "lamp", "b", 2, 0) in entries(hovered)


def test_a_log_is_joined_with_judged_data(tmp_path):
    path = saved(tmp_path / "a.ndjson", [event("impression", "1", d, i) for i, d in enumerate("ab")])
    data = cr.from_arrays(np.zeros((2, 1)), [1, 0], qid=["lamp"] * 2, doc_ids=["b", "a"])
    log = clicks_from_log(path, data)
    assert log.row.tolist() == [1, 0]
    with pytest.raises(cr.CleanrankError, match="must show documents of the data"):
        clicks_from_log(path, data.select([0]))


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (
            [event("impression", "1", "a", -1)],
            r"position.ordinal must be a whole number from 0; got -1.0 at .*line 1",
        ),
        ([event("impression", "1", "a", 0.5)], "must be a whole number from 0; got 0.5"),
        ([event("impression", "1", ["a"], 0)], "event_attributes.object.object_id must be a text"),
        ([event("hover", "1", "a", 0)], r"must hold events of documents that were shown \(impression\)"),
        ([{"query_id": "1", "user_query": "x"}], "must hold events"),
        ([[]], "the document must be an object"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, records, said):
    with pytest.raises(BadFileError, match=said):
        read_ubi(saved(tmp_path / "a.ndjson", records))
