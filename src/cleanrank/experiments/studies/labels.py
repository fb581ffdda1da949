"""Studies of labels: their noise, how well detectors find it, and which losses keep their order under it.

In ``detection`` a *wrong* row is a training row whose grade is not the clean one. Over the rows that count
(all, or those with one given grade), by descending doubt:

* precision, recall and average precision are those of ``issues/table.py``; the base rate is the share of
  wrong rows;
* rows that a detector was given as gold were judged, not found: they do not count;
* average precision within grades is sum_g w_g AP_g / sum_g w_g, AP_g over the rows with the given grade g and
  w_g the wrong rows among them; the base rate within grades weighs the grades' base rates in the same way. A
  detector that only knows which grades are rare gains nothing here.

Means pool the rows of all queries; values are those of each query's own rows, NaN where a query has nothing
to count.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from cleanrank.errors import invalid
from cleanrank.experiments.results import Result
from cleanrank.experiments.studies import StudyTask
from cleanrank.issues.find import find_label_issues
from cleanrank.issues.table import BoolArray, LabelIssues, average_precision
from cleanrank.noise.gold import from_gold, sample_gold
from cleanrank.noise.pair_noise import composition, pnoise, pnoise_expected, pooled_pnoise, query_pnoise
from cleanrank.ragged import segment_sum
from cleanrank.theory.order_preservation import order_preservation
from cleanrank.types import FloatArray
from cleanrank.validation import one_of

NAN = float("nan")
VERDICT_CODES = {"no": 0.0, "affine": 1.0, "strict": 2.0}


def label_noise(task: StudyTask) -> Result:
    """Counts dNoise and pNoise of the training labels beside their closed forms; nothing is trained."""
    clean, noisy, matrix = task.clean.train, task.train, task.profile.matrix
    counts = clean.grade_counts(len(matrix))
    half, whole = (pnoise(clean.y, noisy.y, clean.indptr, new_weight=w, n_jobs=1) for w in (0.5, 1.0))
    changed = segment_sum(clean.y != noisy.y, clean.indptr)
    overall = pnoise_expected(task.profile, counts.sum(axis=0))
    values = {
        "dnoise": changed / clean.lengths,
        "pnoise": half.per_query,
        "pnoise:new=1": whole.per_query,
        "pnoise:macro": half.per_query,
        "pnoise:expected": query_pnoise(matrix, counts),
        "pnoise:overall": np.full(clean.n_queries, overall),
    }
    means = {
        "dnoise": float(changed.sum() / clean.n_docs),
        "pnoise": float(half),
        "pnoise:new=1": float(whole),
        "pnoise:macro": float(np.nanmean(half.per_query)),
        "pnoise:expected": pooled_pnoise(matrix, *composition(counts)),
        "pnoise:overall": overall,
    }
    return Result("done", values, means, clean.query_ids.tolist())


def positives(task: StudyTask) -> Result:
    """Training documents with a grade above 0 or a click, and which of them noise lost or made up."""
    train = task.train
    before = (task.clean.train if task.unflipped is None else task.unflipped()).y > 0
    given = train.y > 0
    everywhere = np.ones_like(given)
    shares = {"positives": (given, everywhere), "lost": (~given, before), "made up": (given, ~before)}
    values, means = {}, {}
    for name, (rows, among) in shares.items():
        counts, sizes = (segment_sum(each, train.indptr) for each in (rows & among, among))
        values[name] = np.divide(counts, sizes, out=np.full(len(sizes), np.nan), where=sizes > 0)
        means[name] = float(counts.sum() / sizes.sum()) if sizes.any() else float("nan")
    return Result("done", values, means, train.query_ids.tolist())


def order(task: StudyTask) -> Result:
    """Whether a loss or measure keeps the order of scorers of known quality under the noise of the cell."""
    test, params = task.clean.test, task.params
    trial = order_preservation(
        params["loss"],
        noise=task.profile,
        n_grades=task.profile.n_grades,
        labels=(test.y, test.indptr),
        scorers=params["scorers"],
        n_scorers=params["n_scorers"],
        draws=params["draws"],
        seed=task.seed,
    )
    means = {"slope": trial.slope, "R2": trial.r2, "tau": trial.tau, "verdict": VERDICT_CODES[trial.verdict]}
    chosen = {"verdict": trial.verdict, "signal": trial.signal, "theory": trial.expected}
    # One fit over all queries: there is no value of a single query.
    return Result("done", {m: np.array([v]) for m, v in means.items()}, means, ["all queries"], chosen)


def detection(task: StudyTask) -> Result:
    """Runs a detector of ``find_label_issues`` on the noisy training data and compares it with the truth."""
    params, train = task.params, task.train
    inputs = dict(_detector_input(task, text) for text in params["given"])
    issues = find_label_issues(train, params["detector"], seed=task.seed, **params["options"], **inputs)
    issues = issues.aligned(train)
    wrong = task.clean.train.y != train.y
    counted = train.y == params["grade"] if params["grade"] >= 0 else np.ones(train.n_docs, dtype=np.bool_)
    if "gold" in inputs:
        counted = counted & ~np.isin(train.row_ids, inputs["gold"][0])
    means = agreement(issues.select(counted), wrong[counted])
    queries = (start + np.flatnonzero(counted[start:end]) for start, end in pairwise(train.indptr))
    by_query = [agreement(issues.select(rows), wrong[rows]) for rows in queries]
    values = {name: np.array([query[name] for query in by_query], dtype=np.float64) for name in means}
    chosen = {"issues": int(issues.is_label_issue.sum())}
    return Result("done", values, means, train.query_ids.tolist(), chosen)


def agreement(issues: LabelIssues, wrong: BoolArray) -> dict[str, float]:
    """Every measure of label issues against the wrong rows; NaN where there is nothing to count.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((4, 1)), [0, 0, 1, 1], group=[4])
    >>> issues = LabelIssues.of(data, doubt=[0.9, 0.1, 0.3, 0.8], is_label_issue=[True, False, False, False])
    >>> values = agreement(issues, np.array([True, False, True, False]))
    >>> values["average precision"], values["average precision within grades"], values["recall"]
    (0.8333333333333333, 0.75, 0.5)
    """
    return {
        "average precision": issues.average_precision(wrong),
        "precision": issues.precision(wrong),
        "recall": issues.recall(wrong),
        "base rate": _share(wrong),
        "issues": _share(issues.is_label_issue),
        "average precision within grades": _within_grades(issues, wrong, average_precision),
        "base rate within grades": _within_grades(issues, wrong, lambda doubt, is_wrong: _share(is_wrong)),
    }


def _detector_input(task: StudyTask, text: str) -> tuple[str, Any]:
    """An option of a detector and its value: "validation" and "noise" as they are, or from so many gold rows.

    "noise:100" is the matrix that 100 rows tell, "gold:100" the rows themselves.
    """
    name, _, rows = text.partition(":")
    one_of("detector input", name, ("validation", "noise", "gold"))
    if not rows and name != "gold":
        return name, task.validation if name == "validation" else task.profile
    if name == "validation" or not rows.isdecimal():
        raise invalid("given", "must read noise:100 or gold:100 for so many gold rows", repr(text))
    sheet = sample_gold(task.train, int(rows), seed=task.seed)
    truth = task.clean.train.y[sheet.rows]
    if name == "gold":
        return name, (sheet.row_ids, truth, *([] if sheet.shares is None else [sheet.shares]))
    C = task.profile.n_grades
    return name, from_gold(task.train, sheet.row_ids, truth, n_grades=C, seed=task.seed)


def _share(part: BoolArray | FloatArray) -> float:
    return float(part.mean()) if len(part) else NAN


def _within_grades(issues: LabelIssues, wrong: BoolArray, measure: Callable[..., float]) -> float:
    """The mean of a measure over given grades, weighted by wrong rows; grades without any do not count."""
    total = sum(
        float(wrong[rows].sum()) * measure(issues.doubt[rows], wrong[rows])
        for grade in np.unique(issues.given_label[wrong])
        for rows in [issues.given_label == grade]
    )
    return total / float(wrong.sum()) if wrong.any() else NAN
