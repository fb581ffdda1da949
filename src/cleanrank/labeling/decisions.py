"""What the answers of several people come to: one decision per document.

Who answered twice is taken at the last word, and who was unsure has no vote. Of a tie the given label stands
if it is among the tied ones, else the lowest grade; a row is dropped only if more people say so than give any
one grade.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cleanrank.errors import UnknownNameError, invalid
from cleanrank.labeling.answers import graded, known_grades
from cleanrank.labeling.records import Batch
from cleanrank.labeling.store import Project
from cleanrank.labeling.work import DROP, UNSURE
from cleanrank.validation import is_integer, one_of


@dataclass(frozen=True)
class Opinion:
    """What one person said of a document.

    Attributes:
        annotator: who.
        value: a grade, "drop" or "unsure".
        at: when, ISO 8601, UTC.
        seconds: how long it took, where that is known.
        batch: in which batch, by number.
        doubt: of the label before it was reviewed, where a detector said so.
    """

    annotator: str
    value: int | str
    at: str
    seconds: float | None
    batch: int
    doubt: float | None = None


@dataclass(frozen=True)
class Decision:
    """What the opinions about one document come to.

    Attributes:
        row: the document.
        value: its grade, "drop", or None where nobody was sure.
        opinions: of all people, the last of each, in order.
        is_tie: whether another value had as many votes.
    """

    row: int
    value: int | str | None
    opinions: tuple[Opinion, ...] = field(default=())
    is_tie: bool = False


def majority(votes: Sequence[int | str], given: int | None = None) -> tuple[int | str, bool]:
    """The value with the most votes, and whether another has as many.

    Args:
        votes: grades and "drop", at least one.
        given: the given label, which stands if it is among the tied ones.

    >>> majority([2, 1, 2]), majority([2, 1], given=2), majority([2, 1]), majority(["drop", 0, 1, "drop"])
    ((2, False), (2, True), (1, True), ('drop', False))
    """
    counts = Counter(votes)
    most = max(counts.values())
    tied = [value for value, count in counts.items() if count == most]
    grades = sorted(value for value in tied if is_integer(value))
    if given in grades:
        return int(given or 0), len(tied) > 1
    return (grades[0] if grades else DROP), len(tied) > 1


def median(votes: Sequence[int | str], given: int | None = None) -> tuple[int | str, bool]:
    """The middle grade (of two the lower one, or the given label if it is one of them), if not dropped.

    >>> median([0, 3, 1]), median([0, 3]), median([0, 3], given=3), median(["drop", "drop", 1])
    ((1, False), (0, True), (3, True), ('drop', False))
    """
    grades = sorted(value for value in votes if is_integer(value))
    if 2 * len(grades) < len(votes) or not grades:
        return DROP, False
    middle = grades[(len(grades) - 1) // 2], grades[len(grades) // 2]
    return (given if given in middle else middle[0]), middle[0] != middle[1]


def opinions_by_row(
    project: Project, *, annotator: str | None = None, batches: Iterable[Batch] | None = None
) -> dict[int, dict[str, Opinion]]:
    """Document -> annotator -> their last opinion, of all batches of grades and reviews.

    Args:
        project: an open project.
        annotator: of this person alone.
        batches: of these alone.
    """
    if annotator is not None and annotator not in {each.name for each in project.annotators()}:
        known = ", ".join(each.name for each in project.annotators()) or "nobody"
        raise UnknownNameError(f"unknown annotator {annotator!r}. Known: {known}.")
    said: dict[int, dict[str, Opinion]] = {}
    answers = graded(project, annotator=annotator, batches=batches)
    # An earlier batch may be resumed after a later one: the last answer is the one given last.
    for batch, unit, row, event in sorted(answers, key=lambda each: each.event.id):
        if event.value is not None:
            doubt = unit.about.get("doubt")
            opinion = Opinion(event.annotator, event.value, event.at, event.seconds, batch.id, doubt)
            own = said.setdefault(row, {})
            own.pop(event.annotator, None)
            own[event.annotator] = opinion
    return said


def decisions(
    project: Project,
    *,
    combine: str = "majority",
    annotator: str | None = None,
    batches: Iterable[Batch] | None = None,
) -> list[Decision]:
    """One decision for every document that somebody judged, by document.

    Args:
        project: an open project.
        combine: of RULES: how several opinions become one.
        annotator: the opinions of this person alone.
        batches: the answers of these alone; all grades and reviews unless given.

    >>> import tempfile
    >>> from cleanrank.labeling.projects import add_label_batch, make_project
    >>> folder = tempfile.TemporaryDirectory()
    >>> project = make_project(f"{folder.name}/p.sqlite", {"query": ["fruit"]}, name="demo")
    >>> batch = add_label_batch(project, annotators_per_unit=2)
    >>> for who, grade in (("ann", 2), ("bob", 1)):
    ...     asked = {"batch": batch.id, "unit": 0, "question": "0", "request": who}
    ...     _ = project.append(annotator=who, kind="answer", value=grade, **asked)
    >>> [(each.value, each.is_tie) for each in decisions(project)]
    [(1, True)]
    >>> project.close(); folder.cleanup()
    """
    one_of("way to combine answers", combine, RULES)
    said = opinions_by_row(project, annotator=annotator, batches=batches)
    return [
        decided(row, said[row].values(), project.document(row).given_label, combine) for row in sorted(said)
    ]


def decided(
    row: int, opinions: Iterable[Opinion], given: int | None = None, combine: str = "majority"
) -> Decision:
    """What opinions about a document come to, by one of RULES; ``given`` is its label."""
    listed = tuple(opinions)
    votes = [each.value for each in listed if each.value != UNSURE]
    value, is_tie = RULES[combine](votes, given) if votes else (None, False)
    return Decision(row, value, listed, is_tie)


def gold_grades(project: Project) -> dict[int, int]:
    """Document -> the grade that counts as right: a known one, or what a gold sample's answers come to."""
    return {**sampled_grades(project), **known_grades(project)}


def sampled_grades(project: Project) -> dict[int, int]:
    """Document -> what the answers of a gold sample come to.

    Rows of a sample that were judged before it was drawn count with the answers they have: the others alone
    would be no random sample.
    """
    batches = {each.id: each for each in project.batches()}
    sampled: dict[int, int] = {}
    for batch in batches.values():
        if batch.purpose == "gold":
            drawn = {
                unit.rows[0]: unit.about.get("answered_in", batch.id) for unit in project.units(batch.id)
            }
            made = decisions(project, batches=[batches[each] for each in {batch.id, *drawn.values()}])
            sampled |= {
                each.row: int(each.value) for each in made if each.row in drawn and is_integer(each.value)
            }
    return sampled


def words(made: Iterable[Decision]) -> list[str]:
    """What a reader of decisions must know: ties, dropped rows, rows without a decision."""
    listed = list(made)
    counts: Mapping[str, int] = {
        "documents had a tie, which went to the given label, else to the lowest grade": sum(
            each.is_tie for each in listed
        ),
        "documents were dropped by those who judged them": sum(each.value == DROP for each in listed),
        "documents have no grade because nobody was sure": sum(each.value is None for each in listed),
    }
    return [f"{count:,} {text}" for text, count in counts.items() if count]


def check_grade(value: int | str, n_grades: int, place: str) -> int | str:
    """Returns a grade of the scale or a word of a review; else raises."""
    if value in (DROP, UNSURE) or (is_integer(value) and 0 <= value < n_grades):
        return value
    rule = f"must be a grade from 0 to {n_grades - 1}, '{DROP}' or '{UNSURE}'"
    raise invalid("a judgement", rule, repr(value), at=place)


RULES = {"majority": majority, "median": median}
