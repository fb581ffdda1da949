"""Judging in a terminal: lines of standard input here, keys in a terminal of its own."""

import io
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from contextlib import closing

import pytest

from cleanrank.cli.terminal import judge_in_terminal, plain_text
from cleanrank.labeling.projects import add_label_batch, make_project
from cleanrank.labeling.records import Document, Scale
from cleanrank.labeling.store import create_project, open_project

SCALE = Scale(("no", "maybe", "yes"))


@pytest.fixture
def project(tmp_path):
    table = {"query": ["fruit"] * 4, "title": ["Apple", "Pear", "Car", "Dog"]}
    with make_project(tmp_path / "p.sqlite", table, name="p", scale=["no", "maybe", "yes"]) as made:
        yield made


@pytest.fixture
def judge(project, monkeypatch, capsys):
    def run(typed, batch):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        judge_in_terminal(project, batch.id, "ann")
        return capsys.readouterr()

    return run


def said(project):
    return [(event.kind, event.question, event.value) for event in project.events()]


def test_lines_are_answers_and_the_end_of_the_input_is_no_answer(judge, project):
    seen = judge("1\n\n  2 \nS\nmaybe\n", add_label_batch(project))
    assert said(project) == [("answer", "0", 1), ("answer", "1", 2), ("skip", "2", None)]
    assert all(event.seconds is not None for event in project.events())
    assert "'maybe' is no answer here; type one of 0, 1, 2, s, u, q." in seen.err
    assert "3 answers of ann stand" in seen.err
    assert "0 no | 1 maybe | 2 yes | s skip | u undo | q quit" in seen.out
    assert seen.out.count("Query: fruit") == 4
    assert "title: Dog" in seen.out


def test_undo_goes_back_to_the_beginning_and_no_further(judge, project):
    seen = judge("u\n0\n1\nu\nu\nu\n2\nq\n", add_label_batch(project))
    assert seen.err.count("There is nothing to take back.") == 2
    assert [kind for kind, _, _ in said(project)] == ["answer", "answer", "undo", "undo", "answer"]
    assert "1 answers of ann stand" in seen.err


def test_two_documents_side_by_side(judge, project):
    seen = judge("1\n0\n", add_label_batch(project, kind="pairs", ties=False))
    assert "[1] 0" in seen.out
    assert "[2] 1" in seen.out
    assert "1 first is better | 2 second is better | s skip" in seen.out
    assert "'0' is no answer here" in seen.err


def test_a_long_scale_is_answered_by_lines(tmp_path, monkeypatch, capsys):
    documents = [Document(0, "q", "d"), Document(1, "q", "e")]
    scale = Scale(tuple(f"grade {number}" for number in range(12)))
    with create_project(tmp_path / "p.sqlite", documents, name="p", scale=scale) as project:
        monkeypatch.setattr("sys.stdin", io.StringIO("11\n10\n"))
        judge_in_terminal(project, add_label_batch(project).id, "ann")
        assert [value for _, _, value in said(project)] == [11, 10]


def test_texts_cannot_write_to_the_terminal(tmp_path, monkeypatch, capsys):
    evil = "\x1b[2J\x1b]0;taken\x07 \u202ehidden\r\n"
    documents = [Document(0, f"q{evil}", f"d{evil}", fields={f"t{evil}": evil}), Document(1, f"q{evil}", "e")]
    scale = Scale((f"no{evil}", "yes"))
    with create_project(
        tmp_path / "p.sqlite", documents, {f"q{evil}": evil}, name="p", scale=scale
    ) as project:
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{evil}\n"))
        judge_in_terminal(project, add_label_batch(project).id, "ann")
    seen = capsys.readouterr()
    for character in "\x1b\x07\r\u202e":
        assert character not in seen.out + seen.err


def test_texts_that_are_long_are_cut(tmp_path, judge, project):
    project.add_documents([Document(9, "long", "d", fields={"text": "word " * 2000})], {})
    seen = judge("", add_label_batch(project, queries=["long"]))
    assert seen.out.count("word") == 800
    assert " ...\n\n0 no" in seen.out


def test_features_stand_in_for_texts(tmp_path, monkeypatch, capsys):
    import numpy as np

    documents = [Document(row, "q", f"d{row}", features=np.arange(10.0) + row) for row in range(2)]
    names = tuple(f"f{number}" for number in range(10))
    with create_project(
        tmp_path / "p.sqlite", documents, name="p", scale=SCALE, feature_names=names
    ) as project:
        monkeypatch.setattr("sys.stdin", io.StringIO(""))
        judge_in_terminal(project, add_label_batch(project).id, "ann")
    assert "f0 0, f1 1, f2 2, f3 3, f4 4, f5 5, f6 6, f7 7, 2 more" in capsys.readouterr().out


def test_plain_text():
    assert plain_text("a\tb\nc\x00\x7f") == "a b c\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"


class Terminal:
    """A command in a terminal of its own."""

    def __init__(self, *words):
        self.here, there = pty.openpty()
        command = [sys.executable, "-m", "cleanrank", *map(str, words)]
        self.process = subprocess.Popen(
            command, stdin=there, stdout=there, stderr=there, start_new_session=True
        )
        os.close(there)
        self.text = ""

    def wait_for(self, words, count=1):
        """Reads until the words have come so often."""
        while self.text.count(words) < count:
            self.read()

    def read(self):
        ready, _, _ = select.select([self.here], [], [], 120)
        assert ready, self.text
        part = os.read(self.here, 4096).decode(errors="replace")
        self.text += part
        return part

    def press(self, key):
        """Presses a key once a key is waited for: what is typed before is thrown away."""
        while termios.tcgetattr(self.here)[3] & termios.ICANON:
            time.sleep(0.01)
        os.write(self.here, key.encode())

    def end(self):
        try:
            while self.read():
                pass
        except OSError:
            pass
        return self.process.wait(60)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.here)


@pytest.fixture
def terminal(project):
    batch = add_label_batch(project, kind="pairs")
    assert batch.id == 1
    with closing(
        Terminal("label", project.path, "--task", "pairs", "--terminal", "--annotator", "ann")
    ) as made:
        made.wait_for("q quit")
        yield made


def test_keys_answer_without_enter_and_ctrl_d_ends(terminal, project):
    for key, words, count in (
        ("1", "q quit", 2),
        ("u", "q quit", 3),
        ("x", "'x' is no answer here", 1),
        ("s", "q quit", 4),
        ("2", "q quit", 5),
    ):
        terminal.press(key)
        terminal.wait_for(words, count)
    terminal.press("\x04")
    assert terminal.end() == 0
    assert "2 answers of ann stand" in terminal.text
    assert "Traceback" not in terminal.text
    with open_project(project.path) as reopened:
        assert [kind for kind, _, _ in said(reopened)] == ["answer", "undo", "skip", "answer"]


@pytest.mark.parametrize("way", ["key", "signal"])
def test_ctrl_c_ends_and_all_answers_are_stored(terminal, project, way):
    terminal.press("1")
    terminal.wait_for("q quit", 2)
    terminal.press("\x03") if way == "key" else terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    assert "1 answers of ann stand" in terminal.text
    assert "Traceback" not in terminal.text
    assert [value for _, _, value in said(project)] == [1]
