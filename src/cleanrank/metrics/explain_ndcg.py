"""Why two tools give two NDCGs for one ranking: the table, the value of each, and the steps between them.

A reading of NDCG has five parts: gain, discount, empty, short and ties, as in
``cleanrank.metrics.measure``. Documents that were not retrieved have no rank, but count in the ideal ranking.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.data.inputs import scores_by_row
from cleanrank.errors import invalid
from cleanrank.metrics.evaluation import checked_scores, query_values, trec_scores
from cleanrank.metrics.measure import CONVENTIONS, MAX_EXP_GRADE, Measure, discount
from cleanrank.ragged import from_arrays
from cleanrank.types import Array, FloatArray, RankingData
from cleanrank.validation import one_of

Reading = Mapping[str, str]

_LIGHTGBM = {**CONVENTIONS["lightgbm"], "ties": "stable"}
_TREC = CONVENTIONS["trec"]

# What each does when nothing is said, tried on LightGBM 4.7, XGBoost 3.2, CatBoost 1.2.10, scikit-learn 1.9,
# ranx 0.3.21, pytrec_eval 0.5.11 and ir_measures 0.4.3; the last is described by LETOR 4.0.
TOOLS: dict[str, Reading] = {
    "LightGBM": _LIGHTGBM,
    "XGBoost": _LIGHTGBM,
    "XGBoost ndcg@k-": {**_LIGHTGBM, "empty": "zero"},
    "CatBoost": {**_LIGHTGBM, "gain": "linear", "ties": "worst"},
    "scikit-learn ndcg_score": {**_LIGHTGBM, "gain": "linear", "empty": "zero", "ties": "average"},
    "ranx ndcg": {**_LIGHTGBM, "gain": "linear", "empty": "zero"},
    "ranx ndcg_burges": {**_LIGHTGBM, "empty": "zero"},
    "trec_eval, pytrec_eval": _TREC,
    "ir_measures nDCG": _TREC,
    "LETOR evaluation script": {**CONVENTIONS["letor"], "ties": "stable"},
}

READINGS: dict[str, Reading] = {
    **{name: {"ties": "stable", **parts} for name, parts in CONVENTIONS.items()},
    **TOOLS,
}

START = "lightgbm"
WORDS: dict[tuple[str, str], str] = {
    ("gain", "exp"): "the gain is 2^y - 1",
    ("gain", "linear"): "the gain is y",
    ("discount", "log2"): "the discount is 1/log2(rank + 1)",
    ("discount", "letor"): "the discount is 1 at ranks 1 and 2, then 1/log2(rank)",
    ("empty", "one"): "a query without relevant documents counts 1",
    ("empty", "zero"): "a query without relevant documents counts 0",
    ("empty", "skip"): "a query without relevant documents is left out",
    ("short", "cut"): "a list shorter than k is ranked as it is",
    ("short", "zero"): "a list shorter than k counts 0",
    ("ties", "stable"): "tied documents keep the order of the rows",
    ("ties", "average"): "tied documents share their gains",
    ("ties", "worst"): "of tied documents the less relevant ranks first",
    ("ties", "doc_id"): "scores are compared as 32-bit floats, of tied documents the higher id ranks first",
}


@dataclass(frozen=True)
class RankedDocument:
    """One rank of the list: what each convention adds for it."""

    rank: int
    row: int
    grade: int
    score: float
    tied: bool
    gains: Mapping[str, float]
    discounts: Mapping[str, float]
    contributions: Mapping[str, float]


@dataclass(frozen=True)
class Step:
    """One part in which two readings differ, and what changing it alone does to the value."""

    part: str
    before: str
    after: str
    effect: float
    sentence: str


@dataclass(frozen=True)
class Explanation:
    """NDCG of one ranking, taken apart.

    Attributes:
        k: the cut-off.
        documents: the ranked list (ties in the order of the rows).
        ideal: convention -> DCG of the ideal ranking.
        values: convention -> NDCG; NaN where the query is left out.
        tools: tool -> NDCG.
        readings: convention or tool -> its parts.
        steps: convention or tool -> what leads to it from the ``lightgbm`` convention.
    """

    k: int
    documents: tuple[RankedDocument, ...]
    ideal: Mapping[str, float]
    values: Mapping[str, float]
    tools: Mapping[str, float]
    readings: Mapping[str, Reading]
    steps: Mapping[str, tuple[Step, ...]]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries and lists."""
        return asdict(self)

    def differences(self) -> dict[tuple[str, str, float], list[str]]:
        """(words of lightgbm, other words, effect on the value) -> the conventions and tools concerned."""
        names: dict[tuple[str, str, float], list[str]] = {}
        for name, steps in self.steps.items():
            for step in steps:
                if step.effect != 0:
                    words = WORDS[step.part, step.before], WORDS[step.part, step.after]
                    names.setdefault((*words, round(step.effect, 6)), []).append(name)
        return names


def explain_ndcg(
    y: npt.ArrayLike, scores: npt.ArrayLike, k: int = 10, doc_ids: npt.ArrayLike | None = None
) -> Explanation:
    """Shows what each convention and tool makes of one ranking, and why they differ.

    Args:
        y: grades of the documents of one query.
        scores: one per document, masked (``numpy.ma``) where it was not retrieved.
        k: the cut-off.
        doc_ids: names of the documents, which trec_eval breaks ties by; without them they rise with the rows.

    Returns:
        An Explanation: the value by every convention and tool, and the steps between them.

    >>> explanation = explain_ndcg([0, 2, 1], [0.9, 0.8, 0.7], k=3)
    >>> {name: round(value, 3) for name, value in explanation.values.items()}
    {'lightgbm': 0.659, 'skip': 0.659, 'letor': 0.908, 'linear': 0.67, 'trec': 0.67}
    >>> explanation.steps["linear"][0].sentence
    'gain: the gain is 2^y - 1 in lightgbm, the gain is y in linear: +0.0107.'
    """
    grades, checked = _checked(y, scores, k)
    ids = None if doc_ids is None else np.asarray(doc_ids).astype(str)
    if ids is not None and ids.shape != grades.shape:
        raise invalid("doc_ids", f"must name each of the {len(grades)} documents", f"shape {ids.shape}")
    each = {name: _value(reading, grades, checked, ids, k) for name, reading in READINGS.items()}
    return Explanation(
        k=int(k),
        documents=_documents(grades, checked, ids, k),
        ideal={name: _ideal(reading, grades, k) for name, reading in CONVENTIONS.items()},
        values={name: each[name] for name in CONVENTIONS},
        tools={name: each[name] for name in TOOLS},
        readings=READINGS,
        steps={name: _steps(name, grades, checked, ids, k) for name in READINGS},
    )


def explain_query(
    data: RankingData,
    scores: npt.ArrayLike,
    query: str | None = None,
    k: int = 10,
    *,
    order: str | None = None,
) -> Explanation:
    """``explain_ndcg`` for one query of judged data, which may be left out where there is only one."""
    ids = [str(i) for i in data.query_ids]
    if query is None and len(ids) > 1:
        remedy = f"Try --query {ids[0]}."
        raise invalid("query", f"must name one of the {len(ids):,} queries", "none", remedy=remedy)
    place = ids.index(one_of("query", ids[0] if query is None else query, ids))
    rows = slice(data.indptr[place], data.indptr[place + 1])
    doc_ids = None if data.doc_ids is None else data.doc_ids[rows]
    return explain_ndcg(data.y[rows], np.asanyarray(scores_by_row(scores, data, order))[rows], k, doc_ids)


def _checked(y: npt.ArrayLike, scores: npt.ArrayLike, k: int) -> tuple[Array, Array]:
    grades = np.asarray(y)
    if grades.ndim != 1 or not len(grades) or grades.dtype.kind not in "iubf":
        raise invalid("y", "must list the grades of one query", f"shape {grades.shape}")
    bad = ~np.isfinite(grades) | (grades < 0) | (grades != np.floor(grades)) | (grades > MAX_EXP_GRADE)
    if bad.any():
        row = int(np.argmax(bad))
        raise invalid(
            "y", f"must hold integer grades from 0 to {MAX_EXP_GRADE}", grades[row], at=f"row {row}"
        )
    Measure("ndcg", k)
    return grades.astype(np.int32), np.ma.masked_equal(checked_scores(scores, len(grades)), -np.inf)


def _value(reading: Reading, y: Array, scores: Array, ids: Array | None, k: int) -> float:
    parts: dict[str, Any] = dict(reading)
    scores = _tie_order(reading, y, scores, ids)
    measure = Measure("ndcg", k, **parts)
    values, _ = query_values((measure,), y, scores, np.array([0, len(y)], dtype=np.int64))
    return float(values[0, 0])


def _gain(reading: Reading, y: Array) -> FloatArray:
    grades = y.astype(np.float64)
    return np.exp2(grades) - 1.0 if reading["gain"] == "exp" else grades


def _ideal(reading: Reading, y: Array, k: int) -> float:
    best = np.sort(_gain(reading, y))[::-1][:k]
    return float(best @ discount(reading["discount"], len(best)))


def _tie_order(reading: Reading, y: Array, scores: Array, ids: Array | None) -> Array:
    """Scores whose ties fall as a reading says when they keep the order of the rows."""
    if reading.get("ties") != "doc_id":
        return scores
    return trec_scores(scores, from_arrays(np.zeros((len(y), 0)), y, group=[len(y)], doc_ids=ids))


def _ranking(scores: Array) -> Array:
    """The rows of the retrieved documents, best first."""
    retrieved = np.flatnonzero(~np.ma.getmaskarray(scores))
    best_first: Array = np.argsort(-np.asarray(scores, dtype=np.float64)[retrieved], kind="stable")
    return retrieved[best_first]


def _documents(y: Array, scores: Array, ids: Array | None, k: int) -> tuple[RankedDocument, ...]:
    gains = {name: _gain(reading, y) for name, reading in CONVENTIONS.items()}
    falls, places = {}, {}
    for name, reading in CONVENTIONS.items():
        places[name] = np.zeros(len(y), dtype=np.int64)
        own = _ranking(_tie_order(reading, y, scores, ids))
        places[name][own] = np.arange(len(own))
        falls[name] = discount(reading["discount"], len(y))[places[name]]
    documents = []
    for r, row in enumerate(_ranking(scores)):
        gain = {name: float(g[row]) for name, g in gains.items()}
        fall = {name: float(d[row]) for name, d in falls.items()}
        documents.append(
            RankedDocument(
                rank=r + 1,
                row=int(row),
                grade=int(y[row]),
                score=float(scores[row]),
                tied=bool((scores == scores[row]).sum() > 1),
                gains=gain,
                discounts=fall,
                contributions={
                    name: gain[name] * fall[name] if places[name][row] < k else 0.0 for name in CONVENTIONS
                },
            )
        )
    return tuple(documents)


def _steps(name: str, y: Array, scores: Array, ids: Array | None, k: int) -> tuple[Step, ...]:
    """From the lightgbm convention, one part after the other; those without effect here are left out."""
    reading = dict(READINGS[START])
    value = _value(reading, y, scores, ids, k)
    steps = []
    for part, after in READINGS[name].items():
        before = reading[part]
        if before == after:
            continue
        reading[part] = after
        changed = _value(reading, y, scores, ids, k)
        # NaN is a value of its own here: the query is left out.
        if changed != value and not (np.isnan(changed) and np.isnan(value)):
            effect = changed - value
            size = "no value" if np.isnan(changed) else f"{effect:+.4f}"
            sentence = f"{part}: {WORDS[part, before]} in {START}, {WORDS[part, after]} in {name}: {size}."
            steps.append(Step(part, before, after, effect, sentence))
        value = changed
    return tuple(steps)
