"""Users who click: how each kind treats a ranked list.

Users click what they examine and find relevant. Of a document with grade s on a scale up to s_max,

    P(r = 1 | s) = eps + (1 - eps) (2^s - 1) / (2^s_max - 1),

with eps = 0 (``way="first"``) or .1 (``way="second"``). Position-based users (``pbm``, ``trust``) examine
each rank with a probability of its own; cascade users (``cascade``, ``ccm``) go down the list and stop.
Entries are the documents shown, in rank order, list by list, cut by ``indptr``; ``r`` is P(relevant) of each.

A click model has a ``name``, the ``noise`` eps, ``draw`` for the clicks of one pass over the lists, and
``chances``: (b, w) with P(click on an entry | clicks above it) = b + w r.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.jit import kernel
from cleanrank.types import Array, FloatArray, IntArray
from cleanrank.validation import check_number, one_of

EXAMINATION = (0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06)
WAYS = {"first": 0.0, "second": 0.1}
CCM = (0.95, 0.30, 0.05)
# Walks are compiled when first used: importing the models must not load numba.
compiled = functools.cache(kernel())

Clicks: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class PositionModel:
    """Users who examine rank k with probability ``examination[k - 1] ** eta``, whatever else is in the list.

    An examined document is clicked with probability ``trust_plus[k - 1]`` if relevant, ``trust_minus[k - 1]``
    if not; the last value of each vector holds for all further ranks.
    """

    name: str = "pbm"
    noise: float = 0.0
    examination: tuple[float, ...] = EXAMINATION
    eta: float = 1.0
    trust_plus: tuple[float, ...] = (1.0,)
    trust_minus: tuple[float, ...] = (0.0,)

    def __post_init__(self) -> None:
        probabilities("noise", (self.noise,))
        for field in ("examination", "trust_plus", "trust_minus"):
            object.__setattr__(self, field, probabilities(field, getattr(self, field)))
        check_number("eta", self.eta, least=0)

    def examined(self, position: npt.ArrayLike) -> FloatArray:
        """P(examined) at ranks counted from 1.

        >>> round(float(pbm().examined(np.arange(1, 104)).mean()), 4)
        0.0827
        """
        return _at(self.examination, position) ** self.eta

    def draw(self, r: FloatArray, position: IntArray, indptr: IntArray, rng: np.random.Generator) -> Clicks:
        """Draws the clicks of one pass over the lists."""
        base, weight = self.chances(r, position, indptr, np.zeros(0, dtype=np.bool_))
        return np.asarray(rng.random(len(r)) < base + weight * r)

    def chances(
        self, r: FloatArray, position: IntArray, indptr: IntArray, clicks: Clicks
    ) -> tuple[FloatArray, FloatArray]:
        """(b, w) with P(click) = b + w r."""
        seen = self.examined(position)
        plus, minus = _at(self.trust_plus, position), _at(self.trust_minus, position)
        return seen * minus, seen * (plus - minus)


@dataclass(frozen=True)
class CascadeModel:
    """Users who go down the list: E_1 = 1, P(click | examined) = r, and then go on or leave.

    They go on with probability a1 after no click and a2 (1 - r) + a3 r after a click (Guo et al. 2009).
    """

    name: str = "ccm"
    noise: float = 0.0
    goes_on: tuple[float, float, float] = CCM

    def __post_init__(self) -> None:
        probabilities("noise", (self.noise,))
        alphas = probabilities("goes_on", self.goes_on)
        if len(alphas) != 3:
            raise invalid("goes_on", "must be the three probabilities a1, a2, a3", self.goes_on)
        object.__setattr__(self, "goes_on", alphas)

    def draw(self, r: FloatArray, position: IntArray, indptr: IntArray, rng: np.random.Generator) -> Clicks:
        """Draws the clicks of one pass over the lists."""
        clicks = np.zeros(len(r), dtype=np.bool_)
        look, leave = rng.random(len(r)), rng.random(len(r))
        compiled(walk)(r, indptr, look, leave, *self.goes_on, clicks)
        return clicks

    def chances(
        self, r: FloatArray, position: IntArray, indptr: IntArray, clicks: Clicks
    ) -> tuple[FloatArray, FloatArray]:
        """(0, w) with w = P(examined | the clicks above); takes the relevance of those above as known."""
        weight = np.empty(len(r))
        compiled(examined_given_clicks)(r, clicks, indptr, *self.goes_on, weight)
        return np.zeros(len(r)), weight


ClickModel: TypeAlias = PositionModel | CascadeModel


def pbm(
    *,
    way: str = "first",
    noise: float | None = None,
    eta: float = 1.0,
    examination: Sequence[float] = EXAMINATION,
) -> PositionModel:
    """Position-based users: a click where a document is examined and relevant.

    The default examination probabilities stem from the eye tracking of Joachims et al. (2005); ranks beyond
    the tenth have the tenth's .06.
    """
    return PositionModel("pbm", _noise(way, noise), tuple(examination), eta)


def trust(
    *,
    way: str = "first",
    noise: float | None = None,
    eta: float = 1.0,
    examination: Sequence[float] = EXAMINATION,
    plus: Sequence[float] | None = None,
    minus: Sequence[float] | None = None,
) -> PositionModel:
    """Position-based users who trust the engine: high ranks get clicks that their documents do not deserve.

    The model is that of Agarwal et al. (2019), the default values are ours: when examined at rank k, relevant
    documents are clicked with probability 1 - (min(k, 20) + 1) / 100 and others with .65 / min(k, 10).
    """
    ranks = np.arange(1, 21)
    plus = tuple(1 - (ranks + 1) / 100) if plus is None else tuple(plus)
    minus = tuple(0.65 / np.minimum(ranks, 10)) if minus is None else tuple(minus)
    return PositionModel("trust", _noise(way, noise), tuple(examination), eta, plus, minus)


def cascade(*, way: str = "first", noise: float | None = None) -> CascadeModel:
    """Users who go down the list until their first click (Craswell et al. 2008)."""
    return CascadeModel("cascade", _noise(way, noise), (1.0, 0.0, 0.0))


def ccm(
    *,
    way: str = "first",
    noise: float | None = None,
    a1: float = CCM[0],
    a2: float = CCM[1],
    a3: float = CCM[2],
) -> CascadeModel:
    """The click chain model; the defaults give about the click rates reported by Wu et al. (2022)."""
    return CascadeModel("ccm", _noise(way, noise), (a1, a2, a3))


def make_click_model(model: str | ClickModel, options: Mapping[str, Any] | None = None) -> ClickModel:
    """A click model by the name of its family, or as it is; ``options`` go with a name.

    >>> make_click_model("ccm", {"a1": 1.0, "a2": 0.0, "a3": 0.0}).goes_on
    (1.0, 0.0, 0.0)
    """
    if not isinstance(model, str):
        if options:
            raise invalid("options", "go with a named model, not with a click model", dict(options))
        if not isinstance(model, ClickModel):
            raise invalid("model", "must be a click model or the name of one", repr(model)[:80])
        return model
    family = CLICK_MODELS[one_of("click model", model, CLICK_MODELS)]
    takes = inspect.signature(family).parameters
    for option in options or {}:
        one_of(f"option of click model {model!r}", option, takes)
    try:
        return family(**(options or {}))
    except TypeError as error:
        subject = f"options of click model {model!r}"
        raise invalid(subject, "must have fitting types", options, remedy=f"({error})") from error


def relevance(grades: npt.ArrayLike, top_grade: int, noise: float = 0.0) -> FloatArray:
    """P(r = 1 | s) = noise + (1 - noise) (2^s - 1) / (2^top - 1).

    >>> relevance([0, 1, 2, 3, 4], 4, 0.1).round(2).tolist()
    [0.1, 0.16, 0.28, 0.52, 1.0]
    """
    s = np.asarray(grades, dtype=np.float64)
    if top_grade < 1 or (s.size and s.max() > top_grade):
        raise invalid("top_grade", "must be at least 1 and the highest grade", top_grade)
    return np.asarray(noise + (1 - noise) * (2.0**s - 1) / (2.0**top_grade - 1), dtype=np.float64)


def _noise(way: str, noise: float | None) -> float:
    return WAYS[one_of("way", way, WAYS)] if noise is None else noise


def _at(values: tuple[float, ...], position: npt.ArrayLike) -> FloatArray:
    place = np.minimum(np.asarray(position), len(values)) - 1
    return np.asarray(np.asarray(values, dtype=np.float64)[place])


def probabilities(name: str, values: Sequence[float]) -> tuple[float, ...]:
    """Values as floats, if all lie in [0, 1]."""
    p = np.asarray(values, dtype=np.float64)
    if p.ndim != 1 or not len(p) or not ((p >= 0) & (p <= 1)).all():
        raise invalid(name, "must lie in [0, 1]", values)
    return tuple(float(v) for v in p)


def walk(
    r: FloatArray,
    indptr: IntArray,
    look: FloatArray,
    leave: FloatArray,
    a1: float,
    a2: float,
    a3: float,
    out: Array,
) -> None:
    """Clicks of users who go down a list one by one; ``look`` and ``leave`` are draws from [0, 1)."""
    for q in range(len(indptr) - 1):
        examined = True
        for i in range(indptr[q], indptr[q + 1]):
            out[i] = False
            if not examined:
                continue
            out[i] = look[i] < r[i]
            goes_on = a2 * (1 - r[i]) + a3 * r[i] if out[i] else a1
            examined = leave[i] < goes_on


def examined_given_clicks(
    r: FloatArray, clicks: Array, indptr: IntArray, a1: float, a2: float, a3: float, out: FloatArray
) -> None:
    """P(entry examined | the clicks above it): Bayes' rule from the top of each list down."""
    for q in range(len(indptr) - 1):
        e = 1.0
        for i in range(indptr[q], indptr[q + 1]):
            out[i] = e
            if clicks[i]:
                e = a2 * (1 - r[i]) + a3 * r[i]
            else:
                unseen = 1 - e * r[i]
                e = a1 * e * (1 - r[i]) / unseen if unseen > 0 else 0.0


CLICK_MODELS: dict[str, Callable[..., ClickModel]] = {
    "pbm": pbm,
    "ccm": ccm,
    "cascade": cascade,
    "trust": trust,
}
