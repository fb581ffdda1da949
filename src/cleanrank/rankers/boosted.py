"""BoostedRanker: LambdaRank, least squares, pairwise losses and their robust forms on LightGBM's trees."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from cleanrank.cluster.client import is_on_cluster
from cleanrank.cluster.tasks import each
from cleanrank.errors import invalid
from cleanrank.losses.binary import ALIASES, LOSSES, BinaryLoss
from cleanrank.losses.pairs import check_peer_pairs
from cleanrank.losses.robust import ALPHA
from cleanrank.losses.robust_specs import Spec, robust_loss, robust_steps
from cleanrank.losses.trees.lambdarank import LambdaRankObjective
from cleanrank.losses.trees.pairwise import PairwiseObjective, RobustLambdaObjective
from cleanrank.losses.trees.peer import Peers
from cleanrank.metrics.evaluation import evaluate_mean
from cleanrank.metrics.measure import Measure
from cleanrank.ragged import segment_sum
from cleanrank.rankers._lightgbm import LIGHTGBM_MEASURE, resolve_aliases, sum_of_models
from cleanrank.rankers.base import best_of, check_labels, check_rows, held_out
from cleanrank.rankers.tree_ranker import TreeRanker
from cleanrank.rankers.trees import (
    LAMBDARANK,
    LAMBDAS,
    TreeModel,
    TreeParams,
    common_params,
    lambdarank_params,
)
from cleanrank.theory.peer import AUTO, pair_alpha, stated_alpha
from cleanrank.types import FloatArray, IntArray, Progress, RankingData
from cleanrank.validation import check_number, one_of

# Name -> values to choose from, or several such mappings, as scikit-learn's ParameterGrid takes them.
Grid: TypeAlias = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]
OBJECTIVES: dict[str, str] = {
    "lambdarank": "logistic loss on pairs, weighed by what a swap changes in NDCG (Burges 2006)",
    "lambdamart": "lambdarank without normalisation by query",
    "gbdt": "least squares on the grade, log2(1 + gain) where rows have gains",
    "ranknet": "logistic loss on pairs (Burges 2005)",
    **{name: f"{name} loss on pairs" for name, loss in LOSSES.items() if loss.trainable},
}
PEER = "peer"
AVERAGE = "average"
SEARCH = "search"
ALPHAS = (0.05, 0.1, 0.2, 0.5)
LEAF = "min_data_in_leaf"
SELECTIONS: dict[str, str] = {
    "best": "the model with the highest value on validation data",
    "average": "the mean of all models, each stopped where its smoothed curve on validation data is highest",
}
SMOOTHING = 10
HELD_OUT = 0.2
FEWEST_QUERIES = 3


@dataclass(kw_only=True, eq=False, repr=False)
class BoostedRanker(TreeRanker):
    """Boosted trees by LightGBM.

    Where something is chosen (``grid``, alpha="search") and there are no validation data, a fifth of the
    queries is held out for the choice, and the model is then trained on all rows.

    Args:
        objective: "lambdarank", "lambdamart" (without normalisation by query), "gbdt" (least squares on the
            grade, or on log2(1 + gain) where rows have gains), a binary loss on pairs of documents by name
            (see OBJECTIVES), or a BinaryLoss.
        robust: None; "peer" subtracts ``alpha`` times the loss of shuffled labels; or any robust form of the
            pairwise loss: a name of ``losses.robust.ROBUST``, a mapping with its options, or several.
        alpha: weight of peers: a number; "auto", e+ + e- of ``noise``, which theory gives for pairs of equal
            weight and lambdarank takes as an approximation; or "search", which trains with each of ALPHAS
            and keeps the best on validation data.
        peers: "sampled" (as published) or "expected"; lambdarank samples when not told, pairwise losses have
            expected peers alone.
        within: sampled peers take labels from the same "query" or from the "batch".
        permutations: sampled peers that are averaged for a tree.
        implementation: of lambdarank: "exact", "parity" (LightGBM's arithmetic) or "builtin" (its own).
        pairs: of a pairwise loss, one of PAIR_SETS; "strict" when not given, with peers "all_ordered".
        weighting: of a pairwise loss, one of PAIR_WEIGHTINGS; "micro" when not given, which with a
            label-symmetric loss keeps the order of models under noise.
        noise: for alpha="auto" and weighting="prevalence": a matrix P(given grade | true grade), the two keep
            probabilities, a NoiseProfile or a NoiseEstimate.
        truncation_level: one document of a pair stands at this rank or above; when not given, 30 for
            lambdarank and no limit for other losses.
        sigma: factor of score differences.
        label_gain: gain of each grade for lambdarank, else 2^y - 1; not read where rows have gains.
        grid: LightGBM parameters to choose from on validation data, name -> values, or a list of such grids.
        selection: "best" keeps the model of the grid with the highest value on validation data, which noisy
            labels make a matter of luck; "average" keeps all of them, each stopped where its smoothed curve
            is highest and brought to the same spread of scores within queries, as one forest.
        n_estimators: trees at the most.
        early_stopping_rounds: trees without gain on validation data before it stops; 0 never stops and keeps
            the best number of trees, None keeps all trees, as in LightGBM.
        measure: what early stopping and choices look at.
        learning_rate: shrinkage of a tree.
        num_leaves: of a tree.
        min_child_samples: documents per leaf at the least.
        random_state: for everything random.
        n_jobs: threads; the trees are the same for any number.
        deterministic: the same trees in every run.
        position_bias: learn and remove the bias of the positions at which rows were shown, by LightGBM;
            needs implementation="builtin". Positions are not read otherwise.
        params: further LightGBM parameters.

    Attributes:
        model_: the trained TreeModel.
        chosen_: what was chosen, its trees and its validation value.
        tried_: the same for everything that was tried; empty where nothing was chosen.
        alpha_: the weight of the peers, of "auto" a number that says why; None without peers.
        loss_: the binary loss on pairs; None where it is LambdaRank's own or there are no pairs.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(20, 5, docs_per_query=10, seed=0)
    >>> ranker = BoostedRanker(n_estimators=5).fit(data.X, data.y, qid=data.qid)
    >>> ranker.predict(data.X).shape == data.y.shape
    True
    """

    of_pairs: ClassVar[Sequence[str]] = ("pairs", "weighting", "noise")

    objective: str | BinaryLoss = "lambdarank"
    robust: Spec = None
    alpha: float | str = SEARCH
    peers: str | None = None
    within: str = "query"
    permutations: int = 1
    implementation: str = "exact"
    pairs: str | None = None
    weighting: str | None = None
    noise: Any = None
    truncation_level: int | None = None
    sigma: float = 1.0
    label_gain: Sequence[float] | None = None
    grid: Grid | None = None
    selection: str = "best"
    n_estimators: int = 500
    early_stopping_rounds: int | None = 50
    measure: str = "ndcg@10"
    learning_rate: float = 0.05
    num_leaves: int = 31
    min_child_samples: int = 20
    random_state: int = 0
    n_jobs: int = 1
    deterministic: bool = True
    position_bias: bool = False
    params: Mapping[str, Any] | None = None

    def check(self, train: RankingData, validation: RankingData | None = None) -> None:
        """Refuses settings and rows that cannot be trained with, before any work."""
        self._check_settings()
        check_rows(train, validation)
        own, _ = lambdarank_params(self._lambdarank(train) | resolve_aliases(self.params))
        label_gain = own.get("label_gain") if self.objective in LAMBDAS else None
        check_labels(train, label_gain, pairs=self.objective != "gbdt")
        if self._searches() and validation is None and train.n_queries < FEWEST_QUERIES:
            rule = f"must hold {FEWEST_QUERIES} queries or come with validation data (eval_set=)"
            raise invalid("training data", rule, train.n_queries)
        self.choices()
        if not str(self.measure).startswith(LIGHTGBM_MEASURE):
            Measure.parse(self.measure)

    def _fit(
        self,
        train: RankingData,
        validation: RankingData | None,
        *,
        progress: Progress | None = None,
    ) -> None:
        self.check(train, validation)
        search = self._searches()
        refit = search and validation is None
        learn, held = held_out(train, HELD_OUT, self.random_state) if refit else (train, validation)
        tried: list[tuple[float | None, TreeModel, dict[str, Any]]] = []
        choices = self.choices(learn.n_docs)
        trained = self._train_each([(c, self.n_estimators) for c in choices], learn, held, progress)
        for choice, model in zip(choices, trained, strict=True):
            value = model.validation_value
            # 0 where no validation query counts.
            tried.append((float(np.nan_to_num(value or 0.0)) if search else value, model, choice))
        kept = tried if self.selection == AVERAGE else [best_of(tried, lambda each: each[0] or 0.0)]
        models = [model for _, model, _ in kept]
        if refit:
            sizes = [(c, m.best_iteration) for _, m, c in kept]
            models = self._train_each(sizes, train, None, progress)
        value, model, choice = kept[0][0], models[0], kept[0][2]
        if len(kept) > 1:
            assert held is not None
            model = average_models(
                models, [m.predict(held.X, n_jobs=self.n_jobs) for _, m, _ in kept], held.indptr
            )
            value = evaluate_mean(
                model.predict(held.X, n_jobs=self.n_jobs), held, self.measure, n_jobs=self.n_jobs
            )
            model, choice = replace(model, validation_value=value, history=(value,)), {"models": len(kept)}
        self.tried_ = tuple(_record(c, v, m) for v, m, c in tried) if search else ()
        self.chosen_ = _record(choice, value, model)
        self.alpha_ = self._alpha(choice, train)
        self.model_ = model

    def choices(self, n_docs: int | None = None) -> list[dict[str, Any]]:
        """Every combination of the grid whose leaves ``n_docs`` can fill twice, for each alpha to try."""
        grids = self.grid if isinstance(self.grid, Sequence) and len(self.grid) else [self.grid]
        every = [cell for grid in grids for cell in self._cells(grid)]
        fitting = [cell for cell in every if n_docs is None or 2 * cell.get(LEAF, 0) <= n_docs]
        cells = fitting or [min(every, key=lambda cell: cell[LEAF])]
        return [{"alpha": a, **cell} for a in ALPHAS for cell in cells] if self._searches_alpha() else cells

    def _cells(self, grid: Any) -> list[dict[str, Any]]:
        """Every combination of one mapping of a grid, by LightGBM's main names."""
        fixed, grid = resolve_aliases(self.params), resolve_aliases(grid)
        for name, values in grid.items():
            if name in fixed:
                raise invalid("grid", f"must leave {name} to params, or params to the grid", list(grid))
            if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or not len(values):
                raise invalid(f"grid[{name!r}]", "must be a list of values to choose from", repr(values))
        return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]

    def make_objective(self, train: RankingData, alpha: Any = None) -> LambdaRankObjective | None:
        """The compiled objective on these rows, None where ``TreeParams`` has it."""
        self._check_settings()
        alpha = self._alpha({}, train) if alpha is None else alpha
        loss = self._pair_loss(alpha)
        own, _ = lambdarank_params(self._lambdarank(train) | resolve_aliases(self.params))
        options: dict[str, Any] = {"sigmoid": self.sigma, "n_jobs": self.n_jobs}
        if loss is None:
            return None
        if self.objective in LAMBDAS:
            options |= {"norm": self.objective == "lambdarank", "mode": self.implementation}
            return RobustLambdaObjective(train, loss, **options | own)
        if only := sorted(LAMBDARANK.keys() & resolve_aliases(self.params).keys()):
            raise invalid("params", "must leave out what only lambdarank reads", only)
        peers = has_peers(self.robust)
        pairs = self.pairs or ("all_ordered" if peers else "strict")
        if peers:
            check_peer_pairs(pairs, both_orders=self._stated_alpha() != AUTO)
        options |= {"pair_set": pairs, "weighting": self.weighting or "micro"}
        if self.weighting == "prevalence" or self._stated_alpha() != AUTO:
            options["noise"] = self.noise
        return PairwiseObjective(train, loss, truncation_level=self.truncation_level, **options)

    @property
    def loss_(self) -> BinaryLoss | None:
        """The binary loss on pairs; None where it is LambdaRank's own or there are no pairs."""
        self._fitted()
        return self._pair_loss(self.alpha_)

    @property
    def reads_positions(self) -> bool:
        """Whether LightGBM removes the bias of positions."""
        return self.position_bias

    def _pair_loss(self, alpha: Any) -> BinaryLoss | None:
        if self.objective in (*LAMBDAS, "gbdt") and self.robust in (None, PEER):
            return None
        weight = {} if alpha is None else {"alpha": float(alpha)}
        robust = [step | weight if step.get("name") == PEER else step for step in robust_steps(self.robust)]
        return robust_loss(robust, "logistic" if self.objective in LAMBDAS else self.objective)

    def _stated_alpha(self) -> Any:
        """The weight of peers as it is stated, in ``robust`` or in ``alpha``; None without peers."""
        peers = next((step for step in robust_steps(self.robust) if step.get("name") == PEER), None)
        return None if peers is None else peers.get("alpha", self.alpha)

    def _alpha(self, choice: Mapping[str, Any], train: RankingData) -> Any:
        """The weight of peers that a choice has, or that is stated; None without peers."""
        alpha = choice.get("alpha", self._stated_alpha())
        if alpha == AUTO:
            return pair_alpha(self.noise, train.y, lambdarank=self.objective in LAMBDAS)
        return ALPHA if alpha == SEARCH else alpha

    def _train_each(
        self,
        choices: Sequence[tuple[Mapping[str, Any], int]],
        train: RankingData,
        validation: RankingData | None,
        progress: Progress | None,
    ) -> list[TreeModel]:
        """The model of each (choice, trees); on a cluster a worker trains each of those to choose from."""
        if is_on_cluster() and self._searches():
            return list(each(_train_choice, [replace(self), train, validation], choices, progress))
        return [self._train(choice, train, validation, trees, progress) for choice, trees in choices]

    def _train(
        self,
        choice: Mapping[str, Any],
        train: RankingData,
        validation: RankingData | None,
        n_estimators: int,
        progress: Progress | None,
    ) -> TreeModel:
        cell = dict(choice)
        alpha = self._alpha(choice, train)
        cell.pop("alpha", None)
        objective = self.make_objective(train, alpha)
        params = (
            common_params(self.learning_rate, self.num_leaves, self.min_child_samples, self.params) | cell
        )
        peers = None
        if objective is None and self.objective in LAMBDAS:
            params = self._lambdarank(train) | params
            if self.robust == PEER:
                kind = self.peers or "sampled"
                peers = Peers(float(alpha), kind, self.within, self.permutations, self.random_state)
        elif objective is not None:
            _, params = lambdarank_params(params)
        settings = TreeParams(
            objective=str(self.objective) if objective is None else "lambdarank",
            implementation=self.implementation,
            peers=peers,
            params=params,
            n_estimators=n_estimators,
            early_stopping_rounds=self.early_stopping_rounds,
            smoothing=SMOOTHING if self.selection == AVERAGE else 0,
            measure=self.measure,
            seed=self.random_state,
            n_jobs=self.n_jobs,
            deterministic=self.deterministic,
            position_bias=self.position_bias,
            callbacks=self._callbacks,
        )
        return settings.train(train, validation, objective=objective, progress=progress)

    def _lambdarank(self, train: RankingData) -> dict[str, Any]:
        """What LambdaRank reads among the arguments, by LightGBM's names."""
        own = {
            "sigmoid": self.sigma,
            "lambdarank_truncation_level": self.truncation_level,
            "label_gain": self.label_gain if train.gains is None else None,
        }
        return {name: value for name, value in own.items() if value is not None}

    def _searches(self) -> bool:
        return self._searches_alpha() or self.grid is not None

    def _searches_alpha(self) -> bool:
        return bool(self._stated_alpha() == SEARCH)

    def _check_settings(self) -> None:
        """Refuses settings that mean nothing for the objective."""
        name: Any = self.objective
        pairwise = isinstance(name, BinaryLoss)
        if isinstance(name, str):
            pairwise = ALIASES.get(name, name) in LOSSES
        if not pairwise:
            one_of("objective", name, OBJECTIVES)
        check_number("sigma", self.sigma, above=0)
        alpha = self._stated_alpha()
        if alpha is not None:
            stated_alpha(alpha, self.noise, searched=SEARCH)
        elif isinstance(self.alpha, str):
            one_of("alpha", self.alpha, (AUTO, SEARCH))
        if one_of("selection", self.selection, SELECTIONS) == AVERAGE and self._searches_alpha():
            raise invalid("selection", "must be 'best' where alpha is chosen", repr(self.selection))
        if self.objective == "gbdt" and self.robust is not None:
            raise invalid("robust", "goes with lambdarank or a pairwise loss", "objective='gbdt'")
        if pairwise and self.robust == PEER and self.peers == "sampled":
            raise invalid("peers", "must be expected for a pairwise loss", "'sampled'")
        for name in () if pairwise else self.of_pairs:
            if getattr(self, name) is not None and (name != "noise" or alpha != AUTO):
                rule = f"has no meaning for {self.objective}"
                remedy = "Use a pairwise loss such as objective='ranknet', or leave it out."
                if name == "noise":
                    remedy = "Peers read it: robust='peer', alpha='auto'. Else leave it out."
                raise invalid(name, rule, repr(getattr(self, name)), remedy=remedy)


def _train_choice(
    ranker: BoostedRanker,
    train: RankingData,
    validation: RankingData | None,
    choice: Mapping[str, Any],
    trees: int,
) -> TreeModel:
    return ranker._train(choice, train, validation, trees, None)


def _record(choice: Mapping[str, Any], value: float | None, model: TreeModel) -> dict[str, Any]:
    return {**choice, "trees": model.best_iteration, "validation": value}


def average_models(
    models: Sequence[TreeModel],
    scores: Sequence[FloatArray],
    indptr: IntArray,
    weights: Sequence[float] | None = None,
) -> TreeModel:
    """One forest that scores by the weighted mean of several, each brought to the same spread within queries.

    Args:
        models: to be averaged.
        scores: what each of them says of the same rows, best of rows that it has not learnt from; these
            decide how large its scores are.
        indptr: where the queries of those rows begin.
        weights: how much each model counts, by its place; all alike when not given.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(20, 5, docs_per_query=10, seed=0)
    >>> few, many = (BoostedRanker(n_estimators=n).fit_data(data) for n in (2, 20))
    >>> scores = [few.predict(data.X), many.predict(data.X)]
    >>> average_models([few.model_, many.model_], scores, data.indptr).best_iteration
    22
    """
    shares = np.full(len(models), 1 / len(models)) if weights is None else np.asarray(weights, dtype=float)
    lengths = np.diff(indptr)
    means = (segment_sum(each, indptr) / np.maximum(lengths, 1) for each in scores)
    spreads = np.array([np.std(s - np.repeat(m, lengths)) for s, m in zip(scores, means, strict=True)])
    # A model without a split has no spread, and nothing to say.
    factors = np.divide(shares, spreads, out=np.zeros(len(models)), where=spreads > 0)
    return sum_of_models(models, factors.tolist())


def has_peers(spec: Spec) -> bool:
    """Whether a spec names peers."""
    return any(step.get("name") == PEER for step in robust_steps(spec))
