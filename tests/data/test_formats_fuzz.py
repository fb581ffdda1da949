"""A thousand damaged files of every format: an error that names the file, or what a plain reader finds in it.

The plain readers (ORACLES) are a few lines over the standard library. Where one of them cannot read a file
that ours reads, or finds something else, that is a failure.
"""

import csv
import io
import json
import re
import warnings

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.clicks.ubi import read_ubi
from cleanrank.errors import CleanrankError
from tests.clicks.test_ubi import event
from tests.data.test_formats import CASES
from tests.data.test_readers_fuzz import damaged

TRIALS = 1000
UBI = "".join(
    f"{json.dumps(each)}\n"
    for each in [
        {"query_id": "1", "user_query": "lamp"},
        *(event("impression", "1", d, i, None) for i, d in enumerate("abc")),
        event("click", "1", "b", 1),
        *(event("impression", "2", d, i) for i, d in enumerate("ab")),
    ]
)
PARTS = {
    "beir": ("qrels/test.tsv", "corpus.jsonl", "queries.jsonl"),
    "shards": ("dataset.json", "rows-00000.parquet", "queries-00000.parquet", "features-00000.npy"),
}


def grade(value):
    return float(value)


def from_opensearch(text):
    document = json.loads(text)
    listed = [(each["query"], each["ratings"]) for each in document["judgmentRatings"]]
    return [(str(q), str(r["docId"]), grade(r["rating"])) for q, ratings in listed for r in ratings]


def from_quepid_csv(text):
    header, *lines = [
        row for row in csv.reader(io.StringIO(text, newline="")) if any(cell.strip() for cell in row)
    ]
    assert [name.strip().lower() for name in header[:2]] == ["query", "docid"]
    found = []
    for row in lines:
        cells = [cell.strip() for cell in row] + [""] * len(header)
        found += [(cells[0], cells[1], grade(each)) for each in cells[2 : len(header)] if each]
    return [(unescaped(q), unescaped(d), g) for q, d, g in found]


def unescaped(text):
    return text[1:] if text[:1] == "'" and text.lstrip("'")[:1] in tuple("=+-@\t\r\n") else text


def from_qrels(text):
    lines = [re.split(r"[ \t\r]+", line.strip(" \t\r")) for line in text.split("\n") if line.strip(" \t\r")]
    return [(q, d, float(int(g))) for q, _, d, g in lines]


def from_ltr_log(text):
    found, number = [], 0
    for line in text.split("\n"):
        if line.strip():
            response, number = json.loads(line), number + 1
            query = response.get("query_id", number)
            hits = response["hits"]["hits"]
            graded = [(h["_id"], h["fields"].get("grade")) for h in hits]
            found += [(str(query), str(d), grade(g[0])) for d, g in graded if g is not None]
    return found


ORACLES = {
    "opensearch": from_opensearch,
    "quepid-csv": from_quepid_csv,
    "qrels": from_qrels,
    "ltr-log": from_ltr_log,
}


def found_in(data):
    known = np.ones(data.n_docs, dtype=bool) if data.judged is None else data.judged
    values = np.where(known, data.y if data.gains is None else data.gains, -1.0)
    return sorted(zip(data.qid.tolist(), data.doc_ids.tolist(), values.tolist(), strict=True))


def readers():
    for form in CASES:
        for part in PARTS.get(form, ("",)):
            if form not in ("csv", "parquet", "letor"):  # see test_readers_fuzz and test_letor_fuzz
                yield pytest.param(form, part, id=f"{form} {part}".strip())


def all_damaged(raw, file, path, read, seed):
    """Damages a file a thousand times and reads it; yields what is read."""
    rng = np.random.default_rng(seed)
    refused = 0
    for trial in range(TRIALS):
        broken = damaged(raw, rng)
        file.write_bytes(broken)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                data = read()
            except CleanrankError as error:
                data, said = None, str(error)
            except Exception as error:
                raise AssertionError(f"trial {trial}: {broken!r}") from error
        if data is not None:
            yield broken, data
            continue
        refused += 1
        assert file.name in said or path.name in said, broken
    assert refused > TRIALS / 20


@pytest.mark.parametrize(("form", "part"), list(readers()))
def test_damaged_files_are_read_as_they_are_or_refused(tmp_path, form, part):
    name, make = CASES[form]
    path = tmp_path / name.rstrip("/")
    cr.write_data(make(), path, form=form)
    file = path / part if part else path
    oracle = ORACLES.get(form)
    compared = 0
    for broken, data in all_damaged(
        file.read_bytes(), file, path, lambda: cr.read_data(path, form=form), len(form + part)
    ):
        if oracle is not None:
            try:
                text = broken.decode("utf-8-sig")
            except UnicodeDecodeError:
                continue  # read as Windows-1252, with a warning
            expected = [(q, d, g if g >= 0 else -1.0) for q, d, g in oracle(text)]
            assert [each for each in found_in(data) if each[2] >= 0 or form == "qrels"] == sorted(expected), (
                broken
            )
            compared += 1
    assert oracle is None or compared > TRIALS / 50


def test_damaged_logs_are_read_as_they_are_or_refused(tmp_path):
    path = tmp_path / "a.ndjson"
    whole = 0
    for broken, log in all_damaged(UBI.encode(), path, path, lambda: read_ubi(path), 3):
        events = [json.loads(line) for line in broken.decode("utf-8-sig").split("\n") if line.strip()]
        said = {
            (each["query_id"], each["event_attributes"]["object"]["object_id"])
            for each in events
            if each.get("action_name") in ("impression", "click")
            and each.get("event_attributes", {}).get("position", {}).get("ordinal") is not None
            and "object_id" in each["event_attributes"].get("object", {})
            and "query_id" in each
        }
        assert len(log) <= len(said)
        whole += len(log) == len(said)
    assert whole > TRIALS / 50
