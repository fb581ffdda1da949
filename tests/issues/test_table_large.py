"""Tables of issues that are written piece by piece."""

import numpy as np
import pyarrow.parquet
import pytest

from cleanrank.data import spreadsheet
from cleanrank.issues import table as tables
from cleanrank.issues.table import LabelIssues, read_issues


@pytest.fixture
def table():
    n = 1000
    rng = np.random.default_rng(0)
    return LabelIssues(
        row_id=np.arange(n), query_id=np.array([f"q{k // 7}" for k in range(n)]),
        given_label=np.arange(n) % 3, doubt=rng.random(n),
        is_label_issue=rng.random(n) < 0.2, suggested_label=np.arange(n) % 2,
        reasons={"twins": rng.integers(0, 9, n).astype(float)},
    )  # fmt: skip


def test_a_large_table_is_written_piece_by_piece_and_reads_back(table, tmp_path, monkeypatch):
    table.save(tmp_path / "whole.parquet")
    for module in (tables, spreadsheet):
        monkeypatch.setattr(module, "STREAMED", 300)
    table.save(tmp_path / "pieces.parquet")
    assert pyarrow.parquet.ParquetFile(tmp_path / "pieces.parquet").num_row_groups == 4
    whole, pieces = (read_issues(tmp_path / f"{name}.parquet") for name in ("whole", "pieces"))
    for column in ("row_id", "query_id", "given_label", "doubt", "is_label_issue", "suggested_label"):
        np.testing.assert_array_equal(getattr(whole, column), getattr(pieces, column))
    np.testing.assert_array_equal(whole.reasons["twins"], pieces.reasons["twins"])


def test_a_frame_is_too(table, tmp_path, monkeypatch):
    monkeypatch.setattr(spreadsheet, "STREAMED", 300)
    frame = table.to_frame().reset_index()
    spreadsheet.write_frame(frame, tmp_path / "a.parquet")
    assert spreadsheet.read_frame(tmp_path / "a.parquet").equals(frame)


def test_a_broken_off_table_leaves_nothing(table, tmp_path):
    def frames():
        yield table.to_frame().reset_index()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spreadsheet.stream_frames(frames(), tmp_path / "a.parquet")
    assert not list(tmp_path.iterdir())
