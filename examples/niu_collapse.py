"""Which explains the loss better over all data sets, document noise or pair noise?

Reads the runs of recipes/niu/{pnoise,uniform,grades,balance}.toml from a store, prints the table of the
collapse and draws the pictures of docs/results/niu.md, which has the commands, into a folder:

    python examples/niu_collapse.py [STORE [FOLDER]]
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cleanrank.experiments.driver import collect, plan
from cleanrank.experiments.recipe import read_recipe
from cleanrank.experiments.store import Store
from cleanrank.report.collapse import collapse, kept
from cleanrank.report.grid_tables import collapse_table
from cleanrank.report.images import save_picture
from cleanrank.report.panels import kept_panels, pair_noise_panels
from cleanrank.report.summaries import Summary, summarise

RECIPES = Path(__file__).parent.parent / "recipes" / "niu"
ONLY = ("rate=0,0.1,0.2,0.3,0.4,0.5", "seed=1,2,3")
MEASURES = ("ndcg@10", "map", "map:letor")


def summary_of(
    name: str, store: str, measures: Sequence[str] = MEASURES, only: Sequence[str] = ONLY
) -> Summary:
    recipe = read_recipe(RECIPES / f"{name}.toml")
    with Store(store) as runs:
        cells = plan(recipe, runs, only=only)
        records = collect(cells, runs, recipe.name)
    if len(records) < len(cells):
        sys.exit(
            f"{name}: {len(cells) - len(records)} of {len(cells)} cells are not in {store}; run it first"
        )
    return summarise(records, measures=measures, expected=[cell.inputs for cell in cells])


def draw(parts: dict[str, Summary], store: str, folder: Path) -> None:
    names = {"dnoise": "against dNoise", "pnoise": "against pNoise"}
    for name, picture in (("uniform", "kept"), ("grades", "grades"), ("balance", "balance")):
        panels = [
            replace(panel, title=f"{panel.title}, {names[axis]}")
            for axis in names
            for panel in kept_panels(parts[name], "ndcg@10", axis, floor="random")
        ]
        print(save_picture(panels, folder / f"niu-{picture}.svg", width=400))
    five = f"dataset={','.join(parts['uniform'].datasets)}"
    labels = summary_of("pnoise", store, ["pnoise", "pnoise:expected"], [*ONLY, five])
    print(save_picture(pair_noise_panels(labels), folder / "niu-pnoise.svg"))


def main(store: str = ".cleanrank/runs.sqlite", folder: str | None = None) -> None:
    parts = {name: summary_of(name, store) for name in ("uniform", "grades", "balance")}
    collapses = {}
    for method in ("lambdarank", "GBDT"):
        for measure, floor in (
            ("ndcg@10", None),
            ("ndcg@10", "random"),
            ("map", "random"),
            ("map:letor", None),
        ):
            for label, chosen in (("five data sets", ["uniform"]), ("all twelve", list(parts))):
                points = {
                    (k.dataset, k.level): k
                    for name in chosen
                    for k in kept(parts[name], measure, method, floor=floor)
                }
                above = " above random" if floor else ""
                collapses[f"{method}, {measure}{above}: {label}"] = collapse(
                    list(points.values()), resamples=1000
                )
    print(collapse_table(collapses).markdown())
    if folder is not None:
        draw(parts, store, Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
