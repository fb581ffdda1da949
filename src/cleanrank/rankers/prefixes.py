"""Scores of every prefix of a trained forest, one tree more at a time.

They equal ``Booster.predict(num_iteration=i, raw_score=True)`` bit for bit, and the scores that LightGBM
keeps while it trains, because all of them add the same leaf values in the same order. Memory does not grow
with the number of trees.
"""

from collections.abc import Iterator
from typing import Any

import lightgbm
import numpy as np

from cleanrank.errors import invalid
from cleanrank.jit import kernel
from cleanrank.rankers.base import rows_to_score
from cleanrank.rankers.trees import TreeRanker
from cleanrank.types import Array, FloatArray

# LightGBM reads a row once per call, whatever the number of trees; more trees a call cost memory.
BLOCK = 16


def prefix_scores(
    model: TreeRanker | lightgbm.Booster,
    X: Any,
    *,
    end: int | None = None,
    n_jobs: int = 1,
    block: int = BLOCK,
) -> Iterator[tuple[int, FloatArray]]:
    """Yields (i, scores of the forest with i trees) for i = 1, ..., ``end``.

    The array is the same one each time: copy what is kept. Forests trained by DART are refused, because it
    rescales earlier trees: no prefix of such a forest is what was trained.

    Args:
        model: a trained forest.
        X: rows to score.
        end: trees at the most; all of the forest's when not given.
        n_jobs: threads.
        block: trees that are looked up in one go, 8 bytes a row each.
    """
    booster = model.booster if isinstance(model, TreeRanker) else model
    text = booster.model_to_string(num_iteration=-1)
    if "\n[boosting: dart]" in text:
        raise invalid("model", "must not be trained by DART, which rescales earlier trees", "a DART forest")
    X = rows_to_score(X, int(booster.num_feature()))
    most = booster.current_iteration()
    last = most if end is None else min(end, most)
    scores = np.zeros(X.shape[0])
    if "\nis_linear=1" in text:
        # Leaves of linear trees hold models, not values.
        for i in range(last):
            scores += booster.predict(
                X, start_iteration=i, num_iteration=1, raw_score=True, num_threads=n_jobs
            )
            yield i + 1, scores
        return
    values = _leaf_values(text)
    for first in range(0, last, block):
        size = min(block, last - first)
        leaves = np.asarray(
            booster.predict(X, start_iteration=first, num_iteration=size, pred_leaf=True, num_threads=n_jobs)
        ).reshape(len(scores), size)
        for t in range(size):
            _add_leaves(leaves, t, values[first + t], scores)
            yield first + t + 1, scores


def _leaf_values(text: str) -> list[FloatArray]:
    """The values of every tree's leaves, from LightGBM's text format, which keeps all digits."""
    mark = "\nleaf_value="
    found = []
    at = text.find(mark)
    while at >= 0:
        end = text.index("\n", at + 1)
        found.append(np.array(text[at + len(mark) : end].split(), dtype=np.float64))
        at = text.find(mark, end)
    return found


@kernel()
def _add_leaves(leaves: Array, tree: int, values: Array, scores: Array) -> None:
    for row in range(len(scores)):
        scores[row] += values[leaves[row, tree]]
