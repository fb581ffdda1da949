"""Plain versions of what the library does faster or does not need, for tests to compare with."""

from dataclasses import fields

import numpy as np

from cleanrank.types import RankingData


def pad(values, indptr, fill=0.0):
    """Queries as rows of a (Q, longest) array, and the mask of real entries."""
    flat = np.asarray(values)
    lengths = np.diff(indptr)
    mask = np.arange(lengths.max(initial=0)) < lengths[:, None]
    padded = np.full(mask.shape + flat.shape[1:], fill, dtype=flat.dtype)
    padded[mask] = flat
    return padded, mask


def same_data(a, b):
    """Whether two data sets hold the same values (NaN equals NaN)."""
    for each in fields(RankingData):
        left, right = getattr(a, each.name), getattr(b, each.name)
        if each.name == "X" and not (isinstance(left, np.ndarray) and isinstance(right, np.ndarray)):
            same = _same_sparse(left, right)
        elif left is None or right is None:
            same = left is right
        elif each.name == "extra":
            same = left.keys() == right.keys() and all(np.array_equal(left[k], right[k]) for k in left)
        elif each.name in ("feature_names", "categories"):
            same = left == right
        else:
            left, right = np.asarray(left), np.asarray(right)
            numbers = left.dtype.kind == "f" and right.dtype.kind == "f"
            same = bool(np.array_equal(left, right, equal_nan=numbers))
        if not same:
            return False
    return True


def _same_sparse(left, right):
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray) or left.shape != right.shape:
        return False
    left, right = left.copy(), right.copy()
    left.eliminate_zeros()
    right.eliminate_zeros()
    places = all(np.array_equal(getattr(left, n), getattr(right, n)) for n in ("indptr", "indices"))
    return places and bool(np.array_equal(left.data, right.data, equal_nan=True))


def naive_outliers(score, y, k, rule, floor=0):
    """(NEG, POS) outliers of one query, straight from the definition in ``issues/outliers.py``."""
    ranked = sorted(range(len(y)), key=lambda i: (-score[i], i))
    rank = {i: r for r, i in enumerate(ranked, start=1)}
    relevant = [i for i in ranked if y[i] > floor]
    others = [i for i in ranked if y[i] <= floor]
    paper = rule == "paper"
    neg = {i for i in others if rank[i] <= k and any(rank[j] > (k if paper else rank[i]) for j in relevant)}
    above = {i: k + 1 if paper else rank[i] for i in relevant}
    pos = {i for i in relevant if rank[i] > k and any(rank[j] < above[i] for j in others)}
    return neg, pos


def walk_numpy(r, indptr, look, leave, a1, a2, a3):
    """Clicks of users who go down a list one by one: all lists at once, rank by rank."""
    clicks = np.zeros(len(r), dtype=np.bool_)
    at, stop = indptr[:-1][np.diff(indptr) > 0], indptr[1:][np.diff(indptr) > 0]
    while len(at):
        clicks[at] = look[at] < r[at]
        goes_on = np.where(clicks[at], a2 * (1 - r[at]) + a3 * r[at], a1)
        stays = (leave[at] < goes_on) & (at + 1 < stop)
        at, stop = at[stays] + 1, stop[stays]
    return clicks
