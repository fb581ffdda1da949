"""Compiled kernels that turn rows of LETOR text into arrays; ``letor`` documents the grammar.

``buf`` is the text as bytes. Every range that a kernel is given ends with a line feed, and no token holds
one, so scans need no bounds. ``start`` and ``end`` delimit whole lines; ``at`` and ``i`` are positions.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cleanrank.data._letor_floats import (
    FLOAT32_OVERFLOW,
    NAN,
    NUMBER,
    TEN,
    TEXT,
    ZERO,
    line_end,
    scan_number,
    short_cell,
    to_float,
)
from cleanrank.jit import kernel
from cleanrank.types import Array, IntArray

MAX_INDEX = 2**31 - 2
MAX_GRADE = 65_535
MAX_ID = 1024
MAX_COMMENT = 4096

COUNT, DENSE, SPARSE = 0, 1, 2
OK, BAD_LABEL, BAD_QID, BAD_FEATURE, BAD_INDEX, BAD_VALUE, REPEATED, BAD_DOC_ID = range(8)

TAB, LF, CR, BLANK, HASH, MINUS, COLON, EQUALS = 9, 10, 13, 32, 35, 45, 58, 61


class Rows(NamedTuple):
    """One entry per row of all files; ``*_at`` and ``*_len`` say where an id lies in its text."""

    y: npt.NDArray[np.int32]
    qid: IntArray
    qid_at: IntArray
    qid_len: npt.NDArray[np.int32]
    doc_at: IntArray
    doc_len: npt.NDArray[np.int32]
    stored: npt.NDArray[np.int32]


class Cells(NamedTuple):
    """Where values go: ``X`` (mode DENSE), or ``indices`` and ``values`` from ``indptr[row]`` on (SPARSE)."""

    X: npt.NDArray[np.float32]
    indptr: IntArray
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]


class Rules(NamedTuple):
    """What a row must look like, and the column that index 0 or 1 stands for."""

    mode: int
    expects_qid: int
    least_index: int
    most_index: int
    base: int


class Tally(NamedTuple):
    """What ``parse_rows`` found, in the order of its ``tally`` array; ``slow`` values are left to Python."""

    rows: int
    stored: int
    most_index: int
    has_index_0: int
    unsorted: int
    named_queries: int
    doc_id_bytes: int
    more_comment: int
    slow: int
    error: int
    error_line: int
    error_at: int


@kernel()
def is_blank(c: Any) -> Any:
    return (c == BLANK) | (c == TAB)


@kernel()
def ends_line(buf: Any, i: Any) -> Any:
    return buf[i] == LF or (buf[i] == CR and buf[i + 1] == LF)


@kernel()
def count_rows(buf: Array, start: int, end: int) -> tuple[int, int]:
    """(lines, rows) between two positions; blank lines and comments are no rows."""
    lines, rows, i = 0, 0, start
    while i < end:
        while is_blank(buf[i]):
            i += 1
        if not (buf[i] == HASH or ends_line(buf, i)):
            rows += 1
        i = line_end(buf, i) + 1
        lines += 1
    return lines, rows


@kernel()
def grade_of(kind: Any, negative: Any, w: Any, q: Any, cut: Any) -> Any:
    """The whole number 0..MAX_GRADE that w * 10^q is, else -1."""
    if kind != NUMBER or cut:
        return -1
    if w == 0:
        return 0
    while q < 0 and w % TEN == 0:
        w //= TEN
        q += 1
    while q > 0 and w <= MAX_GRADE:
        w *= TEN
        q -= 1
    return -1 if negative or q != 0 or w > MAX_GRADE else np.int64(w)


@kernel()
def is_utf8(buf: Any, i: Any, end: Any) -> Any:
    """Whether bytes are UTF-8 without control characters."""
    while i < end:
        c = np.int64(buf[i])
        if c < 32 or c == 127:
            return False
        more = 0 if c < 128 else 1 if 194 <= c < 224 else 2 if 224 <= c < 240 else 3 if 240 <= c < 245 else -1
        if more < 0 or i + more >= end:
            return False
        for k in range(1, more + 1):
            if buf[i + k] & 192 != 128:
                return False
        second = np.int64(buf[i + 1]) if more else 0
        if (c == 224 and second < 160) or (c == 237 and second > 159):
            return False
        if (c == 240 and second < 144) or (c == 244 and second > 143):
            return False
        i += more + 1
    return True


@kernel()
def whole_id(buf: Any, at: Any, end: Any) -> Any:
    """(plain, value): whether an id is an int64 in its one usual spelling, and that number."""
    i = at + 1 if buf[at] == MINUS else at
    if end - i > 19 or end == i or (buf[i] == 48 and (end - i > 1 or i > at)):
        return False, 0
    value = np.uint64(0)
    while i < end:
        d = np.uint64(buf[i]) - ZERO
        if d >= TEN:
            return False, 0
        value = value * TEN + d
        i += 1
    if buf[at] == MINUS:
        return value <= np.uint64(2**63), -np.int64(value)
    return value < np.uint64(2**63), np.int64(value)


@kernel()
def find_doc_id(buf: Any, i: Any) -> Any:
    """(at, end) of the doc id in the comment that starts after the ``#`` before ``i``."""
    while is_blank(buf[i]):
        i += 1
    if buf[i] == 100 and buf[i + 1] == 111 and buf[i + 2] == 99 and buf[i + 3] == 105 and buf[i + 4] == 100:
        k = i + 5
        while is_blank(buf[k]):
            k += 1
        if buf[k] == EQUALS:
            i = k + 1
            while is_blank(buf[i]):
                i += 1
    at = i
    while not (is_blank(buf[i]) or ends_line(buf, i)):
        i += 1
    return at, i


@kernel()
def has_repeat(buf: Any, i: Any, count: Any) -> Any:
    """Whether one of the ``count`` feature indices from ``i`` on comes twice (heap sort, then neighbours)."""
    heap = np.empty(count, np.int64)
    for n in range(count):
        while is_blank(buf[i]):
            i += 1
        index: Any = 0
        while buf[i] != COLON:
            index = index * 10 + np.int64(buf[i]) - 48
            i += 1
        while not is_blank(buf[i]) and buf[i] != HASH and not ends_line(buf, i):
            i += 1
        k = n
        while k > 0 and heap[(k - 1) // 2] < index:
            heap[k] = heap[(k - 1) // 2]
            k = (k - 1) // 2
        heap[k] = index
    last = -1
    for n in range(count - 1, -1, -1):
        if heap[0] == last:
            return True
        last = heap[0]
        index, k = heap[n], 0
        while 2 * k + 1 < n:
            child = 2 * k + 1
            if child + 1 < n and heap[child + 1] > heap[child]:
                child += 1
            if heap[child] <= index:
                break
            heap[k] = heap[child]
            k = child
        heap[k] = index
    return False


@kernel()
def parse_label(buf: Any, i: Any, row: Any, rows: Rows, rules: Rules) -> Any:
    """(error, position after label and qid, position of what is wrong, whether the qid is a name)."""
    kind, negative, w, q, cut, end = scan_number(buf, i)
    grade = grade_of(kind, negative, w, q, cut)
    if grade < 0 or not (is_blank(buf[end]) or buf[end] == HASH or ends_line(buf, end)):
        return BAD_LABEL, i, i, False
    rows.y[row] = grade
    i = end
    while is_blank(buf[i]):
        i += 1
    if not rules.expects_qid:
        return OK, i, i, False
    if not (buf[i] == 113 and buf[i + 1] == 105 and buf[i + 2] == 100 and buf[i + 3] == COLON):
        return BAD_QID, i, i, False
    at = i + 4
    end = at
    while not (is_blank(buf[end]) or buf[end] == HASH or ends_line(buf, end)):
        end += 1
    plain, value = whole_id(buf, at, end)
    if not plain and (end == at or end - at > MAX_ID or not is_utf8(buf, at, end)):
        return BAD_QID, i, i, False
    rows.qid[row] = value
    rows.qid_at[row] = at
    rows.qid_len[row] = end - at
    return OK, end, i, not plain


@kernel()
def any_cell(buf: Any, i: Any) -> Any:
    """(error, index, value, late, at, end) of ``index:value``; ``at``: where the value starts."""
    d = np.int64(buf[i]) - 48
    first = i
    index: Any = 0
    while 0 <= d <= 9:
        if index <= MAX_INDEX:
            index = index * 10 + d
        i += 1
        d = np.int64(buf[i]) - 48
    if buf[i] != COLON or i == first:
        return BAD_FEATURE, index, 0.0, False, i, i
    kind, negative, w, q, cut, end = scan_number(buf, i + 1)
    if kind == TEXT or not (is_blank(buf[end]) or buf[end] == HASH or ends_line(buf, end)):
        return BAD_VALUE, index, 0.0, False, i, i
    if kind == NAN:
        return OK, index, np.nan, False, i, end
    value, late = to_float(negative, w, q, cut)
    error = BAD_VALUE if abs(value) >= FLOAT32_OVERFLOW and not late else OK
    return error, index, value, late, i + 1, end


@kernel()
def parse_features(
    buf: Any, i: Any, row: Any, rows: Rows, cells: Cells, rules: Rules, slow: Any, tally: Any
) -> Any:
    """(error, position of the line's end or comment or of what is wrong); counts into ``tally``."""
    first, count, stored = i, 0, 0
    last: Any = -1
    is_sorted: Any = True
    most, width, base, mode = tally[2], cells.X.shape[1], rules.base, rules.mode
    put = cells.indptr[row] if mode == SPARSE else 0
    at, safe, least = 0, len(buf) - 32, MAX_INDEX
    while True:
        while is_blank(buf[i]):
            i += 1
        if buf[i] == HASH or ends_line(buf, i):
            break
        token = i
        end, late = 0, False
        if i < safe:
            end, index, value = short_cell(buf, i, last)
        if end == 0:
            error, index, value, late, at, end = any_cell(buf, i)
            if error != OK:
                return error, token
        if index < rules.least_index or index > rules.most_index:
            return BAD_INDEX, token
        i = end
        is_sorted = is_sorted and index > last
        last = index
        most = max(most, index)
        least = min(least, index)
        column = index - base
        if late:
            if tally[8] < len(slow):
                slow[tally[8], 0] = at
                inside = 0 <= column < width
                slow[tally[8], 1] = put + stored if mode == SPARSE else row * width + column if inside else -1
                slow[tally[8], 2] = token
            tally[8] += 1
        if mode == DENSE:
            if 0 <= column < width:
                cells.X[row, column] = value
        elif mode == SPARSE and (late or value != 0):
            cells.indices[put + stored] = column
            cells.values[put + stored] = value
        stored += late or value != 0
        count += 1
    tally[2] = most
    tally[3] |= least == 0
    tally[1] += stored
    rows.stored[row] = stored
    if not is_sorted:
        tally[4] = 1
        if has_repeat(buf, first, count):
            return REPEATED, first
    return OK, i


@kernel()
def parse_rows(
    buf: Array, start: int, end: int, row: int, rows: Rows, cells: Cells, rules: Rules, slow: IntArray
) -> IntArray:
    """Parses whole lines into the rows from ``row`` on, up to the first bad one; a Tally as an array."""
    tally = np.zeros(12, np.int64)
    tally[2] = -1
    i = start
    while i < end:
        line = i
        while is_blank(buf[i]):
            i += 1
        if not (buf[i] == HASH or ends_line(buf, i)):
            error, i, at, named = parse_label(buf, i, row, rows, rules)
            tally[5] |= named
            if error == OK:
                error, i = parse_features(buf, i, row, rows, cells, rules, slow, tally)
                at = i
            doc_at, doc_end = i, i
            if error == OK and buf[i] == HASH:
                doc_at, doc_end = find_doc_id(buf, i + 1)
                at = doc_at
                if doc_end - doc_at > MAX_ID or not is_utf8(buf, doc_at, doc_end):
                    error = BAD_DOC_ID
            if error != OK:
                tally[9], tally[10], tally[11] = error, line, at
                return tally
            rows.doc_at[row] = doc_at
            rows.doc_len[row] = doc_end - doc_at
            tally[6] = max(tally[6], doc_end - doc_at)
            tally[7] |= not ends_line(buf, doc_end)
            tally[0] += 1
            row += 1
        i = line_end(buf, i) + 1
    return tally


@kernel()
def gather(buf: Array, at: IntArray, lengths: Array, out: Array) -> Array:
    """Copies the bytes of ids into the rows of ``out`` (uint32 per character); flags those beyond ASCII."""
    wide = np.zeros(len(at), np.bool_)
    for row in range(len(at)):
        for k in range(lengths[row]):
            out[row, k] = buf[at[row] + k]
            wide[row] |= buf[at[row] + k] > 127
    return wide


@kernel()
def rest_of_line(buf: Array, at: IntArray) -> tuple[IntArray, IntArray]:
    """(starts, ends) of what stands between each position and the end of its line, without blanks around."""
    starts, ends = at.copy(), at.copy()
    for row in range(len(at)):
        i = at[row]
        while is_blank(buf[i]):
            i += 1
        starts[row], ends[row] = i, i
        while not ends_line(buf, i):
            if not is_blank(buf[i]):
                ends[row] = i + 1
            i += 1
    return starts, ends


@kernel()
def starts_run(buf: Array, at: IntArray, lengths: Array) -> Array:
    first = np.ones(len(at), np.bool_)
    for row in range(1, len(at)):
        same = lengths[row] == lengths[row - 1]
        for k in range(lengths[row] if same else 0):
            same = same and buf[at[row] + k] == buf[at[row - 1] + k]
        first[row] = not same
    return first


@kernel()
def reorder(X: Array, order: IntArray) -> None:
    """Brings the rows of X into the given order in place, cycle by cycle."""
    done = np.zeros(len(order), np.bool_)
    kept = np.empty(X.shape[1], X.dtype)
    for first in range(len(order)):
        if done[first] or order[first] == first:
            continue
        kept[:] = X[first]
        row = first
        while order[row] != first:
            X[row] = X[order[row]]
            done[row] = True
            row = order[row]
        X[row] = kept
        done[row] = True
