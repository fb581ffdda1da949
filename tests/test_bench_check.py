"""The check of benchmarks: what counts as a regression."""

import importlib
import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def check():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module("check")
    finally:
        sys.path.remove(str(BENCHMARKS))


def test_every_ratio_is_in_the_tracked_results(check):
    for script, (_, paths) in check.CHECKS.items():
        tracked = json.loads((BENCHMARKS / "results" / f"{script}.json").read_text())
        assert (BENCHMARKS / f"{script}.py").is_file()
        assert all(check.value_at(tracked, path) > 0 for path in paths)
    named = {path for _, paths in check.CHECKS.values() for path in paths}
    assert named >= check.HIGHER


@pytest.mark.parametrize(
    ("name", "tracked", "runs", "worse"),
    [
        ("a/lower", 1.0, [1.1], False),
        ("a/lower", 1.0, [1.3, 1.25], True),
        ("a/lower", 1.0, [1.2, 1.6], False),  # the runs differ by more
        ("a/lower", 1.0, [0.5], False),
        ("a/times_faster_than_matrix_product", 50.0, [40.0, 41.0], True),
        ("a/times_faster_than_matrix_product", 50.0, [70.0], False),
    ],
)
def test_worse_is_worse_in_every_run_and_by_more_than_they_differ(check, name, tracked, runs, worse):
    assert check.Checked(name, tracked, tuple(runs)).is_worse is worse


def test_a_ratio_that_looks_worse_is_measured_again(check, tmp_path):
    (tmp_path / "significance.json").write_text('{"times_faster_than_matrix_product": 50}')
    for values, measured, worse in (([50], 1, False), ([30, 49], 2, False), ([30, 31], 2, True)):
        left = iter(values)
        (found,) = check.check(
            "significance", lambda _, left=left: {"times_faster_than_matrix_product": next(left)}, tmp_path
        )
        assert (len(found.measured), found.is_worse) == (measured, worse)
