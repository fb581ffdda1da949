"""How much of what noise costs a method recovers, from run records; nothing is drawn here.

A *setting* is a data set and a noise level. In it, with means over seeds and test queries,

    loss = clean - noisy,   gain = method - noisy,   recovered share = gain / loss,

where ``clean`` and ``noisy`` are the figures of two methods that learn from true and from given labels. 1
is all that was lost, 0 nothing, below 0 worse than doing nothing.

Intervals are percentiles of the bootstrap of ``draws``, in which the settings of a data set share test
queries. A setting whose interval of the loss includes 0 has *nothing to recover*: the share is undefined
there. Two averages are given: the mean of the shares of the settings that have one, and the *pooled* share,
the sum of gains over the sum of losses of all settings.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cleanrank.errors import invalid
from cleanrank.report.collapse import Estimate
from cleanrank.report.summaries import Level, by_cell
from cleanrank.types import FloatArray, RunRecord
from cleanrank.validation import one_of

from .draws import Place, Ran, drawn_means, of_draws, ran_in


@dataclass(frozen=True)
class Setting:
    """A data set and a noise level: the two ends of the scale and what lies between.

    ``clear`` says that there is something to recover: the interval of the loss lies above 0.
    """

    dataset: str
    level: Level
    clean: float
    noisy: float
    loss: Estimate
    queries: int
    seeds: int

    @property
    def clear(self) -> bool:
        """Whether the interval of the loss lies above 0."""
        return self.loss.low > 0

    @property
    def place(self) -> Place:
        """Data set and level."""
        return self.dataset, self.level


@dataclass(frozen=True)
class Recovered:
    """A method in a setting; no share where there is nothing to recover.

    Attributes:
        dataset: of the setting.
        level: of the setting.
        method: its label.
        mean: its figure on clean test data.
        gain: over the noisy baseline.
        share: gain over loss.
        judgements: training rows that were judged again, on average.
    """

    dataset: str
    level: Level
    method: str
    mean: float
    gain: Estimate
    share: Estimate | None
    judgements: float


@dataclass(frozen=True)
class Average:
    """A method over all settings that it ran in.

    Attributes:
        method: its label.
        share: mean of the shares of the settings that have one.
        pooled: sum of gains over sum of losses, all settings.
        settings: how many have a share.
        judgements: training rows that were judged again, on average.
        worst: the lowest share and its setting.
        below: settings whose interval of the share lies wholly below the limit.
    """

    method: str
    share: Estimate | None
    pooled: Estimate
    settings: int
    judgements: float
    worst: Recovered | None
    below: tuple[Recovered, ...]


@dataclass(frozen=True, eq=False)
class Card:
    """The report card."""

    measure: str
    clean: str
    noisy: str
    settings: tuple[Setting, ...]
    rows: tuple[Recovered, ...]
    averages: tuple[Average, ...]
    missing: tuple[str, ...]
    confidence: float
    resamples: int
    gains: Mapping[tuple[Place, str], FloatArray] = field(repr=False)
    losses: Mapping[Place, FloatArray] = field(repr=False)

    def find(self, dataset: str, level: Level, method: str) -> Recovered | None:
        """The row of a method in a setting."""
        return next(
            (r for r in self.rows if (r.dataset, r.level, r.method) == (dataset, level, method)), None
        )

    def pooled(self, method: str, settings: Iterable[Setting]) -> Estimate | None:
        """The pooled share of a method over those of the settings where it ran; None where it ran in none."""
        places = [s.place for s in settings if (s.place, method) in self.gains]
        if not places:
            return None
        return of_draws(_pooled(method, places, self.gains, self.losses), self.confidence)

    def difference(self, one: str, other: str) -> Estimate:
        """The pooled share of one method minus that of another, over the settings where both ran."""
        places = [s.place for s in self.settings if all((s.place, m) in self.gains for m in (one, other))]
        if not places:
            raise invalid("methods", "must share a setting", f"{one!r} and {other!r}")
        gained = np.sum([self.gains[place, one] - self.gains[place, other] for place in places], axis=0)
        lost = np.sum([self.losses[place] for place in places], axis=0)
        return of_draws(gained / lost, self.confidence)


def recovery_card(
    records: Iterable[RunRecord],
    *,
    clean: str = "clean-trained",
    noisy: str = "noisy-trained",
    measure: str = "ndcg@10",
    limit: float = -0.05,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Card:
    """The shares of every method of these records.

    A method that lacks a cell of a setting (a fold or seed that failed or has not run) has no row there, and
    the card names it among ``missing``.

    Args:
        records: what ran.
        clean: the method that learns from true labels.
        noisy: the one that learns from given labels and does nothing.
        measure: whose shares.
        limit: a share that should not be undercut.
        confidence: of all intervals.
        resamples: draws of the bootstrap.
        seed: of the bootstrap.
    """
    done = by_cell([r for r in records if r.status == "done" and measure in r.values])
    if not done:
        raise invalid("records", f"must hold cells with {measure}", 0, remedy="Run the recipe first.")
    methods = tuple(dict.fromkeys(c[3] for c in done))
    for name in (clean, noisy):
        one_of("method", name, methods)
    places = list(dict.fromkeys((c[0], c[1]) for c in done if not c[1].clean))
    ran = {place: ran_in(done, place, methods, measure) for place in places}
    draws: dict[tuple[Place, str], FloatArray] = {}
    for dataset in tuple(dict.fromkeys(place[0] for place in places)):
        here = {place: each for place, each in ran.items() if place[0] == dataset}
        draws |= drawn_means(here, resamples, np.random.default_rng([seed, *dataset.encode()]))
    return _card(draws, ran, methods, clean, noisy, measure, limit, confidence, resamples)


def _card(
    draws: Mapping[tuple[Place, str], FloatArray],
    ran: Mapping[Place, Ran],
    methods: Sequence[str],
    clean: str,
    noisy: str,
    measure: str,
    limit: float,
    confidence: float,
    resamples: int,
) -> Card:
    places = [
        place
        for place in dict.fromkeys(place for place, _ in draws)
        if (place, clean) in draws and (place, noisy) in draws
    ]
    losses = {place: draws[place, clean] - draws[place, noisy] for place in places}
    gains = {
        (place, m): draws[place, m] - draws[place, noisy]
        for place in places
        for m in methods
        if (place, m) in draws and m != noisy
    }
    settings = tuple(
        Setting(
            *place,
            clean=float(draws[place, clean][0]),
            noisy=float(draws[place, noisy][0]),
            loss=of_draws(losses[place], confidence),
            seeds=len(ran[place].seeds),
            queries=sum(v.shape[1] for v in ran[place].values[noisy].values()),
        )
        for place in places
    )
    clear = {s.place for s in settings if s.clear}
    rows = tuple(
        Recovered(
            *place,
            method=m,
            mean=float(draws[place, m][0]),
            gain=of_draws(gain, confidence),
            share=of_draws(gain / losses[place], confidence) if place in clear else None,
            judgements=ran[place].paid[m],
        )
        for (place, m), gain in gains.items()
    )
    averages = tuple(
        _average(m, [r for r in rows if r.method == m], gains, losses, limit, confidence)
        for m in methods
        if any(r.method == m for r in rows)
    )
    gaps = tuple(gap for each in ran.values() for gap in each.gaps)
    return Card(measure, clean, noisy, settings, rows, averages, gaps, confidence, resamples, gains, losses)


def _average(
    method: str,
    rows: Sequence[Recovered],
    gains: Mapping[tuple[Place, str], FloatArray],
    losses: Mapping[Place, FloatArray],
    limit: float,
    confidence: float,
) -> Average:
    shared = [r for r in rows if r.share is not None]
    every = [(r.dataset, r.level) for r in rows]
    pooled = _pooled(method, every, gains, losses)
    share = None
    if shared:
        each = [gains[p, method] / losses[p] for p in ((r.dataset, r.level) for r in shared)]
        share = of_draws(np.mean(each, axis=0), confidence)
    return Average(
        method=method,
        share=share,
        pooled=of_draws(pooled, confidence),
        settings=len(shared),
        judgements=float(np.mean([r.judgements for r in rows])),
        worst=min(shared, key=lambda r: r.share.value if r.share else 0.0, default=None),
        below=tuple(r for r in shared if r.share is not None and r.share.high < limit),
    )


def _pooled(
    method: str,
    places: Sequence[Place],
    gains: Mapping[tuple[Place, str], FloatArray],
    losses: Mapping[Place, FloatArray],
) -> FloatArray:
    gained = np.sum([gains[place, method] for place in places], axis=0)
    return np.asarray(gained / np.sum([losses[place] for place in places], axis=0))
