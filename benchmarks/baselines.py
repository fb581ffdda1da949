"""The pages of recipes/baselines/letor.toml and recipes/noise/quick.toml, from what results/ holds of them.

cleanrank reproduce baselines/letor && cleanrank reproduce noise/quick
python benchmarks/pages.py baselines
"""

from collections.abc import Callable
from pathlib import Path

from cleanrank.experiments.document import markdown_page
from cleanrank.experiments.driver import Reproduction, Tally
from cleanrank.experiments.recipe import read_recipe
from cleanrank.experiments.tracked import recall

ROOT = Path(__file__).parent.parent


def page(name: str) -> str:
    """All that the results of a recipe say, below the title."""
    recipe = read_recipe(ROOT / "recipes" / f"{name}.toml")
    known = recall(recipe, folder=ROOT / "results")
    tally = Tally(len(known.cells), stored=len(known.records))
    command = f"cleanrank reproduce {name}"
    return markdown_page(Reproduction(recipe, known.cells, known.records, tally, command)).partition("\n")[2]


TEXTS: dict[str, Callable[[], str]] = {
    "letor": lambda: page("baselines/letor"),
    "quick": lambda: page("noise/quick"),
}
PICTURES: dict[str, Callable[[Path], object]] = {}
