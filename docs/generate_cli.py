"""Writes docs/cli.md from the commands themselves: python docs/generate_cli.py."""

from collections.abc import Iterator
from pathlib import Path

import typer

from cleanrank.cli.main import app

PAGE = Path(__file__).parent / "cli.md"
HEAD = """# Command line

Data go to stdout, notes and progress to stderr. Exit codes: 0 done, 1 a check or a cell failed, 2 usage or
bad input. Every command takes `--help`.
"""


def page() -> str:
    """The page as it should be."""
    return HEAD + "".join(_commands(typer.main.get_command(app), "cleanrank"))


def _commands(command: object, name: str) -> Iterator[str]:
    inner = getattr(command, "commands", None)
    if inner:
        for child in sorted(inner):
            yield from _commands(inner[child], f"{name} {child}")
        return
    usage = [name]
    rows = []
    for param in command.params:  # type: ignore[attr-defined]
        described = " ".join((getattr(param, "help", "") or "").split())
        if param.param_type_name == "argument":
            shown = param.metavar or param.name.upper()
            usage.append(shown)
            rows.append((f"`{shown.strip('[]')}`", described))
            continue
        bare = (
            param.default is None or param.default is False or callable(param.default) or param.default == []
        )
        default = "" if bare else f" Default: {param.default}."
        rows.append(
            (", ".join(f"`{opt}`" for opt in (*param.opts, *param.secondary_opts)), described + default)
        )
    text = " ".join((command.help or "").split())  # type: ignore[attr-defined]
    yield f"\n## {name}\n\n{text}\n\n```text\n{' '.join(usage)} [OPTIONS]\n```\n\n"
    if rows:
        yield "| | |\n|---|---|\n"
        yield from (f"| {left} | {right.replace('|', chr(92) + '|')} |\n" for left, right in rows)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
