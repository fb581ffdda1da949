import numpy as np
import pytest

from cleanrank.data import _letor_kernels as kernels
from cleanrank.data import _letor_reader as reader
from cleanrank.data import files
from cleanrank.data._letor_reader import Layout, ReadOptions, thread_map
from cleanrank.data.letor import read_letor
from cleanrank.errors import InvalidInputError
from cleanrank.ragged import group_rows

NONE = kernels.Tally(*[0] * 12)
AUTO = ReadOptions(None, None, "auto", True)


@pytest.mark.parametrize(
    ("options", "counts", "layout"),
    [
        (AUTO, {"rows": 10, "stored": 30, "most_index": 10}, Layout(1, 10, True)),
        (AUTO, {"rows": 10, "stored": 29, "most_index": 10}, Layout(1, 10, False)),
        (AUTO, {"rows": 1, "stored": 5, "most_index": 9, "has_index_0": 1},
         Layout(0, 10, True)),
        (ReadOptions(True, 20, True, True), {"rows": 1, "stored": 1, "most_index": 9}, Layout(0, 20, True)),
        (ReadOptions(False, None, False, True), {"rows": 1, "stored": 9, "most_index": 9},
         Layout(1, 9, False)),
        (AUTO, {"rows": 1, "most_index": -1}, Layout(1, 0, True)),
    ],
)  # fmt: skip
def test_the_layout_follows_options_and_tally(options, counts, layout):
    assert options.layout(NONE._replace(**counts)) == layout


@pytest.mark.parametrize("n_jobs", [None, -1, 1, 2, 5])
def test_a_crew_keeps_the_order(n_jobs):
    with thread_map(n_jobs) as work:
        assert list(work(lambda k: k * k, range(50))) == [k * k for k in range(50)]


@pytest.mark.parametrize("n_jobs", [0, -2])
def test_an_impossible_crew_is_refused(n_jobs):
    with pytest.raises(InvalidInputError, match="n_jobs"), thread_map(n_jobs):
        pass


def test_more_long_numbers_than_expected_are_all_read(tmp_path):
    border = "1.0000000596046448863129274873993834353"
    (tmp_path / "a").write_text("".join(f"0 qid:1 1:{border}{k:020} 2:1\n" for k in range(100)))
    for dense in (True, False):
        X = read_letor(tmp_path / "a", cache=False, dense=dense).X
        column = (X if dense else X.toarray())[:, 0]
        assert column.tolist() == [np.float32(float(f"{border}{k:020}")) for k in range(100)]


def test_names_and_groups_match_plain_grouping(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PART", 50)
    rng = np.random.default_rng(0)
    ids = [f"q{k}" for k in rng.integers(0, 20, 400)]
    (tmp_path / "a").write_text("".join(f"{k % 3} qid:{q} 1:{k}\n" for k, q in enumerate(ids)))
    data = read_letor(tmp_path / "a", cache=False)
    order, indptr, names = group_rows(ids)
    assert data.row_ids.tolist() == order.tolist()
    assert data.indptr.tolist() == indptr.tolist()
    assert data.query_ids.tolist() == names.tolist()
    assert data.X[:, 0].tolist() == order.tolist()


def test_totals_add_counts_and_keep_maxima():
    a = NONE._replace(rows=2, stored=5, most_index=7, has_index_0=0, doc_id_bytes=3)
    b = NONE._replace(rows=3, stored=1, most_index=4, has_index_0=1, doc_id_bytes=9)
    assert reader.total([a, b]) == NONE._replace(
        rows=5, stored=6, most_index=7, has_index_0=1, doc_id_bytes=9
    )
