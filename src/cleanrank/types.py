"""The types that all packages share.

Symbols used throughout: N documents (rows) in Q queries; rows of a query are contiguous, and query q owns
the rows ``indptr[q]:indptr[q + 1]``. ``y`` holds integer grades >= 0.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.stored import StoredFeatures, as_array

if TYPE_CHECKING:
    import scipy.sparse

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
Array: TypeAlias = npt.NDArray[Any]
Features: TypeAlias = "npt.NDArray[np.float32] | scipy.sparse.csr_matrix[Any] | StoredFeatures"
Progress: TypeAlias = Callable[[int, int], None]
RowChoice: TypeAlias = "npt.NDArray[np.bool_] | npt.NDArray[np.integer[Any]] | Sequence[int]"

PER_ROW = ("y", "row_ids", "gains", "doc_ids", "weights", "positions", "judged")


@dataclass(frozen=True, eq=False, repr=False)
class RankingData:
    """Judged query-document rows, grouped by query; immutable.

    Columns that the caller could still write to are copied, except X, which is taken as it is to save memory:
    who passes an array of features must not write to it afterwards.

    Attributes:
        X: features, float32, dense (N, F), CSR, or StoredFeatures that stay on disk; NaN means missing.
        y: grades, int32, >= 0.
        indptr: int64, Q + 1 row offsets.
        query_ids: one id per query, int64 or str.
        row_ids: int64, the row's place in the input (from 0); survives ``select`` and ``drop``.
        gains: real-valued gains >= 0 that stand in for 2^y - 1.
        doc_ids: one str per row.
        weights: float32 >= 0 per row.
        positions: int32 per row, the rank (from 1) at which the document was shown; 0 if it was not.
        feature_names: one per column.
        extra: name -> values per row, carried along but no feature (titles, addresses, dates).
        categories: feature name -> its categories; X holds their codes (0, 1, ...), NaN where missing.
        judged: False where nobody judged the row (its grade is then 0 and carries no noise); None: all were.
    """

    X: Features
    y: npt.NDArray[np.int32]
    indptr: IntArray
    query_ids: Array
    row_ids: IntArray
    gains: FloatArray | None = None
    doc_ids: Array | None = None
    weights: npt.NDArray[np.float32] | None = None
    positions: npt.NDArray[np.int32] | None = None
    feature_names: tuple[str, ...] | None = None
    extra: Mapping[str, Array] | None = None
    categories: Mapping[str, tuple[Any, ...]] | None = None
    judged: npt.NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "indptr", _column("indptr", self.indptr, np.int64))
        put(self, "query_ids", _owned(np.asarray(self.query_ids)))
        put(self, "X", _features(self.X))
        n = self.X.shape[0]
        _check_indptr(self.indptr, n, len(self.query_ids))
        put(self, "y", _owned(_grades(self.y, self)))
        put(self, "row_ids", _column("row_ids", self.row_ids, np.int64))
        for name, dtype in (("gains", np.float64), ("weights", np.float32), ("positions", np.int32)):
            if getattr(self, name) is not None:
                put(self, name, _column(name, getattr(self, name), dtype, self))
        if self.doc_ids is not None:
            put(self, "doc_ids", _owned(np.asarray(self.doc_ids)))
        if self.judged is not None:
            put(self, "judged", _owned(np.asarray(self.judged, dtype=np.bool_)))
        for name in PER_ROW:
            column = getattr(self, name)
            if column is not None and column.shape != (n,):
                raise invalid(name, f"must have one value per row of X ({n})", f"shape {column.shape}")
        if self.feature_names is not None:
            names: Any = self.feature_names
            if isinstance(names, str):
                raise invalid("feature_names", "must be a list of names", repr(names))
            put(self, "feature_names", tuple(map(str, names)))
            if len(self.feature_names) != self.n_features:
                rule = f"must name each of the {self.n_features} columns of X"
                raise invalid("feature_names", rule, f"{len(self.feature_names)} names")
        if self.extra is not None:
            put(self, "extra", _extra(self.extra, self))
        if self.categories is not None:
            put(self, "categories", _categories(self.categories, self))

    @property
    def n_docs(self) -> int:
        """N, the number of rows."""
        return int(self.X.shape[0])

    @property
    def n_queries(self) -> int:
        """Q, the number of queries."""
        return len(self.indptr) - 1

    @property
    def n_features(self) -> int:
        """F, the number of columns."""
        return int(self.X.shape[1])

    @property
    def lengths(self) -> IntArray:
        """Documents per query; what LightGBM calls ``group``."""
        return np.diff(self.indptr)

    @property
    def qid(self) -> Array:
        """The query id of every row; what XGBoost and scikit-learn's ``groups`` expect."""
        return np.repeat(self.query_ids, self.lengths)

    @property
    def n_grades(self) -> int:
        """C, the highest grade plus one."""
        return int(self.y.max()) + 1 if self.n_docs else 0

    def grade_counts(self, n_grades: int | None = None) -> IntArray:
        """Documents of each query and grade, (Q, C).

        >>> import cleanrank as cr
        >>> cr.from_arrays([[0.0]] * 4, [0, 2, 2, 1], qid=["a", "a", "a", "b"]).grade_counts().tolist()
        [[1, 0, 2], [0, 1, 0]]
        """
        C = self.n_grades if n_grades is None else n_grades
        query = np.repeat(np.arange(self.n_queries), self.lengths)
        return np.bincount(query * C + self.y, minlength=self.n_queries * C).reshape(self.n_queries, C)

    def __len__(self) -> int:
        return self.n_docs

    def __reduce__(self) -> tuple[Any, ...]:
        values = (getattr(self, each.name) for each in fields(self))
        return type(self), tuple(dict(v) if isinstance(v, MappingProxyType) else v for v in values)

    def __repr__(self) -> str:
        counts = np.bincount(np.minimum(self.y, 8), minlength=9)
        grades = ", ".join(f"{g}: {c:,}" for g, c in enumerate(counts[:8]) if c)
        more = ", ..." if counts[8] else ""
        kind = "dense" if isinstance(self.X, np.ndarray) else "CSR"
        kind = "on disk" if isinstance(self.X, StoredFeatures) else kind
        features = f"{self.n_features:,} features ({kind})"
        size = f"{self.n_queries:,} queries, {self.n_docs:,} documents, {features}"
        return f"RankingData({size}, grades {{{grades}{more}}})"

    def place(self, row: int) -> str:
        """The place of a row for a message: its row in the input and its query."""
        q = int(np.searchsorted(self.indptr, row, side="right")) - 1
        return f"row {int(self.row_ids[row])} (query {str(self.query_ids[q])!r})"

    def select(self, rows: RowChoice) -> "RankingData":
        """The data of some rows (a mask or positions), in their order, without queries left empty.

        >>> import cleanrank as cr
        >>> data = cr.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["a", "a", "b"])
        >>> data.select([0, 2]).row_ids.tolist(), data.drop([0, 1]).query_ids.tolist()
        ([0, 2], ['b'])
        """
        keep = self._mask(rows)
        kept_before = np.concatenate(([0], np.cumsum(keep)))
        sizes = np.diff(kept_before[self.indptr])
        kept = sizes > 0
        columns: dict[str, Any] = {name: getattr(self, name) for name in ("X", *PER_ROW)}
        changed = {name: column[keep] for name, column in columns.items() if column is not None}
        if self.extra is not None:
            changed["extra"] = {name: column[keep] for name, column in self.extra.items()}
        indptr = np.concatenate(([0], np.cumsum(sizes[kept])))
        return replace(self, indptr=indptr, query_ids=self.query_ids[kept], **changed)

    def drop(self, rows: RowChoice) -> "RankingData":
        """The data without some rows (a mask or positions)."""
        return self.select(~self._mask(rows))

    def select_queries(self, queries: RowChoice) -> "RankingData":
        """The data of some queries (a mask or positions among the Q queries)."""
        keep = _as_mask("queries", queries, self.n_queries)
        return self.select(np.repeat(keep, self.lengths))

    def query_range(self, first: int, last: int) -> "RankingData":
        """The data of the queries ``first``, ..., ``last`` - 1; dense features are shared, not copied.

        >>> import cleanrank as cr
        >>> data = cr.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["a", "b", "b"])
        >>> data.query_range(1, 2).y.tolist()
        [1, 2]
        """
        rows = slice(int(self.indptr[first]), int(self.indptr[last]))
        columns: dict[str, Any] = {name: getattr(self, name) for name in ("X", *PER_ROW)}
        changed = {name: column[rows] for name, column in columns.items() if column is not None}
        if self.extra is not None:
            changed["extra"] = {name: column[rows] for name, column in self.extra.items()}
        indptr = self.indptr[first : last + 1] - self.indptr[first]
        return replace(self, indptr=indptr, query_ids=self.query_ids[first:last], **changed)

    def with_labels(self, y: npt.ArrayLike, *, gains: npt.ArrayLike | None = None) -> "RankingData":
        """The data with other grades, row by row; ``gains`` are dropped unless new ones are given."""
        return replace(self, y=np.asarray(y), gains=None if gains is None else np.asarray(gains))

    def _mask(self, rows: RowChoice) -> npt.NDArray[np.bool_]:
        return _as_mask("rows", rows, self.n_docs)


@dataclass(frozen=True, eq=False)
class Run:
    """Scores of the documents that a system retrieved for each topic (query).

    Attributes:
        topic_ids: the topics, in order of appearance.
        doc_ids: the documents, in order of appearance.
        topic: place in ``topic_ids`` of every retrieved document.
        doc: place in ``doc_ids``.
        scores: the score; the order is by falling score.
        tag: the name of the system.
    """

    topic_ids: Array
    doc_ids: Array
    topic: IntArray
    doc: IntArray
    scores: FloatArray
    tag: str = ""


@dataclass(frozen=True)
class RunRecord:
    """The result of one cell of an experiment's grid.

    Attributes:
        key: hash of all inputs of the cell and the version of its method.
        cell: the complete inputs, JSON-like: dataset, fold, noise, rate, method, params, seed, ...
        status: "done" or "failed".
        values: measure text -> one value per test query, in the order of ``query_ids``.
        means: measure text -> mean over queries, in the measure's own weighting.
        query_se: measure text -> standard error of the mean over queries, where values are not at hand.
        n_queries: measure text -> number of queries that count, where values are not at hand.
        chosen: what model selection picked inside the cell (parameters, trees, validation value).
        error: the traceback of a failed cell.
        versions: package -> version.
        started_at: ISO 8601, UTC.
    """

    key: str
    recipe: str
    cell: Mapping[str, Any]
    status: str
    values: Mapping[str, FloatArray] = field(default_factory=dict)
    means: Mapping[str, float] = field(default_factory=dict)
    query_ids: Array | None = None
    chosen: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    wall_seconds: float = 0.0
    started_at: str = ""
    query_se: Mapping[str, float] = field(default_factory=dict)
    n_queries: Mapping[str, int] = field(default_factory=dict)


def plain(value: Any) -> Any:
    """A value as JSON can hold it: keys are text, tuples are lists, what is not finite is None.

    >>> plain({1: (0.5, float("nan"))})
    {'1': [0.5, None]}
    """
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _frozen(values: Array) -> Array:
    """A read-only view: the caller's array stays as writeable as it was."""
    view = values.view()
    view.flags.writeable = False
    return view


def _owned(values: Array) -> Array:
    """A column that nobody can write to; copied if the caller still could."""
    base = values.base if isinstance(values.base, np.ndarray) else values
    if values.flags.writeable or base.flags.writeable:
        values = values.copy()
        values.flags.writeable = False
    return values


def _features(X: Any) -> Any:
    if isinstance(X, StoredFeatures):
        return X
    if hasattr(X, "tocsr"):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        X = _as_float32(X)
        frozen = type(X)((_frozen(X.data), _frozen(X.indices), _frozen(X.indptr)), shape=X.shape, copy=False)
        frozen.has_canonical_format = True
        return frozen
    X = np.asarray(X)
    if X.ndim != 2:
        raise invalid("X", "must have two dimensions (documents, features)", f"shape {X.shape}")
    return _frozen(_as_float32(X))


def _as_float32(X: Any) -> Any:
    if X.dtype.kind in "cmM":
        remedy = "Complex data not supported: take its parts." if X.dtype.kind == "c" else "Convert it first."
        raise invalid("X", "must hold real numbers", f"dtype {X.dtype}", remedy=remedy)
    try:
        with np.errstate(over="raise"):
            return X.astype(np.float32, copy=False)
    except FloatingPointError:
        rule = f"must hold values that float32 can (up to {np.finfo(np.float32).max:.3g}), or inf or nan"
        raise invalid("X", rule, f"larger ones in {X.dtype}", remedy="Rescale that feature.") from None
    except (TypeError, ValueError) as error:
        remedy = f"Convert it first ({error})."
        raise invalid("X", "must hold numbers", f"dtype {X.dtype}", remedy=remedy) from error


def _column(name: str, values: npt.ArrayLike, dtype: Any, data: RankingData | None = None) -> Any:
    """Numbers as a read-only column; of ``data``, if given, they must be >= 0 and fit into ``dtype``."""
    column = np.asarray(values)
    if column.ndim != 1:
        raise invalid(name, "must have one dimension", f"shape {column.shape}")
    if column.dtype.kind not in "iufb":
        raise invalid(name, "must hold numbers", f"dtype {column.dtype}")
    if data is not None:
        most = np.finfo(dtype).max if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
        bad = ~((column >= 0) & (column <= most))
        if bad.any():
            row = int(np.argmax(bad))
            at = data.place(row) if row < len(data.row_ids) and len(column) == data.n_docs else f"row {row}"
            large = column[row] > most and np.isfinite(column[row])
            rule = f"must be at most {most:.10g}" if large else "must be finite and not negative"
            raise invalid(name, rule, column[row], at=at)
    if column.dtype.kind == "f" and np.dtype(dtype).kind == "i":
        broken = column != np.floor(column)
        if broken.any():
            entry = int(np.argmax(broken))
            raise invalid(name, "must hold whole numbers", column[entry], at=f"entry {entry}")
    return _owned(np.ascontiguousarray(column, dtype=dtype))


def _check_indptr(indptr: IntArray, n_docs: int, n_queries: int) -> None:
    if len(indptr) != n_queries + 1:
        raise invalid("indptr", f"must have one entry more than the {n_queries} query ids", f"{len(indptr)}")
    falls = (np.diff(indptr) < 0).any()
    if indptr[0] != 0 or indptr[-1] != n_docs or falls:
        ends = f"{indptr[0]}..{indptr[-1]}" + (" with a fall" if falls else "")
        raise invalid("indptr", f"must rise from 0 to the number of rows ({n_docs})", ends)


def _grades(values: npt.ArrayLike, data: RankingData) -> Array:
    y = np.asarray(values)
    if y.shape != (data.n_docs,):
        raise invalid("y", f"must have one grade per row of X ({data.n_docs})", f"shape {y.shape}")
    if y.dtype.kind == "O" and all(isinstance(grade, int | float | np.number) for grade in y):
        y = y.astype(np.float64)
    if y.dtype.kind not in "iubf":
        raise invalid("labels", "must be numbers", f"dtype {y.dtype}")
    most = np.iinfo(np.int32).max
    bad = ~((y >= 0) & (y <= most))
    if y.dtype.kind == "f":
        bad |= y != np.floor(y)
    if bad.any():
        row = int(np.argmax(bad))
        value = y[row]
        at = data.place(row) if np.asarray(data.row_ids).shape == y.shape else f"row {row}"
        rule, remedy = "must be whole grades", "Give real-valued relevance as gains=."
        if not np.isfinite(value):
            rule, remedy = "must be finite", "Drop or impute it first."
        elif value < 0:
            rule, remedy = "must not be negative", "Shift or clip the grades first."
        elif value > most:
            rule, remedy = f"must be at most {most}", ""
        raise invalid("labels", rule, value, at=at, remedy=remedy)
    return np.ascontiguousarray(y, dtype=np.int32)


def _extra(columns: Mapping[str, npt.ArrayLike], data: RankingData) -> Mapping[str, Array]:
    extra = {str(name): np.asarray(column) for name, column in columns.items()}
    for name, column in extra.items():
        if column.shape != (data.n_docs,):
            rule = f"must have one value per row of X ({data.n_docs})"
            raise invalid(f"extra column {name!r}", rule, f"shape {column.shape}")
        if name in (data.feature_names or ()):
            raise invalid("extra columns", "must not be named like a feature", repr(name))
    return MappingProxyType({name: _owned(column) for name, column in extra.items()})


def _categories(categories: Mapping[str, Sequence[Any]], data: RankingData) -> Mapping[str, tuple[Any, ...]]:
    names = data.feature_names or ()
    for name, values in categories.items():
        if name not in names:
            raise invalid("categories", "must belong to features by name", repr(name))
        column: Any = data.X[:, [names.index(name)]]
        codes = as_array(column)[:, 0]
        bad = ~(np.isnan(codes) | ((codes >= 0) & (codes < len(values)) & (codes == np.floor(codes))))
        if bad.any():
            row = int(np.argmax(bad))
            rule = f"must hold codes from 0 to {len(values) - 1}, or NaN"
            raise invalid(f"the categorical feature {name!r}", rule, codes[row], at=data.place(row))
    return MappingProxyType({str(name): tuple(values) for name, values in categories.items()})


def _as_mask(name: str, choice: RowChoice, n: int) -> npt.NDArray[np.bool_]:
    selection = np.asarray(choice)
    if selection.dtype == np.bool_:
        if selection.shape != (n,):
            raise invalid(name, f"as a mask must have {n} entries", f"shape {selection.shape}")
        return selection
    mask = np.zeros(n, dtype=np.bool_)
    if selection.size:
        if selection.dtype.kind not in "iu":
            raise invalid(name, "must be a mask or whole-number positions", f"dtype {selection.dtype}")
        if selection.min() < 0 or selection.max() >= n:
            wrong = selection.max() if selection.max() >= n else selection.min()
            raise invalid(name, f"must be positions from 0 to {n - 1}", wrong)
        mask[selection] = True
    return mask
