"""What must hold, beside what was measured.

A goal is *met* where the figure reaches its bound, *within the interval* where the figure misses the bound
and its 95 % interval does not, *missed* where the whole interval lies on the wrong side.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cleanrank.report.collapse import Estimate
from cleanrank.report.table import Table

from .compared import Compared
from .detection import Detection
from .recovery import Card

MET, WITHIN, MISSED, NOT_RUN = "met", "within the interval", "missed", "not run"
NOTHING, HUNDRED, THREE = (f"RobustRanker ({known})" for known in ("nothing known", "100 rows", "300 rows"))
DEFAULT, CONFIDENT = "auto (nothing known)", "confident learning"
SHARES = {NOTHING: 0.55, HUNDRED: 0.70, THREE: 0.80}
LEAST_SHARE, LEAST_GAIN = -0.05, -0.003


@dataclass(frozen=True)
class Goal:
    """A figure that should reach a bound; ``places`` name where it does not."""

    what: str
    bound: str
    figure: Estimate | None
    verdict: str
    digits: int = 2
    places: str = ""


def goal(what: str, bound: float, figure: Estimate | None, digits: int = 2, *, above: bool = False) -> Goal:
    """A figure that should reach the bound, or with ``above`` pass it.

    >>> [goal("share", 0.5, Estimate(v, v - 0.1, v + 0.1)).verdict for v in (0.5, 0.45, 0.3)]
    ['met', 'within the interval', 'missed']
    >>> goal("gain", 0, Estimate(0.0, 0.0, 0.0), above=True).verdict
    'missed'
    """
    words = f"{'above' if above else 'at least'} {bound:g}"
    if figure is None:
        return Goal(what, words, None, NOT_RUN, digits)
    value, high = ((e > bound if above else e >= bound) for e in (figure.value, figure.high))
    return Goal(what, words, figure, MET if value else WITHIN if high else MISSED, digits)


def worst(what: str, bound: float, figures: dict[str, Estimate], digits: int = 2) -> Goal:
    """No figure may lie below the bound beyond its interval; the lowest upper end is shown."""
    words = f"not below {bound:g} beyond its interval"
    if not figures:
        return Goal(what, words, None, NOT_RUN, digits)
    below = [name for name, e in figures.items() if e.high < bound]
    name, figure = min(figures.items(), key=lambda each: each[1].high)
    return Goal(
        what, words, figure, MISSED if below else MET, digits, "; ".join(below) or f"lowest upper end: {name}"
    )


def recovery_goals(card: Card) -> list[Goal]:
    """Pooled shares of the true ceiling, more gold beside less, and no setting harmed."""
    pooled = {a.method: a.pooled for a in card.averages}
    settings = f"{len(card.settings)} settings"
    goals = [goal(f"pooled share of {settings}, {m}", bound, pooled.get(m)) for m, bound in SHARES.items()]
    for more, less in ((HUNDRED, NOTHING), (THREE, HUNDRED)):
        both = more in pooled and less in pooled
        lead = card.difference(more, less) if both else None
        goals.append(goal(f"pooled share, {more} minus {less}", 0.0, lead))
    for m in SHARES:
        shares = {f"{r.dataset}, {r.level.label}": r.share for r in card.rows if r.method == m and r.share}
        goals.append(worst(f"share in the worst of {len(shares)} settings, {m}", LEAST_SHARE, shares))
    return goals


def unharmed_goals(card: Compared) -> list[Goal]:
    """Without noise nothing is lost."""
    goals = []
    for m in SHARES:
        gains = {d: gain for (d, method), gain in card.gains.items() if method == m}
        goals.append(worst(f"no noise, gain in NDCG@10 of the worst data set, {m}", LEAST_GAIN, gains, 4))
        goals.append(goal(f"no noise, gain in NDCG@10, mean over data sets, {m}", 0.0, card.average(m), 4))
    return goals


def judge_goals(card: Compared) -> list[Goal]:
    """Ahead of the labels as judged on average, behind them for no judge; gold rows do no harm."""
    gains = {d: gain for (d, method), gain in card.gains.items() if method == NOTHING}
    judges = f"{len(gains)} judges"
    return [
        goal(f"{judges}, gain in NDCG@10, {NOTHING}", 0.0, card.average(NOTHING), 4, above=True),
        worst(f"{judges}, gain in NDCG@10 of the worst judge, {NOTHING}", 0.0, gains, 4),
        goal(f"{judges}, NDCG@10, {THREE} minus {NOTHING}", 0.0, card.average(THREE, NOTHING), 4),
    ]


def detection_goals(card: Detection, measure: str) -> list[Goal]:
    """Average precision under injected noise."""
    means = {d.name: d.means[measure] for d in card.detectors}
    bounds = {DEFAULT: 0.70, "auto (100 rows)": 0.73}
    settings = f"mean of {len(card.places)} settings"
    return [goal(f"{measure}, {name}, {settings}", bound, means.get(name)) for name, bound in bounds.items()]


def judged_detection_goals(card: Detection, measure: str) -> list[Goal]:
    """Average precision on the labels of language models."""
    means = {d.name: d.means[measure] for d in card.detectors}
    lead = {d.name: d.ahead.get(measure) for d in card.detectors}
    judges = f"{len(card.places)} judges"
    return [
        goal(f"{judges}, {measure}, {DEFAULT} minus {CONFIDENT}", 0.0, lead.get(CONFIDENT), above=True),
        goal(f"{judges}, {measure}, auto (300 rows)", 0.75, means.get("auto (300 rows)")),
    ]


def goals_table(goals: Sequence[Goal]) -> Table:
    """A line per goal."""
    rows = [[g.what, g.bound, _figure(g), g.verdict + (f" ({g.places})" if g.places else "")] for g in goals]
    return Table(["what", "goal", "figure [95 %]", "verdict"], rows)


def _figure(g: Goal) -> str:
    e, n = g.figure, g.digits
    return "–" if e is None else f"{e.value:.{n}f} [{e.low:.{n}f}, {e.high:.{n}f}]"
