"""Labels of judges, gold labels and rankings of systems on one set of pairs.

A *judge* labels (query, document) pairs; *gold* labels are those of a judge who counts as right, for some of
the pairs. All may come as files, frames or mappings; ``Pool`` holds them row by row.
"""

import os
import reprlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from cleanrank.data.files import PACKED
from cleanrank.data.scores import is_qrels, is_run
from cleanrank.data.sheets import Sheet, frame_sheet, read_sheet_file
from cleanrank.data.trec import join_runs, read_qrels, read_run
from cleanrank.errors import NonRandomGoldWarning, invalid
from cleanrank.judges.plain_runs import plain_run
from cleanrank.ragged import indptr_of, judged_rows, query_of_row
from cleanrank.types import Array, FloatArray, IntArray, RankingData, Run
from cleanrank.validation import is_table

NOT_JUDGED = -1
ENOUGH = 30
MOST = 1000  # a grade
SUFFIXES = (".csv", ".tsv", ".xlsx", ".parquet", ".pq")
RUN_SUFFIXES = (".txt", ".run", ".trec", *PACKED, *SUFFIXES)
Mapped: TypeAlias = "Mapping[float, int] | None"
BY_MAPPING = "Say which grade each value stands for: mapping={lowest value of a grade: grade, ...}."


@dataclass(frozen=True, eq=False)
class Labels:
    """Grades that one judge gave, a row per pair.

    Attributes:
        name: what messages call them.
        qid: query ids.
        docid: document ids.
        grade: whole numbers >= 0; any numbers >= 0 of a judge on a scale of its own (``whole=False``).
        probability: with which the pair was drawn to be judged; None where that is not known.
        n_grades: of the scale; None where only the grades that occur are known.
    """

    name: str
    qid: Array
    docid: Array
    grade: IntArray
    probability: FloatArray | None = None
    n_grades: int | None = None

    def __len__(self) -> int:
        return len(self.grade)


@dataclass(frozen=True, eq=False)
class Pool:
    """All pairs that were judged or retrieved, query by query, with their labels and scores.

    Attributes:
        indptr: query q owns the rows indptr[q]:indptr[q + 1].
        query_ids: (Q,).
        doc_ids: (N,); of a query the higher id comes first, so that ties fall as in trec_eval.
        grades: (L, N), a row per Labels; -1 where that judge gave no grade.
        probability: (L, N), with which a pair was drawn to be judged; NaN where not known.
        scores: (S, N), a row per system; -inf where it did not retrieve the document.
        systems: names.
    """

    indptr: IntArray
    query_ids: Array
    doc_ids: Array
    grades: IntArray
    probability: FloatArray
    scores: FloatArray
    systems: tuple[str, ...]

    @property
    def n_queries(self) -> int:
        """Q."""
        return len(self.query_ids)

    @property
    def query(self) -> IntArray:
        """(N,) the place of every row's query."""
        return query_of_row(self.indptr)

    def select(self, rows: Array) -> "Pool":
        """The pool of some rows; queries without any are gone."""
        counts = np.bincount(self.query[rows], minlength=self.n_queries)
        return Pool(
            indptr_of(counts[counts > 0]),
            self.query_ids[counts > 0],
            self.doc_ids[rows],
            self.grades[:, rows],
            self.probability[:, rows],
            self.scores[:, rows],
            self.systems,
        )

    def data(self, grades: Array, rows: Array | None = None) -> RankingData:
        """Ranking data with these grades (-1: not judged, counts 0), of some rows."""
        kept = np.arange(len(self.doc_ids)) if rows is None else np.flatnonzero(rows)
        return RankingData(
            X=np.zeros((len(kept), 0), dtype=np.float32),
            y=np.maximum(grades[kept], 0).astype(np.int32),
            indptr=indptr_of(np.bincount(self.query[kept], minlength=self.n_queries)),
            query_ids=self.query_ids,
            row_ids=np.arange(len(kept)),
            doc_ids=self.doc_ids[kept],
            judged=grades[kept] >= 0,
        )


def as_labels(source: Any, name: str = "labels", mapping: Mapped = None, *, whole: bool = True) -> Labels:
    """Grades from whatever a caller has.

    Args:
        source: a path (qrels, CSV, .xlsx, .parquet, a labelling project), a frame with the columns qid, docid
            and grade, a mapping {query: {document: grade}}, a RankingData, or Labels. A column
            ``probability`` says with which probability a pair was drawn to be judged.
        name: what messages call them.
        mapping: grade of every value of a scale: a value gets the grade of the largest key that is not above
            it, as in {0: 0, 1: 2} for a scale of 0 and 1.
        whole: False keeps answers that are no whole numbers, as shares are.

    Returns:
        The labels; blank and negative grades are left out, a pair that comes twice is refused.

    >>> as_labels({"q1": {"a": 0, "b": 1}}, mapping={0: 0, 1: 2}).grade.tolist()
    [0, 2]
    """
    values: Array
    if isinstance(source, Labels):
        qid, docid, values, probability = source.qid, source.docid, source.grade, source.probability
    elif isinstance(source, RankingData):
        docid = document_names(source)
        values = np.where(source.judged, source.y, NOT_JUDGED) if source.judged is not None else source.y
        qid, probability = source.qid, None
    elif isinstance(source, str | os.PathLike) and _is_trec(source, is_qrels):
        return as_labels(read_qrels(source), name, mapping, whole=whole)
    else:
        qid, docid, values, probability = _columns(source, name, "grade")
    ids = np.asarray(qid).astype(str), np.asarray(docid).astype(str)
    checked = checked_labels(name, *ids, values, probability, mapping, whole)
    is_known = isinstance(source, Labels) and mapping is None
    return replace(checked, n_grades=source.n_grades) if is_known else checked


def as_runs(source: Any) -> dict[str, Run]:
    """Systems by name, from whatever a caller has.

    Args:
        source: one system, or several: a folder of run files, a list of them, or a mapping from names. A
            system is a path (TREC run or table), a frame (qid, docid, score), a mapping {query: {document:
            score}} or a Run.

    >>> [run.scores.tolist() for run in as_runs({"new": {"q1": {"a": 2, "b": 1.5}}}).values()]
    [[2.0, 1.5]]
    """
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        files = sorted(f for f in Path(source).iterdir() if f.is_file() and f.suffix in RUN_SUFFIXES)
        if not files:
            rule = f"must hold run files ({', '.join(RUN_SUFFIXES)})"
            raise invalid(f"folder {str(source)!r}", rule, "none")
        return as_runs(files)
    if isinstance(source, Mapping) and not is_nested(source):
        named = {str(name): value for name, value in source.items()}
    elif isinstance(source, list | tuple):
        named = {}
        for place, each in enumerate(source):
            own = _own_name(each) or f"system {place + 1}"
            if own in named:
                raise invalid("systems", "must have names of their own", f"{own!r} twice")
            named[own] = each
    else:
        named = {_own_name(source) or "system": source}
    if not named:
        raise invalid("runs", "must hold at least one system", "none")
    return {name: _as_run(each, name) for name, each in named.items()}


def document_names(data: RankingData) -> Array:
    """Document ids; row ids stand in for them."""
    return (data.row_ids if data.doc_ids is None else np.asarray(data.doc_ids)).astype(str)


def pool_of(labels: Sequence[Labels], runs: Mapping[str, Run] | None = None) -> Pool:
    """Brings labels and systems together on one set of rows: the queries that anybody judged."""
    qid = np.concatenate([each.qid for each in labels])
    docid = np.concatenate([each.docid for each in labels])
    queries, query = np.unique(qid, return_inverse=True)
    documents, document = np.unique(docid, return_inverse=True)
    keys, row = np.unique(query * len(documents) + document, return_inverse=True)
    # The grades of this table are its own row numbers: the join says where each of them went.
    numbered = RankingData(
        X=np.zeros((len(keys), 0), dtype=np.float32),
        y=np.arange(len(keys), dtype=np.int32),
        indptr=indptr_of(np.bincount(keys // len(documents), minlength=len(queries))),
        query_ids=queries,
        row_ids=np.arange(len(keys)),
        doc_ids=documents[keys % len(documents)],
    )
    joined = join_runs(numbered, list((runs or {}).values()))
    place = np.empty(len(keys), dtype=np.int64)
    judged = judged_rows(joined.data)
    place[joined.data.y[judged]] = np.flatnonzero(judged)
    grades = np.full((len(labels), joined.data.n_docs), NOT_JUDGED, dtype=np.int64)
    probability = np.full(grades.shape, np.nan)
    start = 0
    for k, each in enumerate(labels):
        rows = place[row[start : start + len(each)]]
        grades[k, rows] = each.grade
        if each.probability is not None:
            probability[k, rows] = each.probability
        start += len(each)
    scores = np.array([np.ma.filled(column, -np.inf) for column in joined.scores])
    assert joined.data.doc_ids is not None
    return Pool(
        joined.data.indptr,
        joined.data.query_ids,
        joined.data.doc_ids,
        grades,
        probability,
        scores.reshape(len(joined.scores), joined.data.n_docs),
        tuple(runs or ()),
    )


def check_together(judge: Labels, gold: Labels) -> None:
    """Raises where judge and gold have no pair in common or answer on different scales."""
    pairs = set(zip(judge.qid.tolist(), judge.docid.tolist(), strict=True))
    if not any(pair in pairs for pair in zip(gold.qid.tolist(), gold.docid.tolist(), strict=True)):
        ids = (
            f"({judge.qid[0]}, {judge.docid[0]}) of {judge.name} and "
            f"({gold.qid[0]}, {gold.docid[0]}) of {gold.name}"
        )
        remedy = "Check whether both belong to the same collection."
        raise invalid(f"{judge.name} and {gold.name}", "must have pairs in common", ids, remedy=remedy)
    if judge.n_grades is not None and judge.n_grades == gold.n_grades:
        return
    tops = int(judge.grade.max()), int(gold.grade.max())
    differ = min(tops) > 0 and (abs(tops[0] - tops[1]) >= 2 or (min(tops) <= 1 < max(tops)))
    if differ and (tops[0] < tops[1] or len(gold) >= ENOUGH):  # a few gold labels need not show their scale
        rule = f"must answer on the scale of {gold.name} (0 to {tops[1]})"
        grades = sorted({round(tops[1] * step / 9) for step in range(10)})
        lowest = {-(-max(2 * g - 1, 0) * tops[0] // (2 * tops[1])): g for g in grades}  # of a grade's values
        keys = ", ".join(f"{value}: {g}" for value, g in lowest.items())
        remedy = f"Say which grade its values stand for from which on, as in mapping={{{keys}}}."
        raise invalid(judge.name, rule, f"0 to {tops[0]}", remedy=remedy)


def table_of(source: Any, name: str, role: str = "grade") -> tuple[Sheet, dict[str, str]]:
    """The cells of a path or frame, and its headings of queries ("query"), documents ("doc") and ``role``.

    Without a role the table must have queries and documents alone.
    """
    if isinstance(source, str | os.PathLike):
        sheet = read_sheet_file(source, purpose="evaluation")
    elif is_table(source) or isinstance(source, Mapping):
        sheet = frame_sheet(source, name)
    else:
        rule = f"must be a path, a frame (qid, docid, {role}) or a mapping {{query: {{document: {role}}}}}"
        raise invalid(name, rule, f"a {type(source).__name__}")
    return sheet, {each: _heading(sheet, each, name, role) for each in ("query", "doc", role) if each}


def _is_trec(path: Any, test: Any) -> bool:
    name = str(path).lower()
    return (not name.endswith(SUFFIXES) or name.endswith(".tsv")) and bool(test(path))


def is_nested(source: Mapping[Any, Any]) -> bool:
    """Whether a mapping is {query: {document: number}}."""
    first = next(iter(source.values()), None)
    return isinstance(first, Mapping) and not isinstance(next(iter(first.values()), 0.0), Mapping)


def _own_name(source: Any) -> str:
    if isinstance(source, str | os.PathLike):
        return Path(source).name.removesuffix(".gz").rsplit(".", 1)[0]
    return source.tag if isinstance(source, Run) else ""


def _as_run(source: Any, name: str) -> Run:
    if isinstance(source, Run):
        return source
    if isinstance(source, str | os.PathLike) and _is_trec(source, is_run):
        return read_run(source)
    plain = plain_run(source, name)
    if plain is not None:
        return plain
    qid, docid, scores, _ = _columns(source, f"run {name!r}", "score")
    _refuse_bad(f"scores of {name!r}", scores, ~np.isfinite(scores), "must be finite numbers", qid, docid)
    topics, topic = _codes(qid)
    documents, document = _codes(docid)
    _refuse_twice(f"run {name!r}", qid, docid, topic * len(documents) + document)
    return Run(topics, documents, topic, document, scores, name)


def _codes(ids: Array) -> tuple[Array, IntArray]:
    """The different ids, and the place of every one among them."""
    import pyarrow as pa

    encoded = pa.array(ids, pa.string()).dictionary_encode()
    return np.array(encoded.dictionary.to_pylist(), dtype=str), encoded.indices.to_numpy().astype(np.int64)


def _columns(source: Any, name: str, role: str) -> tuple[Array, Array, FloatArray, FloatArray | None]:
    """Query ids, document ids, values and (where there are some) inclusion probabilities."""
    if isinstance(source, Mapping) and (not source or is_nested(source)):
        pairs = [(str(q), str(d), value) for q, each in source.items() for d, value in each.items()]
        if not pairs:
            raise invalid(name, "must hold at least one pair", "none")
        qid, docid, values = (np.array(column) for column in zip(*pairs, strict=True))
        return qid, docid, numbers(name, values), None
    sheet, headings = table_of(source, name, role)
    qid, docid = (np.array(sheet.texts(headings[each]), dtype=object) for each in ("query", "doc"))
    if not len(qid):
        raise invalid(name, "must hold at least one pair", "none")
    plain = {heading.casefold(): heading for heading in sheet.values}
    drawn = sheet.values[plain["probability"]] if "probability" in plain else None
    values = numbers(name, sheet.values[headings[role]])
    probability = None if drawn is None else numbers(f"probability of {name}", drawn, comma=True)
    answered = values >= 0
    if probability is not None and "draw" in plain and 0 < answered.mean() < 1:
        probability *= answered.mean()  # every row of such a sheet was drawn
        text = f"{(~answered).sum():,} of {len(values):,} drawn pairs have no answer: intervals hold only if"
        warnings.warn(
            f"{text} it does not depend on the document whether it has one", NonRandomGoldWarning, 6
        )
    return qid, docid, values, probability


def _heading(sheet: Sheet, each: str, name: str, role: str) -> str:
    wanted = {"query": "qid", "doc": "docid"}.get(each, each)
    if each == "score":
        usual = next((h for h in sheet.values if h.casefold() in ("score", "sim", "similarity")), None)
    else:
        usual = wanted if wanted in sheet.values else sheet.heading("true grade" if each == "grade" else each)
    if usual is None:
        columns = ", ".join(sheet.values)
        needed = f"qid, docid and {role}" if role else "qid and docid"
        raise invalid(name, f"must have the columns {needed}", f"{columns} (no {wanted})")
    return usual


def numbers(name: str, values: Any, *, comma: bool = False) -> FloatArray:
    """The cells of a column as numbers, NaN where they are blank; with ``comma`` also those as 0,25."""
    if set(map(type, values)) <= {float, int}:
        return np.array(values, dtype=np.float64)
    cells = [np.nan if v is None or (isinstance(v, str) and not v.strip()) else v for v in values]
    if comma:
        cells = [v.replace(",", ".") if isinstance(v, str) else v for v in cells]
    try:
        return np.array(cells, dtype=np.float64)
    except (TypeError, ValueError):
        row = next((row for row, cell in enumerate(cells) if not is_number_cell(cell)), 0)
        raise invalid(name, "must hold numbers", reprlib.repr(cells[row]), at=f"row {row}") from None


def is_number_cell(cell: Any) -> bool:
    """Whether a cell reads as a number."""
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def checked_labels(
    name: str,
    qid: Array,
    docid: Array,
    values: Array,
    probability: FloatArray | None,
    mapping: Mapped,
    whole: bool = True,
    remedy: str = BY_MAPPING,
) -> Labels:
    """Labels without blank and negative grades, mapped to a scale; raises where something is wrong."""
    values = np.asarray(values, dtype=np.float64)
    if mapping is not None:
        values = _mapped(name, values, mapping)
    kept = ~(np.isnan(values) | (values < 0))
    if not kept.any():
        raise invalid(name, "must hold at least one grade >= 0", f"{len(values)} rows without")
    qid, docid, values = qid[kept], docid[kept], values[kept]
    wrong = ((values != np.floor(values)) | (values > MOST)) & whole | np.isinf(values)
    rule = f"must be whole numbers and at most {MOST:,}" if whole else "must be finite numbers"
    _refuse_bad(f"grades of {name}", values, wrong, rule, qid, docid, remedy)
    codes = np.unique(qid, return_inverse=True)[1], np.unique(docid, return_inverse=True)[1]
    _refuse_twice(name, qid, docid, codes[0] * (int(codes[1].max()) + 1) + codes[1])
    if probability is not None:
        probability = probability[kept]
        wrong, rule = ~((probability > 0) & (probability <= 1)), "must be > 0 and <= 1"
        _refuse_bad(f"probabilities of {name}", probability, wrong, rule, qid, docid)
    grade: Array = values.astype(np.int64) if whole else values
    return Labels(name, qid, docid, grade, probability)


def _mapped(name: str, values: FloatArray, mapping: Mapping[float, int]) -> FloatArray:
    if not isinstance(mapping, Mapping) or not mapping:
        raise invalid(f"mapping of {name}", "must be as {lowest value of a grade: grade, ...}", mapping)
    keys = np.array(sorted(float(key) for key in mapping))
    grades = np.array([mapping[key] for key in sorted(mapping, key=float)], dtype=np.float64)
    place = np.searchsorted(keys, values, side="right") - 1
    judged = ~np.isnan(values) & (values >= 0)
    if (judged & (place < 0)).any():
        lowest = float(values[judged].min())
        raise invalid(f"mapping of {name}", f"must have a key <= its lowest value {lowest:g}", f"{keys[0]:g}")
    return np.where(judged, grades[np.maximum(place, 0)], np.nan)


def _refuse_bad(
    name: str, values: Array, wrong: Array, rule: str, qid: Array, docid: Array, remedy: str = ""
) -> None:
    if wrong.any():
        at = int(np.argmax(wrong))
        place = f"query {str(qid[at])!r}, document {str(docid[at])!r}"
        raise invalid(name, rule, values[at], at=place, remedy=remedy)


def _refuse_twice(name: str, qid: Array, docid: Array, keys: IntArray) -> None:
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if len(again):
        at = int(order[again + 1].min())
        pair = f"query {str(qid[at])!r}, document {str(docid[at])!r} twice"
        rule = "must hold a pair of query and document once only"
        raise invalid(name, rule, pair, remedy="Keep one of them.")
