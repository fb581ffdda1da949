"""Folders of shards: every format becomes one, pieces meet at queries, broken work goes on, damage shows."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.data import shard_sources, shards, table_files
from cleanrank.data.shard_sources import of_data, of_letor
from cleanrank.data.shards import DATASET, read_shards, write_shards
from cleanrank.data.synthetic import make_ranking_chunks
from cleanrank.data.tables import source_of_shards
from cleanrank.errors import BadFileError, InvalidInputError, MissingDataError
from cleanrank.stored import StoredFeatures, as_array
from cleanrank.types import PER_ROW


@pytest.fixture(scope="module")
def data():
    return cr.make_ranking(60, 7, docs_per_query=20, seed=0)


@pytest.fixture
def small_pieces(monkeypatch):
    """Pieces of a few queries, so that a small file has many of them."""
    for module, name in ((shard_sources, "TEXT_PIECE"), (shard_sources, "PIECE"), (table_files, "CSV_BLOCK")):
        monkeypatch.setattr(module, name, 1 << 13)
    monkeypatch.setattr(shard_sources, "LEAST_ROWS", 64)


def assert_same(one, two):
    """Both data have the same values of the same kinds; features may lie in memory or on disk."""
    np.testing.assert_array_equal(as_array(one.X), as_array(two.X))
    for name in ("indptr", "query_ids", *PER_ROW):
        a, b = getattr(one, name), getattr(two, name)
        assert (a is None) == (b is None), name
        if a is not None:
            assert a.dtype.kind == b.dtype.kind, name
            np.testing.assert_array_equal(a, b, err_msg=name)
    assert one.feature_names == two.feature_names
    assert dict(one.categories or {}) == dict(two.categories or {})
    assert (one.extra or {}).keys() == (two.extra or {}).keys()
    for name, column in (one.extra or {}).items():
        np.testing.assert_array_equal(column, two.extra[name], err_msg=name)


def bits(folder):
    """Every file of a folder but for the description, which holds times of the input."""
    return {f.name: f.read_bytes() for f in sorted(Path(folder).iterdir()) if f.name != DATASET}


def converted(file, folder, **options):
    dtype = options.pop("dtype", None)
    shards.convert(source_of_shards(file, None, options), folder, dtype=dtype)
    return read_shards(folder)


# Every format


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.csv", "a.tsv.gz", "a.parquet"])
def test_files_become_what_they_are_in_memory(data, tmp_path, small_pieces, name):
    cr.write_data(data, tmp_path / name)
    made = converted(tmp_path / name, tmp_path / "made")
    assert isinstance(made.X, StoredFeatures)
    assert len(made.X.whole_shards()) > 3
    dense = {"dense": True} if ".txt" in name else {}
    assert_same(made, cr.read_data(tmp_path / name, **dense))


def test_the_number_of_threads_changes_nothing(data, tmp_path, small_pieces):
    cr.write_letor(data, tmp_path / "a.txt")
    for jobs in (1, 3):
        shards.convert(of_letor(tmp_path / "a.txt", n_jobs=jobs), tmp_path / f"{jobs}")
    assert bits(tmp_path / "1") == bits(tmp_path / "3")


def test_names_documents_comments_and_the_columns_beside_come_along(tmp_path, small_pieces):
    lines = [
        f"{k % 3} qid:{'q' * (k > 600)}{k // 7} 1:{k / 10} 3:{k}" + (f" # d{k} said {k}" if k % 2 else "")
        for k in range(1000)
    ]
    # The last line has no end, and blank lines and comments lie between the rows.
    (tmp_path / "a.txt").write_text("# begin\n" + "\n\n".join(lines))
    (tmp_path / "a.txt.weight").write_text("\n".join(str(k % 5) for k in range(1000)))
    (tmp_path / "a.txt.position").write_text("\n".join(str(k % 7) for k in range(1000)))
    made = converted(tmp_path / "a.txt", tmp_path / "made")
    assert_same(made, cr.read_letor(tmp_path / "a.txt", dense=True))
    assert made.query_ids.dtype.kind == "U"
    assert made.extra["comment"][1] == "said 1"


def test_several_files_follow_each_other_even_within_a_query(data, tmp_path, small_pieces):
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    cr.write_letor(data, tmp_path / "all.txt")
    lines = (tmp_path / "all.txt").read_text().splitlines(keepends=True)
    cut = int(data.indptr[20]) + 3
    files[0].write_text("".join(lines[:cut]).rstrip("\n"))
    files[1].write_text("".join(lines[cut:]))
    shards.convert(of_letor(files), tmp_path / "made")
    assert_same(read_shards(tmp_path / "made"), cr.read_letor(files, dense=True))


def test_a_query_longer_than_a_piece_is_one_all_the_same(tmp_path, small_pieces):
    data = cr.make_ranking(3, 4, docs_per_query=(800, 0.0), seed=1)
    for name in ("a.txt", "a.parquet"):
        cr.write_data(data, tmp_path / name)
        assert_same(converted(tmp_path / name, tmp_path / f"{name}-made"), data_of(data, name))


def data_of(data, name):
    return replace(data, feature_names=None if name.endswith(".txt") else names(data))


def names(data):
    return tuple(f"feature_{j + 1}" for j in range(data.n_features))


def test_columns_that_no_sample_showed_are_met_by_starting_again(tmp_path, small_pieces, monkeypatch):
    from cleanrank.data import _letor_reader

    monkeypatch.setattr(_letor_reader, "SAMPLE", 64)
    lines = [
        f"1 qid:{k // 9} {'' if k != 500 else '0:5 '}1:{k} {'' if k < 700 else '9:1'}" for k in range(900)
    ]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    made = converted(tmp_path / "a.txt", tmp_path / "made")
    assert_same(made, cr.read_letor(tmp_path / "a.txt", dense=True))
    assert made.n_features == 10


def test_rows_that_name_few_of_many_features_do_not_make_large_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(shard_sources, "LEAST_TEXT", 256)
    monkeypatch.setattr(shard_sources, "MOST", 1 << 18)
    (tmp_path / "a.txt").write_text("".join(f"{k % 2} qid:{k // 9} {k % 500 + 1}:1\n" for k in range(2000)))
    made = converted(tmp_path / "a.txt", tmp_path / "made")
    assert_same(made, cr.read_letor(tmp_path / "a.txt", dense=True))
    sizes = [file.stat().st_size for _, file in made.X.whole_shards()]
    assert max(sizes) < 1 << 18
    # A query that is larger all the same is one piece.
    (tmp_path / "b.txt").write_text("".join(f"{k % 2} qid:7 {k % 500 + 1}:1\n" for k in range(400)))
    assert converted(tmp_path / "b.txt", tmp_path / "long").n_queries == 1


def test_tables_keep_categories_texts_and_named_columns(tmp_path, small_pieces):
    rng = np.random.default_rng(0)
    n = 700
    frame = pd.DataFrame(
        {
            "q": np.repeat(np.arange(n // 7), 7), "grade": rng.integers(0, 3, n), "bm25": rng.normal(size=n),
            "kind": pd.Categorical(rng.choice(["shop", "news", "blog"], n)),
            "url": [f"u{k}" for k in range(n)],
            "weight": rng.random(n).astype(np.float32), "age": rng.integers(0, 99, n),
        }
    )  # fmt: skip
    columns = {"label": "grade", "qid": "q", "doc_id": "url"}
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=100)
    assert_same(
        converted(tmp_path / "a.parquet", tmp_path / "p", **columns),
        cr.read_data(tmp_path / "a.parquet", **columns),
    )
    frame.drop(columns="kind").to_csv(tmp_path / "a.csv", index=False)
    assert_same(
        converted(tmp_path / "a.csv", tmp_path / "c", **columns), cr.read_data(tmp_path / "a.csv", **columns)
    )


def test_categories_that_come_later_get_codes_behind_the_others(tmp_path, small_pieces):
    frame = pd.DataFrame({"qid": np.arange(300) // 3, "label": np.arange(300) % 2})
    frame["kind"] = np.where(frame.qid < 60, "b", "a")
    parts = [frame[:180].astype({"kind": "category"}), frame[180:].astype({"kind": "category"})]
    (tmp_path / "set").mkdir()
    for number, part in enumerate(parts):
        part.to_parquet(tmp_path / "set" / f"train-0000{number}-of-00002.parquet", index=False)
    made = converted(tmp_path / "set", tmp_path / "made")
    assert dict(made.categories) == {"kind": ("b", "a")}
    values = np.array(made.categories["kind"])[as_array(made.X)[:, 0].astype(int)]
    assert values.tolist() == frame.kind.tolist()


def test_whole_numbers_may_turn_into_fractions_after_the_first_block_of_a_csv(tmp_path, small_pieces):
    lines = [f"{k // 5},{k % 2},{k if k < 900 else k + 0.5}" for k in range(1500)]
    (tmp_path / "a.csv").write_text("qid,label,age\n" + "\n".join(lines) + "\n")
    assert_same(converted(tmp_path / "a.csv", tmp_path / "made"), cr.read_data(tmp_path / "a.csv"))


def test_pieces_that_come_one_by_one_are_shards(tmp_path):
    outline = {"n_features": 5, "docs_per_query": 9, "seed": 3}
    write_shards(make_ranking_chunks(50, chunk_queries=20, **outline), tmp_path / "made")
    made = read_shards(tmp_path / "made")
    assert len(made.X.whole_shards()) == 3
    assert_same(made, cr.make_ranking(50, **outline))


def test_all_columns_of_data_are_kept(data, tmp_path):
    rng = np.random.default_rng(0)
    n = data.n_docs
    whole = replace(
        data, gains=rng.random(n), doc_ids=np.array([f"d{k}" for k in range(n)]), weights=rng.random(n),
        positions=np.arange(n) % 9, judged=rng.random(n) < 0.5, feature_names=names(data),
        extra={"title": np.array([f"t{k}" for k in range(n)], dtype=object)},
    ).select(rng.random(n) < 0.8)  # fmt: skip
    cr.write_data(whole, f"{tmp_path}/made/")
    assert_same(cr.read_data(tmp_path / "made"), whole)


# How features are stored


def test_half_precision_and_codes_take_less_and_read_as_float32(data, tmp_path):
    sizes = {}
    for dtype in ("float32", "float16", "uint8"):
        write_shards(data, tmp_path / dtype, dtype=dtype)
        made = read_shards(tmp_path / dtype)
        assert (made.X.stored_as, made.X.dtype) == (dtype, np.float32)
        sizes[dtype] = (tmp_path / dtype / "features-00000.npy").stat().st_size - 128
        tolerance = {"float32": 0.0, "float16": 1e-3, "uint8": 0.1}[dtype]
        close = np.isclose(as_array(made.X), data.X, rtol=tolerance, atol=tolerance)
        assert close.mean() > (0.95 if dtype == "uint8" else 0.9999)  # codes: the tails are means
    assert sizes["float32"] == 2 * sizes["float16"] == 4 * sizes["uint8"]
    # Trees on 255 values a column rank about as well as on all of them.
    for dtype in ("float16", "uint8"):
        ranker = cr.BoostedRanker(n_estimators=20).fit_data(read_shards(tmp_path / dtype))
        value = cr.evaluate(ranker.predict(data.X), data, ["ndcg@10"], order="data")["ndcg@10"].mean()
        assert value == pytest.approx(
            cr.BoostedRanker(n_estimators=20).fit_data(data).score(data.X, data.y, qid=data.qid), abs=0.05
        )


def test_values_beyond_half_precision_are_refused(tmp_path):
    data = cr.from_arrays([[1.0], [1e6]], [0, 1], qid=[1, 1])
    with pytest.raises(InvalidInputError, match=r"features must fit into float16 \(up to 65,504\); got 1000"):
        write_shards(data, tmp_path / "made", dtype="float16")
    assert not (tmp_path / "made").exists()


def test_other_labels_share_the_files_of_the_features(data, tmp_path):
    for dtype in ("float32", "uint8"):
        write_shards(data, tmp_path / dtype, dtype=dtype)
        opened = read_shards(tmp_path / dtype)
        noisy = cr.corrupt(opened, rate=0.3, seed=0).data
        write_shards(noisy, tmp_path / f"noisy-{dtype}")
        first = Path(dtype, "features-00000.npy")
        assert (tmp_path / first).samefile(tmp_path / f"noisy-{first}")
        again = read_shards(tmp_path / f"noisy-{dtype}")
        np.testing.assert_array_equal(as_array(again.X), as_array(opened.X))
        assert (again.y == noisy.y).all()
        assert (again.y != data.y).any()


# Broken work


def test_a_conversion_goes_on_behind_its_last_whole_shard(data, tmp_path, small_pieces, monkeypatch):
    cr.write_letor(data, tmp_path / "a.txt")
    converted(tmp_path / "a.txt", tmp_path / "whole")
    parsed = []
    write = shards.write_shard

    def fail_now_and_then(part, number, piece, outline):
        parsed.append(number)
        if len(parsed) in (2, 5, 6):
            raise KeyboardInterrupt
        return write(part, number, piece, outline)

    monkeypatch.setattr(shards, "write_shard", fail_now_and_then)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            converted(tmp_path / "a.txt", tmp_path / "made")
        with pytest.raises(MissingDataError, match=r"must be finished before it is read.*goes on where"):
            cr.read_data(tmp_path / "made")
    converted(tmp_path / "a.txt", tmp_path / "made")
    assert parsed == [0, 1, 1, 2, 3, 3, *range(3, len(bits(tmp_path / "whole")) // 3)]
    assert bits(tmp_path / "made") == bits(tmp_path / "whole")
    assert not list(tmp_path.glob(".*.part"))


def test_what_was_made_of_another_file_or_with_other_settings_is_not_used(data, tmp_path, small_pieces):
    cr.write_letor(data, tmp_path / "a.txt")
    source = of_letor(tmp_path / "a.txt")

    def begun(_):
        yield next(source.pieces(None))
        raise KeyboardInterrupt

    for change in (lambda: cr.write_letor(cr.corrupt(data, rate=0.3, seed=1).data, tmp_path / "a.txt"), None):
        with pytest.raises(KeyboardInterrupt):
            shards.convert(replace(source, pieces=begun), tmp_path / "made", dtype="float32")
        if change is not None:
            change()
            shards.convert(of_letor(tmp_path / "a.txt"), tmp_path / "made")
            assert_same(read_shards(tmp_path / "made"), cr.read_letor(tmp_path / "a.txt"))
            shutil.rmtree(tmp_path / "made")
        else:
            shards.convert(of_letor(tmp_path / "a.txt"), tmp_path / "made", dtype="float16")
            assert read_shards(tmp_path / "made").X.stored_as == np.float16


def test_a_damaged_part_is_made_anew(data, tmp_path, small_pieces):
    cr.write_letor(data, tmp_path / "a.txt")
    source = of_letor(tmp_path / "a.txt")

    def begun(_):
        pieces = source.pieces(None)
        yield next(pieces)
        yield next(pieces)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shards.convert(replace(source, pieces=begun), tmp_path / "made")
    part = tmp_path / ".made.part" / "features-00000.npy"
    raw = bytearray(part.read_bytes())
    raw[-3] ^= 1
    part.write_bytes(raw)
    shards.convert(source, tmp_path / "made")
    assert_same(read_shards(tmp_path / "made", verify=True), cr.read_letor(tmp_path / "a.txt"))


DRIVER = """
import sys
from cleanrank.data import shard_sources, shards, table_files
shard_sources.TEXT_PIECE = shard_sources.PIECE = table_files.CSV_BLOCK = 1 << 14
shard_sources.LEAST_ROWS = 64
from cleanrank.data.tables import source_of_shards
print("ready", flush=True)
shards.convert(source_of_shards(sys.argv[1], None, {}), sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.txt", "a.parquet"])
def test_a_conversion_killed_ten_times_ends_in_the_same_bits(tmp_path, name):
    rng = random.Random(0)
    data = cr.make_ranking(400, 30, docs_per_query=20, seed=0)
    cr.write_data(data, tmp_path / name)
    words = [sys.executable, "-c", DRIVER, tmp_path / name]
    start = time.monotonic()
    with subprocess.Popen([*words, tmp_path / "whole"], stdout=subprocess.PIPE) as whole:
        whole.stdout.readline()
        start = time.monotonic()
    assert whole.returncode == 0
    taken = time.monotonic() - start
    killed = 0
    for _ in range(10):
        with subprocess.Popen([*words, tmp_path / "made"], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(rng.uniform(0, 0.3 * taken))
            process.send_signal(signal.SIGKILL)
        killed += process.returncode == -signal.SIGKILL
    assert killed >= 5
    subprocess.run([*words, tmp_path / "made"], check=not (tmp_path / "made").exists(), capture_output=True)
    assert bits(tmp_path / "made") == bits(tmp_path / "whole")


def test_what_cannot_go_on_begins_anew(data, tmp_path, small_pieces, monkeypatch):
    """Folders and pieces have no place to go on from: no part of an earlier attempt is used."""
    write_shards(data, tmp_path / "data")
    write = shards.write_shard

    def fail_at_two(part, number, piece, outline):
        if number == 2:
            raise KeyboardInterrupt
        return write(part, number, piece, outline)

    assert len(read_shards(tmp_path / "data").X.whole_shards()) > 3
    monkeypatch.setattr(shards, "write_shard", fail_at_two)
    with pytest.raises(KeyboardInterrupt):
        converted(tmp_path / "data", tmp_path / "made")
    monkeypatch.setattr(shards, "write_shard", write)
    assert_same(converted(tmp_path / "data", tmp_path / "made"), data)


def test_two_processes_do_not_write_the_same_folder(data, tmp_path):
    def meanwhile(_):
        with pytest.raises(InvalidInputError, match="must be written by one process at a time"):
            shards.convert(of_data(data), tmp_path / "made")
        yield from of_data(data).pieces(None)

    shards.convert(replace(of_data(data), pieces=meanwhile), tmp_path / "made")
    assert_same(read_shards(tmp_path / "made"), data)


# What is refused


@pytest.mark.parametrize("gap", [3, 400])
def test_rows_of_a_query_must_follow_each_other(tmp_path, small_pieces, gap):
    ids = [k // 5 for k in range(1000)]
    ids[gap + 1] = 0
    (tmp_path / "a.txt").write_text("".join(f"{k % 2} qid:{q} 1:{k}\n" for k, q in enumerate(ids)))
    frame = pd.DataFrame({"qid": ids, "label": np.arange(1000) % 2, "x": np.arange(1000.0)})
    frame.to_parquet(tmp_path / "a.parquet")
    if gap == 3:
        return  # the row belongs there
    for name in ("a.txt", "a.parquet"):
        with pytest.raises(
            InvalidInputError, match=r"the rows of query '0' must follow each other where data"
        ):
            converted(tmp_path / name, tmp_path / "made")
        assert not (tmp_path / "made").exists()


def test_a_bad_line_is_named_by_its_number(data, tmp_path, small_pieces):
    cr.write_letor(data, tmp_path / "a.txt")
    lines = (tmp_path / "a.txt").read_text().splitlines(keepends=True)
    lines[900] = "x qid:3 1:2\n"
    (tmp_path / "a.txt").write_text("".join(lines))
    with pytest.raises(BadFileError, match=r"the label must be a number; got 'x' at line 901 of"):
        converted(tmp_path / "a.txt", tmp_path / "made")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# nothing\n\n", "must"),
        ("1 1:2\n0 1:3\n", "must name its query as qid:ID"),
    ],
)
def test_texts_that_hold_no_data_set_are_refused(tmp_path, text, words):
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(InvalidInputError, match=words):
        converted(tmp_path / "a.txt", tmp_path / "made")
    (tmp_path / "a.txt.query").write_text("2\n")
    with pytest.raises(InvalidInputError, match="must"):
        converted(tmp_path / "a.txt", tmp_path / "made")


def test_data_without_features_and_pieces_of_other_columns_are_refused(data, tmp_path):
    bare = replace(data, X=np.zeros((data.n_docs, 0), np.float32))
    with pytest.raises(InvalidInputError, match="must have features to be kept as shards"):
        write_shards(bare, tmp_path / "made")
    narrow = replace(data, X=np.asarray(data.X)[:, :2], query_ids=data.query_ids + 100)
    with pytest.raises(
        InvalidInputError, match="every piece of the data must have the same 7 features; got 2"
    ):
        write_shards([data, narrow], tmp_path / "made")
    with pytest.raises(InvalidInputError, match="must hold at least one row"):
        write_shards([], tmp_path / "made")


def test_places_that_cannot_be_written_to_are_refused_before_any_work(data, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("")
    for name in ("file", "full"):
        with pytest.raises(InvalidInputError, match="must be a new or empty folder, or one of shards"):
            write_shards(data, tmp_path / name, force=True)
    with pytest.raises(MissingDataError, match="does not exist"):
        write_shards(data, tmp_path / "none" / "made")
    write_shards(data, tmp_path / "made")
    with pytest.raises(InvalidInputError, match=r"must not exist yet.*--force"):
        write_shards(data, tmp_path / "made")
    noisy = cr.corrupt(read_shards(tmp_path / "made"), rate=0.2, seed=0).data
    write_shards(noisy, tmp_path / "made", force=True)
    assert (read_shards(tmp_path / "made").y == noisy.y).all()


def test_damage_is_told(data, tmp_path):
    write_shards(data, tmp_path / "made")
    features = tmp_path / "made" / "features-00000.npy"
    raw = bytearray(features.read_bytes())
    raw[-1] ^= 1
    features.write_bytes(raw)
    read_shards(tmp_path / "made")
    with pytest.raises(
        BadFileError, match=r"features-00000.npy' must hold what was written; got another check"
    ):
        cr.read_data(tmp_path / "made", verify=True)
    features.write_bytes(raw[:-4])
    with pytest.raises(BadFileError, match=r"must have the [\d,]+ bytes that were written"):
        cr.read_data(tmp_path / "made")
    features.unlink()
    with pytest.raises(BadFileError, match="got no file"):
        cr.read_data(tmp_path / "made")
    for text, words in (("{", "must be whole JSON"), ("{}", "must describe a folder of shards of version 1")):
        (tmp_path / "made" / DATASET).write_text(text)
        with pytest.raises(BadFileError, match=words):
            cr.read_data(tmp_path / "made")


def test_a_folder_that_is_none_is_refused(tmp_path):
    with pytest.raises(MissingDataError, match="must be one that cleanrank convert has made"):
        read_shards(tmp_path)


# Data that stay on disk without a folder of their own


def test_out_of_core_reading_converts_once_and_anew_when_the_file_changes(data, tmp_path, monkeypatch):
    monkeypatch.setenv("CLEANRANK_CACHE", str(tmp_path / "cache"))
    cr.write_data(data, tmp_path / "a.parquet")
    first = cr.read_data(tmp_path / "a.parquet", out_of_core=True)
    assert_same(first, cr.read_data(tmp_path / "a.parquet"))
    stamp = os.stat(first.X.folder / DATASET).st_mtime_ns
    again = cr.read_data(tmp_path / "a.parquet", out_of_core=True)
    assert os.stat(again.X.folder / DATASET).st_mtime_ns == stamp
    noisy = cr.corrupt(data, rate=0.3, seed=0).data.select(np.arange(500))
    cr.write_data(noisy, tmp_path / "a.parquet")
    assert_same(cr.read_data(tmp_path / "a.parquet", out_of_core=True), cr.read_data(tmp_path / "a.parquet"))
    # What was opened before is still what it was.
    assert_same(again, cr.from_arrays(data.X, data.y, qid=data.qid, feature_names=names(data)))


def test_out_of_core_reading_of_other_formats_is_refused(tmp_path):
    (tmp_path / "a.qrels").write_text("q1 0 a 2\nq1 0 b 0\n")
    with pytest.raises(InvalidInputError, match="out_of_core goes with LETOR, CSV, Parquet and folders"):
        cr.read_data(tmp_path / "a.qrels", out_of_core=True)
