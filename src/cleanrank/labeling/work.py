"""What has been done in a batch and what is left: kept in memory, brought up to date from the file.

A unit is shown to as many annotators as the batch wants for it. Who was shown a unit holds it for
HOLD_SECONDS after the last answer; then others may get it. Skipped units go to others too. Units with a known
answer (``about["is_gold"]``) go to everybody.
"""

import time
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np

from cleanrank.data.project_file import KIND
from cleanrank.errors import BadFileError
from cleanrank.judges.sampling import random_numbers
from cleanrank.labeling.questions import Answer, Question, Task
from cleanrank.labeling.records import Batch, Event, Unit
from cleanrank.labeling.store import Project
from cleanrank.labeling.tasks import GradeTask, make_task

HOLD_SECONDS = 30 * 60
DROP, UNSURE = "drop", "unsure"
WORDS = (DROP, UNSURE)  # of a review, beside grades


class Work:
    """The answers of a batch that stand, by unit and annotator; ``refresh`` reads what is new in the file.

    Attributes:
        project: where the batch is.
        batch: the batch.
        units: its units.
    """

    def __init__(self, project: Project, batch_id: int) -> None:
        self.project = project
        self.batch: Batch = project.batch(batch_id)
        self.units: tuple[Unit, ...] = project.units(batch_id)
        n_units = len(self.units)
        fresh = {n: self._task(n, []) for n in {len(unit.rows) for unit in self.units}}
        self._expected = np.array([fresh[len(unit.rows)].expected_left for unit in self.units])
        self._never_asked = np.array(
            ["answered_in" in unit.about or fresh[len(unit.rows)].is_done for unit in self.units]
        )
        self._settled = self._never_asked.copy()
        self._is_gold = np.array([bool(unit.about.get("is_gold")) for unit in self.units])
        self._first_open = 0
        self._last_event = self._last_claim = 0
        self._last_unit: dict[str, int] = {}
        self._events: dict[tuple[int, str], list[Event]] = defaultdict(list)
        self._tasks: dict[tuple[int, str], Task] = {}
        self._history: dict[str, list[Event]] = defaultdict(list)
        self._finished: dict[str, set[int]] = defaultdict(set)
        self._begun: dict[str, set[int]] = defaultdict(set)
        self._seen: list[dict[str, float]] = [{} for _ in range(n_units)]  # of each unit: who, and when last

    @classmethod
    def of(cls, project: Project, batch_id: int) -> "Work":
        """The work of a batch, up to date; hold ``project.lock`` while it is used."""
        with project.lock:
            if batch_id not in project.remembered:
                project.remembered[batch_id] = cls(project, batch_id)
            work: Work = project.remembered[batch_id]
            work.refresh()
            return work

    def refresh(self) -> None:
        """Takes in the events and claims that came since, from whichever process."""
        try:
            self._refresh()
        except (IndexError, TypeError, ValueError) as error:
            if isinstance(error, BadFileError):
                raise
            rule, remedy = "must have answers to its own questions", "Do not use a changed file."
            raise KIND.bad(self.project.path, rule, error, remedy) from error

    def _refresh(self) -> None:
        for claim, unit, annotator, at in self.project.claims(self.batch.id, after=self._last_claim):
            self._last_claim = claim
            self._see(unit, annotator, at)
            if unit not in self._finished[annotator]:
                self._begun[annotator].add(unit)
        for event in self.project.events(self.batch.id, after=self._last_event):
            self._last_event = event.id
            self._see(event.unit, event.annotator, event.at)
            self._take_in(event)

    def _see(self, unit: int, annotator: str, at: str) -> None:
        self._seen[unit][annotator] = datetime.fromisoformat(at).timestamp()

    def _take_in(self, event: Event) -> None:
        unit, annotator = key = event.unit, event.annotator
        self._last_unit[annotator] = unit
        if event.kind == "undo":
            for events in (self._events[key], self._history[annotator]):
                events[:] = [each for each in events if each.id != event.undoes]
        else:
            self._events[key].append(event)
            self._history[annotator].append(event)
        self._tasks.pop(key, None)
        done = self.task(unit, annotator).is_done
        (self._finished if done else self._begun)[annotator].add(unit)
        (self._begun if done else self._finished)[annotator].discard(unit)
        judged = sum(unit in self._finished[who] and self._is_judged(unit, who) for who in self._seen[unit])
        self._settled[unit] = judged >= self.batch.annotators_per_unit or self._never_asked[unit]
        if not self._settled[unit]:
            self._first_open = min(self._first_open, unit)

    def _is_judged(self, unit: int, annotator: str) -> bool:
        """Whether a finished unit has an answer and was not only skipped."""
        return any(e.kind == "answer" and e.value != UNSURE for e in self._events[unit, annotator])

    def _task(self, n_documents: int, answers: list[Answer]) -> Task:
        settings: dict[str, Any] = {**self.batch.settings, "answers": tuple(answers)}
        if self.batch.kind == "review":
            return GradeTask(n_documents, tuple(answers), n_grades=self.project.scale.n_grades)
        if self.batch.kind == "grade":
            settings.setdefault("n_grades", self.project.scale.n_grades)
        return make_task(self.batch.kind, n_documents, **settings)

    def task(self, unit: int, annotator: str) -> Task:
        """The task of an annotator in a unit, with the answers that stand; words of a review are no grade."""
        key = unit, annotator
        if key not in self._tasks:
            events = self._events.get(key, [])
            answers = [Answer(Question.of(e.question), _grade(e.value)) for e in events]
            self._tasks[key] = self._task(len(self.units[unit].rows), answers)
        return self._tasks[key]

    def tasks(self) -> Mapping[tuple[int, str], Task]:
        """(unit, annotator) -> the task, wherever an answer or skip stands."""
        return {key: self.task(*key) for key, events in self._events.items() if events}

    def history(self, annotator: str) -> tuple[Event, ...]:
        """The answers and skips of an annotator that stand, in order."""
        return tuple(self._history.get(annotator, ()))

    def opinions(self, unit: int) -> Mapping[str, int | str]:
        """Annotator -> their answer to a unit of one question, as it stands; a skip is no answer."""
        said = (event for who in self._seen[unit] for event in self._events.get((unit, who), ()))
        return {each.annotator: each.value for each in said if each.value is not None}

    def n_answers(self, annotator: str) -> int:
        """How many answers and skips of an annotator stand."""
        return len(self._history.get(annotator, ()))

    @property
    def n_settled(self) -> int:
        """Units that need no further annotator."""
        return int(self._settled.sum())

    def current_unit(self, annotator: str) -> int | None:
        """The unit that the annotator has before them: that of the last event, or the first begun."""
        begun = self._begun.get(annotator)
        if not begun:
            return None
        last = self._last_unit.get(annotator, -1)
        return last if last in begun else min(begun)

    def next_unit(self, annotator: str) -> int | None:
        """What the annotator gets next: the first unit that wants somebody, or one with a known answer.

        The latter are placed at random among the others that are left. None when there is nothing.
        """
        n_units = len(self.units)
        while self._first_open < n_units and self._settled[self._first_open]:
            self._first_open += 1
        had = self._finished[annotator] | self._begun[annotator]
        gold = [u for u in np.flatnonzero(self._is_gold & ~self._never_asked).tolist() if u not in had]
        others = (unit for unit in range(self._first_open, n_units) if unit not in had and self._wants(unit))
        other = next(others, None)
        if gold and other is not None:
            others_left = int((~self._settled & ~self._is_gold).sum())
            (draw,) = random_numbers(self.batch.id, [(annotator, str(len(had)))])
            return gold[0] if draw < len(gold) / (len(gold) + others_left) else other
        return gold[0] if gold else other

    def _wants(self, unit: int) -> bool:
        """Whether a unit without a known answer wants a further annotator."""
        if self._never_asked[unit] or self._is_gold[unit]:
            return False
        since = time.time() - HOLD_SECONDS
        holding = sum(
            self._is_judged(unit, who) if unit in self._finished[who] else last >= since
            for who, last in self._seen[unit].items()
        )
        return holding < self.batch.annotators_per_unit

    def is_held(self, unit: int, annotator: str) -> bool:
        """Whether an annotator was shown a unit, or answered in it, not long ago."""
        return self._seen[unit].get(annotator, 0.0) >= time.time() - HOLD_SECONDS

    def expected_left(self, annotator: str) -> float:
        """How many answers are left for an annotator if nobody else answers, as far as one can tell."""
        done, begun = self._finished.get(annotator, set()), self._begun.get(annotator, set())
        fresh = np.where(self._is_gold, ~self._never_asked, ~self._settled)  # everybody gets gold questions
        fresh[list(done | begun)] = False
        left = float(self._expected[fresh].sum())
        return left + sum(self.task(unit, annotator).expected_left for unit in begun)


def _grade(value: int | str | None) -> int | None:
    return None if value is None or isinstance(value, str) else value
