import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cleanrank as cr
from cleanrank.data.table_files import read_csv, read_parquet, write_csv, write_parquet
from cleanrank.data.tables import kind_of_file, read_data, write_data
from cleanrank.errors import BadFileError, InvalidInputError, MissingDataError, UnknownNameError
from tests.data.test_frames import full_data


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv", ".csv.gz", ".csv.zst", ".tsv.bz2", ".csv.xz"])
@pytest.mark.parametrize("qid", [("b", "a", "b", "a"), ("007", "7", "007", "7"), (7, -3, 7, 2**40)])
def test_files_keep_id_types_names_and_values(tmp_path, suffix, qid):
    data = full_data(qid)
    path = tmp_path / f"data{suffix}"
    write_data(data, path)
    back = read_data(path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert back.query_ids.dtype.kind == data.query_ids.dtype.kind
    for name in ("X", "y", "indptr", "query_ids", "gains", "doc_ids", "weights", "positions"):
        np.testing.assert_array_equal(getattr(back, name), getattr(data, name), err_msg=name)
    assert back.feature_names == data.feature_names


floats = st.floats(width=32, allow_nan=True, allow_infinity=False)


@settings(max_examples=40, deadline=None)
@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), floats), min_size=1, max_size=20))
def test_csv_gives_every_float32_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    q, y, x = zip(*rows, strict=True)
    data = cr.from_arrays(np.array(x, dtype=np.float32)[:, None], y, qid=q)
    write_csv(data, path)
    np.testing.assert_array_equal(read_csv(path).X, data.X)


def test_csv_by_other_hands(tmp_path):
    path = tmp_path / "hand.tsv"
    path.write_text("query\trel\tf1\tf2\n3\t1\t0.5\t\n3\t0\t1\tNA\n")
    data = read_csv(path, label="rel", qid="query")
    assert data.query_ids.tolist() == [3]
    np.testing.assert_array_equal(data.X, np.array([[0.5, np.nan], [1, np.nan]], dtype=np.float32))
    frame = pd.DataFrame({"qid": [1, 1], "label": [0, 1], "f": [0.25, 4]})
    frame.to_csv(tmp_path / "pandas.csv.gz", index=False)
    assert read_data(tmp_path / "pandas.csv.gz").y.tolist() == [0, 1]


def test_bad_files_name_the_file_and_the_line(tmp_path):
    path = tmp_path / "short.csv"
    path.write_text("qid,label,f\n1,0,1.5\n1,1\n")
    with pytest.raises(BadFileError) as caught:
        read_csv(path)
    assert caught.value.line == 3
    assert "short.csv" in str(caught.value)
    path.write_text("query,label,f\n1,0,1.5\n")
    with pytest.raises(BadFileError, match=r"short.csv.*no column 'qid' .qid=.*Columns: query, label, f"):
        read_csv(path)
    path.write_text("")
    with pytest.raises(BadFileError, match="header"):
        read_csv(path)
    with pytest.raises(MissingDataError, match=r"no file .*gone.csv.*short.csv"):
        read_csv(tmp_path / "gone.csv")
    fake = tmp_path / "fake.parquet"
    fake.write_text("PAR1 but no more")
    with pytest.raises(BadFileError, match=r"fake.parquet.*Parquet"):
        read_parquet(fake)
    broken = tmp_path / "broken.csv.gz"
    broken.write_bytes(gzip.compress(b"qid,label,f\n1,0,1.5\n" * 50)[:-20])
    with pytest.raises(BadFileError, match=r"broken.csv.gz"):
        read_csv(broken)
    good = tmp_path / "good.csv"
    good.write_text("qid,label,f\n1,0,1.5\n")
    with pytest.raises(UnknownNameError, match="Did you mean 'doc_id'"):
        read_csv(good, docid="f")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.csv"
    write_csv(full_data(), path)
    before = path.read_bytes()
    with pytest.raises(InvalidInputError):
        write_csv(full_data(feature_names=("qid", "x")), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]
    with pytest.raises(MissingDataError, match="folder"):
        write_csv(full_data(), tmp_path / "no" / "a.csv")


def test_the_kind_of_a_file_is_seen_by_suffix_then_content(tmp_path):
    write_parquet(full_data(), tmp_path / "columns")
    write_csv(full_data(), tmp_path / "commas")
    (tmp_path / "letor").write_text("2 qid:1 1:0.5 # a, b\n")
    (tmp_path / "sheet.csv").write_text("0 qid:1 1:3\n")
    kinds = {name: kind_of_file(tmp_path / name) for name in ("columns", "commas", "letor", "sheet.csv")}
    assert kinds == {"columns": "parquet", "commas": "csv", "letor": "letor", "sheet.csv": "csv"}


def test_read_any_takes_letor_files_too(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"2 qid:{name[0]} 1:0.5 2:3\n0 qid:{name[0]} 2:1\n")
    one = read_data(tmp_path / "a.txt", cache=False)
    assert (one.query_ids.tolist(), one.y.tolist()) == (["a"], [2, 0])
    both = read_data([tmp_path / "a.txt", tmp_path / "b.txt"], cache=False)
    assert both.query_ids.tolist() == ["a", "b"]
    with pytest.raises(MissingDataError, match="no file"):
        read_data(tmp_path / "c.txt")


def test_packed_letor_files_are_not_taken_for_tables(tmp_path):
    kinds = set()
    for seed in range(40):
        cr.write_letor(cr.make_ranking(2, n_features=3, seed=seed), tmp_path / "a.gz")
        kinds.add(kind_of_file(tmp_path / "a.gz"))
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"label,qid,x\n1,1,2\n"))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"label,qid,x\n1,1,2\n" * 99)[:15])
    assert kinds == {"letor"}
    assert kind_of_file(tmp_path / "b.gz") == "csv"
    assert kind_of_file(tmp_path / "cut.gz") == "letor"


def test_a_header_alone_is_no_data(tmp_path):
    (tmp_path / "a.csv").write_text("label,qid,x\n")
    with pytest.raises(BadFileError, match="at least one row below its header"):
        read_csv(tmp_path / "a.csv")


def test_what_a_file_cannot_be_is_refused(tmp_path):
    for name in ("a.xlsx", "a.json", "a.parquet.gz", "a.xlsx.gz", "a.html"):
        with pytest.raises(InvalidInputError, match="Change its ending"):
            write_data(full_data(), tmp_path / name)
    (tmp_path / "b.csv").write_text("label;;qid\n")
    with pytest.raises(InvalidInputError, match="one character"):
        read_csv(tmp_path / "b.csv", delimiter=";;")


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["007", "7", "7"], ["007", "7"]),
        (["+7", "7", "7"], ["+7", "7"]),
        (["7", "7", "-12"], [7, -12]),
        (["7.0", "8.0", "7.0"], [7, 8]),
        (["7.0", "7", "7"], ["7.0", "7"]),
        (["0", "00", "0"], ["0", "00"]),
        (["1e3", "1000", "a"], ["1e3", "1000", "a"]),
        (["12345678901234567890", "1", "1"], ["12345678901234567890", "1"]),
        (['"7"', '"8"', '"7"'], ["7", "8"]),
    ],
)
def test_query_ids_of_csv_files_stay_apart(tmp_path, ids, expected):
    file = tmp_path / "a.csv"
    file.write_text("label,qid,x\n" + "".join(f"{k},{i},0.5\n" for k, i in enumerate(ids)))
    assert read_csv(file).query_ids.tolist() == expected


@pytest.mark.parametrize("blank", ["", "  ", '""'])
def test_blank_query_ids_of_csv_files_are_refused(tmp_path, blank):
    file = tmp_path / "a.csv"
    file.write_text(f"label,qid,x\n0,a,1\n1,{blank},2\n")
    with pytest.raises(BadFileError, match=r"qid must not be blank; got '\s*' at row 1"):
        read_csv(file)


@pytest.mark.parametrize("value", ["inf", "-inf", "1e400"])
def test_infinite_features_of_csv_files_are_refused(tmp_path, value):
    file = tmp_path / "a.csv"
    file.write_text(f"label,qid,x\n0,a,1\n1,a,{value}\n")
    with pytest.raises(BadFileError, match=r"column 'x' must be finite or missing; got -?inf at row 1"):
        read_csv(file)


def test_the_index_that_pandas_writes_is_no_feature(tmp_path):
    frame = pd.DataFrame({"label": [0, 1, 0], "qid": [1, 1, 2], "x": [0.5, 1, 2], "title": ["a", "b", "c"]})
    frame.iloc[[2, 0, 1]].to_csv(tmp_path / "a.csv")
    with pytest.warns(UserWarning, match="the column '' numbers the rows"):
        data = read_csv(tmp_path / "a.csv")
    assert data.feature_names == ("x",)
    assert data.extra["title"].tolist() == ["c", "a", "b"]


def test_columns_are_written_under_their_own_names(tmp_path):
    table = pa.table({"grade": [1, 0], "query": ["b", "a"], "x": [0.5, 1.0], "title": ["s", "t"]})
    data = cr.from_frame(table, label="grade", qid="query")
    for name in ("a.csv", "a.parquet", "a.tsv.gz"):
        write_data(data, tmp_path / name, label="grade", qid="query")
        again = read_data(tmp_path / name, label="grade", qid="query")
        assert again.extra["title"].tolist() == ["s", "t"]
        assert (again.y.tolist(), again.query_ids.tolist()) == ([1, 0], ["b", "a"])


def test_lists_in_cells_go_into_parquet_alone(tmp_path):
    data = cr.from_frame(
        pa.table({"label": [1, 0], "qid": [1, 1], "x": [0.5, 1.0], "vector": [[1.0], [2.0, 3.0]]})
    )
    write_data(data, tmp_path / "a.parquet")
    assert [v.tolist() for v in read_data(tmp_path / "a.parquet").extra["vector"]] == [[1.0], [2.0, 3.0]]
    with pytest.raises(InvalidInputError, match="column 'vector' must hold single values"):
        write_data(data, tmp_path / "a.csv")
