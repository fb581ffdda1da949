"""Derived sets in a grid: grades merged or queries sampled, for train and validation data alone.

Test data stay as they are, documents and grades, so that a data set and the sets derived from it are judged
by one yardstick. Of sets that are samples of one source (TD2003P1 and TD2003P7, say) each takes the queries
that can serve all of them: they differ in balance, not in queries or size.
"""

from dataclasses import replace

import numpy as np

from cleanrank.data.split import Splits
from cleanrank.errors import invalid
from cleanrank.noise.scales import DERIVED, derive, merge_grades
from cleanrank.ragged import query_of_row
from cleanrank.types import RankingData
from cleanrank.validation import one_of

SAMPLES = 5  # the papers draw five


def derived_splits(splits: Splits, name: str, seed: int) -> Splits:
    """Train and validation data of the derived set ``name``; seeds that differ by 5 share a sample."""
    one_of("derived set", name, DERIVED)
    train, validation = (
        derive(_serving(data, name), name, seed=seed % SAMPLES).data
        for data in (splits.train, splits.validation)
    )
    return replace(splits, train=train, validation=validation)


def needed(name: str) -> tuple[int, ...] | None:
    """Documents of each grade that a query must have to serve a derived set and its siblings.

    >>> needed("TD2003P1"), needed("OHSUMED2G")
    ((14, 8), None)
    """
    mine = DERIVED[name]
    if mine.counts is None:
        return None
    family = [
        d.counts for d in DERIVED.values() if d.counts and (d.source, d.merge) == (mine.source, mine.merge)
    ]
    return tuple(max(counts) for counts in zip(*family, strict=True))


def _serving(data: RankingData, name: str) -> RankingData:
    limit = needed(name)
    if limit is None:
        return data
    merge = DERIVED[name].merge
    y = (data if merge is None else merge_grades(data, merge)).y
    grades = max(len(limit), int(y.max(initial=0)) + 1)
    cell = query_of_row(data.indptr) * grades + y
    has = np.bincount(cell, minlength=data.n_queries * grades).reshape(data.n_queries, grades)
    enough = (has[:, : len(limit)] >= np.array(limit)).all(axis=1)
    if not enough.any():
        wanted = " + ".join(f"{n} of grade {g}" for g, n in enumerate(limit))
        raise invalid(f"{name}: queries", f"must have {wanted} documents somewhere", "no such query")
    return data.select(np.repeat(enough, data.lengths))
