from typing import NamedTuple

import pytest

import cleanrank as cr
from cleanrank.cli.main import main
from cleanrank.data.split import split


class Done(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def cli(monkeypatch, capsys):
    """Runs a command as the shell would; gives exit code, stdout and stderr."""

    def run(*words) -> Done:
        monkeypatch.setattr("sys.argv", ["cleanrank", *(str(word) for word in words)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        seen = capsys.readouterr()
        return Done(code, seen.out, seen.err)

    return run


@pytest.fixture
def files(toy, tmp_path, monkeypatch):
    """A folder with train.txt and valid.txt, in which commands run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    train, valid = split(toy, (0.7, 0.3), seed=0)
    cr.write_letor(train, tmp_path / "train.txt")
    cr.write_letor(valid, tmp_path / "valid.txt")
    return tmp_path
