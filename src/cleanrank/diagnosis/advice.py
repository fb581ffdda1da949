"""Advice in words, each sentence with the figures it rests on.

An adviser looks at a diagnosis and says one thing or nothing. ``kind`` is "act" where something should be
done, "know" where something bears on decisions, and "fine" where all is well. The text of an advice contains
its figures, rounded; ``figures`` holds them in full.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from cleanrank.report.table import many

if TYPE_CHECKING:
    from cleanrank.diagnosis.diagnose import Diagnosis

KINDS = ("act", "know", "fine")
COMPOSITION_MATTERS = 0.01
CLOSE = 0.005

Said: TypeAlias = tuple[str, str, dict[str, float]] | None  # kind, text, figures


@dataclass(frozen=True)
class Advice:
    """One thing to do or know: its topic, kind, words and figures."""

    topic: str
    kind: str
    text: str
    figures: dict[str, float]


def advise(d: "Diagnosis") -> tuple[Advice, ...]:
    """Asks every adviser; what should be done comes first."""
    advice = [Advice(topic, *said) for topic, adviser in ADVISERS.items() if (said := adviser(d)) is not None]
    return tuple(sorted(advice, key=lambda a: KINDS.index(a.kind)))


def _pairs(d: "Diagnosis") -> Said:
    """Whether there is anything to learn from."""
    if d.pairs.different:
        return None
    text = (
        "No query holds two documents of different grades: nothing can be learnt here. Judge more documents."
    )
    return "act", text, {"pairs": 0.0}


def _fragility(d: "Diagnosis") -> Said:
    """How many pairs a given share of wrong labels turns wrong."""
    if not d.curves:
        return None
    wrong, left = d.at(d.rate), 1 - 2 * d.at(d.rate)
    text = (
        f"At a label error rate of {d.rate:.0%} ({d.curves[0].profile}), {wrong:.1%} of the training pairs "
        f"are wrong and AUC keeps {left:.0%} of its signal, its distance from a coin toss."
    )
    return "know" if left < 0.75 else "fine", text, {"rate": d.rate, "pnoise": wrong, "signal_left": left}


def _knee(d: "Diagnosis") -> Said:
    """Up to which error rate the labels carry a ranker."""
    if not d.curves:
        return None
    limits, profile = d.curves[0].limits, d.curves[0].profile
    if limits.turning_point is None:
        text = (
            f"Under {profile} errors pNoise stays below the turning point of {limits.at:g} at any error rate."
        )
        return "fine", text, {"at": limits.at}
    text = (
        f"The knee lies at a label error rate of {limits.turning_point:.1%} ({profile}): there pNoise "
        f"reaches {limits.at:g}, beyond which rankers were seen to fall fast (Niu et al. 2015)."
    )
    figures = {"knee": limits.turning_point, "at": limits.at}
    if limits.half is not None:
        text += f" Half of AUC's signal is lost at {limits.half:.1%} already."
        figures["half"] = limits.half
    return "act" if limits.turning_point < 0.1 else "know", text, figures


def _neighbours(d: "Diagnosis") -> Said:
    """Which published data sets are more and less robust."""
    if not d.curves or not d.known:
        return None
    own = d.at(d.rate, overall=True)
    others = {k.dataset: d.known_at(k, d.rate) for k in d.known}
    near = min(others, key=lambda n: abs(others[n] - own))
    ranked = sorted(others, key=lambda n: others[n])
    below = [n for n in ranked if others[n] < own - CLOSE]
    above = [n for n in ranked if others[n] > own + CLOSE]
    text = (
        f"The overall proportions give a pNoise of {own:.3f} at {d.rate:.0%}; the nearest published set is "
        f"{near} with {others[near]:.3f}."
    )
    if own > max(others.values()):
        text += " No published set listed here is more fragile."
    elif below and above:
        text += f" More robust: {', '.join(below)}; more fragile: {', '.join(above)}."
    return "know", text, {"pnoise": own, **{f"pnoise of {n}": v for n, v in others.items()}}


def _composition(d: "Diagnosis") -> Said:
    """Whether overall proportions mislead."""
    if not d.curves:
        return None
    real, overall = d.at(d.rate), d.at(d.rate, overall=True)
    if abs(real - overall) < COMPOSITION_MATTERS:
        return None
    text = (
        f"The overall proportions would give a pNoise of {overall:.3f} at {d.rate:.0%}; query by query it is "
        f"{real:.3f}: queries differ in length and balance, and {'fewer' if real < overall else 'more'} "
        "pairs go wrong than the totals suggest."
    )
    return "know", text, {"pnoise": real, "overall": overall, "rate": d.rate}


def _grades(d: "Diagnosis") -> Said:
    """Whether fewer grades would be more robust; more grades are not always better."""
    if not d.merges or not d.curves:
        return None
    full, best, rate = d.at(d.rate), d.merges[0], d.rate
    C = len(d.grades.documents) - len(d.grades.unused)
    if best.asked_anew < full:
        text = (
            f"More grades are not more robust here: judges who err at {rate:.0%} on either scale give a "
            f"pNoise of {best.asked_anew:.3f} on {best.name} and {full:.3f} on all {C} grades."
        )
    else:
        text = (
            f"Keeping all {C} grades is better: judges who err at {rate:.0%} on either scale give a pNoise "
            f"of {full:.3f} on all grades and at best {best.asked_anew:.3f} on a coarser scale ({best.name})."
        )
    text += (
        f" Merging the labels at hand to {best.name} brings it to {best.merged:.3f} and keeps "
        f"{best.pairs_kept:.0%} of the pairs. Judges may well err less on fewer grades: see `cleanrank plan`."
    )
    merged = {"asked_anew": best.asked_anew, "merged": best.merged, "pairs_kept": best.pairs_kept}
    return "know", text, {"pnoise": full, **merged, "rate": rate}


def _balance(d: "Diagnosis") -> Said:
    """What another balance of grades would bring."""
    balance = d.balance
    if balance is None:
        return None
    gain = balance.given - balance.even
    best = " : ".join(f"{100 * s:.0f}" for s in balance.best_shares)
    figures = {"given": balance.given, "even": balance.even, "best": balance.best, "rate": d.rate}
    if gain < 0.01:
        text = (
            f"The grades are balanced well enough: pNoise {balance.given:.3f} at {d.rate:.0%}, "
            f"{balance.even:.3f} with even shares, {balance.best:.3f} at best ({best})."
        )
        return "fine", text, figures
    text = (
        f"The grades are unbalanced: pNoise {balance.given:.3f} at {d.rate:.0%} would be {balance.even:.3f} "
        "with even shares. Judge more documents that are likely relevant."
    )
    if len(balance.best_shares) > 2 and balance.even - balance.best >= 0.0005:
        text += f" Even shares are not the best: {best} gives {balance.best:.3f}."
    return "act" if gain > 0.05 else "know", text, figures


def _idle(d: "Diagnosis") -> Said:
    """Queries without preference pairs."""
    idle = d.idle
    if not idle.queries or idle.queries == d.queries:
        return None
    share = idle.queries / d.queries
    text = (
        f"{idle.queries:,} of {d.queries:,} queries ({share:.1%}) hold no preference pair: "
        f"{idle.one_document:,} with one document, {sum(idle.one_grade):,} with one grade only. Pairwise and "
        "listwise training ignores them; NDCG counts them as 1, 0 or not at all, depending on the convention."
    )
    figures = {"queries": idle.queries, "share": share, "documents": idle.documents}
    return "act" if share >= 0.2 else "know", text, figures


def _contradictions(d: "Diagnosis") -> Said:
    """Identical rows of a query with different grades."""
    within = d.duplicates.within
    if not within.groups:
        return None
    bound, implied = d.duplicates.lower_bound, d.duplicates.implied_rate or 0.0
    disagreeing = within.disagreeing_pairs / within.pairs
    figures = {
        "groups": within.groups,
        "contradicting_groups": within.contradicting_groups,
        "lower_bound": bound,
        "disagreeing": disagreeing,
        "implied_rate": implied,
        "pairs": within.pairs,
    }
    if not within.contradicting_groups:
        text = (
            f"{many(within.groups, 'group')} of identical rows within a query, and none contradicts itself: "
            f"no sign of noise in {many(within.pairs, 'pair')} of repeated judgements."
        )
        return "fine", text, figures
    text = (
        f"Identical rows within a query hold different grades in {within.contradicting_groups:,} of "
        f"{many(within.groups, 'group')}: if equal features mean equal relevance, the grades of at least "
        f"{many(within.least_wrong, 'row')} ({bound:.2%}) are wrong. Of {many(within.pairs, 'pair')} of such "
        f"judgements {disagreeing:.1%} disagree, as if independent judges erred at a rate of {implied:.1%}."
    )
    return "act", text, figures


def _doc_ids(d: "Diagnosis") -> Said:
    """The same document twice in a query."""
    twice = d.duplicates.doc_ids
    if twice is None or not twice.groups:
        return None
    text = (
        f"Document ids repeat within a query: {many(twice.groups, 'group')} of {many(twice.rows, 'row')} in "
        f"all, {twice.contradicting_groups:,} with different grades. Keep one row of each."
    )
    return "act", text, {"groups": twice.groups, "contradicting": twice.contradicting_groups}


def _columns(d: "Diagnosis") -> Said:
    """Columns that cannot rank."""
    constant, inside = len(d.columns.constant), len(d.columns.constant_in_queries)
    parts = []
    if constant:
        parts.append(f"Constant columns, which can go: {constant:,} of {d.features:,}.")
    if inside:
        parts.append(
            f"Columns that vary between queries only: {inside:,} of {d.features:,}. By themselves they rank "
            "nothing, but trees may split on them."
        )
    return ("know", " ".join(parts), {"constant": constant, "constant_in_queries": inside}) if parts else None


def _values(d: "Diagnosis") -> Said:
    """Values that are missing or infinite."""
    columns = d.columns
    if not columns.missing and not columns.infinite:
        return None
    share = columns.missing / (d.documents * d.features)
    places = many(len(columns.missing_columns), "column")
    text = f"Missing values: {columns.missing:,} ({share:.2%}) in {places}."
    if columns.infinite:
        text += f" Infinite values: {columns.infinite:,}; replace them."
    figures = {"missing": columns.missing, "share": share, "infinite": columns.infinite}
    return "act" if columns.infinite else "know", text, figures


def _unused(d: "Diagnosis") -> Said:
    """Grades that no document has."""
    unused = d.grades.unused
    if not unused:
        return None
    named = ", ".join(str(g) for g in unused[:8]) + (", ..." if len(unused) > 8 else "")
    text = (
        f"No document has grade {named}. Number the grades 0, 1, 2, ...: gains 2^y - 1 and noise profiles "
        "count the gaps."
    )
    return "know", text, {"unused": len(unused)}


def _weight(d: "Diagnosis") -> Said:
    """A weight of new-come pairs other than 1/2."""
    if d.new_weight == 0.5 or not d.curves:
        return None
    text = (
        f"Pairs that only errors created count {d.new_weight:g} here instead of 1/2. 1 - 2 pNoise is then "
        "not the share of AUC's signal that is left, and figures do not compare with those at 1/2."
    )
    return "know", text, {"new_weight": d.new_weight}


ADVISERS: dict[str, Callable[["Diagnosis"], Said]] = {
    "pairs": _pairs,
    "fragility": _fragility,
    "knee": _knee,
    "neighbours": _neighbours,
    "composition": _composition,
    "grades": _grades,
    "balance": _balance,
    "idle queries": _idle,
    "contradictions": _contradictions,
    "document ids": _doc_ids,
    "columns": _columns,
    "values": _values,
    "unused grades": _unused,
    "weight": _weight,
}
