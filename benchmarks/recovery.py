"""The report card: how much of what label noise costs each method recovers, and what that takes.

Runs the recipes of recipes/recovery (the card; language models as judges; detection; what judgements buy),
which a store remembers, so that a run that is stopped goes on where it was. Prints the tables; ``--write``
makes docs/results/recovery.md with its pictures, and results/recovery.json. What was not computed whole is
left out and named, so that a run that was stopped can be written too (``--stored``).

    python benchmarks/recovery.py --quick            # one fold, one seed
    python benchmarks/recovery.py --only seed=1      # the first seed; then the rest without --only
    python benchmarks/recovery.py --stored --write
"""

import argparse
import datetime
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cards.goals import HUNDRED, NOTHING, THREE, goals_table
from cards.pictures import cost_panels, detection_panel, gains_panel, settings_panel, shares_panel
from cards.sections import AS_JUDGED, DETECTED, LINES, RECIPES, Cards, cost_sections, make_cards, sections_of
from cards.tables import averages_table, detection_table, gains_table, losses_table
from pages import fill
from timing import write_result

from cleanrank.data.files import written_whole
from cleanrank.experiments.driver import Reproduction, Tally, collect, plan, reproduce
from cleanrank.experiments.recipe import read_recipe
from cleanrank.experiments.store import Store
from cleanrank.report.images import save_picture

ROOT = Path(__file__).parent.parent


def main() -> None:
    """Runs what is asked for, prints it, writes it."""
    asked = arguments()
    options = asked.quick, asked.store, asked.jobs, asked.only, asked.stored
    runs = {recipe: run(recipe, *options) for recipe in asked.part or RECIPES}
    if not any(r.status == "done" for each in runs.values() for r in each.records):
        print("No cell is done yet.")
        return
    cards = make_cards(runs)
    sections = ["## What must hold", goals_table(cards.goals).markdown(), *sections_of(cards)]
    print("\n\n".join(sections))
    if asked.write:
        write(cards, sections, asked.quick, asked.only)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one fold, one seed, the main settings")
    parser.add_argument("--part", action="append", choices=RECIPES, help="only this part; may be repeated")
    parser.add_argument("--only", action="append", default=[], help="a filter such as dataset=mq2008")
    parser.add_argument("--jobs", type=int, default=None, help="processes; one per core unless given")
    parser.add_argument("--store", default=".cleanrank/recovery.sqlite", help="where results are kept")
    parser.add_argument("--stored", action="store_true", help="compute nothing, show what is stored")
    parser.add_argument("--write", action="store_true", help="write the page, its pictures and the JSON")
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

    recipe = ROOT / "recipes" / "recovery" / f"{name}.toml"
    if stored:
        return of_store(recipe, quick, store, only)
    done = reproduce(recipe, store=store, jobs=jobs, quick=quick, only=only, watch=watch)
    for record in done.failed:
        print(f"failed: {record.cell['dataset']}, {record.cell['method']}: {record.error.splitlines()[-1]}")
    return done


def of_store(path: Path, quick: bool, store: str, only: Sequence[str]) -> Reproduction:
    """What is stored of a recipe, be it whole or not."""
    recipe = read_recipe(path)
    recipe = recipe.reduced() if quick else recipe
    with Store(store) as runs:
        cells = plan(recipe, runs, only=only)
        records = collect(cells, runs, recipe.name)
    return Reproduction(recipe, tuple(cells), records, Tally(len(cells), stored=len(records)))


def write(cards: Cards, sections: Sequence[str], quick: bool, only: Sequence[str]) -> None:
    """The page with the tables, the pictures beside it, the figures as JSON."""
    folder = ROOT / "docs" / "results"
    images = folder / "img"
    images.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {"quick": quick, "goals": [plain(g) for g in cards.goals]}
    if cards.card:
        save_picture([shares_panel(cards.card)], images / "recovery-shares.svg")
        save_picture([settings_panel(cards.card)], images / "recovery-settings.svg")
        result["averages"] = [plain(a) for a in cards.card.averages]
        result["settings"] = [plain(s) for s in cards.card.settings]
        result["shares"] = [plain(r) for r in cards.card.rows]
    if cards.unharmed:
        panel = gains_panel(cards.unharmed, (NOTHING, HUNDRED, THREE), cards.unharmed.base)
        save_picture([panel], images / "recovery-no-noise.svg")
        result["no noise"] = compared_json(cards.unharmed)
    if cards.judges:
        groups = dict.fromkeys(cards.judges.datasets.values())
        panels = [gains_panel(cards.judges, (NOTHING, THREE), AS_JUDGED, group) for group in groups]
        save_picture(panels, images / "recovery-judges.svg")
        result["judges"] = compared_json(cards.judges)
    if cards.detection:
        save_picture([detection_panel(cards.detection, DETECTED[:2])], images / "recovery-detection.svg")
        result["detectors"] = [plain(d) for d in cards.detection.detectors]
    if cards.judged_detection:
        panel = detection_panel(cards.judged_detection, DETECTED[:2])
        save_picture([panel], images / "recovery-judges-detection.svg")
        result["detectors on judges"] = [plain(d) for d in cards.judged_detection.detectors]
    if cards.cost:
        save_picture(cost_panels(cards.cost, LINES), images / "recovery-cost.svg")
        result["cost"] = [plain(r) for r in cards.cost.rows]
    result["minutes"] = {
        name: round(sum(r.wall_seconds for r in each.records) / 60, 1) for name, each in cards.runs.items()
    }
    with written_whole(folder / "recovery.md") as page:
        texts = [*opening(cards, quick, only), *sections]
        page.write_text("\n\n".join(s.strip("\n") for s in texts) + "\n", encoding="utf-8")
    fill(ROOT / "docs" / "how-much-can-be-won-back.md", summaries(cards))
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


def summaries(cards: Cards) -> dict[str, str]:
    """The short tables of docs/how-much-can-be-won-back.md, by the name of their place there."""
    parts = {"goals": goals_table(cards.goals).markdown()}
    if cards.card:
        clear = sum(s.clear for s in cards.card.settings)
        few = (
            f"{len(cards.card.settings)} settings of data set and noise; in {clear} of them the loss is "
            "clearly above 0."
        )
        parts["card"] = f"{few}\n\n{averages_table(cards.card, cards.old).markdown()}"
        parts["losses"] = losses_table(cards.card).markdown()
    if cards.unharmed:
        parts["no-noise"] = gains_table(cards.unharmed, "data set", cards.unharmed.base).markdown()
    if cards.judges:
        tables = [
            f"**{group}**\n\n{gains_table(cards.judges, 'judge', AS_JUDGED, group).markdown()}"
            for group in dict.fromkeys(cards.judges.datasets.values())
        ]
        parts["judges"] = "\n\n".join(tables)
    if cards.detection:
        parts["detection"] = detection_table(cards.detection).markdown()
    if cards.judged_detection:
        parts["judges-detection"] = detection_table(cards.judged_detection).markdown()
    if cards.cost:
        parts["cost"] = "\n\n".join(cost_sections(cards.cost)[1:])
    return parts


def opening(cards: Cards, quick: bool, only: Sequence[str]) -> list[str]:
    """What ran, when, and how to read it."""
    options = [*(["--quick"] if quick else []), *(f"--only {text}" for text in only), "--write"]
    command = " ".join(["python benchmarks/recovery.py", *options])
    records = [r for each in cards.runs.values() for r in each.records]
    planned = sum(len(each.cells) for each in cards.runs.values())
    minutes = sum(r.wall_seconds for r in records) / 60
    versions = ", ".join(f"{k} {v}" for k, v in records[0].versions.items())
    return [
        "# The report card",
        f"    {command}",
        f"{datetime.date.today():%d %B %Y}; {len(records):,} of {planned:,} cells, which took {minutes:.0f} "
        f"minutes in sum on one core each; {versions}. What ran of each part is said at the end of the page.",
        READING,
    ]


def plain(value: Any) -> Any:
    """A dataclass as JSON: four digits, and nothing twice."""
    values = json.loads(json.dumps(asdict(value)), parse_float=lambda text: round(float(text), 4))
    return {name: each for name, each in values.items() if name not in ("worst", "below")}


READING = """\
NDCG@10 (exponential gain, queries without relevant documents count 1) on clean test data. Recovered share =
(method - noisy-trained) / (clean-trained - noisy-trained): 1 is all that noise costs, 0 nothing, below 0
harm. *clean-trained* learns from true grades and is stopped and tuned on true grades; beside it stands the
ceiling of earlier cards, which is stopped and tuned on noisy validation data. In brackets 95 % of a bootstrap
over test queries and seeds. A setting whose loss is not clearly above 0 (its interval includes 0) has nothing
to recover, and no share. *Pooled* is the sum of all gains over the sum of all losses; *mean of settings*
averages the shares of the settings that have one. Every row is tuned with the same grid (7 or 31 leaves, at
least 20 or 200 documents a leaf, up to 150 trees) on validation data that are as noisy as the training data,
and the four forests are averaged.
*Judgements* are training rows judged again; nothing else is paid for. *posterior*, *grades* and *gains alone*
are the single strategies of RobustRanker, nothing known.

Noise: *uniform* moves a grade to any other with the rate as probability; *uneven* errs to near grades, and
up to three times as often on high grades; *one-way* gives grade 0 the top grade; *missed* gives relevant
documents grade 0; *hard-documents* errs on documents whose features look like another grade; *clicks* has no
judges at all: a weak ranker (trained on one query in twenty) shows every list five times to position-based
users who click an examined document of grade 0 with the rate as probability, a clicked document counts as top
grade and any other as grade 0, and clean-trained has the true grades. *judge* injects nothing: labels are
those of a language model, brought to 0 to 3 as `cleanrank.data.judged` says, and NIST's are the reference."""


if __name__ == "__main__":
    main()
