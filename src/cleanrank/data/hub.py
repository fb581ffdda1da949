"""Data of two hubs: folders of Hugging Face datasets (Parquet or Arrow files), and ids of ir_datasets."""

import importlib.util
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cleanrank.data.arrow_tables import read_arrow_file, short_text
from cleanrank.data.beir import SHARD, object_column
from cleanrank.data.line_fields import LineFields
from cleanrank.data.trec import judgements_of
from cleanrank.errors import MissingDataError, UnknownNameError, error_text, invalid
from cleanrank.types import RankingData
from cleanrank.validation import check_path, one_of, require

PREFIX = "ir_datasets:"
FILE = re.compile(rf"(?P<split>.+?)({SHARD.pattern})?\.(parquet|arrow)")
TEXT_FIELDS = ("title", "text", "body", "abstract", "url")


def is_ir_dataset(name: Any) -> bool:
    """Whether a name is an id of ir_datasets: with the prefix, or a known one where there is no such file."""
    text = os.fspath(name) if isinstance(name, str | os.PathLike) else ""
    if text.startswith(PREFIX):
        return True
    if Path(text).exists() or importlib.util.find_spec("ir_datasets") is None:
        return False
    import ir_datasets

    return text in ir_datasets.registry


def read_ir_dataset(name: str | os.PathLike[str], *, texts: bool = False) -> RankingData:
    """Judgements of ir_datasets, with the texts of their queries.

    Args:
        name: an id such as ``msmarco-passage/trec-dl-2019/judged``, also after ``ir_datasets:``.
        texts: whether to fetch the texts of the judged documents too, for which ir_datasets may have to
            download the collection.

    Returns:
        A row per judgement, without features; negative grades count as not judged.
    """
    require("ir-datasets")
    import ir_datasets

    known = os.fspath(name).removeprefix(PREFIX)
    try:
        dataset = ir_datasets.load(known)
    except KeyError:
        raise UnknownNameError(
            f"ir_datasets has no data set {known!r}. Its ids: https://ir-datasets.com."
        ) from None
    if not dataset.has_qrels():
        rule = "must have judgements (qrels)"
        raise invalid(
            f"the data set {known!r} of ir_datasets", rule, "none", remedy="Name a part that has them."
        )
    try:
        return _of_dataset(dataset, known, texts)
    except (OSError, RuntimeError) as error:
        message = f"ir_datasets cannot read {known!r}: {short_text(error)}."
        raise MissingDataError(message) from error


def _of_dataset(dataset: Any, name: str, texts: bool) -> RankingData:
    qrels = [(each.query_id, each.doc_id, str(each.relevance)) for each in dataset.qrels_iter()]
    columns = [pa.array(column, pa.large_string()) for column in zip(*qrels, strict=True)] if qrels else []
    if not columns:
        raise invalid(f"the data set {name!r} of ir_datasets", "must have judgements (qrels)", "none")
    data = judgements_of(LineFields(Path(f"{PREFIX}{name}"), columns, np.arange(1, len(qrels) + 1)))
    assert data.doc_ids is not None
    extra: dict[str, Any] = {}
    if dataset.has_queries():
        queries = {each.query_id: each.default_text() for each in dataset.queries_iter()}
        extra["query"] = object_column([queries.get(each) for each in data.qid.tolist()])
    if texts:
        found = dataset.docs_store().get_many(list(dict.fromkeys(data.doc_ids.tolist())))
        shown = [field for field in TEXT_FIELDS if field in dataset.docs_cls()._fields]
        for field in shown:
            extra[field] = object_column(
                [getattr(found.get(each), field, None) for each in data.doc_ids.tolist()]
            )
    return replace(data, extra=extra or None)


def folder_splits(folder: Path) -> dict[str, list[Path]]:
    """Split -> files of a folder of Parquet or Arrow files, as Hugging Face datasets are stored.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     for number in (0, 1):
    ...         _ = (Path(name) / f"train-0000{number}-of-00002.parquet").write_bytes(b"")
    ...     {split: len(files) for split, files in folder_splits(Path(name)).items()}
    {'train': 2}
    """
    found: dict[str, list[Path]] = {}
    places = [folder, *sorted(each for each in folder.iterdir() if each.is_dir())] if folder.is_dir() else []
    for place in places:
        for file in sorted(place.iterdir()):
            match = FILE.fullmatch(file.name)
            if match and file.is_file() and not file.name.startswith((".", "cache-")):
                of_place = match["split"] in ("data", "part", "dataset") and place != folder
                found.setdefault(place.name if of_place else match["split"], []).append(file)
    return found


def read_folder_table(path: str | os.PathLike[str], split: str | None = None) -> Any:
    """The table of a split of a folder of Parquet or Arrow files; see ``split_files``."""
    files = split_files(path, split)
    return pa.concat_tables([read_arrow_file(file) for file in files], promote_options="permissive")


def split_files(path: str | os.PathLike[str], split: str | None = None) -> list[Path]:
    """The Parquet or Arrow files of a split of a folder; of the only one, or "train", unless given."""
    folder = check_path(path)
    splits = folder_splits(folder)
    if not splits:
        raise MissingDataError(
            error_text(f"the folder {str(folder)!r}", "must hold Parquet or Arrow files", "none")
        )
    if split is None and len(splits) > 1 and "train" not in splits:
        remedy = f"Say split=, one of {', '.join(splits)}."
        raise invalid(f"the folder {str(folder)!r}", "has several splits", remedy=remedy)
    return splits[one_of("split", split or ("train" if "train" in splits else next(iter(splits))), splits)]
