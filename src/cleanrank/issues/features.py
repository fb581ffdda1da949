"""What is known about judged pairs besides their grades, as features: runs, texts, scores, other judges.

A pair is a query and a document, judged or not. Whatever there is becomes columns of one table, named by
where they come from: ``runs:NAME`` and ``run:SYSTEM:rr`` (``run_features``), ``text:NAME``
(``text_features``), ``score:NAME`` with ``place:NAME``, its place within the query, and ``judge:NAME``. What
is missing is 0 for runs (not retrieved) and NaN elsewhere. No grade of the pairs themselves is in a column.
"""

import os
import reprlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.data.files import first_bytes
from cleanrank.data.scores import is_qrels, is_run
from cleanrank.data.sheets import Sheet
from cleanrank.data.tables import kind_of_file, read_data
from cleanrank.data.texts import (
    VECTORS,
    Texts,
    as_sheet,
    query_heading,
    read_texts,
    row_places,
    texts_of,
    vector_size,
)
from cleanrank.data.trec import read_qrels, read_runs, scores_from_run
from cleanrank.errors import InvalidInputError, error_text, invalid
from cleanrank.issues.run_features import run_features
from cleanrank.issues.text_features import places_in_query, text_features
from cleanrank.judges.labels import (
    RUN_SUFFIXES,
    SUFFIXES,
    Labels,
    as_labels,
    as_runs,
    checked_labels,
    is_nested,
    is_number_cell,
    numbers,
    table_of,
)
from cleanrank.noise.scales import check_few_grades
from cleanrank.ragged import from_arrays, judged_rows
from cleanrank.types import Array, FloatArray, RankingData, Run

JUDGEMENTS = "the judgements"
BY_RATINGS = "Make grades of ratings first: cleanrank convert ratings.csv grades.csv --ratings levels"
MOST_SYSTEMS = 10  # whose own columns are features; of more of them most are alike, and take the time
MOST_PLACED = 16  # columns of scores; more of them are an embedding
URL = "url"


def pair_features(
    data: RankingData,
    *,
    runs: Any = None,
    texts: Any = None,
    scores: Any = None,
    judges: Any = None,
    n_jobs: int | None = 1,
) -> RankingData:
    """The pairs with all that is known about them as features; grades, row ids and document ids stay.

    Args:
        data: pairs, with document ids; features and texts that they have are kept.
        runs: systems, as ``systems_of`` takes them.
        texts: one table of texts or BEIR folder, or several, as ``read_texts`` takes them; a collection may
            be larger than what was judged. Columns of numbers and addresses are no texts.
        scores: one table of numbers or several (reranker scores, embeddings) with columns query_id and
            doc_id, or row_id.
        judges: labels of other judges, by name, in any form that ``as_labels`` takes and on any scale.
        n_jobs: threads.

    Returns:
        The pairs; ``extra`` holds their texts, the query's as ``query``, and the columns of single systems
        where there are more than MOST_SYSTEMS.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((2, 0)), [1, 0], qid=["q", "q"], doc_ids=["a", "b"])
    >>> found = pair_features(data, runs={"new": {"q": {"b": 2.0}}}, judges={"llm": {"q": {"a": 3}}})
    >>> found.feature_names[-1], found.X[:, -1].tolist(), found.X[:, 0].tolist()
    ('judge:llm', [3.0, nan], [0.0, 1.0])
    """
    if data.doc_ids is None:
        rule = "must have document ids to be matched with runs, texts, scores and judges"
        remedy = "Where they have features, find-issues doubts them without any." if data.n_features else ""
        raise invalid(JUDGEMENTS, rule, "none", remedy=remedy)
    columns: dict[str, FloatArray] = {}
    if runs is not None:
        columns |= run_features(systems_of(runs), data)
    known = _texts(texts, data)
    fields = {name: cells for name, cells in known.fields.items() if is_prose(name, cells)}
    if fields and known.queries:
        columns |= _of_texts(replace(known, fields=fields), data, n_jobs)
    elif texts is not None and not known.queries:
        remedy = (
            "Give them a column query, or a table with query_id and query, or queries.jsonl, beside them."
        )
        given = "those of documents alone" if fields else "no texts"
        raise invalid("texts", "must hold the texts of queries", given, remedy=remedy)
    elif texts is not None:
        remedy = "Give a table with columns doc_id and text, or corpus.jsonl, beside them."
        raise invalid("texts", "must hold texts of documents", "those of queries alone", remedy=remedy)
    for source in several(scores):
        columns |= score_columns(source, data)
    for name, labels in judges_of(judges).items():
        columns[f"judge:{name}"] = _of_labels(labels, data)
    if not columns and not data.n_features:
        remedy = "Give runs, texts, scores or labels of other judges."
        lone = "texts of documents without those of queries" if fields else "grades and queries alone"
        given = lone if fields or known.queries else "grades alone"
        raise invalid("evidence", "must be there to doubt a label", given, remedy=remedy)
    _refuse_grades(columns, data)
    own = [name for name in columns if name.startswith("run:")]
    beside = {name: columns.pop(name) for name in own} if len(own) > 2 * MOST_SYSTEMS else {}
    return _joined(data, columns, fields, known.queries, beside)


def judgements_of(source: Any) -> RankingData:
    """Judged pairs from whatever a caller has, their row ids as in the file.

    Args:
        source: TREC qrels, a table (qid, docid and grade under any usual heading), a mapping {query:
            {document: grade}}, a file that ``read_data`` reads with document ids, or a RankingData.

    Returns:
        The pairs; blank and negative grades count as not judged (``judged``).

    >>> judgements_of({"q": {"a": 2, "b": 0}}).doc_ids.tolist()
    ['a', 'b']
    """
    if isinstance(source, RankingData):
        data = source
    elif isinstance(source, str | os.PathLike) and _is_no_table(source):
        if Path(source).is_file() and is_run(Path(source)):
            raise invalid(JUDGEMENTS, "must be grades", f"a run, {str(source)!r}", remedy="Give it as runs.")
        data = read_qrels(source) if _is_trec(Path(source)) else read_data(source)
    else:
        data = _from_table(source)
    if not data.n_docs:
        held = f"none in {str(source)!r}" if isinstance(source, str | os.PathLike) else "none"
        raise invalid(JUDGEMENTS, "must hold at least one pair", held)
    check_few_grades(data)
    if data.doc_ids is not None:
        as_labels(data, JUDGEMENTS)  # refuses a pair that comes twice
    return data


def systems_of(source: Any) -> dict[str, Run]:
    """Systems by name: what ``as_runs`` takes, where a TREC file may hold several, told apart by their tags.

    A file that holds one run is named like the file; a tag that comes in several files gets the file's name
    before it.

    >>> list(systems_of({"new": {"q1": {"a": 2, "b": 1.5}}}))
    ['new']
    """
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        files = sorted(f for f in Path(source).iterdir() if f.is_file() and f.suffix in RUN_SUFFIXES)
        if not files:
            raise invalid(
                f"folder {str(source)!r}", f"must hold run files ({', '.join(RUN_SUFFIXES)})", "none"
            )
        return systems_of(files)
    if not isinstance(source, list | tuple):
        if not isinstance(source, str | os.PathLike) or not _is_no_table(source):
            return as_runs(source)
        if is_qrels(source):
            value, remedy = f"judgements, {str(source)!r}", "Give them as qrels or judges."
            raise invalid("runs", "must be rankings with scores", value, remedy=remedy)
        return _of_run_file(Path(source)) if is_run(Path(source)) else as_runs(source)
    systems: dict[str, Run] = {}
    for place, each in enumerate(source):
        for name, run in systems_of(each).items():
            own = name if name not in systems else f"{_stem(each) or place + 1}:{name}"
            if own in systems:
                raise invalid("runs", "must have names of their own", f"{own!r} twice", remedy="Rename one.")
            systems[own] = run
    if not systems:
        raise invalid("runs", "must hold at least one system", "none")
    return systems


def judges_of(source: Any) -> dict[str, Labels]:
    """Labels of judges by name: a mapping from names, a list of files, or one judge.

    >>> judges_of({"llm": {"q": {"a": 0.5}}})["llm"].grade.tolist()
    [0.5]
    """
    if source is None:
        return {}
    if isinstance(source, Mapping) and not is_nested(source):
        named = {str(name): each for name, each in source.items()}
    else:
        named = {}
        for place, each in enumerate(several(source), start=1):
            name = _stem(each) or f"judge {place}"
            if name in named:
                rule, remedy = "must have names of their own", "Rename a file."
                raise invalid("judges", rule, f"{name!r} twice", remedy=remedy)
            named[name] = each
    return {name: as_labels(each, f"judge {name!r}", whole=False) for name, each in named.items()}


def score_columns(source: Any, data: RankingData) -> dict[str, FloatArray]:
    """Columns of numbers from a table that names the pairs; few of them also as places within the query."""
    sheet = _with_vectors(as_sheet(source, "scores"))
    headings = sheet.headings(("row", "query", "doc"))
    cells = {name: _measured(sheet, name) for name in sheet.values if name not in headings.values()}
    found = {name: values for name, values in cells.items() if values is not None}
    if ("row" not in headings and not {"query", "doc"} <= headings.keys()) or not found:
        rule = "must have query_id and doc_id (or row_id) and columns of numbers"
        raise sheet.bad(error_text(sheet.name, rule, ", ".join(sheet.values) or "none"))
    places = row_places(sheet, headings, data, list(found))
    if (places < 0).all():
        first = {name: sheet.texts(name)[:1] for name in headings.values()}
        raise sheet.bad(error_text(sheet.name, "must hold pairs that were judged; none is there", first))
    columns = {}
    for name, values in found.items():
        columns[f"score:{name}"] = column = np.where(places >= 0, values[places], np.nan)
        if len(found) <= MOST_PLACED:
            columns[f"place:{name}"] = places_in_query(column, data.indptr)
    return columns


def _with_vectors(sheet: Sheet) -> Sheet:
    """A table whose columns of vectors (embeddings) are a column of numbers for each place."""
    values: dict[str, Sequence[Any]] = {}
    for name, cells in sheet.values.items():
        size = vector_size(cells)
        if not size:
            values[name] = cells
            continue
        vectors = [[None] * size if cell is None else cell for cell in cells]
        for line, each in zip(sheet.lines, vectors, strict=True):
            if not isinstance(each, VECTORS) or len(each) != size:
                rule, at = f"must hold vectors of {size} numbers", f"{sheet.unit} {line}"
                words = error_text(f"{sheet.name}, column {name!r},", rule, reprlib.repr(each), at=at)
                raise sheet.bad(words, line)
        values |= {f"{name}:{j}": [each[j] for each in vectors] for j in range(size)}
    return replace(sheet, values=values)


def is_prose(name: str, cells: Sequence[str]) -> bool:
    """Whether a column holds texts: neither addresses nor mostly numbers.

    >>> is_prose("text", ["a flag", "", "7"]), is_prose("year", ["1999", "2000"]), is_prose("url", ["a"])
    (True, False, False)
    """
    filled = [cell for cell in cells if cell]
    figures = sum(cell.replace(".", "", 1).lstrip("-").isdigit() for cell in filled)
    return name.casefold() != URL and bool(filled) and 2 * figures <= len(filled)


def _texts(sources: Any, data: RankingData) -> Texts:
    """What came along with the data and what tables say, tables first."""
    own = texts_of(data)
    queries, fields = dict(own.queries), dict(own.fields)
    beside: dict[str, list[str]] = {}
    for source in several(sources):
        read = read_texts(source, data)
        queries |= read.queries
        for name, cells in read.fields.items():
            before = fields.get(name, cells)
            fields[name] = [cell or known for cell, known in zip(cells, before, strict=True)]
        for name, cells in read.beside.items():
            beside.setdefault(name, []).extend(cells)
    return Texts(queries, fields, beside)


def _of_texts(texts: Texts, data: RankingData, n_jobs: int | None) -> dict[str, FloatArray]:
    queries = [texts.queries.get(str(query), "") for query in data.query_ids.tolist()]
    rows = [" ".join(cells).strip() for cells in zip(*texts.fields.values(), strict=True)]
    others = [texts.beside[name] for name in texts.fields if name in texts.beside]
    # Tables of different fields may hold different documents.
    rest = [" ".join(cells).strip() for cells in zip_longest(*others, fillvalue="")]
    found = text_features(queries, rows, data.indptr, beside=rest, n_jobs=n_jobs)
    return {f"text:{name}": column for name, column in found.items()}


def _of_labels(labels: Labels, data: RankingData) -> FloatArray:
    topics, topic = np.unique(labels.qid, return_inverse=True)
    documents, document = np.unique(labels.docid, return_inverse=True)
    answers = Run(topics, documents, topic, document, labels.grade.astype(float))
    values = scores_from_run(answers, data, labels.name)
    return np.ma.filled(values, np.nan)


def _is_no_table(path: str | os.PathLike[str]) -> bool:
    """Whether a file is no table by its name, or TREC judgements or a run in spite of it."""
    file = Path(path)
    if file.suffix.lower() not in SUFFIXES:
        return True
    return file.suffix.lower() == ".tsv" and file.is_file() and (is_qrels(file) or is_run(file))


def _is_trec(path: Path) -> bool:
    """Whether a file is TREC judgements, or nothing else: rows of LETOR have colons."""
    if not path.is_file() or is_qrels(path):
        return path.is_file()
    return kind_of_file(path) == "letor" and b":" not in first_bytes(path, 4096)


def _from_table(source: Any) -> RankingData:
    if isinstance(source, Mapping) and (not source or is_nested(source)):
        pairs = [(q, d, grade) for q, each in source.items() for d, grade in each.items()]
        if not pairs:
            raise invalid(JUDGEMENTS, "must hold at least one pair", "none")
        source = dict(zip(("qid", "docid", "grade"), map(list, zip(*pairs, strict=True)), strict=True))
    sheet, headings = table_of(source, JUDGEMENTS)
    if not len(sheet):
        raise invalid(JUDGEMENTS, "must hold at least one pair", "none")
    qid, docid = (np.array(sheet.texts(headings[each])) for each in ("query", "doc"))
    values = numbers(JUDGEMENTS, sheet.values[headings["grade"]])
    roles = (("--qid", "query"), ("--doc-id", "doc"), ("--label", "grade"))
    names = shlex.join(word for option, role in roles for word in (option, headings[role]))
    checked_labels(JUDGEMENTS, qid, docid, values, None, None, remedy=f"{BY_RATINGS} {names}.")
    judged = values >= 0
    grades = np.where(judged, values, 0).astype(np.int32)
    others = [name for name in sheet.values if name not in headings.values()]
    prose = {name: sheet.texts(name) for name in others if _numbers(sheet.values[name]) is None}
    if headings["query"] == query_heading(sheet) and any(" " in each for each in qid.tolist()):
        prose[headings["query"]] = qid.tolist()  # queries by their words, as Quepid writes them
    data = from_arrays(np.zeros((len(qid), 0)), grades, qid=qid, doc_ids=docid, extra=prose)
    return data if judged.all() else replace(data, judged=judged[data.row_ids])


def _of_run_file(path: Path) -> dict[str, Run]:
    runs = read_runs(path)
    return {_stem(path): run for run in runs.values()} if len(runs) == 1 else runs


def _stem(source: Any) -> str:
    return (
        Path(source).name.removesuffix(".gz").rsplit(".", 1)[0]
        if isinstance(source, str | os.PathLike)
        else ""
    )


def several(source: Any) -> Sequence[Any]:
    """The sources of an argument that takes one, several or none."""
    if source is None:
        return ()
    return source if isinstance(source, list | tuple) else (source,)


def _numbers(cells: Sequence[Any]) -> FloatArray | None:
    """A column as numbers, NaN where it is blank; None where it holds anything else, or nothing."""
    try:
        values = numbers("", cells)
    except InvalidInputError:
        return None
    return None if np.isnan(values).all() else values


def _measured(sheet: Sheet, name: str) -> FloatArray | None:
    """A column as numbers; None where it holds nothing or mostly words, and raises where it holds one."""
    values = _numbers(sheet.values[name])
    texts = [] if values is not None else sheet.texts(name)
    filled = [row for row, text in enumerate(texts) if text]
    wrong = [row for row in filled if not is_number_cell(texts[row])]
    if values is None and (2 * len(wrong) >= len(filled)):
        return None
    if values is not None:
        wrong = np.flatnonzero(abs(values) > np.finfo(np.float32).max).tolist()
    if wrong:
        line = sheet.lines[wrong[0]]
        value, at = repr(sheet.texts(name)[wrong[0]]), f"{sheet.unit} {line}"
        raise sheet.bad(
            error_text(f"{sheet.name}, column {name!r},", "must hold finite numbers", value, at=at), line
        )
    return values


def _refuse_grades(columns: Mapping[str, FloatArray], data: RankingData) -> None:
    """A column that is the grades themselves would leave nothing to doubt."""
    judged = judged_rows(data)
    for name, column in columns.items():
        same = np.array_equal(column[judged], data.y[judged])
        if same and len(np.unique(data.y[judged])) > 1 and name.startswith(("judge:", "score:")):
            raise invalid(f"column {name!r}", "must not be the judgements themselves", "the same grades")


def _joined(
    data: RankingData,
    columns: Mapping[str, FloatArray],
    fields: Mapping[str, Sequence[str]],
    queries: Mapping[str, str],
    beside: Mapping[str, FloatArray],
) -> RankingData:
    own = data.feature_names or tuple(f"feature {j}" for j in range(data.n_features))
    known: Array = data.X.toarray() if hasattr(data.X, "toarray") else data.X
    extra: dict[str, Any] = {**(data.extra or {}), **beside}
    if queries:
        extra["query"] = np.array([queries.get(str(query), "") for query in data.qid.tolist()], dtype=object)
    extra |= {name: np.array(list(cells), dtype=object) for name, cells in fields.items() if name != "query"}
    return replace(
        data,
        X=np.column_stack([known, *columns.values()]).astype(np.float32),
        feature_names=(*own, *columns),
        extra=extra or None,
    )
