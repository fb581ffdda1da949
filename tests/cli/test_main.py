import json
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

    monkeypatch.setattr("cleanrank.data.scores.read_judged_and_scores", refuse)
    done = cli("evaluate", tmp_path / "a.txt", tmp_path / "b.txt")
    assert done.code == 2
    assert "Permission denied at 'a.txt'" in done.err


def test_the_demo_tells_the_whole_story(cli, tmp_path):
    page = tmp_path / "demo.html"
    done = cli("demo", "--queries", "30", "--jobs", "1", "--html", str(page))
    assert done.code == 0, done.err
    assert page.read_text().startswith("<!doctype html>")
    for name in ("posterior, 100 rows judged again", "SOUR", "cleaned labels", "clean labels"):
        assert name in done.out
    for words in ("finding issues", "training on noisy labels", "randomisation", "judged again put the rate"):
        assert words in done.err


def test_json_is_all_that_stands_on_stdout(cli, tmp_path):
    done = cli("demo", "--queries", "30", "--jobs", "1", "--html", str(tmp_path / "a.html"), "--json")
    record = json.loads(done.out)
    assert record["queries"] == {"train": 15, "validation": 6, "test": 9}
    assert {"detectors", "systems", "worst", "steps"} <= set(record)
