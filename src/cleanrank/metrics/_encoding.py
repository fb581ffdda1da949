"""Measures as numbers: what the compiled kernels read.

One row of the plan per measure, with the columns CODE to WEIGHTING; grades become codes 0..C-1 on the scale
of the data, with a table of gains per code.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.jit import query_chunks
from cleanrank.metrics.measure import MAX_EXP_GRADE, Measure
from cleanrank.types import Array, FloatArray, IntArray

CODE, CUTOFF, GAIN, DISCOUNT, EMPTY, SHORT_ZERO, TIES, WEIGHTING, RELEVANT, MAX_GRADE = range(10)
NDCG, DCG, MAP, MRR, ERR, PRECISION, RECALL, AUC, PAIRACC, TAU = range(10)
EMPTY_ONE, EMPTY_ZERO, EMPTY_SKIP = range(3)
STABLE, AVERAGE, WORST = range(3)
MACRO, MICRO, POOLED = range(3)

CODES = {
    "ndcg": NDCG,
    "dcg": DCG,
    "map": MAP,
    "mrr": MRR,
    "err": ERR,
    "precision": PRECISION,
    "recall": RECALL,
    "auc": AUC,
    "pairacc": PAIRACC,
    "tau": TAU,
}
PART_CODES: dict[str | None, int] = {
    None: 0, "one": EMPTY_ONE, "zero": EMPTY_ZERO, "skip": EMPTY_SKIP,
    "stable": STABLE, "average": AVERAGE, "worst": WORST, "macro": MACRO, "micro": MICRO, "pooled": POOLED,
    "exp": 0, "linear": 1, "log2": 0, "letor": 1,
}  # fmt: skip

# Beyond these, selecting the top costs more than sorting, and grades are renumbered without gaps.
MOST_TOP = 32
MOST_CODES = 256
CHUNKS = 64


@dataclass(frozen=True, eq=False)
class Plan:
    """Inputs of the kernel; see the module."""

    rows: IntArray
    code: npt.NDArray[np.int32]
    gain_of: FloatArray
    discounts: FloatArray
    bounds: IntArray
    top: int


def make_plan(measures: tuple[Measure, ...], y: Array, indptr: IntArray) -> Plan:
    """Turns measures, grades and queries into what the kernel reads."""
    most = int(y.max(initial=0))
    if most < MOST_CODES:
        scale = np.arange(most + 1)
        code = y
    else:
        scale, code = np.unique(y, return_inverse=True)
    longest = int(np.diff(indptr).max(initial=0))
    with np.errstate(over="ignore"):
        gain_of = np.stack((np.exp2(scale.astype(np.float64)) - 1.0, scale.astype(np.float64)))
    return Plan(
        rows=np.array([_row(m, scale) for m in measures], dtype=np.int64),
        code=np.ascontiguousarray(code, dtype=np.int32),
        gain_of=gain_of,
        discounts=np.stack((discount("log2", longest), discount("letor", longest))),
        bounds=query_chunks(indptr, CHUNKS),
        top=_top(measures),
    )


def discount(kind: str, n: int) -> FloatArray:
    """Discounts of the ranks 1..n.

    >>> discount("letor", 4).tolist()
    [1.0, 1.0, 0.6309297535714575, 0.5]
    """
    ranks = np.arange(1, n + 1, dtype=np.float64)
    if kind == "log2":
        return 1.0 / np.log2(ranks + 1.0)
    return 1.0 / np.log2(np.maximum(ranks, 2.0))


def check_grades(measures: tuple[Measure, ...], y: Array, gains: Array | None) -> None:
    """Refuses grades that a measure cannot read."""
    most = int(y.max(initial=0))
    for m in measures:
        if m.name == "err" and most > (m.max_grade or 0):
            raise invalid(
                f"max_grade of {str(m)!r}",
                "must be at least the highest grade of the data",
                f"{m.max_grade} for the grade {most}",
                remedy=f"Write 'err:max_grade={most}'." if most <= MAX_EXP_GRADE else "Use fewer grades.",
            )
        if m.gain == "exp" and gains is None and most > MAX_EXP_GRADE:
            raise invalid(
                "grades",
                f"must not exceed {MAX_EXP_GRADE} with the gain 2^y - 1",
                most,
                at=f"row {int(np.argmax(y))}",
                remedy=f"Use '{m}:gain=linear' or give gains=.",
            )


def _row(m: Measure, scale: IntArray) -> list[int]:
    lowest = np.searchsorted(scale, m.relevant or 1)
    empty = PART_CODES[m.empty] if m.empty else EMPTY_SKIP
    parts = [PART_CODES[part] for part in (m.gain, m.discount)]
    policies = [int(m.short == "zero"), PART_CODES[m.ties], PART_CODES[m.weighting]]
    return [CODES[m.name], m.cutoff or 0, *parts, empty, *policies, int(lowest), m.max_grade or 0]


def _top(measures: tuple[Measure, ...]) -> int:
    """The last rank that any measure looks at; 0 when some need the whole ranking."""
    cutoffs = [m.cutoff if m.cutoff and m.ties == "stable" else 0 for m in measures]
    return max(cutoffs) if min(cutoffs) > 0 and max(cutoffs) <= MOST_TOP else 0
