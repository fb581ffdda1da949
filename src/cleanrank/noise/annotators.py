"""Noise from repeated judgements of the same items, by the model of Dawid and Skene (1979).

Item i has a true grade l with probability r_l; annotator a says m with probability T_a[l, m], independently
of the others given l. Hard items, on which everybody errs alike, and judges that err alike (language models
above all) break that independence and make T look better than it is: ``dependence.py`` looks for that, and an
estimate that rests on too few independent votes is not trusted.

What is identified. Three or more judgements per item identify T (up to the names of the grades, which are
fixed by letting annotators be right more often than not). Two do not: the table of pairs has C (C + 1) / 2
- 1 free numbers and (T, r) C^2 - 1. Then T = (1 - gamma) I + gamma M with a known pattern M of errors (a
*family*) is fitted, and tested against the table where there are three grades or more.

Intervals come from Gibbs sampling: true grades given (T, r), then (T, r) given the true grades.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from cleanrank.errors import invalid
from cleanrank.noise.agreement import Judgements, judgements
from cleanrank.noise.dependence import Dependence, error_dependence
from cleanrank.noise.estimate import NoiseEstimate, summarise, weak_prior
from cleanrank.noise.profiles import make_profile
from cleanrank.types import Array, FloatArray, IntArray
from cleanrank.validation import one_of

MODELS = {
    "auto": "dawid-skene where annotators are named and judged enough, else pooled, else a family",
    "dawid-skene": "a matrix for every annotator; at least three of them",
    "pooled": "one matrix for all; items with three judgements or more",
    "family": "one rate for all, errors as in a family of profiles; two judgements suffice",
}
FAMILIES = ("uniform", "geometric", "power", "adjacent")
ENOUGH_ITEMS = 30
ENOUGH_JUDGEMENTS = 20
CHAINS = 8
TABLES = 999
STREAM = 9021
TINY = 1e-12
REMEDY = "judge about 100 rows again and give them as gold (estimate_noise, combine_judges)"
Sweeps: TypeAlias = Iterator[tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, eq=False)
class DawidSkene:
    """A fit by expectation-maximisation.

    Attributes:
        annotators: names, in the order of ``matrices``.
        matrices: (A, C, C), row-stochastic; rows are true grades.
        proportions: (C,), shares of true grades.
        posterior: (I, C), probability of every true grade, item by item in the order of ``items``.
    """

    annotators: Array
    matrices: FloatArray
    proportions: FloatArray
    posterior: FloatArray
    items: Array
    log_likelihood: float
    iterations: int


def from_repeated(
    table: Any,
    *,
    model: str = "auto",
    family: str | None = None,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> NoiseEstimate:
    """The noise of one judgement, from items that were judged several times.

    Args:
        table: a frame or mapping with the columns item, grade and (if known) annotator, or Judgements.
        model: one of MODELS.
        family: the pattern of errors to assume when two judgements per item are all there is; without it
            "uniform" is tried and must pass a test.
        level: probability that an interval is meant to hold.
        draws: matrices drawn from the posterior.
        seed: same seed, same draws.

    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat(rng.choice(2, 300), 3)
    >>> said = np.where(rng.random(900) < 0.2, 1 - truth, truth)
    >>> estimate = from_repeated({"item": np.repeat(np.arange(300), 3), "grade": said})
    >>> bool(abs(estimate.rate - 0.2) < 0.05)
    True
    """
    judged = judgements(table)
    one_of("model", model, MODELS)
    if family is not None:
        one_of("family", family, FAMILIES)
    if not (judged.per_item.sum(axis=1) > 1).any():
        raise invalid("judgements", "must hold two judgements of some item", "none")
    model = _model(judged, model)
    if model == "family":
        assumed = family or "uniform"
        pattern = make_profile(assumed, 1.0, judged.n_grades).matrix
        T, r = _gibbs_pooled(judged, draws, seed, _one_rate(pattern))
        reasons, fits = _family_verdict(judged, T.mean(axis=0), r.mean(axis=0), assumed, seed)
        trusted = fits is True or (fits is None and family is not None)
    else:
        fit = dawid_skene(judged, seed=seed)
        if model == "dawid-skene":
            by_annotator, r = _gibbs_annotators(judged, fit, draws, seed)
            share = np.bincount(judged.annotator) / len(judged)
            T = np.einsum("a,sacd->scd", share, by_annotator)
        else:
            prior = weak_prior(judged.n_grades)
            T, r = _gibbs_pooled(judged, draws, seed, lambda seen, rng: _dirichlet(seen + prior, rng))
        reasons = _exchanged(T.mean(axis=0))
        dependence = judged_dependence(judged, fit)
        if dependence.is_high:
            reasons += [*dependence.reasons, REMEDY]
        trusted = not reasons
    answers = r.mean(axis=0) * len(judged.items)
    return summarise(
        "repeated", T, r, len(judged), level=level, answers=answers, trusted=trusted, reasons=reasons
    )


def annotator_noise(
    table: Any, *, level: float = 0.95, draws: int = 1000, seed: int = 0
) -> dict[str, NoiseEstimate]:
    """The noise of every annotator on their own, by name."""
    judged = judgements(table)
    check_enough(judged)
    T, r = _gibbs_annotators(judged, dawid_skene(judged, seed=seed), draws, seed)
    counts = np.bincount(judged.annotator)
    estimates = {}
    for a, name in enumerate(judged.annotators):
        n, reasons = int(counts[a]), _exchanged(T[:, a].mean(axis=0))
        answers = r.mean(axis=0) * n
        estimates[str(name)] = summarise(
            "repeated", T[:, a], r, n, level=level, answers=answers, reasons=reasons
        )
    return estimates


def dawid_skene(
    table: Any,
    *,
    known: IntArray | None = None,
    starts: int = 5,
    seed: int = 0,
    iterations: int = 500,
    tolerance: float = 1e-8,
) -> DawidSkene:
    """Fits the model by expectation-maximisation in log space, the best of several starts.

    The first start is the share of votes; the others mix it with random ones. The names of the true grades
    are then exchanged so that annotators agree with them as often as possible.

    Args:
        table: as ``judgements`` takes it.
        known: true grade of every item, -1 where it is not known; with it the names are those of the known.
        starts: how many.
        seed: of the random starts.
        iterations: at most, of each start.
        tolerance: relative change of the log-likelihood at which a start has come to its end.
    """
    judged = judgements(table)
    said, A = _said(judged), max(len(judged.annotators), 1)
    votes = judged.per_item / judged.per_item.sum(axis=1, keepdims=True)
    fixed = np.full(len(votes), -1) if known is None else known
    given = np.union1d(judged.grade, fixed[fixed >= 0])  # a grade that nobody gave is no true grade
    rng = np.random.default_rng([seed, STREAM])
    best: tuple[float, FloatArray, int] = (-np.inf, votes, 0)
    for start in range(max(starts, 1)):
        noise = np.zeros_like(votes)
        noise[:, given] = rng.dirichlet(np.ones(len(given)), size=len(votes))
        posterior = votes if start == 0 else 0.5 * votes + 0.5 * noise
        fit = _expectation_maximisation(said, A, _known(posterior, fixed), fixed, iterations, tolerance)
        if fit[0] > best[0] + 1e-6:
            best = fit
    value, posterior, steps = best
    matrices, _ = _maximise(said, A, posterior)
    if not (fixed >= 0).any():
        shares = np.bincount(judged.annotator, minlength=A) / len(judged)
        order = _names(np.einsum("a,acd->cd", shares, matrices))
        matrices, posterior = matrices[:, order], posterior[:, order]
    r = posterior.mean(axis=0)
    return DawidSkene(judged.annotators, matrices, r, posterior, judged.items, value, steps)


def check_enough(judged: Judgements) -> None:
    """Raises where there are too few annotators or judgements for a matrix of every annotator."""
    _model(judged, "dawid-skene")


def judged_dependence(judged: Judgements, fit: DawidSkene, level: float = 0.95) -> Dependence:
    """How far annotators err together beyond what a fit explains."""
    return error_dependence(
        judged.item,
        judged.annotator,
        judged.grade,
        fit.posterior,
        judged.annotators,
        source="judgements",
        level=level,
    )


def _model(judged: Judgements, model: str) -> str:
    """The model to fit; an error when there are too few judgements for the named one."""
    thrice = int((judged.per_item.sum(axis=1) >= 3).sum())
    A = len(judged.annotators)
    if model == "auto":
        if A >= 3 and thrice >= ENOUGH_ITEMS and np.bincount(judged.annotator).min() >= ENOUGH_JUDGEMENTS:
            return "dawid-skene"
        return "pooled" if thrice >= ENOUGH_ITEMS else "family"
    remedy = "Let more people judge them, or use model='family'."
    if model == "dawid-skene" and A < 3:
        raise invalid("judgements", "must come from three or more named annotators", A, remedy=remedy)
    if model in ("dawid-skene", "pooled") and thrice < ENOUGH_ITEMS:
        rule = f"must hold {ENOUGH_ITEMS} items with three judgements"
        raise invalid("judgements", rule, thrice, remedy=remedy)
    return model


def _exchanged(mean: FloatArray) -> list[str]:
    """Where a grade is given to another grade's documents more often than to its own."""
    why = "the grades' names cannot be told apart, or the judgements are worse than useful"
    pairs = [(g, int(top)) for g, top in enumerate(mean.argmax(axis=1)) if top != g]
    return [f"documents of true grade {g} get grade {top} more often than {g}: {why}" for g, top in pairs]


def _family_verdict(
    judged: Judgements, T: FloatArray, r: FloatArray, family: str, seed: int
) -> tuple[list[str], bool | None]:
    """Tests the table of pairs against the family: True fits, False does not, None cannot be tested.

    Pearson's statistic is compared with tables simulated from the fit, since many cells expect few pairs.
    """
    reasons = [f"two judgements per item do not identify the matrix: a {family} family was assumed"]
    counts = judged.per_item
    twice = counts[counts.sum(axis=1) == 2]
    C = judged.n_grades
    if C < 3 or len(twice) < ENOUGH_ITEMS:
        return [*reasons, "the assumption could not be tested (two grades, or too few pairs)"], None
    joint = T.T @ np.diag(r) @ T
    upper = np.triu_indices(C)
    expected = (joint + joint.T - np.diag(np.diag(joint)))[upper]
    expected = expected / expected.sum()
    observed = np.zeros((C, C))
    low, high = (twice > 0).argmax(axis=1), C - 1 - (twice[:, ::-1] > 0).argmax(axis=1)
    np.add.at(observed, (low, high), 1.0)
    simulated = np.random.default_rng([seed, STREAM]).multinomial(len(twice), expected, size=TABLES)
    pairs = np.maximum(expected * len(twice), TINY)
    distance = ((np.vstack([observed[upper], simulated]) - pairs) ** 2 / pairs).sum(axis=1)
    p = float((distance >= distance[0] - 1e-9).mean())
    if p < 0.01:
        return [*reasons, f"the agreement table does not fit it (p = {p:.2g})"], False
    return [*reasons, f"the agreement table fits it (p = {p:.2f})"], True


def _said(judged: Judgements) -> Any:
    """(A C, I) sparse: which annotator said which grade of which item."""
    from scipy.sparse import csr_matrix

    shape = max(len(judged.annotators), 1) * judged.n_grades, len(judged.items)
    rows = judged.annotator * judged.n_grades + judged.grade
    return csr_matrix((np.ones(len(judged)), (rows, judged.item)), shape=shape)


def _maximise(
    said: Any, A: int, posterior: FloatArray, smoothing: float = 0.01
) -> tuple[FloatArray, FloatArray]:
    C = posterior.shape[1]
    counts = (said @ posterior).reshape(A, C, C).transpose(0, 2, 1) + smoothing
    return counts / counts.sum(axis=2, keepdims=True), posterior.mean(axis=0)


def _expectation_maximisation(
    said: Any, A: int, posterior: FloatArray, known: IntArray, iterations: int, tolerance: float
) -> tuple[float, FloatArray, int]:
    C = posterior.shape[1]
    value, steps = -np.inf, 0
    while steps < iterations:
        steps += 1
        matrices, r = _maximise(said, A, posterior)
        log = said.T @ np.log(matrices).transpose(0, 2, 1).reshape(A * C, C) + np.log(np.maximum(r, TINY))
        top = log.max(axis=1, keepdims=True)
        weight = np.exp(log - top)
        total = weight.sum(axis=1, keepdims=True)
        posterior = _known(weight / total, known)
        before, value = value, float((top + np.log(total)).sum())
        if abs(value - before) <= tolerance * abs(value):
            break
    return value, posterior, steps


def _known(posterior: FloatArray, known: IntArray) -> FloatArray:
    """The posterior with certainty where a true grade is known."""
    rows = known >= 0
    if rows.any():
        posterior = posterior.copy()
        posterior[rows] = np.eye(posterior.shape[1])[known[rows]]
    return posterior


def _names(pooled: FloatArray) -> IntArray:
    """The order of true grades that puts as much as possible on the diagonal."""
    from scipy.optimize import linear_sum_assignment

    rows, grades = linear_sum_assignment(-pooled)
    order = np.empty(len(rows), dtype=np.int64)
    order[grades] = rows
    return order


def _gibbs_annotators(
    judged: Judgements, fit: DawidSkene, draws: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """(draws, A, C, C) and (draws, C), from CHAINS chains that start at the best fit."""
    said, A, C = _said(judged), len(judged.annotators), judged.n_grades
    back = said.T.tocsr()
    rng = np.random.default_rng([seed, STREAM])
    prior, base = weak_prior(C), C * judged.per_item.sum(axis=0) / len(judged)

    def sweeps() -> Sweeps:
        T = np.repeat(fit.matrices[None], CHAINS, axis=0)
        r = np.repeat(np.maximum(fit.proportions, TINY)[None], CHAINS, axis=0)
        while True:
            table = np.log(np.maximum(T, TINY)).transpose(1, 3, 0, 2).reshape(A * C, CHAINS * C)
            log = (back @ table).reshape(-1, CHAINS, C) + np.log(np.maximum(r, TINY))
            truth = _one_hot_draws(log, rng)
            seen = (said @ truth.reshape(-1, CHAINS * C)).reshape(A, C, CHAINS, C).transpose(2, 0, 3, 1)
            T = _dirichlet(seen + prior, rng)
            r = _dirichlet(truth.sum(axis=0) + base, rng)
            yield T, r

    return _thinned(sweeps(), draws, burn=100, thin=3)


def _gibbs_pooled(
    judged: Judgements, draws: int, seed: int, update: Callable[[FloatArray, np.random.Generator], FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """(draws, C, C) and (draws, C); items with the same counts of grades are handled together.

    ``update`` draws T from counts (CHAINS, C, C) of true and given grades.
    """
    patterns, times = np.unique(judged.per_item, axis=0, return_counts=True)
    rng = np.random.default_rng([seed, STREAM])
    base = judged.n_grades * judged.per_item.sum(axis=0) / len(judged)
    start = patterns / patterns.sum(axis=1, keepdims=True)

    def sweeps() -> Sweeps:
        truth = np.repeat((start * times[:, None])[None], CHAINS, axis=0)
        while True:
            T = update(np.einsum("kpl,pm->klm", truth, patterns), rng)
            r = _dirichlet(truth.sum(axis=1) + base, rng)
            yield T, r
            log = np.einsum("pm,klm->kpl", patterns, np.log(np.maximum(T, TINY)))
            log = log + np.log(np.maximum(r, TINY))[:, None]
            weight = np.exp(log - log.max(axis=2, keepdims=True))
            truth = rng.multinomial(times, weight / weight.sum(axis=2, keepdims=True)).astype(np.float64)

    return _thinned(sweeps(), draws, burn=200, thin=4)


def _thinned(sweeps: Sweeps, draws: int, burn: int, thin: int) -> tuple[FloatArray, FloatArray]:
    """Every ``thin``-th (T, r) of all chains after the first ``burn`` sweeps."""
    stop = burn + thin * -(-draws // CHAINS)
    T, r = zip(*itertools.islice(sweeps, burn + thin - 1, stop, thin), strict=True)
    return np.concatenate(T)[:draws], np.concatenate(r)[:draws]


def _one_rate(pattern: FloatArray) -> Callable[[FloatArray, np.random.Generator], FloatArray]:
    """T = (1 - gamma) I + gamma M; gamma given the true grades is Beta, below that of blind guessing."""
    C = len(pattern)
    most = (C - 1) / C

    def update(seen: FloatArray, rng: np.random.Generator) -> FloatArray:
        right = np.trace(seen, axis1=1, axis2=2)
        gamma = np.minimum(rng.beta(seen.sum(axis=(1, 2)) - right + 0.5, right + 2.0), most)
        T: FloatArray = (1 - gamma)[:, None, None] * np.eye(C) + gamma[:, None, None] * pattern
        return T

    return update


def _dirichlet(weights: FloatArray, rng: np.random.Generator) -> FloatArray:
    gammas = rng.standard_gamma(weights) + 1e-300
    shares: FloatArray = gammas / gammas.sum(axis=-1, keepdims=True)
    return shares


def _one_hot_draws(log: FloatArray, rng: np.random.Generator) -> FloatArray:
    """One-hot draws from unnormalised log probabilities along the last axis."""
    weight = np.exp(log - log.max(axis=-1, keepdims=True))
    steps = np.cumsum(weight, axis=-1)
    drawn = (rng.random(log.shape[:-1])[..., None] * steps[..., -1:] >= steps).sum(axis=-1)
    one_hot: FloatArray = (np.arange(log.shape[-1]) == drawn[..., None]).astype(np.float64)
    return one_hot
