import itertools
import threading

import numba
import numpy as np
import pytest

from cleanrank.errors import InvalidInputError
from cleanrank.jit import has_numba, kernel, mix64, query_chunks, threads
from cleanrank.ragged import indptr_of


@kernel()
def divided(a, b):
    return a / b


@kernel(parallel=True)
def row_sums(values):
    out = np.zeros(len(values))
    for i in numba.prange(len(values)):
        total = 0.0
        for j in range(values.shape[1]):
            total += np.sin(values[i, j])
        out[i] = total
    return out


def most():
    return numba.config.NUMBA_NUM_THREADS


def test_kernels_divide_as_numpy_does():
    assert divided(1.0, 0.0) == np.inf
    assert np.isnan(divided(0.0, 0.0))
    assert divided(1.0, 4.0) == divided.py_func(1.0, 4.0)


def test_parallel_kernels_give_the_same_bits_for_any_number_of_threads():
    values = np.random.default_rng(0).normal(size=(64, 100))
    found = []
    for n_jobs in (1, 2, None, -1):
        with threads(n_jobs):
            found.append(row_sums(values))
    assert all(np.array_equal(found[0], other) for other in found[1:])
    np.testing.assert_allclose(found[0], np.sin(values).sum(axis=1))


@pytest.mark.parametrize("n_jobs", [1, None, -1, 10_000])
def test_the_number_of_threads_holds_inside_only(n_jobs):
    before = numba.get_num_threads()
    with threads(n_jobs):
        expected = 1 if n_jobs == 1 else most()
        assert numba.get_num_threads() == expected
    assert numba.get_num_threads() == before


def test_limits_nest_and_end_with_an_error_too():
    before = numba.get_num_threads()

    def fail():
        with threads(1), threads(None):
            assert numba.get_num_threads() == most()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert numba.get_num_threads() == before


@pytest.mark.parametrize("n_jobs", [0, -2])
def test_impossible_numbers_are_refused_and_change_nothing(n_jobs):
    before = numba.get_num_threads()
    with (
        pytest.raises(InvalidInputError, match="n_jobs must be a positive number, -1 or None"),
        threads(n_jobs),
    ):
        pass
    assert numba.get_num_threads() == before


def test_one_thread_of_the_caller_does_not_limit_another():
    seen = []
    with threads(1):
        other = threading.Thread(target=lambda: seen.append(numba.get_num_threads()))
        other.start()
        other.join()
    assert seen == [most()]


def test_the_interpreter_is_free_while_a_kernel_runs():
    options = row_sums.targetoptions
    assert options["nogil"]
    assert not options.get("fastmath")


@pytest.mark.parametrize("chunks", [1, 8, 256])
@pytest.mark.parametrize("lengths", [[], [0, 0], [5], [1] * 1000, [0, 4, 0, 900, 1]])
def test_chunks_cover_all_queries_once(lengths, chunks):
    borders = query_chunks(indptr_of(lengths), chunks)
    covered = [q for a, b in itertools.pairwise(borders) for q in range(a, b)]
    assert covered == list(range(len(lengths)))
    assert len(borders) <= chunks + 1


def test_mixing_is_the_same_for_scalars_arrays_and_kernels():
    z = np.array([0, 1, 2**63, 2**64 - 1], dtype=np.uint64)
    compiled = kernel()(mix64)
    with np.errstate(over="ignore"):
        assert mix64(z).tolist() == [int(mix64(each)) for each in z] == [int(compiled(each)) for each in z]


def test_without_numba_functions_stay_as_they_are(monkeypatch):
    monkeypatch.setattr("cleanrank.jit.has_numba", lambda: False)
    assert kernel()(len) is len
    with threads(2):
        pass
    from cleanrank.jit import prange

    assert prange is range
    assert has_numba.__wrapped__()


def test_unknown_attributes_are_named():
    import cleanrank.jit

    with pytest.raises(AttributeError, match="no attribute 'pragne'"):
        cleanrank.jit.pragne  # noqa: B018
