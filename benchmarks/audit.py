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
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import cleanrank as cr
from cleanrank.data.judged import PREFIX, judges_of, to_grades
from cleanrank.issues.by_query import MOST_DOUBTED, doubt_by_query
from cleanrank.issues.posterior import DIFFERENCES, find_auto
from cleanrank.judges.against_gold import interval
from cleanrank.report.table import Table
from cleanrank.types import FloatArray

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "audit.json"
TOPS = (50, 100)
SEEDS = (0, 1, 2)
DRAWS = 2000
FAR = 2
MISREAD = ("1112341", "451602")  # the two topics of PROVENANCE.md: NIST 3 and UMBRELA 0
SHARE = 0.1
HALF = 0.5  # of the documents of grade 0 that a judge who misread a query calls highly relevant
SHOWN = 6
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


def command(folder: Path) -> list[dict[str, Any]]:
    """The command as people type it, in a process of its own: seconds, and where its 50 first rows lie."""
    labels = pd.read_parquet(folder / "dl19.labels.parquet")
    record = []
    with tempfile.TemporaryDirectory() as name:
        files = Path(name)
        columns = labels[["qid", "docid", "nist"]]
        columns.insert(1, "iteration", 0)
        columns.to_csv(files / "dl19.qrels", sep=" ", header=False, index=False)
        texts = labels[["qid", "docid", "query", "text"]].rename(columns={"qid": "query_id"})
        texts.to_csv(files / "passages.csv", index=False)
        runs = ["--runs", str(folder / "dl19.runs_top100.txt.gz")]
        with_texts = [*runs, "--texts", str(files / "passages.csv")]
        for evidence, options in (("runs and texts", with_texts), ("runs", runs)):
            words = ["-m", "cleanrank", "audit", str(files / "dl19.qrels"), *options]
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(
                [sys.executable, *words, "-o", str(files / "issues.csv"), "--force"],
                check=True,
                capture_output=True,
            )
            seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            first = pd.read_csv(files / "issues.csv", dtype={"query_id": str}).query_id[: TOPS[0]]
            inside = float(first.isin(MISREAD).mean())
            load = round(os.getloadavg()[0], 1)
            timed = {"seconds": round(seconds, 1), "processor_seconds": round(used, 1), "load": load}
            record.append({"evidence": evidence, **timed, "in the two topics": inside})
            print("command", json.dumps(record[-1]), flush=True)
    return record


def story(folder: Path) -> list[dict[str, Any]]:
    """The most doubted queries of DL 2019, with runs and texts; what UMBRELA says of their doubted labels."""
    labels = pd.read_parquet(folder / "dl19.labels.parquet")
    issues = cr.find_label_issues(
        qrels=labels[["qid", "docid"]].assign(grade=labels["nist"]),
        runs=folder / "dl19.runs_top100.txt.gz",
        texts=labels[["qid", "docid", "query", "text"]].rename(columns={"qid": "query_id"}),
    )
    refuted = np.abs(labels[PREFIX + UMBRELA].to_numpy()[issues.row_id] - issues.given_label) >= FAR
    doubted = np.zeros(len(issues), dtype=bool)
    doubted[np.lexsort((issues.row_id, -issues.doubt))[: round(MOST_DOUBTED * len(issues))]] = True
    return [
        {**asdict(each), "refuted": float(refuted[doubted & (issues.query_id == each.query_id)].mean())}
        for each in doubt_by_query(issues)[:SHOWN]
    ]


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
    inside = np.repeat(misread, clean.lengths)
    generous = np.where(inside & (clean.y == 0) & (rng.random(clean.n_docs) < HALF), clean.y.max(), clean.y)
    kinds = {
        "documents at random": cr.corrupt(clean, rate=SHARE, seed=1).data,
        "whole queries shuffled": clean.with_labels(y),
        "whole queries, too generous": clean.with_labels(generous),
    }
    record: dict[str, Any] = {}
    for kind, data in kinds.items():
        wrong = data.y != clean.y
        record[kind] = {"base": float(wrong.mean())}
        for differ in DIFFERENCES:
            tables = [find_auto(data, queries_differ=differ, seed=seed) for seed in SEEDS]
            record[kind][differ] = [table.average_precision(wrong) for table in tables]
        print(kind, json.dumps(record[kind]), flush=True)
    return record


def _results() -> dict[str, Any]:
    return dict(json.loads(RESULTS.read_text()))


def _span(found: dict[str, float]) -> str:
    return f"{found['value']:.0%} [{found['low']:.0%}, {found['high']:.0%}]"


def _seeds(record: dict[str, Any], name: str) -> list[dict[str, Any]]:
    prefix = f"{name}, seed " if name else "seed "
    return [record[f"{prefix}{seed}"] for seed in SEEDS if f"{prefix}{seed}" in record]


def passages_table() -> Table:
    """Both collections: whom UMBRELA and the median of the judges agree with, by kind of evidence."""
    rows = []
    for year in ("19", "20"):
        record = _results().get(f"dl{year}", {})
        for name in dict.fromkeys(key.rpartition(", seed")[0] for key in record):
            every = _seeds(record, name)
            first = every[0]
            two = ", ".join(f"{each['in the two topics']['top50'] / 50:.0%}" for each in every)
            rows.append(
                {
                    "collection": f"DL 20{year}",
                    "evidence": name,
                    "two": two if year == "19" else None,
                    "umbrela": _span(first["UMBRELA"]["top50"]),
                    "seeds": ", ".join(f"{each['UMBRELA']['top50']['value']:.0%}" for each in every),
                    "base": first["UMBRELA"]["base"],
                    "median": _span(first["median"]["top50"]),
                    "median base": first["median"]["base"],
                }
            )
    columns = [
        ("collection", "collection"),
        ("evidence", "evidence"),
        ("in the two topics", "two"),
        ("refuted by UMBRELA", "umbrela"),
        ("by seed", "seeds"),
        ("of all rows", "base", ".0%"),
        ("refuted by the median", "median"),
        ("of all rows", "median base", ".0%"),
    ]
    return Table.of(rows, columns)


def story_table() -> Table:
    """The most doubted queries."""
    rows = [{**each, "suspect": "yes" if each["is_suspect"] else ""} for each in _results()["story"]]
    columns = [
        ("query", "query_id"),
        ("documents", "documents", ","),
        ("doubted", "doubted", ","),
        ("mean grade", "given", ".2f"),
        ("expected", "expected", ".2f"),
        ("order", "order", ".2f"),
        ("looks misread", "suspect"),
        ("doubted labels that UMBRELA refutes", "refuted", ".0%"),
    ]
    return Table.of(rows, columns)


def command_table() -> Table:
    """The command: its time, and where the first rows of its table lie."""
    columns = [
        ("evidence", "evidence"),
        ("first 50 rows in the two topics", "in the two topics", ".0%"),
        ("seconds of one processor", "processor_seconds", ".0f"),
        ("seconds by the clock", "seconds", ".0f"),
        ("load average", "load", ".0f"),
    ]
    return Table.of(_results()["command"], columns)


def crowds_table() -> Table:
    """Crowds: how many of the most doubted grades differ from an expert's."""
    rows = []
    for name, part in (("RF10", "rf10"), ("web search", "web")):
        every = _seeds(_results()[part], "")
        found = every[0]["experts"]
        rows.append(
            {
                "crowd": name,
                "pairs": every[0]["rows"],
                "checked": found["rows"],
                "top": _span(found["top50"]),
                "seeds": ", ".join(f"{each['experts']['top50']['value']:.0%}" for each in every),
                "top100": _span(found["top100"]),
                "base": found["base"],
            }
        )
    columns = [
        ("crowd", "crowd"),
        ("pairs", "pairs", ","),
        ("with an expert's grade", "checked", ","),
        ("other than the expert's: 50 most doubted", "top"),
        ("by seed", "seeds"),
        ("100 most doubted", "top100"),
        ("of all", "base", ".0%"),
    ]
    return Table.of(rows, columns)


def injected_table() -> Table:
    """MQ2008: average precision under either assumption about queries."""
    rows = [
        {"noise": kind, "base": found["base"], **{how: float(np.mean(found[how])) for how in DIFFERENCES}}
        for kind, found in _results()["mq2008"].items()
    ]
    columns = [("noise put in", "noise"), ("wrong labels", "base", ".1%")]
    return Table.of(rows, [*columns, *((f"queries differ in {how}", how, ".3f") for how in DIFFERENCES)])


TEXTS: dict[str, Callable[[], str]] = {
    "story": lambda: story_table().markdown(),
    "command": lambda: command_table().markdown(),
    "passages": lambda: passages_table().markdown(),
    "crowds": lambda: crowds_table().markdown(),
    "injected": lambda: injected_table().markdown(),
}
PICTURES: dict[str, Callable[[Path], object]] = {}


def main() -> None:
    """Runs what was asked for and adds it to the results."""
    folder = Path(os.environ["CLEANRANK_DATA"])
    judged, crowds = folder / "trec-dl-judges", folder / "crowd-judges"
    parts: dict[str, Callable[[], Any]] = {
        "story": lambda: story(judged),
        "command": lambda: command(judged),
        "dl19": lambda: passages(judged, "19"),
        "dl20": lambda: passages(judged, "20"),
        "rf10": lambda: relevance_feedback(crowds),
        "web": lambda: web_search(crowds),
        "mq2008": injected,
    }
    parser = argparse.ArgumentParser(description="Audits of real judgements.")
    parser.add_argument("parts", nargs="*", default=list(parts), metavar="|".join(parts))
    warnings.filterwarnings("ignore", "The features are not seen")
    for part in parser.parse_args().parts:
        found = parts[part]()
        results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps({**results, part: found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
