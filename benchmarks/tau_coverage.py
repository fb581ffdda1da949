"""How often intervals of rank correlations hold the correlation of all queries, on TREC Deep Learning 2019.

The 43 queries are redrawn with replacement; a nominal .95 interval of each sample is to hold tau and tau-AP
of the 43. Jackknife as in ``judges.system_order``, beside a percentile bootstrap of 300 draws.

    CLEANRANK_DATA=... python benchmarks/tau_coverage.py        # some minutes
"""

import argparse

import numpy as np
from judge_reports import frames, systems
from timing import write_result

from cleanrank.judges.labels import as_labels, as_runs, pool_of
from cleanrank.judges.system_order import DIGITS, jackknife, kendall_tau, tau_ap
from cleanrank.metrics.evaluation import evaluate

JUDGES = ("umbrella_gpt-4_zeroshot", "trema_4prompts_llama3-8b", "trema_genquery_llama3-8b")
MEASURES = ("ndcg@10:trec", "precision@10:trec")
DRAWS = 300


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=120)
    repetitions = parser.parse_args().repetitions
    gold, judges = frames("dl19")
    runs, rows = as_runs(systems()), []
    for name in JUDGES:
        pool = pool_of([as_labels(gold), as_labels(judges[name])], runs)
        for measure in MEASURES:
            by_gold, by_judge = (
                np.stack(
                    [
                        evaluate(np.ma.masked_equal(s, -np.inf), pool.data(grades), measure, order="data")
                        .by_query[0]
                        for s in pool.scores
                    ]
                )
                for grades in pool.grades
            )  # fmt: skip
            for correlation in (kendall_tau, tau_ap):
                rows.append({"judge": name, "measure": measure, "correlation": correlation.__name__})
                rows[-1] |= coverage(correlation, by_gold, by_judge, repetitions)
                print(rows[-1])
    ways = {way: [row[way] for row in rows] for way in ("jackknife", "bootstrap")}
    summary = {way: {"mean": float(np.mean(v)), "least": min(v), "most": max(v)} for way, v in ways.items()}
    write_result("tau_coverage", {"repetitions": repetitions, "summary": summary, "rows": rows})


def coverage(correlation, gold, judge, repetitions) -> dict[str, float]:
    """The correlation of all queries, and how often each kind of interval holds it."""

    def of_means(weights, a, b):
        return correlation(*((weights @ each.T).round(DIGITS) for each in (a, b)))

    Q = gold.shape[1]
    truth = of_means(np.full((1, Q), 1 / Q), gold, judge)[0]
    held = {"jackknife": 0, "bootstrap": 0}
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        sample = rng.integers(0, Q, Q)
        a, b = gold[:, sample], judge[:, sample]
        span = jackknife(correlation, a, b)
        drawn = of_means(rng.multinomial(Q, np.full(Q, 1 / Q), size=DRAWS) / Q, a, b)
        low, high = np.quantile(drawn, [0.025, 0.975])
        held["jackknife"] += span.low <= truth <= span.high
        held["bootstrap"] += low <= truth <= high
    return {"truth": float(truth), **{way: float(n / repetitions) for way, n in held.items()}}


if __name__ == "__main__":
    main()
