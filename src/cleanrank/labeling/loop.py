"""The loop of labelling: what the answers say after every batch, what to ask for next, when to stop.

A look is one batch that somebody answered: figures about labels have the level of that look, figures about
systems that of the evaluation batch, so that all of them hold together (``judges.looks``) for whoever looks
once after every batch. A batch that is not finished yet is looked at with the answers so far.

The grade of a row is what its opinions come to (``decisions``), as ``clean --review`` takes it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cleanrank.errors import invalid
from cleanrank.judges.evaluation import Estimate
from cleanrank.judges.looks import level_of
from cleanrank.labeling.answers import given_data, graded
from cleanrank.labeling.decisions import decided, opinions_by_row
from cleanrank.labeling.progress import (
    DROPPED,
    NEXT,
    UNJUDGED,
    WORTH,
    LabelProgress,
    label_progress,
)
from cleanrank.labeling.projects import (
    add_evaluation_batch,
    add_gold_batch,
    add_repair_batch,
    kept_systems,
)
from cleanrank.labeling.records import Batch
from cleanrank.labeling.store import Project
from cleanrank.labeling.system_progress import MEASURE_WIDTH, Systems, system_progress
from cleanrank.labeling.work import UNSURE
from cleanrank.noise.estimate import WIDTH
from cleanrank.ragged import match_rows
from cleanrank.types import IntArray, RankingData
from cleanrank.validation import check_integer, check_number, is_integer, one_of

SAMPLE = 100  # rows of a batch, where nothing says how many are needed
MOST = 500  # rows of a batch that is proposed
PURPOSES = {
    "gold": "random sample",
    "evaluation": "documents for the evaluation",
    "repair": "most doubtful labels",
}


@dataclass(frozen=True, eq=False)
class Step:
    """What is known after a batch.

    Attributes:
        batch: the batch.
        n_units: its units that were to be asked.
        n_judged: those that somebody has judged.
        labels: of the given labels; None where documents have none.
        systems: of systems, where some evaluation batch was answered.
    """

    batch: Batch
    n_units: int
    n_judged: int
    labels: LabelProgress | None
    systems: Systems | None

    @property
    def is_finished(self) -> bool:
        """Whether all its units are judged."""
        return self.n_judged >= self.n_units


@dataclass(frozen=True)
class Proposal:
    """A batch that is worth asking for: its purpose, how many rows, and why."""

    purpose: str
    n: int
    why: str


@dataclass(frozen=True, eq=False)
class ProjectProgress:
    """What the answers of a project say, after every batch that somebody answered.

    Attributes:
        name: of the project.
        n_labels: documents with a given label.
        has_systems: whether there is an evaluation batch, which could be gone on with.
        steps: one for each such batch, in order.
    """

    name: str
    n_labels: int
    has_systems: bool
    steps: tuple[Step, ...]

    @property
    def last(self) -> Step | None:
        """What is known now."""
        return self.steps[-1] if self.steps else None

    def verdicts(self) -> list[str]:
        """Whether to stop measuring the noise, mending labels and measuring systems, in sentences."""
        if self.last is None:
            return []
        sentences = self.last.labels.verdicts() if self.last.labels is not None else []
        measured = "" if self.last.systems is None else self.last.systems.verdict()
        return [*sentences, *([measured] if measured else [])]

    def notes(self) -> list[str]:
        """What a reader must know, in words."""
        if self.last is None:
            return []
        notes = [] if self.last.labels is None else list(self.last.labels.notes)
        notes += [] if self.last.systems is None else list(self.last.systems.notes)
        unfinished = [step for step in self.steps if not step.is_finished]
        if unfinished:
            listed = ", ".join(
                f"{step.batch.name} ({step.n_judged:,} of {step.n_units:,})" for step in unfinished
            )
            notes.append(f"not finished, so that figures will still change: {listed}")
        return notes

    def proposals(self) -> list[Proposal]:
        """What is worth asking for next, the most urgent first; empty when all is known and mended."""
        if not self.n_labels:
            return []
        labels = self.last.labels if self.last is not None else None
        systems = self.last.systems if self.last is not None else None
        open_rows = self.n_labels - (0 if labels is None else labels.judged)
        proposals = []
        if labels is None or (open_rows and labels.noise is None):
            why = "nothing tells yet how many labels are wrong; a random sample does"
            proposals.append(Proposal("gold", min(SAMPLE, self.n_labels), why))
        elif open_rows and labels.noise is not None and not labels.noise_known:
            more = labels.noise.too_few(labels.width).more
            why = "the share of wrong pairs is not known well enough"
            proposals.append(Proposal("gold", _rows(more or SAMPLE, self.n_labels), why))
        if systems is not None and not systems.enough:
            why = f"the interval of {systems.measure} is wider than {systems.wanted:g}"
            proposals.append(Proposal("evaluation", _rows(systems.more or SAMPLE, systems.n_pool), why))
        if labels is not None and open_rows and (labels.next_wrong is None or not labels.repaired):
            why = "nobody has reviewed the most doubtful labels yet"
            if labels.next_wrong is not None:
                expected = f"about {labels.next_wrong.mean:.0f} of the next {labels.next_rows:,} rows"
                why = f"{expected} are expected to be wrong"
            proposals.append(Proposal("repair", min(SAMPLE, open_rows), why))
        return proposals


def _rows(wanted: int, most: int) -> int:
    """A number of rows to ask for, in tens."""
    return max(1, min(10 * math.ceil(wanted / 10), MOST, most))


def project_progress(
    project: Project,
    *,
    next_rows: int = NEXT,
    worth: float = WORTH,
    width: float = WIDTH,
    measure_width: float = MEASURE_WIDTH,
    level: float = 0.95,
    seed: int = 0,
) -> ProjectProgress:
    """What the answers of a project say, after every batch.

    Args:
        project: an open project.
        next_rows: how many of the most doubted rows would be judged next.
        worth: the least share of wrong labels among judged rows that is worth the work.
        width: how wide the interval of pNoise may be.
        measure_width: how wide intervals of a measure may be.
        level: of the intervals of all looks together.
        seed: of the draws.

    Returns:
        The figures; ``verdicts`` says in words when to stop, ``proposals`` what to ask for next.

    >>> import tempfile
    >>> import cleanrank as cr
    >>> from cleanrank.labeling.projects import add_gold_batch, make_project
    >>> from cleanrank.labeling.session import Session
    >>> truth = cr.make_ranking(30, 4, docs_per_query=10, seed=0)
    >>> noisy = cr.corrupt(truth, rate=0.2, seed=1)
    >>> folder = tempfile.TemporaryDirectory()
    >>> project = make_project(f"{folder.name}/p.sqlite", noisy.data, name="demo")
    >>> session = Session(project, add_gold_batch(project, 60).id, "ann")
    >>> for place in range(60):
    ...     asked = session.asked()
    ...     options = {"unit": asked.unit.position, "question": asked.question.key, "request": f"{place}"}
    ...     _ = session.answer(int(truth.y[asked.documents[0].row_id]), **options)
    >>> found = project_progress(project).last.labels.before
    >>> found.low < noisy.rate < found.high
    True
    >>> project.close(); folder.cleanup()
    """
    check_number("measure_width", measure_width, above=0)
    data = given_data(project)
    given = {} if data is None else dict(zip(data.row_ids.tolist(), data.y.tolist(), strict=True))
    options: dict[str, Any] = {"next_rows": next_rows, "worth": worth, "width": width}
    options |= {"level": level, "seed": seed}
    answered: list[Batch] = []
    steps: list[Step] = []
    systems: Systems | None = None
    for batch in project.batches():
        judged, passed = _units(project, batch)
        if not judged:
            continue
        answered.append(batch)
        grades: dict[int, int] = {}
        for row, opinions in opinions_by_row(project, batches=answered).items():
            value = decided(row, opinions.values(), given.get(row)).value
            if value is not None:
                grades[row] = int(value) if is_integer(value) else DROPPED
        labels = None if data is None else _labels(data, project, answered, grades, options)
        if data is not None and batch.purpose == "evaluation":
            look = sum(each.purpose == "evaluation" for each in answered)
            own = {"level": level_of(look, level), "wanted": measure_width}
            systems = system_progress(data, project, batch.id, grades, passed, **own) or systems
        asked = [unit for unit in project.units(batch.id) if "answered_in" not in unit.about]
        steps.append(Step(batch, len(asked), len(judged), labels, systems))
    has_systems = any(kept_systems(project, each.id) for each in project.batches())
    return ProjectProgress(project.name, 0 if data is None else data.n_docs, has_systems, tuple(steps))


def _units(project: Project, batch: Batch) -> tuple[set[int], set[int]]:
    """The units of a batch that somebody judged, and those that were skipped by all who saw them."""
    judged: set[int] = set()
    passed: set[int] = set()
    for _, unit, _, event in graded(project, batches=[batch]):
        (passed if event.value in (None, UNSURE) else judged).add(unit.position)
    return judged, passed - judged


def _labels(
    data: RankingData,
    project: Project,
    batches: Sequence[Batch],
    grades: Mapping[int, int],
    options: Mapping[str, Any],
) -> LabelProgress:
    """The labels after some batches: drawn rows, rows chosen by doubt, and others."""
    new = np.full(data.n_docs, UNJUDGED)
    rows = _places(data, list(grades))
    new[rows[rows >= 0]] = np.array(list(grades.values()))[rows >= 0]
    drawn, early, apart = (np.zeros(data.n_docs, dtype=np.bool_) for _ in range(3))
    doubt = np.full(data.n_docs, np.nan)
    last_choice = max((each.id for each in batches if each.purpose != "gold"), default=0)
    place = 0
    for each in batches:
        at = _places(data, [row for unit in project.units(each.id) for row in unit.rows])
        at = at[at >= 0]
        if each.purpose == "gold":
            drawn[at] = True
            early[at] |= each.id < last_choice
        elif each.purpose == "repair":  # by the order of asking: doubts of two detectors do not compare
            doubt[at] = -np.arange(place, place + len(at), dtype=np.float64)
            place += len(at)
        else:  # a batch of all documents holds the drawn ones too: only what was judged in it counts
            at = _places(data, [row for _, _, row, _ in graded(project, batches=[each])])
            apart[at[at >= 0]] = True
    return label_progress(
        data,
        new,
        drawn=drawn,
        doubt=doubt,
        early=early,
        apart=apart,
        n_grades=max(project.scale.n_grades, data.n_grades),
        look=len(batches),
        **options,
    )


def _places(data: RankingData, rows: Sequence[int]) -> IntArray:
    return match_rows(data.row_ids, np.array(rows, dtype=np.int64))


def ask_for(
    project: Project, purpose: str, n: int = SAMPLE, *, annotators_per_unit: int = 1, blind: bool = False
) -> Batch:
    """Asks for the next rows that matter.

    Args:
        project: an open project whose documents have labels.
        purpose: "gold" (a random sample), "evaluation" (further documents of the last evaluation batch) or
            "repair" (the most doubtful labels).
        n: how many rows.
        annotators_per_unit: by how many people each row is judged.
        blind: of a repair: hide the given label; it is hidden anyway in the others.

    Returns:
        The batch.
    """
    check_integer("n", n, least=1)
    options: dict[str, Any] = {"annotators_per_unit": annotators_per_unit}
    batches = project.batches()
    if one_of("purpose", purpose, PURPOSES) == "repair":
        return add_repair_batch(project, n, blind=blind, **options)
    if purpose == "gold":
        return add_gold_batch(project, n, seed=len(batches), **options)
    earlier = [(each.id, record) for each in batches if (record := kept_systems(project, each.id))]
    if not earlier:
        remedy = "Name the systems first: cleanrank label PROJECT --purpose evaluation --runs DIR."
        raise invalid("an evaluation", "needs systems to go on with", "none", remedy=remedy)
    batch_id, record = earlier[-1]
    options |= {name: record[name] for name in ("measure", "compare", "seed")}
    return add_evaluation_batch(project, record["systems"], len(project.units(batch_id)) + n, **options)


def progress_text(project: Project, **options: Any) -> str:
    """What the answers of a project have changed and whether to go on; empty where nothing can be said.

    Args:
        project: an open project.
        options: of ``project_progress``.
    """
    progress = project_progress(project, **options)
    lines = []
    for step in progress.steps:
        if figures := step_lines(step):
            lines.append(f"After {step.batch.name} ({step.n_judged:,} of {step.n_units:,} judged):")
            lines += [f"  {line}" for line in figures]
    if not lines:
        return ""
    lines += [*progress.verdicts(), *(f"Note: {note}." for note in progress.notes())]
    if progress.proposals():
        lines.append("Worth asking for next:")
        lines += [f"  {PURPOSES[each.purpose]}, {each.n:,}: {each.why}." for each in progress.proposals()]
    return "\n".join(lines)


def step_lines(step: Step) -> list[str]:
    """The figures after a batch, a line each."""
    lines = []
    if (labels := step.labels) is not None:
        lines.append(f"{labels.judged:,} of {labels.rows:,} labels judged, {labels.wrong:,} were wrong")
        for words, estimate in (
            ("wrong labels as given", labels.before),
            ("wrong labels left", labels.after),
            ("wrong labels won back", labels.won_back),
            ("wrong pairs as given", labels.pairs_before),
            ("wrong pairs left", labels.pairs_after),
        ):
            if estimate is not None:
                lines.append(f"{words}: {share(estimate)}")
    if step.systems is not None and step.batch.purpose == "evaluation":
        for name, each in step.systems.estimates.items():
            interval = f"{each.mean:.3f} [{each.low:.3f}, {each.high:.3f}]"
            lines.append(f"{step.systems.measure} of {name}: {interval}")
    return lines


def share(estimate: Estimate) -> str:
    """A share with its interval.

    >>> share(Estimate(0.2, 0.125, 0.3))
    '20.0% [12.5%, 30.0%]'
    """
    return f"{estimate.mean:.1%} [{estimate.low:.1%}, {estimate.high:.1%}]"
