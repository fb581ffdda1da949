"""What early stopping looks at: one of our measures, or one of LightGBM's."""

from typing import Any

import lightgbm

from cleanrank.errors import invalid
from cleanrank.metrics.evaluation import evaluate
from cleanrank.metrics.measure import Measure
from cleanrank.types import FloatArray, RankingData
from cleanrank.validation import one_of

LIGHTGBM_MEASURE = "lightgbm:"
# LightGBM's measures -> whether they have a cut-off.
LIGHTGBM_MEASURES: dict[str, bool] = {
    "ndcg": True,
    "map": True,
    "auc": False,
    "average_precision": False,
    "rmse": False,
    "l1": False,
    "l2": False,
}


class Watched:
    """What early stopping looks at.

    Attributes:
        name: as LightGBM records it.
        settings: LightGBM parameters.
        feval: LightGBM's callable; None for its own measures.
    """

    def __init__(self, measure: str | Measure, validation: RankingData | None, n_jobs: int | None) -> None:
        if isinstance(measure, str) and measure.startswith(LIGHTGBM_MEASURE):
            self.name = measure.removeprefix(LIGHTGBM_MEASURE)
            self.settings: dict[str, Any] = lightgbm_measure(self.name)
            self.feval = None
            return
        parsed = Measure.parse(measure) if isinstance(measure, str) else measure
        if not isinstance(parsed, Measure):
            raise invalid("measure", "must be text or a Measure", repr(measure), remedy="Try 'ndcg@10'.")
        self.name = str(parsed)
        self.settings = {"metric": "None"}

        def value(scores: FloatArray, _: lightgbm.Dataset) -> tuple[str, float, bool]:
            assert validation is not None
            found = evaluate(scores, validation, [parsed], n_jobs=n_jobs)
            return self.name, float(found.means[self.name]), True

        self.feval = value


def lightgbm_measure(name: str) -> dict[str, Any]:
    """The parameters that make LightGBM watch its own measure.

    >>> lightgbm_measure("ndcg@10")
    {'metric': 'ndcg', 'eval_at': [10]}
    """
    metric, _, cutoff = name.partition("@")
    cut = LIGHTGBM_MEASURES[one_of("measure of LightGBM", metric, LIGHTGBM_MEASURES)]
    if cut != bool(cutoff) or (cutoff and not (cutoff.isdecimal() and int(cutoff) > 0)):
        rule = "needs a cut-off from 1 on" if cut else "has no cut-off"
        raise invalid(
            f"LightGBM's {metric}", rule, repr(name), remedy="As in 'lightgbm:ndcg@10'." if cut else ""
        )
    return {"metric": metric} | ({"eval_at": [int(cutoff)]} if cut else {})
