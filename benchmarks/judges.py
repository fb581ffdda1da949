"""Can I trust my judge? Runs recipes/judges; tables and pictures of docs/results/judges.md and of its guide.

Cells are stored as they come; a run that is stopped goes on where it was.

    CLEANRANK_DATA=... python benchmarks/judges.py --store .cleanrank/judges.sqlite --jobs 2
    python benchmarks/pages.py judges
"""

import argparse
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TypeAlias

import cleanrank as cr
from cleanrank import JudgeReport
from cleanrank.data.judged import JUDGE
from cleanrank.experiments.driver import reproduce
from cleanrank.experiments.recipe import read_recipe
from cleanrank.experiments.results import export
from cleanrank.experiments.tracked import recall
from cleanrank.report.images import save_picture
from cleanrank.report.judge_tables import query_panel, reliability_panel
from cleanrank.report.panels import Panel, Point
from cleanrank.report.table import Table

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "results" / "img"
COLOURS = (1, 2, 3)
RECIPES = ("coverage", "all", "order", "class-conditional")
Figures: TypeAlias = Mapping[tuple[str, str], Mapping[str, float]]


@cache
def figures(name: str) -> Figures:
    """(data set, method) -> measure -> mean, of what results/judges holds of a recipe."""
    recipe = read_recipe(ROOT / "recipes" / "judges" / f"{name}.toml")
    return {
        (str(record.cell["dataset"]), str(record.cell["method"])): record.means
        for record in recall(recipe, folder=ROOT / "results").records
        if record.status == "done"
    }


def coverage_table(cells: Figures) -> Table:
    """Coverage and widths of each design."""
    columns = [
        ("gold labels", "label"),
        ("coverage", "coverage", ".3f"),
        ("least of a system", "least coverage", ".3f"),
        ("gold alone", "coverage of gold alone", ".3f"),
        ("judge alone", "coverage of the judge alone", ".3f"),
        ("width / gold alone", "width / gold alone", ".2f"),
    ]
    return Table.of([{"label": label, **means} for (_, label), means in cells.items()], columns)


def coverage_panel(cells: Figures) -> Panel:
    """Coverage with the judge, from gold labels alone and from the judge alone."""
    sources = {
        "judge and gold": "coverage",
        "gold alone": "coverage of gold alone",
        "judge alone": "coverage of the judge alone",
    }
    short = {
        label: label.replace(" drawn", "").replace(" for evaluation", "").replace("queries like", "like")
        for _, label in cells
    }
    points = [
        Point(short[label], source, means[name])
        for (_, label), means in cells.items()
        for source, name in sources.items()
    ]
    named = {"measure": "coverage", "x_title": "share of 95 % intervals that hold the truth"}
    rules = ((0.95, ""),)
    return Panel(
        "dots",
        tuple(short.values()),
        tuple(sources),
        tuple(points),
        **named,
        rules=rules,
        x_domain=(0.0, 1.0),
        colours=COLOURS,
    )


def judges_table(
    both: Figures,
    order: Figures,
    test: Figures,
) -> Table:
    """One line per judge: what its labels alone say, what they save, whether they keep the order."""
    rows = []
    for judge in dict.fromkeys(judge for judge, _ in both):
        queries, documents = (
            both[judge, f"{label}"] for label in ("15 queries / ndcg@10", "300 documents / dcg@10")
        )
        taus, rejected = order[judge, "300 documents / dcg@10"], test[judge, "300 documents"]
        rows.append(
            {
                "judge": judge,
                "alone": documents["error of the judge alone"],
                "error": documents["error"],
                "queries": queries["coverage"],
                "queries_width": queries["width / gold alone"],
                "documents": documents["coverage"],
                "documents_width": documents["width / gold alone"],
                "tau": taus["tau of the judge"],
                "calibrated": taus["tau of the calibrated judge"],
                "corrected": taus["tau of corrected levels"],
                "rejected": rejected["rejected"],
            }
        )
    columns = [
        ("judge", "judge"),
        ("error of DCG@10, judge alone", "alone", ".2f"),
        ("with 300 documents", "error", ".2f"),
        ("coverage, 15 queries", "queries", ".3f"),
        ("width / gold alone", "queries_width", ".2f"),
        ("coverage, 300 documents", "documents", ".3f"),
        ("width / gold alone ", "documents_width", ".2f"),
        ("tau, judge", "tau", ".2f"),
        ("calibrated", "calibrated", ".2f"),
        ("corrected", "corrected", ".2f"),
        ("not class-conditional", "rejected", ".2f"),
    ]
    return Table.of(rows, columns)


def order_panel(order: Figures) -> Panel:
    """Kendall's tau of every judge, three ways."""
    sources = {
        "judge": "tau of the judge",
        "calibrated": "tau of the calibrated judge",
        "corrected": "tau of corrected levels",
    }
    points = [
        Point(judge, source, means[name])
        for (judge, _), means in order.items()
        for source, name in sources.items()
    ]
    named = {"measure": "tau", "x_title": "Kendall's tau with the order under NIST's labels"}
    judges = tuple(judge for judge, _ in order)
    return Panel("dots", judges, tuple(sources), tuple(points), **named, x_domain=(0.5, 1.0), colours=COLOURS)


def strongest() -> JudgeReport:
    """The report on UMBRELA-GPT-4 beside NIST on dl19, without systems."""
    parts = cr.load_dataset("dl19", 1, judge="umbrella_gpt-4_zeroshot")
    labels = [
        {
            str(q): dict(zip(data.doc_ids[a:b], grades[a:b].tolist(), strict=True))
            for data in parts
            for grades in [data.y if source == "nist" else data.extra[JUDGE]]
            for q, a, b in zip(data.query_ids, data.indptr[:-1], data.indptr[1:], strict=True)
        }
        for source in ("nist", "judge")
    ]
    return cr.judge_report(*labels)


TEXTS: dict[str, Callable[[], str]] = {
    "coverage": lambda: coverage_table(figures("coverage")).markdown(),
    "judges": lambda: judges_table(figures("all"), figures("order"), figures("class-conditional")).markdown(),
}
PICTURES: dict[str, Callable[[Path], object]] = {
    "judges-coverage.svg": lambda path: save_picture([coverage_panel(figures("coverage"))], path),
    "judges-order.svg": lambda path: save_picture([order_panel(figures("order"))], path),
}


def main() -> None:
    """Computes what is missing, puts it into results/judges and draws the pictures that need the labels."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--store", type=Path, default=Path(".cleanrank/judges.sqlite"))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    asked = parser.parse_args()
    for name in RECIPES:
        run = reproduce(ROOT / "recipes" / "judges" / f"{name}.toml", store=asked.store, jobs=asked.jobs)
        export(run.records, ROOT / "results" / "judges" / f"{name}.parquet")
    report = strongest()
    save_picture([reliability_panel([report])], IMAGES / "judges-reliability.svg")
    save_picture([query_panel(report)], IMAGES / "judges-leniency.svg")


if __name__ == "__main__":
    main()
