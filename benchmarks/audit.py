"""Audits of real judgements: whom independent judges agree with among the most doubted labels.

    CLEANRANK_DATA=... python benchmarks/audit.py        # results/audit.json
    python benchmarks/pages.py audit                     # docs/audit.md

TREC DL 2019 and 2020: NIST's grades are audited with runs, texts or 32 lexical features. Checked afterwards,
by nothing that the audit saw: UMBRELA (GPT-4), and the median of all model judges that answer on more than
two values, each brought to 0..3 by the rule of ``data.judged``. A label counts as refuted where the check is
two grades or more away. Intervals draw whole queries with replacement, since labels of a query are alike.

Crowds: of every pair that three workers or more judged, one worker's grade is audited with those of the
others (their mean, extremes and number); the check are experts' grades. MQ2008 is where the defaults are
tried: labels are wrong because noise was put in, by document or by whole queries.
"""

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import cleanrank as cr
from cleanrank.data.judged import PREFIX, judges_of, to_grades
from cleanrank.issues.by_query import doubt_by_query
from cleanrank.issues.posterior import find_auto
from cleanrank.judges.against_gold import interval
from cleanrank.types import FloatArray

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "audit.json"
TOPS = (50, 100)
SEEDS = (0, 1, 2)
DRAWS = 2000
FAR = 2
MISREAD = ("1112341", "451602")  # the two topics of PROVENANCE.md: NIST 3 and UMBRELA 0
SHARE = 0.1
UMBRELA = "umbrella_gpt-4_zeroshot"


def precision(refuted: Any, query: Any, top: Any) -> dict[str, float]:
    """The share of refuted labels among the rows of a mask, with its 95 % interval over queries."""
    names, place = np.unique(query[top], return_inverse=True)
    hits = np.bincount(place, refuted[top]).astype(np.float64)
    rows = np.bincount(place).astype(np.float64)
    drawn = np.random.default_rng(0).multinomial(len(names), np.full(len(names), 1 / len(names)), size=DRAWS)
    low, high = interval((drawn @ hits) / np.maximum(drawn @ rows, 1), 0.95)
    return {"value": float(hits.sum() / rows.sum()), "low": float(low), "high": float(high)}


def checked(issues: Any, checks: dict[str, FloatArray], suspects: Any = None) -> dict[str, Any]:
    """What independent grades (NaN where there are none) say of the most doubted labels, and of all."""
    order = np.lexsort((issues.row_id, -issues.doubt))
    record: dict[str, Any] = {"rows": len(issues), "issues": issues.n_issues, "signal": str(issues.signal)}
    for name, grades in checks.items():
        known = ~np.isnan(grades)
        refuted = np.abs(np.nan_to_num(grades) - issues.given_label) >= (FAR if suspects is not None else 1)
        record[name] = {"base": float(refuted[known].mean()), "rows": int(known.sum())}
        ranked = order[known[order]]
        for top in TOPS:
            rows = np.zeros(len(issues), dtype=bool)
            rows[ranked[:top]] = True
            record[name][f"top{top}"] = precision(refuted, issues.query_id, rows)
    if suspects is not None:
        record["in the two topics"] = {f"top{top}": int(suspects[order[:top]].sum()) for top in TOPS}
        record["share of rows in the two topics"] = float(suspects.mean())
        queries = doubt_by_query(issues)
        record["queries that look misread"] = [str(q.query_id) for q in queries if q.is_suspect]
    return record


def passages(folder: Path, year: str) -> dict[str, Any]:
    """An audit of NIST's grades for every kind of evidence and seed."""
    labels = pd.read_parquet(folder / f"dl{year}.labels.parquet")
    features = pd.read_parquet(folder / f"dl{year}.features.parquet")
    lexical = features[[name for name in features if not name.startswith(("rr:", "s:"))]]
    qrels = labels[["qid", "docid"]].assign(grade=labels["nist"])
    graded = [
        to_grades(labels[PREFIX + name])
        for name in judges_of(list(labels.columns))
        if labels[PREFIX + name].nunique() > 2
    ]
    every = np.where(np.array(graded) < 0, np.nan, graded)
    checks = {"UMBRELA": labels[PREFIX + UMBRELA].to_numpy(np.float64), "median": np.nanmedian(every, axis=0)}
    evidence: dict[str, dict[str, Any]] = {"lexical features": {"scores": lexical}}
    if year == "19":
        runs = {"runs": folder / "dl19.runs_top100.txt.gz"}
        texts = {"texts": labels[["qid", "docid", "query", "text"]].rename(columns={"qid": "query_id"})}
        evidence = {"runs and texts": runs | texts, "runs": runs, "texts": texts} | evidence
        evidence["runs, queries differ in relevance"] = runs | {"queries_differ": "relevance"}
    record = {}
    for name, given in evidence.items():
        for seed in SEEDS:
            start = time.perf_counter()
            issues = cr.find_label_issues(qrels=qrels, seed=seed, **given)
            seconds = time.perf_counter() - start
            rows = issues.row_id
            suspects = np.isin(issues.query_id.astype(str), MISREAD)
            found = checked(issues, {key: values[rows] for key, values in checks.items()}, suspects)
            record[f"{name}, seed {seed}"] = {**found, "seconds": round(seconds, 1)}
            print(f"dl{year}", name, seed, json.dumps(record[f"{name}, seed {seed}"]), flush=True)
    return record


def crowd(name: str, table: pd.DataFrame, truth: pd.Series) -> dict[str, Any]:
    """One worker's grade of every pair, audited with the other workers' grades; experts check it."""
    record = {}
    for seed in SEEDS:
        shuffled = table.sample(frac=1, random_state=seed)
        counts = shuffled.groupby(["qid", "docid"]).grade.transform("size")
        shuffled = shuffled[counts >= 3]
        first = ~shuffled.duplicated(["qid", "docid"])
        others = shuffled[~first].groupby(["qid", "docid"]).grade
        scores = others.agg(mean="mean", low="min", high="max", number="size").reset_index()
        qrels = shuffled[first][["qid", "docid", "grade"]]
        issues = cr.find_label_issues(qrels=qrels, scores=scores, seed=seed)
        assert issues.source is not None
        data = issues.source.data
        pairs = pd.MultiIndex.from_arrays([data.qid, data.doc_ids])
        record[f"seed {seed}"] = checked(issues, {"experts": truth.reindex(pairs).to_numpy(np.float64)})
        print(name, seed, json.dumps(record[f"seed {seed}"]), flush=True)
    return record


def relevance_feedback(folder: Path) -> dict[str, Any]:
    """TREC RF10 on Mechanical Turk; broken links are no grades."""
    table = pd.read_csv(folder / "trec-rf10-data.tsv.gz", sep="\t", dtype={"topicID": str})
    table = table.rename(columns={"topicID": "qid", "docID": "docid", "label": "grade"})
    table = table[table.grade >= 0].drop_duplicates(["qid", "docid", "workerID"])
    truth = table[table.gold >= 0].groupby(["qid", "docid"]).gold.first()
    return crowd("RF10", table, truth)


def web_search(folder: Path) -> dict[str, Any]:
    """Web search (Zhou et al. 2012): pairs without query ids, so that each is a query of its own."""
    table = pd.read_csv(folder / "web_crowd.txt", sep=r"\s+", header=None, names=["qid", "worker", "grade"])
    table = table.astype({"qid": str}).assign(docid=lambda t: t.qid, grade=lambda t: t.grade - 1)
    truth = pd.read_csv(folder / "web_truth.txt", sep=r"\s+", header=None, names=["qid", "grade"])
    ids = truth.qid.astype(str)
    known = pd.Series(truth.grade.to_numpy() - 1, index=pd.MultiIndex.from_arrays([ids, ids]))
    return crowd("web search", table, known)


def injected() -> dict[str, Any]:
    """Average precision on MQ2008 whose labels were made wrong, by document or by whole queries."""
    splits = cr.load_dataset("mq2008")
    clean = splits.train
    rng = np.random.default_rng(0)
    misread = rng.random(clean.n_queries) < SHARE
    y = clean.y.copy()
    for q in np.flatnonzero(misread):
        rows = slice(clean.indptr[q], clean.indptr[q + 1])
        y[rows] = rng.permutation(y[rows])
    kinds = {
        "documents at random": cr.corrupt(clean, rate=SHARE, seed=1).data,
        "whole queries shuffled": clean.with_labels(y),
    }
    record: dict[str, Any] = {}
    for kind, data in kinds.items():
        wrong = data.y != clean.y
        for differ in ("relevance", "errors"):
            for repeats in (1, 10):
                found = [
                    find_auto(data, queries_differ=differ, repeats=repeats, seed=seed).average_precision(
                        wrong
                    )
                    for seed in SEEDS
                ]
                record[f"{kind}, {differ}, {repeats}"] = {"mean": float(np.mean(found)), "each": found}
        record[f"{kind}, base"] = float(wrong.mean())
        print(kind, json.dumps(record), flush=True)
    return record


def main() -> None:
    """Runs what was asked for and adds it to the results."""
    folder = Path(os.environ["CLEANRANK_DATA"])
    judged, crowds = folder / "trec-dl-judges", folder / "crowd-judges"
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "dl19": lambda: passages(judged, "19"),
        "dl20": lambda: passages(judged, "20"),
        "rf10": lambda: relevance_feedback(crowds),
        "web": lambda: web_search(crowds),
        "mq2008": injected,
    }
    parser = argparse.ArgumentParser(description="Audits of real judgements.")
    parser.add_argument("parts", nargs="*", default=list(parts), metavar="|".join(parts))
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    warnings.filterwarnings("ignore", "The features are not seen")
    for part in parser.parse_args().parts:
        results[part] = parts[part]()
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
