"""The noise of a cell: from the clean labels of its training and validation data to noisy ones.

A recipe may ask for any noise profile, for errors that depend on the document or the query (DEPENDENT), or
for labels that come from clicks. Then nobody judges: a weak ranker that has seen the true labels of a few
training queries orders every list, and users of a known kind click.

* ``clicks``: every list is shown SESSIONS times to users of the position-based model (Joachims et al. 2005),
  who click an examined document of grade 0 with probability ``rate``. A document with a click is given the
  top grade, any other grade 0. Such errors depend on the rank shown, so no matrix describes them; the one
  reported is counted.
* ``judge``: the labels are those of a real judge, which the data bring along (data option ``judge``); rate 1.
* ``pbm``, ``ccm`` and others of CLICK_NOISES: one draw of clicks, flipped, takes the place of the labels of
  training *and* validation data, so that nothing that is chosen on validation data has seen a true label.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cleanrank.clicks import make_click_model, simulate_clicks, static_clicks
from cleanrank.clicks.models import ClickModel
from cleanrank.clicks.simulate import Flip
from cleanrank.data.judged import JUDGE
from cleanrank.errors import invalid
from cleanrank.noise.dependent import DEPENDENT, corrupt_rows, counted_profile
from cleanrank.noise.profiles import PROFILES, NoiseProfile, make_profile
from cleanrank.ragged import query_of_row
from cleanrank.remember import remembered
from cleanrank.types import FloatArray, IntArray, RankingData
from cleanrank.validation import check_integer, check_number, one_of

if TYPE_CHECKING:
    from cleanrank.data.behaviours import ClickRows
    from cleanrank.rankers.neural.ranker import NeuralRanker

SPLITS = ("train", "validation")
SESSIONS = 5
STREAM = 4519
# The weak ranker behind clicks as labels: SVMRank with little regularisation, as c = 200 means.
SVM_RANK: dict[str, Any] = {
    "loss": "pairwise",
    "binary": "hinge",
    "network": "linear",
    "epochs": 60,
    "learning_rate": 0.01,
    "weight_decay": 1e-4,
    "batch_queries": 32,
}

Split: TypeAlias = tuple[RankingData, RankingData]


@remembered
def add_noise(name: str, rate: float, clean: Split, on: Sequence[str], seed: int) -> Split:
    """Training and validation data with the labels of a noise of NOISES on the splits ``on``.

    Draws depend on the seed and the split alone, so all methods of a seed learn from the same labels, and a
    higher rate changes what a lower one changed, and more; rate 0 changes nothing.
    """
    if not rate:
        return clean
    one_of("noise", name, [each for each in NOISES if each not in CLICK_FLIPS])
    seeds = _seeds(seed)
    if name in PROFILES:
        # One matrix for both splits: judges do not know which documents will be used for what.
        profile = _profile(name, rate, clean[0], _top_grade(clean) + 1)
        noisy = tuple(profile.apply(data, draw).data for data, draw in zip(clean, seeds, strict=True))
    elif name in DEPENDENT:
        C = _top_grade(clean) + 1
        noisy = tuple(corrupt_rows(d, name, rate, C, draw).data for d, draw in zip(clean, seeds, strict=True))
    elif name in CLICK_NOISES:
        users = CLICK_NOISES[name].users(rate, clean)
        data = click_data(*clean, users.model, flip=users.flip, seed=seeds[0], seeds=seeds)
        noisy = data.train, data.validation
    elif name == JUDGE:
        noisy = _as_judged(rate, clean[0]), _as_judged(rate, clean[1])
    else:
        noisy = _clicked_grades(rate, clean, seeds)
    train, validation = (n if split in on else c for split, n, c in zip(SPLITS, noisy, clean, strict=True))
    return train, validation


def _seeds(seed: int) -> list[int]:
    return [int(np.random.SeedSequence([seed, place]).generate_state(1)[0]) for place in range(len(SPLITS))]


def unflipped_clicks(name: str, rate: float, clean: Split, seed: int) -> RankingData:
    """The training data of ``add_noise`` under a noise of CLICK_NOISES before any click was flipped."""
    seeds, users = _seeds(seed), CLICK_NOISES[name].users(rate, clean)
    return click_data(*clean, users.model, flip=0.0, seed=seeds[0], seeds=seeds).train


def noise_profile(name: str, rate: float, clean: RankingData, noisy: RankingData, C: int) -> NoiseProfile:
    """The noise of training labels as a matrix; counted where no matrix made them.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((4, 1)), [0, 0, 1, 2], group=[4])
    >>> noise_profile("clicks", 0.1, data, data.with_labels([0, 2, 2, 2]), 3).matrix.tolist()
    [[0.5, 0.0, 0.5], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    """
    if clean is noisy or not rate:
        return NoiseProfile(np.eye(C), "none")
    if name in PROFILES:
        return _profile(name, rate, clean, C)
    return counted_profile(clean, noisy, C, f"{name} {rate:g}, counted")


def _profile(name: str, rate: float, clean: RankingData, C: int) -> NoiseProfile:
    options = {"proportions": np.bincount(clean.y, minlength=C).tolist()} if name == "uneven" else {}
    return make_profile(name, rate, C, options)


def _top_grade(clean: Split) -> int:
    return max(1, *(data.n_grades - 1 for data in clean))


def _as_judged(rate: float, clean: RankingData) -> RankingData:
    """The labels of the judge in the place of the reference's."""
    if rate != 1:
        raise invalid("rate of the noise 'judge'", "must be 1: all labels are the judge's", rate)
    if clean.extra is None or JUDGE not in clean.extra:
        remedy = 'Name a judge of dl19 or dl20, as in options = { judge = "binary_gpt4" }.'
        raise invalid(
            "data under the noise 'judge'", "must bring a judge's labels along", "none", remedy=remedy
        )
    return clean.with_labels(clean.extra[JUDGE])


def _clicked_grades(rate: float, clean: Split, seeds: Sequence[int]) -> Split:
    """The top grade where one of a few sessions has a click, else grade 0."""
    from cleanrank.rankers.trees import TreeParams

    top = _top_grade(clean)
    judged, _ = _judged_queries(clean[0], share=0.05, fewest=5, seeds=(seeds[0], 9051))
    settings = TreeParams(implementation="builtin", n_estimators=20, params={"num_leaves": 7}, seed=seeds[0])
    ranker = settings.train(judged)

    def clicked(data: RankingData, seed: int) -> RankingData:
        log = simulate_clicks(
            data, "pbm", scores=ranker.predict(data.X), sessions=SESSIONS, seed=seed, top_grade=top,
            options={"noise": rate},
        )  # fmt: skip
        y = np.zeros(data.n_docs, dtype=np.int32)
        y[log.row[log.click > 0]] = top
        return data.with_labels(y)

    return clicked(clean[0], seeds[0]), clicked(clean[1], seeds[1])


@dataclass(frozen=True, eq=False)
class ClickedData:
    """Clicks in the place of labels: ``y`` is 1 where a document was clicked; ``positions`` are ranks."""

    train: RankingData
    validation: RankingData
    ranker: "NeuralRanker"  # what ordered the lists
    seen: IntArray  # places of the training queries whose true labels it has seen


def click_data(
    train: RankingData,
    validation: RankingData,
    model: str | ClickModel = "pbm",
    *,
    flip: Flip = 0.05,
    share: float = 0.01,
    fewest: int = 1,
    seed: int = 0,
    seeds: Sequence[int] | None = None,
    options: Mapping[str, Any] | None = None,
) -> ClickedData:
    """Training and validation data with one draw of clicks per query in the place of labels.

    Args:
        train: judged rows.
        validation: judged rows.
        model: the users; ``flip`` and ``options`` too are those of ``simulate_clicks``.
        flip: P(a click or its absence is inverted).
        share: the part of the training queries whose true labels the ranker behind the lists sees.
        fewest: queries that it sees at the least.
        seed: for everything random.
        seeds: of the clicks on training and validation lists, where they must not follow from ``seed``.
        options: of a named click model.

    >>> import cleanrank as cr
    >>> whole = cr.make_ranking(60, 5, docs_per_query=10, seed=0)
    >>> clicked = click_data(whole, whole, flip=0.05, seed=1)
    >>> sorted(set(clicked.train.y.tolist())), int(clicked.train.positions.min()), len(clicked.seen)
    ([0, 1], 1, 1)
    """
    from cleanrank.rankers.neural.ranker import NeuralRanker

    top = _top_grade((train, validation))
    judged, seen = _judged_queries(train, share=share, fewest=fewest, seeds=(seed, STREAM))
    # On the processor with one thread: every machine then shows the same lists.
    ranker = NeuralRanker(**SVM_RANK, random_state=seed % 2**31, device="cpu", n_jobs=1).fit_data(judged)

    def clicked(data: RankingData, draw: int) -> RankingData:
        scores = ranker.predict(data.X)
        return static_clicks(data, model, scores=scores, seed=draw, flip=flip, top_grade=top, options=options)

    draws = [int(n) for n in seeds or np.random.SeedSequence([seed, STREAM, 1]).generate_state(2)]
    return ClickedData(clicked(train, draws[0]), clicked(validation, draws[1]), ranker, seen)


def _judged_queries(
    train: RankingData, *, share: float, fewest: int, seeds: Sequence[int]
) -> tuple[RankingData, IntArray]:
    """The queries whose true labels a weak ranker may see, and their places."""
    check_number("share", share, above=0, most=1)
    n = min(train.n_queries, max(check_integer("fewest", fewest, least=1), round(share * train.n_queries)))
    places = np.sort(np.random.default_rng(seeds).choice(train.n_queries, size=n, replace=False))
    return train.select(np.isin(query_of_row(train.indptr), places)), places


@dataclass(frozen=True, eq=False)
class Users:
    """People who can be shown any lists: what a randomised trial on a live system gives."""

    data: RankingData  # judged rows; only clicks leave this object
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
        showings, clicks = np.zeros(ranks), np.zeros(ranks)
        for session in range(sessions):
            rng = np.random.default_rng([seed, STREAM, session])
            log = simulate_clicks(
                self.data, self.model, scores=rng.random(self.data.n_docs), flip=self.flip,
                seed=int(rng.integers(2**31)), top_grade=self.top_grade,
            )  # fmt: skip
            place = np.minimum(log.position, ranks) - 1
            showings += np.bincount(place, minlength=ranks)
            clicks += np.bincount(place, weights=log.click.astype(np.float64), minlength=ranks)
        return np.divide(clicks, showings, out=np.zeros(ranks), where=showings > 0)


@dataclass(frozen=True)
class ClickNoise:
    """Users of one of CLICK_MODELS and, per unit of the rate, what is wrong with their clicks."""

    model: str
    lost: float  # P(a click is lost)
    made_up: float  # P(a click is made up)
    attraction: float  # P(relevant | grade 0)

    def flip(self, rate: float) -> tuple[float, float]:
        """(P(a click is lost), P(a click is made up))."""
        return min(1.0, self.lost * rate), min(1.0, self.made_up * rate)

    def profile(self, rate: float) -> NoiseProfile | None:
        """The flips of clicks as a matrix, rows the click before; None for noise that flips none.

        >>> CLICK_NOISES["pbm"].profile(0.05).matrix.round(2).tolist()
        [[0.95, 0.05], [0.05, 0.95]]
        """
        lost, made_up = self.flip(rate)
        matrix = np.array([[1 - made_up, made_up], [lost, 1 - lost]])
        return NoiseProfile(matrix, f"flipped clicks {rate:g}") if lost else None

    def users(self, rate: float, clean: Split) -> Users:
        """The people behind the clicks, for methods that try lists in random order on them."""
        model = make_click_model(self.model, {"noise": self.attraction * rate})
        return Users(clean[0], model, self.flip(rate), _top_grade(clean))


# The flip rates quoted for Yahoo, at rate 0.05.
QUOTED = (0.5037 / 0.05, 0.0373 / 0.05)
CLICK_NOISES: Mapping[str, ClickNoise] = {
    # Position-based and click chain users whose clicks are flipped (first way).
    "pbm": ClickNoise("pbm", 1.0, 1.0, 0.0),
    "ccm": ClickNoise("ccm", 1.0, 1.0, 0.0),
    "pbm-quoted": ClickNoise("pbm", *QUOTED, 0.0),
    # All documents attract (second way).
    "pbm-attracted": ClickNoise("pbm", 0.0, 0.0, 1.0),
    "ccm-attracted": ClickNoise("ccm", 0.0, 0.0, 1.0),
}

INJECTED = (*PROFILES, *DEPENDENT, "clicks", *CLICK_NOISES)
# Flips of a log of clicks, (P(a click is lost), P(one is invented)) per unit of the rate.
CLICK_FLIPS: Mapping[str, tuple[float, float]] = {
    "flips": (1.0, 1.0),
    "lost": (1.0, 0.0),
    "invented": (0.0, 1.0),
}
NOISES = (*INJECTED, JUDGE, *CLICK_FLIPS)


def flip_clicks(
    name: str, rate: float, clean: Sequence["ClickRows"], on: Sequence[str], seed: int
) -> tuple["ClickRows", "ClickRows", NoiseProfile]:
    """Training and validation rows of a log with flipped labels, and what flipped them.

    A higher rate flips what a lower one flipped, and more.
    """
    lost, invented = (share * rate for share in CLICK_FLIPS[one_of("noise of a log", name, CLICK_FLIPS)])
    profile = NoiseProfile(np.array([[1 - invented, invented], [lost, 1 - lost]]), f"{name} {rate:g}")
    train, validation = (
        rows.with_labels(rows.y ^ (_uniforms(seed, place, len(rows)) < np.where(rows.y == 1, lost, invented)))
        if split in on and rate
        else rows
        for place, (split, rows) in enumerate(zip(SPLITS, clean, strict=True))
    )
    return train, validation, profile


def _uniforms(seed: int, place: int, n: int) -> FloatArray:
    return np.random.default_rng([seed, place, STREAM]).random(n)
