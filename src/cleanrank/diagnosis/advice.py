"""Advice in words, each sentence with the figures it rests on.

An adviser looks at a diagnosis and says one thing or nothing. ``kind`` is "act" where something should be
done, "know" where something bears on decisions, and "fine" where all is well. The text of an advice contains
its figures, rounded; ``figures`` holds them in full.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cleanrank.diagnosis.diagnose import Diagnosis

KINDS = ("act", "know", "fine")
COMPOSITION_MATTERS = 0.01
CLOSE = 0.005


@dataclass(frozen=True)
class Advice:
    """One thing to do or know: its topic, kind, words and figures."""

    topic: str
    kind: str
    text: str
    figures: dict[str, float]


def advise(found: "Diagnosis") -> tuple[Advice, ...]:
    """Asks every adviser; what should be done comes first."""
    said = [advice for adviser in ADVISERS.values() if (advice := adviser(found)) is not None]
    return tuple(sorted(said, key=lambda a: KINDS.index(a.kind)))


def many(n: int, thing: str, things: str = "") -> str:
    """A number and its noun.

    >>> many(1, "label"), many(2_000, "label"), many(3, "query", "queries")
    ('1 label', '2,000 labels', '3 queries')
    """
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {things or thing + 's'}"


def on_pairs(found: "Diagnosis") -> Advice | None:
    """Whether there is anything to learn from."""
    if found.pairs.different:
        return None
    text = (
        "No query holds two documents of different grades: nothing can be learnt here. Judge more documents."
    )
    return Advice("pairs", "act", text, {"pairs": 0.0})


def on_fragility(found: "Diagnosis") -> Advice | None:
    """How many pairs a given share of wrong labels turns wrong."""
    if not found.curves:
        return None
    curve, rate = found.curves[0], found.rate
    wrong, left = found.at(rate), 1 - 2 * found.at(rate)
    text = (
        f"At a label error rate of {rate:.0%} ({curve.profile}), {wrong:.1%} of the training pairs are "
        f"wrong and AUC keeps {left:.0%} of its signal."
    )
    return Advice(
        "fragility",
        "know" if left < 0.75 else "fine",
        text,
        {"rate": rate, "pnoise": wrong, "signal_left": left},
    )


def on_knee(found: "Diagnosis") -> Advice | None:
    """Up to which error rate the labels carry a ranker."""
    if not found.curves:
        return None
    curve = found.curves[0]
    knee, half, at = curve.limits.turning_point, curve.limits.half, curve.limits.at
    if knee is None:
        text = (
            f"Under {curve.profile} errors pNoise stays below the turning point of {at:g} at any error rate."
        )
        return Advice("knee", "fine", text, {"at": at})
    text = (
        f"The knee lies at a label error rate of {knee:.1%} ({curve.profile}): there pNoise reaches "
        f"{at:g}, where rankers were seen to fall fast (Niu et al. 2015)."
    )
    figures = {"knee": knee, "at": at}
    if half is not None:
        text += f" Half of the signal is lost at {half:.1%} already."
        figures["half"] = half
    return Advice("knee", "act" if knee < 0.1 else "know", text, figures)


def on_neighbours(found: "Diagnosis") -> Advice | None:
    """Which published data sets are more and less robust."""
    if not found.curves or not found.known:
        return None
    mine = found.at(found.rate, overall=True)
    others = {k.dataset: found.known_at(k, found.rate) for k in found.known}
    most_fragile = mine > max(others.values())
    near = min(others, key=lambda n: abs(others[n] - mine))
    ranked = sorted(others, key=lambda n: others[n])
    below = [n for n in ranked if others[n] < mine - CLOSE]
    above = [n for n in ranked if others[n] > mine + CLOSE]
    text = (
        f"Their overall proportions give a pNoise of {mine:.3f} at {found.rate:.0%}; the nearest "
        f"published set is {near} with {others[near]:.3f}."
    )
    if most_fragile:
        text += " No published set listed here is more fragile."
    elif below and above:
        text += f" More robust: {', '.join(below)}; more fragile: {', '.join(above)}."
    figures = {"pnoise": mine, **{f"pnoise of {n}": v for n, v in others.items()}}
    return Advice("neighbours", "know", text, figures)


def on_composition(found: "Diagnosis") -> Advice | None:
    """Whether overall proportions mislead."""
    if not found.curves:
        return None
    real, overall = found.at(found.rate), found.at(found.rate, overall=True)
    if abs(real - overall) < COMPOSITION_MATTERS:
        return None
    word = "fewer" if real < overall else "more"
    text = (
        f"The overall proportions would give a pNoise of {overall:.3f} at {found.rate:.0%}; query by "
        f"query it is {real:.3f}: queries differ in length and balance, and {word} pairs go wrong than "
        "the totals suggest."
    )
    return Advice("composition", "know", text, {"pnoise": real, "overall": overall, "rate": found.rate})


def on_grades(found: "Diagnosis") -> Advice | None:
    """Whether fewer grades would be more robust; more grades are not always better."""
    if not found.merges or not found.curves:
        return None
    full, best, rate = found.at(found.rate), found.merges[0], found.rate
    figures = {
        "pnoise": full,
        "asked_anew": best.asked_anew,
        "merged": best.merged,
        "pairs_kept": best.pairs_kept,
        "rate": rate,
    }
    C = len(found.grades.documents) - len(found.grades.unused)
    if best.asked_anew < full:
        text = (
            f"More grades are not more robust here: judges who err at {rate:.0%} on either scale give a "
            f"pNoise of {best.asked_anew:.3f} on {best.name} and {full:.3f} on all {C} grades."
        )
    else:
        text = (
            f"The {C} grades earn their keep: judges who err at {rate:.0%} on either scale give a pNoise "
            f"of {full:.3f} on all grades and at best {best.asked_anew:.3f} on a coarser scale "
            f"({best.name})."
        )
    text += (
        f" Merging the labels at hand to {best.name} brings it to {best.merged:.3f} and keeps "
        f"{best.pairs_kept:.0%} of the pairs. Judges may well err less on fewer grades: see `cleanrank "
        "plan`."
    )
    return Advice("grades", "know", text, figures)


def on_balance(found: "Diagnosis") -> Advice | None:
    """What another balance of grades would bring."""
    balance = found.balance
    if balance is None:
        return None
    gain = balance.given - balance.even
    best = " : ".join(f"{100 * s:.0f}" for s in balance.best_shares)
    figures = {"given": balance.given, "even": balance.even, "best": balance.best, "rate": found.rate}
    if gain < 0.01:
        text = (
            f"The grades are balanced well enough: pNoise {balance.given:.3f} at {found.rate:.0%}, "
            f"{balance.even:.3f} with even shares, {balance.best:.3f} at best ({best})."
        )
        return Advice("balance", "fine", text, figures)
    text = (
        f"Balance is what these labels lack: pNoise {balance.given:.3f} at {found.rate:.0%} would be "
        f"{balance.even:.3f} with even shares. Judge more documents that are likely relevant."
    )
    if len(balance.best_shares) > 2 and balance.even - balance.best >= 0.0005:
        text += f" Even shares are not the best: {best} gives {balance.best:.3f}."
    return Advice("balance", "act" if gain > 0.05 else "know", text, figures)


def on_idle(found: "Diagnosis") -> Advice | None:
    """Queries that teach nothing."""
    idle = found.idle
    if not idle.queries or idle.queries == found.queries:
        return None
    share = idle.queries / found.queries
    text = (
        f"{idle.queries:,} of {found.queries:,} queries ({share:.1%}) teach nothing: "
        f"{idle.one_document:,} with one document, {sum(idle.one_grade):,} with one grade only. Pairwise "
        "and listwise training ignores them; NDCG counts them as 1, 0 or not at all, depending on the "
        "convention."
    )
    kind = "act" if share >= 0.2 else "know"
    return Advice(
        "idle queries", kind, text, {"queries": idle.queries, "share": share, "documents": idle.documents}
    )


def on_contradictions(found: "Diagnosis") -> Advice | None:
    """Identical rows of a query with different grades."""
    within = found.duplicates.within
    if not within.groups:
        return None
    bound, implied = found.duplicates.lower_bound, found.duplicates.implied_rate or 0.0
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
            f"{many(within.groups, 'group')} of identical rows within a query, and none contradicts "
            f"itself: no sign of noise in {many(within.pairs, 'pair')} of repeated judgements."
        )
        return Advice("contradictions", "fine", text, figures)
    text = (
        f"Identical rows within a query hold different grades in {within.contradicting_groups:,} of "
        f"{many(within.groups, 'group')}: if equal features mean equal relevance, the grades of at least "
        f"{many(within.least_wrong, 'row')} ({bound:.2%}) are wrong. Of {many(within.pairs, 'pair')} of "
        f"such judgements {disagreeing:.1%} disagree, as if independent judges erred at a rate of "
        f"{implied:.1%}."
    )
    return Advice("contradictions", "act", text, figures)


def on_doc_ids(found: "Diagnosis") -> Advice | None:
    """The same document twice in a query."""
    twice = found.duplicates.doc_ids
    if twice is None or not twice.groups:
        return None
    text = (
        f"Document ids repeat within a query: {many(twice.groups, 'group')} of {many(twice.rows, 'row')} "
        f"in all, {twice.contradicting_groups:,} with different grades. Keep one row of each."
    )
    return Advice(
        "document ids", "act", text, {"groups": twice.groups, "contradicting": twice.contradicting_groups}
    )


def on_columns(found: "Diagnosis") -> Advice | None:
    """Columns that cannot rank."""
    constant, inside = len(found.columns.constant), len(found.columns.constant_in_queries)
    if not constant and not inside:
        return None
    parts = []
    if constant:
        parts.append(f"Constant columns, which can go: {constant:,} of {found.features:,}.")
    if inside:
        parts.append(
            f"Columns that vary between queries only: {inside:,} of {found.features:,}. By themselves "
            "they rank nothing, but trees may split on them."
        )
    text = " ".join(parts)
    return Advice("columns", "know", text, {"constant": constant, "constant_in_queries": inside})


def on_values(found: "Diagnosis") -> Advice | None:
    """Values that are missing or infinite."""
    columns = found.columns
    if not columns.missing and not columns.infinite:
        return None
    share = columns.missing / (found.documents * found.features)
    places = many(len(columns.missing_columns), "column")
    text = f"Missing values: {columns.missing:,} ({share:.2%}) in {places}."
    if columns.infinite:
        text += f" Infinite values: {columns.infinite:,}; replace them."
    kind = "act" if columns.infinite else "know"
    return Advice(
        "values", kind, text, {"missing": columns.missing, "share": share, "infinite": columns.infinite}
    )


def on_unused(found: "Diagnosis") -> Advice | None:
    """Grades that no document has."""
    unused = found.grades.unused
    if not unused:
        return None
    named = ", ".join(str(g) for g in unused[:8]) + (", ..." if len(unused) > 8 else "")
    text = (
        f"No document has grade {named}. Number the grades 0, 1, 2, ...: gains 2^y - 1 and noise profiles "
        "count the gaps."
    )
    return Advice("unused grades", "know", text, {"unused": len(unused)})


def on_weight(found: "Diagnosis") -> Advice | None:
    """A weight of new-come pairs other than 1/2."""
    if found.new_weight == 0.5 or not found.curves:
        return None
    text = (
        f"New-come pairs count {found.new_weight:g} here instead of 1/2. 1 - 2 pNoise is then not the "
        "share of AUC's signal that is left, and figures do not compare with those at 1/2."
    )
    return Advice("weight", "know", text, {"new_weight": found.new_weight})


ADVISERS: dict[str, Callable[["Diagnosis"], Advice | None]] = {
    "pairs": on_pairs,
    "fragility": on_fragility,
    "knee": on_knee,
    "neighbours": on_neighbours,
    "composition": on_composition,
    "grades": on_grades,
    "balance": on_balance,
    "idle queries": on_idle,
    "contradictions": on_contradictions,
    "document ids": on_doc_ids,
    "columns": on_columns,
    "values": on_values,
    "unused grades": on_unused,
    "weight": on_weight,
}
