"""Which labels to buy: the ways compared, one recommended with its reasons, and what would change that.

A reason sets a rival beside the recommended way: it gives its kind and figures, or nothing. Its words are a
macro of the template.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.diagnosis.advice import Advice, Finding, in_words
from cleanrank.diagnosis.fragility import FAMILIES, TURNING_POINT
from cleanrank.errors import invalid
from cleanrank.noise.profiles import proportions_of
from cleanrank.planning.candidates import Option, Order, options_of
from cleanrank.report import articles
from cleanrank.report.table import templates
from cleanrank.types import RankingData, plain
from cleanrank.validation import check_number, one_of

WEB_SEARCH = (0.517, 0.325, 0.133, 0.017, 0.008)  # MSLR (Niu et al. 2015)
WORDS = "plan_advice.txt"
SCALES = (2, 3, 5)
REPEATS = (1, 3, 5)
CLOSE = 0.9
ERRORS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)


@dataclass(frozen=True)
class Change:
    """What would be recommended if one thing were otherwise."""

    what: str
    recommended: str
    changed: bool
    signal_left: float
    effective_pairs: float


@dataclass(frozen=True, repr=False)
class Plan:
    """The result of ``plan_labels``; prints as a table with reasons.

    Attributes:
        order: what is wanted.
        options: all ways to buy labels, the best first.
        recommended: the name of the way to take; empty if none can be had.
        reasons: why, each with its figures.
        caveats: what the comparison assumes.
        changes: what would be recommended if one thing were otherwise.
        by_error: the recommendation at several error rates per step; empty where errors were given by scale.
    """

    order: Order
    options: tuple[Option, ...]
    recommended: str
    reasons: tuple[Advice, ...]
    caveats: tuple[str, ...]
    changes: tuple[Change, ...]
    by_error: tuple[Change, ...]

    def __getitem__(self, name: str) -> Option:
        names = [o.name for o in self.options]
        return self.options[names.index(one_of("option", name, names))]

    def __repr__(self) -> str:
        return articles.plan_text(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        values: dict[str, Any] = plain(asdict(self))
        return values

    def to_json(self) -> str:
        """Everything as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Writes a page of one file that needs no network."""
        return articles.write_plan(self.to_dict(), path)


def shape_of(data: RankingData) -> tuple[list[float], int]:
    """What a plan takes from judged data: how often each grade occurs, and the median documents per query.

    >>> import cleanrank as cr
    >>> shape_of(cr.from_arrays(np.zeros((5, 1)), [0, 0, 1, 0, 2], group=[2, 3]))
    ([3.0, 1.0, 1.0], 2)
    """
    counts = np.bincount(data.y, minlength=data.n_grades)
    return [float(n) for n in counts], max(2, int(np.median(data.lengths)))


def plan_labels(
    budget: float,
    *,
    cost: float = 1.0,
    documents: int = 50,
    proportions: Sequence[float] | None = None,
    prevalence: float | None = None,
    error: float | Mapping[int, float | npt.ArrayLike] = 0.1,
    scales: Sequence[int] = SCALES,
    repeats: Sequence[int] = REPEATS,
    top_k: int | None = 10,
    pair_cost: float | None = None,
    pair_error: float | None = None,
    screen_cost: float | None = None,
    pool: int = 1000,
    shared: float = 0.0,
    profile: str = "geometric",
    queries: int | None = None,
    seed: int = 0,
) -> Plan:
    """Compares ways to spend a budget on relevance labels.

    Args:
        budget: in the unit of ``cost``.
        cost: of one judgement of one document.
        documents: labels per query.
        proportions: of the true grades among the documents one would judge, finest scale first to last;
            web-search proportions (MSLR) unless given.
        prevalence: instead, the share of documents above grade 0; they spread over grades 1 to 4 as in MSLR.
        error: the rate at which a judge errs at each step of a scale, which is the error rate on two grades;
            or the error rate (or matrix) by number of grades.
        scales: numbers of grades to compare; those finer than the truth are left out.
        repeats: judgements per label to compare, odd; the median counts.
        top_k: rank the best k by comparing pairs; None leaves this out.
        pair_cost: of one comparison; ``cost`` unless given.
        pair_error: the error rate of a comparison; that of two grades unless given.
        screen_cost: of one look by a screener who finds documents of a wanted grade; without it, balanced
            sampling relies on the judges' own labels.
        pool: documents a query has to choose from.
        shared: the share of cases in which repeated judgements repeat one another's answer.
        profile: the family that spreads error rates given by scale.
        queries: the most queries there are.
        seed: of the simulated top-k judging.

    Returns:
        A Plan: the ways by their expected pNoise, the recommended one and why.

    >>> plan_labels(5000, cost=0.1, documents=50, error=0.1).recommended
    '3 grades, natural, judged once'
    """
    one_of("noise profile", profile, FAMILIES)
    shares = _truth(proportions, prevalence)
    errors = {**error} if isinstance(error, Mapping) else _rate("error", error)
    if pair_error is None:
        pair_error = errors if isinstance(errors, float) else _two_grade_rate(errors)
    order = Order(
        budget=check_number("budget", budget, above=0),
        cost=check_number("cost", cost, above=0),
        documents=int(check_number("documents", documents, least=2)),
        proportions=shares,
        error=errors,
        scales=_scales(scales, len(shares)),
        repeats=tuple(sorted({int(r) for r in repeats})),
        top_k=None if top_k is None else int(check_number("top_k", top_k, least=1)),
        pair_cost=check_number("pair_cost", cost if pair_cost is None else pair_cost, above=0),
        pair_error=_rate("pair_error", pair_error),
        screen_cost=None if screen_cost is None else check_number("screen_cost", screen_cost, least=0),
        pool=int(check_number("pool", pool, least=2)),
        shared=check_number("shared", shared, least=0, most=1),
        profile=profile,
        queries=None if queries is None else int(check_number("queries", queries, least=1)),
        seed=int(seed),
    )
    options = options_of(order)
    best = choose(options)
    macros: Any = templates(escaped=False).get_template(WORDS).module
    by_error = {} if isinstance(errors, Mapping) else {f"{e:g}": _with_error(order, e) for e in ERRORS}
    return Plan(
        order,
        options,
        best.name if best else "",
        _reasons(order, options, best),
        tuple(macros.caveats(order).strip().splitlines()),
        tuple(_change(case, each, best) for case, each in _changes(order).items()) if best else (),
        tuple(_change(case, each, best) for case, each in by_error.items()) if best else (),
    )


def _scales(scales: Sequence[int], grades: int) -> tuple[int, ...]:
    usable = tuple(sorted({int(s) for s in scales if s <= grades}))
    if not usable or min(usable) < 2:
        raise invalid("scales", f"must lie between 2 and the grades of the truth ({grades})", list(scales))
    return usable


def _truth(proportions: Sequence[float] | None, prevalence: float | None) -> tuple[float, ...]:
    if prevalence is not None:
        if proportions is not None:
            raise invalid("arguments", "must name either `proportions` or `prevalence`, not both")
        if not 0 < prevalence < 1:
            raise invalid("prevalence", "must lie between 0 and 1", prevalence)
        relevant = proportions_of(WEB_SEARCH[1:]) * prevalence
        return (1 - prevalence, *(float(s) for s in relevant))
    shares = proportions_of(WEB_SEARCH if proportions is None else proportions)
    if len(shares) < 2 or (shares > 0).sum() < 2:
        raise invalid("proportions", "must hold at least two grades", list(shares))
    return tuple(float(s) for s in shares)


def _rate(name: str, value: float) -> float:
    if not 0 <= value <= 0.5:
        raise invalid(name, "must lie in [0, 1/2]", value, remedy="Above 1/2 a judge is worse than a coin.")
    return float(value)


def _two_grade_rate(error: Mapping[int, float | npt.ArrayLike]) -> float:
    rate = error.get(2)
    if rate is None:
        raise invalid("pair_error", "must be given when error has no rate for two grades")
    if isinstance(rate, int | float):
        return float(rate)
    matrix = np.asarray(rate, dtype=np.float64)
    return float((matrix[0, 1] + matrix[1, 0]) / 2)


def choose(options: Sequence[Option]) -> Option | None:
    """The option with most effective pairs among those whose pNoise stays below the turning point.

    At .4 a fifth of AUC's signal is left, so mere numbers of bad pairs are not trusted beyond it; if all
    options lie beyond it, the one with most effective pairs is taken all the same.
    """
    possible = [o for o in options if not o.problem]
    sound = [o for o in possible if o.pnoise < TURNING_POINT]
    return max(sound or possible, key=lambda o: o.effective_pairs, default=None)


def _changes(order: Order) -> dict[str, Order]:
    """Other assumptions, one at a time."""
    cases: dict[str, Order] = {}
    if not isinstance(order.error, Mapping):
        cases[f"judges err half as often ({order.error / 2:.3g})"] = _with_error(order, order.error / 2)
        if order.error * 2 < 0.5:
            cases[f"judges err twice as often ({order.error * 2:.3g})"] = _with_error(order, order.error * 2)
    cases["half of repeated judgements repeat the first"] = replace(order, shared=max(order.shared, 0.5))
    cases["a comparison costs a quarter of a judgement"] = replace(order, pair_cost=order.cost / 4)
    if order.screen_cost is None:
        screened = replace(order, screen_cost=order.cost / 10)
        cases["a screener finds relevant documents at a tenth of the cost"] = screened
    else:
        cases["nobody screens: balance by the judges' own labels"] = replace(order, screen_cost=None)
    relevant = [share / 5 for share in order.proportions[1:]]
    rarer = replace(order, proportions=(1 - sum(relevant), *relevant))
    cases[f"relevant documents are five times rarer ({1 - rarer.proportions[0]:.1%})"] = rarer
    fewer, more = order.documents // 2, order.documents * 2
    cases[f"half as many documents a query ({fewer})"] = replace(order, documents=max(2, fewer))
    cases[f"twice as many documents a query ({more})"] = replace(order, documents=more)
    return cases


def _change(what: str, order: Order, before: Option) -> Change:
    now = choose(options_of(order))
    if now is None:
        return Change(what, "", True, 0.0, 0.0)
    return Change(what, now.name, now.name != before.name, now.signal_left, now.effective_pairs)


def _with_error(order: Order, error: float) -> Order:
    """Another error rate per step; comparisons err as often as before in relation to it."""
    ratio = order.pair_error / order.error if isinstance(order.error, float) and order.error else 1.0
    return replace(order, error=error, pair_error=min(0.5, ratio * error))


def _reasons(order: Order, options: Sequence[Option], best: Option | None) -> tuple[Advice, ...]:
    """What is bought, and why not otherwise."""
    if best is None:
        best = min(options, key=lambda o: o.query_cost)
        findings: dict[str, Finding] = {
            "none": ("act", {"query_cost": best.query_cost, "budget": order.budget}, {})
        }
    else:
        findings = {topic: reason(order, options, best) for topic, reason in REASONS.items()}
    return tuple(in_words(WORDS, findings, order=order, best=best))


def _bought(order: Order, options: Sequence[Option], best: Option) -> Finding:
    """What the recommended way brings."""
    figures = {
        "queries": float(best.queries),
        "query_cost": best.query_cost,
        "pairs": best.queries * best.pairs,
        "pnoise": best.pnoise,
        "effective_pairs": best.effective_pairs,
        "signal_left": best.signal_left,
    }
    kind = "act" if best.pnoise >= TURNING_POINT else "fine"
    return kind, figures, {"turning_point": TURNING_POINT}


def _grades(order: Order, options: Sequence[Option], best: Option) -> Finding:
    """Against other numbers of grades, sampled and repeated alike."""
    alike = [o for o in options if o.grades and (o.sampling, o.repeats) == (best.sampling, best.repeats)]
    rivals = [o for o in alike if o.grades != best.grades]
    if best.grades is None or not rivals:
        return None
    figures = {f"effective_pairs of {o.grades} grades": o.effective_pairs for o in (best, *rivals)}
    return "know", figures, {"rivals": rivals}


def _sampling(order: Order, options: Sequence[Option], best: Option) -> Finding:
    """Natural against balanced sampling."""
    other = {"natural": "balanced", "balanced": "natural"}.get(best.sampling)
    like = (best.grades, best.repeats, other)
    rival = next((o for o in options if (o.grades, o.repeats, o.sampling) == like), None)
    if rival is None:
        return None
    balanced = best if best.sampling == "balanced" else rival
    screening = {"screened": balanced.screened, "documents": float(order.documents)}
    return "know", {**screening, **_against(best, rival, "pnoise", "effective_pairs")}, {"rival": rival}


def _repeats(order: Order, options: Sequence[Option], best: Option) -> Finding:
    """Judging again against judging more."""
    alike = [o for o in options if (o.grades, o.sampling) == (best.grades, best.sampling)]
    rivals = [o for o in alike if o.repeats != best.repeats]
    if not rivals:
        return None
    rival = max(rivals, key=lambda o: o.effective_pairs)
    return "know", _against(best, rival, "pnoise", "query_cost", "effective_pairs"), {"rival": rival}


def _pairs(order: Order, options: Sequence[Option], best: Option) -> Finding:
    """Top-k pairs, with the floor of a perfect judge and the price at which they would win."""
    rivals = [o for o in options if o.grades is None]
    if not rivals or best.grades is None:
        return None
    rival = max(rivals, key=lambda o: o.effective_pairs)
    ratio = (rival.pairs * rival.signal_left**2 / rival.query_cost) / (
        best.pairs * best.signal_left**2 / best.query_cost
    )
    figures = {
        "judgements": rival.judgements,
        "pnoise": rival.pnoise,
        "floor": rival.floor,
        "excess": rival.excess,
        "break_even_pair_cost": order.pair_cost * ratio,
        "effective_pairs_if_finer": rival.queries * rival.pairs * (1 - 2 * rival.excess) ** 2,
    }
    return "know", figures, {"rival": rival}


def _close(order: Order, options: Sequence[Option], best: Option) -> Finding:
    """Other ways that are nearly as good."""
    enough = CLOSE * best.effective_pairs
    near = [o for o in options if o is not best and not o.problem and o.effective_pairs >= enough]
    figures = {f"effective_pairs of {o.name}": o.effective_pairs for o in near}
    return ("know", figures, {"rivals": near}) if near else None


def _against(best: Option, rival: Option, *names: str) -> dict[str, float]:
    pairs = ((n, getattr(best, n), getattr(rival, n)) for n in names)
    return {key: value for n, own, other in pairs for key, value in ((n, own), (f"rival_{n}", other))}


REASONS: dict[str, Callable[[Order, Sequence[Option], Option], Finding]] = {
    "bought": _bought,
    "grades": _grades,
    "sampling": _sampling,
    "repeats": _repeats,
    "pairs": _pairs,
    "close": _close,
}
