"""Markdown tables of stored PeerRank recipes: every row against both bases, with intervals and p-values.

    python benchmarks/peerrank_tables.py --store runs.sqlite recipes/peerrank/here.toml

A gain is the mean over seeds and queries of the difference to a base; its 95 % interval resamples seeds and
queries, both with replacement; p is Fisher's randomisation over queries of the means over seeds. Verdicts
hold p, corrected by Holm over the rows of a table, against .05. "X + peer" has the bases "X" and "X, all
pairs"; every other row those of RankNet.
"""

import argparse
from collections.abc import Sequence

import numpy as np

from cleanrank.evaluate.significance import fisher_test, holm
from cleanrank.experiments.recipe import Recipe, read_recipe
from cleanrank.experiments.reproduce import collect, plan
from cleanrank.experiments.store import Store
from cleanrank.types import FloatArray, RunRecord

ALL = ", all pairs"
RESAMPLES = 2000


def tables(recipe: Recipe, records: Sequence[RunRecord], measure: str) -> str:
    """One table for each data set and noise."""
    done = [r for r in records if r.status == "done"]
    levels = dict.fromkeys((r.cell["dataset"], r.cell["noise"], r.cell["rate"]) for r in done)
    parts = []
    for level in levels:
        here = [r for r in done if (r.cell["dataset"], r.cell["noise"], r.cell["rate"]) == level]
        by_label = {c.label: _table(here, c.label, measure) for c in recipe.contenders}
        found = {label: values for label, values in by_label.items() if values.size}
        parts.append(f"**{level[0]}, {level[1]} {level[2]:g}**, {measure}\n\n{_rows(found, here)}")
    return "\n\n".join(parts)


def _table(records: Sequence[RunRecord], label: str, measure: str) -> FloatArray:
    """Values (seeds, queries of all folds); queries that do not count are left out."""
    mine = [r for r in records if r.cell["method"] == label]
    seeds = sorted({r.cell["seed"] for r in mine})
    folds = sorted({r.cell["fold"] for r in mine})
    by = {(r.cell["seed"], r.cell["fold"]): np.asarray(r.values[measure]) for r in mine}
    whole = [s for s in seeds if all((s, f) in by for f in folds)]
    if not whole:
        return np.zeros((0, 0))
    values = np.array([np.concatenate([by[s, f] for f in folds]) for s in whole])
    return values[:, ~np.isnan(values).any(axis=0)]


def _bases(label: str) -> tuple[str, str]:
    if label.endswith(" + peer"):
        name = label.removesuffix(" + peer")
        return name, name + ALL
    _, comma, epochs = label.rpartition(", ")
    if comma and epochs.split(" ")[-1].startswith("epoch"):
        return f"RankNet, {epochs}", f"RankNet{ALL}, {epochs}"
    return "RankNet", f"RankNet{ALL}"


def _rows(found: dict[str, FloatArray], records: Sequence[RunRecord]) -> str:
    compared = {
        (label, base): _gain(found[label], found[base])
        for label in found
        for base in _bases(label)
        if base in found and base != label
    }
    adjusted = dict(zip(compared, holm([p for *_, p in compared.values()]), strict=True)) if compared else {}
    lines = ["| method | mean | sd over seeds | against strict pairs | against all pairs | chosen |"]
    lines.append("|---|---|---|---|---|---|")
    for label, values in found.items():
        means = values.mean(axis=1)
        spread = f"{means.std(ddof=1):.4f}" if len(means) > 1 else ""
        cells = [_words(compared.get((label, b)), adjusted.get((label, b))) for b in _bases(label)]
        lines.append(
            f"| {label} | {means.mean():.4f} | {spread} | {' | '.join(cells)} | {_chosen(records, label)} |"
        )
    return "\n".join(lines)


def _gain(a: FloatArray, b: FloatArray) -> tuple[float, float, float, int, float]:
    """Gain, interval, seeds with a gain, p."""
    n = min(len(a), len(b))
    d = a[:n] - b[:n]
    rng = np.random.default_rng(0)
    seeds = rng.integers(0, n, (RESAMPLES, n))
    means = [d[s].mean(axis=0)[rng.integers(0, d.shape[1], d.shape[1])].mean() for s in seeds]
    low, high = np.quantile(means, [0.025, 0.975])
    p = fisher_test(a[:n].mean(axis=0), b[:n].mean(axis=0))
    return float(d.mean()), float(low), float(high), int((d.mean(axis=1) > 0).sum()), p


def _words(gain: tuple[float, float, float, int, float] | None, adjusted: float | None) -> str:
    if gain is None or adjusted is None:
        return ""
    mean, low, high, won, p = gain
    verdict = "no gain" if adjusted >= 0.05 else "gains" if mean > 0 else "loses"
    return f"{mean:+.4f} [{low:+.4f}, {high:+.4f}], p {p:.2g}, {won} seeds: {verdict}"


def _chosen(records: Sequence[RunRecord], label: str) -> str:
    mine = [r.chosen for r in records if r.cell["method"] == label]
    alphas = [f"{c['alpha']:g}" for c in mine if "alpha" in c]
    epochs = [str(c["epochs"]) for c in mine if "epochs" in c]
    parts = [f"alpha {', '.join(dict.fromkeys(alphas))}"] if alphas else []
    return "; ".join([*parts, f"epoch {', '.join(epochs)}"]) if len(epochs) <= 5 else "; ".join(parts)


def main() -> None:
    """Prints the tables of the recipes on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--store", required=True)
    parser.add_argument("recipes", nargs="+")
    given = parser.parse_args()
    with Store(given.store) as store:
        for path in given.recipes:
            recipe = read_recipe(path)
            records = collect(plan(recipe, store), store, recipe.name)
            print(f"## {recipe.title}\n")
            for measure in recipe.show:
                print(tables(recipe, records, measure), end="\n\n")


if __name__ == "__main__":
    main()
