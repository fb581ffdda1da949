"""From LETOR texts to arrays: how many rows and columns, dense or sparse, parsed by several threads.

Rows are counted first. A look at samples then guesses the layout (first column, width, dense or sparse), and
one pass fills the arrays while it learns the true layout; a wrong guess costs one more pass. Sparse arrays
need the number of values per row beforehand, so they take a counting pass. Each part of a text writes to rows
of its own, so the result does not depend on the number of threads.
"""

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from cleanrank.data import _letor_kernels as kernels
from cleanrank.data._letor_kernels import Cells, Rows, Rules, Tally
from cleanrank.data.files import Text
from cleanrank.errors import BadFileError, error_text, invalid
from cleanrank.ragged import group_rows, indptr_of
from cleanrank.types import Array, Features, IntArray, Progress
from cleanrank.validation import check_n_jobs

DENSE_FROM = 0.3
SAMPLE = 1 << 17
Map: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]


class Part(NamedTuple):
    """Whole lines of a text and the number of their first row."""

    text: Text
    start: int
    end: int
    row: int


class Layout(NamedTuple):
    """The shape that values need."""

    base: int
    width: int
    dense: bool


@dataclass(frozen=True)
class ReadOptions:
    """The caller's options; None and "auto" leave it to the data."""

    dense: bool | None
    n_features: int | None
    zero_based: bool | str
    expects_qid: bool

    def rules(self, mode: int, base: int) -> Rules:
        most = kernels.MAX_INDEX
        if self.n_features is not None:
            most = self.n_features - (self.zero_based is True)
        return Rules(mode, int(self.expects_qid), int(self.zero_based is False), most, base)

    def layout(self, tally: Tally) -> Layout:
        base = int(not (tally.has_index_0 if self.zero_based == "auto" else self.zero_based))
        width = max(tally.most_index + 1 - base, 0) if self.n_features is None else self.n_features
        dense = tally.stored >= DENSE_FROM * tally.rows * width if self.dense is None else self.dense
        return Layout(base, width, dense)


@dataclass(frozen=True)
class Parsed:
    """Rows in the order of the files; ``X`` may be sparse."""

    X: Features
    y: Array
    qid: Array
    names: tuple[str, ...] | None
    doc_ids: Array | None
    comments: Array | None
    places: "list[tuple[Text, int, int]]"  # texts, with their first rows and the rows behind their last
    qid_at: IntArray  # where in its text the query of each row is named


def parse_texts(
    texts: Sequence[Text], options: ReadOptions, *, n_jobs: int | None, progress: Progress | None
) -> Parsed:
    """Parses all texts as one table; ``qid`` holds the ids, or codes into ``names`` if not all are whole."""
    with thread_map(n_jobs) as work:
        parts = find_parts(texts, work)
        n = parts[-1].row
        if n == 0:
            words = error_text(texts[0].path, "must hold at least one row", "none", remedy=ROW_FORM)
            raise BadFileError(words, texts[0].path)
        rows = empty_rows(n)
        tally = sample(parts[:-1], rows, options)
        layout = options.layout(tally)
        if not layout.dense:
            tally = run(parts[:-1], rows, no_cells(), options.rules(kernels.COUNT, layout.base), work, None)
            layout = options.layout(tally)
        while True:
            cells = allocate_features(n, layout, rows)
            mode = kernels.DENSE if layout.dense else kernels.SPARSE
            tally = run(parts[:-1], rows, cells, options.rules(mode, layout.base), work, progress)
            if options.layout(tally) == layout:
                break
            layout = options.layout(tally)
            del cells
        if layout.base == 0 and tally.most_index >= layout.width:
            # An index as high as n_features is one too many, now that a 0 has been seen: name its line.
            strict = replace(options, zero_based=True)
            run(parts[:-1], rows, no_cells(), strict.rules(kernels.COUNT, 0), work, None)
    doc_ids = gather_ids(parts, rows.doc_at, rows.doc_len, tally.doc_id_bytes) if tally.doc_id_bytes else None
    qid, names = named_queries(parts, rows) if tally.named_queries else (rows.qid, None)
    comments = gather_comments(parts, rows) if tally.more_comment else None
    X = make_features(n, layout, cells, tally)
    return Parsed(X, rows.y, qid, names, doc_ids, comments, list(by_text(parts)), rows.qid_at)


def guessed_layout(texts: Sequence[Text], options: ReadOptions) -> Layout:
    """The layout that some lines of the beginning, the middle and the end of each text need."""
    parts = []
    for text in texts:
        for at in {text.start, (text.start + text.end) // 2, max(text.start, text.end - SAMPLE)}:
            start = text.start if at == text.start else text.line_end(at) + 1
            end = text.line_end(min(start + SAMPLE, text.end) - 1) + 1 if start < text.end else start
            parts.append(Part(text, start, end, 0))
    return options.layout(total([_counted(part, options) for part in parts]))


def true_layout(texts: Sequence[Text], options: ReadOptions, n_jobs: int | None) -> Layout:
    """The layout that all lines of all texts need."""
    parts = [Part(text, start, end, 0) for text in texts for start, end in text.parts()]
    with thread_map(n_jobs) as work:
        return options.layout(total(list(work(partial(_counted, options=options), parts))))


def _counted(part: Part, options: ReadOptions) -> Tally:
    """A tally of a part of a text; its bad lines are left to the full pass."""
    rows = empty_rows(int(kernels.count_rows(part.text.buf, part.start, part.end)[1]))
    return parse_part(rows, no_cells(), options.rules(kernels.COUNT, 1), part)[0]


def count_rows(texts: Sequence[Text], n_jobs: int | None) -> int:
    """The rows of all texts."""
    with thread_map(n_jobs) as work:
        return find_parts(texts, work)[-1].row


@contextmanager
def thread_map(n_jobs: int | None) -> Iterator[Map]:
    """An ordered map over ``n_jobs`` threads (None or -1: one per core); the kernels run without the lock."""
    check_n_jobs(n_jobs)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = n_jobs if n_jobs and n_jobs > 0 else cores
    if count == 1:
        yield map
        return
    pool = ThreadPoolExecutor(count)
    try:
        yield pool.map
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def find_parts(texts: Sequence[Text], work: Map) -> list[Part]:
    """The parts of all texts; the last entry is empty and holds the number of rows."""
    ranges = [(text, start, end) for text in texts for start, end in text.parts()]
    counts = work(lambda each: kernels.count_rows(each[0].buf, each[1], each[2])[1], ranges)
    firsts = indptr_of(list(counts)).tolist()
    parts = [Part(*each, row) for each, row in zip(ranges, firsts, strict=False)]
    return [*parts, Part(texts[-1], 0, 0, firsts[-1])]


def empty_rows(n: int) -> Rows:
    kinds: tuple[Any, ...] = (np.int32, np.int64, np.int64, np.int32, np.int64, np.int32, np.int32)
    columns: Any = (np.empty(n, kind) for kind in kinds)
    return Rows(*columns)


def no_cells() -> Cells:
    nothing = np.empty(0, np.float32)
    return Cells(nothing.reshape(0, 0), np.zeros(1, np.int64), np.empty(0, np.int32), nothing)


def allocate_features(n: int, layout: Layout, rows: Rows) -> Cells:
    """Unfilled arrays for the features of n rows, dense or CSR."""
    if not layout.dense:
        indptr = indptr_of(rows.stored)
        size = int(indptr[-1])
        return no_cells()._replace(
            indptr=indptr, indices=np.empty(size, np.int32), values=np.empty(size, np.float32)
        )
    size = n * layout.width * 4
    if size > memory():
        rule = f"must fit into memory ({memory() / 2**30:.1f} GiB)"
        shape = f"{n} rows x {layout.width} columns ({size / 2**30:.1f} GiB)"
        remedy = "Read with dense=False, or look for a mistyped feature index."
        raise invalid("dense features", rule, shape, remedy=remedy)
    return no_cells()._replace(X=np.zeros((n, layout.width), np.float32))


def memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 1 << 36


def sample(parts: Sequence[Part], rows: Rows, options: ReadOptions) -> Tally:
    """A tally of some lines of the first, middle and last part; errors are left to the full pass."""
    tallies = []
    for part in {parts[0], parts[len(parts) // 2], parts[-1]}:
        end = part.text.line_end(min(part.start + SAMPLE, part.end) - 1) + 1
        short = part._replace(end=end)
        tallies.append(parse_part(rows, no_cells(), options.rules(kernels.COUNT, 1), short)[0])
    return total(tallies)


def run(
    parts: Sequence[Part], rows: Rows, cells: Cells, rules: Rules, work: Map, progress: Progress | None
) -> Tally:
    """Parses all parts; raises at the first bad line of the first file that has one."""
    tallies = []
    done, whole = 0, sum(part.end - part.start for part in parts)
    for part, (tally, slow) in zip(parts, work(partial(parse_part, rows, cells, rules), parts), strict=True):
        for at, target, token in slow:
            store_exactly(part.text, cells, rules, at, target, token)
        if tally.error != kernels.OK:
            raise bad_line(part.text, tally.error, tally.error_line, tally.error_at, rules)
        tallies.append(tally)
        done += part.end - part.start
        if progress is not None:
            progress(done, whole)
    return total(tallies)


def parse_part(rows: Rows, cells: Cells, rules: Rules, part: Part) -> tuple[Tally, list[list[int]]]:
    """Runs the kernel, again with a longer list when more values than expected are left to Python."""
    size = 16
    while True:
        slow = np.empty((size, 3), np.int64)
        sums = kernels.parse_rows(part.text.buf, part.start, part.end, part.row, rows, cells, rules, slow)
        tally = Tally(*sums.tolist())
        if tally.slow <= size:
            return tally, slow[: tally.slow].tolist()
        size = tally.slow


def store_exactly(text: Text, cells: Cells, rules: Rules, at: int, target: int, token: int) -> None:
    """Reads one number of more than 19 digits exactly and stores it."""
    end = text.line_end(at)
    value = np.float64(float(text.raw[at:end].replace(b"\t", b" ").split(b" ")[0].split(b"#")[0]))
    with np.errstate(over="ignore"):
        short = np.float32(value)
    if np.isinf(short):
        raise bad_line(text, kernels.BAD_VALUE, token, token, rules)
    if rules.mode == kernels.SPARSE:
        cells.values[target] = short
    elif rules.mode == kernels.DENSE and target >= 0:
        cells.X.reshape(-1)[target] = short


def total(tallies: Sequence[Tally]) -> Tally:
    table = np.array(tallies, dtype=np.int64)
    sums, tops = table.sum(axis=0).tolist(), table.max(axis=0).tolist()
    return Tally(*tops)._replace(rows=sums[0], stored=sums[1], slow=sums[8])


def make_features(n: int, layout: Layout, cells: Cells, tally: Tally) -> Features:
    if layout.dense:
        return cells.X
    from scipy.sparse import csr_matrix

    kind: Any = np.int32 if cells.indptr[-1] <= np.iinfo(np.int32).max else np.int64
    indices, indptr = cells.indices.astype(kind, copy=False), cells.indptr.astype(kind)
    X = csr_matrix((cells.values, indices, indptr), shape=(n, layout.width))
    if tally.unsorted:
        X.sort_indices()
    return X


def by_text(parts: Sequence[Part]) -> Iterator[tuple[Text, int, int]]:
    """(text, first row, end row) for each text."""
    heads = [k for k in range(len(parts) - 1) if k == 0 or parts[k].text is not parts[k - 1].text]
    ends = [*(parts[k].row for k in heads[1:]), parts[-1].row]
    for k, end in zip(heads, ends, strict=True):
        yield parts[k].text, parts[k].row, end


def gather_ids(parts: Sequence[Part], at: IntArray, lengths: Array, width: int) -> Array:
    out = np.zeros((len(at), width), np.uint32)
    ids = out.view(f"U{width}")[:, 0]
    beyond_ascii = False
    for text, start, end in by_text(parts):
        wide = kernels.gather(text.buf, at[start:end], lengths[start:end], out[start:end])
        for row in (start + np.flatnonzero(wide)).tolist():
            ids[row] = text.raw[at[row] : at[row] + lengths[row]].decode()
            beyond_ascii = True
    return ids.astype(str) if beyond_ascii else ids


def gather_comments(parts: Sequence[Part], rows: Rows) -> Array | None:
    """What follows the document id in the comment of every row, as text; None if nothing does."""
    comments = np.full(len(rows.y), "", dtype=object)
    for text, first, last in by_text(parts):
        after = rows.doc_at[first:last] + rows.doc_len[first:last]
        starts, ends = kernels.rest_of_line(text.buf, after)
        for row in np.flatnonzero(ends > starts).tolist():
            end = min(ends[row], starts[row] + kernels.MAX_COMMENT)
            comments[first + row] = text.raw[starts[row] : end].decode("utf-8", "replace")
    return comments if comments.any() else None


def named_queries(parts: Sequence[Part], rows: Rows) -> tuple[IntArray, tuple[str, ...]]:
    """Query ids as codes and their names; Python sees one id per run of equal ones."""
    codes: dict[bytes, int] = {}
    qid = np.empty(len(rows.y), np.int64)
    for text, start, end in by_text(parts):
        at, lengths = rows.qid_at[start:end], rows.qid_len[start:end]
        heads = np.flatnonzero(kernels.starts_run(text.buf, at, lengths))
        names = [text.raw[at[k] : at[k] + lengths[k]] for k in heads.tolist()]
        of_run = np.array([codes.setdefault(name, len(codes)) for name in names], np.int64)
        qid[start:end] = np.repeat(of_run, np.diff(np.append(heads, end - start)))
    return qid, tuple(name.decode() for name in codes)


def grouped(parsed: Parsed, sizes: IntArray | None) -> dict[str, Array]:
    """The columns of RankingData: rows of a query together, or as ``sizes`` say when lines name no query."""
    if sizes is None:
        order, indptr, ids = group_rows(parsed.qid)
        if parsed.names is not None:
            ids = np.array(parsed.names)[ids]
    else:
        order, indptr, ids = np.arange(len(parsed.y)), indptr_of(sizes), np.arange(len(sizes))
    X, y, doc_ids, comments = parsed.X, parsed.y, parsed.doc_ids, parsed.comments
    if not (order[:-1] < order[1:]).all():
        if isinstance(X, np.ndarray):
            # In place: a second copy of X would double the memory that reading needs.
            kernels.reorder(X, order)
        else:
            X = X[order]
        y, doc_ids = y[order], None if doc_ids is None else doc_ids[order]
        comments = None if comments is None else comments[order]
    columns: dict[str, Any] = {"X": X, "y": y, "doc_ids": doc_ids}
    if comments is not None:
        texts = [comment.encode() for comment in comments]
        columns["comment_bytes"] = np.frombuffer(b"".join(texts), np.uint8)
        columns["comment_ends"] = np.cumsum([len(text) for text in texts])
    return {**columns, "indptr": indptr, "query_ids": ids, "row_ids": order}


ROW_FORM = "A row is: label qid:ID 1:value 2:value ... # comment."
LONGEST = 60


def bad_line(text: Text, error: int, line_at: int, at: int, rules: Rules) -> BadFileError:
    """The error of a kernel at ``at``, in the line that starts at ``line_at``."""
    token = _second(text, at) if error == kernels.REPEATED else _token(text, at)
    subject, rule, remedy = wording(error, token, rules)
    if "\0" in token:
        remedy = "NUL bytes: is it binary or UTF-16? Save it as UTF-8 text."
    line = text.line_of(line_at)
    value = repr(token if len(token) <= LONGEST else token[:LONGEST] + "...")
    message = error_text(subject, rule, value, at=f"line {line} of {text.path}", remedy=remedy)
    return BadFileError(message, text.path, line)


def _token(text: Text, at: int) -> str:
    start = text.raw[at : min(text.line_end(at), at + 2 * kernels.MAX_ID)]
    return re.split(rb"[ \t#]|\r$", start, maxsplit=1)[0].decode("utf-8", "backslashreplace")


def _second(text: Text, at: int) -> str:
    """The first ``index:value`` of a line whose index came before."""
    seen = set()
    for token in re.split(rb"[ \t]+", text.raw[at : text.line_end(at)].split(b"#")[0].strip(b" \t\r")):
        index = int(token.split(b":")[0] or 0)
        if index in seen:
            return token.decode()
        seen.add(index)
    return ""


def wording(error: int, token: str, rules: Rules) -> tuple[str, str, str]:
    """Subject, rule and remedy of an error."""
    if error == kernels.BAD_LABEL:
        return "the label", *_label_rule(token)
    if error == kernels.BAD_QID and not token.startswith("qid:"):
        return "the row", "must name its query after the label, as the first row does", ROW_FORM
    if error == kernels.BAD_QID:
        rule = f"must be 1 to {kernels.MAX_ID} bytes of UTF-8 without control characters"
        return "the query id", rule, ROW_FORM
    if error == kernels.BAD_FEATURE and token.startswith("qid:"):
        return "qid", "must come once, right after the label, in every row or in none", ROW_FORM
    if error == kernels.BAD_FEATURE:
        return "a feature", "must be index:value, with blanks between features", ROW_FORM
    if error == kernels.BAD_INDEX:
        if int(token.split(":")[0][:20]) < rules.least_index:
            return "the feature index", "must start from 1 (zero_based=False)", "Read with zero_based=True."
        if rules.most_index < kernels.MAX_INDEX:
            rule = f"must not exceed {rules.most_index} (n_features)"
            return "the feature index", rule, "Raise n_features or leave it out."
        return "the feature index", f"must not exceed {kernels.MAX_INDEX}", "Renumber the features."
    if error == kernels.BAD_VALUE:
        remedy = "Write nan where a value is missing, or rescale."
        if _number(token.split(":", 1)[1]) is None:
            return "a feature value", "must be a number or nan", ROW_FORM
        return "a feature value", "must be finite in float32", remedy
    if error == kernels.REPEATED:
        return "a feature", "must come once in a row", "Keep one of its values."
    rule = f"must be at most {kernels.MAX_ID} bytes of UTF-8 without control characters"
    return "the document id (first word of the comment)", rule, "Shorten or re-encode it."


def _label_rule(token: str) -> tuple[str, str]:
    value, most = _number(token), kernels.MAX_GRADE
    if value is None:
        return "must be a number", ROW_FORM
    if not math.isfinite(value):
        return "must be finite", "Drop or impute it first."
    if value < 0:
        return "must not be negative", "Shift or clip the grades first."
    rule = f"must be a grade up to {most}" if value > most else "must be a whole grade"
    return rule, "Real-valued relevance goes into gains= of from_arrays."


def _number(token: str) -> float | None:
    try:
        return float(token.replace("_", "?"))
    except ValueError:
        return None
