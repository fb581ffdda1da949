"""``cleanrank serve``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cleanrank.cli import screen
from cleanrank.experiments.store import DEFAULT_STORE

if TYPE_CHECKING:
    from cleanrank.web.server import Invitation

app = typer.Typer()

Host = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Serve other machines too, under this name or address (0.0.0.0: all); people then need tokens.",
    ),
]
Port = Annotated[int | None, typer.Option(min=0, max=65_535, help="0 means any; else 8765 if it is free.")]
Annotator = Annotated[str | None, typer.Option(metavar="NAME", help="Your name; else the login name.")]
NoOpen = Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")]


@app.command()
def serve(
    project: Annotated[
        Path, typer.Argument(metavar="PROJECT", help="A project of `cleanrank label` or `cleanrank review`.")
    ],
    host: Host = None,
    port: Port = None,
    invite: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Print a link with a new token for this person; repeatable."),
    ] = None,
    revoke: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Take this person's token back; answers stay. Repeatable."),
    ] = None,
    annotator: Annotator = None,
    runs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=f"Also show the reports of these runs; else of {DEFAULT_STORE}."),
    ] = None,
    no_open: NoOpen = False,
) -> None:
    """Judge and review labels in the browser.

    On this machine alone unless --host or --invite is given: then everybody needs a token. A link of an
    invitation holds it and signs in. You get a link as well; yours also shows the reports. Over http others
    on the network can read what is sent: where that matters, put a proxy with TLS before it. Ctrl-C stops the
    server; every answer that was given is stored.
    """
    serve_project(
        project,
        host=host,
        port=port,
        invited=invite or (),
        revoked=revoke or (),
        annotator=annotator,
        runs=runs,
        opens=not no_open,
    )


def serve_project(
    project: Path,
    *,
    host: str | None = None,
    port: int | None = None,
    invited: Sequence[str] = (),
    revoked: Sequence[str] = (),
    annotator: str | None = None,
    runs: Path | None = None,
    opens: bool = True,
    page: str = "/",
) -> None:
    """Prints the address and the links, opens ``page`` and serves until Ctrl-C."""
    from cleanrank.validation import require

    require("web")
    from cleanrank.web import server

    owner = annotator or server.login_name()
    tokens = host is not None or bool(invited or revoked)
    if tokens and port is None:  # links must stay valid
        port = server.DEFAULT_PORT
    try:
        listening = server.listen(host, port)
    except server.PortTakenError:
        if not (invited or revoked):
            raise
        _show_links(server.invite(project, invited, revoked=revoked), server.address_of(host, port or 0))
        screen.note("A server runs there already; if it serves this project, the links work on it now.")
        return
    address = server.address_of(host, listening.getsockname()[1])
    names = list(dict.fromkeys([*invited, owner])) if tokens else []
    links = _show_links(server.invite(project, names, revoked=revoked), address)
    own = links.get(owner, f"{address}{page}")
    if not tokens:
        typer.echo(own)
    screen.note(f"Serving {project.name} at {address}; Ctrl-C stops it.")
    if runs is None and DEFAULT_STORE.is_file():
        runs = DEFAULT_STORE
    open_link = own if opens else ""
    server.serve(project, listening, tokens=tokens, owner=owner, runs=runs, open_link=open_link)


def _show_links(invitations: "Sequence[Invitation]", address: str) -> dict[str, str]:
    """Prints name and link of each."""
    links = {each.name: f"{address}/?token={each.token}" for each in invitations}
    for name, link in links.items():
        typer.echo(f"{name}\t{link}")
    return links
