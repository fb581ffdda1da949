"""The columns of a model: frames are read by name, arrays by place, categories by value.

A frame is a pandas, polars or pyarrow table. Its column "qid" names queries and is no feature. A column of
categories (pandas category, polars Categorical and Enum, Arrow dictionary) becomes codes 0, 1, ...; a missing
value, or one that the model has not seen, becomes NaN, as in LightGBM.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.stored import StoredFeatures
from cleanrank.types import FloatArray, RankingData
from cleanrank.validation import check_integer, is_frame, one_of

QID = "qid"
MOST = 1_000_000  # categories of a feature given by number


@dataclass(frozen=True)
class Columns:
    """The columns that a model was trained on.

    Attributes:
        count: how many.
        names: one each; None if they had none.
        categories: name -> values of a column of categories, whose codes the model reads.
    """

    count: int
    names: tuple[str, ...] | None = None
    categories: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, data: RankingData) -> "Columns":
        """The columns of some rows."""
        names = data.feature_names
        if names is not None and len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise invalid("feature_names", "must be different", f"{twice!r} twice")
        return cls(data.n_features, names, dict(data.categories or {}))

    def matrix(self, X: Any, subject: str = "X") -> Any:
        """Rows as a dense or sparse matrix with these columns.

        >>> import pandas as pd
        >>> frame = pd.DataFrame({"b": [1.0], "a": ["y"], "more": [0.0]})
        >>> Columns(2, ("a", "b"), {"a": ("x", "y")}).matrix(frame).tolist()
        [[1.0, 1.0]]
        """
        if is_frame(X):
            parts = frame_features(X, self, subject)
            X = self._in_order(parts["X"], parts["feature_names"], parts["categories"], subject)
        elif isinstance(X, StoredFeatures):
            pass
        elif hasattr(X, "tocsr"):
            from scipy.sparse import csr_matrix

            X = csr_matrix(X)
        elif not isinstance(X, StoredFeatures):
            X = _numbers(X, subject)
        if X.ndim != 2:
            remedy = "One row is X[None, :]. Reshape your data." if X.ndim == 1 else ""
            rule = "must have two dimensions (documents, features)"
            raise invalid(subject, rule, f"shape {X.shape}", remedy=remedy)
        if X.shape[1] != self.count:
            rule = f"must have the {self.count} columns that the model was trained on"
            raise invalid(subject, rule, X.shape[1])
        return X

    def align(self, data: RankingData, subject: str) -> RankingData:
        """The rows with these columns: by name where both have names, else by place."""
        own = dict(data.categories or {})
        if self.names is None or data.feature_names is None:
            if data.n_features != self.count:
                rule = f"must have the {self.count} features that the model was trained on"
                raise invalid(subject, rule, data.n_features)
            return data
        if data.feature_names == self.names and own == self.categories:
            return data
        X: Any = data.X
        names = data.feature_names
        for name in self.categories:
            if name in (data.extra or {}) and name not in names:  # text in a file, categories in training
                text, codes = _text_codes((data.extra or {})[name])
                dense = X.toarray() if hasattr(X, "tocsr") else X
                X, names, own[name] = np.column_stack([dense, codes]), (*names, name), text
        X = self._in_order(X, names, own, subject)
        extra = {name: column for name, column in (data.extra or {}).items() if name not in self.names}
        categories = self.categories or None
        return replace(data, X=X, feature_names=self.names, categories=categories, extra=extra or None)

    def _in_order(
        self, X: Any, names: tuple[str, ...] | None, categories: Mapping[str, tuple[Any, ...]], subject: str
    ) -> Any:
        """The columns of a matrix in this order, with the codes of these categories."""
        expected = self.names or names or ()
        if self.names is not None and names is not None and names != self.names:
            place = {name: j for j, name in enumerate(names)}
            X = X[:, [place[name] for name in find_columns(self.names, names, subject)]]
        for j, name in enumerate(expected):
            values, known = categories.get(name), self.categories.get(name)
            if values == known:
                continue
            X = np.array(X.toarray() if hasattr(X, "tocsr") else X)
            codes = X[:, j]
            if known is None:
                X[:, j] = _decoded(codes, values or (), f"column {name!r} of {subject}")
                continue
            if values is None:
                values = tuple(np.unique(codes[~np.isnan(codes)]).tolist())
                codes = np.searchsorted(np.array(values), codes)
            X[:, j] = _recoded(codes, values, known, f"column {name!r} of {subject}")
        return X


def frame_qid(X: Any) -> Any:
    """The column "qid" of a frame; None if there is none."""
    return np.asarray(X[QID]) if is_frame(X) and QID in _labels(X) else None


def find_columns(names: Sequence[str], present: Iterable[Any], subject: str) -> list[Any]:
    """What a table calls the columns of these names; a missing one is refused by its name."""
    labels = {str(label): label for label in present}
    absent = [name for name in names if name not in labels]
    if absent:
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        close = difflib.get_close_matches(absent[0], [n for n in labels if n not in names], n=1, cutoff=0.5)
        hint = f"Did you mean {close[0]!r}? " if close else ""
        rule = "must have the columns that the model was trained on"
        remedy = f"{hint}Rename it, or pass an array, which is read by the place of its columns."
        raise invalid(subject, rule, f"none named {absent[0]!r}{more}", remedy=remedy)
    return [labels[name] for name in names]


def frame_features(X: Any, known: Columns | None = None, subject: str = "X") -> dict[str, Any]:
    """X, feature_names, extra and categories of a frame; the columns of a model if ``known`` has names."""
    from cleanrank.data.arrow_tables import arrow_table
    from cleanrank.data.frames import feature_columns

    labels, names = [label for label in _labels(X) if label != QID], None
    if known is not None and known.names is not None:
        labels, names = find_columns(known.names, _labels(X), subject), known.names
    table = arrow_table(X.select(labels) if hasattr(X, "column_names") else X[labels])
    for name in () if known is None else known.categories:
        place = table.column_names.index(name)
        if "dictionary" not in str(table.column(place).type):
            table = table.set_column(place, name, table.column(place).dictionary_encode())
    parts = feature_columns(table, names)
    for name, values in parts["categories"].items():
        odd = [value for value in values if not isinstance(value, str | int | float)]
        if odd:
            remedy = "Convert the column first: frame[name].astype(str).astype('category')."
            column = f"categories of column {name!r} of {subject}"
            raise invalid(column, "must be text or numbers", repr(odd[0]), remedy=remedy)
    if not parts["categories"] and not any(isinstance(label, str) for label in labels):
        parts["feature_names"] = None  # numbers, as of a frame made of an array
    return parts


def with_categories(data: RankingData, categorical_feature: Any) -> RankingData:
    """The rows with further features, by name or place, marked as categories; LightGBM's argument.

    Their values, whole numbers >= 0, are their own codes; ``categories`` lists them as floats.

    >>> from cleanrank.ragged import from_arrays
    >>> data = from_arrays([[0.5, 2.0], [0.7, 0.0]], [0, 1], qid=[1, 1], feature_names=("a", "b"))
    >>> dict(with_categories(data, ["b"]).categories)
    {'b': (0.0, 1.0, 2.0)}
    """
    if categorical_feature is None or (
        isinstance(categorical_feature, str) and categorical_feature in ("auto", "")
    ):
        return data
    if isinstance(categorical_feature, str):  # LightGBM's "0,3" and "name:a,b"
        by_name = categorical_feature.startswith("name:")
        listed = categorical_feature.removeprefix("name:").split(",")
        categorical_feature = [int(n) if n.isdecimal() and not by_name else n for n in listed]
    names = data.feature_names or tuple(f"Column_{place}" for place in range(data.n_features))
    categories = dict(data.categories or {})
    for feature in np.atleast_1d(np.asarray(categorical_feature, dtype=object)).tolist():
        name = _feature_name(feature, names)
        if name not in categories:
            column: Any = data.X[:, [names.index(name)]]
            values = np.asarray(column.toarray() if hasattr(column, "tocsr") else column)[:, 0]
            bad = ~(np.isnan(values) | ((values >= 0) & (values < MOST) & (values == np.floor(values))))
            if bad.any():
                row = int(np.argmax(bad))
                rule = f"must hold whole numbers from 0 to {MOST - 1:,}, or NaN"
                remedy = "Number its values 0, 1, 2, ..., or make it a category column of a data frame."
                subject = f"categorical feature {feature!r}"
                raise invalid(subject, rule, values[row], at=data.place(row), remedy=remedy)
            categories[name] = tuple(map(float, range(int(np.nanmax(values, initial=0)) + 1)))
    return replace(data, feature_names=names, categories=categories or None)


def _feature_name(feature: Any, names: tuple[str, ...]) -> str:
    if isinstance(feature, str):
        return one_of("categorical feature", feature, names)
    return names[check_integer("a categorical feature", feature, least=0, most=len(names) - 1)]


def _labels(X: Any) -> list[Any]:
    return list(X.column_names if hasattr(X, "column_names") else X.columns)


def _numbers(X: Any, subject: str) -> npt.NDArray[Any]:
    try:
        rows = np.asarray(X)
        return rows if rows.dtype.kind in "iufb" else rows.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise invalid(subject, "must hold numbers in rows of one length", str(error)) from error


def own_codes(values: Sequence[Any]) -> bool:
    """Whether categories are numbers that ``with_categories`` took as their own codes."""
    return all(isinstance(value, float) and value == code for code, value in enumerate(values))


def _decoded(codes: npt.NDArray[Any], values: tuple[Any, ...], subject: str) -> FloatArray:
    """The numbers that codes of categories stand for, for a model that was trained on numbers."""
    if any(isinstance(value, str) for value in values):
        rule, remedy = "must hold numbers, as in training", "Convert it first."
        raise invalid(subject, rule, f"the category {values[0]!r}", remedy=remedy)
    numbers = np.array([*values, np.nan], dtype=np.float64)
    return numbers[np.where(np.isnan(codes), len(values), codes).astype(np.int64)]


def _text_codes(values: npt.NDArray[Any]) -> tuple[tuple[Any, ...], FloatArray]:
    """The different values of a column and their codes, NaN for missing ones."""
    missing = np.array([value is None or value != value for value in values], dtype=bool)
    different, codes = np.unique(np.where(missing, "", values).astype(str), return_inverse=True)
    return tuple(different.tolist()), np.where(missing, np.nan, codes)


def _recoded(
    codes: npt.NDArray[Any], values: tuple[Any, ...], known: tuple[Any, ...], subject: str
) -> FloatArray:
    """Codes of the known values in place of codes of ``values``; NaN for a value that is not known."""
    if values and known and isinstance(values[0], str) != isinstance(known[0], str):
        rule = f"must hold {'text' if isinstance(known[0], str) else 'numbers'}, as in training"
        raise invalid(subject, rule, repr(values[0]))
    code = {value: place for place, value in enumerate(known)}
    new = np.array([*(code.get(value, np.nan) for value in values), np.nan])
    return new[np.where(np.isnan(codes), len(values), codes).astype(np.int64)]
