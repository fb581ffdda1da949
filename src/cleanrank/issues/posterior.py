"""The posterior of the true grade: how probable each grade is, given features, the given grade and the noise.

C grades; T[l, m] = P(given m | true l). With q_l(x) = P(true l | x), Bayes' rule says

    P(true l | x, given m) = q_l(x) T[l, m] / sum_k q_k(x) T[k, m].

q comes from models that never saw the row (``rankers/grade_model.py``), in one of two ways, ``rounds``:

1. A model of the given grade gives p = q T, which is solved for q under q >= 0 and sum q = 1. Where that has
   no solution, q is the one whose q T comes closest to p in Kullback-Leibler divergence.
2. q is learnt directly, as the maximiser of sum_i log sum_l q_l(x_i) T[l, given_i], so that no inversion is
   left that could blow up noise.

The default detector (``find_auto``) lets a second model learn the posterior from the features, again out of
fold, and applies Bayes' rule once more to what it says: a model that is taught beliefs does not chase single
wrong labels. Queries may then differ in how relevant their documents are (``bayes_by_query``). Where no T is
known, rows are ordered under the noise that is suspected, and labels are called issues if the least that must
be there says so too, see ``noise/assumed.py``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from cleanrank.errors import invalid
from cleanrank.issues.bayes import (
    bayes,
    bayes_by_error_rate,
    bayes_by_query,
    invert_noise,
    known_rows,
    likelihoods,
    settled,
)
from cleanrank.issues.confident import out_of_fold, self_confidence
from cleanrank.issues.document_noise import LEARNING, DocumentNoise, document_noise
from cleanrank.issues.feature_signal import feature_signal
from cleanrank.issues.table import EXPECTED, PROBABILITY, LabelIssues, expected_gains
from cleanrank.noise.anchors import FitPredict
from cleanrank.noise.assumed import assume_noise, suspected_noise
from cleanrank.noise.estimate import NoiseEstimate
from cleanrank.noise.gold_sheet import GoldAnswers, known_grades
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.ragged import segment_sum
from cleanrank.rankers.grade_model import Fit, cross_fit, fit_grades, fit_soft_grades, fit_true_grades
from cleanrank.types import Array, FloatArray, Progress, RankingData
from cleanrank.validation import check_integer, check_n_jobs, check_seed, one_of

EQUAL = 1e-9
DIFFERENCES = ("relevance", "errors")
CUT = 1009  # between the seeds of one cut of the queries and the next
PRIOR_ROWS = 100.0  # the order of doubts without gold rows counts as much as so many of them
MOST_ISSUES = 0.2  # of a grade, while the noise is assumed: its labels are presumed right for the most part


def find_auto(
    data: RankingData,
    *,
    noise: Any = None,
    known: npt.ArrayLike | None = None,
    probabilities: npt.ArrayLike | None = None,
    folds: int = 5,
    repeats: int = 1,
    queries_differ: str = "relevance",
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> LabelIssues:
    """Doubts labels by the posterior of the true grade, after a second model has learnt it.

    With ``noise``, doubt is P(given grade is wrong | features, given grade). Without it the noise is assumed
    from the data, and doubt orders rows but is no probability. Rows are ordered by the geometric mean of
    P(wrong) and the expected distance E|true - given| / (C - 1) under the noise that is suspected, so that
    labels likely wrong *and* far off come first; the probabilities of true grades and the suggested grades
    follow it too. How large doubts are follows from the least noise that must be there, and a label is an
    issue if another grade is likelier under both. Of a grade whose errors the order of grades does not show,
    a fifth at the most are issues: what is assumed is not enough to condemn it. Where the features tell
    nothing about the grades (``signal``) there are no issues but rows that are ``known`` to be wrong.

    n gold rows estimate the noise, but few of them leave it uncertain. So the order of rows that it gives is
    mixed with the order without gold rows, which counts as much as PRIOR_ROWS of them: a weighted geometric
    mean of a row's places in both.

    Args:
        data: judged rows.
        noise: a matrix, NoiseProfile or NoiseEstimate; an estimate that was refused counts as none. Or
            GoldAnswers, from which a matrix is estimated that keeps to the assumed one where rows are few.
        known: (N,) true grades where they are known (gold rows), -1 elsewhere; these teach and are certain,
            and tell how errors depend on the document (``document_noise.py``).
        probabilities: (N, C) out-of-fold probabilities of the given grades, when they are there already; not
            used where the noise is given.
        folds: parts that the queries are cut into.
        repeats: how often they are cut anew; predictions are means over the cuts.
        queries_differ: in how relevant their documents are, beyond what the features say ("relevance",
            ``bayes_by_query``), or in how often their labels are wrong ("errors", ``bayes_by_error_rate``):
            the same grades make a rich query of one and a misread query of the other.
        params: LightGBM parameters of the grade models.
        seed: for the folds and the models.
        n_jobs: threads.
        progress: called with (fold, folds).

    >>> import cleanrank as cr
    >>> noisy = cr.corrupt(cr.make_ranking(40, 5, docs_per_query=20, seed=0), rate=0.1, seed=1)
    >>> find_auto(noisy.data, folds=3).average_precision(noisy) > 2 * noisy.rate
    True
    """
    check_seed(seed)
    check_n_jobs(n_jobs)
    check_integer("repeats", repeats, least=1)
    by_errors = one_of("difference of queries", queries_differ, DIFFERENCES) == "errors"
    cuts = [seed + CUT * number for number in range(repeats)]
    options: dict[str, Any] = {"params": params, "seed": seed, "n_jobs": n_jobs}
    is_known = noise is not None and getattr(noise, "profile", noise) is not None
    if is_known and not isinstance(noise, GoldAnswers):
        signal = feature_signal(data, seed=seed, n_jobs=n_jobs)
        first = posterior_of(data, noise, known=known, folds=folds, **options)
        T, L, taught = first.noise.matrix, first.likelihood, first.probabilities
    else:
        every = [out_of_fold(data, probabilities, folds=folds, **{**options, "seed": cut}) for cut in cuts]
        p = np.mean(every, axis=0)
        signal = feature_signal(data, probabilities, seed=seed, n_jobs=n_jobs)
        if is_known:
            known = known_grades(data, noise)
            p = np.pad(p, ((0, 0), (0, max(int(noise.true_grades.max()) + 1 - p.shape[1], 0))))
            T = noise.estimate(
                data, n_grades=p.shape[1], seed=seed, assumed=suspected_noise(p, data.y)
            ).matrix
        else:
            assumed = assume_noise(data, p, has_signal=signal.is_shown)
            T, least = assumed.suspected, assumed.least
        L = known_rows(likelihoods(data.y, T), known)
        taught = bayes(invert_noise(p, T, n_jobs), L)
    learnt = [
        cross_fit(
            data, partial(fit_soft_grades, **{**options, "seed": cut}), folds, targets=taught, seed=cut,
            calibrate=L if is_known else None, progress=progress,
        )[0] for cut in cuts
    ]  # fmt: skip
    q = np.mean(learnt, axis=0)
    if by_errors:
        W, of_query = bayes_by_error_rate(q, data.y, T, data.indptr), q
    else:
        W, of_query = bayes_by_query(q, likelihoods(data.y, T), data.indptr)
    if known is not None:
        documents = document_noise(data, W, of_query, T, known, seed=seed)
        W = settled(documents.posterior(data, W, of_query, T), known)
    table = posterior_table(data, W)
    reasons = {**table.reasons, EXPECTED: q @ np.arange(W.shape[1])}
    if not is_known:
        order = _far_wrong(W, data.y)
        prior = invert_noise(p, least, n_jobs)
        if by_errors:
            W = bayes_by_error_rate(prior, data.y, least, data.indptr, known)
        else:
            W = bayes(prior, known_rows(likelihoods(data.y, least), known))
        is_wrong = table.is_label_issue & posterior_table(data, W).is_label_issue
        table = replace(
            table,
            is_label_issue=is_wrong,
            suggested_label=np.where(is_wrong, table.suggested_label, data.y),
            doubt=in_order_of(_far_wrong(W, data.y), order),
        )
        table = _most_doubted(table, known, assumed.surplus)
        reasons["confident"] = np.clip(1 - self_confidence(p, data.y), 0.0, 1.0)
    elif isinstance(noise, GoldAnswers):
        settings: dict[str, Any] = {"folds": folds, "repeats": repeats, "queries_differ": queries_differ}
        alone = find_auto(data, probabilities=p[:, : data.n_grades], **settings, **options)
        table = replace(table, doubt=_in_both_orders(table.doubt, alone.doubt, np.asarray(known)))
    table = replace(table, reasons=reasons)
    return table.with_signal(signal, known=known)


def _most_doubted(table: LabelIssues, known: npt.ArrayLike | None, surplus: FloatArray) -> LabelIssues:
    """Keeps the most doubted MOST_ISSUES of each grade without a surplus, and all rows known to be wrong."""
    certain = np.zeros(len(table), dtype=np.bool_) if known is None else np.asarray(known) >= 0
    issues = table.is_label_issue & certain
    for grade in np.unique(table.given_label):
        rows = np.flatnonzero(table.is_label_issue & ~certain & (table.given_label == grade))
        most = len(rows) if surplus[grade] > 0 else int(MOST_ISSUES * (table.given_label == grade).sum())
        issues[rows[np.argsort(-table.doubt[rows], kind="stable")[:most]]] = True
    suggested = np.where(issues, table.suggested_label, table.given_label)
    return replace(table, is_label_issue=issues, suggested_label=suggested)


def _far_wrong(probabilities: FloatArray, y: Array) -> FloatArray:
    """The geometric mean of P(wrong) and the expected distance between true and given grade: (N,)."""
    grades = np.arange(probabilities.shape[1])
    distance = (probabilities * abs(grades - y[:, None])).sum(axis=1) / (len(grades) - 1)
    wrong = 1 - probabilities[np.arange(len(y)), y]
    return np.asarray(np.sqrt(np.clip(wrong * distance, 0.0, 1.0)))


def in_order_of(values: FloatArray, order: FloatArray) -> FloatArray:
    """The values, dealt out again so that they rise with ``order``; rows tied there share their mean.

    >>> in_order_of(np.array([0.5, 0.1, 0.3]), np.array([1.0, 2.0, 3.0])).tolist()
    [0.1, 0.3, 0.5]
    """
    _, inverse, counts = np.unique(order, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means = segment_sum(np.sort(values), np.concatenate(([0], ends))) / counts
    return np.asarray(means[inverse.ravel()])


def places(doubt: FloatArray) -> FloatArray:
    """Places by ascending doubt, from 0 to 1; ties share the middle of theirs."""
    return np.asarray((rankdata(doubt) - 1) / max(len(doubt) - 1, 1))


def _in_both_orders(doubt: FloatArray, alone: FloatArray, known: Array) -> FloatArray:
    """Doubts that gold rows gave, in the order of these and of those without; gold rows keep theirs."""
    is_open = known < 0
    weight = (~is_open).sum() / ((~is_open).sum() + PRIOR_ROWS)
    order = places(doubt[is_open]) ** weight * places(alone[is_open]) ** (1 - weight)
    mixed = doubt.copy()
    mixed[is_open] = in_order_of(doubt[is_open], order)
    return mixed


def find_posterior(
    data: RankingData,
    *,
    noise: Any,
    rounds: int = 2,
    folds: int = 5,
    seed: int = 0,
    n_jobs: int = 1,
    fit_predict: FitPredict | None = None,
    known: npt.ArrayLike | None = None,
    calibrate: bool = True,
    params: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> LabelIssues:
    """Doubts each grade by its posterior: doubt = 1 - P(given grade is true | features, given grade).

    An issue is a row where another grade is more probable than the given one; that grade is suggested. The
    probability of every grade l is kept as the reason ``p_true_l``; ``clean(mode="posterior")`` reads it.

    Arguments are those of ``posterior_of``; ``rounds`` is 1 when ``fit_predict`` is given.

    >>> import cleanrank as cr
    >>> noisy = cr.corrupt(cr.make_ranking(30, 5, docs_per_query=20, seed=0), rate=0.1, seed=1)
    >>> table = find_posterior(noisy.data, noise=noisy.profile, folds=2)
    >>> table.average_precision(noisy) > noisy.rate
    True
    """
    posterior = posterior_of(
        data, noise, known=known, rounds=1 if fit_predict is not None else rounds, folds=folds, seed=seed,
        n_jobs=n_jobs, fit_predict=fit_predict, calibrate=calibrate, params=params, progress=progress,
    )  # fmt: skip
    table = posterior_table(data, posterior.probabilities)
    return table.with_signal(feature_signal(data, seed=seed, n_jobs=n_jobs), known=known)


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the features, the given grades and the noise say about the true grades."""

    noise: NoiseProfile
    likelihood: FloatArray  # (N, C) P(given grade of the row | true grade), one-hot where that is known
    probabilities: FloatArray  # (N, C) P(true grade | features, given grade)
    unjudged: FloatArray  # (N, C) the same as if no true grade were known
    others: tuple[FloatArray, ...]  # the same of further rows
    documents: DocumentNoise | None = None  # how errors depend on the document, as far as gold rows show


def posterior_of(
    data: RankingData,
    noise: Any,
    *,
    known: npt.ArrayLike | None = None,
    others: Sequence[RankingData] = (),
    n_grades: int = 2,
    rounds: int = 2,
    folds: int = 5,
    seed: int = 0,
    n_jobs: int = 1,
    fit_predict: FitPredict | None = None,
    probabilities: Sequence[FloatArray] | None = None,
    calibrate: bool = True,
    params: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Posterior:
    """The posterior of every row, from models that saw none of its query.

    Args:
        data: rows with given grades.
        noise: T (C, C), a NoiseProfile, or a NoiseEstimate, whose shares of true grades are a start.
        known: (N,) true grades where they are known, -1 elsewhere; known rows teach and are not doubted.
        others: further rows with given grades, of other queries (validation data).
        n_grades: the least number of grades that the noise must cover.
        rounds: 1 inverts the noise of the predicted given grades; 2 learns the true grades directly.
        folds: parts that the queries are cut into.
        seed: decides the folds and seeds the models.
        n_jobs: threads.
        fit_predict: (train, rows) -> (N, C) P(given grade), of the first round, in place of ``fit_grades``.
        probabilities: P(given grade), (N, C) out of fold, of the data and of each of the others, where they
            are there already; of the first round, and as they are.
        calibrate: rescale the out-of-fold probabilities, see ``grade_model.calibrated``.
        params: LightGBM parameters of the grade model that replace ``rankers.grade_model.DEFAULTS``.
        progress: called with (fold, folds).
    """
    check_seed(seed)
    check_n_jobs(n_jobs)
    for each in others:
        if each.n_features != data.n_features:
            raise invalid("others", f"must have the {data.n_features} features of the data", each.n_features)
    if rounds not in (1, 2):
        raise invalid("rounds", "must be 1 or 2", rounds)
    for name, value in (("fit_predict", fit_predict), ("probabilities", probabilities)):
        if value is not None and rounds == 2:
            raise invalid(name, "goes with rounds=1: the second round has a likelihood of its own", rounds)
    profile = NoiseProfile.of(noise, max(n_grades, *(each.n_grades for each in (data, *others))))
    T, C = profile.matrix, len(profile.matrix)
    L = known_rows(likelihoods(data.y, T), known)
    if known is None and np.ptp(T, axis=0).max() < EQUAL:
        rule = "must have rows that differ: with equal ones a given grade says nothing about the true one"
        remedy = "Judge rows again and estimate the noise from them."
        raise invalid("noise matrix", rule, f"{C} equal rows", remedy=remedy)
    options: dict[str, Any] = {"seed": seed, "n_jobs": n_jobs, "params": params}
    fit: Fit
    targets: FloatArray | None = None
    if rounds == 2:
        shares = noise.proportions if isinstance(noise, NoiseEstimate) else None
        fit, targets, observed = partial(fit_true_grades, shares=shares, **options), L, L
    else:
        fit = fit_predict or partial(fit_grades, n_grades=C, **options)
        observed = np.eye(C)[data.y]
    if probabilities is not None:
        q, *beside = probabilities
    else:
        q, beside = cross_fit(
            data, fit, folds, targets=targets, seed=seed, n_grades=C, others=others,
            calibrate=observed if calibrate else None, progress=progress,
        )  # fmt: skip
    if rounds == 1:
        q, *beside = (invert_noise(each, T, n_jobs) for each in (q, *beside))
    # What gold rows teach about documents would know their own answers.
    W = unjudged = bayes(q, likelihoods(data.y, T))
    documents = None
    if known is not None:
        documents = document_noise(data, unjudged, q, T, known, least_gain=LEARNING, seed=seed)
    rest = [bayes(prior, likelihoods(each.y, T)) for prior, each in zip(beside, others, strict=True)]
    if documents is not None:
        W = settled(documents.posterior(data, unjudged, q, T), known)
        sets = zip(others, rest, beside, strict=True)
        rest = [documents.posterior(each, of_matrix, prior, T) for each, of_matrix, prior in sets]
    return Posterior(profile, L, W, unjudged, tuple(rest), documents)


def with_expected_gains(
    train: RankingData,
    validation: RankingData | None,
    noise: Any,
    *,
    label_gain: Sequence[float] | None = None,
    **options: Any,
) -> tuple[Posterior, RankingData, RankingData | None]:
    """The posterior of training rows, and all rows with their expected gains under it.

    ``label_gain`` is the gain of each grade, 2^c - 1 when not given; ``options`` are those of
    ``posterior_of``.
    """
    others = [] if validation is None else [validation]
    if any(each.gains is not None for each in (train, *others)):
        raise invalid("data", "must have grades only to be given expected gains", "real-valued gains")
    posterior = posterior_of(train, noise, others=others, **options)
    parts = zip((train, *others), (posterior.probabilities, *posterior.others), strict=True)
    repaired = [replace(each, gains=expected_gains(p, label_gain)[0]) for each, p in parts]
    return posterior, repaired[0], repaired[1] if others else None


def posterior_table(data: RankingData, probabilities: FloatArray) -> LabelIssues:
    """The table of a posterior (N, C); ties go to the given grade."""
    rows = np.arange(data.n_docs)
    kept = probabilities[rows, data.y]
    likeliest = probabilities.argmax(axis=1)
    return LabelIssues.of(
        data,
        doubt=np.clip(1 - kept, 0.0, 1.0),
        is_label_issue=probabilities[rows, likeliest] > kept,
        suggested_label=likeliest,
        reasons={f"{PROBABILITY}{grade}": column for grade, column in enumerate(probabilities.T)},
    )
