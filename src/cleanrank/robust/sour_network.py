"""SOUR for networks: epochs of a training run take the place of trees (Marcuzzi et al. 2022, Sec. 6)."""

from dataclasses import replace
from typing import Any

from cleanrank.cleaning import Cleaned, clean
from cleanrank.data.inputs import check_data
from cleanrank.errors import invalid
from cleanrank.issues.outliers import SOUR, Window
from cleanrank.rankers.neural.ranker import NeuralRanker
from cleanrank.types import RankingData


def fit_without_outliers(
    ranker: NeuralRanker,
    train: RankingData,
    validation: RankingData | None = None,
    *,
    window: Window | None = None,
) -> tuple[NeuralRanker, Cleaned]:
    """Trains a network, leaves its consistent outliers out and trains it again on the rest.

    Args:
        ranker: the network to train; it stays as it is.
        train: rows to learn from.
        validation: rows that choose the epoch of the final network; the base network does not see them.
        window: which epochs must misrank a document, and how; the second half of ``ranker.epochs``, both
            kinds, unless given. The base network is trained for ``window.end`` epochs.

    Returns:
        The final network, and what was left out, with its audit trail.

    >>> import cleanrank as cr
    >>> data = cr.corrupt(cr.make_ranking(20, 5, docs_per_query=15, seed=0), "uniform", 0.2, seed=0).data
    >>> network = cr.NeuralRanker(epochs=4, network_options={"hidden": (8,)})
    >>> ranker, cleaned = fit_without_outliers(network, data)
    >>> bool(cleaned.data.n_docs == data.n_docs - cleaned.acted.sum() < data.n_docs)
    True
    """
    _check_network(ranker)
    train = check_data(train)
    if window is None:
        window = Window(start=ranker.epochs // 2, end=ranker.epochs, kind="all")
    detector = SOUR.of(train, window)
    base = replace(ranker, epochs=window.end, early_stopping_rounds=None, checkpoint=None)
    base.fit_data(train, observer=detector)
    cleaned = clean(train, detector.table(train), by="SOUR over epochs")
    return replace(ranker).fit_data(cleaned.data, validation), cleaned


def _check_network(ranker: Any) -> None:
    if not isinstance(ranker, NeuralRanker):
        rule, remedy = "must be a NeuralRanker", "For trees use SOURRanker."
        raise invalid("ranker", rule, type(ranker).__name__, remedy=remedy)
