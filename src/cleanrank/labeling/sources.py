"""What a project is made from: files of data, tables of texts, data sets of the catalogue."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from cleanrank.data.catalogue import CATALOGUE, entry_of, find, load_dataset, part_files
from cleanrank.data.files import existing_file
from cleanrank.data.json_files import JSON_LINES
from cleanrank.data.judged import read_with_texts
from cleanrank.data.relevance_tools.tools import is_ltr_log
from cleanrank.data.scores import read_judged
from cleanrank.data.tables import kind_of_file, read_data
from cleanrank.data.texts import as_sheet
from cleanrank.errors import MissingDataError, UnknownNameError, error_text, invalid
from cleanrank.types import RankingData

LOADED = ("letor", "judged")


def read_source(
    source: str | PathLike[str], *, columns: Mapping[str, Any] | None = None, judge: str | None = None
) -> RankingData | Path:
    """Documents to judge, as ``make_project`` takes them: data with features, or the path of a table.

    Args:
        source: a LETOR file, TREC qrels, a table, or a name of the catalogue. A table with the columns label
            and qid, all filled, is data with features; any other is a table of texts. Of a data set of the
            catalogue that ships parts, the training part of the first fold.
        columns: options of ``read_data`` for a table that is data.
        judge: of dl19 and dl20: whose labels are the given ones; NIST's unless given.

    Returns:
        Data, or the path of the table.
    """
    file = Path(source)
    if not file.exists() and file.name == str(source):
        return _of_catalogue(file, columns, judge)
    file = file if file.is_dir() else existing_file(source)
    if judge is not None:
        raise invalid("judge=", "goes with dl19 and dl20, which have labels of judges", repr(str(source)))
    if file.suffix.lower() in JSON_LINES and not is_ltr_log(file):
        kind = "lines"
    elif file.suffix.lower() == ".xlsx":
        kind = "sheet"
    else:
        kind = kind_of_file(file)
    if kind not in ("lines", "sheet", "csv", "parquet") or columns:
        return read_judged(file, columns)
    sheet = as_sheet(file, str(file))
    is_data = {"label", "qid"} <= set(sheet.values) and all(sheet.texts("label")) and kind != "lines"
    return read_data(file) if is_data and kind != "sheet" else file


def _of_catalogue(name: Path, columns: Mapping[str, Any] | None, judge: str | None) -> RankingData:
    try:
        entry = entry_of(str(name))
    except UnknownNameError as error:
        known = ", ".join(each.name for each in CATALOGUE.values() if each.kind in LOADED)
        rule, remedy = "must be a file or a data set of the catalogue", f"Data sets with labels: {known}."
        raise MissingDataError(error_text("DATA", rule, repr(str(name)), remedy=remedy)) from error
    if entry.kind not in LOADED:
        raise invalid("a data set to judge", "must have judged documents", repr(entry.name))
    if columns:
        raise invalid("columns", "go with a table", f"the data set {entry.name!r}")
    if entry.kind == "judged":
        labels, features = part_files(find(entry.name), "all")
        return read_with_texts(labels, features, judge or "")
    if judge is not None:
        raise invalid("judge=", "goes with dl19 and dl20, which have labels of judges", repr(entry.name))
    return load_dataset(entry.name, part="train")
