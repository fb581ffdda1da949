"""What can be measured of a cell without comparing rankings: the noise of its labels, say.

A study stands in a recipe where a method does. It sees the clean labels, which a method must not, and so it
brings measures of its own instead of scores; a recipe holds methods or studies, never both.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cleanrank.data.split import Splits
from cleanrank.diagnosis.fragility import composition, pooled_pnoise, query_pnoise
from cleanrank.experiments.methods import METHODS, Method, Task, Unjudged, best_trees
from cleanrank.experiments.realised import grade_counts
from cleanrank.noise.pair_noise import new_come_share, pnoise, pnoise_expected
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.ragged import query_of_row
from cleanrank.types import FloatArray, IntArray, RankingData


@dataclass(frozen=True, eq=False)
class Inquiry:
    """What a study gets.

    Attributes:
        clean: the data before noise.
        train: training data with the labels of the cell.
        validation: validation data with the labels of the cell.
        profile: the noise between them.
        params: one value for every parameter of the study.
        select: the measure that validation data are judged by.
        seed: for everything random.
    """

    clean: Splits
    train: RankingData
    validation: RankingData
    profile: NoiseProfile
    params: Mapping[str, Any]
    select: str
    seed: int


@dataclass(frozen=True, eq=False)
class Measured:
    """One value per query and measure, and each measure's mean, which may weigh queries in its own way."""

    values: Mapping[str, FloatArray]
    means: Mapping[str, float]
    query_ids: Sequence[int] | Sequence[str]
    chosen: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """A study of the house.

    Attributes:
        version: as of a method.
        run: what it does.
        params: parameter -> default.
        measures: what it measures -> in words.
        about: one line for people.
    """

    version: int
    run: Callable[[Inquiry], Measured]
    params: Mapping[str, Any]
    measures: Mapping[str, str]
    about: str


def contender(name: str) -> Method | Study:
    """The method or study of a name."""
    return METHODS[name] if name in METHODS else STUDIES[name]


def label_noise(asked: Inquiry) -> Measured:
    """Counts dNoise and pNoise of the training labels beside their closed forms; nothing is trained."""
    clean, matrix = asked.clean.train, asked.profile.matrix
    counts = grade_counts(clean, len(matrix))
    half, whole = (pnoise(clean.y, asked.train.y, clean.indptr, new_weight=w, n_jobs=1) for w in (0.5, 1.0))
    changed = np.add.reduceat((clean.y != asked.train.y).astype(np.float64), clean.indptr[:-1])
    overall = pnoise_expected(asked.profile, counts.sum(axis=0))
    values = {
        "dnoise": changed / clean.lengths,
        "pnoise": half.per_query,
        "pnoise:new=1": whole.per_query,
        "pnoise:macro": half.per_query,
        "pnoise:expected": query_pnoise(matrix, counts),
        "pnoise:overall": np.full(clean.n_queries, overall),
    }
    means = {
        "dnoise": float(changed.sum() / clean.n_docs),
        "pnoise": float(half),
        "pnoise:new=1": float(whole),
        "pnoise:macro": float(np.nanmean(half.per_query)),
        "pnoise:expected": pooled_pnoise(matrix, *composition(counts)),
        "pnoise:overall": overall,
    }
    return Measured(values, means, clean.query_ids.tolist())


def positives(asked: Inquiry) -> Measured:
    """How many training documents are given a grade above 0: where labels are clicks, the click rate."""
    given = asked.train
    share = np.add.reduceat((given.y > 0).astype(np.float64), given.indptr[:-1]) / given.lengths
    return Measured(
        {"positives": share}, {"positives": float((given.y > 0).mean())}, given.query_ids.tolist()
    )


def tied_pairs(asked: Inquiry) -> Measured:
    """A ranker's order of documents of equal grade: how often the first of a random pair wins."""
    params = dict(asked.params)
    name, part, pairs = (params.pop(key) for key in ("ranker", "split", "pairs"))
    test = Unjudged(asked.clean.test.X, asked.clean.test.indptr)
    own = {key: params[key] for key in METHODS[name].params}
    task = Task(asked.train, asked.validation, test, own, select=asked.select, seed=asked.seed)
    model, chosen = best_trees(name, task)
    data: RankingData = getattr(asked.clean, part)
    scores = model.predict(data.X)
    ties = _ties(scores, data)
    share = new_come_share(scores, data.y, data.indptr, pairs=pairs, seed=asked.seed)
    values = {"positive": (1 - ties) / 2, "tied scores": ties}
    means = {"positive": share, "tied scores": float(np.nanmean(ties))}
    return Measured(values, means, data.query_ids.tolist(), chosen)


def outliers(asked: Inquiry) -> Measured:
    """How many outliers a base forest has, and when."""
    from cleanrank.experiments import forests

    return forests.outliers(asked)


def breakdown(asked: Inquiry) -> Measured:
    """A ranker over test queries with and without outliers."""
    from cleanrank.experiments import forests

    return forests.breakdown(asked)


def exit_leaves(asked: Inquiry) -> Measured:
    """What leaves say about documents of three kinds."""
    from cleanrank.experiments import forests

    return forests.exit_leaves(asked)


def curve(asked: Inquiry) -> Measured:
    """A ranker's validation measure as its forest grows."""
    from cleanrank.experiments import forests

    return forests.curve(asked)


def detection(asked: Inquiry) -> Measured:
    """How well a detector finds the labels that were changed."""
    from cleanrank.experiments import detection as found

    return found.detection(asked)


def order(asked: Inquiry) -> Measured:
    """Whether a loss or measure keeps the order of scorers."""
    from cleanrank.experiments import orders

    return orders.order(asked)


def _ties(scores: FloatArray, data: RankingData) -> FloatArray:
    """Each query's share of tied scores among pairs of equal grade; NaN without such a pair."""
    query = query_of_row(data.indptr)
    equal = _pairs(np.stack([query, data.y]), data.n_queries)
    tied = _pairs(np.stack([query, data.y, np.unique(scores, return_inverse=True)[1]]), data.n_queries)
    with np.errstate(invalid="ignore"):
        shares: FloatArray = tied / equal
    return shares


def _pairs(columns: IntArray, n_queries: int) -> FloatArray:
    """Pairs of rows of a query, the first column, that agree in all columns."""
    kinds, sizes = np.unique(columns, axis=1, return_counts=True)
    return np.bincount(kinds[0], weights=sizes * (sizes - 1) / 2, minlength=n_queries).astype(np.float64)


WATCHED = METHODS["sour"].params
TENTHS = range(10, 101, 10)
KINDS_OF_LEAVES = {
    "P_k": "relevant documents within the top k",
    "O-": "negative outliers",
    "N": "other non-relevant documents",
}

STUDIES: dict[str, Study] = {
    "order": Study(
        version=1,
        run=order,
        params={"loss": "zero_one", "scorers": "even", "n_scorers": 100, "draws": 1000},
        measures={
            "slope": "of the line noisy = slope x clean + constant through the scorers",
            "R2": "how much of the noisy values the line explains",
            "tau": "Kendall's tau between clean and noisy values",
            "verdict": "2 strict (order preserving), 1 affine with another slope, 0 not affine",
        },
        about="whether a loss or measure keeps the order of simulated scorers under noise; trains nothing",
    ),
    "label_noise": Study(
        version=1,
        run=label_noise,
        params={},
        measures={
            "dnoise": "the share of training documents whose grade changed",
            "pnoise": "pNoise of the training labels, counted; sums over queries, new-come pairs count 1/2",
            "pnoise:new=1": "the same with new-come pairs counted as wrong",
            "pnoise:macro": "the mean of the queries' pNoise",
            "pnoise:expected": "pNoise in closed form for the queries as they are",
            "pnoise:overall": "pNoise in closed form for the overall shares of grades and long lists",
        },
        about="noise of the training labels; trains nothing",
    ),
    "positives": Study(
        version=1,
        run=positives,
        params={},
        measures={"positives": "the share of training documents with a grade above 0; of clicks, their rate"},
        about="how many labels are positive; trains nothing but the ranker behind clicks",
    ),
    "tied_pairs": Study(
        version=1,
        run=tied_pairs,
        params={"ranker": "lambdarank", "split": "test", "pairs": 10_000, **METHODS["lambdarank"].params},
        measures={
            "positive": "among sampled pairs of equal grade, the share whose first document scores higher",
            "tied scores": "among all pairs of equal grade of a query, the share with equal scores",
        },
        about="a ranker's opinion on pairs of equal grade",
    ),
    "outliers": Study(
        version=2,
        run=outliers,
        params=WATCHED,
        measures={
            "removed": "consistent outliers as a share of all training documents",
            "removed of kind": "consistent outliers as a share of the documents whose label allows it",
            "ever flagged": "documents that some forest flags",
            "flagged by half": "documents that at least half of the forests flag",
            **{
                f"flagged at {p}%": f"documents that the forest with {p} % of the trees flags" for p in TENTHS
            },
        },
        about="outliers of a base forest among the training documents, as it grows",
    ),
    "breakdown": Study(
        version=1,
        run=breakdown,
        params={"ranker": "lambdarank", "ranker_start": -1, "best_round": False, **WATCHED},
        measures={
            "all queries": "the measure of the choice, over all test queries",
            "queries with outliers": "over test queries in which the base forest has outliers",
            "queries without outliers": "over the other test queries",
            "share with outliers": "the share of test queries with outliers",
        },
        about="a ranker over test queries with and without outliers; ranker_start: of SOUR, -1 as start; "
        "best_round: outliers of the best round on validation data alone, as in last-SOUR",
    ),
    "exit_leaves": Study(
        version=1,
        run=exit_leaves,
        params={"ranker": "lambdarank", **WATCHED},
        measures={
            f"{kind}, {trees}": f"mean value of the 30 leaves most reached by {words}, {trees}"
            for kind, words in KINDS_OF_LEAVES.items()
            for trees in (*(f"tree {t}" for t in (1, 10, 20, 30, 40, 50)), "trees 1-50")
        },
        about="what a forest's leaves say about three kinds of test documents",
    ),
    "curve": Study(
        version=1,
        run=curve,
        params={"ranker": "lambdarank", **WATCHED},
        measures={
            f"validation at {p}%": f"the measure of the choice with {p} % of the trees" for p in TENTHS
        },
        about="a ranker on validation data as its forest grows",
    ),
    "detection": Study(
        version=1,
        run=detection,
        params={"detector": "sour", "options": {}, "given": [], "grade": -1},
        measures={
            "average precision": "average precision of the rows by descending doubt; ties share a threshold",
            "precision": "the share of issues whose grade was changed",
            "recall": "the share of changed grades that are issues",
            "base rate": "the share of changed grades, about what a random order has as average precision",
            "issues": "issues as a share of the rows",
            "average precision within grades": "the mean over given grades of the average precision among "
            "the rows of that grade, each grade weighing its changed rows",
            "base rate within grades": "the same mean of the grades' base rates",
        },
        about="a detector of label issues with its options against known noise in the training labels; "
        "given: validation, noise; grade: only rows with that given grade, -1 all",
    ),
}
