"""How good are noise estimates? Bias, error and coverage over 50 seeds, with known injected matrices.

    python benchmarks/estimation.py [--seeds 50] [--jobs 2] [--only gold] [--cache FOLDER]

Every cell (data x noise x method) is kept in the cache folder: a run may be stopped and taken up again.
The real sets need CLEANRANK_DATA; without it the synthetic sets are run alone. The result goes to
benchmarks/results/estimation.json, from which `python benchmarks/pages.py estimation` makes the page.
"""

import argparse
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from timing import RESULTS, write_result

from cleanrank.data.synthetic import make_ranking
from cleanrank.noise.agreement import judgements
from cleanrank.noise.anchors import from_data
from cleanrank.noise.annotators import from_repeated
from cleanrank.noise.estimate import NoiseEstimate
from cleanrank.noise.gold import from_gold, sample_gold
from cleanrank.noise.pair_noise import pnoise_expected
from cleanrank.noise.profiles import NoiseProfile, class_conditional, geometric, one_way, uniform
from cleanrank.ragged import from_arrays
from cleanrank.rankers.grade_model import fit_grades
from cleanrank.types import RankingData

VERSION = 1
ITEMS = 200
FOREST: dict[str, Any] = {
    "n_estimators": 60,
    "early_stopping_rounds": 8,
    "params": {"learning_rate": 0.2, "max_bin": 31},
}
SKILLS = (0.3, 0.6, 1.0, 1.4, 1.7)


def missed(rate: float, n_grades: int) -> NoiseProfile:
    """Relevant documents lose their grade to 0 with probability ``rate``."""
    matrix = np.eye(n_grades) * (1 - rate)
    matrix[:, 0] += rate
    matrix[0] = np.eye(n_grades)[0]
    return NoiseProfile(matrix, f"missed relevant {rate:g}")


NOISE: dict[str, Callable[[int], NoiseProfile]] = {
    "uniform .1": partial(uniform, 0.1),
    "uniform .2": partial(uniform, 0.2),
    "uniform .4": partial(uniform, 0.4),
    "one-way 0 to top .1": partial(one_way, 0.1),
    "geometric .2": partial(geometric, 0.2),
    "missed relevant .3": partial(missed, 0.3),
    "two grades, kept .9 and .7": lambda _: class_conditional(gamma0=0.9, gamma1=0.7),
}


def separable() -> RankingData:
    """Grades that the features leave no doubt about."""
    rng = np.random.default_rng([0, 1])
    y = rng.choice(3, size=4000, p=[0.6, 0.25, 0.15])
    X = np.column_stack([y + 0.15 * rng.normal(size=4000), rng.normal(size=(4000, 4))])
    return from_arrays(X, y, qid=np.repeat(np.arange(80), 50))


def real(name: str) -> RankingData:
    from cleanrank.data.catalogue import load_dataset

    return load_dataset(name, fold=1).train


DATA: dict[str, Callable[[], RankingData]] = {
    "synthetic": lambda: make_ranking(120, 20, docs_per_query=80, seed=0),
    "MQ2008 fold 1": partial(real, "mq2008"),
    "OHSUMED fold 1": partial(real, "ohsumed"),
    "MSLR sample": partial(real, "mslr-sample"),
    "separable": separable,
}


# The MSLR sample was not looked at when the prior and the checks were chosen. Repeated judgements hang on the
# shares of the grades alone. The separable set is there to show where the data alone suffice.
SCOPE = {
    "OHSUMED fold 1": ("gold", "data alone"),
    "MSLR sample": ("gold, 100 rows", "data alone"),
    "separable": ("data alone",),
}


def gold(
    data: RankingData, noise: NoiseProfile, seed: int, n: int, strategy: str = "stratified"
) -> NoiseEstimate:
    noisy = noise.apply(data, seed).data
    sheet = sample_gold(noisy, n, strategy, seed)
    return from_gold(noisy, sheet.row_ids, data.y[sheet.rows], n_grades=noise.n_grades, seed=seed)


def repeated(data: RankingData, noise: NoiseProfile, seed: int, times: int) -> NoiseEstimate:
    rng = np.random.default_rng(seed)
    truth = np.repeat(rng.choice(data.y, size=ITEMS, replace=False), times)
    said = noise.sample(truth, rng)
    return from_repeated(
        judgements(item=np.repeat(np.arange(ITEMS), times), grade=said, n_grades=noise.n_grades), seed=seed
    )


def unequal(data: RankingData, noise: NoiseProfile, seed: int, times: int) -> NoiseEstimate:
    """Five annotators whose error rates are .3 to 1.7 of the mean; each item is judged by some of them."""
    rng = np.random.default_rng(seed)
    C = noise.n_grades
    truth = np.repeat(rng.choice(data.y, size=ITEMS, replace=False), times)
    who = np.concatenate([rng.choice(len(SKILLS), size=times, replace=False) for _ in range(ITEMS)])
    said = np.empty(len(truth), dtype=np.int64)
    for a, skill in enumerate(SKILLS):
        own = NoiseProfile(np.eye(C) + skill * (noise.matrix - np.eye(C)))
        said[who == a] = own.sample(truth[who == a], rng)
    table = judgements(item=np.repeat(np.arange(ITEMS), times), annotator=who, grade=said, n_grades=C)
    return from_repeated(table, seed=seed)


def alone(data: RankingData, noise: NoiseProfile, seed: int, family: str | None) -> NoiseEstimate:
    noisy = noise.apply(data, seed).data
    fit = partial(remembered_fit, seed=seed, n_grades=noise.n_grades)
    return from_data(noisy, fit_predict=fit, family=family, n_folds=3, seed=seed)


def remembered_fit(train: RankingData, rows: RankingData, **options: Any) -> Any:
    """Fits a small forest, or takes its predictions from the cache folder."""
    key = hashlib.sha256()
    for part in (np.ascontiguousarray(train.X), train.y, train.indptr, np.ascontiguousarray(rows.X)):
        key.update(part.tobytes())
    key.update(repr([sorted(options.items()), FOREST]).encode())
    folder = Path(os.environ["CLEANRANK_ESTIMATION_CACHE"]) / "fits"
    file = folder / f"{key.hexdigest()[:32]}.npy"
    if file.exists():
        return np.load(file, allow_pickle=False).astype(np.float64)
    found = fit_grades(train, rows, **FOREST, **options)
    folder.mkdir(parents=True, exist_ok=True)
    part_file = file.with_name(f"{file.stem}.{os.getpid()}.npy")
    np.save(part_file, found)
    part_file.replace(file)
    return found


METHODS: dict[str, Callable[[RankingData, NoiseProfile, int], NoiseEstimate]] = {
    **{f"gold, {n} rows": partial(gold, n=n) for n in (50, 100, 300, 1000)},
    "gold, 100 rows at random": partial(gold, n=100, strategy="random"),
    **{f"repeated, {k} per item": partial(repeated, times=k) for k in (2, 3, 5)},
    "repeated, 3 per item by 5 unequal annotators": partial(unequal, times=3),
    "data alone, uniform assumed": partial(alone, family="uniform"),
    "data alone, whole matrix": partial(alone, family=None),
}


@cache
def loaded(name: str) -> RankingData:
    return DATA[name]()


def run_cell(data_name: str, noise_name: str, method: str, seeds: int) -> dict[str, Any]:
    start = time.perf_counter()
    data = loaded(data_name)
    if noise_name.startswith("two grades"):
        data = data.with_labels(np.minimum(data.y, 1))
    noise = NOISE[noise_name](data.n_grades)
    shares = np.bincount(data.y, minlength=noise.n_grades) / data.n_docs
    rate, pairs = noise.rate(shares), pnoise_expected(noise, shares)
    runs = [measured(METHODS[method](data, noise, seed), noise.matrix, rate, pairs) for seed in range(seeds)]
    kept = [run for run in runs if not run["refused"]]
    untrusted = [run for run in kept if not run["trusted"]]
    refused = [run for run in runs if run["refused"]]
    return {
        "data": data_name,
        "noise": noise_name,
        "method": method,
        "seeds": seeds,
        "rate": rate,
        "pnoise": pairs,
        "refused": len(refused) / seeds,
        "untrusted": len(untrusted) / seeds,
        "error_if_refused": mean(refused, "error"),
        **{key: mean(kept, key) for key in MEASURED},
        "seconds": round(time.perf_counter() - start, 1),
    }


MEASURED = ("error", "rate_bias", "pnoise_bias", "matrix_cover", "rate_cover", "pnoise_cover", "pnoise_width")


def measured(found: NoiseEstimate, truth: Any, rate: float, pairs: float) -> dict[str, Any]:
    if found.profile is None:
        rejected = None if found.rejected is None else float(abs(found.rejected.matrix - truth).mean())
        return {"refused": True, "error": rejected}
    low, high = found.interval
    rates, pnoises = found.rate_interval, found.pnoise_interval
    return {
        "refused": False,
        "trusted": found.trusted,
        "error": float(abs(found.matrix - truth).mean()),
        "rate_bias": found.rate - rate,
        "pnoise_bias": found.pnoise - pairs,
        "matrix_cover": float(((low <= truth + 1e-9) & (truth <= high + 1e-9)).mean()),
        "rate_cover": float(rates[0] <= rate <= rates[1]),
        "pnoise_cover": float(pnoises[0] <= pairs <= pnoises[1]),
        "pnoise_width": pnoises[1] - pnoises[0],
    }


def mean(runs: list[dict[str, Any]], key: str) -> float | None:
    values = [run[key] for run in runs if run.get(key) is not None]
    return round(float(np.mean(values)), 4) if values else None


def cells(only: str) -> Iterator[tuple[str, str, str]]:
    for data in DATA:
        if data not in ("synthetic", "separable") and not os.environ.get("CLEANRANK_DATA"):
            continue
        for method in METHODS:
            for noise in NOISE:
                if only in method and method.startswith(SCOPE.get(data, ("",))):
                    yield data, noise, method


def run_all(folder: Path, seeds: int, jobs: int, only: str) -> list[dict[str, Any]]:
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["CLEANRANK_ESTIMATION_CACHE"] = str(folder)
    wanted = {
        cell: folder / f"v{VERSION}-{seeds}-{'-'.join(cell).replace(' ', '_')}.json" for cell in cells(only)
    }
    missing = [cell for cell, file in wanted.items() if not file.exists()]
    with ProcessPoolExecutor(jobs) as pool:
        running = {pool.submit(run_cell, *cell, seeds): cell for cell in missing}
        for done in as_completed(running):
            file = wanted[running[done]]
            part = file.with_suffix(".part")
            part.write_text(json.dumps(done.result()))
            part.replace(file)
            print(*running[done], done.result()["seconds"], "s", flush=True)
    return [json.loads(file.read_text()) for file in wanted.values()]


def tables(found: list[dict[str, Any]]) -> str:
    """A summary over noises, then every cell."""
    lines = ["## Means over all noises", "", *_header(summary=True)]
    for data in DATA:
        for method in METHODS:
            rows = [cell for cell in found if cell["data"] == data and cell["method"] == method]
            if rows:
                lines.append(_row([data, method], rows))
    for kind in ("gold", "repeated", "data alone"):
        lines += ["", f"## Every noise: {kind}", "", *_header(summary=False)]
        lines += [
            _row([cell["data"], cell["method"].removeprefix(f"{kind}, "), cell["noise"]], [cell])
            for cell in found
            if cell["method"].startswith(kind)
        ]
    return "\n".join(lines)


COLUMNS = {
    "error": "matrix error",
    "matrix_cover": "matrix coverage",
    "rate_bias": "rate bias",
    "rate_cover": "rate coverage",
    "pnoise_bias": "pNoise bias",
    "pnoise_cover": "pNoise coverage",
    "pnoise_width": "pNoise width",
    "untrusted": "not trusted",
    "refused": "refused",
    "error_if_refused": "error of the refused",
}


def _header(summary: bool) -> list[str]:
    names = ["data", "method", *([] if summary else ["noise"]), *COLUMNS.values()]
    return ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]


def _row(names: list[str], rows: list[dict[str, Any]]) -> str:
    shown = []
    for key in COLUMNS:
        weights = [
            1.0 if key in ("refused", "untrusted") else r["refused"] if "refused" in key else 1 - r["refused"]
            for r in rows
        ]
        pairs = [(r[key], w) for r, w in zip(rows, weights, strict=True) if r[key] is not None and w > 0]
        if not pairs:
            shown.append("")
            continue
        values, w = np.array(pairs).T
        size = abs(values) if len(rows) > 1 and "bias" in key else values
        value = float((size * w).sum() / w.sum())
        form = "{:.2f}" if "cover" in key or key in ("refused", "untrusted") else "{:.3f}"
        shown.append(form.format(value) if "bias" not in key or len(rows) > 1 else f"{value:+.3f}")
    return "| " + " | ".join([*names, *shown]) + " |"


def stored() -> list[dict[str, Any]]:
    """The cells of the last run."""
    found: list[dict[str, Any]] = json.loads((RESULTS / "estimation.json").read_text(encoding="utf-8"))[
        "cells"
    ]
    return found


TEXTS: dict[str, Callable[[], str]] = {"estimation": lambda: tables(stored())}
PICTURES: dict[str, Callable[[Path], object]] = {}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="", help="methods whose name holds this text; writes no result")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "cleanrank-estimation")
    options = parser.parse_args()
    found = run_all(options.cache, options.seeds, options.jobs, options.only)
    if options.only:
        print(tables(found))
        return
    write_result("estimation", {"seeds": options.seeds, "level": 0.95, "cells": found})


if __name__ == "__main__":
    main()
