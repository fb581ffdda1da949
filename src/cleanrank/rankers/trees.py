"""Boosted trees: the only place that talks to LightGBM.

lambda-LGBM is LightGBM's lambdarank with ``norm`` on, lambda-MART the same with ``norm`` off. GBDT is
least-squares boosting on the grade (Friedman 2001), which knows no queries.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np

from cleanrank.data.files import existing_file, written_whole
from cleanrank.errors import BadFileError, error_text, invalid
from cleanrank.losses.trees.lambdarank import (
    MODES,
    LambdaRankObjective,
    Observer,
    Ranking,
    check_grades,
)
from cleanrank.losses.trees.peer import PeerObjective, Peers
from cleanrank.metrics.measure import Measure
from cleanrank.rankers.base import rows_to_score
from cleanrank.rankers.settings import (
    DEFAULTS,
    LAMBDARANK,
    SEEDS,
    by_main_name,
    check_rows,
    check_run,
    in_our_words,
    lambdarank_settings,
    refuse_changing_trees,
)
from cleanrank.rankers.settings import refuse_broken as refuse_broken
from cleanrank.rankers.stopping import Watched
from cleanrank.types import Array, FloatArray, Progress, RankingData
from cleanrank.validation import one_of

OBJECTIVES: dict[str, str] = {
    "builtin": "LightGBM's own lambdarank; grades only, 10,000 rows a query at the most",
    **MODES,
}
LIGHTGBM_ROWS = 10_000


@dataclass(frozen=True)
class TreeRanker:
    """A trained forest.

    Attributes:
        booster: LightGBM's own model.
        best_iteration: trees that are used to score.
        validation_value: the measure on validation data at that point; None without validation data.
    """

    booster: lightgbm.Booster
    best_iteration: int
    validation_value: float | None = None

    @property
    def n_features(self) -> int:
        """Columns that the forest was trained on."""
        return int(self.booster.num_feature())

    def predict(self, X: Any, *, n_jobs: int = 1) -> FloatArray:
        """Scores of rows, in input order; they must have the columns that the forest was trained on."""
        rows = rows_to_score(X, self.n_features)
        found: FloatArray = np.asarray(
            self.booster.predict(rows, num_iteration=self.best_iteration, num_threads=n_jobs),
            dtype=np.float64,
        )
        return found

    def save(self, path: str | Path) -> None:
        """Writes LightGBM's text format, the trees in use alone."""
        with written_whole(path) as part:
            self.booster.save_model(str(part), num_iteration=self.best_iteration)


def load_trees(path: str | Path) -> TreeRanker:
    """Reads a model in LightGBM's text format."""
    found = existing_file(path)
    with found.open("rb") as file:
        first = file.readline(16).strip()
    if first != b"tree":
        raise BadFileError(
            error_text(
                f"model file {str(found)!r}", "must be LightGBM's text, which begins with 'tree'", repr(first)
            ),
            str(found),
        )
    if not _is_whole(found.read_bytes()):
        # LightGBM ends the whole process over such a file.
        rule = f"model file {str(found)!r} must be whole; got another number of bytes than its head counts."
        raise BadFileError(f"{rule} Copy or save it again.", str(found))
    try:
        booster = lightgbm.Booster(model_file=str(found))
    except lightgbm.basic.LightGBMError as error:
        raise BadFileError(f"model file {str(found)!r} must be whole: {error}.", str(found)) from None
    return TreeRanker(booster, booster.current_iteration())


def _is_whole(text: bytes) -> bool:
    """Whether a model's trees take as many bytes as its head says, and end where they should."""
    head, _, trees = text.partition(b"\nTree=0\n")
    sizes = re.search(rb"^tree_sizes=([\d ]*)$", head, re.MULTILINE)
    if sizes is None:
        return b"end of trees" in text
    if not sizes[1].strip():
        return b"\nend of trees" in head
    told = sum(int(size) for size in sizes[1].split()) - len(b"Tree=0\n")
    return trees[told:].startswith(b"end of trees")


def train_lambdarank(
    train: RankingData,
    validation: RankingData | None = None,
    *,
    norm: bool = True,
    objective: str | LambdaRankObjective = "builtin",
    peers: Peers | None = None,
    params: Mapping[str, Any] | None = None,
    measure: str | Measure = "ndcg@10",
    rounds: int = 500,
    early_stopping_rounds: int = 50,
    seed: int = 0,
    n_jobs: int = 1,
    deterministic: bool = True,
    observer: Observer | None = None,
    init_model: "TreeRanker | None" = None,
    position_bias: bool = False,
    progress: Progress | None = None,
) -> TreeRanker:
    """Trains lambdarank and keeps the round that is best on validation data.

    Args:
        train: rows to learn from.
        validation: rows to stop on; without them all rounds are kept.
        norm: normalisation of lambdas by query: on is lambda-LGBM, off lambda-MART.
        objective: one of OBJECTIVES; ours take real-valued gains and queries of any length. Or an objective
            that was made for ``train``, with its own observer.
        peers: subtract gradients of permuted labels (Peer-lambda-LGBM); not with the built-in objective.
        params: LightGBM parameters, under any of their names, that replace DEFAULTS.
        measure: what early stopping looks at: any cleanrank measure, or LightGBM's as "lightgbm:ndcg@10".
        rounds: trees at the most.
        early_stopping_rounds: rounds without gain before it stops; 0 never stops and keeps the best round.
        seed: for everything random inside LightGBM, which takes it modulo 2^31; one thread or many, the same
            trees.
        n_jobs: threads.
        deterministic: the same trees in every run; LightGBM may be a little slower.
        observer: called with (round, scores, order) for the forests of 0, 1, ... trees, the last included.
        init_model: a forest to continue; its scores are where the new trees start.
        position_bias: let LightGBM learn and remove the bias of ``positions``; built-in objective only.
        progress: called with (round, rounds).
    """
    if position_bias and (objective != "builtin" or train.positions is None):
        raise invalid(
            "position_bias",
            "needs positions and objective='builtin'",
            "no positions" if train.positions is None else f"objective={objective!r}",
        )
    own, rest = lambdarank_settings(params, norm)
    settings: dict[str, Any]
    if isinstance(objective, LambdaRankObjective):
        if len(own) > 1:
            raise invalid("params", "must leave lambdarank's settings to the objective given", sorted(own))
        settings = {"objective": objective}
        observer = objective.observer
    elif one_of("objective", objective, OBJECTIVES) == "builtin":
        _check_builtin(train, peers)
        settings = {
            "objective": "lambdarank",
            "lambdarank_norm": own.pop("norm"),
            "label_gain": own.pop("label_gain", None)
            or (2.0 ** np.arange(max(train.n_grades, 2)) - 1).tolist(),
            **{name: own[ours] for name, ours in LAMBDARANK.items() if ours in own},
        }
    else:
        options = {**own, "mode": objective, "observer": observer, "n_jobs": n_jobs}
        settings = {
            "objective": LambdaRankObjective(train, **options)
            if peers is None
            else PeerObjective(train, peers, **options)
        }
    return _boost(
        train,
        validation,
        settings,
        params=rest,
        measure=measure,
        rounds=rounds,
        early_stopping_rounds=early_stopping_rounds,
        seed=seed,
        n_jobs=n_jobs,
        deterministic=deterministic,
        observer=observer,
        init_model=init_model,
        progress=progress,
        position_bias=position_bias,
    )


def train_gbdt(
    train: RankingData,
    validation: RankingData | None = None,
    *,
    params: Mapping[str, Any] | None = None,
    measure: str | Measure = "ndcg@10",
    rounds: int = 500,
    early_stopping_rounds: int = 50,
    seed: int = 0,
    n_jobs: int = 1,
    deterministic: bool = True,
    observer: Observer | None = None,
    progress: Progress | None = None,
) -> TreeRanker:
    """Fits the grade by least squares, min sum_i (y_i - f(x_i))^2 (Friedman 2001), to rank by the fit.

    The arguments are those of ``train_lambdarank``; early stopping looks at a measure of the ranking all
    the same.
    """
    return _boost(
        train,
        validation,
        {"objective": "regression"},
        params=params,
        measure=measure,
        rounds=rounds,
        early_stopping_rounds=early_stopping_rounds,
        seed=seed,
        n_jobs=n_jobs,
        deterministic=deterministic,
        observer=observer,
        init_model=None,
        progress=progress,
    )


def _boost(
    train: RankingData,
    validation: RankingData | None,
    objective: Mapping[str, Any],
    *,
    params: Mapping[str, Any] | None,
    measure: str | Measure,
    rounds: int,
    early_stopping_rounds: int,
    seed: int,
    n_jobs: int,
    deterministic: bool,
    observer: Observer | None,
    init_model: TreeRanker | None,
    progress: Progress | None,
    position_bias: bool = False,
) -> TreeRanker:
    """Boosts an objective; ``params`` have the last word."""
    given = by_main_name(params)
    check_run(rounds, early_stopping_rounds, seed, n_jobs)
    check_rows(train, validation)
    refuse_broken(given)
    hook = objective["objective"] if isinstance(objective["objective"], LambdaRankObjective) else None
    if train.gains is not None and hook is None:
        raise invalid(
            "train",
            "must have grades only for LightGBM's own objectives",
            "real-valued gains",
            remedy="Use objective='exact'.",
        )
    if observer is not None:
        refuse_changing_trees(given)
    watched = Watched(measure, validation, n_jobs)
    settings = {
        **DEFAULTS,
        **objective,
        **watched.settings,
        "seed": seed % SEEDS,
        "deterministic": deterministic,
        "force_row_wise": True,
        "num_threads": 0 if n_jobs in (None, -1) else n_jobs,
        "verbosity": -1,
        **given,
    }
    callbacks: list[Callable[..., Any]] = []
    if progress is not None:
        callbacks.append(lambda env: progress(env.iteration - env.begin_iteration + 1, rounds))
    ranking = Ranking(train.indptr) if observer is not None and hook is None else None
    if observer is not None and ranking is not None:
        callbacks.append(_before_each_round(observer, ranking))
    history: dict[str, Any] = {}
    train_set = _dataset(train, position=train.positions if position_bias else None)
    valid_sets = [] if validation is None else [_dataset(validation, train_set)]
    if valid_sets:
        patience = early_stopping_rounds if early_stopping_rounds > 0 else rounds + 1
        callbacks += [
            lightgbm.early_stopping(patience, verbose=False),
            lightgbm.record_evaluation(history),
        ]
    with in_our_words(settings, train):
        booster = lightgbm.train(
            settings,
            train_set,
            num_boost_round=rounds,
            valid_sets=valid_sets,
            valid_names=["validation"] if valid_sets else None,
            feval=watched.feval if valid_sets else None,
            init_model=None if init_model is None else init_model.booster,
            callbacks=callbacks,
            keep_training_booster=observer is not None,
        )
    if observer is not None:
        # The last forest: no further gradients were asked for it.
        last = training_scores(booster)
        if hook is not None:
            hook.observe(last)
        elif ranking is not None:
            observer(ranking.rounds, last, ranking.update(last))
        booster.model_from_string(booster.model_to_string()).free_dataset()
    best = (
        booster.best_iteration if valid_sets and booster.best_iteration > 0 else booster.current_iteration()
    )
    values = history["validation"][watched.name] if valid_sets else []
    first = 0 if init_model is None else init_model.booster.current_iteration()
    return TreeRanker(booster, best, float(values[best - first - 1]) if values else None)


def _before_each_round(observer: Observer, ranking: Ranking) -> Callable[..., None]:
    """A callback that shows the observer what LightGBM's own objective is about to see."""

    def look(env: Any) -> None:
        scores = training_scores(env.model)
        observer(ranking.rounds, scores, ranking.update(scores))

    look.__dict__["before_iteration"] = True
    return look


def training_scores(booster: lightgbm.Booster) -> FloatArray:
    """The scores of the training rows that a booster in training keeps; LightGBM's buffer, not a copy."""
    seen: list[FloatArray] = []

    def read(scores: FloatArray, _: lightgbm.Dataset) -> tuple[str, float, bool]:
        seen.append(scores)
        return "seen", 0.0, True

    booster.eval_train(read)
    return seen[0]


def _check_builtin(train: RankingData, peers: Peers | None) -> None:
    check_grades(train)
    if peers is not None:
        raise invalid("objective", "must be 'exact' or 'parity' with peers", "'builtin'")
    longest = int(train.lengths.max(initial=0))
    if longest > LIGHTGBM_ROWS:
        raise invalid(
            "queries",
            f"must have at most {LIGHTGBM_ROWS:,} documents for LightGBM's own lambdarank",
            f"{longest:,}",
            remedy="Use objective='exact'.",
        )


def _dataset(
    data: RankingData,
    reference: lightgbm.Dataset | None = None,
    position: Array | None = None,
) -> lightgbm.Dataset:
    return lightgbm.Dataset(
        data.X,
        label=data.y,
        group=data.lengths,
        weight=data.weights,
        position=position,
        reference=reference,
        free_raw_data=True,
    )
