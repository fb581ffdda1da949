"""A noise estimate as tables and as a page."""

import os
from pathlib import Path

from cleanrank.noise.estimate import WIDTH, NoiseEstimate
from cleanrank.report.sections import Section, write_sections
from cleanrank.report.table import Table


def estimate_tables(estimate: NoiseEstimate) -> tuple[Table, Table]:
    """The matrix, and what follows from it."""
    low, high = estimate.interval
    grades = range(estimate.n_grades)
    matrix = [
        (f"true {l}", *(f"{estimate.matrix[l, m]:.2f} [{low[l, m]:.2f}, {high[l, m]:.2f}]" for m in grades))
        for l in grades
    ]
    pairs, (fewest, most) = estimate.pnoise, estimate.pnoise_interval
    rows = [
        ("true grades", ", ".join(f"{g}: {share:.1%}" for g, share in enumerate(estimate.proportions))),
        ("wrong grades", _span(estimate.rate, *estimate.rate_interval)),
        ("wrong pairs (pNoise)", _span(pairs, fewest, most)),
        ("AUC signal left", _span(1 - 2 * pairs, 1 - 2 * most, 1 - 2 * fewest)),
    ]
    head = ("", f"{estimate.n:,} answers, {100 * estimate.level:.4g}% intervals")
    notes = [f"note: {reason}" for reason in estimate.reasons]
    notes += [estimate.class_conditional.words] if estimate.class_conditional else []
    return (
        Table(("P(given | true)", *(f"given {m}" for m in grades)), matrix),
        Table(head, rows, headed=2, notes=notes),
    )


def enough_words(estimate: NoiseEstimate, width: float = WIDTH) -> str:
    """Whether the answers were enough, as a sentence."""
    shortfall = str(estimate.too_few(width))
    return f"{shortfall[0].upper()}{shortfall[1:]}."


def write_estimate_page(
    path: str | os.PathLike[str], estimate: NoiseEstimate, *, name: str, width: float = WIDTH
) -> Path:
    """Writes the page of an estimate: rates, the matrix, whether the answers were enough."""
    matrix, facts = estimate_tables(estimate)
    trust = [] if estimate.trusted else ["This estimate is not to be trusted; the notes below say why."]
    sections = [
        Section("How noisy the labels are", [*trust, enough_words(estimate, width), facts]),
        Section("Which grades are given to which", [matrix]),
    ]
    figures = [
        (_span(estimate.rate, *estimate.rate_interval), "of grades are wrong"),
        (_span(estimate.pnoise, *estimate.pnoise_interval), "of pairs are wrong"),
        (f"{estimate.n:,}", "answers"),
    ]
    return write_sections(path, f"Noise of the labels: {name}", sections, figures=figures)


def _span(value: float, low: float, high: float) -> str:
    return f"{value:.1%} [{low:.1%}, {high:.1%}]"
