"""Choosing among models on validation labels that are noisy.

A *criterion* is computed from the noisy labels; the *target* is what one wants to be best at on true ones. A
criterion that is order preserving (DCG, AUC with micro weights: Haddad 2022) prefers, on average over the
noise, what it would prefer on true labels; NDCG, which early stopping usually watches, need not. Which of
them meets the target most often is another question, for an average can be of few labels or of many: it is
answered by noising the labels at hand once more, taking them as the truth (a parametric bootstrap).

Symbols: S systems, Q queries, B repetitions.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.data.inputs import as_judged, scores_by_row
from cleanrank.errors import invalid
from cleanrank.metrics.comparison import system_names
from cleanrank.metrics.evaluation import aligned, checked_scores, query_values, weighted_means
from cleanrank.metrics.measure import Measure, MeasureLike, as_measures
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.types import Array, FloatArray, RankingData
from cleanrank.validation import check_integer, check_seed

CRITERIA: dict[str, str] = {
    "dcg@10": "order preserving; reads the labels of the first ten alone",
    "auc:micro": "order preserving; reads every label of a query",
    "ndcg@10": "what early stopping usually watches; divides by an ideal that noise changes",
    "map": "quadratic in the labels",
}
ALL_LABELS = "auc:micro"
AUTO = "auto"


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """What was chosen, and how far to trust it.

    Attributes:
        winner: the system that ``criterion`` prefers.
        criterion: what decided.
        target: what is wanted of true labels.
        systems: names, in order.
        values: criterion -> (S,) values on the labels as they are.
        stability: criterion -> share of resamples of the queries in which its winner stays the
            winner.
        agreement: criterion -> share of repetitions in which it picks the winner by ``target`` on the
            labels before they were noised again; None without a noise matrix.
        regret: criterion -> what its pick lacks in ``target`` then, on average; None without a noise
            matrix.
    """

    winner: str
    criterion: str
    target: str
    systems: tuple[str, ...]
    values: Mapping[str, FloatArray]
    stability: Mapping[str, float]
    agreement: Mapping[str, float] | None
    regret: Mapping[str, float] | None

    @property
    def winners(self) -> dict[str, str]:
        """Whom each criterion prefers."""
        return {name: self.systems[int(np.argmax(v))] for name, v in self.values.items()}

    def __repr__(self) -> str:
        rows = [("criterion", "prefers", "value", "stays first", "meets the target", "regret")]
        for name, preferred in self.winners.items():
            met = "" if self.agreement is None else f"{self.agreement[name]:.2f}"
            lost = "" if self.regret is None else f"{self.regret[name]:.4f}"
            mark = "*" if name == self.criterion else ""
            value = f"{self.values[name].max():.4f}"
            rows.append((name + mark, preferred, value, f"{self.stability[name]:.2f}", met, lost))
        return f"{self.winner} by {self.criterion} (target {self.target})\n{aligned(rows)}"


def select_model(
    systems: Mapping[str, npt.ArrayLike],
    data: Any = None,
    criterion: "MeasureLike" = AUTO,
    noise: Any = None,
    *,
    order: str | None = None,
    y: npt.ArrayLike | None = None,
    label: str | None = None,
    qid: Any = None,
    group: npt.ArrayLike | None = None,
    target: MeasureLike = "ndcg@10",
    criteria: "MeasureLike | Iterable[MeasureLike]" = tuple(CRITERIA),
    repetitions: int = 200,
    seed: int = 0,
) -> Selection:
    """Chooses among systems on noisy labels and says how often each criterion picks the winner by true ones.

    Args:
        systems: name -> scores per row of the data.
        data: validation data with noisy grades: a RankingData, or a frame with ``label`` and ``qid``.
        criterion: a measure, or "auto": with ``noise``, the criterion with the least regret when the labels
            are noised again; without, AUC with micro weights, which is order preserving and reads every
            label.
        noise: P(given | true), as ``NoiseProfile.of`` reads it.
        order: which order the scores are in, where the rows of ``data`` were regrouped by query: "input" as
            they stood in the input, "data" as in ``data.X``. Scores of a frame or of arrays are in its own.
        y: without a RankingData or a frame, the grades; with ``qid`` or ``group``.
        label: with a frame, its column of grades; "label" when not given.
        qid: with a frame, its column of query ids ("qid" when not given), else the query of every row.
        group: instead of ``qid``, documents per query.
        target: what one wants to be best at on true labels.
        criteria: those compared.
        repetitions: B, of the noise and of the resampling of queries.
        seed: of both.

    Returns:
        A Selection: the winner, and how far to trust it.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(60, 5, seed=0)
    >>> rng = np.random.default_rng(0)
    >>> systems = {f"sd {s}": data.y + s * rng.normal(size=len(data)) for s in (1, 2, 8)}
    >>> noisy = cr.corrupt(data, rate=0.2)
    >>> cr.select_model(systems, noisy.data, noise=noisy.profile).winner
    'sd 1'
    """
    names = system_names(systems)
    data, order = as_judged(systems, data, order, y=y, label=label, qid=qid, group=group)
    scores = _checked(systems, data, order)
    check_integer("repetitions", repetitions, least=1)
    check_seed(seed)
    goal = _single("target", target)
    deciding = None if isinstance(criterion, str) and criterion == AUTO else _single("criterion", criterion)
    listed = [criteria] if isinstance(criteria, str | Measure) else criteria
    compared = as_measures([*listed, *([] if deciding is None else [deciding])])
    if deciding is None and noise is None:
        compared = as_measures([*compared, ALL_LABELS])
    values, weights = _by_query(compared, scores, data.y, data)
    means = _means(values, weights)
    agreement = regret = None
    if noise is not None:
        profile = NoiseProfile.of(noise, data.n_grades, invertible=True)
        agreement, regret = _noised_again(compared, goal, scores, data, profile, repetitions, seed)
    if deciding is None:
        deciding = as_measures(ALL_LABELS)[0] if regret is None else compared[int(np.argmin(regret))]
    texts = [str(m) for m in compared]
    return Selection(
        winner=names[int(np.argmax(means[compared.index(deciding)]))],
        criterion=str(deciding),
        target=str(goal),
        systems=names,
        values=dict(zip(texts, means, strict=True)),
        stability=dict(zip(texts, _stability(values, weights, repetitions, seed), strict=True)),
        agreement=None if agreement is None else dict(zip(texts, agreement.tolist(), strict=True)),
        regret=None if regret is None else dict(zip(texts, regret.tolist(), strict=True)),
    )


def _checked(systems: Any, data: RankingData, order: str | None) -> list[Array]:
    if not any(np.ptp(data.y[a:b]) for a, b in pairwise(data.indptr) if b > a):
        rule = "must differ within at least one query, else every system is as good as any"
        raise invalid("labels", rule, f"the same in each of {data.n_queries} queries")
    return [checked_scores(scores_by_row(s, data, order), data.n_docs, data) for s in systems.values()]


def _single(name: str, measure: Any) -> Measure:
    parsed = as_measures(measure)
    if len(parsed) != 1:
        texts = ", ".join(str(m) for m in parsed)
        raise invalid(name, "must be one measure", texts, remedy="Those to compare go into criteria.")
    return parsed[0]


def _by_query(
    measures: tuple[Measure, ...], scores: list[Array], y: Array, data: RankingData
) -> tuple[FloatArray, FloatArray]:
    """Values and weights, (S, M, Q) each; gains of the data go with their labels and are left aside."""
    both = [query_values(measures, y, s, data.indptr) for s in scores]
    return np.stack([v for v, _ in both]), np.stack([w for _, w in both])


def means_of(measures: tuple[Measure, ...], scores: list[Array], y: Array, data: RankingData) -> FloatArray:
    """(M, S) means of the rankings by each of S scores, on the grades ``y`` in place of the data's own."""
    return _means(*_by_query(measures, scores, y, data))


def _means(values: FloatArray, weights: FloatArray) -> FloatArray:
    """(M, S); a query that a measure leaves out for one system it leaves out for all."""
    S, M, Q = values.shape
    flat = weighted_means(values.reshape(S * M, Q), weights.reshape(S * M, Q))
    return flat.reshape(S, M).T


def _stability(values: FloatArray, weights: FloatArray, repetitions: int, seed: int) -> list[float]:
    rng = np.random.default_rng([seed, 1])
    Q = values.shape[2]
    first = _means(values, weights).argmax(axis=1)
    stays = np.zeros(len(first))
    for _ in range(repetitions):
        drawn = rng.multinomial(Q, np.full(Q, 1.0 / Q))
        stays += _means(values, weights * drawn).argmax(axis=1) == first
    shares: list[float] = (stays / repetitions).tolist()
    return shares


def _noised_again(
    criteria: tuple[Measure, ...],
    target: Measure,
    scores: list[Array],
    data: RankingData,
    profile: NoiseProfile,
    repetitions: int,
    seed: int,
) -> tuple[FloatArray, FloatArray]:
    """Agreement and regret of each criterion, with the labels at hand as the truth."""
    truth = means_of((target,), scores, data.y, data)[0]
    rng = np.random.default_rng([seed, 2])
    agreement, regret = np.zeros(len(criteria)), np.zeros(len(criteria))
    for _ in range(repetitions):
        picks = means_of(criteria, scores, profile.sample(data.y, rng), data).argmax(axis=1)
        agreement += truth[picks] == truth.max()
        regret += truth.max() - truth[picks]
    return agreement / repetitions, regret / repetitions
