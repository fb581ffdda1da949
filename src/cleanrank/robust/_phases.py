"""Forests whose training rows change while they grow."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cleanrank.errors import invalid
from cleanrank.issues.outliers import SOUR, BoolArray, Window
from cleanrank.issues.sour import Growing
from cleanrank.losses.trees.lambdarank import LambdaRankObjective
from cleanrank.rankers.settings import lambdarank_settings
from cleanrank.rankers.trees import TreeRanker
from cleanrank.types import FloatArray, Progress, RankingData
from cleanrank.validation import is_integer

ENDS = (50, 200, 500, 800, 900)
"""Tree counts of 1,000 at which curr-SOUR lets documents back (Marcuzzi et al. 2022)."""


def grow_in_phases(
    train: RankingData,
    validation: RankingData | None,
    detector: SOUR,
    ends: Sequence[int],
    growing: Growing,
    *,
    rounds: int,
    early_stopping_rounds: int = 0,
) -> tuple[TreeRanker, list[int]]:
    """curr-SOUR: trees e_(i-1)+1..e_i learn without O_i, outliers of all forests up to e_i; the last of all.

    The O_i are nested. Only the last phase stops early. Gives the forest and the sizes of the O_i.

    Args:
        train: all rows.
        validation: rows to stop on.
        detector: with keep="lead", has watched the base forest.
        ends: rising tree counts below ``rounds``.
        growing: how.
        rounds: trees in all, at the most.
        early_stopping_rounds: of the last phase.
    """
    cuts = [0, *ends, rounds]
    if not all(is_integer(end) for end in cuts) or any(a >= b for a, b in itertools.pairwise(cuts)):
        raise invalid("ends", f"must rise from above 0 to below {rounds}", list(ends))
    model: TreeRanker | None = None
    sizes = []
    for first, last in itertools.pairwise(cuts[:-1]):
        outliers = detector.outliers(end=last)
        sizes.append(int(outliers.sum()))
        model = growing.train(train.drop(outliers), rounds=last - first, init_model=model)
    final = growing.train(
        train,
        validation,
        rounds=rounds - cuts[-2],
        early_stopping_rounds=early_stopping_rounds,
        init_model=model,
    )
    return final, sizes


class FilteringObjective(LambdaRankObjective):
    """LambdaRank gradients of the documents that are left; the others get none.

    After every forest the detector counts, for each document, the forests in a row that flagged it. Who
    reaches ``patience`` is left out of all pairs until a forest stops flagging it.
    """

    def __init__(self, data: RankingData, detector: SOUR, patience: int, every: int, **options: Any) -> None:
        super().__init__(data, **{**options, "observer": detector})
        # Gradients need grades and queries; weights are applied once, by this objective.
        bare = np.zeros((data.n_docs, 0), dtype=np.float32)
        self.rows = replace(data, X=bare, weights=None, feature_names=None)
        self.detector, self.patience, self.every = detector, patience, every
        self.options = {k: v for k, v in options.items() if k != "observer"}
        self.left_out: BoolArray = np.zeros(data.n_docs, dtype=np.bool_)
        self.inner: LambdaRankObjective | None = None

    def _base(self, scores: FloatArray) -> None:
        if self.rounds % self.every == 0:
            self._choose()
        if self.inner is None:
            super()._base(scores)
            return
        self.ranking.update(scores)
        kept = ~self.left_out
        grad, hess = self.inner(scores[kept])
        self._grad[:], self._hess[:] = 0.0, 0.0
        self._grad[kept], self._hess[kept] = grad, hess

    def _choose(self) -> None:
        """Looks up who is left out now; the inner objective is made anew when that changes."""
        chosen = self.detector.counts >= self.patience
        if (chosen == self.left_out).all():
            return
        self.left_out = chosen
        self.inner = LambdaRankObjective(self.rows.drop(chosen), **self.options) if chosen.any() else None


def grow_while_filtering(
    train: RankingData,
    validation: RankingData | None,
    window: Window,
    growing: Growing,
    *,
    patience: int,
    rounds: int,
    early_stopping_rounds: int = 0,
    every: int = 10,
    progress: Progress | None = None,
) -> tuple[TreeRanker, SOUR, BoolArray]:
    """Grows one forest and leaves documents out on the fly; gives it, its detector and who was out last.

    Args:
        train: all rows.
        validation: rows to stop on.
        window: what is looked for; forests up to ``start`` trees leave nobody out.
        growing: how; not with the built-in objective or peers.
        patience: forests in a row that must flag a document.
        rounds: trees at the most.
        early_stopping_rounds: rounds without gain before it stops.
        every: how often, in rounds, the left-out documents are looked up.
        progress: called with (round, rounds).
    """
    if growing.objective == "builtin" or growing.peers is not None:
        found = growing.objective if growing.peers is None else f"{growing.objective} with peers"
        raise invalid("variant 'fly'", "needs objective 'exact' or 'parity' without peers", found)
    if not is_integer(patience) or not 1 <= patience <= rounds:
        raise invalid("patience", f"must lie between 1 and the number of trees ({rounds})", repr(patience))
    detector = SOUR.of(train, window, keep="streak", n_jobs=growing.n_jobs)
    own, rest = lambdarank_settings(growing.params, growing.norm)
    objective = FilteringObjective(
        train, detector, patience, every, mode=growing.objective, n_jobs=growing.n_jobs, **own
    )
    model = replace(growing, params=rest).train(
        train, validation, rounds=rounds, early_stopping_rounds=early_stopping_rounds, objective=objective,
        progress=progress,
    )  # fmt: skip
    return model, detector, objective.left_out
