"""From RankingData to LETOR text, block by block of rows on several threads."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from cleanrank.data._letor_floats import put_digits, put_float
from cleanrank.data._letor_kernels import MAX_COMMENT, MAX_GRADE, MAX_ID
from cleanrank.data._letor_reader import thread_map
from cleanrank.errors import invalid
from cleanrank.jit import kernel
from cleanrank.ragged import query_of_row
from cleanrank.stored import as_array, is_dense
from cleanrank.types import Array, IntArray, RankingData

BLOCK_VALUES = 1 << 16
VALUE_BYTES = 40
"""Bytes for a blank, an index, a colon and a value: at most 1 + 10 + 1 + 24."""
UNFIT = re.compile(r"[\x00-\x20\x7f]")
QID, DOC = b" qid:", b" #docid = "


@kernel()
def put_bytes(out: Any, at: Any, text: Any) -> Any:
    """Copies bytes up to the first 0; returns the position after them."""
    for c in text:
        if c == 0:
            break
        out[at] = c
        at += 1
    return at


@kernel()
def put_rows(
    out: Array, y: Array, query: Array, qids: Array, docs: Array, words: Array, indptr: IntArray,
    indices: Array, values: Array,
) -> int:  # fmt: skip
    """Formats rows whose values lie at ``indptr``; ``words``: what stands before query and document ids."""
    at = 0
    for row in range(len(y)):
        at = put_digits(out, at, np.int64(y[row]), 1)
        at = put_bytes(out, at, words[0])
        at = put_bytes(out, at, qids[query[row]])
        for k in range(indptr[row], indptr[row + 1]):
            out[at] = 32
            at = put_digits(out, at + 1, np.int64(indices[k]) + 1, 1)
            out[at] = 58
            at = put_float(out, at + 1, values[k])
        if docs[row, 0] != 0:
            at = put_bytes(out, at, words[1])
            at = put_bytes(out, at, docs[row])
        out[at] = 10
        at += 1
    return at


def letor_blocks(data: RankingData, n_jobs: int | None) -> Iterator[memoryview]:
    """The text of all rows, in order, block by block."""
    qids = _id_bytes(data.query_ids, "query ids", "#")
    docs = np.zeros((data.n_docs, 1), np.uint8)
    if data.doc_ids is not None:
        docs = _id_bytes(data.doc_ids, "document ids", "")
    comments = (data.extra or {}).get("comment")
    query = query_of_row(data.indptr)
    words = np.zeros((2, 16), np.uint8)
    words[0, : len(QID)], words[1, : len(DOC)] = list(QID), list(DOC)

    def block(rows: slice) -> memoryview:
        indptr, indices, values = _cells(data, rows)
        infinite = np.isinf(values)
        if infinite.any():
            row = rows.start + int(np.searchsorted(indptr, np.argmax(infinite), side="right")) - 1
            raise invalid("X", "must be finite or nan to be written", "inf", at=data.place(row))
        ends = docs[rows] if comments is None else _with_comments(docs[rows], comments[rows])
        row_bytes = qids.shape[1] + ends.shape[1] + 64
        out = np.empty(len(values) * VALUE_BYTES + (len(indptr) - 1) * row_bytes, np.uint8)
        size = put_rows(out, data.y[rows], query[rows], qids, ends, words, indptr, indices, values)
        return out[:size].data

    step = max(1, BLOCK_VALUES // max(1, data.n_features if is_dense(data.X) else 64))
    slices = [slice(k, min(k + step, data.n_docs)) for k in range(0, data.n_docs, step)]
    with thread_map(n_jobs) as work:
        yield from work(block, slices)


def _with_comments(docs: Array, comments: Array) -> Array:
    """Ids as bytes, and after each a blank and its comment, without control characters."""
    plain = (UNFIT.sub(" ", "" if text is None else str(text)).strip() for text in comments.tolist())
    texts = [text.encode("utf-8", "replace")[:MAX_COMMENT] for text in plain]
    width = docs.shape[1]
    out = np.zeros((len(docs), width + 1 + max(map(len, texts), default=0)), np.uint8)
    out[:, :width] = docs
    lengths = (docs != 0).sum(axis=1)
    for row, text in enumerate(texts):
        if text and lengths[row]:
            line = b" " + text
            out[row, lengths[row] : lengths[row] + len(line)] = np.frombuffer(line, np.uint8)
    return out


def check_writable(data: RankingData) -> None:
    """Raises if the format cannot hold the data."""
    if data.n_docs == 0:
        raise invalid("data", "must hold at least one row to be written", "none")
    if data.gains is not None:
        remedy = "Write Parquet, or drop them: dataclasses.replace(data, gains=None)."
        raise invalid("gains", "cannot be written to a LETOR file", "gains", remedy=remedy)
    if data.y.max() > MAX_GRADE:
        raise invalid("labels", f"must be grades up to {MAX_GRADE} to be written", data.y.max())
    if (data.lengths == 0).any():
        remedy = "Leave it out: data.select_queries(data.lengths > 0)."
        empty = str(data.query_ids[np.argmin(data.lengths)])
        raise invalid("queries", "must have rows to be written", f"none in query {empty!r}", remedy=remedy)
    if data.positions is not None and (data.positions < 1).any():
        raise invalid("positions", "must count from 1 to be written", int(data.positions.min()))


def _cells(data: RankingData, rows: slice) -> tuple[IntArray, Array, Array]:
    """(indptr, indices, values) of a block: all cells of a dense X, the stored ones of a sparse one.

    The first row of a sparse X names its last column too, so that the width comes back.
    """
    if is_dense(data.X):
        n, width = rows.stop - rows.start, data.n_features
        indices = np.tile(np.arange(width, dtype=np.int32), n)
        return np.arange(n + 1) * width, indices, np.ascontiguousarray(as_array(data.X[rows])).reshape(-1)
    X: Any = data.X
    first, last = X.indptr[rows.start], X.indptr[rows.stop]
    indptr = (X.indptr[rows.start : rows.stop + 1] - first).astype(np.int64)
    indices = X.indices[first:last].astype(np.int32)
    values = X.data[first:last]
    if rows.start == 0 and data.n_features and data.n_features - 1 not in indices[: indptr[1]]:
        indices = np.insert(indices, indptr[1], data.n_features - 1)
        values = np.insert(values, indptr[1], np.float32(0))
        indptr[1:] += 1
    return indptr, indices, np.ascontiguousarray(values)


def _id_bytes(ids: Array, name: str, also: str) -> Array:
    """Ids as UTF-8, one row of bytes each, filled up with 0."""
    if ids.dtype.kind not in "U":
        ids = ids.astype(str)
    unfit = re.compile(f"{UNFIT.pattern}|{also}") if also else UNFIT
    wrong = next((i for i in ids.tolist() if unfit.search(i) or (also and not i)), None)
    if wrong is not None:
        more = f" or {also!r}, and not be empty" if also else ""
        raise invalid(name, f"must have no blanks or control characters{more} to be written", repr(wrong))
    try:
        encoded = np.char.encode(ids, "utf-8")
    except UnicodeEncodeError as error:
        raise invalid(name, "must be valid Unicode to be written", repr(error.object)) from error
    if encoded.dtype.itemsize > MAX_ID:
        raise invalid(name, f"must have at most {MAX_ID} bytes to be written", encoded.dtype.itemsize)
    width = max(encoded.dtype.itemsize, 1)
    return np.ascontiguousarray(encoded).view(np.uint8).reshape(len(ids), width)
