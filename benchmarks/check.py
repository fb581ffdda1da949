"""Whether something has become slower: ratios measured now against the tracked ones.

    python benchmarks/check.py [reading measures ...]     # `make bench-check` runs all

Each script runs into a folder of its own. A ratio that is worse than the tracked one by more than TOLERANCE
is measured again, and reported as a regression if it is worse the second time too, and by more than the two
runs differ. Ends with status 1 if there is one. On a busy machine ratios of one thread and two shift.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from timing import RESULTS, RESULTS_VARIABLE

from cleanrank.report.table import Table

TOLERANCE = 0.15
READ = "read both label arrays once (np.sum)"
# Script -> its arguments, and the ratios in its result by path; those of HIGHER are better when higher.
CHECKS = {
    "reading": (
        ("--repeats", "8", "--megabytes", "150", "--sklearn-repeats", "1"),
        ("plain/times_of_plain_read", "cache/times_of_np_load", "memory/peak_memory_of_final_arrays"),
    ),
    "measures": ((), ("ndcg_by_lightgbm", "three_by_lightgbm", "times_faster_than/pytrec_eval")),
    "significance": ((), ("times_faster_than_matrix_product",)),
    "pnoise": ((), tuple(f"{kind} labels/ratios_of_first/{READ}" for kind in ("uint8", "int32", "int64"))),
    "objective": (
        ("--pairs", "4", "--rounds", "30"),
        ("ratios_to_builtin/exact/processor/median", "ratios_to_builtin/parity/processor/median"),
    ),
    "shards": ((), ("speed_of_cat_from_arrays", "speed_of_reader_from_text")),
}
HIGHER = {
    "times_faster_than/pytrec_eval", "times_faster_than_matrix_product", "speed_of_cat_from_arrays",
    "speed_of_reader_from_text",
}  # fmt: skip


@dataclass(frozen=True)
class Checked:
    """A ratio as it is tracked and as it was measured."""

    name: str
    tracked: float
    measured: tuple[float, ...]

    def excess(self, value):
        """How much worse a value is than the tracked one, as a share of it."""
        higher = self.name.partition("/")[2] in HIGHER
        return (self.tracked / value if higher else value / self.tracked) - 1

    @property
    def is_worse(self):
        """Whether every run is worse than tolerated, and by more than the runs differ."""
        excesses = [self.excess(value) for value in self.measured]
        return min(excesses) > max(TOLERANCE, max(excesses) - min(excesses))


def value_at(result, path):
    """The number at a path such as plain/times_of_plain_read."""
    for key in path.split("/"):
        result = result[key]
    return float(result)


def measured(script):
    """The result of one run of a script."""
    arguments, _ = CHECKS[script]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, str(Path(__file__).with_name(f"{script}.py")), *arguments],
            env=os.environ | {RESULTS_VARIABLE: folder}, check=True, capture_output=True,
        )  # fmt: skip
        return json.loads((Path(folder) / f"{script}.json").read_text())


def check(script, run=measured, results=RESULTS):
    """The ratios of a script, measured once, or twice where one of them is worse."""
    tracked = json.loads((results / f"{script}.json").read_text())
    runs = [run(script)]

    def found():
        return [
            Checked(f"{script}/{path}", value_at(tracked, path), tuple(value_at(each, path) for each in runs))
            for path in CHECKS[script][1]
        ]

    if any(each.is_worse for each in found()):
        runs.append(run(script))
    return found()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scripts", nargs="*", default=list(CHECKS), metavar="SCRIPT")
    given = parser.parse_args()
    if unknown := set(given.scripts) - CHECKS.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(CHECKS)}")
    rows = []
    for script in given.scripts:
        print(f"{script} ...", file=sys.stderr)
        rows += check(script)
    head = ("ratio", "tracked", "measured", "")
    cells = [
        (each.name, f"{each.tracked:.2f}", ", ".join(f"{v:.2f}" for v in each.measured),
         "WORSE" if each.is_worse else "") for each in rows
    ]  # fmt: skip
    print(Table(head, cells).text())
    sys.exit(any(each.is_worse for each in rows))


if __name__ == "__main__":
    main()
