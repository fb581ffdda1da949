import os
import stat
from pathlib import Path

import pytest

from cleanrank.data.files import existing_file, written_whole
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
