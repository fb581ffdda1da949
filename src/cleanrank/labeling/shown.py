"""What a reviewer is shown of a doubted label, in the browser and in the terminal alike.

In blind mode that is the document and its features, beside the grades of documents that are not asked about
in the same batch. Whatever depends on the given grade is hidden: the grade itself, reasons, the suggestion,
probabilities, the doubt; and the ranking, which together with the fact that the label is doubted would show
on which side of it the grade is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from cleanrank.labeling.records import Batch, Document, Scale, Unit
from cleanrank.labeling.review import FeaturePlace, feature_places, ranking_around
from cleanrank.labeling.store import Project


@dataclass(frozen=True, eq=False)
class RankedDocument:
    """A document in the ranking of its query.

    Attributes:
        rank: from 1.
        document: which.
        score: the expected grade, by models that never saw the query; None where there is none.
        is_own: whether it is the one whose label is doubted.
    """

    rank: int
    document: Document
    score: float | None
    is_own: bool


@dataclass(frozen=True, eq=False)
class ShownIssue:
    """A doubted label as a reviewer sees it.

    Attributes:
        document: the document; in blind mode without its given grade.
        blind: whether the given grade and all that it has entered are hidden.
        given: the given grade.
        suggested: the grade that the detector suggests.
        doubt: of the detector; a probability only where the noise is known.
        why: the reasons in words.
        probabilities: of the true grades, with the given one weighed in.
        ranking: the first documents of the query and those around this one.
        n_ranked: how many documents the query has.
        features: where the document lies among those of its query, the most unusual features first.
    """

    document: Document
    blind: bool
    given: int | None = None
    suggested: int | None = None
    doubt: float | None = None
    why: str = ""
    probabilities: tuple[float, ...] = ()
    ranking: tuple[RankedDocument, ...] = ()
    n_ranked: int = 0
    features: tuple[FeaturePlace, ...] = ()


def shown_issue(project: Project, batch: Batch, unit: Unit) -> ShownIssue:
    """What a reviewer sees of one unit of a review.

    Args:
        project: an open project.
        batch: of the kind "review".
        unit: one of its units.

    >>> import tempfile
    >>> from cleanrank.labeling.store import create_project
    >>> documents = [Document(i, "q", f"d{i}", given_label=i) for i in range(2)]
    >>> folder = tempfile.TemporaryDirectory()
    >>> scale = Scale(("bad", "good"))
    >>> project = create_project(f"{folder.name}/p.sqlite", documents, name="demo", scale=scale)
    >>> units = [([1], {"doubt": 0.9, "suggested_label": 0, "why": "ranked last"})]
    >>> batch = project.add_batch(units, name="doubted", kind="review", purpose="repair", blind=False)
    >>> shown = shown_issue(project, batch, project.units(batch.id)[0])
    >>> shown.given, shown.suggested, shown.why
    (1, 0, 'ranked last')
    >>> project.close(); folder.cleanup()
    """
    document = project.document(unit.rows[0])
    of_query = project.documents_of(document.query_id)
    at = next(place for place, each in enumerate(of_query) if each.row == document.row)
    asked = {row for each in project.units(batch.id) for row in each.rows} if batch.blind else set()
    places = _features(project, of_query, at, asked)
    if batch.blind:
        return ShownIssue(replace(document, given_label=None), True, features=places)
    about = unit.about
    suggested = about.get("suggested_label")
    return ShownIssue(
        document,
        False,
        given=document.given_label,
        suggested=None if suggested is None else int(suggested),
        doubt=about.get("doubt"),
        why=str(about.get("why", "")),
        probabilities=tuple(map(float, about.get("probabilities", ()))),
        ranking=_ranking(of_query, at, about.get("scores") or {}),
        n_ranked=len(of_query),
        features=places,
    )


def _features(
    project: Project, of_query: tuple[Document, ...], at: int, hidden: set[int]
) -> tuple[FeaturePlace, ...]:
    rows = [each.features for each in of_query if each.features is not None]
    if len(rows) < len(of_query):
        return ()
    labels = [None if each.row in hidden else each.given_label for each in of_query]
    return tuple(feature_places(np.stack(rows), at, labels, project.feature_names))


def _ranking(
    of_query: tuple[Document, ...], at: int, scores: Mapping[str, float]
) -> tuple[RankedDocument, ...]:
    """The ranking around a document; empty where its detector ranks none."""
    if str(of_query[at].row) not in scores:
        return ()
    by_place = [scores.get(str(each.row)) for each in of_query]
    order = ranking_around([np.nan if score is None else score for score in by_place], at)
    return tuple(RankedDocument(rank, of_query[place], by_place[place], place == at) for rank, place in order)


def answer_words(value: int | str | None, scale: Scale, given: int | None = None) -> str:
    """An answer to a review in words; None is a skip.

    Args:
        value: the answer.
        scale: of the project.
        given: the given grade, where it may be shown.

    >>> scale = Scale(("bad", "good"))
    >>> [answer_words(value, scale, given=1) for value in (0, 1, "drop", None)]
    ['0 (bad)', 'keep 1 (good)', 'drop', 'skipped']
    """
    if value is None:
        return "skipped"
    if isinstance(value, str):
        return value
    described = scale.descriptions[value] if 0 <= value < scale.n_grades else ""
    words = f"{value} ({described})" if described not in ("", str(value)) else f"{value}"
    return f"keep {words}" if value == given else words
