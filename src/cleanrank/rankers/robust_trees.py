"""Boosted trees on robust pairwise losses."""

from collections.abc import Mapping
from typing import Any, Self

from cleanrank.errors import invalid
from cleanrank.losses.binary import ALIASES, LOSSES, BinaryLoss
from cleanrank.losses.pairs import check_peer_pairs
from cleanrank.losses.robust_specs import Spec, robust_loss, robust_steps
from cleanrank.losses.trees.lambdarank import LambdaRankObjective
from cleanrank.losses.trees.pairwise import PairwiseObjective, RobustLambdaObjective
from cleanrank.rankers.estimators import BoostedRanker
from cleanrank.rankers.trees import train_lambdarank
from cleanrank.types import Progress, RankingData
from cleanrank.validation import check_number, one_of

TREE_LOSSES: dict[str, str] = {
    "lambdarank": "logistic loss on pairs, weighed by what a swap changes in NDCG (Burges 2006)",
    "ranknet": "logistic loss on pairs (Burges 2005)",
    **{name: f"{name} loss on pairs" for name, loss in LOSSES.items() if loss.trainable},
}


class RobustLGBMRanker(BoostedRanker):
    """A forest trained on a pairwise loss that stands label noise.

    ``RobustLGBMRanker(loss="lambdarank", robust=None)`` is ``BoostedRanker()``. Any other loss is read from
    its own formulas, also one of your own or a composed one; see ``cleanrank.losses.robust``.

    Args:
        loss: one of TREE_LOSSES, an alias, or a BinaryLoss.
        robust: what is made of the loss: None, a name of ROBUST, a mapping with its options, or several.
            Peers are expected ones here; ``PeerRanker`` has sampled peers.
        pairs: one of PAIR_SETS; by default "strict", with peers "all_ordered". Not for lambdarank.
        weighting: one of PAIR_WEIGHTINGS, "micro" by default: with a label-symmetric loss it keeps the order
            of models under noise. Not for lambdarank.
        noise: for weighting="prevalence", the noise matrix of the grades or the two keep probabilities.
        truncation_level: one document of a pair stands at this rank or above; by default 30 for lambdarank
            and no limit else.
        norm: lambdarank's normalisation by query.
        sigma: factor of score differences.
        n_estimators: as of BoostedRanker, and so on.

    Attributes:
        model_: the trained TreeRanker.
        loss_: the binary loss in use.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(20, 5, docs_per_query=10, seed=0)
    >>> ranker = RobustLGBMRanker(loss="sigmoid", n_estimators=5).fit(data.X, data.y, qid=data.qid)
    >>> ranker.predict(data.X).shape == data.y.shape
    True
    """

    def __init__(
        self,
        *,
        loss: str | BinaryLoss = "sigmoid",
        robust: Spec = None,
        pairs: str | None = None,
        weighting: str | None = None,
        noise: Any = None,
        truncation_level: int | None = None,
        norm: bool = True,
        sigma: float = 1.0,
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
        self.loss = loss
        self.robust = robust
        self.pairs = pairs
        self.weighting = weighting
        self.noise = noise
        self.truncation_level = truncation_level
        self.norm = norm
        self.sigma = sigma

    def fit_data(
        self, train: RankingData, validation: RankingData | None = None, *, progress: Progress | None = None
    ) -> Self:
        """Trains on a RankingData."""
        objective = self.make_objective(train)
        self.model_ = train_lambdarank(
            train,
            validation,
            objective=objective,
            position_bias=train.positions is not None,
            progress=progress,
            **self._options(),
        )
        return self

    def make_objective(self, train: RankingData) -> LambdaRankObjective:
        """The compiled objective on these rows; sets ``loss_``."""
        is_lambda = isinstance(self.loss, str) and self.loss == "lambdarank"
        if isinstance(self.loss, str) and ALIASES.get(self.loss, self.loss) not in LOSSES:
            one_of("loss", self.loss, TREE_LOSSES)
        check_number("sigma", self.sigma, above=0)
        self.loss_ = robust_loss(self.robust, "logistic" if is_lambda else self.loss)
        return self._lambda_objective(train) if is_lambda else self._pair_objective(train)

    def _lambda_objective(self, train: RankingData) -> LambdaRankObjective:
        for name in ("pairs", "weighting", "noise"):
            if getattr(self, name) is not None:
                raise invalid(
                    name,
                    "has no meaning for lambdarank, whose pairs weigh what a swap changes in NDCG",
                    repr(getattr(self, name)),
                    remedy="Use loss='ranknet', or leave it out.",
                )
        options: dict[str, Any] = {
            "norm": self.norm,
            "sigmoid": self.sigma,
            "truncation_level": 30 if self.truncation_level is None else self.truncation_level,
            "n_jobs": self.n_jobs,
        }
        if self.robust is None:
            return LambdaRankObjective(train, **options)
        return RobustLambdaObjective(train, self.loss_, **options)

    def _pair_objective(self, train: RankingData) -> PairwiseObjective:
        peers = has_peers(self.robust)
        pairs = self.pairs or ("all_ordered" if peers else "strict")
        if peers:
            check_peer_pairs(pairs)
        return PairwiseObjective(
            train,
            self.loss_,
            pair_set=pairs,
            weighting=self.weighting or "micro",
            noise=self.noise,
            sigmoid=self.sigma,
            truncation_level=self.truncation_level,
            n_jobs=self.n_jobs,
        )


def has_peers(spec: Spec) -> bool:
    """Whether a spec names peers.

    >>> has_peers(["label_smoothing", {"name": "peer"}]), has_peers("gce")
    (True, False)
    """
    return any(step.get("name") == "peer" for step in robust_steps(spec))
