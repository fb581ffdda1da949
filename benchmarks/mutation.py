"""The table of mutants in docs/benchmarks.md, from what tests/mutation/run.py wrote."""

import json
from pathlib import Path

from cleanrank.report.table import Table

RESULTS = Path(__file__).parent / "results" / "mutation.json"
STATES = ("killed", "timed out", "survived")


def mutants_table() -> str:
    """Mutants by package and origin, what became of them, and those that no test saw."""
    stored = json.loads(RESULTS.read_text())
    names = {"all": "all", "written": "of these written by hand", "drawn": "of these drawn from the syntax"}
    groups = {**stored["by package"], "written": stored["by origin"]["written"]}
    groups |= {"drawn": stored["by origin"]["drawn"], "all": stored["all"]}
    rows = [
        {"what": names.get(name, f"`{name}`"), "seen": counts.get("killed", 0) + counts.get("timed out", 0)}
        | {"survived": counts.get("survived", 0), **counts}
        for name, counts in groups.items()
    ]
    columns = [
        ("code", "what"),
        ("mutants", "mutants", ","),
        ("seen", "seen", ","),
        ("score", "score", ".1%"),
    ]
    missed = [each for each in stored["mutants"] if each["state"] == "survived"]
    lines = [f"* `{each['file']}`: {each['what']}: `{each['old']}` became `{each['new']}`" for each in missed]
    run = f"{len(stored['mutants'])} of {stored['listed']} listed mutants were run."
    if unclear := sum(each["state"] not in STATES for each in stored["mutants"]):
        run += f" Of {unclear} nothing is known, since a test failed without the mistake too."
    head = "No test saw these:" if lines else ""
    return "\n".join([Table.of(rows, columns).markdown(), "", run, head, "", *lines])


TEXTS = {"mutants": mutants_table}
PICTURES: dict[str, object] = {}
