"""Several judges together: accuracy on pairs that are no gold rows, dependence of errors, effective votes.

    python benchmarks/panels.py [--seeds 20] [--only "dl19;WebSearch;simulated"]

TREC DL 2019 and 2020 (language models beside NIST), WebSearch and TREC RF10 (people beside experts), from
CLEANRANK_DATA; gold rows are drawn at random. Then simulated judges whose errors are independent. The result
goes to benchmarks/results/panels.json and, as tables, between the markers of docs/annotators.md.
"""

import argparse
import itertools
import json
import os
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from timing import RESULTS, write_result

from cleanrank.judges.panel import combine_judges
from cleanrank.noise.agreement import judgements
from cleanrank.noise.annotators import dawid_skene, judged_dependence
from cleanrank.noise.dependence import Dependence, error_dependence

ROOT = Path(os.environ.get("CLEANRANK_DATA", ""))
GOLD = (100, 300, 1000)
ENOUGH = 10  # gold answers from which on a person may be the best single judge
PAGE = Path(__file__).parents[1] / "docs" / "annotators.md"
BEGIN, END = "<!-- panels: begin -->", "<!-- panels: end -->"


def models(name: str, graded: bool = False) -> pd.DataFrame:
    """A row per pair: qid, docid, truth and a column per language model, or per one on NIST's scale."""
    table = pd.read_parquet(ROOT / "trec-dl-judges" / f"{name}.labels.parquet")
    judges = [c for c in table if c.startswith("j:") and (not graded or table[c].max() == 3)]
    return table.rename(columns={"nist": "truth"})[["qid", "docid", "truth", *judges]]


def web() -> pd.DataFrame:
    """WebSearch, a column per worker; grades 0 to 4 in place of 1 to 5."""
    folder = ROOT / "crowd-judges"
    crowd = pd.read_csv(folder / "web_crowd.txt", sep="\t", header=None, names=["docid", "who", "grade"])
    truth = pd.read_csv(folder / "web_truth.txt", sep="\t", header=None, index_col=0)[1]
    wide = crowd.assign(grade=crowd["grade"] - 1).pivot(index="docid", columns="who", values="grade")
    wide.columns = [f"j:{who}" for who in wide.columns]
    known = pd.Series(wide.index, wide.index).map(truth - 1).fillna(-1).astype(int)
    return wide.assign(truth=known, qid=wide.index).reset_index()


def rf10() -> pd.DataFrame:
    """TREC RF10, a column per worker; of two judgements of a pair by one worker the first."""
    table = pd.read_csv(ROOT / "crowd-judges" / "trec-rf10-data.tsv.gz", sep="\t")
    table = table.rename(columns={"topicID": "qid", "docID": "docid"})
    table = table[table["label"] >= 0].drop_duplicates(["qid", "docid", "workerID"])
    wide = table.pivot(index=["qid", "docid"], columns="workerID", values="label")
    wide.columns = [f"j:{who}" for who in wide.columns]
    return wide.assign(truth=table.groupby(["qid", "docid"])["gold"].first()).reset_index()


SETS: dict[str, Callable[[], pd.DataFrame]] = {
    "dl19": partial(models, "dl19"),
    "dl19, 0 to 3": partial(models, "dl19", graded=True),
    "dl20": partial(models, "dl20"),
    "dl20, 0 to 3": partial(models, "dl20", graded=True),
    "WebSearch": web,
    "RF10": rf10,
}


def measure(name: str, table: pd.DataFrame, seeds: int) -> dict[str, Any]:
    """Accuracies, and how far judges err together."""
    judges = [column for column in table if column.startswith("j:")]
    X, y = table[judges].to_numpy(np.float64), table["truth"].to_numpy()
    tops = np.nanmax(X, axis=0)
    sparse = bool(np.isnan(X).mean() > 0.5)
    mapped = X if sparse else np.where(tops == 3, X, np.floor(3 * X / tops + 0.5))
    item, judge = np.nonzero(~np.isnan(X))
    judged = judgements(item=item, annotator=judge, grade=mapped[item, judge].astype(np.int64))
    fit = dawid_skene(judged)
    votes = judged.per_item
    known = np.flatnonzero(y >= 0)
    grades = {
        "majority": votes.argmax(axis=1),
        "majority, ties to the higher": votes.shape[1] - 1 - votes[:, ::-1].argmax(axis=1),
        "dawid-skene": fit.posterior.argmax(axis=1),
    }
    on_gold = y[item] >= 0
    rows = np.unique(item[on_gold], return_inverse=True)
    scale = np.full(len(tops), tops.max()) if sparse else tops
    gold = error_dependence(
        rows[1],
        judge[on_gold],
        (X / scale)[item, judge][on_gold],
        np.eye(int(y.max()) + 1)[y[rows[0]]],
        [j[2:] for j in judges],
        cluster=np.unique(table["qid"].to_numpy()[rows[0]], return_inverse=True)[1],
    )
    result: dict[str, Any] = {
        "seeds": seeds,
        "pairs": len(table),
        "gold pairs": len(known),
        "judges": len(judges),
        "largest class": float(np.bincount(y[known]).max() / len(known)),
        "accuracy": {way: float((each == y)[known].mean()) for way, each in grades.items()},
        "dependence on all gold": told(gold),
        "dependence without gold": told(judged_dependence(judged, fit)),
    }
    if not sparse and (tops == tops[0]).all():
        complete = ~np.isnan(X).any(axis=1)
        table_of = np.corrcoef((X - y[:, None])[complete].T)
        result["differences from the true grade correlate"] = float(
            table_of[np.triu_indices(len(tops), 1)].mean()
        )
    if not sparse:
        result["accuracy"]["judges"] = {
            j[2:]: float((X[:, a] == y)[known].mean()) for a, j in enumerate(judges)
        }
    long = table.melt(["qid", "docid"], judges, "judge", "grade").dropna()
    for n in GOLD:
        result[f"gold {n}"] = at_budget(table, X, y, known, long, n, seeds)
        print(name, n, {k: v for k, v in result[f"gold {n}"].items() if k != "methods"}, flush=True)
    return result


def at_budget(
    table: pd.DataFrame,
    X: np.ndarray,
    y: np.ndarray,
    known: np.ndarray,
    long: pd.DataFrame,
    n: int,
    seeds: int,
) -> dict[str, Any]:
    """combine_judges against the best single judge on the same gold rows, on the rows that are left."""
    scores: dict[str, list[float]] = {}
    methods: Counter[str] = Counter()
    gains = []
    for seed in range(seeds):
        drawn = np.random.default_rng([seed, n]).choice(known, n, replace=False)
        left = np.setdiff1d(known, drawn)
        gold = table.iloc[drawn][["qid", "docid", "truth"]].rename(columns={"truth": "grade"})
        panel = combine_judges(long, gold=gold, seed=seed)
        both = table[["qid", "docid"]].merge(panel.grades, on=["qid", "docid"], how="left")
        right = both["grade"].to_numpy() == y
        certainty = both[[f"p{g}" for g in range(panel.probabilities.shape[1])]].max(axis=1).to_numpy()
        seen = ~np.isnan(X[drawn])
        share = np.where(
            seen.sum(axis=0) >= min(ENOUGH, seen.sum(axis=0).max()),
            (X[drawn] == y[drawn, None]).sum(axis=0) / np.maximum(seen.sum(axis=0), 1),
            -1.0,
        )
        best = int(share.argmax())
        there = left[~np.isnan(X[left, best])]
        methods[panel.method] += 1
        for key, value in (
            ("combine_judges", right[left].mean()),
            ("best judge", (X[there, best] == y[there]).mean()),
            ("combine_judges on its pairs", right[there].mean()),
            ("cross-validated", panel.accuracy),
            ("mean probability", certainty[left].mean()),
            ("votes", panel.effective_votes),
        ):
            scores.setdefault(key, []).append(float(value))
        difference = right[there].astype(float) - (X[there, best] == y[there])
        gains.append(pd.Series(difference).groupby(table["qid"].to_numpy()[there]).agg(["sum", "size"]))
    return {
        **{key: spread(values) for key, values in scores.items()},
        "gain over the best judge": over_queries(gains),
        "methods": dict(methods),
    }


def spread(values: list[float]) -> list[float]:
    """Mean, lowest and highest over seeds."""
    return [round(float(each), 4) for each in (np.mean(values), np.min(values), np.max(values))]


def over_queries(gains: list[pd.DataFrame]) -> list[float]:
    """Mean gain over all seeds with a 95 % interval by clusters of queries (a ratio of sums)."""
    total = pd.concat(gains).groupby(level=0).sum()
    mean = total["sum"].sum() / total["size"].sum()
    surplus = total["sum"] - mean * total["size"]
    error = np.sqrt((surplus**2).sum() * len(total) / (len(total) - 1)) / total["size"].sum()
    margin = error * stats.t.ppf(0.975, len(total) - 1)
    return [round(float(each), 4) for each in (mean, mean - margin, mean + margin)]


def told(dependence: Dependence) -> dict[str, Any]:
    """Without the list of pairs."""
    record = dependence.to_json()
    record["pairs"] = record["pairs"][:5] if dependence.alike else []
    return record


def independent(seed: int, items: int, judges: int, rates: tuple[float, float], missing: float) -> Any:
    """True grades and judgements with independent errors, every judge with a matrix of its own."""
    rng = np.random.default_rng([seed, items, judges])
    truth = rng.choice(4, items, p=rng.dirichlet(np.full(4, 3.0)))
    said = np.empty((items, judges), dtype=np.int64)
    for a in range(judges):
        pattern = np.cumsum(rng.dirichlet(np.ones(4), 4)[truth], axis=1)
        errors = np.minimum((rng.random(items)[:, None] > pattern).sum(axis=1), 3)
        said[:, a] = np.where(rng.random(items) < rng.uniform(*rates), errors, truth)
    item, judge = np.nonzero(rng.random(said.shape) >= missing)
    return truth, judgements(item=item, annotator=judge, grade=said[item, judge], n_grades=4)


def simulated(times: int) -> dict[str, Any]:
    """Effective votes of independent judges, and how often they are called dependent."""
    result = {}
    cases: list[tuple[int, int, tuple[float, float], float, bool]] = [
        *((n, 31, (0.1, 0.6), 0.0, True) for n in GOLD),
        *((n, 31, (0.1, 0.6), 0.0, False) for n in (300, 1000)),
        (300, 5, (0.1, 0.6), 0.0, False),
        (100, 8, (0.01, 0.1), 0.0, False),
        (1000, 60, (0.1, 0.6), 0.9, False),
        (1000, 60, (0.02, 0.2), 0.9, False),
    ]
    for items, judges, rates, missing, on_gold in cases:
        found = []
        for seed in range(times):
            truth, judged = independent(seed, items, judges, rates, missing)
            if on_gold:
                known = np.eye(4)[truth]
                found.append(
                    error_dependence(judged.item, judged.annotator, judged.grade, known, judged.annotators)
                )
            else:
                found.append(judged_dependence(judged, dawid_skene(judged)))
        share = np.array([each.votes / each.judgements for each in found])
        source = "gold" if on_gold else "no gold"
        span = f"errors {rates[0]:g} to {rates[1]:g}"
        name = f"{items} items, {judges} judges, {span}, {missing:g} missing, {source}"
        result[name] = {
            "votes per judgement": spread(share.tolist()),
            "within 10 %": float((share >= 0.9).mean()),
            "called dependent": float(np.mean([each.is_high for each in found])),
            "times": times,
        }
        print(name, result[name], flush=True)
    return result


def intervals(times: int) -> dict[str, Any]:
    """How often intervals hold the expected grade given all answers, which is known in a simulation.

    Four judges, 1,200 pairs of 60 queries, 200 gold rows; errors at random or the rarer the farther. On a
    scale of its own one judge rules Dawid and Skene's model out.
    """
    patterns = {
        "at random": 0.1 + 0.6 * np.eye(4),
        "near the true grade": np.exp(-1.2 * abs(np.subtract.outer(np.arange(4), np.arange(4)))),
    }
    prior, result = np.array([0.4, 0.3, 0.2, 0.1]), {}
    for (errors, pattern), one_scale in itertools.product(patterns.items(), (True, False)):
        T = pattern / pattern.sum(axis=1, keepdims=True)
        held: dict[str, list[float]] = {"a pair": [], "a tenth of the pairs": [], "all pairs": []}
        methods: Counter[str] = Counter()
        for seed in range(times):
            rng = np.random.default_rng(seed)
            y = rng.choice(4, 1200, p=prior)
            pairs = pd.DataFrame({"qid": np.repeat(np.arange(60), 20), "docid": np.arange(1200)})
            log, parts = np.tile(np.log(prior), (1200, 1)), []
            for judge in range(4):
                said = (rng.random(1200)[:, None] > np.cumsum(T[y], axis=1)).sum(axis=1).clip(0, 3)
                log += np.log(T[:, said].T)
                parts.append(pairs.assign(judge=f"j{judge}", grade=said / (1 if one_scale or judge else 7)))
            p = np.exp(log) / np.exp(log).sum(axis=1, keepdims=True)
            gold = pairs.assign(grade=y).sample(200, random_state=seed)
            panel = combine_judges(pd.concat(parts), gold=gold, seed=seed)
            exact = pd.Series(p @ np.arange(4), pairs["docid"])[panel.docid].to_numpy()
            tenth = panel.expected.argsort(kind="stable").argsort(kind="stable") * 10 // 1200
            for group, key in (
                (np.arange(1200), "a pair"),
                (tenth, "a tenth of the pairs"),
                (tenth * 0, "all pairs"),
            ):
                mean = [np.bincount(group, each) for each in (panel.expected_low, exact, panel.expected_high)]
                held[key].append(float(((mean[0] <= mean[1]) & (mean[1] <= mean[2])).mean()))
            methods[panel.method] += 1
        name = f"errors {errors}, {'one scale' if one_scale else 'a scale of its own'}"
        result[name] = {key: round(float(np.mean(each)), 3) for key, each in held.items()} | {
            "methods": dict(methods),
            "times": times,
        }
        print(name, result[name], flush=True)
    return result


def write_page(result: dict[str, Any]) -> None:
    """Writes the tables between the markers of the page."""
    names = (
        "judges",
        "gold rows",
        "best judge",
        "majority",
        "Dawid-Skene",
        "combine_judges",
        "gain over best judge",
    )
    lines = [f"| | {' | '.join(names)} |", "|---|---|---|---|---|---|---|---|"]
    for name, each in result["sets"].items():
        for n in (size for size in GOLD if f"gold {size}" in each):
            at = each[f"gold {n}"]
            gain = "{:+.3f} [{:+.3f}, {:+.3f}]".format(*at["gain over the best judge"]).replace("-", "−")
            rates = [at["best judge"][0], each["accuracy"]["majority"], each["accuracy"]["dawid-skene"]]
            cells = [f"{rate:.3f}".removeprefix("0") for rate in (*rates, at["combine_judges"][0])]
            lines.append(f"| {name} | {each['judges']} | {n:,} | {' | '.join(cells)} | {gain} |")
    columns = (
        "",
        "judgements of a pair",
        "errors correlate",
        "votes",
        "votes without gold",
        "refused without gold",
    )
    more = [f"| {' | '.join(columns)} |".replace("|  |", "| |"), "|---|---|---|---|---|---|"]
    for name, each in result["sets"].items():
        gold, free = each["dependence on all gold"], each["dependence without gold"]
        low, high = gold["correlation_interval"]
        span = f"{gold['correlation']:.2f} [{low:.2f}, {high:.2f}]"
        votes = "{:.1f} [{:.1f}, {:.1f}]".format(gold["votes"], *gold["votes_interval"])
        refused = "yes" if free["is_high"] else "no"
        cells = [f"{gold['judgements']:.1f}", span, votes, f"{free['votes']:.1f}", refused]
        more.append(f"| {name} | {' | '.join(cells)} |")
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    body = "\n".join([BEGIN, "", *lines, "", *more, "", END])
    PAGE.write_text(before + body + after, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--times", type=int, default=100, help="simulations of a case")
    parser.add_argument("--only", default="", help="sets, simulated, intervals; others are kept")
    options = parser.parse_args()
    file = RESULTS / "panels.json"
    result: dict[str, Any] = {"simulated": {}, "intervals": {}, "sets": {}}
    if options.only and file.is_file():
        result |= {k: v for k, v in json.loads(file.read_text(encoding="utf-8")).items() if k in result}
    for name in options.only.split(";") if options.only else ("simulated", "intervals", *SETS):
        if name == "simulated":
            result[name] = simulated(options.times)
        elif name == "intervals":
            result[name] = intervals(options.seeds)
        else:
            result["sets"][name] = measure(name, SETS[name](), options.seeds)
        result["sets"] = {each: result["sets"][each] for each in SETS if each in result["sets"]}
        write_result("panels", result)
        write_page(result)


if __name__ == "__main__":
    main()
