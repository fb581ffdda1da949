import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleanrank.data import _letor_floats as floats
from cleanrank.data import _letor_kernels as kernels
from cleanrank.data._letor_reader import empty_rows, no_cells


def bytes_of(raw):
    return np.frombuffer(raw, np.uint8)


def tally(raw):
    usual = kernels.Rules(kernels.COUNT, expects_qid=1, least_index=0, most_index=kernels.MAX_INDEX, base=1)
    rows = empty_rows(raw.count(b"\n"))
    slow = np.empty((4, 3), np.int64)
    found = kernels.parse_rows(bytes_of(raw), 0, len(raw), 0, rows, no_cells(), usual, slow)
    return kernels.Tally(*found.tolist()), rows


def test_rows_and_lines_are_counted():
    raw = b"1 qid:1\n\n  \t\n # c\n\r\n0 qid:1 # c\r\n#\n x\n\rx\n"
    assert kernels.count_rows(bytes_of(raw), 0, len(raw)) == (9, 4)


def test_what_is_found_is_tallied():
    found, rows = tally(b"1 qid:7 3:1 2:0 # abc\n0 qid:x 1:nan 9:2\n")
    assert (found.rows, found.stored, found.most_index, found.has_index_0) == (2, 3, 9, 0)
    assert (found.unsorted, found.named_queries, found.doc_id_bytes, found.error) == (1, 1, 3, kernels.OK)
    assert rows.stored.tolist() == [1, 2]
    assert rows.qid[0] == 7


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"x qid:1", kernels.BAD_LABEL),
        (b"1.5 qid:1", kernels.BAD_LABEL),
        (b"-1 qid:1", kernels.BAD_LABEL),
        (b"65536 qid:1", kernels.BAD_LABEL),
        (b"nan qid:1", kernels.BAD_LABEL),
        (b"1e9 qid:1", kernels.BAD_LABEL),
        (b"1qid:1", kernels.BAD_LABEL),
        (b"1", kernels.BAD_QID),
        (b"1 qid:", kernels.BAD_QID),
        (b"1 qid:\xff", kernels.BAD_QID),
        (b"1 2:3", kernels.BAD_QID),
        (b"1 qid:1 2", kernels.BAD_FEATURE),
        (b"1 qid:1 :2", kernels.BAD_FEATURE),
        (b"1 qid:1 qid:1", kernels.BAD_FEATURE),
        (b"1 qid:1 +1:1", kernels.BAD_FEATURE),
        (b"1 qid:1 4294967297:1", kernels.BAD_INDEX),
        (b"1 qid:1 1:", kernels.BAD_VALUE),
        (b"1 qid:1 1:inf", kernels.BAD_VALUE),
        (b"1 qid:1 1:1e39", kernels.BAD_VALUE),
        (b"1 qid:1 1:2:3", kernels.BAD_VALUE),
        (b"1 qid:1 1:1\r2:1", kernels.BAD_VALUE),
        (b"1 qid:1 1:1 1:2", kernels.REPEATED),
        (b"1 qid:1 1:1 2:1 3:1 01:2", kernels.REPEATED),
        (b"1 qid:1 # a\0b", kernels.BAD_DOC_ID),
        (b"1 qid:1 #" + b"x" * 1025, kernels.BAD_DOC_ID),
    ],
)
def test_each_mistake_has_its_code_and_stops_at_its_line(line, code):
    raw = b"0 qid:1 1:1\n" + line + b"\nbad too\n"
    found, _ = tally(raw)
    assert (found.error, found.error_line, found.rows) == (code, 12, 1)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=40))
def test_a_repeated_index_is_found_in_any_order(indices):
    raw = b"0 qid:1 " + b" ".join(b"%d:1" % i for i in indices) + b"\n"
    found, _ = tally(raw)
    assert (found.error == kernels.REPEATED) == (len(set(indices)) < len(indices))


@settings(max_examples=1000, deadline=None)
@given(st.binary(max_size=6) | st.text(max_size=4).map(lambda s: s.encode("utf-8", "surrogatepass")))
def test_utf8_is_judged_as_python_does(raw):
    try:
        text = raw.decode("utf-8")
        fine = all(ord(c) >= 32 and ord(c) != 127 for c in text)
    except UnicodeDecodeError:
        fine = False
    assert kernels.is_utf8(bytes_of(raw + b"\n"), 0, len(raw)) == fine


@pytest.mark.parametrize(
    ("text", "plain"),
    [("7", True), ("0", True), ("-7", True), ("07", False), ("-0", False), ("+7", False), ("", False),
     ("-", False),
     ("9223372036854775807", True), ("9223372036854775808", False), ("-9223372036854775808", True),
     ("-9223372036854775809", False), ("99999999999999999999", False), ("7a", False)],
)  # fmt: skip
def test_whole_ids(text, plain):
    found, value = kernels.whole_id(bytes_of(text.encode() + b"\n"), 0, len(text))
    assert found == plain
    if plain:
        assert value == int(text)


def test_ids_are_gathered_and_runs_found():
    buf = bytes_of(b"ab abc \xc3\xa9 ab")
    at, lengths = np.array([0, 3, 7, 0, 10]), np.array([2, 3, 2, 2, 2], np.int32)
    out = np.zeros((5, 3), np.uint32)
    wide = kernels.gather(buf, at, lengths, out)
    assert wide.tolist() == [False, False, True, False, False]
    assert out.view("U3")[[0, 1, 3, 4], 0].tolist() == ["ab", "abc", "ab", "ab"]
    assert kernels.starts_run(buf, at, lengths).tolist() == [True, True, True, True, False]


@settings(max_examples=200, deadline=None)
@given(st.permutations(range(9)))
def test_rows_are_reordered_in_place(order):
    X = np.arange(27, dtype=np.float32).reshape(9, 3)
    expected = X[list(order)]
    kernels.reorder(X, np.array(order))
    np.testing.assert_array_equal(X, expected)


PIECES = st.sampled_from(
    ["0", "1", "9", "10", "99", "100", "999", "1234567", "12345678", "123456789", ":", "."]
)
MORE = st.sampled_from(
    ["e3", "-", "+", "nan", " ", "\n", "\t", "#", "/", "\x80", "00", "5.", ".5", "3:0.25 "]
)


@settings(max_examples=3000, deadline=None)
@given(
    st.lists(PIECES | MORE, min_size=1, max_size=8), st.sampled_from([-1, 0, 8, 9, 98, 99, 998, 999, 5000])
)
def test_the_short_way_gives_what_the_long_way_gives(pieces, last):
    buf = bytes_of("".join(pieces).encode("latin-1") + b"\n" + b"x" * 40 + b"\n")
    end, index, value = floats.short_cell(buf, 0, last)
    if end:
        assert kernels.any_cell(buf, 0)[:4] == (kernels.OK, index, value, False)
        assert kernels.any_cell(buf, 0)[5] == end


def test_plain_cells_take_the_short_way():
    for last, text in [(-1, b"1:0 "), (8, b"9:31\n"), (9, b"10:6.553125 "), (134, b"135:1234567 ")]:
        assert floats.short_cell(bytes_of(text + b"x" * 40), 0, last)[0] == len(text) - 1
