"""How well a detector finds labels that are known to be wrong: those that the noise of a cell has changed.

A *wrong* row is a training row whose grade is not the clean one. Over the rows that are looked at (all, or
those with one given grade), by descending doubt:

* precision, recall and average precision as in ``issues/table.py``; ties in doubt share one threshold;
* the base rate, the share of wrong rows, is the precision of a random choice and about the average precision
  of a random order;
* average precision within grades is sum_g w_g AP_g / sum_g w_g, AP_g over the rows with the given grade g and
  w_g the wrong rows among them; the base rate within grades weighs the grades' base rates in the same way. A
  detector that only knows which grades are rare gains nothing here.

Means pool the rows of all queries; values are those of each query's own rows, NaN where a query has nothing
to count.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cleanrank.errors import invalid
from cleanrank.experiments.studies import Inquiry, Measured
from cleanrank.issues.find import find_label_issues
from cleanrank.issues.table import BoolArray, LabelIssues, average_precision
from cleanrank.noise.gold import from_gold, sample_gold
from cleanrank.types import FloatArray
from cleanrank.validation import one_of

NAN = float("nan")


def detection(asked: Inquiry) -> Measured:
    """Runs a detector of ``find_label_issues`` on the noisy training data and compares it with the truth."""
    params, train = asked.params, asked.train
    given = dict(_given(asked, words) for words in params["given"])
    table = find_label_issues(train, params["detector"], seed=asked.seed, **params["options"], **given)
    table = table.aligned(train)
    wrong = asked.clean.train.y != train.y
    looked_at = train.y == params["grade"] if params["grade"] >= 0 else np.ones(train.n_docs, dtype=np.bool_)
    values = {name: np.full(train.n_queries, NAN) for name in MEASURED}
    for query in range(train.n_queries):
        rows = np.arange(train.indptr[query], train.indptr[query + 1])
        rows = rows[looked_at[rows]]
        for name, value in agreement(table.select(rows), wrong[rows]).items():
            values[name][query] = value
    means = agreement(table.select(looked_at), wrong[looked_at])
    return Measured(values, means, train.query_ids.tolist(), {"issues": int(table.is_label_issue.sum())})


def agreement(table: LabelIssues, wrong: BoolArray) -> dict[str, float]:
    """Every measure of a table against the wrong rows; NaN where there is nothing to count.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((4, 1)), [0, 0, 1, 1], group=[4])
    >>> table = LabelIssues.of(data, doubt=[0.9, 0.1, 0.3, 0.8], is_label_issue=[True, False, False, False])
    >>> found = agreement(table, np.array([True, False, True, False]))
    >>> found["average precision"], found["average precision within grades"], found["recall"]
    (0.8333333333333333, 0.75, 0.5)
    """
    return {name: measure(table, wrong) for name, measure in MEASURED.items()}


def _given(asked: Inquiry, words: str) -> tuple[str, Any]:
    """An option and what it is given, for "validation", "noise", or "noise:100" from so many gold rows."""
    name, _, rows = words.partition(":")
    give = GIVEN[one_of("thing to give", name, GIVEN)]
    if not rows:
        return name, give(asked)
    if name != "noise" or not rows.isdecimal():
        raise invalid("given", "must read noise:100 to be estimated from so many rows", repr(words))
    sheet = sample_gold(asked.train, int(rows), seed=asked.seed)
    truth = asked.clean.train.y[sheet.rows]
    C = asked.profile.n_grades
    return name, from_gold(asked.train, sheet.row_ids, truth, n_grades=C, seed=asked.seed)


def _share(part: BoolArray | FloatArray) -> float:
    return float(part.mean()) if len(part) else NAN


def _within_grades(table: LabelIssues, wrong: BoolArray, measure: Callable[..., float]) -> float:
    """The mean of a measure over given grades, weighted by wrong rows; grades without any do not count."""
    total = sum(
        float(wrong[rows].sum()) * measure(table.doubt[rows], wrong[rows])
        for grade in np.unique(table.given_label[wrong])
        for rows in [table.given_label == grade]
    )
    return total / float(wrong.sum()) if wrong.any() else NAN


MEASURED: Mapping[str, Callable[[LabelIssues, BoolArray], float]] = {
    "average precision": lambda table, wrong: table.average_precision(wrong),
    "precision": lambda table, wrong: table.precision(wrong),
    "recall": lambda table, wrong: table.recall(wrong),
    "base rate": lambda table, wrong: _share(wrong),
    "issues": lambda table, wrong: _share(table.is_label_issue),
    "average precision within grades": lambda table, wrong: _within_grades(table, wrong, average_precision),
    "base rate within grades": lambda table, wrong: _within_grades(
        table, wrong, lambda doubt, found: _share(found)
    ),
}

# What a detector may be given beside the data, under the name of its own option.
GIVEN: Mapping[str, Callable[[Inquiry], Any]] = {
    "validation": lambda asked: asked.validation,
    "noise": lambda asked: asked.profile,
}
