"""The list of mutants keeps up with the code; ``run.py`` is run by hand."""

import ast
import json

import pytest

from tests.mutation.mutants import ROOT, area, drawn, written
from tests.mutation.run import DRAWN_ANEW, RESULTS, importers, is_compiled, key, summary

EVERY = [*written(), *drawn()]


@pytest.mark.parametrize("mutant", EVERY, ids=lambda m: f"{m.file}: {m.what}")
def test_every_mutant_is_one_change_of_code_that_tests_look_at(mutant):
    text = mutant.path.read_text()
    assert mutant.applied(text) != text
    ast.parse(mutant.applied(text))
    assert mutant.selection
    for test in mutant.selection:
        assert (ROOT / test.partition("::")[0]).is_file()


def test_no_mutant_is_listed_twice_and_there_are_enough():
    assert len({(m.file, m.old, m.new) for m in EVERY}) == len(EVERY) >= 150
    assert drawn() == drawn() != drawn(seed=1)


def test_machine_code_of_importers_is_stale():
    stale = importers("metrics/_measure_kernels.py")
    assert {"_measure_kernels", "_kernels"} <= stale
    assert "cache" not in stale
    text = "A = 1\n@kernel()\ndef f():\n    return A + 2\ndef g():\n    return 3\n"
    assert [is_compiled(text, each) for each in ("A = 1", "A + 2", "return 3")] == [True, True, False]


def test_the_score_counts_what_was_tried():
    states = ["killed", "killed", "timed out", "survived", "tests fail without it"]
    records = [{"state": state, "origin": "drawn", "file": "noise/gold.py"} for state in states]
    assert summary(records)["all"]["score"] == 0.75
    assert summary(records)["by area"]["noise"]["mutants"] == 5


@pytest.mark.parametrize(
    ("file", "name"),
    [("metrics/measure.py", "measures"), ("metrics/risk_control.py", "risk control"),
     ("robust/sour.py", "SOUR"),
     ("robust/targets.py", "rankers"), ("experiments/store.py", "store"), ("data/cache.py", "others")],
)  # fmt: skip
def test_the_longest_start_of_a_file_says_its_area(file, name):
    assert area(file) == name


@pytest.mark.parametrize("path", [RESULTS, DRAWN_ANEW], ids=lambda path: path.stem)
def test_stored_results_are_each_of_one_mutant_and_give_the_score(path):
    stored = json.loads(path.read_text(encoding="utf-8"))
    records = stored["mutants"]
    assert len({key(record) for record in records}) == len(records) <= stored["listed"]
    assert {name: stored[name] for name in summary(records)} == summary(records)
