"""Reasons in words that a person can check, for the few rows that somebody will look at.

"graded 0, but ranked 2nd of 87 by models that never saw it; 3 of 4 nearest neighbours are graded 2"

Ranks come from a table's column ``expected_grade`` (out-of-fold, so that the row's own label had no say),
neighbours from the features, each column standardised; a missing value counts as the column's mean. Distances
are computed for the rows shown only, a block of the data at a time, so memory stays linear.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.issues.evidence import evidence_words
from cleanrank.issues.table import EXPECTED, PROBABILITY, BoolArray, LabelIssues
from cleanrank.ragged import match_rows
from cleanrank.stored import as_array, blocks, is_dense
from cleanrank.types import Array, FloatArray, IntArray, RankingData

BLOCK_VALUES = 1 << 21
SURE = 0.005


@dataclass(frozen=True)
class Explanation:
    """Why one label is doubted: a row of a LabelIssues, and its reasons, detector or evidence -> words."""

    row_id: int
    query_id: Any
    given_label: int
    suggested_label: int
    doubt: float
    reasons: Mapping[str, str]
    doc_id: str | None = None

    @property
    def why(self) -> str:
        """All reasons in one sentence."""
        return "; ".join(self.reasons.values())

    def to_json(self) -> dict[str, Any]:
        """A JSON-like record."""
        return {**asdict(self), "query_id": str(self.query_id), "why": self.why}


def explain(
    table: LabelIssues,
    data: RankingData,
    n: int | None = 20,
    *,
    rows: npt.ArrayLike | None = None,
    scores: npt.ArrayLike | None = None,
    neighbours: int = 4,
) -> list[Explanation]:
    """Says in words why the worst rows are doubted.

    Args:
        table: what a detector found in ``data``; matched by row id.
        data: the judged rows.
        n: how many of the issues, most doubted first; None means all.
        rows: ids of the rows to explain instead.
        scores: ranks documents in place of the table's own expected grades; one per row of ``data``, from
            models that never saw the row.
        neighbours: nearest rows that are asked; 0 asks none.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[1.0], [1.1], [5.0], [5.1]], [1, 1, 0, 1], group=[4])
    >>> issues = LabelIssues.of(data, doubt=[0, 0, 0, 0.9], is_label_issue=[False, False, False, True])
    >>> explain(issues, data, scores=[4.0, 3.0, 2.0, 1.0], neighbours=1)[0].why
    'graded 1, but ranked 4th of 4 by models that never saw it; its nearest neighbour is graded 0'
    """
    table = table.aligned(data)
    places = _rows(table, n, rows)
    if neighbours < 0:
        raise invalid("neighbours", "must not be negative", neighbours)
    ranking = _ranking(table, data, scores)
    words = [{"rank": _rank_words(data, int(row), ranking)} for row in places]
    for known, further in zip(words, evidence_words(data, places), strict=True):
        known |= further
    k = min(neighbours, data.n_docs - 1)
    blank = blank_rows(data.X[places])
    if k > 0 and not blank.all():
        near = nearest(data.X, places[~blank], k)
        for i, others in zip(np.flatnonzero(~blank).tolist(), near, strict=True):
            words[i]["neighbours"] = _neighbour_words(data.y[others])
    if blank.any():
        # Blank rows are all alike: which of them are nearest would be the order of the file.
        grades = data.y[blank_rows(data.X)]
        for i in np.flatnonzero(blank).tolist():
            words[i]["blank"] = _blank_words(grades, int(data.y[places[i]]))
    for name, (columns, speak) in SPOKEN.items():
        if all(column in table.reasons for column in columns):
            for i, row in enumerate(places):
                sentence = speak(table, int(row))
                if sentence:
                    words[i][name] = sentence
    parts = (table.row_id, table.query_id, table.given_label, table.suggested_label, table.doubt)
    docs = [None] * len(places) if data.doc_ids is None else data.doc_ids[places].tolist()
    values = zip(*(column[places].tolist() for column in parts), words, docs, strict=True)
    return [Explanation(*each) for each in values]


def nearest(X: Any, rows: IntArray, k: int) -> IntArray:
    """The k nearest other rows of each of ``rows`` by standardised features; ties go to the earlier row."""
    mean, scale = _moments(X)
    points = _standardised(X[rows], mean, scale)
    own_square = (points**2).sum(axis=1)[:, None]
    size = max(1, BLOCK_VALUES // max(1, X.shape[1], len(rows)))
    best = np.full((len(rows), k), np.inf)
    nearest_rows = np.full((len(rows), k), -1, dtype=np.int64)
    each = np.arange(len(rows))
    for start in range(0, X.shape[0], size):
        block = _standardised(X[start : start + size], mean, scale)
        distance = np.maximum(own_square + (block**2).sum(axis=1) - 2 * points @ block.T, 0.0)
        inside = np.flatnonzero((rows >= start) & (rows < start + len(block)))
        distance[inside, rows[inside] - start] = np.inf
        limit = best[:, -1]
        if len(block) > k:
            limit = np.minimum(limit, np.partition(distance, k - 1, axis=1)[:, k - 1])
        who, at = np.nonzero(distance <= limit[:, None])
        ids = np.concatenate([nearest_rows.ravel(), at + start])
        far = np.concatenate([best.ravel(), distance[who, at]])
        who = np.concatenate([np.repeat(each, k), who])
        # Stable: of rows equally far, the earlier.
        order = np.lexsort((far, who))
        place = np.arange(len(order)) - np.searchsorted(who[order], each)[who[order]]
        kept = order[place < k]
        best, nearest_rows = far[kept].reshape(-1, k), ids[kept].reshape(-1, k)
    return nearest_rows


def blank_rows(X: Any) -> BoolArray:
    """Which rows have nothing but zeros and missing values."""
    if not is_dense(X):
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        filled = row[(X.data != 0) & ~np.isnan(X.data)]
        return np.asarray(np.bincount(filled, minlength=X.shape[0]) == 0)
    blank = np.empty(X.shape[0], dtype=np.bool_)
    for start, block in blocks(X):
        blank[start : start + len(block)] = ~((block != 0) & ~np.isnan(block)).any(axis=1)
    return blank


def ordinal(n: int) -> str:
    """1st, 2nd, 3rd, 4th.

    >>> [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)]
    ['1st', '2nd', '3rd', '4th', '11th', '12th', '13th', '21st', '102nd', '111th']
    """
    ending = "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def _rows(table: LabelIssues, n: int | None, ids: npt.ArrayLike | None) -> IntArray:
    if ids is None:
        return table.worst_rows(n)
    row_ids = np.atleast_1d(np.asarray(ids))
    place = match_rows(table.row_id, row_ids)
    if (place < 0).any():
        raise invalid("rows", "must be row ids of the table", row_ids[np.argmax(place < 0)])
    return place


def _ranking(table: LabelIssues, data: RankingData, scores: npt.ArrayLike | None) -> FloatArray | None:
    if scores is None:
        return table.reasons.get(EXPECTED)
    ranking = np.asarray(scores, dtype=np.float64)
    if ranking.shape != (data.n_docs,):
        raise invalid("scores", f"must have one value per row ({data.n_docs})", f"shape {ranking.shape}")
    return ranking


def _rank_words(data: RankingData, row: int, scores: FloatArray | None) -> str:
    if scores is None:
        return f"graded {data.y[row]}"
    q = int(np.searchsorted(data.indptr, row, side="right")) - 1
    a, b = data.indptr[q], data.indptr[q + 1]
    mine, grades = scores[row], data.y[a:b]
    # Alike scores share their ranks: the order among them is that of the file.
    top, bottom = 1 + int((scores[a:b] > mine).sum()), int((scores[a:b] >= mine).sum())
    ranked = f"{ordinal(top)} of {b - a}"
    if top < bottom:
        ranked = f"{ordinal(top)} to {ordinal(bottom)} of {b - a} (tied)"
    # The ranks that documents of this grade take when the query is sorted by grade.
    first, last = 1 + int((grades > data.y[row]).sum()), int((grades >= data.y[row]).sum())
    link = "and" if first <= bottom and top <= last else "but"
    return f"graded {data.y[row]}, {link} ranked {ranked} by models that never saw it"


def _neighbour_words(grades: Array) -> str:
    if len(grades) == 1:
        return f"its nearest neighbour is graded {grades[0]}"
    counts = np.bincount(grades)
    grade = int(counts.argmax())
    if counts[grade] == len(grades):
        return f"all {len(grades)} nearest neighbours are graded {grade}"
    if 2 * counts[grade] > len(grades):
        return f"{counts[grade]} of {len(grades)} nearest neighbours are graded {grade}"
    listed = ", ".join(str(g) for g in sorted(grades.tolist())[:-1])
    return f"its nearest neighbours are graded {listed} and {grades.max()}"


def _blank_words(grades: Array, own: int) -> str:
    """What is known of a row without features: the grades of others like it."""
    counts = np.bincount(grades)
    counts[own] -= 1
    if not counts.any():
        return "all its features are 0, as in no other row"
    grade = int(counts.argmax())
    share = f"{counts[grade] / counts.sum():.0%}"
    return f"all its features are 0, as in {counts.sum():,} others, {share} of them graded {grade}"


def _posterior_words(table: LabelIssues, row: int) -> str:
    p: list[float] = []
    while (name := f"{PROBABILITY}{len(p)}") in table.reasons:
        p.append(float(table.reasons[name][row]))
    best = int(np.argmax(p))
    own = int(table.given_label[row])
    if best == own:
        return f"with the judgement weighed in, its grade has probability {_share(p[own])}"
    return (
        f"with the judgement weighed in, grade {best} has probability {_share(p[best])}, "
        f"its own {_share(p[own])}"
    )


def _forgotten_words(table: LabelIssues, row: int) -> str:
    wrong, times = table.reasons["rounds_wrong"][row], int(table.reasons["forgotten"][row])
    often = {0: "never forgotten", 1: "forgotten once", 2: "forgotten twice"}.get(
        times, f"forgotten {times} times"
    )
    return "never learnt" if wrong == 1 else f"wrong after {wrong:.0%} of the rounds, {often}"


def _twin_words(table: LabelIssues, row: int) -> str:
    twins = int(table.reasons["twins"][row])
    if not twins:
        return ""
    others = round(float(table.reasons["contradiction"][row]) * twins)
    if twins == 1:
        return f"its twin (same features) is graded {'otherwise' if others else 'alike'}"
    return f"{others} of its {twins} twins (same features) are graded otherwise"


def _click_words(table: LabelIssues, row: int) -> str:
    impressions, clicks = int(table.reasons["impressions"][row]), int(table.reasons["clicks"][row])
    if not impressions:
        return ""
    than = "more" if table.reasons["click_rate_excess"][row] > 0 else "less"
    return f"clicked {clicks:,} of {impressions:,} times, {than} than its grade and its ranks explain"


def _share(p: float) -> str:
    """A probability in two digits; what would round to certainty is said as a bound."""
    if p < SURE:
        return "< .01"
    return "> .99" if p > 1 - SURE else f"{p:.2f}".removeprefix("0")


def _moments(X: Any) -> tuple[FloatArray, FloatArray]:
    """Mean and 1 / standard deviation of every column, 0 for a constant one; sparse columns keep their 0."""
    if not is_dense(X):
        n = max(X.shape[0], 1)
        exact = X.astype(np.float64)
        mean = np.asarray(exact.sum(axis=0)).ravel() / n
        square = np.asarray(exact.multiply(exact).sum(axis=0)).ravel() / n
        spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    else:
        count, total, square = (np.zeros(X.shape[1]) for _ in range(3))
        shift = np.nan_to_num(as_array(X[:1]).sum(axis=0, dtype=np.float64), posinf=0.0, neginf=0.0)
        for _, values in blocks(X):
            # Minus the first row: sums of squares of large values would lose the spread.
            block = values.astype(np.float64) - shift
            finite = np.isfinite(block)
            block = np.where(finite, block, 0.0)
            count += finite.sum(axis=0)
            total += block.sum(axis=0)
            square += (block**2).sum(axis=0)
        count = np.maximum(count, 1)
        spread = np.sqrt(np.maximum(square / count - (total / count) ** 2, 0.0))
        mean = total / count + shift
    flat = spread <= 1e-6 * (1 + abs(mean))
    mean = mean if is_dense(X) else np.zeros_like(mean)
    return mean, np.where(flat, 0.0, 1 / np.where(flat, 1.0, spread))


def _standardised(X: Any, mean: FloatArray, scale: FloatArray) -> FloatArray:
    dense = as_array(X)
    with np.errstate(invalid="ignore"):
        scaled = (dense.astype(np.float64) - mean) * scale
    return np.where(np.isfinite(scaled), scaled, 0.0)


SPOKEN: dict[str, tuple[tuple[str, ...], Callable[[LabelIssues, int], str]]] = {
    "confident": (
        ("confident",),
        lambda table, row: (
            "by its features alone, its grade has probability " + _share(1 - table.reasons["confident"][row])
        ),
    ),
    "posterior": ((f"{PROBABILITY}0", f"{PROBABILITY}1"), _posterior_words),
    "sour": (
        ("sour",),
        lambda table, row: (
            f"{table.reasons['sour'][row]:.0%} of the models rank it where its grade does not belong"
        ),
    ),
    "isolation": (
        ("isolation",),
        lambda table, row: f"unusual features (isolation score {table.reasons['isolation'][row]:.2f})",
    ),
    "loss": (("loss",), lambda table, row: f"mean loss {table.reasons['loss'][row]:.2f} over the run"),
    "forgetting": (("forgotten", "rounds_wrong"), _forgotten_words),
    "contradictions": (("contradiction", "twins"), _twin_words),
    "clicks": (("clicks", "impressions", "click_rate_excess"), _click_words),
    "by-grade": (
        ("by_grade",),
        lambda table, row: (
            f"labels of grade {table.given_label[row]} are wrong in "
            f"{table.reasons['by_grade'][row]:.0%} of cases"
        ),
    ),
}
