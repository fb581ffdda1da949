"""What every detector returns: one row per document, with ids that travel along."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from cleanrank.data.files import existing_file
from cleanrank.data.inputs import Source
from cleanrank.data.spreadsheet import STREAMED, read_frame, stream_frames, write_frame
from cleanrank.errors import BadFileError, InvalidInputError, invalid
from cleanrank.noise.profiles import Corruption
from cleanrank.noise.signal import Signal
from cleanrank.ragged import match_rows
from cleanrank.types import Array, FloatArray, IntArray, RankingData, RowChoice

if TYPE_CHECKING:
    from cleanrank.issues.explain import Explanation

BoolArray = npt.NDArray[np.bool_]
COLUMNS = ("row_id", "query_id", "given_label", "doubt", "is_label_issue", "suggested_label")
# The reason column of P(true grade l | features, given grade) is p_true_l.
PROBABILITY = "p_true_"
# Columns of a file that are there for its readers.
FOR_PEOPLE = {"label_quality", "rank", "doc_id", "judged", "why"}
EXPECTED = "expected_grade"
SIGNAL = ("signal", "signal_low", "signal_high")
SUM = 1e-3


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
        source: the data that were looked at, and the frame that they were made from.
        signal: how well the features tell grades apart, out of fold; None for detectors that learn nothing
            from features, and where predictions were brought along.
    """

    row_id: IntArray
    query_id: Array
    given_label: Array
    doubt: FloatArray
    is_label_issue: BoolArray
    suggested_label: Array
    reasons: Mapping[str, FloatArray] = field(default_factory=dict)
    source: Source | None = None
    signal: Signal | None = None

    def __post_init__(self) -> None:
        n = len(self.row_id)
        columns = {name: _column(name, getattr(self, name), self.row_id) for name in COLUMNS}
        reasons = {name: np.array(values) for name, values in self.reasons.items()}
        for name, column in (*columns.items(), *reasons.items()):
            if column.shape != (n,):
                raise invalid(name, f"must have one value per row ({n})", f"shape {column.shape}")
            column.flags.writeable = False
        for name, value in {**columns, "reasons": reasons}.items():
            object.__setattr__(self, name, value)
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
        """A table for the rows of ``data``, in their order; grades are suggested for issues alone.

        >>> import cleanrank as cr
        >>> data = cr.from_arrays(np.zeros((2, 1)), [0, 1], qid=["a", "a"])
        >>> LabelIssues.of(data, doubt=[0.9, 0.1], is_label_issue=[True, False])
        LabelIssues(2 rows, 1 issues (50.00 %))
        """
        suggested = data.y if suggested_label is None else np.where(is_label_issue, suggested_label, data.y)
        return cls(
            row_id=data.row_ids,
            query_id=data.qid,
            given_label=data.y,
            doubt=np.asarray(doubt, dtype=np.float64),
            is_label_issue=np.asarray(is_label_issue),
            suggested_label=suggested.astype(data.y.dtype),
            reasons={name: np.asarray(v, dtype=np.float64) for name, v in (reasons or {}).items()},
        )

    def __len__(self) -> int:
        return len(self.row_id)

    def __repr__(self) -> str:
        signal = "" if self.signal is None else f", {self.signal}"
        return f"LabelIssues({len(self):,} rows, {self.n_issues:,} issues ({100 * self.share:.2f} %){signal})"

    @property
    def caution(self) -> str:
        """Why nothing can be said about the labels; empty where something can."""
        if self.signal is None or self.signal.is_shown:
            return ""
        return (
            f"The features are not seen to tell anything about the grades: out of fold, {self.signal}, and "
            ".5 is a coin toss. No label can be called wrong by them. Do features and labels belong together "
            "(is the join right), and are there enough queries?"
        )

    def with_signal(self, signal: Signal, known: npt.ArrayLike | None = None) -> "LabelIssues":
        """The table with its signal; without one it warns, and nothing is an issue but what is known wrong.

        Args:
            signal: from predictions that never saw a row's query.
            known: (N,) true grades where they are known, -1 elsewhere.
        """
        table = replace(self, signal=signal)
        if signal.is_shown:
            return table
        warnings.warn(table.caution, stacklevel=5)
        issues = self.is_label_issue & (False if known is None else np.asarray(known) >= 0)
        suggested = np.where(issues, self.suggested_label, self.given_label)
        return replace(table, is_label_issue=issues, suggested_label=suggested)

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
        rows = np.asarray(rows)
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in COLUMNS}
        return replace(self, **columns, reasons={n: np.asarray(v)[rows] for n, v in self.reasons.items()})

    def worst(self, n: int | None = None) -> "LabelIssues":
        """The issues, most doubted first; then by row id."""
        return self.select(self.worst_rows(n))

    def worst_rows(self, n: int | None = None) -> IntArray:
        """The places in the table of the issues, most doubted first; then by row id."""
        rows = np.flatnonzero(self.is_label_issue)
        return rows[np.lexsort((self.row_id[rows], -self.doubt[rows]))][:n]

    def aligned(self, data: RankingData) -> "LabelIssues":
        """The table's rows in the order of ``data``, matched by row id; grades must be those of ``data``."""
        place = match_rows(self.row_id, data.row_ids)
        if (place < 0).any():
            at = data.place(int(np.argmax(place < 0)))
            raise invalid("issues", "must have a row for every row of data", "none", at=at)
        table = self.select(place)
        differs = table.given_label != data.y
        if differs.any():
            row = int(np.argmax(differs))
            rule, remedy = f"must be the grade in data ({data.y[row]})", "Was the table made from these data?"
            raise invalid("given_label", rule, table.given_label[row], at=data.place(row), remedy=remedy)
        return table

    def probabilities(self) -> FloatArray:
        """P(true grade | features, given grade), (N, C), for tables that carry it; others are refused."""
        columns: list[FloatArray] = []
        while (name := f"{PROBABILITY}{len(columns)}") in self.reasons:
            columns.append(np.asarray(self.reasons[name], dtype=np.float64))
        if len(columns) < 2:
            rule = f"must hold the probability of every grade ({PROBABILITY}0, {PROBABILITY}1, ...)"
            remedy = "Find them with the detector 'auto' or 'posterior'."
            raise invalid("issues", rule, ", ".join(self.reasons) or "no reasons", remedy=remedy)
        p = np.stack(columns, axis=1)
        bad = ~((p >= 0).all(axis=1) & (abs(p.sum(axis=1) - 1) < SUM)) | (self.given_label >= len(columns))
        if bad.any():
            row = int(np.argmax(bad))
            subject = f"columns {PROBABILITY}0 to {PROBABILITY}{len(columns) - 1}"
            rule, at = "must be the probabilities of all grades and sum to 1", f"row {self.row_id[row]}"
            remedy = "Use the table of one detector, as it was written."
            raise invalid(subject, rule, p[row].round(4).tolist(), at=at, remedy=remedy)
        return p

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
        """Given grade -> average precision among its rows; NaN where none of them is wrong."""
        wrong = self._wrong(truth)
        rows = {int(g): self.given_label == g for g in np.unique(self.given_label)}
        return {g: average_precision(self.doubt[mask], wrong[mask]) for g, mask in rows.items()}

    def quality(self, truth: "Corruption | BoolArray") -> dict[str, dict[str, float]]:
        """Precision, recall, average precision and base rate, over all rows and within each given grade.

        Detectors must be compared within a grade: rare grades are more often wrong, so that one that knows
        the given grade alone looks good over all rows.
        """
        wrong = self._wrong(truth)
        groups = {"all": np.ones(len(self), dtype=np.bool_)}
        groups |= {f"grade {g}": self.given_label == g for g in np.unique(self.given_label)}
        quality = {}
        for name, rows in groups.items():
            part = self.select(rows)
            quality[name] = {
                "documents": float(rows.sum()),
                "issues": float(part.n_issues),
                "base_rate": float(wrong[rows].mean()),
                "precision": part.precision(wrong[rows]),
                "recall": part.recall(wrong[rows]),
                "average_precision": part.average_precision(wrong[rows]),
            }
        return quality

    def explain(
        self,
        data: RankingData | None = None,
        n: int | None = 20,
        *,
        rows: npt.ArrayLike | None = None,
        scores: npt.ArrayLike | None = None,
        neighbours: int = 4,
    ) -> "list[Explanation]":
        """Reasons in words for the worst ``n`` issues, or for some ``rows``; see ``issues/explain.py``.

        ``data`` need not be given to the result of ``find_label_issues``.
        """
        from cleanrank.issues.explain import explain

        if data is None:
            if self.source is None:
                raise invalid("data", "must be given for a table that was read from a file")
            data = self.source.data
        return explain(self, data, n, rows=rows, scores=scores, neighbours=neighbours)

    def to_frame(self, *, why: bool = False) -> Any:
        """A pandas DataFrame with cleanlab's column names.

        Its index is that of the pandas frame that was passed to ``find_label_issues``, else the row id.
        Document ids are there where the data have them.

        Args:
            why: adds the reasons in words, for the issues.
        """
        import pandas as pd

        columns: dict[str, Any] = {name: getattr(self, name) for name in COLUMNS[1:]}
        index = pd.Index(self.row_id, name="row_id")
        if self.source is not None:
            data, frame = self.source.data, self.source.frame
            if data.doc_ids is not None:
                columns = {"doc_id": data.doc_ids[match_rows(data.row_ids, self.row_id)], **columns}
            if isinstance(frame, pd.DataFrame):
                index, columns = frame.index.take(self.row_id), {"row_id": self.row_id, **columns}
        columns["label_quality"] = self.label_quality
        if self.signal is not None:
            columns |= dict(zip(SIGNAL, astuple(self.signal), strict=True))
        if why:
            words = {each.row_id: each.why for each in self.explain(n=None)}
            columns["why"] = [words.get(row, "") for row in self.row_id.tolist()]
        return pd.DataFrame({**columns, **self.reasons}, index=index)

    def save(
        self, path: str | Path, data: RankingData | None = None, *, judged: npt.ArrayLike | None = None
    ) -> None:
        """Writes a .csv, .tsv, .xlsx or .parquet file; ``read_issues`` reads it.

        Args:
            path: the file.
            data: the rows; with them the file is for people: the most doubted first, with document ids,
                reasons in words and the texts that came along.
            judged: row ids that were judged again: they come last.
        """
        from cleanrank.issues.to_judge import frame_to_judge

        plain = replace(self, source=None)
        if data is None and Path(path).suffix == ".parquet" and len(self) > STREAMED:
            rows = np.arange(len(self))
            parts = (rows[start : start + STREAMED] for start in range(0, len(self), STREAMED))
            stream_frames((plain.select(part).to_frame().reset_index() for part in parts), path)
            return
        frame = plain.to_frame().reset_index() if data is None else frame_to_judge(plain, data, judged)
        write_frame(frame, path)

    def _wrong(self, truth: "Corruption | BoolArray") -> BoolArray:
        """Which rows of the table are wrong; a Corruption is matched by row id, a mask by place."""
        if not isinstance(truth, Corruption):
            mask = np.asarray(truth, dtype=np.bool_)
            if mask.shape != (len(self),):
                raise invalid("truth", f"must have one value per row ({len(self)})", f"shape {mask.shape}")
            return mask
        place = match_rows(truth.data.row_ids, self.row_id)
        if (place < 0).any():
            row = int(self.row_id[np.argmax(place < 0)])
            raise invalid("row_id", "must be one of the corrupted data", row)
        return np.asarray(truth.changed[place])


def expected_gains(
    probabilities: FloatArray, label_gain: Sequence[float] | None = None
) -> tuple[FloatArray, FloatArray]:
    """The expected gain sum_c P(true grade c) g_c of every row, and the gains g_c (2^c - 1 if not given).

    >>> expected_gains(np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]))[0].tolist()
    [0.5, 3.0]
    """
    C = probabilities.shape[1]
    gains = np.ldexp(1.0, np.arange(C)) - 1.0
    if label_gain is not None:
        gains = np.asarray(label_gain, dtype=np.float64)
        if len(gains) < C or not (np.isfinite(gains) & (gains >= 0)).all():
            rule = f"must list a finite gain >= 0 for grades 0..{C - 1}"
            raise invalid("label_gain", rule, gains.tolist())
        gains = gains[:C]
    return np.asarray(probabilities @ gains), gains


def average_precision(doubt: FloatArray, wrong: BoolArray) -> float:
    """Sum over thresholds of (recall step) x precision; ties in doubt share a threshold."""
    if not wrong.any():
        return float("nan")
    order = np.argsort(-doubt, kind="stable")
    hits = np.cumsum(wrong[order])
    last = np.append(np.flatnonzero(np.diff(doubt[order])), len(doubt) - 1)
    precision = hits[last] / (last + 1)
    steps = np.diff(hits[last], prepend=0) / hits[-1]
    return float((precision * steps).sum())


def read_issues(path: str | Path) -> LabelIssues:
    """Reads what ``LabelIssues.save`` wrote, or any CSV, Excel or Parquet file with those columns.

    Returns:
        The table; of a file sorted for people, in the order of the row ids.
    """
    file = existing_file(path)
    frame = read_frame(file)
    for name in COLUMNS:
        if name not in frame.columns:
            columns = ", ".join(map(str, frame.columns))
            raise BadFileError(f"{file.name} must have the column {name!r}; got {columns}.", str(file))
    names = {each.name for each in fields(LabelIssues)} | FOR_PEOPLE | set(SIGNAL)
    reasons = {
        str(name): frame[name].to_numpy(np.float64)
        for name in frame.columns
        if name not in names and frame[name].dtype.kind in "fiu"
    }
    try:
        values: dict[str, Any] = {name: frame[name].to_numpy() for name in COLUMNS}
        table = LabelIssues(**values, reasons=reasons, signal=_signal(frame))
        return table.select(np.argsort(table.row_id)) if "rank" in frame.columns else table
    except InvalidInputError as error:
        raise BadFileError(f"{file.name}: {error}", str(file)) from error


def read_words(path: str | Path, row_ids: Array) -> Array:
    """What a table of issues says in words of every row (its column why); empty where it says nothing."""
    frame = read_frame(path)
    words = frame["why"].fillna("") if "why" in frame.columns else [""] * len(frame)
    known = dict(zip(frame["row_id"].tolist(), words, strict=True))
    return np.array([str(known.get(row, "")) for row in row_ids.tolist()], dtype=object)


def _signal(frame: Any) -> Signal | None:
    """The signal that a file carries: the same three numbers in every row."""
    if len(frame) == 0 or not set(SIGNAL) <= set(frame.columns):
        return None
    auc, low, high = (float(frame[name].iloc[0]) for name in SIGNAL)
    return None if np.isnan(low) else Signal(auc, low, high)


def _column(name: str, values: Any, row_ids: Any) -> Array:
    """A copy of a column; what a spreadsheet makes of it (2.0, TRUE) is read, anything else refused.

    A blank issue is neither True nor False, and would pass for True.
    """
    cells = np.asarray(values)
    kinds, dtype, rule = KINDS.get(name, (cells.dtype.kind, None, ""))
    if cells.dtype.kind in kinds:
        return np.array(cells, dtype=np.float64 if name == "doubt" else None)
    import pandas as pd

    column = pd.Series(cells.ravel(), dtype=object)
    if name == "is_label_issue":
        column = column.astype(str).str.strip().str.lower().map(FLAGS)
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(np.float64)
    bad = np.isnan(numbers) if name == "doubt" else ~np.isfinite(numbers) | (numbers != np.rint(numbers))
    if bad.any():
        place = int(np.argmax(bad))
        cell = cells.ravel()[place]
        by_id = name != "row_id" and place < len(row_ids)
        at = f"row {np.asarray(row_ids)[place]}" if by_id else f"place {place} (from 0)"
        raise invalid(name, rule, "an empty cell" if pd.isna(cell) else repr(cell), at=at)
    return numbers.astype(dtype).reshape(cells.shape)


# Kinds of dtype that need no reading, what others become, and the rule for them.
INTEGERS = ("iu", np.int64, "must be whole numbers")
KINDS: dict[str, tuple[str, Any, str]] = {
    "row_id": INTEGERS,
    "given_label": INTEGERS,
    "suggested_label": INTEGERS,
    "doubt": ("iufb", np.float64, "must be numbers"),
    "is_label_issue": ("b", np.bool_, "must be True or False"),
}
FLAGS = {
    **dict.fromkeys(("true", "1", "1.0", "yes", "wahr", "ja", "vrai", "oui", "verdadero"), 1),
    **dict.fromkeys(("false", "0", "0.0", "no", "falsch", "nein", "faux", "non", "falso"), 0),
}
