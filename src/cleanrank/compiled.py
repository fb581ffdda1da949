"""How hot loops are compiled: one decorator and one thread count, shared by all kernels."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numba

from cleanrank.validation import check_n_jobs

F = TypeVar("F", bound=Callable[..., Any])


def kernel(*, parallel: bool = False, fastmath: bool = False, inline: bool = False) -> Callable[[F], F]:
    """Compiles a function when first called and keeps the machine code on disk.

    Errors follow NumPy (no exception on division by zero) and the interpreter lock is released. Parallel
    kernels write each query's result to its own place, so results do not depend on the thread count.
    """

    def compile_(function: F) -> F:
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
    most = int(getattr(numba.config, "NUMBA_NUM_THREADS"))  # noqa: B009 (not in its stubs)
    check_n_jobs(n_jobs)
    before = numba.get_num_threads()
    numba.set_num_threads(most if n_jobs is None or n_jobs == -1 else min(n_jobs, most))
    try:
        yield
    finally:
        numba.set_num_threads(before)
