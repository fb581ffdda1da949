"""One look per method: a colour that colour-blind readers can tell apart, a marker and a dash.

The colours are those of Okabe and Ito (2008) without the yellow and the black, which vanish on white and on
dark paper; markers and dashes tell the methods apart in greyscale. The baseline is grey and solid in every
picture.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """How a method is drawn: colours on light and dark paper, marker (matplotlib), shape (Vega), dash."""

    light: str
    dark: str
    marker: str
    shape: str
    dash: tuple[int, ...]


BASELINE = Look("#5f6773", "#a9b1bc", "o", "circle", ())

LOOKS: tuple[Look, ...] = (
    Look("#0072b2", "#4aa8e0", "s", "square", ()),
    Look("#d55e00", "#f08a45", "^", "triangle-up", (6, 2)),
    Look("#009e73", "#2fc79c", "D", "diamond", (2, 2)),
    Look("#b5588a", "#df93bb", "v", "triangle-down", (8, 2, 2, 2)),
    Look("#b37a00", "#e9b23c", "P", "cross", (4, 1, 1, 1)),
    Look("#3a8fc4", "#86cbf5", "X", "triangle-right", (10, 3)),
    Look("#6b4fa0", "#a993d6", "<", "triangle-left", (1, 2)),
)


def band_opacity(methods: int) -> float:
    """How strongly bands are drawn: many of them would turn to mud.

    >>> band_opacity(3), band_opacity(8)
    (0.13, 0.06)
    """
    return 0.13 if methods <= 4 else 0.06


def looks(methods: Sequence[str], baseline: str | None = None) -> dict[str, Look]:
    """A look per method, by its place in the list; past seven methods the looks come again.

    >>> looks(["a", "b", "c"], baseline="b")["c"].marker
    '^'
    """
    others = [m for m in methods if m != baseline]
    found = {m: LOOKS[i % len(LOOKS)] for i, m in enumerate(others)}
    return {m: BASELINE if m == baseline else found[m] for m in methods}


def many_looks(names: Sequence[str]) -> dict[str, Look]:
    """A look for each of many series: past seven the colours come again, with other markers and dashes.

    >>> found = many_looks("abcdefghij")
    >>> found["a"].light == found["h"].light, found["a"].marker == found["h"].marker
    (True, False)
    """
    n = len(LOOKS)

    def look(i: int) -> Look:
        colour, other = LOOKS[i % n], LOOKS[(i + 3 * (i // n)) % n]
        return Look(colour.light, colour.dark, other.marker, other.shape, other.dash)

    return {name: look(i) for i, name in enumerate(names)}
