"""Grades of published data sets, to set one's own beside."""

from collections.abc import Sequence
from dataclasses import dataclass

from cleanrank.data.catalogue import entry_of
from cleanrank.noise.pnoise import pnoise_curve
from cleanrank.noise.profiles import proportions_of


@dataclass(frozen=True)
class KnownCurve:
    """pNoise of a published data set at the rates of a diagnosis, from its overall proportions."""

    dataset: str
    shares: tuple[float, ...]
    source: str
    profile: str
    pnoise: tuple[float, ...]


def known_shares() -> dict[str, tuple[tuple[float, ...], str]]:
    """Shares of the grades and where they were published, by data set.

    >>> shares, source = known_shares()["TD2003"]
    >>> shares, source
    ((0.992, 0.008), 'Niu et al. 2015')
    """
    found = {}
    for name in KNOWN:
        shares, source = KNOWN[name] or _counted(name)
        found[name] = (tuple(round(float(s), 4) for s in proportions_of(shares)), source)
    return found


def known_curves(rates: Sequence[float], profile: str, new_weight: float = 0.5) -> tuple[KnownCurve, ...]:
    """The curves of all known data sets under one profile."""
    return tuple(
        KnownCurve(
            name,
            shares,
            source,
            profile,
            tuple(float(v) for v in pnoise_curve(shares, list(rates), profile, new_weight=new_weight)),
        )
        for name, (shares, source) in known_shares().items()
    )


def _counted(name: str) -> tuple[tuple[float, ...], str]:
    """The label counts of the catalogue."""
    facts = {f.what: f for f in entry_of(name).facts if f.what.startswith("grade ") and f.part == "all"}
    grades = [facts[f"grade {g}"] for g in range(len(facts))]
    return tuple(float(f.value) for f in grades), grades[0].source


KNOWN: dict[str, tuple[tuple[float, ...], str] | None] = {
    "MSLR": ((51.7, 32.5, 13.3, 1.7, 0.8), "Niu et al. 2015"),
    "Yahoo set 1": None,
    "OHSUMED": None,
    "MQ2008": None,
    "TD2003": ((99.2, 0.8), "Niu et al. 2015"),
}
