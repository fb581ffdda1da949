"""What noise does to the rankers of Niu et al. (2014, 2015): the tables and pictures of docs/results/niu.md.

Given a file of runs, sums up those of recipes/niu in benchmarks/results/niu (see cards/degradation_runs.py);
what is not stored is left out, and the page says what ran. Of a noise level the seeds and folds count for
which all rankers are there. Nothing is trained here.

    cleanrank reproduce recipes/niu/uniform.toml --store runs.sqlite     # and the others
    python benchmarks/niu.py runs.sqlite
    python benchmarks/pages.py niu

Table 1, Fig. 7, Fig. 11 and the order of rows come from results/niu.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from cards.degradation import Points, joined, levels_of, points_of, robustness
from cards.degradation_pictures import closed_form_panels, loss_panels, mean_panels, ranker_panels
from cards.degradation_runs import MAP, NDCG, ROOT, ran, sum_up, summary_of
from cards.degradation_tables import (
    BASE,
    SIX,
    best_table,
    closed_form_table,
    drops_table,
    explained_table,
    forms_table,
    knee_table,
    robustness_table,
    scale_table,
    short_words,
    text_of,
    unions,
    wide_table,
)

from cleanrank.experiments.figures import all_figures
from cleanrank.experiments.matrix import ABSENT, STAND_IN, matrix
from cleanrank.report.grid_tables import pair_noise_table, results_table
from cleanrank.report.images import save_picture
from cleanrank.report.matrix import observed
from cleanrank.report.panels import Panel, pair_noise_panels
from cleanrank.report.summaries import Summary
from cleanrank.report.table import Line, Table, number

# Data sets as they are, neither merged nor sampled.
WHOLE = ("OHSUMED", "MQ2008", "MSLR sample", "TD2003's shape (synthetic)", "MSLR's shape (synthetic)")


@cache
def points(*names: str) -> Points:
    """Shares of NDCG@10 kept in some recipes."""
    return joined([points_of(summary_of(name), NDCG) for name in names])


@cache
def families() -> Mapping[str, Points]:
    """Points of the six rankers: of the whole study, with other data and noise, with derived sets."""
    names = ("uniform", "nonuniform", "adjacent", "stand-ins", "grades", "balance")
    return unions({name: summary_of(name) for name in names}, NDCG)


def core() -> Points:
    """The study on real, complete data."""
    return points("uniform", "nonuniform")


def pair_noise(rates: tuple[float, ...]) -> Table:
    """Counted and expected pNoise at some rates."""
    summary = summary_of("pnoise")
    return pair_noise_table(replace(summary, levels=tuple(levels_of(summary, rates))))


def data_table() -> Table:
    """Table 1: what the data sets hold."""
    summary = summary_of("table1")
    level, method = summary.levels[0], summary.methods[0]

    def value(dataset: str, measure: str) -> float:
        row = summary.find(dataset, level, method, measure)
        assert row is not None
        assert row.mean is not None
        return row.mean

    rows: list[Line] = []
    for dataset in summary.datasets:
        shares = [value(dataset, f"grade {grade} (%)") for grade in range(5)]
        words = ":".join(f"{share:.1f}" for share in shares[: int(np.flatnonzero(shares).max()) + 1])
        counts = ("queries", "documents", "documents per query", "features")
        rows.append([dataset, *(number(value(dataset, name), ",.0f") for name in counts), words])
    head = ["Data set", "Queries", "Documents", "per query", "Features", "Shares of grades (%)"]
    return Table(head, rows, align="lrrrrr")


def order_table() -> Table:
    """What a ranker without an opinion is given by the order of rows in the files."""
    summary = summary_of("ties")
    names = {
        "ndcg@10:letor": "NDCG@10 by file order",
        NDCG: "ties averaged",
        "map:letor": "MAP by file order",
        MAP: "ties averaged ",
    }
    rows: list[Line] = []
    for dataset in summary.datasets:
        cells = [summary.find(dataset, summary.levels[0], "constant", name) for name in names]
        rows.append([dataset, *(number(row.mean if row else None, ".3f") for row in cells)])
    return Table(["Data set", *names.values()], rows, align="lrrrr")


def ran_table() -> Table:
    """What ran: cells, seeds, rates, computing time."""
    rows: list[Line] = [
        [
            f"niu/{name}",
            ", ".join(part["datasets"]),
            ", ".join(f"{rate:g}" for rate in part["rates"]) or "clean",
            str(part["seeds"]),
            f"{part['done']:,} of {part['planned']:,}",
            str(part["minutes"]),
        ]
        for name, part in ran().items()
    ]
    head = ["Recipe", "Data sets", "Rates", "Seeds", "Cells", "Minutes of one core"]
    return Table(head, rows, align="lllrrr")


def rivals_table() -> Table:
    """RobustRanker beside all rankers at the rates and seeds that it ran."""
    rows: list[Line] = []
    all_points = points("robust-ranker")
    rates = sorted(set(all_points.rate.tolist()))
    for noise in dict.fromkeys(all_points.noise.tolist()):
        mine = all_points.of(noise=noise)
        for row in robustness(mine, noise, BASE):
            at = [
                np.mean([mine.of(method=row.method, rate=t, dataset=d).means[0] for d in mine.datasets])
                for t in rates
            ]
            figures = [number(float(v), ".3f") for v in at]
            rows.append([noise, row.method, *figures, text_of(row.kept), text_of(row.more)])
    head = ["Noise", "Ranker", *(f"{rate:g}" for rate in rates), "Mean share kept", f"More than {BASE}"]
    return Table(head, rows, align="ll" + "r" * (len(rates) + 2))


def verdict_table() -> Table:
    """Every figure of both papers that can be judged, ours beside it."""
    figures = [figure for figure in all_figures() if figure.source.startswith("Niu")]
    rows: list[Line] = []
    for line in matrix(results=ROOT / "results", figures=figures):
        if line.verdict == ABSENT:
            continue
        told = line.to_dict()
        data = f"stand-in: {line.dataset}" if line.data == STAND_IN else line.data or ""
        place = [line.figure.table, f"{line.figure.row}, {line.figure.column}"]
        rows.append([*place, line.figure.expected, observed(told), line.verdict, data])
    return Table(["Where", "What", "Published", "Ours", "Verdict", "Data"], rows, align="llrrll")


def pointwise_table() -> Table:
    """PRank's loss and that of a constant."""
    return wide_table(summary_of("pointwise"), "loss", ["loss", "loss of a constant"])


def pictured(file: str, words: str, table: Callable[[], Table]) -> Callable[[], str]:
    """The text of a picture and the table below it."""
    return lambda: f"![{words}](img/{file})\n\n{table().markdown()}"


def of_recipe(name: str, measure: str) -> Callable[[], Table]:
    """A line per data set and ranker, a column per noise level."""
    return lambda: wide_table(summary_of(name), measure)


TABLES: dict[str, Callable[[], Table]] = {
    "ran": ran_table,
    "verdicts": verdict_table,
    "order": order_table,
    "table1": data_table,
    "scales": scale_table,
    "shares": best_table,
    "uniform map": of_recipe("uniform", MAP),
    "nonuniform map": of_recipe("nonuniform", MAP),
    "stand-ins ndcg": of_recipe("stand-ins", NDCG),
    "adjacent ndcg": of_recipe("adjacent", NDCG),
    "robustness": lambda: robustness_table(core()),
    "robust-ranker": rivals_table,
    "knees": lambda: knee_table(core().where(np.isin(core().method, [*SIX, BASE]))),
    "drops": lambda: drops_table({n: summary_of(n) for n in ("grades", "balance")}),
    "forms": lambda: forms_table(summary_of("robust-forms"), NDCG),
    "newcome": lambda: results_table(summary_of("newcome"), ["positive", "tied scores"]),
}
TEXTS: dict[str, Callable[[], str]] = {
    "short": lambda: short_words(families(), core()),
    **{name: lambda table=table: table().markdown() for name, table in TABLES.items()},
    "pnoise": pictured(
        "niu-pnoise.svg",
        "pNoise against dNoise, counted in the training labels, by kind of noise",
        partial(pair_noise, (0.1, 0.3, 0.5)),
    ),
    "figure7": pictured(
        "niu-figure7.svg",
        "pNoise in closed form of two, three and five grades, against dNoise",
        lambda: closed_form_table(summary_of("figure7")),
    ),
    "figure11": pictured(
        "niu-figure11.svg",
        "pNoise in closed form of own, better and best shares of grades, against dNoise",
        lambda: closed_form_table(summary_of("figure11")),
    ),
    "uniform ndcg": pictured(
        "niu-uniform.svg",
        "Share of NDCG@10 above random that is kept, against dNoise and pNoise",
        of_recipe("uniform", NDCG),
    ),
    "nonuniform ndcg": pictured(
        "niu-nonuniform.svg",
        "Share of NDCG@10 above random that is kept under geometric noise",
        of_recipe("nonuniform", NDCG),
    ),
    "explained": pictured(
        "niu-collapse.svg",
        "Mean share kept of the six rankers, against dNoise and pNoise",
        lambda: explained_table(families()),
    ),
    "grades ndcg": pictured(
        "niu-grades.svg",
        "Mean share kept of the six rankers on sets with more and fewer grades",
        of_recipe("grades", NDCG),
    ),
    "balance ndcg": pictured(
        "niu-balance.svg",
        "Mean share kept of the six rankers on balanced and unbalanced samples",
        of_recipe("balance", NDCG),
    ),
    "pointwise": pictured("niu-pointwise.svg", "PRank's loss against dNoise and pNoise", pointwise_table),
}


def unsampled() -> Summary:
    """PNoise of data sets as they are."""
    summary = summary_of("pnoise")
    return replace(summary, cells=tuple(cell for cell in summary.cells if cell.dataset in WHOLE))


def drawn(
    panels: Callable[[], list[Panel] | tuple[Panel, ...]], width: int = 400
) -> Callable[[Path], object]:
    """A function that draws panels to a path."""
    return lambda path: save_picture(panels(), path, width=width)


PICTURES: dict[str, Callable[[Path], object]] = {
    "niu-pnoise.svg": drawn(lambda: pair_noise_panels(unsampled()), width=360),
    "niu-figure7.svg": drawn(lambda: closed_form_panels(summary_of("figure7")), width=280),
    "niu-figure11.svg": drawn(lambda: closed_form_panels(summary_of("figure11")), width=280),
    "niu-uniform.svg": drawn(lambda: ranker_panels(points("uniform"))),
    "niu-nonuniform.svg": drawn(lambda: ranker_panels(points("nonuniform"))),
    "niu-collapse.svg": drawn(lambda: mean_panels(points("uniform", "nonuniform", "stand-ins"))),
    "niu-grades.svg": drawn(lambda: mean_panels(points("grades"))),
    "niu-balance.svg": drawn(lambda: mean_panels(points("balance"))),
    "niu-pointwise.svg": drawn(lambda: loss_panels(summary_of("pointwise"))),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("store", help="the file of runs")
    sum_up(parser.parse_args().store)
