"""Markdown tables and pictures of stored PeerRank recipes: every row against both bases.

    cd recipes/peerrank
    python ../../benchmarks/peerrank_tables.py --store runs.sqlite here.toml
    python ../../benchmarks/peerrank_tables.py --store runs.sqlite --versus "PeerRank, auto" here.toml
    python ../../benchmarks/peerrank_tables.py --store runs.sqlite --picture FILE.svg here-epochs.toml

Rows named "X + peer" have the bases "X" and "X, all pairs"; every other row those of RankNet. ``--versus``
holds every row against one method instead. ``--picture`` draws the first measure over the flips, the epochs
or the alphas of the recipe, whichever vary; several recipes, with a store each, are panels side by side.
"""

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from cards.gains import RULE, Gain, crossed_interval, gains

from cleanrank.experiments.driver import collect, plan
from cleanrank.experiments.recipe import Recipe, read_recipe
from cleanrank.experiments.store import Store
from cleanrank.report.charts import save_picture
from cleanrank.report.panels import Panel, Point
from cleanrank.report.table import Table
from cleanrank.types import FloatArray, RunRecord

ALL = ", all pairs"
STRICT = "RankNet"
PEER = "PeerRank"
Level = tuple[str, str, float]


def levels(
    recipe: Recipe, records: Sequence[RunRecord], measure: str
) -> Iterator[tuple[Level, dict[str, FloatArray], list[RunRecord]]]:
    """(data set, noise, rate), method -> values (seeds, queries), records; seeds that all methods have."""

    def level_of(record: RunRecord) -> Level:
        return record.cell["dataset"], record.cell["noise"], record.cell["rate"]

    done = [r for r in records if r.status == "done"]
    for level in dict.fromkeys(map(level_of, done)):
        here = [r for r in done if level_of(r) == level]
        labels = [c.label for c in recipe.methods if any(r.cell["method"] == c.label for r in here)]
        by = {(r.cell["method"], r.cell["seed"], r.cell["fold"]): r.values[measure] for r in here}
        folds = sorted({f for _, _, f in by})
        seeds = [
            s for s in sorted({s for _, s, _ in by}) if all((m, s, f) in by for m in labels for f in folds)
        ]
        if not seeds:
            continue
        whole = np.array(
            [[np.concatenate([by[m, s, f] for f in folds]) for s in seeds] for m in labels], dtype=np.float64
        )
        counted = ~np.isnan(whole).any(axis=(0, 1))
        yield level, dict(zip(labels, whole[:, :, counted], strict=True)), here


def bases(label: str) -> tuple[str, str]:
    """The base on strict pairs and the base on all pairs."""
    if label.endswith(" + peer"):
        name = label.removesuffix(" + peer")
        return name, name + ALL
    found = re.search(r", \d+ epochs?$", label)
    end = found.group() if found else ""
    return f"{STRICT}{end}", f"{STRICT}{ALL}{end}"


def table(values: Mapping[str, FloatArray], records: Sequence[RunRecord], versus: str | None) -> str:
    """A line per method."""
    against = {label: (versus,) if versus else bases(label) for label in values}
    compared = gains(values, against)
    columns = [f"against {versus}"] if versus else ["against strict pairs", "against all pairs"]
    head = ["method", "mean (sd over seeds)", *columns, "epochs"]
    rows = []
    for label, table_ in values.items():
        means = table_.mean(axis=1)
        spread = f" ({means.std(ddof=1):.4f})" if len(means) > 1 else ""
        cells = [words(compared.get((label, base))) for base in against[label]]
        rows.append([label, f"{means.mean():.4f}{spread}", *cells, chosen(records, label)])
    return Table(head, rows, align="l" * len(head)).markdown()


def words(found: Gain | None) -> str:
    """A gain in a cell."""
    if found is None:
        return ""
    small = "< .001" if found.p_holm < 0.001 else f"{found.p_holm:.3f}"
    verdict = f"**{found.verdict}**" if found.verdict != "no clear gain" else found.verdict
    interval = f"[{found.low:+.4f}, {found.high:+.4f}]"
    return f"{found.mean:+.4f} {interval}, p {small}, {found.won}/{found.seeds} seeds: {verdict}"


def chosen(records: Sequence[RunRecord], label: str) -> str:
    """Which alphas and epochs validation chose."""
    mine = [r.chosen for r in records if r.cell["method"] == label]
    alphas = list(dict.fromkeys(f"{c['alpha']:g}" for c in mine if "alpha" in c))
    epochs = sorted(int(c["epochs"]) for c in mine if str(c.get("epochs", "")).isdigit())
    span = (
        f"{epochs[0]} to {epochs[-1]}" if epochs and epochs[0] < epochs[-1] else "".join(map(str, epochs[:1]))
    )
    named = alphas if "tuned" in label or "auto" in label else []
    return "; ".join(filter(None, [span, f"alpha {', '.join(named)}" if named else ""]))


def panel(recipe: Recipe, records: Sequence[RunRecord], measure: str) -> Panel:
    """A measure over flips, epochs or alphas, whichever vary, with intervals over seeds and queries."""
    found = [(level, values) for level, values, _ in levels(recipe, records, measure)]
    if len(found) > 1:
        x_title, places = "share of clicks flipped", {(m, lv[2]): v[m] for lv, v in found for m in v}
    elif any("epoch" in m for m in found[0][1]):
        x_title = "epochs"
        cut = {m: re.fullmatch(r"(.*), (\d+) epochs?", m) for m in found[0][1]}
        places = {(c.group(1), float(c.group(2))): found[0][1][m] for m, c in cut.items() if c}
    else:
        x_title, values = "alpha (0: no peers)", found[0][1]
        numbered = {m: re.fullmatch(rf"{PEER}, ([\d.]+)", m) for m in values}
        # .01 cannot be told from 0 on this axis.
        alphas = {m: float(c.group(1)) for m, c in numbered.items() if c and float(c.group(1)) > 0.01}
        places = {(PEER, 0.0): values[STRICT + ALL], **{(PEER, a): values[m] for m, a in alphas.items()}}
        places |= {(STRICT, x): values[STRICT] for x in (0.0, *alphas.values())}
    points = []
    for (method, x), table_ in sorted(places.items(), key=lambda item: item[0][1]):
        low, high = crossed_interval(table_)
        points.append(Point(method, x, float(table_.mean()), low, high))
    methods = tuple(dict.fromkeys(m for m, _ in places))
    xs = tuple(sorted({x for _, x in places}))
    dataset = found[0][0][0]
    named = {"title": f"{dataset}, over {x_title.split(' (')[0]}", "measure": measure, "x_title": x_title}
    return Panel("curves", methods, xs, tuple(points), **named)


def main() -> None:
    """Prints the tables of the recipes on the command line, or draws them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--store", action="append", required=True, help="one for all recipes, or one for each"
    )
    parser.add_argument("--versus", help="hold every row against this method")
    parser.add_argument("--picture", help="draw an SVG or PNG instead of printing tables")
    parser.add_argument("recipes", nargs="+")
    given = parser.parse_args()
    stores = given.store * len(given.recipes) if len(given.store) == 1 else given.store
    drawn = []
    for path, place in zip(given.recipes, stores, strict=True):
        recipe = read_recipe(path)
        with Store(place) as store:
            records = collect(plan(recipe, store), store, recipe.name)
        if given.picture:
            drawn.append(panel(recipe, records, recipe.show[0]))
            continue
        print(f"## {recipe.title}\n\n{RULE}\n")
        for measure in recipe.show:
            for (data, noise, rate), values, here in levels(recipe, records, measure):
                print(f"**{data}, {noise} {rate:g}**, {measure}\n\n{table(values, here, given.versus)}")
    if given.picture:
        print(save_picture(drawn, given.picture, baseline=STRICT))
        print(*(each.words for each in drawn), sep="\n")


if __name__ == "__main__":
    main()
