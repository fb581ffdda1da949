"""Boosted trees in scikit-learn's manner: ``fit(X, y, qid=...)``, ``predict(X)``, parameters one can search.

Rows come in any order and scores go back in it. With metadata routing on, scikit-learn's cross-validation
hands ``qid`` on: ``BoostedRanker().set_fit_request(qid=True)`` and ``ranking_scorer("ndcg@10")``.
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cleanrank.data.arrays import row_order
from cleanrank.data.split import split
from cleanrank.errors import invalid
from cleanrank.losses.trees.peer import Peers
from cleanrank.metrics.evaluation import evaluate_arrays
from cleanrank.rankers.base import QID, Estimator, feature_matrix, is_frame, training_data, validation_data
from cleanrank.rankers.settings import by_main_name
from cleanrank.rankers.trees import TreeRanker, train_gbdt, train_lambdarank
from cleanrank.types import FloatArray, Progress, RankingData
from cleanrank.validation import one_of

FORESTS: dict[str, str] = {
    "lgbm": "lambdarank with lambdas normalised by query (lambda-LGBM)",
    "lambdamart": "lambdarank without that (lambda-MART)",
    "gbdt": "least squares on the grade (GBDT)",
}
ALPHAS = (0.05, 0.1, 0.2, 0.5)
HELD_OUT = 0.2


class BoostedRanker(Estimator):
    """A forest that ranks.

    Args:
        forest: one of FORESTS.
        objective: "exact", "parity" or "builtin" (LightGBM's own); see ``train_lambdarank``.
        n_estimators: trees at the most.
        early_stopping_rounds: rounds without gain on validation data before it stops.
        measure: what early stopping looks at.
        learning_rate: shrinkage of a tree.
        num_leaves: of a tree.
        min_child_samples: documents per leaf at the least.
        random_state: for everything random.
        n_jobs: threads; the trees are the same for any number.
        deterministic: the same trees in every run.
        params: further LightGBM parameters.

    Attributes:
        model_: the trained TreeRanker.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(20, 5, docs_per_query=10, seed=0)
    >>> ranker = BoostedRanker(n_estimators=5).fit(data.X, data.y, qid=data.qid)
    >>> ranker.predict(data.X).shape == data.y.shape
    True
    """

    def __init__(
        self,
        *,
        forest: str = "lgbm",
        objective: str = "exact",
        n_estimators: int = 500,
        early_stopping_rounds: int = 50,
        measure: str = "ndcg@10",
        learning_rate: float = 0.05,
        num_leaves: int = 31,
        min_child_samples: int = 20,
        random_state: int = 0,
        n_jobs: int = 1,
        deterministic: bool = True,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self.forest = forest
        self.objective = objective
        self.n_estimators = n_estimators
        self.early_stopping_rounds = early_stopping_rounds
        self.measure = measure
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.min_child_samples = min_child_samples
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.deterministic = deterministic
        self.params = params

    def fit(
        self,
        X: Any,
        y: npt.ArrayLike,
        *,
        qid: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        position: npt.ArrayLike | None = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Trains on rows in any order.

        Args:
            X: features; a column "qid" of a data frame names the queries.
            y: grades.
            qid: the query of every row.
            group: instead of ``qid``, documents per query when rows are contiguous.
            sample_weight: multiplies a row's gradients.
            position: the rank at which a row was shown, for LightGBM's correction of position bias; needs
                objective="builtin".
            eval_set: (X, y) of validation rows, or a list with that one pair.
            eval_qid: their queries.
            progress: called with (round, rounds).
        """
        train = training_data(X, y, qid=qid, group=group, sample_weight=sample_weight, position=position)
        return self.fit_data(train, validation_data(eval_set, eval_qid), progress=progress)

    def fit_data(
        self, train: RankingData, validation: RankingData | None = None, *, progress: Progress | None = None
    ) -> Self:
        """Trains on a RankingData."""
        one_of("forest", self.forest, FORESTS)
        options: dict[str, Any] = {**self._options(), "progress": progress}
        if self.forest == "gbdt":
            self.model_ = train_gbdt(train, validation, **options)
            return self
        self.model_ = train_lambdarank(
            train,
            validation,
            norm=self.forest == "lgbm",
            objective=self.objective,
            position_bias=train.positions is not None,
            **options,
        )
        return self

    def predict(self, X: Any) -> FloatArray:
        """One score per row, in input order; higher ranks first."""
        return self._model().predict(feature_matrix(X))

    def score(
        self,
        X: Any,
        y: npt.ArrayLike,
        *,
        qid: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
    ) -> float:
        """The mean of ``measure`` over the queries of judged rows."""
        if qid is None and group is None and is_frame(X) and QID in X.columns:
            qid = np.asarray(X[QID])
        return _mean(y, self.predict(X), qid, group, self.measure)

    def save(self, path: Any) -> None:
        """Writes LightGBM's text format; ``load_trees`` reads it."""
        self._model().save(path)

    def _model(self) -> TreeRanker:
        if not hasattr(self, "model_"):
            raise invalid("the ranker", "must be fitted before it predicts", "no model", remedy="Call fit.")
        return self.model_

    def _options(self) -> dict[str, Any]:
        return {
            "params": {
                "learning_rate": self.learning_rate,
                "num_leaves": self.num_leaves,
                "min_data_in_leaf": self.min_child_samples,
                **by_main_name(self.params),
            },
            "measure": self.measure,
            "rounds": self.n_estimators,
            "early_stopping_rounds": self.early_stopping_rounds,
            "seed": self.random_state,
            "n_jobs": self.n_jobs,
            "deterministic": self.deterministic,
        }


class PeerRanker(BoostedRanker):
    """Lambdarank less alpha times the gradients of shuffled labels (Peer-lambda-LGBM).

    Args:
        alpha: weight of the peers; "auto" trains with each of ALPHAS and keeps the best on validation data.
            That is a search: no theory gives alpha for lambdarank. Without validation data a fifth of the
            queries is held out for the search, and the forest is then trained on all rows.
        peers: "sampled" or "expected".
        within: sampled peers take labels from the same "query" or from the "batch".
        permutations: sampled peers that are averaged in a round.
        forest: "lgbm" or "lambdamart".
        objective: "exact" or "parity".
        n_estimators: as of BoostedRanker, and so on.

    Attributes:
        model_: the trained TreeRanker.
        alpha_: the weight in use.
        tried_: alpha -> value on validation data; empty when alpha was given.
    """

    def __init__(
        self,
        *,
        alpha: float | str = "auto",
        peers: str = "sampled",
        within: str = "query",
        permutations: int = 1,
        forest: str = "lgbm",
        objective: str = "exact",
        n_estimators: int = 500,
        early_stopping_rounds: int = 50,
        measure: str = "ndcg@10",
        learning_rate: float = 0.05,
        num_leaves: int = 31,
        min_child_samples: int = 20,
        random_state: int = 0,
        n_jobs: int = 1,
        deterministic: bool = True,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            forest=forest,
            objective=objective,
            n_estimators=n_estimators,
            early_stopping_rounds=early_stopping_rounds,
            measure=measure,
            learning_rate=learning_rate,
            num_leaves=num_leaves,
            min_child_samples=min_child_samples,
            random_state=random_state,
            n_jobs=n_jobs,
            deterministic=deterministic,
            params=params,
        )
        self.alpha = alpha
        self.peers = peers
        self.within = within
        self.permutations = permutations

    def fit_data(
        self, train: RankingData, validation: RankingData | None = None, *, progress: Progress | None = None
    ) -> Self:
        """Trains on a RankingData."""
        one_of("forest with peers", self.forest, ("lgbm", "lambdamart"))
        self.tried_: dict[float, float] = {}
        if isinstance(self.alpha, str):
            one_of("alpha", self.alpha, ("auto",))
            self._search(train, validation, progress)
        else:
            self.alpha_ = float(self.alpha)
            self.model_ = self._train(train, validation, self.alpha_, self.n_estimators, progress)
        return self

    def _search(self, train: RankingData, validation: RankingData | None, progress: Progress | None) -> None:
        learn, held = (
            (train, validation)
            if validation is not None
            else split(train, (1 - HELD_OUT, HELD_OUT), seed=self.random_state)
        )
        models = {a: self._train(learn, held, a, self.n_estimators, progress) for a in ALPHAS}
        self.tried_ = {a: float(model.validation_value or 0.0) for a, model in models.items()}
        self.alpha_ = max(ALPHAS, key=lambda a: self.tried_[a])
        self.model_ = models[self.alpha_]
        if validation is None:
            self.model_ = self._train(train, None, self.alpha_, self.model_.best_iteration, progress)

    def _train(
        self,
        train: RankingData,
        validation: RankingData | None,
        alpha: float,
        rounds: int,
        progress: Progress | None,
    ) -> TreeRanker:
        options = self._options() | {"rounds": rounds}
        # Peers take curvature away; a leaf must keep some, or its value has no bound.
        options["params"] = {"min_sum_hessian_in_leaf": 1e-3} | options["params"]
        return train_lambdarank(
            train,
            validation,
            norm=self.forest == "lgbm",
            objective=self.objective,
            peers=Peers(alpha, self.peers, self.within, self.permutations, self.random_state),
            progress=progress,
            **options,
        )


def ranking_scorer(measure: str = "ndcg@10") -> Any:
    """A scikit-learn scorer that asks for ``qid``: the mean of a measure over queries.

    Needs ``sklearn.set_config(enable_metadata_routing=True)``.
    """
    from sklearn.metrics import make_scorer

    def mean(y_true: npt.ArrayLike, y_pred: npt.ArrayLike, qid: npt.ArrayLike) -> float:
        return _mean(y_true, y_pred, qid, None, measure)

    return make_scorer(mean).set_score_request(qid=True)


def _mean(
    y: npt.ArrayLike,
    scores: npt.ArrayLike,
    qid: npt.ArrayLike | None,
    group: npt.ArrayLike | None,
    measure: str,
) -> float:
    grades, found = np.asarray(y), np.asarray(scores)
    order, indptr, _ = row_order(len(grades), qid, group)
    return float(next(iter(evaluate_arrays(grades[order], found[order], indptr, measure).means.values())))


ESTIMATORS = {"boosted": BoostedRanker, "peer": PeerRanker}
