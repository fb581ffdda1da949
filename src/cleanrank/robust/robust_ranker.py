"""RobustRanker: trains models on several repaired versions of noisy labels and averages them.

No single repair wins everywhere, and without judgements nothing tells which one is right (``targets.py``).
So models of all of them are averaged: that is near the best of them under every noise that was tried, and
does not harm where there is none. Half the weight of every repair goes to lambdarank, tuned on validation
data, and half to least squares, a small model for each fold of the training queries, which noise affects
least. Gold rows estimate the noise matrix, and weight the repairs by how well they predict the true grades.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cleanrank.cleaning import Cleaned, clean
from cleanrank.errors import invalid
from cleanrank.issues.posterior import posterior_table
from cleanrank.issues.table import LabelIssues
from cleanrank.metrics.evaluation import evaluate_mean
from cleanrank.noise.gold_sheet import GoldAnswers, gold_answers
from cleanrank.ragged import match_rows
from cleanrank.rankers._lightgbm import resolve_aliases
from cleanrank.rankers.boosted import LEAF, BoostedRanker, Grid, average_models
from cleanrank.rankers.grade_model import cross_fit_means
from cleanrank.rankers.tree_ranker import TreeRanker
from cleanrank.rankers.trees import LAMBDAS, TreeModel, lambdarank_params
from cleanrank.robust.repairs import FEWEST_QUERIES, RepairedLabels, repair_by_issues, repair_labels
from cleanrank.robust.robust_report import AUTO, AVERAGED, STRATEGIES, RobustReport
from cleanrank.robust.targets import Target
from cleanrank.types import Progress, RankingData
from cleanrank.validation import one_of

GRID: Mapping[str, Sequence[Any]] = {"num_leaves": (7, 31), LEAF: (20, 200)}
LEAST_SQUARES = "gbdt"


@dataclass(frozen=True, eq=False)
class _Member:
    """A model that is averaged with others: how much it counts, its validation value, what was tried."""

    model: TreeModel
    weight: float
    value: float
    tried: Sequence[Mapping[str, Any]]


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

    Labels are repaired in several ways, rankers are trained on each by lambdarank, tuned, and by least
    squares, bagged, and their scores are averaged into one LightGBM model; ``report_`` says how.

    Options of ``fit``: ``gold``, rows of known true grade as (row ids, grades) or as ``estimate_noise`` takes
    them, where row numbers count the rows of X from 0; ``issues``, the LabelIssues that ``find_label_issues``
    gave for the rows of X, in place of noise and gold, if it carries probabilities of true grades;
    ``progress``, called with (step, steps); ``client``, a ``distributed.Client``, whose workers train the
    models side by side.

    Args:
        strategy: "auto" averages those of AVERAGED; or one of STRATEGIES by itself.
        noise: T (C, C) with T[l, m] = P(given m | true l), a NoiseProfile, a NoiseEstimate or the answers of
            a gold sheet. None: gold rows given to ``fit`` decide, else it is assumed from the data.
        rounds: of the posterior, 1 or 2, see ``issues/posterior.py``; when not given 2 under a matrix that is
            known or estimated, 1 under one that is assumed, which costs no further models.
        folds: of everything that is predicted out of fold.
        clean_validation: the grades of the validation rows are right; otherwise they are taken to be as noisy
            as those of the training rows and are repaired too.
        grid: LightGBM parameters to tune on validation data, name -> values; GRID when not given.
        selection: "average" or "best" of the models of the grid, see ``BoostedRanker``.
        n_estimators: trees of a model by lambdarank at the most; least squares stops by itself.
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
        rounds: int | None = None,
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
        self._ranker().check(train, validation)
        self._rows = train
        steps = _Steps(progress, 3 * self.folds + len(AVERAGED))
        self._repaired = repaired = self._repair(train, validation, steps, gold, issues)
        self._values_of_gains = any((t.validation or t.train).gains is not None for t in repaired.targets)
        members = self._members(repaired, steps)
        rows = train if validation is None else validation
        models, weights = [each.model for each in members], [each.weight for each in members]
        model = average_models(
            models, [m.predict(rows.X, n_jobs=self.n_jobs) for m in models], rows.indptr, weights
        )
        if validation is None:
            # Of rows that each model held out for its choices, or did not see.
            value = sum(each.weight * each.value for each in members)
        else:
            value = evaluate_mean(
                model.predict(validation.X, n_jobs=self.n_jobs), repaired.validation(), self.measure
            )
        self.model_ = replace(model, validation_value=value, history=(value,))
        self.tried_ = tuple(record for each in members for record in each.tried)
        self.chosen_ = {
            "strategy": repaired.strategy,
            "models": len(self.tried_),
            "trees": model.best_iteration,
            "validation": value,
        }
        steps.finish()

    def _members(self, repaired: RepairedLabels, steps: "_Steps") -> list[_Member]:
        """What is averaged: models by lambdarank and by least squares for every target."""
        members = []
        counted = [pair for pair in zip(repaired.targets, repaired.weights, strict=True) if pair[1] > 0]
        for place, (target, weight) in enumerate(counted):
            # Several targets share the grid out among them.
            ranker = self._ranker(place if len(counted) > 1 else None)
            ranker.fit_data(target.train, target.validation, callbacks=self._callbacks)
            value = ranker.chosen_["validation"] or 0.0
            named = {"strategy": target.strategy, "objective": self.objective}
            tried = [{**named, **record} for record in ranker.tried_]
            by_pairs = _Member(ranker.model_, float(weight), value, tried)
            if target.strategy == "baseline" or target.train.n_queries < FEWEST_QUERIES:
                members.append(by_pairs)
            else:
                by_means = self._by_means(target, float(weight) / 2, steps)
                members += [replace(by_pairs, weight=float(weight) / 2), by_means]
            steps()
        return members

    def _by_means(self, target: Target, weight: float, steps: Progress) -> _Member:
        """The mean of the models that least squares trained on the way to the target, else on it."""
        means = target.means
        if means is None:
            assert target.train.gains is not None
            means = cross_fit_means(
                target.train, np.log2(1 + target.train.gains), self.folds, seed=self.random_state,
                params=self._means_params(), n_jobs=self.n_jobs, progress=steps,
            )  # fmt: skip
        if target.validation is None:
            value = evaluate_mean(means.predictions, target.train, self.measure)
        else:
            value = evaluate_mean(
                means.model.predict(target.validation.X, n_jobs=self.n_jobs), target.validation, self.measure
            )
        record = {"strategy": target.strategy, "objective": LEAST_SQUARES, "folds": self.folds}
        record |= {"trees": means.model.best_iteration, "validation": value}
        return _Member(means.model, weight, value, [record])

    def _means_params(self) -> dict[str, Any]:
        """What ``params`` say of trees that do not rank."""
        return lambdarank_params(self.params)[1]

    def _ranker(self, place: int | None = None) -> BoostedRanker:
        """The ranker that is trained on a target; one of several has every other cell of the grid."""
        fixed = resolve_aliases(self.params)
        # What params fix is not chosen.
        grid: Grid = {name: values for name, values in GRID.items() if name not in fixed}
        ranker = BoostedRanker(
            objective=self.objective,
            label_gain=self.label_gain,
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
        return ranker if place is None else replace(ranker, grid=every_other(ranker.choices(), place))

    def _repair(
        self,
        train: RankingData,
        validation: RankingData | None,
        steps: Progress,
        gold: Any,
        issues: LabelIssues | None,
    ) -> RepairedLabels:
        """The labels to learn from."""
        answers = self._answers(gold, train)
        if issues is not None:
            issues = self._matched(train, issues, gold)
            return repair_by_issues(train, validation, issues, self.label_gain)
        return repair_labels(
            train,
            validation,
            strategy=self.strategy,
            noise=self.noise,
            answers=answers,
            clean_validation=self.clean_validation,
            rounds=self.rounds,
            folds=self.folds,
            label_gain=self.label_gain,
            params=self._means_params(),
            seed=self.random_state,
            n_jobs=self.n_jobs,
            progress=steps,
        )

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


def every_other(cells: Sequence[Mapping[str, Any]], place: int) -> list[dict[str, list[Any]]]:
    """The cells of a grid of which an even number of values, with ``place``, is at an odd place of its list.

    Neighbours in the grid differ in that, so two places share it out evenly; a grid of one cell goes to all.

    >>> cells = [{"num_leaves": n, "max_depth": d} for n in (7, 31) for d in (3, 6)]
    >>> every_other(cells, 1)
    [{'num_leaves': [7], 'max_depth': [6]}, {'num_leaves': [31], 'max_depth': [3]}]
    """
    axes = {name: list(dict.fromkeys(cell.get(name) for cell in cells)) for cell in cells for name in cell}
    kept = [
        {name: [value] for name, value in cell.items()}
        for cell in cells
        if (place + sum(axes[name].index(value) for name, value in cell.items())) % 2 == 0
    ]
    return kept or [{name: [value] for name, value in cell.items()} for cell in cells]
