"""The pages of recipes/baselines and recipes/noise/quick.toml, from what results/ holds of them.

cleanrank reproduce baselines/letor     # and baselines/classic, noise/quick
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
    at_hand = {record.cell["dataset"] for record in known.records}
    cells = tuple(cell for cell in known.cells if cell.inputs["dataset"] in at_hand)
    run = Reproduction(
        recipe,
        cells,
        known.records,
        Tally(len(cells), stored=len(known.records)),
        f"cleanrank reproduce {name}",
    )
    return markdown_page(run).partition("\n")[2]


def section(name: str) -> str:
    """The same with headings one level lower."""
    return page(name).replace("\n## ", "\n### ")


TEXTS: dict[str, Callable[[], str]] = {
    "letor": lambda: section("baselines/letor"),
    "classic": lambda: section("baselines/classic"),
    "quick": lambda: page("noise/quick"),
}
PICTURES: dict[str, Callable[[Path], object]] = {}
