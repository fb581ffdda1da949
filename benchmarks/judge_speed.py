"""Judges at the size of a large campaign: 100 systems x 50 queries x 1,000 documents, beside pytrec_eval.

The peer computes NDCG@10 of all systems under both labels and nothing else. ``--write`` makes
results/judge_speed.json.

    python benchmarks/judge_speed.py --write
"""

import argparse

import numpy as np
import pandas as pd
import pytrec_eval
from timing import interleaved, write_result

import cleanrank as cr

QUERIES, DOCUMENTS, SYSTEMS, GOLD_QUERIES, GOLD_DOCUMENTS = 50, 1000, 100, 15, 500


def main() -> None:
    """Times report and estimates, prints medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write results/judge_speed.json")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(QUERIES), DOCUMENTS)
    relevance = rng.normal(size=len(query))
    pairs = pd.DataFrame({"qid": [f"q{q}" for q in query], "docid": [f"d{i}" for i in range(len(query))]})
    gold = pairs.assign(grade=np.digitize(relevance, [1.0, 1.6, 2.2]))
    judge = pairs.assign(grade=np.digitize(relevance + 0.4 * rng.normal(size=len(query)), [0.8, 1.6, 2.2]))
    runs = {
        f"s{s}": pairs.assign(score=relevance + (0.5 + 0.02 * s) * rng.normal(size=len(query)))
        for s in range(SYSTEMS)
    }
    whole = gold[query < GOLD_QUERIES]
    sampled = gold.sample(GOLD_DOCUMENTS, random_state=0)
    nested = {name: _nested(frame, "score") for name, frame in runs.items()}
    evaluators = [
        pytrec_eval.RelevanceEvaluator(_nested(frame, "grade"), {"ndcg_cut.10"}) for frame in (gold, judge)
    ]
    bootstrap = {"interval": "bootstrap-t", "resamples": 10_000}
    timings = interleaved(
        {
            "pytrec_eval": lambda: [each.evaluate(run) for each in evaluators for run in nested.values()],
            "judge_report": lambda: cr.judge_report(gold, judge, runs),
            "evaluate_with_judge, queries": lambda: cr.evaluate_with_judge(
                runs, judge=judge, gold=whole, **bootstrap
            ),
            "evaluate_with_judge, documents": lambda: cr.evaluate_with_judge(
                runs, judge=judge, gold=sampled, measure="dcg@10", **bootstrap
            ),
        },
        repeats=asked.repeats,
    )
    for name, seconds in timings.medians.items():
        print(f"{name}: {seconds:.2f} s, {timings.ratio(name, 'pytrec_eval'):.2f} of pytrec_eval")
    if asked.write:
        sizes = {"systems": SYSTEMS, "queries": QUERIES, "documents": DOCUMENTS}
        write_result("judge_speed", {**sizes, **timings.summary()})


def _nested(frame: pd.DataFrame, value: str) -> dict[str, dict[str, float]]:
    return {
        q: dict(zip(part["docid"], part[value].tolist(), strict=True)) for q, part in frame.groupby("qid")
    }


if __name__ == "__main__":
    main()
