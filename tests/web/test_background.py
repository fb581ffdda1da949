"""Work beside the answering: one at a time of each name, the last outcome kept, failures told."""

import logging
import os
import threading
import time

import pytest

from cleanrank.errors import InvalidInputError
from cleanrank.web.background import AT_ONCE, Background, processes

from .conftest import Threads


class Gate:
    """Work that says when it begins and ends when it is let through."""

    def __init__(self, value=None):
        self.begun, self.opened, self.value = threading.Event(), threading.Event(), value

    def __call__(self):
        self.begun.set()
        assert self.opened.wait(60)
        return self.value


def fail(error):
    raise error


def test_work_of_a_name_is_done_once_however_many_ask():
    background, gate = Background(), Gate("made")
    works = [background.start("a", version, gate) for version in range(3)]
    assert works[0] is works[1] is works[2]
    assert gate.begun.wait(60)
    assert background.is_under_way("a")
    assert background.ended("a") is None
    gate.opened.set()
    assert works[0].future.result() == "made"
    assert not background.is_under_way("a")
    assert background.ended("a") is works[0]


def test_only_another_version_is_made_anew():
    background = Background()
    first = background.start("a", 1, lambda: "first")
    assert first.future.result() == "first"
    assert background.start("a", 1, lambda: "again") is first
    second = background.start("a", 2, lambda: "second")
    assert (second.future.result(), background.ended("a").version) == ("second", 2)


def test_what_was_made_stays_while_the_next_is_made():
    background, gate = Background(), Gate()
    first = background.start("a", 1, lambda: "first")
    first.future.result()
    background.start("a", 2, gate)
    assert background.ended("a") is first
    gate.opened.set()


def test_names_do_not_wait_for_one_another_until_there_are_too_many():
    background, gates = Background(), [Gate(number) for number in range(AT_ONCE + 1)]
    works = [background.start(str(number), 1, gate) for number, gate in enumerate(gates)]
    begun = [gate for gate in gates[:AT_ONCE] if gate.begun.wait(60)]
    assert len(begun) == AT_ONCE
    assert not gates[-1].begun.is_set()
    gates[0].opened.set()
    assert gates[-1].begun.wait(60)
    for gate in gates:
        gate.opened.set()
    assert [work.future.result() for work in works] == list(range(AT_ONCE + 1))


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (InvalidInputError("labels must be there; got none."), "labels must be there; got none."),
        (RuntimeError("secret detail"), "The server failed at this; its log says why."),
    ],
)
def test_a_failure_is_told_logged_and_tried_again(error, problem, caplog):
    threads = Threads()
    background = Background(lambda: threads)
    with caplog.at_level(logging.WARNING, "cleanrank.web"):
        work = background.start("a", 1, lambda: fail(error))
        assert work.problem == problem
        again = background.start("a", 1, lambda: "made")
        assert (again.future.result(), again.problem) == ("made", "")
        threads.shutdown()
    assert str(error) in caplog.text
    assert ("Traceback" in caplog.text) == isinstance(error, RuntimeError)


@pytest.fixture
def real():
    background = Background(processes)
    yield background
    background.close()


def test_work_is_done_elsewhere_behind_the_server_and_a_dead_process_is_replaced(real):
    work = real.start("a", 1, lambda: (os.getpid(), os.nice(0)))
    pid, niceness = work.future.result()
    assert pid != os.getpid()
    assert niceness >= os.nice(0) + 10 or niceness == 19
    died = real.start("a", 2, lambda: os._exit(9))
    assert died.problem == "The server failed at this; its log says why."
    assert real.start("a", 3, lambda: "made").future.result() == "made"


def test_a_server_that_stops_does_not_wait(real):
    work = real.start("a", 1, lambda: time.sleep(600))
    real.close()
    assert work.problem
