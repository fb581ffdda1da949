"""From a log of events to rows to learn from: which clicks are targets, what stands against them, which part.

Two protocols.

``sound`` (default). Every click with enough clicks before it is a target, and its history is what the user
clicked before, no more. Where times are given, two moments cut the whole log: what happens before the first
is training, then validation, then test, so that nothing is learnt from what comes later; where files say what
is training and what is test, they decide; else the last click of a user tests, the one before it validates.
Negatives are items of the log that the user had not clicked before and that are not the target. All items of
the log count, those that are first clicked later too: an item is there before its first click, and if only
items with earlier clicks could be negatives, "never seen before" would give the label of new items away.
Clicks on an item that the user had clicked before are no targets: since no negative is such an item, "clicked
before" would give their label away.
Ids with fewer than ``rare`` training clicks share code 0, so that this code is learnt and new ids can be
scored.

``ubr``: what the code of UBR4CTR does, and with it the figures of PeerRank's Table 1. Its quirks:

* all three parts have one history, all but the user's last three clicks: training targets of one user are
  later than test targets of another, and the validation click is missing from the test history;
* a negative is, with probability ``own`` (1/2; Alipay's 4/5), an item of the user's own history: half of the
  labels "not clicked" are about items that were clicked (erratum B7);
* no check that a negative differs from the target or was not clicked, and random ones are drawn from all
  items, those of the future too;
* clicked and not clicked are exactly as frequent, whatever the real rate is;
* codes cover the ids of all parts, so items that only occur in tests have a code that is never learnt.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.data.behaviours import ClickSplits
from cleanrank.data.events import Events, listed
from cleanrank.data.moments import CONTEXTS
from cleanrank.data.ordered import Coded, OrderedEvents, Targets, histories_of, in_order, rows_of
from cleanrank.data.vocabulary import vocabulary_of
from cleanrank.errors import invalid
from cleanrank.types import IntArray
from cleanrank.validation import check_integer, check_number, check_numbers, check_seed, one_of

PARTS = ("train", "validation", "test")
SHARES = (0.8, 0.1, 0.1)
DRAWS = ("uniform", "popular")
PROTOCOLS = ("sound", "ubr")


def prepare_clicks(
    events: Events,
    *,
    protocol: str = "sound",
    history: int = 20,
    least: int = 1,
    negatives: int | None = None,
    context: Sequence[str] = (),
    shares: Sequence[float] = SHARES,
    targets: int | None = None,
    draw: str = "uniform",
    rare: int = 2,
    repeats: bool = False,
    own: float = 0.5,
    seed: int = 0,
) -> ClickSplits:
    """Rows of clicks and negatives with histories, in three parts.

    What is left out is counted, by reason, in the ``report`` of the result.

    Args:
        events: the log, as ``read_events`` gives it; a user's events need not be sorted by time.
        protocol: "sound" or "ubr"; the module's text says what they do, and what is wrong with the second.
        history: how many of the last clicks before a target are kept.
        least: a target needs this many earlier clicks of the user, else it is dropped.
        negatives: how many items stand against each click; 1 by default, and 0 where the log itself says what
            was shown and not clicked.
        context: fields of the moment, out of "weekday", "weekend", "hour", "season", "half_month".
        shares: of clicks in training, validation and test data, by time.
        targets: at most this many last targets of a user in each part; None for all.
        draw: "uniform" over items, or "popular": as often as they are clicked in the log.
        rare: ids with fewer training clicks share code 0.
        repeats: whether clicks on items that the user had clicked before are targets too.
        own: for "ubr", the probability that a negative comes from the user's own history.
        seed: of the negatives.

    ``shares``, ``targets``, ``draw``, ``rare`` and ``repeats`` belong to "sound", ``own`` to "ubr".

    Returns:
        The rows to train on, to validate and to test with.

    >>> import pandas as pd
    >>> from cleanrank.data.events import read_events
    >>> random = np.random.default_rng(0)
    >>> log = pd.DataFrame({"user": random.integers(9, size=200), "item": random.integers(50, size=200)})
    >>> splits = prepare_clicks(read_events(log.assign(time=range(200))))
    >>> splits.test
    ClickRows(26 rows, 13 clicked, 7 users, 13 histories of at most 20 behaviours)
    >>> splits.report["events on items the user had clicked before, no targets"]
    36
    """
    _check_events(events)
    one_of("protocol", protocol, PROTOCOLS)
    check_integer("history", history, least=1)
    check_integer("least", least, least=1)
    check_seed(seed)
    for name in listed("context=", context):
        one_of("context", name, CONTEXTS)
    if context and events.times is None:
        raise invalid("context", "needs times in the log", ", ".join(context), remedy="Leave it out.")
    usual = {"shares": SHARES, "targets": None, "draw": "uniform", "rare": 2, "repeats": False, "own": 0.5}
    asked = (tuple(shares), targets, draw, rare, repeats, own)
    for (name, default), value in zip(usual.items(), asked, strict=True):
        if value != default and (name == "own") != (protocol == "ubr"):
            raise invalid(f"{name}=", f"must be left out with protocol={protocol!r}", repr(value))
    ordered = in_order(events)
    if protocol == "ubr":
        return _ubr(ordered, history, least, negatives, tuple(context), own, seed)
    options = _Sound(tuple(shares), targets, draw, rare, repeats, least)
    return _sound(ordered, history, negatives, tuple(context), options, seed)


def _check_events(events: Any) -> None:
    if not isinstance(events, Events):
        remedy = "Use read_events on a file or a frame first."
        raise invalid("events", "must be what read_events gives", type(events).__name__, remedy=remedy)


@dataclass(frozen=True)
class _Sound:
    """What belongs to the sound protocol alone, checked."""

    shares: tuple[float, ...]
    targets: int | None
    draw: str
    rare: int
    repeats: bool
    least: int

    def __post_init__(self) -> None:
        fractions = check_numbers("shares", self.shares)
        if fractions.shape != (3,) or not (fractions > 0).all() or abs(fractions.sum() - 1) > 1e-9:
            raise invalid("shares", "must be three numbers above 0 that add up to 1", list(self.shares))
        if self.targets is not None:
            check_integer("targets", self.targets, least=1)
        check_integer("rare", self.rare, least=1)
        one_of("draw", self.draw, DRAWS)


def _sound(
    log: OrderedEvents,
    history: int,
    negatives: int | None,
    context: tuple[str, ...],
    options: _Sound,
    seed: int,
) -> ClickSplits:
    from cleanrank.data._event_kernels import count_clicks, draw_negatives

    n_negatives = (1 if log.events.clicked is None else 0) if negatives is None else negatives
    check_integer("negatives", n_negatives, least=1 if log.events.clicked is None else 0)
    part = _parts(log, options.shares)
    chosen = _targets(log, part, options)
    is_click = log.clicked[chosen]
    drawn = np.empty((len(chosen), n_negatives), dtype=np.int32)
    if n_negatives:
        n_items = len(log.events.item_ids)
        pool = log.clicks if options.draw == "popular" else np.arange(n_items, dtype=np.int32)
        drawn[is_click] = draw_negatives(
            log.items, log.clicked, log.indptr, chosen[is_click], pool, n_items, n_negatives, seed
        )
        kept = ~is_click | (drawn >= 0).all(axis=1)
        log.report["targets without an item that could be a negative"] = int(np.count_nonzero(~kept))
        chosen, is_click, drawn = chosen[kept], is_click[kept], drawn[kept]
    counts = count_clicks(log.items, log.clicked, part, log.indptr, len(log.events.item_ids))
    codes = Coded(*vocabulary_of(log.events, *counts, options.rare))
    rows = []
    for number, name in enumerate(PARTS):
        mine = part[chosen] == number
        if not mine.any():
            rule = "must have targets in each part"
            remedy = "Give other shares=, a smaller least=, or more events."
            raise invalid("the log", rule, f"none in the {name} part", remedy=remedy)
        rows.append(rows_of(log, codes, Targets(chosen[mine], is_click[mine], drawn[mine]), history, context))
        for kind in ("item", "user"):
            log.report[f"{name} rows of {kind}s that are rare or new"] = rows[-1].unknown[kind]
    train, validation, test = rows
    return ClickSplits(train, validation, test, dict(log.report))


def _parts(log: OrderedEvents, shares: tuple[float, ...]) -> npt.NDArray[np.int8]:
    """The part of each event: 0 training, 1 validation, 2 test."""
    if log.parts is not None:
        return log.parts
    if log.times is not None:
        first, second = _cuts(log.times if log.events.clicked is None else log.times[log.clicked], shares)
        return np.asarray((log.times >= first).astype(np.int8) + (log.times >= second), dtype=np.int8)
    here = log.clicks_before(np.arange(len(log.items)))
    ends = np.repeat(log.begin[1:], np.diff(log.indptr))
    left = ends - here  # clicks of the user from this event on
    return np.asarray(np.clip(3 - left, 0, 2), dtype=np.int8)


def _cuts(times: IntArray, shares: tuple[float, ...]) -> tuple[int, int]:
    """When validation and test begin; two different times, as near to the shares as whole times allow."""
    ends = [min(int(share * len(times)), len(times) - 1) for share in np.cumsum(shares)[:2]]
    first, second = np.partition(times, ends)[ends].tolist()
    if first == second and (later := times[times > first]).size:
        second = int(later.min())
    elif first == second and (earlier := times[times < first]).size:
        first = int(earlier.max())
    return first, second


def _targets(log: OrderedEvents, part: npt.NDArray[np.int8], options: _Sound) -> IntArray:
    """The events that become rows."""
    from cleanrank.data._event_kernels import choose_targets

    most = len(log.items) if options.targets is None else options.targets
    n_items = len(log.events.item_ids)
    chosen, dropped = choose_targets(
        log.items, log.clicked, part, log.indptr, n_items, options.least, options.repeats, most
    )
    reasons = (
        f"events with fewer than {options.least} earlier clicks, no targets",
        "events on items the user had clicked before, no targets",
        f"targets beyond the last {most} of a user",
        "users with too few clicks for a target",
    )
    asked = (True, not options.repeats, options.targets is not None, True)
    counts = zip(reasons, dropped.tolist(), asked, strict=True)
    log.report.update({reason: count for reason, count, was_asked in counts if was_asked})
    return chosen


def _ubr(
    log: OrderedEvents,
    history: int,
    least: int,
    negatives: int | None,
    context: tuple[str, ...],
    own: float,
    seed: int,
) -> ClickSplits:
    if negatives not in (None, 1) or log.events.clicked is not None:
        remedy = 'Use protocol="sound" for more, or for what was shown and not clicked.'
        raise invalid("negatives", "must be 1 sampled item with protocol='ubr'", negatives, remedy=remedy)
    check_number("own", own, least=0, most=1)
    enough = np.flatnonzero(np.diff(log.indptr) >= least + 3)
    short = f"users with fewer than {least + 3} clicks, dropped"
    log.report[short] = len(log.indptr) - 1 - len(enough)
    if not len(enough):
        raise invalid("the log", f"must have users with at least {least + 3} clicks", "none")
    begin, end = log.indptr[enough], log.indptr[enough + 1] - 3
    # Every id of the log has an event, and so a code.
    of_user, of_item = (np.ones(len(i), dtype=np.int64) for i in (log.events.user_ids, log.events.item_ids))
    codes = Coded(*vocabulary_of(log.events, of_user, of_item, 1))
    histories = histories_of(log, codes, np.maximum(begin, end - history), end, history)
    random = np.random.default_rng(seed)
    rows = []
    for number in range(3):
        mine = begin + np.floor(random.random(len(enough)) * (end - begin)).astype(np.int64)
        anything = random.integers(len(log.events.item_ids), size=len(enough))
        negative = np.where(random.random(len(enough)) < own, log.items[mine], anything)
        yes = np.ones(len(enough), dtype=np.bool_)
        targets = Targets(end + number, yes, negative[:, None], skipped=number)
        rows.append(rows_of(log, codes, targets, history, context, histories))
    train, validation, test = rows
    return ClickSplits(train, validation, test, dict(log.report))
