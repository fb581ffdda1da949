"""Fields of the moment: weekday, hour, season, out of times in seconds."""

from collections.abc import Callable, Mapping

import numpy as np

from cleanrank.types import IntArray

DAY = 86_400


def _month(times: IntArray) -> IntArray:
    return times.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64) % 12


def _day_of_month(times: IntArray) -> IntArray:
    days = times.astype("datetime64[s]").astype("datetime64[D]")
    return np.asarray(days - days.astype("datetime64[M]"), dtype=np.int64)


def _weekday(times: IntArray) -> IntArray:
    """From Monday, 0; 1 January 1970 was a Thursday."""
    return (times // DAY + 3) % 7


# Field of the moment -> how many values it has, and the value of a time, from 0.
CONTEXTS: Mapping[str, tuple[int, Callable[[IntArray], IntArray]]] = {
    "weekday": (7, _weekday),
    "weekend": (2, lambda times: (_weekday(times) >= 5).astype(np.int64)),
    "hour": (24, lambda times: times // 3600 % 24),
    "season": (4, lambda times: _month(times) // 3),
    "half_month": (2, lambda times: (_day_of_month(times) >= 15).astype(np.int64)),
}
