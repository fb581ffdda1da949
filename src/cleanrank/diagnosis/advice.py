"""Advice in words, each sentence with the figures it rests on.

An adviser looks at a diagnosis and gives a kind and figures, or nothing; the words, which contain the figures
rounded, are macros of a template. ``kind`` is "act" where something should be done, "know" where something
bears on decisions, and "fine" where all is well.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from cleanrank.report.table import templates

if TYPE_CHECKING:
    from cleanrank.diagnosis.diagnose import Diagnosis

KINDS = ("act", "know", "fine")
COMPOSITION_MATTERS = 0.01
CLOSE = 0.005
ORDER_MATTERS = 0.05

Finding: TypeAlias = tuple[str, dict[str, float], dict[str, Any]] | None  # kind, figures, what the words need


@dataclass(frozen=True)
class Advice:
    """One thing to do or know: its topic, kind, words and figures."""

    topic: str
    kind: str
    text: str
    figures: dict[str, float]


def in_words(template: str, findings: Mapping[str, Finding], **shared: Any) -> list[Advice]:
    """Findings by topic as advice, in the words of the template's macros; ``shared`` goes to all of them."""
    macros = templates(escaped=False).get_template(template).module
    advice = []
    for topic, finding in findings.items():
        if finding is not None:
            kind, figures, values = finding
            text = getattr(macros, f"say_{topic.replace(' ', '_')}")(figures, **shared, **values)
            advice.append(Advice(topic, kind, " ".join(text.split()), figures))
    return advice


def advise(d: "Diagnosis") -> tuple[Advice, ...]:
    """Asks every adviser; what should be done comes first."""
    findings = {topic: adviser(d) for topic, adviser in ADVISERS.items()}
    return tuple(sorted(in_words("diagnosis_advice.txt", findings, d=d), key=lambda a: KINDS.index(a.kind)))


def _pairs(d: "Diagnosis") -> Finding:
    """Whether there is anything to learn from."""
    return None if d.pairs.different else ("act", {"pairs": 0.0}, {})


def _fragility(d: "Diagnosis") -> Finding:
    """How many pairs a given share of wrong labels turns wrong."""
    if not d.curves:
        return None
    wrong, left = d.at(d.rate), 1 - 2 * d.at(d.rate)
    return "know" if left < 0.75 else "fine", {"rate": d.rate, "pnoise": wrong, "signal_left": left}, {}


def _knee(d: "Diagnosis") -> Finding:
    """Up to which error rate the labels carry a ranker."""
    if not d.curves:
        return None
    limits = d.curves[0].limits
    if limits.turning_point is None:
        return "fine", {"at": limits.at}, {}
    figures = {"knee": limits.turning_point, "at": limits.at}
    if limits.half is not None:
        figures["half"] = limits.half
    return "act" if limits.turning_point < 0.1 else "know", figures, {}


def _neighbours(d: "Diagnosis") -> Finding:
    """Which published data sets are more and less robust."""
    if not d.curves or not d.known:
        return None
    own = d.at(d.rate, overall=True)
    others = {k.dataset: d.known_at(k, d.rate) for k in d.known}
    ranked = sorted(others, key=lambda name: others[name])
    places = {
        "nearest": min(others, key=lambda name: abs(others[name] - own)),
        "robust": [name for name in ranked if others[name] < own - CLOSE],
        "fragile": [name for name in ranked if others[name] > own + CLOSE],
    }
    return "know", {"pnoise": own, **{f"pnoise of {n}": v for n, v in others.items()}}, places


def _composition(d: "Diagnosis") -> Finding:
    """Whether overall proportions mislead."""
    if not d.curves:
        return None
    real, overall = d.at(d.rate), d.at(d.rate, overall=True)
    if abs(real - overall) < COMPOSITION_MATTERS:
        return None
    return "know", {"pnoise": real, "overall": overall, "rate": d.rate}, {}


def _grades(d: "Diagnosis") -> Finding:
    """Whether fewer grades would be more robust; more grades are not always better."""
    if not d.merges or not d.curves:
        return None
    best = d.merges[0]
    merged = {"asked_anew": best.asked_anew, "merged": best.merged, "pairs_kept": best.pairs_kept}
    return "know", {"pnoise": d.at(d.rate), **merged, "rate": d.rate}, {}


def _balance(d: "Diagnosis") -> Finding:
    """What another balance of grades would bring."""
    if d.balance is None:
        return None
    given, even = d.balance.given, d.balance.even
    kind = "fine" if given - even < 0.01 else "act" if given - even > 0.05 else "know"
    return kind, {"given": given, "even": even, "best": d.balance.best, "rate": d.rate}, {}


def _idle(d: "Diagnosis") -> Finding:
    """Queries without preference pairs."""
    if not d.idle.queries or d.idle.queries == d.queries:
        return None
    share = d.idle.queries / d.queries
    figures = {"queries": d.idle.queries, "share": share, "documents": d.idle.documents}
    return "act" if share >= 0.2 else "know", figures, {}


def _contradictions(d: "Diagnosis") -> Finding:
    """Identical rows of a query with different grades."""
    within = d.duplicates.within
    if not within.groups:
        return None
    figures = {
        "groups": within.groups,
        "contradicting_groups": within.contradicting_groups,
        "lower_bound": d.duplicates.lower_bound,
        "disagreeing": within.disagreeing_pairs / within.pairs,
        "implied_rate": d.duplicates.implied_rate or 0.0,
        "implied_low": d.duplicates.implied_interval[0],
        "implied_high": d.duplicates.implied_interval[1],
        "pairs": within.pairs,
    }
    return "act" if within.contradicting_groups else "fine", figures, {}


def _doc_ids(d: "Diagnosis") -> Finding:
    """The same document twice in a query."""
    twice = d.duplicates.doc_ids
    if twice is None or not twice.groups:
        return None
    return "act", {"groups": twice.groups, "contradicting": twice.contradicting_groups}, {}


def _features(d: "Diagnosis") -> Finding:
    """Whether features and labels belong together."""
    if d.signal is None or math.isnan(d.signal.auc):
        return None
    return "fine" if d.signal.is_shown else "act", asdict(d.signal), {}


def _row_order(d: "Diagnosis") -> Finding:
    """Whether the order of rows tells the grades, so that tied scores rank well or badly by it."""
    order = d.row_order
    if not d.pairs.different or order.low <= 0.5 <= order.high or abs(order.auc - 0.5) < ORDER_MATTERS:
        return None
    return "know", asdict(order), {}


def _columns(d: "Diagnosis") -> Finding:
    """Columns that cannot rank."""
    constant, inside = len(d.columns.constant), len(d.columns.constant_in_queries)
    figures: dict[str, float] = {"constant": constant, "constant_in_queries": inside}
    return ("know", figures, {}) if constant or inside else None


def _values(d: "Diagnosis") -> Finding:
    """Values that are missing or infinite."""
    missing, infinite = d.columns.missing, d.columns.infinite
    if not missing and not infinite:
        return None
    figures = {"missing": missing, "share": missing / (d.documents * d.features), "infinite": infinite}
    return "act" if infinite else "know", figures, {}


def _unused(d: "Diagnosis") -> Finding:
    """Grades that no document has."""
    return ("know", {"unused": len(d.grades.unused)}, {}) if d.grades.unused else None


def _weight(d: "Diagnosis") -> Finding:
    """A weight of new-come pairs other than 1/2."""
    return ("know", {"new_weight": d.new_weight}, {}) if d.new_weight != 0.5 and d.curves else None


ADVISERS: dict[str, Callable[["Diagnosis"], Finding]] = {
    "pairs": _pairs,
    "features": _features,
    "fragility": _fragility,
    "knee": _knee,
    "neighbours": _neighbours,
    "composition": _composition,
    "grades": _grades,
    "balance": _balance,
    "idle queries": _idle,
    "contradictions": _contradictions,
    "document ids": _doc_ids,
    "row order": _row_order,
    "columns": _columns,
    "values": _values,
    "unused grades": _unused,
    "weight": _weight,
}
