"""The pictures of what noise leaves of rankers."""

from collections.abc import Sequence

import numpy as np

from cleanrank.report.collapse import realised
from cleanrank.report.panels import Panel, Point
from cleanrank.report.summaries import Summary

from .degradation import Points
from .degradation_tables import SIX

AXES = {"dnoise": "dNoise", "pnoise": "pNoise"}


def traces(title: str, measure: str, axis: str, points: Sequence[Point], series: str) -> Panel:
    """Lines over dNoise or pNoise."""
    return Panel(
        "traces",
        tuple(dict.fromkeys(p.method for p in points)),
        tuple(sorted({float(p.x) for p in points})),
        tuple(points),
        title=f"{title}, against {AXES[axis]}",
        measure=measure,
        x_title=f"{AXES[axis]} of the training labels",
        series=series,
    )


def ranker_panels(points: Points) -> list[Panel]:
    """A panel per data set and axis, a line per ranker."""
    return [
        traces(dataset, "share of NDCG@10 above random kept", axis, [
            Point(method, float(x), float(share))
            for method in points.methods
            for mine in [points.of(dataset=dataset, method=method)]
            for x, share in [(0.0, 1.0), *zip(getattr(mine, axis), mine.shares[0], strict=True)]
        ], "Ranker")
        for dataset in points.datasets
        for axis in AXES
    ]  # fmt: skip


def mean_panels(points: Points) -> list[Panel]:
    """A panel per axis, a line per data set and kind of noise: the mean over the six rankers."""
    six = points.where(np.isin(points.method, SIX))
    kinds = len(set(six.noise.tolist())) > 1
    panels = []
    for axis in AXES:
        lines = []
        for dataset, noise in dict.fromkeys(zip(six.dataset.tolist(), six.noise.tolist(), strict=True)):
            mine = six.of(dataset=dataset, noise=noise)
            name = f"{dataset}, {noise}" if kinds else dataset
            lines.append(Point(name, 0.0, 1.0))
            for rate in np.unique(mine.rate):
                at = mine.of(rate=rate)
                lines.append(Point(name, float(getattr(at, axis).mean()), float(at.shares[0].mean())))
        panels.append(
            traces("Mean of six rankers", "share of NDCG@10 above random kept", axis, lines, "Data set")
        )
    return panels


def loss_panels(summary: Summary) -> list[Panel]:
    """Fig. 3: the loss of PRank against each axis, a line per data set and kind of noise."""
    panels = []
    for axis in AXES:
        x = realised(summary, axis)
        lines = []
        for dataset in summary.datasets:
            for noise in dict.fromkeys(level.noise for level in summary.levels if not level.clean):
                rows = [
                    r
                    for r in summary.rows
                    if (r.dataset, r.measure) == (dataset, "loss")
                    and (r.level.clean or r.level.noise == noise)
                ]
                rows = [r for r in rows if (dataset, r.level) in x and r.mean is not None]
                if any(not r.level.clean for r in rows):
                    lines += [
                        Point(f"{dataset}, {noise}", x[dataset, r.level], float(r.mean or 0))
                        for r in sorted(rows, key=lambda r: r.level.rate)
                    ]
        panels.append(traces("PRank", "|predicted - true grade| / (C - 1)", axis, lines, "Data set"))
    return panels


def closed_form_panels(summary: Summary) -> list[Panel]:
    """Fig. 7 and 11: a panel per data set, a line per scale or balance; uniform noise."""
    methods = [method for method in summary.methods if method.endswith("uniform")]
    rates = [float(name.rpartition(" ")[2]) for name in summary.measures]
    panels = []
    for dataset in summary.datasets:
        lines = [Point(method.removesuffix(", uniform"), 0.0, 0.0) for method in methods]
        for rate, measure in sorted(zip(rates, summary.measures, strict=True)):
            for method in methods:
                row = summary.find(dataset, summary.levels[0], method, measure)
                if row is not None and row.mean is not None:
                    lines.append(Point(method.removesuffix(", uniform"), rate, row.mean))
        panels.append(
            Panel(
                "traces",
                tuple(dict.fromkeys(p.method for p in lines)),
                (0.0, *sorted(rates)),
                tuple(lines),
                title=dataset,
                measure="pNoise",
                x_title="rate of uniform noise (dNoise)",
                series="Grades",
            )
        )
    return panels
