"""The report card: how much of what label noise costs each method recovers, and what that takes.

Runs the recipes of recipes/recovery (the card; language models as judges; detection; what judgements buy),
which a store remembers, so that a run that is stopped goes on where it was. Prints the tables; ``--write``
puts the runs into results/recovery and the figures into benchmarks/results/recovery.json. What was not
computed whole is left out and named, so that a run that was stopped can be written too (``--stored``).

    python benchmarks/recovery.py --quick            # one fold, one seed
    python benchmarks/recovery.py --only seed=1      # the first seed; then the rest without --only
    python benchmarks/recovery.py --stored --write
    python benchmarks/pages.py recovery
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

from cards.goals import HUNDRED, NOTHING, THREE, goals_table
from cards.pictures import cost_panels, detection_panel, gains_panel, settings_panel, shares_panel
from cards.sections import AS_JUDGED, DETECTED, LINES, RECIPES, Cards, cost_sections, make_cards, sections_of
from cards.tables import averages_table, detection_table, gains_table, losses_table, pooled_table
from timing import write_result

from cleanrank.experiments.cells import filter_cells
from cleanrank.experiments.driver import Reproduction, Tally, reproduce
from cleanrank.experiments.recipe import read_recipe
from cleanrank.experiments.results import export
from cleanrank.experiments.store import Store
from cleanrank.experiments.studies import algorithm
from cleanrank.experiments.tracked import recall, to_travel, tracked_records
from cleanrank.report.images import save_picture
from cleanrank.report.panels import Panel
from cleanrank.types import RunRecord

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
RECIPES_FOLDER = ROOT / "recipes" / "recovery"
PLACE = itemgetter("dataset", "fold", "noise", "rate", "method", "seed")


def main() -> None:
    """Runs what is asked for, prints it, writes it."""
    asked = arguments()
    options = asked.quick, asked.store, asked.jobs, asked.only, asked.stored
    runs = {recipe: run(recipe, *options) for recipe in asked.part or RECIPES}
    if not any(r.status == "done" for each in runs.values() for r in each.records):
        print("No cell is done yet.")
        return
    cards = make_cards(runs)
    print("\n\n".join(["## What must hold", goals_table(cards.goals).markdown(), *sections_of(cards)]))
    if asked.write:
        write(cards, asked.store)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one fold, one seed, the main settings")
    parser.add_argument("--part", action="append", choices=RECIPES, help="only this part; may be repeated")
    parser.add_argument("--only", action="append", default=[], help="a filter such as dataset=mq2008")
    parser.add_argument("--jobs", type=int, default=None, help="processes; one per core unless given")
    parser.add_argument("--store", default=".cleanrank/recovery.sqlite", help="where results are kept")
    parser.add_argument("--stored", action="store_true", help="compute nothing, show what is stored")
    parser.add_argument("--write", action="store_true", help="write the results that travel and the JSON")
    return parser.parse_args()


def run(
    name: str, quick: bool, store: str, jobs: int | None, only: Sequence[str], stored: bool
) -> Reproduction:
    """Computes the cells of a recipe that are not stored yet."""
    Path(store).parent.mkdir(parents=True, exist_ok=True)
    last = time.monotonic()

    def watch(tally: Tally) -> None:
        nonlocal last
        if time.monotonic() - last > 15:
            last = time.monotonic()
            left = "" if tally.seconds_left is None else f", {tally.seconds_left / 60:.0f} min left"
            print(f"{name}: {tally.finished} of {tally.total} cells{left}", flush=True)

    if stored:
        with Store(store) as runs:
            return known(name, runs, quick=quick, only=only)
    done = reproduce(
        RECIPES_FOLDER / f"{name}.toml", store=store, jobs=jobs, quick=quick, only=only, watch=watch
    )
    for record in done.failed:
        print(f"failed: {record.cell['dataset']}, {record.cell['method']}: {record.error.splitlines()[-1]}")
    return done


def known(
    name: str, runs: Store | None = None, *, quick: bool = False, only: Sequence[str] = ()
) -> Reproduction:
    """What is stored of a recipe, in results/ and in a store; nothing is computed."""
    recipe = read_recipe(RECIPES_FOLDER / f"{name}.toml")
    recipe = recipe.reduced() if quick else recipe
    found = recall(recipe, runs, folder=RESULTS, older=True)
    cells = tuple(filter_cells(found.cells, only))
    wanted = {PLACE(cell.inputs) for cell in cells}
    records = tuple(r for r in found.records if PLACE(r.cell) in wanted)
    return Reproduction(recipe, cells, records, Tally(len(cells), stored=len(records)))


def write(cards: Cards, store: str) -> None:
    """The runs as files that travel, from which the pages are made, and the figures as JSON."""
    with Store(store) as runs:
        for name in cards.runs:
            path = RESULTS / "recovery" / f"{name}.parquet"
            records = to_travel(f"recovery/{name}", runs, tracked_records(f"recovery/{name}", RESULTS))
            export(records, path, values="detection" not in name)
    result: dict[str, Any] = {"goals": [plain(g) for g in cards.goals]}
    if cards.card:
        result["averages"] = [plain(a) for a in cards.card.averages]
        result["settings"] = [plain(s) for s in cards.card.settings]
        result["shares"] = [plain(r) for r in cards.card.rows]
    if cards.unharmed:
        result["no noise"] = compared_json(cards.unharmed)
    if cards.judges:
        result["judges"] = compared_json(cards.judges)
    if cards.detection:
        result["detectors"] = [plain(d) for d in cards.detection.detectors]
    if cards.judged_detection:
        result["detectors on judges"] = [plain(d) for d in cards.judged_detection.detectors]
    if cards.cost:
        result["cost"] = [plain(r) for r in cards.cost.rows]
    result["minutes"] = {
        name: round(sum(r.wall_seconds for r in each.records) / 60, 1) for name, each in cards.runs.items()
    }
    write_result("recovery", result)


def compared_json(card: Any) -> list[dict[str, Any]]:
    """Gains by data set and method, and their means."""
    rows = [
        {"dataset": d, "method": m, "mean": round(card.means[d, m], 4), "gain": plain(gain)}
        for (d, m), gain in card.gains.items()
    ]
    return rows + [
        {"dataset": "mean", "method": m, "gain": plain(average)}
        for m in card.methods
        if (average := card.average(m)) is not None
    ]


@cache
def tracked() -> Cards:
    """The cards of the runs in results/recovery."""
    return make_cards({name: known(name) for name in RECIPES})


def goals_text() -> str:
    """What must hold."""
    return goals_table(tracked().goals).markdown()


def sections_text() -> str:
    """All tables."""
    parts = ["## What must hold", goals_text(), *sections_of(tracked())]
    return "\n\n".join(part.strip("\n") for part in parts)


def card_text() -> str:
    """The averages of the card."""
    card = tracked().card
    assert card is not None
    few = (
        f"{len(card.settings)} settings of data set and noise; in {sum(s.clear for s in card.settings)} of "
        "them the loss is clearly above 0."
    )
    return f"{few}\n\n{averages_table(card, tracked().old).markdown()}"


def unharmed_text() -> str:
    """What methods do where nothing is wrong."""
    unharmed = tracked().unharmed
    assert unharmed is not None
    return gains_table(unharmed, "data set", unharmed.base).markdown()


def judges_text() -> str:
    """What methods do with the labels of language models, by collection."""
    judges = tracked().judges
    assert judges is not None
    return "\n\n".join(
        f"**{group}**\n\n{gains_table(judges, 'judge', AS_JUDGED, group).markdown()}"
        for group in dict.fromkeys(judges.datasets.values())
    )


def ran_text() -> str:
    """What ran, and when."""
    runs = tracked().runs.values()
    records = [r for each in runs for r in each.records]
    last = datetime.fromisoformat(max(r.started_at for r in records))
    names = [r.cell["algorithm"] for r in records if is_earlier(r)]
    old = ", ".join(f"{names.count(name):,} of {name}" for name in dict.fromkeys(names))
    behind = f" Not run again since the method changed: {old}." if old else ""
    minutes = sum(r.wall_seconds for r in records) / 60
    versions = ", ".join(f"{k} {v}" for k, v in records[0].versions.items())
    return (
        f"{last:%d %B %Y}; {len(records):,} of {sum(len(each.cells) for each in runs):,} cells, which took "
        f"{minutes:.0f} minutes in sum on one core each; {versions}. What ran of each part is said at the "
        f"end of the page.{behind}"
    )


def is_earlier(record: RunRecord) -> bool:
    """Whether an earlier version of its method gave a result."""
    return bool(record.cell["version"] != algorithm(record.cell["algorithm"]).version)


def judge_panels() -> list[Panel]:
    """Gains on the labels of language models, a panel per collection."""
    judges = tracked().judges
    assert judges is not None
    groups = dict.fromkeys(judges.datasets.values())
    return [gains_panel(judges, (NOTHING, THREE), AS_JUDGED, group) for group in groups]


TEXTS: dict[str, Callable[[], str]] = {
    "ran": ran_text,
    "sections": sections_text,
    "goals": goals_text,
    "card": card_text,
    "by-noise": lambda: pooled_table(tracked().card, lambda s: s.level.label).markdown(),
    "by-data": lambda: pooled_table(tracked().card, lambda s: s.dataset).markdown(),
    "losses": lambda: losses_table(tracked().card).markdown(),
    "no-noise": unharmed_text,
    "judges": judges_text,
    "detection": lambda: detection_table(tracked().detection).markdown(),
    "judges-detection": lambda: detection_table(tracked().judged_detection).markdown(),
    "cost": lambda: "\n\n".join(cost_sections(tracked().cost)[1:]),
}
PANELS: dict[str, Callable[[], Sequence[Panel]]] = {
    "shares": lambda: [shares_panel(tracked().card)],
    "settings": lambda: [settings_panel(tracked().card)],
    "no-noise": lambda: [gains_panel(tracked().unharmed, (NOTHING, HUNDRED, THREE), tracked().unharmed.base)],
    "judges": judge_panels,
    "detection": lambda: [detection_panel(tracked().detection, DETECTED[:2])],
    "judges-detection": lambda: [detection_panel(tracked().judged_detection, DETECTED[:2])],
    "cost": lambda: cost_panels(tracked().cost, LINES),
}
PICTURES: dict[str, Callable[[Path], object]] = {
    f"recovery-{name}.svg": lambda path, panels=panels: save_picture(panels(), path)
    for name, panels in PANELS.items()
}


def plain(value: Any) -> Any:
    """A dataclass as JSON: four digits, and nothing twice."""
    values = json.loads(json.dumps(asdict(value)), parse_float=lambda text: round(float(text), 4))
    return {name: each for name, each in values.items() if name not in ("worst", "below")}


if __name__ == "__main__":
    main()
