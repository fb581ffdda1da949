"""The default detector: a posterior under the noise that is known, or under the least that can be assumed.

1. p(given grade | x), cross-fitted. With a noise matrix T the posterior P(true | x, given) follows by Bayes'
   rule (``posterior.py``). Without one, T is *assumed* (below).
2. A second forest learns that posterior from the features, again out of fold, and Bayes' rule is applied once
   more to what it says. A forest that is taught beliefs does not chase single wrong labels.

The assumed matrix is read off *anchors*, the rows most surely of grade 0. Hard documents look like noise
between neighbouring grades, but a grade that anchors are given more often than the grade below it cannot be
due to hardness. So t, the smallest share of a grade among them, is taken for every error; a grade m > 1 given
more often than m - 1 keeps its own share; and since anchors of grade 0 show nothing about relevant documents
that were missed, these become 0 with probability MISSED at least. Such a matrix orders rows well; its doubts
are no probabilities to rely on, so there doubt is the geometric mean of P(wrong) and the expected distance
E|true - given| / (C - 1): labels that are likely wrong *and* far off come first.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.issues.confident import out_of_fold, self_confidence
from cleanrank.issues.explain import EXPECTED
from cleanrank.issues.posterior import (
    bayes,
    likelihoods,
    noise_matrix,
    posterior_of,
    posterior_table,
    settled,
    true_probabilities,
)
from cleanrank.issues.table import LabelIssues
from cleanrank.noise.anchors import anchor_rows
from cleanrank.noise.profiles import Corruption, NoiseProfile
from cleanrank.rankers.grades import calibrated
from cleanrank.rankers.soft_grades import cross_fit_soft_grades
from cleanrank.types import Array, FloatArray, Progress, RankingData
from cleanrank.validation import check_n_jobs, check_seed

MISSED = 0.05
LEAST = 0.002


def find_auto(
    data: RankingData,
    *,
    noise: Any = None,
    known: npt.ArrayLike | None = None,
    probabilities: npt.ArrayLike | None = None,
    folds: int = 5,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> LabelIssues:
    """Doubts labels by the posterior of the true grade, after a second forest has learnt it.

    With ``noise``, doubt is P(given grade is wrong | features, given grade). Without it the noise is assumed
    from the data, and doubt orders rows but is no probability.

    Args:
        data: judged rows.
        noise: a matrix, NoiseProfile or NoiseEstimate; one that was refused counts as none.
        known: (N,) true grades where they are known, -1 elsewhere (gold rows); these teach and are settled.
        probabilities: (N, C) out-of-fold probabilities of the given grades, when they are there already; used
            without ``noise`` only.
        folds: parts that the queries are cut into.
        params: LightGBM parameters of the grade models.
        seed: for the folds and the forests.
        n_jobs: threads.
        progress: called with (fold, folds).

    >>> import cleanrank as cr
    >>> noisy = cr.corrupt(cr.make_ranking(40, 5, docs_per_query=20, seed=0), rate=0.1, seed=1)
    >>> found = find_auto(noisy.data, folds=3)
    >>> found.average_precision(noisy) > 2 * noisy.rate
    True
    """
    check_seed(seed)
    check_n_jobs(n_jobs)
    told = noise is not None and getattr(noise, "profile", noise) is not None
    p = None
    if told:
        T = noise_matrix(noise, max(data.n_grades, 2))
        L = settled(likelihoods(data.y, T), known)
        first = posterior_of(
            data, noise, known=known, folds=folds, seed=seed, n_jobs=n_jobs, params=params
        ).probabilities
    else:
        p = out_of_fold(data, probabilities, folds=folds, params=params, seed=seed, n_jobs=n_jobs)
        T = assumed_noise(p, data.y).matrix
        L = settled(likelihoods(data.y, T), known)
        first = bayes(true_probabilities(p, T, n_jobs=n_jobs), L)
    q = cross_fit_soft_grades(data, first, folds, params=params, seed=seed, n_jobs=n_jobs, progress=progress)
    if told:
        q, _ = calibrated(q, L)
    return _table(data, q, bayes(q, L), p)


def assumed_noise(p: FloatArray, y: Array) -> NoiseProfile:
    """The matrix that is assumed when nothing is known: what anchors of grade 0 show, and missed documents.

    Args:
        p: (N, C) out-of-fold probabilities of the given grades.
        y: the given grades.

    >>> p = np.array([[0.9, 0.1]] * 50 + [[0.2, 0.8]] * 50)
    >>> y = np.array(([0] * 9 + [1]) * 5 + [1] * 50)
    >>> assumed_noise(p, y).matrix.round(2).tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    """
    C = p.shape[1]
    if C < 2 or not len(p):
        raise invalid("probabilities", "must hold at least one row and two grades", f"shape {p.shape}")
    anchors = anchor_rows(p, 0)
    share = np.bincount(y[anchors], minlength=C) / len(anchors)
    # Beyond 1 / C an error would be likelier than the truth.
    t = float(np.clip(share[1:].min(), LEAST, 0.9 / C))
    T = np.full((C, C), t)
    for m in range(2, C):
        if share[m] > share[m - 1]:
            T[0, m] = max(t, min(float(share[m]), 0.9 / C))
    T[1:, 0] = max(t, MISSED)
    np.fill_diagonal(T, 0.0)
    np.fill_diagonal(T, 1 - T.sum(axis=1))
    return NoiseProfile(T, "assumed")


def _table(data: RankingData, q: FloatArray, W: FloatArray, p: FloatArray | None) -> LabelIssues:
    """The table of a posterior; with p, one under assumed noise."""
    table = posterior_table(data, W)
    grades = np.arange(W.shape[1])
    doubt = table.doubt
    reasons: dict[str, npt.ArrayLike] = dict(table.reasons)
    if p is not None:
        far = (W * abs(grades - data.y[:, None])).sum(axis=1) / (len(grades) - 1)
        doubt = np.sqrt(np.clip(doubt * far, 0.0, 1.0))
        reasons["confident"] = np.clip(1 - self_confidence(p, data.y), 0.0, 1.0)
    reasons[EXPECTED] = q @ grades
    return LabelIssues.of(
        data,
        doubt=doubt,
        is_label_issue=table.is_label_issue,
        suggested_label=table.suggested_label,
        reasons=reasons,
    )


ISSUE = 0.5


def find_by_grade(data: RankingData, *, noise: Any, seed: int = 0) -> LabelIssues:
    """Doubts every label by the share of wrong ones among rows of the same given grade.

    Args:
        data: judged rows.
        noise: a Corruption, whose truth then gives the shares (the oracle of benchmarks); or a noise matrix,
            NoiseProfile or NoiseEstimate, from which they are worked out.
        seed: not used; nothing here is random.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((4, 1)), [0, 0, 0, 1], group=[4])
    >>> find_by_grade(data, noise=[[0.9, 0.1], [0.0, 1.0]]).doubt.round(3).tolist()
    [0.0, 0.0, 0.0, 0.333]
    """
    if isinstance(noise, Corruption):
        shares = true_shares(noise)
        if data.n_grades > len(shares):
            rule = f"must be the corruption of these data, whose highest grade is {data.n_grades - 1}"
            raise invalid("noise", rule, f"one with grades up to {len(shares) - 1}")
    else:
        shares = expected_shares(data, noise)
    doubt = shares[data.y]
    return LabelIssues.of(data, doubt=doubt, is_label_issue=doubt > ISSUE, reasons={"by_grade": doubt})


def true_shares(truth: Corruption) -> FloatArray:
    """P(wrong | given grade) by a known corruption; 0 for grades that nobody gave."""
    y = truth.data.y
    count = np.bincount(y)
    wrong = np.bincount(y, weights=truth.changed)
    found: FloatArray = wrong / np.maximum(count, 1)
    return found


def expected_shares(data: RankingData, noise: Any) -> FloatArray:
    """P(wrong | given grade) by a noise matrix, from the shares of the given grades."""
    T = noise_matrix(noise, data.n_grades)
    C = len(T)
    given = np.bincount(data.y, minlength=C) / max(data.n_docs, 1)
    true = _simplex(given, T)
    with np.errstate(invalid="ignore", divide="ignore"):
        kept = np.where(given > 0, true * np.diag(T) / given, 1.0)
    found: FloatArray = np.clip(1 - kept, 0.0, 1.0)
    return found


def _simplex(given: FloatArray, T: FloatArray) -> FloatArray:
    """Shares r >= 0 whose r T is closest to the given ones; EM, which stays on the simplex."""
    r = np.full(len(T), 1 / len(T))
    for _ in range(2000):
        mixed = r @ T
        step = r * (T @ np.where(mixed > 0, given / np.where(mixed > 0, mixed, 1.0), 0.0))
        done = float(abs(step - r).max()) < 1e-12
        r = step
        if done:
            break
    return r
