"""Noise from a gold set: some rows are judged again by someone who is right.

Rows are drawn by given grade m. The answers tell P(true grade l | given grade m) in every stratum; with the
shares w_m of the given grades in the whole data they give the joint J[l, m] = w_m P(l | m), and so by Bayes
the proportions r_l = sum_m J[l, m] and the noise matrix T[l, m] = J[l, m] / r_l.

The posterior. With counts k[m, l] of answers and a Dirichlet prior on every row of T (``weak_prior``, weights
a[l, m]) and on r (weights C w_l: rare given grades are rare), the posterior is that of the conjugate model
P(. | m) ~ Dirichlet(k[m] + a[:, m]), reweighted by prod_l r_l^(C w_l - sum_m a[l, m]). It is drawn by
Metropolis steps, one stratum at a time, with the conjugate posterior as proposal. A prior on T instead of one
on P(. | m) matters for rare grades: half an answer added to the big stratum of grade 0 would outweigh every
document of the top grade.

Where a matrix is assumed (``assumed``, see ``noise/assumed.py``), it competes with the weak prior: P(. | m) ~
Dirichlet(s A[m] + k[m]), A[m] the assumed P(true | given m) and s the answers that the assumption is worth.
The marginal likelihood of the answers weighs the values of s in every stratum, and all of them against the
weak prior (empirical Bayes). A few answers leave an assumption that they bear out nearly as it is, many
replace it, and one that they contradict has no say.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, gammaln, logsumexp, softmax

from cleanrank.data.inputs import as_data
from cleanrank.errors import invalid
from cleanrank.noise.class_conditional import ClassConditionality, class_conditional_test
from cleanrank.noise.estimate import NoiseEstimate, summarise, weak_prior
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.ragged import match_rows
from cleanrank.stored import as_array
from cleanrank.types import Array, FloatArray, IntArray, RankingData
from cleanrank.validation import check_integer, one_of

STRATEGIES = ("stratified", "random", "doubt")
DOUBTFUL = 0.2
SWEEPS = 20
STREAM = 9011
FEWEST_ANSWERS = 30
TINY = 1e-300
WORTHS = np.geomspace(2.0, 1000.0, 40)  # answers that an assumed matrix may be worth
EM_STEPS = 500
LEAST_SHARE = 1e-3
MOST_TESTED = 1000  # features, when errors are tested for depending on them


@dataclass(frozen=True, eq=False)
class GoldSheet:
    """Rows to judge again, in the order in which they are shown.

    Attributes:
        row_ids: the rows' places in the input.
        given_grades: hidden from the judge by default.
        shares: the share of the given grade's rows from which the row was drawn; 1 but for "doubt".
        strategy: one of STRATEGIES.
        rows: positions in the data the sheet was drawn from.
    """

    row_ids: IntArray
    query_ids: Array
    doc_ids: Array | None
    given_grades: IntArray
    shares: FloatArray
    strategy: str
    rows: IntArray

    def __len__(self) -> int:
        return len(self.row_ids)

    def __repr__(self) -> str:
        counts = np.bincount(self.given_grades)
        grades = ", ".join(f"{g}: {c}" for g, c in enumerate(counts) if c)
        return f"GoldSheet({len(self)} rows, {self.strategy}, given grades {{{grades}}})"


def sample_gold(
    data: Any,
    n: int = 100,
    strategy: str = "stratified",
    seed: int = 0,
    *,
    y: npt.ArrayLike | None = None,
    label: str | None = None,
    qid: Any = None,
    group: npt.ArrayLike | None = None,
    doubt: npt.ArrayLike | None = None,
) -> GoldSheet:
    """Draws rows to be judged again, in random order.

    Args:
        data: the judged data: a RankingData, a frame with the columns ``label`` and ``qid``, or features with
            ``y``.
        n: how many rows.
        strategy: "stratified" draws the same number of every given grade, "random" every row with the same
            probability, "doubt" half of each grade's rows among its most doubtful fifth.
        seed: same seed, same rows.
        y: with features as ``data``, the grades.
        label: with a frame, its column of grades; "label" when not given.
        qid: with a frame, its column of query ids ("qid" when not given), else the query of every row.
        group: instead of ``qid``, documents per query.
        doubt: a number per row of ``data``, high where the grade is doubtful; for "doubt" only.

    Returns:
        The sheet: ``rows`` and ``row_ids`` to judge, ``shares`` for ``from_gold``.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((100, 1)), [0] * 90 + [1] * 10, qid=[1] * 100)
    >>> sample_gold(data, 30)
    GoldSheet(30 rows, stratified, given grades {0: 20, 1: 10})
    """
    data = as_data(data, y, label=label, qid=qid, group=group)
    one_of("sampling strategy", strategy, STRATEGIES)
    check_integer("n", n)
    present = int((np.bincount(data.y) > 0).sum()) if data.n_docs else 0
    if not present <= n <= data.n_docs:
        rule = f"must lie between the number of grades ({present}) and of rows ({data.n_docs:,})"
        raise invalid("n", rule, n, remedy="Every given grade needs at least one row.")
    if strategy == "doubt" and doubt is None:
        raise invalid("strategy 'doubt'", "needs the doubt of every row (doubt)", "none")
    if strategy != "doubt" and doubt is not None:
        raise invalid("doubt", "goes with strategy 'doubt'", repr(strategy))
    # A stream of its own: the same seed may have drawn the noise, and the sample must not follow it.
    rng = np.random.default_rng([seed, STREAM])
    shares = np.ones(data.n_docs)
    if strategy == "random":
        rows = rng.choice(data.n_docs, size=n, replace=False)
    elif strategy == "stratified":
        rows = _from_strata(data.y.astype(np.int64), n, rng)
    else:
        doubtful, shares = _most_doubtful(data, np.asarray(doubt, dtype=np.float64))
        rows = _from_strata(data.y * 2 + doubtful, n, rng)
    rows = rng.permutation(rows)
    return GoldSheet(
        row_ids=data.row_ids[rows],
        query_ids=data.qid[rows],
        doc_ids=None if data.doc_ids is None else data.doc_ids[rows],
        given_grades=data.y[rows].astype(np.int64),
        shares=shares[rows],
        strategy=strategy,
        rows=rows,
    )


def from_gold(
    data: RankingData,
    row_ids: npt.ArrayLike,
    true_grades: npt.ArrayLike,
    *,
    shares: npt.ArrayLike | None = None,
    n_grades: int | None = None,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
    assumed: Any = None,
) -> NoiseEstimate:
    """The noise matrix from rows whose true grades are known, with draws from its posterior.

    Args:
        data: the data whose noise is wanted, with given grades.
        row_ids: the rows that were judged again; drawn at random within each given grade.
        true_grades: the answers, one per row id.
        shares: with sheets drawn by doubt, the share of the given grade's rows each row was drawn from.
        n_grades: grades of the scale, when the highest occurs neither in the data nor among the answers.
        level: probability that an interval is meant to hold.
        draws: matrices drawn from the posterior.
        seed: same seed, same draws.
        assumed: a noise matrix to shrink to, such as ``possible_noise(p, data.y)``: the estimate stays near
            it as long as the answers are few and do not contradict it.

    Returns:
        The estimate, the mean of its draws; with few answers it is not trusted, and says why.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(30, 5, seed=1)
    >>> noisy = cr.corrupt(data, rate=0.2, seed=2).data
    >>> sheet = sample_gold(noisy, 200, seed=3)
    >>> estimate = from_gold(noisy, sheet.row_ids, data.y[sheet.rows])
    >>> bool(abs(estimate.rate - 0.2) < 0.1)
    True
    """
    positions, truth = match_answers(data, row_ids, true_grades)
    highest = max(int(truth.max()), data.n_grades - 1)
    C = max(highest + 1, 2) if n_grades is None else n_grades
    if highest >= C:
        raise invalid("n_grades", "must exceed every grade in the data and the answers", C)
    given = data.y[positions].astype(np.int64)
    drawn_from = np.ones(len(positions)) if shares is None else np.asarray(shares, dtype=np.float64)
    if drawn_from.shape != positions.shape or not ((drawn_from > 0) & (drawn_from <= 1)).all():
        raise invalid("shares", "must be one share in (0, 1] per row", drawn_from.tolist()[:5])
    totals = np.bincount(data.y, minlength=C).astype(np.float64)
    grades, sizes, counts = _cells(given, truth, drawn_from, totals, C)
    rng = np.random.default_rng([seed, STREAM + 1])
    T, r = _posterior(grades, sizes, counts, totals, draws, rng)
    if assumed is not None:
        matrix = NoiseProfile.of(assumed, C).matrix
        others, weight = _shrunk(grades, sizes, counts, totals, matrix, draws, rng)
        taken = rng.random(draws) < weight
        T[taken], r[taken] = others[0][taken], others[1][taken]
    unseen = [g for g in range(C) if totals[g] and not (given == g).any()]
    reasons = [f"no row of given grade {g} was judged again: that column rests on the prior" for g in unseen]
    if len(positions) < FEWEST_ANSWERS:
        reasons.append(f"{len(positions)} rows of known grade are too few; {FEWEST_ANSWERS} are the least")
    answers = np.bincount(truth, minlength=C)
    known: dict[str, Any] = {}
    if (drawn_from < 1).any():
        reason = "rows drawn by doubt depend on the given grade and on features together"
        wrong = int((given != truth).sum())
        known["class_conditional"] = ClassConditionality(float("nan"), (), len(truth), wrong, reason)
    else:
        known["class_conditional"] = rows_test(data, positions, truth, seed=seed)
        known["known_rows"] = np.stack([data.row_ids[positions], truth, given], axis=1).astype(np.int64)
    return summarise(
        "gold", T, r, len(positions), level=level, answers=answers, trusted=not reasons, reasons=reasons,
        **known,
    )  # fmt: skip


def rows_test(
    data: RankingData,
    positions: IntArray,
    truth: IntArray,
    rank: FloatArray | None = None,
    *,
    seed: int = 0,
) -> ClassConditionality:
    """Whether errors of some rows depend on the query, on features or on how high systems rank them."""
    given = data.y[positions].astype(np.int64)
    rows = data.X[positions]
    features = as_array(rows[:, :MOST_TESTED])
    columns = np.nan_to_num(features.astype(np.float64), posinf=0.0, neginf=0.0)
    query = np.searchsorted(data.indptr, positions, side="right")
    covariates = {} if rank is None else {"rank": rank[positions]}
    return class_conditional_test(truth, given, query, {**covariates, "features": columns}, seed=seed)


def allocate(n: int, available: Sequence[int] | IntArray) -> IntArray:
    """Spreads n evenly over strata that hold only so many rows each.

    >>> allocate(10, [2, 50, 50]).tolist()
    [2, 4, 4]
    """
    sizes = np.asarray(available, dtype=np.int64)
    taken = np.zeros(len(sizes), dtype=np.int64)
    left = min(n, int(sizes.sum()))
    while left:
        open_ = np.flatnonzero(taken < sizes)
        each = max(left // len(open_), 1)
        add = np.minimum(sizes[open_] - taken[open_], each)
        add = np.where(np.cumsum(add) <= left, add, 0)
        taken[open_] += add
        left -= int(add.sum())
    return taken


def _from_strata(stratum: IntArray, n: int, rng: np.random.Generator) -> IntArray:
    _, inverse, sizes = np.unique(stratum, return_inverse=True, return_counts=True)
    rows = [
        rng.choice(np.flatnonzero(inverse == s), size=size, replace=False)
        for s, size in enumerate(allocate(n, sizes))
    ]
    return np.concatenate(rows)


def _most_doubtful(data: RankingData, doubt: FloatArray) -> tuple[IntArray, FloatArray]:
    """Whether a row is among the most doubtful fifth of its grade, and the share of rows it stands for."""
    if doubt.shape != (data.n_docs,) or not np.isfinite(doubt).all():
        raise invalid("doubt", f"must be a finite number per row ({data.n_docs})", f"shape {doubt.shape}")
    doubtful = np.zeros(data.n_docs, dtype=np.int64)
    shares = np.ones(data.n_docs)
    for grade in np.unique(data.y):
        rows = np.flatnonzero(data.y == grade)
        top = rows[np.argsort(-doubt[rows], kind="stable")[: round(DOUBTFUL * len(rows))]]
        if not 0 < len(top) < len(rows):
            continue
        doubtful[top] = 1
        shares[rows] = 1 - len(top) / len(rows)
        shares[top] = len(top) / len(rows)
    return doubtful, shares


def match_answers(
    data: RankingData, row_ids: npt.ArrayLike, true_grades: npt.ArrayLike
) -> tuple[IntArray, IntArray]:
    """Positions in the data and true grades of answered rows; every row must be in the data, once."""
    ids, truth = np.asarray(row_ids), np.asarray(true_grades)
    if ids.ndim != 1 or ids.shape != truth.shape or not len(ids):
        shapes = f"rows of shape {ids.shape}, grades of shape {truth.shape}"
        raise invalid("gold", "must be one true grade per row id, at least one", shapes)
    for name, values in (("row ids of gold", ids), ("true grades of gold", truth)):
        if values.dtype.kind not in "iu" or (values < 0).any():
            wrong = values[np.argmax(values < 0) if values.dtype.kind in "iu" else 0]
            raise invalid(name, "must be integers >= 0", repr(wrong.item()))
    positions = match_rows(data.row_ids, ids)
    if (positions < 0).any():
        raise invalid("row ids of gold", "must be rows of the data", int(ids[np.argmin(positions)]))
    unique, times = np.unique(ids, return_counts=True)
    if (times > 1).any():
        twice = int(unique[np.argmax(times > 1)])
        answers = ", ".join(str(g) for g in truth[ids == twice].tolist()[:5])
        raise invalid("gold", "must name every row once", f"row {twice} as {answers}")
    return positions, truth.astype(np.int64)


def _cells(
    given: IntArray, truth: IntArray, shares: FloatArray, totals: FloatArray, n_grades: int
) -> tuple[IntArray, FloatArray, FloatArray]:
    """The strata: their given grade, their rows in the data, and their answers by true grade."""
    keys = np.stack([given.astype(np.float64), shares.round(9)], axis=1)
    cells, inverse = np.unique(keys, axis=0, return_inverse=True)
    inverse = inverse.ravel()
    counts = np.zeros((len(cells), n_grades))
    np.add.at(counts, (inverse, truth), 1.0)
    grades = cells[:, 0].astype(np.int64)
    part = cells[:, 1]
    covered = np.bincount(grades, weights=part, minlength=n_grades)
    sizes = totals[grades] * part / covered[grades]
    unseen = np.setdiff1d(np.flatnonzero(totals), grades)
    return (
        np.concatenate([grades, unseen]),
        np.concatenate([sizes, totals[unseen]]),
        np.concatenate([counts, np.zeros((len(unseen), n_grades))]),
    )


def _posterior(
    grades: IntArray,
    sizes: FloatArray,
    counts: FloatArray,
    totals: FloatArray,
    draws: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Draws of T and r: as many chains as draws, each moved through every stratum SWEEPS times."""
    C = counts.shape[1]
    prior = weak_prior(C)
    part = sizes / np.maximum(totals[grades], TINY)
    shape = counts + prior.T[grades] * part[:, None]
    power = C * totals / totals.sum() - prior.sum(axis=1)
    weight = rng.dirichlet(sizes + 0.5 * part, size=draws)

    def propose(cell: int) -> FloatArray:
        gammas = rng.standard_gamma(shape[cell], size=(draws, C)) + TINY
        proposal: FloatArray = gammas * (weight[:, cell] / gammas.sum(axis=1))[:, None]
        return proposal

    joint = np.stack([propose(cell) for cell in range(len(sizes))], axis=1)
    r = joint.sum(axis=1)
    density = np.log(r) @ power
    for _ in range(SWEEPS):
        for cell in range(len(sizes)):
            moved = propose(cell)
            r_new = np.maximum(r - joint[:, cell] + moved, TINY)
            density_new = np.log(r_new) @ power
            go = np.log(rng.random(draws)) < density_new - density
            joint[go, cell], r[go], density[go] = moved[go], r_new[go], density_new[go]
    return _matrices(joint, grades)


def _shrunk(
    grades: IntArray,
    sizes: FloatArray,
    counts: FloatArray,
    totals: FloatArray,
    assumed: FloatArray,
    draws: int,
    rng: np.random.Generator,
) -> tuple[tuple[FloatArray, FloatArray], float]:
    """Draws of T and r around an assumed matrix, and its probability against the weak prior."""
    shapes = WORTHS[:, None, None] * given_posterior(assumed, totals)[grades]  # (worths, strata, grades)
    fits = _log_marginal(counts, shapes)
    joint = np.empty((draws, len(sizes), counts.shape[1]))
    weight = rng.dirichlet(sizes + 0.5, size=draws)
    for cell, chances in enumerate(softmax(fits, axis=0).T):
        worth = rng.choice(len(WORTHS), size=draws, p=chances)
        gammas = rng.standard_gamma(shapes[worth, cell] + counts[cell]) + TINY
        joint[:, cell] = gammas * (weight[:, cell] / gammas.sum(axis=1))[:, None]
    of_assumed = (logsumexp(fits, axis=0) - np.log(len(WORTHS))).sum()
    of_weak = _log_marginal(counts, weak_prior(counts.shape[1]).T[grades]).sum()
    return _matrices(joint, grades), float(expit(of_assumed - of_weak))


def _log_marginal(counts: FloatArray, shapes: FloatArray) -> FloatArray:
    """Log P(counts) of a Dirichlet-multinomial, over the last axis, up to what does not depend on shapes."""
    total = shapes.sum(axis=-1)
    rest = (gammaln(shapes + counts) - gammaln(shapes)).sum(axis=-1)
    return np.asarray(gammaln(total) - gammaln(total + counts.sum(axis=-1)) + rest)


def given_posterior(matrix: FloatArray, counts: FloatArray) -> FloatArray:
    """P(true grade l | given grade m) under T, for counts of the given grades, as [m, l]: (C, C).

    The shares of the true grades are those under which the counts are likeliest, but none is below a tenth of
    what was given.

    >>> given_posterior(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([69, 31])).round(2).tolist()
    [[0.91, 0.09], [0.23, 0.77]]
    """
    w = counts / counts.sum()
    r = np.full(len(matrix), 1 / len(matrix))
    for _ in range(EM_STEPS):
        joint = r[:, None] * matrix
        r = joint @ (w / np.maximum(joint.sum(axis=0), TINY))
    r = np.maximum(r, 0.1 * w + LEAST_SHARE)
    joint = (r[:, None] * matrix + TINY).T
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def _matrices(joint: FloatArray, grades: IntArray) -> tuple[FloatArray, FloatArray]:
    """Draws of T and r from those of the joint (draws, strata, C), where strata may share a given grade."""
    C = joint.shape[2]
    by_grade = np.zeros((len(joint), C, C))
    for cell, grade in enumerate(grades):
        by_grade[:, grade] += joint[:, cell]
    r = np.maximum(by_grade.sum(axis=1), TINY)
    T = by_grade.transpose(0, 2, 1) / r[:, :, None]
    return T, r
