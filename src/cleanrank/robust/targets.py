"""What a robust ranker learns in place of noisy grades: expected gains, by strategies that need no judgement.

* ``posterior_target``: E[gain | features, given grade] under a noise matrix, known, estimated or assumed. It
  wins back most under errors that are the same for all documents of a grade.
* ``distilled_target``: what the features say about the grade (or the gain), out of fold and by least squares,
  mixed with the given one. It needs no matrix and no assumption about the errors.

Each gives training rows and, unless their grades are known to be right, validation rows their gains.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from cleanrank.issues.posterior import Posterior, with_expected_gains
from cleanrank.issues.table import expected_gains
from cleanrank.rankers.grade_model import MeanModels, cross_fit, cross_fit_means, fit_grades
from cleanrank.types import Array, FloatArray, IntArray, Progress, RankingData

MIXING = 0.75  # the part of the prediction in a distilled target, as in 3 : 1
DISTILLED = ("grades", "gains")


@dataclass(frozen=True, eq=False)
class Target:
    """Rows with the gains that a strategy takes for the true ones; validation rows where there are any."""

    strategy: str
    train: RankingData
    validation: RankingData | None
    unjudged: FloatArray | None = None  # the gains of training rows as if none of them were judged again
    means: MeanModels | None = None  # models that were trained on the way to the target

    def with_known(self, known: IntArray | None, label_gain: Sequence[float] | None = None) -> "Target":
        """The same with the gains of known true grades (N,), -1 where they are not known."""
        if known is None:
            return self
        assert self.train.gains is not None
        gains = np.where(known >= 0, gain_of(np.maximum(known, 0), label_gain), self.train.gains)
        return replace(self, train=replace(self.train, gains=gains))


def given_probabilities(
    train: RankingData,
    validation: RankingData | None,
    n_grades: int,
    *,
    folds: int = 5,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> list[FloatArray]:
    """P(given grade | features) of training and validation rows, out of fold: (N, C) each."""
    fit = partial(fit_grades, n_grades=n_grades, seed=seed, n_jobs=n_jobs)
    others = [] if validation is None else [validation]
    p, rest = cross_fit(
        train, fit, folds, seed=seed, n_grades=n_grades, others=others, calibrate=np.eye(n_grades)[train.y],
        progress=progress,
    )  # fmt: skip
    return [p, *rest]


def posterior_target(
    train: RankingData,
    validation: RankingData | None,
    noise: Any,
    *,
    label_gain: Sequence[float] | None = None,
    **options: Any,
) -> tuple[Target, Posterior]:
    """Expected gains under the noise; ``options`` are those of ``posterior_of``."""
    posterior, repaired, held = with_expected_gains(
        train, validation, noise, label_gain=label_gain, **options
    )
    unjudged = expected_gains(posterior.unjudged, label_gain)[0]
    return Target("posterior", repaired, held, unjudged), posterior


def distilled_target(
    train: RankingData,
    validation: RankingData | None,
    kind: str,
    *,
    known: IntArray | None = None,
    label_gain: Sequence[float] | None = None,
    mixing: float = MIXING,
    folds: int = 5,
    seed: int = 0,
    params: Mapping[str, Any] | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Target:
    """Gains by ``mixing`` parts of what the features predict and 1 - ``mixing`` parts of what was given.

    Args:
        train: rows with given grades.
        validation: rows of other queries with given grades.
        kind: "grades" mixes grades, whose gain is then taken, so that one false top grade does not count for
            more than others; "gains" mixes gains.
        known: (N,) true grades of training rows, -1 where they are not known.
        label_gain: gain of each grade, else 2^grade - 1.
        mixing: the part of the prediction.
        folds: parts that the queries are cut into.
        seed: decides the parts and seeds the models.
        params: LightGBM parameters of the models.
        n_jobs: threads.
        progress: called with (fold, folds).
    """
    y = train.y if known is None else np.where(known >= 0, known, train.y)
    of_gains = kind == "gains"

    def value(grades: Array) -> FloatArray:
        return gain_of(grades, label_gain) if of_gains else np.asarray(grades, dtype=np.float64)

    def gains(values: FloatArray) -> FloatArray:
        return values if of_gains else gain_of(values, label_gain)

    options: dict[str, Any] = {"seed": seed, "params": params, "n_jobs": n_jobs, "progress": progress}
    means = cross_fit_means(train, value(y), folds, **options)

    def mixed(prediction: FloatArray, rows: RankingData) -> FloatArray:
        return gains(mixing * np.maximum(prediction, 0.0) + (1 - mixing) * value(rows.y))

    unjudged = mixed(means.predictions, train)
    held = None
    if validation is not None:
        held = replace(validation, gains=mixed(means.model.predict(validation.X, n_jobs=n_jobs), validation))
    # A model of gains runs after the largest ones; it makes a target, but no ranker.
    target = Target(kind, replace(train, gains=unjudged), held, unjudged, None if of_gains else means)
    return target.with_known(known, label_gain)


def gain_of(grades: Array, label_gain: Sequence[float] | None = None) -> FloatArray:
    """The gains of grades, also of those between whole ones: 2^grade - 1, or what lies between listed gains.

    >>> gain_of(np.array([0.0, 1.5]), [0, 1, 5]).tolist()
    [0.0, 3.0]
    """
    if label_gain is None:
        return np.asarray(2.0 ** np.asarray(grades, dtype=np.float64) - 1)
    return np.interp(grades, np.arange(len(label_gain)), np.asarray(label_gain, dtype=np.float64))
