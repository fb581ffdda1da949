"""What a judge is good enough for, in words with their evidence, and what cannot be claimed.

A verdict is "yes", "with care", "no" or "not checked".
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cleanrank.judges.against_gold import AgainstGold, Coverage
from cleanrank.judges.system_order import SystemOrder
from cleanrank.noise.class_conditional import ClassConditionality

# Wrong pairs: at .2 three fifths of AUC's signal are left (1 - 2 pNoise), at .4 one fifth, the knee
# of ``diagnose``.
TRAIN_PNOISE, TRAIN_TURNING_POINT = 0.2, 0.4
# Kendall's tau: orders that differ no more than those of two careful assessors have .9 and more, orders below
# .8 differ noticeably (Voorhees 2000, 2001). For a yes the interval must lie above .8.
ORDER_TAU, ORDER_LOWEST_TAU = 0.9, 0.8
# Of pairs that gold is sure of, how many the judge may turn round: what a test of level .05 allows by chance.
ORDER_REVERSED = 0.05
# Bias in standard errors of a system's mean: at .5 a nominal .95 interval still holds the truth in .92 of
# cases, at 1 in .83. For a no, the interval of the bias must leave out 0 as well.
LEVEL_BIAS, LEVEL_MOST_BIAS = 0.5, 1.0
# Fewer do not show an order or a bias.
FEWEST_SYSTEMS, FEWEST_QUERIES = 5, 10
# Of the first ten ranks, how much must be judged by both before the comparison tells of full labels.
FULL = 0.9


@dataclass(frozen=True)
class Verdict:
    """An answer to one question.

    Attributes:
        question: "train on", "order systems" or "report levels".
        answer: "yes", "with care", "no" or "not checked".
        evidence: why, with figures.
    """

    question: str
    answer: str
    evidence: str


def verdicts_of(
    labels: AgainstGold,
    coverage: Coverage,
    tested: ClassConditionality,
    orders: Sequence[SystemOrder],
) -> tuple[Verdict, ...]:
    """Answers to the three questions; systems are judged by the first measure."""
    return (
        _train(labels),
        _order(coverage, orders),
        _levels(labels, coverage, tested, orders),
    )


def _train(labels: AgainstGold) -> Verdict:
    wrong = labels.pnoise
    if labels.counts.sum() >= FEWEST_QUERIES and np.count_nonzero(labels.counts.sum(axis=0)) == 1:
        return Verdict("train on", "no", "The judge gives all documents the same grade: no pair teaches.")
    if not np.isfinite(wrong.value):
        return Verdict("train on", "not checked", "No pair of documents of a query has different grades.")
    high = wrong.high if np.isfinite(wrong.high) else wrong.value
    answer = "no" if wrong.value >= TRAIN_TURNING_POINT else "with care"
    if high <= TRAIN_PNOISE:
        answer = "yes"
    left = 1 - 2 * wrong.value
    words = f"{wrong.value:.0%} of the pairs that teach a ranker are wrong{_ends(wrong.low, wrong.high)}; "
    words += f"{max(left, 0):.0%} of the signal of AUC is left."
    if answer == "with care":
        words += " Train with RobustRanker or give it gold rows, and test on gold labels."
    return Verdict("train on", answer, words)


def _order(coverage: Coverage, orders: Sequence[SystemOrder]) -> Verdict:
    question = "order systems"
    if not orders:
        return Verdict(question, "not checked", "No systems were given (runs).")
    first = orders[0]
    S, Q = len(first.systems), coverage.common_queries
    if S < FEWEST_SYSTEMS or Q < FEWEST_QUERIES:
        few = f"{S} systems on {Q} queries; {FEWEST_SYSTEMS} and {FEWEST_QUERIES} are the least."
        return Verdict(question, "not checked", few)
    turned = first.reversed / first.significant if first.significant else 0.0
    answer = "with care"
    if first.tau.value >= ORDER_TAU and first.tau.low >= ORDER_LOWEST_TAU and turned <= ORDER_REVERSED:
        answer = "yes"
    elif first.tau.value < ORDER_LOWEST_TAU or turned > ORDER_REVERSED:
        answer = "no"
    words = (
        f"{first.measure}: Kendall's tau {first.tau}, among the ten best {first.top_tau.value:.2f}. Of "
        f"{first.significant:,} pairs of systems that differ significantly by gold labels, the judge turns "
        f"{first.reversed:,} round, {first.wrong:,} of them significantly; it calls {first.invented:,} of "
        f"the other {first.pairs - first.significant:,} significant."
    )
    if answer == "with care":
        words += " Large differences hold; check close ones with gold labels (compare_with_judge)."
    return Verdict(question, answer, words)


def _levels(
    labels: AgainstGold,
    coverage: Coverage,
    tested: ClassConditionality,
    orders: Sequence[SystemOrder],
) -> Verdict:
    question = "report levels"
    lenient = labels.leniency
    if not orders:
        if np.isfinite(lenient.low) and (lenient.low > 0 or lenient.high < 0):
            side = "more" if lenient.value > 0 else "less"
            words = f"The judge gives {abs(lenient.value):.2f} grades {side} than gold labels on average"
            words += f"{_ends(lenient.low, lenient.high, '.2f')}; levels of systems follow."
            return Verdict(question, "no", words)
        return Verdict(question, "not checked", "No systems were given (runs).")
    first = orders[0]
    if coverage.common_queries < FEWEST_QUERIES:
        few = f"{coverage.common_queries} queries; {FEWEST_QUERIES} are the least."
        return Verdict(question, "not checked", few)
    typical = float(np.median(np.abs(first.errors_of_bias)))
    shifted = first.bias.low > 0 or first.bias.high < 0
    answer = "no" if typical > LEVEL_MOST_BIAS and shifted else "with care"
    if typical <= LEVEL_BIAS:
        answer = "yes"
    words = (
        f"{first.measure}: the judge's labels shift means by {first.bias.value:+.3f}"
        f"{_ends(first.bias.low, first.bias.high, '+.3f')}, typically {typical:.1f} standard errors; the "
        f"gold mean lies in the interval of the judge's labels for {first.inside:.0%} of systems."
    )
    if answer != "yes":
        words += " Add gold labels (evaluate_with_judge)"
        by_matrix = "; a noise matrix does not repair it, errors depend on more than the grade"
        words += f"{by_matrix if tested.rejected() else ''}."
    return Verdict(question, answer, words)


def limits_of(
    coverage: Coverage,
    tested: ClassConditionality,
    orders: Sequence[SystemOrder],
    *,
    weighted: bool,
) -> tuple[str, ...]:
    """What cannot be claimed from these pairs, in sentences."""
    limits = []
    if coverage.common_queries == 1:
        limits.append("Gold labels cover one query: nothing can be said of other queries, without intervals.")
    elif coverage.common_queries < FEWEST_QUERIES:
        limits.append(
            f"Gold labels cover {coverage.common_queries} queries: intervals over so few are too narrow."
        )
    if coverage.not_random:
        limits.append(
            "The gold pairs are not a random part of the judge's pairs: its mean grade is "
            f"{coverage.covered_grade:.2f} where there is gold and {coverage.uncovered_grade:.2f} elsewhere "
            f"in the same queries (p = {coverage.p_random:.2g}). Matrix, agreement and leniency hold for "
            "pairs like the gold ones, not for all pairs."
        )
    elif coverage.share < 1 and not weighted:
        limits.append(
            f"Gold labels cover {coverage.share:.0%} of the judge's pairs in these queries. That they were "
            "drawn at random is not known; if they were not, figures hold for pairs like them only."
        )
    if coverage.gold_pairs > coverage.common:
        missing = coverage.gold_pairs - coverage.common
        limits.append(f"The judge has no grade for {missing:,} of {coverage.gold_pairs:,} gold pairs.")
    unasked = coverage.judge_queries - coverage.common_queries
    if unasked:
        limits.append(f"{unasked:,} queries of the judge have no gold labels; nothing here speaks of them.")
    if orders and min(coverage.top_gold, coverage.top_judge) < FULL:
        limits.append(
            f"Of the documents that systems rank in their first 10, {coverage.top_gold:.0%} have a gold "
            f"grade and {coverage.top_judge:.0%} one of the judge. Systems are compared on pairs with both; "
            "with full labels order and levels may differ."
        )
    if weighted:
        limits.append(
            "Gold pairs count by 1 / probability, but not in pNoise nor in the comparison of systems, which "
            "are those of the drawn pairs: for levels use evaluate_with_judge."
        )
    if not tested.checked:
        limits.append(tested.words)
    return tuple(limits)


def _ends(low: float, high: float, form: str = ".0%") -> str:
    return f" [{low:{form}}, {high:{form}}]" if np.isfinite(low) else ""
