"""Panels of the report card: shares of methods and by setting, gains, what judgements buy, detectors."""

from collections.abc import Mapping, Sequence

from cleanrank.report.collapse import Estimate
from cleanrank.report.panels import Gap, Panel, Point

from .compared import ALL, Compared
from .detection import Detection
from .recovery import Card, Setting

SHOWN = (-1.0, 1.2)  # of shares; what lies beyond is cut off
ENDS = ((0.0, ""), (1.0, ""))
SHARE = "recovered share"


def shares_panel(card: Card) -> Panel:
    """Each method's recovered share over all settings, with its interval."""
    averages = [a for a in card.averages if a.method != card.clean]
    parts = ("mean of settings", "pooled over settings")
    points = tuple(
        _point(a.method, part, e)
        for a in averages
        for part, e in zip(parts, (a.share, a.pooled), strict=True)
        if e is not None
    )
    named = {"measure": SHARE, "x_title": "recovered share: 0 is noisy-trained, 1 is clean-trained"}
    methods = tuple(a.method for a in averages)
    return Panel("dots", methods, parts, points, **named, rules=ENDS, x_domain=SHOWN, colours=(1, 0))


def settings_panel(card: Card) -> Panel:
    """Methods against the settings with a clear loss: recovered shares as numbers on colour."""
    methods = tuple(a.method for a in card.averages if a.method != card.clean)
    points, gaps = [], []
    names = {s.place: f"{s.dataset}, {s.level.label}" for s in card.settings if s.clear}
    for place, x in names.items():
        for m in methods:
            row = card.find(*place, m)
            if row is None or row.share is None:
                gaps.append(Gap(m, x, "–"))
                continue
            share = row.share.value
            text = f"{share:.1f}".replace("0.", ".")
            points.append(Point(m, x, share, difference=share, strength=min(1.0, abs(share)), text=text))
    return Panel("heat", methods, tuple(names.values()), tuple(points), tuple(gaps))


def gains_panel(card: Compared, methods: Sequence[str], base: str, group: str | None = None) -> Panel:
    """What methods gain over the base in every data set of a group, and on average."""
    datasets = [d for d, its_group in card.datasets.items() if group in (None, its_group)]
    rows = [(d.removeprefix(f"{group} "), {m: card.gains.get((d, m)) for m in methods}) for d in datasets]
    rows.append(("mean", {m: card.average(m, group=group or ALL) for m in methods}))
    points = tuple(_point(name, m, e, 4) for name, gains in rows for m, e in gains.items() if e is not None)
    named = {"title": group or "", "measure": "gain", "x_title": f"NDCG@10 minus that of {base}"}
    names = tuple(name for name, _ in rows)
    colours = tuple(range(1, len(methods) + 1))
    return Panel("dots", names, tuple(methods), points, **named, rules=((0.0, ""),), colours=colours)


def cost_panels(card: Card, lines: Mapping[str, Sequence[tuple[int, str]]]) -> list[Panel]:
    """Shares against the rows that are judged again, a panel per setting with a clear loss.

    Args:
        card: of the cost study.
        lines: what a line is -> (rows, method) along it; the method of 0 rows may be the noisy baseline.
    """
    rows = sorted({n for points in lines.values() for n, _ in points})
    panels = []
    for s in (s for s in card.settings if s.clear):
        points = tuple(
            _point(name, f"{n:,}", share)
            for name, along in lines.items()
            for n, method in along
            if (share := _share(card, s, method)) is not None
        )
        title = f"{s.dataset}, {s.level.label}"
        named = {"title": title, "measure": SHARE, "x_title": "training rows judged again"}
        xs = tuple(f"{n:,}" for n in rows)
        panels.append(Panel("traces", tuple(lines), xs, points, **named, rules=ENDS, y_domain=SHOWN))
    return panels


def detection_panel(card: Detection, measures: Sequence[str]) -> Panel:
    """Averages of detectors over settings, a colour per measure."""
    points = tuple(_point(d.name, m, d.means[m]) for d in card.detectors for m in measures)
    names = tuple(d.name for d in card.detectors)
    looks = {"x_domain": (0, 1), "colours": tuple(range(1, len(measures) + 1))}
    return Panel("dots", names, tuple(measures), points, x_title="mean over settings", **looks)


def _point(method: str, x: str, e: Estimate, digits: int = 2) -> Point:
    text = "{:.{n}f} [{:.{n}f}, {:.{n}f}]".format(e.value, e.low, e.high, n=digits)
    return Point(method, x, e.value, e.low, e.high, text=text)


def _share(card: Card, setting: Setting, method: str) -> Estimate | None:
    if method == card.noisy:
        return Estimate(0.0, 0.0, 0.0)
    row = card.find(*setting.place, method)
    return None if row is None else row.share
