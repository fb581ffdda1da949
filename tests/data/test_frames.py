import datetime
import decimal
import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cleanrank as cr
from cleanrank.data.frames import (
    from_frame,
    kind_of_file,
    read_csv,
    read_data,
    read_parquet,
    to_frame,
    write_csv,
    write_parquet,
)
from cleanrank.errors import BadFileError, InvalidInputError, MissingDataError, UnknownNameError
from tests.oracles import same_data

COLUMNS = {
    "grade": [1, 0, 2, 0],
    "q": ["b", "a", "b", "a"],
    "x": [0.5, 1.5, -2.0, 3.25],
    "n": [1, 2, 3, 4],
    "doc": ["d1", "d2", "d3", "d4"],
}
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}


def full_data(qid=("b", "a", "b", "a"), **change):
    arguments = {
        "X": np.array([[0.1, 1], [np.nan, 2], [3e-20, 3], [7.25, -4]], dtype=np.float32),
        "y": [1, 0, 2, 0],
        "qid": list(qid),
        "gains": [0.5, 0.0, 2.25, 0.1],
        "doc_ids": ["7", "x,y", 'a "quoted" one', "z"],
        "weights": [1.0, 0.5, 0.25, 2.0],
        "positions": [1, 2, 3, 1],
        "feature_names": ("bm25, body", "length"),
        **change,
    }
    return cr.from_arrays(arguments.pop("X"), arguments.pop("y"), **arguments)


@pytest.mark.parametrize("kind", FRAMES)
def test_the_three_kinds_of_frame_give_the_same_data(kind):
    data = from_frame(FRAMES[kind](COLUMNS), label="grade", qid="q", doc_id="doc")
    assert data.query_ids.tolist() == ["b", "a"]
    assert data.y.tolist() == [1, 2, 0, 0]
    assert data.X.tolist() == [[0.5, 1], [-2, 3], [1.5, 2], [3.25, 4]]
    assert data.X.dtype == np.float32
    assert data.doc_ids.tolist() == ["d1", "d3", "d2", "d4"]
    assert data.row_ids.tolist() == [0, 2, 1, 3]
    assert data.feature_names == ("x", "n")


@pytest.mark.parametrize("kind", FRAMES)
def test_missing_features_become_nan_and_missing_labels_and_ids_are_refused(kind):
    frame = FRAMES[kind]
    some = {**COLUMNS, "x": [None, 1.0, 2.0, None], "n": [1, None, 3, 4]}
    X = from_frame(frame(some), label="grade", qid="q", features=["x", "n"]).X
    assert np.isnan(X).tolist() == [[True, False], [False, False], [False, True], [True, False]]
    with pytest.raises(InvalidInputError, match=r"grade.*at row 2"):
        from_frame(frame({**COLUMNS, "grade": [1, 0, None, 0]}), label="grade", qid="q", doc_id="doc")
    with pytest.raises(InvalidInputError, match=r"query ids .column 'q'. must be present.*row 1"):
        from_frame(frame({**COLUMNS, "q": ["a", None, "b", "b"]}), label="grade", qid="q", doc_id="doc")
    with pytest.raises(InvalidInputError, match=r"document ids .column 'doc'.*row 3"):
        from_frame(frame({**COLUMNS, "doc": ["a", "b", "c", None]}), label="grade", qid="q", doc_id="doc")


def test_polars_and_pandas_types_that_are_numbers_in_disguise_are_read():
    table = pa.table(
        {
            "label": pa.array([True, False]),
            "qid": pa.array([1, 1], pa.uint8()),
            "bool": pa.array([True, None]),
            "decimal": pa.array([decimal.Decimal("1.25"), None], pa.decimal128(10, 2)),
            "half": pa.array(np.array([0.5, 2], np.float16)),
            "category": pa.array([3.5, 4.5]).dictionary_encode(),
            "empty": pa.nulls(2),
            "small": pa.array([-3, 200], pa.int16()),
        }
    )
    data = from_frame(table, label="label", qid="qid")
    assert data.y.tolist() == [1, 0]
    expected = [[1, 1.25, 0.5, 3.5, np.nan, -3], [np.nan, np.nan, 2, 4.5, np.nan, 200]]
    np.testing.assert_array_equal(data.X, np.array(expected, dtype=np.float32))
    categories = pd.DataFrame({"y": [0, 1], "q": pd.Categorical(["u", "v"]), "f": [1.0, 2.0]})
    assert from_frame(categories, label="y", qid="q").query_ids.tolist() == ["u", "v"]
    levels = pl.DataFrame({"y": [0, 1], "q": ["u", "v"], "f": [1, 2]}, schema_overrides={"q": pl.Categorical})
    assert from_frame(levels, label="y", qid="q").query_ids.tolist() == ["u", "v"]


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (["1.5", "2", "three", "4"], "column 'odd' must hold numbers; got 'three' at row 2"),
        ([datetime.date(2020, 1, 1)] * 4, "column 'odd' must hold numbers; got type date32"),
        ([[1.0], [2.0], [3.0], [4.0]], "column 'odd' must hold numbers; got type list"),
    ],
)
def test_other_columns_are_refused_by_name_with_the_remedy(column, found):
    table = pa.table({**COLUMNS, "odd": column})
    with pytest.raises(InvalidInputError) as caught:
        from_frame(table, label="grade", qid="q", doc_id="doc")
    assert found in str(caught.value)
    assert "features=[...]" in str(caught.value)


def test_categories_of_words_are_refused():
    frame = pd.DataFrame({**COLUMNS, "site": pd.Categorical(["a", "b", "a", "b"])})
    with pytest.raises(InvalidInputError, match="column 'site' must hold numbers; got 'a' at row 0"):
        from_frame(frame, label="grade", qid="q", doc_id="doc")


def test_a_wrong_column_name_lists_the_columns_and_the_closest():
    with pytest.raises(UnknownNameError) as caught:
        from_frame(pd.DataFrame(COLUMNS), label="grades", qid="q")
    assert str(caught.value) == (
        "there is no column 'grades' (label=). Did you mean 'grade'? Columns: grade, q, x, n, doc."
    )


def test_repeated_columns_and_other_objects_are_refused():
    twice = pd.DataFrame([[1, 2, 3, 4]], columns=["y", "q", "f", "f"])
    with pytest.raises(InvalidInputError, match="'f' twice"):
        from_frame(twice, label="y", qid="q")
    with pytest.raises(InvalidInputError, match="'f' twice"):
        from_frame(pa.table([[1], [2], [3], [4]], names=["y", "q", "f", "f"]), label="y", qid="q")
    with pytest.raises(InvalidInputError, match="from_arrays"):
        from_frame([[1, 2]], label="y", qid="q")
    mixed = pd.DataFrame({"y": [1, 0], "q": [1, 1], "f": [1.0, "two"]})
    with pytest.raises(InvalidInputError, match=r"'?f'?"):
        from_frame(mixed, label="y", qid="q")


def test_an_index_level_can_be_the_query_and_is_no_feature_otherwise():
    frame = pd.DataFrame(COLUMNS).set_index("q")
    data = from_frame(frame, label="grade", qid="q", doc_id="doc")
    assert data.feature_names == ("x", "n")
    frame = pd.DataFrame(COLUMNS, index=[9, 8, 7, 6])
    assert from_frame(frame, label="grade", qid="q", doc_id="doc").feature_names == ("x", "n")


def test_the_frame_is_left_as_it_was():
    frame = pd.DataFrame(COLUMNS)
    before = frame.copy(deep=True)
    data = from_frame(frame, label="grade", qid="q", doc_id="doc")
    pd.testing.assert_frame_equal(frame, before)
    frame.loc[0, "x"] = 99.0
    frame.loc[0, "grade"] = 4
    assert data.X[0, 0] == 0.5
    assert data.y[0] == 1


def test_fractional_grades_and_bad_weights_name_their_row():
    with pytest.raises(InvalidInputError, match=r"whole grades; got 1.5 at row 1 .query 'a'.*gains="):
        from_frame(pd.DataFrame({**COLUMNS, "grade": [0, 1.5, 0, 0]}), label="grade", qid="q", doc_id="doc")
    with pytest.raises(InvalidInputError, match=r"weights must be finite and not negative; got -1.*row 2"):
        from_frame(
            pd.DataFrame({**COLUMNS, "w": [1, 1, -1, 1]}), label="grade", qid="q", doc_id="doc", weight="w"
        )


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("qid", [("b", "a", "b", "a"), (7, -3, 7, 2**40)])
def test_to_frame_and_back(kind, qid):
    data = full_data(qid)
    back = from_frame(
        to_frame(data, kind),
        label="label",
        qid="qid",
        gains="gain",
        doc_id="doc_id",
        weight="weight",
        position="position",
    )
    grouped = cr.from_arrays(
        data.X,
        data.y,
        qid=data.qid,
        gains=data.gains,
        doc_ids=data.doc_ids,
        weights=data.weights,
        positions=data.positions,
        feature_names=data.feature_names,
    )
    assert same_data(back, grouped)


def test_to_frame_knows_its_kinds_and_refuses_a_clash_of_names():
    with pytest.raises(UnknownNameError, match="Known: pandas, polars, arrow"):
        to_frame(full_data(), "panda")
    with pytest.raises(InvalidInputError, match=r"must differ.*qid"):
        to_frame(full_data(feature_names=("qid", "x")))


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".csv.gz", ".csv.zst"])
@pytest.mark.parametrize("qid", [("b", "a", "b", "a"), ("007", "7", "007", "7"), (7, -3, 7, 2**40)])
def test_files_keep_id_types_names_and_values(tmp_path, suffix, qid):
    data = full_data(qid)
    path = tmp_path / f"data{suffix}"
    (write_parquet if suffix == ".parquet" else write_csv)(data, path)
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


def test_what_is_no_frame_is_refused_with_a_remedy():
    frame = pl.DataFrame(COLUMNS)
    with pytest.raises(InvalidInputError, match=r"df\.collect\(\)"):
        from_frame(frame.lazy(), label="grade", qid="q")
    with pytest.raises(InvalidInputError, match="got Series"):
        from_frame(pd.DataFrame(COLUMNS)["grade"], label="grade", qid="q")
    with pytest.raises(InvalidInputError, match=r"Give \['x'\]"):
        from_frame(frame, label="grade", qid="q", features="x")


def test_values_beyond_float32_are_named():
    frame = pd.DataFrame({"label": [0, 1], "qid": [1, 1], "x": [np.inf, -1e300]})
    with pytest.raises(InvalidInputError, match=r"column 'x' must fit into float32; got -1e\+300 at row 1"):
        from_frame(frame, label="label", qid="qid")


def test_a_header_alone_is_no_data(tmp_path):
    (tmp_path / "a.csv").write_text("label,qid,x\n")
    with pytest.raises(BadFileError, match="at least one row below its header"):
        read_csv(tmp_path / "a.csv")


def test_a_packing_that_is_not_known_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match=r"\.gz, \.bz2 or \.zst"):
        write_csv(full_data(), tmp_path / "a.csv.xz")
    (tmp_path / "b.csv").write_text("label;;qid\n")
    with pytest.raises(InvalidInputError, match="one character"):
        read_csv(tmp_path / "b.csv", delimiter=";;")
