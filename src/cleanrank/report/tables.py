"""Evaluations and comparisons as Markdown, LaTeX and JSON.

A table shows means with significance marks against the baseline: * for p < .05, ** for p < .01, after the
correction where there is one. Below it stands the convention of each measure.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from cleanrank.metrics.comparison import Comparison
from cleanrank.metrics.evaluation import Evaluation

MARKS: tuple[tuple[float, str], ...] = ((0.01, "**"), (0.05, "*"))

_LATEX = {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
          "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}  # fmt: skip


def to_markdown(result: Evaluation | Comparison, digits: int = 4) -> str:
    """A Markdown table.

    >>> from cleanrank.metrics import evaluate_arrays
    >>> print(to_markdown(evaluate_arrays([0, 1], [2.0, 1.0], [0, 2], "mrr")).splitlines()[2])
    | mrr | 0.5000 | [0.5000, 0.5000] | 1 |
    """
    head, rows = _cells(result, digits)
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    table = "\n".join("| " + " | ".join(c.replace("|", r"\|") for c in line) + " |" for line in lines)
    return table + "\n\n" + "\n".join(f"- {note}" for note in _notes(result)) + "\n"


def to_latex(result: Evaluation | Comparison, digits: int = 4) -> str:
    r"""A LaTeX table for the package booktabs.

    >>> from cleanrank.metrics import evaluate_arrays
    >>> print(to_latex(evaluate_arrays([0, 1], [2.0, 1.0], [0, 2], "mrr")).splitlines()[0])
    \begin{tabular}{lrrr}
    """
    head, rows = _cells(result, digits)
    body = [" & ".join(_escaped(c) for c in row) + r" \\" for row in rows]
    lines = [
        rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
        r"\toprule",
        " & ".join(_escaped(c) for c in head) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        *(f"% {note}" for note in _notes(result)),
    ]
    return "\n".join(lines) + "\n"


def to_json(result: Evaluation | Comparison, per_query: bool = False) -> str:
    """JSON with means, intervals and tests; NaN becomes null.

    Args:
        result: what to write.
        per_query: whether to add the values of every query.

    >>> from cleanrank.metrics import evaluate_arrays
    >>> json.loads(to_json(evaluate_arrays([0, 1], [2.0, 1.0], [0, 2], "mrr")))["means"]
    {'mrr': 0.5}
    """
    found: dict[str, Any]
    if isinstance(result, Evaluation):
        found = {
            "means": result.means,
            "intervals": result.intervals(),
            "queries": len(result.query_ids),
        }
        if per_query:
            found["query_ids"] = [str(q) for q in result.query_ids]
            found["values"] = {text: result[text].tolist() for text in result}
    else:
        found = comparison_json(result)
        if per_query:
            evaluations = result.evaluations
            found["query_ids"] = [str(q) for q in evaluations[result.baseline].query_ids]
            found["values"] = {s: {t: e[t].tolist() for t in e} for s, e in evaluations.items()}
    found["conventions"] = {str(m): m.describe() for m in result.measures}
    return json.dumps(plain(found), indent=2, allow_nan=False) + "\n"


def comparison_json(result: Comparison) -> dict[str, Any]:
    """A comparison as plain values that JSON can hold; NaN becomes None."""
    found: dict[str, Any] = plain(
        {
            "baseline": result.baseline,
            "settings": dict(result.settings),
            "rows": result.rows(),
            "conventions": {str(m): m.describe() for m in result.measures},
        }
    )
    return found


def mark(p: float | None) -> str:
    """The stars of a p-value.

    >>> mark(0.04), mark(0.001), mark(0.2)
    ('*', '**', '')
    """
    return next((stars for most, stars in MARKS if p is not None and p < most), "")


def _cells(result: Evaluation | Comparison, digits: int) -> tuple[list[str], list[list[str]]]:
    if isinstance(result, Evaluation):
        rows = []
        for (text, mean), (low, high) in zip(result.means.items(), result.intervals().values(), strict=True):
            used = int((result[text] == result[text]).sum())
            rows.append([text, _number(mean, digits), f"[{_number(low, digits)}, {_number(high, digits)}]",
                         f"{used:,}"])  # fmt: skip
        return ["measure", "mean", "95% interval", "queries"], rows
    measures = [str(m) for m in result.measures]
    by_system: dict[str, list[str]] = {}
    for row in result.rows():
        cell = _number(row["mean"], digits)
        if not row["baseline"]:
            p = row["p"] if row["p_corrected"] is None else row["p_corrected"]
            cell += f"{mark(p)} ({row['difference']:+.{digits}f}, p={p:.3g})"
        by_system.setdefault(row["system"], []).append(cell)
    return ["system", *measures], [[system, *cells] for system, cells in by_system.items()]


def _notes(result: Evaluation | Comparison) -> list[str]:
    notes = [m.describe() for m in result.measures]
    if isinstance(result, Comparison):
        s = result.settings
        how = {"fisher": f"Fisher's randomisation test ({s['permutations']} permutations, seed {s['seed']})",
               "t": "paired t-test"}[s["test"]]  # fmt: skip
        holm = ", Holm's correction" if s["correction"] else ""
        notes.append(f"* p < .05, ** p < .01 against {result.baseline}: {how}, {s['alternative']}{holm}.")
    return notes


def _number(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(c, c) for c in text)


def plain(value: Any) -> Any:
    """A value as JSON can hold it: keys are text, tuples are lists, what is not finite is None.

    >>> plain({1: (0.5, float("nan"))})
    {'1': [0.5, None]}
    """
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
