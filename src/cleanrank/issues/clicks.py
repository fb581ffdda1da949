"""Grades that clicks speak against.

The click model says how likely a row's clicks are under each grade (``clicks/evidence.py``). Before any
click, a given grade is right with probability ``trust`` and the other grades share the rest. Bayes' rule then
gives doubt = 1 - P(given grade | clicks).
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from cleanrank.clicks.evidence import ClickEvidence, click_evidence
from cleanrank.clicks.logs import ClickLog
from cleanrank.clicks.models import ClickModel
from cleanrank.clicks.simulate import Flip
from cleanrank.errors import invalid
from cleanrank.issues.table import LabelIssues
from cleanrank.types import RankingData
from cleanrank.validation import check_number


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
