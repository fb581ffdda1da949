"""All commands under one name.

Data go to stdout, notes and errors to stderr. Exit codes: 0 done, 1 a check failed, 2 usage or bad input.
"""

import os
import sys
from typing import Annotated

import typer

import cleanrank
from cleanrank.cli import datasets, demo, diagnose, experiments, gold, issues, measures, noise, train
from cleanrank.errors import CleanrankError

app = typer.Typer(
    name="cleanrank",
    help="Find, measure and survive label noise in learning to rank.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(cleanrank.__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Find, measure and survive label noise in learning to rank."""


for commands in (demo, diagnose, issues, train, noise, gold, measures, experiments, datasets):
    commands.mount(app)


def main() -> None:
    """Runs the command line; what goes wrong on purpose becomes one message and an exit code."""
    try:
        app()
    except CleanrankError as error:
        typer.secho(f"error: {error}", err=True, fg="red")
        sys.exit(2)
    except BrokenPipeError:
        # The reader has gone (as in `| head`): not our failure, and Python must not complain on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        where = f" at {error.filename!r}" if error.filename else ""
        typer.secho(
            f"error: files must be there, readable and writable; got {error.strerror or error}{where}.",
            err=True,
            fg="red",
        )
        sys.exit(2)
    except KeyboardInterrupt:
        typer.secho("interrupted", err=True)
        sys.exit(130)
