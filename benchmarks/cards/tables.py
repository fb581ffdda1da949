"""The tables of the report card."""

from collections.abc import Callable

from cleanrank.report.collapse import Estimate
from cleanrank.report.summaries import Level
from cleanrank.report.table import Table

from .compared import ALL, Compared
from .detection import Detection
from .recovery import Card, Recovered, Setting

NOTHING = "nothing to recover"


def averages_table(card: Card, other: Card | None = None) -> Table:
    """A line per method: its shares over all settings, and the worst; ``other`` has another ceiling."""
    beside = {a.method: f"{a.pooled}" for a in other.averages if a.method != other.clean} if other else {}
    rows = [
        [
            a.method,
            f"{a.judgements:,.0f}",
            f"{a.pooled}",
            *([beside.get(a.method, "–")] if other else []),
            "–" if a.share is None else f"{a.share}",
            "–" if a.worst is None else f"{a.worst.share} ({a.worst.dataset}, {a.worst.level.label})",
        ]
        for a in card.averages
        if a.method != card.clean
    ]
    shares = ["pooled share", *([f"pooled share of {other.clean}"] if other else []), "mean of settings"]
    return Table(["method", "judgements", *shares, "worst setting"], rows)


def pooled_table(card: Card, part: Callable[[Setting], str]) -> Table:
    """Methods against parts of the settings, such as noise levels or data sets: the share pooled in each."""
    parts: dict[str, list[Setting]] = {}
    for setting in card.settings:
        parts.setdefault(part(setting), []).append(setting)
    methods = [a.method for a in card.averages if a.method != card.clean]
    shares = {m: [card.pooled(m, settings) for settings in parts.values()] for m in methods}
    rows = [[m, *("not run" if e is None else f"{e}" for e in shares[m])] for m in methods]
    return Table(["method", *parts], rows)


def gains_table(card: Compared, head: str, base: str, group: str | None = None) -> Table:
    """Data sets against methods: the figure of the base, then gains over it; the last line is the mean."""
    datasets = [d for d, its_group in card.datasets.items() if group in (None, its_group)]
    averages = {m: card.average(m, group=group or ALL) for m in card.methods}
    bases = [card.means[d, card.base] for d in datasets if (d, card.base) in card.means]
    rows = [
        [
            d.removeprefix(f"{group} "),
            f"{card.means[d, card.base]:.4f}" if (d, card.base) in card.means else "not run",
            *(gain_text(card.gains.get((d, m))) for m in card.methods),
        ]
        for d in datasets
    ]
    mean = f"{sum(bases) / len(bases):.4f}" if bases else "–"
    rows.append(["mean", mean, *(gain_text(averages[m]) for m in card.methods)])
    return Table([head, base, *card.methods], rows)


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


def gain_text(e: Estimate | None) -> str:
    """A gain with its interval, bold where it is clear."""
    if e is None:
        return "not run"
    words = f"{e.value:+.4f} [{e.low:+.4f}, {e.high:+.4f}]"
    return f"**{words}**" if e.low > 0 or e.high < 0 else words


def _loss(s: Setting) -> str:
    words = f"{s.loss.value:.3f} [{s.loss.low:.3f}, {s.loss.high:.3f}]"
    return f"**{words}**" if s.clear else words


def _small(e: Estimate) -> str:
    return f"{e.value:.4f} [{e.low:.4f}, {e.high:.4f}]"


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
