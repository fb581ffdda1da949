"""``cleanrank label``, ``cleanrank review`` and ``cleanrank export``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cleanrank.cli import screen, serve
from cleanrank.errors import invalid
from cleanrank.validation import one_of

if TYPE_CHECKING:
    from cleanrank.labeling.records import Batch
    from cleanrank.labeling.store import Project

PURPOSES = ("label", "gold", "evaluation")
OF_COMPARISONS = ("pairs", "top-k", "active")
# What a new project is made with, and what belongs to some purposes alone.
OF_NEW = f"scale texts judge {screen.TABLES}"
OF_LABELS = "task gold no_ties transitive"

app = typer.Typer()

Source = Annotated[
    str,
    typer.Argument(
        metavar="DATA|PROJECT",
        help="Data (LETOR, CSV, Parquet, TREC qrels), a table of texts (.csv, .xlsx, .parquet, .jsonl with "
        "query_id, doc_id, query, title, text, url, label), a data set of the catalogue such as dl19, or a "
        "project to go on with.",
    ),
]
Out = Annotated[
    Path | None,
    screen.out_file(
        "PROJECT", "The project's file; else named like DATA, with .sqlite. One that is there goes on."
    ),
]
ScaleOption = Annotated[
    str | None,
    typer.Option(metavar="NAME,NAME,...", help="Descriptions of the grades from 0, or their number."),
]
Texts = Annotated[
    Path | None,
    screen.in_option("FILE", "Texts of queries and documents: a table with row_id, or query_id and doc_id."),
]
Judge = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Of dl19 and dl20: whose labels are the given ones; else NIST's."),
]
Terminal = Annotated[bool, typer.Option("--terminal", help="Ask here, not in a browser.")]
Prepare = Annotated[bool, typer.Option("--prepare", help="Make the project and stop; `serve` opens it.")]


@app.command()
@screen.with_columns
def label(
    context: typer.Context,
    data: Source,
    out: Out = None,
    task: Annotated[
        str, typer.Option(help="grade, pairs, top-k, or active (pairs that tell most).")
    ] = "grade",
    k: Annotated[
        int | None, typer.Option("--k", min=1, help="Of top-k and active: how many to find.")
    ] = None,
    no_ties: Annotated[bool, typer.Option("--no-ties", help="Of comparisons: one must be better.")] = False,
    transitive: Annotated[
        bool, typer.Option("--transitive", help="Of comparisons: do not ask what follows from answers.")
    ] = False,
    scale: ScaleOption = None,
    purpose: Annotated[
        str,
        typer.Option(
            help="label (all documents), gold (a random sample of given labels, to measure how many are "
            "wrong) or evaluation (what decides about systems)."
        ),
    ] = "label",
    n: Annotated[int, typer.Option("--n", min=1, help="Of gold and evaluation: how many documents.")] = 100,
    runs: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR|RUN",
            help="Of evaluation: a folder of runs, or a run (repeatable).",
            callback=screen.piped,
        ),
    ] = None,
    measure: Annotated[
        str, typer.Option("--measure", "-m", help="Of evaluation: what is estimated.")
    ] = "ndcg@10",
    compare: Annotated[
        str | None, typer.Option(metavar="A,B", help="Of evaluation: for the difference of two systems.")
    ] = None,
    texts: Texts = None,
    judge: Judge = None,
    annotators: Annotated[int, typer.Option(min=1, help="How many people judge everything.")] = 1,
    gold: Annotated[
        Path | None,
        screen.in_option(
            "SHEET", "Of grades: documents whose grade is known, which everybody is asked among the others."
        ),
    ] = None,
    answers: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Judgements that exist already, to begin with: qrels, a sheet, Label Studio JSON; repeatable.",
            callback=screen.piped,
        ),
    ] = None,
    terminal: Terminal = False,
    annotator: serve.Annotator = None,
    port: serve.Port = None,
    no_open: serve.NoOpen = False,
    prepare: Prepare = False,
    seed: screen.Seed = 0,
    *,
    columns: screen.Columns,
) -> None:
    """Judge documents: grades, pairs or the best k, in the browser or here.

    Makes a project of DATA, or goes on with the one that is there: the same command asks what is left, and
    of a random sample or an evaluation that is done the next rows; another task or sample is asked besides.
    Every answer is stored before the next question. `cleanrank serve --invite` lets others judge;
    `cleanrank export` writes what was judged.
    """
    from cleanrank.labeling.imports import import_judgements
    from cleanrank.labeling.projects import add_evaluation_batch, add_gold_batch, add_label_batch

    _check_label(context, purpose, task, runs)
    who = _who(annotator, context, terminal, prepare)
    settings: dict[str, Any] = {"annotators_per_unit": annotators}
    systems: Any = None if not runs else runs[0] if len(runs) == 1 else runs
    if purpose == "label":
        settings |= {"kind": task, "k": k, "ties": False if no_ties else None}
        settings |= {"transitive": True if transitive else None, "gold": gold}
    elif purpose == "gold":
        settings |= {"n": n, "seed": seed}
    else:
        pair = None if compare is None else [name.strip() for name in compare.split(",")]
        settings |= {"n": n, "seed": seed, "measure": measure, "compare": pair}
    with _project(context, data, out, columns, texts=texts, judge=judge, scale=scale) as project:
        for file in answers or []:
            _once(project, file, lambda file=file: import_judgements(project, file, annotator=annotator))
        add = {
            "label": lambda: add_label_batch(project, **settings),
            "gold": lambda: add_gold_batch(project, **settings),
            "evaluation": lambda: add_evaluation_batch(project, systems, **settings),
        }[purpose]
        named = {name: str(value) for name, value in settings.items()} | {"runs": str(systems)}
        batch = _asked_batch(
            project, who, {"command": f"label {purpose}", **named}, add, again=purpose == "gold"
        )
        _begin(project, batch, who, terminal, prepare, port, no_open)


def _check_label(context: typer.Context, purpose: str, task: str, runs: list[Path] | None) -> None:
    if one_of("purpose", purpose, PURPOSES) != "label":
        screen.refuse(context, f"{OF_LABELS} k", "goes with --purpose label", f"--purpose {purpose}")
    else:
        screen.refuse(context, "n seed", "goes with --purpose gold or evaluation", "--purpose label")
    if purpose != "evaluation":
        screen.refuse(
            context, "runs measure compare", "goes with --purpose evaluation", f"--purpose {purpose}"
        )
    elif not runs:
        raise invalid("--purpose evaluation", "needs the systems (--runs)", "none")
    if task not in ("top-k", "active"):
        screen.refuse(context, "k", "goes with --task top-k or active", f"--task {task}")
    if task not in OF_COMPARISONS:
        screen.refuse(context, "no_ties transitive", "goes with comparisons", f"--task {task}")
    elif task != "grade":
        screen.refuse(context, "gold", "goes with --task grade", f"--task {task}")


@app.command()
@screen.with_columns
def review(
    context: typer.Context,
    data: Source,
    issues: Annotated[
        Path | None,
        typer.Argument(
            metavar="[ISSUES]",
            help="What find-issues wrote; else labels are doubted now.",
            callback=screen.piped,
            show_default=False,
        ),
    ] = None,
    out: Out = None,
    n: Annotated[int, typer.Option("--n", min=1, help="How many labels, the most doubtful first.")] = 100,
    blind: Annotated[
        bool, typer.Option("--blind", help="Hide the given grades and why they are doubted.")
    ] = False,
    second_opinions: Annotated[
        int, typer.Option(metavar="N", min=0, help="By how many further people each label is reviewed.")
    ] = 0,
    texts: Texts = None,
    judge: Judge = None,
    scale: ScaleOption = None,
    terminal: Terminal = False,
    annotator: serve.Annotator = None,
    port: serve.Port = None,
    no_open: serve.NoOpen = False,
    prepare: Prepare = False,
    seed: screen.Seed = 0,
    *,
    columns: screen.Columns,
) -> None:
    """Review the most doubtful labels: keep, relabel, drop or unsure, in the browser or here.

    Makes a project of DATA, or goes on with the one that is there. Rows that were judged before are not asked
    again; once all are reviewed, the same command asks for the next ones. `cleanrank clean DATA --review
    PROJECT` brings the answers back to the data.
    """
    from cleanrank.labeling.projects import add_repair_batch

    if issues is not None:
        screen.refuse(context, "seed", "goes without ISSUES", str(issues))
    who = _who(annotator, context, terminal, prepare)
    settings: dict[str, Any] = {"n": n, "blind": blind, "annotators_per_unit": 1 + second_opinions}
    with _project(context, data, out, columns, texts=texts, judge=judge, scale=scale) as project:
        named = {name: str(value) for name, value in settings.items()}
        batch = _asked_batch(
            project,
            who,
            {"command": "review", "issues": str(issues), "seed": str(seed), **named},
            lambda: add_repair_batch(project, issues=issues, seed=seed, **settings),
            again=True,
        )
        _begin(project, batch, who, terminal, prepare, port, no_open)


def _who(annotator: str | None, context: typer.Context, terminal: bool, prepare: bool) -> str:
    from cleanrank.labeling.records import check_annotator
    from cleanrank.web.server import login_name

    if terminal or prepare:
        option = "--terminal" if terminal else "--prepare"
        screen.refuse(context, "port no_open", f"goes without {option}")
    if terminal and prepare:
        raise invalid("--terminal and --prepare", "must not be given together")
    return login_name() if annotator is None else check_annotator(annotator)


def _project(
    context: typer.Context,
    data: str,
    out: Path | None,
    columns: screen.Columns,
    *,
    texts: Path | None,
    judge: str | None,
    scale: str | None,
) -> "Project":
    """The project that DATA is, that is there already, or a new one."""
    from cleanrank.data.files import check_outputs
    from cleanrank.data.project_file import is_project
    from cleanrank.labeling.projects import make_project
    from cleanrank.labeling.sources import read_source
    from cleanrank.labeling.store import open_project
    from cleanrank.labeling.texts import read_texts
    from cleanrank.types import RankingData

    source = screen.piped(data)
    if source.is_file() and is_project(source):
        screen.refuse(context, f"out {OF_NEW}", "goes with new projects", f"the project {data!r}")
        return open_project(source)
    path = out if out is not None else Path(f"{source.name.split('.')[0]}.sqlite")
    if path.exists():
        project = open_project(path)
        made_of = project.kept("source")
        if made_of != str(data):
            project.close()
            remedy = f"Go on with it alone (cleanrank {context.info_name} {path}), or name another with -o."
            rule = f"must be the data that {str(path)!r} was made from ({made_of})"
            raise invalid("DATA", rule, repr(str(data)), remedy=remedy)
        screen.refuse(context, OF_NEW, "goes with new projects", f"{str(path)!r}, which is there already")
        return project
    check_outputs(path, inputs=[source, texts], suffixes=("",))
    read = read_source(source, columns=columns, judge=judge)
    options: dict[str, Any] = {}
    if texts is not None:
        if not isinstance(read, RankingData):
            raise invalid("--texts", "goes with data; a table of texts has its own", repr(data))
        found = read_texts(texts, read)
        options = {"queries": found.queries, "fields": found.fields}
    project = make_project(path, read, name=source.name, scale=_scale(scale), **options)
    project.keep("source", str(data))
    screen.note(f"made {path}")
    return project


def _scale(text: str | None) -> Any:
    if text is None:
        return None
    return int(text) if text.strip().isdigit() else [part.strip() for part in text.split(",")]


def _asked_batch(project: "Project", who: str, request: dict[str, str], add: Any, *, again: bool) -> "Batch":
    """The batch that this command made before, if it is not done, else a new one.

    Args:
        project: an open project.
        who: the annotator.
        request: what was asked for; the same again goes on.
        add: makes the batch.
        again: whether, once it is done, the same request means further rows.
    """
    from cleanrank.labeling.session import Session

    made = [each for each in project.batches() if project.kept(f"request of batch {each.id}") == request]
    for batch in made:
        if Session(project, batch.id, who).asked(claim=False) is not None:
            return batch
    if made and not again:
        return made[-1]
    with project.writing():
        batch = add()
        project.keep(f"request of batch {batch.id}", request)
    return batch


def _once(project: "Project", file: Path, add: Any) -> None:
    """Imports a file unless it was imported before."""
    from cleanrank.data.files import file_sha256

    key = f"imported {file_sha256(file)}"
    if project.kept(key) is not None:
        screen.note(f"{file.name} was imported before")
        return
    with project.writing():
        batch = add()
        project.keep(key, batch.id)
    screen.note(f"{file.name}: {len(project.units(batch.id)):,} documents with judgements")


def _begin(
    project: "Project",
    batch: "Batch",
    who: str,
    terminal: bool,
    prepare: bool,
    port: int | None,
    no_open: bool,
) -> None:
    """Says what is asked, then asks: here, or on a page."""
    screen.show(None, False, _facts(project, batch))
    if prepare:
        screen.note(f"cleanrank serve {project.path} opens it")
    elif terminal:
        from cleanrank.cli.terminal import judge_in_terminal

        judge_in_terminal(project, batch.id, who)
    else:
        project.close()
        page = f"/{'review' if batch.kind == 'review' else 'judge'}/{batch.id}"
        serve.serve_project(project.path, port=port, annotator=who, opens=not no_open, page=page)


def _facts(project: "Project", batch: "Batch") -> Any:
    units = project.units(batch.id)
    documents = [each for query in project.query_ids() for each in project.documents_of(query)]
    settings = ", ".join(f"{name} {value}" for name, value in batch.settings.items())
    return screen.facts(
        {
            "project": project.path.name,
            "documents": len(documents),
            "with labels": sum(each.given_label is not None for each in documents),
            "with texts": sum(bool(each.fields) for each in documents),
            "queries with texts": sum(bool(project.query_text(query)) for query in project.query_ids()),
            "grades": ", ".join(f"{g} {text}" for g, text in enumerate(project.scale.descriptions)),
            "asked now": batch.name,
            "by": batch.kind + (f" ({settings})" if settings else "") + (", blind" if batch.blind else ""),
            "queries or documents asked": len(units),
            "with known answers": sum(bool(unit.about.get("is_gold")) for unit in units) or None,
            "people for each": batch.annotators_per_unit,
        },
        align="ll",
    )


@app.command()
def export(
    project: Annotated[
        Path, typer.Argument(metavar="PROJECT", help="A project of `cleanrank label` or `cleanrank review`.")
    ],
    out: Annotated[Path, screen.out_file("FILE", "Where to; its ending says the format.")],
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="letor, qrels, labels (one grade per document, .csv or .parquet), judgements (everybody's), "
            "preferences or label-studio; else by the ending: .qrels, .json, tables of judgements, LETOR.",
        ),
    ] = None,
    combine: Annotated[
        str | None,
        typer.Option(help="Where several people graded a document: majority (unless given) or median."),
    ] = None,
    annotator: Annotated[
        str | None, typer.Option(metavar="NAME", help="The answers of this person alone.")
    ] = None,
    force: screen.Force = False,
    as_json: screen.Json = False,
) -> None:
    """Write what was judged in a project: data sets, TREC qrels, tables, Label Studio tasks.

    One grade per document is that of most people; of a tie the given label if it is among them, else the
    lowest. Rows that were dropped, and rows of which nobody was sure, are left out, and that is said.
    """
    from dataclasses import asdict

    from cleanrank.data.files import check_outputs
    from cleanrank.labeling.export import export_judgements
    from cleanrank.labeling.store import open_project

    check_outputs(out, inputs=[project], force=force)
    with open_project(project) as opened:
        done = export_judgements(opened, out, form=form, combine=combine, annotator=annotator)
    record = {**asdict(done), "path": str(done.path)}
    rows = "documents" if done.form in ("letor", "qrels", "labels") else "rows"
    screen.show(record, as_json, *done.notes, f"wrote {out} ({done.form}, {done.rows:,} {rows})")
