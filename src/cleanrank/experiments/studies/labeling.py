"""Studies of labelling: simulated people grade documents, or compare them, and err at a known rate.

The labels of the training data are the truth and must have two grades. Every document has a quality, drawn
from N(0, 1) so that relevant documents have the higher ones; finer scales divide the two grades by quality
(SCALES), and who compares two documents means their qualities. The rate e of errors is that of the cell's
noise; MODELS says what it means. A document or pair is always seen in the same way by the same person.

Preferences that come out are compared with the truth: correct, inverse and new-come pairs (of equal truth),
summed over queries,

    pNoise = (inverse + new-come / 2) / all,   corrected = (pNoise - floor) / (1 - 2 floor),

the floor being the pNoise of somebody who makes no error in the same task.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from cleanrank.errors import invalid
from cleanrank.experiments.results import Result
from cleanrank.experiments.studies import BUDGETS, StudyTask
from cleanrank.labeling.active import ActiveTask
from cleanrank.labeling.comparisons import EQUAL, FIRST, SECOND
from cleanrank.labeling.questions import Question, Task
from cleanrank.labeling.tasks import GradeTask, Judge, ask, label_judge, make_task
from cleanrank.noise.annotator_pairs import annotator_pairs
from cleanrank.noise.judgement_table import read_judgements
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.planning.judges import threshold_matrix
from cleanrank.remember import remembered
from cleanrank.types import FloatArray, IntArray
from cleanrank.validation import check_number, one_of

MODELS = {
    "answers": "every answer is wrong with probability e: any other grade, the other document",
    "steps": "so is every step of a scale; pairs as in answers",
    "perception": "every look sees the quality with an error N(0, tan(pi e)^2): e of the random pairs "
    "are wrong, and of the judgements whether a document is above the median",
}
Shares: TypeAlias = tuple[float, ...]
# By what finer grades divide, and the number of grades: shares of the documents that are not relevant, and of
# those that are, by grade from the lowest.
SCALES: dict[str, dict[int, tuple[Shares, Shares]]] = {
    "all documents": {
        2: ((1.0,), (1.0,)),
        3: ((0.8, 0.2), (1.0,)),
        5: ((0.6, 0.3, 0.1), (0.5, 0.5)),
    },
    "relevant ones": {
        2: ((1.0,), (1.0,)),
        3: ((1.0,), (0.5, 0.5)),
        5: ((1.0,), (0.25, 0.25, 0.25, 0.25)),
    },
}
ALIKE = 5  # grades; who may say so calls two documents of the same one equally good
STREAM = 41_203


@dataclass(frozen=True, eq=False)
class Query:
    """The documents of a query, in the order in which they are shown."""

    relevant: IntArray  # 0 or 1
    quality: FloatArray

    def grades(self, n_grades: int, finer: str = "all documents") -> IntArray:
        """The true grades on a scale of SCALES.

        >>> Query(np.array([0, 0, 1, 0, 0, 0]), np.array([0.1, 0.4, 0.9, 0.2, 0.3, 0.0])).grades(3).tolist()
        [0, 1, 2, 0, 0, 0]
        """
        scales = SCALES[one_of("documents that finer grades divide", finer, SCALES)]
        if n_grades not in scales:
            raise invalid("n_grades", f"must be one of {', '.join(map(str, scales))}", n_grades)
        grades, first = np.zeros(len(self.quality), dtype=np.int64), 0
        for relevant, shares in enumerate(scales[n_grades]):
            rows = np.flatnonzero(self.relevant == relevant)
            rows = rows[np.argsort(-self.quality[rows])]
            # From the top, so that the highest grade is there if any document is relevant.
            ends = np.ceil(np.cumsum(shares[::-1]) * len(rows) - 1e-9).astype(int)
            steps = np.searchsorted(ends, np.arange(len(rows)), side="right")
            grades[rows] = first + len(shares) - 1 - steps
            first += len(shares)
        return grades


def make_queries(task: StudyTask) -> list[Query]:
    """The training queries with qualities drawn by the seed, and their documents in random order.

    Queries whose documents are all of one grade are left out: they have no pairs to put right.
    """
    data = task.clean.train
    if set(np.unique(data.y)) != {0, 1}:
        rule = "must have the grades 0 and 1"
        raise invalid("the labels of this study", rule, ", ".join(map(str, np.unique(data.y))))
    rng = np.random.default_rng([task.seed, STREAM])
    queries = []
    for start, end in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        y = rng.permutation(data.y[start:end]).astype(np.int64)
        if y.min() == y.max():
            continue
        order = np.lexsort((rng.random(len(y)), y))
        quality = np.empty(len(y))
        quality[order] = np.sort(rng.normal(size=len(y)))
        queries.append(Query(y, quality))
    return queries


def person(
    query: Query, task: Task, model: str, error: float, seed: int, finer: str = "all documents"
) -> Judge:
    """Somebody who answers the questions of a task about a query, and errs.

    Args:
        query: what is judged.
        task: what is asked; only its settings count.
        model: of MODELS.
        error: the rate e.
        seed: of the errors.
        finer: which documents finer grades divide, of SCALES.
    """
    one_of("model of errors", model, MODELS)
    check_number("error", error, least=0, below=0.5)
    ties = EQUAL in task.values
    grades = query.grades(task.n_grades if isinstance(task, GradeTask) else ALIKE, finer)
    if model == "perception":
        return _perceiving(query.quality, grades, float(np.tan(np.pi * error)), ties, seed)
    if isinstance(task, GradeTask):
        steps = NoiseProfile(threshold_matrix(error, task.n_grades)) if model == "steps" else None
        return label_judge(grades, error, noise=steps, seed=seed)
    places = np.argsort(np.argsort(query.quality))
    return label_judge(grades if ties else places, error, ties=ties, seed=seed)


@remembered
def without_errors(query: Query, task: Task, finer: str = "all documents") -> IntArray:
    """The preferences of somebody who makes no error."""
    return ask(task, person(query, task, "answers", 0.0, 0, finer)).preferences()


def _perceiving(quality: FloatArray, grades: IntArray, spread: float, ties: bool, seed: int) -> Judge:
    above = [quality[grades >= grade].min() for grade in np.unique(grades)[1:]]
    below = [quality[grades < grade].max() for grade in np.unique(grades)[1:]]
    limits, present = (np.array(above) + below) / 2, np.unique(grades)

    def judge(question: Question) -> int:
        shown = sorted(question.documents)
        rng = np.random.default_rng((seed, *shown))
        seen = dict(zip(shown, quality[shown] + spread * rng.normal(size=len(shown)), strict=True))
        looks = [seen[d] for d in question.documents]
        steps = np.searchsorted(limits, looks)
        if len(looks) == 1:
            return int(present[steps[0]])
        if ties and steps[0] == steps[1]:
            return EQUAL
        return FIRST if looks[0] > looks[1] else SECOND

    return judge


def majority_judge(judges: Sequence[Judge]) -> Judge:
    """An odd number of people who are all asked: their median answer.

    >>> majority_judge([lambda q: 2, lambda q: 0, lambda q: 2])(Question((0, 1)))
    2
    """
    places = {FIRST: 1, EQUAL: 0, SECOND: -1}

    def judge(question: Question) -> int:
        answers = [int(each(question) or 0) for each in judges]
        if len(question.documents) == 1:
            return int(np.median(answers))
        middle = int(np.median([places[answer] for answer in answers]))
        return {place: answer for answer, place in places.items()}[middle]

    return judge


def pairs_of(preferences: IntArray, relevant: IntArray) -> IntArray:
    """Correct, inverse and new-come pairs among preferences (better, worse).

    >>> pairs_of(np.array([[0, 1], [1, 2], [2, 0]]), np.array([1, 0, 0])).tolist()
    [1, 1, 1]
    """
    rise = relevant[preferences[:, 0]] - relevant[preferences[:, 1]]
    return np.array([(rise > 0).sum(), (rise < 0).sum(), (rise == 0).sum()])


def pair_measures(counts: IntArray, floors: IntArray, true_pairs: IntArray) -> dict[str, FloatArray]:
    """The measures of pairs from counts (..., 3) of correct, inverse and new-come ones."""
    with np.errstate(invalid="ignore", divide="ignore"):
        noise, floor = ((c[..., 1] + c[..., 2] / 2) / c.sum(axis=-1) for c in (counts, floors))
        return {
            "pnoise": noise,
            "floor": floor,
            "corrected": (noise - floor) / (1 - 2 * floor),
            "pairs": counts.sum(axis=-1).astype(np.float64),
            "auc": (1 + (counts[..., 0] - counts[..., 1]) / true_pairs) / 2,
        }


def judging(task: StudyTask) -> Result:
    """People judge every query in one way: the pNoise of what comes out, its floor, and what it costs."""
    params, error = task.params, _error(task)
    kind, votes = params["task"], params["votes"]
    if votes < 1 or votes % 2 == 0:
        raise invalid("votes", "must be an odd number, so that there is a median", votes)
    settings = (
        {"n_grades": params["n_grades"]} if kind == "grade" else {"ties": params["ties"], "k": params["k"]}
    )
    queries = make_queries(task)
    counts, floors, costs, rows = [], [], [], []
    for q, query in enumerate(queries):
        blank = make_task(kind, len(query.quality), **settings)
        seeds = [task.seed * 1_000_003 + 31 * q + vote for vote in range(votes)]
        people = [person(query, blank, params["model"], error, seed, params["finer"]) for seed in seeds]
        done = ask(blank, people[0] if votes == 1 else majority_judge(people))
        counts.append(pairs_of(done.preferences(), query.relevant))
        floors.append(pairs_of(without_errors(query, blank, params["finer"]), query.relevant))
        costs.append(float(votes * len(done.answers)))
        documents = np.arange(len(query.quality))
        rows.append((np.full(len(documents), q), documents, done.grades(), query.relevant))
    values, means = _measured(np.array(counts), np.array(floors), queries)
    values["judgements"], means["judgements"] = np.array(costs), float(np.mean(costs))
    stated = _stated([np.concatenate(column) for column in zip(*rows, strict=True)])
    means |= stated
    values |= {name: np.full(len(queries), np.nan) for name in stated}
    return Result("done", values, means, [str(q) for q in range(len(queries))])


def _error(task: StudyTask) -> float:
    """The rate of the cell's noise."""
    return float(1 - task.profile.matrix[0, 0])


def _measured(
    counts: IntArray, floors: IntArray, queries: Sequence[Query]
) -> tuple[dict[str, FloatArray], dict[str, float]]:
    """The measures of every query, and of all pairs together."""
    true_pairs = np.array([np.prod(np.bincount(query.relevant, minlength=2)) for query in queries])
    values = pair_measures(counts, floors, true_pairs)
    pooled = pair_measures(counts.sum(axis=0), floors.sum(axis=0), true_pairs.sum())
    means = {name: float(value) for name, value in pooled.items()}
    means["pairs"] /= len(queries)
    return values, means


def _stated(columns: Sequence[IntArray]) -> dict[str, float]:
    """What ``cleanrank annotators`` says of the same labels as grades, with the truth as gold."""
    table = dict(zip(("query", "doc", "grade", "truth"), columns, strict=True))
    judged = read_judgements(table | {"annotator": np.full(len(columns[0]), "person")})
    (found,) = annotator_pairs(judged, against="gold", draws=1)
    return {"floor stated": found.floor, "corrected stated": found.corrected}


def active(task: StudyTask) -> Result:
    """The active task asked to its last budget, and what its answers up to each budget come to."""
    params, error = task.params, _error(task)
    queries = make_queries(task)
    counts, floors = [], []
    for q, query in enumerate(queries):
        blank = ActiveTask(
            len(query.quality),
            k=params["k"],
            ties=params["ties"],
            error=params["assumed"],
            budget=BUDGETS[-1],
        )
        judge = person(query, blank, params["model"], error, task.seed * 1_000_003 + 31 * q)
        done = ask(blank, judge)
        prefixes = [replace(blank, answers=done.answers[:n], budget=n) for n in BUDGETS]
        counts.append([pairs_of(prefix.preferences(), query.relevant) for prefix in prefixes])
        heap = make_task("top-k", len(query.quality), k=params["k"], ties=params["ties"])
        floors.append(pairs_of(without_errors(query, heap), query.relevant))
    values, means = {}, {}
    for b, n in enumerate(BUDGETS):
        own, pooled = _measured(np.array(counts)[:, b], np.array(floors), queries)
        for name in ("pnoise", "corrected", "auc"):
            values[f"{name} at {n}"], means[f"{name} at {n}"] = own[name], pooled[name]
    return Result("done", values, means, [str(q) for q in range(len(queries))])
