import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cleanrank as cr
from cleanrank.clicks.logs import ClickLog, clicks_from_log, write_click_log
from cleanrank.clicks.simulate import click_sessions, simulate_clicks
from cleanrank.errors import CleanrankError


@pytest.fixture(scope="module")
def judged():
    rng = np.random.default_rng(0)
    qid = np.repeat(["a", "b", "c"], [4, 1, 6])
    order = rng.permutation(11)
    docs = np.array([f"d{i}" for i in range(11)])
    return cr.from_arrays(np.zeros((11, 1)), rng.integers(0, 5, 11), qid=qid[order], doc_ids=docs[order])


@pytest.fixture(scope="module")
def log(judged):
    scores = np.random.default_rng(1).normal(size=11)
    return simulate_clicks(judged, scores=scores, order="data", sessions=4, seed=1, options={"way": "second"})


def same(a, b):
    for name in ("query", "session", "indptr", "row", "position", "click"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


def test_a_table_names_documents_by_their_ids(log, judged):
    frame = log.to_frame()
    assert list(frame.columns) == ["session", "query_id", "row_id", "position", "click", "doc_id"]
    assert len(frame) == len(log) == 44
    by_row = dict(zip(judged.row_ids.tolist(), judged.doc_ids.tolist(), strict=True))
    assert (frame.doc_id == frame.row_id.map(by_row)).all()
    assert frame.click.sum() == log.click.sum()
    assert isinstance(log.to_frame("arrow"), pa.Table)
    with pytest.raises(CleanrankError, match="unknown kind of frame"):
        log.to_frame("numpy")


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_files_round_trip(log, judged, tmp_path, suffix):
    path = tmp_path / f"log{suffix}"
    assert write_click_log(log, path) == 44
    same(clicks_from_log(path, judged), log)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_sessions_are_written_one_by_one(judged, tmp_path):
    whole, parts = tmp_path / "whole.parquet", tmp_path / "parts.parquet"
    write_click_log(simulate_clicks(judged, sessions=5), whole)
    assert write_click_log(click_sessions(judged, sessions=5), parts) == 55
    pd.testing.assert_frame_equal(pd.read_parquet(parts), pd.read_parquet(whole))


def test_a_failed_write_leaves_nothing(log, tmp_path):
    def broken():
        yield log
        raise RuntimeError("lost the connection")

    with pytest.raises(RuntimeError):
        write_click_log(broken(), tmp_path / "log.parquet")
    assert not list(tmp_path.iterdir())
    with pytest.raises(CleanrankError, match=r"must end in \.parquet or \.csv"):
        write_click_log(log, tmp_path / "log.txt")
    with pytest.raises(CleanrankError, match="must have a session"):
        write_click_log([], tmp_path / "log.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_rows_in_any_order_from_any_table(log, judged, kind):
    frame = log.to_frame().sample(frac=1, random_state=0)
    table = {"pandas": frame, "polars": pl.from_pandas(frame), "arrow": pa.table(frame)}[kind]
    same(clicks_from_log(table, judged), log)


def test_documents_are_found_by_query_and_document_id(log, judged):
    frame = log.to_frame().drop(columns="row_id").rename(columns={"click": "clicked", "doc_id": "url"})
    same(clicks_from_log(frame, judged, columns={"click": "clicked", "doc_id": "url"}), log)


def test_without_sessions_every_entry_stands_alone(log, judged):
    found = clicks_from_log(log.to_frame().drop(columns="session"), judged)
    assert found.n_lists == len(found) == 44
    assert found.click.sum() == log.click.sum()


def test_unknown_documents_are_refused_or_counted(log, judged):
    some = judged.drop([0, 5])
    with pytest.raises(CleanrankError, match=r"documents of the data; got another at entry .*unknown='skip'"):
        clicks_from_log(log.to_frame(), some)
    found = clicks_from_log(log.to_frame(), some, unknown="skip")
    assert found.skipped == 8
    assert len(found) == 36
    assert "8 skipped" in repr(found)
    assert set(found.data.row_ids[found.row]) == set(some.row_ids)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.drop(columns="click"), r"unknown column \(click\) 'click'"),
        (lambda f: f.drop(columns=["row_id", "doc_id"]), "must name its documents by row_id"),
        (lambda f: f.assign(click=2), r"must be 0 or 1; got 2"),
        (lambda f: f.assign(position=0), "'position' must hold integers >= 1; got 0"),
        (lambda f: f.assign(position=1.5), "'position' must hold integers >= 1"),
    ],
)
def test_bad_tables_are_refused(log, judged, change, words):
    with pytest.raises(CleanrankError, match=words):
        clicks_from_log(change(log.to_frame()), judged)


def test_what_is_no_table_is_refused(judged, tmp_path):
    with pytest.raises(CleanrankError, match="must be a table or a path; got list"):
        clicks_from_log([1, 2], judged)
    bad = tmp_path / "log.parquet"
    bad.write_bytes(b"not parquet")
    with pytest.raises(CleanrankError, match="cannot be read as parquet"):
        clicks_from_log(bad, judged)
    with pytest.raises(CleanrankError, match="there is no file"):
        clicks_from_log(tmp_path / "none.csv", judged)


def test_selecting_and_joining_lists(log):
    keep = np.arange(log.n_lists) % 3 == 0
    part = log.select_lists(keep)
    np.testing.assert_array_equal(part.clicks_per_list, log.clicks_per_list[keep])
    rest = log.select_lists(~keep)
    joined = ClickLog.joined([part, rest])
    assert joined.n_lists == log.n_lists
    assert sorted(zip(joined.session, joined.query, strict=True)) == sorted(
        zip(log.session, log.query, strict=True)
    )
    assert len(log.select_lists(np.zeros(log.n_lists, bool))) == 0
