"""A plan as text for a terminal."""

import textwrap
from typing import TYPE_CHECKING

from cleanrank.diagnose.words import WIDTH, table

if TYPE_CHECKING:
    from cleanrank.plan.planning import Plan

HEAD = (
    "way to judge",
    "judgements",
    "cost",
    "queries",
    "pairs",
    "pNoise",
    "floor",
    "signal left",
    "effective pairs",
    "of best",
    "",
)


def report(found: "Plan") -> str:
    """The whole report."""
    parts = [_table(found), _reasons(found), _changes(found), _by_error(found), _caveats(found)]
    return "\n\n".join(part for part in parts if part)


def _table(found: "Plan") -> str:
    best = max((o.effective_pairs for o in found.options if o.name == found.recommended), default=0.0)
    rows = [
        (
            ("> " if o.name == found.recommended else "  ") + o.name,
            f"{o.judgements:,.0f}",
            f"{o.query_cost:,.2f}",
            f"{o.queries:,}",
            f"{o.pairs:,.0f}",
            f"{o.pnoise:.3f}",
            f"{o.floor:.3f}",
            f"{o.signal_left:.0%}",
            f"{o.effective_pairs:,.0f}",
            f"{o.effective_pairs / best:.2f}" if best and not o.problem else "",
            o.problem,
        )
        for o in found.options
    ]
    note = "judgements, cost and pairs are per query; effective pairs = all pairs x signal left squared"
    return table(("  " + HEAD[0], *HEAD[1:]), rows, left=(0, 10)) + f"\n{note}"


def _reasons(found: "Plan") -> str:
    head = f"Recommended: {found.recommended}" if found.recommended else "Nothing to recommend"
    return "\n".join([head, *(_filled(r.text) for r in found.reasons)])


def _changes(found: "Plan") -> str:
    if not found.changes:
        return ""
    rows = [
        (c.what, c.recommended if c.changed else "the same", f"{c.signal_left:.0%}") for c in found.changes
    ]
    return table(("if", "then take", "signal left"), rows, left=(0, 1))


def _by_error(found: "Plan") -> str:
    if not found.by_error:
        return ""
    rows = [(c.what, c.recommended, f"{c.signal_left:.0%}") for c in found.by_error]
    return table(("error per step", "take", "signal left"), rows, left=(0, 1))


def _caveats(found: "Plan") -> str:
    return "\n".join(["Taken for granted:", *(_filled(c) for c in found.caveats)])


def _filled(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="- ", subsequent_indent="  ")
