import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cleanrank.data import files
from cleanrank.data.letor import read_letor
from cleanrank.errors import BadFileError

from . import letor_oracle as oracle

SEEDS = [
    b"2 qid:10 1:0.5 2:1 3:-2.25e-3 # docid = GX-1 inc = 0.1\n0 qid:10 1:.5 3:7.\n1 qid:11 2:nan #D7\n",
    b"0 qid:a 0:1 5:2\r\n1 qid:a 2:3\r\n\r\n# note\r\n4 qid:07 1:1e3 0:2\r\n2.0 qid:7 3:0 # docid=\xc3\xa9",
    b"\t1\tqid:-5\t1:0.1\t 2:+3 \n+2 qid:3 \n0 qid:-5 4:123456789012345678901234567890 1:1e-45 # x y",
    b"\xef\xbb\xbf3 qid:1 1:3.4028234e38 2:-0\n0e5 qid:2 10:0.000000000000000000000000000001 9:1E2#z\n\n",
    b"1 qid:q_1 3:1 2:1 1:1\n1 qid:q_2 1:16777217.0000000000000000000001\n1 qid:q_1 2:5e-324 3:00.10\n",
]
SPLICES = [
    b" ",
    b"\n",
    b"\r\n",
    b"\r",
    b":",
    b"#",
    b"qid:",
    b"1:",
    b"0:1",
    b"nan",
    b"inf",
    b"-",
    b"+",
    b"e",
    b".",
]
SPLICES += [
    b"\0",
    b"\xff",
    b"\xc3",
    b"4294967297:1",
    b"2147483646:1",
    b"99999999999999999999",
    b"1e39",
    b"1_0",
]
SPLICES += [
    b"\t",
    b"e400",
    b"e-400",
    b"docid =",
    b"65536",
    b"0x1",
    b"\x0b",
    b"\xc2\xa0",
    b"0" * 400,
    b"9" * 400,
]


def both(path, raw, **options):
    """Reads with both readers; they must agree on the data or on the bad line."""
    path.write_bytes(raw)
    naive, line = None, None
    try:
        naive = oracle.naive_read(raw, **options)
    except oracle.Refused as refused:
        line = refused.line
    if naive is None:
        with pytest.raises(BadFileError) as caught:
            read_letor(path, cache=False, **options)
        assert caught.value.line == line, (raw, str(caught.value))
        return False
    data = read_letor(path, cache=False, **options)
    order, ids = oracle.grouped(naive)
    assert data.row_ids.tolist() == order, raw
    assert data.query_ids.tolist() == ids, raw
    assert data.y.tolist() == [naive.y[row] for row in order], raw
    docs = [naive.docs[row] for row in order]
    assert (data.doc_ids.tolist() if data.doc_ids is not None else [""] * len(docs)) == docs, raw
    comments = [naive.comments[row] for row in order]
    assert ([""] * len(docs) if data.extra is None else data.extra["comment"].tolist()) == comments, raw
    assert data.n_features == naive.width, raw
    stored = sum(map(len, naive.cells))
    assert isinstance(data.X, np.ndarray) == (stored >= 0.3 * len(order) * naive.width), raw
    X = data.X if isinstance(data.X, np.ndarray) else data.X.tocoo()
    rows, columns = X.nonzero() if isinstance(X, np.ndarray) else (X.row, X.col)
    values = X[rows, columns] if isinstance(X, np.ndarray) else X.data
    expected = [(k, c, v) for k, row in enumerate(order) for c, v in sorted(naive.cells[row].items())]
    assert rows.tolist() == [k for k, _, _ in expected], raw
    assert columns.tolist() == [c for _, c, _ in expected], raw
    np.testing.assert_array_equal(
        values, np.array([v for _, _, v in expected], np.float32), err_msg=repr(raw)
    )
    return True


def mutate(rng, raw):
    """One to four random changes: flips, cuts, insertions, splices with another seed."""
    raw = bytearray(raw)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randrange(len(raw) + 1)
        kind = rng.randrange(7)
        if kind == 0 and raw:
            raw[at % len(raw)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del raw[at:]
        elif kind == 2:
            raw[at:at] = rng.choice(SPLICES)
        elif kind == 3 and raw:
            raw[at % len(raw)] = rng.choice(b"0123456789 .:-+eEqid#\n\r\tnN")
        elif kind == 4:
            del raw[at : at + rng.randrange(1, 9)]
        elif kind == 5:
            other = rng.choice(SEEDS)
            start = rng.randrange(len(other))
            raw[at:at] = other[start : start + rng.randrange(1, 80)]
        else:
            raw[at:at] = bytes(raw[rng.randrange(len(raw) + 1) :][: rng.randrange(1, 40)])
    return bytes(raw)


@pytest.mark.parametrize("seed", range(4))
def test_mutated_files_are_read_right_or_refused_at_the_right_line(tmp_path, monkeypatch, seed):
    rng = random.Random(seed)
    accepted = 0
    for number in range(1000):
        # Small parts and mapping of all but tiny files move every boundary through the text.
        monkeypatch.setattr(files, "PART", rng.choice([1, 7, 40, 1 << 22]))
        monkeypatch.setattr(files, "SMALL", rng.choice([0, 1 << 20]))
        accepted += both(tmp_path / f"{number % 7}.txt", mutate(rng, rng.choice(SEEDS)))
    assert 150 < accepted < 850


@pytest.mark.parametrize("options", [{"zero_based": True}, {"zero_based": False}, {"n_features": 5}])
def test_mutated_files_under_options(tmp_path, options):
    rng = random.Random(9)
    accepted = sum(both(tmp_path / "a.txt", mutate(rng, rng.choice(SEEDS)), **options) for _ in range(300))
    assert 10 < accepted < 290


def test_the_seeds_themselves_are_accepted(tmp_path):
    assert all(both(tmp_path / "a.txt", raw) for raw in SEEDS)


LINE_BYTES = st.sampled_from(
    [b"0", b"1", b"2.0", b" ", b" ", b"\t", b"qid:", b"7", b"a", b"1:", b"2:", b"0.5", b"nan"]
)
ODD_BYTES = st.sampled_from(
    [b"#", b"\n", b"\r\n", b"docid = ", b"-", b"e", b".", b":", b"\xe2\x82\xac", b"\x80"]
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINE_BYTES | ODD_BYTES, max_size=30).map(b"".join))
def test_any_string_of_tokens(tmp_path, raw):
    both(tmp_path / "a.txt", b"1 qid:1 1:1\n" + raw)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60))
def test_any_bytes(tmp_path, raw):
    both(tmp_path / "a.txt", b"1 qid:1 1:1\n0 qid:1 " + raw)


def test_compressed_files_that_are_damaged_are_refused_or_read_whole(tmp_path):
    import gzip
    import lzma

    import zstandard

    rng = random.Random(5)
    plain = b"".join(b"%d qid:%d 1:%d 2:0.5\n" % (k % 3, k // 9, k) for k in range(200))
    whole = oracle.naive_read(plain)
    for pack in (gzip.compress, lzma.compress, zstandard.ZstdCompressor(write_checksum=True).compress):
        packed = pack(plain)
        for _ in range(150):
            raw = bytearray(packed)
            if rng.random() < 0.5:
                del raw[rng.randrange(1, len(raw)) :]
            else:
                raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
            (tmp_path / "a.txt").write_bytes(raw)
            try:
                data = read_letor(tmp_path / "a.txt", cache=False)
            except BadFileError:
                continue
            assert data.y.tolist() == whole.y
            assert data.X[:, 0].tolist() == [float(k) for k in range(200)]
