"""How hot loops are compiled: one decorator, one thread count, and what all kernels share.

Importing this module is light: numba is loaded when the first kernel is defined. Without numba the
decorator returns the function as it is, and callers that have a NumPy version ask ``has_numba`` which of the
two to use.
"""

import functools
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from cleanrank.types import IntArray
from cleanrank.validation import check_n_jobs

F = TypeVar("F", bound=Callable[..., Any])
Z = TypeVar("Z", np.uint64, npt.NDArray[np.uint64])


@functools.cache
def has_numba() -> bool:
    """Whether kernels can be compiled on this machine."""
    return importlib.util.find_spec("numba") is not None


def __getattr__(name: str) -> Any:
    """``prange``: numba's where there is one."""
    if name == "prange":
        if not has_numba():
            return range
        import numba

        return numba.prange
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def kernel(*, parallel: bool = False, fastmath: bool = False, inline: bool = False) -> Callable[[F], F]:
    """Compiles a function when first called and keeps the machine code on disk.

    Errors follow NumPy (no exception on division by zero) and the interpreter lock is released. Parallel
    kernels write each query's result to its own place, so results do not depend on the thread count.
    """

    def compile_(function: F) -> F:
        if not has_numba():
            return function
        import numba

        decorate: Any = numba.njit(
            cache=True,
            nogil=True,
            error_model="numpy",
            parallel=parallel,
            fastmath=fastmath,
            inline="always" if inline else "never",
        )
        compiled: F = decorate(function)
        return compiled

    return compile_


@contextmanager
def threads(n_jobs: int | None) -> Iterator[None]:
    """Runs parallel kernels on ``n_jobs`` threads; None or -1 means all."""
    check_n_jobs(n_jobs)
    if not has_numba():
        yield
        return
    import numba

    most = int(getattr(numba.config, "NUMBA_NUM_THREADS"))  # noqa: B009 (not in its stubs)
    before = numba.get_num_threads()
    numba.set_num_threads(most if n_jobs is None or n_jobs == -1 else min(n_jobs, most))
    try:
        yield
    finally:
        numba.set_num_threads(before)


def mix64(z: Z) -> Z:
    """The finaliser of splitmix64 (Steele et al. 2014) on uint64, a scalar or an array."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def query_chunks(indptr: IntArray, chunks: int) -> IntArray:
    """Borders between at most ``chunks`` runs of whole queries with about equally many rows.

    >>> query_chunks(np.array([0, 5, 6, 7, 12]), 2).tolist()
    [0, 2, 4]
    """
    inner = np.searchsorted(indptr, np.linspace(0, indptr[-1], chunks + 1)[1:-1])
    return np.unique(np.concatenate(([0], inner, [len(indptr) - 1]))).astype(np.int64)
