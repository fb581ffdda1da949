"""The noise of a cell: from the clean labels of its training and validation data to the given ones.

Beside the noise profiles, which are matrices, a recipe may ask for

* ``uneven``: errors fall off with the distance of the grades (rho = .5), and judges err up to three times as
  often on high grades as on grade 0 (row weights 1 + 2 l / (C - 1)); ``rate`` is the mean over documents;
* ``missed``: a relevant document, of any grade above 0, is given grade 0 with probability ``rate``;
* ``clicks``: nobody judges, users click. A ranker trained on a few clean queries shows every list SESSIONS
  times to users of the position-based model (Joachims et al. 2005), who click an examined document of grade 0
  with probability ``rate``. A document with a click is given the top grade, any other grade 0. Such errors
  depend on the rank shown, so no matrix describes them; the one reported is counted;
* ``pbm``, ``ccm`` and others of ``click_noises``: one draw of clicks, flipped, as labels 0 and 1.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from cleanrank.experiments.clicked import CLICKED
from cleanrank.noise.corrupt import corrupt
from cleanrank.noise.profiles import PROFILES, NoiseProfile, make_profile
from cleanrank.types import IntArray, RankingData

SPLITS = ("train", "validation")
SESSIONS = 5
SHOWN_BY = 0.05  # share of clean training queries that the ranker behind the lists has seen
FEWEST = 5
STREAM = 9051

Split = tuple[RankingData, RankingData]


def give_labels(name: str, rate: float, clean: Split, on: Sequence[str], seed: int) -> Split:
    """Training and validation data with the labels of a noise of NOISES.

    Draws depend on the seed and the split alone, so all methods of a seed learn from the same labels, and a
    higher rate changes what a lower one changed, and more.

    Args:
        name: the noise.
        rate: its strength; 0 leaves labels as they are.
        clean: training and validation data.
        on: whose labels change.
        seed: for all draws.
    """
    if not rate:
        return clean
    seeds = [int(np.random.SeedSequence([seed, place]).generate_state(1)[0]) for place in range(len(SPLITS))]
    given = NOISES[name](rate, clean, seeds)
    train, validation = (g if split in on else c for split, g, c in zip(SPLITS, given, clean, strict=True))
    return train, validation


def profile_between(name: str, rate: float, clean: RankingData, given: RankingData, C: int) -> NoiseProfile:
    """The noise of training labels as a matrix; counted where no matrix made them.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((4, 1)), [0, 0, 1, 2], group=[4])
    >>> profile_between("clicks", 0.1, data, data.with_labels([0, 2, 2, 2]), 3).matrix.tolist()
    [[0.5, 0.0, 0.5], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    """
    if clean is given or not rate:
        return NoiseProfile(np.eye(C), "none")
    if name in PROFILES:
        return _matrix(name, rate, C, np.bincount(clean.y, minlength=C))
    counts = np.zeros((C, C))
    np.add.at(counts, (clean.y, given.y), 1.0)
    # A grade that does not occur has no errors to count.
    counts[counts.sum(axis=1) == 0] = np.eye(C)[counts.sum(axis=1) == 0]
    return NoiseProfile(counts / counts.sum(axis=1, keepdims=True), f"{name} {rate:g}, counted")


def clicks(rate: float, clean: Split, seeds: Sequence[int]) -> Split:
    """Labels that users' clicks leave behind on lists shown by a weak ranker."""
    from cleanrank.clicks import simulate_clicks
    from cleanrank.rankers.trees import TreeParams

    train, top = clean[0], _scale(clean) - 1
    n = min(train.n_queries, max(FEWEST, round(SHOWN_BY * train.n_queries)))
    seen = np.random.default_rng([seeds[0], STREAM]).choice(train.n_queries, size=n, replace=False)
    rows = np.isin(np.repeat(np.arange(train.n_queries), train.lengths), seen)
    settings = TreeParams(implementation="builtin", n_estimators=20, params={"num_leaves": 7}, seed=seeds[0])
    shown_by = settings.train(train.select(rows))

    def clicked(data: RankingData, seed: int) -> RankingData:
        log = simulate_clicks(
            data, "pbm", scores=shown_by.predict(data.X), sessions=SESSIONS, seed=seed, top_grade=top,
            options={"noise": rate},
        )  # fmt: skip
        y = np.zeros(data.n_docs, dtype=np.int32)
        y[log.row[log.click > 0]] = top
        return data.with_labels(y)

    return clicked(train, seeds[0]), clicked(clean[1], seeds[1])


def _by_profile(name: str, rate: float, clean: Split, seeds: Sequence[int]) -> Split:
    train, validation = (
        corrupt(data, name, rate, n_grades=_scale(clean), seed=seed).data
        for data, seed in zip(clean, seeds, strict=True)
    )
    return train, validation


def _by_matrix(name: str, rate: float, clean: Split, seeds: Sequence[int]) -> Split:
    # One matrix for both splits: judges do not know which documents will be used for what.
    profile = _matrix(name, rate, _scale(clean), np.bincount(clean[0].y, minlength=_scale(clean)))
    train, validation = (
        profile.apply(data, np.random.default_rng(seed)).data for data, seed in zip(clean, seeds, strict=True)
    )
    return train, validation


def _scale(clean: Split) -> int:
    return max(2, *(data.n_grades for data in clean))


def _matrix(name: str, rate: float, n_grades: int, counts: IntArray) -> NoiseProfile:
    return make_profile(name, rate, n_grades, {"proportions": counts.tolist()} if name == "uneven" else {})


NOISES: Mapping[str, Callable[[float, Split, Sequence[int]], Split]] = {
    **{name: partial(_by_profile, name) for name in PROFILES},
    "uneven": partial(_by_matrix, "uneven"),
    "clicks": clicks,
    **CLICKED,
}
