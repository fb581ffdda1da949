import json
import math

from cleanrank.cli import screen
from cleanrank.report.table import Table


def test_json_has_null_where_numbers_are_not_finite(capsys):
    screen.print_json({"a": [1.5, math.nan, -math.inf], "b": {"c": (2, None)}})
    assert json.loads(capsys.readouterr().out) == {"a": [1.5, None, None], "b": {"c": [2, None]}}


def test_notes_go_to_stderr_and_tables_to_stdout(capsys):
    screen.note("a remark")
    screen.show_table(Table(("name", "value"), [("one", "1.0"), ("long name", "22.0")], notes=["below"]))
    seen = capsys.readouterr()
    assert seen.err == "a remark\nbelow\n"
    assert [line.split() for line in seen.out.splitlines()] == [
        ["name", "value"],
        ["one", "1.0"],
        ["long", "name", "22.0"],
    ]


def test_progress_is_silent_off_a_terminal(capsys):
    with screen.progress("working") as tick:
        tick(1, 2)
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err == ""


def test_steps_off_a_terminal_are_lines(capsys):
    with screen.steps(2) as tick:
        tick("first", 0, 0)
        tick("first", 1, 2)
        tick("second", 0, 0)
    assert capsys.readouterr().err == "first ...\nsecond ...\n"
