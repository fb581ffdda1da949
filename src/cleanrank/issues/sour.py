"""Training runs and the detector that watches them: while they train, from a saved model, or out of fold."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.cluster.tasks import each
from cleanrank.data.split import fold_of_query
from cleanrank.errors import invalid
from cleanrank.issues.outliers import SOUR, Window
from cleanrank.issues.table import LabelIssues
from cleanrank.losses.trees.peer import Peers
from cleanrank.rankers.trees import TreeModel, TreeParams
from cleanrank.remember import is_remembering
from cleanrank.types import FloatArray, IntArray, Progress, RankingData
from cleanrank.validation import check_integer, is_number

TREES = 300


def find_sour(
    data: RankingData,
    *,
    cutoff: int = 10,
    start: int | None = None,
    end: int = TREES,
    kind: str = "all",
    rule: str = "paper",
    min_frequency: float = 1.0,
    include_f0: bool = False,
    highest_negative: int = 0,
    evidence: str = "rank",
    folds: int = 0,
    model: TreeModel | str | Path | None = None,
    objective: str = "exact",
    norm: bool = True,
    peers: Peers | float | None = None,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> LabelIssues:
    """Consistent outliers of the models of a training run (Marcuzzi et al. 2022).

    Args:
        data: judged rows.
        cutoff: k, the cut-off of the measure.
        start: s; half of ``end`` unless given. Models of few trees are unstable, so that few outliers would
            survive from 0.
        end: e, trees of the base model.
        kind: "neg", "pos" or "all".
        rule: "paper" or "reference", see ``issues/outliers.py``.
        min_frequency: share of the models that must flag a document; less than 1 is p-SOUR.
        include_f0: look at the model without trees too.
        highest_negative: the highest grade that is not relevant.
        evidence: "rank", or "score" to weigh flags by score distances.
        folds: doubt every query by models that never saw it, in so many folds; 0 means one model.
        model: a model that is there already, or the file it was saved in, instead of training one.
        objective: the implementation of lambdarank: "exact", "parity" or "builtin".
        norm: on is lambdarank, off lambdamart.
        peers: the peer objective inside; a number is its alpha, with expected peers.
        params: LightGBM parameters.
        seed: for everything random.
        n_jobs: threads.
        progress: called with (trees, end).
    """
    window = Window(
        cutoff=cutoff, start=end // 2 if start is None else start, end=end, kind=kind, rule=rule,
        min_frequency=min_frequency, include_f0=include_f0, highest_negative=highest_negative,
    )  # fmt: skip
    settings = TreeParams(
        objective="lambdarank" if norm else "lambdamart", implementation=objective,
        peers=as_peers(peers, seed), params=params, n_estimators=end, seed=seed, n_jobs=n_jobs,
    )  # fmt: skip
    if model is not None and folds:
        raise invalid("folds", "must be 0 with a model that is there already", folds)
    if folds:
        detector, scores = watch_folds(data, window, settings, n_folds=folds, evidence=evidence)
        return detector.table(data, scores)
    if model is not None:
        trained = as_model(model)
        detector = watch_model(data, trained, window, n_jobs=n_jobs, evidence=evidence)
    else:
        detector, trained = watch_training(data, window, settings, progress=progress, evidence=evidence)
    return detector.table(data, trained.predict(data.X, n_jobs=n_jobs))


def find_last_sour(
    data: RankingData,
    *,
    validation: RankingData | None = None,
    cutoff: int = 10,
    end: int = TREES,
    early_stopping_rounds: int = 50,
    kind: str = "all",
    rule: str = "paper",
    highest_negative: int = 0,
    evidence: str = "rank",
    model: TreeModel | str | Path | None = None,
    objective: str = "exact",
    norm: bool = True,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> LabelIssues:
    """Outliers of one model alone: the one with as many trees as validation data find best, else ``end``.

    Arguments are those of ``find_sour``.
    """
    window = Window(
        cutoff=cutoff, start=end - 1, end=end, kind=kind, rule=rule, highest_negative=highest_negative
    )
    settings = TreeParams(
        objective="lambdarank" if norm else "lambdamart", implementation=objective, params=params,
        n_estimators=end, early_stopping_rounds=early_stopping_rounds, measure=f"ndcg@{cutoff}", seed=seed,
        n_jobs=n_jobs,
    )  # fmt: skip
    trained = settings.train(data, validation, progress=progress) if model is None else as_model(model)
    detector = watch_last(data, trained, window, n_jobs=n_jobs, evidence=evidence)
    return detector.table(data, trained.predict(data.X, n_jobs=n_jobs))


def as_peers(peers: Any, seed: int) -> Peers | None:
    """Expected peers from a bare alpha."""
    if peers is None or isinstance(peers, Peers):
        return peers
    if not is_number(peers):
        raise invalid("peers", "must be a number (alpha) or a Peers", repr(peers))
    return Peers(float(peers), kind="expected", seed=seed)


def as_model(model: TreeModel | str | Path) -> TreeModel:
    """The model, or the one saved in the file."""
    return model if isinstance(model, TreeModel) else TreeModel.load(model)


def watch_training(
    data: RankingData,
    window: Window,
    settings: TreeParams | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> tuple[SOUR, TreeModel]:
    """Trains ``window.end`` trees on all of ``data`` and watches them; ``options`` are those of ``SOUR``.

    Where work is remembered, windows share one model: it is trained unwatched, with all the trees of
    ``settings``, and its first trees are watched afterwards, which finds the same.
    """
    settings = settings or TreeParams(n_estimators=window.end)
    if is_remembering():
        longest = replace(settings, n_estimators=max(window.end, settings.n_estimators))
        model = longest.train(data, progress=progress)
        detector = watch_model(data, model, window, **{"n_jobs": settings.n_jobs, **options})
        return detector, replace(model, best_iteration=min(window.end, model.best_iteration))
    settings = replace(settings, n_estimators=window.end)
    detector = SOUR.of(data, window, **{"n_jobs": settings.n_jobs, **options})
    return detector, settings.train(data, observer=detector, progress=progress)


def watch_model(
    data: RankingData, model: TreeModel, window: Window, *, n_jobs: int = 1, **options: Any
) -> SOUR:
    """Watches the first 1, 2, ... trees of a trained model; finds what watching the training finds."""
    return SOUR.of(data, window, n_jobs=n_jobs, **options).watch(_stages(data, model, window, n_jobs))


def _stages(
    data: RankingData, model: TreeModel, window: Window, n_jobs: int = 1
) -> Iterator[tuple[int, FloatArray]]:
    """(trees, scores) of a model up to the window's end, without trees too where that counts."""
    if window.include_f0:
        yield 0, np.zeros(data.n_docs)
    yield from model.staged_predict(data.X, end=window.end, n_jobs=n_jobs)


def watch_folds(
    data: RankingData, window: Window, settings: TreeParams | None = None, *, n_folds: int = 5, **options: Any
) -> tuple[SOUR, FloatArray]:
    """Watches, for every query, a model that never saw it; gives the detector and the last scores."""
    check_integer("folds", n_folds)
    settings = replace(settings or TreeParams(), n_estimators=window.end)
    whole = SOUR.of(data, window, **{"n_jobs": settings.n_jobs, **options})
    last = np.zeros(data.n_docs)
    n_folds = min(n_folds, max(data.n_queries, 2))
    fold_of = fold_of_query(data, n_folds, settings.seed)
    parts = each(_watch_fold, [data, fold_of, window, settings, options], [(k,) for k in range(n_folds)])
    for fold, (detector, scores) in enumerate(parts):
        held = np.repeat(fold_of == fold, data.lengths)
        if fold and detector.seen != whole.seen:
            rule = f"must have as many trees ({whole.seen} in the window)"
            remedy = "A model that stops growing is too strictly limited: lower min_data_in_leaf or end."
            raise invalid("models of all folds", rule, detector.seen, remedy=remedy)
        whole.take(held, detector)
        last[held] = scores
    return whole, last


def _watch_fold(
    data: RankingData,
    fold_of: IntArray,
    window: Window,
    settings: TreeParams,
    options: Mapping[str, Any],
    fold: int,
) -> tuple[SOUR, FloatArray]:
    """What a model of the other folds says of the queries of one."""
    held = np.repeat(fold_of == fold, data.lengths)
    rows = data.select(held)
    model = settings.train(data.drop(held))
    detector = watch_model(rows, model, window, n_jobs=settings.n_jobs, **options)
    return detector, model.predict(rows.X, n_jobs=settings.n_jobs)


def watch_last(data: RankingData, model: TreeModel, window: Window, **options: Any) -> SOUR:
    """last-SOUR: the ranking of one model alone, that of the trees in use (Marcuzzi et al. 2022)."""
    trees = model.best_iteration
    single = replace(window, start=trees - 1, end=trees, min_frequency=1.0, include_f0=False)
    return SOUR.of(data, single, **options).watch([(trees, model.predict(data.X))])


def outlier_history(
    data: RankingData,
    model: TreeModel,
    window: Window,
    *,
    bands: int = 10,
    steps: int = 10,
    n_jobs: int = 1,
    whole: SOUR | None = None,
) -> tuple[FloatArray, IntArray]:
    """The share of flags by frequency band and step of the training (Figure 6 of Marcuzzi et al. 2022).

    Of the documents flagged at least once, band b holds those flagged in b/bands to (b+1)/bands of the
    models; a step is a run of consecutive models. Gives the table (bands, steps) of shares and the number of
    documents in each band. ``whole`` has watched these models; without it they are ranked twice.
    """
    whole = watch_model(data, model, window, n_jobs=n_jobs) if whole is None else whole
    band = np.minimum((whole.frequency * bands).astype(np.int64), bands - 1)
    band[whole.counts == 0] = bands
    sizes = np.bincount(band, minlength=bands + 1)[:bands]
    flagged = np.zeros((bands + 1, steps))
    seen = np.zeros(steps)
    again = SOUR.of(data, window, n_jobs=n_jobs)
    before = again.counts.copy()
    for trees, scores in _stages(data, model, window, n_jobs):
        again(trees, scores)
        if not window.holds(trees):
            continue
        step = (again.seen - 1) * steps // whole.seen
        flagged[:, step] += np.bincount(band, weights=again.counts - before, minlength=bands + 1)
        seen[step] += 1
        before[:] = again.counts
    with np.errstate(invalid="ignore", divide="ignore"):
        shares: FloatArray = flagged[:bands] / (sizes[:, None] * seen)
    return shares, sizes
