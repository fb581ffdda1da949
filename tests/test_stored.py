"""Features that stay on disk: selections, blocks, pickles, half precision and codes."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import cleanrank.stored
from cleanrank.errors import BadFileError, InvalidInputError
from cleanrank.stored import (
    CODES,
    FEATURES,
    MAPPED,
    StoredFeatures,
    as_array,
    blocks,
    code_values,
    encoded,
    is_dense,
)
from cleanrank.types import RankingData


@pytest.fixture
def X():
    values = np.random.default_rng(0).normal(size=(500, 6)).astype(np.float32)
    values[::7, 2] = np.nan
    return values


@pytest.fixture
def stored(X, tmp_path):
    for number, part in enumerate(np.split(X, [1, 120, 340])):
        np.save(tmp_path / FEATURES.format(number), part)
    return StoredFeatures(tmp_path)


def same(found, expected):
    np.testing.assert_array_equal(as_array(found), expected)


def test_they_have_the_shape_and_values_of_all_shards(stored, X):
    assert stored.shape == (500, 6)
    assert (stored.size, stored.nbytes, stored.ndim, stored.dtype) == (3000, 12000, 2, np.float32)
    same(stored, X)
    same(np.asarray(stored), X)
    assert np.asarray(stored, dtype=np.float64).dtype == np.float64


@pytest.mark.parametrize(
    "rows",
    [
        slice(100, 200), slice(None), slice(490, 9999), slice(400, 3, -2), [5, 3, 5], np.arange(499, -1, -3),
        np.arange(500) % 3 == 0, np.zeros(0, dtype=np.int64), -1,
    ],
    ids=str,
)  # fmt: skip
def test_rows_are_selected_as_in_an_array(stored, X, rows):
    same(stored[rows], np.atleast_2d(X[rows]))
    # A selection of a selection counts from the first one.
    same(stored[::-1][rows], np.atleast_2d(X[::-1][rows]))


def test_columns_are_read_at_once(stored, X):
    same(stored[:, [1, 4]], X[:, [1, 4]])
    same(stored[:, 2], X[:, 2])
    same(stored[[7, 3], 1], X[[7, 3], 1])
    assert stored[130, 1] == X[130, 1]
    same(stored[:, :3], X[:, :3])


@pytest.mark.parametrize("key", [[500], [-501], np.ones(3, dtype=bool)])
def test_rows_that_are_not_there_are_refused(stored, key):
    with pytest.raises(IndexError, match=r"rows must lie below 500|a mask of rows must have 500 entries"):
        stored[key]


def test_blocks_follow_each_other_and_do_not_copy_what_lies_together(stored, X):
    for part in (stored, stored[200:], stored[::3]):
        starts, values = zip(*part.blocks(64), strict=True)
        assert list(starts) == list(range(0, part.shape[0], 64))
        same(np.concatenate(values), as_array(part))
    assert not stored.read(130, 140).flags.owndata
    assert not stored[130:150].read(0, 20).flags.owndata
    assert [len(block) for _, block in blocks(X, 400)] == [400, 100]


def test_a_pickle_is_a_path_and_the_rows(stored, X):
    text = pickle.dumps(stored[::5])
    assert len(text) < 2000
    same(pickle.loads(text), X[::5])


def test_they_are_dense_and_have_no_length(stored, X):
    assert is_dense(stored)
    assert is_dense(X)
    with pytest.raises(TypeError, match=r"use X\.shape"):
        len(stored)
    with pytest.raises(ValueError, match="must be copied"):
        np.asarray(stored, copy=False)


def test_what_tells_them_apart_is_the_folder_the_time_and_the_rows(stored):
    again = StoredFeatures(stored.folder)
    assert repr(stored.identity()) == repr(again.identity())
    assert repr(stored[1:].identity()) != repr(stored[2:].identity())
    # Another folder in its place is another one, and what was opened stays what it was.
    before = as_array(stored)
    for number, part in enumerate(np.split(-before, [200])):
        path = stored.folder / FEATURES.format(number)
        path.unlink()
        np.save(path, part)
    for number in (2, 3):
        (stored.folder / FEATURES.format(number)).unlink()
    replaced = StoredFeatures(stored.folder)
    assert repr(replaced.identity()) != repr(again.identity())
    same(replaced, -before)
    same(again, before)
    cleanrank.stored._mapped.cache_clear()
    with pytest.raises(BadFileError, match="must stay as it was when it was opened; got another folder"):
        as_array(again)


def test_a_process_opens_few_files_however_many_shards_there_are(tmp_path):
    for number in range(MAPPED + 100):
        np.save(tmp_path / FEATURES.format(number), np.full((2, 1), number, np.float32))
    many = StoredFeatures(tmp_path)
    assert as_array(many)[:, 0].tolist() == np.repeat(np.arange(MAPPED + 100), 2).tolist()
    assert len(list(Path("/proc/self/fd").iterdir())) < MAPPED + 100


def test_data_keep_them_through_selections(stored, X):
    data = RankingData(stored, np.arange(500) % 3, [0, 200, 500], [7, 8], np.arange(500))
    assert "6 features (on disk)" in repr(data)
    part = data.select(np.arange(150, 450))
    assert isinstance(part.X, StoredFeatures)
    same(part.X, X[150:450])
    same(data.select_queries([1]).X, X[200:])


def test_half_precision_and_codes_read_as_float32(X, tmp_path):
    np.save(tmp_path / FEATURES.format(0), X.astype(np.float16))
    half = StoredFeatures(tmp_path)
    assert half.stored_as == np.float16
    np.testing.assert_allclose(as_array(half), X, rtol=1e-3)
    table = code_values(X)
    (tmp_path / "codes").mkdir()
    np.save(tmp_path / "codes" / CODES, table)
    np.save(tmp_path / "codes" / FEATURES.format(0), encoded(X, table))
    coded = as_array(StoredFeatures(tmp_path / "codes")[10:20])
    np.testing.assert_array_equal(np.isnan(coded), np.isnan(X[10:20]))
    assert np.nanmax(abs(coded - X[10:20])) < 0.5  # the means of 255 parts of a normal distribution


def test_few_values_are_coded_exactly_and_others_as_the_nearest():
    X = np.array([[3.0], [np.nan], [-1.0], [3.0]], np.float32)
    table = code_values(X)
    assert table[0, encoded(X, table)[:, 0]].tolist()[2:] == [-1.0, 3.0]
    new = np.array([[2.0], [-9.0], [99.0]], np.float32)
    assert table[0, encoded(new, table)[:, 0]].tolist() == [3.0, -1.0, 3.0]


def test_a_folder_without_shards_or_with_a_damaged_one_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match=r"a folder of features must hold features-00000\.npy"):
        StoredFeatures(tmp_path / "none")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / FEATURES.format(0)).write_bytes(b"\x93NUMPY\x01\x00")
    with pytest.raises(BadFileError, match="must be a whole shard of features"):
        StoredFeatures(tmp_path / "bad")


def test_what_does_not_fit_into_memory_is_not_read_into_it(tmp_path, monkeypatch):
    np.save(tmp_path / FEATURES.format(0), np.zeros((10, 2), np.float32))
    monkeypatch.setattr("cleanrank.validation.os.sysconf", lambda name: 2)
    with pytest.raises(InvalidInputError, match=r"the features of 10 rows must give data that fit"):
        StoredFeatures(tmp_path).toarray()
