"""What noise does to the rankers of Niu et al. (2014, 2015): the tables and pictures of docs/results/niu.md.

Reads the runs of recipes/niu from a store, prints the tables; ``--write`` puts them into the page and draws
its pictures. Nothing is computed anew: what is not stored is left out, and the page says what ran. Of a noise
level the seeds and folds count for which all rankers are there.

    cleanrank reproduce recipes/niu/uniform.toml --store runs.sqlite     # and the others
    python benchmarks/niu.py runs.sqlite --write
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cards.degradation import (
    SCOPES,
    Points,
    explained,
    joined,
    knee,
    levels_of,
    points_of,
    robustness,
)
from cards.whole import whole_part
from pages import fill

from cleanrank.errors import MissingDataError
from cleanrank.experiments.driver import collect, plan
from cleanrank.experiments.recipe import read_recipe
from cleanrank.experiments.store import Store
from cleanrank.noise.pair_noise import pnoise_curve
from cleanrank.noise.scales import best_proportions
from cleanrank.report.collapse import Estimate, realised
from cleanrank.report.grid_tables import pair_noise_table, results_table, value_cell, verdict_table
from cleanrank.report.images import save_picture
from cleanrank.report.panels import Panel, Point, pair_noise_panels
from cleanrank.report.published import compare_published
from cleanrank.report.summaries import Summary, summarise
from cleanrank.report.table import Cell, Line, Table, number
from cleanrank.types import RunRecord

ROOT = Path(__file__).parent.parent
NDCG, MAP = "ndcg@10:letor:ties=average", "map:letor:ties=average"
SIX = ("PRank", "GBDT", "RankSVM", "RankBoost", "ListNet", "AdaRank")
BASE = "lambdarank"
RANKED = ("uniform", "nonuniform", "adjacent", "stand-ins", "grades", "balance", "robust-ranker")
FORMS = {
    "PRank": ("PRank, margin", "PRank, average"),
    "RankSVM": ("RankSVM, ramp",),
    "RankBoost": ("RankBoost, smooth",),
}
SHOWN = (0.1, 0.2, 0.3, 0.4, 0.5)
REAL = ("OHSUMED", "MQ2008")
# Niu et al. 2015, Table 1 and Sect. 5: shares of grades.
SCALES = {
    "OHSUMED, 3 grades": (70, 16, 14),
    "OHSUMED, 2 grades": (70, 30),
    "TD2003, 2 grades": (99.2, 0.8),
    "MSLR, 5 grades": (51.7, 32.5, 13.3, 1.7, 0.8),
    "MSLR, 3 grades": (51.7, 32.5, 15.8),
    "MSLR, 2 grades, 0-1 and 2-4": (84.2, 15.8),
    "MSLR, 2 grades, 0 and 1-4": (51.7, 48.3),
}


@dataclass(frozen=True)
class Part:
    """What is stored of a recipe: whole levels only."""

    name: str
    cells: int  # that the recipe has for data on this machine
    records: tuple[RunRecord, ...]
    summary: Summary

    @property
    def minutes(self) -> float:
        """Of computing, of one core."""
        return sum(r.wall_seconds for r in self.records) / 60


def read(name: str, store: Store, measures: Sequence[str] | None) -> Part | None:
    """The stored levels of a recipe that are whole."""
    recipe = read_recipe(ROOT / "recipes" / "niu" / f"{name}.toml")
    try:
        cells = plan(recipe, store)
    except MissingDataError:
        return None
    done = [r for r in collect(cells, store, recipe.name) if r.status == "done"]
    # By data set: its queries are the same at all levels.
    records = whole_part(done, group=lambda dataset: dataset).records if done else ()
    if not records or (recipe.noise and not any(r.cell["rate"] for r in records)):
        return None
    summary = summarise(records, measures=measures, resamples=1000, expected=[r.cell for r in records])
    return Part(name, len(cells), records, summary)


def main() -> None:
    """Reads, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("store", help="the file of runs")
    parser.add_argument("--write", action="store_true", help="fill the page and draw its pictures")
    asked = parser.parse_args()
    with Store(asked.store) as store:
        names = (*RANKED, "robust-forms")
        ranked = {n: p for n in names if (p := read(n, store, [NDCG, MAP])) is not None}
        other = {n: p for n in ("newcome", "pointwise", "pnoise") if (p := read(n, store, None)) is not None}
    texts = {name: text for name, text in sections(ranked, other).items() if text}
    for name, text in texts.items():
        print(f"\n## {name}\n\n{text}")
    if asked.write:
        fill(ROOT / "docs" / "results" / "niu.md", texts)
        draw(ranked, other, ROOT / "docs" / "results" / "img")


def sections(ranked: Mapping[str, Part], other: Mapping[str, Part]) -> dict[str, str]:
    """Text by the name of its place in the page; empty where nothing ran."""
    texts = {
        "ran": ran_table([*ranked.values(), *other.values()]).markdown(),
        "scales": scale_table().markdown(),
    }
    texts["shares"] = best_table().markdown()
    for name, part in ranked.items():
        if name not in ("robust-forms", "robust-ranker"):
            for measure, word in ((NDCG, "ndcg"), (MAP, "map")):
                texts[f"{name} {word}"] = wide_table(part.summary, measure).markdown()
    study = [points_of(ranked[n].summary, NDCG) for n in ("uniform", "nonuniform") if n in ranked]
    if study:
        core = joined(study)
        texts["robustness"] = robustness_table(core).markdown()
        texts["knees"] = knee_table(core.where(np.isin(core.method, [*SIX, BASE]))).markdown()
        texts["explained"] = explained_table(ranked).markdown()
    if "robust-ranker" in ranked and "RobustRanker" in ranked["robust-ranker"].summary.methods:
        texts["robust-ranker"] = rivals_table(ranked).markdown()
    if "robust-forms" in ranked:
        texts["forms"] = forms_table(ranked["robust-forms"].summary).markdown()
    if "newcome" in other:
        texts["newcome"] = results_table(other["newcome"].summary, ["positive", "tied scores"]).markdown()
    if "pointwise" in other:
        texts["pointwise"] = wide_table(
            other["pointwise"].summary, "loss", ["loss", "loss of a constant"]
        ).markdown()
    if "pnoise" in other:
        summary = other["pnoise"].summary
        texts["pnoise"] = pair_noise_table(part_of(summary, (0.1, 0.3, 0.5))).markdown()
        published = read_recipe(ROOT / "recipes" / "niu" / "pnoise.toml").published
        here = [p for p in published if p.dataset in summary.datasets]
        texts["readings"] = verdict_table(compare_published(summary, here)).markdown()
    return texts


def part_of(summary: Summary, rates: Sequence[float]) -> Summary:
    """The clean level and some rates of a summary."""
    from dataclasses import replace

    return replace(summary, levels=tuple(levels_of(summary, rates)))


def ran_table(parts: Sequence[Part]) -> Table:
    """What ran: cells, seeds, rates, computing time."""
    rows: list[Line] = []
    for part in parts:
        cells = [r.cell for r in part.records]
        noisy = [c for c in cells if c["rate"]]
        seeds = {c["seed"] for c in noisy or cells}
        rates = sorted({c["rate"] for c in noisy})
        rows.append(
            [
                f"niu/{part.name}",
                ", ".join(part.summary.datasets),
                ", ".join(f"{rate:g}" for rate in rates) or "clean",
                str(len(seeds)),
                f"{len(part.records):,} of {part.cells:,}",
                f"{part.minutes:.0f}",
            ]
        )
    head = ["Recipe", "Data sets", "Rates", "Seeds", "Cells", "Minutes of one core"]
    return Table(head, rows, align="lllrrr")


def wide_table(summary: Summary, measure: str, shown: Sequence[str] | None = None) -> Table:
    """A line per data set and method, a column per noise level; studies show several measures of a method."""
    levels = levels_of(summary, SHOWN)
    rows: list[Line] = []
    for dataset in summary.datasets:
        for method in summary.methods:
            for each in shown or [measure]:
                found = [summary.find(dataset, level, method, each) for level in levels]
                if any(found):
                    name = method if shown is None else f"{method}, {each}"
                    rows.append([dataset, name, *(value_cell(row) for row in found)])
    return Table(["Data set", "Method", *(level.label for level in levels)], rows)


def text_of(value: Estimate | None) -> str:
    """A figure with its interval, with real minus signs."""
    return "" if value is None else f"{value.value:.2f} [{value.low:.2f}, {value.high:.2f}]".replace("-", "−")


def robustness_table(points: Points) -> Table:
    """Rankers by the mean share kept over all rates, by kind of noise and real data set."""
    rows: list[Line] = []
    for noise in dict.fromkeys(points.noise.tolist()):
        for dataset in (*points.datasets, None):
            mine = points if dataset is None else points.of(dataset=dataset)
            if not (mine.noise == noise).any():
                continue
            for row in robustness(mine, noise, BASE):
                rows.append([noise, dataset or "mean", row.method, text_of(row.kept), text_of(row.more)])
    head = ["Noise", "Data set", "Ranker", "Mean share kept", f"More than {BASE}"]
    return Table(head, rows, align="lllrr")


def knee_table(points: Points) -> Table:
    """Where 90 % and half of the gain over random are left, by ranker, data set and kind of noise."""

    def place(x: float, most: float) -> Cell:
        return number(x, ".2f") if np.isfinite(x) else Cell(f"> {most:.2f}")

    rows: list[Line] = []
    for noise in dict.fromkeys(points.noise.tolist()):
        for method in points.methods:
            for dataset in points.datasets:
                mine = points.of(noise=noise, method=method, dataset=dataset)
                if len(mine.rate):
                    axes = (mine.dnoise, mine.pnoise)
                    cells = [place(knee(x, mine.shares[0], t), x.max()) for t in (0.9, 0.5) for x in axes]
                    rows.append([noise, method, dataset, *cells])
    head = [
        "Noise",
        "Ranker",
        "Data set",
        "90 % left at dNoise",
        "at pNoise",
        "Half left at dNoise",
        "at pNoise",
    ]
    return Table(head, rows, align="lllrrrr")


def explained_table(ranked: Mapping[str, Part]) -> Table:
    """What dNoise and pNoise explain: on real data, with stand-ins, with merged and sampled sets too."""
    unions = {
        "OHSUMED and MQ2008": ("uniform", "nonuniform", "adjacent"),
        "with stand-ins": ("uniform", "nonuniform", "adjacent", "stand-ins"),
        "with merged grades and samples too": (
            "uniform",
            "nonuniform",
            "adjacent",
            "stand-ins",
            "grades",
            "balance",
        ),
    }
    rows: list[Line] = []
    before: tuple[str, ...] = ()
    for label, names in unions.items():
        there = tuple(n for n in names if n in ranked)
        if there == before:
            continue
        before = there
        points = joined([points_of(ranked[n].summary, NDCG) for n in there])
        if label == "OHSUMED and MQ2008":
            points = points.where(np.isin(points.dataset, REAL))
        points = points.where(np.isin(points.method, SIX))
        for scope in SCOPES:
            result = explained(points, scope)
            figures = [text_of(e) for e in (result.dnoise, result.pnoise, result.gain)]
            rows.append([label, str(len(points.datasets)), scope, str(result.points), *figures])
    head = ["Data", "Sets", "Curves", "Points", "R² over dNoise", "R² over pNoise", "Gain"]
    return Table(head, rows, align="lrlrrrr")


def rivals_table(ranked: Mapping[str, Part]) -> Table:
    """RobustRanker beside all rankers at the rates and seeds that it ran."""
    rows: list[Line] = []
    robust = ranked["robust-ranker"]
    rates = sorted({r.cell["rate"] for r in robust.records if r.cell["rate"]})
    seeds = {r.cell["seed"] for r in robust.records}
    for name in ("uniform", "nonuniform"):
        if name not in ranked:
            continue
        noise = next(r.cell["noise"] for r in ranked[name].records if r.cell["rate"])
        records = [
            r
            for r in (*ranked[name].records, *robust.records)
            if r.cell["seed"] in seeds
            and r.cell["rate"] in (0, *rates)
            and r.cell["noise"] in (noise, "none")
        ]
        summary = summarise(list({r.key: r for r in records}.values()), measures=[NDCG], resamples=1000)
        points = points_of(summary, NDCG)
        for row in robustness(points, noise, BASE):
            at = [
                np.mean([points.of(method=row.method, rate=t, dataset=d).means[0] for d in points.datasets])
                for t in rates
            ]
            rows.append(
                [
                    noise,
                    row.method,
                    *(number(float(v), ".3f") for v in at),
                    text_of(row.kept),
                    text_of(row.more),
                ]
            )
    head = ["Noise", "Ranker", *(f"{rate:g}" for rate in rates), "Mean share kept", f"More than {BASE}"]
    return Table(head, rows)


def forms_table(summary: Summary) -> Table:
    """Robust forms beside the plain ones: mean share kept, and the difference."""
    points = points_of(summary, NDCG)
    rows: list[Line] = []
    for noise in dict.fromkeys(points.noise.tolist()):
        for plain, forms in FORMS.items():
            for row in robustness(points, noise, plain):
                if row.method in (plain, *forms):
                    clean = [
                        r.mean
                        for r in summary.rows
                        if r.method == row.method
                        and r.level.clean
                        and r.measure == NDCG
                        and r.mean is not None
                    ]
                    rows.append(
                        [
                            noise,
                            row.method,
                            number(float(np.mean(clean)), ".3f"),
                            text_of(row.kept),
                            text_of(row.more),
                        ]
                    )
    head = ["Noise", "Ranker", "Clean NDCG@10", "Mean share kept", "More than the plain form"]
    return Table(head, rows)


def scale_table() -> Table:
    """Fig. 7: the closed form for scales of different lengths, uniform noise."""
    rows: list[Line] = [
        [name, *(number(float(v), ".3f") for v in pnoise_curve(shares, SHOWN))]
        for name, shares in SCALES.items()
    ]
    return Table(["Grades", *(f"{rate:g}" for rate in SHOWN)], rows)


def best_table() -> Table:
    """Fig. 11: shares as they are, equal shares and the best ones, uniform noise of .1."""
    rows: list[Line] = []
    for name in ("OHSUMED, 3 grades", "MSLR, 5 grades", "TD2003, 2 grades"):
        shares, C = SCALES[name], len(SCALES[name])
        for rate in (0.1, 0.3):
            best = best_proportions("uniform", C, rate=rate)
            words = ":".join(f"{100 * share:.0f}" for share in best.proportions)
            own, equal = (float(pnoise_curve(r, [rate])[0]) for r in (shares, [1 / C] * C))
            rows.append([name, f"{rate:g}", *(number(v, ".3f") for v in (own, equal, best.pnoise)), words])
    head = ["Grades", "dNoise", "pNoise, own shares", "equal shares", "best shares", "which are"]
    return Table(head, rows, align="lrrrrl")


def draw(ranked: Mapping[str, Part], other: Mapping[str, Part], folder: Path) -> None:
    """The pictures of the page."""
    for name in ("uniform", "nonuniform"):
        if name in ranked:
            save_picture(
                ranker_panels(points_of(ranked[name].summary, NDCG, draws=1)),
                folder / f"niu-{name}.svg",
                width=400,
            )
    together = {
        "collapse": ("uniform", "nonuniform", "stand-ins"),
        "grades": ("grades",),
        "balance": ("balance",),
    }
    for picture, names in together.items():
        if there := [points_of(ranked[n].summary, NDCG, draws=1) for n in names if n in ranked]:
            save_picture(mean_panels(joined(there)), folder / f"niu-{picture}.svg", width=400)
    if "pnoise" in other:
        save_picture(pair_noise_panels(other["pnoise"].summary), folder / "niu-pnoise.svg")
    if "pointwise" in other:
        save_picture(loss_panels(other["pointwise"].summary), folder / "niu-pointwise.svg", width=400)


AXES = {"dnoise": "dNoise", "pnoise": "pNoise"}


def traces(title: str, measure: str, axis: str, points: Sequence[Point], series: str) -> Panel:
    """Lines over dNoise or pNoise."""
    return Panel(
        "traces",
        tuple(dict.fromkeys(p.method for p in points)),
        tuple(sorted({float(p.x) for p in points})),
        tuple(points),
        title=f"{title}, against {AXES[axis]}",
        measure=measure,
        x_title=f"{AXES[axis]} of the training labels",
        series=series,
    )


def ranker_panels(points: Points) -> list[Panel]:
    """A panel per data set and axis, a line per ranker."""
    return [
        traces(dataset, "share of NDCG@10 above random kept", axis, [
            Point(method, float(x), float(share))
            for method in points.methods
            for mine in [points.of(dataset=dataset, method=method)]
            for x, share in [(0.0, 1.0), *zip(getattr(mine, axis), mine.shares[0], strict=True)]
        ], "Ranker")
        for dataset in points.datasets
        for axis in AXES
    ]  # fmt: skip


def mean_panels(points: Points) -> list[Panel]:
    """A panel per axis, a line per data set and kind of noise: the mean over the six rankers."""
    six = points.where(np.isin(points.method, SIX))
    kinds = len(set(six.noise.tolist())) > 1
    panels = []
    for axis in AXES:
        lines = []
        for dataset, noise in dict.fromkeys(zip(six.dataset.tolist(), six.noise.tolist(), strict=True)):
            mine = six.of(dataset=dataset, noise=noise)
            name = f"{dataset}, {noise}" if kinds else dataset
            lines.append(Point(name, 0.0, 1.0))
            for rate in np.unique(mine.rate):
                at = mine.of(rate=rate)
                lines.append(Point(name, float(getattr(at, axis).mean()), float(at.shares[0].mean())))
        panels.append(
            traces("Mean of six rankers", "share of NDCG@10 above random kept", axis, lines, "Data set")
        )
    return panels


def loss_panels(summary: Summary) -> list[Panel]:
    """Fig. 3: the loss of PRank against each axis, a line per data set and kind of noise."""
    panels = []
    for axis in AXES:
        x = realised(summary, axis)
        lines = []
        for dataset in summary.datasets:
            for noise in dict.fromkeys(level.noise for level in summary.levels if not level.clean):
                rows = [
                    r
                    for r in summary.rows
                    if (r.dataset, r.measure) == (dataset, "loss")
                    and (r.level.clean or r.level.noise == noise)
                ]
                rows = [r for r in rows if (dataset, r.level) in x and r.mean is not None]
                if any(not r.level.clean for r in rows):
                    lines += [
                        Point(f"{dataset}, {noise}", x[dataset, r.level], float(r.mean or 0))
                        for r in sorted(rows, key=lambda r: r.level.rate)
                    ]
        panels.append(traces("PRank", "|predicted - true grade| / (C - 1)", axis, lines, "Data set"))
    return panels


if __name__ == "__main__":
    main()
