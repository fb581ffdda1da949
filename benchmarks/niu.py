"""What noise does to the rankers of Niu et al. (2014, 2015): the tables and pictures of docs/results/niu.md.

Reads the runs of recipes/niu from a store, prints the tables; ``--write`` puts them into the page and draws
its pictures. Nothing is computed anew: what is not stored is left out, and the page says what ran. Of a noise
level the seeds and folds count for which all rankers are there.

    cleanrank reproduce recipes/niu/uniform.toml --store runs.sqlite     # and the others
    python benchmarks/niu.py runs.sqlite --write
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from cards.degradation import joined, levels_of, points_of, robustness
from cards.degradation_pictures import loss_panels, mean_panels, ranker_panels
from cards.degradation_tables import (
    BASE,
    SIX,
    best_table,
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
from cards.whole import whole_part
from pages import fill

from cleanrank.data.catalogue import entry_of, load_dataset
from cleanrank.errors import MissingDataError
from cleanrank.experiments.driver import collect, plan
from cleanrank.experiments.recipe import read_recipe
from cleanrank.experiments.store import Store
from cleanrank.metrics.evaluation import evaluate_mean
from cleanrank.report.grid_tables import pair_noise_table, results_table, verdict_table
from cleanrank.report.images import save_picture
from cleanrank.report.panels import pair_noise_panels
from cleanrank.report.published import compare_published
from cleanrank.report.summaries import Summary, summarise
from cleanrank.report.table import Cell, Line, Table, number
from cleanrank.types import RankingData, RunRecord

ROOT = Path(__file__).parent.parent
NDCG, MAP = "ndcg@10:letor:ties=average", "map:letor:ties=average"
RANKED = ("uniform", "nonuniform", "adjacent", "stand-ins", "grades", "balance", "robust-ranker")

# Of a place in the page: the file of its picture, and its words.
PICTURES = {
    "uniform ndcg": ("uniform", "Share of NDCG@10 above random that is kept, against dNoise and pNoise"),
    "nonuniform ndcg": ("nonuniform", "Share of NDCG@10 above random that is kept under geometric noise"),
    "explained": ("collapse", "Mean share kept of the six rankers, against dNoise and pNoise"),
    "grades ndcg": ("grades", "Mean share kept of the six rankers on sets with more and fewer grades"),
    "balance ndcg": ("balance", "Mean share kept of the six rankers on balanced and unbalanced samples"),
    "pointwise": ("pointwise", "PRank's loss against dNoise and pNoise"),
}
# Data sets as they are, neither merged nor sampled.
WHOLE = ("OHSUMED", "MQ2008", "MSLR sample", "TD2003's shape (synthetic)", "MSLR's shape (synthetic)")


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
    by_method = [{r.cell["seed"] for r in done if r.cell["method"] == m.label} for m in recipe.methods]
    if shared := set.intersection(*by_method):  # a method may have run with fewer seeds than those of others
        done = [r for r in done if r.cell["seed"] in shared]
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
        ranked = own_parts([read(n, store, [NDCG, MAP]) for n in (*RANKED, "robust-forms")])
        other = own_parts([read(n, store, None) for n in ("newcome", "pointwise", "pnoise")])
    texts = with_pictures(sections(ranked, other))
    for name, text in texts.items():
        print(f"\n## {name}\n\n{text}")
    if asked.write:
        fill(ROOT / "docs" / "results" / "niu.md", texts)
        draw(ranked, other, ROOT / "docs" / "results" / "img")


def own_parts(parts: Sequence[Part | None]) -> dict[str, Part]:
    """The parts that have cells which no part before them has."""
    kept: dict[str, Part] = {}
    seen: set[str] = set()
    for part in parts:
        if part is not None and not seen.issuperset(keys := {r.key for r in part.records}):
            kept[part.name] = part
            seen |= keys
    return kept


def with_pictures(texts: Mapping[str, str]) -> dict[str, str]:
    """Texts that begin with the picture of their part."""
    return {
        name: f"![{PICTURES[name][1]}](img/niu-{PICTURES[name][0]}.svg)\n\n{text}"
        if name in PICTURES
        else text
        for name, text in texts.items()
    }


def sections(ranked: Mapping[str, Part], other: Mapping[str, Part]) -> dict[str, str]:
    """Text by the name of its place in the page; empty where nothing ran."""
    texts = {
        "ran": ran_table([*ranked.values(), *other.values()]).markdown(),
        "scales": scale_table().markdown(),
    }
    texts |= {"shares": best_table().markdown(), "order": order_table().markdown()}
    for name, part in ranked.items():
        if name not in ("robust-forms", "robust-ranker"):
            for measure, word in ((NDCG, "ndcg"), (MAP, "map")):
                texts[f"{name} {word}"] = wide_table(part.summary, measure).markdown()
    study = [points_of(ranked[n].summary, NDCG) for n in ("uniform", "nonuniform") if n in ranked]
    if study:
        core = joined(study)
        texts["robustness"] = robustness_table(core).markdown()
        texts["knees"] = knee_table(core.where(np.isin(core.method, [*SIX, BASE]))).markdown()
        sets = unions({n: p.summary for n, p in ranked.items()}, NDCG)
        texts["explained"] = explained_table(sets).markdown()
        texts["short"] = short_words(sets, core)
    if "robust-ranker" in ranked and "RobustRanker" in ranked["robust-ranker"].summary.methods:
        texts["robust-ranker"] = rivals_table(ranked).markdown()
    if "robust-forms" in ranked:
        texts["forms"] = forms_table(ranked["robust-forms"].summary, NDCG).markdown()
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
        verdicts = [v for v in compare_published(summary, here) if v.published is not None]
        texts["readings"] = verdict_table(verdicts).markdown()
    return texts


def part_of(summary: Summary, rates: Sequence[float]) -> Summary:
    """The clean level and some rates of a summary."""
    return replace(summary, levels=tuple(levels_of(summary, rates)))


def order_table() -> Table:
    """What a ranker without an opinion is given by the order of rows in the files."""
    rows: list[Line] = []
    for name in ("ohsumed", "mq2008", "mslr-sample"):
        parts = [load_dataset(name, fold=fold).test for fold in entry_of(name).folds or (1,)]
        weights = [part.n_queries for part in parts]

        def mean(
            measure: str, parts: Sequence[RankingData] = parts, weights: Sequence[int] = weights
        ) -> Cell:
            values = [evaluate_mean(np.zeros(part.n_docs), part, measure) for part in parts]
            return number(float(np.average(values, weights=weights)), ".3f")

        rows.append([name, *(mean(m) for m in ("ndcg@10:letor", NDCG, "map:letor", MAP))])
    head = ["Data set", "NDCG@10 by file order", "ties averaged", "MAP by file order", "ties averaged"]
    return Table(head, rows, align="lrrrr")


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
        both = whole_part(list({r.key: r for r in records}.values()), group=lambda dataset: dataset).records
        summary = summarise(both, measures=[NDCG], resamples=1000)
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
    return Table(head, rows, align="ll" + "r" * (len(rates) + 2))


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
        summary = other["pnoise"].summary
        unsampled = tuple(cell for cell in summary.cells if cell.dataset in WHOLE)
        save_picture(pair_noise_panels(replace(summary, cells=unsampled)), folder / "niu-pnoise.svg")
    if "pointwise" in other:
        save_picture(loss_panels(other["pointwise"].summary), folder / "niu-pointwise.svg", width=400)


if __name__ == "__main__":
    main()
