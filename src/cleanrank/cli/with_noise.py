"""``--noise`` of ``evaluate`` and ``compare``: what it reads and what it shows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cleanrank.report.table import Table
from cleanrank.types import RankingData

if TYPE_CHECKING:
    from cleanrank.noise.estimate import NoiseEstimate
    from cleanrank.noise.profiles import NoiseProfile

Noise = Annotated[
    str | None,
    typer.Option(help="Labels are noisy: a matrix (JSON or CSV) or family:rate, as in uniform:0.1."),
]
AllowDependent = Annotated[
    bool,
    typer.Option(
        "--allow-dependent",
        help="With --noise: correct even if the rows judged again show that errors depend on more than the "
        "true grade.",
    ),
]


def corrected_table(rows: Sequence[dict[str, Any]], level: float, text: str) -> Table:
    """Corrected measures; of several systems with the probability that the order is right."""
    columns: list[tuple[str, ...]] = [
        ("measure", "measure"),
        ("corrected", "corrected", ".4f"),
        (f"{100 * level:g}% interval", "interval"),
        ("as labelled", "as_labelled", ".4f"),
    ]
    if "system" in rows[0]:
        sure = ("P(order is right)", "order_probability", ".4f", "", "baseline")
        columns = [("system", "system"), *columns, sure]
    return Table.of(
        [
            {"order_probability": None, **row, "interval": "[{:.4f}, {:.4f}]".format(*row["interval"])}
            for row in rows
        ],
        columns,
        notes=[text],
    )


def load_noise(text: str, data: RankingData) -> "NoiseEstimate | NoiseProfile":
    """The noise, with the draws of an estimate; one that is not trusted is said loudly where it is used."""
    from cleanrank.noise import estimate

    return estimate.load_noise(text, max(data.n_grades, 2))


def noise_words(noise: "NoiseEstimate | NoiseProfile") -> str:
    """What the correction rests on."""
    draws = getattr(noise, "draws", None)
    if draws is None:
        return f"{noise!r}, taken as known."
    rows = "; ".join(" ".join(f"{p:.3g}" for p in row) for row in noise.matrix)
    return f"the estimate [{rows}] and its uncertainty ({len(draws):,} draws)."
