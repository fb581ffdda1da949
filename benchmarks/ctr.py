"""Thirteen click models with and without peers: the tables of docs/results/ctr.md.

Sums up files of runs in benchmarks/results/ctr.json, from which pages.py makes the page. Nothing is trained
here.

    python benchmarks/ctr.py table1_tmall.jsonl popularity.jsonl ctr.sqlite
    python benchmarks/pages.py ctr

The files come from benchmarks/ctr_gpu.py and from ``cleanrank reproduce recipes/ctr/flips.toml`` and
``recipes/ctr/table1.toml``; speeds from benchmarks/ctr_speed.py, logits from benchmarks/ctr_logits.py.
"""

import argparse
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cards.clicks import (
    AUTO,
    TUNED,
    Figures,
    flips_of_records,
    read_lines,
    read_store,
    table_of_lines,
    table_of_records,
)
from timing import RESULTS, write_result

from cleanrank.report.table import Cell, Line, Table, number


def summed_up(table: Path, popularity: Path, store: Path) -> dict[str, Any]:
    """The figures of all files."""
    lines, flips = read_lines(table), read_store(store, "ctr/flips")
    movielens = [r for r in read_store(store, "ctr/table1") if r.cell["data"] == "movielens-100k"]
    return {
        "cells": {"tmall": len(lines), "movielens": len(movielens), "flips": len(flips)},
        "settings": {name: lines[0][name] for name in ("epochs", "batch_size", "learning_rate", "precision")},
        "tmall": table_of_lines(lines),
        "movielens": table_of_records(movielens),
        "popularity": [
            {name: line[name] for name in ("model", "seed", "auc", "popularity", "gain")}
            for line in read_lines(popularity)
        ],
        "flips": flips_of_records(flips),
    }


def gain_table(rows: Sequence[Figures]) -> Table:
    """Base, peers and the gain of every model."""
    lines: list[Line] = [
        [
            row["model"],
            number(row["base"]),
            number(row["peer"]),
            *gain_cells(row["gain"]),
            several(row["alphas"]),
            several(row["base epochs"]),
            several(row["peer epochs"]),
        ]
        for row in rows
    ]
    head = ["Model", "Base AUC", "Peers AUC", "Gain", "95 % interval", "Seeds won", "Alpha",
            "Epochs, base", "Epochs, peers"]  # fmt: skip
    return Table(head, lines, align="lrrrrrlll")


def popularity_table(rows: Sequence[Figures]) -> Table:
    """Every model against how often an item was clicked."""
    lines: list[Line] = [
        [
            row["model"],
            number(row["auc"]),
            number(row["popularity"]),
            number(row["gain"]["value"], "+.4f"),
            interval(*row["gain"]["interval"]),
        ]
        for row in rows
    ]
    return Table(["Model", "AUC", "Popularity", "Gain", "95 % interval"], lines, align="lrrrr")


def flips_table(rows: Sequence[Figures]) -> Table:
    """Every method at every noise."""
    lines: list[Line] = [
        [
            noise_words(row),
            row["method"],
            number(row["auc"]),
            *gain_cells(row.get("gain"))[:2],
            number(row["log loss"], ".3f"),
            number(row["calibration error"], ".3f"),
            several(row.get("alphas", ())),
            several(row["epochs"]),
            str(len(row["seeds"])),
        ]
        for row in rows
    ]
    head = [
        "Noise",
        "Method",
        "AUC",
        "Against DIN",
        "95 % interval",
        "Log loss",
        "ECE",
        "Alpha",
        "Epochs",
        "Seeds",
    ]
    return Table(head, lines, align="llrrrrrllr")


def auto_table(rows: Sequence[Figures]) -> Table:
    """The weight that the theory gives against the one that validation rows choose."""
    tuned = {noise_words(row): row for row in rows if row["method"] == TUNED}
    lines: list[Line] = [
        [
            noise_words(row),
            several(row["alphas"]),
            several(tuned[noise_words(row)]["alphas"]),
            number(row["auc"]),
            number(tuned[noise_words(row)]["auc"]),
            *gain_cells(row["auto"]),
        ]
        for row in rows
        if row["method"] == AUTO
    ]
    head = ["Noise", "Alpha, auto", "Alpha, tuned", "AUC, auto", "AUC, tuned", "Auto less tuned",
            "95 % interval", "Seeds won"]  # fmt: skip
    return Table(head, lines, align="lllrrrrr")


def cpu_table(results: Mapping[str, Any]) -> Table:
    """DIN and DeepFM beside packages, on a CPU."""
    lines: list[Line] = []
    for name, each in results.items():
        rates = each["samples_per_second"]
        others = [f"{rates[package]:,}" for package in ("cleanrank", "DeepCTR-Torch", "torch-rechub")]
        lines.append([name, *others, number(each["times_the_fastest"], ".2f")])
    head = ["Model, vocabulary", "cleanrank", "DeepCTR-Torch", "torch-rechub", "Times the fastest package"]
    return Table(head, lines, align="lrrrr")


def gpu_table(results: Mapping[str, Any]) -> Table:
    """All models on a GPU: samples per second, plain and compiled, and shares of the roofline."""
    lines: list[Line] = []
    for name, each in results.items():
        model, batch = name.split()
        cells: Line = [model, f"{int(batch):,}"]
        for kind in ("plain", "compiled"):
            cells += [f"{each[f'{kind}_samples_per_second']:,.0f}", f"{100 * each[f'{kind}_share']:.1f} %"]
        lines.append(cells)
    head = ["Model", "Batch", "Samples per second", "of the roofline", "Compiled", "of the roofline "]
    return Table(head, lines, align="lrrrrr")


def logits_table(results: Sequence[Figures]) -> Table:
    """The mean size of logits by epoch."""
    lines: list[Line] = [
        [
            noise_words(row if row["rate"] else {"noise": "none"}),
            f"{row['alpha']:g}",
            *(number(size, ",.1f") for size in row["mean_size"]),
            str(row["best_epoch"]),
        ]
        for row in results
    ]
    epochs = len(results[0]["mean_size"])
    head = ["Noise", "Alpha", *(f"Epoch {n}" for n in range(1, epochs + 1)), "Best epoch"]
    return Table(head, lines, align="ll" + "r" * (epochs + 1))


def gain_cells(gain: Figures | None) -> list[str | Cell]:
    """The gain, its interval and the seeds won; dashes without."""
    if gain is None:
        return [number(None), number(None), number(None)]
    return [
        number(gain["mean"], "+.4f"),
        interval(gain["low"], gain["high"]),
        f"{gain['won']} of {gain['seeds']}",
    ]


def interval(low: float | None, high: float | None) -> str | Cell:
    """Two ends; a dash where there is none."""
    if low is None or high is None:
        return number(None)
    return f"{number(low, '+.4f').text} to {number(high, '+.4f').text}"


def noise_words(row: Figures) -> str:
    """The noise and its rate."""
    return "none" if row["noise"] == "none" else f"{row['noise']} {row['rate']:g}"


def several(values: Sequence[float]) -> str:
    """What seeds chose: the values, each with its count where they differ.

    >>> several([3, 3]), several([2, 1, 2])
    ('3', '1, 2 (2x)')
    """
    counts = Counter(values)
    if len(counts) == 1:
        return f"{values[0]:g}"
    return ", ".join(f"{value:g}" + f" ({n}x)" * (n > 1) for value, n in sorted(counts.items()))


def rounded(value: Any) -> Any:
    """Figures with six digits behind the point, at any depth."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return round(value, 6) if isinstance(value, float) else value


def stored(name: str) -> Any:
    """A file of benchmarks/results."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def flips_rows() -> Sequence[Figures]:
    """The figures of flipped labels."""
    rows: Sequence[Figures] = stored("ctr")["flips"]
    return rows


TEXTS: dict[str, Callable[[], str]] = {
    "tmall": lambda: gain_table(stored("ctr")["tmall"]).markdown(),
    "movielens": lambda: gain_table(stored("ctr")["movielens"]).markdown(),
    "popularity": lambda: popularity_table(stored("ctr")["popularity"]).markdown(),
    "flips": lambda: flips_table(flips_rows()).markdown(),
    "auto": lambda: auto_table(flips_rows()).markdown(),
    "logits": lambda: logits_table(stored("ctr_logits")["results"]).markdown(),
    "cpu": lambda: cpu_table(stored("ctr_speed")["results"]).markdown(),
    "gpu": lambda: gpu_table(stored("ctr_speed_cuda")["results"]).markdown(),
}
PICTURES: dict[str, Callable[[Path], object]] = {}


def main() -> None:
    """Sums up files of runs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("table", type=Path, help="what ctr_gpu.py table wrote of Tmall's sessions")
    parser.add_argument("popularity", type=Path, help="what ctr_gpu.py popularity wrote")
    parser.add_argument("store", type=Path, help="the runs of recipes/ctr")
    asked = parser.parse_args()
    write_result("ctr", rounded(summed_up(asked.table, asked.popularity, asked.store)))


if __name__ == "__main__":
    main()
