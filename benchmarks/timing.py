"""How benchmarks measure: interleaved repeats in random order, medians, ratios of one run, results as JSON.

A noisy machine slows whatever happens to run at the time. So each round runs every candidate once, in random
order, and ratios are taken within a round before the median is taken over rounds.
"""

import gc
import json
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

RESULTS_VARIABLE = "CLEANRANK_BENCHMARKS"  # names another folder for results
RESULTS = Path(os.environ.get(RESULTS_VARIABLE) or Path(__file__).parent / "results")
PACKAGES = ("cleanrank", "numpy", "scipy", "numba", "lightgbm", "scikit-learn", "pandas", "pyarrow")


@dataclass(frozen=True)
class Timings:
    """What ``interleaved`` measured.

    Attributes:
        seconds: name -> time of each round.
        medians: name -> median time.
        ratios: name -> median over rounds of (first name's time / this name's time); the first name's is 1.
        repeats: number of rounds.
    """

    seconds: Mapping[str, tuple[float, ...]]
    medians: Mapping[str, float]
    ratios: Mapping[str, float]
    repeats: int

    def ratio(self, a: str, b: str) -> float:
        """The median over rounds of time(a) / time(b): below 1 when ``a`` is faster."""
        return statistics.median(x / y for x, y in zip(self.seconds[a], self.seconds[b], strict=True))

    def summary(self, digits: int = 4) -> dict[str, Any]:
        """Medians and ratios as plain numbers for ``write_result``."""
        found = asdict(self)
        return {
            "medians_s": {k: float(f"{v:.{digits}g}") for k, v in found["medians"].items()},
            "ratios_of_first": {k: float(f"{v:.{digits}g}") for k, v in found["ratios"].items()},
            "repeats": self.repeats,
        }


def interleaved(
    candidates: Mapping[str, Callable[[], object]], repeats: int = 16, seed: int = 0, warm_up: int = 1
) -> Timings:
    """Times every candidate once a round, in random order.

    >>> found = interleaved({"ours": lambda: sum(range(10)), "peer": lambda: sum(range(9999))}, repeats=3)
    >>> found.ratio("ours", "peer") < 1
    True
    """
    names = list(candidates)
    rng = random.Random(seed)
    for _ in range(warm_up):
        for name in names:
            candidates[name]()
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(repeats):
        for name in rng.sample(names, len(names)):
            seconds[name].append(timed(candidates[name]))
    first = seconds[names[0]]
    return Timings(
        seconds={name: tuple(times) for name, times in seconds.items()},
        medians={name: statistics.median(times) for name, times in seconds.items()},
        ratios={
            name: statistics.median(a / b for a, b in zip(first, times, strict=True))
            for name, times in seconds.items()
        },
        repeats=repeats,
    )


def timed(run: Callable[[], object]) -> float:
    """Seconds of one call; the collector runs before it and rests during it, the result is freed outside."""
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        kept = run()
        taken = time.perf_counter() - start
        del kept
    finally:
        gc.enable()
    return taken


def machine_facts(packages: Iterable[str] = PACKAGES) -> dict[str, Any]:
    """Cores, processor, memory and versions; no host names, no paths."""
    versions = {}
    for name in packages:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "absent"
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": versions,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


def write_result(name: str, result: Mapping[str, Any], folder: Path = RESULTS) -> Path:
    """Writes ``folder/name.json`` whole or not at all, with the machine's facts added."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"name": name, **result, "machine": machine_facts()}, indent=2) + "\n"
    handle, temporary = tempfile.mkstemp(dir=folder, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, folder / f"{name}.json")
    except BaseException:
        os.unlink(temporary)
        raise
    print(text, file=sys.stderr)
    return folder / f"{name}.json"
