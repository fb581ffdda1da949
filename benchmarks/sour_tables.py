"""What SOUR does on the data at hand: the tables and pictures of docs/results/sour.md.

Reads the tracked results of recipes/sour, beside the published figures; ``pages.py`` puts them into the page.
With a store of one's own runs, of the official data say, the tables are printed with them:

    cleanrank reproduce recipes/sour/table3-mslr-10.toml --jobs 1 --store runs.sqlite
    python benchmarks/sour_tables.py runs.sqlite
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.experiments.figures import Figure, all_figures
from cleanrank.experiments.recipe import find_recipe, read_recipe
from cleanrank.experiments.store import Store
from cleanrank.experiments.tracked import recall
from cleanrank.metrics.significance import fisher_test
from cleanrank.report.grid_tables import results_table
from cleanrank.report.images import save_picture
from cleanrank.report.panels import Panel, Point
from cleanrank.report.summaries import Level, Summary, summarise
from cleanrank.report.table import ABSENT, Line, Table, mark, number
from cleanrank.types import RunRecord

PAPER = "Marcuzzi et al. (2022)"
RECIPES = (
    "here-table2", "here-5", "here", "here-queries", "here-leaves", "here-outliers", "here-curves",
    "here-noise", "here-detection", "learner",
)  # fmt: skip
OFFICIAL = ("istella", "mslr", "yahoo")
KINDS = ("NEG", "POS", "ALL")
RANKERS = ("lambda-LGBM", "SOUR", "Iso-lambda-LGBM", "Peer-lambda-LGBM")
MODELS = ("lambda-MART", "lambda-LGBM", "Peer-lambda-LGBM", "Iso-lambda-LGBM", "last-SOUR", "SOUR")
GROUPS = ("P_k", "O-", "N")
TREES = (*(f"tree {tree}" for tree in (1, 10, 20, 30, 40, 50)), "trees 1-50")
SAMPLE, SYNTHETIC = "MSLR sample", "Web search (synthetic)"
FIGURES = {
    "Fig. 3": ("lambda-LGBM", "SOUR neg", "SOUR pos", "SOUR all"),
    "Fig. 4": ("lambda-LGBM", "SOUR neg", "Iso-lambda-LGBM all"),
    "Fig. 5": ("lambda-LGBM", "SOUR neg", "Peer-lambda-LGBM"),
}
OUTLIERS = ("removed", "removed of kind", "ever flagged", "flagged at 10%", "flagged at 100%")
DETECTION = ("base rate", "issues", "precision", "recall", "average precision")
WITHIN_GRADES = ("base rate within grades", "average precision within grades")
FIGURE_7 = ("lambda-LGBM, test", "SOUR neg, test", "curr-SOUR, test")
_store: list[Path] = []


@cache
def records(recipe: str) -> tuple[RunRecord, ...]:
    """What is known of a recipe: tracked results, and those of a store where one is given."""
    asked = read_recipe(find_recipe(f"sour/{recipe}"))
    if not _store:
        known = recall(asked)
    else:
        with Store(_store[0]) as store:
            known = recall(asked, store)
    return tuple(record for record in known.records if record.status == "done")


@cache
def summary(recipe: str, *measures: str) -> Summary:
    """The summary of a recipe's figures, tested against its baseline."""
    asked = read_recipe(find_recipe(f"sour/{recipe}"))
    return summarise(
        records(recipe), measures=measures or asked.measures, baseline=asked.baseline, resamples=1000
    )


def chosen(recipe: str, dataset: str, method: str, key: str) -> list[Any]:
    """What the cells of a data set and method noted under a name, draw by draw."""
    cells = (r for r in records(recipe) if (r.cell["dataset"], r.cell["method"]) == (dataset, method))
    return [r.chosen[key] for r in sorted(cells, key=lambda r: r.cell["fold"]) if key in r.chosen]


def published(table: str) -> dict[tuple[str, str], Figure]:
    """The figures of a table of the paper, by column and row."""
    return {(f.column, f.row): f for f in all_figures() if (f.source, f.table) == (PAPER, table)}


def mean_of(part: Summary, dataset: str, method: str, measure: str) -> float | None:
    """The mean of a cell of a table on clean labels."""
    row = part.find(dataset, Level(), method, measure)
    return None if row is None else row.mean


def ran() -> str:
    """What ran: cells, data, computing time."""
    rows: list[Line] = []
    for name in RECIPES:
        if not (cells := records(name)):
            continue
        sets = ", ".join(dict.fromkeys(r.cell["dataset"] for r in cells))
        minutes = sum(r.wall_seconds for r in cells) / 60
        rows.append([f"sour/{name}", sets, str(len(cells)), number(minutes, ".1f")])
    head = ["Recipe", "Data sets", "Cells", "Minutes, machines under load"]
    return Table(head, rows, align="llrr").markdown()


def table_2(measure: str = "best", form: str = ".4f", *, trees: bool = True) -> str:
    """Validation NDCG@10, or documents removed, by start, end and kind."""
    part = summary("here-table2")
    rows: list[Line] = []
    for dataset in part.datasets:
        if trees:
            plain = mean_of(part, dataset, "lambda-LGBM", measure)
            size = mean_of(part, dataset, "lambda-LGBM", "trees")
            rows.append(
                [dataset, "lambda-LGBM", "", number(size, ".0f"), number(plain, form), "", "", "", ""]
            )
        for start, end in windows():
            line: Line = [dataset, str(start), str(end)]
            for kind in KINDS:
                label = f"{kind}, s={start}, e={end}"
                if trees:
                    line.append(number(mean_of(part, dataset, label, "trees"), ".0f"))
                line.append(number(mean_of(part, dataset, label, measure), form))
            rows.append(line)
    columns = [c for kind in KINDS for c in ([f"{kind} trees", kind] if trees else [kind])]
    return Table(["Data set", "s", "e", *columns], rows, align="l" + "r" * (2 + len(columns))).markdown()


def windows() -> list[tuple[int, int]]:
    """(s, e) of the stand-in of Tab. 2."""
    labels = [
        m.label for m in read_recipe(find_recipe("sour/here-table2")).methods if m.label != "lambda-LGBM"
    ]
    pairs = [tuple(int(part.split("=")[1]) for part in label.split(", ")[1:]) for label in labels]
    return [(pair[0], pair[1]) for pair in dict.fromkeys(pairs)]


def table_3() -> str:
    """NDCG@5 and NDCG@10 with trees, s, t and removed share: as printed, and ours."""
    figures = published("Tab. 3")
    rows: list[Line] = []
    for name in dict.fromkeys(column.rpartition(" ")[0] for column, _ in figures):
        for model in MODELS:
            line: Line = [f"{name}, published", model]
            for k in (5, 10):
                figure = figures[f"{name} NDCG@{k}", model]
                facts = figure.facts
                line += [str(facts["trees"]), str(facts.get("s", "")), facts.get("t", "")]
                line += [f"{facts['removed_pct']:.2f}" if "removed_pct" in facts else ""]
                line += [f"{figure.expected}{facts.get('sig_vs_SOUR', '')}"]
            rows.append(line)
    for pair in (("here-5", "here"), *((f"table3-{o}-5", f"table3-{o}-10") for o in OFFICIAL)):
        for dataset in dict.fromkeys(r.cell["dataset"] for recipe in pair for r in records(recipe)):
            rows += [[dataset, model, *ours(pair[0], dataset, model, 5), *ours(pair[1], dataset, model, 10)]
                     for model in MODELS]  # fmt: skip
    columns = [c for k in (5, 10) for c in ("trees", "s", "t", "O %", f"NDCG@{k}")]
    return Table(["Data set", "Model", *columns], rows, align="ll" + "rrlrr" * 2).markdown()


def ours(recipe: str, dataset: str, model: str, k: int) -> Line:
    """The columns of Tab. 3 for one of our models; marks are the paper's: one-sided, not corrected."""
    if not records(recipe):
        return [ABSENT] * 5
    tell = partial(chosen, recipe, dataset, model)
    row, best = (summary(recipe).find(dataset, Level(), m, f"ndcg@{k}") for m in (model, "SOUR"))
    if row is None or best is None or row.mean is None:
        return [ABSENT] * 5
    sign = ""
    if model != "SOUR" and row.values is not None and best.values is not None:
        sign = mark(fisher_test(best.values, row.values, alternative="greater"))
    removed = [100 * share for share in tell("removed_share")]
    return [
        f"{np.mean(tell('trees')):.0f}",
        "/".join(str(s) for s in tell("start")),
        "/".join(t.upper() for t in tell("kind")),
        "/".join(f"{share:.2f}" for share in removed),
        f"{row.mean:.4f}{sign}",
    ]


def table_4() -> str:
    """NDCG@10 over test queries with and without outliers of the base model."""
    part = summary("here-queries")
    rows: list[Line] = []
    starts = dict.fromkeys(m.partition(", ")[2] for m in part.methods)
    for dataset in part.datasets:
        for start in starts:
            share = mean_of(part, dataset, f"SOUR, {start}", "share with outliers") or 0.0
            for name, size in (("queries with outliers", share), ("queries without outliers", 1 - share)):
                values = [mean_of(part, dataset, f"{ranker}, {start}", name) for ranker in RANKERS]
                words = [dataset, start.rpartition("=")[2], name.removeprefix("queries ")]
                rows.append([*words, number(size, ".0%"), *map(number, values)])
    return Table(["Data set", "s", "Queries", "Share", *RANKERS], rows, align="lllr" + "r" * 4).markdown()


def table_5() -> str:
    """Scores of the leaves that most documents of a kind reach, as printed and ours."""
    figures, part = published("Tab. 5"), summary("here-leaves")
    rows: list[Line] = []
    for tree in TREES:
        printed = [figures[tree, f"{m}, {group}"].expected for m in RANKERS[:2] for group in GROUPS]
        rows.append(["MSLR-30K, published", tree, *(text.replace("-", "−") for text in printed)])
        for dataset in part.datasets:
            rows.append([dataset, tree, *leaves(part, dataset, tree)])
    for dataset in part.datasets:
        rows.append([f"{dataset}, each tree alone", "trees 1-50",
                     *leaves(part, dataset, "trees 1-50", ", each tree alone")])  # fmt: skip
    columns = [f"{model} {group}" for model in ("lambda-LGBM", "SOUR") for group in GROUPS]
    return Table(["Data set", "Tree", *columns], rows, align="ll" + "r" * 6).markdown()


def leaves(part: Summary, dataset: str, tree: str, kind: str = "") -> Line:
    """The six scores of a row of Tab. 5."""
    return [
        number(mean_of(part, dataset, model + kind, f"{group}, {tree}"), ".3f")
        for model in RANKERS[:2]
        for group in GROUPS
    ]


def table_6() -> str:
    """p-SOUR beside SOUR, as printed and ours."""
    figures, part = published("Tab. 6"), summary("here")
    rows: list[Line] = []
    for column, row in figures:
        figure = figures[column, row]
        line: Line = [row, str(figure.facts["trees"]), figure.expected]
        for dataset in part.datasets:
            sizes = chosen("here", dataset, row, "trees")
            line += [number(float(np.mean(sizes)) if sizes else None, ".0f"),
                     number(mean_of(part, dataset, row, "ndcg@10"))]  # fmt: skip
        rows.append(line)
    head = ["Model", "MSLR-30K, published: trees", "NDCG@10"]
    head += [c for dataset in part.datasets for c in (f"{dataset}: trees", "NDCG@10")]
    return Table(head, rows, align="l" + "r" * (len(head) - 1)).markdown()


def learner() -> str:
    """What validation data chose among the learners of the works that the paper follows."""
    if not records("learner"):
        return "Not run here: `cleanrank reproduce recipes/sour/learner.toml`."
    rows: list[Line] = []
    for record in records("learner"):
        names = ("learning_rate", "num_leaves", "min_data_in_leaf", "trees")
        facts = [f"{record.chosen[name]:g}" for name in names]
        values = [number(record.chosen["validation"]), number(record.means["ndcg@10"])]
        rows.append([record.cell["dataset"], str(record.cell["fold"]), *facts, *values])
    head = ["Data set", "Draw", "Learning rate", "Leaves", "Documents a leaf", "Trees", "Validation", "Test"]
    return Table(head, rows, align="lr" + "r" * 6).markdown()


def grid(recipe: str, *measures: str) -> str:
    """The plain table of a recipe."""
    if not records(recipe):
        return f"Not run here: `cleanrank reproduce recipes/sour/{recipe}.toml`."
    return results_table(summary(recipe, *measures)).markdown()


def curves() -> str:
    """The figures of an NDCG as forests grow, and their table."""
    shown = [
        "![Validation curves](img/sour-curves.svg)",
        "![Test curves, on clean and on noisy labels](img/sour-test-curves.svg)",
    ]
    table = grid("here-curves", "at 10%", "at 50%", "at 100%", "best")
    return "\n\n".join([*(shown if CURVES else []), table])


def variants() -> str:
    """All rankers of the stand-ins but p-SOUR, which Tab. 6 has, beside lambda-LGBM."""
    kept = [r for r in records("here") if not r.cell["method"].startswith("p-SOUR")]
    part = summarise(kept, measures=["ndcg@10"], baseline="lambda-LGBM", resamples=1000)
    return results_table(part).markdown()


def directions() -> str:
    """Of the figures of each table, how many differ from their reference in the paper's direction."""
    rows: list[Line] = []
    for table in ("Tab. 2", "Tab. 3", "Tab. 4", "Tab. 5", "Tab. 6"):
        figures = published(table)
        line: Line = [table, reference_words(table)]
        for place in (SYNTHETIC, SAMPLE):
            signs = [signs_of(f, figures[f.column, f.reference], place) for f in figures.values()]
            compared = [pair for pair in signs if pair is not None]
            line.append(f"{sum(a == b for a, b in compared)} of {len(compared)}")
        rows.append(line)
    return Table(["Table", "Compared with", SYNTHETIC, SAMPLE], rows, align="llrr").markdown()


def reference_words(table: str) -> str:
    """What the figures of a table are compared with."""
    return {
        "Tab. 2": "s=0, e=1000 of the same kind, and that with s=900",
        "Tab. 3": "lambda-LGBM, and that with SOUR",
        "Tab. 4": "lambda-LGBM of the same row, and that with SOUR",
        "Tab. 5": "N, and that with P_k",
        "Tab. 6": "SOUR, and that with p = 98 %",
    }[table]


def signs_of(figure: Figure, reference: Figure, dataset: str) -> tuple[int, int] | None:
    """The sign of a figure minus its reference, in the paper and on a stand-in."""
    values = []
    for each in (figure, reference):
        here = each.on(next(other for other in each.stand_in if other.dataset == dataset))
        part = summary(here.recipe.removeprefix("sour/"))
        values.append(mean_of(part, dataset, here.method, here.measure))
    mine, theirs = values
    if mine is None or theirs is None:
        return None
    printed = float(figure.value) - float(reference.value)
    return int(np.sign(printed)), int(np.sign(mine - theirs))


def curve(recipe: str, dataset: str, method: str, rate: float = 0.0) -> list[Point]:
    """The mean curve over draws, where all of them go on."""
    curves = [
        r.chosen["curve"]
        for r in records(recipe)
        if (r.cell["dataset"], r.cell["method"], r.cell["rate"]) == (dataset, method, rate)
    ]
    length = min((len(c["trees"]) for c in curves), default=0)
    means = np.mean([c["mean"][:length] for c in curves], axis=0) if length else []
    return [Point(method, float(curves[0]["trees"][i]), float(means[i])) for i in range(4, length, 5)]


def panel(title: str, measure: str, points: Sequence[Point], x_title: str = "trees") -> Panel:
    """Lines with a legend of their own."""
    names = tuple(dict.fromkeys(p.method for p in points))
    xs = tuple(sorted({float(p.x) for p in points}))
    return Panel("traces", names, xs, tuple(points), title=title, measure=measure, x_title=x_title)


def draw_curves(path: Path) -> object:
    """Fig. 3 to 5."""
    parts = []
    for dataset in (SYNTHETIC, SAMPLE):
        for name, methods in FIGURES.items():
            points = [p for method in methods for p in curve("here-curves", dataset, method)]
            parts.append(panel(f"{dataset}, {name}", "validation NDCG@10", points))
    return save_picture(parts, path, width=320)


def draw_test_curves(path: Path) -> object:
    """Fig. 7 and Fig. 8."""
    methods = dict.fromkeys(r.cell["method"] for r in records("here-noise"))
    parts = []
    for dataset in (SYNTHETIC, SAMPLE):
        clean = [p for method in FIGURE_7 for p in curve("here-curves", dataset, method)]
        noisy = [p for method in methods for p in curve("here-noise", dataset, method, 0.1)]
        parts.append(panel(f"{dataset}, Fig. 7", "test NDCG@10", clean))
        parts.append(panel(f"{dataset}, Fig. 8: rate 0.1", "test NDCG@10", noisy))
    return save_picture(parts, path, width=400)


def draw_removed(path: Path) -> object:
    """Fig. 2: documents removed over s, with all trees to the end, and over e, from the first."""
    part = summary("here-table2")
    last = max(end for _, end in windows())
    parts = []
    for dataset in part.datasets:
        for kind in ("NEG", "POS"):
            points = []
            for start, end in windows():
                count = mean_of(part, dataset, f"{kind}, s={start}, e={end}", "documents removed")
                if count is not None:
                    points += [Point(f"from s to {last}", float(start), count)] if end == last else []
                    points += [Point("from 0 to e", float(end), count)] if start == 0 else []
            points.sort(key=lambda p: (p.method != f"from s to {last}", p.x))
            parts.append(panel(f"{dataset}, {kind}", "documents removed", points, "s or e, in trees"))
    return save_picture(parts, path, width=260)


TEXTS: dict[str, Callable[[], str]] = {
    "ran": ran,
    "table 2": table_2,
    "figure 2": lambda: (
        "![Documents removed over s and over e](img/sour-removed.svg)\n\n"
        + table_2("documents removed", ".0f", trees=False)
    ),
    "table 3": table_3,
    "table 4": table_4,
    "table 5": table_5,
    "table 6": table_6,
    "variants": variants,
    "directions": directions,
    "curves": curves,
    "noise": partial(grid, "here-noise", "at 10%", "at 50%", "at 100%", "best"),
    "outliers": partial(grid, "here-outliers", *OUTLIERS),
    "detection": partial(grid, "here-detection", *DETECTION),
    "detection within grades": partial(grid, "here-detection", *WITHIN_GRADES),
    "learner": learner,
}  # fmt: skip

CURVES: dict[str, Callable[[Path], object]] = {
    "sour-curves.svg": draw_curves,
    "sour-test-curves.svg": draw_test_curves,
}
if not (records("here-curves") and records("here-noise")):
    CURVES = {}
PICTURES: Mapping[str, Callable[[Path], object]] = {"sour-removed.svg": draw_removed, **CURVES}


def main() -> None:
    """Prints the tables, with the runs of a store where one is given."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("store", nargs="?", type=Path, help="the file of further runs")
    if (store := parser.parse_args().store) is not None:
        _store.append(store)
    for name, make in TEXTS.items():
        print(f"\n## {name}\n\n{make()}")


if __name__ == "__main__":
    main()
