"""Weights of documents by how well their labels agree with their features (Ding et al. 2015).

A naive Bayes model with a histogram of each feature per label gives P(label | features); a document whose
given label has a low probability counts less, and a pair counts by the product of its documents.
"""

from typing import Any

import numpy as np

from cleanrank.errors import invalid
from cleanrank.types import FloatArray, RankingData
from cleanrank.validation import is_integer


def agreement_weights(data: RankingData, *, bins: int = 10) -> FloatArray:
    """P(given label | features) of every row, from a naive Bayes model on histograms of the same rows.

    Bins hold about equally many rows each; counts start at 1. With many features the product of their
    likelihoods is over-confident, so the mean of the log-likelihoods per feature is taken times the square
    root of their number.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[0.0], [0.1], [0.9], [1.0], [1.0]], [0, 0, 1, 1, 0], group=[5])
    >>> agreement_weights(data, bins=2).round(2).tolist()
    [0.7..., 0.7..., 0.5..., 0.5..., 0.4...]
    """
    if not is_integer(bins) or bins < 2:
        raise invalid("bins", "must be a whole number from 2 on", repr(bins))
    X: Any = data.X.toarray() if hasattr(data.X, "toarray") else data.X
    n, n_features = X.shape
    labels = int(data.y.max(initial=0)) + 1
    if not n or labels < 2:
        return np.ones(n)
    counts = np.bincount(data.y, minlength=labels).astype(np.float64)
    log_likelihood = np.zeros((n, labels))
    for f in range(n_features):
        column = np.nan_to_num(np.asarray(X[:, f], dtype=np.float64))
        edges = np.unique(np.quantile(column, np.linspace(0, 1, bins + 1)[1:-1]))
        edges = edges[edges > column.min()]  # no bin without rows
        place = np.searchsorted(edges, column, side="right")
        table = np.bincount(data.y * (len(edges) + 1) + place, minlength=labels * (len(edges) + 1))
        smoothed = table.reshape(labels, -1) + 1.0
        log_likelihood += np.log(smoothed / smoothed.sum(axis=1, keepdims=True)).T[place]
    log_posterior = log_likelihood / max(1.0, n_features**0.5) + np.log((counts + 1) / (n + labels))
    log_posterior -= log_posterior.max(axis=1, keepdims=True)
    posterior = np.exp(log_posterior)
    posterior /= posterior.sum(axis=1, keepdims=True)
    found: FloatArray = posterior[np.arange(n), data.y]
    return found
