"""Tables of repeated judgements, and how far the people behind them agree.

A judgement is (item, annotator, grade): someone graded a query-document pair. Agreement is corrected for
chance: 1 is perfect, 0 is what blind guessing with the same habits gives.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.types import Array, FloatArray, IntArray
from cleanrank.validation import one_of

DISTANCES = ("nominal", "ordinal", "interval")


@dataclass(frozen=True, eq=False)
class Judgements:
    """Grades that several people gave to the same items.

    Attributes:
        item: 0..I-1 for each judgement.
        annotator: 0..A-1 for each judgement; all 0 when nobody knows who judged.
        grade: the grade given.
        items: the items' names.
        annotators: the annotators' names; empty when nobody knows who judged.
        n_grades: C.
    """

    item: IntArray
    annotator: IntArray
    grade: IntArray
    items: Array
    annotators: Array
    n_grades: int

    def __len__(self) -> int:
        return len(self.item)

    def __repr__(self) -> str:
        who = f"by {len(self.annotators)} annotators" if len(self.annotators) else "by unnamed annotators"
        return f"Judgements({len(self):,} of {len(self.items):,} items {who}, {self.n_grades} grades)"

    @property
    def per_item(self) -> IntArray:
        """(I, C): how often each item was given each grade."""
        counts = np.zeros((len(self.items), self.n_grades), dtype=np.int64)
        np.add.at(counts, (self.item, self.grade), 1)
        return counts


@dataclass(frozen=True)
class Agreement:
    """How far annotators agree.

    Attributes:
        share: share of pairs of judgements of the same item that are equal.
        cohen: Cohen's kappa, the mean over pairs of annotators with at least 10 items in common; None
            without names.
        fleiss: Fleiss' kappa, for items with at least two judgements.
        alpha: Krippendorff's alpha for ordered grades.
    """

    share: float
    cohen: float | None
    fleiss: float
    alpha: float


@dataclass(frozen=True)
class PairAgreement:
    """How far two annotators agree on the items that both graded."""

    first: str
    second: str
    items: int
    share: float
    kappa: float


def judgements(
    table: Any = None,
    *,
    item: npt.ArrayLike | None = None,
    annotator: npt.ArrayLike | None = None,
    grade: npt.ArrayLike | None = None,
    n_grades: int | None = None,
) -> Judgements:
    """Checks a table of judgements: one with item, annotator and grade, or the columns themselves.

    ``table`` may be a frame, a mapping or a file; other headings are guessed as ``read_judgements`` does.

    >>> judgements(item=["a", "a", "b"], annotator=["x", "y", "x"], grade=[1, 2, 0])
    Judgements(3 of 2 items by 2 annotators, 3 grades)
    """
    if isinstance(table, Judgements):
        return table
    names: list[Any] = []
    if table is not None and not isinstance(table, str | PathLike):
        names = list(table.keys() if isinstance(table, Mapping) else getattr(table, "columns", ()))
    if table is not None and not {"item", "grade"} <= set(names):
        from cleanrank.noise.judgement_table import read_judgements

        return read_judgements(table, lowest=0).judgements
    if table is not None:
        item, grade = (table[one_of("column", name, names)] for name in ("item", "grade"))
        annotator = table["annotator"] if "annotator" in names else None
    grades = np.asarray(grade)
    if grades.ndim != 1 or not len(grades) or not np.issubdtype(grades.dtype, np.number):
        raise invalid("grades", "must be a list of numbers, at least one", f"{grades.dtype} {grades.shape}")
    bad = ~np.isfinite(grades.astype(np.float64)) | (grades < 0) | (grades != np.floor(grades))
    if bad.any():
        row = int(np.argmax(bad))
        raise invalid("grades", "must be whole and not negative", grades[row], at=f"judgement {row}")
    C = max(int(grades.max()) + 1, 2) if n_grades is None else n_grades
    if grades.max() >= C:
        raise invalid("grades", f"must be below n_grades ({C})", int(grades.max()))
    items, item_of = np.unique(np.asarray(item), return_inverse=True)
    people, who = np.zeros(0, dtype=str), np.zeros(len(grades), dtype=np.int64)
    if annotator is not None:
        people, who = np.unique(np.asarray(annotator), return_inverse=True)
    if len(item_of) != len(grades) or len(who) != len(grades):
        rule = "must have an item and an annotator per grade"
        raise invalid("judgements", rule, f"{len(item_of)}, {len(who)}")
    if annotator is not None:
        keys, times = np.unique(item_of * len(people) + who, return_counts=True)
        if (times > 1).any():
            first = int(np.argmax(times > 1))
            what, whom = divmod(int(keys[first]), len(people))
            again = f"{times[first]} of item {str(items[what])!r} by {str(people[whom])!r}"
            remedy = "A person's second judgement of an item is not independent: keep one."
            raise invalid("judgements", "must be one per item and annotator", again, remedy=remedy)
    return Judgements(item_of, who, grades.astype(np.int64), items, people, C)


def agreement(table: Any) -> Agreement:
    """Agreement, plain and corrected for chance.

    >>> agreement({"item": [1, 1, 2, 2], "annotator": ["x", "y", "x", "y"], "grade": [0, 0, 1, 1]}).fleiss
    1.0
    """
    judged = judgements(table)
    counts = judged.per_item
    if not (counts.sum(axis=1) > 1).any():
        raise invalid("judgements", "must hold two judgements of some item", "none")
    pairs = counts.sum(axis=1) * (counts.sum(axis=1) - 1)
    equal = (counts * (counts - 1)).sum(axis=1)
    return Agreement(
        float(equal.sum() / pairs.sum()),
        _mean_cohen(judged) if len(judged.annotators) else None,
        fleiss_kappa(counts),
        krippendorff_alpha(counts),
    )


def cohen_kappa(a: npt.ArrayLike, b: npt.ArrayLike, n_grades: int | None = None) -> float:
    """Cohen's kappa of two annotators who graded the same items: (p_o - p_e) / (1 - p_e) (Cohen 1960).

    >>> round(cohen_kappa([0, 0, 1, 1], [0, 1, 1, 1]), 3)
    0.5
    """
    first, second = np.asarray(a), np.asarray(b)
    C = int(max(first.max(), second.max())) + 1 if n_grades is None else n_grades
    table = np.zeros((C, C))
    np.add.at(table, (first, second), 1 / len(first))
    return _corrected(float(np.trace(table)), float(table.sum(axis=1) @ table.sum(axis=0)))


def fleiss_kappa(counts: npt.ArrayLike) -> float:
    """Fleiss' kappa from (I, C) counts of grades per item (Fleiss 1971).

    Items may have different numbers of judgements; those with one are left out, and agreement is the mean
    over items.
    """
    n, total = _judged_twice(counts)
    observed = float(((n * (n - 1)).sum(axis=1) / (total * (total - 1))).mean())
    share = n.sum(axis=0) / n.sum()
    return _corrected(observed, float(share @ share))


def krippendorff_alpha(counts: npt.ArrayLike, distance: str = "ordinal") -> float:
    """Krippendorff's alpha from (I, C) counts of grades per item: 1 - D_observed / D_expected.

    Args:
        counts: how often each item was given each grade; items with one judgement do not count.
        distance: "nominal", "ordinal" (by how many judgements lie between two grades) or "interval".
    """
    one_of("distance", distance, DISTANCES)
    n, total = _judged_twice(counts)
    share = n / (total - 1)[:, None]
    together = share.T @ n - np.diag(share.sum(axis=0))
    marginal = together.sum(axis=1)
    squared = _squared_distance(marginal, distance)
    expected = np.outer(marginal, marginal) - np.diag(marginal)
    apart = float((expected * squared).sum()) / float(marginal.sum() - 1)
    return 1.0 - float((together * squared).sum()) / apart if apart > 0 else float("nan")


def _judged_twice(counts: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The counts of items with two judgements or more, and how many judgements these have."""
    n = np.asarray(counts, dtype=np.float64)
    total = n.sum(axis=1)
    return n[total > 1], total[total > 1]


def _squared_distance(marginal: FloatArray, distance: str) -> FloatArray:
    C = len(marginal)
    if distance == "nominal":
        return 1.0 - np.eye(C)
    place = np.arange(C, dtype=np.float64) if distance == "interval" else np.cumsum(marginal) - marginal / 2
    squared: FloatArray = (place[:, None] - place[None, :]) ** 2
    return squared


def pair_agreements(table: Any, least: int = 10) -> "list[PairAgreement]":
    """How far every two annotators agree who graded at least ``least`` items in common.

    >>> table = {"item": [1, 1, 2, 2], "annotator": ["x", "y", "x", "y"], "grade": [0, 0, 1, 0]}
    >>> pair_agreements(table, least=2)
    [PairAgreement(first='x', second='y', items=2, share=0.5, kappa=0.0)]
    """
    from scipy.sparse import csr_matrix

    judged = judgements(table)
    A, C = len(judged.annotators), judged.n_grades
    rows = judged.annotator * C + judged.grade
    shape = A * C, len(judged.items)
    said = csr_matrix((np.ones(len(judged)), (rows, judged.item)), shape=shape)
    together = (said @ said.T).tocoo()
    first, second = together.row // C, together.col // C
    above = first < second
    pairs, pair = np.unique((first * A + second)[above], return_inverse=True)
    counts = np.zeros((len(pairs), C, C))
    cells = pair, together.row[above] % C, together.col[above] % C
    np.add.at(counts, cells, together.data[above])
    items = counts.sum(axis=(1, 2))
    share, kappa = _shares_and_kappas(counts)
    return [
        PairAgreement(str(judged.annotators[a]), str(judged.annotators[b]), int(n), float(s), float(k))
        for (a, b), n, s, k in zip(
            np.stack(np.divmod(pairs, max(A, 1)), axis=1), items, share, kappa, strict=True
        )
        if n >= least
    ]


def with_majority(table: Any) -> tuple[FloatArray, FloatArray]:
    """How far every annotator agrees with the majority of the others, plain and corrected for chance.

    Items on which the others tie, or which nobody else graded, do not count; NaN where none is left.

    >>> table = {"item": [1, 1, 1, 2, 2, 2], "annotator": ["x", "y", "z"] * 2, "grade": [0, 0, 1, 1, 1, 1]}
    >>> with_majority(table)[0].tolist()
    [1.0, 1.0, 0.5]
    """
    judged = judgements(table)
    A, C = max(len(judged.annotators), 1), judged.n_grades
    majority = majority_of_others(judged)
    clear = majority >= 0
    counts = np.zeros((A, C, C))
    np.add.at(counts, (judged.annotator[clear], judged.grade[clear], majority[clear]), 1.0)
    return _shares_and_kappas(counts)


def majority_of_others(judged: Judgements) -> IntArray:
    """For every judgement the grade that most of the others gave to the item; -1 without one, or in a tie.

    >>> majority_of_others(judgements(item=[1, 1, 1, 2], annotator=list("xyzx"), grade=[0, 1, 1, 0])).tolist()
    [1, -1, -1, -1]
    """
    others = judged.per_item[judged.item]
    others[np.arange(len(judged)), judged.grade] -= 1
    top = others.max(axis=1)
    clear = (top > 0) & ((others == top[:, None]).sum(axis=1) == 1)
    return np.where(clear, others.argmax(axis=1), -1)


def _shares_and_kappas(counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Agreement and Cohen's kappa of (..., C, C) tables of counts; NaN for empty ones."""
    with np.errstate(invalid="ignore", divide="ignore"):
        table = counts / counts.sum(axis=(1, 2), keepdims=True)
        share = np.trace(table, axis1=1, axis2=2)
        chance = (table.sum(axis=2) * table.sum(axis=1)).sum(axis=1)
        return share, np.where(chance < 1, (share - chance) / (1 - chance), np.nan)


def table_agreement(counts: FloatArray) -> dict[str, FloatArray]:
    """Agreement of two judges from tables (..., C, C) of how often one gave a grade and the other another.

    Returns:
        By name: ``share`` of equal grades; Cohen's ``kappa``, and weighted by the distance of grades
        (``linear``) or its square (``quadratic``, Cohen 1968); Krippendorff's ``alpha`` for ordered grades.

    >>> {name: round(float(v), 3) for name, v in table_agreement(np.array([[2, 1], [0, 1]])).items()}
    {'share': 0.75, 'kappa': 0.5, 'linear': 0.5, 'quadratic': 0.5, 'alpha': 0.533}
    """
    n = np.asarray(counts, dtype=np.float64)
    total = n.sum(axis=(-2, -1), keepdims=True)
    grades = np.arange(n.shape[-1])
    distance = np.abs(grades[:, None] - grades[None, :]).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        chance = n.sum(axis=-1)[..., :, None] * n.sum(axis=-2)[..., None, :] / total
        kappas = {
            name: 1.0 - (n * weight).sum(axis=(-2, -1)) / (chance * weight).sum(axis=(-2, -1))
            for name, weight in (("kappa", distance > 0), ("linear", distance), ("quadratic", distance**2))
        }
        marginal = n.sum(axis=-1) + n.sum(axis=-2)
        place = np.cumsum(marginal, axis=-1) - marginal / 2
        squared = (place[..., :, None] - place[..., None, :]) ** 2
        apart = (marginal[..., :, None] * marginal[..., None, :] * squared).sum(axis=(-2, -1))
        alpha = 1.0 - (2 * total[..., 0, 0] - 1) * 2 * (n * squared).sum(axis=(-2, -1)) / apart
        share = np.trace(n, axis1=-2, axis2=-1) / total[..., 0, 0]
    every = {"share": share, **kappas, "alpha": alpha}
    return {name: np.where(np.isfinite(values), values, np.nan) for name, values in every.items()}


def _mean_cohen(judged: Judgements) -> float | None:
    finite = [pair.kappa for pair in pair_agreements(judged) if np.isfinite(pair.kappa)]
    return float(np.mean(finite)) if finite else None


def _corrected(observed: float, by_chance: float) -> float:
    return (observed - by_chance) / (1 - by_chance) if by_chance < 1 else float("nan")
