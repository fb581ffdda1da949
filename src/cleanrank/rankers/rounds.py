"""What a forest says of rows after 1, 2, 3, ... rounds, one round in memory at a time.

LightGBM hands the current predictions of a watched set to its metric function; an observer reads them there.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import lightgbm
import numpy as np

from cleanrank.errors import invalid
from cleanrank.rankers.grades import DEFAULTS
from cleanrank.rankers.settings import by_main_name, in_our_words, refuse_broken, run_settings
from cleanrank.types import Array, RankingData
from cleanrank.validation import is_integer, one_of

# Sees (rounds so far, predictions): probabilities (N, C) of grades, or scores (N,) of a ranking.
RoundObserver: TypeAlias = Callable[[int, Array], None]


def watch_rounds(
    train: RankingData,
    rows: RankingData | None,
    observer: RoundObserver,
    *,
    objective: str = "grades",
    n_grades: int | None = None,
    rounds: int = 50,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
) -> None:
    """Trains on ``train`` and shows the observer every round's predictions for ``rows``.

    Args:
        train: judged rows.
        rows: rows to watch; None means those of ``train``.
        observer: sees (rounds so far, predictions); the array may be written over later.
        objective: "grades" (a probability of every grade) or "ranking" (LambdaRank scores).
        n_grades: C; the highest grade of ``train`` plus one when not given.
        rounds: rounds of boosting.
        params: LightGBM parameters that replace DEFAULTS.
        seed: for LightGBM.
        n_jobs: threads.

    >>> import cleanrank as cr
    >>> seen = []
    >>> data = cr.make_ranking(10, 3, docs_per_query=10, seed=0)
    >>> watch_rounds(data, None, lambda i, p: seen.append((i, p.shape)), rounds=2)
    >>> seen
    [(1, (108, 3)), (2, (108, 3))]
    """
    one_of("objective", objective, OBJECTIVES)
    if not is_integer(rounds) or rounds < 1:
        raise invalid("rounds", "must be a whole number from 1 on", repr(rounds))
    given = by_main_name(params)
    refuse_broken(given)
    C = max(train.n_grades, 2) if n_grades is None else n_grades
    settings = DEFAULTS | OBJECTIVES[objective](C) | {"metric": "None"} | run_settings(seed, n_jobs) | given
    grouped = objective == "ranking"
    learn = lightgbm.Dataset(
        train.X, label=train.y, weight=train.weights, group=train.lengths if grouped else None
    )
    watched = learn
    if rows is not None:
        watched = lightgbm.Dataset(
            rows.X, label=rows.y, group=rows.lengths if grouped else None, reference=learn
        )
    seen = 0

    def show(predictions: Array, _: lightgbm.Dataset) -> tuple[str, float, bool]:
        nonlocal seen
        seen += 1
        observer(seen, np.asarray(predictions))
        return "seen", float(seen), True

    with in_our_words(settings, train):
        lightgbm.train(settings, learn, num_boost_round=rounds, valid_sets=[watched], feval=show)


OBJECTIVES: dict[str, Callable[[int], dict[str, Any]]] = {
    "grades": lambda n_grades: {"objective": "multiclass", "num_class": n_grades},
    "ranking": lambda n_grades: {
        "objective": "lambdarank",
        "label_gain": [2**g - 1 for g in range(n_grades)],
    },
}
