"""Boosted trees: the only place that talks to LightGBM.

lambda-LGBM is LightGBM's lambdarank with ``norm`` on, lambda-MART the same with ``norm`` off. GBDT is
least-squares boosting on the grade (Friedman 2001), which knows no queries.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np

from cleanrank import checks
from cleanrank.checks import BadFileError
from cleanrank.data.files import existing_file, written_whole
from cleanrank.evaluate.compare import evaluate
from cleanrank.evaluate.measures import Measure
from cleanrank.losses.objectives import MODES, LambdaRankObjective, Observer, Ranking
from cleanrank.losses.peers import PeerObjective, Peers
from cleanrank.types import Array, FloatArray, Progress, RankingData

DEFAULTS: dict[str, Any] = {
    "learning_rate": 0.05,
    "num_leaves": 31,
    "min_data_in_leaf": 20,
    "min_sum_hessian_in_leaf": 0.0,
    "max_bin": 255,
}

OBJECTIVES: dict[str, str] = {
    "builtin": "LightGBM's own lambdarank; grades only, 10,000 rows a query at the most",
    **MODES,
}
# What LightGBM's lambdarank reads among the parameters, and what our objective calls it.
LAMBDARANK: dict[str, str] = {
    "sigmoid": "sigmoid",
    "lambdarank_truncation_level": "truncation_level",
    "label_gain": "label_gain",
    "lambdarank_norm": "norm",
}
LIGHTGBM_MEASURE = "lightgbm:"
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
        """Scores of rows, in input order."""
        found: FloatArray = np.asarray(
            self.booster.predict(X, num_iteration=self.best_iteration, num_threads=n_jobs), dtype=np.float64
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
        first = file.readline(64).strip()
    if first != b"tree":
        raise BadFileError(
            checks.complaint(
                f"model file {str(found)!r}", "must be LightGBM's text, which begins with 'tree'", repr(first)
            ),
            str(found),
        )
    try:
        booster = lightgbm.Booster(model_file=str(found))
    except lightgbm.basic.LightGBMError as error:
        raise BadFileError(f"model file {str(found)!r} must be whole: {error}.", str(found)) from None
    return TreeRanker(booster, booster.current_iteration())


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
        params: LightGBM parameters that replace DEFAULTS.
        measure: what early stopping looks at: any cleanrank measure, or LightGBM's as "lightgbm:ndcg@10".
        rounds: trees at the most.
        early_stopping_rounds: rounds without gain before it stops; 0 never stops and keeps the best round.
        seed: for everything random inside LightGBM; one thread or many, the same trees.
        n_jobs: threads.
        deterministic: the same trees in every run; LightGBM may be a little slower.
        observer: called with (round, scores, order) for the forests of 0, 1, ... trees, the last included.
        init_model: a forest to continue; its scores are where the new trees start.
        position_bias: let LightGBM learn and remove the bias of ``positions``; built-in objective only.
        progress: called with (round, rounds).
    """
    if position_bias and (objective != "builtin" or train.positions is None):
        checks.fail(
            "position_bias",
            "needs positions and objective='builtin'",
            "no positions" if train.positions is None else f"objective={objective!r}",
        )
    own, rest = _lambdarank_settings(params or {}, norm)
    settings: dict[str, Any]
    if isinstance(objective, LambdaRankObjective):
        settings = {"objective": objective}
        observer = objective.observer
    elif checks.known("objective", objective, OBJECTIVES) == "builtin":
        _check_builtin(train, peers)
        settings = {
            "objective": "lambdarank",
            "lambdarank_norm": own.pop("norm"),
            "label_gain": own.pop("label_gain", [2.0**grade - 1 for grade in range(max(train.n_grades, 2))]),
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


def _lambdarank_settings(params: Mapping[str, Any], norm: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parts the parameters that lambdarank reads, under our names, from those of the trees."""
    own = {"norm": norm} | {ours: params[name] for name, ours in LAMBDARANK.items() if name in params}
    return own, {name: value for name, value in params.items() if name not in LAMBDARANK}


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
    refuse_broken(params or {})
    hook = objective["objective"] if isinstance(objective["objective"], LambdaRankObjective) else None
    if train.gains is not None and hook is None:
        checks.fail(
            "train",
            "must have grades only for LightGBM's own objectives",
            "real-valued gains",
            remedy="Use objective='exact'.",
        )
    if observer is not None:
        refuse_changing_trees(params or {})
    watched = Watched(measure, validation, n_jobs)
    settings = {
        **DEFAULTS,
        **objective,
        **watched.settings,
        "seed": seed,
        "deterministic": deterministic,
        "force_row_wise": True,
        "num_threads": n_jobs,
        "verbosity": -1,
        **(params or {}),
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


class Watched:
    """What early stopping looks at: one of our measures or one of LightGBM's.

    Attributes:
        name: as LightGBM records it.
        settings: LightGBM parameters.
        feval: LightGBM's callable; None for its own measures.
    """

    def __init__(self, measure: str | Measure, validation: RankingData | None, n_jobs: int) -> None:
        if isinstance(measure, str) and measure.startswith(LIGHTGBM_MEASURE):
            self.name = measure.removeprefix(LIGHTGBM_MEASURE)
            metric, _, cutoff = self.name.partition("@")
            self.settings: dict[str, Any] = {"metric": metric} | (
                {"eval_at": [int(cutoff)]} if cutoff else {}
            )
            self.feval = None
            return
        parsed = Measure.parse(measure) if isinstance(measure, str) else measure
        self.name = str(parsed)
        self.settings = {"metric": "None"}

        def value(scores: FloatArray, _: lightgbm.Dataset) -> tuple[str, float, bool]:
            assert validation is not None
            found = evaluate(scores, validation, [parsed], n_jobs=n_jobs)
            return self.name, float(found.means[self.name]), True

        self.feval = value


def refuse_broken(params: Mapping[str, Any]) -> None:
    """Refuses LightGBM settings that are known to compute something else than they say."""
    if params.get("bagging_by_query"):
        checks.fail(
            "bagging_by_query",
            "must be off: LightGBM 4.7 gives the score updates of rows out of the bag to row 0",
            True,
            remedy="Use bagging_fraction without it.",
        )


def refuse_changing_trees(params: Mapping[str, Any]) -> None:
    """Refuses DART, which rescales earlier trees, so that no prefix of the forest is what was trained."""
    for name in ("boosting", "boosting_type", "boost"):
        if params.get(name) == "dart":
            checks.fail(
                name,
                "must not be 'dart' where the scores of prefixes are read: it rescales earlier trees",
                "dart",
                remedy="Use 'gbdt'.",
            )


def _check_builtin(train: RankingData, peers: Peers | None) -> None:
    if peers is not None:
        checks.fail("objective", "must be 'exact' or 'parity' with peers", "'builtin'")
    longest = int(train.lengths.max(initial=0))
    if longest > LIGHTGBM_ROWS:
        checks.fail(
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
