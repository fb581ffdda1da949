"""The report card: how much of what label noise costs each method recovers, and what that takes.

Runs the recipes of recipes/recovery (the card, detection, what judgements buy), which a store remembers, so
that a run that is stopped goes on where it was. Prints the tables; ``--write`` makes docs/results/recovery.md
with its pictures, and results/recovery.json.

    python benchmarks/recovery.py --quick          # one fold, three seeds
    python benchmarks/recovery.py                  # everything; hours
    python benchmarks/recovery.py --quick --write
"""

import argparse
import datetime
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cards.detection import Detection, detection_card
from cards.pictures import cost_panels, detection_panel, settings_panel, shares_panel
from cards.recovery import Card, Setting, recovery_card
from cards.tables import (
    averages_table,
    detection_by_setting,
    detection_table,
    losses_table,
    settings_table,
    shares_table,
)
from timing import write_result

from cleanrank.data.files import written_whole
from cleanrank.experiments.driver import Reproduction, Tally, collect, plan, reproduce
from cleanrank.experiments.recipe import read_recipe
from cleanrank.experiments.store import Store
from cleanrank.report.charts import save_picture
from cleanrank.report.table import Table

ROOT = Path(__file__).parent.parent
PARTS = ("card", "detection", "cost")
DETECTED = ("average precision", "average precision within grades", "precision", "recall", "base rate")
ROWS = (30, 100, 300, 1000)
LINES: dict[str, Sequence[tuple[int, str]]] = {
    **{
        f"{how} rows corrected": [(0, "noisy-trained"), *((n, f"{n} {how} rows corrected") for n in ROWS)]
        for how in ("random", "stratified", "doubt-ordered")
    },
    **{
        f"RobustRanker ({how} rows)": [
            (0, "RobustRanker (data alone)"),
            *((n, f"RobustRanker ({n} {how} rows)") for n in ROWS),
        ]
        for how in ("random", "stratified", "half-doubtful")
    },
}
GOALS = {"RobustRanker (100 rows)": 0.55, "RobustRanker (300 rows)": 0.65}
RIVALS = {f"RobustRanker ({n} rows)": f"{n} rows corrected" for n in (100, 300)}
REFERENCE = "auto (data alone)"


def main() -> None:
    """Runs what is asked for, prints it, writes it."""
    asked = arguments()
    found = {
        part: run(part, asked.quick, asked.store, asked.jobs, asked.only, asked.stored)
        for part in asked.part or PARTS
    }
    sections = [section for part, run_ in found.items() for section in SECTIONS[part](run_)]
    print("\n\n".join(sections))
    if asked.write:
        write(found, sections, asked.quick, asked.only)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one fold, three seeds, the main settings")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be repeated")
    parser.add_argument("--only", action="append", default=[], help="a filter such as dataset=mq2008")
    parser.add_argument("--jobs", type=int, default=None, help="processes; one per core unless given")
    parser.add_argument("--store", default=".cleanrank/recovery.sqlite", help="where results are kept")
    parser.add_argument("--stored", action="store_true", help="compute nothing, show what is stored")
    parser.add_argument("--write", action="store_true", help="write the page, its pictures and the JSON")
    return parser.parse_args()


def run(
    part: str, quick: bool, store: str, jobs: int | None, only: Sequence[str], stored: bool
) -> Reproduction:
    """Computes the cells of a part that are not stored yet."""
    Path(store).parent.mkdir(parents=True, exist_ok=True)
    told = time.monotonic()

    def watch(tally: Tally) -> None:
        nonlocal told
        if time.monotonic() - told > 15:
            told = time.monotonic()
            left = "" if tally.seconds_left is None else f", {tally.seconds_left / 60:.0f} min left"
            print(f"{part}: {tally.finished} of {tally.total} cells{left}", flush=True)

    recipe = ROOT / "recipes" / "recovery" / f"{part}.toml"
    if stored:
        return of_store(recipe, quick, store, only)
    found = reproduce(recipe, store=store, jobs=jobs, quick=quick, only=only, watch=watch)
    for record in found.failed:
        print(f"failed: {record.cell['dataset']}, {record.cell['method']}: {record.error.splitlines()[-1]}")
    return found


def of_store(path: Path, quick: bool, store: str, only: Sequence[str]) -> Reproduction:
    """What is stored of a part, be it whole or not."""
    recipe = read_recipe(path)
    recipe = recipe.reduced() if quick else recipe
    with Store(store) as runs:
        cells = plan(recipe, runs, only=only)
        records = collect(cells, runs, recipe.name)
    return Reproduction(recipe, tuple(cells), records, Tally(len(cells), stored=len(records)))


def card_sections(found: Reproduction) -> list[str]:
    """Shares over all settings, the goals, what there was to lose, shares by setting."""
    card = recovery_card(found.records)
    parts = ["## Recovered share", averages_table(card).markdown(), goals(card)]
    parts += ["## What noise costs", settings_table(card).markdown()]
    for level in dict.fromkeys(s.level for s in card.settings):
        parts += [f"## {level.label}", shares_table(card, level).markdown()]
    if card.missing:
        parts += ["## Cells that are missing", "\n".join(f"* {gap}" for gap in card.missing[:40])]
    return parts


def goals(card: Card) -> str:
    """What RobustRanker was meant to reach beside what it reached, and what the same rows buy otherwise."""
    averages = {a.method: a for a in card.averages}
    lines = [
        [
            method,
            f"{goal:.2f}",
            "–" if averages[method].share is None else f"{averages[method].share}",
            f"{averages[method].pooled}",
            "; ".join(f"{r.dataset}, {r.level.label}: {r.share}" for r in averages[method].below) or "none",
            f"{card.difference(method, RIVALS[method])}",
        ]
        for method, goal in GOALS.items()
        if method in averages and RIVALS[method] in averages
    ]
    head = [
        "method",
        "goal",
        "mean of settings",
        "pooled",
        "settings below -.05 beyond the interval",
        "pooled share ahead of the same rows corrected",
    ]
    return Table(head, lines).markdown() if lines else ""


def detection_sections(found: Reproduction) -> list[str]:
    """Averages of detectors, and average precision by setting."""
    card = detection(found)
    return [
        "## Detection",
        detection_table(card).markdown(),
        "## Average precision by setting",
        detection_by_setting(card, DETECTED[0]).markdown(),
        "## Average precision within grades by setting",
        detection_by_setting(card, DETECTED[1]).markdown(),
    ]


def detection(found: Reproduction) -> Detection:
    """Detectors compared with the default where it ran."""
    ran = {r.cell["method"] for r in found.records if r.status == "done"}
    return detection_card(found.records, DETECTED, reference=REFERENCE if REFERENCE in ran else None)


def cost_sections(found: Reproduction) -> list[str]:
    """Shares by rows judged again; gains where the loss is not clear."""
    card = recovery_card(found.records)
    parts = ["## What judgements buy"]
    for s in card.settings:
        what = "recovered share" if s.clear else "the loss is not clear, so this is the gain of NDCG@10"
        lines = [
            [f"{n:,}", *(bought(card, s, points[i][1]) for points in LINES.values())]
            for i, n in enumerate((0, *ROWS))
        ]
        parts += [
            f"### {s.dataset}, {s.level.label}: loss {s.loss.value:.4f}; {what}",
            Table(["rows", *LINES], lines).markdown(),
        ]
    return parts


def bought(card: Card, setting: Setting, method: str) -> str:
    """What a method won with its rows."""
    if method == card.noisy:
        return "0"
    row = card.find(setting.dataset, setting.level, method)
    if row is None:
        return "not run"
    if row.share is not None:
        return f"{row.share}"
    return f"{row.gain.value:+.3f} [{row.gain.low:+.3f}, {row.gain.high:+.3f}]"


SECTIONS = {"card": card_sections, "detection": detection_sections, "cost": cost_sections}


def write(
    found: Mapping[str, Reproduction], sections: Sequence[str], quick: bool, only: Sequence[str]
) -> None:
    """The page with the tables, the pictures beside it, the figures as JSON."""
    folder = ROOT / "docs" / "results"
    images = folder / "img"
    images.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {"quick": quick}
    if "card" in found:
        card = recovery_card(found["card"].records)
        save_picture([shares_panel(card)], images / "recovery-shares.svg")
        save_picture([settings_panel(card)], images / "recovery-settings.svg")
        result["averages"] = [plain(a) for a in card.averages]
        result["settings"] = [plain(s) for s in card.settings]
        result["shares"] = [plain(r) for r in card.rows]
    if "detection" in found:
        detected = detection(found["detection"])
        save_picture([detection_panel(detected, DETECTED[:2])], images / "recovery-detection.svg")
        result["detectors"] = [plain(d) for d in detected.detectors]
    if "cost" in found:
        cost = recovery_card(found["cost"].records)
        save_picture(cost_panels(cost, LINES), images / "recovery-cost.svg")
        result["cost"] = [plain(r) for r in cost.rows]
    result["minutes"] = {
        part: round(sum(r.wall_seconds for r in each.records) / 60, 1) for part, each in found.items()
    }
    with written_whole(folder / "recovery.md") as page:
        page.write_text(
            "\n\n".join(s.strip("\n") for s in [*opening(found, quick, only), *sections]) + "\n",
            encoding="utf-8",
        )
    fill(ROOT / "docs" / "how-much-can-be-won-back.md", summaries(found))
    write_result("recovery", result)


def summaries(found: Mapping[str, Reproduction]) -> dict[str, str]:
    """The short tables of docs/how-much-can-be-won-back.md, by the name of their place there."""
    parts = {}
    if "card" in found:
        card = recovery_card(found["card"].records)
        nothing = sum(not s.clear for s in card.settings)
        few = (
            f"{len(card.settings)} settings, {ran(found['card'])}; in {nothing} of them the loss is not "
            "clearly above 0: nothing to recover."
        )
        parts["card"] = f"{few}\n\n{averages_table(card).markdown()}\n{goals(card)}"
        parts["losses"] = losses_table(card).markdown()
    if "detection" in found:
        parts["detection"] = detection_table(detection(found["detection"])).markdown()
    if "cost" in found:
        parts["cost"] = "\n\n".join(cost_sections(found["cost"])[1:])
    return parts


def ran(found: Reproduction) -> str:
    """Folds and seeds in words."""
    folds, seeds = (sorted({r.cell[name] for r in found.records}) for name in ("fold", "seed"))
    words = [f"{n} {', '.join(map(str, v))}" for n, v in (("fold", folds), ("seeds", seeds))]
    return ", ".join(words)


def fill(page: Path, parts: Mapping[str, str]) -> None:
    """Puts texts between the comments <!-- name --> and <!-- end name --> of a page."""
    text = page.read_text(encoding="utf-8")
    for name, words in parts.items():
        opens, closes = f"<!-- {name} -->", f"<!-- end {name} -->"
        before, _, rest = text.partition(opens)
        _, found, after = rest.partition(closes)
        if found:
            text = f"{before}{opens}\n{words.strip()}\n{closes}{after}"
    with written_whole(page) as part:
        part.write_text(text, encoding="utf-8")


def opening(found: Mapping[str, Reproduction], quick: bool, only: Sequence[str]) -> list[str]:
    """What ran, when, and how to read it."""
    options = [*(["--quick"] if quick else []), *(f"--only {text}" for text in only), "--write"]
    command = " ".join(["python benchmarks/recovery.py", *options])
    cells = sum(len(r.records) for r in found.values())
    minutes = sum(r.wall_seconds for f in found.values() for r in f.records) / 60
    first = next(iter(found.values()))
    seeds = sorted({r.cell["seed"] for r in first.records})
    folds = sorted({r.cell["fold"] for r in first.records})
    versions = ", ".join(f"{k} {v}" for k, v in first.records[0].versions.items())
    return [
        "# The report card",
        f"    {command}",
        f"{datetime.date.today():%d %B %Y}; {cells:,} cells that took {minutes:.0f} minutes in sum, two at a "
        f"time; folds {', '.join(map(str, folds))}, seeds {', '.join(map(str, seeds))}; {versions}.",
        READING,
    ]


def plain(value: Any) -> Any:
    """A dataclass as JSON: four digits, and nothing twice."""
    found = json.loads(json.dumps(asdict(value)), parse_float=lambda text: round(float(text), 4))
    return {name: each for name, each in found.items() if name not in ("worst", "below")}


READING = """\
NDCG@10 (exponential gain, queries without relevant documents count 1) on clean test data. Recovered share =
(method - noisy-trained) / (clean-trained - noisy-trained): 1 is all that noise costs, 0 nothing, below 0
harm. In brackets 95 % of a bootstrap over test queries and seeds. A setting whose loss is not clearly above
0 (its interval includes 0) has nothing to recover, and no share. *Mean of settings* averages the shares of
the settings that have one; *pooled* is the sum of all gains over the sum of all losses. Every row is tuned
with the same grid (7 or 31 leaves, at least 20 or 200 documents a leaf, up to 150 trees by early stopping)
on noisy validation data. *Judgements* are training rows judged again; nothing else is paid for.

Noise: *uniform* moves a grade to any other with the rate as probability; *uneven* errs to near grades, and
up to three times as often on high grades; *one-way* gives grade 0 the top grade; *missed* gives relevant
documents grade 0; *clicks* has no judges at all: a weak ranker (trained on one query in twenty) shows every
list five times to position-based users who click an examined document of grade 0 with the rate as
probability, a clicked document counts as top grade and any other as grade 0, and clean-trained has the true
grades."""


if __name__ == "__main__":
    main()
