"""How near the estimate of a system's DCG@10 comes, by the documents that a person judges (dl19, 37 systems).

The grades of NIST stand in for the person. A language model has labelled all documents; some of them are
judged by NIST as well: drawn evenly from all that NIST judged, evenly from those that any system (of two
compared ones, either) ranks within the first ten, or as ``sample_for_evaluation`` draws them. The estimate is
the plain difference estimator: the mean gain by grade of the model (weighted by 1 / probability) for every
document, plus the weighted residuals of the sampled ones. Queries are fixed, so the truth is the DCG@10 under
NIST's grades (gain 2^y - 1).

Levels are those of each system from one sample; differences are those of each system from BASELINE, each from
a sample of its own. Figures are means over systems: root mean squared error with its standard error over
repetitions, width and coverage of the 95 % interval (normal, variance of Poisson sampling).

The last rows are the library's own estimate (``evaluate_with_judge``) from batches that continue each other,
looked at after 150, 300 and 600 documents: coverage of each look at its level, and of all looks together.

    python benchmarks/evaluation_sampling.py                # 500 and 100 repetitions, about eight minutes
    python benchmarks/evaluation_sampling.py --repetitions 50 --no-write
"""

import argparse
from dataclasses import replace

import numpy as np
import pandas as pd
from timing import write_result

from cleanrank.data.catalogue import dataset_path
from cleanrank.judges.evaluation import evaluate_with_judge
from cleanrank.judges.labels import as_labels, as_runs, pool_of
from cleanrank.judges.looks import level_of
from cleanrank.judges.sampling import sample_for_evaluation
from cleanrank.judges.sampling_sizes import document_sizes, gains_of, influence, within_cutoff
from cleanrank.metrics.measure import Measure

JUDGES = ("umbrella_gpt-4_zeroshot", "direct_llama3-8b")
BUDGETS = (150, 300, 600)
BASELINE = "bm25base_p"
MEASURE = Measure.parse("dcg@10:gain=exp", "trec")
COLUMNS = ("qid", "Q0", "docid", "rank", "score", "tag")
Z = 1.959964


def read(judge):
    """The pool, with the model's grades first and NIST's second."""
    folder = dataset_path("dl19")
    labels = pd.read_parquet(folder / "dl19.labels.parquet")
    lines = pd.read_csv(
        folder / "dl19.runs_top100.txt.gz", sep=r"\s+", names=COLUMNS, dtype={"qid": str, "docid": str}
    )
    runs = as_runs({tag: rows[["qid", "docid", "score"]] for tag, rows in lines.groupby("tag")})
    graded = [labels[["qid", "docid"]].assign(grade=labels[name]) for name in (f"j:{judge}", "nist")]
    return pool_of([as_labels(each) for each in graded], runs)


def designs(pool, size, top):
    """Design -> size of every document."""
    judged = (pool.grades >= 0).all(0).astype(float)
    return {"all judged": judged, "first ten": judged * top, "sample_for_evaluation": judged * size}


def draws(size, n, even, repetitions, rng):
    """(R, N) 1 / probability where a document is drawn, else 0."""
    rows = np.flatnonzero(size)
    inverse = np.zeros((repetitions, len(size)))
    order = rng.random((repetitions, len(rows))) / size[rows]
    drawn = np.sort(np.argpartition(order, n, axis=1)[:, :n], axis=1)
    last = np.partition(order, n, axis=1)[:, n]
    probability = n / len(rows) if even else np.minimum(1, size[rows][drawn] * last[:, None])
    np.put_along_axis(inverse, rows[drawn], 1 / probability, axis=1)
    return inverse


def estimates(pool, weight, inverse):
    """(R, S) estimates and their variances."""
    judge, gain = pool.grades[0], gains_of(MEASURE, pool.grades[1])
    counted = np.flatnonzero((judge >= 0) & (weight != 0).any(0))
    model = np.tile(gains_of(MEASURE, judge), (len(inverse), 1))
    for grade in range(int(judge.max()) + 1):
        rows = judge == grade
        mass = inverse[:, rows].sum(1)
        mean = inverse[:, rows] @ gain[rows] / np.maximum(mass, 1e-300)
        model[:, rows] = np.where(mass > 0, mean, 2.0**grade - 1)[:, None]
    model, w = model[:, counted], weight[:, counted]
    residual = (gain[counted] - model) * inverse[:, counted]
    left_out = 1 - 1 / np.maximum(inverse[:, counted], 1)
    return (model + residual) @ w.T, (residual**2 * left_out) @ (w**2).T


def figures(errors, variances):
    """Means over systems."""
    squares = (errors**2).mean(1)
    half = Z * np.sqrt(variances)
    rmse = np.sqrt((errors**2).mean(0)).mean()
    return {
        "rmse": float(rmse),
        "error of rmse": float(squares.std() / np.sqrt(len(squares)) / (2 * rmse)),
        "width": float(2 * half.mean()),
        "coverage": float((np.abs(errors) <= half).mean()),
        "largest bias / its error": float(
            np.abs(errors.mean(0) / (errors.std(0) / np.sqrt(len(errors)))).max()
        ),
    }


def sequential(judge, repetitions):
    """A row for each look, of the library's own estimate of levels."""
    pool = read(judge)
    pairs = pd.DataFrame({"qid": pool.query_ids[pool.query], "docid": pool.doc_ids})
    names, rows = list(pool.systems), np.isfinite(pool.scores)
    runs = {name: pairs[rows[k]].assign(score=pool.scores[k, rows[k]]) for k, name in enumerate(names)}
    labelled = [pairs[grades >= 0].assign(grade=grades[grades >= 0]) for grades in pool.grades]
    answers = labelled[1].set_index(["qid", "docid"])["grade"]
    runs, model = as_runs(runs), as_labels(labelled[0], "judge")
    truth = influence(pool, MEASURE) @ gains_of(MEASURE, pool.grades[1])
    intervals = np.empty((repetitions, len(BUDGETS), len(names), 3))
    for seed in range(repetitions):
        gold = None
        for k, n in enumerate(BUDGETS):
            frame = sample_for_evaluation(runs, model, n, measure=MEASURE, gold=gold, seed=seed).frame
            drawn = pd.MultiIndex.from_frame(frame[["qid", "docid"]])
            gold = frame.assign(true_grade=answers.reindex(drawn).to_numpy())
            level = level_of(k + 1, 0.95)
            found = evaluate_with_judge(runs, judge=model, gold=gold, measure=MEASURE, level=level)
            intervals[seed, k] = [(found[name].mean, found[name].low, found[name].high) for name in names]
    mean, low, high = np.moveaxis(intervals, 3, 0)
    held = (low <= truth) & (truth <= high)
    rows = []
    for k, n in enumerate(BUDGETS):
        row = {"judge": judge, "of": "levels", "documents": n, "drawn from": "sample_for_evaluation"}
        row |= {
            "estimate": "evaluate_with_judge",
            "rmse": float(np.sqrt(((mean[:, k] - truth) ** 2).mean(0)).mean()),
        }
        row |= {"level of the look": level_of(k + 1, 0.95), "width": float((high - low)[:, k].mean())}
        together = held[:, : k + 1].all(1)
        row |= {"coverage": float(held[:, k].mean()), "coverage of all looks so far": float(together.mean())}
        rows.append(row | {"least of a system": float(together.mean(0).min())})
        print(rows[-1], flush=True)
    return rows


def measure_all(repetitions, seed=0):
    """A row for each judge, budget and design, for levels and for differences."""
    found = []
    for judge in JUDGES:
        pool = read(judge)
        top = within_cutoff(pool, MEASURE)
        weight, gain = influence(pool, MEASURE), gains_of(MEASURE, pool.grades[1])
        base = pool.systems.index(BASELINE)
        others = [k for k in range(len(pool.systems)) if k != base]
        of_levels = designs(pool, document_sizes(pool, MEASURE)[0], top.any(0))
        of_pairs = {}
        for k in others:
            two = replace(pool, scores=pool.scores[[base, k]], systems=(BASELINE, pool.systems[k]))
            of_pairs[k] = designs(pool, document_sizes(two, MEASURE, True)[0], top[[base, k]].any(0))
        for n in BUDGETS:
            for name in of_levels:
                rng = np.random.default_rng([seed, n])
                inverse = draws(of_levels[name], n, name != "sample_for_evaluation", repetitions, rng)
                values, variances = estimates(pool, weight, inverse)
                row = {"judge": judge, "of": "levels", "documents": n, "drawn from": name}
                found.append(row | figures(values - weight @ gain, variances))
                print(found[-1], flush=True)
            for name in of_levels:
                errors, variances = [], []
                for k in others:
                    size = of_pairs[k][name]
                    pair = weight[[k]] - weight[[base]]
                    rng = np.random.default_rng([seed, n, k])
                    m = min(n, np.count_nonzero(size) - 1)
                    inverse = draws(size, m, name != "sample_for_evaluation", max(repetitions // 5, 20), rng)
                    value, variance = estimates(pool, pair, inverse)
                    errors.append(value - pair @ gain)
                    variances.append(variance)
                row = {"judge": judge, "of": "differences", "documents": n, "drawn from": name}
                found.append(row | figures(np.hstack(errors), np.hstack(variances)))
                print(found[-1], flush=True)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--no-write", action="store_true")
    arguments = parser.parse_args()
    rows = measure_all(arguments.repetitions)
    rows += sequential(JUDGES[0], max(arguments.repetitions // 5, 2))
    if not arguments.no_write:
        write_result("evaluation_sampling", {"repetitions": arguments.repetitions, "seed": 0, "rows": rows})
