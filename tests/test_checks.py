import pickle

import numpy as np
import pytest

from cleanrank import checks
from cleanrank.checks import (
    BadFileError,
    CleanrankError,
    InvalidInputError,
    MissingDataError,
    MissingExtraError,
    UnknownNameError,
)


@pytest.mark.parametrize(
    ("error", "also"),
    [
        (InvalidInputError, ValueError),
        (BadFileError, InvalidInputError),
        (UnknownNameError, ValueError),
        (MissingExtraError, ImportError),
        (MissingDataError, FileNotFoundError),
    ],
)
def test_errors_are_caught_by_the_usual_names_and_by_ours(error, also):
    assert issubclass(error, also)
    assert issubclass(error, CleanrankError)
    assert str(error("said")) == "said"
    again = pickle.loads(pickle.dumps(error("said")))
    assert (type(again), str(again)) == (error, "said")


def test_bad_files_keep_their_place_between_processes():
    error = BadFileError("said", "a.txt", 7)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.path, again.line) == ("said", "a.txt", 7)
    assert (BadFileError("said").path, BadFileError("said").line) == ("", None)


def test_complaints_name_subject_rule_value_place_and_remedy():
    assert checks.complaint("x", "must be 1", 2) == "x must be 1; got 2."
    assert checks.complaint("x", "must be 1", 2, at="row 3") == "x must be 1; got 2 at row 3."
    assert checks.complaint("x", "must be 1", 2, remedy="Do so.") == "x must be 1; got 2. Do so."
    with pytest.raises(InvalidInputError, match=r"^x must be 1; got 2 at row 3\. Do so\.$"):
        checks.fail("x", "must be 1", 2, at="row 3", remedy="Do so.")


def test_known_names_pass_and_others_get_the_list_and_the_closest():
    assert checks.known("gain", "linear", {"exp": 1, "linear": 2}) == "linear"
    with pytest.raises(UnknownNameError) as caught:
        checks.known("gain", "lineal", (name for name in ("exp", "linear")))
    assert str(caught.value) == "unknown gain 'lineal'. Did you mean 'linear'? Known: exp, linear."
    with pytest.raises(UnknownNameError) as caught:
        checks.known("gain", "zzz", ["exp", "linear"])
    assert str(caught.value) == "unknown gain 'zzz'. Known: exp, linear."


def test_a_missing_extra_prints_the_pip_command(monkeypatch):
    monkeypatch.setitem(checks.EXTRAS, "odd", ("numpy", "no_such_module_a", "no_such_module_b"))
    with pytest.raises(MissingExtraError) as caught:
        checks.require("odd")
    assert "needs no_such_module_a, no_such_module_b," in str(caught.value)
    assert "pip install 'cleanrank[odd]'" in str(caught.value)
    monkeypatch.setitem(checks.EXTRAS, "there", ("numpy",))
    checks.require("there")
    with pytest.raises(UnknownNameError, match=r"unknown extra 'web2'\. Did you mean 'web'"):
        checks.require("web2")


@pytest.mark.parametrize("n_jobs", [0, -2, 1.5, "2", True])
def test_numbers_of_threads_are_whole(n_jobs):
    with pytest.raises(InvalidInputError, match="n_jobs must be a positive number, -1 or None"):
        checks.check_n_jobs(n_jobs)
    for fine in (None, -1, 1, np.int64(4)):
        checks.check_n_jobs(fine)
