"""The part of a grid that ran whole: what a run that was stopped may be judged by.

A *block* is a fold and a seed of a setting (a data set at a noise level); it is whole when every method ran
in it. Of a setting the folds and seeds are kept that form the largest rectangle of whole blocks, seeds in
their order, so that every method is measured on the same test queries and no seed counts more in one fold
than in another.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cleanrank.data.judged import JUDGE
from cleanrank.report.summaries import by_cell
from cleanrank.types import RunRecord

from .draws import Place


@dataclass(frozen=True)
class Kept:
    """What counts of a setting."""

    place: Place
    folds: tuple[str, ...]
    seeds: tuple[str, ...]


@dataclass(frozen=True)
class WholePart:
    """The records that count, and what they are of each setting."""

    records: tuple[RunRecord, ...]
    kept: tuple[Kept, ...]
    left_out: int  # records of blocks that are not whole, and of methods that ran in few of them
    few: tuple[str, ...] = ()  # these methods


def whole_part(records: Sequence[RunRecord], group: Callable[[str], str] | None = None) -> WholePart:
    """The largest rectangle of whole blocks of every setting; data sets of one group keep the same folds.

    Methods that have less than half as many cells as others were hardly begun: they do not count, rather than
    that all others count only where these ran.
    """
    done = by_cell([r for r in records if r.status == "done"])
    counts = Counter(cell[3] for cell in done)
    methods = {method for method, n in counts.items() if 2 * n >= max(counts.values())}
    few = tuple(method for method in counts if method not in methods)
    done = {cell: record for cell, record in done.items() if cell[3] in methods}
    ran: dict[Place, dict[tuple[str, str], set[str]]] = {}
    for dataset, level, fold, method, seed in done:
        ran.setdefault((dataset, level), {}).setdefault((fold, seed), set()).add(method)
    kept = []
    for place, blocks in ran.items():
        whole = {block for block, present in blocks.items() if present == methods}
        seeds = sorted({seed for _, seed in whole}, key=_number)
        folds = sorted({fold for fold, _ in whole}, key=_number)
        candidates = [
            (tuple(f for f in folds if all((f, s) in whole for s in seeds[:n])), tuple(seeds[:n]))
            for n in range(1, len(seeds) + 1)
        ]
        if candidates:
            best = max(candidates, key=lambda each: (len(each[0]) * len(each[1]), len(each[0])))
            kept.append(Kept(place, *best))
    if group is not None:
        kept = _same_folds(kept, group)
    counted = {(*k.place, fold, seed) for k in kept for fold in k.folds for seed in k.seeds}
    inside = tuple(r for (d, level, f, _, s), r in done.items() if (d, level, f, s) in counted)
    return WholePart(inside, tuple(kept), len(records) - len(inside), few)


def _same_folds(kept: Sequence[Kept], group: Callable[[str], str]) -> list[Kept]:
    """Of every setting the folds that all settings of its group have, as long as there are any."""
    shared: dict[str, set[str]] = {}
    for k in kept:
        name = group(k.place[0])
        shared[name] = shared.get(name, set(k.folds)) & set(k.folds)
    folds = {k: tuple(f for f in k.folds if f in shared[group(k.place[0])]) for k in kept}
    return [replace(k, folds=folds[k] or k.folds) for k in kept]


def _number(text: str) -> tuple[int, str]:
    return (int(text), "") if text.isdecimal() else (0, text)


def ran_words(kept: Sequence[Kept]) -> list[tuple[str, str, str, str]]:
    """(data set, folds, seeds, noise levels) for every extent; judges of one collection stand together.

    >>> from cleanrank.report.summaries import Level
    >>> ran_words([Kept((f"dl19 {judge}", Level("judge", 1.0)), ("1", "2"), ("1",)) for judge in "ab"])
    [('dl19, 2 judges', '1, 2', '1', 'judge 1')]
    >>> ran_words([Kept(("MSLR sample", Level("uniform", rate)), ("1",), ("1",)) for rate in (0.2, 0.4)])
    [('MSLR sample', '1', '1', 'uniform 0.2, uniform 0.4')]
    """
    extents: dict[tuple[str, str, str], list[Place]] = {}
    for k in kept:
        dataset, level = k.place
        name = dataset.partition(" ")[0] if level.noise == JUDGE else dataset
        extents.setdefault((name, ", ".join(k.folds), ", ".join(k.seeds)), []).append(k.place)
    rows = []
    for (name, folds, seeds), places in extents.items():
        levels = list(dict.fromkeys(level.label for _, level in places))
        judged = any(level.noise == JUDGE for _, level in places)
        words = f"{name}, {len(places)} judges" if judged else name
        rows.append((words, folds, seeds, ", ".join(levels)))
    return rows
