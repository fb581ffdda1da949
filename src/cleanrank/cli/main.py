"""All commands under one name.

Data go to stdout, notes and errors to stderr. Exit codes: 0 done, 1 a check failed, 2 usage or bad input.
"""

import errno
import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

import cleanrank
from cleanrank.cli import (
    annotators,
    audit,
    convert,
    cutoff,
    datasets,
    diagnose,
    evaluate,
    experiments,
    export,
    issues,
    judges,
    label,
    missing,
    noise,
    screen,
    serve,
    train,
)
from cleanrank.cli.wording import in_options
from cleanrank.errors import CleanrankError
from cleanrank.report.table import Table, comparison_table

app = typer.Typer(
    name="cleanrank",
    help="Find, measure and survive label noise in learning to rank.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(cleanrank.__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Find, measure and survive label noise in learning to rank."""
    screen.show_warnings()


def _recovered(system: str, share: float) -> str:
    """What a system won back, in a sentence.

    >>> _recovered("RobustRanker", 0.5)
    'Won back with RobustRanker: 50% of the NDCG@10 lost to noise.'
    """
    words = f"Won back with {system}: {share:.0%} of the NDCG@10 lost to noise."
    more = " More than all: it beats one ranker that learns from clean labels, too."
    return words + more if share > 1 else words


@app.command()
def demo(
    queries: Annotated[int, typer.Option(min=20, help="Queries of the synthetic set.")] = 400,
    seed: screen.Seed = 0,
    html: Annotated[Path, typer.Option(help="Where the report goes.")] = Path("cleanrank-demo.html"),
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 means all.")] = -1,
    force: screen.Force = False,
    as_json: screen.Json = False,
) -> None:
    """Show everything on synthetic data whose truth is known.

    A tenth of the labels of a data set of web-search shape is changed at random. The demo diagnoses the
    data, finds the wrong labels (with precision and recall, since they are known), cleans them, trains
    LightGBM on noisy, cleaned and clean labels, with SOUR and with peers, compares all on clean test labels
    and writes a report. It takes one to three minutes on two cores.
    """
    from cleanrank.data.files import PAGES, check_outputs
    from cleanrank.demo import STEPS, run_demo

    check_outputs(html, force=force or screen.own_page(html), suffixes=PAGES)
    with screen.steps(STEPS) as tick:
        run = run_demo(queries, seed=seed, n_jobs=jobs, progress=tick)
        run.to_html(html)
    record = run.to_dict()
    shares = ("precision", "recall", "average precision", "within grades")
    columns = [(name, name.replace(" ", "_"), ".3f") for name in shares]
    recovered = [_recovered(record["best"], record["recovered"])] if record["best"] else []
    screen.show(
        record,
        as_json,
        f"train      {run.noisy.data!r}",
        f"{record['changed']:,} of {record['documents']['train']:,} training labels were changed; that makes "
        f"{record['pnoise']:.1%} of the pairs wrong.",
        "{rows} rows judged again put the rate at {rate:.1%} [{low:.1%}, {high:.1%}].\n".format(
            **record["gold"]
        ),
        Table.of(record["detectors"], [("detector", "name"), ("issues", "issues", ","), *columns]),
        comparison_table(run.comparison, long=True),
        "Intervals: bootstrap over queries.",
        *recovered,
        f"Report: {html}",
    )


MODULES = (
    diagnose,
    issues,
    audit,
    missing,
    train,
    noise,
    annotators,
    label,
    serve,
    convert,
    export,
    judges,
    evaluate,
    cutoff,
    experiments,
    datasets,
)
for module in MODULES:
    app.add_typer(module.app)


def main() -> None:
    """Runs the command line; what goes wrong on purpose becomes one message and an exit code."""
    try:
        with screen.SPOOL, warnings.catch_warnings():
            warnings.showwarning = _show_warning
            app()
    except CleanrankError as error:
        _stop(in_options(str(error), _options_of_command()))
    except BrokenPipeError:
        # The reader has gone (as in `| head`): not our failure, and Python must not complain on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            file = repr(str(error.filename)) if error.filename else "a file"
            _stop(f"{file} cannot be written: the disk is full. Nothing that was there has changed.")
        place = f" at {error.filename!r}" if error.filename else ""
        _stop(f"files must exist and be readable and writable; got {error.strerror or error}{place}.")
    except KeyboardInterrupt:
        typer.secho("interrupted", err=True)
        sys.exit(130)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    screen.note(f"warning: {in_options(str(message), _options_of_command())}")


def _options_of_command() -> dict[str, bool]:
    """The options of the command that was typed, and whether each takes a value."""
    command: Any = typer.main.get_command(app)
    for word in sys.argv[1:]:
        command = getattr(command, "commands", {}).get(word, command)
    return {
        name.removeprefix("--"): not getattr(parameter, "is_flag", False)
        for parameter in command.params
        for name in parameter.opts
        if name.startswith("--")
    }


def _stop(message: str) -> None:
    typer.secho(f"error: {message}", err=True, fg="red")
    sys.exit(2)
