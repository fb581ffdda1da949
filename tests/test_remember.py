from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse

import cleanrank as cr
from cleanrank.rankers.grade_model import cross_fit, fit_grades
from cleanrank.rankers.trees import TreeParams
from cleanrank.remember import Memory, remembered, remembering

CALLS = []


@remembered
def work(*args, progress=None, **kwargs):
    CALLS.append((args, kwargs))
    return np.zeros(3), [np.ones(2)]


@dataclass(frozen=True)
class Settings:
    rate: float
    name: str = "a"


def one(x):
    return x


def other(x):
    return x


DIFFERENT = [
    (1,), (1.0,), (True,), ("1",), (b"1",), (None,), (1, 2), ((1, 2),), ([1, 2],), ([[1], 2],), ([1, [2]],),
    ({"a": 1},), ({"b": 1},), ({"a": 1, "b": 1},), (Settings(0.1),), (Settings(0.2),), (Settings(0.1, "b"),),
    (np.zeros(4),), (np.zeros(4, dtype=np.float32),), (np.zeros((2, 2)),), (np.eye(2),),
    (np.array(["x", 1], dtype=object),), (np.array(["x", 2], dtype=object),),
    (scipy.sparse.csr_matrix(np.eye(2)),), (one,), (other,), (partial(one, x=1),), (partial(one, x=2),),
    (cr.make_ranking(3, 2, seed=0),), (cr.make_ranking(3, 2, seed=1),),
]  # fmt: skip


def test_equal_content_is_worked_on_once_and_different_content_each_time():
    CALLS.clear()
    with remembering(Memory()) as memory:
        for args in DIFFERENT:
            work(*args)
        assert len(CALLS) == len(DIFFERENT)
        for args in DIFFERENT:
            work(*args)
        work(np.zeros(4)[::1].copy(), progress=print)
        work(replace(cr.make_ranking(3, 2, seed=0)))
        assert len(CALLS) == len(DIFFERENT)
        assert memory.hits == len(DIFFERENT) + 2
        work(a=1)
        work(b=1)
        assert len(CALLS) == len(DIFFERENT) + 2


def test_what_has_no_content_is_worked_on_and_nothing_is_kept_outside():
    CALLS.clear()
    with remembering(Memory()):
        for _ in range(2):
            work(lambda: 1)
            work(np.array([object()], dtype=object))
    work(1)
    work(1)
    assert len(CALLS) == 6


def test_a_caller_may_write_to_what_it_gets():
    with remembering(Memory()):
        first, rest = work("mine")
        first += 5
        rest[0] += 5
        again, rest = work("mine")
        assert again.tolist() == [0, 0, 0]
        assert rest[0].tolist() == [1, 1]


def test_the_oldest_is_forgotten_and_errors_are_not_kept():
    CALLS.clear()
    with remembering(Memory(size=2)):
        for n in (1, 2, 1, 3, 1, 2):
            work(n)
    assert [args[0] for args, _ in CALLS] == [1, 2, 3, 2]
    tries = []

    @remembered
    def failing(x):
        tries.append(x)
        raise ValueError("no")

    with remembering(Memory()):
        for _ in range(2):
            with pytest.raises(ValueError, match="no"):
                failing(1)
    assert tries == [1, 1]


def test_forests_and_predictions_that_are_remembered_are_those_that_would_be_made():
    data = cr.make_ranking(30, 5, docs_per_query=12, seed=3)
    noisy = cr.corrupt(data, rate=0.3, seed=1).data
    settings = TreeParams(n_estimators=5, params={"num_leaves": 5, "min_data_in_leaf": 5}, seed=2)

    def results():
        scores = settings.train(noisy, data).predict(data.X)
        p, (beside,) = cross_fit(noisy, partial(fit_grades, seed=1, n_grades=5), 3, n_grades=5, others=[data])
        return [scores, p, beside]

    alone = results()
    with remembering(Memory()) as memory:
        made, recalled = results(), results()
        assert memory.hits == 2
    for values in (made, recalled):
        for a, b in zip(alone, values, strict=True):
            assert a.tobytes() == b.tobytes()
