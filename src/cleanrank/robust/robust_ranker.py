"""RobustRanker: knows or estimates the noise, trains on expected gains, and steps back when it cannot tell.

Noise matrix -> P(true grade | features, given grade) -> expected gains of training and validation rows ->
four models, the best of which validation data choose. Without a noise matrix that can be trusted the same
four models are trained on the labels as they are: the tuned baseline, which is the best one can do without
knowing the noise.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from cleanrank.cleaning import Cleaned, clean
from cleanrank.errors import invalid
from cleanrank.issues.noise import estimate_noise
from cleanrank.issues.posterior import Posterior, posterior_table, with_expected_gains
from cleanrank.issues.table import LabelIssues
from cleanrank.noise.estimate import NoiseEstimate
from cleanrank.noise.gold_sheet import GoldAnswers, gold_answers, known_grades
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.ragged import match_rows
from cleanrank.rankers.boosted import LEAF, BoostedRanker, Steps
from cleanrank.rankers.trees import LAMBDAS
from cleanrank.types import RankingData
from cleanrank.validation import one_of

GRID: Mapping[str, Sequence[Any]] = {"num_leaves": (7, 31), LEAF: (20, 200)}
ADVICE = "judge about 100 rows again (cleanrank gold sample)"
STRATEGIES: dict[str, str] = {
    "posterior": "trained on expected gains under the noise",
    "baseline": "trained on the given grades, tuned alike",
}


@dataclass(frozen=True, eq=False, repr=False)
class RobustReport:
    """What was done and why.

    Attributes:
        strategy: one of STRATEGIES.
        reasons: why, in words.
        noise: the matrix in use; None for the baseline.
        estimate: what the matrix was read off; None when it was given.
        n_gold: rows of known true grade.
        doubted: the mean doubt of the training rows: the share of grades that are expected to be wrong.
        measure: what the validation values are.
        tried: parameters, validation value and trees of every model.
    """

    strategy: str
    reasons: tuple[str, ...]
    noise: NoiseProfile | None
    estimate: NoiseEstimate | None
    n_gold: int
    doubted: float | None
    measure: str
    tried: tuple[Mapping[str, Any], ...]

    def __repr__(self) -> str:
        lines = [f"{self.strategy}: {STRATEGIES[self.strategy]}", *(f"  - {why}" for why in self.reasons)]
        if self.doubted is not None:
            lines.append(f"  {self.doubted:.1%} of the training grades are expected to be wrong")
        if self.tried:
            lines.append(f"  validation: {self.measure}")
        for record in self.tried:
            params = {k: v for k, v in record.items() if k not in ("validation", "trees")}
            settings = ", ".join(f"{name} {value}" for name, value in params.items())
            lines.append(f"  {settings}: {record['validation']:.4f}, {record['trees']} trees")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "strategy": self.strategy,
            "reasons": list(self.reasons),
            "matrix": None if self.noise is None else self.noise.matrix.tolist(),
            "gold": self.n_gold,
            "doubted": self.doubted,
            "measure": self.measure,
            "tried": [dict(record) for record in self.tried],
        }


# The noise that labels are repaired by, None for the baseline; why; what it was read off.
Knowledge: TypeAlias = tuple[Any, tuple[str, ...], NoiseEstimate | None]


class RobustRanker(BoostedRanker):
    """A ranker for noisy grades: expected gains under the noise, or the tuned baseline where it is unknown.

    Options of ``fit``: ``gold``, rows of known true grade as (row ids, grades) or as ``estimate_noise`` takes
    them, where row numbers count the rows of X from 0; ``issues``, the LabelIssues that ``find_label_issues``
    gave for the rows of X, in place of noise and gold, if it carries probabilities of true grades;
    ``progress``, called with (step, steps).

    Args:
        noise: T (C, C) with T[l, m] = P(given m | true l), a NoiseProfile, a NoiseEstimate or the answers of
            a gold sheet. None: gold rows given to ``fit`` decide, else what the data alone can tell.
        rounds: of the posterior, 1 or 2; see ``issues/posterior.py``.
        folds: of the posterior.
        clean_validation: the grades of the validation rows are right; otherwise they are taken to be as noisy
            as those of the training rows and get expected gains too.
        grid: LightGBM parameters to choose from on validation data, name -> values; GRID when not given.
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
        chosen_: the strategy, the parameters, the trees and the validation value.
        report_: a RobustReport: what was done and why.
        issues_: the posterior as a LabelIssues; None for the baseline.
        cleaned_: training rows with expected gains and their audit trail; None for the baseline.

    >>> import cleanrank as cr
    >>> noisy = cr.corrupt(cr.make_ranking(40, 5, docs_per_query=15, seed=0), rate=0.2, seed=1)
    >>> ranker = RobustRanker(noise=noisy.profile, n_estimators=5, folds=2)
    >>> ranker.fit(noisy.data.X, noisy.data.y, qid=noisy.data.qid).chosen_["strategy"]
    'posterior'
    """

    default_grid = GRID
    of_pairs = ()

    def __init__(
        self,
        *,
        noise: Any = None,
        rounds: int = 2,
        folds: int = 5,
        clean_validation: bool = False,
        grid: Mapping[str, Sequence[Any]] | None = None,
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
        super().__init__(
            objective=objective,
            label_gain=label_gain,
            grid=grid,
            n_estimators=n_estimators,
            early_stopping_rounds=early_stopping_rounds,
            measure=measure,
            learning_rate=learning_rate,
            random_state=random_state,
            n_jobs=n_jobs,
            params=params,
        )
        self.noise = noise
        self.rounds = rounds
        self.folds = folds
        self.clean_validation = clean_validation

    def _repaired(
        self,
        train: RankingData,
        validation: RankingData | None,
        steps: Steps,
        *,
        gold: Any = None,
        issues: LabelIssues | None = None,
    ) -> tuple[RankingData, RankingData | None, dict[str, Any]]:
        """The rows with expected gains where the noise is known, else as they are."""
        one_of("objective", str(self.objective), LAMBDAS)
        self._rows, self._gold = train, self._answers(gold, train)
        self._posterior: Posterior | None = None
        self._issues: LabelIssues | None = None
        self._estimate: NoiseEstimate | None = None
        self._reasons: tuple[str, ...] = ()
        self._cleaned = None
        if issues is not None:
            issues = self._matched(train, issues, gold)
            if issues.caution:
                return self._baseline(train, validation, issues.caution)
            self._cleaned = clean(train, issues, "posterior", label_gain=self.label_gain, by="RobustRanker")
        self._values_of_gains = validation is None  # choices then look at training rows that are held out
        if self._cleaned is not None:
            self._issues = self._cleaned.issues
            self._reasons = ("the probabilities of true grades were given",)
            return self._cleaned.data, validation, {"strategy": "posterior"}
        noisy = None if self.clean_validation else validation
        noise, self._reasons, self._estimate = self._know_noise(train, noisy)
        if noise is None:
            return self._baseline(train, validation, *self._reasons)
        gold_grades = () if self._gold is None else self._gold.true_grades
        self._posterior, train, repaired = with_expected_gains(
            train, noisy, noise, label_gain=self.label_gain,
            known=None if self._gold is None else known_grades(train, self._gold),
            n_grades=max((2, *(int(grade) + 1 for grade in gold_grades))), rounds=self.rounds,
            folds=self.folds, seed=self.random_state, n_jobs=self.n_jobs, progress=steps,
        )  # fmt: skip
        self._values_of_gains = validation is None or noisy is not None
        return train, validation if noisy is None else repaired, {"strategy": "posterior"}

    def _answers(self, gold: Any, train: RankingData) -> GoldAnswers | None:
        if isinstance(self.noise, GoldAnswers):
            if gold is not None:
                raise invalid("gold", "must not be given beside answers as noise", type(gold).__name__)
            gold = self.noise
        return None if gold is None else gold_answers(gold, train)

    def _baseline(
        self, train: RankingData, validation: RankingData | None, *reasons: str
    ) -> tuple[RankingData, RankingData | None, dict[str, Any]]:
        """The rows as they are, and why."""
        words = "; ".join(reasons)
        warnings.warn(f"RobustRanker fell back to the tuned baseline: {words}", stacklevel=3)
        self._reasons, self._values_of_gains = reasons, False
        return train, validation, {"strategy": "baseline"}

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

    def _know_noise(self, train: RankingData, validation: RankingData | None) -> Knowledge:
        if isinstance(self.noise, NoiseEstimate):
            return _trusted(self.noise)
        if self.noise is not None and not isinstance(self.noise, GoldAnswers):
            return self.noise, ("the noise was given",), None
        C = max(2, train.n_grades, 0 if validation is None else validation.n_grades)
        if self._gold is not None:
            C = max(C, int(self._gold.true_grades.max()) + 1)
            return _trusted(estimate_noise(train, gold=self._gold, n_grades=C, seed=self.random_state))
        if max(2, train.n_grades) < C:
            reason = f"grade {C - 1} occurs in the validation data alone: its noise cannot be read off"
            return None, (reason, ADVICE), None
        options: dict[str, Any] = {"seed": self.random_state, "n_jobs": self.n_jobs}
        return _trusted(estimate_noise(train, n_folds=self.folds, **options))

    @property
    def issues_(self) -> LabelIssues | None:
        """The posterior of the training rows as a table; None for the baseline."""
        self._fitted()
        if self._issues is None and self._posterior is not None:
            self._issues = posterior_table(self._rows, self._posterior.probabilities)
        return self._issues

    @property
    def cleaned_(self) -> Cleaned | None:
        """The training rows with expected gains and their audit trail; None for the baseline."""
        issues = self.issues_
        if self._cleaned is None and issues is not None:
            self._cleaned = clean(
                self._rows, issues, "posterior", label_gain=self.label_gain, by="RobustRanker"
            )
        return self._cleaned

    @property
    def report_(self) -> RobustReport:
        """What was done and why."""
        issues = self.issues_
        return RobustReport(
            self.chosen_["strategy"],
            self._reasons,
            None if self._posterior is None else self._posterior.noise,
            self._estimate,
            0 if self._gold is None else len(self._gold.row_ids),
            None if issues is None else float(issues.doubt.mean()),
            self.validation_measure(),
            self.tried_,
        )


def _trusted(estimate: NoiseEstimate) -> Knowledge:
    """Whether an estimate may be acted on."""
    reasons = tuple(estimate.reasons)
    if estimate.profile is None or not estimate.trusted:
        return None, (*reasons, ADVICE), estimate
    return estimate, (f"the noise was estimated: {estimate.method}", *reasons), estimate
