"""Studies of judges on data that hold the labels of a judge beside the true ones, and rankings of systems.

Rows are those of all parts of the split. Their true grades are the clean labels, the judge's are
``extra["judge"]``, and every feature called ``rr:NAME`` has the reciprocal rank at which system NAME
retrieved the document, 0 where it did not. Systems rank the judged documents among each other. Values are
those of each system; of differences, means over its differences from all others.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from cleanrank.data.judged import JUDGE
from cleanrank.errors import invalid
from cleanrank.experiments.results import Result
from cleanrank.experiments.studies import StudyTask
from cleanrank.judges.design import Design, design_of
from cleanrank.judges.documents import Frame, parts
from cleanrank.judges.labels import Labels
from cleanrank.judges.queries import TARGETS, gold_means, powered_means
from cleanrank.judges.sampling_sizes import document_sizes
from cleanrank.judges.system_order import kendall_tau
from cleanrank.judges.systems import prominence
from cleanrank.noise.class_conditional import class_conditional_test
from cleanrank.types import Array, FloatArray, Run

SYSTEM = "rr:"
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Estimates of S systems, or differences of them, from one draw of gold labels."""

    mean: FloatArray  # (2, S): with the judge, and from gold labels alone
    reach: FloatArray  # (2, S): half the width of the interval
    truth: FloatArray  # (S,)
    judged: FloatArray  # (S,): under the judge's labels
    judged_reach: FloatArray  # (S,): half the width of an interval that takes them for true
    calibrated: FloatArray  # (S,): under the calibrated judge, without corrections


def coverage(task: StudyTask) -> Result:
    """How often intervals from a judge and some gold labels hold the mean under all gold labels."""
    params = task.params
    design = judged_design(task, params["measure"])
    rng = np.random.default_rng([task.seed, 9161])
    draw = _queries if params["design"] == "queries" else _documents
    held, widths, errors = [], [], []
    for each in draw(design, params, rng):
        error = each.mean - each.truth
        held.append([*(np.abs(error) <= each.reach), np.abs(each.judged - each.truth) <= each.judged_reach])
        widths.append(2 * each.reach)
        errors.append([*error, each.judged - each.truth])
    width, mistake = np.mean(widths, axis=0), np.sqrt((np.array(errors) ** 2).mean(axis=0))
    shares = np.mean(held, axis=0)
    sources = ("", " of gold alone", " of the judge alone")
    figures = {f"coverage{source}": shares[k] for k, source in enumerate(sources)}
    figures |= {f"width{source}": width[k] for k, source in enumerate(sources[:2])}
    figures |= {f"error{source}": mistake[k] for k, source in enumerate(sources)}
    if params["difference"]:
        figures = {name: _by_system(values, len(design.pool.systems)) for name, values in figures.items()}
    means = {name: float(values.mean()) for name, values in figures.items()}
    # A system that finds something relevant in few queries has values that no such interval suits.
    usual = (design.gold_values > 0).mean(axis=1) > 0.5
    means["least coverage"] = float(figures["coverage"][usual].min())
    means["width / gold alone"] = means["width"] / means["width of gold alone"]
    figures["least coverage"] = np.where(usual, figures["coverage"], np.nan)
    figures["width / gold alone"] = figures["width"] / figures["width of gold alone"]
    return Result("done", figures, means, list(design.pool.systems), {"draws": len(held)})


def _by_system(values: FloatArray, n: int) -> FloatArray:
    """Of values of all pairs of systems, the mean over those that a system is one of."""
    table = np.zeros((n, n))
    table[np.triu_indices(n, 1)] = values
    return np.asarray((table + table.T).sum(axis=1) / (n - 1))


def order(task: StudyTask) -> Result:
    """How well the order of systems is kept: by the judge, the calibrated judge, and corrected levels."""
    params = task.params
    design = judged_design(task, params["measure"])
    rng = np.random.default_rng([task.seed, 9162])
    taus = []
    for each in _documents(design, {"target": TARGETS[0], "difference": False, **params}, rng):
        sides = np.stack([each.judged, each.calibrated, each.mean[0], each.mean[1]])
        taus.append(kendall_tau(np.tile(each.truth, (4, 1)), sides))
    names = (
        "tau of the judge",
        "tau of the calibrated judge",
        "tau of corrected levels",
        "tau of gold alone",
    )
    values = dict(zip(names, np.array(taus).T, strict=True))
    draws = [str(k) for k in range(len(taus))]
    return Result("done", values, {name: float(v.mean()) for name, v in values.items()}, draws, {})


def class_conditionality(task: StudyTask) -> Result:
    """How often the test of class-conditionality rejects, with some gold rows drawn at random."""
    params = task.params
    design = judged_design(task, "dcg@10")
    judge, gold = design.pool.grades
    rows = np.flatnonzero(design.is_gold)
    height = prominence(design.ranks)
    rng = np.random.default_rng([task.seed, 9163])
    rejected = []
    for k in range(params["draws"]):
        some = rng.choice(rows, params["gold"], replace=False)
        test = class_conditional_test(
            gold[some], judge[some], design.pool.query[some], {"rank": height[some]}, seed=k
        )
        rejected.append(float(test.rejected()))
    return Result(
        "done", {"rejected": np.array(rejected)}, {"rejected": float(np.mean(rejected))},
        [str(k) for k in range(len(rejected))], {},
    )  # fmt: skip


def judged_design(task: StudyTask, measure: str) -> Design:
    """All rows of a cell with both labels and the rankings of all systems."""
    splits = (task.clean.train, task.clean.validation, task.clean.test)
    first = splits[0]
    names = [name for name in first.feature_names or () if name.startswith(SYSTEM)]
    if not names or first.extra is None or JUDGE not in first.extra:
        remedy = "Use dl19 with a judge: options = { judge = NAME }."
        rule = "must hold a judge's labels and features called rr:NAME"
        raise invalid("the data of this study", rule, "none", remedy=remedy)

    def column(values: Any) -> Any:
        return np.concatenate([np.asarray(values(data)) for data in splits])

    qid, docid = column(lambda data: data.qid).astype(str), column(lambda data: data.doc_ids).astype(str)
    judge = column(lambda data: data.extra[JUDGE])
    X = column(lambda data: data.X)
    topics, topic = np.unique(qid, return_inverse=True)
    documents, document = np.unique(docid, return_inverse=True)
    runs = {}
    for name in names:
        score = X[:, (first.feature_names or ()).index(name)].astype(np.float64)
        rows = np.flatnonzero(score > 0)
        runs[name.removeprefix(SYSTEM)] = Run(topics, documents, topic[rows], document[rows], score[rows])
    known = judge >= 0
    judged = Labels("the judge", qid[known], docid[known], judge[known].astype(np.int64))
    right = Labels("gold labels", qid, docid, column(lambda data: data.y).astype(np.int64))
    scale = {0.0: 0, 1.0: 2} if judge.max() == 1 else None
    return design_of(runs, judged, right, measure, kind="queries", mapping=scale)


def _queries(design: Design, params: Mapping[str, Any], rng: np.random.Generator) -> Iterator[_Drawn]:
    """Gold labels of whole queries; for "queries like these" all queries are redrawn with replacement."""
    judge, gold, target, n = design.judge_values, design.gold_values, params["target"], params["gold"]
    counted = np.ones(gold.shape, dtype=np.bool_)
    if params["difference"]:
        a, b = np.triu_indices(len(judge), 1)
        judge, gold = judge[a] - judge[b], gold[a] - gold[b]
        counted = np.ones(gold.shape, dtype=np.bool_)
        if target == TARGETS[0]:
            counted = np.array([design.differing(int(i), int(j)) for i, j in zip(a, b, strict=True)])
    N = gold.shape[1]
    for _ in range(params["draws"]):
        drawn = rng.permutation(N) if target == TARGETS[0] else rng.integers(0, N, N)
        first = np.arange(N) < n
        y, f, used = gold[:, drawn], judge[:, drawn], counted[:, drawn]
        mean, reach = np.empty((2, len(y))), np.empty((2, len(y)))
        whole = used.all(axis=1)
        mean[:, whole], reach[:, whole] = _student(y[whole], f[whole], first, target)
        for k in np.flatnonzero(~whole):
            # As compare_with_judge does: queries with equal rankings differ by 0 and need no gold labels.
            columns, share = used[k], used[k].mean()
            if (first & columns).sum() < 2:
                mean[:, k], reach[:, k] = f[k].mean(), share
            else:
                some = _student(y[k : k + 1, columns], f[k : k + 1, columns], first[columns], target)
                mean[:, k], reach[:, k] = (share * each[:, 0] for each in some)
        alone = stats.t.ppf(0.5 + LEVEL / 2, N - 1) * f.std(axis=1, ddof=1) / np.sqrt(N)
        yield _Drawn(mean, reach, gold.mean(axis=1), f.mean(axis=1), alone, f.mean(axis=1))


def _student(y: FloatArray, f: FloatArray, labelled: Array, target: str) -> tuple[FloatArray, FloatArray]:
    """Means and half widths, with the judge and from gold labels alone."""
    estimates = (
        powered_means(y[:, labelled], f[:, labelled], f[:, ~labelled], target),
        gold_means(y[:, labelled], int((~labelled).sum()), target),
    )
    reach = [stats.t.ppf(0.5 + LEVEL / 2, each.df) * each.standard_error for each in estimates]
    return np.array([each.mean for each in estimates]), np.array(reach)


def _documents(design: Design, params: Mapping[str, Any], rng: np.random.Generator) -> Iterator[_Drawn]:
    """Gold labels of sampled documents, drawn for evaluation or evenly; the queries stay."""
    full = replace(design, kind="stratified").frame()
    judge, gold = design.judge_values, design.gold_values
    a, b = np.triu_indices(len(judge), 1)

    everyone = np.eye(len(judge))
    sides = everyone[a] - everyone[b] if params["difference"] else everyone

    def side(values: FloatArray) -> FloatArray:
        return values[a] - values[b] if params["difference"] else values

    truth = side(gold).mean(axis=1)
    in_frame = design.pool.grades[0] >= 0
    sizes = np.ones(len(full.gold))
    if params["draw"] == "for evaluation":
        sizes = document_sizes(design.pool, design.measure, False, None)[0][in_frame]
    candidates = np.flatnonzero((sizes > 0) & (full.gold >= 0))
    for k in range(params["draws"]):
        key = rng.random(len(candidates)) / sizes[candidates]
        order_of = np.argsort(key)
        rows = candidates[order_of[: params["gold"]]]
        limit = key[order_of[params["gold"]]]
        frame = _sampled(full, rows)
        if params["draw"] == "for evaluation":
            stated = np.full(len(sizes), np.nan)  # gold labels state the probabilities of their own pairs
            stated[rows] = np.minimum(1.0, sizes[rows] * limit)
            frame = replace(frame, probability=stated)
        estimates = [parts(frame, design.measure, use_judge=use, seed=k) for use in (True, False)]
        means = [side(each.corrected).mean(axis=1) for each in estimates]
        reach = []
        for each in estimates:
            variance, df = each.variances(sides)
            reach.append(stats.t.ppf(0.5 + LEVEL / 2, df) * np.sqrt(variance))
        judged = side(judge)
        alone = stats.t.ppf(0.5 + LEVEL / 2, judged.shape[1] - 1) * judged.std(axis=1, ddof=1)
        yield _Drawn(
            np.array(means),
            np.array(reach),
            truth,
            judged.mean(axis=1),
            alone / np.sqrt(judged.shape[1]),
            side(estimates[0].by_query).mean(axis=1),
        )


def _sampled(full: Frame, rows: Any) -> Frame:
    """The frame with gold labels of some rows, drawn evenly."""
    gold = np.full(len(full.gold), -1)
    gold[rows] = full.gold[rows]
    return replace(full, gold=gold, probability=np.full(len(gold), len(rows) / len(gold)))
