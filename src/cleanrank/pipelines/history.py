"""Which documents were outliers when: the picture of a whole training run, in a small table."""

import numpy as np

from cleanrank.doubt.sour import SOUR, Window
from cleanrank.pipelines.watching import watch_model, watched
from cleanrank.rankers.trees import TreeRanker
from cleanrank.types import FloatArray, IntArray, RankingData


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
