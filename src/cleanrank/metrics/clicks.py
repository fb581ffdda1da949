"""How well probabilities of a click rank, and how true they are: AUC, grouped AUC, log loss, calibration.

They take plain arrays and need NumPy alone. Rows of one user are not independent, so intervals treat users as
the units: the variance of an AUC, or of the difference of two on the same rows, is that of the users' sums of
placements (DeLong et al. 1988; Obuchowski 1997 for clusters).

Conventions: ties count 1/2 in AUC; grouped AUC is the mean of the users' AUC weighted by their rows, over
users with both labels (Zhou et al. 2018); logarithms are natural and probabilities are cut at 1e-7 and
1 - 1e-7; the calibration error is the mean of |observed rate - mean probability| over 15 bins with equally
many rows, weighted by rows.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.types import Array, FloatArray
from cleanrank.validation import check_integer, check_number, check_numbers

LEAST = 1e-7
BINS = 15


@dataclass(frozen=True)
class ClickEvaluation:
    """Measures of probabilities of a click on one set of rows.

    Attributes:
        auc: the probability that a clicked row scores above one that is not; ties count 1/2.
        auc_interval: its interval, users as units.
        gauc: AUC within users, weighted by their rows; NaN if no user has both labels.
        log_loss: the mean of -log p(label).
        ece: expected calibration error.
        n_rows: the rows.
        n_users: the users.
        level: the coverage of the interval.
    """

    auc: float
    auc_interval: tuple[float, float]
    gauc: float
    log_loss: float
    ece: float
    n_rows: int
    n_users: int
    level: float


@dataclass(frozen=True)
class AUCDifference:
    """AUC of one model minus that of another on the same rows.

    Attributes:
        value: the difference.
        interval: its interval, users as units.
        standard_error: of the difference.
        level: the coverage of the interval.
    """

    value: float
    interval: tuple[float, float]
    standard_error: float
    level: float


def evaluate_clicks(
    y: npt.ArrayLike, probabilities: npt.ArrayLike, users: npt.ArrayLike | None = None, *, level: float = 0.95
) -> ClickEvaluation:
    """All measures of probabilities of a click.

    Args:
        y: 1 clicked, 0 not, per row.
        probabilities: of a click, per row.
        users: the user of each row; None takes rows as independent and gives no grouped AUC.
        level: the coverage of the interval.

    Returns:
        The measures, with the interval of AUC.

    >>> figures = evaluate_clicks([1, 0, 1, 0], [0.9, 0.2, 0.6, 0.7], users=[1, 1, 2, 2])
    >>> figures.auc, figures.gauc, round(figures.log_loss, 3)
    (0.75, 0.5, 0.511)
    """
    labels, p = checked_rows(y, probabilities, "probabilities")
    checked_probabilities(p)
    groups = _users(users, len(labels))
    value, error = auc(labels, p), _auc_and_error(labels, p[None, :], groups)[1]
    return ClickEvaluation(
        auc=value,
        auc_interval=_interval(value, error, level, within=(0, 1)),
        gauc=float("nan") if users is None else gauc(labels, p, groups),
        log_loss=log_loss(labels, p),
        ece=ece(labels, p),
        n_rows=len(labels),
        n_users=len(np.unique(groups)),
        level=level,
    )


def compare_auc(
    y: npt.ArrayLike,
    one: npt.ArrayLike,
    other: npt.ArrayLike,
    users: npt.ArrayLike | None = None,
    *,
    level: float = 0.95,
) -> AUCDifference:
    """AUC of ``one`` minus AUC of ``other`` on the same rows, with an interval.

    Args:
        y: 1 clicked, 0 not, per row.
        one: scores of one model.
        other: scores of the other.
        users: the user of each row; None takes rows as independent.
        level: the coverage of the interval.

    Returns:
        The difference.

    >>> compare_auc([1, 0, 1, 0], [3, 1, 4, 2], [3, 1, 2, 4]).value
    0.5
    """
    labels, first = checked_rows(y, one, "one")
    second = checked_rows(y, other, "other")[1]
    value, error = _auc_and_error(labels, np.stack([first, second]), _users(users, len(labels)))
    return AUCDifference(value, _interval(value, error, level, within=(-1, 1)), error, level)


def auc(y: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """The probability that a clicked row scores above one that is not; ties count 1/2.

    >>> auc([1, 0, 0], [2.0, 2.0, 1.0])
    0.75
    """
    labels, values = checked_rows(y, scores, "scores")
    positive = _both_labels(labels)
    ranks = _mid_ranks(values)
    n = int(positive.sum())
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(labels) - n)))


def gauc(y: npt.ArrayLike, scores: npt.ArrayLike, users: npt.ArrayLike) -> float:
    """The mean AUC within users, weighted by their rows; users with one label only are left out.

    >>> gauc([1, 0, 1, 0, 1], [0.9, 0.2, 0.6, 0.7, 0.1], [1, 1, 2, 2, 3])
    0.5
    """
    labels, values = checked_rows(y, scores, "scores")
    group = np.unique(_users(users, len(labels)), return_inverse=True)[1]
    order = np.lexsort((values, group))
    ranks = np.empty(len(values))
    ranks[order] = _mid_ranks_sorted(values[order], group[order])
    n = np.bincount(group)
    n_positive = np.bincount(group, weights=labels)
    rows_before = np.cumsum(n) - n
    sums = np.bincount(group, weights=labels * (ranks - rows_before[group]))
    both = (n_positive > 0) & (n_positive < n)
    if not both.any():
        return float("nan")
    right = sums - n_positive * (n_positive + 1) / 2
    values_of_users = right[both] / (n_positive * (n - n_positive))[both]
    return float(np.average(values_of_users, weights=n[both]))


def log_loss(y: npt.ArrayLike, probabilities: npt.ArrayLike) -> float:
    """The mean of -log p(label); probabilities are cut at 1e-7 and 1 - 1e-7.

    >>> round(log_loss([1, 0], [0.8, 0.4]), 4)
    0.367
    """
    labels, p = checked_rows(y, probabilities, "probabilities")
    checked_probabilities(p)
    p = np.clip(p, LEAST, 1 - LEAST)
    return float(-np.mean(np.where(labels == 1, np.log(p), np.log1p(-p))))


def ece(y: npt.ArrayLike, probabilities: npt.ArrayLike, *, bins: int = BINS) -> float:
    """Expected calibration error over bins with equally many rows.

    Args:
        y: 1 clicked, 0 not, per row.
        probabilities: of a click; equal ones always share a bin.
        bins: how many.

    Returns:
        The mean of |observed rate - mean probability| over bins, weighted by rows.

    >>> round(ece([1, 1, 0, 1], [0.2, 0.2, 0.6, 0.6], bins=2), 3)
    0.45
    """
    labels, p = checked_rows(y, probabilities, "probabilities")
    checked_probabilities(p)
    check_integer("bins", bins, least=1)
    rank = np.searchsorted(np.sort(p), p)  # rows with a lower probability: equal for equal ones
    bin_of = rank * bins // len(p)
    gap = np.bincount(bin_of, weights=labels) - np.bincount(bin_of, weights=p)
    return float(np.abs(gap).sum() / len(p))


def _auc_and_error(labels: FloatArray, scores: FloatArray, users: Array) -> tuple[float, float]:
    """AUC of the first scores (minus that of the second), and its standard error over users.

    With the placement V of a row, the share of the other label's rows on its right side, AUC is the mean of V
    over either label; a user's part is the sum of (V - AUC) over clicked rows / n1 + over the others / n0.
    """
    positive = _both_labels(labels)
    n1, n0 = int(positive.sum()), int((~positive).sum())
    value, influence = 0.0, np.zeros(len(labels))
    for sign, each in zip((1, -1), scores, strict=False):
        overall = _mid_ranks(each)
        placement = np.empty(len(each))
        placement[positive] = (overall[positive] - _mid_ranks(each[positive])) / n0
        placement[~positive] = 1 - (overall[~positive] - _mid_ranks(each[~positive])) / n1
        area = float(placement[positive].mean())
        value += sign * area
        influence += sign * (placement - area) / np.where(positive, n1, n0)
    group = np.unique(users, return_inverse=True)[1]
    parts = np.bincount(group, weights=influence)
    n = len(parts)
    if n < 2:
        return value, float("nan")
    return value, float(np.sqrt(n / (n - 1) * np.sum((parts - parts.mean()) ** 2)))


def _interval(value: float, error: float, level: float, within: tuple[float, float]) -> tuple[float, float]:
    from statistics import NormalDist

    check_number("level", level, above=0, below=1)
    reach = NormalDist().inv_cdf(0.5 + level / 2) * error
    low, high = within
    if np.isnan(reach):
        return low, high
    return max(value - reach, low), min(value + reach, high)


def _mid_ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1; equal values share the mean of theirs."""
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values))
    ranks[order] = _mid_ranks_sorted(values[order], np.zeros(len(values), dtype=np.int64))
    return ranks


def _mid_ranks_sorted(values: FloatArray, group: Array) -> FloatArray:
    """Ranks from 1 of values that are sorted within groups in a row; equal ones of a group share the mean."""
    new = np.append(True, (values[1:] != values[:-1]) | (group[1:] != group[:-1]))
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(values))
    return np.repeat((first + last + 1) / 2, last - first)


def checked_rows(y: npt.ArrayLike, scores: npt.ArrayLike, name: str) -> tuple[FloatArray, FloatArray]:
    """Labels 0 and 1 and finite scores, one each per row."""
    labels, values = check_numbers("y", y), check_numbers(name, scores)
    if labels.ndim != 1 or not len(labels):
        raise invalid("y", "must have one label per row, and at least one row", f"shape {labels.shape}")
    if values.shape != labels.shape:
        raise invalid(name, f"must have one value per label ({len(labels)})", f"shape {values.shape}")
    for subject, wrong, rule, column in (
        ("y", (labels != 0) & (labels != 1), "must be 0 or 1", labels),
        (name, ~np.isfinite(values), "must be finite", values),
    ):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise invalid(subject, rule, column[row], at=f"row {row}")
    return labels, values


def _users(users: npt.ArrayLike | None, n: int) -> Array:
    groups: Array = np.arange(n) if users is None else np.asarray(users)
    if groups.shape != (n,):
        raise invalid("users", f"must have one entry per row ({n})", f"shape {groups.shape}")
    return groups


def _both_labels(labels: FloatArray) -> npt.NDArray[np.bool_]:
    positive = np.asarray(labels == 1, dtype=np.bool_)
    if positive.all() or not positive.any():
        remedy = "AUC is not defined without clicked and not clicked rows."
        raise invalid("y", "must have both labels", f"only {int(labels[0])}", remedy=remedy)
    return positive


def checked_probabilities(values: npt.ArrayLike) -> FloatArray:
    """Numbers from 0 to 1; else raises."""
    p = check_numbers("probabilities", values)
    wrong = ~((p >= 0) & (p <= 1))
    if wrong.any():
        row = int(np.argmax(wrong))
        remedy = "Scores of another kind go into auc and gauc."
        raise invalid("probabilities", "must lie between 0 and 1", p[row], at=f"row {row}", remedy=remedy)
    return p
