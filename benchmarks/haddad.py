"""Haddad (2022): the tables and pictures of docs/results/haddad.md, from results/haddad/*.parquet.

cleanrank reproduce recipes/haddad/figure2-letor.toml --store runs.sqlite     # and the others
cleanrank runs export results --store runs.sqlite --recipe haddad/figure2-letor --values
python benchmarks/haddad.py              # the points of Fig. 1, results/haddad_figure1.json
python benchmarks/pages.py haddad        # the page
"""

import functools
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from cleanrank.experiments.figures import all_figures
from cleanrank.experiments.matrix import matrix
from cleanrank.experiments.methods.linear import CONVERGED, LIMIT, RISING
from cleanrank.experiments.recipe import find_recipe, read_recipe
from cleanrank.experiments.tracked import recall
from cleanrank.report.images import save_picture
from cleanrank.report.panels import Panel, Point
from cleanrank.report.summaries import Row, Summary, summarise
from cleanrank.report.table import Line, Table
from cleanrank.theory import order_table
from cleanrank.types import RunRecord

POINTS = Path(__file__).parent / "results" / "haddad_figure1.json"
NDCG, AUC = "ndcg@10:skip", "auc"
# The recipes of Fig. 2, and what their rows say of the solver.
RECIPES = {
    "haddad/figure2-letor": "",
    "haddad/figure2-synthetic": "",
    "haddad/figure2-newsgroups": "",
    "haddad/figure2-adam": ", Adam",
}
RATES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.49)
GAMMAS = [f"{1 - rate:g}" for rate in RATES]
BASE = "ranknet"
VERDICTS = ("no", "affine", "strict")
# What the paper says of the losses of Fig. 1; claims that do not hold are bold.
SAYS = {
    "0-1": "yes (Thm 4.1)",
    "sym-logistic": "yes (Prop. 4.6)",
    "logistic": "no (Prop. 4.4)",
    "exponential": "no (Prop. 4.4)",
    "hinge": "**yes** (Prop. 4.2)",
    "l1": "**yes** (Prop. 4.2)",
    "AUC, macro": "**yes** (Thm 4.1, Fig. 1)",
    "sym-ranknet, macro": "**yes** (Prop. 4.6)",
    "ranknet, macro": "no (Prop. 4.4)",
    "lambdarank": "expected not",
    "DCG@10": "yes (Prop. 4.7)",
    "NDCG@10": "**conjectured** yes",
    "MAP": "**conjectured** yes, not exactly linear",
    "ERR": "open",
}
NOTED = ("step", "steps", "start", "stopped")
PAIRS = ["sym-ranknet:macro", "sym-ranknet:micro"]
DRAWN = ["zero_one", "logistic", "hinge", *PAIRS, "dcg@10", "ndcg@10", "map"]


@functools.cache
def records_of(recipe: str) -> tuple[RunRecord, ...]:
    """The tracked results of a recipe."""
    known = recall(read_recipe(find_recipe(recipe)))
    return tuple(record for record in known.records if record.status == "done")


def order_of(recipe: str) -> dict[tuple[str, str], Mapping[str, float]]:
    """(data set, method) -> slope, R2, tau, verdict."""
    return {(r.cell["dataset"], r.cell["method"]): r.means for r in records_of(recipe)}


def figure1() -> str:
    """Fig. 1: even and tilted scorers side by side."""
    found = {method: means for (_, method), means in order_of("haddad/figure1").items()}
    names = [method.removesuffix(" (even)") for method in found if method.endswith(" (even)")]
    rows: list[Line] = []
    for name in names:
        cells = []
        for scorers in ("even", "tilted"):
            means = found[f"{name} ({scorers})"]
            verdict = VERDICTS[int(means["verdict"])]
            cells += [f"{means['slope']:.3f}", f"{means['R2']:.5f}", f"{means['tau']:.3f}", verdict]
        rows.append([name, SAYS.get(name, ""), *cells])
    one = ["slope", "R²", "tau"]
    head = ["loss or measure", "the paper says", *one, "even scorers", *one, "tilted scorers"]
    return Table(head, rows, align="llrrrlrrrl").markdown()


def labels() -> str:
    """The same trial on the labels of real queries."""
    found = order_of("haddad/labels")
    datasets = list(dict.fromkeys(dataset for dataset, _ in found))
    rows: list[Line] = []
    for method in dict.fromkeys(method for _, method in found):
        cells = []
        for dataset in datasets:
            means = found[dataset, method]
            figures = f"slope {means['slope']:.3f}, R² {means['R2']:.4f}, tau {means['tau']:.3f}"
            cells.append(f"{VERDICTS[int(means['verdict'])]}, {figures}")
        rows.append([method, *cells])
    return Table(["loss or measure", *datasets], rows, align="l" * (1 + len(datasets))).markdown()


@dataclass(frozen=True)
class Part:
    """The results of Fig. 2 on one data set."""

    title: str
    dataset: str
    recipe: str
    summary: Summary

    def row(self, method: str, rate: float, measure: str) -> Row | None:
        """The row at a flip probability."""
        level = next((level for level in self.summary.levels if level.rate == rate), None)
        return None if level is None else self.summary.find(self.dataset, level, method, measure)

    def models(self, method: str, rate: float | None = None) -> list[Mapping[str, Any]]:
        """What was noted of every model: one a cell, or one a query."""
        models = []
        for record in records_of(self.recipe):
            cell = record.cell
            if (cell["dataset"], cell["method"]) == (self.dataset, method) and rate in (None, cell["rate"]):
                columns = [record.chosen[key] for key in NOTED]
                lists = [column if isinstance(column, list) else [column] for column in columns]
                models += [dict(zip(NOTED, values, strict=True)) for values in zip(*lists, strict=True)]
        return models


@functools.cache
def parts() -> tuple[Part, ...]:
    """What there is of Fig. 2: means over folds and seeds, intervals over queries, tests against RankNet."""
    found = []
    for recipe, solver in RECIPES.items():
        if records := records_of(recipe):
            expected = [record.cell for record in records]
            draws = {"resamples": 2000, "permutations": 20_000}
            summary = summarise(records, measures=[NDCG, AUC], baseline=BASE, expected=expected, **draws)
            found += [Part(f"{dataset}{solver}", dataset, recipe, summary) for dataset in summary.datasets]
    return tuple(found)


def by_gamma(text: Callable[[Part, str, float], str], *, baseline: bool = True) -> str:
    """A row for each data set and loss, a column for each gamma."""
    rows: list[Line] = [
        [part.title, method, *(text(part, method, rate) for rate in RATES)]
        for part in parts()
        for method in part.summary.methods
        if baseline or method != BASE
    ]
    return Table(["data", "loss", *GAMMAS], rows, align="ll" + "r" * len(RATES)).markdown()


def means_table(measure: str) -> str:
    """Means with half-widths of intervals, and marks of significance."""

    def text(part: Part, method: str, rate: float) -> str:
        row = part.row(method, rate, measure)
        if row is None or row.mean is None:
            return ""
        return f"{row.mean:.3f} ±{row.half_width or 0.0:.3f} {row.mark}".strip()

    return by_gamma(text)


def differences(measure: str) -> str:
    """Differences from RankNet with their p-values after Holm's correction."""

    def text(part: Part, method: str, rate: float) -> str:
        row = part.row(method, rate, measure)
        if row is None or row.difference is None or row.p_holm is None:
            return ""
        return f"{row.difference:+.3f} (p {row.p_holm:.2g})"

    return by_gamma(text, baseline=False)


def starts_kept() -> str:
    """The share of models that are their start: no step had a lower risk on the noisy hold-out data."""

    def text(part: Part, method: str, rate: float) -> str:
        models = part.models(method, rate)
        return f"{sum(model['step'] == 0 for model in models) / len(models):.0%}" if models else ""

    return by_gamma(text)


def convergence() -> str:
    """How training ended for the models that were kept."""
    rows: list[Line] = []
    for part in parts():
        for method in part.summary.methods:
            models = part.models(method)
            ends = Counter(model["stopped"] for model in models)
            shares = [f"{ends[word] / len(models):.0%}" for word in (CONVERGED, RISING, LIMIT)]
            steps = [str(round(median(model[key] for model in models))) for key in ("step", "steps")]
            starts = Counter(model["start"] for model in models)
            others = [f"{starts[start] / len(models):.0%}" for start in (1, 2)]
            rows.append([part.title, method, f"{len(models):,}", *shares, *steps, *others])
    head = ["data", "loss", "models", CONVERGED, RISING, LIMIT, "step kept (median)", "steps (median)"]
    return Table([*head, "second start", "third start"], rows, align="llrrrrrrrr").markdown()


def claims() -> str:
    """The paper's claims with their verdicts, as the reproduction matrix has them."""
    mine = [figure for figure in all_figures() if figure.source.startswith("Haddad")]
    rows: list[Line] = []
    for line in matrix(figures=mine):
        erratum = f" ([{line.figure.erratum}](../errata.md))" if line.figure.erratum else ""
        where = line.dataset if line.data == "stand-in" else ""
        observed = str(line.observed or line.why)
        verdict = f"{line.verdict}{erratum}{f' on {where}' if where else ''}"
        rows.append([line.figure.table, line.figure.row, str(line.figure.value), verdict, observed])
    return Table(["", "of", "the paper says", "verdict", "observed"], rows, align="lllll").markdown()


def cost() -> str:
    """What ran."""
    rows: list[Line] = []
    for recipe in ("haddad/figure1", "haddad/labels", *RECIPES):
        records = records_of(recipe)
        if records:
            seeds = len({record.cell["seed"] for record in records})
            minutes = sum(record.wall_seconds for record in records) / 60
            datasets = ", ".join(dict.fromkeys(record.cell["dataset"] for record in records))
            rows.append([recipe, datasets, str(seeds), f"{len(records):,}", f"{minutes:.1f}"])
    return Table(
        ["recipe", "data", "seeds", "cells", "minutes of one process"], rows, align="llrrr"
    ).markdown()


def figure2_picture(path: Path) -> None:
    """NDCG@10 against gamma."""
    panels = []
    for part in parts():
        methods = part.summary.methods
        rows = [(method, rate, part.row(method, rate, NDCG)) for method in methods for rate in RATES]
        points = tuple(
            Point(method, 1 - rate, row.mean)
            for method, rate, row in rows
            if row is not None and row.mean is not None
        )
        xs = tuple(sorted({float(point.x) for point in points}))
        if len(xs) == len(RATES):
            titles = {"title": part.title, "measure": "NDCG@10", "x_title": "gamma", "series": "Loss"}
            panels.append(Panel("traces", methods, xs, points, **titles, x_domain=(0.5, 1.0)))
    save_picture(panels, path, width=260)


def figure1_picture(path: Path) -> None:
    """Noisy against clean values of scorers."""
    save_picture([_panel(row) for row in json.loads(POINTS.read_text(encoding="utf-8"))], path, width=220)


def _panel(row: Mapping[str, Any]) -> Panel:
    scorers, clean, noisy = f"{row['scorers']} scorers", row["clean"], row["noisy"]
    line, ends = np.polyfit(clean, noisy, 1), (min(clean), max(clean))
    points = tuple(Point(scorers, x, y) for x, y in zip(clean, noisy, strict=True))
    fit = tuple(Point(scorers, x, float(np.polyval(line, x))) for x in ends)
    title = f"{row['name']}\n{row['verdict']}, slope {row['slope']:.2f}, tau {row['tau']:.3f}"
    xs = tuple(sorted({float(p.x) for p in (*points, *fit)}))
    titles = {"title": title, "measure": "noisy", "x_title": "clean"}
    return Panel("traces", (scorers,), xs, points, lines=fit, **titles, x_domain=ends)


def simulate(draws: int = 200) -> Sequence[Mapping[str, Any]]:
    """The points of Fig. 1: clean and noisy values of 100 scorers."""
    rows = []
    for scorers in ("even", "tilted"):
        for name, row in order_table(DRAWN, 0.9, scorers=scorers, draws=draws, seed=1).items():
            values = {key: [round(float(v), 5) for v in getattr(row, key)] for key in ("clean", "noisy")}
            figures = {"verdict": row.verdict, "slope": round(row.slope, 4), "tau": round(row.tau, 4)}
            rows.append({"name": name, "scorers": scorers, **figures, **values})
    return rows


TEXTS = {
    "claims": claims,
    "cost": cost,
    "figure1": figure1,
    "figure1 picture": lambda: (
        "![Noisy against clean values of scorers, 200 draws of the noise](img/haddad-figure1.svg)\n\n"
        "The picture is of 200 draws, the table of 1,000."
    ),
    "labels": labels,
    "figure2 picture": lambda: "![NDCG@10 of four losses against gamma](img/haddad-figure2.svg)",
    "ndcg": lambda: means_table(NDCG),
    "auc": lambda: means_table(AUC),
    "differences ndcg": lambda: differences(NDCG),
    "differences auc": lambda: differences(AUC),
    "convergence": convergence,
    "starts": starts_kept,
}
PICTURES = {"haddad-figure1.svg": figure1_picture, "haddad-figure2.svg": figure2_picture}


if __name__ == "__main__":
    POINTS.write_text(json.dumps(simulate(), indent=0) + "\n", encoding="utf-8")
