from pathlib import Path

import pytest
from toys import RECIPE


@pytest.fixture
def small() -> str:
    """The text of a small recipe."""
    return RECIPE


@pytest.fixture
def small_recipe(tmp_path) -> Path:
    """A small recipe of 16 cells as a file."""
    path = tmp_path / "recipes" / "toys" / "small.toml"
    path.parent.mkdir(parents=True)
    path.write_text(RECIPE)
    return path
