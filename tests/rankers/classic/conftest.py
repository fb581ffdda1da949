"""Tests of classic rankers run on one thread."""

from collections.abc import Iterator

import pytest

from cleanrank.jit import threads


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with threads(1):
        yield
