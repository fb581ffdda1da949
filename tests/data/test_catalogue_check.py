import io
import json
import tarfile

import pytest

from cleanrank.data.catalogue_check import passed, verify
from cleanrank.errors import BadFileError


def letor(path, qids):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{g} qid:{q} 1:0.5 5:2\n" for q in qids for g in (1, 0)))


def by_what(rows):
    return {(row.part, row.what): row for row in rows}


def test_figures_that_differ_are_named_and_nothing_passes(tmp_path):
    for part, qids in (("train", range(3)), ("vali", [3]), ("test", [4])):
        letor(tmp_path / f"Istella-X/{part}.txt", qids)
    rows = verify("istella-x", tmp_path, cache=False)
    found = by_what(rows)
    assert found["train", "queries"].verdict == "differs"
    assert (found["train", "queries"].published, found["train", "queries"].counted) == (6_000, 3)
    assert found["train", "documents"].verdict == "not published"
    assert found["all", "features"].counted == 5
    assert found["all", "grade 1"].counted == 5
    assert found["all", "grade 1"].published is None
    assert found["all", "queries in two parts"].verdict == "ok"
    assert not passed(rows)


def test_a_query_in_two_parts_and_a_broken_fold_table_differ(tmp_path):
    for part, qids in (("train", range(3)), ("vali", [2]), ("test", [4])):
        letor(tmp_path / f"MQ2007/Fold1/{part}.txt", qids)
    for part, qids in (("train", range(3)), ("vali", [7]), ("test", [8])):
        letor(tmp_path / f"MQ2007/Fold2/{part}.txt", qids)
    found = by_what(verify("mq2007", tmp_path, cache=False))
    assert found["fold 1 all", "queries in two parts"].counted == 1
    assert found["fold 1 all", "queries in two parts"].verdict == "differs"
    stray = found["fold 2 all", "validation queries not tested one fold earlier"]
    assert (stray.counted, stray.verdict) == (2, "differs")
    assert ("fold 1 all", "validation queries not tested one fold earlier") not in found
    assert ("fold 3 all", "queries") not in found


def test_published_figures_of_absent_parts_are_not_at_hand(tmp_path):
    for part in ("train", "vali", "test"):
        letor(tmp_path / f"MQ2008/Fold2/{part}.txt", [part])
    found = by_what(verify("mq2008", tmp_path, cache=False))
    assert found["fold 1 train", "queries"].verdict == "not at hand"
    assert found["fold 1 train", "queries"].counted is None


def test_newsgroups_are_counted_in_an_archive_and_in_folders(tmp_path):
    names = ["20news-bydate-train/sci.med/1", "20news-bydate-train/alt.x/2", "20news-bydate-test/sci.med/3"]
    with tarfile.open(tmp_path / "20news-bydate.tar.gz", "w:gz") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 2
            tar.addfile(member, io.BytesIO(b"hi"))
    unpacked = tmp_path / "other" / "20news"
    for name in names:
        (unpacked / name).parent.mkdir(parents=True, exist_ok=True)
        (unpacked / name).write_text("hi")
    for root in (tmp_path, tmp_path / "other"):
        found = by_what(verify("20news", root))
        assert found["all", "documents"].counted == 3
        assert found["all", "groups"].counted == 2
        assert found["train", "documents"].counted == 2
    (tmp_path / "20news-bydate.tar.gz").write_bytes(b"no archive")
    with pytest.raises(BadFileError, match="unpacked"):
        verify("20news", tmp_path)


def test_a_sample_is_not_held_against_the_whole(tmp_path):
    for folder in ("taobao", "taobao-sample"):
        (tmp_path / folder / folder).mkdir(parents=True)
        text = "1,2,3,pv,1511544070\n1,4,3,buy,1511544071\n"
        (tmp_path / folder / folder / "UserBehavior.csv").write_text(text)
    whole = by_what(verify("taobao", tmp_path / "taobao"))
    assert (whole["all", "rows"].published, whole["all", "rows"].form) == (100_150_807, "")
    sample = by_what(verify("taobao", tmp_path / "taobao-sample"))
    assert sample["all", "rows"].published == 4_321
    assert sample["all", "rows"].form.startswith("a sample")
    assert sample["all", "items"].counted == 2


def test_sessions_are_another_form_and_bad_lines_are_named(tmp_path):
    folder = tmp_path / "tmall-sessions"
    folder.mkdir()
    (folder / "train_sessions.jsonl").write_text("[1,2,3]\n[4]\n")
    (folder / "test_prefix_target.jsonl").write_text(json.dumps([[1, 9], 2]) + "\n")
    found = by_what(verify("tmall", tmp_path))
    assert {k[1]: row.counted for k, row in found.items()} == {
        "training samples": 2,
        "test samples": 1,
        "items": 5,
        "clicks": 4,
        "sessions": 2,
    }
    assert all("another form" in row.form for row in found.values())
    (folder / "train_sessions.jsonl").write_text("[1,2,3]\n[4\n")
    with pytest.raises(BadFileError, match="line 2") as caught:
        verify("tmall", tmp_path)
    assert caught.value.line == 2
    (folder / "train_sessions.jsonl").write_text('["a"]\n')
    with pytest.raises(BadFileError, match=r"line 1, must list item ids"):
        verify("tmall", tmp_path)


def test_logs_without_published_figures_are_counted(tmp_path):
    (tmp_path / "alipay").mkdir()
    (tmp_path / "alipay" / "ijcai2016_taobao.csv").write_text("a\nb\n")
    (row,) = verify("alipay", tmp_path)
    assert (row.counted, row.verdict) == (2, "not published")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "checked"),
    [
        ("mq2008", 5 * 8 + 6),
        ("ohsumed", 5 * 8 + 6),
        ("mslr-sample", 13),
        ("20-newsgroups", 4),
        ("movielens-100k", 3),
        ("tmall", 5),
        ("taobao", 3),
    ],
)
def test_the_data_at_hand_are_what_was_published(data_root, name, checked):
    rows = verify(name, data_root, cache=False)
    assert passed(rows)
    assert not [row for row in rows if row.verdict == "not at hand"]
    assert sum(row.verdict == "ok" for row in rows) == checked
