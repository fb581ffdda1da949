"""Why one way to buy labels is recommended: its rivals one by one, each with the figures compared."""

from collections.abc import Callable, Sequence

from cleanrank.diagnosis.advice import Advice, Said
from cleanrank.diagnosis.fragility import TURNING_POINT
from cleanrank.planning.candidates import Option, Order

CLOSE = 0.9


def reasons_of(order: Order, options: Sequence[Option], best: Option | None) -> tuple[Advice, ...]:
    """What is bought, and why not otherwise."""
    if best is None:
        cheapest = min(options, key=lambda o: o.query_cost)
        text = (
            f"The budget buys nothing: the cheapest way costs {cheapest.query_cost:,.2f} a query "
            f"({cheapest.name}), the budget is {order.budget:,.2f}."
        )
        return (Advice("none", "act", text, {"query_cost": cheapest.query_cost, "budget": order.budget}),)
    said = {topic: reason(order, options, best) for topic, reason in REASONS.items()}
    return tuple(Advice(topic, *each) for topic, each in said.items() if each is not None)


def _bought(order: Order, options: Sequence[Option], best: Option) -> Said:
    """What the recommended way brings."""
    beyond = best.pnoise >= TURNING_POINT
    text = (
        f"{best.name} buys {best.queries:,} queries of {order.documents} documents at "
        f"{best.query_cost:,.2f} each: {best.queries * best.pairs:,.0f} pairs, {best.pnoise:.1%} of them "
        f"wrong, worth {best.effective_pairs:,.0f} without error. AUC keeps {best.signal_left:.0%} of its "
        "signal, its distance from a coin toss."
    )
    if beyond:
        text += (
            f" That is beyond the turning point of {TURNING_POINT:g}, as all ways are: better judges first."
        )
    figures = {
        "queries": float(best.queries),
        "query_cost": best.query_cost,
        "pairs": best.queries * best.pairs,
        "pnoise": best.pnoise,
        "effective_pairs": best.effective_pairs,
        "signal_left": best.signal_left,
    }
    return "act" if beyond else "fine", text, figures


def _grades(order: Order, options: Sequence[Option], best: Option) -> Said:
    """Against other numbers of grades, sampled and repeated alike."""
    alike = [o for o in options if o.grades and (o.sampling, o.repeats) == (best.sampling, best.repeats)]
    rivals = [o for o in alike if o.grades != best.grades]
    if best.grades is None or not rivals:
        return None
    parts = [
        f"{o.grades} grades: {o.error_rate:.0%} of labels and {o.pnoise:.1%} of pairs wrong, "
        f"{_times(o, best)} as much" + (f" ({o.problem})" if o.problem else "")
        for o in sorted(rivals, key=lambda o: o.grades or 0)
    ]
    text = (
        f"On {best.grades} grades {best.error_rate:.0%} of the labels are wrong and {best.pnoise:.1%} of "
        "the pairs. " + "; ".join(parts) + ". More grades see more differences, and judges err more often."
    )
    return "know", text, {f"effective_pairs of {o.grades} grades": o.effective_pairs for o in (best, *rivals)}


def _sampling(order: Order, options: Sequence[Option], best: Option) -> Said:
    """Natural against balanced sampling."""
    other = {"natural": "balanced", "balanced": "natural"}.get(best.sampling)
    like = (best.grades, best.repeats, other)
    rival = next((o for o in options if (o.grades, o.repeats, o.sampling) == like), None)
    if rival is None:
        return None
    balanced = best if best.sampling == "balanced" else rival
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
    looked = {"screened": balanced.screened, "documents": float(order.documents)}
    return "know", text, {**looked, **_against(best, rival, "pnoise", "effective_pairs")}


def _repeats(order: Order, options: Sequence[Option], best: Option) -> Said:
    """Judging again against judging more."""
    alike = [o for o in options if (o.grades, o.sampling) == (best.grades, best.sampling)]
    rivals = [o for o in alike if o.repeats != best.repeats]
    if not rivals:
        return None
    rival = max(rivals, key=lambda o: o.effective_pairs)
    text = (
        f"Judging {'more' if rival.repeats > best.repeats else 'less'} often ({rival.repeats} in place of "
        f"{best.repeats}) brings the pNoise from {best.pnoise:.3f} to {rival.pnoise:.3f}, costs "
        f"{rival.query_cost:,.2f} in place of {best.query_cost:,.2f} a query and is worth "
        f"{_times(rival, best)} as much."
    )
    return "know", text, _against(best, rival, "pnoise", "query_cost", "effective_pairs")


def _pairs(order: Order, options: Sequence[Option], best: Option) -> Said:
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
    return "know", text, figures


def _close(order: Order, options: Sequence[Option], best: Option) -> Said:
    """Other ways that are nearly as good."""
    near = [
        o
        for o in options
        if o is not best and not o.problem and o.effective_pairs >= CLOSE * best.effective_pairs
    ]
    if not near:
        return None
    named = "; ".join(f"{o.name} ({_times(o, best)} as much, signal left {o.signal_left:.0%})" for o in near)
    text = f"Close calls, to be settled by what is easier to organise: {named}."
    return "know", text, {f"effective_pairs of {o.name}": o.effective_pairs for o in near}


def _against(best: Option, rival: Option, *names: str) -> dict[str, float]:
    pairs = ((n, getattr(best, n), getattr(rival, n)) for n in names)
    return {key: value for n, own, other in pairs for key, value in ((n, own), (f"rival_{n}", other))}


def _times(rival: Option, best: Option) -> str:
    return f"{rival.effective_pairs / best.effective_pairs:.2f} times" if best.effective_pairs else "0 times"


def caveats_of(order: Order) -> tuple[str, ...]:
    """What the comparison assumes."""
    said = [
        "Pairs are counted alike, whether at the top of the ranking or not, and their errors are taken "
        "as independent.",
        f"The truth has {len(order.proportions)} grades, and every way is held against it; documents of "
        "equal grade are taken as equally good.",
    ]
    if isinstance(order.error, float):
        said.append(
            f"Judges err at a rate of {order.error:g} at every step of a scale, so a scale of c grades "
            "has c - 1 ways to err. Give error rates by scale if you know them."
        )
    if order.shared == 0:
        said.append(
            "Repeated judgements err independently of one another, which instructions alone do not ensure."
        )
    return tuple(said)


REASONS: dict[str, Callable[[Order, Sequence[Option], Option], Said]] = {
    "bought": _bought,
    "grades": _grades,
    "sampling": _sampling,
    "repeats": _repeats,
    "pairs": _pairs,
    "close": _close,
}
