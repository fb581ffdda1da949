from pathlib import Path

import pytest

RECIPE = """\
# cleanrank reproduce recipes/toys/small.toml
title = "A small grid"
measures = ["ndcg@10", "map:letor"]
seeds = [1, 2]
baseline = "norm on"

[[data]]
name = "synthetic"
folds = [1, 2]
options = { n_queries = 40, n_features = 8, docs_per_query = 8.0 }

[[noise]]
profile = "uniform"
rates = [0.0, 0.3]

[[methods]]
label = "norm on"
method = "lambdarank"
params = { norm = true, rounds = 5, min_data_in_leaf = 5, feature_fraction = 0.7 }

[[methods]]
label = "chance"
method = "random"

[quick]
folds = [1]
seeds = [1]
"""


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
