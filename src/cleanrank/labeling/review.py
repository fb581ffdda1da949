"""What a person should see of a doubted label: reasons, the ranking around the document, its features.

Plain values, for the browser and the terminal alike. The document's own grade enters only ``about_issues``:
what blind mode may show, the features, speaks of the grades of the query's other documents alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.issues.explain import explain
from cleanrank.issues.table import EXPECTED, PROBABILITY, LabelIssues
from cleanrank.ragged import match_rows
from cleanrank.types import FloatArray, IntArray, RankingData

AROUND = 3
BINS = 24
DIGITS = 4  # of scores that are stored


def about_issues(issues: LabelIssues, data: RankingData, places: npt.ArrayLike) -> list[dict[str, Any]]:
    """What the units of a review keep about their rows, as JSON-like records.

    Args:
        issues: what a detector found in ``data``.
        data: the judged rows.
        places: rows of the table, in the order of the units.

    Returns:
        For each row: doubt, suggested_label, why (reasons in words), probabilities of the true grades where
        the detector has them, and scores: row id -> expected grade of all documents of the query, from
        models that never saw it.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[1.0], [1.1], [5.0], [5.1]], [1, 1, 0, 1], group=[4])
    >>> issues = LabelIssues.of(data, doubt=[0, 0, 0, 0.9], is_label_issue=[False, False, False, True])
    >>> about_issues(issues, data, [3])[0]["why"]
    'graded 1; 2 of 3 nearest neighbours are graded 1'
    """
    rows = np.asarray(places, dtype=np.int64)
    if not len(rows):
        return []
    reasons = issues.reasons
    ranked = EXPECTED in reasons
    grades = [name for name in reasons if name.startswith(PROBABILITY)]
    words = explain(issues, data, rows=issues.row_id[rows])
    in_data = match_rows(data.row_ids, issues.row_id)
    by_row = np.full(data.n_docs, np.nan)
    if ranked:
        by_row[in_data] = reasons[EXPECTED]
    records = []
    for place, each in zip(rows.tolist(), words, strict=True):
        record: dict[str, Any] = {
            "doubt": round(each.doubt, DIGITS),
            "suggested_label": each.suggested_label,
            "why": each.why,
        }
        if grades:
            record["probabilities"] = [round(float(reasons[name][place]), DIGITS) for name in grades]
        if ranked:
            query = int(np.searchsorted(data.indptr, in_data[place], side="right")) - 1
            own = slice(data.indptr[query], data.indptr[query + 1])
            scores = zip(data.row_ids[own].tolist(), by_row[own].tolist(), strict=True)
            record["scores"] = {str(row): round(score, DIGITS) for row, score in scores if score == score}
        records.append(record)
    return records


class Ranked(NamedTuple):
    """A document in the ranking of its query: its rank from 1, and its position among the documents."""

    rank: int
    position: int


def ranking_around(scores: npt.ArrayLike, position: int, around: int = AROUND) -> list[Ranked]:
    """The first documents of a query by score and those around one of them; equal scores keep their order.

    Args:
        scores: of the query's documents, one each; NaN comes last.
        position: of the document among them.
        around: how many to show at the top, before the document and after it.

    >>> ranking_around([0.1, 0.9, 0.5, 0.3, 0.2], position=0, around=1)
    [Ranked(rank=1, position=1), Ranked(rank=4, position=4), Ranked(rank=5, position=0)]
    """
    values = np.asarray(scores, dtype=np.float64)
    order = np.argsort(-values, kind="stable")
    at = int(np.flatnonzero(order == position)[0])
    near = range(max(0, at - around), min(len(order), at + around + 1))
    shown = sorted({*range(min(around, len(order))), *near})
    return [Ranked(place + 1, int(order[place])) for place in shown]


@dataclass(frozen=True)
class FeaturePlace:
    """Where one document lies among the documents of its query, by one feature.

    Attributes:
        name: of the feature.
        value: of the document; None where it is missing.
        low: the least value in the query.
        high: the largest.
        counts: the query's documents in bins of equal width from low to high.
        at: where the value lies between low (0) and high (1); None where it is missing.
        below: share of the other documents with a smaller value; equal ones count half.
        by_grade: given grade -> where the median of the other documents with this grade lies.
        distance: from the query's median, in widths of its middle half (where that is nothing, in standard
            deviations).
    """

    name: str
    value: float | None
    low: float
    high: float
    counts: tuple[int, ...]
    at: float | None
    below: float | None
    by_grade: Mapping[int, float]
    distance: float

    @property
    def words(self) -> str:
        """The place in words, for people who do not see the picture."""
        if self.value is None or self.below is None:
            return f"{self.name}: missing"
        return f"{self.name}: {self.value:.4g}, above {self.below:.0%} of the query's other documents"


def feature_places(
    features: npt.ArrayLike,
    position: int,
    labels: Sequence[int | None] | None = None,
    names: Sequence[str] = (),
    *,
    bins: int = BINS,
) -> list[FeaturePlace]:
    """A document's features beside those of its query, the most unusual first; then in their order.

    Features that are the same in the whole query say nothing and are left out.

    Args:
        features: (documents of the query, features).
        position: of the document among them.
        labels: given grades of the documents; None where one has none.
        names: of the features; numbered from 1 unless given.
        bins: of the histograms.

    >>> rows = [[1.0, 7.0], [2.0, 7.0], [9.0, 7.0]]
    >>> places = feature_places(rows, position=2, labels=[0, 0, 1], names=["a", "b"])
    >>> [each.words for each in places], places[0].by_grade
    (["a: 9, above 100% of the query's other documents"], {0: 0.0625})
    """
    values = np.asarray(features, dtype=np.float64)
    if values.ndim != 2 or not 0 <= position < len(values):
        raise invalid("features", f"must be a table with a row {position}", f"shape {values.shape}")
    if names and len(names) != values.shape[1]:
        raise invalid("names", f"must be as many as there are features ({values.shape[1]})", len(names))
    others = np.arange(len(values)) != position
    grades = np.array([-1 if label is None else label for label in labels or [None] * len(values)])
    places = []
    for column in range(values.shape[1]):
        known = np.isfinite(values[:, column])
        if known.any() and np.ptp(values[known, column]) > 0:
            name = names[column] if names else f"feature {column + 1}"
            places.append(_place(values[:, column], known, position, others, grades, name, bins))
    return sorted(places, key=lambda each: -each.distance)


def _place(
    column: FloatArray,
    known: npt.NDArray[np.bool_],
    position: int,
    others: npt.NDArray[np.bool_],
    grades: IntArray,
    name: str,
    bins: int,
) -> FeaturePlace:
    present = column[known]
    low, high = float(present.min()), float(present.max())
    counts, _ = np.histogram(present, bins=bins, range=(low, high))
    first, median, third = np.quantile(present, [0.25, 0.5, 0.75])
    medians = {
        int(grade): float((np.median(column[known & others & (grades == grade)]) - low) / (high - low))
        for grade in np.unique(grades[known & others])
        if grade >= 0
    }
    value, at, below, distance = None, None, None, 0.0
    if known[position]:
        value = float(column[position])
        at = (value - low) / (high - low)
        rest = column[known & others]
        below = float(((rest < value) + 0.5 * (rest == value)).mean()) if len(rest) else None
        distance = abs(value - float(median)) / float(third - first or present.std())
    return FeaturePlace(name, value, low, high, tuple(counts.tolist()), at, below, medians, distance)
