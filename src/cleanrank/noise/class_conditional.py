"""Do errors depend on the true grade alone? A test of class-conditional noise from rows of known grade.

A noise matrix T[l, m] = P(given m | true l) says all about the errors of a judge only if, given the true
grade, the given grade does not depend on the query, on the rank at which systems put the document, or on
anything else about it. Under that hypothesis the given grades of rows of the same true grade may change
places. The test compares what is seen with what such exchanges give, and is exact: with few rows, rare grades
or any covariates it rejects no more often than its level says (less often where few exchanges differ, as with
a handful of errors on two grades and no covariates).

With the residual r = given grade minus its mean among rows of the same true grade (and likewise of "the grade
is wrong"), a cause with columns Z (a column per query, or covariates) has the statistic |Z'r|^2, the score
statistic of effects that vary from column to column; several covariates also have the largest of their
squares, for one that matters among many that do not. Statistics of a cause are put on one scale by their mean
and spread over the exchanges, and added. The p-values of causes are combined by the sum of their squared
logarithms, whose distribution comes from the same exchanges: between Fisher's sum, in which one cause beyond
doubt drowns among others, since no p-value of 999 exchanges is below .001, and the least of them.

How the rows were chosen. The test stays exact when rows were drawn at random, by anything known before the
judge answered (query, rank, features), or by the given grade alone (``sample_gold``, stratified): within a
true grade all exchanges keep the numbers of given grades, hence the probability of the draw. It is not exact
when rows were drawn by the given grade *together with* something else (``sample_gold`` by doubt): such a
choice makes grade and features depend on each other.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.types import Array, FloatArray, IntArray
from cleanrank.validation import check_integer

PERMUTATIONS = 999
FEWEST_ROWS = 20
MOST_ROWS = 10_000  # more are thinned at random: the answer does not change, the time does
IN_MEMORY = 4_000_000
STREAM = 1501
REJECTED = 0.05
CAUSES = {"query": "the query", "rank": "the rank at which systems put the document", "features": "features"}


@dataclass(frozen=True)
class Cause:
    """What errors may depend on besides the true grade.

    Attributes:
        name: "query", "rank", "features" or another name that a covariate was given.
        p_value: of the hypothesis that they do not.
        effect: of a query, the correlation of the residuals of two rows of one query; of covariates, the
            correlation of the residual with the covariate where it is largest.
        column: the covariate's place where that is.
    """

    name: str
    p_value: float
    effect: float
    column: int = 0

    @property
    def words(self) -> str:
        """What the cause is."""
        return CAUSES.get(self.name, self.name)


@dataclass(frozen=True, repr=False)
class ClassConditionality:
    """The outcome of the test; ``p_value`` is NaN where it could not be made, and ``reason`` says why.

    In words, r is the ``effect`` of a cause.

    Attributes:
        p_value: of the hypothesis that errors depend on the true grade alone.
        causes: what was looked at, each with a p-value of its own.
        rows: of known grade.
        wrong: of these, how many have another given grade.
        reason: why there is no p-value.
    """

    p_value: float
    causes: tuple[Cause, ...]
    rows: int
    wrong: int
    reason: str = ""

    @property
    def checked(self) -> bool:
        """Whether there is a p-value."""
        return self.p_value == self.p_value

    def rejected(self, level: float = REJECTED) -> bool:
        """Whether errors depend on more than the true grade, at a level."""
        return self.p_value <= level

    @property
    def words(self) -> str:
        """The outcome as a sentence."""
        if not self.checked:
            return f"Whether errors depend on the true grade alone was not tested: {self.reason}."
        looked_at = ", ".join(f"{c.words} p = {c.p_value:.3g}, r = {c.effect:+.2f}" for c in self.causes)
        verdict = "depend on more than" if self.rejected() else "are compatible with errors that depend on"
        alone = "the true grade" if self.rejected() else "the true grade alone"
        return f"Errors {verdict} {alone} (p = {self.p_value:.3g} on {self.rows:,} rows: {looked_at})."

    def __repr__(self) -> str:
        return f"ClassConditionality({self.words})"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        number = self.p_value if self.checked else None
        causes = [asdict(cause) for cause in self.causes]
        return {"p_value": number, "rows": self.rows, "wrong": self.wrong, "causes": causes,
                "reason": self.reason}  # fmt: skip

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> "ClassConditionality":
        """Reads what ``to_json`` gave."""
        p_value = float("nan") if saved["p_value"] is None else float(saved["p_value"])
        causes = tuple(Cause(**cause) for cause in saved["causes"])
        return cls(p_value, causes, int(saved["rows"]), int(saved["wrong"]), str(saved["reason"]))


def class_conditional_test(
    true: npt.ArrayLike,
    given: npt.ArrayLike,
    qid: npt.ArrayLike | None = None,
    covariates: Mapping[str, npt.ArrayLike] | None = None,
    *,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> ClassConditionality:
    """Tests whether errors depend on the true grade alone.

    Args:
        true: true grades of the rows.
        given: grades that the judge gave them.
        qid: the query of every row.
        covariates: by name, numbers per row, (n,) or (n, columns), such as {"rank": ..., "features": ...}.
        permutations: exchanges of given grades among rows of the same true grade.
        seed: same seed, same p-values.

    Returns:
        One p-value for all causes together, and one for each.

    >>> rng = np.random.default_rng(0)
    >>> true, query = rng.integers(0, 2, 400), np.repeat(np.arange(20), 20)
    >>> flipped = rng.random(400) < np.where(query < 10, 0.1, 0.4)
    >>> class_conditional_test(true, true ^ flipped, query).rejected()
    True
    """
    truth, answers = (_grades(name, values) for name, values in (("true", true), ("given", given)))
    if truth.shape != answers.shape:
        raise invalid("given", f"must have as many grades as true ({len(truth)})", len(answers))
    check_integer("permutations", permutations, least=1)
    columns = _columns(len(truth), qid, covariates)
    wrong = int((truth != answers).sum())
    rng = np.random.default_rng([seed, STREAM])
    kept = np.arange(len(truth))
    if len(truth) > MOST_ROWS:
        kept = np.sort(rng.choice(len(truth), MOST_ROWS, replace=False))
    truth, answers = truth[kept], answers[kept]
    columns = {name: _usable(values[kept], truth, name == "query") for name, values in columns.items()}
    columns = {name: values for name, values in columns.items() if values.shape[-1]}
    varied = [g for g in np.unique(truth) if len(np.unique(answers[truth == g])) > 1]
    reason = ""
    if len(truth) < FEWEST_ROWS:
        reason = f"{len(truth)} rows of known grade are too few, {FEWEST_ROWS} are the least"
    elif not varied:
        reason = "rows of the same true grade all have the same given grade"
    elif not columns:
        reason = "neither queries nor covariates differ between rows of the same true grade"
    if reason:
        return ClassConditionality(float("nan"), (), len(truth), wrong, reason)
    statistics = _statistics(truth, answers, columns, permutations, rng)
    tail = {name: _tail(values) for name, values in statistics.items()}
    together = (np.log(np.stack(list(tail.values()))) ** 2).sum(axis=0)
    causes = tuple(
        Cause(name, float(tail[name][0]), *_effect(truth, answers, values, name == "query"))
        for name, values in columns.items()
    )
    return ClassConditionality(float(_tail(together)[0]), causes, len(truth), wrong)


def _grades(name: str, values: npt.ArrayLike) -> IntArray:
    grades = np.asarray(values)
    if grades.ndim != 1 or grades.dtype.kind not in "iub" or not len(grades):
        raise invalid(name, "must be a list of whole grades", f"{grades.dtype} of shape {grades.shape}")
    return grades.astype(np.int64)


def _columns(
    n: int, qid: npt.ArrayLike | None, covariates: Mapping[str, npt.ArrayLike] | None
) -> dict[str, Array]:
    """Queries (n,) as codes, covariates (n, columns)."""
    columns: dict[str, Array] = {}
    if qid is not None:
        columns["query"] = np.unique(np.asarray(qid), return_inverse=True)[1]
    for name, values in (covariates or {}).items():
        array = np.asarray(values, dtype=np.float64)
        columns[name] = array[:, None] if array.ndim == 1 else array
        if not np.isfinite(array).all():
            raise invalid(f"covariate {name!r}", "must hold finite numbers", "others")
    for name, array in columns.items():
        if len(array) != n:
            raise invalid(f"covariate {name!r}", f"must have a value per row ({n})", len(array))
    return columns


def _usable(values: Array, truth: IntArray, query: bool) -> Array:
    """Queries as they are; covariates less their means by true grade, to a spread of 1, constant ones out."""
    if query:
        return values if len(np.unique(values)) > 1 else np.zeros((len(values), 0))
    centred = np.empty_like(values)
    for grade in np.unique(truth):
        rows = truth == grade
        centred[rows] = values[rows] - values[rows].mean(axis=0)
    spread = centred.std(axis=0)
    some = spread > 1e-12 * np.maximum(np.abs(values).max(axis=0, initial=0.0), 1e-300)
    scaled: Array = centred[:, some] / spread[some]
    return scaled


def _residuals(truth: IntArray, answers: IntArray) -> list[FloatArray]:
    """What is left of the given grade, and of its being wrong, after the mean by true grade."""
    responses = []
    for response in (answers.astype(np.float64), (answers != truth).astype(np.float64)):
        sums, rows = np.bincount(truth, response), np.maximum(np.bincount(truth), 1)
        responses.append(response - (sums / rows)[truth])
    return responses


def _statistics(
    truth: IntArray,
    answers: IntArray,
    columns: Mapping[str, Array],
    permutations: int,
    rng: np.random.Generator,
) -> dict[str, FloatArray]:
    """Of every cause, the statistic as seen (first) and after each exchange."""
    order = np.argsort(truth, kind="stable")
    borders = np.flatnonzero(np.diff(truth[order])) + 1
    residuals = np.stack(_residuals(truth, answers))[:, order]  # (responses, n), grade by grade
    arranged = {name: values[order] for name, values in columns.items()}
    n, by_query = len(truth), None
    if "query" in arranged:
        by_query = np.argsort(arranged["query"], kind="stable")
        starts = np.flatnonzero(np.diff(arranged["query"][by_query], prepend=-1))
    several = {name: name != "query" and z.shape[1] > 1 for name, z in columns.items()}
    values = {name: np.empty((2 * len(residuals), permutations + 1)) for name in columns}
    block = max(1, IN_MEMORY // n)
    for first in range(0, permutations + 1, block):
        size = min(block, permutations + 1 - first)
        places = np.tile(np.arange(n), (size, 1))
        for part in np.split(places, borders, axis=1):
            rng.permuted(part, axis=1, out=part)
        if first == 0:
            places[0] = np.arange(n)
        for k, residual in enumerate(residuals):
            drawn = residual[places]
            for name, z in arranged.items():
                queries = name == "query"
                sums = np.add.reduceat(drawn[:, by_query], starts, axis=1) if queries else drawn @ z
                block_rows = slice(first, first + size)
                values[name][2 * k, block_rows] = (sums**2).sum(axis=1)
                values[name][2 * k + 1, block_rows] = (sums**2).max(axis=1) if several[name] else 0.0
    return {name: _one_scale(each).sum(axis=0) for name, each in values.items()}


def _one_scale(values: FloatArray) -> FloatArray:
    """Lines less their mean, to a spread of 1; rounded, so that equal exchanges tie."""
    spread = values.std(axis=1, keepdims=True)
    scaled = (values - values.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    rounded: FloatArray = scaled.round(9)
    return rounded


def _tail(values: FloatArray) -> FloatArray:
    """Of every value, the share of values that are at least as large."""
    ordered = np.sort(values)
    tail: FloatArray = (len(values) - np.searchsorted(ordered, values, side="left")) / len(values)
    return tail


def _effect(truth: IntArray, answers: IntArray, values: Array, query: bool) -> tuple[float, int]:
    """How strong a cause is, on the given grade: see ``Cause``."""
    residual = _residuals(truth, answers)[0]
    variance = float((residual**2).mean())
    if query:
        sums, rows = np.bincount(values, residual), np.bincount(values)
        pairs = float((rows * (rows - 1)).sum())
        products = float((sums**2).sum() - (residual**2).sum())
        return (products / pairs / variance if pairs else 0.0), 0
    correlations = values.T @ residual / len(residual) / np.sqrt(variance)
    largest = int(np.argmax(np.abs(correlations)))
    return float(correlations[largest]), largest
