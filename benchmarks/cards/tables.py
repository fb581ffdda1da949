"""The tables of the report card."""

from cleanrank.report.collapse import Estimate
from cleanrank.report.summaries import Level
from cleanrank.report.table import Table

from .detection import Detection
from .recovery import Card, Recovered, Setting

NOTHING = "nothing to recover"


def averages_table(card: Card) -> Table:
    """A line per method: its shares over all settings, and the worst."""
    rows = [
        [
            a.method,
            f"{a.judgements:,.0f}",
            "–" if a.share is None else f"{a.share}",
            f"{a.pooled}",
            "–" if a.worst is None else f"{a.worst.share} ({a.worst.dataset}, {a.worst.level.label})",
        ]
        for a in card.averages
        if a.method != card.clean
    ]
    shares = ["recovered share, mean of settings", "pooled over all settings"]
    return Table(["method", "judgements", *shares, "worst setting"], rows)


def settings_table(card: Card) -> Table:
    """A line per setting: what noise costs there."""
    rows = [
        [
            s.dataset,
            s.level.label,
            f"{s.clean:.4f}",
            f"{s.noisy:.4f}",
            _small(s.loss),
            f"{s.queries}",
            f"{s.seeds}",
            "" if s.clear else NOTHING,
        ]
        for s in card.settings
    ]
    head = ["data set", "noise", "clean-trained", "noisy-trained", "loss", "test queries", "seeds", ""]
    return Table(head, rows, headed=2)


def losses_table(card: Card) -> Table:
    """Noise levels against data sets: what noise costs, with its interval."""
    datasets = list(dict.fromkeys(s.dataset for s in card.settings))
    losses = {s.place: s for s in card.settings}
    rows = [
        [level.label, *(_loss(losses[d, level]) if (d, level) in losses else "not run" for d in datasets)]
        for level in dict.fromkeys(s.level for s in card.settings)
    ]
    return Table(["noise", *datasets], rows)


def shares_table(card: Card, level: Level) -> Table:
    """Methods against data sets at one noise level: the figure and the share with its interval."""
    settings = [s for s in card.settings if s.level == level]
    methods = [a.method for a in card.averages if a.method != card.clean]
    rows = [
        [card.noisy, *(f"{s.noisy:.4f}" for s in settings)],
        [card.clean, *(f"{s.clean:.4f}" for s in settings)],
        *([m, *(_share(card.find(s.dataset, level, m)) for s in settings)] for m in methods),
    ]
    return Table(["method", *(s.dataset for s in settings)], rows)


def detection_table(card: Detection) -> Table:
    """A line per detector: averages over settings and the lead of the reference."""
    first = card.measures[0]
    head = ["detector", *card.measures]
    rows = [[d.name, *(f"{d.means[m]}" for m in card.measures)] for d in card.detectors]
    if card.reference:
        head.append(f"{card.reference} ahead by ({first})")
        rows = [
            [*row, f"{d.ahead[first]}" if d.ahead else "–"]
            for row, d in zip(rows, card.detectors, strict=True)
        ]
    return Table(head, rows)


def detection_by_setting(card: Detection, measure: str) -> Table:
    """Detectors against settings: one measure."""
    names = [d.name for d in card.detectors]
    rows = [
        [place[0], place[1].label, *(_figure(card.values.get((place, n, measure))) for n in names)]
        for place in card.places
    ]
    return Table(["data set", "noise", *names], rows, headed=2)


def _share(row: Recovered | None) -> str:
    return "not run" if row is None else f"{row.mean:.4f}, {'–' if row.share is None else row.share}"


def _loss(s: Setting) -> str:
    words = f"{s.loss.value:.3f} [{s.loss.low:.3f}, {s.loss.high:.3f}]"
    return f"**{words}**" if s.clear else words


def _small(e: Estimate) -> str:
    return f"{e.value:.4f} [{e.low:.4f}, {e.high:.4f}]"


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
