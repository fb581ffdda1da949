"""One report on one data set: its shape, its contradictions, its fragility, and what to do about it."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.data.inputs import as_data
from cleanrank.diagnosis.advice import Advice, advise
from cleanrank.diagnosis.duplicates import Duplicates, duplicates_of
from cleanrank.diagnosis.fragility import (
    DEFAULT_PROFILES,
    FAMILIES,
    RATES,
    TURNING_POINT,
    Balance,
    Curve,
    KnownCurve,
    Merge,
    balance_of,
    curves_of,
    known_curves,
    merges_of,
)
from cleanrank.diagnosis.profile import (
    Columns,
    Grades,
    Idle,
    Lengths,
    Pairs,
    columns_of,
    grade_counts,
    grades_of,
    idle_of,
    lengths_of,
    pairs_of,
)
from cleanrank.errors import invalid
from cleanrank.issues.feature_signal import feature_signal
from cleanrank.noise.signal import Signal, signal_of
from cleanrank.report import articles
from cleanrank.types import RankingData, plain
from cleanrank.validation import check_number, one_of

REFERENCE_RATE = 0.1
MOST_MERGED = 10


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """The result of ``diagnose``; prints as a report.

    Attributes:
        queries: how many.
        documents: how many.
        features: how many columns.
        lengths: documents per query.
        grades: how labels are spread.
        pairs: pairs within queries.
        idle: queries without preference pairs.
        duplicates: identical rows and contradicting labels.
        columns: constant columns, missing values.
        signal: how well models that never saw a query tell its documents of different grades apart; all
            documents where no query has such. None with fewer than two queries, or without features.
        row_order: how well the order of rows alone tells documents of different grades of a query apart.
        rate: the error rate that the advice is about.
        new_weight: what a new-come pair counts in pNoise.
        curves: pNoise against the error rate, one curve per profile.
        known: the same for published data sets, under the first profile.
        merges: coarser scales, at ``rate`` under the first profile; none beyond ten grades.
        balance: even and best shares, at ``rate`` under the first profile; None with one grade, with more
            than ten, or with another weight of new-come pairs than 1/2.
        advice: what to do and know.
        name: what the data are called.
    """

    queries: int
    documents: int
    features: int
    lengths: Lengths
    grades: Grades
    pairs: Pairs
    idle: Idle
    duplicates: Duplicates
    columns: Columns
    signal: Signal | None
    row_order: Signal
    rate: float
    new_weight: float
    curves: tuple[Curve, ...]
    known: tuple[KnownCurve, ...]
    merges: tuple[Merge, ...]
    balance: Balance | None
    advice: tuple[Advice, ...] = field(default=())
    name: str = ""

    def at(self, rate: float, *, overall: bool = False) -> float:
        """The pNoise of the first profile at a rate, over real queries or from overall proportions."""
        curve = self.curves[0]
        return float(np.interp(rate, curve.rates, curve.overall if overall else curve.pnoise))

    def known_at(self, known: KnownCurve, rate: float) -> float:
        """The pNoise of a published data set at a rate."""
        return float(np.interp(rate, self.curves[0].rates, known.pnoise))

    def __repr__(self) -> str:
        return articles.diagnosis_text(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values; what is not a finite number becomes None."""
        values: dict[str, Any] = plain(asdict(self))
        return values

    def to_json(self) -> str:
        """Everything as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Writes a page of one file that needs no network."""
        return articles.write_diagnosis(self.to_dict(), path)


def diagnose(
    data: Any,
    y: npt.ArrayLike | None = None,
    *,
    label: str | None = None,
    qid: Any = None,
    group: npt.ArrayLike | None = None,
    features: Sequence[str] | None = None,
    rates: Sequence[float] = RATES,
    profiles: Sequence[str] = DEFAULT_PROFILES,
    new_weight: float = 0.5,
    rate: float = REFERENCE_RATE,
    turning_point: float = TURNING_POINT,
    name: str = "",
    seed: int = 0,
) -> Diagnosis:
    """Describes a judged data set: how many label errors can it bear, and what should be done first?

    Args:
        data: judged rows, whose labels stand in for the truth: a RankingData, a frame with the columns
            ``label`` and ``qid``, or features with ``y``.
        y: with features as ``data``, the grades.
        label: with a frame, its column of grades; "label" when not given.
        qid: with a frame, its column of query ids ("qid" when not given), else the query of every row.
        group: instead of ``qid``, documents per query.
        features: with a frame, its columns of features; else all of numbers and categories.
        rates: label error rates of the curves, rising.
        profiles: families of noise; the advice is about the first.
        new_weight: what a new-come pair counts in pNoise.
        rate: the error rate that the advice is about.
        turning_point: the pNoise at which the knee is placed.
        name: what to call the data in the report.
        seed: for the small models that look whether features and labels belong together.

    Returns:
        A Diagnosis, which prints as text; ``to_json`` and ``to_html`` give the same.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[0.1], [0.4], [0.9], [0.9]], [0, 0, 1, 0], qid=[1, 1, 1, 1])
    >>> diagnosis = diagnose(data)
    >>> diagnosis.pairs.different, diagnosis.duplicates.within.least_wrong, round(diagnosis.at(0.1), 3)
    (3, 1, 0.1)
    """
    data = as_data(data, y, label=label, qid=qid, group=group, features=features)
    if not len(rates) or not len(profiles):
        raise invalid("rates" if not len(rates) else "profiles", "must name at least one", "none")
    for profile in profiles:
        one_of("noise profile", profile, FAMILIES)
    for each in (*rates, rate):
        check_number("rates", each, least=0, most=1)
    check_number("new_weight", new_weight, least=0, most=1)
    check_number("turning_point", turning_point, above=0, most=0.5)
    grid = tuple(sorted({*(float(r) for r in rates), float(rate)}))
    counts = grade_counts(data)
    pairs = pairs_of(counts)
    shape: dict[str, Any] = {"new_weight": new_weight, "turning_point": turning_point}
    curves = curves_of(counts, grid, profiles, **shape) if pairs.all else ()
    used = int((counts.sum(axis=0) > 0).sum())
    first = profiles[0]
    diagnosis = Diagnosis(
        queries=data.n_queries,
        documents=data.n_docs,
        features=data.n_features,
        lengths=lengths_of(data.lengths),
        grades=grades_of(counts),
        pairs=pairs,
        idle=idle_of(data, counts),
        duplicates=duplicates_of(data),
        columns=columns_of(data),
        signal=_signal(data, seed),
        row_order=signal_of(data.y, -np.arange(data.n_docs), data.indptr),
        rate=float(rate),
        new_weight=float(new_weight),
        curves=curves,
        known=known_curves(grid, first, new_weight) if curves else (),
        merges=merges_of(counts, first, rate, new_weight=new_weight) if 2 < used <= MOST_MERGED else (),
        balance=balance_of(counts, first, rate) if 1 < used <= MOST_MERGED and new_weight == 0.5 else None,
        name=name,
    )
    return replace(diagnosis, advice=advise(diagnosis))


def _signal(data: RankingData, seed: int) -> Signal | None:
    """What features tell about labels; None where no model could tell."""
    if data.n_queries < 2 or not data.n_features:
        return None
    return feature_signal(data, seed=seed)
