import hashlib
import json

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.noise.corrupt import (
    corrupt,
    read_changed,
    record_of,
    side_files,
    truth_frame,
    write_corruption,
)
from cleanrank.noise.profiles import NoiseProfile


@pytest.fixture
def clean_file(toy, tmp_path):
    """A LETOR file whose rows of a query are not contiguous."""
    back = np.argsort(toy.row_ids)
    path = tmp_path / "clean.txt"
    lines = [
        f"{toy.y[i]} qid:{toy.qid[i]} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(toy.X[i]))
        for i in back
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("name", ["noisy.txt", "noisy.parquet", "noisy.csv", "noisy.txt.gz", "noisy.csv.gz"])
@pytest.mark.parametrize("truth", ["csv", "parquet"])
def test_files_read_back_as_what_they_were(clean_file, tmp_path, name, truth):
    data = cr.read_data(clean_file, cache=False)
    found = corrupt(data, rate=0.3, seed=4)
    out = tmp_path / name
    record = write_corruption(found, out, source=clean_file, truth=truth)
    record_file, truth_file = side_files(out, truth)
    assert json.loads(record_file.read_text()) == json.loads(json.dumps(record))
    back = cr.read_data(out)
    np.testing.assert_array_equal(back.y, found.data.y)
    np.testing.assert_allclose(back.X, found.data.X)
    table = pd.read_parquet(truth_file) if truth == "parquet" else pd.read_csv(truth_file)
    assert list(table.columns) == ["row", "row_id", "query_id", "true_grade", "given_grade"]
    np.testing.assert_array_equal(table.given_grade, back.y)
    # row_id leads back to the clean file, whose rows lie in another order.
    labels = [int(line.split()[0]) for line in clean_file.read_text().splitlines()]
    np.testing.assert_array_equal(table.true_grade, np.array(labels)[table.row_id])
    assert (table.row != table.row_id).any()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        ["clean.txt", name, record_file.name, truth_file.name]
    )


def test_the_record_says_all(clean_file, tmp_path):
    data = cr.read_data(clean_file, cache=False)
    found = corrupt(data, "geometric", 0.3, seed=4, options={"rho": 0.25})
    settings = {"profile": "geometric", "rate": 0.3, "options": {"rho": 0.25}}
    record = write_corruption(found, tmp_path / "noisy.txt", source=clean_file, settings=settings)
    assert record["input_sha256"] == hashlib.sha256(clean_file.read_bytes()).hexdigest()
    assert record["matrix"] == found.profile.matrix.tolist()
    assert (record["seed"], record["cleanrank"]) == (4, cr.__version__)
    assert record["realised_rate"] == found.changed.mean()
    counts = np.array(record["counts"])
    assert counts.sum() == data.n_docs
    assert np.trace(counts) == (~found.changed).sum()
    np.testing.assert_array_equal(counts.sum(axis=1), np.bincount(data.y))
    assert [g["documents"] for g in record["per_grade"]] == np.bincount(data.y).tolist()
    assert sum(g["changed"] for g in record["per_grade"]) == record["changed"] == found.changed.sum()
    assert record["command"] == (
        "cleanrank corrupt clean.txt --profile geometric --rate 0.3 --option rho=0.25 --seed 4 -o noisy.txt"
    )


def test_matrix_and_seed_of_the_record_make_the_same_noise(toy):
    found = corrupt(toy, "power", 0.37, seed=11)
    record = json.loads(json.dumps(record_of(found)))
    again = corrupt(toy, NoiseProfile(np.array(record["matrix"])), seed=record["seed"])
    np.testing.assert_array_equal(again.data.y, found.data.y)
    assert record["command"] is None, "without a source there is nothing to run"


def test_nothing_is_overwritten_unless_forced(toy, tmp_path):
    found = corrupt(toy, rate=0.3)
    out = tmp_path / "noisy.csv"
    for taken in (out, *side_files(out)):
        taken.write_text("mine")
        with pytest.raises(CleanrankError, match=r"must not exist yet.*--force"):
            write_corruption(found, out)
        assert taken.read_text() == "mine"
        assert [p.name for p in tmp_path.iterdir()] == [taken.name]
        taken.unlink()
    out.write_text("mine")
    write_corruption(found, out, force=True)
    assert cr.read_data(out).n_docs == toy.n_docs


def test_the_clean_file_is_never_overwritten(clean_file):
    before = clean_file.read_bytes()
    found = corrupt(cr.read_data(clean_file, cache=False), rate=0.3)
    with pytest.raises(CleanrankError, match="must differ from the clean file"):
        write_corruption(found, clean_file, source=clean_file, force=True)
    assert clean_file.read_bytes() == before


def test_a_failed_write_leaves_nothing(toy, tmp_path, monkeypatch):
    def broken(data, path, **_):
        raise OSError("disk full")

    monkeypatch.setattr("cleanrank.data.tables.write_data", broken)
    with pytest.raises(OSError, match="disk full"):
        write_corruption(corrupt(toy, rate=0.3), tmp_path / "noisy.csv")
    assert not list(tmp_path.iterdir())


def test_the_truth_knows_the_query(toy):
    found = corrupt(toy, rate=0.3)
    frame = truth_frame(found)
    np.testing.assert_array_equal(frame.query_id, toy.qid)
    with pytest.raises(CleanrankError, match="unknown kind of truth file"):
        side_files("a.txt", "json")


def test_the_truth_is_matched_by_row_id(tmp_path):
    """Rows of the truth may stand in any order, rows of the data be a part of them, none be missing."""
    data = cr.from_arrays(np.zeros((6, 1)), [0, 1, 2, 0, 1, 2], qid=[2, 2, 2, 1, 1, 1])
    true = np.array([0, 2, 2, 1, 1, 2])
    frame = pd.DataFrame({"row_id": np.arange(6), "true_grade": true, "given_grade": [0, 1, 2, 0, 1, 2]})
    frame.iloc[[4, 1, 5, 0, 3, 2]].to_csv(tmp_path / "truth.csv", index=False)
    changed = {1, 3}
    for part in (data, data.select([1, 2, 5])):
        found = read_changed(tmp_path / "truth.csv", part)
        assert found.tolist() == [row in changed for row in part.row_ids.tolist()]
    frame[1:].to_csv(tmp_path / "short.csv", index=False)
    with pytest.raises(CleanrankError, match="must have every row of the data; got no row 0"):
        read_changed(tmp_path / "short.csv", data)
