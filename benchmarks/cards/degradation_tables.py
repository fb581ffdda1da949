"""The tables of what noise leaves of rankers."""

from collections.abc import Mapping, Sequence

import numpy as np

from cleanrank.noise.pair_noise import pnoise_curve
from cleanrank.noise.scales import best_proportions
from cleanrank.report.collapse import Estimate
from cleanrank.report.grid_tables import value_cell
from cleanrank.report.summaries import Level, Summary
from cleanrank.report.table import Cell, Line, Table, number

from .degradation import SCOPES, Points, explained, joined, knee, levels_of, points_of, robustness

SIX = ("PRank", "GBDT", "RankSVM", "RankBoost", "ListNet", "AdaRank")
BASE = "lambdarank"
REAL = ("OHSUMED", "MQ2008")
FORMS = {
    "PRank": ("PRank, margin", "PRank, average"),
    "RankSVM": ("RankSVM, ramp",),
    "RankBoost": ("RankBoost, smooth",),
}
SHOWN = (0.1, 0.2, 0.3, 0.4, 0.5)
# Niu et al. 2015, Table 1 and Sect. 5: shares of grades.
SCALES = {
    "OHSUMED, 3 grades": (70, 16, 14),
    "OHSUMED, 2 grades": (70, 30),
    "TD2003, 2 grades": (99.2, 0.8),
    "MSLR, 5 grades": (51.7, 32.5, 13.3, 1.7, 0.8),
    "MSLR, 3 grades": (51.7, 32.5, 15.8),
    "MSLR, 2 grades, 0-1 and 2-4": (84.2, 15.8),
    "MSLR, 2 grades, 0 and 1-4": (51.7, 48.3),
}


def wide_table(summary: Summary, measure: str, shown: Sequence[str] | None = None) -> Table:
    """A line per data set and method, a column per noise level; studies show several measures of a method."""
    levels = levels_of(summary, SHOWN)
    rows: list[Line] = []
    for dataset in summary.datasets:
        for method in summary.methods:
            for each in shown or [measure]:
                found = [summary.find(dataset, level, method, each) for level in levels]
                if any(found):
                    name = method if shown is None else f"{method}, {each}"
                    rows.append([dataset, name, *(value_cell(row) for row in found)])
    return Table(["Data set", "Method", *(v.label for v in levels)], rows, align="ll" + "r" * len(levels))


def text_of(value: Estimate | None) -> str:
    """A figure with its interval, with real minus signs."""
    return "" if value is None else f"{value.value:.2f} [{value.low:.2f}, {value.high:.2f}]".replace("-", "−")


def robustness_table(points: Points) -> Table:
    """Rankers by the mean share kept over all rates, by kind of noise and real data set."""
    rows: list[Line] = []
    for noise in dict.fromkeys(points.noise.tolist()):
        for dataset in (*points.datasets, None):
            mine = points if dataset is None else points.of(dataset=dataset)
            if not (mine.noise == noise).any():
                continue
            for row in robustness(mine, noise, BASE):
                rows.append([noise, dataset or "mean", row.method, text_of(row.kept), text_of(row.more)])
    head = ["Noise", "Data set", "Ranker", "Mean share kept", f"More than {BASE}"]
    return Table(head, rows, align="lllrr")


def knee_table(points: Points) -> Table:
    """Where 90 % and half of the gain over random are left, by ranker, data set and kind of noise."""

    def place(x: float, most: float) -> Cell:
        return number(x, ".2f") if np.isfinite(x) else Cell(f"> {most:.2f}")

    rows: list[Line] = []
    for noise in dict.fromkeys(points.noise.tolist()):
        for method in points.methods:
            for dataset in points.datasets:
                mine = points.of(noise=noise, method=method, dataset=dataset)
                if len(mine.rate):
                    axes = (mine.dnoise, mine.pnoise)
                    cells = [place(knee(x, mine.shares[0], t), x.max()) for t in (0.9, 0.5) for x in axes]
                    rows.append([noise, method, dataset, *cells])
    head = [
        "Noise",
        "Ranker",
        "Data set",
        "90 % left at dNoise",
        "at pNoise",
        "Half left at dNoise",
        "at pNoise",
    ]
    return Table(head, rows, align="lllrrrr")


def unions(ranked: Mapping[str, Summary], measure: str) -> dict[str, Points]:
    """Points of the six rankers: of the whole study, with other data and noise, with derived sets."""
    names = ["uniform", "nonuniform", "adjacent", "stand-ins", "grades", "balance"]
    ends = {"OHSUMED and MQ2008": 2, "with stand-ins and adjacent noise": 4, "with derived sets too": 6}
    sets: dict[str, Points] = {}
    for label, end in ends.items():
        points = joined([points_of(ranked[n], measure) for n in names[:end] if n in ranked])
        real = np.isin(points.dataset, REAL) if end == 2 else np.full(len(points.rate), True)
        points = points.where(np.isin(points.method, SIX) & real)
        if not sets or len(points.datasets) > len(list(sets.values())[-1].datasets):
            sets[label] = points
    return sets


def explained_table(sets: Mapping[str, Points]) -> Table:
    """What dNoise and pNoise explain of the loss."""
    rows: list[Line] = []
    for label, points in sets.items():
        for scope in SCOPES:
            result = explained(points, scope)
            figures = [text_of(e) for e in (result.dnoise, result.pnoise, result.gain)]
            rows.append([label, str(len(points.datasets)), scope, str(result.points), *figures])
    head = ["Data", "Sets", "Curves", "Points", "R² over dNoise", "R² over pNoise", "Gain"]
    return Table(head, rows, align="lrlrrrr")


def verdict(gain: Estimate) -> str:
    """What an interval of the gain says; draws with one kind of noise only have a gain of 0."""
    if gain.low > 1e-9:
        return "pNoise explains more"
    if gain.low > -1e-9 and gain.value > 0:
        return "pNoise explains more in every draw with two kinds of noise"
    return "dNoise explains more" if gain.high < 1e-9 and gain.value < 0 else "no difference is certain"


def short_words(sets: Mapping[str, Points], core: Points) -> str:
    """The answers in a few lines, each with its figures."""
    lines = []
    for label, scope in ((next(iter(sets)), list(SCOPES)[2]), (list(sets)[-1], list(SCOPES)[1])):
        found = explained(sets[label], scope)
        lines.append(
            f"**{label}, {scope}: {verdict(found.gain)}.** R² {text_of(found.pnoise)} over pNoise, "
            f"{text_of(found.dnoise)} over dNoise, gain {text_of(found.gain)} ({found.points} points, "
            f"{len(sets[label].datasets)} data sets)."
        )
    for noise in dict.fromkeys(core.noise.tolist()):
        order = [r for r in robustness(core, noise, BASE) if r.method in (*SIX, BASE)]
        listed = ", ".join(f"{row.method} {row.kept.value:.2f}" for row in order)
        best, last = order[0], order[-1]
        lines.append(
            f"**Under {noise} noise {best.method} keeps most of its gain over random order, {last.method} "
            f"least** (mean over rates and data sets): {listed}. Intervals: {best.method} "
            f"{text_of(best.kept)}, {last.method} {text_of(last.kept)}."
        )
    knees = [
        knee(mine.pnoise, mine.shares[0], 0.9)
        for method in SIX
        for dataset in core.datasets
        for noise in dict.fromkeys(core.noise.tolist())
        if len((mine := core.of(method=method, dataset=dataset, noise=noise)).rate)
    ]
    never = sum(not np.isfinite(k) for k in knees)
    seen = [k for k in knees if np.isfinite(k)]
    span = f"from {min(seen):.2f} to {max(seen):.2f}" if seen else "nowhere"
    lines.append(
        f"**There is no common turning point:** a tenth of the gain is lost at a pNoise {span}, and is not "
        f"lost up to dNoise .5 in {never} of {len(knees)} curves."
    )
    return "\n".join(f"* {line}" for line in lines)


def forms_table(summary: Summary, measure: str) -> Table:
    """Robust forms beside the plain ones: mean share kept, and the difference."""
    points = points_of(summary, measure)
    rows: list[Line] = []
    for noise in dict.fromkeys(points.noise.tolist()):
        for plain, forms in FORMS.items():
            for row in robustness(points, noise, plain):
                if row.method in (plain, *forms):
                    clean = [
                        r.mean
                        for r in summary.rows
                        if r.method == row.method
                        and r.level.clean
                        and r.measure == measure
                        and r.mean is not None
                    ]
                    rows.append(
                        [
                            noise,
                            row.method,
                            number(float(np.mean(clean)), ".3f"),
                            text_of(row.kept),
                            text_of(row.more),
                        ]
                    )
    head = ["Noise", "Ranker", "Clean NDCG@10", "Mean share kept", "More than the plain form"]
    return Table(head, rows, align="llrrr")


def drops_table(summaries: Mapping[str, Summary]) -> Table:
    """How much of the clean figure noise takes from RankBoost (grades) and RankSVM (balance), in per cent."""
    rows: list[Line] = []
    for name, method in (("grades", "RankBoost"), ("balance", "RankSVM")):
        summary = summaries[name]
        levels = [Level("uniform", rate) for rate in SHOWN]
        (clean,) = (level for level in summary.levels if level.clean)
        for dataset in summary.datasets:
            for measure in summary.measures:
                whole = summary.find(dataset, clean, method, measure)
                found = [summary.find(dataset, level, method, measure) for level in levels]
                if whole is None or not whole.mean or not any(found):
                    continue
                drops = [100 * (1 - r.mean / whole.mean) if r and r.mean else None for r in found]
                label = measure.partition(":")[0].upper()
                rows.append([dataset, method, label, *(number(d, ".0f") for d in drops)])
    head = ["Data set", "Ranker", "Measure", *(f"{rate:g}" for rate in SHOWN)]
    return Table(head, rows, align="lll" + "r" * len(SHOWN))


def closed_form_table(summary: Summary) -> Table:
    """PNoise at some rates for every data set and method of a recipe of the study ``closed_form``."""
    rows: list[Line] = []
    for dataset in summary.datasets:
        for method in summary.methods:
            at = [summary.find(dataset, summary.levels[0], method, f"pnoise at {rate:g}") for rate in SHOWN]
            rows.append([dataset, method, *(number(row.mean if row else None, ".3f") for row in at)])
    return Table(
        ["Data set", "Grades", *(f"{rate:g}" for rate in SHOWN)], rows, align="ll" + "r" * len(SHOWN)
    )


def scale_table() -> Table:
    """Fig. 7: the closed form for scales of different lengths, uniform noise."""
    rows: list[Line] = [
        [name, *(number(float(v), ".3f") for v in pnoise_curve(shares, SHOWN))]
        for name, shares in SCALES.items()
    ]
    return Table(["Grades", *(f"{rate:g}" for rate in SHOWN)], rows)


def best_table() -> Table:
    """Fig. 11: shares as they are, equal shares and the best ones, uniform noise of .1."""
    rows: list[Line] = []
    for name in ("OHSUMED, 3 grades", "MSLR, 5 grades", "TD2003, 2 grades"):
        shares, C = SCALES[name], len(SCALES[name])
        for rate in (0.1, 0.3):
            best = best_proportions("uniform", C, rate=rate)
            words = ":".join(f"{100 * share:.0f}" for share in best.proportions)
            own, equal = (float(pnoise_curve(r, [rate])[0]) for r in (shares, [1 / C] * C))
            rows.append([name, f"{rate:g}", *(number(v, ".3f") for v in (own, equal, best.pnoise)), words])
    head = ["Grades", "dNoise", "pNoise, own shares", "equal shares", "best shares", "which are"]
    return Table(head, rows, align="lrrrrl")
