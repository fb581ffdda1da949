"""The main job on embedded data: make a judged set, train, evaluate, compare."""

from dataclasses import dataclass

import numpy as np

from cleanrank.data.split import split
from cleanrank.data.synthetic import make_ranking
from cleanrank.evaluate.compare import Comparison, compare
from cleanrank.rankers.trees import train_lambdarank
from cleanrank.types import FloatArray, Progress, RankingData

MEASURES = ("ndcg@10", "map:skip", "mrr", "auc")
ONE_FEATURE = "one feature"
LAMBDARANK = "LightGBM lambdarank"


@dataclass(frozen=True)
class Demo:
    """What the demo made and found: the data, the trees kept, the comparison on test queries."""

    train: RankingData
    validation: RankingData
    test: RankingData
    trees: int
    feature: int
    comparison: Comparison


def run_demo(
    n_queries: int = 600, *, seed: int = 0, n_jobs: int = 1, progress: Progress | None = None
) -> Demo:
    """Trains lambdarank on a synthetic set of web-search shape and compares it with its best single feature.

    Nothing is corrupted: this is the baseline that noise will be measured against.
    """
    train, validation, test = split(make_ranking(n_queries, seed=seed), (0.6, 0.2, 0.2), seed=seed)
    feature = best_feature(validation)
    model = train_lambdarank(train, validation, rounds=300, seed=seed, n_jobs=n_jobs, progress=progress)
    systems = {ONE_FEATURE: feature_scores(test, feature), LAMBDARANK: model.predict(test.X)}
    return Demo(
        train, validation, test, model.best_iteration, feature, compare(systems, test, MEASURES, seed=seed)
    )


def best_feature(data: RankingData) -> int:
    """The column that ranks ``data`` best by itself, in NDCG@10."""
    from cleanrank.evaluate.compare import evaluate

    values = [
        evaluate(feature_scores(data, column), data, "ndcg@10").means["ndcg@10"]
        for column in range(data.n_features)
    ]
    return int(np.argmax(values))


def feature_scores(data: RankingData, column: int) -> FloatArray:
    """One feature as score; missing values rank last."""
    X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    return np.nan_to_num(np.asarray(X[:, column], dtype=np.float64), nan=-1e300)
