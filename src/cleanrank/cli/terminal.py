"""Judging in a terminal: one question at a time, answered by a key, or by lines of standard input."""

import secrets
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence

import typer

from cleanrank.cli import screen
from cleanrank.labeling.loop import progress_text
from cleanrank.labeling.records import Document, Scale
from cleanrank.labeling.session import Asked, Session
from cleanrank.labeling.shown import ShownIssue, shown_issue
from cleanrank.labeling.store import Project
from cleanrank.labeling.work import DROP, UNSURE, Work
from cleanrank.report.table import many

WIDTH = 100
SHOWN_FEATURES = 8
LONGEST_TEXT = 4000
SKIP, UNDO, QUIT, KEEP = "s", "u", "q", "k"
WORDS = {"d": DROP, "n": UNSURE}


def judge_in_terminal(project: Project, batch_id: int, annotator: str) -> None:
    """Asks until all is judged, standard input ends or somebody quits; then says what the answers changed.

    Every answer is on the disk before the next question is shown, so that it may be stopped at any time.
    """
    session = Session(project, batch_id, annotator)
    before = len(session.history())
    try:
        while (asked := session.asked()) is not None or len(session.history()) > before:
            if not (_ask(session, asked) if asked is not None else _is_last_taken_back(session)):
                break
    finally:  # also where Ctrl-C stops it
        stand = len(session.history())
        new = f", {stand - before:,} of them new" if stand > before else ""
        screen.note(f"{stand:,} answers of {annotator} stand in {project.path}{new}.")
    if asked is not None:
        screen.note("The same command goes on from here.")
    else:
        screen.note("\n".join(filter(None, [_what_is_left(session), progress_text(project)])))


def _ask(session: Session, asked: Asked) -> bool:
    """Shows a question and stores what is said; False where somebody quits or the input ends."""
    keys = keys_of(session, asked)
    _show(session, asked, keys)
    started = time.monotonic()
    said = _read(keys)
    if said is None or said == QUIT:
        return False
    if said == UNDO:
        if session.history():
            session.undo(_request())
        else:
            screen.note("There is nothing to take back.")
        return True
    unit, question = asked.unit.position, asked.question.key
    seconds = round(time.monotonic() - started, 3)
    if said == SKIP:
        session.skip(unit=unit, question=question, seconds=seconds, request=_request())
    else:
        session.answer(keys[said], unit=unit, question=question, seconds=seconds, request=_request())
    return True


def _is_last_taken_back(session: Session) -> bool:
    """After the last question: whether somebody takes the last answer back."""
    typer.echo(f"\nThat was the last one.\n\n{UNDO} undo | {QUIT} quit")
    if _read({}, others=(UNDO, QUIT)) != UNDO:
        return False
    session.undo(_request())
    return True


def _what_is_left(session: Session) -> str:
    """Whether anybody has something left to judge, once the annotator has nothing."""
    with session.project.lock:
        work = Work.of(session.project, session.batch.id)
        left = len(work.units) - work.n_settled
    if not left:
        return "Nothing is left to judge."
    what = many(left, "query or document", "queries or documents")
    return f"Nothing is left for {session.annotator} to judge at the moment; others have yet to judge {what}."


def keys_of(session: Session, asked: Asked) -> dict[str, int | str]:
    """What may be typed -> the answer that it stands for."""
    keys: dict[str, int | str] = {str(value): value for value in asked.values if isinstance(value, int)}
    if session.batch.kind == "review":
        keys |= WORDS
        given = asked.documents[0].given_label
        if not session.batch.blind and given is not None:
            keys[KEEP] = given
    return keys


def _request() -> str:
    return secrets.token_hex(12)


def _read(keys: Mapping[str, int | str], others: Sequence[str] = (SKIP, UNDO, QUIT)) -> str | None:
    """What was typed, once it is one of the keys; None at the end of the input."""
    known = [*keys, *others]
    by_key = sys.stdin.isatty() and all(len(key) == 1 for key in known)
    while True:
        try:
            text = typer.getchar() if by_key else sys.stdin.readline()
        except EOFError:  # Ctrl-D, read as a key
            return None
        said = text.strip().lower()
        if by_key:
            typer.echo(plain_text(said), err=True)
        if not text or said in known:
            return said or None
        if said:
            screen.note(f"{plain_text(said[:20])!r} is no answer here; type one of {', '.join(known)}.")


def _show(session: Session, asked: Asked, keys: Mapping[str, int | str]) -> None:
    """Prints a question."""
    project, batch = session.project, session.batch
    counted = f"{asked.n_answered + 1:,} of about {round(asked.n_expected):,}"
    typer.echo(f"\n--- {counted} {'-' * (WIDTH - 5 - len(counted))}")
    text = f"{asked.query_text} ({asked.query_id})" if asked.query_text else asked.query_id
    typer.echo(f"Query: {plain_text(text)}")
    names = ["Document"] if len(asked.documents) == 1 else ["1", "2"]
    for name, document in zip(names, asked.documents, strict=True):
        _show_document(name, document, project.feature_names)
    if batch.kind == "review":
        _show_issue(shown_issue(project, batch, asked.unit), project.scale)
    typer.echo(_choices(keys, project.scale, len(asked.documents), asked.documents[0].given_label))


def _show_document(name: str, document: Document, feature_names: Sequence[str]) -> None:
    typer.echo(f"\n[{name}] {plain_text(document.doc_id)}")
    for field, text in document.fields.items():
        shown = plain_text(text[:LONGEST_TEXT]) + (" ..." if len(text) > LONGEST_TEXT else "")
        typer.echo(textwrap.fill(f"{plain_text(field)}: {shown}", WIDTH, subsequent_indent="  "))
    if not document.fields and document.features is not None:
        pairs = zip(feature_names, document.features.tolist(), strict=True)
        listed = [f"{name} {value:.4g}" for name, value in pairs]
        more = [f"{len(listed) - SHOWN_FEATURES} more"] if len(listed) > SHOWN_FEATURES else []
        typer.echo(textwrap.fill(", ".join([*listed[:SHOWN_FEATURES], *more]), WIDTH, subsequent_indent="  "))


def _show_issue(shown: ShownIssue, scale: Scale) -> None:
    """Why the label is doubted, and where the document stands; in blind mode only its features."""
    if shown.given is not None:
        typer.echo(f"\nGiven: {_grade(shown.given, scale)}")
    if shown.suggested is not None and shown.suggested != shown.given:
        typer.echo(f"Suggested: {_grade(shown.suggested, scale)}")
    if shown.why:
        typer.echo(textwrap.fill(f"Doubted because: {shown.why}", WIDTH, subsequent_indent="  "))
    own = next((each for each in shown.ranking if each.is_own), None)
    if own is not None:
        typer.echo(f"A model that never saw the query ranks it {own.rank} of {shown.n_ranked}.")
    for place in shown.features[:3]:
        typer.echo(f"  {plain_text(place.words)}")


def _grade(grade: int, scale: Scale) -> str:
    return f"{grade} ({plain_text(scale.descriptions[grade])})" if grade < scale.n_grades else str(grade)


def _choices(keys: Mapping[str, int | str], scale: Scale, n_documents: int, given: int | None) -> str:
    sides = {
        "1": "1 first is better",
        "2": "2 second is better",
        "0": "0 equally good",
        "3": "3 neither is relevant",
    }
    words = {"d": "d drop the row", "n": "n not sure", KEEP: f"k keep {given}"}
    choices = []
    for key, value in keys.items():
        if key in words:
            choices.append(words[key])
        elif n_documents == 2:
            choices.append(sides[key])
        else:
            choices.append(f"{key} {plain_text(scale.descriptions[int(value)])}")
    rest = [f"{SKIP} skip", f"{UNDO} undo", f"{QUIT} quit"]
    return "\n" + textwrap.fill(" | ".join([*choices, *rest]), WIDTH)


def plain_text(text: str) -> str:
    r"""A text without characters that a terminal would obey.

    >>> plain_text("red \x1b[31m\nalarm\a")
    'red �[31m alarm�'
    """
    return "".join(
        c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text
    )
