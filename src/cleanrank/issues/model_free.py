"""Detectors that train no ranker: twins, clicks, isolated features, and the error rate of a grade.

* Twins: documents with the same features. Identical rows of one query cannot be told apart by any ranker; if
  their grades differ, some are wrong, or the features leave something out. Twins across queries share their
  features only, so their relevance may truly differ. doubt = share of a row's twins with another grade.
* Clicks: the click model says how likely a row's clicks are under each grade (``clicks/evidence.py``). Before
  any click, a given grade is right with probability ``trust`` and the other grades share the rest. Bayes'
  rule then gives doubt = 1 - P(given grade | clicks).
* Isolation (Liu et al. 2008): s(x) = 2^(-E[h(x)] / c(psi)) for the mean depth E[h(x)] at which random trees
  on psi rows isolate x, and c(m) = 2 H(m - 1) - 2 (m - 1) / m; a row with s > 1/2 is an outlier.
  Iso-lambda-LGBM of Marcuzzi et al. (2022) leaves such documents out before it trains.
* By grade: doubt = P(wrong | given grade), the same for all rows of a grade.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from cleanrank.clicks.evidence import ClickEvidence, click_evidence
from cleanrank.clicks.logs import ClickLog
from cleanrank.clicks.models import ClickModel
from cleanrank.clicks.simulate import Flip
from cleanrank.data.duplicate_rows import first_rows, shared_rows, within_queries
from cleanrank.errors import invalid
from cleanrank.issues.outliers import labels_of_kind
from cleanrank.issues.table import LabelIssues
from cleanrank.noise.profiles import Corruption, NoiseProfile
from cleanrank.ragged import query_of_row
from cleanrank.types import FloatArray, RankingData
from cleanrank.validation import check_integer, check_n_jobs, check_number, check_seed

EM_STEPS = 2000


def find_contradictions(
    data: RankingData,
    *,
    across: bool = False,
    tolerance: float = 0.0,
    blanks: bool = False,
    seed: int = 0,
) -> LabelIssues:
    """Doubts labels whose twins are graded otherwise; suggests the most frequent grade among them.

    Args:
        data: judged rows.
        across: look for twins in all queries, not in the row's own alone.
        tolerance: features are first rounded to steps of so many standard deviations of their column, so that
            nearly identical rows are twins too; two rows on either side of a step are not.
        blanks: count rows whose features are all 0 as twins of one another.
        seed: not used; nothing here is random.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[1, 2], [1, 2], [1, 2], [3, 4]], [2, 2, 0, 0], group=[4])
    >>> issues = find_contradictions(data)
    >>> issues.doubt.tolist(), issues.suggested_label.tolist()
    ([0.5, 0.5, 1.0, 0.0], [2, 2, 2, 0])
    """
    check_number("tolerance", tolerance, least=0)
    first, blank = first_rows(replace(data, X=_stepped(data.X, tolerance)) if tolerance else data)
    shared = shared_rows(first) & (blanks | ~blank)
    if across:
        group = np.where(shared, first, -1)
    else:
        group = within_queries(first, query_of_row(data.indptr), shared)
    C = max(data.n_grades, 1)
    _, code = np.unique(group, return_inverse=True)
    counts = np.bincount(code * C + data.y, minlength=(code.max(initial=-1) + 1) * C).reshape(-1, C)
    alike = counts[code, data.y]
    twins = np.where(group < 0, 0, counts.sum(axis=1)[code] - 1)
    doubt: FloatArray = np.where(group < 0, 0, twins - alike + 1) / np.maximum(twins, 1)
    return LabelIssues.of(
        data,
        doubt=doubt,
        is_label_issue=(doubt > 0.5) & (counts.max(axis=1)[code] > alike),
        suggested_label=counts.argmax(axis=1)[code],  # the lower grade of two alike
        reasons={"contradiction": doubt, "twins": twins},
    )


def _stepped(X: Any, tolerance: float) -> Any:
    """Features as whole numbers of steps; a column at a time, so that memory stays that of a copy."""
    if isinstance(X, np.ndarray):
        stepped = np.empty_like(X)
        for column in range(X.shape[1]):
            values = X[:, column].astype(np.float64)
            spread = float(np.nanstd(values)) if np.isfinite(values).any() else 0.0
            stepped[:, column] = np.rint(values / (tolerance * spread)) if spread > 0 else values
        return stepped
    steps = X.astype(np.float64)
    n = max(X.shape[0], 1)
    mean = np.asarray(steps.sum(axis=0)).ravel() / n
    square = np.asarray(steps.multiply(steps).sum(axis=0)).ravel() / n
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))[steps.indices]
    steps.data = np.where(
        spread > 0, np.rint(steps.data / np.where(spread > 0, tolerance * spread, 1)), steps.data
    )
    return steps.astype(np.float32)


def find_against_clicks(
    data: RankingData,
    *,
    clicks: ClickLog | ClickEvidence,
    model: str | ClickModel = "pbm",
    flip: Flip = None,
    examination: npt.ArrayLike | None = None,
    top_grade: int | None = None,
    level: float = 0.95,
    trust: float = 0.9,
    options: dict[str, Any] | None = None,
    seed: int = 0,
) -> LabelIssues:
    """Doubts grades that clicks speak against: a 0 clicked more than its rank explains, a top grade never.

    A row is an issue when another grade is the most probable one and the interval of its click rate leaves
    out the rate of the given grade.

    Args:
        data: judged rows.
        clicks: the log, or the evidence that was read off it for these rows.
        model: the click model, by name or as it is; with a log.
        flip: the rate, or rates, at which clicks are known to be flipped; with a log.
        examination: P(examined) at ranks 1, 2, ...; with a log and position-based users.
        top_grade: the scale's highest grade; with a log.
        level: of the intervals; with a log.
        trust: probability that a grade is right before any click is seen.
        options: further arguments of a named model.
        seed: not used; nothing here is random.

    >>> import cleanrank as cr
    >>> true = cr.from_arrays(np.zeros((2, 1)), [1, 0], group=[2])
    >>> log = cr.simulate_clicks(true, sessions=100)
    >>> issues = find_against_clicks(true.with_labels([0, 0]), clicks=log)
    >>> issues.is_label_issue.tolist(), issues.suggested_label.tolist()
    ([True, False], [1, 0])
    """
    check_number("trust", trust, above=0, below=1)
    if isinstance(clicks, ClickEvidence):
        evidence = clicks
        if not np.array_equal(evidence.row_ids, data.row_ids):
            raise invalid("clicks", "must be evidence about the rows of data, in their order", "other rows")
        if data.n_grades > len(evidence.relevance):
            rule = f"must be evidence about all {data.n_grades} grades"
            raise invalid("clicks", rule, len(evidence.relevance), remedy="Raise its top_grade.")
    elif isinstance(clicks, ClickLog):
        # With wrong labels only zeros may be left in a log's own data: the scale is that of both.
        top = max(1, data.n_grades - 1, clicks.data.n_grades - 1) if top_grade is None else top_grade
        evidence = click_evidence(
            clicks, data, model, flip=flip, examination=examination, top_grade=top, level=level,
            options=options,
        )  # fmt: skip
    else:
        raise invalid("clicks", "must be a ClickLog or ClickEvidence", type(clicks).__name__)
    rows, y = np.arange(data.n_docs), data.y
    C = len(evidence.relevance)
    prior = np.full((data.n_docs, C), (1 - trust) / (C - 1))
    prior[rows, y] = trust
    p = softmax(evidence.log_likelihood + np.log(prior), axis=1)
    best = p.argmax(axis=1)
    expected = evidence.relevance[y]
    with np.errstate(invalid="ignore"):
        excess = np.where(np.isfinite(evidence.rate), evidence.rate - expected, 0.0)
    return LabelIssues.of(
        data,
        doubt=np.clip(1 - p[rows, y], 0.0, 1.0),
        is_label_issue=(best != y) & ((expected < evidence.low) | (expected > evidence.high)),
        suggested_label=best,
        reasons={"clicks": evidence.clicks, "impressions": evidence.impressions, "click_rate_excess": excess},
    )


def find_isolated(
    data: RankingData,
    *,
    kind: str = "all",
    contamination: float | str = "auto",
    sample: int = 256,
    n_estimators: int = 100,
    highest_negative: int = 0,
    seed: int = 0,
    n_jobs: int | None = None,
) -> LabelIssues:
    """Doubts documents whose features are easy to isolate; labels only decide the kind.

    Args:
        data: rows with features; a missing value counts as 0.
        kind: "neg" (not relevant), "pos" (relevant) or "all".
        contamination: share of outliers, or "auto" for s > 1/2.
        sample: psi, rows per tree.
        n_estimators: trees.
        highest_negative: the highest grade that is not relevant.
        seed: for the rows and the splits.
        n_jobs: threads.
    """
    from sklearn.ensemble import IsolationForest

    of_kind = labels_of_kind(data.y, kind, highest_negative)
    check_seed(seed)
    check_n_jobs(n_jobs)
    check_integer("sample", sample, least=1)
    check_integer("n_estimators", n_estimators, least=1)
    share: Any = contamination
    if share != "auto" and not (isinstance(share, float) and 0 < share <= 0.5):
        raise invalid("contamination", "must be 'auto' or a share in (0, .5]", repr(share))
    if not data.n_docs:
        raise invalid("data", "must have at least one document", "none")
    X = data.X
    if isinstance(X, np.ndarray):
        X = np.nan_to_num(X, nan=0.0) if np.isnan(X).any() else X
    elif np.isnan(X.data).any():
        X = X.copy()
        X.data = np.nan_to_num(X.data, nan=0.0)
    forest = IsolationForest(
        n_estimators=n_estimators, max_samples=min(sample, data.n_docs), contamination=contamination,
        random_state=seed % 2**32, n_jobs=n_jobs,
    ).fit(X)  # fmt: skip
    score: FloatArray = -forest.score_samples(X)
    return LabelIssues.of(
        data,
        doubt=np.where(of_kind, np.clip(score, 0.0, 1.0), 0.0),
        is_label_issue=(score > -forest.offset_) & of_kind,
        reasons={"isolation": score},
    )


def find_by_grade(data: RankingData, *, noise: Any, seed: int = 0) -> LabelIssues:
    """Doubts every label by the share of wrong ones among rows of the same given grade: the bar to clear.

    Args:
        data: judged rows.
        noise: a Corruption, whose truth then gives the shares (the oracle of benchmarks); or a noise matrix,
            NoiseProfile or NoiseEstimate, from which they are worked out.
        seed: not used; nothing here is random.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((4, 1)), [0, 0, 0, 1], group=[4])
    >>> find_by_grade(data, noise=[[0.9, 0.1], [0.0, 1.0]]).doubt.round(3).tolist()
    [0.0, 0.0, 0.0, 0.333]
    """
    if isinstance(noise, Corruption):
        y = noise.data.y
        wrong = np.bincount(y, weights=noise.changed) / np.maximum(np.bincount(y), 1)
        if data.n_grades > len(wrong):
            rule = f"must be the corruption of these data, whose highest grade is {data.n_grades - 1}"
            raise invalid("noise", rule, f"one with grades up to {len(wrong) - 1}")
    else:
        wrong = expected_wrong(data, noise)
    doubt = wrong[data.y]
    return LabelIssues.of(data, doubt=doubt, is_label_issue=doubt > 0.5, reasons={"by_grade": doubt})


def expected_wrong(data: RankingData, noise: Any) -> FloatArray:
    """P(wrong | given grade) by a noise matrix T, from the shares of the given grades.

    The shares r >= 0 of true grades are those whose r T is closest to the given ones, by EM.
    """
    T = NoiseProfile.of(noise, data.n_grades).matrix
    share = np.bincount(data.y, minlength=len(T)) / max(data.n_docs, 1)
    r = np.full(len(T), 1 / len(T))
    for _ in range(EM_STEPS):
        mixed = r @ T
        step = r * (T @ np.where(mixed > 0, share / np.where(mixed > 0, mixed, 1.0), 0.0))
        done = float(abs(step - r).max()) < 1e-12
        r = step
        if done:
            break
    with np.errstate(invalid="ignore", divide="ignore"):
        right = np.where(share > 0, r * np.diag(T) / share, 1.0)
    wrong: FloatArray = np.clip(1 - right, 0.0, 1.0)
    return wrong
