"""What systems are worth under gold labels, from a judge's labels on everything and gold labels on some.

Gold labels may cover whole queries (``queries``) or a sample of documents (``documents``); ``design`` says
which. Estimates are unbiased whatever the judge is worth, up to what ``documents`` says of ratios; a good
judge makes intervals narrow. Intervals use Student's t, never the normal distribution: with n - 2 degrees of
freedom for n whole queries, with those of Satterthwaite (1946) for sampled documents.
"""

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from cleanrank.errors import NonRandomGoldWarning, invalid
from cleanrank.judges.design import Design, design_of
from cleanrank.judges.documents import Parts, grade_values, parts
from cleanrank.judges.labels import Mapped
from cleanrank.judges.queries import TARGETS, gold_means, powered_means
from cleanrank.metrics.measure import MeasureLike, discount
from cleanrank.metrics.significance import checked_count, holm
from cleanrank.types import FloatArray, plain
from cleanrank.validation import check_number, check_seed, one_of

INTERVALS = ("t", "bootstrap-t")
STREAM = 9153
BLOCK = 500  # resamples at a time
FEWEST_RESAMPLED = 5  # values; of fewer, resamples say next to nothing, and intervals are Student's
ROUNDING = 1e-12  # errors below this share of the values are none


@dataclass(frozen=True)
class Estimate:
    """A mean over queries with its interval."""

    mean: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """Of the interval."""
        return self.high - self.low


@dataclass(frozen=True, repr=False)
class JudgedEvaluation(Estimate):
    """The mean of a measure under gold labels, or the difference of two systems' means.

    Attributes:
        mean: the estimate.
        low: lower end of its interval.
        high: upper end.
        system: the name of the system; of a difference, ``"NAME - BASELINE"``.
        measure: as text.
        gold_only: from the gold labels alone.
        judge_only: from the judge's labels alone; no interval can be given for it.
        level: of the intervals.
        target: "these queries" or "queries like these".
        design: how gold labels were chosen, one of ``judges.design.DESIGNS``.
        n_queries: all queries.
        n_gold: gold queries, or gold documents.
        effective_gold: as many would be needed for an interval as narrow from gold labels alone.
        p_value: of a difference: the probability of one as large where there is none; corrected by Holm's
            method where several systems are compared.
        notes: what a reader must know, in words.
    """

    system: str
    measure: str
    gold_only: Estimate
    judge_only: float
    level: float
    target: str
    design: str
    n_queries: int
    n_gold: int
    effective_gold: float
    p_value: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def width_ratio(self) -> float:
        """The width of the interval against that from gold labels alone."""
        return self.width / self.gold_only.width if self.gold_only.width > 0 else 1.0

    def to_json(self) -> dict[str, Any]:
        """All figures as plain values; None for those that are not finite."""
        record: dict[str, Any] = plain(asdict(self) | {"width_ratio": self.width_ratio})
        return record

    def __repr__(self) -> str:
        gold, unit = self.gold_only, "queries" if self.design == "queries" else "documents"
        p = "" if self.p_value is None else f"; p = {self.p_value:.2g}"
        return (
            f"{self.system}: {self.measure} {self.mean:.4f} [{self.low:.4f}, {self.high:.4f}] for "
            f"{self.target}; "
            f"gold labels alone {gold.mean:.4f} [{gold.low:.4f}, {gold.high:.4f}], the judge alone "
            f"{self.judge_only:.4f}; {self.n_gold:,} gold {unit} count as {self.effective_gold:,.0f}{p}"
        )


def evaluate_with_judge(
    runs: Any,
    *,
    judge: Any,
    gold: Any,
    measure: MeasureLike = "ndcg@10",
    target: str = "these queries",
    design: str = "auto",
    interval: str = "t",
    unjudged: str = "zero",
    mapping: Mapped = None,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Any:
    """The mean of a measure under gold labels, with a valid interval.

    Args:
        runs: one system or several: files, frames (qid, docid, score), mappings {query: {document: score}},
            a folder of runs, a mapping from names; or scores of the rows of a RankingData that ``judge`` is.
        judge: labels of all pairs: a file, a frame (qid, docid, grade), a mapping {query: {document: grade}},
            or a RankingData.
        gold: labels of some of them by somebody who is right, likewise; a column ``probability`` says with
            which probability a pair was drawn. Beside a RankingData also (row ids, grades).
        measure: such as "ndcg@10"; runs are measured by the convention ``trec`` unless it names another.
        target: "these queries", the mean over the queries of the judge; or "queries like these", the mean
            over a population that they are a random sample of.
        design: how gold labels were chosen: "queries" (whole queries at random), "documents" (pairs with the
            probabilities stated), "stratified" (pairs at random, among all or within the judge's grades); or
            "auto".
        interval: "t" (Student), or "bootstrap-t", which allows for skewed values where there are at least 5.
        unjudged: documents that nobody labelled count 0 ("zero") or are taken out of the rankings ("drop").
        mapping: grades of the judge's values where its scale is another one: a value gets the grade of the
            largest key that is not above it.
        level: of the intervals.
        resamples: of the bootstrap.
        seed: of the bootstrap, and of grades that are drawn for NDCG and recall.

    Returns:
        A JudgedEvaluation; for several systems a mapping from their names.

    >>> judge = {f"q{i}": {"a": 2, "b": 1, "c": 0} for i in range(8)}
    >>> gold = {f"q{i}": {"a": 2, "b": i % 2, "c": 0} for i in range(5)}
    >>> run = {f"q{i}": {"b": 3, "a": 2, "c": 1} for i in range(8)}
    >>> estimate = evaluate_with_judge(run, judge=judge, gold=gold, measure="ndcg@10")
    >>> estimate.design, estimate.n_gold, bool(estimate.low < estimate.mean < estimate.high)
    ('queries', 5, True)
    """
    chosen = design_of(runs, judge, gold, measure, kind=design, unjudged=unjudged, mapping=mapping)
    settings = _Settings.of(target, interval, level, resamples, seed)
    results = _estimates(chosen, settings, {name: (s, None) for s, name in enumerate(chosen.pool.systems)})
    return next(iter(results.values())) if len(results) == 1 else results


def compare_with_judge(
    runs: Any,
    *,
    judge: Any,
    gold: Any,
    measure: MeasureLike = "ndcg@10",
    baseline: str | None = None,
    target: str = "these queries",
    design: str = "auto",
    interval: str = "t",
    unjudged: str = "zero",
    mapping: Mapped = None,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Any:
    """The difference of two systems' means under gold labels, paired by query, with a valid interval.

    Args:
        runs: two systems or more, as in ``evaluate_with_judge``.
        judge: labels of all pairs.
        gold: labels of some of them by somebody who is right.
        measure: such as "ndcg@10".
        baseline: the system that the others are compared with; the first when not given.
        target: as in ``evaluate_with_judge``, and so are the arguments below.
        design: how gold labels were chosen.
        interval: "t" or "bootstrap-t".
        unjudged: "zero" or "drop".
        mapping: grades of the judge's values.
        level: of the intervals.
        resamples: of the bootstrap.
        seed: of the bootstrap and of drawn grades.

    Returns:
        A JudgedEvaluation of system minus baseline; for three systems or more a mapping from their names.

    >>> judge = {f"q{i}": {"a": 2, "b": 1, "c": 0} for i in range(8)}
    >>> gold = {f"q{i}": {"a": 2, "b": i % 2, "c": 0} for i in range(5)}
    >>> runs = {"old": {q: {"b": 2, "a": 1} for q in judge}, "new": {q: {"a": 2, "b": 1} for q in judge}}
    >>> difference = compare_with_judge(runs, judge=judge, gold=gold)
    >>> difference.system, bool(difference.low > 0)
    ('new - old', True)
    """
    chosen = design_of(runs, judge, gold, measure, kind=design, unjudged=unjudged, mapping=mapping)
    settings = _Settings.of(target, interval, level, resamples, seed)
    systems = chosen.pool.systems
    if len(systems) < 2:
        raise invalid("runs", "must be two systems or more to be compared", len(systems))
    first = systems.index(systems[0] if baseline is None else one_of("baseline", baseline, systems))
    pairs = {name: (s, first) for s, name in enumerate(systems) if s != first}
    results = _estimates(chosen, settings, pairs)
    return next(iter(results.values())) if len(results) == 1 else results


@dataclass(frozen=True)
class _Settings:
    target: str
    interval: str
    level: float
    resamples: int
    seed: int

    @classmethod
    def of(cls, target: str, interval: str, level: float, resamples: int, seed: int) -> "_Settings":
        check_number("level", level, above=0, below=1)
        check_seed(seed)
        one_of("target", target, TARGETS)
        one_of("interval", interval, INTERVALS)
        return cls(target, interval, level, checked_count("resamples", resamples), seed)


@dataclass(frozen=True, eq=False)
class _Mean:
    """A mean, its standard error and degrees of freedom.

    ``values`` are those whose spread the error comes from; ``unseen`` is the share of all that they say
    nothing of, which matters where they are all equal and so have no spread.
    """

    mean: float
    error: float
    df: float
    values: FloatArray
    unseen: float = 0.0

    def __post_init__(self) -> None:
        if self.error <= ROUNDING * np.abs(self.values).max(initial=abs(self.mean)):
            object.__setattr__(self, "error", 0.0)

    def estimate(self, reach: tuple[float, float], level: float, bounds: tuple[float, float]) -> Estimate:
        """The interval that reaches so many standard errors below and above the mean, within the bounds."""
        mean = float(np.clip(self.mean, *bounds))
        if self.error == 0:
            # n equal values: at most this share of the others differs, at the level of one side.
            share = self.unseen * (1 - ((1 - level) / 2) ** (1 / max(len(self.values), 1)))
            low, high = (mean + (each - mean) * share if share else mean for each in bounds)
            return Estimate(mean, low, high)
        low, high = np.clip((self.mean - reach[0] * self.error, self.mean + reach[1] * self.error), *bounds)
        return Estimate(mean, float(low), float(high))

    def p_value(self) -> float:
        if self.error == 0:
            return float(self.mean == 0 or self.unseen > 0)
        return float(2 * stats.t.sf(abs(self.mean) / self.error, max(self.df, 1.0)))


Pair = tuple[int, int | None]  # a system, and the one whose mean is subtracted


def _estimates(design: Design, settings: _Settings, pairs: Mapping[str, Pair]) -> dict[str, JudgedEvaluation]:
    means = (_from_queries if design.kind == "queries" else _from_documents)(design, settings, pairs.values())
    notes = (*design.notes, *((design.warning,) if design.warning else ()))
    if design.warning:
        warnings.warn(design.warning, NonRandomGoldWarning, stacklevel=3)
    reaches = iter(_reaches([each for both in means for each in both[:2]], settings))
    of_all = 1 / design.n_all if settings.target == TARGETS[0] else 0.0  # with all of them nothing is unknown
    results = {}
    for (name, pair), (judged, gold, alone) in zip(pairs.items(), means, strict=True):
        bounds, level = _bounds(design, pair, settings), settings.level
        estimate, gold_only = (each.estimate(next(reaches), level, bounds) for each in (judged, gold))
        other = "" if pair[1] is None else f" - {design.pool.systems[pair[1]]}"
        known = 0 < judged.error < np.inf and 0 < gold.error < np.inf
        narrower = (gold.error / judged.error) ** 2 if known else 1.0
        results[name] = JudgedEvaluation(
            mean=estimate.mean,
            low=estimate.low,
            high=estimate.high,
            system=f"{name}{other}",
            measure=str(design.measure),
            gold_only=gold_only,
            judge_only=alone,
            level=settings.level,
            target=settings.target,
            design=design.kind,
            n_queries=design.pool.n_queries,
            n_gold=design.n_gold,
            effective_gold=1 / (of_all + (1 / design.n_gold - of_all) / narrower),
            p_value=None if pair[1] is None else judged.p_value(),
            notes=notes,
        )
    if len(results) > 1:
        p_values = [each.p_value for each in results.values() if each.p_value is not None]
        for name, p in zip(results, holm(p_values) if p_values else (), strict=bool(p_values)):
            results[name] = replace(results[name], p_value=float(p))
    return results


def _bounds(design: Design, pair: Pair, settings: _Settings) -> tuple[float, float]:
    """What a mean, or a difference, can be at all."""
    measure, low, high = design.measure, 0.0, 1.0
    if measure.name == "dcg":
        depth = measure.cutoff or int(np.diff(design.pool.indptr).max())
        top_gain = grade_values(measure, int(design.pool.grades.max()) + 1)[-1]
        high = float(top_gain * discount(str(measure.discount), depth).sum())
    elif measure.name == "tau":
        low = -1.0
    if pair[1] is None:
        return low, high
    share = float(design.differing(pair[0], pair[1]).mean()) if settings.target == TARGETS[0] else 1.0
    return share * (low - high), share * (high - low)


def _from_queries(
    design: Design, settings: _Settings, pairs: Collection[Pair]
) -> list[tuple[_Mean, _Mean, float]]:
    """With the judge, from gold queries alone, from the judge alone: for each pair."""
    judge, gold, whole = design.judge_values, design.gold_values, design.whole
    results = []
    for a, b in pairs:
        f = judge[a] if b is None else judge[a] - judge[b]
        y = gold[a] if b is None else gold[a] - gold[b]
        counted = np.ones(len(whole), dtype=np.bool_)
        if b is not None and settings.target == TARGETS[0]:
            # Where two rankings are the same, so are the values under any labels: nothing to estimate.
            counted = design.differing(a, b)
        g, rest, share = whole & counted, ~whole & counted, float(counted.mean())
        if not counted.any():
            equal = _Mean(0.0, 0.0, 1.0, y[g])
            results.append((equal, equal, 0.0))
            continue
        if g.sum() < 2 and rest.any():
            unknown = _Mean(float(f.mean()), np.inf, 1.0, y[g])
            results.append((unknown, unknown, float(f.mean())))
            continue
        unseen = float(rest.sum() / counted.sum()) if settings.target == TARGETS[0] else 1.0
        with_judge, alone = (
            _Mean(share * m.mean[0], share * m.standard_error[0], m.df[0], m.residuals[0], unseen)
            for m in (
                powered_means(y[None, g], f[None, g], f[None, rest], settings.target),
                gold_means(y[None, g], int(rest.sum()), settings.target),
            )
        )
        results.append((with_judge, alone, float(f.mean())))
    return results


def _from_documents(
    design: Design, settings: _Settings, pairs: Collection[Pair]
) -> list[tuple[_Mean, _Mean, float]]:
    """With the judge, from gold labels alone, from the judge alone: for each pair."""
    frame, judge = design.frame(), design.judge_values.mean(axis=1)
    estimates = [parts(frame, design.measure, use_judge=use, seed=settings.seed) for use in (True, False)]
    results = []
    for a, b in pairs:
        with_judge, alone = (_sampled_mean(each, a, b, settings) for each in estimates)
        results.append((with_judge, alone, float(judge[a] if b is None else judge[a] - judge[b])))
    return results


def _sampled_mean(each: Parts, a: int, b: int | None, settings: _Settings) -> _Mean:
    side = np.zeros(len(each.by_query))
    side[a] = 1.0
    if b is not None:
        side[b] = -1.0
    by_query = side @ each.corrected
    n = len(by_query)
    if settings.target == TARGETS[1]:
        if n < 2:
            remedy = f"Estimate the mean over {TARGETS[0]}: target={TARGETS[0]!r}."
            raise invalid("queries", f"must be at least 2 to speak of {TARGETS[1]}", n, remedy=remedy)
        return _Mean(float(by_query.mean()), float(by_query.std(ddof=1) / np.sqrt(n)), n - 1, by_query)
    variance, df = each.variances(side[None])
    unseen = float((each.probability < 1).any())
    return _Mean(float(by_query.mean()), float(np.sqrt(variance[0])), df[0], side @ each.spread, unseen)


def _reaches(means: Sequence[_Mean], settings: _Settings) -> list[tuple[float, float]]:
    """How many standard errors an interval reaches below and above each mean."""
    df = np.array([max(each.df, 1.0) for each in means])
    reach = np.atleast_1d(stats.t.ppf(0.5 + settings.level / 2, df))
    reaches = [(float(each), float(each)) for each in reach]
    if settings.interval == "bootstrap-t":
        by_size: dict[int, list[int]] = {}
        for k, each in enumerate(means):
            enough = len(each.values) >= FEWEST_RESAMPLED and np.ptp(each.values) > 0
            if enough and 0 < each.error < np.inf:
                by_size.setdefault(len(each.values), []).append(k)
        for places in by_size.values():
            quantiles = _studentised(np.array([means[k].values for k in places]), settings)
            for k, (low, high) in zip(places, quantiles.T, strict=True):
                reaches[k] = float(max(high, 0.0)), float(max(-low, 0.0))
    return reaches


def _studentised(values: FloatArray, settings: _Settings) -> FloatArray:
    """(2, K): lower and upper quantiles of Student's t of resampled rows of values (K, n)."""
    rng = np.random.default_rng([settings.seed, STREAM])
    n, tail, t = values.shape[1], (1 - settings.level) / 2, []
    centred = values - values.mean(axis=1, keepdims=True)
    for start in range(0, settings.resamples, BLOCK):
        size = min(BLOCK, settings.resamples - start)
        drawn = rng.integers(0, n, (size, n)) + np.arange(size)[:, None] * n
        times = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)
        mean, square = times @ centred.T / n, times @ (centred**2).T / n
        spread = np.sqrt(np.maximum(square - mean**2, 0.0) / (n - 1))
        t.append(np.where(spread > 1e-12 * np.abs(mean), mean / np.where(spread > 0, spread, 1.0), np.nan))
    return np.asarray(np.nanquantile(np.concatenate(t), [tail, 1 - tail], axis=0))
