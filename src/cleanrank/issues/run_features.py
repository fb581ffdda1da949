"""Features of pairs of query and document from the rankings of systems, and how far these agree.

Of every system two: ``rr``, 1 / rank, and ``score``, scaled to 0..1 over what it retrieved for the query;
both 0 where it did not retrieve the document. Of all systems: ``retrieved``, the share that retrieve it;
``top10``, the share that rank it in their first ten; ``best``, ``mean_rr`` and ``mean_score``; ``fusion``,
the mean of 61 / (60 + rank), 0 where not retrieved (reciprocal rank fusion, Cormack et al. 2009); ``spread``,
the standard deviation of log rank over the systems that retrieve it, NaN where fewer than two do.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from cleanrank.data.trec import scores_from_run
from cleanrank.types import FloatArray, IntArray, RankingData, Run

FUSION = 60.0
TOP = 10


def run_features(runs: Mapping[str, Run], data: RankingData) -> dict[str, FloatArray]:
    """The features of every row: ``runs:NAME`` of all systems, ``run:SYSTEM:rr`` and ``:score`` of each.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((2, 0)), [1, 0], qid=["q", "q"], doc_ids=["a", "b"])
    >>> topic, doc, scores = np.array([0, 0]), np.array([0, 1]), np.array([1.0, 2.0])
    >>> run = Run(np.array(["q"]), np.array(["b", "c"]), topic, doc, scores)
    >>> run_features({"new": run}, data)["run:new:rr"].tolist()
    [0.0, 0.5]
    """
    ranks, scores = rank_table(runs, data)
    retrieved = ~np.isnan(ranks)
    rr = np.where(retrieved, 1 / ranks, 0.0)
    share = np.where(retrieved, scores, 0.0)
    count = retrieved.sum(axis=0)
    logs = np.where(retrieved, np.log(ranks), 0.0)
    mean = logs.sum(axis=0) / np.maximum(count, 1)
    variance = np.where(retrieved, (logs - mean) ** 2, 0.0).sum(axis=0) / np.maximum(count - 1, 1)
    summaries = {
        "retrieved": retrieved.mean(axis=0),
        "top10": (retrieved & (ranks <= TOP)).mean(axis=0),
        "best": rr.max(axis=0),
        "mean_rr": rr.mean(axis=0),
        "mean_score": share.mean(axis=0),
        "fusion": np.where(retrieved, (FUSION + 1) / (FUSION + ranks), 0.0).mean(axis=0),
        "spread": np.where(count > 1, np.sqrt(variance), np.nan),
    }
    columns = {f"runs:{name}": column for name, column in summaries.items()}
    for place, name in enumerate(runs):
        columns |= {f"run:{name}:rr": rr[place], f"run:{name}:score": share[place]}
    return columns


def rank_table(runs: Mapping[str, Run], data: RankingData) -> tuple[FloatArray, FloatArray]:
    """Ranks (from 1) and scaled scores of every row in every run, (S, N) each; NaN where not retrieved."""
    ranks, scores = np.empty((2, len(runs), data.n_docs))
    for place, (name, run) in enumerate(runs.items()):
        rank, scaled = ranks_and_scores(run)
        for values, table in ((rank, ranks), (scaled, scores)):
            of_rows = scores_from_run(replace(run, scores=values.astype(np.float64)), data, f"run {name!r}")
            table[place] = np.ma.filled(of_rows, np.nan)
    return ranks, scores


def ranks_and_scores(run: Run) -> tuple[IntArray, FloatArray]:
    """The rank of every retrieved document, ties by falling id as in trec_eval, and its scaled score."""
    names = np.argsort(np.argsort(run.doc_ids))[run.doc]
    order = np.lexsort((-names, -run.scores, run.topic))
    topic = run.topic[order]
    starts = np.flatnonzero(np.concatenate(([True], topic[1:] != topic[:-1])))
    lengths = np.diff(np.append(starts, len(topic)))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(1, len(order) + 1) - np.repeat(starts, lengths)
    highest, lowest = run.scores[order][starts], run.scores[order][starts + lengths - 1]
    spread = np.repeat(highest - lowest, lengths)
    scaled = np.empty(len(order))
    above = run.scores[order] - np.repeat(lowest, lengths)
    scaled[order] = np.where(spread > 0, above / np.where(spread > 0, spread, 1.0), 1.0)
    return rank, scaled
