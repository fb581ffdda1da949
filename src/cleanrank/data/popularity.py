"""Item popularity: the baseline that a model of clicks has to beat."""

from dataclasses import dataclass

import numpy as np

from cleanrank.data.behaviours import ClickRows
from cleanrank.errors import invalid
from cleanrank.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class ItemPopularity:
    """Scores an item by its clicks in the training rows, whoever the user is.

    Attributes:
        counts: clicks by item code; code 0 (rare and new items) has the mean of what its ids would get, 0.

    >>> from cleanrank.data.behaviours import Layout
    >>> rows = ClickRows(
    ...     user=[[1], [1]], item=[[3], [2]], context=np.zeros((2, 0)), y=[1, 0], history_of=[0, 0],
    ...     histories=[[[1], [3]]], lengths=[2], layout=Layout({"user": 2}, {"item": 4}), users=[0, 0])
    >>> popularity = ItemPopularity.fit(rows)
    >>> popularity.counts.tolist(), popularity.predict(rows).tolist()
    ([0, 1, 0, 2], [2.0, 0.0])
    """

    counts: IntArray

    @classmethod
    def fit(cls, rows: ClickRows) -> "ItemPopularity":
        """Counts each training click once: the clicked rows, and of each user the history before the first.

        Args:
            rows: training rows, a user's in the order of time.

        Returns:
            The fitted baseline.
        """
        size = next(iter(rows.layout.item.values()))
        first = rows.history_of[np.unique(rows.users, return_index=True)[1]]
        valid = np.arange(rows.histories.shape[1]) < rows.lengths[first, None]
        behaviours = rows.histories[first, :, 0][valid]
        clicked = rows.item[rows.y == 1, 0]
        counts = np.bincount(np.concatenate([behaviours, clicked]), minlength=size)
        counts[0] = 0
        return cls(counts)

    def predict(self, rows: ClickRows) -> FloatArray:
        """The clicks of each row's item.

        Args:
            rows: rows of the layout that was fitted.

        Returns:
            One score per row.
        """
        size = next(iter(rows.layout.item.values()))
        if size != len(self.counts):
            rule = f"must have the item codes of the training rows ({len(self.counts)})"
            raise invalid("rows", rule, size, remedy="Prepare both together.")
        return self.counts[rows.item[:, 0]].astype(np.float64)
