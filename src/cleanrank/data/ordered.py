"""Events in order of users and times, and rows made of them: what the protocols share."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cleanrank.data.behaviours import ClickRows, Codes, Layout
from cleanrank.data.events import Events
from cleanrank.data.moments import CONTEXTS
from cleanrank.data.vocabulary import Vocabulary
from cleanrank.types import IntArray
from cleanrank.validation import check_memory


@dataclass(frozen=True)
class OrderedEvents:
    """Events in order of users and times; ``clicks`` are the items of the clicks alone.

    ``before`` counts the clicks that stand before an event (None: all events are clicks), so the clicks of
    user u before event e are ``clicks[begin[u]:clicks_before(e)]``. ``order`` is empty unless it was wanted.
    """

    events: Events
    indptr: IntArray
    order: IntArray
    items: Codes
    times: IntArray | None
    clicked: npt.NDArray[np.bool_]
    parts: npt.NDArray[np.int8] | None
    clicks: Codes
    before: IntArray | None
    begin: IntArray
    report: Counter[str]

    def clicks_before(self, events: IntArray) -> IntArray:
        """The clicks, of all users, that stand before events."""
        return events if self.before is None else self.before[events]


@dataclass(frozen=True)
class Coded:
    """The codes of all users and items of a log, (U, Fu) and (I, Fi), and what they stand for."""

    vocabulary: Vocabulary
    user: Codes
    item: Codes

    def layout(self, context: tuple[str, ...]) -> Layout:
        """The fields of rows in these codes."""
        moments = {name: CONTEXTS[name][0] + 1 for name in context}
        return Layout(self.vocabulary.sizes("user"), self.vocabulary.sizes("item"), moments)


def in_order(events: Events, *, wants_order: bool = False) -> OrderedEvents:
    """Sorts the events of every user by time; what was found is counted in ``report``."""
    from cleanrank.data._event_kernels import by_user_and_time

    report = Counter({"events": len(events), "users": len(events.user_ids), "items": len(events.item_ids)})
    report.update(events.report)
    times = np.zeros(0, dtype=np.int64) if events.times is None else events.times
    needs_order = wants_order or events.clicked is not None or events.parts is not None
    indptr, order, items, times, falls = by_user_and_time(
        events.users, events.items, times, len(events.user_ids), needs_order
    )
    if events.times is not None:
        report["events that were out of order and were sorted by time"] = falls
    before, begin, clicked = None, indptr, np.ones(len(items), dtype=np.bool_)
    if events.clicked is not None:
        clicked = events.clicked[order]
        counts = np.append(0, np.cumsum(clicked, dtype=np.int64))
        before, begin = counts[:-1], counts[indptr]
    return OrderedEvents(
        events=events,
        indptr=indptr,
        order=order,
        items=items,
        times=None if events.times is None else times,
        clicked=clicked,
        parts=None if events.parts is None else events.parts[order],
        clicks=items if events.clicked is None else items[clicked],
        before=before,
        begin=begin,
        report=report,
    )


def histories_of(log: OrderedEvents, codes: Coded, begin: IntArray, end: IntArray, history: int) -> Codes:
    """The codes of the clicks from ``begin`` to ``end``, at most ``history`` of them each."""
    from cleanrank.data._event_kernels import fill_histories

    return fill_histories(log.clicks, codes.item, begin, end, history)


@dataclass(frozen=True)
class Targets:
    """Events that become rows."""

    events: IntArray  # (K,) in rising order
    clicked: npt.NDArray[np.bool_]  # (K,)
    negatives: Codes  # (K, n) items that stand against a click
    skipped: int = 0  # clicks right before a target that its history leaves out


def rows_of(
    log: OrderedEvents,
    codes: Coded,
    targets: Targets,
    history: int,
    context: tuple[str, ...],
    histories: Codes | None = None,
) -> ClickRows:
    """Each target, then its negatives; ``histories``, if given, are what ``histories_of`` makes of them."""
    from cleanrank.data._event_kernels import users_of

    events, clicked, negatives = targets.events, targets.clicked, targets.negatives
    fields = codes.item.shape[1]
    size = 4 * len(events) * (history * fields + (1 + negatives.shape[1]) * (fields + 8))
    check_memory("targets=", 3 * size)
    per_target = 1 + clicked * negatives.shape[1]
    target_of = np.repeat(np.arange(len(events)), per_target)
    first = np.append(True, np.diff(target_of) > 0)
    item = np.empty(len(target_of), dtype=np.int32)
    item[first], item[~first] = log.items[events], negatives[clicked].ravel()
    user = users_of(log.indptr, events)
    end = log.clicks_before(events) - targets.skipped
    begin = np.maximum(log.begin[user], end - history)
    event = events[target_of]
    times = None if log.times is None else log.times[event]
    moments = [CONTEXTS[name][1](times) + 1 for name in context if times is not None]
    return ClickRows(
        user=codes.user[user[target_of]],
        item=codes.item[item],
        context=np.stack(moments, axis=1) if moments else np.zeros((len(event), 0), dtype=np.int32),
        y=(first & clicked[target_of]).astype(np.int32),
        history_of=target_of,
        histories=histories_of(log, codes, begin, end, history) if histories is None else histories,
        lengths=(end - begin).astype(np.int32),
        layout=codes.layout(context),
        users=user[target_of].astype(np.int64),
        times=times,
        vocabulary=codes.vocabulary,
    )


def code_events(
    events: Events, vocabulary: Vocabulary, *, history: int = 20, context: tuple[str, ...] = ()
) -> ClickRows:
    """One row for every event, in the order of the events, coded by the tables of a trained model.

    The history of a row is what its user clicked before in these events. Nothing is drawn or left out: y says
    whether the event was a click.

    Args:
        events: a log, as ``read_events`` gives it, with the fields of the training log.
        vocabulary: the tables, such as ``splits.train.vocabulary``.
        history: how many of the last clicks are kept.
        context: fields of the moment, those of the training rows.

    Returns:
        The rows; ``unknown`` of them counts ids without a code.

    >>> import pyarrow as pa
    >>> from cleanrank.data.events import read_events
    >>> tables = Vocabulary(user={"user": np.array([7])}, item={"item": np.array(["a", "c"])})
    >>> log = pa.table({"user": [7, 8, 7], "item": ["c", "b", "a"], "time": [5, 4, 9]})
    >>> rows = code_events(read_events(log), tables, history=2)
    >>> rows.item[:, 0].tolist(), rows.histories[rows.history_of[2], :, 0].tolist(), rows.unknown
    ([2, 0, 1], [2, 0], {'user': 1, 'item': 1})
    """
    log = in_order(events, wants_order=True)
    codes = Coded(vocabulary, vocabulary.codes(events, "user"), vocabulary.codes(events, "item"))
    everything = np.arange(len(events))
    none = np.zeros((len(events), 0), dtype=np.int32)
    rows = rows_of(log, codes, Targets(everything, log.clicked, none), history, context)
    place = np.empty(len(events), dtype=np.int64)
    place[log.order] = everything
    return rows.select(place)
