import numpy as np
import pytest

from cleanrank.errors import InvalidInputError, MissingExtraError, UnknownNameError
from cleanrank.validation import EXTRAS, check_n_jobs, one_of, require


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
