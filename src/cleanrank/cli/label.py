"""``cleanrank label`` and ``cleanrank review``."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
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
QUICK = ("label", "gold")  # whose batches are made in no time
OF_COMPARISONS = ("pairs", "top-k", "active")
OF_NEW = f"out scale texts judge {screen.TABLES}"  # what a new project is made with
MADE_WITH = "made with"  # what a project keeps of these

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
        int | None, typer.Option("--k", min=1, help="Of top-k and active: how many to find; else 10.")
    ] = None,
    no_ties: Annotated[bool, typer.Option("--no-ties", help="Of comparisons: one must be better.")] = False,
    transitive: Annotated[
        bool, typer.Option("--transitive", help="Of comparisons: do not ask what follows from answers.")
    ] = False,
    neither: Annotated[
        bool,
        typer.Option(
            "--neither",
            help='Of top-k: "neither is relevant" is an answer too, for queries with fewer than k.',
        ),
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
            help="Judgements to begin with: qrels, a sheet, tasks of Label Studio (.json); repeatable.",
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
    Documents that enough people have graded are not asked about again. Every answer is stored before the next
    question. `cleanrank serve --invite` lets others judge; `cleanrank export` writes what was judged.
    """
    from cleanrank.labeling.projects import add_evaluation_batch, add_gold_batch, add_label_batch

    _check_label(context, purpose, task, runs)
    who = _who(annotator, context, terminal, prepare)
    settings: dict[str, Any] = {"annotators_per_unit": annotators}
    if purpose == "label":
        settings |= {"kind": task, "k": k, "ties": False if no_ties else None}
        settings |= {"transitive": transitive or None, "gold": gold}
        settings |= {"neither": True} if neither else {}
    else:
        settings |= {"n": n, "seed": seed}
    if purpose == "evaluation":
        settings |= {"measure": measure, "compare": compare and [name.strip() for name in compare.split(",")]}
        settings |= {"runs": runs[0] if runs and len(runs) == 1 else runs}
    options = {"texts": texts, "judge": judge, "scale": scale}
    with _project(context, data, out, columns, options) as project:
        for file in answers or ():
            _import(project, file, annotator)

        def ask(earlier: Sequence["Batch"]) -> "Batch":
            if purpose == "label":
                return add_label_batch(project, **settings, again=False)
            if purpose == "gold":
                return add_gold_batch(project, **settings)
            if earlier and len(project.units(earlier[-1].id)) < n * len(earlier):
                raise invalid("documents", "must be left to draw", "all that count were drawn")
            # A larger sample holds the smaller one, whose answers count: draws come one after the other.
            return add_evaluation_batch(project, **{**settings, "n": n * (len(earlier) + 1)})

        request = {"purpose": purpose, **settings}
        batch = _batch(project, who, request, ask, goes_on=purpose != "label")
        _begin(project, batch, who, terminal, prepare, port, no_open)


def _check_label(context: typer.Context, purpose: str, task: str, runs: list[Path] | None) -> None:
    given = f"--purpose {one_of('purpose', purpose, PURPOSES)}"
    if purpose == "label":
        screen.refuse(context, "n seed", "goes with --purpose gold or evaluation", given)
    else:
        screen.refuse(context, "task gold no_ties transitive neither k", "goes with --purpose label", given)
    if purpose != "evaluation":
        screen.refuse(context, "runs measure compare", "goes with --purpose evaluation", given)
    elif not runs:
        raise invalid("--purpose evaluation", "needs the systems (--runs)", "none")
    if task not in ("top-k", "active"):
        screen.refuse(context, "k", "goes with --task top-k or active", f"--task {task}")
    if task != "top-k":
        screen.refuse(context, "neither", "goes with --task top-k", f"--task {task}")
    if task in OF_COMPARISONS:
        screen.refuse(context, "gold", "goes with --task grade", f"--task {task}")
    else:
        screen.refuse(context, "no_ties transitive", "goes with comparisons", f"--task {task}")


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
    settings |= {"issues": issues, "seed": seed}
    options = {"texts": texts, "judge": judge, "scale": scale}
    with _project(context, data, out, columns, options) as project:
        request = {"purpose": "repair", **settings}
        batch = _batch(
            project, who, request, lambda earlier: add_repair_batch(project, **settings), goes_on=True
        )
        _begin(project, batch, who, terminal, prepare, port, no_open)


def _who(annotator: str | None, context: typer.Context, terminal: bool, prepare: bool) -> str:
    """The name of whoever judges."""
    from cleanrank.labeling.records import check_annotator
    from cleanrank.web.server import login_name

    if terminal and prepare:
        raise invalid("--terminal and --prepare", "must not be given together")
    if terminal or prepare:
        option = "--terminal" if terminal else "--prepare"
        screen.refuse(context, "port no_open", f"goes without {option}")
    return login_name() if annotator is None else check_annotator(annotator)


def _project(
    context: typer.Context,
    data: str,
    out: Path | None,
    columns: screen.Columns,
    options: Mapping[str, Any],
) -> "Project":
    """The project that DATA is, or that was made of it before; else a new one, with these options."""
    from cleanrank.data.project_file import is_project
    from cleanrank.data.tables import column_options
    from cleanrank.labeling.store import open_project

    source = screen.piped(data)
    if source.is_file() and is_project(source):
        screen.refuse(context, OF_NEW, "goes with new projects", f"the project {data!r}")
        return open_project(source)
    path = out if out is not None else Path(f"{source.name.split('.')[0]}.sqlite")
    typed = {"DATA": source, **{f"--{name}": value for name, value in options.items()}}
    typed["the columns"] = shlex.join(column_options(columns)) or None
    made_with = {name: (str(value), _content(value)) for name, value in typed.items() if value is not None}
    if not path.exists():
        project = _new_project(path, source, columns, **options)
        project.keep(MADE_WITH, made_with)
        screen.note(f"made {path}")
        return project
    project = open_project(path)
    kept = project.kept(MADE_WITH)
    for name, (text, content) in made_with.items():
        before, *known = (kept or {}).get(name, ("unknown" if kept is None else "none",))
        if known != [content]:
            project.close()
            rule = f"must be what {str(path)!r} was made with ({before})"
            remedy = f"Go on with it alone (cleanrank {context.info_name} {path}), or name another with -o."
            raise invalid(name, rule, repr(text), remedy=remedy)
    return project


def _content(value: Path | str) -> str:
    """What tells whether an input is the same: of a file its bytes."""
    from cleanrank.data.files import file_sha256

    return file_sha256(value) if isinstance(value, Path) and value.is_file() else str(value)


def _new_project(
    path: Path,
    source: Path,
    columns: screen.Columns,
    *,
    texts: Path | None,
    judge: str | None,
    scale: str | None,
) -> "Project":
    from cleanrank.data.files import check_outputs
    from cleanrank.data.texts import read_texts
    from cleanrank.labeling.projects import make_project
    from cleanrank.labeling.sources import read_source
    from cleanrank.types import RankingData

    check_outputs(path, inputs=[source, texts], suffixes=(".sqlite", ".db"))
    read = read_source(source, columns=columns, judge=judge)
    more: dict[str, Any] = {}
    if texts is not None:
        if not isinstance(read, RankingData):
            raise invalid("--texts", "goes with data; a table of texts has its own", repr(str(source)))
        found = read_texts(texts, read)
        more = {"queries": found.queries, "fields": found.fields}
    return make_project(path, read, name=source.name, scale=_scale(scale), **more)


def _scale(text: str | None) -> int | list[str] | None:
    if text is None:
        return None
    return int(text) if text.strip().isdecimal() else [part.strip() for part in text.split(",")]


def _import(project: "Project", file: Path, annotator: str | None) -> None:
    """Takes judgements from a file, unless they were taken before."""
    from cleanrank.labeling.imports import import_judgements

    key = f"imported {_content(file)}"
    if project.kept(key) is not None:
        screen.note(f"{file.name} was imported before")
        return
    with project.writing():
        batch = import_judgements(project, file, annotator=annotator, name=f"Judgements of {file.name}")
        project.keep(key, batch.id)
    screen.note(f"{file.name}: {len(project.units(batch.id)):,} documents with judgements")


def _batch(
    project: "Project",
    who: str,
    request: Mapping[str, Any],
    ask: Callable[[Sequence["Batch"]], "Batch"],
    *,
    goes_on: bool,
) -> "Batch":
    """The batch that this command asked for before, if something is left in it for somebody; else a new one.

    Args:
        project: an open project.
        who: the annotator.
        request: what is asked for; the same again goes on.
        ask: adds a batch; it gets those that the same request has made.
        goes_on: whether, once all is judged, the same request means further rows.
    """
    from cleanrank.labeling.session import Session

    wanted = {name: str(value) for name, value in request.items()}
    # Who asks for the same at the same moment gets the same batch; what takes long would hold up answers.
    with project.writing() if request["purpose"] in QUICK else nullcontext():
        made = [each for each in project.batches() if project.kept(f"request of batch {each.id}") == wanted]
        for batch in made:
            if Session(project, batch.id, who).asked(claim=False) is not None:
                return batch
        if made and not goes_on:
            return made[-1]
        batch = ask(made)
        project.keep(f"request of batch {batch.id}", wanted)
        return batch


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
        screen.note(f"cleanrank serve {shlex.quote(str(project.path))} opens it")
    elif terminal:
        from cleanrank.cli.terminal import judge_in_terminal

        judge_in_terminal(project, batch.id, who)
    else:
        from cleanrank.web.server import path_of

        project.close()
        serve.serve_project(project.path, port=port, annotator=who, opens=not no_open, page=path_of(batch))


def _facts(project: "Project", batch: "Batch") -> Any:
    units, documents = project.units(batch.id), project.documents()
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
