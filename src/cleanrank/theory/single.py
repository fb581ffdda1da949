"""How often labels of a few issues of one query put two scorers in the right order.

DCG@k reads k labels of a query however long its list is, AUC reads all of them: with more labels of one issue
AUC settles, DCG does not; it needs more issues of the query (Haddad 2022, Sect. 4.3).
"""

import math
from collections.abc import Iterable

import numpy as np

from cleanrank.errors import invalid
from cleanrank.evaluate.compare import query_values
from cleanrank.evaluate.measures import MeasureLike, as_measures
from cleanrank.theory.simulate import draw_labels, make_labels
from cleanrank.types import FloatArray
from cleanrank.validation import check_seed, is_integer


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
    wanted = as_measures(measures)
    for name, value in (("n_docs", n_docs), ("issues", issues), ("n_scorers", n_scorers), ("draws", draws)):
        least = 2 if name in ("n_docs", "n_scorers") else 1
        if not is_integer(value) or value < least:
            raise invalid(name, f"must be a whole number from {least} on", repr(value))
    check_seed(seed)
    if not 0 <= gamma <= 1:
        raise invalid("gamma", "must be the probability that a label is kept, in [0, 1]", gamma)
    if not 0 < prevalence < 1:
        raise invalid("prevalence", "must lie strictly between 0 and 1", prevalence)
    if len(loudness) != 2 or not 0 < loudness[0] <= loudness[1] < math.inf:
        raise invalid("loudness", "must be two positive numbers, the least first", loudness)
    rng = np.random.default_rng(seed)
    y, indptr = make_labels(np.array([prevalence]), n_docs, rng)
    loud = np.linspace(*loudness, n_scorers)[:, None]
    scores = (2.0 * y - 1.0 + loud * rng.standard_normal((n_scorers, n_docs))).ravel()
    rows = np.arange(n_scorers + 1) * n_docs

    def values(labels: FloatArray) -> FloatArray:
        return query_values(wanted, np.tile(labels, n_scorers), scores, rows)[0]

    clean = _signs(values(y))
    T = np.array([[[gamma, 1 - gamma], [1 - gamma, gamma]]])
    right = np.zeros(len(wanted))
    for _ in range(draws):
        drawn = [values(labels) for labels in draw_labels(y, indptr, T, issues, rng)]
        right += _agreement(clean, _signs(np.nanmean(drawn, axis=0)))
    return {str(m): float(r / draws) for m, r in zip(wanted, right, strict=True)}


def _signs(values: FloatArray) -> FloatArray:
    first, second = np.triu_indices(values.shape[1], 1)
    return np.sign(np.nan_to_num(values[:, first] - values[:, second]))


def _agreement(clean: FloatArray, noisy: FloatArray) -> FloatArray:
    """Of the pairs that differ on clean labels, those in the same order; ties count half."""
    differ = clean != 0
    same: FloatArray = np.where(differ, 0.5 + 0.5 * clean * noisy, 0.0).sum(axis=1) / differ.sum(axis=1)
    return same
