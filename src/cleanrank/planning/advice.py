"""Why one way to buy labels is recommended: its rivals one by one, each with the figures compared."""

from collections.abc import Callable, Sequence

from cleanrank.diagnosis.advice import Advice
from cleanrank.diagnosis.fragility import TURNING_POINT
from cleanrank.planning.candidates import Option, Order

CLOSE = 0.9


def reasons_of(order: Order, options: Sequence[Option], best: Option | None) -> tuple[Advice, ...]:
    """What is bought, and why not otherwise."""
    if best is None:
        cheapest = min(options, key=lambda o: o.query_cost)
        text = (
            f"Nothing can be had: the cheapest way costs {cheapest.query_cost:,.2f} a query "
            f"({cheapest.name}), the budget is {order.budget:,.2f}."
        )
        return (Advice("none", "act", text, {"query_cost": cheapest.query_cost, "budget": order.budget}),)
    said = [bought(order, best), *(reason(order, options, best) for reason in REASONS.values())]
    return tuple(each for each in said if each is not None)


def bought(order: Order, best: Option) -> Advice:
    """What the recommended way brings."""
    text = (
        f"{best.name} buys {best.queries:,} queries of {order.documents} documents at "
        f"{best.query_cost:,.2f} each: {best.queries * best.pairs:,.0f} pairs, {best.pnoise:.1%} of them "
        f"wrong, worth {best.effective_pairs:,.0f} without error. AUC keeps {best.signal_left:.0%} of its "
        "signal."
    )
    figures = {
        "queries": float(best.queries),
        "query_cost": best.query_cost,
        "pairs": best.queries * best.pairs,
        "pnoise": best.pnoise,
        "effective_pairs": best.effective_pairs,
        "signal_left": best.signal_left,
    }
    if best.pnoise >= TURNING_POINT:
        text += (
            f" That is beyond the turning point of {TURNING_POINT:g}, as all ways are: better judges first."
        )
    return Advice("bought", "act" if best.pnoise >= TURNING_POINT else "fine", text, figures)


def on_grades(order: Order, options: Sequence[Option], best: Option) -> Advice | None:
    """Against other numbers of grades, sampled and repeated alike."""
    if best.grades is None:
        return None
    rivals = [
        o
        for o in options
        if o.grades not in (None, best.grades) and (o.sampling, o.repeats) == (best.sampling, best.repeats)
    ]
    if not rivals:
        return None
    parts = [
        f"{o.grades} grades: {o.error_rate:.0%} of labels and {o.pnoise:.1%} of pairs wrong, "
        f"{_times(o, best)} as much" + (f" ({o.problem})" if o.problem else "")
        for o in sorted(rivals, key=lambda o: o.grades or 0)
    ]
    text = (
        f"On {best.grades} grades {best.error_rate:.0%} of the labels are wrong and {best.pnoise:.1%} of "
        "the pairs. " + "; ".join(parts) + ". More grades see more differences, and judges slip more often."
    )
    figures = {f"effective_pairs of {o.grades} grades": o.effective_pairs for o in (best, *rivals)}
    return Advice("grades", "know", text, figures)


def on_sampling(order: Order, options: Sequence[Option], best: Option) -> Advice | None:
    """Natural against balanced sampling."""
    other = {"natural": "balanced", "balanced": "natural"}.get(best.sampling)
    rival = _like(options, best, sampling=other) if other else None
    if rival is None:
        return None
    balanced = best if best.sampling == "balanced" else rival
    figures = {
        "screened": balanced.screened,
        "documents": float(order.documents),
        "pnoise": best.pnoise,
        "rival_pnoise": rival.pnoise,
        "effective_pairs": best.effective_pairs,
        "rival_effective_pairs": rival.effective_pairs,
    }
    text = (
        f"Balance has its price: to keep {order.documents} balanced documents one looks at "
        f"{balanced.screened:,.0f} a query. "
    )
    if rival.problem:
        text += f"Here that is too many: it {rival.problem}."
    else:
        text += (
            f"{rival.sampling.capitalize()} sampling gives a pNoise of {rival.pnoise:.3f} against "
            f"{best.pnoise:.3f} and is worth {_times(rival, best)} as much."
        )
    if order.screen_cost is None:
        text += " Balancing by the judges' own labels does not undo their errors; a better screener would."
    return Advice("sampling", "know", text, figures)


def on_repeats(order: Order, options: Sequence[Option], best: Option) -> Advice | None:
    """Judging again against judging more."""
    alike = [o for o in options if (o.grades, o.sampling) == (best.grades, best.sampling)]
    rivals = [o for o in alike if o.repeats != best.repeats]
    if not rivals:
        return None
    rival = max(rivals, key=lambda o: o.effective_pairs)
    more = "more" if rival.repeats > best.repeats else "less"
    text = (
        f"Judging {more} often ({rival.repeats} in place of {best.repeats}) brings the pNoise from "
        f"{best.pnoise:.3f} to {rival.pnoise:.3f}, costs {rival.query_cost:,.2f} in place of "
        f"{best.query_cost:,.2f} a query and is worth {_times(rival, best)} as much."
    )
    figures = {
        "pnoise": best.pnoise,
        "rival_pnoise": rival.pnoise,
        "query_cost": best.query_cost,
        "rival_query_cost": rival.query_cost,
        "effective_pairs": best.effective_pairs,
        "rival_effective_pairs": rival.effective_pairs,
    }
    return Advice("repeats", "know", text, figures)


def on_pairs(order: Order, options: Sequence[Option], best: Option) -> Advice | None:
    """Top-k pairs, with the floor of a perfect judge and the price at which they would win."""
    rivals = [o for o in options if o.grades is None]
    if not rivals or best.grades is None:
        return None
    rival = max(rivals, key=lambda o: o.effective_pairs)
    ratio = (rival.pairs * rival.signal_left**2 / rival.query_cost) / (
        best.pairs * best.signal_left**2 / best.query_cost
    )
    price = order.pair_cost * ratio
    finer = rival.queries * rival.pairs * (1 - 2 * rival.excess) ** 2
    text = (
        f"{rival.name.capitalize()} takes {rival.judgements:,.0f} comparisons a query for "
        f"{rival.pairs:,.0f} pairs. Its pNoise of {rival.pnoise:.3f} contains a floor of "
        f"{rival.floor:.3f} that even a perfect judge has, who must order documents of equal grade; "
        f"errors add {rival.excess:.3f}. It would win at a cost of {price:,.3g} a comparison in place of "
        f"{order.pair_cost:,.3g}. If documents of equal grade truly differ, its pairs are worth "
        f"{finer:,.0f}."
    )
    figures = {
        "judgements": rival.judgements,
        "pnoise": rival.pnoise,
        "floor": rival.floor,
        "excess": rival.excess,
        "break_even_pair_cost": price,
        "effective_pairs_if_finer": finer,
    }
    return Advice("pairs", "know", text, figures)


def on_close(order: Order, options: Sequence[Option], best: Option) -> Advice | None:
    """Other ways that are nearly as good."""
    near = [
        o
        for o in options
        if o is not best and not o.problem and o.effective_pairs >= CLOSE * best.effective_pairs
    ]
    if not near:
        return None
    named = "; ".join(f"{o.name} ({_times(o, best)} as much, signal left {o.signal_left:.0%})" for o in near)
    figures = {f"effective_pairs of {o.name}": o.effective_pairs for o in near}
    text = f"Close calls, to be settled by what is easier to organise: {named}."
    return Advice("close", "know", text, figures)


def caveats_of(order: Order) -> tuple[str, ...]:
    """What the comparison takes for granted."""
    said = [
        "Pairs are counted alike, whether at the top of the ranking or not, and their errors are taken "
        "as independent.",
        f"The truth has {len(order.proportions)} grades, and every way is held against it; documents of "
        "equal grade are taken as equally good.",
    ]
    if isinstance(order.error, float):
        said.append(
            f"Judges err at a rate of {order.error:g} at every step of a scale, so a scale of c grades "
            "has c - 1 ways to slip. Give error rates by scale if you know them."
        )
    if order.shared == 0:
        said.append(
            "Repeated judgements err independently of one another, which instructions alone do not ensure."
        )
    return tuple(said)


def _like(options: Sequence[Option], best: Option, *, sampling: str) -> Option | None:
    """The option that differs from the best in its sampling alone."""
    wanted = (best.grades, best.repeats, sampling)
    return next((o for o in options if (o.grades, o.repeats, o.sampling) == wanted), None)


def _times(rival: Option, best: Option) -> str:
    return f"{rival.effective_pairs / best.effective_pairs:.2f} times" if best.effective_pairs else "0 times"


REASONS: dict[str, Callable[[Order, Sequence[Option], Option], Advice | None]] = {
    "grades": on_grades,
    "sampling": on_sampling,
    "repeats": on_repeats,
    "pairs": on_pairs,
    "close": on_close,
}
