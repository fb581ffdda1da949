"""Folders in the layout of BEIR and MTEB."""

import gzip
import json
import tracemalloc

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.data.beir import read_beir
from cleanrank.data.texts import read_texts
from cleanrank.errors import BadFileError, InvalidInputError, MissingDataError

CORPUS = [
    {"_id": "d1", "title": "Moon", "text": "The moon.", "metadata": {"url": "x"}},
    {"_id": "d2", "title": "", "text": "Ünder"},
    {"_id": "d3", "text": "never judged"},
    {"_id": "4", "text": "four"},
]
TOPICS = [{"_id": "q1", "text": "moon?", "metadata": {}}, {"_id": "q2", "text": "sun?"}]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\t4\t0\nq2\td1\t-1\nq2\td9\t1\n"


def jsonl(records):
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "corpus.jsonl").write_text(jsonl(CORPUS))
    (tmp_path / "queries.jsonl").write_text(jsonl(TOPICS))
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels/test.tsv").write_text(QRELS)
    return tmp_path


def check(data):
    assert data.qid.tolist() == ["q1", "q1", "q2", "q2"]
    assert data.doc_ids.tolist() == ["d1", "4", "d1", "d9"]
    assert data.y.tolist() == [2, 0, 0, 1]
    assert data.judged.tolist() == [True, True, False, True]
    assert data.extra["query"].tolist() == ["moon?", "moon?", "sun?", "sun?"]
    assert data.extra["text"].tolist() == ["The moon.", "four", "The moon.", None]
    assert data.extra["title"].tolist() == ["Moon", None, "Moon", None]


def test_a_folder_is_read_with_the_texts_of_what_is_judged(folder):
    check(cr.read_data(folder))
    assert read_beir(folder, texts=False).extra is None


def test_parts_may_be_packed_or_without_a_header(folder):
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress((folder / "corpus.jsonl").read_bytes()))
    (folder / "corpus.jsonl").unlink()
    (folder / "qrels/test.tsv").write_text(QRELS.split("\n", 1)[1])
    check(cr.read_data(folder))


def test_the_header_says_which_field_is_which(folder):
    lines = [line.split("\t") for line in QRELS.splitlines()]
    (folder / "qrels/test.tsv").write_text("".join(f"{d}\t{q}\t{score}\n" for q, d, score in lines))
    check(cr.read_data(folder))


def test_parts_may_be_parquet_or_judgements_json_lines(folder):
    for name, records in (("corpus", CORPUS), ("queries", TOPICS)):
        (folder / f"{name}.jsonl").unlink()
        (folder / name).mkdir()
        frame = pd.DataFrame(records).drop(columns="metadata")
        frame = frame.rename(columns={"_id": "id"}) if name == "queries" else frame
        frame.to_parquet(folder / name / "train-00000-of-00001.parquet")
    judged = pd.read_csv(folder / "qrels/test.tsv", sep="\t")
    (folder / "qrels/test.tsv").rename(folder / "test.tsv")
    (folder / "qrels/test.jsonl").write_text(judged.to_json(orient="records", lines=True))
    check(cr.read_data(folder))
    (folder / "qrels/test.jsonl").unlink()
    judged.assign(score=judged.score.astype(float)).to_parquet(folder / "qrels/test-00000-of-00001.parquet")
    check(cr.read_data(folder))


def test_a_row_of_parquet_is_named_by_its_place_in_the_file(folder):
    (folder / "corpus.jsonl").unlink()
    texts = {"_id": ["other", "d1", "other", "d1"], "text": ["", "one", "", "two"]}
    pd.DataFrame(texts).to_parquet(folder / "corpus.parquet")
    with pytest.raises(BadFileError, match=r"must have one text only; .*line 4"):
        cr.read_data(folder)


@pytest.mark.parametrize("language", ["", "de-"])
def test_parts_may_come_again_in_every_split_as_mteb_has_them(tmp_path, language):
    """As push_dataset_to_hub of mteb writes: columns id, and a Parquet file of every part for every split."""
    score = {
        "query-id": ["q1", "q1", "q2", "q2"],
        "corpus-id": ["d1", "4", "d1", "d9"],
        "score": [2, 0, -1, 1],
    }
    parts = {"corpus": CORPUS, "queries": TOPICS, "qrels": score}
    for part, records in parts.items():
        frame = pd.DataFrame(records).rename(columns={"_id": "id"}).drop(columns="metadata", errors="ignore")
        (tmp_path / f"{language}{part}").mkdir()
        for split in ("dev", "test"):
            frame.to_parquet(tmp_path / f"{language}{part}/{split}-00000-of-00001.parquet")
    check(cr.read_data(tmp_path, split="de/dev" if language else "dev"))
    if language:
        with pytest.raises(InvalidInputError, match="Say split=, one of de/dev, de/test"):
            cr.read_data(tmp_path)
    else:
        check(cr.read_data(tmp_path))


def test_splits_are_chosen_by_name(folder):
    (folder / "qrels/train.tsv").write_text("query-id\tcorpus-id\tscore\nq2\td2\t1\n")
    check(cr.read_data(folder))
    assert cr.read_data(folder, split="train").doc_ids.tolist() == ["d2"]
    with pytest.raises(cr.CleanrankError, match="unknown split 'dev'"):
        cr.read_data(folder, split="dev")
    (folder / "qrels/test.tsv").rename(folder / "qrels/dev.tsv")
    with pytest.raises(
        InvalidInputError, match=r"has several splits and no test\. Say split=, one of dev, train"
    ):
        cr.read_data(folder)


def test_splits_whose_names_end_in_numbers_are_not_mixed(folder):
    for year, line in (("04", "q1\td1\t1\n"), ("05", "q2\td2\t1\n")):
        (folder / f"qrels/robust-{year}.tsv").write_text("query-id\tcorpus-id\tscore\n" + line)
    assert cr.read_data(folder, split="robust-05").doc_ids.tolist() == ["d2"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "qrels/test.tsv",
            QRELS + "q3\td1\n",
            r"a line must have 3 fields .*; got 2 fields at .*line 6",
        ),
        ("qrels/test.tsv", QRELS + "q3\td1\tx\n", "a grade must be a whole number; got 'x' at .*line 6"),
        (
            "qrels/test.tsv",
            QRELS + "q1\td1\t0\n",
            "must come once only; got 'q1 d1' of line 2 again at .*line 6",
        ),
        ("corpus.jsonl", jsonl(CORPUS) + "{\n", "a line must be a JSON object .* at .*corpus.jsonl, line 5"),
        ("corpus.jsonl", jsonl(CORPUS) + '{"_id": 3.5}\n', "line 5"),
        ("corpus.jsonl", jsonl(CORPUS) + '{"text": "x"}\n', "missing required field `_id`.* at .*line 5"),
        (
            "corpus.jsonl",
            jsonl([*CORPUS, CORPUS[1] | {"_id": "d1"}]),
            "must have one text only; got another of 'd1' at .*line 5",
        ),
        ("queries.jsonl", "[]\n", "line 1"),
    ],
)
def test_what_is_wrong_is_named_by_its_line(folder, name, text, said):
    (folder / name).write_text(text)
    with pytest.raises(BadFileError, match=said):
        cr.read_data(folder)


def test_what_a_folder_cannot_hold_is_refused_and_nothing_is_left(tmp_path):
    for ids, said in ((["a\tb", "c"], "without tabs"), ([" a", "c"], "blanks at their ends")):
        data = cr.from_arrays(np.zeros((2, 0)), [0, 1], qid=[1, 1], doc_ids=ids)
        with pytest.raises(InvalidInputError, match=said):
            cr.write_data(data, f"{tmp_path}/out/")
    data = cr.from_arrays(np.zeros((2, 0)), [0, 1], qid=[1, 1], extra={"query": ["a", "b"]})
    with pytest.raises(InvalidInputError, match="the texts of query '1' must be the same in all its rows"):
        cr.write_data(data, f"{tmp_path}/out/")
    with pytest.raises(MissingDataError, match="does not exist"):
        cr.write_data(data, f"{tmp_path}/no/out/")
    assert list(tmp_path.iterdir()) == []


def judged():
    return cr.from_arrays(np.zeros((3, 0)), [0, 1, 0], qid=["q1", "q1", "q2"], doc_ids=["d1", "d2", "d9"])


def check_texts(*read):
    assert [each.queries for each in read if each.queries] == [{"q1": "moon?", "q2": "sun?"}]
    assert [each.fields for each in read if each.fields] == [
        {"title": ["Moon", "", ""], "text": ["The moon.", "Ünder", ""]}
    ]
    assert not any(each.beside for each in read)


def test_texts_of_other_judgements_come_from_a_folder_or_its_files(folder):
    check_texts(read_texts(folder, judged()))
    check_texts(*(read_texts(folder / f"{name}.jsonl", judged()) for name in ("corpus", "queries")))
    packed = folder / "my-corpus.jsonl.gz"
    packed.write_bytes(gzip.compress((folder / "corpus.jsonl").read_bytes()))
    check_texts(read_texts(str(packed), judged()), read_texts(folder / "queries.jsonl", judged()))


def test_texts_of_others_are_not_kept(folder):
    long = jsonl({"_id": f"e{n}", "text": f"{n} {'x' * 2000}"} for n in range(5000))
    (folder / "corpus.jsonl").write_text(jsonl(CORPUS) + long)
    tracemalloc.start()
    check_texts(read_texts(folder, judged()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < len(long) / 10


def test_texts_that_are_missing_or_of_others_are_named(folder):
    stranger = cr.from_arrays(np.zeros((1, 0)), [0], qid=["x"], doc_ids=["y"])
    with pytest.raises(BadFileError, match="must hold texts of queries or documents of the data; got none"):
        read_texts(folder, stranger)
    (folder / "corpus.jsonl").rename(folder / "passages.jsonl")
    with pytest.raises(BadFileError, match=r"must say by its name whether its _id are documents \(corpus"):
        read_texts(folder / "passages.jsonl", judged())
    with (folder / "queries.jsonl").open("a") as file:
        file.write('{"text": "no id"}\n')
    with pytest.raises(BadFileError, match=r"missing required field `_id` at .*queries.jsonl, line 3"):
        read_texts(folder, judged())
    (folder / "queries.jsonl").unlink()
    with pytest.raises(
        MissingDataError, match=r"must hold corpus.jsonl, queries.jsonl .*passages.jsonl, qrels"
    ):
        read_texts(folder, judged())
    with pytest.raises(MissingDataError, match="there is no file"):
        read_texts(folder / "queries.jsonl", judged())
