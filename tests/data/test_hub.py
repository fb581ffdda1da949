"""Folders of Hugging Face datasets, data sets in memory, and ir_datasets."""

import sys

import ir_datasets
import pandas as pd
import pyarrow as pa
import pytest
from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import TrecQrels, TsvDocs, TsvQueries

import cleanrank as cr
from cleanrank.data.tables import kind_of_file
from cleanrank.errors import (
    BadFileError,
    InvalidInputError,
    MissingDataError,
    MissingExtraError,
    UnknownNameError,
)

FRAME = pd.DataFrame({"qid": [1, 1, 2], "label": [0, 2, 1], "x": [0.5, 1.5, 2.5]})


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_folder_of_shards_is_one_table(tmp_path, kind):
    folder = tmp_path / "set"
    (folder / "data").mkdir(parents=True)
    for number, part in enumerate((FRAME[:2], FRAME[2:])):
        file = folder / "data" / f"train-0000{number}-of-00002.{kind}"
        table = pa.Table.from_pandas(part, preserve_index=False)
        if kind == "parquet":
            part.to_parquet(file, index=False)
        else:
            with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table)
    (folder / "README.md").write_text("a data set")
    assert kind_of_file(folder) == "folder"
    data = cr.read_data(folder)
    assert (data.y.tolist(), data.X[:, 0].tolist(), data.qid.tolist()) == (
        [0, 2, 1],
        [0.5, 1.5, 2.5],
        [1, 1, 2],
    )
    FRAME[:1].to_parquet(folder / "data" / "test-00000-of-00001.parquet")
    assert cr.read_data(folder, split="test").n_docs == 1
    with pytest.raises(UnknownNameError, match="unknown split 'dev'"):
        cr.read_data(folder, split="dev")
    (folder / "data" / f"train-00001-of-00002.{kind}").write_bytes(b"PAR1")
    with pytest.raises(BadFileError, match=r"train-00001-of-00002.* cannot be read as"):
        cr.read_data(folder)


class InMemory:
    """As datasets.Dataset: rows that were chosen, which only with_format gives in their order."""

    def __init__(self, table, rows):
        self.table, self.rows = table, rows

    def with_format(self, kind):
        assert kind == "arrow"
        return self

    def __getitem__(self, rows):
        return self.table.take(self.rows)[rows] if isinstance(rows, int) else self.table.take(self.rows)


class InMemoryDict(dict):
    def with_format(self, kind):
        return self


InMemory.__module__ = InMemoryDict.__module__ = "datasets.arrow_dataset"


def test_data_sets_in_memory_keep_their_order():
    data = cr.from_frame(InMemory(pa.Table.from_pandas(FRAME), [2, 0]))
    assert (data.y.tolist(), data.query_ids.tolist()) == ([1, 0], [2, 1])
    with pytest.raises(
        InvalidInputError, match=r"must be one split of the data set; got train. As in dataset\['train'\]"
    ):
        cr.from_frame(InMemoryDict(train=InMemory(None, [])))


class Text:
    """A file as ir_datasets hands them over."""

    def __init__(self, path):
        self.file = path

    def stream(self):
        return self.file.open("rb")

    def path(self, force=True):
        return self.file


@pytest.fixture
def registered(tmp_path, monkeypatch):
    """A local data set in the registry of ir_datasets, read by its own classes."""
    for name, text in (
        ("qrels", "1 0 d1 2\n1 0 d2 -1\n2 0 d1 0\n"),
        ("queries", "1\tmoon?\n2\tsun?\n"),
        ("docs", "d1\tThe moon.\nd2\tÜnder\nd3\tmore\n"),
    ):
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(ir_datasets.registry._registered, "tiny/judged", None)
    docs = TsvDocs(Text(tmp_path / "docs"), namespace="tiny", lang="en", docstore_size_hint=1)
    queries = TsvQueries(Text(tmp_path / "queries"), lang="en")
    qrels = TrecQrels(Text(tmp_path / "qrels"), {2: "relevant", 0: "not"})
    monkeypatch.setitem(ir_datasets.registry._registered, "tiny/judged", Dataset(docs, queries, qrels))
    monkeypatch.setitem(ir_datasets.registry._registered, "tiny", Dataset(docs))
    return tmp_path


@pytest.mark.parametrize("name", ["ir_datasets:tiny/judged", "tiny/judged"])
def test_ir_datasets_are_read_by_their_ids(registered, name):
    assert kind_of_file(name) == "ir-dataset"
    data = cr.read_data(name)
    assert (data.qid.tolist(), data.doc_ids.tolist()) == (["1", "1", "2"], ["d1", "d2", "d1"])
    assert (data.y.tolist(), data.judged.tolist()) == ([2, 0, 0], [True, False, True])
    assert data.extra["query"].tolist() == ["moon?", "moon?", "sun?"]


def test_texts_of_judged_documents_are_asked_for(registered, monkeypatch):
    class Store:
        def get_many(self, ids):
            return {doc.doc_id: doc for doc in dataset.docs_iter() if doc.doc_id in ids}

    dataset = ir_datasets.load("tiny/judged")
    monkeypatch.setattr(dataset, "docs_store", Store, raising=False)
    data = cr.read_data("tiny/judged", texts=True)
    assert data.extra["text"].tolist() == ["The moon.", "Ünder", "The moon."]


def test_what_ir_datasets_does_not_have_is_refused(registered, monkeypatch):
    with pytest.raises(UnknownNameError, match="ir_datasets has no data set 'tiny/wrong'"):
        cr.read_data("ir_datasets:tiny/wrong")
    with pytest.raises(InvalidInputError, match=r"must have judgements \(qrels\); got none"):
        cr.read_data("tiny")
    with pytest.raises(MissingDataError, match="there is no file 'no/such'"):
        cr.read_data("no/such")
    dataset = ir_datasets.load("tiny/judged")

    def offline():
        raise OSError("no network")

    monkeypatch.setattr(dataset, "qrels_iter", offline, raising=False)
    with pytest.raises(MissingDataError, match="ir_datasets cannot read 'tiny/judged': no network"):
        cr.read_data("tiny/judged")


def test_a_missing_extra_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'cleanrank\[ir-datasets\]'"):
        cr.read_data("ir_datasets:any")
