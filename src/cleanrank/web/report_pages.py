"""What the pages of reports show, from a project or a file of runs; if there is nothing yet, what is needed.

Each function opens the file anew: a page that takes long to make holds no lock that answers wait for.
"""

from collections import Counter
from collections.abc import Mapping
from os import PathLike
from statistics import median
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

import numpy as np
from markupsafe import Markup

from cleanrank.errors import BadFileError, InvalidInputError
from cleanrank.labeling.answers import given_data, known_grades, majority, standing
from cleanrank.labeling.decisions import gold_grades
from cleanrank.labeling.store import Project, open_project
from cleanrank.report.pages import Page, report_page
from cleanrank.report.sections import Section, sections_page
from cleanrank.report.table import Cell, Line, Table, many, number
from cleanrank.web.security import Refused

if TYPE_CHECKING:
    from cleanrank.judges.panel import Panel
    from cleanrank.judges.report import JudgeReport
    from cleanrank.noise.judgement_table import JudgedItems

MOST_TO_JUDGE = 30  # items to judge again that are listed
MOST_JUDGES = 12  # annotators in a report on judges, those with the most answers
Path: TypeAlias = str | PathLike[str]
Grades: TypeAlias = Mapping[int, int]  # document -> grade


def annotators_of(path: Path) -> Page:
    """The page of the annotators of a project: what each has answered, and how reliable they are."""
    from cleanrank.noise.annotator_report import annotator_report
    from cleanrank.noise.judgement_table import read_judgements
    from cleanrank.report.annotator_tables import annotators_page

    with open_project(path) as project:
        columns, known, name = project.judgements(), known_grades(project), project.name
        answers = answers_table(project, known)
    title = f"Annotators: {name}"
    if not answers.rows:
        return needed(title, "Nobody has answered yet.")
    first = Section("Answers so far", [answers])
    graded = set(zip(columns["project_row"], columns["annotator"], strict=True))
    if max(Counter(row for row, _ in graded).values(), default=0) < 2:
        words = "Agreement and reliability need documents that two people or more have graded."
        return needed(title, f"{words} So far there are none.", first)
    kept = {each: columns[each] for each in ("query_id", "doc_id", "annotator", "grade", "seconds", "at")}
    truth = [known.get(row) for row in columns["project_row"]]
    judged = read_judgements({**kept, "true_grade": truth}, lowest=0)
    panel = _panel(judged, columns, known)
    report = annotator_report(judged)
    return annotators_page(report, name=name, top=MOST_TO_JUDGE, panel=panel, first=[first])


def _panel(judged: "JudgedItems", columns: Mapping[str, list[Any]], known: Grades) -> "Panel | None":
    """What annotators make together, where there are gold questions enough to tell."""
    from cleanrank.judges.panel import combine_judges

    ids = zip(columns["query_id"], columns["doc_id"], columns["project_row"], strict=True)
    gold: dict[str, dict[str, int]] = {}
    for query, document, row in ids:
        if row in known:
            gold.setdefault(query, {})[document] = known[row]
    try:
        return combine_judges(judged, gold=gold) if gold else None
    except BadFileError:
        raise
    except InvalidInputError:  # too few, or all of one grade
        return None


def answers_table(project: Project, known: Grades) -> Table:
    """A row for everybody who has answered: how much, how fast, and how many gold questions rightly."""
    events = project.events()
    kept = standing(events)
    undone = Counter(event.annotator for event in events if event.kind == "undo")
    right: dict[str, list[bool]] = {}
    columns = project.judgements()
    for row, who, grade in zip(*(columns[c] for c in ("project_row", "annotator", "grade")), strict=True):
        if row in known:
            right.setdefault(who, []).append(grade == known[row])
    rows: list[Line] = []
    for name in sorted({event.annotator for event in events}):
        own = [event for event in kept if event.annotator == name]
        times = [event.seconds for event in own if event.seconds is not None]
        on_gold = right.get(name, [])
        counts = [sum(event.kind == kind for event in own) for kind in ("answer", "skip")]
        cells = [number(n, ",") for n in (*counts, undone[name])]
        pace = number(median(times) if times else None, ".1f")
        share = number(sum(on_gold) / len(on_gold) if on_gold else None, ".0%")
        rows.append([name, *cells, pace, number(len(on_gold), ","), share])
    head = ("annotator", "answers", "skipped", "taken back", "median seconds", "gold questions", "right")
    return Table(head, rows, caption="Answers that stand, by person")


def data_set_of(path: Path) -> Page:
    """The diagnosis of the labels that the data of a project came with."""
    from cleanrank.diagnosis import diagnose
    from cleanrank.report.articles import diagnosis_page

    with open_project(path) as project:
        data, name = given_data(project), project.name
    if data is None:
        words = "The diagnosis needs documents with a label: those of this project came without."
        return needed(f"Diagnosis of {name}", words)
    return diagnosis_page(diagnose(data, name=name).to_dict())


def judges_of(path: Path) -> Page:
    """The given labels beside gold answers, and annotators beside gold questions or beside one another."""
    from cleanrank.report.judge_tables import judges_page

    with open_project(path) as project:
        known, gold, name = known_grades(project), gold_grades(project), project.name
        columns, n_grades = project.judgements(), project.scale.n_grades
        documents = project.documents()
    query_of = {each.row: each.query_id for each in documents}
    given = {each.row: each.given_label for each in documents if each.given_label is not None}
    reports = _report("given labels", given, gold, query_of, n_grades)
    by_person: dict[str, dict[int, int]] = {}
    for row, who, grade in zip(*(columns[c] for c in ("project_row", "annotator", "grade")), strict=True):
        by_person.setdefault(who, {})[row] = grade
    for who in sorted(by_person, key=lambda who: (-len(by_person[who]), who))[:MOST_JUDGES]:
        others = (each.items() for other, each in by_person.items() if other != who)
        right = known or majority(pair for grades in others for pair in grades)
        reports += _report(who, by_person[who], right, query_of, n_grades)
    if not reports:
        words = (
            "A report on judges needs documents with a given label and a gold answer (a gold sample, or gold "
            "questions), or documents that two people have graded. So far there are none."
        )
        return needed(f"Judges: {name}", words)
    page = judges_page(reports, name=name)
    people = "gold questions" if known else "the majority of the other annotators"
    compared = [
        f"given labels against {many(len(gold), 'gold answer')}" if gold and given else "",
        f"annotators against {people}" if len(reports) > 1 or not gold else "",
    ]
    lede = f"Compared: {'; '.join(each for each in compared if each)}. {page.values['lede']}"
    return page._replace(values={**page.values, "lede": lede})


def _report(
    name: str, grades: Grades, gold: Grades, query_of: Mapping[int, str], n_grades: int
) -> "list[JudgeReport]":
    """The report on one judge, a list of one; empty where nothing has both grades."""
    from cleanrank.judges.labels import Labels
    from cleanrank.judges.report import JudgeReports, judge_report

    def labels(name: str, grades: Grades) -> Labels:  # documents by number: names may come twice in a query
        qid, docid = ([query_of[row] for row in grades], [str(row) for row in grades])
        return Labels(
            name, np.array(qid), np.array(docid), np.array(list(grades.values())), n_grades=n_grades
        )

    if not grades.keys() & gold.keys():
        return []
    outcome = judge_report(labels("gold answers", gold), {name: labels(name, grades)})
    assert isinstance(outcome, JudgeReports)
    return list(outcome.reports)


def runs_of(path: Path | None) -> Page:
    """The recipes of a file of runs."""
    from cleanrank.experiments.store import Store

    recipes: dict[str, tuple[int, int, int]] = {}
    if path is not None:
        with Store(str(path), create=False) as store:
            recipes = store.recipes()
    if not recipes:
        words = (
            "There are no runs here. Run a recipe (cleanrank reproduce RECIPE) and start the server in the "
            "same folder, or name a file of runs: cleanrank serve PROJECT --runs FILE."
        )
        return needed("Runs", words)
    rows = []
    for name, counts in recipes.items():
        link = Markup('<a href="/runs/{}">{}</a>').format(quote(name), name)
        rows.append([Cell(name, html=link), *(number(count, ",") for count in counts)])
    table = Table(("recipe", "cells", "done", "failed"), rows, caption="Recipes that were run")
    return sections_page("Runs", [Section("Recipes", [table])])


def run_of(path: Path | None, recipe: str) -> Page:
    """The report of a recipe: what its cells gave, beside published figures where it has some."""
    from cleanrank.experiments.recipe import known_recipes, read_recipe
    from cleanrank.experiments.store import Store
    from cleanrank.report.summaries import summarise

    if path is None:
        raise Refused(404, "There are no runs here.")
    with Store(str(path), create=False) as store:
        if recipe not in store.recipes():
            raise Refused(404, "There is no such recipe among the runs.")
        records = store.records(recipe=recipe)
    if not any(record.status == "done" for record in records):
        return needed(recipe, "No cell of this recipe is done yet.")
    options: dict[str, Any] = {"title": recipe}
    known = known_recipes().get(recipe)
    if known is not None:
        own = read_recipe(known)
        there = {measure for record in records for measure in record.means}
        measures = [measure for measure in own.show if measure in there]
        notes = [text for text in (own.about, own.source) if text]
        options = {"title": own.title, "published": own.published, "notes": notes}
        ran = any(record.cell.get("method") == own.baseline for record in records)
        baseline = own.baseline if ran else None
        options["summary"] = summarise(records, measures=measures or None, baseline=baseline)
    return report_page(records, command=f"cleanrank reproduce {recipe}", **options)


def needed(title: str, words: str, *shown: Section) -> Page:
    """A page that says what it would need to show more."""
    return sections_page(title, [*shown, Section("What is needed", [words])])
