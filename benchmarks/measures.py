"""How fast are measures? NDCG@10, and NDCG@10 + MAP + AUC, against LightGBM's own NDCG@10 and libraries.

    python benchmarks/measures.py

Goals: NDCG@10 alone at most .5x and all three at most 1.5x the time of LightGBM's NDCG@10 on cached scores;
all three at least 10x faster than ranx, ir_measures and pytrec_eval, which compute NDCG@10 and MAP (they lack
AUC). All get their inputs prepared: a Dataset, a RankingData, dictionaries, a Qrels and a Run.
"""

from itertools import pairwise

import lightgbm as lgb
import numpy as np
from timing import interleaved, write_result

import cleanrank as cr

QUERIES, DOCUMENTS = 2000, 240_000
SHARES = (0.517, 0.325, 0.133, 0.017, 0.008)
THREE = ("ndcg@10", "map", "auc")
PEERS = ("pytrec_eval", "ir_measures", "ranx")


def web_search(seed=0):
    """Grades, features and row offsets of the shape of a web-search set."""
    rng = np.random.default_rng(seed)
    sizes = rng.lognormal(4.6, 0.5, QUERIES)
    sizes = np.maximum((sizes * DOCUMENTS / sizes.sum()).astype(int), 1)
    sizes[-1] += DOCUMENTS - sizes.sum()
    y = rng.choice(5, DOCUMENTS, p=SHARES).astype(np.int32)
    X = (y[:, None] + 3 * rng.normal(size=(DOCUMENTS, 10))).astype(np.float32)
    return X, y, np.concatenate(([0], np.cumsum(sizes)))


def main():
    X, y, indptr = web_search()
    group = np.diff(indptr)
    data = lgb.Dataset(X, y, group=group)
    params = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "verbose": -1}
    booster = lgb.Booster(params, data)
    booster.add_valid(lgb.Dataset(X, y, group=group, reference=data), "valid")
    for _ in range(50):
        booster.update()
    scores = booster.predict(X, raw_score=True)
    judged = cr.from_arrays(X, y, group=group)
    fast = interleaved(
        {
            "lightgbm_ndcg": booster.eval_valid,
            "ndcg": lambda: cr.evaluate(scores, judged, "ndcg@10"),
            "three": lambda: cr.evaluate(scores, judged, THREE),
        },
        repeats=64,
        warm_up=3,
    )
    difference = cr.evaluate(scores, judged, "ndcg@10").means["ndcg@10"] - booster.eval_valid()[0][2]
    slow = interleaved(
        {
            "three": lambda: cr.evaluate(scores, judged, THREE),
            "two": lambda: cr.evaluate(scores, judged, THREE[:2]),
            **peers(y, scores, indptr),
        },
        repeats=32,
        warm_up=2,
    )
    found = {
        "queries": QUERIES,
        "documents": DOCUMENTS,
        "ndcg_by_lightgbm": fast.ratio("ndcg", "lightgbm_ndcg"),
        "three_by_lightgbm": fast.ratio("three", "lightgbm_ndcg"),
        "times_faster_than": {name: slow.ratio(name, "three") for name in PEERS},
        "times_faster_on_ndcg_and_map": {name: slow.ratio(name, "two") for name in PEERS},
        "difference_to_lightgbm": difference,
        "fast": fast.summary(),
        "peers": slow.summary(),
    }
    found["goals"] = {
        "ndcg_at_most_.5": found["ndcg_by_lightgbm"] <= 0.5,
        "three_at_most_1.5": found["three_by_lightgbm"] <= 1.5,
        "peers_at_least_10": min(found["times_faster_than"].values()) >= 10,
    }
    write_result("measures", found)


def peers(y, scores, indptr):
    """NDCG@10 and MAP (AUC they lack) of the libraries, on inputs in the form they like best."""
    import ir_measures
    import pytrec_eval
    from ranx import Qrels, Run
    from ranx import evaluate as ranx_evaluate

    judged, run = {}, {}
    for q, (a, b) in enumerate(pairwise(indptr)):
        names = [f"d{d}" for d in range(b - a)]
        judged[str(q)] = dict(zip(names, y[a:b].tolist(), strict=True))
        run[str(q)] = dict(zip(names, scores[a:b].tolist(), strict=True))
    evaluator = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut.10", "map"})
    ir_evaluator = ir_measures.evaluator([ir_measures.nDCG @ 10, ir_measures.AP], judged)
    qrels, ranked = Qrels(judged), Run(run)
    return {
        "pytrec_eval": lambda: evaluator.evaluate(run),
        "ir_measures": lambda: ir_evaluator.calc_aggregate(run),
        "ranx": lambda: ranx_evaluate(qrels, ranked, ["ndcg@10", "map"]),
    }


if __name__ == "__main__":
    main()
