"""Can I trust my judge? Runs recipes/judges, writes docs/results/judges.md, pictures and tables of the page.

Cells are stored as they come; a run that is stopped goes on where it was.

    CLEANRANK_DATA=... python benchmarks/judges.py --store .cleanrank/judges.sqlite --jobs 2
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

from pages import fill

import cleanrank as cr
from cleanrank import JudgeReport
from cleanrank.data.judged import JUDGE
from cleanrank.experiments.driver import Reproduction, reproduce
from cleanrank.report.images import save_picture
from cleanrank.report.judge_tables import query_panel, reliability_panel
from cleanrank.report.panels import Panel, Point
from cleanrank.report.table import Table

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "can-i-trust-my-judge.md"
RESULTS = ROOT / "docs" / "results" / "judges.md"
PICTURES = ROOT / "docs" / "results" / "img"
COLOURS = (1, 2, 3)
RECIPES = ("coverage", "all", "order", "class-conditional")
ABOUT = (
    "# Judges of dl19 as evaluators\n\n"
    "All tables behind [Can I trust my judge?](../can-i-trust-my-judge.md). TREC Deep Learning 2019: "
    "43 queries, 9,260 pairs with NIST's grades and those of 15 language-model judges, 37 systems. Seed 1; "
    "1,000 draws of gold labels a cell, 200 for ndcg@10 and for all judges from documents, 50 for the order. "
    "Figures are means over the 37 systems; those of differences are means over all 666 pairs of systems. "
    "Judges that answer yes or no count 0 and 2."
)


def figures(run: Reproduction) -> dict[tuple[str, str], Mapping[str, float]]:
    """(data set, method) -> measure -> mean, of the cells that are done."""
    return {
        (str(record.cell["dataset"]), str(record.cell["method"])): record.means
        for record in run.records
        if record.status == "done"
    }


def coverage_table(cells: Mapping[tuple[str, str], Mapping[str, float]]) -> Table:
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


def coverage_panel(cells: Mapping[tuple[str, str], Mapping[str, float]]) -> Panel:
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
    both: Mapping[tuple[str, str], Mapping[str, float]],
    order: Mapping[tuple[str, str], Mapping[str, float]],
    test: Mapping[tuple[str, str], Mapping[str, float]],
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


def order_panel(order: Mapping[tuple[str, str], Mapping[str, float]]) -> Panel:
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


def main() -> None:
    """Computes what is missing and writes pages and pictures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--store", type=Path, default=Path(".cleanrank/judges.sqlite"))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    asked = parser.parse_args()
    runs = {
        name: reproduce(ROOT / "recipes" / "judges" / f"{name}.toml", store=asked.store, jobs=asked.jobs)
        for name in RECIPES
    }
    cells = {name: figures(run) for name, run in runs.items()}
    coverage = coverage_table(cells["coverage"])
    judges = judges_table(cells["all"], cells["order"], cells["class-conditional"])
    commands = "\n".join(f"    {run.command}" for run in runs.values())
    parts = [ABOUT, commands, "## Coverage", coverage.markdown(), "## All judges", judges.markdown()]
    RESULTS.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    report = strongest()
    save_picture([reliability_panel([report])], PICTURES / "judges-reliability.svg")
    save_picture([query_panel(report)], PICTURES / "judges-leniency.svg")
    save_picture([coverage_panel(cells["coverage"])], PICTURES / "judges-coverage.svg")
    save_picture([order_panel(cells["order"])], PICTURES / "judges-order.svg")
    fill(PAGE, {"coverage": coverage.markdown(), "judges": judges.markdown()})


if __name__ == "__main__":
    main()
