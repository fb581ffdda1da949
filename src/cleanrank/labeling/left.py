"""How many labels are wrong among the rows that nobody judged, and how many pairs are in the wrong order.

For the N rows of one given grade, of which n are open (nobody judged them): K wrong labels are known among
the judged ones, L among the open ones is wanted. Two kinds of drawn rows speak of L.

*Late* ones were drawn after all choices and are not among the chosen rows: a random sample of the rows that
nobody chose. The posterior of q = P(wrong) that ``noise.gold`` makes of them gives L ~ Binomial(n, q).

*Early* ones were judged before rows were chosen by doubt or for an evaluation. Judged rows are not chosen, so
nobody knows which of them would have been: they say nothing of the open rows alone. But they are a random
sample of all N rows, and k wrong ones among d have the probability Hypergeometric(k; N, K + L, d).

The posterior of L is proportional to the product of both, with q held as Beta(a, b) by its moments and
L ~ BetaBinomial(n, a, b), one given grade at a time.
"""

import numpy as np
from scipy import stats

from cleanrank.issues.rejudging import pair_forms
from cleanrank.issues.table import BoolArray
from cleanrank.noise.estimate import NoiseEstimate
from cleanrank.noise.gold import from_gold
from cleanrank.ragged import query_of_row
from cleanrank.types import FloatArray, IntArray, RankingData

DRAWS = 1000
PAIR_DRAWS = 200
# Of P(wrong) where no late row speaks: worth two and a half answers, as ``noise.estimate.weak_prior``.
WEAK = (0.5, 2.0)
TINY = 1e-12


def wrong_left(
    data: RankingData,
    new: IntArray,
    *,
    noise: NoiseEstimate,
    late: BoolArray,
    early: BoolArray,
    rng: np.random.Generator,
    seed: int = 0,
) -> FloatArray | None:
    """Draws of the number of wrong labels among the open rows, by given grade.

    Args:
        data: the labels as they were given.
        new: (N,) the new grade of every row; -1 where nobody judged it, -2 where the row was dropped.
        noise: from all drawn rows.
        late: (N,) judged rows that are a random sample, within given grades, of the rows that nobody chose.
        early: (N,) judged rows that are such a sample of all rows.
        rng: of the draws.
        seed: of the posterior of late rows.

    Returns:
        (DRAWS, C); None where rows are open and nothing speaks of them.
    """
    C, open_rows, wrong = noise.n_grades, new == -1, (new != -1) & (new != data.y)
    left = np.zeros((DRAWS, C))
    if not open_rows.any():
        return left
    if not (late.any() or early.any()):
        return None
    of_rest = noise
    if late.any() and not (rest := open_rows | late).all():
        of_rest = from_gold(
            data.select(rest),
            data.row_ids[late],
            new[late],
            n_grades=C,
            level=noise.level,
            draws=DRAWS,
            seed=seed,
        )
    chances = wrong_by_given(of_rest)
    if not early.any():
        return rng.binomial(np.bincount(data.y[open_rows], minlength=C), chances).astype(np.float64)
    for grade in np.unique(data.y[open_rows]).tolist():
        of_grade = data.y == grade
        n = int((of_grade & open_rows).sum())
        L = np.arange(n + 1)
        judged = early & of_grade
        a, b = _beta(chances[:, grade]) if late.any() or not judged.any() else WEAK
        log_p = stats.betabinom.logpmf(L, n, a, b)
        if judged.any():
            K = int((wrong & of_grade).sum())
            k, d = int((wrong & judged).sum()), int(judged.sum())
            log_p += stats.hypergeom.logpmf(k, int(of_grade.sum()), K + L, d)
        p = np.exp(log_p - log_p.max())
        left[:, grade] = np.searchsorted(np.cumsum(p / p.sum()), rng.random(DRAWS)).clip(0, n)
    return left


def wrong_by_given(noise: NoiseEstimate) -> FloatArray:
    """(draw, given grade): P(the label is wrong | given grade)."""
    joint = noise.proportion_draws[:, :, None] * noise.draws  # (draw, true, given)
    kept = np.diagonal(joint, axis1=1, axis2=2) / np.maximum(joint.sum(axis=1), TINY)
    return np.asarray(np.clip(1 - kept, 0.0, 1.0))


def _beta(draws: FloatArray) -> tuple[float, float]:
    """The Beta distribution with the mean and variance of some draws."""
    mean = float(np.clip(draws.mean(), 1e-6, 1 - 1e-6))
    worth = mean * (1 - mean) / max(float(draws.var()), TINY) - 1
    return mean * max(worth, TINY), (1 - mean) * max(worth, TINY)


def wrong_pairs(
    data: RankingData, new: IntArray, left: FloatArray, noise: NoiseEstimate
) -> tuple[FloatArray, FloatArray]:
    """Draws of pNoise before the answers and once they stand, over the pairs of all queries.

    Open rows of a given grade are wrong alike, and to the true grades that drawn rows show; judged rows are
    what the answers say, dropped ones make no pairs. See ``issues.rejudging`` for the sums.

    Args:
        data: the labels as they were given.
        new: (N,) as in ``wrong_left``.
        left: of ``wrong_left``.
        noise: from all drawn rows.

    Returns:
        Two arrays of PAIR_DRAWS; NaN where no pair has different grades.
    """
    C, query, Q = noise.n_grades, query_of_row(data.indptr), data.n_queries
    judged, open_rows = np.flatnonzero(new >= 0), new == -1
    known, mended, waiting = np.zeros((Q, C, C)), np.zeros((Q, C, C)), np.zeros((Q, C))
    np.add.at(known, (query[judged], data.y[judged], new[judged]), 1)
    np.add.at(mended, (query[judged], new[judged], new[judged]), 1)
    np.add.at(waiting, (query[open_rows], data.y[open_rows]), 1)
    joint = noise.proportion_draws[:PAIR_DRAWS, :, None] * noise.draws[:PAIR_DRAWS]
    errors = np.swapaxes(joint * (1 - np.eye(C)), 1, 2)  # (draw, given, true)
    errors /= np.maximum(errors.sum(axis=2, keepdims=True), TINY)
    rates = left[:PAIR_DRAWS] / np.maximum(waiting.sum(axis=0), 1)
    shares = []
    for rate, error in zip(rates, errors, strict=True):
        W = (1 - rate)[:, None] * np.eye(C) + rate[:, None] * error
        forms = [pair_forms(each + waiting[:, :, None] * W) for each in (known, mended)]
        shares.append([wrong / every if every > 0 else np.nan for wrong, every in forms])
    before, after = np.array(shares).T
    return before, after
