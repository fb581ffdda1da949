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
from statistics import median
from typing import Any

from cards.clicks import (
    AUTO,
    TUNED,
    Figures,
    flips_of_records,
    read_lines,
    read_store,
    rivals_of_records,
    table_of_lines,
    table_of_records,
)
from timing import RESULTS, write_result

from cleanrank.report.table import Cell, Line, Table, number

# The data of the recipes by the name of their table.
SETS = {"movielens": "movielens-100k", "taobao": "taobao"}


def summed_up(table: Path, popularity: Path, store: Path) -> dict[str, Any]:
    """The figures of all files."""
    lines, flips = read_lines(table), read_store(store, "ctr/flips")
    table1, rivals = read_store(store, "ctr/table1"), read_store(store, "ctr/table3")
    by_set = {name: [r for r in table1 if r.cell["data"] == data] for name, data in SETS.items()}
    return {
        "cells": {
            "tmall": len(lines),
            **{name: len(records) for name, records in by_set.items()},
            "flips": len(flips),
            "rivals": len(rivals),
        },
        "settings": {name: lines[0][name] for name in ("epochs", "batch_size", "learning_rate", "precision")},
        "tmall": table_of_lines(lines),
        **{name: table_of_records(records) for name, records in by_set.items()},
        "popularity": [
            {name: line[name] for name in ("model", "seed", "auc", "popularity", "gain")}
            for line in read_lines(popularity)
        ],
        "flips": flips_of_records(flips),
        "rivals": rivals_of_records(rivals),
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
            f"{median(row['base epochs']):g} / {median(row['peer epochs']):g}",
        ]
        for row in rows
    ]
    head = ["Model", "Base AUC", "Peers AUC", "Gain", "95 % interval", "Seeds won", "Alpha",
            "Epochs"]  # fmt: skip
    return Table(head, lines, align="lrrrrrlr")


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
            f"{median(row['epochs']):g}",
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
    ]
    return Table(head, lines, align="llrrrrrlr")


def rivals_table(rows: Sequence[Figures], data: str) -> Table:
    """Every method on DIEN, on one data set."""
    lines: list[Line] = [
        [
            row["method"],
            number(row["auc"]),
            *gain_cells(row.get("gain")),
            number(row["log loss"], ".3f"),
            number(row["calibration error"], ".3f"),
            chosen_words(row["settings"]),
            f"{median(row['epochs']):g}",
        ]
        for row in rows
        if row["data"] == data
    ]
    head = ["Method", "AUC", "Against DIEN", "95 % interval", "Seeds won", "Log loss", "ECE", "Setting",
            "Epochs"]  # fmt: skip
    return Table(head, lines, align="lrrrrrrlr")


def chosen_words(settings: Sequence[str]) -> str:
    """What most seeds chose, and how many where not all did."""
    text, n = Counter(settings).most_common(1)[0]
    return text if n == len(settings) else f"{text} ({n}x)"


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


def cost_table(results: Mapping[str, Any]) -> Table:
    """Where the time of a step goes on a GPU: a part that rows do not change, and one that grows with them.

    The two batch sizes give both parts of time = fixed + rows * each, without compilation.
    """
    lines: list[Line] = []
    for model in dict.fromkeys(name.split()[0] for name in results):
        rows = sorted(int(name.split()[1]) for name in results if name.split()[0] == model)
        each = [results[f"{model} {n}"] for n in rows]
        small, large = (n / line["plain_samples_per_second"] for n, line in zip(rows, each, strict=True))
        per_row = (large - small) / (rows[1] - rows[0])
        least = each[1]["least_ms"] / 1e3 / rows[1]
        # Where more rows took less time, the two parts cannot be told apart.
        parts = [number(None)] * 4
        if per_row > 0:
            fixed = small - rows[0] * per_row
            parts = [
                number(1e3 * fixed, ".1f"),
                f"{100 * fixed / small:.0f} %",
                number(1e9 * per_row, ",.0f"),
                f"{100 * least / per_row:.1f} %",
            ]
        lines.append([model, *parts[:3], number(1e9 * least, ".1f"), parts[3]])
    head = ["Model", "Fixed, ms", "of a step of 4,096 rows", "Each row, ns", "Least, ns", "Share, many rows"]
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


def preparation_table(results: Mapping[str, Any]) -> Table:
    """Seconds and memory of preparing logs, and how much faster than pandas."""
    lines: list[Line] = []
    for variant, each in results["variants"].items():
        full = each["full"]
        ratio = full.get("times_faster_in_one_run", full["times_faster_than_pandas"])
        lines.append([variant, *_prepared(full["events"], full), number(ratio, ".1f")])
    for events, each in results["large"].items():
        for variant in (name for name in results["variants"] if name in each):
            lines.append([variant, *_prepared(int(events), each[variant]), number(None)])
    head = ["Protocol", "Events", "Rows", "Seconds", "Peak, GB", "of it rows, GB", "Times pandas"]
    return Table(head, lines, align="lrrrrrr")


def _prepared(events: int, figures: Figures) -> list[str | Cell]:
    return [
        f"{events:,}",
        f"{figures['rows']:,}",
        number(figures["seconds"], ".1f"),
        number(figures["peak_mb"] / 1024, ".1f"),
        number(figures["rows_mb"] / 1024, ".1f"),
    ]


TEXTS: dict[str, Callable[[], str]] = {
    "preparation": lambda: preparation_table(stored("behaviours")).markdown(),
    "tmall": lambda: gain_table(stored("ctr")["tmall"]).markdown(),
    "movielens": lambda: gain_table(stored("ctr")["movielens"]).markdown(),
    "popularity": lambda: popularity_table(stored("ctr")["popularity"]).markdown(),
    "flips": lambda: flips_table(flips_rows()).markdown(),
    "taobao": lambda: gain_table(stored("ctr")["taobao"]).markdown(),
    "rivals movielens": lambda: rivals_table(stored("ctr")["rivals"], SETS["movielens"]).markdown(),
    "rivals taobao": lambda: rivals_table(stored("ctr")["rivals"], SETS["taobao"]).markdown(),
    "auto": lambda: auto_table(flips_rows()).markdown(),
    "logits": lambda: logits_table(stored("ctr_logits")["results"]).markdown(),
    "cpu": lambda: cpu_table(stored("ctr_speed")["results"]).markdown(),
    "gpu cost": lambda: cost_table(stored("ctr_speed_cuda")["results"]).markdown(),
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
