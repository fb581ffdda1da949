import json
import multiprocessing
import os
import shutil
import time

import numpy as np
import pytest
import scipy.sparse

from cleanrank.data import cache, letor
from cleanrank.data.cache import BLOCK_WORDS, cache_folder, checksum
from cleanrank.data.letor import read_letor
from tests.oracles import same_data

TEXT = "2 qid:a 1:0.5 2:1 # D1\n0 qid:b 1:2 2:nan # D2\n1 qid:a 1:3 2:4\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEANRANK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "letor"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture
def parses(monkeypatch):
    """Counts how often a file is parsed."""
    calls = []
    real = letor._parse
    monkeypatch.setattr(letor, "_parse", lambda *args: (calls.append(1), real(*args))[1])
    return calls


def entry_of(folder):
    (found,) = [each for each in folder.iterdir() if each.is_dir()]
    return found


@pytest.mark.parametrize("dense", [True, False])
def test_a_second_read_comes_from_the_cache_and_is_the_same(file, parses, dense):
    first = read_letor(file, dense=dense)
    second = read_letor(file, dense=dense, feature_names=["f", "g"])
    assert len(parses) == 1
    assert second.feature_names == ("f", "g")
    if dense:
        np.testing.assert_array_equal(second.X, first.X)
        base = second.X
        while not isinstance(base, np.memmap):
            base = base.base
        assert not second.X.flags.writeable
    else:
        assert isinstance(second.X, scipy.sparse.csr_matrix)
        np.testing.assert_array_equal(second.X.toarray(), first.X.toarray())
    for name in ("y", "indptr", "query_ids", "row_ids", "doc_ids"):
        assert getattr(first, name).tolist() == getattr(second, name).tolist()
    assert second.weights is None


def test_cache_false_neither_reads_nor_writes(file, folder, parses):
    read_letor(file, cache=False)
    assert not folder.exists()
    read_letor(file)
    read_letor(file, cache=False)
    assert len(parses) == 3


def test_options_that_change_the_result_have_entries_of_their_own(file, parses):
    for options in ({}, {"dense": False}, {"n_features": 3}, {"zero_based": True}):
        read_letor(file, **options)
        read_letor(file, n_jobs=1, **options)
    assert len(parses) == 4


@pytest.mark.parametrize("keep_times", [True, False])
def test_a_changed_file_is_read_anew(file, folder, parses, keep_times):
    read_letor(file)
    stat = file.stat()
    file.write_text(TEXT.replace("0.5", "0.7"))
    if keep_times:
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert read_letor(file).X[0, 0] == np.float32(0.7)
    assert len(parses) == 2
    assert entry_of(folder)


def test_two_changes_within_a_tick_of_the_clock_are_told_apart(file):
    for k in range(20):
        file.write_text(TEXT.replace("0.5", f"0.{k % 9 + 1}"))
        assert read_letor(file).X[0, 0] == np.float32(f"0.{k % 9 + 1}")


def test_side_files_count(file, parses, tmp_path):
    read_letor(file)
    (tmp_path / "a.txt.weight").write_text("1\n2\n3\n")
    assert read_letor(file).weights.tolist() == [1, 3, 2]
    (tmp_path / "a.txt.weight").write_text("1\n2\n4\n")
    assert read_letor(file).weights.tolist() == [1, 4, 2]
    assert len(parses) == 3


def test_a_new_parser_version_makes_entries_stale(file, parses, monkeypatch):
    read_letor(file)
    monkeypatch.setattr(cache, "PARSER_VERSION", -1)
    read_letor(file)
    assert len(parses) == 2


def damage_every_file(entry):
    """Yields names of damage after doing it: every file cut, flipped at several places, emptied, removed."""
    for path in sorted(entry.iterdir()):
        whole = path.read_bytes()
        for at in sorted({0, 7, len(whole) // 3, len(whole) // 2, len(whole) - 9, len(whole) - 1}):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
            yield f"{path.name} flipped at {at}"
        for size in (0, 5, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:size])
            yield f"{path.name} cut to {size}"
        path.write_bytes(whole + b"\0")
        yield f"{path.name} longer"
        path.unlink()
        yield f"{path.name} removed"
        path.write_bytes(whole)


@pytest.mark.parametrize("dense", [True, False])
def test_damage_is_found_and_the_entry_rebuilt(file, folder, parses, tmp_path, dense):
    whole = read_letor(file, dense=dense)
    entry = entry_of(folder)
    shutil.copytree(entry, tmp_path / "intact")
    cases = 0
    for what in damage_every_file(tmp_path / "intact"):
        shutil.rmtree(entry)
        shutil.copytree(tmp_path / "intact", entry)
        found = read_letor(file, dense=dense)
        cases += 1
        assert len(parses) == 1 + cases, what
        assert found.y.tolist() == whole.y.tolist()
        read_letor(file, dense=dense)
        assert len(parses) == 1 + cases, f"not rebuilt after {what}"
    assert cases > 60


@pytest.mark.parametrize("content", [b"", b"{}", b"[]\n0", b"null\n6f1", b"{}\nzz", b"\xff\n\xff"])
def test_a_strange_description_counts_as_absent(file, folder, parses, content):
    read_letor(file)
    (entry_of(folder) / "entry.json").write_bytes(content)
    assert read_letor(file).n_docs == 3
    assert len(parses) == 2


def test_an_entry_of_another_file_is_not_taken(file, folder, tmp_path, parses):
    read_letor(file)
    old = entry_of(folder)
    other = tmp_path / "b.txt"
    other.write_text(TEXT.replace("0.5", "0.9"))
    read_letor(other)
    (new,) = [each for each in folder.iterdir() if each != old]
    shutil.rmtree(new)
    shutil.copytree(old, new)
    assert read_letor(other).X[0, 0] == np.float32(0.9)


def test_a_folder_that_cannot_be_written_does_not_break_reading(file, monkeypatch, tmp_path):
    (tmp_path / "plain").write_text("a file where a folder should be")
    monkeypatch.setenv("CLEANRANK_CACHE", str(tmp_path / "plain"))
    assert read_letor(file).n_docs == 3
    assert read_letor(file).n_docs == 3


def test_a_full_disk_leaves_nothing_behind(file, folder, monkeypatch):
    def full(path, array, **_):
        path.write_bytes(b"part")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.np, "save", full)
    assert read_letor(file).n_docs == 3
    assert list(folder.iterdir()) == []


def test_a_file_that_changes_while_it_is_read_is_not_kept(file, folder, monkeypatch):
    real = letor._parse

    def parse_and_change(*args):
        found = real(*args)
        file.write_text(TEXT.replace("0.5", "0.7"))
        return found

    monkeypatch.setattr(letor, "_parse", parse_and_change)
    read_letor(file)
    monkeypatch.setattr(letor, "_parse", real)
    assert not folder.exists()
    assert read_letor(file).X[0, 0] == np.float32(0.7)


def test_remains_of_killed_processes_are_swept(file, folder):
    read_letor(file)
    left = entry_of(folder).with_name(entry_of(folder).name + ".abc.part")
    left.mkdir()
    os.utime(left, (time.time() - 9999,) * 2)
    os.utime(file)
    read_letor(file)
    assert not left.exists()


def test_data_stay_usable_when_the_cache_is_deleted(file, folder):
    read_letor(file)
    data = read_letor(file)
    shutil.rmtree(folder)
    assert data.X[0, 0] == 0.5


def test_the_folder_is_the_users_unless_chosen(monkeypatch):
    monkeypatch.delenv("CLEANRANK_CACHE")
    assert cache_folder().parts[-2:] == ("cleanrank", "letor")


def test_only_plain_arrays_are_loaded(file, folder):
    read_letor(file)
    entry = entry_of(folder)
    assert {each.suffix for each in entry.iterdir()} == {".npy", ".json"}
    for each in entry.glob("*.npy"):
        np.load(each, allow_pickle=False)
    json.loads((entry / "entry.json").read_bytes().rpartition(b"\n")[0])


def test_checksum_sees_every_bit():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 256, 3 * 2**20 + 5).astype(np.uint8)
    whole = checksum(values)
    for at in [0, 1, 2**20 - 1, 2**20, len(values) - 1, *rng.integers(0, len(values), 20)]:
        changed = values.copy()
        changed[at] ^= 1 << rng.integers(0, 8)
        assert checksum(changed) != whole
    blocks = values[: 2**21].reshape(2, -1)
    assert checksum(blocks[::-1]) != checksum(blocks)
    assert checksum(np.zeros(16)) != checksum(np.zeros(0))


def _read_often(path, seed, results):
    rng = np.random.default_rng(seed)
    for _ in range(25):
        data = read_letor(path)
        results.put((float(data.X.sum()), data.n_docs))
        if rng.random() < 0.5:
            os.utime(path)
        if rng.random() < 0.2:
            shutil.rmtree(cache_folder(), ignore_errors=True)


def test_processes_at_once_all_read_the_right_data(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("".join(f"0 qid:{k // 5} 1:{k} 2:1\n" for k in range(500)))
    expected = (float(sum(range(500)) + 500), 500)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    workers = [context.Process(target=_read_often, args=(path, seed, results)) for seed in range(3)]
    read_letor(path)
    for worker in workers:
        worker.start()
    found = [results.get(timeout=60) for _ in range(75)]
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert found == [expected] * 75
    assert same_data(read_letor(path), read_letor(path, cache=False))


def test_checksum_sees_changes_that_cancel_in_a_sum_or_in_exclusive_or():
    words = np.arange(64, dtype=np.uint64)
    twice = words.copy()
    twice[3] ^= np.uint64(8)
    twice[4] ^= np.uint64(8)
    assert np.bitwise_xor.reduce(twice) == np.bitwise_xor.reduce(words)
    assert twice.sum() != words.sum()
    assert checksum(twice) != checksum(words)
    moved = words.copy()
    moved[3], moved[40] = moved[3] + np.uint64(1), moved[40] - np.uint64(1)
    assert moved.sum() == words.sum()
    assert checksum(moved) != checksum(words)
    # Two blocks that change places, with the same content otherwise.
    block = np.arange(BLOCK_WORDS, dtype=np.uint64)
    pair = np.concatenate([block, block + np.uint64(7)])
    assert checksum(pair) != checksum(np.concatenate([block + np.uint64(7), block]))
