import subprocess
import sys

import cleanrank


def test_version_and_help(cli):
    assert cli("--version").out.strip() == cleanrank.__version__
    assert "evaluate" in cli("--help").out
    assert cli("no-such-command").code == 2


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m cleanrank datasets list --json | head -c 10"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == ""


def test_every_command_is_in_the_manual(pytestconfig):
    docs = pytestconfig.rootpath / "docs"
    sys.path.insert(0, str(docs))
    try:
        import generate_cli
    finally:
        sys.path.remove(str(docs))
    hint = "run: python docs/generate_cli.py"
    assert (docs / "cli.md").read_text(encoding="utf-8") == generate_cli.page(), hint


def test_an_error_of_the_system_gets_a_sentence(cli, monkeypatch, tmp_path):
    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied", "a.txt")

    monkeypatch.setattr("cleanrank.data.trec.read_judged_and_scores", refuse)
    done = cli("evaluate", tmp_path / "a.txt", tmp_path / "b.txt")
    assert done.code == 2
    assert "Permission denied at 'a.txt'" in done.err
