"""The table of mutants in docs/benchmarks.md, from what tests/mutation/run.py wrote."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cleanrank.report.table import Table

LISTED = Path(__file__).parent / "results" / "mutation.json"
ANEW = LISTED.with_stem("mutation_drawn_anew")
STATES = ("killed", "timed out", "survived")
NAMES = {"written": "written by hand", "drawn": "drawn from the syntax", "all": "all"}


def mutants_table() -> str:
    """Mutants by area and origin, what became of them, and those that no test saw."""
    listed, anew = json.loads(LISTED.read_text()), json.loads(ANEW.read_text())
    areas = sorted({*listed["by area"], *anew["by area"]}, key=lambda name: (name == "others", name))
    rows = [(name, listed["by area"].get(name, {}), anew["by area"].get(name, {})) for name in areas]
    rows += [(NAMES[name], listed["by origin"][name], {}) for name in ("written", "drawn")]
    rows += [(NAMES["all"], listed["all"], anew["all"])]
    head = ["code", "mutants", "seen", "score", "drawn anew", "seen", "score"]
    table = Table(head, [[name, *_counts(a), *_counts(b)] for name, a, b in rows], align="l" + "r" * 6)
    return "\n\n".join([table.markdown(), _survivors(listed, "listed"), _survivors(anew, "drawn anew")])


def _counts(of: Mapping[str, Any]) -> list[str]:
    """Mutants whose outcome is known, those that were seen, and their share."""
    if not of or of["score"] is None:
        return ["", "", ""]
    known = sum(of.get(state, 0) for state in STATES)
    return [str(known), str(known - of.get("survived", 0)), f"{of['score']:.1%}"]


def _survivors(stored: Mapping[str, Any], which: str) -> str:
    missed = [each for each in stored["mutants"] if each["state"] == "survived"]
    lines = [f"* `{each['file']}`: {each['what']}: `{each['old']}` became `{each['new']}`" for each in missed]
    text = f"{len(stored['mutants'])} of {stored['listed']} mutants {which} were run."
    if unclear := sum(each["state"] not in STATES for each in stored["mutants"]):
        text += f" Of {unclear} nothing is known, since a test failed without the mistake too."
    return f"{text} No test saw these:\n\n" + "\n".join(lines) if lines else text


TEXTS = {"mutants": mutants_table}
PICTURES: dict[str, object] = {}
