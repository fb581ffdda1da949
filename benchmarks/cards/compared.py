"""What methods gain over a base, data set by data set and on average: no noise at all, or real judges.

There is no ceiling here and so no share: the figure is the mean over test queries of the difference between a
method and the base. Data sets that share test queries (judges of one collection) form a group, whose queries
are drawn again together; an average over data sets counts each of them once.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from cleanrank.errors import invalid
from cleanrank.report.collapse import Estimate
from cleanrank.report.summaries import Level, by_cell
from cleanrank.types import FloatArray, RunRecord
from cleanrank.validation import one_of

from .draws import drawn_means, of_draws, ran_in

ALL = "all"


@dataclass(frozen=True, eq=False)
class Compared:
    """Methods beside a base.

    Attributes:
        base: the method that gains are counted from.
        methods: the others.
        datasets: every data set with its group.
        means: (data set, method) -> figure.
        gains: (data set, method) -> gain over the base.
        queries: data set -> test queries.
        missing: cells that are not there, in words.
        draws: (data set, method) -> mean of the data, then those of the bootstrap.
    """

    base: str
    methods: tuple[str, ...]
    datasets: Mapping[str, str]
    means: Mapping[tuple[str, str], float]
    gains: Mapping[tuple[str, str], Estimate]
    queries: Mapping[str, int]
    missing: tuple[str, ...]
    confidence: float
    draws: Mapping[tuple[str, str], FloatArray] = field(repr=False)

    def average(self, one: str, other: str | None = None, group: str = ALL) -> Estimate | None:
        """The mean over data sets of one method minus another (else the base); None if none ran both."""
        both = (one, other or self.base)
        differences = [
            self.draws[dataset, both[0]] - self.draws[dataset, both[1]]
            for dataset, its_group in self.datasets.items()
            if group in (ALL, its_group) and all((dataset, m) in self.draws for m in both)
        ]
        return of_draws(np.mean(differences, axis=0), self.confidence) if differences else None

    def behind(self, method: str, limit: float = 0.0) -> list[str]:
        """The data sets in which the whole interval of a method's gain lies below the limit."""
        return [d for (d, m), gain in self.gains.items() if m == method and gain.high < limit]


def compared_card(
    records: Iterable[RunRecord],
    *,
    level: Level,
    base: str = "noisy-trained",
    group: Callable[[str], str] = str,
    measure: str = "ndcg@10",
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Compared:
    """What every method of these records gains over the base at one noise level.

    Args:
        records: what ran.
        level: which cells count.
        base: the method that gains are counted from.
        group: data set -> the name of the test queries that it shares with others; its own when not given.
        measure: whose figures.
        confidence: of all intervals.
        resamples: draws of the bootstrap.
        seed: of the bootstrap.
    """
    done = by_cell([r for r in records if r.status == "done" and measure in r.values])
    done = {cell: record for cell, record in done.items() if cell[1] == level}
    if not done:
        rule = f"must hold cells of {level.label} with {measure}"
        raise invalid("records", rule, 0, remedy="Run the recipe first.")
    methods = tuple(dict.fromkeys(cell[3] for cell in done))
    one_of("method", base, methods)
    datasets = {cell[0]: group(cell[0]) for cell in done}
    ran = {(dataset, level): ran_in(done, (dataset, level), methods, measure) for dataset in datasets}
    draws: dict[tuple[str, str], FloatArray] = {}
    for name in dict.fromkeys(datasets.values()):
        here = {place: each for place, each in ran.items() if datasets[place[0]] == name}
        means = drawn_means(here, resamples, np.random.default_rng([seed, *name.encode()]))
        draws |= {(place[0], method): values for (place, method), values in means.items()}
    return Compared(
        base=base,
        methods=tuple(m for m in methods if m != base),
        datasets=datasets,
        means={key: float(values[0]) for key, values in draws.items()},
        gains={
            (d, m): of_draws(values - draws[d, base], confidence)
            for (d, m), values in draws.items()
            if m != base and (d, base) in draws
        },
        queries={
            place[0]: sum(v.shape[1] for v in each.values[base].values())
            for place, each in ran.items()
            if base in each.values
        },
        missing=tuple(gap for each in ran.values() for gap in each.gaps),
        confidence=confidence,
        draws=draws,
    )
