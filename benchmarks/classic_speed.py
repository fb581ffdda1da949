"""Speed of the classic rankers beside plain NumPy and scikit-learn at equal results, growth to 1M documents.

RankBoost and AdaRank stand beside loops in NumPy, RankSVM beside LinearSVC on the differences of all pairs;
making those is not counted. Everything runs on one thread. ``--write`` makes
results/classic_speed_PART.json of every part that ran.

    python benchmarks/classic_speed.py --parts linear --repeats 2 --write
"""

import argparse
import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC
from timing import interleaved, timed, write_result

import cleanrank as cr
from cleanrank.rankers.classic.ada_rank import AdaRank
from cleanrank.rankers.classic.base import ClassicRanker
from cleanrank.rankers.classic.list_net import ListNet
from cleanrank.rankers.classic.rank_boost import RankBoost
from cleanrank.rankers.classic.rank_svm import RankSVM
from cleanrank.types import RankingData

C = 0.01
EQUAL = 1e-6  # how far objectives may lie apart, relative to the lower one
SHARED_QUERIES, PEER_QUERIES, LARGE_QUERIES = 30, 300, 2000  # of MSLR's shape; the last: 240,000 documents
SIZES = (10_000, 100_000, 1_000_000)
QUERIES, DOCUMENTS, FEATURES, HELD_QUERIES = 60, 150, 45, 20  # of a training fold of OHSUMED, about


def main() -> None:
    """Runs the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--write", action="store_true", help="write results/classic_speed_PART.json")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    for name in asked.parts:
        result = PARTS[name](asked.repeats)
        print(name, result)
        if asked.write:
            write_result(f"classic_speed_{name}", result)


def growth(
    make: Callable[[], ClassicRanker], sizes: Sequence[int] = SIZES, repeats: int = 3, n_features: int = 10
) -> dict[str, Any]:
    """Least seconds of a fit by number of documents, and time / (n log n) relative to the smallest size."""
    seconds = []
    for n in sizes:
        data = synthetic(n // 100, 100, n_features)
        make().fit_data(data)  # compiles
        seconds.append(min(timed(partial(make().fit_data, data)) for _ in range(repeats)))
    unit = [s / (n * math.log(n)) for s, n in zip(seconds, sizes, strict=True)]
    return {
        "documents": list(sizes),
        "features": n_features,
        "seconds": [float(f"{s:.4g}") for s in seconds],
        "per_n_log_n_relative": [round(each / unit[0], 3) for each in unit],
    }


def synthetic(n_queries: int, docs_per_query: int, n_features: int, seed: int = 0) -> RankingData:
    """Noisy linear grades 0..2 on features of which every second has many ties."""
    rng = np.random.default_rng(seed)
    n = n_queries * docs_per_query
    X = rng.normal(size=(n, n_features)).astype(np.float32)
    worth = X[:, : n_features // 3].sum(axis=1) / math.sqrt(n_features / 3) + 2 * rng.normal(size=n)
    X[:, ::2] = np.round(4 * X[:, ::2]) / 4
    return cr.from_arrays(X, np.digitize(worth, [1.2, 2.4]), group=np.full(n_queries, docs_per_query))


def boosting(repeats: int) -> dict[str, Any]:
    """RankBoost and AdaRank beside loops over pairs, features and queries in NumPy."""
    data = synthetic(QUERIES, DOCUMENTS, FEATURES)
    held = synthetic(HELD_QUERIES, DOCUMENTS, FEATURES, seed=1)
    every: dict[str, Any] = {"repeats": "keep", "tolerance": None, "early_stopping_rounds": None}
    ada = AdaRank(n_estimators=500, **every)
    boost = RankBoost(n_estimators=300)
    apart = {
        "RankBoost": float(np.abs(boost.fit_data(data).predict(data.X) - numpy_rank_boost(data, 300)).max()),
        "AdaRank": float(np.abs(ada.fit_data(data).coef_ - numpy_ada_rank(data, 500)).max()),
    }
    if max(apart.values()) > 1e-8:
        raise RuntimeError(f"results differ: {apart}")
    timings = interleaved(
        {
            "RankBoost": lambda: boost.fit_data(data),
            "RankBoost, NumPy": lambda: numpy_rank_boost(data, 300),
            "RankBoost with validation rows": lambda: RankBoost().fit_data(data, held),
            "AdaRank": lambda: ada.fit_data(data),
            "AdaRank, NumPy": lambda: numpy_ada_rank(data, 500),
            "AdaRank with validation rows": lambda: AdaRank(**every | {"early_stopping_rounds": 0}).fit_data(
                data, held
            ),
        },
        repeats=repeats,
    )
    return {
        "documents": data.n_docs,
        "features": data.n_features,
        "rounds": {"RankBoost": 300, "AdaRank": 500},
        "apart": apart,
        "medians_s": timings.summary()["medians_s"],
        "times_faster": {
            name: round(timings.ratio(f"{name}, NumPy", name), 1) for name in ("RankBoost", "AdaRank")
        },
        "growth": {
            "RankBoost, 20 rounds": growth(lambda: RankBoost(n_estimators=20), repeats=repeats),
            "AdaRank, 20 rounds": growth(lambda: AdaRank(n_estimators=20, **every), repeats=repeats),
        },
        "repeats": repeats,
    }


def numpy_rank_boost(data: RankingData, rounds: int, max_bins: int = 255) -> Any:
    """Scores of the rows by RankBoost on arrays of all pairs, feature by feature."""
    higher, lower = pair_rows(data)
    bins, n_bins = [], []
    for column in np.asarray(data.X, dtype=np.float64).T:
        values, place = np.unique(column, return_inverse=True)
        above = np.arange(1, len(values))
        if len(values) > max_bins:
            above = np.arange(1, max_bins) * len(values) // max_bins
        bins.append(np.searchsorted(above, place, side="right"))
        n_bins.append(len(above) + 1)
    weights = np.full(len(higher), 1 / len(higher))
    scores = np.zeros(data.n_docs)
    for _ in range(rounds):
        pull = np.bincount(higher, weights, data.n_docs) - np.bincount(lower, weights, data.n_docs)
        edges = [
            np.cumsum(np.bincount(b, pull, n)[::-1])[::-1][1:] for b, n in zip(bins, n_bins, strict=True)
        ]
        best = [np.abs(each).max() for each in edges]
        feature = int(np.argmax(best))
        place = int(np.argmax(np.abs(edges[feature])))
        alpha = np.arctanh(edges[feature][place])
        h = (bins[feature] > place).astype(np.float64)
        scores += alpha * h
        weights *= np.exp(-alpha * (h[higher] - h[lower]))
        weights /= weights.sum()
    return scores


def numpy_ada_rank(data: RankingData, rounds: int) -> Any:
    """Weights of features by AdaRank with RankLib's update, query by query."""
    X = np.asarray(data.X, dtype=np.float64)
    queries = [
        (slice(start, stop), data.y[start:stop] > 0)
        for start, stop in zip(data.indptr[:-1], data.indptr[1:], strict=True)
        if data.y[start:stop].any()
    ]

    def values(scores: Any) -> Any:
        return np.array([_average_precision(scores[rows], relevant) for rows, relevant in queries])

    E = np.array([values(column) for column in X.T])
    P = np.full(len(queries), 1 / len(queries))
    coef, scores = np.zeros(X.shape[1]), np.zeros(len(X))
    for _ in range(rounds):
        feature = int(np.argmax(E @ P))
        alpha = 0.5 * np.log((P @ (1 + E[feature])) / (P @ (1 - E[feature])))
        coef[feature] += alpha
        scores += alpha * X[:, feature]
        P *= np.exp(-alpha * values(scores))
        P /= P.sum()
    return coef


def _average_precision(scores: Any, relevant: Any) -> float:
    """Averaged over all orders of tied documents (McSherry and Najork 2008)."""
    order = np.argsort(-scores, kind="stable")
    ranked, descending = relevant[order], scores[order]
    starts = np.flatnonzero(np.r_[True, descending[1:] != descending[:-1]])
    sizes = np.diff(np.r_[starts, len(order)])
    inside = np.add.reduceat(ranked.astype(np.float64), starts)
    before = np.cumsum(inside) - inside
    group = np.repeat(np.arange(len(starts)), sizes)
    each = np.where(sizes > 1, (inside - 1) / np.maximum(sizes - 1, 1), 0.0)
    ranks = np.arange(len(order))
    expected = before[group] + 1 + (ranks - starts[group]) * each[group]
    total = (inside / sizes)[group] * expected / (ranks + 1)
    return float(total[inside[group] > 0].sum() / relevant.sum())


def linear(repeats: int) -> dict[str, Any]:
    """RankSVM beside LinearSVC at an equal objective, at 240,000 documents, growth; ListNet's growth."""
    both = beside_linear_svc(repeats)
    return {
        "C": C,
        "equal_objective": EQUAL,
        "both": both,
        "largest": largest(both["hinge"]["tol_of_LinearSVC"]),
        "large": large(),
        "growth": {
            "RankSVM": growth(lambda: RankSVM(C=1e-3), repeats=repeats),
            "ListNet, 20 steps": growth(lambda: ListNet(max_iter=20), repeats=repeats),
        },
        "repeats": repeats,
    }


def large() -> dict[str, Any]:
    """RankSVM at 240,000 documents."""
    data = mslr_shape(LARGE_QUERIES)
    fits = {loss: RankSVM(C=C, loss=loss, scaling="none") for loss in ("hinge", "squared_hinge")}
    seconds = {loss: timed(partial(fit.fit_data, data)) for loss, fit in fits.items()}
    return {
        "documents": data.n_docs,
        "seconds": {loss: round(each, 2) for loss, each in seconds.items()},
        "relative_gap": {loss: fit.gap_ / fit.objective_ for loss, fit in fits.items()},
    }


def beside_linear_svc(repeats: int) -> dict[str, Any]:
    """Both on the same rows; LinearSVC with the largest tolerance at which its objective is equal."""
    data = mslr_shape(SHARED_QUERIES)
    D, sign = pair_differences(data)
    result: dict[str, Any] = {"documents": data.n_docs, "features": data.n_features, "pairs": len(D)}
    for loss in ("hinge", "squared_hinge"):
        ours = RankSVM(C=C, loss=loss, scaling="none")
        enough = (1 + EQUAL) * ours.fit_data(data).objective_
        tol = next(tol for tol in 10.0 ** -np.arange(1, 9) if _objective(tol, loss, D, sign) <= enough)
        timings = interleaved(
            {
                "RankSVM": partial(ours.fit_data, data),
                "LinearSVC": partial(linear_svc, tol, loss, D, sign),
            },
            repeats=repeats,
            warm_up=0,
        )
        faster = round(timings.ratio("LinearSVC", "RankSVM"), 1)
        result[loss] = {**timings.summary(), "tol_of_LinearSVC": float(tol), "times_faster": faster}
    return result


def largest(tol: float) -> dict[str, Any]:
    """One fit of each on 1.9 million pairs: 7 GB for LinearSVC, and 45 for 240,000 documents."""
    data = mslr_shape(PEER_QUERIES)
    ours = RankSVM(C=C, scaling="none")
    seconds = {"RankSVM": timed(partial(ours.fit_data, data))}
    D, sign = pair_differences(data)
    objective = 0.0

    def peer() -> None:
        nonlocal objective
        objective = _objective(tol, "hinge", D, sign)

    seconds["LinearSVC"] = timed(peer)
    return {
        "documents": data.n_docs,
        "pairs": len(D),
        "seconds": {name: round(each, 2) for name, each in seconds.items()},
        "times_faster": round(seconds["LinearSVC"] / seconds["RankSVM"], 1),
        "objective_of_LinearSVC_above_ours": objective / ours.objective_ - 1,
    }


def mslr_shape(n_queries: int) -> RankingData:
    """Synthetic rows of the shape of MSLR, scaled to [-1, 1]."""
    data = cr.make_ranking(n_queries, seed=0)
    X = np.array(data.X)
    X -= X.min(axis=0)
    X *= 2 / np.maximum(X.max(axis=0), 1e-9)
    return cr.from_arrays(X - 1, data.y, group=data.lengths)


def pair_rows(data: RankingData) -> tuple[Any, Any]:
    """The rows of the better and of the worse document of every pair."""
    parts = []
    for start, stop in pairwise(data.indptr):
        higher, lower = np.nonzero(data.y[start:stop, None] > data.y[None, start:stop])
        parts.append((start + higher, start + lower))
    higher, lower = (np.concatenate(side) for side in zip(*parts, strict=True))
    return higher, lower


def pair_differences(data: RankingData) -> tuple[Any, Any]:
    """Differences of features of all pairs, every second one turned round, and which."""
    X = np.asarray(data.X, dtype=np.float64)
    higher, lower = pair_rows(data)
    D = X[higher] - X[lower]
    D[1::2] *= -1
    sign = np.ones(len(D))
    sign[1::2] = -1
    return D, sign


def linear_svc(tol: float, loss: str, D: Any, sign: Any) -> Any:
    """Weights by LinearSVC."""
    peer = LinearSVC(C=C, loss=loss, fit_intercept=False, dual=True, tol=tol, max_iter=5000, random_state=0)
    return peer.fit(D, sign).coef_[0]


def _objective(tol: float, loss: str, D: Any, sign: Any) -> float:
    """The objective that LinearSVC reaches."""
    w = linear_svc(tol, loss, D, sign)
    losses = np.maximum(0, 1 - sign * (D @ w)) ** (2 if loss == "squared_hinge" else 1)
    return float(0.5 * w @ w + C * losses.sum())


PARTS: dict[str, Callable[[int], dict[str, Any]]] = {"boosting": boosting, "linear": linear}

if __name__ == "__main__":
    main()
