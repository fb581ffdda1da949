"""Dropping annotators by pNoise: what it does to real judgements, and how far its intervals hold.

TREC RF10 and WebSearch come from CLEANRANK_DATA (crowd-judges). Who is dropped by true grades is found on one
half of the topics and judged on the other, and the other way round; who is dropped by the others needs no
true grades. An item that only dropped people judged keeps their judgements. Random dropping takes as many
people. Then simulated people with known error rates: how often the 95 % interval holds the pNoise that
many queries come to. The result goes to benchmarks/results/annotators.json.

    CLEANRANK_DATA=... python benchmarks/annotators.py       # ten minutes
    python benchmarks/pages.py annotators
"""

import argparse
import json
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from panels import ROOT
from timing import RESULTS, write_result

from cleanrank.noise.agreement import judgements
from cleanrank.noise.annotator_pairs import AnnotatorPairs, annotator_pairs, filter_annotators
from cleanrank.noise.annotator_sequences import odd_sequences
from cleanrank.noise.annotators import dawid_skene
from cleanrank.noise.judgement_table import JudgedItems, read_judgements
from cleanrank.noise.pair_noise import pnoise
from cleanrank.report.table import Table

THRESHOLDS = (0.4, 0.3)
REFERENCES = {"gold": "true grades", "majority": "the others", "both": "true grades, elsewhere the others"}
DRAWS = 10  # of people dropped at random
QUERIES = (5, 10, 20, 40)
RATES = (0.1, 0.3, 0.6)
REPEATS = 300
COLUMNS = {"topicID": "query", "docID": "doc", "workerID": "annotator", "label": "grade", "gold": "truth"}


def rf10() -> JudgedItems:
    """TREC RF10 without broken links."""
    table = pd.read_csv(ROOT / "crowd-judges" / "trec-rf10-data.tsv.gz", sep="\t").rename(columns=COLUMNS)
    return read_judgements(table[table["grade"] >= 0])


def web() -> JudgedItems:
    """WebSearch, which has no queries."""
    folder = ROOT / "crowd-judges"
    table = pd.read_csv(folder / "web_crowd.txt", sep="\t", header=None, names=["item", "annotator", "grade"])
    truth = pd.read_csv(folder / "web_truth.txt", sep="\t", header=None, index_col=0)[1]
    return read_judgements(table.assign(truth=table["item"].map(truth).fillna(-1).astype(int)))


def votes_of(judged: JudgedItems, dropped: Collection[str]) -> Any:
    """Judgements of those who stay, and of the others where nobody else judged."""
    said = judged.judgements
    out = np.isin(said.annotators, list(dropped))[said.annotator]
    alone = np.bincount(said.item[~out], minlength=len(said.items)) == 0
    kept = ~out | alone[said.item]
    return judgements(
        item=said.item[kept],
        annotator=said.annotators[said.annotator[kept]],
        grade=said.grade[kept],
        n_grades=said.n_grades,
    )


def consensus(judged: JudgedItems, dropped: Collection[str]) -> dict[str, np.ndarray]:
    """The grade of every item by the majority (of a tie the lower one) and by Dawid and Skene's model."""
    left = votes_of(judged, dropped)
    place = np.argsort(left.items)  # items that are left are all items
    return {
        "majority": left.per_item.argmax(axis=1)[place] + judged.lowest,
        "model": dawid_skene(left).posterior.argmax(axis=1)[place] + judged.lowest,
    }


def quality(judged: JudgedItems, grades: np.ndarray, items: np.ndarray) -> tuple[float, float]:
    """Of items with true grades: the share that is right, and pNoise."""
    assert judged.truth is not None
    assert judged.query is not None
    order = np.lexsort((judged.truth[items], judged.query[items]))
    rows = items[order]
    indptr = np.concatenate(([0], np.cumsum(np.bincount(judged.query[rows]))))
    indptr = np.unique(indptr)
    truth, own = judged.truth[rows], grades[rows]
    return float((truth == own).mean()), float(pnoise(truth, own, indptr))


def halves(judged: JudgedItems) -> list[tuple[np.ndarray, JudgedItems]]:
    """Items whose topic is in a half, and the judgements with the true grades of the other half alone."""
    assert judged.truth is not None
    assert judged.query is not None
    half = np.random.default_rng(0).permutation(judged.query.max() + 1) % 2
    of_item = half[judged.query]
    return [
        (
            np.flatnonzero((of_item == h) & (judged.truth >= 0)),
            replace(judged, truth=np.where(of_item == h, -1, judged.truth)),
        )
        for h in (0, 1)
    ]


def dropping(judged: JudgedItems) -> list[dict[str, Any]]:
    """Labels after people were dropped in some ways, on items with true grades."""
    assert judged.truth is not None
    known = np.flatnonzero(judged.truth >= 0)
    names = [str(name) for name in judged.judgements.annotators]
    rng = np.random.default_rng(0)

    def record(way: str, parts: list[tuple[np.ndarray, list[str]]]) -> dict[str, Any]:
        said = judged.judgements
        shares, found = [], {"majority": [], "model": []}
        for items, dropped in parts:
            out = np.isin(said.annotators, dropped)[said.annotator]
            shares.append((len(dropped), float(out.mean())))
            for name, grades in consensus(judged, dropped).items():
                found[name].append((len(items), *quality(judged, grades, items)))
        line: dict[str, Any] = {"way": way, "dropped": float(np.mean([n for n, _ in shares]))}
        line["share of judgements"] = float(np.mean([share for _, share in shares]))
        for name, each in found.items():
            weight = [n for n, _, _ in each]
            line[f"{name} right"] = float(np.average([right for _, right, _ in each], weights=weight))
            line[f"{name} pnoise"] = float(np.average([noise for _, _, noise in each], weights=weight))
        print(line, flush=True)
        return line

    lines = [record("nobody dropped", [(known, [])])]
    by_others = annotator_pairs(judged, against="majority")
    by_gold = [(items, annotator_pairs(half, against="gold")) for items, half in halves(judged)]
    for above in THRESHOLDS:
        dropped = list(filter_annotators(by_others, above=above).dropped)
        lines.append(record(f"above {above:g} against the others", [(known, dropped)]))
        at_random = [(known, rng.choice(names, len(dropped), replace=False).tolist()) for _ in range(DRAWS)]
        lines.append(record(f"as many at random ({above:g})", at_random))
        parts = [(items, list(filter_annotators(people, above=above).dropped)) for items, people in by_gold]
        lines.append(record(f"above {above:g} against true grades of other topics", parts))
    measured = [each for each in by_others if each.corrected == each.corrected]
    best = list(filter_annotators(measured, keep=len(measured) // 2).dropped)
    lines.append(record("the worse half against the others", [(known, best)]))
    return lines


def counts(judged: JudgedItems) -> list[dict[str, Any]]:
    """By reference: how many people have a pNoise, an interval, and are above a threshold beyond doubt."""
    lines = []
    for against in REFERENCES:
        people = annotator_pairs(judged, against=against)
        some = [each for each in people if each.pairs]
        sure = [each for each in people if each.corrected_interval[0] == each.corrected_interval[0]]
        lines.append(
            {
                "against": against,
                "annotators": len(people),
                "with pairs": len(some),
                "with interval": len(sure),
                "median": float(np.median([each.corrected for each in sure])),
                **{
                    f"above {above:g}": len(filter_annotators(people, above=above).dropped)
                    for above in THRESHOLDS
                },
            }
        )
    return lines


def agreement_of_references(judged: JudgedItems) -> dict[str, float]:
    """Rank correlation between pNoise against true grades and against the others, of people with both."""
    from scipy.stats import spearmanr

    def by_name(against: str) -> dict[str, AnnotatorPairs]:
        people = annotator_pairs(judged, against=against)
        return {each.name: each for each in people if each.pairs >= 50}

    gold, others = by_name("gold"), by_name("majority")
    both = sorted(gold.keys() & others.keys())
    found = spearmanr([gold[name].corrected for name in both], [others[name].corrected for name in both])
    return {"annotators": len(both), "correlation": float(found.statistic)}


def sequences(judged: JudgedItems) -> dict[str, Any]:
    """Who is flagged, and how often these and the others gave the true grade."""
    said = judged.judgements
    assert judged.truth is not None
    odd = odd_sequences(judged)
    flagged = np.isin(said.annotators, [each.name for each in odd])[said.annotator]
    known = judged.truth[said.item] >= 0
    right = said.grade + judged.lowest == judged.truth[said.item]
    return {
        "annotators": len(said.annotators),
        "flagged": len({each.name for each in odd}),
        "share of judgements": float(flagged.mean()),
        "right of the flagged": float(right[known & flagged].mean()) if (known & flagged).any() else None,
        "right of the others": float(right[known & ~flagged].mean()),
    }


def coverage(queries: int, rate: float, documents: int = 20) -> float:
    """How often the interval of somebody who guesses at a rate holds the pNoise of very many queries."""

    def judged(n: int, rng: np.random.Generator) -> JudgedItems:
        difficulty = rng.uniform(0, 2, size=n).repeat(documents)  # queries differ
        truth = rng.choice(3, n * documents, p=[0.6, 0.25, 0.15])
        guesses = rng.random(len(truth)) < rate * difficulty
        grade = np.where(guesses, rng.integers(0, 3, len(truth)), truth)
        table = {"query": np.arange(len(truth)) // documents, "doc": np.arange(len(truth)), "truth": truth}
        return read_judgements(table | {"annotator": np.full(len(truth), "one"), "grade": grade})

    (whole,) = annotator_pairs(judged(4000, np.random.default_rng([7, queries])), against="gold", draws=1)
    held = []
    for seed in range(REPEATS):
        (each,) = annotator_pairs(judged(queries, np.random.default_rng([seed, 8, queries])), seed=seed)
        low, high = each.pnoise_interval
        held.append(low <= whole.pnoise <= high)
    return float(np.mean(held))


def stored() -> dict[str, Any]:
    """The result on disk."""
    found: dict[str, Any] = json.loads((RESULTS / "annotators.json").read_text())
    return found


def text() -> str:
    """The tables of docs/annotators.md."""
    found = stored()
    people = Table(
        (
            "reference",
            "annotators",
            "with pairs",
            "with an interval",
            "median pNoise of these",
            "above .4",
            "above .3",
        ),
        [
            [
                REFERENCES[each["against"]],
                *(f"{each[name]:,}" for name in ("annotators", "with pairs", "with interval")),
                f"{each['median']:.3f}",
                *(str(each[f"above {above:g}"]) for above in THRESHOLDS),
            ]
            for each in found["RF10"]["counts"]
        ],
        caption="RF10: whose pNoise can be told",
        align="lrrrrrr",
    )
    labels = Table.of(
        found["RF10"]["dropping"],
        [
            ("dropped", "way"),
            ("annotators", "dropped", ".0f"),
            ("judgements", "share of judgements", ".1%"),
            ("majority right", "majority right", ".3f"),
            ("its pNoise", "majority pnoise", ".3f"),
            ("Dawid-Skene right", "model right", ".3f"),
            ("its pNoise", "model pnoise", ".3f"),
        ],
        caption="RF10: the labels of 3,275 documents with true grades after people were dropped",
    )
    odd = Table.of(
        [{"name": name, **found[name]["sequences"]} for name in ("RF10", "WebSearch")],
        [
            ("", "name"),
            ("annotators", "annotators", ","),
            ("flagged", "flagged", ","),
            ("judgements", "share of judgements", ".1%"),
            ("right, of the flagged", "right of the flagged", ".3f"),
            ("right, of the others", "right of the others", ".3f"),
        ],
        caption="Constant answers",
    )
    held = Table(
        ("queries", *(f"guesses {rate:g}" for rate in RATES)),
        [[n, *(f"{v:.3f}" for v in values)] for n, values in found["coverage"].items()],
        caption="Share of 95 % intervals that hold the pNoise of very many queries",
        align="r" + "r" * len(RATES),
    )
    return "\n".join(f"*{table.caption}*\n\n{table.markdown()}" for table in (people, labels, odd, held))


TEXTS: dict[str, Callable[[], str]] = {"filtering": text}
PICTURES: dict[str, Callable[[Path], object]] = {}


def main() -> None:
    """Measures and stores."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    judged = rf10()
    found: dict[str, Any] = {
        "RF10": {
            "counts": counts(judged),
            "references": agreement_of_references(judged),
            "dropping": dropping(judged),
            "sequences": sequences(judged),
        },
        "WebSearch": {"sequences": sequences(web())},
        "coverage": {str(n): [coverage(n, rate) for rate in RATES] for n in QUERIES},
    }
    print(json.dumps(found, indent=1))
    write_result("annotators", found)


if __name__ == "__main__":
    main()
