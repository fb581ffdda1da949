"""From judged data to clicks to train on: a weak ranker shows lists, users click, clicks are flipped.

The weak ranker is linear with the hinge loss on pairs (SVMRank) and has seen the true labels of a small
share of the training queries. It orders every list, users of a known kind click, and the clicks take the
place of the labels of training *and* validation data, so that nothing that is chosen on validation data has
seen a true label. Test data keep their labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cleanrank.clicks import make_click_model, simulate_clicks, static_clicks
from cleanrank.clicks.models import ClickModel
from cleanrank.clicks.simulate import Flip
from cleanrank.errors import invalid
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.types import FloatArray, IntArray, RankingData
from cleanrank.validation import is_integer

if TYPE_CHECKING:
    from cleanrank.rankers.neural.ranker import NeuralRanker

STREAM = 4519
# What the ranker behind the lists is: SVMRank with little regularisation, as c = 200 means.
SHOWN_BY: dict[str, Any] = {
    "loss": "pairwise",
    "binary": "hinge",
    "network": "linear",
    "epochs": 60,
    "learning_rate": 0.01,
    "weight_decay": 1e-4,
    "batch_queries": 32,
}


@dataclass(frozen=True, eq=False)
class ClickedData:
    """Clicks in the place of labels.

    Attributes:
        train: training rows; ``y`` is 1 where a document was clicked, ``positions`` are the ranks shown.
        validation: validation rows, likewise.
        shown_by: the ranker that ordered the lists.
        seen: places of the training queries whose true labels it has seen.
    """

    train: RankingData
    validation: RankingData
    shown_by: "NeuralRanker"
    seen: IntArray


def click_data(
    train: RankingData,
    validation: RankingData,
    model: str | ClickModel = "pbm",
    *,
    flip: Flip = 0.05,
    share: float = 0.01,
    fewest: int = 1,
    seed: int = 0,
    seeds: tuple[int, int] | None = None,
    top_grade: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> ClickedData:
    """Training and validation data with one draw of clicks per query in the place of labels.

    Args:
        train: judged rows.
        validation: judged rows.
        model: the users, as ``simulate_clicks`` takes them.
        flip: every click and non-click is turned round with this probability, or a pair of them.
        share: the part of the training queries whose true labels the ranker behind the lists sees.
        fewest: queries that it sees at the least.
        seed: for everything random.
        seeds: seeds of the clicks on training and validation lists, where they must not follow from ``seed``.
        top_grade: the scale's highest grade; else the highest one that occurs.
        options: of a named click model, such as {"way": "second"}.

    >>> import cleanrank as cr
    >>> whole = cr.make_ranking(60, 5, docs_per_query=10, seed=0)
    >>> found = click_data(whole, whole, flip=0.05, seed=1)
    >>> sorted(set(found.train.y.tolist())), int(found.train.positions.min()), len(found.seen)
    ([0, 1], 1, 1)
    """
    top = top_grade or max(1, train.n_grades - 1, validation.n_grades - 1)
    ranker, seen = weak_ranker(train, share=share, fewest=fewest, seed=seed)
    first, second = seeds or tuple(
        int(s) for s in np.random.SeedSequence([seed, STREAM, 1]).generate_state(2)
    )

    def clicked(data: RankingData, draw: int) -> RankingData:
        scores = ranker.predict(data.X)
        return static_clicks(data, model, scores=scores, seed=draw, flip=flip, top_grade=top, options=options)

    return ClickedData(clicked(train, first), clicked(validation, second), ranker, seen)


def weak_ranker(
    train: RankingData, *, share: float = 0.01, fewest: int = 1, seed: int = 0
) -> tuple["NeuralRanker", IntArray]:
    """The ranker that orders the lists, and the places of the queries it was trained on."""
    from cleanrank.rankers.neural.ranker import NeuralRanker

    if not 0 < share <= 1:
        raise invalid("share", "must lie in (0, 1]", share)
    if not is_integer(fewest) or fewest < 1:
        raise invalid("fewest", "must be a whole number from 1 on", repr(fewest))
    n = min(train.n_queries, max(fewest, round(share * train.n_queries)))
    seen = np.sort(np.random.default_rng([seed, STREAM]).choice(train.n_queries, size=n, replace=False))
    rows = np.isin(np.repeat(np.arange(train.n_queries), train.lengths), seen)
    # On the processor with one thread: every machine then shows the same lists.
    ranker = NeuralRanker(**SHOWN_BY, random_state=seed % 2**31, device="cpu", n_jobs=1)
    return ranker.fit_data(train.select(rows)), seen


@dataclass(frozen=True, eq=False)
class Users:
    """People who can be shown any lists: what a randomised trial on a live system gives.

    Attributes:
        data: judged rows; only clicks leave this object.
        model: what users do.
        flip: as in ``click_data``.
        top_grade: the scale's highest grade.
    """

    data: RankingData
    model: ClickModel
    flip: Flip
    top_grade: int

    def click_rates(self, *, ranks: int = 10, sessions: int = 20, seed: int = 0) -> FloatArray:
        """Clicks per showing at each rank of lists in random order; the last stands for all further ranks.

        >>> import cleanrank as cr
        >>> from cleanrank.clicks import make_click_model
        >>> whole = cr.make_ranking(50, 3, docs_per_query=20, seed=0)
        >>> rates = Users(whole, make_click_model("pbm"), 0.0, 4).click_rates(ranks=3, sessions=50)
        >>> bool(rates[0] > rates[2])
        True
        """
        shown, clicked = np.zeros(ranks), np.zeros(ranks)
        for session in range(sessions):
            rng = np.random.default_rng([seed, STREAM, session])
            log = simulate_clicks(
                self.data, self.model, scores=rng.random(self.data.n_docs), flip=self.flip,
                seed=int(rng.integers(2**31)), top_grade=self.top_grade,
            )  # fmt: skip
            place = np.minimum(log.position, ranks) - 1
            shown += np.bincount(place, minlength=ranks)
            clicked += np.bincount(place, weights=log.click.astype(np.float64), minlength=ranks)
        return np.divide(clicked, shown, out=np.zeros(ranks), where=shown > 0)


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
