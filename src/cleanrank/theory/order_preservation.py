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

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.losses.binary import ALIASES, LOSSES, BinaryLoss, binary_loss
from cleanrank.metrics.evaluation import aligned, query_values
from cleanrank.metrics.measure import ALIASES as MEASURE_ALIASES
from cleanrank.metrics.measure import MEASURES, Measure, MeasureLike, as_measures
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.theory import simulation
from cleanrank.theory.simulation import WEIGHTINGS, Trial, make_labels, make_trial
from cleanrank.theory.symmetry import auc_slope
from cleanrank.types import Array, FloatArray, IntArray
from cleanrank.validation import check_integer, check_number, check_seed, one_of

LEAST_R2, LEAST_TAU, SLOPE_SLACK = 0.9995, 0.98, 0.02
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
        verdict: "strict", "affine" or "no"; see the module.
        slope: of the fit over scorers.
        r2: of the fit.
        tau: kendall's, between clean and noisy values.
        signal: gamma0 + gamma1 - 1, what Def. 3.1 asks of the slope; for grades (trace(T) - 1) / (C -
            1).
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


class OrderTable(dict[str, OrderPreservation]):
    """Several losses and measures tried on the same scorers and the same noise, by name."""

    def __missing__(self, name: str) -> OrderPreservation:
        return self[one_of("row", name, self)]

    def __repr__(self) -> str:
        return aligned([HEAD, *(row.row() for row in self.values())])


HEAD = ("loss or measure", "slope", "theory", "R2", "tau", "verdict")


def order_preservation(
    loss_or_measure: RiskLike,
    gamma: "float | tuple[float, float]" = 0.9,
    prevalence: Any = (0.1, 0.9),
    **options: Any,
) -> OrderPreservation:
    """Tries whether one loss or measure keeps the order of scorers under noise; see ``order_table``.

    >>> [order_preservation(loss, 0.9, draws=100).verdict for loss in ("hinge", "ramp")]
    ['no', 'strict']
    """
    (row,) = order_table([loss_or_measure], gamma, prevalence, **options).values()
    return row


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
        n_grades: C; grades >= 1 are equally likely among relevant documents, and ``gamma`` is the
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
    named = {_name(risk): _read(risk) for risk in losses_or_measures}
    check_integer("n_scorers", n_scorers, least=3)
    _check_sizes(n_queries=n_queries, n_docs=n_docs, draws=draws)
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
    values: dict[Any, tuple[FloatArray, FloatArray]] = {}
    if measures:
        clean_and_noisy = zip(*simulation.measure_values(trial, measures), strict=True)
        values = dict(zip(measures, clean_and_noisy, strict=True))
    signal = float(((np.trace(matrices, axis1=1, axis2=2) - 1) / (matrices.shape[-1] - 1)).mean())
    table = OrderTable()
    for name, tried in named.items():
        clean, noisy = values[tried] if isinstance(tried, Measure) else _risks(trial, tried)
        table[name] = _judged(name, clean, noisy, signal, _expected(tried, trial, matrices))
    return table


def _check_sizes(**sizes: Any) -> None:
    for name, value in sizes.items():
        check_integer(name, value, least=2 if name in ("n_scorers", "n_docs") else 1)


def _name(risk: RiskLike) -> str:
    if isinstance(risk, Risk):
        loss = risk.loss if isinstance(risk.loss, str) else risk.loss.name
        return loss if risk.pairs is None else f"pair-{loss}:{risk.pairs}"
    return risk.name if isinstance(risk, BinaryLoss) else str(risk)


def _read(risk: RiskLike) -> "Risk | Measure":
    if isinstance(risk, Risk | Measure):
        return risk
    if isinstance(risk, BinaryLoss):
        return Risk(risk)
    if not isinstance(risk, str):
        raise invalid("a loss or measure", "must be text, a Risk, a Measure or a BinaryLoss", repr(risk))
    if (parsed := Risk.parse(risk)) is not None:
        return parsed
    head = risk.partition(":")[0].partition("@")[0].strip().lower()
    if MEASURE_ALIASES.get(head, head) not in MEASURES:
        pairs = (f"pair-{name}" for name in LOSSES)
        one_of("loss or measure", risk, [*LOSSES, *POINTED, *PAIRED, *pairs, *MEASURES])
    return Measure.parse(risk)


def _numbers(name: str, values: Any) -> FloatArray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise invalid(name, "must be a number or two", repr(values)) from None


def _shares(prevalence: Any, n_queries: int) -> FloatArray:
    ends = np.atleast_1d(_numbers("prevalence", prevalence))
    if ends.shape not in ((1,), (2,)) or not ((ends > 0) & (ends < 1)).all():
        raise invalid("prevalence", "must be one or two shares strictly between 0 and 1", prevalence)
    return np.linspace(ends[0], ends[-1], n_queries)


def _matrices(
    gamma: Any, noise: Any, noise_ratio: float | None, n_grades: int, prevalence: FloatArray
) -> FloatArray:
    """One T for every query, (Q, C, C)."""
    Q = len(prevalence)
    if noise is not None:
        T = NoiseProfile.of(noise, n_grades).matrix
        if len(T) != n_grades:
            raise invalid("noise", f"must be a matrix for {n_grades} grades", f"shape {T.shape}")
        return np.tile(T, (Q, 1, 1))
    if noise_ratio is not None:
        flips = check_number("noise_ratio", noise_ratio) * prevalence
        if n_grades != 2 or not ((flips >= 0) & (flips <= 1)).all():
            raise invalid("noise_ratio", "must leave flips in [0, 1] of two grades", noise_ratio)
        return np.stack([np.stack([1 - flips, flips], 1), np.stack([flips, 1 - flips], 1)], 1)
    kept = np.broadcast_to(_numbers("gamma", gamma), (2,) if n_grades == 2 else (n_grades,))
    if not ((kept >= 0) & (kept <= 1)).all():
        raise invalid("gamma", "must be the probability that a label is kept, in [0, 1]", gamma)
    T = np.repeat((1 - kept)[:, None] / (n_grades - 1), n_grades, axis=1)
    np.fill_diagonal(T, kept)
    return np.tile(T, (Q, 1, 1))


def _risks(trial: Trial, risk: Risk) -> tuple[FloatArray, FloatArray]:
    loss = binary_loss(risk.loss)
    if risk.pairs is None:
        return simulation.point_risks(trial, loss)
    return simulation.pair_risks(trial, loss, risk.pairs)


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
        symmetric, weighting = binary_loss(tried.loss).constant is not None, tried.pairs
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
    noisy = T @ gains
    b = (noisy[-1] - noisy[0]) / (gains[-1] - gains[0])
    return float(b) if np.allclose(noisy - b * gains, noisy[0] - b * gains[0], atol=1e-12) else None


def order_kept(
    measures: "MeasureLike | Iterable[MeasureLike]" = ("auc", "dcg@10", "ndcg@10"),
    gamma: float = 0.9,
    *,
    prevalence: float = 0.3,
    n_docs: int = 50,
    issues: int = 1,
    loudness: tuple[float, float] = (1.0, 2.0),
    n_scorers: int = 20,
    draws: int = 200,
    seed: int = 0,
) -> dict[str, float]:
    """The share of pairs of scorers that the noisy values of one query put in the order of the clean ones.

    Args:
        measures: what scorers are ordered by.
        gamma: the probability that a label is kept.
        prevalence: share of relevant documents.
        n_docs: labels of an issue.
        issues: how many times the same list is labelled; values are means over them.
        loudness: least and largest standard deviation of the scorers' errors; labels are 2 apart.
        n_scorers: how many.
        draws: repetitions.
        seed: of scorers and noise.

    >>> short, long = (order_kept("auc", n_docs=n, draws=40)["auc"] for n in (20, 500))
    >>> short < long
    True
    """
    compared = as_measures(measures)
    _check_sizes(n_docs=n_docs, issues=issues, n_scorers=n_scorers, draws=draws)
    check_seed(seed)
    check_number("gamma", gamma, least=0, most=1)
    check_number("prevalence", prevalence, above=0, below=1)
    if len(loudness) != 2 or not 0 < loudness[0] <= loudness[1] < np.inf:
        raise invalid("loudness", "must be two positive numbers, the least first", loudness)
    rng = np.random.default_rng(seed)
    y, indptr = make_labels(np.array([prevalence]), n_docs, rng)
    loud = np.linspace(*loudness, n_scorers)[:, None]
    scores = (2.0 * y - 1.0 + loud * rng.standard_normal((n_scorers, n_docs))).ravel()
    rows = np.arange(n_scorers + 1) * n_docs

    def values(labels: FloatArray) -> FloatArray:
        return query_values(compared, np.tile(labels, n_scorers), scores, rows)[0]

    clean = _signs(values(y))
    T = np.array([[[gamma, 1 - gamma], [1 - gamma, gamma]]])
    right = np.zeros(len(compared))
    for _ in range(draws):
        drawn = [values(labels) for labels in simulation.draw_labels(y, indptr, T, issues, rng)]
        right += _agreement(clean, _signs(np.nanmean(drawn, axis=0)))
    return {str(m): float(r / draws) for m, r in zip(compared, right, strict=True)}


def _signs(values: FloatArray) -> FloatArray:
    first, second = np.triu_indices(values.shape[1], 1)
    return np.sign(np.nan_to_num(values[:, first] - values[:, second]))


def _agreement(clean: FloatArray, noisy: FloatArray) -> FloatArray:
    """Of the pairs that differ on clean labels, those in the same order; ties count half."""
    differ = clean != 0
    same: FloatArray = np.where(differ, 0.5 + 0.5 * clean * noisy, 0.0).sum(axis=1) / differ.sum(axis=1)
    return same
