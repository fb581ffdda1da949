"""Simulated clicks: users of a known kind look at ranked lists of judged documents.

``simulate_clicks`` gives a log, ``static_clicks`` data to train on (one click vector per query),
``online_clicks`` an endless stream of freshly clicked lists.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from cleanrank.clicks.logs import ClickLog
from cleanrank.clicks.models import ClickModel, make_click_model, probabilities, relevance
from cleanrank.data.inputs import check_data, scores_by_row
from cleanrank.errors import invalid
from cleanrank.ragged import indptr_of, rank_order
from cleanrank.types import FloatArray, IntArray, RankingData
from cleanrank.validation import check_integer, check_seed

MOST_EMPTY = 200

Flip: TypeAlias = float | tuple[float, float] | None


class Showing(TypedDict, total=False):
    """How lists are shown and clicks flipped; ``simulate_clicks`` says what each argument means."""

    scores: npt.ArrayLike | None
    flip: Flip
    cutoff: int | None
    top_grade: int | None
    options: Mapping[str, Any] | None


def simulate_clicks(
    data: RankingData,
    model: str | ClickModel = "pbm",
    *,
    scores: npt.ArrayLike | None = None,
    order: str | None = None,
    sessions: int = 1,
    seed: int = 0,
    flip: Flip = None,
    cutoff: int | None = None,
    top_grade: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> ClickLog:
    """Clicks of simulated users on judged documents.

    Args:
        data: judged documents; the grades decide what is relevant.
        model: the name of a family in ``CLICK_MODELS`` or a click model.
        scores: the ranking that is shown; without it ``data.positions``, else the order of the rows.
        order: of the scores, as in ``evaluate``.
        sessions: how often every query's list is shown; more sessions leave the first ones as they were.
        seed: same seed, same clicks.
        flip: probability that a click or non-click is flipped, or a pair (lost clicks, false clicks).
        cutoff: ranks shown; without it the whole list.
        top_grade: the scale's highest grade, when it does not occur in ``data``.
        options: further arguments of a named model, such as ``{"way": "second"}``.

    Returns:
        The lists shown and the clicks on them.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((4, 1)), [4, 0, 0, 0], qid=[1] * 4)
    >>> simulate_clicks(data, "cascade", sessions=3).click.reshape(3, 4).astype(int).tolist()
    [[1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]
    """
    check_data(data)
    if scores is not None:
        scores = scores_by_row(scores, data, order)
    showing = Showing(scores=scores, flip=flip, cutoff=cutoff, top_grade=top_grade, options=options)
    return ClickLog.joined(list(click_sessions(data, model, sessions=sessions, seed=seed, **showing)))


def click_sessions(
    data: RankingData,
    model: str | ClickModel = "pbm",
    *,
    sessions: int = 1,
    seed: int = 0,
    **showing: Unpack[Showing],
) -> Iterator[ClickLog]:
    """``simulate_clicks`` one session at a time, for logs larger than memory."""
    check_integer("sessions", sessions, least=1)
    check_seed(seed)
    lists = _Lists.of(data, model, **showing)
    queries = np.arange(data.n_queries)
    for session in range(sessions):
        # Draws of its own, so that more sessions leave the first ones as they were.
        yield lists.log(queries, session, np.random.default_rng((seed, session)), seed)


def static_clicks(
    data: RankingData, model: str | ClickModel = "pbm", *, seed: int = 0, **showing: Unpack[Showing]
) -> RankingData:
    """Data whose labels are one draw of clicks per query and whose ``positions`` are the ranks shown."""
    log = simulate_clicks(data, model, seed=seed, **showing)
    y, positions = np.zeros(data.n_docs, np.int32), np.zeros(data.n_docs, np.int32)
    y[log.row], positions[log.row] = log.click, log.position
    return replace(data, y=y, positions=positions, gains=None)


def online_clicks(
    data: RankingData,
    model: str | ClickModel = "pbm",
    *,
    lists: int = 256,
    skip_empty: bool = True,
    seed: int = 0,
    **showing: Unpack[Showing],
) -> Iterator[ClickLog]:
    """An endless stream of logs: each step shows ``lists`` queries drawn at random.

    ``skip_empty`` replaces lists without a click by others, as training on clicks usually does. Step t
    depends on the seed and t alone.
    """
    check_integer("lists", lists, least=1)
    check_seed(seed)
    if not data.n_docs:
        raise invalid("data", "must hold a document to show", "none")
    drawn = _Lists.of(data, model, **showing)
    for step in itertools.count():
        rng = np.random.default_rng((seed, step))
        parts: list[ClickLog] = []
        count = empty_draws = 0
        while count < lists:
            queries = rng.integers(0, data.n_queries, lists)
            log = drawn.log(queries, step, rng, seed)
            if skip_empty:
                log = log.select_lists(log.clicks_per_list > 0)
            log = log.select_lists(np.arange(log.n_lists) < lists - count)
            empty_draws = 0 if log.n_lists else empty_draws + 1
            if empty_draws > MOST_EMPTY:
                remedy = "Say skip_empty=False or noise=."
                none = f"none in {MOST_EMPTY * lists:,}"
                raise invalid("lists", "must get a click now and then", none, remedy=remedy)
            count += log.n_lists
            parts.append(log)
        yield replace(ClickLog.joined(parts), session=np.arange(step * lists, (step + 1) * lists))


@dataclass(frozen=True, eq=False)
class _Lists:
    """Lists as users see them: rows in rank order, P(relevant), the model and the flips."""

    data: RankingData
    model: ClickModel
    flip: tuple[float, float]
    top_grade: int
    row: IntArray
    position: IntArray
    indptr: IntArray
    r: FloatArray

    @classmethod
    def of(
        cls,
        data: RankingData,
        model: str | ClickModel,
        scores: npt.ArrayLike | None = None,
        flip: Flip = None,
        cutoff: int | None = None,
        top_grade: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> "_Lists":
        users = make_click_model(model, options)
        if cutoff is not None:
            check_integer("cutoff", cutoff, least=1)
        row = shown_order(data, scores)
        position = np.arange(1, data.n_docs + 1) - np.repeat(data.indptr[:-1], data.lengths)
        lengths = data.lengths
        if cutoff is not None:
            row, position = row[position <= cutoff], position[position <= cutoff]
            lengths = np.minimum(lengths, cutoff)
        top = max(1, data.n_grades - 1) if top_grade is None else top_grade
        r = relevance(data.y[row], top, users.noise)
        return cls(data, users, flip_rates(flip), top, row, position, indptr_of(lengths), r)

    def log(self, queries: IntArray, session: int, rng: np.random.Generator, seed: int) -> ClickLog:
        """The lists of ``queries`` with clicks that are drawn, then flipped."""
        at, indptr = self._entries(queries)
        clicks = self.model.draw(self.r[at], self.position[at], indptr, rng)
        if any(self.flip):
            lost, false = self.flip
            clicks = clicks ^ (rng.random(len(clicks)) < np.where(clicks, lost, false))
        settings = {
            "model": self.model.name,
            "parameters": {k: v for k, v in vars(self.model).items() if k != "name"},
            "flip": self.flip,
            "top_grade": self.top_grade,
            "seed": seed,
        }
        number = np.full(len(queries), session, dtype=np.int64)
        return ClickLog(self.data, queries, number, indptr, self.row[at], self.position[at], clicks, settings)

    def _entries(self, queries: IntArray) -> tuple[Any, IntArray]:
        lengths = np.diff(self.indptr)[queries]
        indptr = indptr_of(lengths)
        if len(queries) == len(self.indptr) - 1 and (queries[1:] > queries[:-1]).all():
            return slice(None), indptr
        shift = np.repeat(self.indptr[:-1][queries] - indptr[:-1], lengths)
        return np.arange(indptr[-1]) + shift, indptr


def shown_order(data: RankingData, scores: npt.ArrayLike | None) -> IntArray:
    """Rows in the order shown, query by query: by score, else by ``data.positions``, else as they stand."""
    if scores is None:
        if data.positions is None:
            return np.arange(data.n_docs)
        return rank_order(-data.positions.astype(np.float64), data.indptr)
    s = np.asarray(scores, dtype=np.float64)
    if s.shape != (data.n_docs,) or np.isnan(s).any():
        raise invalid("scores", f"must hold a number for each of the {data.n_docs} rows", f"shape {s.shape}")
    return rank_order(s, data.indptr)


def flip_rates(flip: Flip) -> tuple[float, float]:
    """(e_plus, e_minus): P(a click is lost), P(a non-click becomes one)."""
    if flip is None:
        return 0.0, 0.0
    pair = (flip, flip) if isinstance(flip, int | float) else tuple(flip)
    if len(pair) != 2:
        raise invalid("flip", "must be one rate or a pair (e_plus, e_minus)", flip)
    probabilities("flip", pair)
    return float(pair[0]), float(pair[1])
