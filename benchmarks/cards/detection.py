"""How well detectors find wrong labels, over the settings of a grid of ``detection`` studies.

A setting is a data set and a noise level; its figure is the mean over folds and seeds. The average counts
every setting once. Intervals are percentiles of a bootstrap that draws settings again and, within each,
seeds: they speak of settings like these, not of these alone. Average precision pools the rows of all queries,
so queries are not drawn again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cleanrank.errors import invalid
from cleanrank.report.collapse import Estimate
from cleanrank.report.summaries import Level, by_cell
from cleanrank.types import FloatArray, IntArray, RunRecord
from cleanrank.validation import one_of

from .draws import Place, estimate


@dataclass(frozen=True)
class Detector:
    """A detector over all settings.

    Attributes:
        name: its label.
        means: measure -> average over settings.
        ahead: measure -> the average of the reference minus that of this detector, over shared settings.
        settings: how many it ran in.
    """

    name: str
    means: Mapping[str, Estimate]
    ahead: Mapping[str, Estimate]
    settings: int


@dataclass(frozen=True, eq=False)
class Detection:
    """Detectors compared.

    Attributes:
        detectors: averages.
        values: (setting, detector, measure) -> mean.
        places: the settings.
        measures: what was measured.
        reference: the detector that others are compared with; None without one.
    """

    detectors: tuple[Detector, ...]
    values: Mapping[tuple[Place, str, str], float]
    places: tuple[Place, ...]
    measures: tuple[str, ...]
    reference: str | None


def detection_card(
    records: Iterable[RunRecord],
    measures: Sequence[str],
    *,
    reference: str | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Detection:
    """Averages of detectors and how far the reference is ahead of each.

    Args:
        records: cells of ``detection`` studies.
        measures: which of their measures.
        reference: the detector that others are compared with.
        confidence: of the intervals.
        resamples: draws of the bootstrap.
        seed: of the bootstrap.
    """
    done = by_cell([r for r in records if r.status == "done"])
    if not done:
        raise invalid("records", "must hold cells of detection studies", 0, remedy="Run the recipe first.")
    names = tuple(dict.fromkeys(c[3] for c in done))
    if reference is not None:
        one_of("detector", reference, names)
    places = tuple(dict.fromkeys((c[0], c[1]) for c in done if not c[1].clean))
    seeds = tuple(dict.fromkeys(c[4] for c in done))
    means = {
        (place, name, measure): _by_seed(done, place, name, measure, seeds)
        for place in places
        for name in names
        for measure in measures
    }
    rng = np.random.default_rng(seed)
    drawn = rng.integers(len(places), size=(resamples, len(places)))
    times = rng.multinomial(len(seeds), np.full(len(seeds), 1 / len(seeds)), size=(resamples, len(places)))

    def average(values: FloatArray) -> Estimate:
        return _average(values, drawn, times, confidence)

    detectors = []
    for name in names:
        table = {m: np.array([means[place, name, m] for place in places]) for m in measures}
        ahead = {}
        if reference is not None and name != reference:
            for m in measures:
                ahead[m] = average(
                    np.array([means[place, reference, m] - means[place, name, m] for place in places])
                )
        whole = int(np.isfinite(table[measures[0]]).all(axis=1).sum())
        detectors.append(Detector(name, {m: average(v) for m, v in table.items()}, ahead, whole))
    values = {key: float(v.mean()) for key, v in means.items() if np.isfinite(v).all()}
    return Detection(tuple(detectors), values, places, tuple(measures), reference)


def _by_seed(
    done: Mapping[tuple[str, Level, str, str, str], RunRecord],
    place: Place,
    name: str,
    measure: str,
    seeds: Sequence[str],
) -> FloatArray:
    """The mean over folds for every seed; NaN where a fold is missing."""
    folds = {c[2] for c in done if (c[0], c[1]) == place}
    means = np.full(len(seeds), np.nan)
    for i, seed in enumerate(seeds):
        cells = [(*place, fold, name, seed) for fold in folds]
        if all(c in done and measure in done[c].means for c in cells):
            means[i] = np.mean([done[c].means[measure] for c in cells])
    return means


def _average(values: FloatArray, drawn: IntArray, times: IntArray, confidence: float) -> Estimate:
    """The mean over settings of the mean over seeds, with its interval; settings with a gap do not count."""
    whole = np.asarray(np.isfinite(values).all(axis=1))
    if not whole.any():
        return Estimate(float("nan"), float("nan"), float("nan"))
    filled = np.nan_to_num(values)
    each = (times * filled[drawn]).sum(axis=2) / times.sum(axis=2)
    counted = whole[drawn]
    sums, counts = (each * counted).sum(axis=1), counted.sum(axis=1)
    draws = sums[counts > 0] / counts[counts > 0]
    return estimate(values[whole].mean(), draws, confidence)
