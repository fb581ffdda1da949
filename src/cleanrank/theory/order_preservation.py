"""Which losses and measures keep the order of rankers when labels are noisy, by simulation.

A loss is *order preserving* if noisy(f) - noisy(g) = (gamma0 + gamma1 - 1) (clean(f) - clean(g)) for all
scorers f and g (Haddad 2022, Def. 3.1). The trial fits noisy = slope * clean + constant over many scorers:

    strict  R2 >= .9995, Kendall's tau >= .98, slope within 2 % of gamma0 + gamma1 - 1
    affine  the same with another positive slope: these scorers keep their order, others may not
    no      anything else

A trial can only refute. ``scorers="even"`` is the paper's own set, equally good on every query, on which any
mean over queries looks affine; ``scorers="tilted"`` are better on some queries than on others, as real
rankers are.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.losses.binary import ALIASES, LOSSES, BinaryLoss
from cleanrank.metrics.evaluation import aligned
from cleanrank.metrics.measure import ALIASES as MEASURE_ALIASES
from cleanrank.metrics.measure import MEASURES, Measure
from cleanrank.theory import simulation
from cleanrank.theory.simulation import WEIGHTINGS, Trial, make_labels, make_trial
from cleanrank.types import Array, FloatArray, IntArray
from cleanrank.validation import check_seed, is_integer, one_of

LEAST_R2, LEAST_TAU, SLOPE_SLACK = 0.9995, 0.98, 0.02
VERDICTS: dict[str, str] = {
    "strict": "order preserving: an affine function of the clean risk with the slope gamma0 + gamma1 - 1",
    "affine": "an affine function of the clean risk on these scorers, with another slope",
    "no": "not a function of the clean risk: scorers change places",
}
PAIRED: dict[str, tuple[str, str]] = {
    "ranknet": ("logistic", "macro"),
    "sym-ranknet": ("sigmoid", "macro"),
    "lambdarank": ("logistic", "lambdarank"),
}
POINTED: dict[str, str] = {"sym-logistic": "sigmoid"}


@dataclass(frozen=True)
class Risk:
    """A loss, what it reads (points or pairs) and how pairs are weighted.

    >>> Risk.parse("ranknet:micro")
    Risk(loss='logistic', pairs='micro')
    """

    loss: "str | BinaryLoss"
    pairs: str | None = None

    @classmethod
    def parse(cls, text: str) -> "Risk | None":
        """Reads ``hinge``, ``pair-hinge:micro``, ``ranknet:macro``; None if it names no loss."""
        head, _, weighting = text.strip().lower().partition(":")
        if head in PAIRED:
            loss, default = PAIRED[head]
        elif head.startswith("pair-"):
            loss, default = head.removeprefix("pair-"), "macro"
            loss = one_of("loss", POINTED.get(loss, ALIASES.get(loss, loss)), LOSSES)
        else:
            loss = POINTED.get(head, ALIASES.get(head, head))
            return cls(loss) if loss in LOSSES and not weighting else None
        return cls(loss, one_of("pair weighting", weighting or default, WEIGHTINGS))


RiskLike: TypeAlias = "str | Risk | Measure | BinaryLoss"


@dataclass(frozen=True, eq=False, repr=False)
class OrderPreservation:
    """How the noisy values of one loss or measure depend on the clean ones.

    Attributes:
        name: what was tried.
        verdict: "strict", "affine" or "no"; see VERDICTS.
        slope: of the fit over scorers.
        r2: of the fit.
        tau: Kendall's, between clean and noisy values.
        signal: gamma0 + gamma1 - 1, what Def. 3.1 asks of the slope; for grades (trace(T) - 1) / (C - 1).
        expected: the slope that theory gives for this trial, None where it gives none.
        clean: (S,) values on true labels.
        noisy: (S,) means over the draws of the noise.
    """

    name: str
    verdict: str
    slope: float
    r2: float
    tau: float
    signal: float
    expected: float | None
    clean: FloatArray
    noisy: FloatArray

    def row(self) -> tuple[str, ...]:
        """The line of a table."""
        expected = "" if self.expected is None else f"{self.expected:.4f}"
        return self.name, f"{self.slope:.4f}", expected, f"{self.r2:.5f}", f"{self.tau:.3f}", self.verdict

    def __repr__(self) -> str:
        return aligned([HEAD, self.row()])


@dataclass(frozen=True, eq=False, repr=False)
class OrderTable(Mapping[str, OrderPreservation]):
    """Several losses and measures tried on the same scorers and the same noise, by name."""

    rows: tuple[OrderPreservation, ...]

    def __getitem__(self, name: str) -> OrderPreservation:
        names = [r.name for r in self.rows]
        return self.rows[names.index(one_of("row", name, names))]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[str]:
        return (r.name for r in self.rows)

    def __repr__(self) -> str:
        return aligned([HEAD, *(r.row() for r in self.rows)])


HEAD = ("loss or measure", "slope", "theory", "R2", "tau", "verdict")


def order_preservation(
    loss_or_measure: RiskLike,
    gamma: "float | tuple[float, float]" = 0.9,
    prevalence: Any = (0.1, 0.9),
    **options: Any,
) -> OrderPreservation:
    """Tries whether one loss or measure keeps the order of scorers under noise; see ``order_table``.

    >>> found = order_preservation("hinge", 0.9, draws=100)
    >>> found.verdict, order_preservation("ramp", 0.9, draws=100).verdict
    ('no', 'strict')
    """
    return order_table([loss_or_measure], gamma, prevalence, **options).rows[0]


def order_table(
    losses_or_measures: Iterable[RiskLike],
    gamma: "float | tuple[float, float]" = 0.9,
    prevalence: Any = (0.1, 0.9),
    *,
    noise: Any = None,
    noise_ratio: float | None = None,
    n_grades: int = 2,
    scorers: str = "even",
    n_scorers: int = 100,
    n_queries: int = 100,
    n_docs: int = 50,
    draws: int = 1000,
    labels: tuple[Array, IntArray] | None = None,
    seed: int = 0,
) -> OrderTable:
    """Tries several losses and measures on the same scorers and noise.

    Args:
        losses_or_measures: names of losses for points ("logistic", "sym-logistic"), for pairs ("ranknet",
            "sym-ranknet:micro", "pair-hinge:prevalence", "lambdarank"), or measures ("auc:micro", "ndcg@10").
        gamma: the probability that a label is kept, or two of them: of label 0 and of label 1.
        prevalence: the share of relevant documents: the ends of an even range over queries, or one number.
        noise: a matrix T, or an object that has one, in place of ``gamma``; needed for grades whose noise is
            not uniform.
        noise_ratio: in place of ``gamma``; labels of a query flip with probability noise_ratio x prevalence.
        n_grades: C; grades from 1 on are equally likely among relevant documents, and ``gamma`` is the
            probability that a grade is kept.
        scorers: "even" or "tilted"; see the module.
        n_scorers: how many.
        n_queries: how many.
        n_docs: documents of each.
        draws: of the noise.
        labels: true grades and row offsets of real queries in place of made-up ones.
        seed: of scorers and noise.

    >>> print(order_table(["zero_one", "logistic", "auc"], 0.9, draws=50, n_scorers=30))
    loss or measure  slope   theory  R2       tau    verdict
    zero_one         0.8003  0.8000  0.99999  1.000  strict
    logistic         1.0810          0.99032  0.825  no
    auc              0.7240  0.7247  0.99988  0.990  affine
    """
    named = {_name(each): _read(each) for each in losses_or_measures}
    _check_sizes(n_scorers=n_scorers, n_queries=n_queries, n_docs=n_docs, draws=draws)
    check_seed(seed)
    if labels is None:
        shares = _shares(prevalence, n_queries)
        y, indptr = make_labels(shares, n_docs, np.random.default_rng([seed, 1]), n_grades)
    else:
        y, indptr = np.asarray(labels[0], dtype=np.int32), np.asarray(labels[1], dtype=np.int64)
        n_grades = max(n_grades, int(y.max(initial=1)) + 1)
    matrices = _matrices(gamma, noise, noise_ratio, n_grades, simulation.shares(y, indptr))
    trial = make_trial(y, indptr, matrices, scorers=scorers, n_scorers=n_scorers, draws=draws, seed=[seed, 2])
    measures = tuple(dict.fromkeys(t for t in named.values() if isinstance(t, Measure)))
    clean, noisy = simulation.measure_values(trial, measures) if measures else (np.empty(0), np.empty(0))
    values: dict[Any, tuple[FloatArray, FloatArray]] = {
        m: (c, n) for m, c, n in zip(measures, clean, noisy, strict=True)
    }
    return OrderTable(
        tuple(
            _judged(
                name,
                *(values[tried] if isinstance(tried, Measure) else _risks(trial, tried)),
                _signal(matrices),
                _expected(tried, trial, matrices),
            )
            for name, tried in named.items()
        )
    )


def _check_sizes(**sizes: Any) -> None:
    for name, value in sizes.items():
        least = {"n_scorers": 3, "n_docs": 2}.get(name, 1)
        if not is_integer(value) or value < least:
            raise invalid(name, f"must be a whole number from {least} on", repr(value))


def _name(given: RiskLike) -> str:
    if isinstance(given, Risk):
        loss = given.loss if isinstance(given.loss, str) else given.loss.name
        return loss if given.pairs is None else f"pair-{loss}:{given.pairs}"
    return given.name if isinstance(given, BinaryLoss) else str(given)


def _read(given: RiskLike) -> "Risk | Measure":
    if isinstance(given, Risk | Measure):
        return given
    if isinstance(given, BinaryLoss):
        return Risk(given)
    if not isinstance(given, str):
        raise invalid(
            "a loss or measure", "must be text, a Risk, a Measure or a BinaryLoss", repr(given),
            remedy="Try 'sigmoid', 'ranknet:micro' or 'ndcg@10'.",
        )  # fmt: skip
    if (risk := Risk.parse(given)) is not None:
        return risk
    head = given.partition(":")[0].partition("@")[0].strip().lower()
    if MEASURE_ALIASES.get(head, head) not in MEASURES:
        one_of(
            "loss or measure", given, [*LOSSES, *POINTED, *PAIRED, *(f"pair-{n}" for n in LOSSES), *MEASURES]
        )
    return Measure.parse(given)


def _shares(prevalence: Any, n_queries: int) -> FloatArray:
    ends = np.atleast_1d(np.asarray(prevalence, dtype=np.float64))
    if ends.shape not in ((1,), (2,)) or not ((ends > 0) & (ends < 1)).all():
        raise invalid("prevalence", "must be one or two shares strictly between 0 and 1", prevalence)
    return np.linspace(ends[0], ends[-1], n_queries)


def _matrices(
    gamma: Any, noise: Any, noise_ratio: float | None, n_grades: int, prevalence: FloatArray
) -> FloatArray:
    """One T for every query, (Q, C, C)."""
    Q = len(prevalence)
    if noise is not None:
        T = np.asarray(getattr(noise, "matrix", noise), dtype=np.float64)
        if T.shape != (n_grades, n_grades) or (abs(T.sum(axis=1) - 1) > 1e-9).any() or (T < 0).any():
            raise invalid(
                "noise", f"must be a matrix of probabilities for {n_grades} grades", f"shape {T.shape}"
            )
        return np.tile(T, (Q, 1, 1))
    if noise_ratio is not None:
        flips = noise_ratio * prevalence
        if n_grades != 2 or not ((flips >= 0) & (flips <= 1)).all():
            raise invalid("noise_ratio", "must leave flips in [0, 1] of two grades", noise_ratio)
        return np.stack([np.stack([1 - flips, flips], 1), np.stack([flips, 1 - flips], 1)], 1)
    kept = np.broadcast_to(np.asarray(gamma, dtype=np.float64), (2,) if n_grades == 2 else (n_grades,))
    if not ((kept >= 0) & (kept <= 1)).all():
        raise invalid("gamma", "must be the probability that a label is kept, in [0, 1]", gamma)
    T = np.repeat((1 - kept)[:, None] / (n_grades - 1), n_grades, axis=1)
    np.fill_diagonal(T, kept)
    return np.tile(T, (Q, 1, 1))


def _signal(matrices: FloatArray) -> float:
    C = matrices.shape[-1]
    return float(((np.trace(matrices, axis1=1, axis2=2) - 1) / (C - 1)).mean())


def _risks(trial: Trial, risk: Risk) -> tuple[FloatArray, FloatArray]:
    loss = LOSSES[risk.loss] if isinstance(risk.loss, str) else risk.loss
    return (
        simulation.point_risks(trial, loss)
        if risk.pairs is None
        else simulation.pair_risks(trial, loss, risk.pairs)
    )


def _judged(
    name: str, clean: FloatArray, noisy: FloatArray, signal: float, expected: float | None
) -> OrderPreservation:
    from scipy import stats

    slope = float(np.polyfit(clean, noisy, 1)[0])
    r2 = float(np.corrcoef(clean, noisy)[0, 1] ** 2)
    tau = float(stats.kendalltau(clean, noisy).statistic)
    verdict = "no"
    if r2 >= LEAST_R2 and tau >= LEAST_TAU and slope > 0:
        verdict = "strict" if abs(slope - signal) <= SLOPE_SLACK * abs(signal) else "affine"
    return OrderPreservation(name, verdict, slope, r2, tau, signal, expected, clean, noisy)


def _expected(tried: "Risk | Measure", trial: Trial, matrices: FloatArray) -> float | None:
    """The slope that theory gives; None where there is none, or none for these queries."""
    T, C = matrices[0], trial.n_grades
    if not np.array_equal(matrices, np.broadcast_to(T, matrices.shape)):
        return None
    if isinstance(tried, Measure):
        if tried.name == "dcg" and tried.empty == "zero":
            grades = np.arange(C, dtype=np.float64)
            return _affine(T, np.exp2(grades) - 1 if tried.gain == "exp" else grades)
        symmetric, weighting = tried.name == "auc", tried.weighting
    else:
        loss = LOSSES[tried.loss] if isinstance(tried.loss, str) else tried.loss
        symmetric, weighting = loss.constant is not None, tried.pairs
        if weighting is None:
            equal = C == 2 and abs(T[0, 0] - T[1, 1]) < 1e-12
            return float(2 * T[0, 0] - 1) if symmetric and equal else None
    if not symmetric or (C > 2 and weighting != "gain"):
        return None
    if weighting == "gain":
        return _affine(T, np.exp2(np.arange(C, dtype=np.float64)))
    if weighting in ("micro", "prevalence"):
        return float(T[0, 0] + T[1, 1] - 1)
    if weighting != "macro":
        return None
    lists = zip(
        simulation.shares(trial.y, trial.indptr).tolist(), np.diff(trial.indptr).tolist(), strict=True
    )
    kept0, kept1 = float(T[0, 0]), float(T[1, 1])
    slopes = [auc_slope(prevalence=p, gamma0=kept0, gamma1=kept1, n_docs=n) for p, n in lists if 0 < p < 1]
    return float(np.mean(slopes))


def _affine(T: FloatArray, gains: npt.NDArray[np.float64]) -> float | None:
    """B with T gains = a + b gains, None if there is no such b."""
    seen = T @ gains
    b = (seen[-1] - seen[0]) / (gains[-1] - gains[0])
    return float(b) if np.allclose(seen - b * gains, seen[0] - b * gains[0], atol=1e-12) else None


SLOPE_WEIGHTINGS = ("macro", "micro")


def auc_slope(
    *, prevalence: float, gamma0: float, gamma1: float, weighting: str = "macro", n_docs: int | None = None
) -> float:
    """The share of AUC's signal that survives class-conditional noise: noisy - 1/2 = slope * (clean - 1/2).

    With p' = gamma1 p + (1 - gamma0)(1 - p), the share of ones after the noise, the ratio per query has

        slope = (gamma0 + gamma1 - 1) p (1 - p) / (p' (1 - p')),

    which depends on the prevalence, so that a mean over queries of unequal prevalence can change the order of
    two rankers. Haddad (2022) states 2 gamma - 1, which is right for p = 1/2 alone. ``weighting="micro"``
    divides the pair sum by n^2 instead of the number of pairs: its slope is gamma0 + gamma1 - 1 at any
    prevalence. The macro slope equals 1 - 2 pNoise of two grades in long lists (Niu et al. 2015). NaN when
    noise leaves one class only.

    Args:
        prevalence: p.
        gamma0: probability that a 0 is kept.
        gamma1: probability that a 1 is kept.
        weighting: "macro" or "micro".
        n_docs: the length n of the list, for the exact macro slope of n p relevant documents among n; long
            lists without it. With A the noisy ones among the other n - 2 documents of a pair, it is
            (gamma0 + gamma1 - 1) n1 n0 E[1 / ((A + 1)(n - 1 - A))] / P(both classes are left).

    >>> round(auc_slope(prevalence=0.1, gamma0=0.9, gamma1=0.9), 4)
    0.4878
    >>> round(auc_slope(prevalence=0.1, gamma0=0.9, gamma1=0.9, n_docs=50), 4)
    0.5114
    """
    one_of("weighting", weighting, SLOPE_WEIGHTINGS)
    for name, value in (("gamma0", gamma0), ("gamma1", gamma1)):
        if not 0 <= value <= 1:
            raise invalid(name, "must be the probability that a label is kept, in [0, 1]", value)
    if not 0 < prevalence < 1:
        raise invalid("prevalence", "must lie strictly between 0 and 1", prevalence)
    kept = gamma0 + gamma1 - 1
    if weighting == "micro":
        return kept
    if n_docs is not None:
        return kept * _short_list(n_docs, prevalence, gamma0, gamma1)
    noisy = gamma1 * prevalence + (1 - gamma0) * (1 - prevalence)
    if noisy * (1 - noisy) <= 0:
        return float("nan")
    return kept * prevalence * (1 - prevalence) / (noisy * (1 - noisy))


def _short_list(n: int, prevalence: float, gamma0: float, gamma1: float) -> float:
    if not is_integer(n) or n < 2:
        raise invalid("n_docs", "must be a whole number from 2 on", repr(n))
    n1 = round(prevalence * n)
    if not 0 < n1 < n:
        raise invalid("n_docs", "must leave both classes in the list", f"{n} with {n1} relevant")
    others = _ones(n1 - 1, n - n1 - 1, gamma0, gamma1)
    a = np.arange(n - 1)
    share = float((others / ((a + 1.0) * (n - 1.0 - a))).sum())
    every = _ones(n1, n - n1, gamma0, gamma1)
    left = 1.0 - float(every[0]) - float(every[-1])
    return n1 * (n - n1) * share / left if left > 0 else float("nan")


def _ones(n1: int, n0: int, gamma0: float, gamma1: float) -> FloatArray:
    """The distribution of noisy ones among n1 ones and n0 zeros."""
    from scipy import stats

    kept = stats.binom.pmf(np.arange(n1 + 1), n1, gamma1)
    false = stats.binom.pmf(np.arange(n0 + 1), n0, 1 - gamma0)
    return np.convolve(kept, false)
