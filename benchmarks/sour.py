"""What SOUR costs: detection while the base forest trains, bytes a document, and a whole fit.

    python benchmarks/sour.py

The base forest trains with and without the detector in interleaved pairs: with our objective, whose sort the
detector reads, and with LightGBM's own, whose scores a callback reads. On a noisy machine the difference of
two trainings says little about one per cent, so the time inside detector and callback is measured too.
"""

import statistics
import time
from dataclasses import replace
from typing import Any

import numpy as np
from timing import interleaved, write_result

import cleanrank as cr
from cleanrank.issues.outliers import SOUR, Window
from cleanrank.rankers import trees
from cleanrank.rankers.trees import TreeParams
from cleanrank.robust.sour import SOURRanker

QUERIES, FEATURES = 1000, 136
ROUNDS, FIT_ROUNDS, PAIRS, FITS = 20, 40, 3, 2
THREADS = 2


class Timed:
    """A detector that measures the time spent inside it."""

    def __init__(self, detector: SOUR) -> None:
        self.detector, self.seconds = detector, 0.0

    def __call__(self, round_: int, scores: Any, order: Any) -> None:
        """Looks on."""
        start = time.perf_counter()
        self.detector(round_, scores, order)
        self.seconds += time.perf_counter() - start


def detector_of(data: cr.RankingData) -> SOUR:
    return SOUR.of(data, Window(end=ROUNDS, kind="all"), n_jobs=THREADS)


def inside_detector(data: cr.RankingData, settings: TreeParams) -> float:
    """Seconds inside the detector as a share of the training that it watches."""
    timed = Timed(detector_of(data))
    start = time.perf_counter()
    settings.train(data, observer=timed)
    return timed.seconds / (time.perf_counter() - start)


def inside_callback(data: cr.RankingData, settings: TreeParams) -> float:
    """Seconds inside the callback (scores read, sorted, detected) as a share of the training."""
    spent = [0.0]
    plain = trees._before_each_tree

    def measured(observer: Any, ranking: Any) -> Any:
        inner = plain(observer, ranking)

        def look(env: Any) -> None:
            start = time.perf_counter()
            inner(env)
            spent[0] += time.perf_counter() - start

        look.__dict__["before_iteration"] = True
        return look

    trees._before_each_tree = measured
    try:
        start = time.perf_counter()
        settings.train(data, observer=detector_of(data))
        return spent[0] / (time.perf_counter() - start)
    finally:
        trees._before_each_tree = plain


def main() -> None:
    """Measures, prints, writes results/sour.json."""
    data = cr.make_ranking(QUERIES, FEATURES, seed=0)
    ours, builtin = (
        TreeParams(implementation=name, n_estimators=ROUNDS, n_jobs=THREADS) for name in ("exact", "builtin")
    )

    def forest(settings: TreeParams, watched: bool) -> Any:
        return lambda: settings.train(data, observer=detector_of(data) if watched else None)

    pairs = interleaved(
        {
            "exact": forest(ours, False),
            "exact, watched": forest(ours, True),
            "builtin": forest(builtin, False),
            "builtin, watched": forest(builtin, True),
        },
        repeats=PAIRS,
    )
    shares = {
        "fused": statistics.median(inside_detector(data, ours) for _ in range(3)),
        "callback": statistics.median(inside_callback(data, builtin) for _ in range(3)),
    }
    fits = interleaved(
        {
            "one training": lambda: replace(builtin, n_estimators=FIT_ROUNDS).train(data),
            "SOUR fit": lambda: SOURRanker(
                start=FIT_ROUNDS // 2, end=FIT_ROUNDS, n_estimators=FIT_ROUNDS, kind="all", n_jobs=THREADS
            ).fit_data(data),
        },
        repeats=FITS,
        warm_up=0,
    )
    detector = detector_of(data)
    kept = sum(
        v.nbytes
        for k, v in vars(detector).items()
        if isinstance(v, np.ndarray) and len(v) == data.n_docs and k != "y"
    )
    fit = fits.ratio("SOUR fit", "one training")
    write_result(
        "sour",
        {
            "documents": data.n_docs,
            "features": FEATURES,
            "threads": THREADS,
            "rounds": ROUNDS,
            "share_inside": {k: round(v, 4) for k, v in shares.items()},
            "watched_over_plain": {
                "fused": round(pairs.ratio("exact, watched", "exact"), 3),
                "callback": round(pairs.ratio("builtin, watched", "builtin"), 3),
            },
            "bytes_a_document": kept / data.n_docs,
            "fit_rounds": FIT_ROUNDS,
            "fit_over_one_training": round(fit, 3),
            "timings": pairs.summary() | {"fits": fits.summary()},
            "limits": {"fused": 0.02, "callback": 0.05, "bytes_a_document": 2, "fit_over_one_training": 2.1},
            "holds": shares["fused"] <= 0.02
            and shares["callback"] <= 0.05
            and kept <= 2 * data.n_docs
            and fit <= 2.1,
        },
    )


if __name__ == "__main__":
    main()
