"""RobustRanker: knows or estimates the noise, trains on expected gains, and steps back when it cannot tell.

The road: noise matrix -> P(true grade | features, given grade) -> expected gains of training and validation
rows -> four forests, the best of which validation data choose. Without a noise matrix that can be trusted the
same four forests are trained on the labels as they are: the tuned baseline, which is the best one can do
without knowing the noise.
"""

import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cleanrank.cleaning import Cleaned, clean
from cleanrank.data.split import split
from cleanrank.errors import invalid
from cleanrank.issues.posterior import Posterior, noise_matrix, posterior_of, posterior_table
from cleanrank.issues.table import LabelIssues
from cleanrank.noise.anchors import from_data
from cleanrank.noise.estimate import NoiseEstimate
from cleanrank.noise.gold_sheet import GoldAnswers, gold_answers, known_grades
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.rankers.base import Estimator, feature_matrix, training_data, validation_data
from cleanrank.rankers.grades import fit_grades
from cleanrank.rankers.settings import by_main_name, check_rows
from cleanrank.rankers.trees import TreeRanker, train_lambdarank
from cleanrank.types import FloatArray, Progress, RankingData

LEAF = "min_data_in_leaf"
GRID: Mapping[str, Sequence[Any]] = {"num_leaves": (7, 31), LEAF: (20, 200)}
HELD_OUT = 0.2
FEWEST = 30
FEWEST_QUERIES = 3
ADVICE = "judge about 100 rows again (cleanrank gold sample)"


@dataclass(frozen=True, eq=False, repr=False)
class RobustReport:
    """What was done and why.

    Attributes:
        chosen: one of ROADS.
        reasons: why, in words.
        noise: the matrix in use; None for the baseline.
        estimate: what the matrix was read off; None when it was given.
        n_gold: rows of known true grade.
        doubted: the mean doubt of the training rows: the share of grades that are expected to be wrong.
        tried: parameters, validation value and trees of every forest.
    """

    chosen: str
    reasons: tuple[str, ...]
    noise: NoiseProfile | None
    estimate: NoiseEstimate | None
    n_gold: int
    doubted: float | None
    tried: tuple[Mapping[str, Any], ...]

    def __repr__(self) -> str:
        lines = [f"{self.chosen}: {ROADS[self.chosen]}", *(f"  - {reason}" for reason in self.reasons)]
        if self.doubted is not None:
            lines.append(f"  {self.doubted:.1%} of the training grades are expected to be wrong")
        for cell in self.tried:
            settings = ", ".join(f"{name} {value}" for name, value in cell["params"].items())
            value = "not validated" if cell["validation"] is None else f"{cell['validation']:.4f}"
            lines.append(f"  {settings}: {value}, {cell['trees']} trees")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "chosen": self.chosen,
            "reasons": list(self.reasons),
            "matrix": None if self.noise is None else self.noise.matrix.tolist(),
            "gold": self.n_gold,
            "doubted": self.doubted,
            "tried": [dict(cell) for cell in self.tried],
        }


@dataclass(frozen=True)
class _Known:
    """The noise that was found, or why there is none."""

    noise: NoiseProfile | None
    estimate: NoiseEstimate | None
    reasons: tuple[str, ...]


class RobustRanker(Estimator):
    """A ranker for noisy grades: expected gains under the noise, or the tuned baseline where it is unknown.

    Args:
        noise: T (C, C) with T[l, m] = P(given m | true l), a NoiseProfile, a NoiseEstimate or the answers of
            a gold sheet. None: gold rows given to ``fit`` decide, else what the data alone can tell.
        rounds: of the posterior, 1 or 2; see ``issues/posterior.py``.
        folds: of the posterior.
        grid: LightGBM parameters to choose from on validation data, name -> values.
        n_estimators: trees at the most.
        early_stopping_rounds: rounds without gain on validation data before a forest stops.
        measure: what stopping and the choice look at.
        learning_rate: shrinkage of a tree.
        label_gain: gain of each grade, else 2^y - 1.
        norm: on is lambda-LGBM, off lambda-MART.
        random_state: for everything random.
        n_jobs: threads; the trees are the same for any number.
        params: further LightGBM parameters.

    Attributes:
        model_: the forest in use.
        report_: a RobustReport: what was done and why.
        chosen_: the road, the parameters, the trees and the validation value.
        issues_: the posterior as a LabelIssues; None for the baseline.
        cleaned_: training rows with expected gains and their audit trail; None for the baseline.

    >>> import cleanrank as cr
    >>> noisy = cr.corrupt(cr.make_ranking(40, 5, docs_per_query=15, seed=0), rate=0.2, seed=1)
    >>> ranker = RobustRanker(noise=noisy.profile, n_estimators=5, folds=2)
    >>> ranker.fit(noisy.data.X, noisy.data.y, qid=noisy.data.qid).chosen_["road"]
    'posterior'
    """

    def __init__(
        self,
        *,
        noise: Any = None,
        rounds: int = 2,
        folds: int = 5,
        grid: Mapping[str, Sequence[Any]] | None = None,
        n_estimators: int = 500,
        early_stopping_rounds: int = 50,
        measure: str = "ndcg@10",
        learning_rate: float = 0.05,
        label_gain: Sequence[float] | None = None,
        norm: bool = True,
        random_state: int = 0,
        n_jobs: int = 1,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self.noise = noise
        self.rounds = rounds
        self.folds = folds
        self.grid = grid
        self.n_estimators = n_estimators
        self.early_stopping_rounds = early_stopping_rounds
        self.measure = measure
        self.learning_rate = learning_rate
        self.label_gain = label_gain
        self.norm = norm
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.params = params

    def fit(
        self,
        X: Any,
        y: npt.ArrayLike,
        *,
        qid: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        position: npt.ArrayLike | None = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        gold: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Trains on rows in any order.

        Args:
            X: features; a column "qid" of a data frame names the queries.
            y: given grades.
            qid: the query of every row.
            group: instead of ``qid``, documents per query when rows are contiguous.
            sample_weight: multiplies a row's gradients.
            position: ignored; clicks are not what this ranker learns from.
            eval_set: (X, y) of validation rows with given grades, or a list with that one pair.
            eval_qid: their queries.
            gold: rows of known true grade, see ``gold_answers``; row numbers count the rows of X from 0.
            progress: called with (step, steps).
        """
        train = training_data(X, y, qid=qid, group=group, sample_weight=sample_weight)
        return self.fit_data(train, validation_data(eval_set, eval_qid), gold=gold, progress=progress)

    def fit_data(
        self,
        train: RankingData,
        validation: RankingData | None = None,
        *,
        gold: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Trains on a RankingData; gold rows are named by their ``row_ids``."""
        check_rows(train, validation)
        answers = self._answers(gold, train)
        if validation is None and train.n_queries < FEWEST_QUERIES:
            rule = f"must hold {FEWEST_QUERIES} queries or come with validation data (eval_set=)"
            raise invalid("training data", rule, train.n_queries)
        learn, held = (
            (train, validation)
            if validation is not None
            else split(train, (1 - HELD_OUT, HELD_OUT), seed=self.random_state)
        )
        steps = _Steps(progress, self.folds + len(self.cells(learn.n_docs)) + (validation is None))
        self.issues_: LabelIssues | None = None
        self.cleaned_: Cleaned | None = None
        known = self._find_noise(train, held, answers)
        given = train, learn, held
        if known.noise is not None:
            source = known.noise if known.estimate is None else known.estimate
            given = self._expected(train, validation, source, answers, steps)
        else:
            warnings.warn(
                "RobustRanker fell back to the tuned baseline: " + "; ".join(known.reasons), stacklevel=2
            )
        steps.reach(self.folds)
        self._choose(*given, known=known, answers=answers, steps=steps, refit=validation is None)
        return self

    def predict(self, X: Any) -> FloatArray:
        """One score per row, in input order; higher ranks first."""
        if not hasattr(self, "model_"):
            raise invalid("the ranker", "must be fitted before it predicts", "no model", remedy="Call fit.")
        return self.model_.predict(feature_matrix(X))

    def save(self, path: Any) -> None:
        """Writes LightGBM's text format; ``load_trees`` reads it."""
        if not hasattr(self, "model_"):
            raise invalid("the ranker", "must be fitted before it is saved", "no model", remedy="Call fit.")
        self.model_.save(path)

    def cells(self, n_docs: int | None = None) -> list[dict[str, Any]]:
        """Every combination of the grid; for so many documents, those whose leaves they can fill twice."""
        fixed = by_main_name(self.params)
        if self.grid is None:
            # What params fix is not chosen.
            grid: Mapping[str, Sequence[Any]] = {
                name: values for name, values in GRID.items() if name not in fixed
            }
        else:
            grid = by_main_name(self.grid)
        for name, values in grid.items():
            if name in fixed:
                raise invalid("grid", f"must leave {name} to params, or params to the grid", list(grid))
            if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or not len(values):
                raise invalid(f"grid[{name!r}]", "must be a list of values to choose from", repr(values))
        every = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
        fitting = [cell for cell in every if n_docs is None or 2 * cell.get(LEAF, 0) <= n_docs]
        return fitting or [min(every, key=lambda cell: cell[LEAF])]

    def _answers(self, gold: Any, train: RankingData) -> GoldAnswers | None:
        if not isinstance(self.noise, GoldAnswers):
            return gold_answers(gold, train)
        if gold is not None:
            raise invalid("gold", "must not be given beside answers as noise", type(gold).__name__)
        return gold_answers(self.noise, train)

    def _find_noise(self, train: RankingData, held: RankingData, answers: GoldAnswers | None) -> _Known:
        noise = None if isinstance(self.noise, GoldAnswers) else self.noise
        C = max(2, train.n_grades, held.n_grades)
        if answers is not None:
            C = max(C, int(answers.true_grades.max()) + 1)
        if isinstance(noise, NoiseEstimate):
            return _judged(noise)
        if noise is not None:
            return _Known(NoiseProfile(noise_matrix(noise, C)), None, ("the noise was given",))
        if answers is not None:
            return _judged(answers.estimate(train, n_grades=C, seed=self.random_state))
        if max(2, train.n_grades) < C:
            reason = f"grade {C - 1} occurs in the validation data alone: its noise cannot be read off"
            return _Known(None, None, (reason, ADVICE))
        model = partial(fit_grades, n_grades=C, seed=self.random_state, n_jobs=self.n_jobs)
        return _judged(from_data(train, fit_predict=model, n_folds=self.folds, seed=self.random_state))

    def _expected(
        self,
        train: RankingData,
        validation: RankingData | None,
        noise: NoiseProfile | NoiseEstimate,
        answers: GoldAnswers | None,
        steps: "_Steps",
    ) -> tuple[RankingData, RankingData, RankingData]:
        """All training rows, those to learn from and those to choose on, with expected gains."""
        found: Posterior = posterior_of(
            train, noise, known=known_grades(train, answers), rounds=self.rounds, folds=self.folds,
            others=() if validation is None else (validation,), seed=self.random_state, n_jobs=self.n_jobs,
            progress=lambda fold, _: steps.reach(fold),
        )  # fmt: skip
        self.issues_ = posterior_table(train, found.probabilities)
        self.cleaned_ = clean(train, self.issues_, "posterior", label_gain=self.label_gain, by="RobustRanker")
        every = self.cleaned_.data
        if validation is None:
            learn, held = split(every, (1 - HELD_OUT, HELD_OUT), seed=self.random_state)
            return every, learn, held
        table = posterior_table(validation, found.others[0])
        return every, every, clean(validation, table, "posterior", label_gain=self.label_gain).data

    def _choose(
        self,
        every: RankingData,
        learn: RankingData,
        held: RankingData,
        *,
        known: _Known,
        answers: GoldAnswers | None,
        steps: "_Steps",
        refit: bool,
    ) -> None:
        """Trains every cell, keeps the best on validation data (ties: the first)."""
        tried: list[tuple[float, TreeRanker, dict[str, Any]]] = []
        for cell in self.cells(learn.n_docs):
            model = self._train(learn, held, cell, self.n_estimators)
            tried.append((float(np.nan_to_num(model.validation_value or 0.0)), model, cell))
            steps.reach(steps.count + 1)
        value, self.model_, cell = max(tried, key=lambda each: each[0])
        if refit:
            self.model_ = self._train(every, None, cell, self.model_.best_iteration)
            steps.reach(steps.count + 1)
        road = "baseline" if known.noise is None else "posterior"
        self.chosen_ = {"road": road, **cell, "trees": self.model_.best_iteration, "validation": value}
        self.report_ = RobustReport(
            road, known.reasons, known.noise, known.estimate,
            0 if answers is None else len(answers.row_ids),
            None if self.issues_ is None else float(self.issues_.doubt.mean()),
            tuple({"params": c, "validation": v, "trees": m.best_iteration} for v, m, c in tried),
        )  # fmt: skip

    def _train(
        self, train: RankingData, held: RankingData | None, cell: Mapping[str, Any], rounds: int
    ) -> TreeRanker:
        gains = {} if self.label_gain is None or train.gains is not None else {"label_gain": self.label_gain}
        return train_lambdarank(
            train, held, norm=self.norm, objective="exact",
            params={"learning_rate": self.learning_rate, **gains, **by_main_name(self.params), **cell},
            measure=self.measure, rounds=rounds, early_stopping_rounds=self.early_stopping_rounds,
            seed=self.random_state, n_jobs=self.n_jobs,
        )  # fmt: skip


class _Steps:
    """Counts finished steps for a progress callback."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.count = progress, total, 0

    def reach(self, count: int) -> None:
        if count > self.count and self.progress is not None:
            self.progress(count, self.total)
        self.count = max(count, self.count)


def _judged(estimate: NoiseEstimate) -> _Known:
    """Whether an estimate may be acted on."""
    reasons = list(estimate.reasons)
    if estimate.profile is None or not estimate.trusted:
        return _Known(None, estimate, (*reasons, ADVICE))
    if estimate.method == "gold" and estimate.n < FEWEST:
        reasons.append(f"{estimate.n} rows of known grade are too few; {FEWEST} are the least")
        return _Known(None, estimate, tuple(reasons))
    return _Known(estimate.profile, estimate, (f"the noise was estimated: {estimate.method}", *reasons))


ROADS: dict[str, str] = {
    "posterior": "trained on expected gains under the noise",
    "baseline": "trained on the given grades, tuned alike",
}
