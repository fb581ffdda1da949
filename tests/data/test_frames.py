import datetime
import decimal

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cleanrank as cr
from cleanrank.data.frames import from_frame, to_frame
from cleanrank.data.table_files import read_csv, read_parquet, write_csv, write_parquet
from cleanrank.errors import InvalidInputError, UnknownNameError
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
    expected = [[1, 1.25, 0.5, 0, np.nan, -3], [np.nan, np.nan, 2, 1, np.nan, 200]]
    assert data.categories == {"category": (3.5, 4.5)}
    np.testing.assert_array_equal(data.X, np.array(expected, dtype=np.float32))
    categories = pd.DataFrame({"y": [0, 1], "q": pd.Categorical(["u", "v"]), "f": [1.0, 2.0]})
    assert from_frame(categories, label="y", qid="q").query_ids.tolist() == ["u", "v"]
    levels = pl.DataFrame({"y": [0, 1], "q": ["u", "v"], "f": [1, 2]}, schema_overrides={"q": pl.Categorical})
    assert from_frame(levels, label="y", qid="q").query_ids.tolist() == ["u", "v"]


@pytest.mark.parametrize("kind", FRAMES)
def test_columns_that_are_no_features_are_carried_along(kind):
    days = [datetime.date(2020, 1, day) for day in (1, 2, 3, 4)]
    frame = FRAMES[kind]({**COLUMNS, "title": ["t1", None, "t3", "t4"], "day": days})
    data = from_frame(frame, label="grade", qid="q", doc_id="doc")
    assert data.feature_names == ("x", "n")
    assert data.extra["title"].tolist() == ["t1", "t3", None, "t4"]
    assert [str(day)[:10] for day in data.extra["day"]] == [str(days[row]) for row in (0, 2, 1, 3)]
    back = to_frame(data.drop([0]), "arrow")
    assert back.column_names == ["label", "qid", "doc_id", "x", "n", "title", "day"]
    assert back["title"].to_pylist() == ["t3", None, "t4"]
    chosen = from_frame(frame, label="grade", qid="q", features=["n"])
    assert chosen.feature_names == ("n",)
    assert list(chosen.extra) == ["x", "doc", "title", "day"]
    assert chosen.extra["x"].tolist() == [0.5, -2.0, 1.5, 3.25]


@pytest.mark.parametrize("kind", FRAMES)
def test_a_typing_error_in_a_column_of_numbers_is_no_text(kind):
    table = FRAMES[kind]({**COLUMNS, "odd": ["1.5", "2", "three", None]})
    with pytest.raises(InvalidInputError) as caught:
        from_frame(table, label="grade", qid="q", doc_id="doc")
    assert "column 'odd' must hold numbers; got 'three' at row 2" in str(caught.value)
    assert "features=[...]" in str(caught.value)
    codes = pa.table({**COLUMNS, "zip": ["01", "02", "03", "04"]})
    assert from_frame(codes, label="grade", qid="q").extra["zip"].tolist() == ["01", "03", "02", "04"]
    with pytest.raises(InvalidInputError, match="column 'zip' must hold numbers; got '01' at row 0"):
        from_frame(codes, label="grade", qid="q", features=["x", "zip"])


@pytest.mark.parametrize("kind", FRAMES)
def test_categories_become_codes(kind, tmp_path):
    values = ["us", "uk", None, "us"]
    site = {
        "pandas": pd.Categorical(values, categories=["uk", "us", "unused"]),
        "polars": pl.Series(values, dtype=pl.Categorical),
        "arrow": pa.array(values).dictionary_encode(),
    }[kind]
    data = from_frame(FRAMES[kind]({**COLUMNS, "site": site}), label="grade", qid="q", doc_id="doc")
    assert data.feature_names == ("x", "n", "site")
    codes, known = data.X[:, 2], data.categories["site"]
    assert [None if np.isnan(code) else known[int(code)] for code in codes] == ["us", None, "uk", "us"]
    write_parquet(data, tmp_path / "a.parquet")
    again = read_parquet(tmp_path / "a.parquet")
    assert again.categories == data.categories
    np.testing.assert_array_equal(again.X, data.X)
    assert to_frame(data)["site"].dtype == "category"
    assert to_frame(data, "polars")["site"].to_list() == ["us", None, "uk", "us"]


@pytest.mark.parametrize("kind", FRAMES)
def test_text_that_is_named_as_a_feature_is_a_category(kind, tmp_path):
    frame = FRAMES[kind]({**COLUMNS, "site": ["us", "uk", None, "us"]})
    data = from_frame(frame, label="grade", qid="q", features=["x", "site"])
    assert data.categories == {"site": ("uk", "us")}
    np.testing.assert_array_equal(data.X[:, 1], np.float32([1, np.nan, 0, 1]))
    write_csv(data, tmp_path / "a.csv")
    assert "site" in read_csv(tmp_path / "a.csv").extra
    again = read_csv(tmp_path / "a.csv", features=["x", "site"])
    assert again.categories == data.categories


def test_categories_of_several_chunks_and_with_a_null_among_them_are_unified():
    chunks = [pa.array(["b", "a"]).dictionary_encode(), pa.array(["c", "a"]).dictionary_encode()]
    data = from_frame(pa.table({**COLUMNS, "site": pa.chunked_array(chunks)}), label="grade", qid="q")
    known = data.categories["site"]
    assert [known[int(code)] for code in data.X[:, 2]] == ["b", "c", "a", "a"]
    holes = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["a", None, "b"]))
    data = from_frame(pa.table({**COLUMNS, "site": holes}), label="grade", qid="q")
    assert data.categories["site"] == ("a", "b")
    np.testing.assert_array_equal(data.X[:, 2], np.float32([0, 1, np.nan, np.nan]))


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__"])
def test_a_saved_pandas_index_is_no_feature(name):
    frame = pd.DataFrame({name: [10, 12, 5, 7], **COLUMNS})
    with pytest.warns(UserWarning, match="numbers the rows, as a saved pandas index does"):
        data = from_frame(frame, label="grade", qid="q", doc_id="doc")
    assert data.feature_names == ("x", "n")
    assert data.extra is None
    repeated = frame.assign(**{name: [1, 1, 2, 2]})
    assert from_frame(repeated, label="grade", qid="q", doc_id="doc").feature_names == (name, "x", "n")


@pytest.mark.parametrize("kind", FRAMES)
def test_infinite_features_are_refused_as_in_letor_files(kind):
    with pytest.raises(InvalidInputError, match="column 'x' must be finite or missing; got -inf at row 2"):
        from_frame(FRAMES[kind]({**COLUMNS, "x": [1.0, None, -np.inf, 2.0]}), label="grade", qid="q")


def test_the_usual_names_of_columns_need_not_be_said():
    frame = pd.DataFrame({"label": [1, 0], "qid": [7, 7], "doc_id": ["a", "b"], "x": [0.5, 1.0]})
    data = from_frame(frame)
    assert (data.y.tolist(), data.query_ids.tolist(), data.doc_ids.tolist()) == ([1, 0], [7], ["a", "b"])


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


def test_what_is_no_frame_is_refused_with_a_remedy():
    frame = pl.DataFrame(COLUMNS)
    with pytest.raises(InvalidInputError, match="got Series"):
        from_frame(pd.DataFrame(COLUMNS)["grade"], label="grade", qid="q")
    with pytest.raises(InvalidInputError, match=r"Give \['x'\]"):
        from_frame(frame, label="grade", qid="q", features="x")


def test_values_beyond_float32_are_named():
    frame = pd.DataFrame({"label": [0, 1], "qid": [1, 1], "x": [np.inf, -1e300]})
    with pytest.raises(InvalidInputError, match=r"column 'x' must fit into float32; got -1e\+300 at row 1"):
        from_frame(frame, label="label", qid="qid")


EVERY_KIND = {
    "polars, lazy": lambda frame: frame.lazy(),
    "DuckDB": lambda frame: duckdb.from_arrow(frame.to_arrow()),
    "DuckDB, filtered": lambda frame: duckdb.from_arrow(frame.to_arrow()).filter("true"),
    "narwhals": nw.from_native,
    "narwhals, lazy": lambda frame: nw.from_native(frame.lazy()),
    "pyarrow": lambda frame: frame.to_arrow(),
}


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_frames_of_every_kind_give_the_same_data(kind):
    expected = from_frame(pd.DataFrame(COLUMNS), label="grade", qid="q")
    data = from_frame(EVERY_KIND[kind](pl.DataFrame(COLUMNS)), label="grade", qid="q")
    for name in ("X", "y", "query_ids", "indptr", "row_ids"):
        np.testing.assert_array_equal(getattr(data, name), getattr(expected, name))
    assert data.feature_names == expected.feature_names
    assert sorted(data.extra or {}) == sorted(expected.extra or {})


def test_functions_take_lazy_frames_and_relations():
    made = cr.make_ranking(20, 3, docs_per_query=10, seed=1)
    frame = to_frame(made, "arrow")
    expected = cr.diagnose(frame, label="label", qid="qid").to_dict()
    for kind in (duckdb.from_arrow(frame), pl.from_arrow(frame).lazy()):
        assert cr.diagnose(kind, label="label", qid="qid").to_dict() == expected
    issues = cr.find_label_issues(duckdb.from_arrow(frame), label="label", qid="qid", noise="uniform:0.1")
    assert len(issues) == made.n_docs
