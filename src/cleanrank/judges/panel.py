"""Several judges together: how many votes they count for, and the grades they make.

Language models err together: the same passages mislead them. A majority or the model of Dawid and Skene,
which both count on independent errors, then makes labels that may be worse than the best single judge's.
With gold rows the true grade is regressed on the answers instead, and whatever predicts gold rows of other
queries best is used.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from cleanrank.errors import UntrustedNoiseWarning, invalid
from cleanrank.judges.answers import Answers, read_answers
from cleanrank.judges.labels import Labels, as_labels
from cleanrank.judges.stacking import (
    FOLDS,
    Candidate,
    GoldRows,
    candidates,
    choose,
    gold_rows,
    with_intervals,
)
from cleanrank.noise.agreement import judgements as judgement_table
from cleanrank.noise.annotators import ENOUGH_ITEMS, dawid_skene, judged_dependence
from cleanrank.noise.dependence import Dependence, error_dependence
from cleanrank.noise.estimate import check_level
from cleanrank.types import Array, FloatArray, IntArray, plain
from cleanrank.validation import check_seed, is_frame

METHODS = {
    "stacking": "ordinal regression of gold grades on the judges' answers",
    "dawid-skene": "Dawid and Skene's posterior; with gold rows, recalibrated on them",
    "recalibrated": "one judge, recalibrated on gold rows",
    "as answered": "one judge's answers as they are",
    "majority": "shares of the votes",
}
LEAST_GOLD = 10
NOT_RANDOM = 3.0  # standard errors between gold rows and the others


@dataclass(frozen=True)
class JudgeOnGold:
    """A judge beside gold rows.

    Attributes:
        name: of the judge.
        answers: how many.
        gold_rows: how many of them are on gold rows.
        accuracy: share of these that are the gold grade; NaN where the judge answers on no gold row.
        recalibrated: accuracy after recalibration, on gold rows of other queries; NaN for a judge that
            answered fewer than half of the gold rows.
    """

    name: str
    answers: int
    gold_rows: int
    accuracy: float
    recalibrated: float


@dataclass(frozen=True, eq=False, repr=False)
class Panel:
    """The grades that several judges make together.

    Attributes:
        qid: (N,) query ids, ascending.
        docid: (N,) document ids.
        probabilities: (N, C) of the true grades.
        probability_low: (N, C), lower ends of their intervals over other draws of gold queries, as if the
            model were right; NaN without gold rows.
        probability_high: (N, C), upper ends.
        expected_low: (N,), lower ends of the intervals of the expected grade.
        expected_high: (N,), upper ends.
        method: one of METHODS.
        judge: the judge that is used alone, or "".
        dependence: how far judges err together.
        judges: every judge beside the gold rows; empty without.
        accuracy: share of right grades expected on pairs of other queries, by cross-validation; NaN without
            gold rows.
        accuracy_interval: its interval.
        best_judge: name and accuracy of the best single judge, as answered or recalibrated, by the same
            cross-validation; None where no judge answered half of the gold rows.
        tried: accuracy of every way that was tried.
        gold_rows: how many were used.
        gold_queries: of how many queries.
        level: probability that an interval is meant to hold.
        notes: what a reader must know, in words.
    """

    qid: Array
    docid: Array
    probabilities: FloatArray
    probability_low: FloatArray
    probability_high: FloatArray
    expected_low: FloatArray
    expected_high: FloatArray
    method: str
    judge: str
    dependence: Dependence
    judges: Sequence[JudgeOnGold] = ()
    accuracy: float = float("nan")
    accuracy_interval: tuple[float, float] = (float("nan"), float("nan"))
    best_judge: tuple[str, float] | None = None
    tried: Mapping[str, float] = field(default_factory=dict)
    gold_rows: int = 0
    gold_queries: int = 0
    level: float = 0.95
    notes: Sequence[str] = ()

    @property
    def grade(self) -> IntArray:
        """(N,) the most probable grade."""
        most_probable: IntArray = np.argmax(self.probabilities, axis=1)
        return most_probable

    @property
    def expected(self) -> FloatArray:
        """(N,) the expected grade."""
        mean: FloatArray = self.probabilities @ np.arange(self.probabilities.shape[1])
        return mean

    @property
    def effective_votes(self) -> float:
        """Independent judges that those of a pair count for."""
        return self.dependence.votes

    @property
    def grades(self) -> Any:
        """A pandas frame: qid, docid, grade, p0, p1, ... (probabilities), expected, low, high.

        ``low`` and ``high`` are the ends of the interval of the expected grade.
        """
        import pandas as pd

        shares = {f"p{g}": column for g, column in enumerate(self.probabilities.T)}
        spans = {"expected": self.expected, "low": self.expected_low, "high": self.expected_high}
        return pd.DataFrame({"qid": self.qid, "docid": self.docid, "grade": self.grade, **shares, **spans})

    def __repr__(self) -> str:
        who = f" ({self.judge})" if self.judge else ""
        lines = [f"Panel({len(self.qid):,} pairs): {METHODS[self.method]}{who}"]
        if self.gold_rows:
            low, high = self.accuracy_interval
            queries = "1 query" if self.gold_queries == 1 else f"{self.gold_queries:,} queries"
            rows = f"{self.gold_rows:,} gold rows of {queries}"
            best = "" if self.best_judge is None else f"; best single judge {self.best_judge[1]:.3f}"
            lines.append(
                f"accuracy {self.accuracy:.3f} [{low:.3f}, {high:.3f}]{best} (cross-validated, {rows})"
            )
        return "\n  ".join([*lines, str(self.dependence), *(f"- {note}" for note in self.notes)])

    def to_json(self) -> dict[str, Any]:
        """Plain values, without the rows; numbers that are not finite become None."""
        own = ("method", "judge", "accuracy", "accuracy_interval", "best_judge", "tried", "gold_rows")
        record: dict[str, Any] = {name: getattr(self, name) for name in (*own, "gold_queries", "level")}
        record |= {"pairs": len(self.qid), "effective_votes": self.effective_votes}
        record |= {"judges": [asdict(each) for each in self.judges], "notes": self.notes}
        values: dict[str, Any] = plain(record)
        return values | {"dependence": self.dependence.to_json()}


def combine_judges(
    judgements: Any,
    gold: Any = None,
    *,
    mapping: Mapping[Any, Any] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Panel:
    """The grades that several judges make together, with probabilities.

    Args:
        judgements: a frame or a file with the columns qid, docid, judge and grade, or a mapping from judges
            to labels (a path, a frame or {query: {document: grade}} each). Judges may leave out pairs, and
            answer on scales of their own where there are gold rows.
        gold: true grades of some pairs: a path, a frame (qid, docid, grade and, if they were drawn with
            unequal probabilities, probability) or {query: {document: grade}}. About 100 pairs, drawn at
            random from many queries.
        mapping: grade of every value of the judges' scale, or {judge: {value: grade}}.
        level: probability that an interval is meant to hold.
        seed: same seed, same folds and draws.

    Returns:
        A Panel. With gold rows: what predicts gold rows of other queries best; the best single judge where
        it beats every combination by more than a standard error. Without: Dawid and Skene's posterior where
        errors look independent, else shares of the votes and a warning.

    >>> import cleanrank as cr
    >>> rng = np.random.default_rng(0)
    >>> truth = {f"q{q}": {f"d{d}": int(rng.integers(3)) for d in range(20)} for q in range(10)}
    >>> def judge(wrong):
    ...     return {q: {d: int(rng.integers(3)) if rng.random() < wrong else g for d, g in docs.items()}
    ...             for q, docs in truth.items()}
    >>> panel = cr.combine_judges({name: judge(0.4) for name in "abcde"}, gold=truth)
    >>> panel.method, bool(panel.accuracy > panel.best_judge[1]), panel.grades.columns[:4].tolist()
    ('dawid-skene', True, ['qid', 'docid', 'grade', 'p0'])
    """
    check_level(level)
    check_seed(seed)
    answers = read_answers(judgements, mapping)
    if gold is None:
        panel = _by_votes(answers, level, seed)
    else:
        panel = _on_gold(answers, as_labels(gold, "gold"), level, seed)
    ids = {name: _typed(getattr(answers, name), judgements, name) for name in ("qid", "docid")}
    return replace(panel, qid=ids["qid"], docid=ids["docid"])


def _typed(ids: Array, source: Any, column: str) -> Array:
    """Ids as whole numbers where those of a frame were."""
    if is_frame(source) and column in source and np.asarray(source[column]).dtype.kind in "iu":
        return ids.astype(np.int64)
    return ids


def _on_gold(answers: Answers, labels: Labels, level: float, seed: int) -> Panel:
    gold, notes = _gold(answers, labels, seed)
    odd = answers.odd
    dependence = _gold_dependence(answers, gold, level, shared=not odd)
    ways = candidates(answers, gold, not odd, seed)
    if not ways:
        raise _no_scale(odd)
    best, single = choose(ways, gold)
    notes.append(_why(best, single))
    p, ends, expected = with_intervals(best, gold, level, seed)
    accuracy, error = gold.mean((best.held.argmax(axis=1) == gold.y).astype(np.float64))
    return Panel(
        qid=answers.qid,
        docid=answers.docid,
        probabilities=p,
        probability_low=ends[0],
        probability_high=ends[1],
        expected_low=expected[0],
        expected_high=expected[1],
        method=best.kind,
        judge=best.name if best.is_single else "",
        dependence=dependence,
        judges=_judges(answers, gold, ways),
        accuracy=accuracy,
        accuracy_interval=_ends(accuracy, error, int(gold.group.max()), level),
        best_judge=None if single is None else (single.name, single.accuracy),
        tried={f"{each.name}, {each.kind}" if each.is_single else each.name: each.accuracy for each in ways},
        gold_rows=len(gold.rows),
        gold_queries=len(np.unique(answers.query[gold.rows])),
        level=level,
        notes=notes,
    )


def _gold(answers: Answers, labels: Labels, seed: int) -> tuple[GoldRows, list[str]]:
    """The gold rows that a judge answered, and what must be said of them."""
    place = answers.places(labels)
    kept = place >= 0
    if not kept.any():
        ids = f"({answers.qid[0]}, {answers.docid[0]}) and ({labels.qid[0]}, {labels.docid[0]})"
        remedy = "Check whether both belong to the same collection."
        raise invalid("judgements and gold", "must have pairs in common", ids, remedy=remedy)
    if kept.sum() < LEAST_GOLD:
        remedy = "Judge more pairs (cleanrank gold sample), or leave gold out."
        rule = f"must hold {LEAST_GOLD} pairs or more that a judge answered"
        raise invalid("gold", rule, int(kept.sum()), remedy=remedy)
    y = labels.grade[kept]
    if len(np.unique(y)) < 2:
        rule = "must hold two different grades"
        raise invalid("gold", rule, f"{int(y[0])} alone", remedy="Judge more pairs.")
    drawn = labels.probability
    weights = np.ones(len(y)) if drawn is None else 1 / drawn[kept]
    gold = gold_rows(place[kept], y, weights, answers.query, seed)
    notes = []
    if not kept.all():
        notes.append(f"{int((~kept).sum()):,} gold pairs that no judge answered were left out")
    if not gold.by_query:
        n = len(np.unique(answers.query[gold.rows]))
        notes.append(
            f"gold rows come from {n} {'query' if n == 1 else 'queries'}: cross-validation is over "
            f"rows, and how accurate grades of other queries are is not known ({FOLDS} queries are needed)"
        )
    elif drawn is None:
        notes += _not_random(answers, gold)
    return gold, notes


def _not_random(answers: Answers, gold: GoldRows) -> list[str]:
    """What cannot be claimed where the judges answer otherwise on gold rows than elsewhere."""
    count = np.maximum(np.bincount(answers.judge), 1)
    mean = np.bincount(answers.judge, answers.value) / count
    rest = answers.value - mean[answers.judge]
    spread = np.sqrt(np.bincount(answers.judge, rest**2) / count)
    scaled = rest / np.maximum(spread, 1e-12)[answers.judge]
    of_pair = np.bincount(answers.pair, scaled) / np.bincount(answers.pair)
    others = np.setdiff1d(np.arange(len(of_pair)), gold.rows)
    on_gold, error = gold.mean(of_pair[gold.rows])
    if not len(others) or abs(on_gold - of_pair[others].mean()) <= NOT_RANDOM * max(error, 1e-12):
        return []
    way = "higher" if on_gold > of_pair[others].mean() else "lower"
    return [
        f"judges answer {way} on gold pairs than on the others: these were not drawn at random, and the "
        "accuracy is that on pairs like them (draw pairs with cleanrank gold sample, or give the column "
        "probability)"
    ]


def _gold_dependence(answers: Answers, gold: GoldRows, level: float, *, shared: bool) -> Dependence:
    place = np.full(len(answers.qid), -1)
    place[gold.rows] = np.arange(len(gold.rows))
    kept = place[answers.pair] >= 0
    tops = answers.tops
    scale = np.maximum(np.full(len(tops), tops.max()) if shared else tops, 1e-12)
    return error_dependence(
        place[answers.pair[kept]],
        answers.judge[kept],
        (answers.value / scale[answers.judge])[kept],
        np.eye(gold.n_grades)[gold.y],
        answers.judges,
        cluster=answers.query[gold.rows],
        level=level,
    )


def _why(best: Candidate, single: Candidate | None) -> str:
    reached = f"{best.accuracy:.3f} of the gold rows left out"
    if best.is_single:
        return f"no combination predicts as well as {best.name} ({reached}): that judge is used alone"
    if single is None:
        return f"{best.name} predicts {reached}; no judge answered half of the gold rows"
    against = f"{single.name} alone, {single.kind}: {single.accuracy:.3f}"
    if single.accuracy > best.accuracy:
        return f"{best.name} predicts {reached}, not clearly less than the best judge ({against})"
    return f"{best.name} predicts {reached} ({against})"


def _judges(answers: Answers, gold: GoldRows, ways: Sequence[Candidate]) -> list[JudgeOnGold]:
    known = np.full(len(answers.qid), -1.0)
    known[gold.rows] = gold.y
    on_gold = known[answers.pair] >= 0
    A = len(answers.judges)
    right = np.bincount(answers.judge[on_gold], (answers.value == known[answers.pair])[on_gold], A)
    counts = np.bincount(answers.judge[on_gold], minlength=A)
    accuracy = np.where(counts > 0, right / np.maximum(counts, 1), np.nan)
    recalibrated = {each.name: each.accuracy for each in ways if each.kind == "recalibrated"}
    every = np.bincount(answers.judge, minlength=A)
    return [
        JudgeOnGold(
            name, int(every[a]), int(counts[a]), float(accuracy[a]), recalibrated.get(name, float("nan"))
        )
        for a, name in enumerate(answers.judges)
    ]


def _by_votes(answers: Answers, level: float, seed: int) -> Panel:
    """Without gold rows: Dawid and Skene's posterior, or shares of the votes."""
    if answers.odd:
        raise _no_scale(answers.odd)
    names = np.array(answers.judges)[answers.judge]
    judged = judgement_table(item=answers.pair, annotator=names, grade=answers.value.astype(np.int64))
    named = len(answers.judges) >= 3 and (judged.per_item.sum(axis=1) >= 3).sum() >= ENOUGH_ITEMS
    fit = dawid_skene(judged, seed=seed)
    dependence = judged_dependence(judged, fit, level)
    notes = [
        "without gold rows errors that all judges share cannot be seen: the votes are an upper bound, "
        "accuracy is not known, and grades have no intervals (give about 100 gold pairs)"
    ]
    if named and not dependence.is_high:
        p, method = fit.posterior, "dawid-skene"
    else:
        votes = judged.per_item / judged.per_item.sum(axis=1, keepdims=True)
        p, method = (dependence.votes * votes + votes.mean(axis=0)) / (dependence.votes + 1), "majority"
        if named:
            text = f"combine_judges: {'; '.join(dependence.reasons)}. Grades are shares of the votes."
            warnings.warn(text, UntrustedNoiseWarning, stacklevel=3)
            notes = [*dependence.reasons, *notes]
        else:
            notes.append(
                f"fewer than three judges, or than {ENOUGH_ITEMS} pairs with three answers: votes count alike"
            )
    unknown = np.full(p.shape, np.nan)
    return Panel(
        qid=answers.qid,
        docid=answers.docid,
        probabilities=p,
        probability_low=unknown,
        probability_high=unknown,
        expected_low=unknown[:, 0],
        expected_high=unknown[:, 0],
        method=method,
        judge="",
        dependence=dependence,
        level=level,
        notes=notes,
    )


def _no_scale(odd: str) -> Exception:
    remedy = (
        "Say which grade each value stands for, as in mapping={'judge': {0: 0, 1: 3}}, or give gold rows."
    )
    return invalid("judges", "must answer on one scale", odd, remedy=remedy)


def _ends(mean: float, error: float, freedom: int, level: float) -> tuple[float, float]:
    from scipy import stats

    margin = error * float(stats.t.ppf((1 + level) / 2, max(freedom, 1)))
    return max(mean - margin, 0.0), min(mean + margin, 1.0)
