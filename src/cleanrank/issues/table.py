"""What every detector returns: one row per document, with ids that travel along."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from cleanrank.data.files import existing_file, written_whole
from cleanrank.errors import BadFileError, InvalidInputError, invalid
from cleanrank.noise.profiles import Corruption
from cleanrank.types import Array, FloatArray, IntArray, RankingData, RowChoice

if TYPE_CHECKING:
    from cleanrank.issues.explain import Explanation

BoolArray = npt.NDArray[np.bool_]
COLUMNS = ("row_id", "query_id", "given_label", "doubt", "is_label_issue", "suggested_label")


@dataclass(frozen=True, eq=False, repr=False)
class LabelIssues:
    """How much each label is doubted.

    Attributes:
        row_id: the row's place in the input, as in ``RankingData.row_ids``.
        query_id: its query.
        given_label: its grade.
        doubt: between 0 and 1; 1 means surely wrong.
        is_label_issue: whether the detector would act on it.
        suggested_label: the grade it should rather have; the given one where there is no issue.
        reasons: detector -> its own score per row.
    """

    row_id: IntArray
    query_id: Array
    given_label: Array
    doubt: FloatArray
    is_label_issue: BoolArray
    suggested_label: Array
    reasons: Mapping[str, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.row_id)
        for name in COLUMNS:
            column = READ[name](name, getattr(self, name))
            if column.shape != (n,):
                raise invalid(name, f"must have one value per row ({n})", f"shape {column.shape}")
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        reasons = {}
        for name, values in self.reasons.items():
            if np.shape(values) != (n,):
                raise invalid(name, f"must have one value per row ({n})", f"shape {np.shape(values)}")
            reasons[name] = np.array(values)
            reasons[name].flags.writeable = False
        object.__setattr__(self, "reasons", reasons)
        bad = ~((self.doubt >= 0) & (self.doubt <= 1))
        if bad.any():
            row = int(np.argmax(bad))
            raise invalid("doubt", "must lie in [0, 1]", self.doubt[row], at=f"row {self.row_id[row]}")
        if len(np.unique(self.row_id)) != n:
            raise invalid("row_id", "must be different in every row", "a repeated one")

    @classmethod
    def of(
        cls,
        data: RankingData,
        *,
        doubt: npt.ArrayLike,
        is_label_issue: npt.ArrayLike,
        suggested_label: npt.ArrayLike | None = None,
        reasons: Mapping[str, npt.ArrayLike] | None = None,
    ) -> Self:
        """A table for the rows of ``data``, in their order.

        >>> import cleanrank as cr
        >>> data = cr.from_arrays(np.zeros((2, 1)), [0, 1], qid=["a", "a"])
        >>> LabelIssues.of(data, doubt=[0.9, 0.1], is_label_issue=[True, False])
        LabelIssues(2 rows, 1 issues (50.00 %))
        """
        return cls(
            row_id=data.row_ids,
            query_id=data.qid,
            given_label=data.y,
            doubt=np.asarray(doubt, dtype=np.float64),
            is_label_issue=np.asarray(is_label_issue),
            suggested_label=data.y if suggested_label is None else np.asarray(suggested_label),
            reasons={name: np.asarray(v, dtype=np.float64) for name, v in (reasons or {}).items()},
        )

    def __len__(self) -> int:
        return len(self.row_id)

    def __repr__(self) -> str:
        return f"LabelIssues({len(self):,} rows, {self.n_issues:,} issues ({100 * self.share:.2f} %))"

    @property
    def label_quality(self) -> FloatArray:
        """1 - doubt, as cleanlab has it."""
        return 1 - self.doubt

    @property
    def n_issues(self) -> int:
        """How many labels the detector would act on."""
        return int(self.is_label_issue.sum())

    @property
    def share(self) -> float:
        """Issues as a share of all rows."""
        return self.n_issues / len(self) if len(self) else 0.0

    def shares_by_grade(self) -> dict[int, float]:
        """Given grade -> share of its documents that are issues."""
        return {
            int(g): float(self.is_label_issue[self.given_label == g].mean())
            for g in np.unique(self.given_label)
        }

    def select(self, rows: RowChoice) -> "LabelIssues":
        """Keeps the rows at these positions, in that order (or those of a mask)."""
        chosen = np.asarray(rows)
        changed: dict[str, Any] = {name: getattr(self, name)[chosen] for name in COLUMNS}
        return replace(self, **changed, reasons={n: np.asarray(v)[chosen] for n, v in self.reasons.items()})

    def worst(self, n: int | None = None) -> "LabelIssues":
        """The issues, most doubted first; then by row id."""
        rows = np.flatnonzero(self.is_label_issue)
        by_doubt = rows[np.lexsort((self.row_id[rows], -self.doubt[rows]))]
        return self.select(by_doubt if n is None else by_doubt[:n])

    def aligned(self, data: RankingData) -> "LabelIssues":
        """The table's rows in the order of ``data``, matched by row id; grades must be those of ``data``."""
        order = np.argsort(self.row_id, kind="stable")
        at = np.searchsorted(self.row_id[order], data.row_ids)
        there = at < len(self)
        there[there] = self.row_id[order[at[there]]] == data.row_ids[there]
        if not there.all():
            row = int(np.argmin(there))
            raise invalid("issues", "must have a row for every row of data", "none", at=data.place(row))
        found = self.select(order[at])
        differs = found.given_label != data.y
        if differs.any():
            row = int(np.argmax(differs))
            raise invalid(
                "given_label", f"must be the grade in data ({data.y[row]})", found.given_label[row],
                at=data.place(row), remedy="Was the table made from these data?",
            )  # fmt: skip
        return found

    def precision(self, truth: "Corruption | BoolArray") -> float:
        """The share of issues that are wrong labels; NaN without issues."""
        wrong = self._wrong(truth)
        return float(wrong[self.is_label_issue].mean()) if self.n_issues else float("nan")

    def recall(self, truth: "Corruption | BoolArray") -> float:
        """The share of wrong labels that are issues; NaN without wrong labels."""
        wrong = self._wrong(truth)
        return float(self.is_label_issue[wrong].mean()) if wrong.any() else float("nan")

    def average_precision(self, truth: "Corruption | BoolArray") -> float:
        """Average precision of the rows by descending doubt; tied rows share one place."""
        return average_precision(self.doubt, self._wrong(truth))

    def average_precision_by_grade(self, truth: "Corruption | BoolArray") -> dict[int, float]:
        """Given grade -> average precision among its rows; NaN where none of them is wrong.

        Rare grades are more often wrong, so a detector that knows the given grade alone looks good over all
        rows; within a grade it has the base rate.
        """
        wrong = self._wrong(truth)
        return {
            int(g): average_precision(self.doubt[self.given_label == g], wrong[self.given_label == g])
            for g in np.unique(self.given_label)
        }

    def quality(self, truth: "Corruption | BoolArray") -> dict[str, dict[str, float]]:
        """Precision, recall, average precision and base rate, over all rows and within each given grade.

        A detector that only finds documents of one grade must be compared within that grade: the base rate of
        wrong labels differs between grades.
        """
        wrong = self._wrong(truth)
        groups = {"all": np.ones(len(self), dtype=np.bool_)}
        groups |= {f"grade {g}": self.given_label == g for g in np.unique(self.given_label)}
        found = {}
        for name, rows in groups.items():
            part = self.select(rows)
            found[name] = {
                "documents": float(rows.sum()),
                "issues": float(part.n_issues),
                "base_rate": float(wrong[rows].mean()),
                "precision": part.precision(wrong[rows]),
                "recall": part.recall(wrong[rows]),
                "average_precision": part.average_precision(wrong[rows]),
            }
        return found

    def explain(
        self,
        data: RankingData,
        n: int | None = 20,
        *,
        rows: npt.ArrayLike | None = None,
        scores: npt.ArrayLike | None = None,
        neighbours: int = 4,
    ) -> "list[Explanation]":
        """Reasons in words for the worst ``n`` issues, or for some ``rows``; see ``issues/explain.py``."""
        from cleanrank.issues.explain import explain

        return explain(self, data, n, rows=rows, scores=scores, neighbours=neighbours)

    def to_frame(self) -> Any:
        """A pandas DataFrame with cleanlab's column names, indexed by row id."""
        import pandas as pd

        columns = {name: getattr(self, name) for name in COLUMNS[1:]}
        columns["label_quality"] = self.label_quality
        return pd.DataFrame({**columns, **self.reasons}, index=pd.Index(self.row_id, name="row_id"))

    def save(self, path: str | Path) -> None:
        """Writes CSV, or Parquet where the name ends so."""
        frame = self.to_frame().reset_index()
        with written_whole(path) as part:
            if str(path).endswith(".parquet"):
                frame.to_parquet(part, index=False)
            else:
                frame.to_csv(part, index=False)

    def _wrong(self, truth: "Corruption | BoolArray") -> BoolArray:
        """Which rows of the table are wrong; a Corruption is matched by row id, a mask by place."""
        if not isinstance(truth, Corruption):
            mask = np.asarray(truth, dtype=np.bool_)
            if mask.shape != (len(self),):
                raise invalid("truth", f"must have one value per row ({len(self)})", f"shape {mask.shape}")
            return mask
        order = np.argsort(truth.data.row_ids, kind="stable")
        ids = truth.data.row_ids[order]
        at = np.minimum(np.searchsorted(ids, self.row_id), len(ids) - 1)
        if (ids[at] != self.row_id).any():
            row = int(np.argmax(ids[at] != self.row_id))
            raise invalid("row_id", "must be one of the corrupted data", int(self.row_id[row]))
        found: BoolArray = truth.changed[order[at]]
        return found


def average_precision(doubt: FloatArray, wrong: BoolArray) -> float:
    """Sum over thresholds of (recall step) x precision; ties in doubt share a threshold.

    >>> average_precision(np.array([0.9, 0.5, 0.5, 0.1]), np.array([True, True, False, False]))
    0.8333333333333333
    """
    if not wrong.any():
        return float("nan")
    order = np.argsort(-doubt, kind="stable")
    hits = np.cumsum(wrong[order])
    last = np.append(np.flatnonzero(np.diff(doubt[order])), len(doubt) - 1)
    precision = hits[last] / (last + 1)
    steps = np.diff(hits[last], prepend=0) / hits[-1]
    return float((precision * steps).sum())


def read_doubts(path: str | Path) -> LabelIssues:
    """Reads what ``LabelIssues.save`` wrote, or any CSV or Parquet file with those columns."""
    import pandas as pd

    file = existing_file(path)
    try:
        frame = pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file)
    except (ValueError, OSError) as error:
        found = str(error).strip().rstrip(".")
        raise BadFileError(f"{file.name} must be a table; got {found}.", str(file)) from error
    for name in COLUMNS:
        if name not in frame.columns:
            raise BadFileError(
                f"{file.name} must have the column {name!r}; got {', '.join(map(str, frame.columns))}.",
                str(file),
            )
    names = {each.name for each in fields(LabelIssues)} | {"label_quality"}
    reasons = {
        str(name): frame[name].to_numpy(np.float64)
        for name in frame.columns
        if name not in names and frame[name].dtype.kind in "fiu"
    }
    try:
        return LabelIssues(**{name: frame[name].to_numpy() for name in COLUMNS}, reasons=reasons)
    except InvalidInputError as error:
        raise BadFileError(f"{file.name}: {error}", str(file)) from error


def _whole(name: str, values: Any) -> Array:
    """Whole numbers, also when a spreadsheet made them 2.0."""
    given = np.asarray(values)
    if given.dtype.kind in "iu":
        return np.array(given)
    try:
        numbers = given.astype(np.float64)
    except (TypeError, ValueError):
        numbers = np.array([_number(each) for each in given.ravel()]).reshape(given.shape)
    bad = ~(np.isfinite(numbers) & (numbers == np.rint(numbers)))
    if bad.any():
        _refuse(name, "must be whole numbers", given, bad)
    return numbers.astype(np.int64)


def _numbers(name: str, values: Any) -> FloatArray:
    given = np.asarray(values)
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        bad = np.array([np.isnan(_number(each)) for each in given.ravel()])
        _refuse(name, "must be numbers", given, bad)


def _flags(name: str, values: Any) -> BoolArray:
    """True and False, also as 0 and 1 or in words; a blank is neither, and would pass for True."""
    given = np.asarray(values)
    if given.dtype.kind == "b":
        return np.array(given)
    found = np.array([FLAGS.get(str(each).strip().lower(), -1) for each in given.ravel()], dtype=np.int8)
    if (found < 0).any():
        _refuse(name, "must be True or False", given, found < 0)
    return found.astype(np.bool_).reshape(given.shape)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def _refuse(name: str, rule: str, given: Array, bad: BoolArray) -> NoReturn:
    place = int(np.argmax(bad))
    raise invalid(name, rule, repr(given.ravel()[place]), at=f"place {place} (from 0)")


FLAGS = {"true": 1, "false": 0, "1": 1, "0": 0, "1.0": 1, "0.0": 0}
READ: dict[str, Callable[[str, Any], Array]] = {
    "row_id": _whole,
    "query_id": lambda name, values: np.array(values),
    "given_label": _whole,
    "doubt": _numbers,
    "is_label_issue": _flags,
    "suggested_label": _whole,
}
