"""What the course of a training run says about labels: loss that stays high, grades that are forgotten.

A run is a sequence of predictions for the same rows: after every tree of a model, every epoch of a network.
They are probabilities of the grades (N, C) or the scores of a ranking (N,), and each is seen once and let go,
so memory is linear in the rows however long the run.

* loss: the mean over the run of -log p_given for probabilities; for scores the mean RankNet loss
  log(1 + e^-(s_i - s_j)) over the documents j of the query with another grade, signs by grades. Wrong labels
  are learnt last (small-loss selection, Arpit et al. 2017).
* forgetting: how often a row that was right is wrong at the next look (Toneva et al. 2019). Right means that
  the given grade is the most probable one; for scores, that the query's own grades, sorted, have it at the
  row's rank. A row that was never right counts as forgotten all the time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np

from cleanrank.cluster.tasks import each
from cleanrank.data.split import fold_of_query
from cleanrank.errors import invalid
from cleanrank.issues.table import BoolArray, LabelIssues
from cleanrank.jit import kernel, prange, threads
from cleanrank.ragged import rank_order
from cleanrank.rankers.grade_model import watch_boosting
from cleanrank.types import Array, FloatArray, IntArray, RankingData
from cleanrank.validation import check_n_jobs, check_number, check_seed, is_integer

TREES = 50


class Course:
    """Sums over the looks at a run, one number of each a row.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((2, 1)), [0, 1], group=[2])
    >>> run = [np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([[0.9, 0.1], [0.6, 0.4]])]
    >>> Course(data).watch(run).forgotten.tolist()
    [0, 1]
    """

    def __init__(self, data: RankingData, n_jobs: int | None = None) -> None:
        n = data.n_docs
        self.data, self.n_jobs, self.looks = data, n_jobs, 0
        self.loss: FloatArray = np.zeros(n)
        self.right = np.zeros(n, dtype=np.int32)  # looks at which the row was right
        self.forgotten = np.zeros(n, dtype=np.int32)  # looks at which it was wrong after it had been right
        self.votes: FloatArray | None = None  # (N, C) sums of probabilities; None for a run of scores
        self.ranked: FloatArray = np.zeros(n)  # sum of the grades that its ranks would earn, of scores
        self._before: BoolArray = np.zeros(n, dtype=np.bool_)
        self._sorted: Array | None = None

    def __call__(self, look: int, predictions: Array) -> None:
        """Sees one set of predictions: probabilities (N, C) or scores (N,)."""
        values = np.asarray(predictions, dtype=np.float64)
        if values.ndim not in (1, 2) or len(values) != self.data.n_docs:
            rule = f"must have one row per document ({self.data.n_docs})"
            raise invalid("predictions", rule, f"shape {values.shape}", at=f"look {look}")
        if not np.isfinite(values).all():
            raise invalid("predictions", "must be finite", "nan or infinite", at=f"look {look}")
        if self.looks and values.ndim != (1 if self.votes is None else 2):
            rule = "must be probabilities all along, or scores all along"
            raise invalid("predictions", rule, f"shape {values.shape}", at=f"look {look}")
        right = self._see_grades(values) if values.ndim == 2 else self._see_scores(values)
        self.right += right
        self.forgotten += self._before & ~right
        self._before = right
        self.looks += 1

    def watch(self, run: Iterable[Array]) -> Self:
        """Sees the predictions of a run in turn."""
        for look, predictions in enumerate(run, start=1):
            self(look, predictions)
        if not self.looks:
            raise invalid("run", "must hold at least one set of predictions", "none")
        return self

    def take(self, rows: BoolArray, other: "Course") -> None:
        """Takes over what another course saw of some of the rows."""
        if other.votes is not None and self.votes is None:
            self.votes = np.zeros((self.data.n_docs, other.votes.shape[1]))
        for name in ("loss", "right", "forgotten", "ranked", "votes"):
            if getattr(other, name) is not None:
                getattr(self, name)[rows] = getattr(other, name)
        self.looks = other.looks

    @property
    def mean_loss(self) -> FloatArray:
        """The mean loss over the run."""
        return self.loss / self.looks

    @property
    def forgetting(self) -> FloatArray:
        """Times forgotten, as a share of the most that can be (looks // 2); 1 for rows never right."""
        return np.where(self.right == 0, 1.0, self.forgotten / max(self.looks // 2, 1))

    @property
    def likely(self) -> Array:
        """The grade that the run as a whole would give every row."""
        best = np.rint(self.ranked / self.looks) if self.votes is None else self.votes.argmax(axis=1)
        return best.astype(self.data.y.dtype)

    def _see_grades(self, p: FloatArray) -> BoolArray:
        y = self.data.y
        if p.shape[1] < self.data.n_grades:
            rule = f"must have a column for each of {self.data.n_grades} grades"
            raise invalid("predictions", rule, f"shape {p.shape}")
        p_given = p[np.arange(len(y)), y]
        self.loss -= np.log(np.maximum(p_given, 1e-12))
        if self.votes is None:
            self.votes = np.zeros_like(p)
        if self.votes.shape != p.shape:
            raise invalid("predictions", f"must keep their shape {self.votes.shape}", f"shape {p.shape}")
        self.votes += p
        return np.asarray(p_given >= p.max(axis=1))

    def _see_scores(self, scores: FloatArray) -> BoolArray:
        y, indptr = self.data.y, self.data.indptr
        if self._sorted is None:
            self._sorted = y[rank_order(y, indptr)]
        with threads(self.n_jobs):
            pair_losses(scores, y, indptr, self.loss)
        earned = np.empty_like(y)
        earned[rank_order(scores, indptr)] = self._sorted
        self.ranked += earned
        return np.asarray(earned == y)


@kernel(parallel=True)
def pair_losses(scores: Array, y: Array, indptr: Array, total: Array) -> None:
    """Adds every document's mean RankNet loss against the documents of its query with other grades."""
    for q in prange(len(indptr) - 1):
        a, b = indptr[q], indptr[q + 1]
        for i in range(a, b):
            loss, pairs = 0.0, 0
            for j in range(a, b):
                if y[i] == y[j]:
                    continue
                ahead = scores[i] - scores[j] if y[i] > y[j] else scores[j] - scores[i]
                loss += np.log1p(np.exp(-abs(ahead))) + max(-ahead, 0.0)
                pairs += 1
            if pairs:
                total[i] += loss / pairs


def watch_run(
    data: RankingData,
    *,
    run: Iterable[Array] | None = None,
    objective: str = "grades",
    folds: int = 5,
    rounds: int = TREES,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
) -> Course:
    """The course of a run at hand, or of models trained for the purpose.

    Args:
        data: judged rows.
        run: predictions for the rows of ``data``, one after the other: epochs of a network, say.
        objective: "grades" or "ranking", what the models learn.
        folds: watch every query in models that never saw it, in so many folds; 0 watches the training rows.
        rounds: trees (of each grade).
        params: LightGBM parameters.
        seed: for the folds and the models.
        n_jobs: threads.
    """
    check_seed(seed)
    check_n_jobs(n_jobs)
    whole = Course(data, n_jobs=n_jobs)
    if run is not None:
        return whole.watch(run)
    options: dict[str, Any] = {
        "objective": objective, "n_estimators": rounds, "params": params, "seed": seed, "n_jobs": n_jobs,
        "n_grades": max(data.n_grades, 2),
    }  # fmt: skip
    if not folds:
        watch_boosting(data, None, whole, **options)
        return whole
    folds = min(folds, max(data.n_queries, 2)) if is_integer(folds) else folds
    fold_of = fold_of_query(data, folds, seed)
    courses = each(_watch_fold, [data, fold_of, options], [(fold,) for fold in range(folds)])
    for fold, course in enumerate(courses):
        whole.take(np.repeat(fold_of == fold, data.lengths), course)
    return whole


def _watch_fold(data: RankingData, fold_of: IntArray, options: Mapping[str, Any], fold: int) -> Course:
    """The course of a model of the other folds on the queries of one."""
    held = np.repeat(fold_of == fold, data.lengths)
    rows = data.select(held)
    # The course needs grades and queries.
    bare = np.zeros((rows.n_docs, 0), dtype=np.float32)
    course = Course(replace(rows, X=bare, feature_names=None, categories=None), n_jobs=options["n_jobs"])
    watch_boosting(data.drop(held), rows, course, **options)
    return course


def find_by_loss(
    data: RankingData,
    *,
    share: float = 0.1,
    run: Iterable[Array] | None = None,
    objective: str = "grades",
    folds: int = 5,
    rounds: int = TREES,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
) -> LabelIssues:
    """Doubts labels whose loss stays high over a run; doubt = 1 - e^-(mean loss).

    For probabilities that is 1 - the geometric mean of p_given over the run. Issues are the ``share`` of rows
    with the highest loss, where the run prefers another grade. Further arguments are those of ``watch_run``.

    >>> import cleanrank as cr
    >>> noisy = cr.corrupt(cr.make_ranking(40, 5, docs_per_query=20, seed=0), rate=0.1, seed=1)
    >>> find_by_loss(noisy.data, folds=2, rounds=10).average_precision(noisy) > noisy.rate
    True
    """
    check_number("share", share, above=0, most=1)
    course = watch_run(
        data, run=run, objective=objective, folds=folds, rounds=rounds, params=params, seed=seed,
        n_jobs=n_jobs,
    )  # fmt: skip
    loss = course.mean_loss
    issues = loss >= np.quantile(loss, 1 - share) if len(loss) else np.zeros(0, dtype=np.bool_)
    return _table(course, 1 - np.exp(-loss), issues, {"loss": loss})


def find_forgotten(
    data: RankingData,
    *,
    least: float = 0.2,
    run: Iterable[Array] | None = None,
    objective: str = "grades",
    folds: int = 5,
    rounds: int = TREES,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
) -> LabelIssues:
    """Doubts labels that a run forgets or never learns; doubt = times forgotten / the most that can be.

    Issues are rows doubted ``least`` or more, where the run prefers another grade. Further arguments are
    those of ``watch_run``.
    """
    check_number("least", least, above=0, most=1)
    course = watch_run(
        data, run=run, objective=objective, folds=folds, rounds=rounds, params=params, seed=seed,
        n_jobs=n_jobs,
    )  # fmt: skip
    doubt = course.forgetting
    reasons = {"forgotten": course.forgotten, "rounds_wrong": 1 - course.right / max(course.looks, 1)}
    return _table(course, doubt, doubt >= least, reasons)


def _table(course: Course, doubt: FloatArray, issues: BoolArray, reasons: Mapping[str, Any]) -> LabelIssues:
    return LabelIssues.of(
        course.data,
        doubt=np.clip(doubt, 0.0, 1.0),
        is_label_issue=issues & (course.likely != course.data.y),
        suggested_label=course.likely,
        reasons=reasons,
    )
