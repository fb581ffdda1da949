"""The report card as Markdown tables."""

from collections.abc import Sequence

from cleanrank.report.detected import Detection
from cleanrank.report.grid import Level
from cleanrank.report.recovery import Card, Estimate, Recovered, Setting

NOTHING = "nothing to win back"


def averages_table(card: Card) -> str:
    """A line per method: its shares over all settings, and the worst."""
    head = [
        "method",
        "judgements",
        "recovered share, mean of settings",
        "pooled over all settings",
        "worst setting",
    ]
    lines = [
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
    return table(head, lines, left=1)


def settings_table(card: Card) -> str:
    """A line per setting: what noise takes there."""
    head = ["data set", "noise", "clean-trained", "noisy-trained", "loss", "test queries", "seeds", ""]
    lines = [
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
    return table(head, lines, left=2)


def losses_table(card: Card) -> str:
    """Noise levels against data sets: what noise takes, with its interval."""
    datasets = list(dict.fromkeys(s.dataset for s in card.settings))
    losses = {s.place: s for s in card.settings}
    lines = [
        [
            level.label,
            *(_loss(losses[d, level]) if (d, level) in losses else "not run" for d in datasets),
        ]
        for level in dict.fromkeys(s.level for s in card.settings)
    ]
    return table(["noise", *datasets], lines, left=1)


def shares_table(card: Card, level: Level) -> str:
    """Methods against data sets at one noise level: the figure and the share with its interval."""
    settings = [s for s in card.settings if s.level == level]
    head = ["method", *(s.dataset for s in settings)]
    methods = [a.method for a in card.averages if a.method != card.clean]
    lines = [[card.noisy, *(f"{s.noisy:.4f}" for s in settings)]]
    lines += [[card.clean, *(f"{s.clean:.4f}" for s in settings)]]
    lines += [[m, *(_share(s, card.find(s.dataset, level, m)) for s in settings)] for m in methods]
    return table(head, lines, left=1)


def detection_table(found: Detection) -> str:
    """A line per detector: averages over settings and the lead of the reference."""
    lead = f"{found.reference} ahead by" if found.reference else ""
    head = ["detector", *found.measures, *([f"{lead} ({found.measures[0]})"] if lead else [])]
    lines = [
        [
            d.name,
            *(f"{d.means[m]}" for m in found.measures),
            *([f"{d.ahead[found.measures[0]]}" if d.ahead else "–"] if lead else []),
        ]
        for d in found.detectors
    ]
    return table(head, lines, left=1)


def detection_by_setting(found: Detection, measure: str) -> str:
    """Detectors against settings: one measure."""
    names = [d.name for d in found.detectors]
    lines = [
        [place[0], place[1].label, *(_figure(found.values.get((place, n, measure))) for n in names)]
        for place in found.places
    ]
    return table(["data set", "noise", *names], lines, left=2)


def table(head: Sequence[str], lines: Sequence[Sequence[str]], *, left: int) -> str:
    """A Markdown table, its first columns to the left.

    >>> print(table(["a", "b"], [["x", "1"]], left=1), end="")
    | a | b |
    | :-- | --: |
    | x | 1 |
    """
    rule = [":--" if i < left else "--:" for i in range(len(head))]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, rule, *lines))


def _share(setting: Setting, row: Recovered | None) -> str:
    if row is None:
        return "not run"
    words = "–" if row.share is None else f"{row.share}"
    return f"{row.mean:.4f}, {words}"


def _loss(s: Setting) -> str:
    words = f"{s.loss.value:.3f} [{s.loss.low:.3f}, {s.loss.high:.3f}]"
    return f"**{words}**" if s.clear else words


def _small(e: Estimate) -> str:
    return f"{e.value:.4f} [{e.low:.4f}, {e.high:.4f}]"


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
