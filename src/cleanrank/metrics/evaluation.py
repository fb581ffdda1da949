"""Evaluate a ranking: values of measures per query, means, intervals.

Scores must be finite, one per row; ``data.inputs.scores_by_row`` puts them into the order of the data.
Masked ones (``numpy.ma``) belong to documents that the system did not retrieve: they have no rank, but count
in ideal rankings and among the relevant documents. Where the data carry real-valued gains, dcg and ndcg use
them; every other measure reads the grades.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cleanrank.data.inputs import as_judged, scores_by_row
from cleanrank.errors import CleanrankError, invalid
from cleanrank.jit import has_numba, threads
from cleanrank.metrics import _reference, significance
from cleanrank.metrics.measure import (
    DEFAULT_CONVENTION,
    MAX_EXP_GRADE,
    Measure,
    MeasureLike,
    as_measures,
    describe_parts,
)
from cleanrank.ragged import query_of_row
from cleanrank.types import Array, FloatArray, IntArray, RankingData, Run
from cleanrank.validation import one_of

Scores: TypeAlias = "npt.ArrayLike | Run"


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Mapping[str, FloatArray]):
    """Values of measures per query; a mapping from the text of a measure to an array of Q values.

    NaN marks a query that the measure leaves out. Any text that means an evaluated measure is a key.

    Attributes:
        measures: what was measured, in order.
        by_query: (M, Q).
        weights: (M, Q), what a query weighs in the mean: 1, or its number of pairs where pairs are pooled.
        query_ids: the queries, in order.
        convention: what holds for measures that name none: ``trec`` for TREC runs.
    """

    measures: tuple[Measure, ...]
    by_query: FloatArray
    weights: FloatArray
    query_ids: Array
    convention: str = DEFAULT_CONVENTION

    def __getitem__(self, measure: MeasureLike) -> FloatArray:
        row: FloatArray = self.by_query[self.index(measure)]
        return row

    def __iter__(self) -> Iterator[str]:
        return (str(m) for m in self.measures)

    def __len__(self) -> int:
        return len(self.measures)

    def __contains__(self, measure: object) -> bool:
        try:
            return as_measures(measure, self.convention)[0] in self.measures  # type: ignore[arg-type]
        except CleanrankError:
            return False

    def get(self, measure: MeasureLike, default: Any = None) -> Any:
        """The values of a measure, or ``default`` where it was not evaluated."""
        return self[measure] if measure in self else default  # noqa: SIM401 (it would call itself)

    def index(self, measure: MeasureLike) -> int:
        """The line of a measure in ``by_query``."""
        parsed = as_measures(measure, self.convention)[0]
        if parsed not in self.measures:
            one_of("evaluated measure", str(parsed), list(self))
        return self.measures.index(parsed)

    @property
    def means(self) -> dict[str, float]:
        """The mean over queries of each measure, in its own weighting."""
        means = weighted_means(self.by_query, self.weights)
        return {str(m): float(v) for m, v in zip(self.measures, means, strict=True)}

    def intervals(
        self, level: float = 0.95, seed: int = 0, resamples: int = 10_000
    ) -> dict[str, tuple[float, float]]:
        """Bootstrap intervals of the means over queries."""
        low, high = significance.mean_intervals(self.by_query, self.weights, level, resamples, seed)
        return {str(m): (float(a), float(b)) for m, a, b in zip(self.measures, low, high, strict=True)}

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row per query and a column per measure."""
        import pandas as pd

        columns = {str(m): row for m, row in zip(self.measures, self.by_query, strict=True)}
        return pd.DataFrame(columns, index=pd.Index(self.query_ids, name="query_id"))

    def __repr__(self) -> str:
        rows = [("measure", "mean", "queries", "convention")]
        for m, mean, values in zip(self.measures, self.means.values(), self.by_query, strict=True):
            used = int((~np.isnan(values)).sum())
            rows.append((str(m), f"{mean:.4f}", f"{used:,}", describe_parts(m)))
        return aligned(rows)


def evaluate(
    scores: Scores,
    data: Any = None,
    measures: "MeasureLike | Iterable[MeasureLike]" = "ndcg@10",
    *,
    order: str | None = None,
    y: npt.ArrayLike | None = None,
    label: str | None = None,
    qid: Any = None,
    group: npt.ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Evaluation:
    """Measures the ranking that ``scores`` give on judged data.

    Args:
        scores: one per row of the data, masked (``numpy.ma``) where a document was not retrieved; or a Run
            (``read_run``): then ``data`` are its judgements (``read_qrels``), all of their topics count, and
            measures that name no convention follow ``trec``.
        data: the judged rows: a RankingData, or a frame with the columns ``label`` and ``qid``.
        measures: one or several, as text or Measure.
        order: which order the scores are in, where the rows of ``data`` were regrouped by query: "input" as
            they stood in the input, "data" as in ``data.X``. Scores of a frame or of arrays are in its own.
        y: without a RankingData or a frame, the grades; with ``qid`` or ``group``.
        label: with a frame, its column of grades; "label" when not given.
        qid: with a frame, its column of query ids ("qid" when not given), else the query of every row.
        group: instead of ``qid``, documents per query.
        n_jobs: threads; results do not depend on it.

    Returns:
        An Evaluation: measure -> one value per query, with ``means`` and ``intervals()``.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[1.0]] * 4, [1, 0, 0, 2], qid=[1, 1, 2, 2])
    >>> evaluate([0.1, 0.2, 0.3, 0.4], data, ["ndcg@10", "mrr"]).means
    {'ndcg@10': 0.8154648767857288, 'mrr': 0.75}
    """
    judged, order = as_judged(scores, data, order, y=y, label=label, qid=qid, group=group)
    (by_row,), judged, convention = as_rows([scores], judged, order)
    return _evaluate(by_row, judged, as_measures(measures, convention), convention, n_jobs)


def _evaluate(
    scores: npt.ArrayLike,
    data: RankingData,
    measures: tuple[Measure, ...],
    convention: str,
    n_jobs: int | None,
) -> Evaluation:
    """``evaluate`` for scores in the order of the data."""
    values, weights = np.empty((2, len(measures), data.n_queries))
    for by_id in (True, False):
        chosen = [m for m, measure in enumerate(measures) if (measure.ties == "doc_id") == by_id]
        if chosen:
            values[chosen], weights[chosen] = query_values(
                tuple(measures[m] for m in chosen), data.y, trec_scores(scores, data) if by_id else scores,
                data.indptr, data.gains, data.judged, n_jobs=n_jobs, data=data,
            )  # fmt: skip
    return Evaluation(measures, values, weights, data.query_ids, convention)


def as_rows(
    systems: "Sequence[Scores]", data: RankingData, order: str | None = None
) -> tuple[Sequence[npt.ArrayLike], RankingData, str]:
    """Scores per row of data, those data, and the convention of measures that name none; joins TREC runs."""
    runs = [system for system in systems if isinstance(system, Run)]
    arrays = [system for system in systems if not isinstance(system, Run)]
    if not runs:
        return [scores_by_row(scores, data, order) for scores in arrays], data, DEFAULT_CONVENTION
    if arrays:
        raise invalid("scores", "must all be TREC runs or all be numbers per row", "some of each")
    from cleanrank.data.trec import join_runs

    joined = join_runs(data, runs)
    return joined.scores, joined.data, "trec"


def trec_scores(scores: npt.ArrayLike, data: RankingData) -> Array:
    """Scores that rank as trec_eval does: of 32 bits, ties by falling document id (without ids, by row)."""
    checked = checked_scores(scores, data.n_docs, data)
    most = np.finfo(np.float32).max
    clipped = np.where(np.isneginf(checked), checked, np.clip(checked, -most, most))
    narrow = clipped.astype(np.float32).astype(np.float64)
    query = query_of_row(data.indptr)
    ids = np.arange(data.n_docs) if data.doc_ids is None else np.asarray(data.doc_ids).astype(str)
    if ((ids[1:] < ids[:-1]) | (query[1:] != query[:-1])).all():
        # As the rows of a join with a run stand: stable ties fall right.
        return np.ma.masked_equal(narrow, -np.inf)
    by_id = np.empty(data.n_docs, dtype=np.int64)
    by_id[np.argsort(ids, kind="stable")] = np.arange(data.n_docs)
    strict = np.empty(data.n_docs)
    strict[np.lexsort((-by_id, -narrow, query))] = -np.arange(data.n_docs)
    return np.ma.masked_array(strict, mask=np.isneginf(narrow))


def evaluate_mean(
    scores: npt.ArrayLike, data: RankingData, measure: MeasureLike, *, n_jobs: int | None = None
) -> float:
    """The mean over queries of one measure, of scores of ``data.X``: what models are chosen by."""
    (mean,) = _evaluate(scores, data, as_measures(measure), DEFAULT_CONVENTION, n_jobs).means.values()
    return mean


def evaluate_arrays(
    y: npt.ArrayLike,
    scores: npt.ArrayLike,
    indptr: npt.ArrayLike,
    measures: "MeasureLike | Iterable[MeasureLike]" = "ndcg@10",
    gains: npt.ArrayLike | None = None,
    *,
    n_jobs: int | None = None,
) -> Evaluation:
    """``evaluate`` for plain arrays: grades and scores per row, Q + 1 row offsets of the queries.

    >>> evaluate_arrays([0, 1], [2.0, 1.0], [0, 2], "map")["map"].tolist()
    [0.5]
    """
    grades, offsets = np.asarray(y), np.asarray(indptr)
    if grades.ndim != 1 or offsets.ndim != 1 or not len(offsets):
        shapes = f"shapes {grades.shape} and {offsets.shape}"
        raise invalid("y and indptr", "must be lists of grades and of row offsets", shapes)
    data = RankingData(
        X=np.zeros((len(grades), 0), dtype=np.float32),
        y=grades,
        indptr=offsets,
        query_ids=np.arange(len(offsets) - 1),
        row_ids=np.arange(len(grades)),
        gains=None if gains is None else np.asarray(gains),
    )
    return evaluate(scores, data, measures, n_jobs=n_jobs)


def query_values(
    measures: tuple[Measure, ...],
    y: Array,
    scores: npt.ArrayLike,
    indptr: IntArray,
    gains: Array | None = None,
    judged: Array | None = None,
    *,
    n_jobs: int | None = None,
    data: RankingData | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Values and weights (M, Q) of checked grades; compiled where numba is installed."""
    checked = checked_scores(scores, len(y), data)
    check_grades(measures, y, gains)
    check_retrieved(measures, checked)
    if not has_numba():
        return _reference.query_measures(measures, y, checked, indptr, gains, judged)
    from cleanrank.metrics import _kernels

    plan = _kernels.make_plan(measures, y, indptr)
    values = np.empty((len(measures), len(indptr) - 1))
    weights = np.empty_like(values)
    own_gains = np.zeros(0) if gains is None else gains
    own_judged = np.ones(0, dtype=np.bool_) if judged is None else judged
    with threads(n_jobs) if n_jobs is not None else nullcontext():
        _kernels.query_measures(
            plan.rows, checked, plan.code, own_judged, indptr, plan.bounds, own_gains, plan.gain_of,
            plan.discounts, plan.top, values, weights,
        )  # fmt: skip
    return values, weights


def checked_scores(scores: npt.ArrayLike, n: int, data: RankingData | None = None) -> Array:
    """Finite scores as float32 or float64, one per row; -inf where they are masked."""
    missing = np.ma.getmaskarray(scores).ravel() if np.ma.isMaskedArray(scores) else None
    array = np.asarray(scores)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (n,):
        raise invalid("scores", f"must hold one number per row ({n})", f"shape {array.shape}")
    if array.dtype.kind not in "iufb":
        raise invalid("scores", "must be numbers", f"dtype {array.dtype}")
    narrow = array.dtype in (np.float32, np.float16)
    array = np.ascontiguousarray(array, dtype=np.float32 if narrow else np.float64)
    if missing is not None and missing.any():
        checked_scores(array[~missing], n - int(missing.sum()), data and data.drop(missing))
        return np.where(missing, array.dtype.type(-np.inf), array)
    # The least and the largest tell of NaN and infinity without a mask of n entries.
    if n and not (np.isfinite(array.min()) and np.isfinite(array.max())):
        row = int(np.argmin(np.isfinite(array)))
        at = f"row {row}" if data is None else data.place(row)
        raise invalid("scores", "must be finite", array[row], at=at,
                    remedy="Look for overflow or missing features where the scores were made.")  # fmt: skip
    return array


def check_grades(measures: tuple[Measure, ...], y: Array, gains: Array | None) -> None:
    """Refuses grades that a measure cannot read."""
    most = int(y.max(initial=0))
    for m in measures:
        if m.name == "err" and most > (m.max_grade or 0):
            subject, rule = f"max_grade of {str(m)!r}", "must be at least the highest grade of the data"
            remedy = f"Write 'err:max_grade={most}'." if most <= MAX_EXP_GRADE else "Use fewer grades."
            raise invalid(subject, rule, f"{m.max_grade} for the grade {most}", remedy=remedy)
        if m.gain == "exp" and gains is None and most > MAX_EXP_GRADE:
            rule = f"must not exceed {MAX_EXP_GRADE} with the gain 2^y - 1"
            remedy = f"Use '{m}:gain=linear' or give gains=."
            raise invalid("grades", rule, most, at=f"row {int(np.argmax(y))}", remedy=remedy)


def check_retrieved(measures: tuple[Measure, ...], checked: Array) -> None:
    """Refuses measures of pairs where documents have no rank: there is no order to be right or wrong."""
    for m in measures:
        if m.name in ("auc", "pairacc", "tau") and np.isneginf(checked).any():
            missing = f"{int(np.isneginf(checked).sum()):,} of {len(checked):,} documents not retrieved"
            remedy = "Measures of ranks, such as ndcg, map, recall and bpref, take them as never found."
            raise invalid(f"{str(m)!r}", "must have a score for every document", missing, remedy=remedy)


def weighted_means(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted means of the lines of ``values`` without NaN; NaN where nothing is left."""
    kept = ~np.isnan(values)
    w = np.where(kept, weights, 0.0)
    with np.errstate(invalid="ignore"):
        means: FloatArray = (np.where(kept, values, 0.0) * w).sum(axis=1) / w.sum(axis=1)
    return means


def aligned(rows: Sequence[tuple[str, ...]]) -> str:
    """Rows of words as a plain table; the first is the head."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    return "\n".join("  ".join(w.ljust(n) for w, n in zip(row, widths, strict=True)).rstrip() for row in rows)
