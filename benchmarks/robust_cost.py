"""What RobustRanker costs, as a multiple of one tuned BoostedRanker with the same grid, in the same run.

Uniform noise of .2 on training and validation labels, at most 150 trees, one thread. The tuned ranker picks
the best of the four models of the grid, as everybody does.

    python benchmarks/robust_cost.py
"""

import argparse
from functools import partial

from timing import interleaved, write_result

import cleanrank as cr
from cleanrank.experiments.noises import SPLITS, add_noise
from cleanrank.experiments.sources import load_splits
from cleanrank.robust.robust_ranker import GRID

SETTINGS = {"n_estimators": 150, "early_stopping_rounds": 30, "params": {"feature_fraction": 0.8}}
SYNTHETIC = {"shape": "mslr", "n_queries": 640, "n_features": 40, "docs_per_query": 20.0, "test_queries": 1}
DATA = {"MQ2008": ("mq2008", {}), "OHSUMED": ("ohsumed", {}), "synthetic": ("synthetic", SYNTHETIC)}
TUNED, NOTHING, GOLD = "tuned BoostedRanker", "RobustRanker, nothing known", "RobustRanker, 100 gold rows"


def main() -> None:
    """Times the rankers on every data set."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    result = {}
    for label, (name, options) in DATA.items():
        clean = load_splits(name, 1, options)
        train, validation = add_noise("uniform", 0.2, (clean.train, clean.validation), SPLITS, 1)
        sheet = cr.sample_gold(train, 100, seed=1)
        gold = sheet.row_ids, clean.train.y[sheet.rows]
        timings = interleaved(
            {
                TUNED: partial(cr.BoostedRanker(grid=GRID, **SETTINGS).fit_data, train, validation),
                NOTHING: partial(cr.RobustRanker(**SETTINGS).fit_data, train, validation),
                GOLD: partial(cr.RobustRanker(**SETTINGS).fit_data, train, validation, gold=gold),
            },
            repeats=repeats,
        )
        times = {each: round(timings.ratio(each, TUNED), 2) for each in (NOTHING, GOLD)}
        result[label] = {"documents": train.n_docs, "times_the_tuned_ranker": times, **timings.summary()}
    write_result("robust_cost", {"data": result})


if __name__ == "__main__":
    main()
