"""Missing judgements of TREC DL 2019: how well hidden ones are found, and whether probabilities are right.

    python benchmarks/missing.py [--seeds 3] [--only holes,texts,pool]

Needs trec-dl-judges in CLEANRANK_DATA. Relevant is grade >= 2 as in TREC DL's binary measures, and >= 1.

* holes: 30 % of the relevant judgements are hidden among 19,011 pairs of the runs' first 100 that NIST did
  not judge (they count as not relevant); no texts of these are known, so runs alone. Of the hidden ones, some
  are in no run's first 100, which tells them apart; figures without them are stored as "retrieved".
* texts: 30 % of the relevant judgements are hidden among the pairs that NIST judged not relevant and that no
  run has in its first 10; they stand in for unjudged pairs, since their texts are known.
* pool: only what some run has in its first 10 counts as judged; the truth about the rest is known to NIST.

The way unjudged pairs are treated was chosen by hiding 30 % of what stays visible once more ("inner"). The
result goes to benchmarks/results/missing.json and, by ``make docs``, into docs/missing-judgements.md.
"""

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from timing import RESULTS, write_result

from cleanrank.data.split import fold_of_query
from cleanrank.issues.features import systems_of
from cleanrank.issues.missing import UNJUDGED, MissingJudgements, calibrated, find_missing
from cleanrank.issues.run_features import rank_table, ranks_and_scores
from cleanrank.issues.table import average_precision
from cleanrank.ragged import match_rows, query_of_row

ROOT = Path(os.environ.get("CLEANRANK_DATA", "")) / "trec-dl-judges"
HIDDEN, DEPTH, BINS, DRAWS, GOLD = 0.3, 10, 10, 1000, (200, 500)
GRADES = (2, 1)
NAMES = {"retrieved": "runs; only pairs that some run retrieves"}
EVIDENCE = {"runs and texts": ("runs", "texts"), "runs": ("runs",), "texts": ("texts",)}


def judged() -> tuple[pd.DataFrame, dict[str, Any]]:
    """NIST's judgements with texts and the best rank of any run; the runs."""
    table = pd.read_parquet(ROOT / "dl19.labels.parquet")[["qid", "docid", "nist", "query", "text"]]
    systems = systems_of(ROOT / "dl19.runs_top100.txt.gz")
    best: dict[tuple[str, str], int] = {}
    for run in systems.values():
        ranks = ranks_and_scores(run)[0].tolist()
        pairs = zip(run.topic_ids[run.topic].tolist(), run.doc_ids[run.doc].tolist(), strict=True)
        for pair, rank in zip(pairs, ranks, strict=True):
            best[pair] = min(rank, best.get(pair, rank))
    pairs = zip(table["qid"], table["docid"], strict=True)
    return table.assign(best=[best.get(pair, 10**6) for pair in pairs]), systems


def found_with(
    table: pd.DataFrame, visible: np.ndarray, systems: Any, evidence: tuple[str, ...], **options: Any
) -> MissingJudgements:
    """What is found where only some rows of the table are judged."""
    grades = np.where(visible, table["nist"], -1)
    columns = {"qid": table["qid"], "docid": table["docid"], "grade": grades}
    texts = {"query": table["query"], "text": table["text"]} if "texts" in evidence else {}
    given = {name: column.tolist() for name, column in {**columns, **texts}.items()}
    return find_missing(given, runs=systems if "runs" in evidence else None, **options)


def truth_of(found: MissingJudgements, table: pd.DataFrame) -> np.ndarray:
    """NIST's grade of every pair, -1 where it gave none."""
    grade = dict(zip(zip(table["qid"], table["docid"], strict=True), table["nist"], strict=True))
    pairs = zip(found.data.qid.tolist(), found.data.doc_ids.tolist(), strict=True)
    return np.array([grade.get((str(query), str(doc)), -1) for query, doc in pairs])


def precision(found: MissingJudgements, systems: Any, rows: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    """Average precision on some rows, beside that of every run's reciprocal rank and of their fusion."""
    ranks, _ = rank_table(systems, found.data)
    rr = np.nan_to_num(1 / ranks)
    runs = {name: average_precision(rr[at][rows], truth[rows]) for at, name in enumerate(systems)}
    best = max(runs, key=lambda name: runs[name])
    fusion = np.nan_to_num(1 / (60 + ranks)).sum(axis=0)
    order = np.lexsort((found.score[rows], found.probability[rows]))
    place = np.empty(len(order))
    place[order] = np.arange(len(order))
    own = average_precision(place, truth[rows])
    return {"candidates": len(rows), "relevant": int(truth[rows].sum()), "ap": own, "best run": best,
            "ap best run": runs[best], "ap fusion": average_precision(fusion[rows], truth[rows]),
            "ratio": own / runs[best], "effort": effort(truth[rows][order[::-1]])}  # fmt: skip


def effort(truth: np.ndarray, share: float = 0.8) -> float:
    """The share of the rows to judge, in this order, until such a share of the relevant ones is found."""
    return float((np.searchsorted(np.cumsum(truth), share * truth.sum()) + 1) / len(truth))


def calibration(found: MissingJudgements, seed: int = 0) -> dict[str, Any]:
    """Reliability on judged pairs; neither models nor curve saw their queries."""
    data, known = found.data, np.asarray(found.data.judged)
    labels = known & (data.y >= found.relevant)
    query = query_of_row(data.indptr)
    fold = fold_of_query(data, 5, seed)[query]
    p = np.zeros(data.n_docs)
    for each in range(5):
        curve = calibrated(found.score[known & (fold != each)], labels[known & (fold != each)])
        p[fold == each] = curve.apply(found.score[fold == each])
    return reliability(p[known], labels[known], query[known], seed)


def reliability(p: np.ndarray, labels: np.ndarray, query: np.ndarray, seed: int = 0) -> dict[str, Any]:
    """Expected calibration error over bins of equal size, with an interval by a bootstrap over queries."""
    bins = np.minimum(np.argsort(np.argsort(p, kind="stable")) * BINS // len(p), BINS - 1)
    Q = int(query.max()) + 1
    gap, size, ones, mass = (np.zeros((Q, BINS)) for _ in range(4))
    np.add.at(gap, (query, bins), labels - p)
    np.add.at(size, (query, bins), 1)
    np.add.at(ones, (query, bins), labels)
    np.add.at(mass, (query, bins), p)
    draws = np.random.default_rng(seed).integers(Q, size=(DRAWS, Q))
    of_draws = [abs(gap[each].sum(axis=0)).sum() / size[each].sum() for each in draws]
    of_bins = [gap[each].sum(axis=0) / np.maximum(size[each].sum(axis=0), 1) for each in draws]
    n = size.sum(axis=0)
    low, high = np.quantile(of_bins, [0.025, 0.975], axis=0)
    rows = [
        {"predicted": mass[:, b].sum() / n[b], "observed": ones[:, b].sum() / n[b], "rows": int(n[b]),
         "gap": gap[:, b].sum() / n[b], "low": low[b], "high": high[b]}
        for b in range(BINS)
    ]  # fmt: skip
    ece = float(abs(gap.sum(axis=0)).sum() / n.sum())
    return {"ece": ece, "interval": np.quantile(of_draws, [0.025, 0.975]).tolist(), "bins": rows,
            "largest gap": max(abs(row["gap"]) for row in rows)}  # fmt: skip


def holes(table: pd.DataFrame, systems: Any, relevant: int, seeds: int) -> dict[str, Any]:
    """Hidden among pairs that nobody judged; and the choice between the two treatments of these."""
    made: dict[str, Any] = {"runs": [], "retrieved": [], "inner": []}
    for seed in range(seeds):
        random = np.random.default_rng(seed).random((2, len(table)))
        is_relevant = (table["nist"] >= relevant).to_numpy()
        visible = ~(is_relevant & (random[0] < HIDDEN))
        inner = visible & ~(is_relevant & (random[1] < HIDDEN))
        tried = [("runs", visible, ~visible, UNJUDGED[0])]
        if seed == 0:
            tried += [("inner", inner, visible & ~inner, unjudged) for unjudged in UNJUDGED]
        for name, shown, sought, unjudged in tried:
            options = {"relevant": relevant, "unjudged": unjudged, "seed": seed}
            found = found_with(table, shown, systems, ("runs",), **options)
            hidden = truth_of(found, table[sought]) >= 0
            rows = np.flatnonzero(found.is_open)
            record = {"seed": seed, "unjudged": unjudged, **precision(found, systems, rows, hidden)}
            if name == "runs":
                seen = rows[~np.isnan(rank_table(systems, found.data)[0][:, rows]).all(axis=0)]
                record |= {"calibration": calibration(found), "expected": found.expected}
                made["retrieved"].append({"seed": seed, **precision(found, systems, seen, hidden)})
            made[name].append(record)
    return made


def texts(table: pd.DataFrame, systems: Any, relevant: int, seeds: int) -> dict[str, Any]:
    """Hidden among judged pairs below the pool that are not relevant, by each kind of evidence."""
    made: dict[str, Any] = {name: [] for name in EVIDENCE}
    is_relevant = (table["nist"] >= relevant).to_numpy()
    below = (table["best"] > DEPTH).to_numpy()
    for seed in range(seeds):
        hidden = is_relevant & (np.random.default_rng(seed).random(len(table)) < HIDDEN)
        visible = ~hidden & (is_relevant | ~below)
        for name, evidence in EVIDENCE.items():
            found = found_with(table, visible, systems, evidence, relevant=relevant, seed=seed)
            truth = truth_of(found, table)
            rows = np.flatnonzero(found.is_open & (truth >= 0))
            made[name].append({"seed": seed, **precision(found, systems, rows, truth >= relevant),
                               "calibration": calibration(found)})  # fmt: skip
    return made


def pool(table: pd.DataFrame, systems: Any, relevant: int, seeds: int) -> dict[str, Any]:
    """What lies below the pool, whose truth is known: order, and probabilities with and without gold rows."""
    made: dict[str, Any] = {}
    visible = (table["best"] <= DEPTH).to_numpy()
    for name, evidence in EVIDENCE.items():
        for unjudged in UNJUDGED:
            found = found_with(table, visible, systems, evidence, relevant=relevant, unjudged=unjudged)
            truth = truth_of(found, table)
            rows = np.flatnonzero(found.is_open & (truth >= 0))
            record = precision(found, systems, rows, truth >= relevant)
            query = query_of_row(found.data.indptr)
            labels = truth >= relevant
            record["calibration"] = reliability(found.probability[rows], labels[rows], query[rows])
            record["expected"] = float(found.probability[rows].sum())
            record["held out"] = calibration(found)
            for n in GOLD:
                errors = []
                for seed in range(seeds):
                    gold = np.random.default_rng(seed).choice(rows, n, replace=False)
                    curve = calibrated(found.score[gold], labels[gold])
                    rest = rows[match_rows(gold, rows) < 0]
                    errors.append(
                        reliability(curve.apply(found.score[rest]), labels[rest], query[rest])["ece"]
                    )
                record[f"ece with {n} gold rows"] = float(np.mean(errors))
            made[f"{name}, {unjudged}"] = record
    return made


PARTS: dict[str, Callable[..., dict[str, Any]]] = {"holes": holes, "texts": texts, "pool": pool}


def stored() -> dict[str, Any]:
    """What was measured."""
    result: dict[str, Any] = json.loads((RESULTS / "missing.json").read_text())
    return result


def mean(records: list[dict[str, Any]], *keys: str) -> float:
    """The mean over seeds of a figure."""
    values: Any = records
    for key in keys:
        values = [each[key] for each in values]
    return float(np.mean(values))


def found_text() -> str:
    """The table of hidden judgements that are found."""
    head = ("hidden among", "relevant", "evidence", "pairs", "hidden", "average precision", "best run",
            "fusion", "ratio", "judged until 80 % are found")  # fmt: skip
    lines = [row(head), row(["---", "---", "---", *["--:"] * (len(head) - 3)])]
    for part, words in (("holes", "unjudged"), ("texts", "below the pool, not relevant")):
        for grade, of_grade in stored()[part].items():
            for evidence in (name for name in (*EVIDENCE, "retrieved") if name in of_grade):
                records = of_grade[evidence]
                own = [each["ap"] for each in records]
                lines.append(row([
                    words, grade, NAMES.get(evidence, evidence), f"{mean(records, 'candidates'):,.0f}",
                    f"{mean(records, 'relevant'):,.0f}",
                    f"{np.mean(own):.3f} ({min(own):.3f} to {max(own):.3f})",
                    f"{mean(records, 'ap best run'):.3f}", f"{mean(records, 'ap fusion'):.3f}",
                    f"{min(each['ratio'] for each in records):.2f} to "
                    f"{max(each['ratio'] for each in records):.2f}",
                    f"{mean(records, 'effort'):.1%}",
                ]))  # fmt: skip
    return "\n".join(lines)


def calibration_text() -> str:
    """The table of calibration on queries that neither models nor curve saw."""
    head = ("hidden among", "relevant", "evidence", "ECE by seed", "95 % intervals", "largest gap of a bin")
    lines = [row(head), row(["---"] * 3 + ["--:"] * 3)]
    for part, words in (("holes", "unjudged"), ("texts", "below the pool, not relevant")):
        for grade, of_grade in stored()[part].items():
            for evidence in (name for name in EVIDENCE if name in of_grade):
                found = [each["calibration"] for each in of_grade[evidence]]
                lines.append(row([
                    words, grade, evidence, ", ".join(f"{each['ece']:.3f}" for each in found),
                    ", ".join("[{:.3f}, {:.3f}]".format(*each["interval"]) for each in found),
                    ", ".join(f"{each['largest gap']:.3f}" for each in found),
                ]))  # fmt: skip
    return "\n".join(lines)


def bins_text() -> str:
    """Predicted and observed shares, bin by bin."""
    lines = [row(("predicted", "observed", "gap", "95 % interval", "pairs")), row(["--:"] * 5)]
    for each in stored()["holes"]["grade >= 2"]["runs"][0]["calibration"]["bins"]:
        lines.append(row([f"{each['predicted']:.3f}", f"{each['observed']:.3f}", f"{each['gap']:+.3f}",
                          f"[{each['low']:+.3f}, {each['high']:+.3f}]", f"{each['rows']:,}"]))  # fmt: skip
    return "\n".join(lines)


def pool_text() -> str:
    """The table of what lies below a pool of the first 10."""
    golds = [f"ece with {n} gold rows" for n in GOLD]
    head = ("relevant", "evidence, unjudged pairs", "average precision", "best run", "relevant pairs",
            "expected", "ECE", *(f"ECE, {n} gold rows" for n in GOLD))  # fmt: skip
    lines = [row(head), row(["---", "---", *["--:"] * (len(head) - 2)])]
    for grade, of_grade in stored()["pool"].items():
        for name, each in of_grade.items():
            lines.append(row([grade, name, f"{each['ap']:.3f}", f"{each['ap best run']:.3f}",
                              f"{each['relevant']:,}", f"{each['expected']:,.0f}",
                              f"{each['calibration']['ece']:.3f}", *(f"{each[gold]:.3f}" for gold in golds),
                              ]))  # fmt: skip
    return "\n".join(lines)


def inner_text() -> str:
    """The choice between the two ways to treat unjudged pairs, on visible judgements alone."""
    lines = [row(("relevant", "unjudged pairs", "average precision")), row(["---", "---", "--:"])]
    for grade, of_grade in stored()["holes"].items():
        lines += [row([grade, each["unjudged"], f"{each['ap']:.3f}"]) for each in of_grade["inner"]]
    return "\n".join(lines)


def row(cells: Any) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


TEXTS: dict[str, Callable[[], str]] = {
    "found": found_text, "calibration": calibration_text, "bins": bins_text, "pool": pool_text,
    "inner": inner_text,
}  # fmt: skip
PICTURES: dict[str, Callable[[Path], object]] = {}


def main() -> None:
    """Measures what is named and adds it to the result."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default=",".join(PARTS))
    arguments = parser.parse_args()
    path = RESULTS / "missing.json"
    result = json.loads(path.read_text()) if path.is_file() else {}
    result = {name: part for name, part in result.items() if name in PARTS}
    table, systems = judged()
    for name in arguments.only.split(","):
        result[name] = {}
        for grade in GRADES:
            result[name][f"grade >= {grade}"] = PARTS[name](table, systems, grade, arguments.seeds)
        write_result("missing", result)


if __name__ == "__main__":
    main()
