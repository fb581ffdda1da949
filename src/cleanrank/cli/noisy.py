"""What ``evaluate --noise`` and ``compare --noise`` share: figures corrected for noisy test labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cleanrank.cli import screen
from cleanrank.types import FloatArray, RankingData
from cleanrank.validation import one_of

if TYPE_CHECKING:
    from cleanrank.metrics.measure import Measure
    from cleanrank.noise.profiles import NoiseProfile

MEASURES = ("dcg@10", "auc:micro")


@dataclass(frozen=True, eq=False)
class Seen:
    """Corrected figures of one or more systems.

    Attributes:
        profile: the noise.
        measures: what was measured.
        baseline: the system that others are compared with; empty for one system alone.
        rows: one plain record per system and measure.
        by_query: system -> corrected values (M, Q).
        level: of the intervals.
        seed: of the bootstrap.
    """

    profile: "NoiseProfile"
    measures: "tuple[Measure, ...]"
    baseline: str
    rows: list[dict[str, Any]]
    by_query: Mapping[str, FloatArray]
    level: float
    seed: int


def correct(
    judged: RankingData,
    systems: Mapping[str, FloatArray],
    measures: list[str] | None,
    noise: str,
    level: float,
    seed: int,
    baseline: str | None = None,
) -> Seen:
    """Corrects every measure of every system; with several, says how sure the order with the baseline is."""
    from cleanrank.metrics.noisy_labels import corrected, order_probability
    from cleanrank.noise.profiles import read_noise

    against = one_of("system", next(iter(systems)) if baseline is None else baseline, systems)
    profile = read_noise(noise, judged.n_grades)
    rows: list[dict[str, Any]] = []
    values = {}
    for name, scores in systems.items():
        found = corrected(scores, judged, measures or MEASURES, noise=profile, level=level, seed=seed)
        values[name] = found.by_query
        for i, m in enumerate(found.measures):
            row = {
                "measure": str(m),
                "corrected": float(found.means[i]),
                "interval": [float(found.low[i]), float(found.high[i])],
                "as_labelled": float(found.noisy[i]),
            }
            if name != against:
                row["order_probability"] = order_probability(
                    scores, systems[against], judged, m, noise=profile, seed=seed
                )
            rows.append({"system": name, **row})
    return Seen(profile, found.measures, against, rows, values, level, seed)


def show_one(seen: Seen, judged: RankingData, as_json: bool) -> None:
    """The figures of one system."""
    if as_json:
        rows = [{key: value for key, value in row.items() if key != "system"} for row in seen.rows]
        screen.print_json({**_settings(seen), "measures": rows})
        return
    screen.note(repr(judged))
    head = ("measure", "corrected", screen.interval_head(seen.level), "as labelled")
    screen.table(head, [_figures(row) for row in seen.rows])
    screen.note(f"\nCorrected for {seen.profile!r}; intervals: bootstrap over queries, seed {seen.seed}.")


def show_several(seen: Seen, judged: RankingData, as_json: bool) -> None:
    """The figures of several systems and the probability that each stands to the baseline as it seems to."""
    if as_json:
        screen.print_json({**_settings(seen), "baseline": seen.baseline, "rows": seen.rows})
        return
    screen.note(repr(judged))
    head = (
        "system",
        "measure",
        "corrected",
        screen.interval_head(seen.level),
        "as labelled",
        "P(order is right)",
    )
    rows = []
    for row in seen.rows:
        sure = row.get("order_probability")
        rows.append((row["system"], *_figures(row), "baseline" if sure is None else f"{sure:.4f}"))
    screen.table(head, rows, left=2)
    screen.note(
        f"\nCorrected for {seen.profile!r}; the order is that of the corrected figures, {seen.baseline} "
        f"against each. Intervals and probabilities: bootstrap over queries, seed {seen.seed}."
    )


def _settings(seen: Seen) -> dict[str, Any]:
    return {"noise": seen.profile.matrix.tolist(), "level": seen.level, "seed": seen.seed}


def _figures(row: Mapping[str, Any]) -> tuple[str, ...]:
    interval = "[{:.4f}, {:.4f}]".format(*row["interval"])
    return row["measure"], f"{row['corrected']:.4f}", interval, f"{row['as_labelled']:.4f}"
