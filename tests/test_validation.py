import numpy as np
import pytest

from cleanrank.errors import InvalidInputError, MissingExtraError, UnknownNameError
from cleanrank.validation import (
    EXTRAS,
    check_integer,
    check_n_jobs,
    check_number,
    check_seed,
    one_of,
    require,
)


def test_known_names_pass_and_others_get_the_list_and_the_closest():
    assert one_of("gain", "linear", {"exp": 1, "linear": 2}) == "linear"
    with pytest.raises(UnknownNameError) as caught:
        one_of("gain", "lineal", (name for name in ("exp", "linear")))
    assert str(caught.value) == "unknown gain 'lineal'. Did you mean 'linear'? Known: exp, linear."
    with pytest.raises(UnknownNameError) as caught:
        one_of("gain", "zzz", ["exp", "linear"])
    assert str(caught.value) == "unknown gain 'zzz'. Known: exp, linear."


def test_a_missing_extra_prints_the_pip_command(monkeypatch):
    monkeypatch.setitem(EXTRAS, "odd", ("numpy", "no_such_module_a", "no_such_module_b"))
    with pytest.raises(MissingExtraError) as caught:
        require("odd")
    assert "needs no_such_module_a, no_such_module_b," in str(caught.value)
    assert "pip install 'cleanrank[odd]'" in str(caught.value)
    monkeypatch.setitem(EXTRAS, "there", ("numpy",))
    require("there")
    with pytest.raises(UnknownNameError, match=r"unknown extra 'web2'\. Did you mean 'web'"):
        require("web2")


@pytest.mark.parametrize("n_jobs", [0, -2, 1.5, "2", True])
def test_numbers_of_threads_are_whole(n_jobs):
    with pytest.raises(InvalidInputError, match="n_jobs must be a positive number, -1 or None"):
        check_n_jobs(n_jobs)
    for fine in (None, -1, 1, np.int64(4)):
        check_n_jobs(fine)


@pytest.mark.parametrize(
    ("bounds", "value", "message"),
    [
        ({"least": 2}, 1, "folds must be an integer >= 2; got 1."),
        ({"least": 2, "most": 5}, 6, "folds must be an integer >= 2 and <= 5; got 6."),
        ({"most": 5}, 6, "folds must be an integer <= 5; got 6."),
        ({}, 2.0, "folds must be an integer; got 2.0."),
        ({}, True, "folds must be an integer; got True."),
        ({}, "3", "folds must be an integer; got '3'."),
    ],
)
def test_integers_outside_their_bounds_are_refused(bounds, value, message):
    with pytest.raises(InvalidInputError) as caught:
        check_integer("folds", value, **bounds)
    assert str(caught.value) == message


def test_integers_inside_their_bounds_come_back():
    assert check_integer("folds", np.int32(5), least=5, most=5) == 5
    assert check_integer("folds", -3) == -3


@pytest.mark.parametrize(
    ("bounds", "value", "message"),
    [
        ({"least": 0, "most": 1}, 1.5, "rate must be a number >= 0 and <= 1; got 1.5."),
        ({"above": 0}, 0, "rate must be a number > 0; got 0."),
        ({}, float("nan"), "rate must be a number; got nan."),
        ({}, float("inf"), "rate must be a number; got inf."),
        ({}, None, "rate must be a number; got None."),
        ({}, True, "rate must be a number; got True."),
        ({"least": 0}, "0.5", "rate must be a number >= 0; got '0.5'."),
    ],
)
def test_numbers_outside_their_bounds_are_refused(bounds, value, message):
    with pytest.raises(InvalidInputError) as caught:
        check_number("rate", value, **bounds)
    assert str(caught.value) == message


def test_numbers_inside_their_bounds_come_back_as_floats():
    for value in (0, 1, np.float32(0.5), np.int64(1)):
        assert check_number("rate", value, least=0, most=1) == float(value)


@pytest.mark.parametrize("seed", [-1, 1.0, None, "1", True])
def test_seeds_are_integers_from_0(seed):
    with pytest.raises(InvalidInputError, match="seed must be an integer >= 0"):
        check_seed(seed)
    check_seed(np.int64(3))
