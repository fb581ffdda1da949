import json

import numpy as np
import pytest

from cleanrank.data.negatives import Mined, Negatives, is_negatives, read_negatives, write_negatives
from cleanrank.errors import BadFileError, CleanrankError, InvalidInputError

SAMPLES = {
    "triplet": [
        {"query": "fruit", "positive": "apple", "negative": "lorry"},
        {"query": "fruit", "positive": "pear", "negative": "apple tree"},
    ],
    "margin": [{"anchor": "fruit", "positive": "apple", "negative": "lorry", "label": 7.5}],
    "tuple": [{"anchor": "fruit", "positive": "apple", "negative_1": "lorry", "negative_2": "a, \"b\"\n"}],
    "tuple with scores": [
        {"anchor": "é", "positive": "apple", "negative_1": "b", "negative_2": "c", "score": [0.9, 0.5, 0.25]}
    ],
    "triplet of any names": [{"claim": "fruit", "evidence": "apple", "negative": "lorry"}],
    "triplet with both scores": [
        {"question": "fruit", "answer": "apple", "negative": "lorry", "scores": [0.9, 0.25]}
    ],
    "labeled-pair": [
        {"query": "fruit", "answer": "apple", "label": 1}, {"query": "fruit", "answer": "lorry", "label": 0}
    ],
    "labeled-list": [
        {"query": "fruit", "answer": ["apple", "lorry", "pear"], "labels": [1, 0, 0]},
        {"query": "car", "answer": ["lorry"], "labels": [1]},
    ],
    "lists": [
        {"query": "fruit", "pos": ["apple", "pear"], "neg": ["lorry"], "id": 7},
        {"query": "car", "pos": ["lorry"], "neg": []},
    ],
    "lists with scores": [
        {"query": "q", "pos": ["a"], "neg": ["b", "c"], "neg_scores": [0.5, -1.0], "pos_scores": [1.0]}
    ],
}  # fmt: skip


def written(folder, records, name="mined.jsonl"):
    path = folder / name
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return path


@pytest.mark.parametrize("name", SAMPLES)
def test_read_and_written_again_is_the_same(tmp_path, name):
    mined = read_negatives(written(tmp_path, SAMPLES[name]))
    write_negatives(mined, tmp_path / "again.jsonl")
    assert [json.loads(line) for line in (tmp_path / "again.jsonl").read_text().splitlines()] == SAMPLES[name]
    assert mined.form == name.split()[0].replace("margin", "triplet")


def test_a_score_belongs_to_its_negative(tmp_path):
    mined = read_negatives(written(tmp_path, SAMPLES["tuple with scores"]))
    assert (mined.lines[0].scores, mined.lines[0].first_score) == ((0.5, 0.25), 0.9)
    scored = mined.with_scores({("é", "b"): 0.125, ("é", "c"): 1.0})
    write_negatives(scored.without({("é", "c")}), tmp_path / "kept.jsonl", form="triplet")
    assert json.loads((tmp_path / "kept.jsonl").read_text()) == {
        "anchor": "é", "positive": "apple", "negative": "b", "score": 0.125
    }  # fmt: skip


def test_labels_have_positives_and_negatives_but_no_scores(tmp_path):
    mined = read_negatives(written(tmp_path, SAMPLES["labeled-list"]))
    data = mined.data
    rows = zip(data.extra["query"], data.extra["text"], data.judged.tolist(), strict=True)
    assert {*rows} == {
        ("fruit", "apple", True), ("fruit", "lorry", False), ("fruit", "pear", False), ("car", "lorry", True)
    }  # fmt: skip
    kept = mined.with_scores({("fruit", "lorry"): 0.1, ("fruit", "pear"): 0.9}).without({("fruit", "pear")})
    write_negatives(kept, tmp_path / "kept.jsonl")
    assert [json.loads(line) for line in (tmp_path / "kept.jsonl").read_text().splitlines()] == [
        {"query": "fruit", "answer": ["apple", "lorry"], "labels": [1, 0]}, SAMPLES["labeled-list"][1]
    ]  # fmt: skip


def test_every_query_and_text_is_a_row_once():
    lines = (Mined("fruit", ("apple",), ("lorry", "pear")), Mined("car", ("lorry",), ("apple", "pear")),
             Mined("fruit", ("pear",), ("lorry",)))  # fmt: skip
    data = Negatives(lines, "lists").data
    rows = zip(data.extra["query"], data.extra["text"], data.y.tolist(), data.judged.tolist(), strict=True)
    assert set(rows) == {
        ("fruit", "apple", 1, True), ("fruit", "lorry", 0, False), ("fruit", "pear", 1, True),
        ("car", "lorry", 1, True), ("car", "apple", 0, False), ("car", "pear", 0, False),
    }  # fmt: skip
    assert len({*data.doc_ids.tolist()}) == 3
    assert data.row_ids.tolist() == [*range(6)]


def test_forms_become_each_other(tmp_path):
    mined = read_negatives(written(tmp_path, SAMPLES["lists"]))
    write_negatives(mined, tmp_path / "triplets.jsonl", form="triplet")
    again = read_negatives(tmp_path / "triplets.jsonl")
    assert [(each.positives, each.negatives) for each in again.lines] == [
        (("apple",), ("lorry",)), (("pear",), ("lorry",))
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("records", "place"),
    [
        ([{"query": "a", "positive": "b"}], "positive and negative"),
        ([{"text": "a"}], "'query' or 'anchor'"),
        ([*SAMPLES["triplet"], {"query": "a", "positive": "b"}], "line 3"),
        ([{"query": "a", "pos": ["b"], "neg": ["c"], "neg_scores": [1, 2]}], "each of 1 negatives"),
        ([{"query": "a", "pos": [], "neg": ["c"]}], "pos"),
        ([{"query": "a", "positive": "b", "negative": 7.5}], "must be a text"),
        ([{"query": "a", "positive": "b", "negative": "c", "score": "x"}], "must be a number"),
        ([{"query": "a", "answer": "b", "score": 0.5}], "Scores alone do not say what is positive"),
        ([{"query": "a", "doc_id": "b", "label": 1}], "positive and label, or pos and neg"),
        ([{"query": "a", "answer": "b", "label": 0.5}], "label must be 1 for a positive or 0 for a negative"),
        ([{"query": "a", "answer": ["b"], "labels": [1, 0]}], "labels must have a label for each of 1 texts"),
        ([{"query": "a", "positive": "b", "negative": "c", "scores": [1, 2, 3]}], "each of 1 negatives"),
        ([{"negative": "c"}], "'query' or 'anchor'"),
        ([{}], "'query' or 'anchor'"),
        ([{"query": None, "pos": ["b"], "neg": ["c"]}], "must have a member 'query'"),
        ([], "nothing"),
        ([[1]], "line 1"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path, records, place):
    with pytest.raises(BadFileError, match=place):
        read_negatives(written(tmp_path, records))


def test_told_by_content(tmp_path):
    assert is_negatives(written(tmp_path, SAMPLES["lists"]))
    assert not is_negatives(written(tmp_path, [{"_id": "d1", "text": "x"}]))


def test_other_endings_and_files_that_are_there_are_refused(tmp_path):
    mined = Negatives((Mined("q", ("a",), ("b",)),), "lists")
    with pytest.raises(InvalidInputError, match="jsonl"):
        write_negatives(mined, tmp_path / "a.csv")
    write_negatives(mined, tmp_path / "a.jsonl")
    with pytest.raises(InvalidInputError, match="exist"):
        write_negatives(mined, tmp_path / "a.jsonl")
    write_negatives(mined, tmp_path / "a.jsonl", force=True)


def test_a_thousand_damaged_files_are_read_as_they_are_or_refused(tmp_path):
    random, messages, read = np.random.default_rng(0), [], []
    for records in SAMPLES.values():
        raw = written(tmp_path, records).read_bytes()
        for _ in range(170):
            damaged = bytearray(raw)
            for at in random.integers(len(raw), size=random.integers(1, 4)):
                damaged[at] = random.integers(32, 128)
            path = tmp_path / "damaged.jsonl"
            cut = random.integers(1, len(raw)) if random.random() < 0.2 else len(raw)
            path.write_bytes(bytes(damaged[:cut]))
            try:
                read.append(read_negatives(path))
            except CleanrankError as error:
                messages.append(str(error))
    assert len(messages) > 300
    assert len(read) > 30
    assert all("damaged.jsonl" in message for message in messages)
    assert all((line.positives or line.negatives) and line.query for each in read for line in each.lines)
