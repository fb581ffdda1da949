"""Forests and the detector that watches them: while they train, from a saved model, or out of fold."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cleanrank.data.split import fold_of_query
from cleanrank.errors import invalid
from cleanrank.issues.outliers import SOUR, Window
from cleanrank.losses.trees.lambdarank import LambdaRankObjective, Observer
from cleanrank.losses.trees.peer import Peers
from cleanrank.metrics.measure import Measure
from cleanrank.rankers.prefixes import prefix_scores
from cleanrank.rankers.trees import TreeRanker, train_lambdarank
from cleanrank.types import FloatArray, IntArray, Progress, RankingData
from cleanrank.validation import is_integer


@dataclass(frozen=True)
class Growing:
    """How forests are grown; one value for base and final forest.

    Attributes:
        objective: "exact", "parity" or "builtin", see ``rankers/trees.py``.
        norm: on is lambda-LGBM, off lambda-MART.
        peers: subtract the gradients of permuted labels.
        params: LightGBM parameters.
        measure: what early stopping looks at.
        seed: for everything random.
        n_jobs: threads.
    """

    objective: str = "exact"
    norm: bool = True
    peers: Peers | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    measure: str | Measure = "ndcg@10"
    seed: int = 0
    n_jobs: int = 1

    def train(
        self,
        train: RankingData,
        validation: RankingData | None = None,
        *,
        rounds: int,
        early_stopping_rounds: int = 0,
        observer: Observer | None = None,
        objective: LambdaRankObjective | None = None,
        init_model: TreeRanker | None = None,
        progress: Progress | None = None,
    ) -> TreeRanker:
        """Grows one forest; ``objective`` stands in for the one named."""
        return train_lambdarank(
            train,
            validation,
            norm=self.norm,
            objective=self.objective if objective is None else objective,
            peers=self.peers,
            params=self.params,
            measure=self.measure,
            rounds=rounds,
            early_stopping_rounds=early_stopping_rounds,
            seed=self.seed,
            n_jobs=self.n_jobs,
            observer=observer,
            init_model=init_model,
            progress=progress,
        )


def watch_training(
    data: RankingData,
    window: Window,
    growing: Growing | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> tuple[SOUR, TreeRanker]:
    """Grows the base forest on all of ``data``, ``window.end`` trees without early stopping, and watches it.

    With our objectives the detector reads the rankings that the objective has sorted anyway; with LightGBM's
    own a callback reads the scores.

    Args:
        data: rows to learn from and to doubt.
        window: what is looked for.
        growing: how.
        progress: called with (round, rounds).
        options: further arguments of ``SOUR``.
    """
    growing = growing or Growing()
    detector = SOUR.of(data, window, **{"n_jobs": growing.n_jobs, **options})
    model = growing.train(data, rounds=window.end, observer=detector, progress=progress)
    return detector, model


def watch_model(
    data: RankingData, model: TreeRanker, window: Window, *, n_jobs: int = 1, **options: Any
) -> SOUR:
    """Watches the prefixes of a trained forest; what it finds is what watching the training finds.

    Args:
        data: rows to doubt, those the forest was trained on or others.
        model: a forest; one shorter than ``window.end`` is watched to its end.
        window: what is looked for.
        n_jobs: threads.
        options: further arguments of ``SOUR``.
    """
    return SOUR.of(data, window, n_jobs=n_jobs, **options).watch(watched(data, model, window, n_jobs))


def watched(
    data: RankingData, model: TreeRanker, window: Window, n_jobs: int = 1
) -> Iterator[tuple[int, FloatArray]]:
    """The prefixes of a forest up to the window's end as (trees, scores), the empty one where it counts."""
    if window.include_f0:
        yield 0, np.zeros(data.n_docs)
    yield from prefix_scores(model, data.X, end=window.end, n_jobs=n_jobs)


def watch_folds(
    data: RankingData, window: Window, growing: Growing | None = None, *, n_folds: int = 5, **options: Any
) -> tuple[SOUR, FloatArray]:
    """Watches, for every query, a forest that never saw it; gives the detector and the last scores.

    A forest cannot excuse outliers that it has not memorised.

    Args:
        data: rows to learn from and to doubt.
        window: what is looked for.
        growing: how forests are grown.
        n_folds: parts that the queries are cut into.
        options: further arguments of ``SOUR``.
    """
    if not is_integer(n_folds):
        raise invalid("folds", "must be a whole number; 0 means one forest for all", repr(n_folds))
    growing = growing or Growing()
    whole = SOUR.of(data, window, **{"n_jobs": growing.n_jobs, **options})
    last = np.zeros(data.n_docs)
    fold = fold_of_query(data, n_folds, growing.seed)
    for part in range(n_folds):
        rows = np.repeat(fold == part, data.lengths)
        held = data.select(rows)
        model = growing.train(data.drop(rows), rounds=window.end)
        found = watch_model(held, model, window, n_jobs=growing.n_jobs, **options)
        if part and found.seen != whole.seen:
            raise invalid(
                "forests of all folds",
                f"must have as many trees ({whole.seen} in the window)",
                found.seen,
                remedy="A forest that stops growing is too strictly limited: lower min_data_in_leaf or end.",
            )
        whole.take(rows, found)
        last[rows] = model.predict(held.X)
    return whole, last


def watch_last(data: RankingData, model: TreeRanker, window: Window, **options: Any) -> SOUR:
    """last-SOUR: the ranking of one forest alone, that of the trees in use (Marcuzzi et al. 2022)."""
    trees = model.best_iteration
    single = replace(window, start=trees - 1, end=trees, min_frequency=1.0, include_f0=False)
    return SOUR.of(data, single, **options).watch([(trees, model.predict(data.X))])


def outlier_history(
    data: RankingData,
    model: TreeRanker,
    window: Window,
    *,
    bands: int = 10,
    steps: int = 10,
    n_jobs: int = 1,
    whole: SOUR | None = None,
) -> tuple[FloatArray, IntArray]:
    """The share of flags by frequency band and step of the training (Figure 6 of Marcuzzi et al. 2022).

    Of the documents flagged at least once, band b holds those flagged in b/bands to (b+1)/bands of the
    forests. Gives the table (bands, steps) of shares and the number of documents in each band.

    Args:
        data: rows to look at.
        model: a trained forest; its prefixes are ranked.
        window: what is looked for.
        bands: rows of the table.
        steps: columns of the table: runs of consecutive forests.
        n_jobs: threads.
        whole: a detector that has watched these forests; without it they are ranked twice.
    """
    whole = watch_model(data, model, window, n_jobs=n_jobs) if whole is None else whole
    band = np.minimum((whole.frequency * bands).astype(np.int64), bands - 1)
    band[whole.counts == 0] = bands
    sizes = np.bincount(band, minlength=bands + 1)[:bands]
    flagged = np.zeros((bands + 1, steps))
    rounds = np.zeros(steps)
    again = SOUR.of(data, window, n_jobs=n_jobs)
    before = again.counts.copy()
    for trees, scores in watched(data, model, window, n_jobs):
        again(trees, scores)
        if not window.holds(trees):
            continue
        step = (again.seen - 1) * steps // whole.seen
        flagged[:, step] += np.bincount(band, weights=again.counts - before, minlength=bands + 1)
        rounds[step] += 1
        before[:] = again.counts
    with np.errstate(invalid="ignore", divide="ignore"):
        shares: FloatArray = flagged[:bands] / (sizes[:, None] * rounds)
    return shares, sizes
