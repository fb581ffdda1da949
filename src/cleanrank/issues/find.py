"""``find_label_issues``: one call for every detector."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cleanrank.errors import invalid
from cleanrank.issues.auto import find_auto, find_by_grade
from cleanrank.issues.clicks import find_against_clicks
from cleanrank.issues.confident import find_confident
from cleanrank.issues.contradictions import find_contradictions
from cleanrank.issues.dynamics import find_by_loss, find_forgotten
from cleanrank.issues.isolation import find_isolated
from cleanrank.issues.outliers import Window
from cleanrank.issues.posterior import find_posterior
from cleanrank.issues.sour import Growing, watch_folds, watch_last, watch_model, watch_training
from cleanrank.issues.table import LabelIssues
from cleanrank.losses.trees.peer import Peers
from cleanrank.rankers.trees import TreeRanker, load_trees
from cleanrank.types import Progress, RankingData
from cleanrank.validation import check_seed, one_of

ROUNDS = 300


def find_label_issues(
    data: RankingData, method: str = "auto", *, noise: Any = None, seed: int = 0, **options: Any
) -> LabelIssues:
    """Doubts the labels of ``data`` with one of DETECTORS.

    The default learns the posterior of the true grade: under ``noise`` where it is known, else under the
    least that can be assumed (``issues/auto.py``). ``table.explain(data)`` gives reasons in words.

    Args:
        data: judged rows.
        method: the detector.
        noise: P(given | true) as a matrix, NoiseProfile or NoiseEstimate, for detectors that can use it.
        seed: for everything random.
        options: further arguments of the detector.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(30, 5, docs_per_query=20, seed=0)
    >>> noisy = cr.corrupt(data, rate=0.1, seed=1)
    >>> issues = cr.find_label_issues(noisy.data, noise=noisy.profile)
    >>> len(issues) == data.n_docs
    True
    """
    detector = DETECTORS[one_of("detector", method, DETECTORS)]
    check_seed(seed)
    known = options_of(method)
    for name in options:
        one_of(f"option of detector {method!r}", name, known)
    if noise is not None:
        if "noise" not in known:
            users = ", ".join(repr(name) for name in DETECTORS if "noise" in options_of(name))
            raise invalid("noise", f"goes with the detectors {users}", f"method {method!r}")
        options["noise"] = noise
    for name in needed_by(method):
        if name not in options:
            raise invalid(f"detector {method!r}", f"needs {name}=", "none", remedy=NEEDS.get(name, ""))
    return detector(data, seed=seed, **options)


def options_of(method: str) -> list[str]:
    """The names of a detector's options."""
    return list(inspect.signature(DETECTORS[method]).parameters)[1:]


def needed_by(method: str) -> list[str]:
    """The options that a detector cannot do without."""
    given = inspect.signature(DETECTORS[method]).parameters
    return [name for name, each in given.items() if name != "data" and each.default is each.empty]


def find_sour(
    data: RankingData,
    *,
    cutoff: int = 10,
    start: int | None = None,
    end: int = ROUNDS,
    kind: str = "all",
    rule: str = "paper",
    min_frequency: float = 1.0,
    include_f0: bool = False,
    highest_negative: int = 0,
    evidence: str = "rank",
    folds: int = 0,
    model: TreeRanker | str | Path | None = None,
    objective: str = "exact",
    norm: bool = True,
    peers: Peers | float | None = None,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> LabelIssues:
    """Consistent outliers of the forests of a training run (Marcuzzi et al. 2022).

    Args:
        data: judged rows.
        cutoff: k, the cut-off of the measure.
        start: s; half of ``end`` unless given. Early forests are unstable, so that few outliers survive from
            0 on.
        end: e, trees of the base forest.
        kind: "neg", "pos" or "all".
        rule: "paper" or "reference", see ``issues/_outlier_kernels.py``.
        min_frequency: share of the forests that must flag a document; less than 1 is p-SOUR.
        include_f0: look at the empty forest too.
        highest_negative: the highest grade that is not relevant.
        evidence: "rank", or "score" to weigh flags by score distances.
        folds: doubt every query by forests that never saw it, in so many folds; 0 means one forest.
        model: a forest that is there already, or the file it was saved in, instead of training one.
        objective: "exact", "parity" or "builtin".
        norm: on is lambda-LGBM, off lambda-MART.
        peers: the peer objective inside; a number is its alpha, with expected peers.
        params: LightGBM parameters.
        seed: for everything random.
        n_jobs: threads.
        progress: called with (round, rounds).
    """
    window = Window(
        cutoff=cutoff, start=end // 2 if start is None else start, end=end, kind=kind, rule=rule,
        min_frequency=min_frequency, include_f0=include_f0, highest_negative=highest_negative,
    )  # fmt: skip
    growing = Growing(
        objective=objective,
        norm=norm,
        peers=as_peers(peers, seed),
        params=params or {},
        seed=seed,
        n_jobs=n_jobs,
    )
    if model is not None and folds:
        raise invalid("folds", "must be 0 with a model that is there already", folds)
    if model is not None:
        forest = as_forest(model)
        detector = watch_model(data, forest, window, n_jobs=n_jobs, evidence=evidence)
        return detector.table(data, forest.predict(data.X))
    if folds:
        detector, scores = watch_folds(data, window, growing, n_folds=folds, evidence=evidence)
        return detector.table(data, scores)
    detector, forest = watch_training(data, window, growing, progress=progress, evidence=evidence)
    return detector.table(data, forest.predict(data.X))


def find_last_sour(
    data: RankingData,
    *,
    validation: RankingData | None = None,
    cutoff: int = 10,
    end: int = ROUNDS,
    early_stopping_rounds: int = 50,
    kind: str = "all",
    rule: str = "paper",
    highest_negative: int = 0,
    evidence: str = "rank",
    model: TreeRanker | str | Path | None = None,
    objective: str = "exact",
    norm: bool = True,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> LabelIssues:
    """Outliers of one forest alone: the one with as many trees as validation data find best, else ``end``.

    Arguments are those of ``find_sour``.
    """
    window = Window(
        cutoff=cutoff, start=end - 1, end=end, kind=kind, rule=rule, highest_negative=highest_negative
    )
    growing = Growing(
        objective=objective,
        norm=norm,
        params=params or {},
        measure=f"ndcg@{cutoff}",
        seed=seed,
        n_jobs=n_jobs,
    )
    forest = (
        as_forest(model)
        if model is not None
        else growing.train(
            data, validation, rounds=end, early_stopping_rounds=early_stopping_rounds, progress=progress
        )
    )
    detector = watch_last(data, forest, window, n_jobs=n_jobs, evidence=evidence)
    return detector.table(data, forest.predict(data.X))


def as_peers(peers: Peers | float | None, seed: int) -> Peers | None:
    """Expected peers from a bare alpha."""
    if peers is None or isinstance(peers, Peers):
        return peers
    alpha: Any = peers
    if isinstance(alpha, str):
        raise invalid("peers", "must be a number (alpha) or a Peers", repr(alpha))
    return Peers(float(alpha), kind="expected", seed=seed)


def as_forest(model: TreeRanker | str | Path) -> TreeRanker:
    """The forest, or the one saved in the file."""
    return model if isinstance(model, TreeRanker) else load_trees(model)


NEEDS = {
    "noise": "A noise matrix, a NoiseProfile or a NoiseEstimate (cleanrank gold).",
    "clicks": "A ClickLog (clicks_from_log) or ClickEvidence.",
}

DETECTORS: dict[str, Callable[..., LabelIssues]] = {
    "auto": find_auto,
    "posterior": find_posterior,
    "confident": find_confident,
    "loss": find_by_loss,
    "forgetting": find_forgotten,
    "contradictions": find_contradictions,
    "clicks": find_against_clicks,
    "sour": find_sour,
    "last-sour": find_last_sour,
    "isolation": find_isolated,
    "by-grade": find_by_grade,
}
