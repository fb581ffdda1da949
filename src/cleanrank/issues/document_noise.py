"""Noise that depends on the document: what gold rows say about errors beyond the given grade.

A noise matrix says how often a grade is given wrongly, whatever the document. Judges err more often on hard
documents and are lenient with some queries. With b_l = P(true l | features, given m) under the matrix, the
posterior is tilted,

    P(true l) = b_l^(1 + a) exp(l z'u + [l != m] z'v) / sum_k ...,

where z describes row and query (DESCRIBED): u moves true grades up or down, v makes errors more or less
likely, a makes the posterior as sure as it may be. (a, u, v) are learnt from gold rows by their likelihood
with a ridge, so that with few of them little is changed; cross-validation over queries chooses the ridge.

Whether errors depend on the document is tested in the same way: the tilt is used only if it makes gold rows
of queries that it never saw likelier than the matrix alone does, by more than ``least_gain`` standard errors
over queries. A false alarm costs little where rows are put in an order of doubt (LOOKING), since the ridge
was chosen by the same rows; it costs a ranker that learns from the posterior more than a missed one
(LEARNING).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from cleanrank.ragged import query_of_row, segment_sum
from cleanrank.types import Array, FloatArray, IntArray, RankingData

RIDGES = np.geomspace(1000.0, 3.0, 6)
FOLDS = 5
FEWEST_ROWS = 30
FEWEST_QUERIES = 10
LOOKING, LEARNING = 0.5, 3.0  # least gains, in standard errors
SURE = 1.645  # the 95 % quantile of the normal distribution
LEAST = 1e-9
STREAM = 9057
DESCRIBED = (
    "given grade",
    "predicted grade",
    "given less predicted grade",
    "doubt about the grade",
    "place in the query",
    "lead over the query's mean",
    "leniency of the query",
    "mean predicted grade of the query",
)


@dataclass(frozen=True, eq=False)
class DocumentNoise:
    """How errors depend on the document, as far as gold rows tell.

    Attributes:
        is_used: whether the tilt is used; otherwise the posterior is that of the matrix.
        gain: the mean log likelihood of a gold row out of fold, less that under the matrix.
        error: its standard error over queries.
        ridge: the strength of the ridge.
        tilt: a, u and v.
        centre: means of what is described, over all rows.
        scale: their deviations.
    """

    is_used: bool
    gain: float
    error: float
    ridge: float
    tilt: FloatArray
    centre: FloatArray
    scale: FloatArray

    def posterior(
        self, data: RankingData, base: FloatArray, prior: FloatArray, matrix: FloatArray
    ) -> FloatArray:
        """P(true grade | features, given grade) of rows (N, C); arguments as in ``document_noise``."""
        if not self.is_used:
            return base
        z = (describe_documents(data, prior, matrix) - self.centre) / self.scale
        logs = _logs(base)
        return np.asarray(softmax(logs + _design(logs, z, data.y) @ self.tilt, axis=1))

    def __str__(self) -> str:
        sure = "depend" if self.gain > SURE * self.error else "may depend"
        used, unused = f"errors {sure} on the document", "errors are taken to follow the noise matrix"
        words = used if self.is_used else unused
        return f"{words} (log likelihood of a gold row {self.gain:+.3f}, error {self.error:.3f})"


def describe_documents(data: RankingData, prior: FloatArray, matrix: FloatArray) -> FloatArray:
    """What DESCRIBED names, of every row: (N, 8); ``prior`` (N, C) is P(true grade | features), out of fold.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((3, 1)), [0, 1, 1], qid=[1, 1, 2])
    >>> rows = describe_documents(data, np.array([[0.5, 0.5], [0.1, 0.9], [0.9, 0.1]]), np.eye(2))
    >>> dict(zip(DESCRIBED, rows[1].round(2).tolist(), strict=True))["lead over the query's mean"]
    0.2
    """
    grades = np.arange(prior.shape[1])
    score, predicted = prior @ grades, prior @ matrix @ grades
    query = query_of_row(data.indptr)
    lengths = data.lengths[query]

    def mean(values: Array) -> FloatArray:
        return np.asarray(segment_sum(values, data.indptr)[query] / lengths)

    order = np.lexsort((score, query))
    place = np.empty(data.n_docs)
    place[order] = np.arange(data.n_docs) - data.indptr[query[order]]
    y = data.y.astype(np.float64)
    doubt = -(prior * np.log(np.maximum(prior, LEAST))).sum(axis=1)
    level = mean(score)
    columns = (
        y, score, y - predicted, doubt, (place + 0.5) / lengths, score - level, mean(y - predicted), level,
    )  # fmt: skip
    return np.stack(columns, axis=1)


def document_noise(
    data: RankingData,
    base: FloatArray,
    prior: FloatArray,
    matrix: FloatArray,
    known: npt.ArrayLike,
    *,
    least_gain: float = LOOKING,
    seed: int = 0,
) -> DocumentNoise:
    """Learns from gold rows how errors depend on the document, and tests whether that says more.

    Args:
        data: rows with given grades.
        base: (N, C) P(true grade | features, given grade) under the matrix, of gold rows too.
        prior: (N, C) P(true grade | features) from models that never saw the row's query.
        matrix: (C, C) the noise matrix.
        known: (N,) true grades of gold rows, -1 elsewhere.
        least_gain: what the tilt must gain to be used, in standard errors.
        seed: for the folds.

    Returns:
        A DocumentNoise, whose ``posterior`` also takes rows of other queries.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(40, 5, docs_per_query=10, seed=0)
    >>> known = np.where(np.arange(data.n_docs) % 4 == 0, data.y, -1)  # nothing is wrong
    >>> matrix = np.full((5, 5), 0.15) + 0.25 * np.eye(5)
    >>> noise = document_noise(data, matrix[data.y], np.full((data.n_docs, 5), 0.2), matrix, known)
    >>> noise.is_used, str(noise)[:33]
    (True, 'errors depend on the document (lo')
    """
    truth = np.asarray(known)
    described = describe_documents(data, prior, matrix)
    centre, scale = described.mean(axis=0), np.maximum(described.std(axis=0), LEAST)
    gold = np.flatnonzero(truth >= 0)
    queries, place = np.unique(query_of_row(data.indptr)[gold], return_inverse=True)
    none = np.zeros(1 + 2 * (described.shape[1] + 1))
    if len(gold) < FEWEST_ROWS or len(queries) < FEWEST_QUERIES:
        return DocumentNoise(False, 0.0, 0.0, np.inf, none, centre, scale)
    logs = _logs(base[gold])
    z = (described[gold] - centre) / scale
    rows: tuple[Any, ...] = logs, _design(logs, z, data.y[gold]), truth[gold]
    fold = (np.random.default_rng([seed, STREAM]).permutation(len(queries)) % FOLDS)[place]
    gains = np.zeros((len(RIDGES), len(gold)))
    for each in range(FOLDS):
        held = fold == each
        tilt = none
        for r, ridge in enumerate(RIDGES):  # the strongest first, each from where the last one ended
            tilt = _fit(*(part[~held] for part in rows), ridge=ridge, start=tilt)
            gains[r, held] = _log_likelihood(tilt, *(part[held] for part in rows))
    gains -= _log_likelihood(none, *rows)
    best = int(np.argmax(gains.sum(axis=1)))
    by_query = np.bincount(place, weights=gains[best])
    gain, error = gains[best].mean(), np.sqrt(len(queries)) * by_query.std(ddof=1) / len(gold)
    tilt = _fit(*rows, ridge=RIDGES[best], start=none)
    is_used = bool(gain > least_gain * error)
    return DocumentNoise(is_used, float(gain), float(error), float(RIDGES[best]), tilt, centre, scale)


def _logs(probabilities: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(probabilities, LEAST)))


def _design(logs: FloatArray, z: FloatArray, y: Array) -> FloatArray:
    """What the tilt is multiplied by, of every row and grade: (N, C, tilt)."""
    C = logs.shape[1]
    ones = np.concatenate([np.ones((len(z), 1)), z], axis=1)[:, None, :]
    grades = (np.arange(C) - (C - 1) / 2)[:, None]
    others = (np.arange(C) != y[:, None])[:, :, None]
    return np.concatenate([logs[:, :, None], grades * ones, others * ones], axis=2)


def _log_likelihood(tilt: FloatArray, logs: FloatArray, design: FloatArray, truth: IntArray) -> FloatArray:
    """The logarithm of P(true grade) of every gold row."""
    log_p = log_softmax(logs + design @ tilt, axis=1)
    return np.asarray(log_p[np.arange(len(truth)), truth])


def _fit(
    logs: FloatArray, design: FloatArray, truth: IntArray, *, ridge: float, start: FloatArray
) -> FloatArray:
    """The tilt of the largest likelihood less ridge |tilt|^2 / 2."""
    right = np.arange(logs.shape[1]) == truth[:, None]

    def loss(tilt: Any) -> tuple[float, Any]:
        log_p = log_softmax(logs + design @ tilt, axis=1)
        slope = np.tensordot(np.exp(log_p) - right, design, 2) + ridge * tilt
        return float(-log_p[right].sum() + ridge * (tilt**2).sum() / 2), slope

    def curvature(tilt: Any) -> Any:
        p = softmax(logs + design @ tilt, axis=1)[:, :, None]
        centred = (design - (p * design).sum(axis=1, keepdims=True)).reshape(-1, len(tilt))
        return (centred * p.reshape(-1, 1)).T @ centred + ridge * np.eye(len(tilt))

    settings: dict[str, Any] = {"jac": True, "hess": curvature, "method": "trust-exact", "tol": 1e-3}
    return np.asarray(minimize(loss, start, **settings).x)
