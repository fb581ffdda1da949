"""Training of boosted trees that rank: how they are grown, and the model that comes out.

Lambda-LGBM is LightGBM's lambdarank with lambdas normalised by query (here "lambdarank"), lambda-MART the
same without that ("lambdamart"). GBDT is least-squares boosting on the grade, min sum_i (y_i - f(x_i))^2
(Friedman 2001), which knows no queries ("gbdt"); of rows with gains it learns log2(1 + gain), the grade that
has such a gain.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from cleanrank.cluster.client import is_on_cluster
from cleanrank.cluster.together import Network, together
from cleanrank.errors import invalid
from cleanrank.jit import query_chunks
from cleanrank.losses.trees.lambdarank import (
    MODES,
    LambdaRankObjective,
    Observer,
    Ranking,
    check_grades,
    part_of_observer,
)
from cleanrank.losses.trees.peer import PeerObjective, Peers
from cleanrank.metrics.measure import Measure
from cleanrank.rankers._lightgbm import (
    LIGHTGBM_MEASURE,
    boost,
    dataset,
    leaf_sum,
    on_network,
    refuse_dart,
    refuse_machines,
    resolve_aliases,
    run_settings,
    stopping_measure,
    training_scores,
    without_machines,
)
from cleanrank.rankers._lightgbm import TreeModel as TreeModel
from cleanrank.rankers.base import check_rows
from cleanrank.rankers.columns import with_categories
from cleanrank.remember import remembered
from cleanrank.types import FloatArray, Progress, RankingData
from cleanrank.validation import check_integer, check_n_jobs, check_seed, one_of

DEFAULTS: dict[str, Any] = {
    "learning_rate": 0.05,
    "num_leaves": 31,
    "min_data_in_leaf": 20,
    "max_bin": 255,
}
# What LightGBM's lambdarank reads among the parameters, and what our objective calls it.
LAMBDARANK: dict[str, str] = {
    "sigmoid": "sigmoid",
    "lambdarank_truncation_level": "truncation_level",
    "label_gain": "label_gain",
    "lambdarank_norm": "norm",
}
LAMBDAS = ("lambdarank", "lambdamart")
IMPLEMENTATIONS = ("builtin", *MODES)  # "builtin" is LightGBM's own
LIGHTGBM_ROWS = 10_000


@dataclass(frozen=True)
class TreeParams:
    """How trees are grown, and when growing stops.

    Attributes:
        objective: "lambdarank", "lambdamart" or "gbdt".
        implementation: of lambdarank, one of IMPLEMENTATIONS; ours take real-valued gains and queries of any
            length.
        peers: subtract gradients of permuted labels; not with the built-in implementation.
        params: LightGBM parameters, under any of their names, that replace DEFAULTS.
        n_estimators: trees at the most.
        early_stopping_rounds: trees without gain on validation data before it stops; 0 never stops and keeps
            the best number of trees, None keeps all.
        smoothing: the measure is averaged over so many trees before and after when their number is chosen.
        measure: what early stopping looks at: any cleanrank measure, or LightGBM's as "lightgbm:ndcg@10".
        seed: for everything random inside LightGBM.
        n_jobs: threads; the trees are the same for any number.
        deterministic: the same trees in every run; LightGBM may be a little slower.
        position_bias: let LightGBM learn and remove the bias of ``positions``; built-in implementation only.
        callbacks: of LightGBM, called after every tree.
    """

    objective: str = "lambdarank"
    implementation: str = "exact"
    peers: Peers | None = None
    params: Mapping[str, Any] | None = field(default_factory=dict)
    n_estimators: int = 500
    early_stopping_rounds: int | None = 50
    smoothing: int = 0
    measure: str | Measure = "ndcg@10"
    seed: int = 0
    n_jobs: int = 1
    deterministic: bool = True
    position_bias: bool = False
    callbacks: Sequence[Callable[..., Any]] = ()

    @remembered
    def train(
        self,
        train: RankingData,
        validation: RankingData | None = None,
        *,
        objective: LambdaRankObjective | None = None,
        observer: Observer | None = None,
        init_model: TreeModel | None = None,
        progress: Progress | None = None,
    ) -> TreeModel:
        """Trains a model and keeps the number of trees that is best on validation data.

        Args:
            train: rows to learn from.
            validation: rows to stop on; without them all trees are kept.
            objective: one that was made for ``train``, with its own observer, in place of the one named.
            observer: called with (trees, scores, order) for the models of 0, 1, ... trees, the last included.
            init_model: a model to continue; its scores are where the new trees start.
            progress: called with (trees, n_estimators).
        """
        own, params = lambdarank_params(self.params)
        train = with_categories(train, params.pop("categorical_feature", None))
        check_rows(train, validation)
        self._check(train, objective)
        if objective is not None and own:
            raise invalid("params", "must leave lambdarank's settings to the objective given", sorted(own))
        settings = self._objective(train, own, observer) if objective is None else {"objective": objective}
        hook = settings["objective"] if isinstance(settings["objective"], LambdaRankObjective) else None
        if train.gains is not None and hook is None and self.objective != "gbdt":
            rule = "must have grades only for LightGBM's own objectives"
            raise invalid("train", rule, "real-valued gains", remedy="Use implementation='exact'.")
        observer = observer if objective is None else objective.observer
        if observer is not None:
            refuse_dart(params)
        measure, _ = stopping_measure(self.measure, validation, self.n_jobs)
        settings = DEFAULTS | settings | measure
        settings |= run_settings(self.seed, self.n_jobs, self.deterministic) | params
        settings |= leaf_sum(train, settings)
        grow = self._grow_together if is_on_cluster() else self._grow
        return grow(train, validation, settings, observer, init_model, progress)

    def _grow(
        self,
        train: RankingData,
        validation: RankingData | None,
        settings: Mapping[str, Any],
        observer: Observer | None,
        init_model: TreeModel | None,
        progress: Progress | None,
    ) -> TreeModel:
        """Trains under LightGBM's parameters."""
        hook = settings["objective"] if isinstance(settings["objective"], LambdaRankObjective) else None
        _, feval = stopping_measure(self.measure, validation, self.n_jobs)
        callbacks = list(self.callbacks)
        if progress is not None:
            callbacks.append(lambda env: progress(env.iteration - env.begin_iteration + 1, self.n_estimators))
        ranking = Ranking(train.indptr) if observer is not None and hook is None else None
        if observer is not None and ranking is not None:
            callbacks.append(_before_each_tree(observer, ranking))
        train_set = dataset(train, positions=self.position_bias, label=self._target(train))
        patience = self.n_estimators + 1 if self.early_stopping_rounds == 0 else self.early_stopping_rounds
        model = boost(
            settings,
            train_set,
            self.n_estimators,
            validation_set=None
            if validation is None
            else dataset(validation, reference=train_set, label=self._target(validation)),
            patience=patience,
            smoothing=self.smoothing,
            feval=feval,
            callbacks=callbacks,
            init_model=init_model,
            keep=observer is not None,
        )
        if observer is not None:
            # The last model: no further gradients were asked for it.
            last = training_scores(model.booster)
            if hook is not None:
                hook.observe(last)
            elif ranking is not None:
                observer(ranking.rounds, last, ranking.update(last))
            model.booster.model_from_string(model.booster.model_to_string()).free_dataset()
        return model

    def _grow_together(
        self,
        train: RankingData,
        validation: RankingData | None,
        settings: Mapping[str, Any],
        observer: Observer | None,
        init_model: TreeModel | None,
        progress: Progress | None,
    ) -> TreeModel:
        """Trains one model on all workers of a cluster, each of which has a part of the queries.

        Workers see all validation rows, so that they stop alike.
        """
        refuse_machines(settings)
        if self.position_bias:
            remedy = "Train without client=."
            rule = "must be off on a cluster, whose workers would each learn a bias of their own"
            raise invalid("position_bias", rule, True, remedy=remedy)
        shared = dict(settings)
        hook = shared.pop("objective")
        watching: Any = observer
        if isinstance(hook, LambdaRankObjective):
            watching = None if observer is None else hook
        else:
            shared["objective"], hook = hook, None
        cuts: list[tuple[int, int]] = []

        def parts(workers: int) -> list[Callable[[], Any]]:
            cuts[:] = itertools.pairwise(query_chunks(train.indptr, workers).tolist())
            return [partial(_part, train, hook, observer, *cut) for cut in cuts]

        # Callbacks are the caller's, and stay with them.
        plain = replace(self, callbacks=())
        common = [plain, shared, validation, init_model]
        results = together(_grow_part, parts, common, n_jobs=self.n_jobs, progress=progress)
        for (first, last), (_, seen) in zip(cuts, results, strict=True):
            if watching is not None:
                watching.take(slice(train.indptr[first], train.indptr[last]), seen)
        model = results[0][0]
        assert model is not None
        return model

    def _check(self, train: RankingData, objective: LambdaRankObjective | None) -> None:
        one_of("objective", self.objective, (*LAMBDAS, "gbdt"))
        one_of("implementation", self.implementation, IMPLEMENTATIONS)
        check_integer("n_estimators", self.n_estimators, least=1)
        if self.early_stopping_rounds is not None:
            check_integer("early_stopping_rounds", self.early_stopping_rounds, least=0)
        if check_integer("smoothing", self.smoothing, least=0) and str(self.measure).startswith(
            LIGHTGBM_MEASURE
        ):
            raise invalid("smoothing", "goes with a measure of cleanrank", repr(self.measure))
        check_seed(self.seed)
        check_n_jobs(self.n_jobs)
        builtin = self.implementation == "builtin" and objective is None
        if self.position_bias and (not builtin or train.positions is None):
            rule = "needs positions and implementation='builtin'"
            raise invalid("correction of position bias", rule, f"implementation={self.implementation!r}")

    def _target(self, data: RankingData) -> FloatArray | None:
        """What least squares learn in place of the grades."""
        if self.objective != "gbdt" or data.gains is None:
            return None
        return np.asarray(np.log2(1 + np.maximum(data.gains, 0.0)))

    def _objective(
        self, train: RankingData, own: dict[str, Any], observer: Observer | None
    ) -> dict[str, Any]:
        """LightGBM's parameters of the objective that is named."""
        if self.objective == "gbdt":
            return {"objective": "regression"}
        own = {"norm": self.objective == "lambdarank"} | own
        if self.implementation == "builtin":
            _check_builtin(train, self.peers)
            gain = own.pop("label_gain", None) or (2.0 ** np.arange(max(train.n_grades, 2)) - 1).tolist()
            named = {name: own[ours] for name, ours in LAMBDARANK.items() if ours in own}
            return {"objective": "lambdarank", "label_gain": gain, **named}
        own |= {"mode": self.implementation, "observer": observer, "n_jobs": self.n_jobs}
        if self.peers is None:
            return {"objective": LambdaRankObjective(train, **own)}
        return {"objective": PeerObjective(train, self.peers, **own)}


def _part(
    train: RankingData, hook: LambdaRankObjective | None, observer: Observer | None, first: int, last: int
) -> tuple[RankingData, Any]:
    """The queries first, ..., last - 1, and the objective on them, else who observes them."""
    data = replace(train.query_range(first, last), extra=None)
    if hook is not None:
        return data, hook.part(first, last)
    return data, None if observer is None else part_of_observer(observer, first, last)


def _grow_part(
    part: tuple[RankingData, Any],
    network: Network,
    how: TreeParams,
    settings: Mapping[str, Any],
    validation: RankingData | None,
    init_model: TreeModel | None,
) -> tuple[TreeModel | None, Any]:
    """What a worker does: gives the model, if it is the first one, and what its observer has seen."""
    train, watching = part
    observer, own = watching, {**settings, "num_threads": network.threads}
    if isinstance(watching, LambdaRankObjective):
        observer, watching.n_jobs = watching.observer, network.threads
        own["objective"] = watching
    if observer is not None:
        observer.n_jobs = network.threads
    with on_network(network) as machines:
        learner = settings.get("tree_learner", "data") if machines else "serial"
        own |= {**machines, "tree_learner": learner}
        how = replace(how, n_jobs=network.threads)
        grown = how._grow(train, validation, own, observer, init_model, network.progress())
        model = without_machines(grown)
    return (model if network.place == 0 else None), None if observer is None else watching


def common_params(
    learning_rate: float, num_leaves: int, min_child_samples: int, params: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The parameters that every ranker of trees has, and further ones, by LightGBM's main names."""
    return {
        "learning_rate": learning_rate,
        "num_leaves": num_leaves,
        "min_data_in_leaf": min_child_samples,
        **resolve_aliases(params),
    }


def lambdarank_params(params: Mapping[str, Any] | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parts the parameters that lambdarank reads, under our names, from those of the trees."""
    rest = resolve_aliases(params)
    return {ours: rest.pop(name) for name, ours in LAMBDARANK.items() if name in rest}, rest


def _check_builtin(train: RankingData, peers: Peers | None) -> None:
    check_grades(train)
    if peers is not None:
        raise invalid("implementation", "must be 'exact' or 'parity' with peers", "'builtin'")
    longest = int(train.lengths.max(initial=0))
    if longest > LIGHTGBM_ROWS:
        rule = f"must have at most {LIGHTGBM_ROWS:,} documents for LightGBM's own lambdarank"
        raise invalid("queries", rule, f"{longest:,}", remedy="Use implementation='exact'.")


def _before_each_tree(observer: Observer, ranking: Ranking) -> Callable[..., None]:
    """A callback that shows the observer what LightGBM's own objective is about to see."""

    def look(env: Any) -> None:
        scores = training_scores(env.model)
        observer(ranking.rounds, scores, ranking.update(scores))

    look.__dict__["before_iteration"] = True
    return look
