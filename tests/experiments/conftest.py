import pytest

from cleanrank.experiments.cells import expand
from cleanrank.experiments.recipe import read_recipe
from cleanrank.experiments.sources import identity_of, load_splits
from tests.experiments.toys import OPTIONS, write_small


@pytest.fixture
def small_recipe(tmp_path):
    return write_small(tmp_path)


@pytest.fixture
def cells(small_recipe):
    return expand(read_recipe(small_recipe), identity_of)


@pytest.fixture(scope="module")
def splits():
    return load_splits("synthetic", 1, OPTIONS)
