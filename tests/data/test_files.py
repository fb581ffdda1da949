import os
import stat
from pathlib import Path

import pytest

from cleanrank.data.files import (
    DATA,
    FRAMES,
    PAGES,
    SCORES,
    check_outputs,
    existing_file,
    file_sha256,
    written_whole,
)
from cleanrank.errors import InvalidInputError, MissingDataError


def test_the_file_appears_when_the_block_ends_well(tmp_path):
    target = tmp_path / "a.txt"
    with written_whole(target) as part:
        part.write_text("new")
        assert part.parent == tmp_path
        assert not target.exists()
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]
    (tmp_path / "plain").write_text("")
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_no_rubbish(tmp_path, error):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def fail():
        with written_whole(target) as part:
            part.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_missing_folders_and_files_are_said_with_what_is_there(tmp_path):
    with (
        pytest.raises(MissingDataError, match=r"folder .*no.* does not exist"),
        written_whole(tmp_path / "no/a"),
    ):
        pass
    (tmp_path / "b.txt").write_text("")
    assert existing_file(tmp_path / "b.txt") == tmp_path / "b.txt"
    with pytest.raises(MissingDataError, match=r"Its folder holds: b.txt"):
        existing_file(tmp_path / "a.txt")
    with pytest.raises(MissingDataError, match="is a folder"):
        existing_file(tmp_path)
    with pytest.raises(MissingDataError, match="folder does not exist either"):
        existing_file(tmp_path / "no" / "a.txt")


def test_a_folder_is_not_overwritten(tmp_path):
    for folder in (tmp_path, Path(".")):
        with pytest.raises(InvalidInputError, match="is a folder"), written_whole(folder):
            pass


def test_outputs_are_checked_before_the_work(tmp_path, monkeypatch):
    data, out = tmp_path / "data.csv", tmp_path / "new.csv"
    data.write_text("a")
    (tmp_path / "link.csv").symlink_to(data)
    (tmp_path / "hard.csv").hardlink_to(data)
    check_outputs(out, None, inputs=[data, None, tmp_path / "absent"], suffixes=FRAMES)
    refused = {
        "must not exist yet": [data],
        "folder .*nowhere.* does not exist": [tmp_path / "nowhere" / "a.csv"],
        "is a folder": [tmp_path],
        "different files": [out, tmp_path / "new.csv"],
        "must be a file": [Path("/dev/null")],
    }
    for message, paths in refused.items():
        with pytest.raises((InvalidInputError, MissingDataError), match=message):
            check_outputs(*paths)
    check_outputs(data, force=True)
    for name in ("data.csv", "link.csv", "hard.csv", "../" + tmp_path.name + "/data.csv"):
        with pytest.raises(InvalidInputError, match="must differ from every input"):
            check_outputs(tmp_path / name, inputs=[tmp_path / "other", data], force=True)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InvalidInputError, match="must be writable"):
        check_outputs(out)


@pytest.mark.parametrize(
    ("name", "suffixes", "allowed"),
    [
        ("a.csv", FRAMES, True), ("a.XLSX", FRAMES, True), ("a.txt", FRAMES, False),
        ("a.csv.gz", FRAMES, False),
        ("a", DATA, True), ("a.fold1", DATA, True), ("a.csv.gz", DATA, True), ("a.txt.zst", DATA, True),
        ("a.xlsx", DATA, False), ("a.json", DATA, False), ("a.xlsx.gz", DATA, False),
        ("a.npy", SCORES, True), ("a.txt", SCORES, True), ("a.parquet", SCORES, False),
        ("a.gz", SCORES, False),
        ("a.html", PAGES, True), ("a.txt", PAGES, False),
    ],
)  # fmt: skip
def test_a_suffix_says_what_is_written(tmp_path, name, suffixes, allowed):
    if allowed:
        check_outputs(tmp_path / name, suffixes=suffixes)
        return
    with pytest.raises(InvalidInputError, match=rf"output must be .*; got .*{name}'. Change its ending"):
        check_outputs(tmp_path / name, suffixes=suffixes)


@pytest.mark.parametrize("side", [".query", ".weight", ".position"])
def test_side_files_of_an_input_are_not_overwritten(tmp_path, side):
    (tmp_path / "a.txt").write_text("1 qid:1 1:1\n")
    (tmp_path / f"a.txt{side}").write_text("1\n")
    with pytest.raises(InvalidInputError, match="must differ from every input"):
        check_outputs(tmp_path / f"a.txt{side}", inputs=[tmp_path / "a.txt"], force=True)


def test_the_checksum_of_a_folder_follows_names_and_contents(tmp_path):
    def sums(**files):
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        found = file_sha256(tmp_path)
        for name in files:
            (tmp_path / name).unlink()
        return found

    first = sums(a="1", b="2")
    assert sums(b="2", a="1") == first
    assert len({first, sums(a="2", b="1"), sums(a="1"), sums(a="1", c="2")}) == 4
