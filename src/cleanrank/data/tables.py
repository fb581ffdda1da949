"""Any data file, by its suffix or its content: one way to read and one to write all formats (FORMATS)."""

import codecs
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from cleanrank.data.beir import is_beir, read_beir, write_beir
from cleanrank.data.files import (
    DATA,
    PACKED,
    check_outputs,
    check_suffix,
    existing_file,
    first_bytes,
    read_unpacked,
)
from cleanrank.data.hub import (
    folder_splits,
    is_ir_dataset,
    read_folder_table,
    read_ir_dataset,
    split_files,
)
from cleanrank.data.inputs import check_data
from cleanrank.data.json_files import JSON_LINES
from cleanrank.data.relevance_tools.ltr_logs import write_ltr_log
from cleanrank.data.relevance_tools.quepid import is_quepid_header
from cleanrank.data.relevance_tools.tools import (
    LTR_LOG,
    TOOLS,
    read_quepid_csv,
    read_tool_file,
    write_quepid_csv,
    write_tool_file,
)
from cleanrank.data.shard_sources import Source, of_csv, of_data, of_letor, of_parquet
from cleanrank.data.shards import check_folder, is_shards, opened_out_of_core, read_shards, write_shards
from cleanrank.data.spreadsheet import DELIMITERS, delimiter_of, split_separator_line
from cleanrank.data.sqlite_file import MAGIC
from cleanrank.data.table_files import (
    PathLike,
    of_table,
    read_csv,
    read_parquet,
    write_csv,
    write_parquet,
)
from cleanrank.data.trec import read_qrels, write_qrels
from cleanrank.errors import BadFileError, MissingDataError, UnknownNameError, error_text, invalid
from cleanrank.types import RankingData
from cleanrank.validation import check_path, one_of

QRELS_LINE = re.compile(r"\S+\s+\S+\s+\S+\s+[+-]?\d+(\.\d*)?")
COLUMNS = ("label", "qid", "features", "gains", "doc_id", "weight", "position", "ratings", "distribution")
MAY_LACK_LABELS = ("csv", "parquet", "folder", LTR_LOG, "json", "json-lines")
OF_JUDGEMENTS = ("ratings", "combine")
OF_LETOR = ("dense", "cache", "n_jobs", "n_features", "zero_based", "feature_names", "progress")
OF_LTR_LOGS = ("qid", "label", "judgements", "ratings")


class Format(NamedTuple):
    """A format of data: its name for people, the options of reading it, how it is read and written."""

    words: str
    options: tuple[str, ...]
    read: Callable[..., RankingData]
    write: Callable[..., None] | None = None


def read_data(
    path: PathLike | Sequence[PathLike],
    *,
    form: str | None = None,
    out_of_core: bool = False,
    **options: Any,
) -> RankingData:
    r"""Reads data in any of FORMATS, whichever the suffix or else the content says.

    Args:
        path: a file; several LETOR files, whose rows follow each other; a folder of shards, of BEIR or of
            Parquet files; or an id of ir_datasets.
        form: one of FORMATS, where it should not be guessed.
        out_of_core: leave the features on disk: LETOR, CSV and Parquet are converted to shards in the cache,
            once. Of a folder of shards they stay there in any case.
        options: those of the format. Of tables ``label`` and ``qid`` (columns of these names by default),
            ``features``, ``gains``, ``doc_id``, ``weight``, ``position``, ``ratings``, ``distribution``, as
            in ``from_frame``; of judgements ``ratings``, a rule of ``cleanrank.data.ratings``, and
            ``combine``; of feature logs ``label``, ``qid``, ``ratings`` and ``judgements``, data or a file.

    Returns:
        The rows, grouped by query.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(f"{folder}/a.csv").write_text("qid,label,bm25\n1,2,0.5\n1,0,0.25\n")
    ...     read_data(f"{folder}/a.csv")
    RankingData(1 queries, 2 documents, 1 features (dense), grades {0: 1, 2: 1})
    """
    if form is not None:
        one_of("format", form, FORMATS)
    if not isinstance(path, str | os.PathLike):
        kind = form or "letor"
    else:
        kind = form or kind_of_file(path)
        if kind == "csv" and form is None and "label" not in options and _is_quepid(path, options):
            kind = "quepid-csv"
    chosen = FORMATS[kind]
    _check_options(path, chosen, options)
    if out_of_core and kind != "shards":
        return opened_out_of_core(source_of(path, kind, options))
    return chosen.read(path, **options)


def source_of_shards(path: PathLike, form: str | None, options: Mapping[str, Any]) -> Source:
    """What becomes a folder of shards: pieces of a file where it can be read in pieces, else all of it."""
    kind = form or kind_of_file(path)
    _check_options(path, FORMATS[kind], options)
    if kind in IN_PIECES:
        return source_of(path, kind, options)
    return of_data(read_data(path, form=form, **({"verify": True} if kind == "shards" else {}), **options))


def source_of(path: Any, kind: str, options: Mapping[str, Any]) -> Source:
    """The source of shards that a file of a kind is; raises where there is none that is read in pieces."""
    if kind == "letor":
        return of_letor(path, **{k: v for k, v in options.items() if k not in ("dense", "cache", "progress")})
    if kind == "csv":
        return of_csv(existing_file(path), **options)
    if kind == "parquet":
        return of_parquet([existing_file(path)], **options)
    if kind == "folder":
        rest = dict(options)
        files = split_files(path, rest.pop("split", None))
        if all(file.suffix == ".parquet" for file in files):
            return of_parquet(files, **rest)
    rule = "goes with LETOR, CSV, Parquet and folders of Parquet files"
    remedy = "Others fit into memory: write them with write_data(data, 'folder/')."
    raise invalid("out_of_core", rule, f"{str(path)!r}, {FORMATS[kind].words}", remedy=remedy)


def _check_options(path: Any, chosen: Format, options: Mapping[str, Any]) -> None:
    """Raises where an option is not one of the format; those of others are named with their formats."""
    for name in options:
        if name in chosen.options:
            continue
        others = [each.words for each in FORMATS.values() if name in each.options]
        if not others:
            known = ", ".join(chosen.options) or "none"
            raise UnknownNameError(f"unknown argument {name!r} for {chosen.words}. Known: {known}.")
        rule = f"must go with {' or '.join(others[:2])}"
        raise invalid(f"{name}=", rule, f"{str(path)!r}, {chosen.words}")


def _is_quepid(path: PathLike, options: Mapping[str, Any]) -> bool:
    text = start_text(first_bytes(path, 4096))
    header = split_separator_line(text)[1].lstrip().split("\n", 1)[0].rstrip("\r")
    delimiter = options.get("delimiter") or delimiter_of(header)
    return is_quepid_header([name.strip().strip('"') for name in header.split(delimiter)])


def read_rows(path: PathLike, **options: Any) -> RankingData:
    r"""Reads rows to score: as ``read_data``, but labels and query ids may be missing; they are 0 then.

    Args:
        path: a file.
        options: those of ``read_data``.

    Returns:
        The rows, grouped by query.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(f"{folder}/a.csv").write_text("bm25\n0.5\n0.25\n")
    ...     read_rows(f"{folder}/a.csv").X.tolist()
    [[0.5], [0.25]]
    """
    kind = kind_of_file(path)
    if kind in MAY_LACK_LABELS:
        chosen = FORMATS[kind]
        _check_options(path, chosen, options)
        return chosen.read(path, judged=False, **options)
    if kind != "letor":
        return read_data(path, **options)
    lines = read_unpacked(path).splitlines() if _is_unlabelled(first_bytes(path, 4096)) else []
    if not lines:
        return read_data(path, **options)
    with tempfile.TemporaryDirectory() as folder:
        labelled = Path(folder) / Path(path).name
        grade = b"0 " if lines[0].lstrip().startswith(b"qid:") else b"0 qid:0 "
        labelled.write_bytes(b"\n".join(grade + line if _is_unlabelled(line) else line for line in lines))
        try:
            return read_data(labelled, cache=False, **options)
        except BadFileError as error:
            words = str(error).replace(str(labelled), str(path))
            raise BadFileError(words, str(path), error.line) from error


def _is_unlabelled(text: bytes) -> bool:
    """Whether a LETOR text begins with ``qid:`` or a feature where its label should stand."""
    return b":" in text.split(None, 1)[0] if text.strip() else False


def write_data(
    data: RankingData,
    path: PathLike,
    *,
    form: str | None = None,
    label: str = "label",
    qid: str = "qid",
    doc_id: str = "doc_id",
    force: bool = False,
) -> None:
    """Writes data as the name ends: .parquet, .pq; .csv, .tsv; .qrels; .jsonl, .ndjson (LTR log); else LETOR.

    .gz, .bz2, .xz and .zst after it pack CSV and LETOR. A path that ends in a slash, or a folder, becomes a
    folder of shards, or of BEIR where there are no features. Endings of other formats (.xlsx, ...) are
    refused, and .json needs ``form``.

    Args:
        data: the rows.
        path: the file or folder.
        form: one of FORMATS, whatever the name is.
        label: in a table, what to call the column of grades.
        qid: in a table, what to call the column of query ids.
        doc_id: in a table, what to call the column of document ids.
        force: replace a folder of shards; files are replaced in any case.

    >>> import tempfile
    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[0.5], [2.0]], [0, 1], qid=[7, 7])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_data(data, f"{folder}/small.csv")
    ...     print(Path(f"{folder}/small.csv").read_text().strip())
    "label","qid","feature_1"
    0,7,0.5
    1,7,2
    """
    check_data(data)
    target = check_path(path)
    kind = one_of("format", form, FORMATS) if form is not None else form_of_name(path, data.n_features > 0)
    writer = FORMATS[kind].write
    if writer is None:
        known = ", ".join(name for name, each in FORMATS.items() if each.write is not None)
        raise invalid("form=", f"must be one that is written ({known})", repr(kind))
    if kind in ("csv", "parquet"):
        writer(data, target, label=label, qid=qid, doc_id=doc_id)
    elif kind == "shards":
        writer(data, target, force=force)
    else:
        writer(data, target)


def check_data_output(
    out: PathLike, source: PathLike, inputs: Sequence[PathLike | None], *, force: bool = False
) -> str | None:
    """Raises unless data made from ``source`` can be written to ``out``, as ``check_outputs`` does.

    Returns:
        "shards" where these are data of a folder of shards, and the name promises no other format; else None.
    """
    place, folder = check_path(out), Path(source)
    if is_shards(folder) and not place.suffix:
        if place.absolute() == folder.absolute():
            raise invalid("output", "must differ from every input", repr(str(out)), remedy="Name another.")
        check_folder(place, force=force)
        return "shards"
    check_outputs(place, inputs=inputs, force=force, suffixes=DATA)
    return None


def form_of_output(out: PathLike, source: PathLike, form: str | None, options: Mapping[str, Any]) -> str:
    """The format that a name promises for data of a file: a folder is one of shards if there are features."""
    named = form_of_name(out)
    if named != "beir":
        return named
    kind = form or kind_of_file(source)
    if kind in ("letor", "shards", LTR_LOG):
        return "shards"
    if kind not in IN_PIECES:
        return "beir"
    first = next(source_of(source, kind, options).pieces(None), None)
    return "shards" if first is not None and first.data.n_features else "beir"


def form_of_name(path: PathLike, has_features: bool = False) -> str:
    """The format that a name promises; raises where it promises none that is written."""
    target = Path(path)
    suffix = next((s.lower() for s in reversed(target.suffixes) if s not in PACKED), "")
    if suffix == ".json":
        rule = f"must say which kind of JSON: form= one of {', '.join(TOOLS)}"
        raise invalid("output", rule, repr(str(target)), remedy="Change its ending otherwise.")
    if str(path).endswith(os.sep) or target.is_dir():
        return "shards" if has_features else "beir"
    check_suffix(target, DATA)
    return OF_SUFFIX.get(suffix, "letor")


def names_of(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The names that ``write_data`` takes, among options of ``read_data``: a table keeps its own."""
    return {role: str(columns[role]) for role in ("label", "qid", "doc_id") if role in columns}


def column_options(columns: Mapping[str, Any]) -> list[str]:
    """Options of ``read_data`` as words of a command.

    >>> column_options({"doc_id": "url", "features": ["bm25", "age"]})
    ['--doc-id', 'url', '--features', 'bm25,age']
    """
    texts = {
        n: value if isinstance(value, str) else ",".join(map(str, value)) for n, value in columns.items()
    }
    return [word for name, text in texts.items() for word in (f"--{name.replace('_', '-')}", text)]


def kind_of_file(path: PathLike) -> str:
    """What a file or folder holds by its suffix or else its content: one of FORMATS."""
    if is_ir_dataset(path):
        return "ir-dataset"
    folder = check_path(path)
    if folder.is_dir() or (not folder.exists() and is_shards(folder)):
        return _kind_of_folder(folder)
    file = existing_file(path)
    suffixes = {suffix.lower() for suffix in file.suffixes[-2:]}
    if ".qrels" in suffixes:
        return "qrels"
    if suffixes & {".parquet", ".pq"}:
        return "parquet"
    if suffixes & {".csv", ".tsv"}:
        is_qrels = ".tsv" in suffixes and _is_qrels_line(start_text(first_bytes(file, 4096)))
        return "qrels" if is_qrels else "csv"
    if suffixes & set(JSON_LINES):
        return "json-lines"
    start = first_bytes(file, 4096)
    if suffixes & {".json"}:
        return "json"
    if start.startswith(MAGIC):
        words = "is a labelling project or another SQLite file. Write its labels to a file first: "
        raise BadFileError(f"{str(file)!r} {words}cleanrank export {file.name} -o labels.csv.", str(file))
    if start.startswith(b"PK\x03\x04"):
        words = "is a workbook or an archive. Save the sheet as CSV, or use from_frame on what pandas reads"
        raise BadFileError(f"{str(file)!r} {words}.", str(file))
    if start.startswith(b"PAR1"):
        return "parquet"
    text = start_text(start)
    if text.startswith(("{", "[")):
        return "json-lines" if _is_whole_json(text.split("\n", 1)[0]) and "\n" in text.strip() else "json"
    line = text.split("\n", 1)[0].split("#", 1)[0].rstrip()
    if split_separator_line(text)[0] is not None:
        return "csv"
    is_table = any(delimiter in line for delimiter in DELIMITERS) and ":" not in line
    if QRELS_LINE.fullmatch(line) and ":" not in line.split()[1]:
        return "qrels"
    return "csv" if is_table else "letor"


def _is_qrels_line(text: str) -> bool:
    """Whether a text begins with a judgement, as qrels.tsv of MS MARCO does, and not with headings."""
    line = text.split("\n", 1)[0].rstrip()
    return bool(QRELS_LINE.fullmatch(line)) and not {"qid", "label"} & {*line.split()}


def _kind_of_folder(folder: Path) -> str:
    if is_shards(folder):
        return "shards"
    if is_beir(folder):
        return "beir"
    if folder_splits(folder):
        return "folder"
    holds = ", ".join(sorted(each.name for each in folder.iterdir())[:8]) or "nothing"
    rule = (
        "must be a folder of shards, of BEIR (corpus.jsonl, queries.jsonl, qrels/*.tsv) or of Parquet files"
    )
    raise MissingDataError(error_text(repr(str(folder)), rule, holds, remedy="Or name a file in it."))


def start_text(start: bytes) -> str:
    """The text that a file begins with, UTF-16 by its mark, else UTF-8."""
    encoding = "utf-16" if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    return start.decode(encoding, errors="replace").lstrip()


def _is_whole_json(line: str) -> bool:
    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _read_letor(path: Any, **options: Any) -> RankingData:
    from cleanrank.data.letor import read_letor

    return read_letor(path, **options)


def _write_letor(data: RankingData, path: PathLike) -> None:
    from cleanrank.data.letor import write_letor

    write_letor(data, path)


def _read_folder(path: PathLike, *, split: str | None = None, **columns: Any) -> RankingData:
    return of_table(read_folder_table(path, split), check_path(path), columns)


def _read_log(path: PathLike, form: str = LTR_LOG, *, judgements: Any = None, **options: Any) -> RankingData:
    if judgements is not None and not isinstance(judgements, RankingData):
        judgements = read_data(judgements)
    given = options if judgements is None else {**options, "judgements": judgements}
    return read_tool_file(path, form, **given)


IN_PIECES = ("letor", "csv", "parquet", "folder")
OF_SUFFIX = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".qrels": "qrels",
    **dict.fromkeys(JSON_LINES, LTR_LOG),
}  # fmt: skip
FORMATS: dict[str, Format] = {
    "csv": Format("CSV", (*COLUMNS, "delimiter"), read_csv, write_csv),
    "parquet": Format("Parquet", COLUMNS, read_parquet, write_parquet),
    "letor": Format("LETOR", OF_LETOR, _read_letor, _write_letor),
    "qrels": Format("TREC judgements", (), read_qrels, write_qrels),
    "beir": Format("a BEIR folder", ("split", "texts"), read_beir, write_beir),
    "shards": Format("a folder of shards", ("verify",), read_shards, write_shards),
    "folder": Format("a folder of Parquet files", (*COLUMNS, "split"), _read_folder),
    "ir-dataset": Format("a data set of ir_datasets", ("texts",), read_ir_dataset),
    "quepid-csv": Format(
        "a CSV file of Quepid", (*OF_JUDGEMENTS, "delimiter"), read_quepid_csv, write_quepid_csv
    ),
    **{
        name: Format(
            tool.words, OF_JUDGEMENTS, partial(read_tool_file, form=name), partial(write_tool_file, form=name)
        )
        for name, tool in TOOLS.items()
    },
    LTR_LOG: Format("a feature log of the LTR plugin", OF_LTR_LOGS, _read_log, write_ltr_log),
    "json": Format("JSON", (*OF_JUDGEMENTS, *OF_LTR_LOGS), partial(_read_log, form="json")),
    "json-lines": Format("JSON lines", OF_LTR_LOGS, partial(_read_log, form="json-lines")),
}
