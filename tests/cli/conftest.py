from typing import NamedTuple

import pytest

from cleanrank.cli.main import main


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
