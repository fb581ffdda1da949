import gzip
import lzma

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import cleanrank as cr
from cleanrank.data.trec import (
    from_qrels_run,
    read_qrels,
    read_run,
    scores_from_run,
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
    assert qrels.topic_ids.tolist() == ["301", "302", "303"]
    assert qrels.topic_ids[qrels.topic].tolist() == ["301"] * 3 + ["302"] * 2 + ["303"]
    assert qrels.doc_ids[qrels.doc].tolist() == ["a", "b", "c", "a", "d", "a"]
    assert qrels.grades.tolist() == [2, 0, 1, 0, 1, 1]
    assert qrels.negatives == 1


def test_tabs_several_blanks_crlf_empty_lines_gz_and_no_last_newline_are_read(tmp_path):
    text = "\ufeff301\t0\ta  1\r\n\r\n   302 0   b\t0  \n\n303 0 c 2"
    for name, raw in (("plain", text.encode()), ("packed.gz", gzip.compress(text.encode()))):
        qrels = read_qrels(written(tmp_path, name, raw))
        assert qrels.topic_ids.tolist() == ["301", "302", "303"]
        assert qrels.grades.tolist() == [1, 0, 2]


def test_the_join_knows_unjudged_missing_and_lonely_topics(tmp_path):
    qrels = read_qrels(written(tmp_path, "qrels", QRELS))
    run = read_run(written(tmp_path, "run", RUN))
    assert run.tag == "sys"
    joined = from_qrels_run(qrels, run)
    data = joined.data
    assert data.n_features == 0
    assert data.query_ids.tolist() == ["301", "302"]
    assert data.doc_ids.tolist() == ["b", "x", "a", "c", "d", "a"]
    assert data.y.tolist() == [0, 0, 2, 1, 1, 0]
    assert joined.scores.tolist() == [9, 7.25, 1e-3, 1e-3 - 2, 3.5, 3.5]
    assert joined.retrieved.tolist() == [True, True, True, False, True, True]
    assert joined.judged.tolist() == [True, False, True, True, True, True]
    assert (joined.unjudged, joined.missing, joined.negatives) == (1, 1, 1)
    assert joined.topics_without_run == ("303",)
    assert joined.topics_without_judgements == ("304",)
    assert data.row_ids.tolist() == [1, 2, 3, 6 + 2, 0, 4]


def test_huge_scores_leave_room_below(tmp_path):
    qrels = read_qrels(written(tmp_path, "qrels", "1 0 a 1\n1 0 b 1\n"))
    joined = from_qrels_run(qrels, read_run(written(tmp_path, "run", "1 Q0 a 1 1e300 t\n")))
    assert joined.data.doc_ids.tolist() == ["a", "b"]
    assert joined.scores[1] < joined.scores[0]


def test_nothing_in_common_gives_no_rows(tmp_path):
    qrels = read_qrels(written(tmp_path, "qrels", "1 0 a 1\n"))
    joined = from_qrels_run(qrels, read_run(written(tmp_path, "run", "2 Q0 a 1 1 t\n")))
    assert (joined.data.n_docs, joined.data.n_queries) == (0, 0)
    empty = read_run(written(tmp_path, "none", ""))
    assert from_qrels_run(qrels, empty).topics_without_run == ("1",)


@settings(max_examples=60, deadline=None)
@given(
    judged=st.dictionaries(
        st.tuples(st.sampled_from("12"), st.sampled_from("abcdefghij")), st.integers(0, 3), min_size=1
    ),
    found=st.dictionaries(
        st.tuples(st.sampled_from("12"), st.sampled_from("abcdefghij")), st.integers(0, 4), min_size=1
    ),
)
def test_the_order_is_that_of_trec_eval(tmp_path_factory, judged, found):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    folder = tmp_path_factory.mktemp("trec")
    qrels_file, run_file = folder / "qrels", folder / "run"
    qrels_file.write_text("".join(f"{t} 0 {d} {g}\n" for (t, d), g in judged.items()))
    run_file.write_text("".join(f"{t} Q0 {d} 1 {s} x\n" for (t, d), s in found.items()))
    joined = from_qrels_run(read_qrels(qrels_file), read_run(run_file))
    data = joined.data
    nested: dict[str, dict[str, int]] = {}
    for (t, d), g in judged.items():
        nested.setdefault(t, {})[d] = g
    run: dict[str, dict[str, float]] = {}
    for (t, d), s in found.items():
        run.setdefault(t, {})[d] = float(s)
    theirs = pytrec_eval.RelevanceEvaluator(nested, {"recip_rank", "P_5", "ndcg_cut_5"}).evaluate(run)
    assert set(data.query_ids) == set(theirs)
    for q, topic in enumerate(data.query_ids):
        rows = slice(data.indptr[q], data.indptr[q + 1])
        y = data.y[rows]
        kept = y[joined.retrieved[rows]]
        assert (np.diff(joined.scores[rows]) <= 0).all()
        first = np.flatnonzero(kept > 0)
        assert theirs[topic]["recip_rank"] == pytest.approx(1 / (first[0] + 1) if len(first) else 0)
        assert theirs[topic]["P_5"] == pytest.approx((kept[:5] > 0).sum() / 5)
        discount = 1 / np.log2(np.arange(2, 7))
        best = (np.sort(y)[::-1][:5] * discount[: len(y)]).sum()
        dcg = (kept[:5] * discount[: len(kept[:5])]).sum()
        assert theirs[topic]["ndcg_cut_5"] == pytest.approx(dcg / best if best else 0)


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
    with pytest.raises(BadFileError, match="UTF-8"):
        read_qrels(written(tmp_path, "latin", b"1 0 caf\xe9 1\n"))
    with pytest.raises(BadFileError, match="whole gzip file"):
        read_qrels(written(tmp_path, "cut.gz", gzip.compress(QRELS.encode() * 9)[:-9]))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstandard.compress])
def test_packed_files_are_read(tmp_path, pack):
    assert read_qrels(written(tmp_path, "packed", pack(b"301 0 a 2\n"))).grades.tolist() == [2]


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


def test_qrels_and_runs_hold_every_bit(tmp_path):
    rng = np.random.default_rng(0)
    qid = rng.integers(0, 5, 60)
    data = cr.from_arrays(
        np.zeros((60, 0)), rng.integers(0, 3, 60), qid=qid, doc_ids=[f"http://x/{i},y" for i in range(60)]
    )
    scores = rng.normal(size=60).round(1)
    scores[:3] = 1 / 3, 1e-17, 1e22
    rows = list(zip(data.qid, data.doc_ids, data.y, scores, strict=True))
    qrels = read_qrels(written(tmp_path, "qrels", "".join(f"{q} 0 {d} {y}\n" for q, d, y, _ in rows)))
    run = read_run(
        written(tmp_path, "run", "".join(f"{q} Q0 {d} 1 {float(s)!r} mine\n" for q, d, _, s in rows[::-1]))
    )
    assert qrels.grades.tolist() == data.y.tolist()
    assert qrels.topic_ids[qrels.topic].tolist() == data.qid.astype(str).tolist()
    assert scores_from_run(run, data).tolist() == scores.tolist()
    assert run.tag == "mine"


def test_scores_from_run_ranks_unknown_rows_last(tmp_path):
    data = cr.from_arrays(np.zeros((4, 0)), [0, 1, 0, 1], qid=[1, 1, 2, 3], doc_ids=["a", "b", "a", "a"])
    run = read_run(written(tmp_path, "run", "1 Q0 b 1 -5 t\n2 Q0 z 1 4 t\n"))
    assert scores_from_run(run, data).tolist() == [-6, -5, 3, -1]
    with pytest.raises(InvalidInputError, match="share topics"):
        scores_from_run(read_run(written(tmp_path, "other", "9 Q0 b 1 -5 t\n")), data)
    with pytest.raises(InvalidInputError, match="document ids"):
        scores_from_run(run, cr.from_arrays(np.zeros((1, 0)), [0], qid=[1]))


def test_of_the_documents_that_a_run_lacks_the_less_relevant_come_first(tmp_path):
    (tmp_path / "qrels").write_text("1 0 a 2\n1 0 b 0\n1 0 z 1\n1 0 c 1\n")
    (tmp_path / "run").write_text("1 Q0 c 1 3.0 x\n")
    found = from_qrels_run(read_qrels(tmp_path / "qrels"), read_run(tmp_path / "run"))
    assert found.data.doc_ids.tolist() == ["c", "b", "z", "a"]


def test_several_runs_and_one_run_rank_what_is_lacking_alike(tmp_path):
    qrels = read_qrels(written(tmp_path, "qrels", "1 0 a 2\n1 0 b 0\n1 0 z 1\n1 0 c 1\n"))
    run = read_run(written(tmp_path, "run", "1 Q0 c 1 3e300 x\n"))
    alone = from_qrels_run(qrels, run)
    others = from_qrels_run(qrels, read_run(written(tmp_path, "all", "1 Q0 a 1 3 x\n1 Q0 b 1 3 x\n")))
    scores = scores_from_run(run, others.data)
    assert len(set(scores)) == 4
    ranked = others.data.doc_ids[np.argsort(-scores, kind="stable")]
    assert ranked.tolist() == alone.data.doc_ids.tolist() == ["c", "b", "z", "a"]
