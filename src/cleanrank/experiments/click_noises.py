"""Clicks in the place of labels, as noises of a recipe: nobody judges, users click on a weak ranker's lists.

A linear ranker trained on 1 % of the clean training queries orders all lists. In the *first way* users click
only what is relevant and ``rate`` is the share of clicks and non-clicks that are turned round afterwards; in
the *second way* nothing is turned round and ``rate`` is the attraction of a document of grade 0 (Wu et al.
2022). ``-quoted`` loses clicks at 10.07 ``rate`` and makes them up at .746 ``rate``, the rates that the paper
quotes for Yahoo at .05. Grades become 0 and 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cleanrank.noise.clicks import make_click_model
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.pipelines.clicking import Users, click_data
from cleanrank.types import RankingData

QUOTED = (0.5037 / 0.05, 0.0373 / 0.05)

Split = tuple[RankingData, RankingData]


@dataclass(frozen=True)
class ClickNoise:
    """Users and what is wrong with their clicks.

    Attributes:
        model: one of CLICK_MODELS.
        lost: clicks lost, per ``rate``.
        made_up: clicks made up, per ``rate``.
        attraction: P(relevant | grade 0), per ``rate``.
        about: one line for people.
    """

    model: str
    lost: float
    made_up: float
    attraction: float
    about: str

    def flip(self, rate: float) -> tuple[float, float]:
        """(P(a click is lost), P(a click is made up))."""
        return min(1.0, self.lost * rate), min(1.0, self.made_up * rate)

    def options(self, rate: float) -> dict[str, float]:
        """Options of the click model."""
        return {"noise": self.attraction * rate}


def clicked(name: str, rate: float, clean: Split, seeds: Sequence[int]) -> Split:
    """Training and validation data with the clicks of a noise of CLICK_NOISES."""
    noise = CLICK_NOISES[name]
    found = click_data(
        *clean,
        noise.model,
        flip=noise.flip(rate),
        seed=seeds[0],
        seeds=(seeds[0], seeds[1]),
        options=noise.options(rate),
    )
    return found.train, found.validation


def flip_profile(name: str, rate: float) -> NoiseProfile | None:
    """The flips of clicks as a matrix, rows the click before; None for noise that flips none.

    >>> flip_profile("pbm", 0.05).matrix.round(2).tolist()
    [[0.95, 0.05], [0.05, 0.95]]
    """
    noise = CLICK_NOISES.get(name)
    if noise is None or not noise.lost or not rate:
        return None
    lost, made_up = noise.flip(rate)
    return NoiseProfile(np.array([[1 - made_up, made_up], [lost, 1 - lost]]), f"{name} {rate:g}")


def users_of(name: str, rate: float, clean: Split) -> Users | None:
    """The people behind the clicks of a noise, for methods that try lists in random order on them."""
    noise = CLICK_NOISES.get(name)
    if noise is None or not rate:
        return None
    top = max(1, *(data.n_grades - 1 for data in clean))
    return Users(clean[0], make_click_model(noise.model, noise.options(rate)), noise.flip(rate), top)


CLICK_NOISES: Mapping[str, ClickNoise] = {
    "pbm": ClickNoise("pbm", 1.0, 1.0, 0.0, "position-based users, clicks flipped (first way)"),
    "ccm": ClickNoise("ccm", 1.0, 1.0, 0.0, "click chain users, clicks flipped (first way)"),
    "pbm-quoted": ClickNoise("pbm", *QUOTED, 0.0, "as pbm, with the flip rates quoted for Yahoo"),
    "pbm-attracted": ClickNoise(
        "pbm", 0.0, 0.0, 1.0, "position-based users, all documents attract (second way)"
    ),
    "ccm-attracted": ClickNoise(
        "ccm", 0.0, 0.0, 1.0, "click chain users, all documents attract (second way)"
    ),
}

CLICKED = {name: partial(clicked, name) for name in CLICK_NOISES}
