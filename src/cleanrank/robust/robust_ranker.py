"""RobustRanker: trains on several repaired versions of noisy labels and averages what they teach.

No single repair wins everywhere, and without judgements nothing tells which one is right (``targets.py``).
So forests of all of them, by lambdarank and by least squares, are averaged: that is near the best of them
under every noise that was tried, and does not harm where there is none. Gold rows estimate the noise matrix,
and weigh the repairs by how well they foretell the true grades.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import nnls

from cleanrank.cleaning import Cleaned, clean
from cleanrank.errors import invalid
from cleanrank.issues.noise import estimate_noise
from cleanrank.issues.posterior import Posterior, posterior_table
from cleanrank.issues.table import LabelIssues
from cleanrank.metrics.evaluation import evaluate_mean
from cleanrank.noise.estimate import NoiseEstimate
from cleanrank.noise.gold_sheet import GoldAnswers, gold_answers, known_grades
from cleanrank.ragged import match_rows
from cleanrank.rankers._lightgbm import resolve_aliases
from cleanrank.rankers.boosted import LEAF, BoostedRanker, average_models
from cleanrank.rankers.tree_ranker import TreeRanker
from cleanrank.rankers.trees import LAMBDAS, lambdarank_params
from cleanrank.robust.robust_report import AUTO, AVERAGED, AVERAGED_WITH_GOLD, STRATEGIES, RobustReport
from cleanrank.robust.targets import (
    DISTILLED,
    Target,
    assumed_matrix,
    distilled_target,
    gain_of,
    posterior_target,
)
from cleanrank.types import FloatArray, IntArray, Progress, RankingData
from cleanrank.validation import one_of

GRID: Mapping[str, Sequence[Any]] = {"num_leaves": (7, 31), LEAF: (20, 200)}
LEAST_SQUARES = "gbdt"
TINY = 1e-12
NOTHING_KNOWN = (
    "nothing is known about the noise: it is assumed from the data for the posterior, and what needs no "
    "matrix counts as much"
)
FEWEST_QUERIES = 4
PRIOR_ROWS = 50.0  # equal weights of the strategies count as much as so many gold rows


@dataclass(frozen=True, eq=False)
class _Repaired:
    """What is learnt from, and what that rests on."""

    strategy: str
    targets: Sequence[Target]
    reasons: tuple[str, ...]
    weights: Sequence[float] | FloatArray = (1.0,)
    posterior: Posterior | None = None
    estimate: NoiseEstimate | None = None
    gold: GoldAnswers | None = None
    cleaned: Cleaned | None = None

    def validation(self) -> RankingData:
        """Validation rows with the mean of the gains that the strategies give them."""
        parts = [each.validation for each in self.targets if each.validation is not None]
        if any(part.gains is None for part in parts):
            return parts[0]
        return replace(parts[0], gains=np.asarray(self.weights) @ [part.gains for part in parts])


# The noise matrix, what it was read off, and why it is used.
Knowledge: TypeAlias = tuple[Any, NoiseEstimate | None, tuple[str, ...]]


@dataclass
class _Steps:
    """Counts finished steps for a progress callback."""

    progress: Progress | None
    total: int
    count: int = 0

    def __call__(self, *_: int) -> None:
        """One more step is done."""
        self.count = min(self.count + 1, self.total)
        if self.progress is not None:
            self.progress(self.count, self.total)

    def finish(self) -> None:
        """Whatever is left was not needed."""
        if self.count < self.total:
            self.count = self.total - 1
            self()


class RobustRanker(TreeRanker):
    """A ranker for noisy grades, which needs no judgement and makes use of those that there are.

    Labels are repaired in several ways, a tuned ranker is trained on each by lambdarank and by least squares,
    and their scores are averaged into one forest; ``report_`` says how.

    Options of ``fit``: ``gold``, rows of known true grade as (row ids, grades) or as ``estimate_noise`` takes
    them, where row numbers count the rows of X from 0; ``issues``, the LabelIssues that ``find_label_issues``
    gave for the rows of X, in place of noise and gold, if it carries probabilities of true grades;
    ``progress``, called with (step, steps).

    Args:
        strategy: "auto" averages those of AVERAGED; or one of STRATEGIES by itself.
        noise: T (C, C) with T[l, m] = P(given m | true l), a NoiseProfile, a NoiseEstimate or the answers of
            a gold sheet. None: gold rows given to ``fit`` decide, else it is assumed from the data.
        rounds: of the posterior, 1 or 2; see ``issues/posterior.py``.
        folds: of everything that is predicted out of fold.
        clean_validation: the grades of the validation rows are right; otherwise they are taken to be as noisy
            as those of the training rows and are repaired too.
        grid: LightGBM parameters to tune on validation data, name -> values; GRID when not given.
        selection: "average" or "best" of the models of the grid, see ``BoostedRanker``.
        n_estimators: trees at the most.
        early_stopping_rounds: trees without gain on validation data before a model stops.
        measure: what stopping and the choice look at.
        learning_rate: shrinkage of a tree.
        label_gain: gain of each grade, else 2^y - 1.
        objective: "lambdarank" or "lambdamart".
        random_state: for everything random.
        n_jobs: threads; the trees are the same for any number.
        params: further LightGBM parameters.

    Attributes:
        model_: the trained TreeModel.
        chosen_: the strategy, the trees and the validation value.
        tried_: what was tried: strategy, objective, parameters, trees and validation value of every model.
        report_: a RobustReport: what was done and why.
        issues_: the posterior as a LabelIssues; None without one.
        cleaned_: training rows with expected gains and their audit trail; None without a posterior.

    >>> import cleanrank as cr
    >>> noisy = cr.corrupt(cr.make_ranking(40, 5, docs_per_query=15, seed=0), rate=0.2, seed=1)
    >>> ranker = RobustRanker(n_estimators=5, folds=2).fit(noisy.data.X, noisy.data.y, qid=noisy.data.qid)
    >>> ranker.report_.weights
    {'posterior': 0.5, 'grades': 0.5}
    """

    def __init__(
        self,
        *,
        strategy: str = AUTO,
        noise: Any = None,
        rounds: int = 2,
        folds: int = 5,
        clean_validation: bool = False,
        grid: Mapping[str, Sequence[Any]] | None = None,
        selection: str = "average",
        n_estimators: int = 500,
        early_stopping_rounds: int | None = 50,
        measure: str = "ndcg@10",
        learning_rate: float = 0.05,
        label_gain: Sequence[float] | None = None,
        objective: str = "lambdarank",
        random_state: int = 0,
        n_jobs: int = 1,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self.strategy = strategy
        self.noise = noise
        self.rounds = rounds
        self.folds = folds
        self.clean_validation = clean_validation
        self.grid = grid
        self.selection = selection
        self.n_estimators = n_estimators
        self.early_stopping_rounds = early_stopping_rounds
        self.measure = measure
        self.learning_rate = learning_rate
        self.label_gain = label_gain
        self.objective = objective
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.params = params

    def _fit(
        self,
        train: RankingData,
        validation: RankingData | None,
        *,
        gold: Any = None,
        issues: LabelIssues | None = None,
        progress: Progress | None = None,
    ) -> None:
        one_of("strategy", self.strategy, STRATEGIES)
        one_of("objective", str(self.objective), LAMBDAS)
        objectives = (self.objective, LEAST_SQUARES)
        for name in objectives:
            self._ranker(name).check(train, validation)
        self._rows = train
        steps = _Steps(progress, 2 * self.folds + len(AVERAGED) * len(objectives))
        self._repaired = repaired = self._repair(train, validation, steps, gold, issues)
        self._values_of_gains = any((t.validation or t.train).gains is not None for t in repaired.targets)
        fitted = []
        for target, weight in zip(repaired.targets, repaired.weights, strict=True):
            for name in objectives if weight > 0 else ():
                ranker = self._ranker(name)
                ranker.fit_data(target.train, target.validation, callbacks=self._callbacks)
                fitted.append((target, weight / len(objectives), name, ranker))
                steps()
        rows = train if validation is None else validation
        models, weights = [each.model_ for *_, each in fitted], [weight for _, weight, *_ in fitted]
        model = average_models(models, [m.predict(rows.X) for m in models], rows.indptr, weights)
        if validation is None:
            # Of the rows that each model held out for its choices.
            value = sum(weight * (each.chosen_["validation"] or 0.0) for _, weight, _, each in fitted)
        else:
            value = evaluate_mean(model.predict(validation.X), repaired.validation(), self.measure)
        self.model_ = replace(model, validation_value=value, history=(value,))
        self.chosen_ = {
            "strategy": repaired.strategy,
            "models": sum(len(each.tried_) for *_, each in fitted),
            "trees": model.best_iteration,
            "validation": value,
        }
        self.tried_ = tuple(
            {"strategy": target.strategy, "objective": name, **record}
            for target, _, name, each in fitted
            for record in each.tried_
        )
        steps.finish()

    def _ranker(self, objective: str) -> BoostedRanker:
        """One of the rankers that are trained on every target."""
        fixed = resolve_aliases(self.params)
        # What params fix is not chosen.
        grid = {name: values for name, values in GRID.items() if name not in fixed}
        if objective == LEAST_SQUARES:
            _, fixed = lambdarank_params(fixed)
        return BoostedRanker(
            objective=objective,
            label_gain=self.label_gain if objective in LAMBDAS else None,
            grid=grid if self.grid is None else self.grid,
            selection=self.selection,
            n_estimators=self.n_estimators,
            early_stopping_rounds=self.early_stopping_rounds,
            measure=self.measure,
            learning_rate=self.learning_rate,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            params=fixed,
        )

    def _repair(
        self,
        train: RankingData,
        validation: RankingData | None,
        steps: Progress,
        gold: Any,
        issues: LabelIssues | None,
    ) -> _Repaired:
        """The targets to learn from."""
        answers = self._answers(gold, train)
        as_given = Target("baseline", train, validation)
        if issues is not None:
            issues = self._matched(train, issues, gold)
            if issues.caution:
                return _baseline(as_given, issues.caution)
            cleaned = clean(train, issues, "posterior", label_gain=self.label_gain, by="RobustRanker")
            target = Target("posterior", cleaned.data, validation)
            why = ("the probabilities of true grades were given",)
            return _Repaired("posterior", [target], why, cleaned=cleaned)
        if self.strategy == "baseline":
            return _Repaired("baseline", [as_given], ("the strategy was given",))
        if train.n_queries < FEWEST_QUERIES:
            return _baseline(
                as_given, f"fewer than {FEWEST_QUERIES} queries leave nothing to predict them by"
            )
        noisy = None if self.clean_validation else validation
        known = known_grades(train, answers)
        options: dict[str, Any] = {"known": known, "label_gain": self.label_gain}
        options |= {"folds": self.folds, "seed": self.random_state, "n_jobs": self.n_jobs, "progress": steps}
        assumed = None
        if self.strategy == "assumed" or (not self._is_told() and self.strategy not in DISTILLED):
            C, own = _n_grades(train, noisy, answers), ("folds", "seed", "n_jobs")
            assumed = assumed_matrix(train, C, **{name: options[name] for name in own})
        noise, estimate, reasons = self._know_noise(train, answers, assumed)
        if self.strategy != AUTO:
            strategies: Sequence[str] = (self.strategy,)
        else:
            # A matrix that somebody vouches for needs no company.
            strategies = (
                ("posterior",) if self._is_told() else AVERAGED if answers is None else AVERAGED_WITH_GOLD
            )
        posterior = None
        targets: list[Target] = []
        for name in strategies:
            if name in DISTILLED:
                targets.append(distilled_target(train, noisy, name, **options))
                continue
            taught = options | {"known": None} if name == "assumed" else options
            matrix = assumed if name == "assumed" else noise
            target, by_noise = posterior_target(
                train, noisy, matrix, n_grades=_n_grades(train, noisy, answers), rounds=self.rounds, **taught
            )
            targets.append(replace(target.with_known(known, self.label_gain), strategy=name))
            posterior = posterior or by_noise
        if self.clean_validation:
            targets = [replace(each, validation=validation) for each in targets]
        if posterior is not None and posterior.documents is not None:
            reasons = (*reasons, str(posterior.documents))
        weights = strategy_weights(targets, train, known, self.label_gain)
        strategy = strategies[0] if len(strategies) == 1 else AUTO
        return _Repaired(strategy, targets, reasons, weights, posterior, estimate, answers)

    def _answers(self, gold: Any, train: RankingData) -> GoldAnswers | None:
        if isinstance(self.noise, GoldAnswers):
            if gold is not None:
                raise invalid("gold", "must not be given beside answers as noise", type(gold).__name__)
            gold = self.noise
        return None if gold is None else gold_answers(gold, train)

    def _matched(self, train: RankingData, issues: LabelIssues, gold: Any) -> LabelIssues:
        """A table of the training rows; they are matched by id or, failing that, by place."""
        if gold is not None or self.noise is not None:
            raise invalid("RobustRanker", "takes either `issues` or `gold` or `noise`, not two of them")
        if not isinstance(issues, LabelIssues):
            raise invalid("issues", "must be a LabelIssues", type(issues).__name__)
        place = match_rows(issues.row_id, train.row_ids)
        by_id = (place >= 0).all() and (issues.given_label[place] == train.y).all()
        if not by_id and len(issues) == train.n_docs:
            issues = replace(issues, row_id=np.arange(len(issues)))
        return issues

    def _is_told(self) -> bool:
        """Whether ``noise`` is a matrix, or an estimate that may be acted on."""
        if isinstance(self.noise, NoiseEstimate):
            return self.noise.profile is not None and bool(self.noise.trusted)
        return self.noise is not None and not isinstance(self.noise, GoldAnswers)

    def _know_noise(
        self, train: RankingData, answers: GoldAnswers | None, assumed: FloatArray | None
    ) -> Knowledge:
        if self._is_told():
            if isinstance(self.noise, NoiseEstimate):
                return self.noise, self.noise, _reasons(self.noise)
            return self.noise, None, ("the noise was given",)
        if assumed is None:
            return None, None, ("the strategy was given",)
        if answers is not None:
            estimate = estimate_noise(
                train, gold=answers, n_grades=len(assumed), assumed=assumed, seed=self.random_state
            )
            return estimate, estimate, (*_reasons(estimate), "where rows are few it keeps to what is assumed")
        if isinstance(self.noise, NoiseEstimate):
            return assumed, self.noise, (*self.noise.reasons, "so the noise is assumed from the data")
        return assumed, None, (NOTHING_KNOWN,)

    def _options(self) -> list[str]:
        return [*super()._options(), "gold", "issues"]

    @property
    def issues_(self) -> LabelIssues | None:
        """The posterior of the training rows as a table; None without one."""
        self._fitted()
        if self._repaired.cleaned is not None:
            return self._repaired.cleaned.issues
        posterior = self._repaired.posterior
        return None if posterior is None else posterior_table(self._rows, posterior.probabilities)

    @property
    def cleaned_(self) -> Cleaned | None:
        """The training rows with expected gains and their audit trail; None without a posterior."""
        issues = self.issues_
        if issues is None or self._repaired.cleaned is not None:
            return self._repaired.cleaned
        return clean(self._rows, issues, "posterior", label_gain=self.label_gain, by="RobustRanker")

    @property
    def report_(self) -> RobustReport:
        """What was done and why."""
        repaired, issues = self._repaired, self.issues_
        parts = zip(repaired.targets, repaired.weights, strict=True)
        return RobustReport(
            repaired.strategy,
            repaired.reasons,
            {target.strategy: float(weight) for target, weight in parts},
            None if repaired.posterior is None else repaired.posterior.noise,
            repaired.estimate,
            0 if repaired.gold is None else len(repaired.gold.row_ids),
            None if issues is None else float(issues.doubt.mean()),
            self.validation_measure(),
            self.tried_,
        )


def _baseline(as_given: Target, reason: str) -> _Repaired:
    """The rows as they are, and why."""
    warnings.warn(f"RobustRanker fell back to the tuned baseline: {reason}", stacklevel=5)
    return _Repaired("baseline", [as_given], (reason,))


def _n_grades(train: RankingData, validation: RankingData | None, answers: GoldAnswers | None) -> int:
    highest = 0 if answers is None else int(answers.true_grades.max())
    return max(2, train.n_grades, 0 if validation is None else validation.n_grades, highest + 1)


def strategy_weights(
    targets: Sequence[Target],
    train: RankingData,
    known: IntArray | None,
    label_gain: Sequence[float] | None,
) -> FloatArray:
    """How much each strategy counts: alike, or as gold rows say, whose true grades they were to foretell.

    The weights, none below 0, make the squared error of log2(1 + gain) at gold rows least, all brought to the
    same spread; equal weights count as much as PRIOR_ROWS gold rows.
    """
    equal = np.full(len(targets), 1 / len(targets))
    rows = np.flatnonzero(known >= 0) if known is not None else np.zeros(0, dtype=np.int64)
    if len(targets) == 1 or known is None or not len(rows):
        return equal
    columns = [np.log2(1 + each.unjudged[rows]) for each in targets if each.unjudged is not None]
    # Forests are averaged at the same spread of their scores, so only what goes with the truth counts.
    *foretold, truth = (
        (column - column.mean()) / max(float(column.std()), TINY)
        for column in (*columns, np.log2(1 + gain_of(known[rows], label_gain)))
    )
    scale = np.sqrt(PRIOR_ROWS)
    X = np.vstack([np.column_stack(foretold), scale * np.eye(len(targets))])
    weights, _ = nnls(X, np.append(truth, scale * equal))
    return np.asarray(weights / weights.sum()) if weights.sum() > 0 else equal


def _reasons(estimate: NoiseEstimate) -> tuple[str, ...]:
    return f"the noise was estimated: {estimate.method}", *estimate.reasons
