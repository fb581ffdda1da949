"""Projects from data, and the rows that people are asked about.

Rows are asked about for one of four purposes: new labels; a random sample of the given ones, which tells how
many are wrong; documents that decide about a measure of systems; the labels that are doubted most. A row that
was judged before and is drawn again is not asked again: its unit says in which batch it was answered.
"""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.data.project_file import SHARES
from cleanrank.data.spreadsheet import text_of_value
from cleanrank.data.texts import texts_of
from cleanrank.errors import invalid
from cleanrank.issues.find import find_label_issues
from cleanrank.issues.table import LabelIssues, read_issues
from cleanrank.issues.to_judge import next_to_judge
from cleanrank.judges.inputs import as_systems
from cleanrank.judges.labels import document_names
from cleanrank.judges.sampling import sample_for_evaluation
from cleanrank.labeling.answers import data_of, given_data, graded, rows_by_name
from cleanrank.labeling.decisions import sampled_grades
from cleanrank.labeling.records import Batch, Document, Scale
from cleanrank.labeling.review import about_issues
from cleanrank.labeling.store import Project, create_project
from cleanrank.labeling.tasks import make_task
from cleanrank.labeling.texts import documents_of, fields_by_row
from cleanrank.labeling.work import UNSURE
from cleanrank.metrics.measure import MeasureLike
from cleanrank.noise.gold import sample_gold
from cleanrank.noise.gold_sheet import gold_answers
from cleanrank.stored import as_array
from cleanrank.types import RankingData
from cleanrank.validation import check_integer, is_frame

SCALES = {
    2: ("not relevant", "relevant"),
    3: ("not relevant", "partially relevant", "relevant"),
    4: ("irrelevant", "related", "highly relevant", "perfectly relevant"),
    5: ("bad", "fair", "good", "excellent", "perfect"),
}
UNLABELLED_GRADES = 3
NAMES = {
    "grade": "Grade documents",
    "pairs": "Compare documents",
    "top-k": "Find the best documents",
    "active": "Find the best documents, the most telling pairs first",
}


def make_project(
    path: str | PathLike[str],
    data: Any,
    *,
    name: str,
    scale: Scale | Sequence[str] | int | None = None,
    queries: Mapping[Any, str] | None = None,
    fields: Mapping[str, Sequence[str]] | None = None,
) -> Project:
    """Makes a project of the documents of some data, in a new file.

    Args:
        path: the file; it must not exist.
        data: a RankingData; or a table of texts (file, frame or mapping of columns) with query_id (or query)
            and further doc_id, query, title, text, url, label, which need not have labels or features.
        name: for people.
        scale: descriptions of the grades from 0, or their number; else as many as the labels show.
        queries: query id -> its text; those that came with the data unless given.
        fields: name -> text of every row of ``data``, beside the texts that came with it.

    Returns:
        The project, open, without any batch; use it with ``with``.

    >>> import tempfile
    >>> table = {"query": ["fruit", "fruit"], "title": ["Apple", "Car"]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with make_project(f"{folder}/p.sqlite", table, name="demo", scale=2) as project:
    ...         project.query_ids(), add_label_batch(project).name, project.units(1)[0].rows
    (('fruit',), 'Grade documents', (0, 1))
    """
    shares: dict[int, float] = {}
    if isinstance(data, RankingData):
        texts = texts_of(data)
        shown = fields_by_row({**texts.fields, **_categories(data), **(fields or {})}, data.n_docs)
        documents: Any = _documents(data, shown)
        names = data.feature_names or tuple(f"feature {j}" for j in range(1, data.n_features + 1))
        n_grades = data.n_grades if data.judged is None or data.judged.any() else 0
        said = texts.queries
    elif is_frame(data) or isinstance(data, str | PathLike | Mapping):
        listed, said, shares = documents_of(data)
        more = fields_by_row(fields or {}, len(listed))
        documents = [Document(d.row, d.query_id, d.doc_id, d.row_id, d.given_label, {**d.fields, **each})
                     for d, each in zip(listed, more, strict=True)]  # fmt: skip
        n_grades = max((d.given_label + 1 for d in listed if d.given_label is not None), default=0)
        names = ()
    else:
        rule = "must be a RankingData or a table with a column of queries"
        raise invalid("data", rule, f"a {type(data).__name__}")
    given = {str(query): str(text) for query, text in (queries or {}).items()}
    project = create_project(
        path,
        documents,
        {**said, **given},
        name=name,
        scale=as_scale(scale, n_grades),
        feature_names=names,
    )
    if shares:
        project.keep(SHARES, shares)
    return project


def as_scale(scale: Scale | Sequence[str] | int | None, n_grades: int = 0) -> Scale:
    """A scale from descriptions, a number of grades, or the number that the labels show.

    >>> as_scale(2).descriptions, as_scale("no, yes".split(", ")).n_grades, as_scale(None, 7).descriptions[6]
    (('not relevant', 'relevant'), 2, 'grade 6')
    """
    if isinstance(scale, Scale):
        made = scale
    elif isinstance(scale, Sequence):
        made = Scale(tuple(str(text).strip() for text in scale))
    else:
        most = max(SCALES) if n_grades <= max(SCALES) else n_grades
        count = scale if scale is not None else max(n_grades, 2) if n_grades else UNLABELLED_GRADES
        check_integer("scale", count, least=2, most=max(most, 20))
        made = Scale(SCALES.get(count, tuple(f"grade {grade}" for grade in range(count))))
    if isinstance(scale, str) or made.n_grades < 2 or not all(made.descriptions):
        raise invalid("scale", "must be descriptions of at least two grades", repr(scale))
    if made.n_grades < n_grades:
        rule, remedy = f"must have the grades of the labels, 0 to {n_grades - 1}", "Describe all of them."
        raise invalid("scale", rule, f"{made.n_grades} grades", remedy=remedy)
    return made


def _documents(data: RankingData, fields: Sequence[Mapping[str, str]]) -> Iterator[Document]:
    """The documents of data, numbered by row id: whatever knows rows of the data knows them."""
    rows = data.row_ids.tolist()
    if len(set(rows)) < len(rows):
        raise invalid("row_ids", "must be different in every row to be judged", "a repeated one")
    names, queries = document_names(data), data.qid
    for place, row in enumerate(rows):
        label = None if data.judged is not None and not data.judged[place] else int(data.y[place])
        part = data.X[place : place + 1]
        features = as_array(part)[0] if data.n_features else None
        yield Document(row, str(queries[place]), str(names[place]), row, label, fields[place], features)


def _categories(data: RankingData) -> dict[str, list[str]]:
    """Categorical features as texts, by name."""
    columns = {}
    for name, values in (data.categories or {}).items():
        column = data.X[:, (data.feature_names or ()).index(name)]
        codes = as_array(column).ravel()
        columns[name] = ["" if code != code else text_of_value(values[int(code)]) for code in codes]
    return columns


def add_label_batch(
    project: Project,
    *,
    kind: str = "grade",
    name: str | None = None,
    k: int | None = None,
    ties: bool | None = None,
    transitive: bool | None = None,
    neither: bool | None = None,
    queries: Sequence[Any] | None = None,
    annotators_per_unit: int = 1,
    gold: Any = None,
    again: bool = True,
) -> Batch:
    """Asks about all documents, query by query.

    Args:
        project: an open project.
        kind: "grade", "pairs", "top-k" or "active".
        name: for people.
        k: of top-k and active: how many documents to put in order; 10 unless given.
        ties: of pairs, top-k and active: whether "equally good" is an answer; yes unless given.
        transitive: of these: whether what follows from other answers is not asked; no unless given.
        neither: of top-k: whether "neither is relevant" is an answer; no unless given.
        queries: ids of the queries; all unless given.
        annotators_per_unit: by how many people each query is judged.
        gold: of grades: documents of known grade, in any form that ``estimate_noise`` takes. Everybody is
            asked about them, one by one among the others, and they are left out of the rest.
        again: of grades: whether documents are asked about that as many people have judged before.

    Returns:
        The batch.
    """
    options = {"k": k, "ties": ties, "transitive": transitive, "neither": neither}
    settings = {name: value for name, value in options.items() if value is not None}
    if gold is not None and kind != "grade":
        raise invalid("gold", "goes with grades, whose answers are known", f"kind {kind!r}")
    known = {} if gold is None else _known_grades(project, gold)
    left_out = {*known, *(() if again or kind != "grade" else _judged(project, annotators_per_unit))}
    ids = project.query_ids() if queries is None else [str(query) for query in queries]
    units: list[Any] = []
    for query in ids:
        documents = project.documents_of(query)
        if not documents:
            raise invalid("queries", "must be queries of the project", repr(query))
        rows = [each.row for each in documents if each.row not in left_out]
        if rows and not make_task(kind, len(rows), **settings).is_done:
            units.append(rows)
    if not units and left_out.difference(known):
        raise invalid("documents", "must be left to judge", "all were judged")
    units += [([row], {"is_gold": True, "true_grade": grade}) for row, grade in known.items()]
    if not units:
        raise invalid("queries", "must have at least two documents to be compared", "none that has")
    return project.add_batch(
        units,
        name=name or NAMES[kind],
        kind=kind,
        purpose="label",
        settings=settings,
        annotators_per_unit=annotators_per_unit,
    )


def _judged(project: Project, n_people: int) -> list[int]:
    """Documents that so many people have judged."""
    people: dict[int, set[str]] = {}
    for _, _, row, event in graded(project):
        if event.value not in (None, UNSURE):
            people.setdefault(row, set()).add(event.annotator)
    return [row for row, judges in people.items() if len(judges) >= n_people]


def _known_grades(project: Project, gold: Any) -> dict[int, int]:
    """Document -> true grade, from gold in any form."""
    every = project.documents()
    data = data_of(every, [each.given_label or 0 for each in every])
    answers = gold_answers(gold, data, n_grades=project.scale.n_grades)
    if answers is None:
        raise invalid("gold", "must hold at least one known grade", "none")
    return dict(zip(answers.row_ids.tolist(), answers.true_grades.tolist(), strict=True))


def add_gold_batch(
    project: Project, n: int = 100, *, name: str | None = None, annotators_per_unit: int = 1, seed: int = 0
) -> Batch:
    """Asks about a random sample of the given labels, which tells how many are wrong; see ``sample_gold``.

    Args:
        project: an open project whose documents have labels.
        n: how many rows; none that an earlier sample holds.
        name: for people.
        annotators_per_unit: by how many people each row is judged.
        seed: same seed, same rows.

    Returns:
        The batch; given labels are hidden from whoever judges.
    """
    data = _labelled(project)
    drawn = [row for batch in project.batches() if batch.purpose == "gold"
             for unit in project.units(batch.id) for row in unit.rows]  # fmt: skip
    pool = data.drop(np.isin(data.row_ids, drawn))
    if not pool.n_docs:
        raise invalid("rows", "must be left to draw", "all were drawn")
    rows = sample_gold(pool, n, seed=seed).row_ids
    answered = answered_rows(project)
    return project.add_batch(
        [([row], _about(row, answered)) for row in rows.tolist()],
        name=name or f"A random sample of {n:,} labels",
        kind="grade",
        purpose="gold",
        annotators_per_unit=annotators_per_unit,
    )


def add_evaluation_batch(
    project: Project,
    runs: Any,
    n: int = 100,
    *,
    measure: MeasureLike = "ndcg@10",
    compare: Sequence[str] | None = None,
    name: str | None = None,
    annotators_per_unit: int = 1,
    seed: int = 0,
) -> Batch:
    """Asks about the documents whose true grades would narrow the estimate of a measure most.

    Args:
        project: an open project; the given labels are those of the judge.
        runs: the systems, as ``sample_for_evaluation`` takes them, or scores of the labelled rows in the
            order of the project (or a mapping from names to scores).
        n: how many documents.
        measure: what is to be estimated.
        compare: names of two systems whose difference is to be estimated, instead of the level of each.
        name: for people.
        annotators_per_unit: by how many people each document is judged.
        seed: same seed, same documents.

    Returns:
        The batch. Its units keep the probability of being drawn, and ``kept_systems`` what the sample is for.
    """
    data = _labelled(project)
    systems = as_systems(runs, data)
    sample = sample_for_evaluation(systems, data, n, measure=measure, compare=compare, seed=seed)
    row_of, answered = rows_by_name(data), answered_rows(project)
    units = []
    for each in sample.frame.sort_values("draw").to_dict("records"):
        row = row_of[each["qid"], each["docid"]]
        drawn = {"probability": each["probability"], "draw": each["draw"]}
        units.append(([row], {**drawn, **_about(row, answered)}))
    with project.writing():
        batch = project.add_batch(
            units,
            name=name or f"{len(units):,} documents to measure {sample.measure}",
            kind="grade",
            purpose="evaluation",
            annotators_per_unit=annotators_per_unit,
        )
        record = {"measure": sample.measure, "compare": compare, "seed": seed, "n_pool": sample.n_pool}
        scores = {name: _nested(run) for name, run in systems.items()}
        project.keep(f"systems of batch {batch.id}", {**record, "systems": scores})
    return batch


def kept_systems(project: Project, batch_id: int) -> dict[str, Any] | None:
    """What an evaluation batch is for: measure, compare, seed, n_pool, systems {name: {query: {doc: score}}}.

    None for any other batch.
    """
    record: dict[str, Any] | None = project.kept(f"systems of batch {batch_id}")
    return record


def _nested(run: Any) -> dict[str, dict[str, float]]:
    scores: dict[str, dict[str, float]] = {}
    for topic, doc, score in zip(run.topic, run.doc, run.scores.tolist(), strict=True):
        scores.setdefault(str(run.topic_ids[topic]), {})[str(run.doc_ids[doc])] = score
    return scores


def add_repair_batch(
    project: Project,
    n: int = 100,
    *,
    issues: LabelIssues | str | PathLike[str] | None = None,
    name: str | None = None,
    annotators_per_unit: int = 1,
    blind: bool = False,
    seed: int = 0,
) -> Batch:
    """Asks for a review of the most doubtful labels, the most doubtful first; not of rows judged before.

    Args:
        project: an open project whose documents have labels.
        n: how many rows.
        issues: what a detector found in the data of the project, or its file; ``find_label_issues`` unless
            given, with the noise that answers to random samples tell.
        name: for people.
        annotators_per_unit: by how many people each row is judged.
        blind: hide the given label.
        seed: of the detector.

    Returns:
        The batch; its units keep doubt, reasons and the suggested label.
    """
    check_integer("n", n, least=1)
    data = _labelled(project)
    answered = answered_rows(project)
    if issues is None:
        issues = find_label_issues(data, seed=seed, gold=sampled_grades(project) or None)
    elif not isinstance(issues, LabelIssues):
        issues = read_issues(Path(issues))
    table = issues.aligned(data)
    places = next_to_judge(table, n, np.array(list(answered), dtype=np.int64))
    if not len(places):
        raise invalid("rows", "must be left to review", "all were judged")
    about = about_issues(table, data, places)
    return project.add_batch(
        [([int(table.row_id[place])], each) for place, each in zip(places, about, strict=True)],
        name=name or f"The {len(places):,} most doubtful labels",
        kind="review",
        purpose="repair",
        annotators_per_unit=annotators_per_unit,
        blind=blind,
    )


def _labelled(project: Project) -> RankingData:
    data = given_data(project)
    if data is None:
        remedy = "Ask for grades first (cleanrank label), or add a column of labels to the table."
        raise invalid("documents", "must have labels to be judged again", "none", remedy=remedy)
    return data


def answered_rows(project: Project) -> dict[int, int]:
    """Document -> the last batch in which somebody graded or dropped it."""
    return {row: batch.id for batch, _, row, event in graded(project) if event.value not in (None, UNSURE)}


def _about(row: int, answered: Mapping[int, int]) -> dict[str, Any]:
    return {"answered_in": answered[row]} if row in answered else {}
