"""Whether enough was judged: intervals that hold at all looks together.

Whoever looks after every batch, and stops when the interval is narrow enough, has as many chances to be wrong
as there are looks. So look k = 1, 2, ... has the level 1 - alpha / (k (k + 1)). These alphas sum to alpha
over all looks, however many there are: with probability 1 - alpha the intervals of all looks hold, and with
them the last one, whenever that is.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cleanrank.judges.evaluation import compare_with_judge, evaluate_with_judge
from cleanrank.judges.labels import Labels
from cleanrank.metrics.measure import Measure
from cleanrank.types import Run


@dataclass(frozen=True)
class Look:
    """The widest interval when a batch was judged.

    Attributes:
        number: of the look, from 1.
        system: whose interval it is; of a difference, ``"NAME - BASELINE"``.
        mean: the estimate.
        low: lower end of its interval.
        high: upper end.
        level: of this look's interval.
        wanted: the width that was asked for.
    """

    number: int
    system: str
    mean: float
    low: float
    high: float
    level: float
    wanted: float

    @property
    def width(self) -> float:
        """Of the interval."""
        return self.high - self.low

    @property
    def enough(self) -> bool:
        """Whether the interval is as narrow as was asked for."""
        return self.width <= self.wanted

    def __repr__(self) -> str:
        verdict = "enough" if self.enough else "not enough"
        interval = f"{self.mean:.4f} [{self.low:.4f}, {self.high:.4f}]"
        asked = f"{self.width:.4f} wide at level {self.level:.4g}, {self.wanted:g} was asked for"
        return f"Look({self.number}: {self.system} {interval}, {asked}: {verdict})"


def level_of(look: int, level: float) -> float:
    """The level of look 1, 2, ..., so that the intervals of all looks together have ``level``.

    >>> [round(level_of(k, 0.95), 4) for k in (1, 2, 3)]
    [0.975, 0.9917, 0.9958]
    """
    return 1.0 - (1.0 - level) / (look * (look + 1))


def look_at(
    runs: Mapping[str, Run],
    judge: Labels,
    gold: Labels,
    measure: Measure,
    *,
    number: int,
    width: float,
    level: float,
    unit: str,
    difference: bool,
) -> Look:
    """The widest interval of all systems, or that of the difference of two, for these queries."""
    estimate = compare_with_judge if difference else evaluate_with_judge
    own = level_of(number, level)
    found = estimate(dict(runs), judge=judge, gold=gold, measure=measure, design=unit, level=own)
    widest = max(found.values() if isinstance(found, dict) else [found], key=lambda each: each.width)
    mean, low, high = (float(each) for each in (widest.mean, widest.low, widest.high))
    return Look(number, widest.system, mean, low, high, own, float(width))
