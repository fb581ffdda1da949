"""Missing judgements: how probably a pair that nobody judged is relevant, and which pairs to send to a judge.

Unjudged documents that systems retrieve ("holes") and mined hard negatives that are positives are one
question: P(relevant | evidence) of a pair without a grade. Evidence are features of runs, texts, scores and
other judges (``features.py``) and what the judged pairs of its query are like (``judged_evidence.py``).

The score of a pair is the mean of REPEATS, each from boosted trees that saw none of its query. They learn
s(x) = P(judged relevant | x): unjudged pairs count as not relevant. Where the relevant pairs that lack a
grade are a random part of all relevant ones, s(x) is P(relevant | x) times a constant (Elkan and Noto 2008),
so that it orders pairs rightly. With ``unjudged="ignored"`` the trees learn from judged pairs alone.

A rising curve then makes the score a probability. It is fitted

* on gold rows, pairs without a grade whose true grade was found out: right for all of them if gold rows were
  chosen at random or by the score;
* else on the judged pairs: right for the others if whether a pair was judged depends on the evidence alone.
  Pools break that: pairs were judged because of something, and what lies below may be relevant more often or
  less. Where runs alone decide who is judged, unjudged pairs that count as not relevant teach just that;
* else, where all judged pairs are relevant, not at all: s(x) itself is at most the probability.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.data.beir import is_collection
from cleanrank.data.sheets import Sheet
from cleanrank.data.texts import as_sheet, columns_of_text, query_heading, texts_of
from cleanrank.errors import invalid
from cleanrank.issues.features import (
    is_prose,
    judgements_of,
    judges_of,
    pair_features,
    several,
    systems_of,
)
from cleanrank.issues.judged_evidence import judged_evidence, rank_masses, text_vectors
from cleanrank.issues.run_features import ranks_and_scores
from cleanrank.issues.table import BoolArray
from cleanrank.metrics.calibration import Calibration, fit_calibration
from cleanrank.noise.gold import GoldSheet
from cleanrank.noise.gold_sheet import gold_answers, known_grades
from cleanrank.ragged import from_arrays, judged_rows
from cleanrank.rankers.grade_model import Fit, cross_fit, fit_grades
from cleanrank.types import Array, FloatArray, IntArray, Progress, RankingData, Run
from cleanrank.validation import check_integer, check_n_jobs, check_number, check_seed, one_of

ENOUGH = 1000  # rows for an isotonic curve
REPEATS = 5  # means over cuts into folds and parts: one cut alone ordered pairs worse
HALF = 0.5
APART = "their probabilities say nothing. Learn from judged pairs alone (unjudged='ignored') and judge some."
UNJUDGED = ("irrelevant", "ignored")
SHARES = (0.5, 0.8, 0.9, 0.95)
WORDS = {
    "gold": "Probabilities are calibrated on {n:,} gold rows.",
    "judgements": "Probabilities are calibrated on {n:,} judged pairs, of queries that the models did not "
    "see. They hold for the others if whether a pair was judged depends on the evidence alone. Judged pairs "
    "were selected (a pool of some depth), so that the number expected may be far off, either way: calibrate "
    "with gold rows (--gold).",
    "nothing": "All judged pairs are relevant: the numbers are P(judged relevant), at most the probability "
    "of being relevant. They order the pairs; gold rows (--gold) make them probabilities.",
}


@dataclass(frozen=True)
class ToJudge:
    """What judging the likeliest unjudged pairs finds.

    Attributes:
        rows: how many are judged.
        share: of the unjudged pairs.
        threshold: the lowest probability among them.
        expected: relevant pairs expected among them.
        found: these as a share of those expected among all unjudged pairs.
        each: relevant pairs expected per judgement.
    """

    rows: int
    share: float
    threshold: float
    expected: float
    found: float
    each: float


@dataclass(frozen=True, eq=False, repr=False)
class MissingJudgements:
    """How probably each pair is relevant; what matters are those that nobody judged.

    Attributes:
        pool: all judged and unjudged pairs, numbered by row id; ``judged`` tells them apart.
        data: those that have all of the evidence, with features and texts.
        probability: P(relevant | evidence) of every pair, its own grade not looked at.
        score: what orders pairs.
        is_open: pairs that have no grade, and whose true grade is not known either.
        relevant: the lowest grade that counts as relevant.
        calibrated_on: "gold", "judgements" or "nothing".
        n_calibration: on how many rows.
    """

    pool: RankingData
    data: RankingData
    probability: FloatArray
    score: FloatArray
    is_open: BoolArray
    relevant: int
    calibrated_on: str
    n_calibration: int

    def __len__(self) -> int:
        return int(self.is_open.sum())

    def __repr__(self) -> str:
        return f"MissingJudgements({len(self):,} unjudged pairs, {self.expected:,.1f} relevant expected)"

    @property
    def expected(self) -> float:
        """Relevant pairs expected among the unjudged ones."""
        return float(self.probability[self.is_open].sum())

    @property
    def left_out(self) -> int:
        """Pairs that lack some of the evidence, about which nothing is said."""
        return self.pool.n_docs - self.data.n_docs

    @property
    def statement(self) -> str:
        """What the probabilities rest on."""
        words = WORDS[self.calibrated_on].format(n=self.n_calibration)
        if self.calibrated_on != "judgements" or self.overlap >= HALF:
            return words
        return f"{words} Here only {self.overlap:.0%} of the unjudged pairs are like any judged one: {APART}"

    @property
    def overlap(self) -> float:
        """The share of unjudged pairs that score as high as all but a hundredth of the judged ones."""
        lowest = np.quantile(self.score[~self.is_open], 0.01)
        return float((self.score[self.is_open] >= lowest).mean()) if len(self) else 1.0

    def places(self, n: int | None = None) -> IntArray:
        """The places in ``data`` of the unjudged pairs, the likeliest first; then by score and row id."""
        rows = np.flatnonzero(self.is_open)
        order = np.lexsort((self.data.row_ids[rows], -self.score[rows], -self.probability[rows]))
        return np.asarray(rows[order][:n])

    def plan(self, shares: Sequence[float] = SHARES, *, threshold: float = 0.5) -> list[ToJudge]:
        """What it takes to find shares of the relevant pairs expected, and what a threshold finds."""
        p = self.probability[self.places()]
        sums = np.cumsum(p)
        most = sums[-1] if p.any() else 1.0  # an isotonic curve may expect none at all
        likely = int((p >= check_number("threshold", threshold, least=0, most=1)).sum())
        sizes = {*(self.effort(share) for share in shares), likely} - {0}
        return [
            ToJudge(n, n / len(p), float(p[n - 1]), float(sums[n - 1]), float(sums[n - 1] / most),
                    float(sums[n - 1] / n))
            for n in sorted({min(size, len(p)) for size in sizes})
        ]  # fmt: skip

    def effort(self, share: float = 0.8) -> int:
        """How many of the likeliest pairs to judge to find such a share of the relevant ones expected."""
        check_number("share to find", share, above=0, most=1)
        sums = np.cumsum(self.probability[self.places()])
        return int(np.searchsorted(sums, share * sums[-1] - 1e-9)) + 1 if len(sums) else 0

    def by_text(self, column: str = "text") -> dict[tuple[str, str], float]:
        """P(relevant) by the texts of query and document; that of a pair that is known to be relevant too."""
        extra = self.data.extra or {}
        pairs = zip(extra["query"].tolist(), extra[column].tolist(), strict=True)
        return dict(zip(pairs, self.probability.tolist(), strict=True))

    def to_frame(self, n: int | None = None) -> Any:
        """A pandas frame of the unjudged pairs, the likeliest first, with their texts."""
        import pandas as pd

        rows = self.places(n)
        columns: dict[str, Any] = {"rank": np.arange(1, len(rows) + 1), "row_id": self.data.row_ids[rows]}
        columns |= {"query_id": self.data.qid[rows], "doc_id": _documents(self.data)[rows]}
        columns |= {"probability": self.probability[rows], "score": self.score[rows]}
        texts = {name: c[rows] for name, c in columns_of_text(self.data).items() if name not in columns}
        return pd.DataFrame(columns | texts)

    def sheet(self, n: int | None = None) -> GoldSheet:
        """A sheet to judge the likeliest pairs, for ``write_sheet``; it does not show how likely they are."""
        rows = self.places(n)
        data, ones = self.data, np.ones(len(rows))
        return GoldSheet(
            data.row_ids[rows],
            data.qid[rows],
            _documents(data)[rows],
            data.y[rows].astype(np.int64),
            ones,
            "likeliest",
            rows,
        )


def find_missing(
    judgements: Any,
    *,
    runs: Any = None,
    texts: Any = None,
    scores: Any = None,
    judges: Any = None,
    gold: Any = None,
    relevant: int = 1,
    depth: int = 100,
    unjudged: str = "irrelevant",
    folds: int = 5,
    seed: int = 0,
    n_jobs: int | None = 1,
    progress: Progress | None = None,
) -> MissingJudgements:
    """P(relevant | evidence) of pairs that nobody judged: of runs, of tables of evidence, of grades < 0.

    Args:
        judgements: judged pairs, as ``judgements_of`` takes them; or ``Negatives.data``.
        runs: systems, as ``systems_of`` takes them; what they retrieve is a pair to judge.
        texts: one table of texts or BEIR folder, or several; a pair without a text is left out then.
        scores: one table of numbers or several, by query_id and doc_id; likewise.
        judges: labels of other judges; likewise.
        gold: true grades of pairs that nobody judged, in any form that ``estimate_noise`` takes.
        relevant: the lowest grade that counts as relevant.
        depth: ranks of the runs that are looked at for pairs to judge.
        unjudged: "irrelevant": unjudged pairs teach the trees that they are not relevant; "ignored": trees
            learn from judged pairs alone.
        folds: parts that the queries are cut into.
        seed: for the folds and the models.
        n_jobs: threads.
        progress: called with (repeat, repeats).

    Returns:
        The judged and the unjudged pairs of the queries that have judgements, with probabilities.

    >>> judged = {f"q{i}": {"a": 1, "b": 0, "c": 0} for i in range(9)}
    >>> run = {f"q{i}": {"a": 3.0, "d": 2.0, "b": 1.0} for i in range(9)}
    >>> find_missing(judged, runs={"bm25": run}).to_frame(1).doc_id.tolist()
    ['d']
    """
    check_seed(seed)
    check_n_jobs(n_jobs)
    check_integer("relevant", relevant, least=1)
    check_integer("depth", depth, least=1)
    one_of("unjudged", unjudged, UNJUDGED)
    given = judgements_of(judgements)
    systems = {} if runs is None else systems_of(runs)
    pool = with_candidates(given, systems, depth, texts=texts, scores=scores, judges=judges)
    features = pair_features(
        pool, runs=systems or None, texts=texts, scores=scores, judges=judges, n_jobs=n_jobs
    )
    data = replace(features, extra=columns_of_text(features)).select(_has_evidence(features))
    known = judged_rows(data)
    positive = known & (data.y >= relevant)
    _check_rows(known, positive, relevant, unjudged)
    prose = [c for name, c in texts_of(data).fields.items() if is_prose(name, c)]
    rows = replace(data, y=positive.astype(np.int32))
    near: dict[str, Any] = {"masses": rank_masses(systems, data) if systems else ()}
    if prose:
        near["vectors"] = text_vectors([" ".join(cells) for cells in zip(*prose, strict=True)])
    score = np.zeros(data.n_docs)
    for repeat in range(REPEATS):
        of_query = judged_evidence(rows, positive, known, **near, seed=seed * REPEATS + repeat)
        fit = partial(_fit, unjudged=unjudged, seed=seed, n_jobs=n_jobs or 1)
        score += _scores(rows, of_query, fit, folds, seed * REPEATS + repeat) / REPEATS
        if progress is not None:
            progress(repeat + 1, REPEATS)
    answers = gold_answers(gold, data, n_grades=max(data.n_grades, relevant + 1))
    true = known_grades(data, answers)
    is_gold = np.zeros(data.n_docs, dtype=np.bool_) if true is None else ~known & (true >= 0)
    curve, source, used = _calibration(score, positive, known, is_gold, true, relevant)
    probability = score if curve is None else curve.apply(score)
    return MissingJudgements(pool, data, probability, score, ~known & ~is_gold, relevant, source, used)


def with_candidates(
    judgements: RankingData,
    systems: dict[str, Run],
    depth: int = 100,
    *,
    texts: Any = None,
    scores: Any = None,
    judges: Any = None,
) -> RankingData:
    """The judged pairs and those that evidence speaks of, of the same queries; row ids number them.

    >>> data = with_candidates(judgements_of({"q": {"a": 1}}), systems_of({"new": {"q": {"b": 2.0}}}))
    >>> data.doc_ids.tolist(), data.judged.tolist()
    (['a', 'b'], [True, False])
    """
    if judgements.doc_ids is None:
        raise invalid("the judgements", "must have document ids to be matched with evidence", "none")
    pairs: list[tuple[Any, Any]] = [_retrieved(run, depth) for run in systems.values()]
    sources = [each for source in (texts, scores) for each in several(source)]
    tables = [as_sheet(each, "evidence") for each in sources if not is_collection(each)]
    pairs += [pair for pair in map(_named, tables) if pair is not None]
    pairs += [(labels.qid, labels.docid) for labels in judges_of(judges).values()]
    qid, doc = (np.concatenate([np.zeros(0, str), *(np.asarray(c, str) for c in column)])
                for column in (zip(*pairs, strict=True) if pairs else ((), ())))  # fmt: skip
    own = judgements.qid.astype(str), np.asarray(judgements.doc_ids).astype(str)
    queries, query = np.unique(np.concatenate((own[0], qid)), return_inverse=True)
    documents, document = np.unique(np.concatenate((own[1], doc)), return_inverse=True)
    key, first = np.unique(query * len(documents) + document, return_index=True)
    n = judgements.n_docs
    is_new = (first >= n) & np.isin(key // len(documents), query[:n])
    added = key[is_new]
    blank = np.full(len(added), "", dtype=object)
    extra = {name: np.concatenate((column.astype(object), blank))
             for name, column in (judgements.extra or {}).items() if column.dtype.kind in "UO"}  # fmt: skip
    X: Any = judgements.X.toarray() if hasattr(judgements.X, "toarray") else judgements.X
    data = from_arrays(
        np.concatenate((X, np.full((len(added), X.shape[1]), np.nan, dtype=np.float32))),
        np.concatenate((judgements.y, np.zeros(len(added), dtype=np.int32))),
        qid=np.concatenate((own[0], queries[added // len(documents)])),
        doc_ids=np.concatenate((own[1], documents[added % len(documents)])),
        feature_names=judgements.feature_names,
        extra=extra,
    )
    known = np.concatenate((judged_rows(judgements), np.zeros(len(added), dtype=np.bool_)))[data.row_ids]
    return replace(data, judged=known, row_ids=np.arange(data.n_docs))


def _retrieved(run: Run, depth: int) -> tuple[Array, Array]:
    rows = ranks_and_scores(run)[0] <= depth
    return run.topic_ids[run.topic[rows]], run.doc_ids[run.doc[rows]]


def _named(sheet: Sheet) -> tuple[list[str], list[str]] | None:
    """Queries and documents of a table that names both."""
    headings = sheet.headings(("query", "doc"))
    if len(headings) < 2 or headings["query"] == query_heading(sheet):
        return None
    return sheet.texts(headings["query"]), sheet.texts(headings["doc"])


def _has_evidence(data: RankingData) -> BoolArray:
    """Pairs for which no kind of evidence is missing: that it is there would tell who was judged."""
    kept = np.ones(data.n_docs, dtype=np.bool_)
    missing = np.isnan(np.asarray(data.X))
    kinds = np.array([name.partition(":")[0] for name in data.feature_names or ()])
    for kind in np.unique(kinds[~np.isin(kinds, ("run", "runs"))]):
        kept &= ~missing[:, kinds == kind].all(axis=1)
    unjudged = ~judged_rows(data)
    if not (unjudged & kept).any():
        value = "none" if not unjudged.any() else f"{int(unjudged.sum()):,}, none with all of the evidence"
        remedy = "Give runs, or texts, scores or labels that speak of further pairs too."
        raise invalid("unjudged pairs", "must be there to be found relevant", value, remedy=remedy)
    return kept


def _check_rows(known: BoolArray, positive: BoolArray, relevant: int, unjudged: str) -> None:
    if not positive.any():
        rule = f"must hold pairs of grade {relevant} or more"
        raise invalid("the judgements", rule, "none", remedy="Set the lowest relevant grade (relevant=).")
    if unjudged == "ignored" and not (known & ~positive).any():
        rule = "must be 'irrelevant' where every judged pair is relevant"
        raise invalid("unjudged", rule, repr(unjudged))


def _scores(
    rows: RankingData, of_query: dict[str, FloatArray], fit: Fit, folds: int, seed: int
) -> FloatArray:
    """s(x) of every pair from models that saw none of its query."""
    wide = replace(
        rows,
        X=np.column_stack([np.asarray(rows.X), *of_query.values()]).astype(np.float32),
        feature_names=(*(rows.feature_names or ()), *of_query),
    )
    return np.asarray(cross_fit(wide, fit, folds, seed=seed, n_grades=2)[0][:, 1])


def _fit(train: RankingData, rows: RankingData, *, unjudged: str, seed: int, n_jobs: int) -> FloatArray:
    """P(judged relevant | features), (rows, 2)."""
    if unjudged == "ignored":
        train = train.select(judged_rows(train))
    return fit_grades(train, rows, n_grades=2, seed=seed, n_jobs=n_jobs)


def _calibration(
    score: FloatArray,
    positive: BoolArray,
    known: BoolArray,
    is_gold: BoolArray,
    true: npt.ArrayLike | None,
    relevant: int,
) -> tuple[Calibration | None, str, int]:
    """The curve from score to probability, what it is fitted on, and on how many rows."""
    if true is not None and is_gold.any():
        labels = np.asarray(true)[is_gold] >= relevant
        if labels.all() or not labels.any():
            rule = "must hold relevant pairs and others among those that nobody judged"
            raise invalid("gold", rule, f"{len(labels):,}, all alike", remedy="Judge some more.")
        return calibrated(score[is_gold], labels), "gold", len(labels)
    if (known & ~positive).any():
        return calibrated(score[known], positive[known]), "judgements", int(known.sum())
    return None, "nothing", 0


def calibrated(score: FloatArray, labels: Array) -> Calibration:
    """A rising curve from score to probability: isotonic, of few rows Platt's."""
    return fit_calibration(labels.astype(int), score, "isotonic" if len(score) >= ENOUGH else "platt")


def _documents(data: RankingData) -> Array:
    assert data.doc_ids is not None
    return np.asarray(data.doc_ids)
