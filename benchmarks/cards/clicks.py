"""What click models gain by peers: figures of stored runs, with intervals over users and seeds.

A gain is the mean over seeds. Its interval adds two errors as squares: that of the seeds (Student's t, since
they are few) and that of the users, who are the same for every seed and therefore do not average out.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy import stats

from cleanrank.experiments.store import Store
from cleanrank.rankers.ctr import MODELS
from cleanrank.types import FloatArray, RunRecord
from cleanrank.validation import is_number

Figures: TypeAlias = dict[str, Any]
LEVEL = 0.95
BASE, TUNED, AUTO = "DIN", "peers (tuned)", "peers (auto)"
RIVALS_BASE = "DIEN"
RIVALS = (
    RIVALS_BASE, "peers", "label smoothing", "soft bootstrap", "hard bootstrap", "GCE", "SCE", "TCE",
    "co-teaching", "reweighting", "SOUR",
)  # fmt: skip
MEASURES = ("auc", "log loss", "calibration error")


def gain_of(by_seed: Sequence[float], user_error: float) -> Figures:
    """The mean over seeds and its interval; no interval for one seed.

    >>> {name: round(value, 3) for name, value in gain_of([0.01, 0.02, 0.03], 0.001).items()}
    {'mean': 0.02, 'low': -0.005, 'high': 0.045, 'won': 3, 'seeds': 3}
    >>> gain_of([0.01], 0.001)["low"] is None
    True
    """
    values = np.asarray(by_seed, dtype=np.float64)
    n, mean = len(values), float(values.mean())
    low = high = None
    if n > 1:
        of_seeds = stats.t.ppf((1 + LEVEL) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n)
        reach = float(np.hypot(of_seeds, stats.norm.ppf((1 + LEVEL) / 2) * user_error))
        low, high = mean - reach, mean + reach
    return {"mean": mean, "low": low, "high": high, "won": int((values > 0).sum()), "seeds": n}


def gain_of_blocks(differences: FloatArray) -> Figures:
    """The same of differences (seeds, blocks of users)."""
    blocks = differences.mean(axis=0)
    return gain_of(differences.mean(axis=1).tolist(), float(blocks.std(ddof=1) / np.sqrt(len(blocks))))


def read_lines(file: str | Path) -> list[Figures]:
    """The lines of a file of benchmarks/ctr_gpu.py, in the order of the models and seeds."""
    lines = [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]
    return sorted(lines, key=lambda line: (list(MODELS).index(line["model"]), line["seed"]))


def table_of_lines(lines: Iterable[Figures]) -> list[Figures]:
    """One row per model, of what ``ctr_gpu.py table`` wrote."""
    rows = []
    for model, same in _grouped(lines, lambda line: line["model"]).items():
        user_error = float(np.sqrt(np.mean([line["gain"]["error"] ** 2 for line in same])))
        chosen = {kind: [line[kind]["chosen"] for line in same] for kind in ("base", "peer")}
        epochs = {
            kind: [line[kind]["epochs"][line[kind]["chosen"]] for line in same] for kind in ("base", "peer")
        }
        rows.append(
            {
                "model": model,
                "base": float(np.mean([line["base"]["auc"] for line in same])),
                "peer": float(np.mean([line["peer"]["auc"] for line in same])),
                "gain": gain_of([line["gain"]["value"] for line in same], user_error),
                "validation gains": [
                    line["peer"]["validation"][line["peer"]["chosen"]]
                    - line["base"]["validation"][line["base"]["chosen"]]
                    for line in same
                ],
                "alphas": [float(name.removeprefix("alpha ")) for name in chosen["peer"]],
                "base epochs": epochs["base"],
                "peer epochs": epochs["peer"],
                "epochs of the largest alpha": [line["peer"]["epochs"]["alpha 0.3"] for line in same],
            }
        )
    return rows


def read_store(file: str | Path, recipe: str) -> list[RunRecord]:
    """The cells of a recipe that are done, in the order of their seeds."""
    with Store(file, create=False) as store:
        done = [record for record in store.records(recipe=recipe) if record.status == "done"]
    return sorted(done, key=lambda record: record.cell["seed"])


def table_of_records(records: Iterable[RunRecord]) -> list[Figures]:
    """One row per model, of the runs of recipes/ctr/table1.toml."""
    groups = _grouped(records, lambda record: record.cell["params"]["model"])
    rows = []
    for model in (name for name in MODELS if name in groups):
        same = groups[model]
        rows.append(
            {
                "model": model,
                "base": float(np.mean([record.means["base auc"] for record in same])),
                "peer": float(np.mean([record.means["auc"] for record in same])),
                "gain": gain_of_blocks(np.stack([record.values["gain"] for record in same])),
                "validation gains": [r.chosen["validation"] - r.chosen["base validation"] for r in same],
                "alphas": [record.chosen["alpha"] for record in same],
                "base epochs": [record.chosen["base epochs"] for record in same],
                "peer epochs": [record.chosen["epochs"] for record in same],
            }
        )
    return rows


def flips_of_records(records: Iterable[RunRecord]) -> list[Figures]:
    """One row per noise and method, of the runs of recipes/ctr/flips.toml.

    ``gain`` is of the AUC against DIN, ``auto`` that of peers (auto) against peers (tuned); both on the seeds
    that the two have.
    """
    records = list(records)
    methods = list(dict.fromkeys([BASE, TUNED, AUTO, *sorted({r.cell["method"] for r in records})]))
    levels = _grouped(records, lambda record: (record.cell["noise"], record.cell["rate"]))
    rows = []
    for (noise, rate), of_level in sorted(levels.items(), key=lambda item: _place(*item[0])):
        by_method = _grouped(of_level, lambda record: record.cell["method"])
        for method in (name for name in methods if name in by_method):
            row = {"noise": noise, "rate": rate, **_row_of_method(method, by_method, BASE)}
            if method == AUTO and TUNED in by_method:
                row["auto"] = _difference(by_method[method], by_method[TUNED])
            rows.append(row)
    return rows


def rivals_of_records(records: Iterable[RunRecord]) -> list[Figures]:
    """One row per data set and method, of the runs of recipes/ctr/table3.toml; ``gain`` is against DIEN."""
    rows = []
    for data, of_data in _grouped(records, lambda record: record.cell["data"]).items():
        by_method = _grouped(of_data, lambda record: record.cell["method"])
        for method in (name for name in RIVALS if name in by_method):
            same = by_method[method]
            row = {"data": data, **_row_of_method(method, by_method, RIVALS_BASE)}
            row["settings"] = [_setting(record.chosen) for record in same]
            rows.append(row)
    return rows


def _row_of_method(method: str, by_method: Mapping[str, list[RunRecord]], base: str) -> Figures:
    same = by_method[method]
    row: Figures = {"method": method, "seeds": [record.cell["seed"] for record in same]}
    row |= {name: float(np.mean([record.means[name] for record in same])) for name in MEASURES}
    row |= {"epochs": [record.chosen["epochs"] for record in same]}
    if "alpha" in same[0].chosen:
        row["alphas"] = [record.chosen["alpha"] for record in same]
    if method != base and base in by_method:
        row["gain"] = _difference(same, by_method[base])
    return row


def _setting(chosen: Mapping[str, Any]) -> str:
    """What validation rows chose, but for seeds: "q 0.3"."""
    options = chosen.get("options", {"alpha": chosen["alpha"]} if "alpha" in chosen else {})
    numbers = [f"{name} {value:g}" for name, value in options.items() if is_number(value)]
    return ", ".join([*numbers, *(value for value in options.values() if isinstance(value, str))])


def _difference(one: Sequence[RunRecord], other: Sequence[RunRecord]) -> Figures:
    values = [{record.cell["seed"]: record.values["auc"] for record in each} for each in (one, other)]
    shared = sorted(values[0].keys() & values[1].keys())
    return gain_of_blocks(np.stack([values[0][seed] - values[1][seed] for seed in shared]))


def _place(noise: str, rate: float) -> tuple[int, float]:
    return ("none", "flips", "lost", "invented").index(noise), rate


def _grouped(items: Iterable[Any], key: Callable[[Any], Any]) -> Mapping[Any, list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
