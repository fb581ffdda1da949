"""PeerRank and its rivals: the tables and pictures of docs/results/peerrank.md.

Sums up a store of runs in benchmarks/results/peerrank.json, from which pages.py makes the page; nothing is
trained here. Gains need the value of every query, which is too much to track, so they are computed once.

    cleanrank reproduce peerrank/here --store peer.sqlite     # and the other recipes/peerrank/here-*.toml
    python benchmarks/peerrank_tables.py peer.sqlite
    python benchmarks/pages.py peerrank_tables

Rows named "X + peer" have the bases "X" and "X, all pairs"; every other row those of RankNet.
"""

import argparse
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from cards.gains import Gain, crossed_interval, gains
from timing import RESULTS

from cleanrank.data.files import written_whole
from cleanrank.experiments.figures import figures_of
from cleanrank.experiments.recipe import find_recipe, read_recipe
from cleanrank.experiments.store import Store
from cleanrank.experiments.tracked import recall
from cleanrank.report.images import save_picture
from cleanrank.report.panels import Panel, Point
from cleanrank.report.table import Table, number
from cleanrank.types import FloatArray, RunRecord

RECIPES = ("here", "here-alphas", "here-rankers", "here-levels", "here-letor")
EPOCHS, RATES = "here-epochs", "here-rates"
NDCG, MAP = "ndcg@10:skip", "map:skip"
ALL, STRICT, EXPECTED, PEER = ", all pairs", "RankNet", ", expected", "PeerRank"
PICTURED = ("here-alphas", "here-levels")
FEWEST_SEEDS = 3
Level = Mapping[str, Any]
# Of Tab. 7: users and noise.
USERS = {
    ("pbm-attracted", 1e-06): ("PBM", "none"),
    ("pbm", 0.05): ("PBM", "flips .05"),
    ("pbm-quoted", 0.05): ("PBM", "flips as quoted: e+ .5037, e- .0373"),
    ("pbm-attracted", 0.1): ("PBM", "attraction .1"),
    ("ccm-attracted", 1e-06): ("CCM", "none"),
    ("ccm", 0.05): ("CCM", "flips .05"),
    ("ccm-attracted", 0.1): ("CCM", "attraction .1"),
}
STANDS_FOR = {"Yahoo-shaped": "Yahoo LTRC set 1", "Long lists": "Istella-S"}


def summed_up(store: Path) -> dict[str, Any]:
    """All figures of the page."""
    with Store(store) as runs:
        known = {
            name: recall(read_recipe(find_recipe(f"peerrank/{name}")), runs)
            for name in (*RECIPES, EPOCHS, RATES)
        }
    records = {name: [r for r in each.records if r.status == "done"] for name, each in known.items()}
    return {
        "cells": {name: [len(records[name]), len(known[name].cells)] for name in known},
        "minutes": {name: sum(r.wall_seconds for r in records[name]) / 60 for name in known},
        "versions": {name: records["here"][0].versions[name] for name in ("numpy", "torch")},
        "levels": {name: list(levels(records[name], name in PICTURED)) for name in RECIPES},
        "curves": curves(records[EPOCHS]),
        "rates": rates(records[RATES]),
    }


def levels(records: Sequence[RunRecord], pictured: bool) -> Iterator[dict[str, Any]]:
    """The rows of every data set, noise and measure, over the seeds that all methods have."""

    def level_of(record: RunRecord) -> tuple[str, str, float]:
        return record.cell["dataset"], record.cell["noise"], record.cell["rate"]

    for level in dict.fromkeys(map(level_of, records)):
        here = [r for r in records if level_of(r) == level]
        for measure in (NDCG, MAP):
            values = by_method(here, measure)
            against = {label: bases(label) for label in values}
            compared = gains_of(values, against)
            rows = []
            for label, table in values.items():
                means = table.mean(axis=1)
                interval = crossed_interval(table) if pictured else ()
                rows.append(
                    {
                        "method": label,
                        "mean": rounded(means.mean()),
                        "sd": rounded(means.std(ddof=1)) if len(means) > 1 else None,
                        "interval": [rounded(end) for end in interval],
                        "chosen": chosen(here, label),
                        "gains": {
                            base: {
                                "mean": rounded(gain.mean),
                                "interval": [rounded(gain.low), rounded(gain.high)],
                                "won": [gain.won, gain.seeds],
                                "verdict": gain.verdict,
                            }
                            for base in against[label]
                            if (gain := compared.get((label, base)))
                        },
                    }
                )
            seeds, queries = next(iter(values.values())).shape
            yield {
                **dict(zip(("dataset", "noise", "rate"), level, strict=True)),
                "measure": measure,
                "seeds": seeds,
                "queries": queries,
                "rows": rows,
            }


def gains_of(
    values: Mapping[str, FloatArray], against: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str], Gain]:
    """Gains with intervals; with too few seeds for a verdict, without tests."""
    seeds = len(next(iter(values.values())))
    if seeds >= FEWEST_SEEDS:
        return gains(values, against)
    nan, out = float("nan"), {}
    for method, base in ((m, b) for m in values for b in against[m] if b in values and b != m):
        d = values[method] - values[base]
        won = int((d.mean(axis=1) > 0).sum())
        out[method, base] = Gain(float(d.mean()), *crossed_interval(d), won, seeds, nan, nan)
    return out


def by_method(records: Sequence[RunRecord], measure: str) -> dict[str, FloatArray]:
    """Method -> values (seeds, queries) of the seeds that all have; folds are put together."""
    by = {(r.cell["method"], r.cell["seed"], r.cell["fold"]): r.values[measure] for r in records}
    labels = list(dict.fromkeys(method for method, _, _ in by))
    folds = sorted({fold for _, _, fold in by})
    seeds = [
        s
        for s in sorted({seed for _, seed, _ in by})
        if all((m, s, fold) in by for m in labels for fold in folds)
    ]
    whole = np.array([[np.concatenate([by[m, s, f] for f in folds]) for s in seeds] for m in labels])
    counted = ~np.isnan(whole).any(axis=(0, 1))
    return dict(zip(labels, whole[:, :, counted], strict=True))


def bases(label: str) -> tuple[str, ...]:
    """What a method is compared with: its base on strict pairs, on all pairs, and sampled peers."""
    plain = label.removesuffix(EXPECTED)
    name = plain.removesuffix(" + peer") if plain.endswith(" + peer") else STRICT
    return (name, name + ALL, *([plain] if plain != label else []))


def chosen(records: Sequence[RunRecord], label: str) -> str:
    """Which epochs and alphas validation chose."""
    mine = [r.chosen for r in records if r.cell["method"] == label]
    epochs = sorted(int(c["epochs"]) for c in mine)
    span = f"{epochs[0]} to {epochs[-1]}" if epochs[0] < epochs[-1] else str(epochs[0])
    alphas = dict.fromkeys(f"{c['alpha']:g}" for c in mine if "alpha" in c)
    named = "tuned" in label or "auto" in label
    return "; ".join([span, *([f"alpha {', '.join(alphas)}"] if named else [])])


def curves(records: Sequence[RunRecord]) -> dict[str, Any]:
    """Labels -> method -> the curve of every seed."""
    return {
        labels: {
            method: [
                [rounded(v) for v in r.chosen["curves"][labels]]
                for r in sorted(records, key=lambda r: r.cell["seed"])
                if r.cell["method"] == method
            ]
            for method in dict.fromkeys(r.cell["method"] for r in records)
        }
        for labels in ("true", "given")
    }


def rates(records: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Mean and standard deviation over seeds of the click rate and of the flips."""
    out = []
    for dataset in dict.fromkeys(r.cell["dataset"] for r in records):
        for noise, rate in USERS:
            mine = [
                r.means
                for r in records
                if (r.cell["dataset"], r.cell["noise"], r.cell["rate"]) == (dataset, noise, rate)
            ]
            figures = {name: [m[name] for m in mine] for name in ("positives", "lost", "made up")}
            means = {name: rounded(np.mean(values)) for name, values in figures.items()}
            sd = rounded(np.std(figures["positives"], ddof=1))
            out.append({"dataset": dataset, "noise": noise, "rate": rate, "sd": sd, **means})
    return out


def rounded(value: float) -> float:
    """Five digits: one more than is shown."""
    return round(float(value), 5)


@cache
def figures() -> dict[str, Any]:
    """What was summed up."""
    summary: dict[str, Any] = json.loads((RESULTS / "peerrank.json").read_text())
    return summary


def level(recipe: str, measure: str = NDCG, **wanted: Any) -> Level:
    """The rows of one data set, noise and measure."""
    wanted["measure"] = measure
    return next(each for each in figures()["levels"][recipe] if all(each[k] == v for k, v in wanted.items()))


def words(gain: Mapping[str, Any] | None) -> str:
    """A gain in a cell."""
    if gain is None:
        return ""
    low, high = gain["interval"]
    won, seeds = gain["won"]
    verdict = gain["verdict"] if gain["verdict"] == "no clear gain" else f"**{gain['verdict']}**"
    if seeds < FEWEST_SEEDS:  # too few for a verdict
        verdict = f"{won}/{seeds} seeds"
    return f"{gain['mean']:+.4f} [{low:+.4f}, {high:+.4f}] {verdict}"


def table(recipe: str, measure: str, **wanted: Any) -> str:
    """A line per method, against both of its bases."""
    head = ["method", "mean (sd)", "against strict pairs", "against all pairs", "epochs"]
    lines = []
    for row in level(recipe, measure, **wanted)["rows"]:
        strict, every, *_ = bases(row["method"])
        spread = "" if row["sd"] is None else f" ({row['sd']:.4f})"
        cells = [words(row["gains"].get(base)) for base in (strict, every)]
        lines.append([row["method"], f"{row['mean']:.4f}{spread}", *cells, row["chosen"]])
    return Table(head, lines, align="l" * len(head)).markdown()


def by_name(each: Level) -> dict[str, Mapping[str, Any]]:
    """The rows of a level by method."""
    return {row["method"]: row for row in each["rows"]}


def rankers(dataset: str, measure: str) -> str:
    """Four rankers under four kinds of clicks, peers sampled and expected."""
    head = [
        "users, noise",
        "ranker",
        "strict pairs",
        "all pairs",
        "+ peer",
        "expected",
        "+ peer against strict",
    ]
    head += ["+ peer against all pairs"]
    lines = []
    for each in figures()["levels"]["here-rankers"]:
        if (each["dataset"], each["measure"]) != (dataset, measure):
            continue
        rows = by_name(each)
        for name in ("SVMRank", "RankNet", "LambdaRank", "DirectRanker"):
            peer = rows[f"{name} + peer"]
            means = [
                rows[n]["mean"] for n in (name, name + ALL, f"{name} + peer", f"{name} + peer{EXPECTED}")
            ]
            cells = [words(peer["gains"][base]) for base in (name, name + ALL)]
            lines.append([f"{each['noise']} {each['rate']:g}", name, *map(number, means), *cells])
    return Table(head, lines, align="ll" + "r" * 4 + "ll").markdown()


def rankers_count() -> str:
    """In how many rows of both measures peers have the higher mean."""
    gained = [
        [row["gains"][base]["mean"] > 0 for base in bases(row["method"])]
        for each in figures()["levels"]["here-rankers"]
        for row in each["rows"]
        if row["method"].endswith(" + peer")
    ]
    strict, every = (sum(column) for column in zip(*gained, strict=True))
    return (
        f"Of the {len(gained)} rows of both data sets and both measures, sampled peers have the higher mean "
        f"in {strict} against strict pairs and in {every} against all pairs."
    )


def flips(measure: str) -> str:
    """Peers over the share of flipped clicks."""
    head = ["flips", "RankNet", "all pairs", "tuned (alpha)", "tuned, expected", "auto (alpha)"]
    head += ["tuned against strict", "tuned against all pairs", "auto against all pairs"]
    lines = []
    for each in figures()["levels"]["here-levels"]:
        if each["measure"] == measure:
            rows = by_name(each)
            tuned, auto = rows[f"{PEER}, tuned"], rows[f"{PEER}, auto"]
            alpha = {row["method"]: f" ({row['chosen'].partition('alpha ')[2]})" for row in (tuned, auto)}
            shown = (STRICT, STRICT + ALL, f"{PEER}, tuned", f"{PEER}, tuned{EXPECTED}", f"{PEER}, auto")
            means = [f"{rows[name]['mean']:.4f}{alpha.get(name, '')}" for name in shown]
            gained = [words(tuned["gains"][base]) for base in (STRICT, STRICT + ALL)]
            lines.append([f"{each['rate']:g}", *means, *gained, words(auto["gains"][STRICT + ALL])])
    return Table(head, lines, align="l" + "r" * 5 + "l" * 3).markdown()


def expected_against_sampled() -> str:
    """What expected peers change, row by row."""
    head = ["recipe", "data, noise", "row", "NDCG@10, expected minus sampled"]
    lines = []
    for recipe in RECIPES:
        for each in figures()["levels"][recipe]:
            for row in each["rows"]:
                name = row["method"].removesuffix(EXPECTED)
                if each["measure"] == NDCG and name != row["method"] and name in row["gains"]:
                    place = f"{each['dataset']}, {each['noise']} {each['rate']:g}"
                    lines.append([recipe, place, name, words(row["gains"][name])])
    return Table(head, lines, align="llll").markdown()


def epochs_table(labels: str) -> str:
    """Mean and spread over seeds of the validation measure at some epochs."""
    by = figures()["curves"][labels]
    shown = [e for e in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32) if e <= len(next(iter(by.values()))[0])]
    lines = []
    for epoch in shown:
        at = {method: np.array([curve[epoch - 1] for curve in seeds]) for method, seeds in by.items()}
        spread = {m: v.std(ddof=1) if len(v) > 1 else 0.0 for m, v in at.items()}
        lines.append([str(epoch), *(f"{v.mean():.4f} ({spread[m]:.4f})" for m, v in at.items())])
    return Table(["epoch", *by], lines, align="r" * (1 + len(by))).markdown()


def rates_table() -> str:
    """Click rates beside those of Tab. 7."""
    head = ["data", "users", "noise", "published", "here (sd)", "clicks lost (e+)", "clicks made up (e-)"]
    lines = []
    printed = {
        (f.dataset, f.noise, f.rate): f.expected for f in figures_of("peerrank/table7") if f.table == "Tab. 7"
    }
    for dataset, whole in STANDS_FOR.items():
        rows = {(r["noise"], r["rate"]): r for r in figures()["rates"] if r["dataset"] == dataset}
        for key, (users, noise) in USERS.items():
            row = rows[key]
            cells = [
                f"{row['positives']:.4f} ({row['sd']:.4f})",
                f"{row['lost']:.4f}",
                f"{row['made up']:.4f}",
            ]
            lines.append([dataset, users, noise, printed.get((whole, *key), ""), *cells])
    return Table(head, lines, align="lllrrrr").markdown()


def ran() -> str:
    """What was run."""
    found = figures()
    cells = ", ".join(f"`{name}` {done} of {whole}" for name, (done, whole) in found["cells"].items())
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    minutes = sum(spent for name, spent in found["minutes"].items() if name != "here-letor")
    return f"Cells that ran: {cells}; {minutes:.0f} minutes of processes that shared an H200; {versions}."


def rows_panel(rows: Mapping[tuple[str, float], Mapping[str, Any]], x_title: str, title: str) -> Panel:
    """Rows with their intervals over an axis."""
    points = [
        Point(method, x, row["mean"], *row["interval"])
        for (method, x), row in sorted(rows.items(), key=lambda item: item[0][1])
    ]
    methods = tuple(dict.fromkeys(method for method, _ in rows))
    xs = tuple(sorted({x for _, x in rows}))
    return Panel("curves", methods, xs, tuple(points), title=title, measure=NDCG, x_title=x_title)


def alpha_panel() -> Panel:
    """NDCG over alpha; alpha 0 is RankNet on all pairs."""
    rows = by_name(level("here-alphas"))
    alphas = {m: float(c[1]) for m in rows if (c := re.fullmatch(rf"{PEER}, ([\d.]+)", m))}
    places = {(PEER, 0.0): rows[STRICT + ALL], **{(PEER, a): rows[m] for m, a in alphas.items() if a > 0.01}}
    places |= {(STRICT, x): rows[STRICT] for x in sorted({x for _, x in places})}
    return rows_panel(places, "alpha (0: no peers)", "Yahoo-shaped, over alpha")


def flips_panel() -> Panel:
    """NDCG over the share of flipped clicks."""
    shown = (STRICT, STRICT + ALL, f"{PEER}, tuned", f"{PEER}, auto")
    places = {
        (method, each["rate"]): by_name(each)[method]
        for each in figures()["levels"]["here-levels"]
        if each["measure"] == NDCG
        for method in shown
    }
    return rows_panel(places, "share of clicks flipped", "Yahoo-shaped, over flips")


def epochs_panel(labels: str) -> Panel:
    """The validation measure during training: means over seeds, from the lowest to the highest seed."""
    points, by = [], figures()["curves"][labels]
    for method, seeds in by.items():
        curve = np.array(seeds)
        for epoch, column in enumerate(curve.T, start=1):
            points.append(Point(method, float(epoch), column.mean(), column.min(), column.max()))
    xs = tuple(float(e) for e in range(1, len(next(iter(by.values()))[0]) + 1))
    title = f"Validation, {labels} labels"
    return Panel("curves", tuple(by), xs, tuple(points), title=title, measure=NDCG, x_title="epoch")


TEXTS: dict[str, Callable[[], str]] = {
    "ran": ran,
    "rivals NDCG": partial(table, "here", NDCG),
    "rivals MAP": partial(table, "here", MAP),
    "alphas": partial(table, "here-alphas", NDCG),
    "expected": expected_against_sampled,
    "flips": partial(flips, NDCG),
    "flips MAP": partial(flips, MAP),
    "epochs true": partial(epochs_table, "true"),
    "epochs given": partial(epochs_table, "given"),
    "rankers Yahoo-shaped": partial(rankers, "Yahoo-shaped", NDCG),
    "rankers Yahoo-shaped MAP": partial(rankers, "Yahoo-shaped", MAP),
    "rankers long lists": partial(rankers, "Long lists", NDCG),
    "rankers long lists MAP": partial(rankers, "Long lists", MAP),
    "rankers count": rankers_count,
    "rates": rates_table,
    "MQ2008": partial(table, "here-letor", NDCG, dataset="MQ2008"),
    "picture alpha": lambda: (
        "![NDCG@10 over alpha and over the share of flipped clicks; bands are 95 % intervals "
        "over seeds and queries](img/peerrank-alpha.svg)"
    ),
    "picture epochs": lambda: (
        "![NDCG@10 of validation lists during training, by true labels and by clicks; bands "
        "reach from the lowest to the highest seed](img/peerrank-figure4.svg)"
    ),
}
PICTURES: dict[str, Callable[[Path], object]] = {
    "peerrank-alpha.svg": lambda path: save_picture([alpha_panel(), flips_panel()], path, baseline=STRICT),
    "peerrank-figure4.svg": lambda path: save_picture(
        [epochs_panel("true"), epochs_panel("given")], path, baseline=STRICT
    ),
}


def main() -> None:
    """Sums up the store on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("store", type=Path, help="the runs of recipes/peerrank/here*.toml")
    summary = summed_up(parser.parse_args().store)
    with written_whole(RESULTS / "peerrank.json") as part:
        part.write_text(json.dumps(summary) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
