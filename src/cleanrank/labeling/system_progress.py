"""What systems are worth under the answers so far, and whether enough documents are judged."""

import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cleanrank.errors import BadFileError, InvalidInputError
from cleanrank.judges.evaluation import JudgedEvaluation, compare_with_judge, evaluate_with_judge
from cleanrank.judges.sampling import sample_for_evaluation
from cleanrank.labeling.answers import rows_by_name
from cleanrank.labeling.projects import kept_systems
from cleanrank.labeling.store import Project
from cleanrank.types import RankingData

MEASURE_WIDTH = 0.05


@dataclass(frozen=True, eq=False)
class Systems:
    """What an evaluation batch says of systems.

    Attributes:
        measure: which.
        n_drawn: documents that were drawn, and judged or skipped.
        n_pool: documents that count.
        estimates: system, or difference of two -> its mean with an interval; empty where it is too early.
        wanted: how wide intervals may be.
        notes: what a reader must know, in words.
    """

    measure: str
    n_drawn: int
    n_pool: int
    estimates: Mapping[str, JudgedEvaluation]
    wanted: float
    notes: tuple[str, ...] = ()

    @property
    def widest(self) -> JudgedEvaluation | None:
        """The widest interval; None without any."""
        return max(self.estimates.values(), key=lambda each: each.width, default=None)

    @property
    def enough(self) -> bool:
        """Whether all intervals are as narrow as was asked for, or nothing is left to judge."""
        widest = self.widest
        return widest is not None and (widest.width <= self.wanted or self.n_drawn >= self.n_pool)

    @property
    def more(self) -> int:
        """Further documents that may be needed: widths fall with the root of their number."""
        widest = self.widest
        if widest is None or self.enough or not math.isfinite(widest.width):
            return 0
        needed = math.ceil(self.n_drawn * (widest.width / self.wanted) ** 2)
        return min(needed, self.n_pool) - self.n_drawn

    def verdict(self) -> str:
        """Whether to stop, in a sentence; empty where there is no estimate."""
        widest = self.widest
        if widest is None:
            return ""
        found = f"the interval of {self.measure} is {widest.width:.3f} wide ({widest.system})"
        if self.n_drawn >= self.n_pool:
            return f"Stop measuring systems: all {self.n_pool:,} documents that count are judged; {found}."
        if self.enough:
            return f"Stop measuring systems: {found}, {self.wanted:g} was wanted."
        hint = f"about {self.more:,} further documents may be needed"
        return f"Go on measuring systems: {found}, {self.wanted:g} was wanted; {hint}."


def system_progress(
    data: RankingData,
    project: Project,
    batch_id: int,
    grades: Mapping[int, int],
    passed: Collection[int] = (),
    *,
    level: float = 0.95,
    wanted: float = MEASURE_WIDTH,
) -> Systems | None:
    """What systems are worth under the answers to an evaluation batch.

    Documents were drawn one after the other: with the first m answered, these are a sample of size m, whose
    probabilities are computed anew. So figures of a batch that is not finished are valid too.

    Args:
        data: the given labels, with ``row_ids`` of the project: those of the judge.
        project: where the batch is.
        batch_id: of an evaluation batch.
        grades: document -> the grade that stands; below 0 where it was dropped.
        passed: positions of units that were skipped and that nobody judged.
        level: of the intervals.
        wanted: how wide intervals may be.

    Returns:
        The estimates; None where the project does not keep the systems of the batch.
    """
    record = kept_systems(project, batch_id)
    if record is None:
        return None
    units = project.units(batch_id)
    done = [unit.rows[0] in grades or unit.position in passed for unit in units]
    n_drawn = done.index(False) if False in done else len(done)
    drawn, notes = [unit.rows[0] for unit in units[:n_drawn]], []
    without = [row for row in drawn if grades.get(row, -1) < 0]
    if without:
        notes.append(f"{len(without):,} drawn documents were skipped or dropped; intervals hold only if that")
        notes[-1] += " was not for their relevance"
    estimates: dict[str, JudgedEvaluation] = {}
    if n_drawn:
        try:
            estimates = _evaluated(data, record, drawn, grades, level)
        except BadFileError:
            raise
        except InvalidInputError as error:
            notes.append(str(error))
    return Systems(record["measure"], n_drawn, record["n_pool"], estimates, wanted, tuple(notes))


def _evaluated(
    data: RankingData,
    record: Mapping[str, Any],
    drawn: Sequence[int],
    grades: Mapping[int, int],
    level: float,
) -> dict[str, JudgedEvaluation]:
    """Estimates from the first documents of the sequence that a batch draws from."""
    compare, seed = record["compare"], record["seed"]
    systems = {name: record["systems"][name] for name in compare or record["systems"]}
    options: dict[str, Any] = {"measure": record["measure"], "seed": seed}
    sample = sample_for_evaluation(systems, data, len(drawn), compare=compare, **options).frame
    row_of = rows_by_name(data)
    rows = [row_of[pair] for pair in zip(sample["qid"], sample["docid"], strict=True)]
    gold = sample.assign(grade=[grades.get(row, -1) for row in rows]).query("grade >= 0")
    estimate = compare_with_judge if compare else evaluate_with_judge
    columns = gold[["qid", "docid", "grade", "probability"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an estimate's notes say the same
        found = estimate(systems, judge=data, gold=columns, design="documents", level=level, **options)
    return dict(found) if isinstance(found, dict) else {found.system: found}
