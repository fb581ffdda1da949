"""Isolation forests (Liu et al. 2008): documents whose features are easy to isolate.

s(x) = 2^(-E[h(x)] / c(psi)) for the mean depth E[h(x)] at which random trees on psi rows isolate x, and
c(m) = 2 H(m - 1) - 2 (m - 1) / m; a row with s > 1/2 is an outlier. Iso-lambda-LGBM of Marcuzzi et al. (2022)
leaves such documents out before it trains.
"""

from typing import Any

import numpy as np

from cleanrank.errors import invalid
from cleanrank.issues.outliers import labels_of_kind
from cleanrank.issues.table import LabelIssues
from cleanrank.stored import as_array, is_dense
from cleanrank.types import FloatArray, RankingData
from cleanrank.validation import check_integer, check_n_jobs, check_seed


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
    X: Any = as_array(data.X) if is_dense(data.X) else data.X
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
