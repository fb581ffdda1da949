"""Grades, the best ten, active pairs: runs recipes/labeling; tables and picture of docs/results/labeling.md.

Cells are stored as they come; a run that is stopped goes on where it was.

    python benchmarks/labeling.py --store .cleanrank/labeling.sqlite
    python benchmarks/pages.py labeling

Intervals are those of Student's t over seeds, each of which is other people and other queries.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import stats

from cleanrank.experiments.driver import reproduce
from cleanrank.experiments.recipe import read_recipe
from cleanrank.experiments.results import export
from cleanrank.experiments.studies import BUDGETS
from cleanrank.experiments.tracked import recall
from cleanrank.report.images import save_picture
from cleanrank.report.panels import Panel, Point
from cleanrank.report.table import Cell, Line, Table, number

ROOT = Path(__file__).resolve().parent.parent
RECIPES = ("case-study", "active")
RELEVANT = (1, 5, 10)
RATES = (0.0, 0.1, 0.2, 0.3)
MODELS = ("answers", "steps", "perception")
WAYS = (
    "2 grades",
    "3 grades",
    "5 grades",
    "3 grades (r)",
    "5 grades (r)",
    "5 grades by three people",
    "top 10",
    "top 10 with ties",
    "top 10 by three people",
)
CURVES = 5  # relevant documents of the active study


class Mean(NamedTuple):
    """A mean over seeds and half the width of its 95 % interval."""

    value: float
    reach: float

    def cell(self, form: str = ".3f") -> Cell:
        """As a cell of a table."""
        return (
            number(self.value, form) if not self.reach else Cell(f"{self.value:{form}} ± {self.reach:{form}}")
        )


Found: TypeAlias = Mapping[tuple[int, str, float], Mapping[str, Sequence[float]]]


@cache
def found(name: str) -> Found:
    """(relevant documents, method, rate) -> measure -> a value per seed, of what results/labeling holds."""
    recipe = read_recipe(ROOT / "recipes" / "labeling" / f"{name}.toml")
    values: dict[tuple[int, str, float], dict[str, list[float]]] = {}
    for record in recall(recipe, folder=ROOT / "results").records:
        if record.status == "done":
            cell = record.cell
            place = int(str(cell["dataset"]).split()[0]), str(cell["method"]), float(cell["rate"])
            for measure, mean in record.means.items():
                values.setdefault(place, {}).setdefault(measure, []).append(mean)
    return values


def method(way: str, model: str) -> str:
    """The label of the recipe; pairs, and two grades, have the same errors in steps as in answers."""
    alike = model == "steps" and (way.startswith("top") or way == "2 grades")
    return f"{way}, {'answers' if alike else model}"


def mean(relevant: int, way: str, model: str, rate: float, measure: str) -> Mean | None:
    """Of the case study; None where a recipe leaves it out."""
    values = found("case-study").get((relevant, method(way, model), rate), {}).get(measure)
    return None if values is None else mean_of(values)


def mean_of(values: Sequence[float]) -> Mean:
    """The mean of some seeds with its reach.

    >>> mean_of([1.0, 1.0])
    Mean(value=1.0, reach=0.0)
    """
    n, spread = len(values), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    reach = float(stats.t.ppf(0.975, n - 1)) * spread / n**0.5 if spread > 1e-12 else 0.0
    return Mean(float(np.mean(values)), reach)


def floors_table() -> Table:
    """What people without errors come to."""
    lines: list[Line] = []
    for way in WAYS:
        if "three" not in way:
            each = [mean(r, way, "answers", 0.0, "pnoise") for r in RELEVANT]
            costs = [mean(r, way, "answers", 0.0, "judgements") for r in RELEVANT]
            pairs = [mean(r, way, "answers", 0.0, "pairs") for r in RELEVANT]
            low, high = min(c.value for c in costs), max(c.value for c in costs)
            cost = f"{low:.0f}" if round(low) == round(high) else f"{low:.0f} to {high:.0f}"
            few, many = min(p.value for p in pairs), max(p.value for p in pairs)
            lines.append([way, cost, f"{few:.0f} to {many:.0f}", *(m.cell() for m in each)])
    head = ("judged by", "answers a query", "pairs", *(f"{r} relevant" for r in RELEVANT))
    return Table(head, lines, caption="pNoise of people who make no error: the floor", align="lrrrrr")


def model_table(model: str) -> Table:
    """pNoise, corrected pNoise and AUC of every way of labelling, at every rate of errors."""
    measures = ("pnoise", "corrected", "auc")
    lines: list[Line] = []
    for rate, way in product(RATES[1:], WAYS):
        cells = [mean(r, way, model, rate, m) for m in measures for r in RELEVANT]
        if cells[0] is not None:
            cost = np.mean([mean(r, way, model, rate, "judgements").value for r in RELEVANT])
            lines.append([f"{rate:g}", way, f"{cost:.0f}", *(c.cell(".2f") for c in cells)])
    words = {"pnoise": "pNoise", "corrected": "corrected", "auc": "AUC"}
    head = ("e", "judged by", "answers", *(f"{words[m]}, {r} relevant" for m in measures for r in RELEVANT))
    return Table(head, lines, caption=f"Errors: {model}", align="rlr" + "r" * 9)


def claims_table() -> Table:
    """The two findings of the paper's Table 3, query by query, and what other measures say."""
    ways = ("3 grades", "5 grades", "top 10")
    finer = {"all documents": ways, "relevant ones": ("3 grades (r)", "5 grades (r)", "top 10")}
    lines: list[Line] = []
    for model, rate, (divided, three) in product(MODELS, RATES[1:], finer.items()):
        per_r = []
        if mean(1, three[0], model, rate, "pnoise") is None:
            continue
        for r in RELEVANT:
            noise, auc = ([mean(r, way, model, rate, m).value for way in three] for m in ("pnoise", "auc"))
            per_r.append((noise, auc))
        lines.append(
            [
                model,
                f"{rate:g}",
                divided,
                *(in_order(noise, "<") for noise, _ in per_r),
                *(in_order(auc, ">") for _, auc in per_r),
            ]
        )
    head = ("errors", "e", "finer grades divide")
    head += tuple(f"{what}, {r} relevant" for what in ("pNoise", "AUC") for r in RELEVANT)
    return Table(head, lines, caption="3 grades, 5 grades and the top 10 in order, the best first")


def in_order(values: Sequence[float], sign: str) -> str:
    """The three ways by rising (<) or falling (>) values; equal to .001 are joined by =.

    >>> in_order([0.3, 0.1, 0.1], "<")
    '5 = top < 3'
    """
    words = ("3", "5", "top")
    order = np.argsort(np.array(values) * (1 if sign == "<" else -1), kind="stable").tolist()
    text = words[order[0]]
    for before, after in pairwise(order):
        text += f" {'=' if abs(values[after] - values[before]) < 1e-3 else sign} {words[after]}"
    return text


def stated_table() -> Table:
    """Corrected pNoise with the true floor, as ``cleanrank annotators`` states it, and 1 - AUC."""
    lines: list[Line] = []
    for way in ("2 grades", "3 grades", "5 grades", "top 10", "top 10 with ties"):
        line: Line = [way]
        for rate in RATES[1:]:
            places = [(r, method(way, "answers"), rate) for r in RELEVANT]
            pairs = [found("case-study")[place] for place in places]
            line += [
                number(float(np.mean([p["corrected"] for p in pairs])), ".3f"),
                number(float(np.mean([p["corrected stated"] for p in pairs])), ".3f"),
                number(float(np.mean([1 - np.array(p["auc"]) for p in pairs])), ".3f"),
            ]
        lines.append(line)
    head = (
        "judged by",
        *(f"{what}, e = {rate:g}" for rate in RATES[1:] for what in ("corrected", "stated", "1 - AUC")),
    )
    return Table(
        head, lines, caption="Corrected pNoise: with the true floor, as stated, and 1 - AUC; errors: answers"
    )


def active_table() -> Table:
    """The active choice of pairs beside the heap."""
    lines: list[Line] = []
    for model, ties, rate in product(("answers", "perception"), (False, True), RATES[:3]):
        words = " with ties" if ties else ""
        own = found("active")[CURVES, f"active{words}, {model}", rate]
        heap = found("case-study")[CURVES, f"top 10{words}, {model}", rate]
        curve = [mean_of(own[f"auc at {n}"]) for n in BUDGETS]
        target = mean_of(heap["corrected"]).value
        reached = answers_to_reach([mean_of(own[f"corrected at {n}"]).value for n in BUDGETS], target)
        lines.append(
            [
                model,
                "yes" if ties else "no",
                f"{rate:g}",
                mean_of(heap["judgements"]).cell(".0f"),
                mean_of(heap["corrected"]).cell(".3f"),
                mean_of(heap["auc"]).cell(".3f"),
                reached,
                *(each.cell(".3f") for each in curve),
            ]
        )
    head = ("errors", "ties", "e", "answers of the heap", "its corrected pNoise", "its AUC")
    head += ("answers of the active task for the same pNoise", *(f"its AUC at {n}" for n in BUDGETS))
    caption = f"The best 10 of 50 documents, {CURVES} of them relevant: the heap, and pairs that tell most"
    return Table(head, lines, caption=caption, align="llr" + "r" * (4 + len(BUDGETS)))


def answers_to_reach(values: Sequence[float], target: float) -> str:
    """The answers at which a falling curve is within .001 of the target; between budgets by a straight line.

    >>> answers_to_reach([0.3, 0.2, 0.1, 0.1, 0.1], 0.25)
    '62'
    >>> answers_to_reach([0.3, 0.2, 0.1, 0.1, 0.1], 0.0)
    'more than 150'
    """
    target += 1e-3
    for k, value in enumerate(values):
        if value <= target:
            if not k:
                return f"at most {BUDGETS[0]}"
            share = (values[k - 1] - target) / (values[k - 1] - value)
            return f"{BUDGETS[k - 1] + share * (BUDGETS[k] - BUDGETS[k - 1]):.0f}"
    return f"more than {BUDGETS[-1]}"


def cost_panel(rate: float) -> Panel:
    """AUC by answers: the active task as it goes on, and the others at the end."""
    points = []

    def add(name: str, cost: float, values: Sequence[float]) -> None:
        auc = mean_of(values)
        points.append(Point(name, cost, auc.value, auc.value - auc.reach, auc.value + auc.reach))

    for words in ("", " with ties"):
        own = found("active")[CURVES, f"active{words}, answers", rate]
        for n in BUDGETS:
            add(f"active{words}", float(n), own[f"auc at {n}"])
    for way in ("3 grades", "5 grades", "5 grades by three people", "top 10", "top 10 with ties"):
        own = found("case-study")[CURVES, f"{way}, answers", rate]
        add(way, mean_of(own["judgements"]).value, own["auc"])
    names = tuple(dict.fromkeys(point.method for point in points))
    return Panel(
        "traces",
        names,
        tuple(sorted({point.x for point in points})),
        tuple(points),
        title=f"e = {rate:g}",
        measure="AUC of the labels",
        x_title="answers a query",
        series="judged by",
        y_form=".2f",
        x_domain=(40.0, 160.0),
        y_domain=(0.65, 1.0),
    )


TEXTS: dict[str, Callable[[], str]] = {
    "floors": lambda: floors_table().markdown(),
    "claims": lambda: claims_table().markdown(),
    "by model": lambda: "\n".join(
        f"### Errors: {model}\n\n{model_table(model).markdown()}" for model in MODELS
    ),
    "stated": lambda: stated_table().markdown(),
    "active": lambda: active_table().markdown(),
    "picture": lambda: "![AUC of the labels by the answers a query takes](img/labeling-cost.svg)\n",
}
PICTURES: dict[str, Callable[[Path], object]] = {
    "labeling-cost.svg": lambda path: save_picture([cost_panel(rate) for rate in (0.1, 0.2)], path),
}


def main() -> None:
    """Computes what is missing and puts it into results/labeling."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--store", type=Path, default=Path(".cleanrank/labeling.sqlite"))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    asked = parser.parse_args()
    for name in RECIPES:
        run = reproduce(ROOT / "recipes" / "labeling" / f"{name}.toml", store=asked.store, jobs=asked.jobs)
        export(run.records, ROOT / "results" / "labeling" / f"{name}.parquet")


if __name__ == "__main__":
    main()
