"""Reports on all judges of TREC Deep Learning 2019 and 2020, and how a noise matrix fails on their errors.

Writes the tables of docs/judge-report.md and docs/noisy-test-labels.md. Values of judges on other scales are
brought to NIST's grades by SCALES, which were fixed beforehand: yes is grade 2, NIST's line of relevance.

    CLEANRANK_DATA=... python benchmarks/judge_reports.py             # about five minutes
    CLEANRANK_DATA=... python benchmarks/judge_reports.py --draws 5 --no-write
"""

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pages import fill
from timing import write_result

import cleanrank as cr
from cleanrank.judges.labels import as_labels, as_runs, pool_of
from cleanrank.judges.report import JudgeReport
from cleanrank.metrics.noisy_labels import corrected
from cleanrank.noise.class_conditional import class_conditional_test
from cleanrank.ragged import ranks
from cleanrank.report.table import Table

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("CLEANRANK_DATA", ".")) / "trec-dl-judges"
SCALES = {
    "binary_": {0: 0, 1: 2},
    "qrels.max.exam_selfrate_binary": {0: 0, 1: 2},
    "qrels.mean.exam_selfrate_binary": {0: 0, 0.25: 1, 0.5: 2, 0.75: 3},
    "exam_selfrate_graded": {0: 0, 0.5: 1, 2: 2, 4: 3},
}
GOLD_ROWS = 300
BEST = "umbrella_gpt-4_zeroshot"
CONVENTIONS = ("dcg@10:letor", "dcg@10:lightgbm", "dcg@10:trec")


def frames(year: str) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Gold labels, and those of every judge."""
    labels = pd.read_parquet(DATA / f"{year}.labels.parquet")
    pairs = labels[["qid", "docid"]].astype(str)
    judges = {c[2:]: pairs.assign(grade=labels[c]).dropna() for c in labels if c.startswith("j:")}
    return pairs.assign(grade=labels["nist"]), judges


def systems() -> dict[str, pd.DataFrame]:
    """The 37 runs of 2019."""
    names = ["qid", "q0", "docid", "rank", "score", "tag"]
    kinds = {"qid": str, "docid": str}
    runs = pd.read_csv(DATA / "dl19.runs_top100.txt.gz", sep=r"\s+", names=names, dtype=kinds)
    return {str(tag): part for tag, part in runs.groupby("tag")}


def rejections(year: str, gold: pd.DataFrame, judge: pd.DataFrame, mapping: Any, draws: int) -> float:
    """How often the test rejects with 300 gold rows, drawn in equal numbers of the judge's grades."""
    features = pd.read_parquet(DATA / f"{year}.features.parquet")
    features["qid"], features["docid"] = features["qid"].astype(str), features["docid"].astype(str)
    labels = as_labels(judge, "judge", mapping)
    rows = pd.DataFrame({"qid": labels.qid, "docid": labels.docid, "given": labels.grade})
    rows = rows.merge(gold, on=["qid", "docid"]).merge(features, on=["qid", "docid"])
    ranked = [name for name in features if name.startswith("rr:")]
    covariates = {"features": features.columns[2:34]}
    data = cr.from_arrays(np.zeros((len(rows), 0)), rows["given"].to_numpy(), qid=np.zeros(len(rows)))
    rejected = 0
    for seed in range(draws):
        some = rows.iloc[cr.sample_gold(data, GOLD_ROWS, seed=seed).rows]
        columns = {name: some[list(chosen)].to_numpy(np.float64) for name, chosen in covariates.items()}
        if ranked:
            columns["rank"] = some[ranked].to_numpy(np.float64).mean(axis=1)
        grades = some["grade"].to_numpy(), some["given"].to_numpy()
        rejected += class_conditional_test(*grades, some["qid"], columns, seed=seed).rejected()
    return rejected / draws


def failure(gold: pd.DataFrame, judge: pd.DataFrame, runs: Any) -> dict[str, Any]:
    """DCG@10 of the systems: by gold labels, by the judge's, and these corrected by the exact matrix."""
    pool = pool_of([as_labels(gold), as_labels(judge)], as_runs(runs))
    both = (pool.grades >= 0).all(axis=0)
    counts = np.zeros((4, 4))
    np.add.at(counts, tuple(pool.grades[:, both]), 1)
    matrix = counts / counts.sum(axis=1, keepdims=True)
    by_measure = {}
    for measure in CONVENTIONS:
        rows = []
        for each in pool.scores:
            scores = np.ma.masked_equal(each, -np.inf)
            truth = cr.evaluate(scores, pool.data(pool.grades[0]), measure, order="data").means
            one = corrected(scores, pool.data(pool.grades[1]), measure, noise=matrix, resamples=2000)
            rows.append([*truth.values(), one.noisy[0], one.means[0], one.low[0], one.high[0]])
        table = np.array(rows)
        held = (table[:, 3] <= table[:, 0]) & (table[:, 0] <= table[:, 4])
        names = ("gold", "judge", "corrected", "low", "high")
        by_measure[measure] = dict(zip(names, table.mean(axis=0).tolist(), strict=True))
        by_measure[measure]["holds"] = float(held.mean())
    places = [(ranks(s, pool.indptr) <= 10) & ~np.isneginf(s) for s in pool.scores]
    top, relevant = np.logical_or.reduce(places), both & (pool.grades[0] >= 2)
    found = pool.grades[1] >= 2
    sensitivity = {"all": float(found[relevant].mean()), "top": float(found[relevant & top].mean())}
    return {"matrix": matrix.tolist(), "measures": by_measure, "sensitivity": sensitivity}


def judges_table(records: list[dict[str, Any]]) -> Table:
    """A row per judge; the best agreement first."""
    columns = [
        ("judge", "judge"), ("equal", "equal", ".2f"), ("kappa", "kappa", ".2f"),
        ("quadratic", "quadratic", ".2f"), ("alpha", "alpha", ".2f"), ("wrong pairs", "pnoise"),
        ("leniency", "leniency"), ("test rejects", "rejects", ".2f"),
    ]  # fmt: skip
    if "tau" in records[0]:
        columns += [
            ("tau", "tau"),
            ("tau-AP", "tau_ap", ".2f"),
            ("turned / sure", "turned"),
            ("bias", "bias"),
        ]
    columns += [("train / order / levels", "verdicts")]
    return Table.of(sorted(records, key=lambda r: -r["quadratic"]), columns)


def record_of(report: JudgeReport, rejects: float) -> dict[str, Any]:
    """The figures of a row of the table."""
    labels = report.labels
    span = "{0.value:.2f} [{0.low:.2f}, {0.high:.2f}]".format
    record = {
        "judge": report.name,
        **{name: labels.agreement[name].value for name in ("kappa", "quadratic", "alpha")},
        "equal": labels.agreement["share"].value,
        "pnoise": span(labels.pnoise),
        "leniency": f"{labels.leniency.value:+.2f} [{labels.leniency.low:+.2f}, {labels.leniency.high:+.2f}]",
        "rejects": rejects,
        "verdicts": " / ".join(v.answer for v in report.verdicts),
    }
    if report.orders:
        first = report.orders[0]
        bias = f"{first.bias.value:+.3f} [{first.bias.low:+.3f}, {first.bias.high:+.3f}]"
        record |= {"tau": span(first.tau), "tau_ap": first.tau_ap.value, "bias": bias}
        record["turned"] = f"{first.reversed} / {first.significant}"
    return record


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=50, help="samples of gold rows for the test")
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    tables, result = {}, {"draws": options.draws, "gold_rows": GOLD_ROWS, "seed": 0}
    for year in ("dl19", "dl20"):
        gold, judges = frames(year)
        runs = systems() if year == "dl19" else None
        scales = {n: next((s for part, s in SCALES.items() if part in n), None) for n in judges}
        reports = cr.judge_report(gold, judges, runs, mapping=scales)
        records = [
            record_of(report, rejections(year, gold, judges[name], scales[name], options.draws))
            for name, report in reports.items()
        ]
        result[year] = records
        tables[year] = judges_table(records).markdown()
        if year == "dl19":
            result["failure"] = failure(gold, judges[BEST], runs)
    measured = [{"measure": m, **figures} for m, figures in result["failure"]["measures"].items()]
    for row in measured:
        row["interval"] = f"{row['corrected']:.2f} [{row['low']:.1f}, {row['high']:.1f}]"
    columns = [("measure", "measure"), ("NIST", "gold", ".2f"), ("as judged", "judge", ".2f")]
    columns += [('"corrected"', "interval"), ("interval holds NIST's figure", "holds", ".0%")]
    tables["failure"] = Table.of(measured, columns).markdown()
    print("\n\n".join(tables.values()), result["failure"]["sensitivity"])
    if not options.no_write:
        write_result("judge_reports", result)
        for year in ("dl19", "dl20"):
            fill(ROOT / "docs" / "judge-report.md", {year: tables[year]})
        fill(ROOT / "docs" / "noisy-test-labels.md", {"failure": tables["failure"]})


if __name__ == "__main__":
    main()
