import pytest
from sklearn.base import BaseEstimator, clone

from cleanrank.errors import CleanrankError
from cleanrank.rankers.base import Estimator, Parameters


class Plain(Parameters):
    def __init__(self, rate=0.5, *, name="a"):
        self.rate, self.name = rate, name


class Same(BaseEstimator):
    def __init__(self, rate=0.5, *, name="a"):
        self.rate, self.name = rate, name


def test_scikit_learns_class_is_used_where_it_is_installed():
    assert Estimator is BaseEstimator


def test_without_it_parameters_behave_as_there():
    ours, peer = Plain(name="b"), Same(name="b")
    assert ours.get_params() == peer.get_params()
    assert ours.set_params(rate=2).get_params() == peer.set_params(rate=2).get_params()
    assert clone(ours).get_params() == ours.get_params()
    assert repr(Plain(name="b")) == repr(Same(name="b")).replace("Same", "Plain")


def test_unknown_parameters_are_named():
    with pytest.raises(CleanrankError, match=r"unknown parameter 'rat'. Did you mean 'rate'"):
        Plain().set_params(rat=1)
