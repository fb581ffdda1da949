import gzip
import lzma

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import cleanrank as cr
from cleanrank.data.trec import (
    _falling_place,
    _places,
    join_runs,
    read_qrels,
    read_run,
    scores_from_run,
    write_qrels,
    write_run,
)
from cleanrank.errors import BadFileError, InvalidInputError, MissingDataError

QRELS = """301 0 a 2
301 0 b 0
301 0 c 1
302 0 a -2
302 0 d 1
303 0 a 1
"""
RUN = """302 Q0 d 1 3.5 sys
301 Q0 b 1 9 sys
301 Q0 x 2 7.25 sys
301 Q0 a 3 1e-3 sys
302 Q0 a 2 3.5 sys
304 Q0 a 1 1 sys
"""


def written(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_qrels_are_read_line_by_line(tmp_path):
    qrels = read_qrels(written(tmp_path, "qrels", QRELS))
    assert qrels.query_ids.tolist() == ["301", "302", "303"]
    assert qrels.qid.tolist() == ["301"] * 3 + ["302"] * 2 + ["303"]
    assert qrels.doc_ids.tolist() == ["a", "b", "c", "a", "d", "a"]
    assert qrels.y.tolist() == [2, 0, 1, 0, 1, 1]
    assert (~qrels.judged).sum() == 1


def test_tabs_several_blanks_crlf_empty_lines_gz_and_no_last_newline_are_read(tmp_path):
    text = "\ufeff301\t0\ta  1\r\n\r\n   302 0   b\t0  \n\n303 0 c 2"
    for name, raw in (("plain", text.encode()), ("packed.gz", gzip.compress(text.encode()))):
        qrels = read_qrels(written(tmp_path, name, raw))
        assert qrels.query_ids.tolist() == ["301", "302", "303"]
        assert qrels.y.tolist() == [1, 0, 2]


def test_the_join_knows_unjudged_missing_and_lonely_topics(tmp_path):
    qrels = read_qrels(written(tmp_path, "qrels", QRELS))
    run = read_run(written(tmp_path, "run", RUN))
    assert run.tag == "sys"
    joined = join_runs(qrels, [run])
    data, (scores,) = joined.data, joined.scores
    assert data.n_features == 0
    assert data.query_ids.tolist() == ["301", "302", "303"]
    rows = zip(data.qid.tolist(), data.doc_ids.tolist(), data.y.tolist(), scores.tolist(), strict=True)
    assert list(rows)[:6] == [
        ("301", "x", 0, 7.25),
        ("301", "c", 1, None),
        ("301", "b", 0, 9.0),
        ("301", "a", 2, 1e-3),
        ("302", "d", 1, 3.5),
        ("302", "a", 0, 3.5),
    ]
    unjudged = [(q, d) for q, d, j in zip(data.qid, data.doc_ids, data.judged, strict=True) if not j]
    assert unjudged == [("301", "x"), ("302", "a")]
    assert joined.unanswered == (("303",),)
    assert joined.unjudged_topics == ("304",)
    shared = join_runs(qrels, [run], topics="shared")
    assert (shared.data.query_ids.tolist(), shared.left_out) == (["301", "302"], ("303",))
    assert data.row_ids.tolist() == list(range(data.n_docs))


def test_millions_of_document_names_are_joined():
    names = np.tile(np.array(["doc-b-of-a-long-name", "doc-a"]), 1_500_000)
    assert _falling_place(names)[:2].tolist() == [0, 1]
    assert _places(names, names[:2])[-2:].tolist() == [0, 1]


def test_nothing_in_common_is_refused(tmp_path):
    qrels = read_qrels(written(tmp_path, "qrels", "1 0 a 1\n2 0 a 1\n"))
    runs = [read_run(written(tmp_path, t, f"{t} Q0 a 1 1 t\n")) for t in "123"]
    with pytest.raises(InvalidInputError, match="must share topics with the judgements"):
        join_runs(qrels, runs[2:])
    with pytest.raises(InvalidInputError, match="must share topics"):
        join_runs(qrels, [read_run(written(tmp_path, "none", ""))])
    with pytest.raises(InvalidInputError, match="none that all of them retrieve for"):
        join_runs(qrels, runs[:2], topics="shared")
    with pytest.raises(InvalidInputError, match="document ids"):
        join_runs(cr.from_arrays(np.zeros((1, 0)), [0], qid=[1]), runs[:1])


@pytest.mark.parametrize(
    ("reader", "text", "line", "said"),
    [
        (
            read_qrels,
            "1 0 a 1\n1 0 b\n",
            2,
            "must have 4 fields (topic iteration document grade); got 3 fields",
        ),
        (read_qrels, "1 0 a 1\n\n1 0 b 1 9\n", 3, "got 5 fields"),
        (read_qrels, "1 0 a 1\n1 0 b x2\n1 0 c 1\n", 2, "a grade must be a whole number; got 'x2'"),
        (read_qrels, "1 0 a 1\n1 0 b 1.5\n", 2, "got '1.5'"),
        (read_qrels, "1 0 a 3000000000\n", 1, "must be at most"),
        (read_qrels, "1 0 a 1\n2 0 a 1\n1 0 a 2\n", 3, "'1 a' of line 1 again"),
        (read_run, "1 Q0 a 1 0.5 t\n1 Q0 b 2 t\n", 2, "must have 6 fields"),
        (read_run, "1 Q0 a 1 zero t\n", 1, "a score must be a number; got 'zero'"),
        (read_run, "1 Q0 a 1 1 t\n1 Q0 b 1 nan t\n", 2, "a score must be finite; got nan"),
        (read_run, "1 Q0 a 1 2 t\n\n1 Q0 a 2 1 t\n", 3, "'1 a' of line 1 again"),
    ],
)
def test_bad_lines_are_named(tmp_path, reader, text, line, said):
    path = written(tmp_path, "bad.txt", text)
    with pytest.raises(BadFileError) as caught:
        reader(path)
    assert said in str(caught.value)
    assert f"bad.txt, line {line}" in str(caught.value)
    assert (caught.value.line, caught.value.path) == (line, str(path))


def test_other_bad_files(tmp_path):
    with pytest.raises(MissingDataError, match="no file"):
        read_qrels(tmp_path / "gone")
    with pytest.raises(BadFileError, match=r"UTF-8 text; got b'\\xe9 1.*latin, line 2. Save"):
        read_qrels(written(tmp_path, "latin", b"1 0 a 1\n1 0 caf\xe9 1\n"))
    with pytest.raises(BadFileError, match="must be UTF-8 text"):
        read_qrels(written(tmp_path, "half", b"\xff\xfe1\x000"))
    with pytest.raises(BadFileError, match="whole gzip file"):
        read_qrels(written(tmp_path, "cut.gz", gzip.compress(QRELS.encode() * 9)[:-9]))


def test_files_of_powershell_are_read(tmp_path):
    assert read_qrels(written(tmp_path, "wide", "301 0 é 2\r\n".encode("utf-16"))).doc_ids.tolist() == ["é"]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstandard.compress])
def test_packed_files_are_read(tmp_path, pack):
    assert read_qrels(written(tmp_path, "packed", pack(b"301 0 a 2\n"))).y.tolist() == [2]


@given(raw=st.binary(max_size=80))
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_read_or_refused(tmp_path_factory, raw):
    path = tmp_path_factory.mktemp("fuzz") / "f"
    path.write_bytes(raw)
    for reader in (read_qrels, read_run):
        said = None
        try:
            reader(path)
        except BadFileError as error:
            said = str(error)
        assert said is None or str(path) in said


def test_qrels_and_runs_are_written_and_read_back(tmp_path):
    rng = np.random.default_rng(0)
    qid = rng.integers(0, 5, 60)
    data = cr.from_arrays(
        np.zeros((60, 0)), rng.integers(0, 3, 60), qid=qid, doc_ids=[f"http://x/{i},y" for i in range(60)]
    )
    scores = rng.normal(size=60).round(1)
    scores[:3] = 1 / 3, 1e-17, 1e22
    write_qrels(data, tmp_path / "qrels")
    write_run(scores, data, tmp_path / "run", tag="mine")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["qrels", "run"]
    qrels, run = read_qrels(tmp_path / "qrels"), read_run(tmp_path / "run")
    assert qrels.y.tolist() == data.y.tolist()
    assert qrels.qid.tolist() == data.qid.astype(str).tolist()
    assert scores_from_run(run, data).tolist() == scores.tolist()
    assert run.tag == "mine"
    fields = [line.split() for line in (tmp_path / "run").read_text().splitlines()]
    per_topic: dict[str, list[list[str]]] = {}
    for each in fields:
        per_topic.setdefault(each[0], []).append(each)
    for lines in per_topic.values():
        assert [int(f[3]) for f in lines] == list(range(1, len(lines) + 1))
        values = [float(f[4]) for f in lines]
        assert values == sorted(values, reverse=True)


def test_scores_from_run_are_masked_where_the_run_has_none(tmp_path):
    data = cr.from_arrays(np.zeros((4, 0)), [0, 1, 0, 1], qid=[1, 1, 2, 3], doc_ids=["a", "b", "a", "a"])
    run = read_run(written(tmp_path, "run", "1 Q0 b 1 -5 t\n2 Q0 z 1 4 t\n"))
    assert scores_from_run(run, data).tolist() == [None, -5, None, None]
    with pytest.raises(InvalidInputError, match="share topics"):
        scores_from_run(read_run(written(tmp_path, "other", "9 Q0 b 1 -5 t\n")), data)
    with pytest.raises(InvalidInputError, match="document ids"):
        scores_from_run(run, cr.from_arrays(np.zeros((1, 0)), [0], qid=[1]))


def test_negative_grades_and_unjudged_rows_are_written_as_such(tmp_path):
    text = "7 0 b -1\n7 0 a 2\n3 0 a 0\n"
    write_qrels(read_qrels(written(tmp_path, "one", text.replace("-1", "-2"))), tmp_path / "two")
    assert (tmp_path / "two").read_text() == text


def test_what_cannot_be_written_is_refused(tmp_path):
    data = cr.from_arrays(np.zeros((2, 0)), [0, 1], qid=[1, 1], doc_ids=["a b", "c"])
    with pytest.raises(InvalidInputError, match=r"document ids must be words.*'a b' at row 0"):
        write_qrels(data, tmp_path / "q")
    plain = cr.from_arrays(np.zeros((2, 0)), [0, 1], qid=[1, 1])
    with pytest.raises(InvalidInputError, match="one value per row"):
        write_run([1.0], plain, tmp_path / "r")
    with pytest.raises(InvalidInputError, match=r"finite; got nan at row 1"):
        write_run([1.0, np.nan], plain, tmp_path / "r")
    with pytest.raises(InvalidInputError, match="one word"):
        write_run([1.0, 2.0], plain, tmp_path / "r", tag="two words")
    assert not list(tmp_path.iterdir())
    write_run([1.0, 2.0], plain, tmp_path / "r")
    assert (tmp_path / "r").read_text() == "1 Q0 1 1 2 cleanrank\n1 Q0 0 2 1 cleanrank\n"
