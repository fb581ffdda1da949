"""Which explains the loss better over all data sets, document noise or pair noise?

Reads the runs of recipes/niu/{uniform,grades,balance}.toml from a store (commands: docs/results/niu.md) and
prints the table of the collapse: python examples/niu_collapse.py [STORE]
"""

import sys
from pathlib import Path

from cleanrank.experiments.driver import collect, plan
from cleanrank.experiments.recipe import read_recipe
from cleanrank.experiments.store import Store
from cleanrank.report.collapse import collapse, kept
from cleanrank.report.grid_tables import collapse_table
from cleanrank.report.summaries import Summary, summarise

RECIPES = Path(__file__).parent.parent / "recipes" / "niu"
ONLY = ("rate=0,0.1,0.2,0.3,0.4,0.5", "seed=1,2,3")
MEASURES = ["ndcg@10", "map", "map:letor"]


def summary_of(name: str, store: str) -> Summary:
    recipe = read_recipe(RECIPES / f"{name}.toml")
    with Store(store) as runs:
        cells = plan(recipe, runs, only=ONLY)
        records = collect(cells, runs, recipe.name)
    if len(records) < len(cells):
        sys.exit(
            f"{name}: {len(cells) - len(records)} of {len(cells)} cells are not in {store}; run it first"
        )
    return summarise(records, measures=MEASURES, expected=[cell.inputs for cell in cells])


def main(store: str = ".cleanrank/runs.sqlite") -> None:
    parts = {name: summary_of(name, store) for name in ("uniform", "grades", "balance")}
    found = {}
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
                found[f"{method}, {measure}{above}: {label}"] = collapse(
                    list(points.values()), resamples=1000
                )
    print(collapse_table(found).markdown())


if __name__ == "__main__":
    main(*sys.argv[1:])
