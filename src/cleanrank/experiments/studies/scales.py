"""Studies of scales of grades: what data sets hold, and pNoise in closed form for other scales and shares."""

from functools import cache

import numpy as np

from cleanrank.errors import invalid
from cleanrank.experiments.results import Result
from cleanrank.experiments.studies import CURVE_RATES, GRADES, StudyTask
from cleanrank.noise.pair_noise import pnoise_expected
from cleanrank.noise.profiles import make_profile
from cleanrank.noise.scales import best_proportions
from cleanrank.types import FloatArray
from cleanrank.validation import one_of

# The new grade of each: as Niu et al. (2015) merge them for two grades; for three, the three highest are one.
MERGES = {(3, 2): (0, 1, 1), (5, 2): (0, 0, 1, 1, 1), (5, 3): (0, 1, 2, 2, 2)}
BALANCES = {"own": 0.0, "halfway": 0.5, "best": 1.0}  # how far on the way to the best shares


def statistics(task: StudyTask) -> Result:
    """The size of a data set and its shares of grades, over training, validation and test data."""
    counts = sum(part.grade_counts(GRADES).sum(axis=0) for part in task.clean)
    queries = sum(part.n_queries for part in task.clean)
    documents = sum(part.n_docs for part in task.clean)
    means = {
        "queries": float(queries),
        "documents": float(documents),
        "documents per query": documents / queries,
        "features": float(task.train.n_features),
        **{f"grade {grade} (%)": float(100 * n / documents) for grade, n in enumerate(counts)},
    }
    return _whole(means)


def closed_form(task: StudyTask) -> Result:
    """PNoise of the training data's shares of grades, as they are or on another scale or balance."""
    params = task.params
    shares = regraded(task.clean.train.grade_counts().sum(axis=0).astype(np.float64), params["grades"])
    towards_best = BALANCES[one_of("balance", params["balance"], BALANCES)]
    means = {}
    for rate in CURVE_RATES:
        r = shares
        if towards_best:
            best = _best_shares(params["profile"], rate, len(shares))
            r = (1 - towards_best) * shares + towards_best * best
        profile = make_profile(params["profile"], rate, len(shares))
        means[f"pnoise at {rate:g}"] = pnoise_expected(profile, r)
    return _whole(means)


@cache
def _best_shares(profile: str, rate: float, n_grades: int) -> FloatArray:
    return np.array(best_proportions(profile, n_grades, rate=rate).proportions)


def regraded(counts: FloatArray, n_grades: int) -> FloatArray:
    """Shares of grades on another scale: merged as the papers do, or grades above 0 split evenly.

    Args:
        counts: documents of each grade.
        n_grades: of the new scale; 0 keeps the scale.

    >>> regraded(np.array([70.0, 16.0, 14.0]), 2).round(2).tolist()
    [0.7, 0.3]
    >>> regraded(np.array([90.0, 10.0]), 3).tolist()
    [0.9, 0.05, 0.05]
    """
    shares: FloatArray = counts / counts.sum()
    old = len(counts)
    if n_grades in (0, old):
        return shares
    if (old, n_grades) in MERGES:
        return np.bincount(MERGES[old, n_grades], shares).astype(np.float64)
    parts, rest = divmod(n_grades - 1, old - 1)
    if not parts or rest:
        raise invalid("grades", f"must be a scale that {old} grades can be brought to", n_grades)
    return np.concatenate(([shares[0]], np.repeat(shares[1:] / parts, parts)))


def _whole(means: dict[str, float]) -> Result:
    """A result of the whole data set, of which single queries have no part."""
    return Result("done", {name: np.array([v]) for name, v in means.items()}, means, ["all queries"])
