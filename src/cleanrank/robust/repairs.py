"""The labels a robust ranker learns from: which repairs, under which noise matrix, and how much each counts.

What is known decides (``know_noise``): a matrix that is given, gold rows, or nothing, when the noise is
assumed from the data. ``repair_labels`` makes the targets of all strategies; ``strategy_weights`` says how
much each counts.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import nnls

from cleanrank.cleaning import Cleaned, clean
from cleanrank.issues.noise import estimate_noise
from cleanrank.issues.posterior import Posterior
from cleanrank.issues.table import LabelIssues
from cleanrank.noise.assumed import possible_noise
from cleanrank.noise.estimate import NoiseEstimate
from cleanrank.noise.gold_sheet import GoldAnswers, known_grades
from cleanrank.robust.robust_report import AUTO, AVERAGED, AVERAGED_WITH_GOLD
from cleanrank.robust.targets import (
    DISTILLED,
    Target,
    distilled_target,
    gain_of,
    given_probabilities,
    posterior_target,
)
from cleanrank.types import FloatArray, IntArray, Progress, RankingData

FEWEST_QUERIES = 4
NOTHING_KNOWN = (
    "nothing is known about the noise: it is assumed from the data for the posterior, and what needs no "
    "matrix counts as much"
)
PRIOR_ROWS = 50.0  # equal weights of the strategies count as much as so many gold rows
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class RepairedLabels:
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


def repair_by_issues(
    train: RankingData,
    validation: RankingData | None,
    issues: LabelIssues,
    label_gain: Sequence[float] | None = None,
) -> RepairedLabels:
    """The expected gains under the probabilities of true grades that a table of issues carries."""
    if issues.caution:
        return as_given(train, validation, issues.caution, warn=True)
    cleaned = clean(train, issues, "posterior", label_gain=label_gain, by="RobustRanker")
    why = ("the probabilities of true grades were given",)
    return RepairedLabels("posterior", [Target("posterior", cleaned.data, validation)], why, cleaned=cleaned)


def as_given(
    train: RankingData, validation: RankingData | None, reason: str, *, warn: bool = False
) -> RepairedLabels:
    """The labels as they are, and why."""
    if warn:
        warnings.warn(f"RobustRanker fell back to the tuned baseline: {reason}", stacklevel=6)
    return RepairedLabels("baseline", [Target("baseline", train, validation)], (reason,))


def repair_labels(
    train: RankingData,
    validation: RankingData | None,
    *,
    strategy: str = AUTO,
    noise: Any = None,
    answers: GoldAnswers | None = None,
    clean_validation: bool = False,
    rounds: int | None = None,
    folds: int = 5,
    label_gain: Sequence[float] | None = None,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> RepairedLabels:
    """The targets of a strategy, or of all that are averaged; arguments are those of ``RobustRanker``.

    ``params`` are LightGBM parameters of the models by least squares.
    """
    if strategy == "baseline":
        return as_given(train, validation, "the strategy was given")
    if train.n_queries < FEWEST_QUERIES:
        reason = f"fewer than {FEWEST_QUERIES} queries leave nothing to predict them by"
        return as_given(train, validation, reason, warn=True)
    noisy = None if clean_validation else validation
    known = None if answers is None else known_grades(train, answers)
    cross_fitting: dict[str, Any] = {"folds": folds, "seed": seed, "n_jobs": n_jobs, "progress": progress}
    C = _n_grades(train, noisy, answers)
    assumed = p = None
    if strategy == "assumed" or (not is_given(noise) and strategy not in DISTILLED):
        p = given_probabilities(train, noisy, C, **cross_fitting)
        assumed = possible_noise(p[0], train.y)
    matrix, estimate, reasons = know_noise(train, noise, answers, assumed, seed)
    strategies: Sequence[str] = (strategy,)
    if strategy == AUTO:
        averaged = AVERAGED if answers is None else AVERAGED_WITH_GOLD
        strategies = ("posterior",) if is_given(noise) else averaged  # a given matrix needs no other strategy
    posterior = None
    targets: list[Target] = []
    of_gains: dict[str, Any] = {"label_gain": label_gain, **cross_fitting}
    for name in strategies:
        if name in DISTILLED:
            targets.append(distilled_target(train, noisy, name, known=known, params=params, **of_gains))
            continue
        under = assumed if name == "assumed" else matrix
        n_rounds = (1 if under is assumed else 2) if rounds is None else rounds
        target, by_noise = posterior_target(
            train, noisy, under, known=None if name == "assumed" else known, n_grades=C, rounds=n_rounds,
            probabilities=p if n_rounds == 1 else None, **of_gains,
        )  # fmt: skip
        targets.append(replace(target.with_known(known, label_gain), strategy=name))
        posterior = posterior or by_noise
    if clean_validation:
        targets = [replace(each, validation=validation) for each in targets]
    if posterior is not None and posterior.documents is not None:
        reasons = (*reasons, str(posterior.documents))
    weights = strategy_weights(targets, known, label_gain)
    name = strategies[0] if len(strategies) == 1 else AUTO
    return RepairedLabels(name, targets, reasons, weights, posterior, estimate, answers)


def is_given(noise: Any) -> bool:
    """Whether ``noise`` is a matrix, or an estimate that may be acted on."""
    if isinstance(noise, NoiseEstimate):
        return noise.profile is not None and bool(noise.trusted)
    return noise is not None and not isinstance(noise, GoldAnswers)


def know_noise(
    train: RankingData, noise: Any, answers: GoldAnswers | None, assumed: FloatArray | None, seed: int
) -> tuple[Any, NoiseEstimate | None, tuple[str, ...]]:
    """The noise matrix, what it was read off, and why it is used."""
    if is_given(noise):
        if isinstance(noise, NoiseEstimate):
            return noise, noise, _reasons(noise)
        return noise, None, ("the noise was given",)
    if assumed is None:
        return None, None, ("the strategy was given",)
    if answers is not None:
        estimate = estimate_noise(train, gold=answers, n_grades=len(assumed), assumed=assumed, seed=seed)
        return estimate, estimate, (*_reasons(estimate), "where rows are few it keeps to what is assumed")
    if isinstance(noise, NoiseEstimate):
        return assumed, noise, (*noise.reasons, "so the noise is assumed from the data")
    return assumed, None, (NOTHING_KNOWN,)


def _reasons(estimate: NoiseEstimate) -> tuple[str, ...]:
    return f"the noise was estimated: {estimate.method}", *estimate.reasons


def _n_grades(train: RankingData, validation: RankingData | None, answers: GoldAnswers | None) -> int:
    highest = 0 if answers is None else int(answers.true_grades.max())
    return max(2, train.n_grades, 0 if validation is None else validation.n_grades, highest + 1)


def strategy_weights(
    targets: Sequence[Target], known: IntArray | None, label_gain: Sequence[float] | None = None
) -> FloatArray:
    """How much each strategy counts: alike, or by how well they predict the true grades of gold rows.

    The weights, none below 0, make the squared error of log2(1 + gain) at gold rows least, all brought to the
    same spread; equal weights count as much as PRIOR_ROWS gold rows. ``known`` (N,) are the true grades of
    gold rows, -1 elsewhere.
    """
    equal = np.full(len(targets), 1 / len(targets))
    rows = np.flatnonzero(known >= 0) if known is not None else np.zeros(0, dtype=np.int64)
    if len(targets) == 1 or known is None or not len(rows):
        return equal
    columns = [np.log2(1 + each.unjudged[rows]) for each in targets if each.unjudged is not None]
    # Models are averaged at the same spread of their scores, so only what goes with the truth counts.
    *predicted, truth = (
        (column - column.mean()) / max(float(column.std()), TINY)
        for column in (*columns, np.log2(1 + gain_of(known[rows], label_gain)))
    )
    scale = np.sqrt(PRIOR_ROWS)
    X = np.vstack([np.column_stack(predicted), scale * np.eye(len(targets))])
    weights, _ = nnls(X, np.append(truth, scale * equal))
    return np.asarray(weights / weights.sum()) if weights.sum() > 0 else equal
