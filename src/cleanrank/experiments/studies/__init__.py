"""Studies: what can be measured of a cell without comparing rankings, such as the noise of its labels.

A study stands in a recipe where a method does. It sees the clean labels, which a method must not, and so it
brings measures of its own instead of scores; a recipe holds methods or studies, never both.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cleanrank.experiments.methods import METHODS, NEURAL, NOISE, SOUR, Method, choices_of
from cleanrank.types import RankingData

if TYPE_CHECKING:
    from cleanrank.data.behaviours import ClickRows, ClickSplits
    from cleanrank.data.split import Splits
    from cleanrank.noise.profiles import NoiseProfile


@dataclass(frozen=True, eq=False)
class StudyTask:
    """What a study gets: the data before noise, training and validation data with the labels of the cell."""

    clean: "Splits"
    train: RankingData
    validation: RankingData
    profile: "NoiseProfile"  # the noise between them
    params: Mapping[str, Any]  # one value for every parameter of the study
    select: str  # the measure that validation data are judged by
    seed: int
    unflipped: Callable[[], RankingData] | None = (
        None  # training clicks before flips, where labels are clicks
    )
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # values that validation data choose from
    n_jobs: int = 1


@dataclass(frozen=True, eq=False)
class ClickTask:
    """What a study of clicks gets: a log before noise, training and validation rows with its labels."""

    clean: "ClickSplits"
    train: "ClickRows"
    validation: "ClickRows"
    noise: "NoiseProfile"  # what flipped the labels
    params: Mapping[str, Any]  # one value for every parameter of the study
    grid: Mapping[str, Sequence[Any]]  # values that validation rows choose from
    seed: int

    def choices(self) -> Iterator[dict[str, Any]]:
        """Every combination of the grid, in its order; one empty one without a grid."""
        return choices_of(self.grid)


def algorithm(name: str) -> Method:
    """The method or study of a name."""
    return METHODS[name] if name in METHODS else STUDIES[name]


# The study of logs of clicks, which no other method or study can read.
CTR = "ctr"
# The studies that search a grid on validation data.
TUNED = (CTR, "curve", "breakdown")
TENTHS = range(10, 101, 10)
# Epochs at which a training is looked at, and the labels of validation data it is judged by.
EPOCHS = (1, 2, 4, 8, 16, 32, 64)
VALIDATION_LABELS = {
    "true": "validation data with their true labels",
    "given": "validation data as training has them, with noise or clicks",
}
# Parameters of the method neural that a plain training has.
CURVE = {
    name: value
    for name, value in NEURAL.items()
    if name not in (NOISE, "debias", "forget", "ramp", "bins", "last", "early_stopping_rounds")
}
GRADES = 5  # of the longest scale that ``statistics`` counts
# Answers after which the labels of an active task are looked at.
BUDGETS = (50, 75, 100, 125, 150)
CURVE_RATES = tuple(round(0.05 * step, 2) for step in range(1, 11))
KINDS_OF_LEAVES = {
    "P_k": "relevant documents within the top k",
    "O-": "negative outliers",
    "N": "other non-relevant documents",
}

STUDIES: dict[str, Method] = {
    "order": Method(
        1,
        "studies.labels:order",
        {"loss": "zero_one", "scorers": "even", "n_scorers": 100, "draws": 1000},
        {
            "slope": "of the line noisy = slope x clean + constant through the scorers",
            "R2": "how much of the noisy values the line explains",
            "tau": "Kendall's tau between clean and noisy values",
            "verdict": "2 strict (order preserving), 1 affine with another slope, 0 not affine",
        },
    ),
    "label_noise": Method(
        1,
        "studies.labels:label_noise",
        {},
        {
            "dnoise": "the share of training documents whose grade changed",
            "pnoise": "pNoise of the training labels, counted; sums over queries, new-come pairs count 1/2",
            "pnoise:new=1": "the same with new-come pairs counted as wrong",
            "pnoise:macro": "the mean of the queries' pNoise",
            "pnoise:expected": "pNoise in closed form for the queries as they are",
            "pnoise:overall": "pNoise in closed form for the overall shares of grades and long lists",
        },
    ),
    "statistics": Method(
        1,
        "studies.scales:statistics",
        {},
        {
            "queries": "of training, validation and test data together",
            "documents": "the same",
            "documents per query": "the same",
            "features": "of a document",
            **{f"grade {grade} (%)": f"documents of grade {grade}" for grade in range(GRADES)},
        },
    ),
    # grades: of the scale that the labels are brought to, 0 as it is; balance: own, halfway, best
    "closed_form": Method(
        1,
        "studies.scales:closed_form",
        {"profile": "uniform", "grades": 0, "balance": "own"},
        {
            f"pnoise at {rate:g}": f"pNoise in closed form, long lists, at dNoise {rate:g}"
            for rate in CURVE_RATES
        },
    ),
    "positives": Method(
        1,
        "studies.labels:positives",
        {},
        {
            "positives": "the share of training documents with a grade above 0; of clicks, their rate",
            "lost": "of the documents with a grade above 0 or a click, the share that noise gives 0: e+",
            "made up": "of the others, the share that noise gives a grade above 0 or a click: e-",
        },
    ),
    # one training of the method neural, with its parameters
    "epochs": Method(
        1,
        "studies.neural:epochs",
        CURVE,
        {
            f"{labels} labels, epoch {epoch}": f"the measure of the choice on {words}, after so many epochs"
            for labels, words in VALIDATION_LABELS.items()
            for epoch in EPOCHS
        },
    ),
    # options: parameters of the method that ``ranker`` names
    "tied_pairs": Method(
        2,
        "studies.rankers:tied_pairs",
        {"ranker": "lambdarank", "split": "test", "pairs": 10_000, "options": {}},
        {
            "positive": "among sampled pairs of equal grade, the share whose first document scores higher",
            "tied scores": "among all pairs of equal grade of a query, the share with equal scores",
        },
    ),
    # options: parameters of the method prank
    "pointwise_loss": Method(
        1,
        "studies.rankers:pointwise_loss",
        {"options": {}},
        {
            "loss": "PRank's |predicted - true grade| / (C - 1), the mean over test documents",
            "wrong": "the share of test documents whose predicted grade is wrong",
            "loss of a constant": "the same loss where every document is given the commonest training grade",
        },
    ),
    "outliers": Method(
        2,
        "studies.trees:outliers",
        SOUR,
        {
            "removed": "consistent outliers as a share of all training documents",
            "removed of kind": "consistent outliers as a share of the documents whose label allows it",
            "ever flagged": "documents that some prefix of the trees flags",
            "flagged by half": "documents that at least half of the prefixes flag",
            **{f"flagged at {p}%": f"documents that the first {p} % of the trees flag" for p in TENTHS},
        },
    ),
    # ranker_start: of SOUR, -1 as start; best_round: only outliers of the best round, as in last-SOUR
    "breakdown": Method(
        1,
        "studies.trees:breakdown",
        {"ranker": "lambdarank", "ranker_start": -1, "best_round": False, **SOUR},
        {
            "all queries": "the measure of the choice, over all test queries",
            "queries with outliers": "over test queries in which the base model has outliers",
            "queries without outliers": "over the other test queries",
            "share with outliers": "the share of test queries with outliers",
        },
    ),
    # single: each tree alone, not the sum up to it
    "exit_leaves": Method(
        2,
        "studies.trees:exit_leaves",
        {"ranker": "lambdarank", "single": False, **SOUR},
        {
            f"{kind}, {trees}": f"mean score, {trees}, of the 30 leaves most reached by {words}"
            for kind, words in KINDS_OF_LEAVES.items()
            for trees in (*(f"tree {t}" for t in (1, 10, 20, 30, 40, 50)), "trees 1-50")
        },
    ),
    # split: validation, test
    "curve": Method(
        2,
        "studies.trees:curve",
        {"ranker": "lambdarank", "split": "validation", **SOUR},
        {
            "best": "the measure of the choice with the trees that validation data choose",
            **{f"at {p}%": f"the measure of the choice with {p} % of the trees" for p in TENTHS},
            "trees": "trees that validation data choose",
            "documents removed": "training documents that were left out",
        },
    ),
    # given: validation, noise; grade: only rows with that given grade, -1 all
    "detection": Method(
        2,
        "studies.labels:detection",
        {"detector": "sour", "options": {}, "given": [], "grade": -1},
        {
            "average precision": "average precision of the rows by descending doubt; ties share a threshold",
            "precision": "the share of issues whose grade was changed",
            "recall": "the share of changed grades that are issues",
            "base rate": "the share of changed grades, about what a random order has as average precision",
            "issues": "issues as a share of the rows",
            "average precision within grades": "the mean over given grades of the average precision among "
            "the rows of that grade, each grade weighing its changed rows",
            "base rate within grades": "the same mean of the grades' base rates",
        },
    ),
    # draw: evenly, for evaluation; target: these queries, queries like these
    "judge_coverage": Method(
        1,
        "studies.judges:coverage",
        {
            "design": "queries",
            "gold": 15,
            "target": "these queries",
            "measure": "ndcg@10:trec",
            "difference": False,
            "draw": "for evaluation",
            "draws": 1000,
        },
        {
            "coverage": "share of 95 % intervals that hold the mean under all gold labels",
            "least coverage": "of the system with the least, where it finds something in half of the queries",
            "coverage of gold alone": "the same for intervals from the gold labels alone",
            "coverage of the judge alone": "the same for intervals that take the judge's labels for true",
            "width": "mean width of the intervals",
            "width of gold alone": "the same from the gold labels alone",
            "width / gold alone": "the first mean width divided by the second",
            "error": "root of the mean squared error",
            "error of gold alone": "the same from the gold labels alone",
            "error of the judge alone": "the same under the judge's labels",
        },
    ),
    "judge_order": Method(
        1,
        "studies.judges:order",
        {"gold": 300, "measure": "ndcg@10:trec", "draw": "for evaluation", "draws": 100},
        {
            f"tau of {what}": f"Kendall's tau between the order of systems under gold labels and by {what}"
            for what in ("the judge", "the calibrated judge", "corrected levels", "gold alone")
        },
    ),
    # model: answers, steps, perception; finer: all documents, relevant ones
    # votes: people who answer every question, of whom the median counts
    "judging": Method(
        1,
        "studies.labeling:judging",
        {
            "task": "grade",
            "n_grades": 3,
            "k": 10,
            "ties": False,
            "model": "answers",
            "votes": 1,
            "finer": "all documents",
        },
        {
            "pnoise": "pNoise of the preferences that come out, against two grades; new-come pairs count 1/2",
            "floor": "the same of somebody who makes no error",
            "corrected": "(pNoise - floor) / (1 - 2 floor)",
            "pairs": "preferences of a query",
            "auc": "of all pairs of a relevant document and another one, those put right; ties count 1/2",
            "judgements": "answers that a query takes",
            "floor stated": "the floor that annotator_pairs states for these labels, with the truth as gold",
            "corrected stated": "the corrected pNoise it states",
        },
    ),
    # assumed: the share of wrong answers that the choice of pairs reckons with
    "active_judging": Method(
        1,
        "studies.labeling:active",
        {"k": 10, "ties": False, "model": "answers", "assumed": 0.1},
        {
            f"{name} at {n}": f"the measure {name} of the study judging after {n} answers"
            for name in ("pnoise", "corrected", "auc")
            for n in BUDGETS
        },
    ),
    # restart: another seed of the same settings; base: whether the plain model is trained too, as carefully;
    # least_steps: of an epoch, for which batches are made smaller
    CTR: Method(
        1,
        "studies.ctr:ctr",
        {
            "model": "din",
            "robust": "",
            "options": {},
            "alpha": 0.1,
            "peers": "expected",
            NOISE: "",
            "calibration": "",
            "base": False,
            "restart": 0,
            "epochs": 10,
            "early_stopping_rounds": 2,
            "learning_rate": 0.001,
            "weight_decay": 0.0001,
            "batch_size": 200,
            "least_steps": 1,
        },
        {
            "auc": "the chance that a clicked test row scores above one that is not",
            "gauc": "the same within users, weighted by their rows",
            "log loss": "of the probabilities of a click",
            "calibration error": "of 15 bins with equally many rows",
            "base auc": "AUC of the plain model, which was tuned with as many tries",
            "gain": "AUC minus that of the plain model",
        },
    ),
    "class_conditionality": Method(
        1,
        "studies.judges:class_conditionality",
        {"gold": 300, "draws": 100},
        {"rejected": "share of draws in which the test of class-conditional errors rejects at 5 %"},
    ),
}
