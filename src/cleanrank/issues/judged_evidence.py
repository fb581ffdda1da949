"""What the judged pairs of a query say about its other pairs: how many are relevant, and what they are like.

* judged:share, judged:relevant: the share of the query's judged pairs that are relevant, drawn to that of all
  other queries, and log(1 + their number);
* judged:runs, judged:scores: the mean over systems of reciprocal rank and scaled score, each system weighted
  by the share of its own mass on judged pairs of the query that lies on relevant ones;
* judged:nearest, judged:nearest_other: the largest tf-idf cosine to a relevant text, and to one that is not;
  judged:likeness: the mean cosine to relevant texts minus that to the others (Rocchio 1971).

A pair's own grade must not be in its features. So the pairs of a query are cut into PARTS at random, judged
or not, and a pair sees the grades of the other parts alone.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse

from cleanrank.issues.run_features import rank_table
from cleanrank.issues.text_features import words_of
from cleanrank.types import Array, FloatArray, IntArray, RankingData, Run

PARTS = 5
PRIOR = 5.0  # judged pairs that the share of all other queries counts for
PREFIX = "judged:"


def judged_evidence(
    data: RankingData,
    relevant: Array,
    known: Array,
    *,
    systems: Mapping[str, Run] | None = None,
    texts: Sequence[str] | None = None,
    seed: int = 0,
) -> dict[str, FloatArray]:
    """The features of every pair.

    Args:
        data: pairs.
        relevant: (N,) whether a pair is relevant; read where it is known.
        known: (N,) whether that is known.
        systems: systems, for ``judged:runs`` and ``judged:scores``.
        texts: a text for every pair, for the likeness of texts.
        seed: decides the parts.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((4, 0)), [0] * 4, qid=["q"] * 4)
    >>> known, texts = np.array([1, 1, 0, 0], dtype=bool), ["red apple", "a lorry", "green apple", "lorry"]
    >>> found = judged_evidence(data, np.array([1, 0, 0, 0]), known, texts=texts, seed=4)
    >>> (found["judged:likeness"][2:] > 0).tolist()
    [True, False]
    """
    part = np.random.default_rng(seed).integers(PARTS, size=data.n_docs)
    y, known = np.where(known, relevant, 0).astype(np.float64), np.asarray(known, dtype=np.bool_)
    masses = [np.nan_to_num(table).T for table in rank_masses(systems, data)] if systems else []
    vectors = None if texts is None else _vectors(texts)
    names = ["share", "relevant", *(("runs", "scores") if masses else ())]
    names += [] if vectors is None else ["nearest", "nearest_other", "likeness"]
    columns = {f"{PREFIX}{name}": np.zeros(data.n_docs) for name in names}
    for start, end in zip(data.indptr[:-1].tolist(), data.indptr[1:].tolist(), strict=True):
        rows = slice(start, end)
        prior = (y.sum() - y[rows].sum()) / max(known.sum() - known[rows].sum(), 1)
        values = [*_shares(y[rows], known[rows], part[rows], [mass[rows] for mass in masses], prior)]
        if vectors is not None:
            values += _likeness(vectors[rows], y[rows] > 0, known[rows], part[rows])
        for column, value in zip(columns.values(), values, strict=True):
            column[rows] = value
    return columns


def rank_masses(systems: Mapping[str, Run], data: RankingData) -> tuple[FloatArray, FloatArray]:
    """Reciprocal ranks and scaled scores, (S, N) each; NaN where not retrieved."""
    ranks, scores = rank_table(systems, data)
    return 1 / ranks, scores


def _shares(
    y: FloatArray, known: Array, part: IntArray, masses: Sequence[FloatArray], prior: float
) -> list[FloatArray]:
    """Share and number of relevant pairs in the other parts, and systems weighted by theirs."""
    share, count, *fused = (np.zeros(len(y)) for _ in range(2 + len(masses)))
    for each in np.unique(part):
        own, others = part == each, known & (part != each)
        share[own] = mean = (y[others].sum() + PRIOR * prior) / (others.sum() + PRIOR)
        count[own] = np.log1p(y[others].sum())
        for column, mass in zip(fused, masses, strict=True):
            judged = mass[others]
            # A system with little mass on judged pairs is as good as the others.
            typical = max(judged.sum() / mass.shape[1], 1e-9)
            weight = (y[others] @ judged + typical * mean) / (judged.sum(axis=0) + typical)
            column[own] = mass[own] @ weight / mass.shape[1]
    return [share, count, *fused]


def _likeness(vectors: "sparse.csr_matrix", y: Array, known: Array, part: IntArray) -> list[FloatArray]:
    """Nearest relevant text, nearest other one, and the difference of mean cosines."""
    judged = np.flatnonzero(known)
    cosine = (vectors @ vectors[judged].T).toarray()
    apart = part[:, None] != part[judged]
    cosine[~apart] = 0.0
    groups = [(cosine[:, chosen], apart[:, chosen]) for chosen in (y[judged], ~y[judged])]
    nearest = [values.max(axis=1, initial=0.0) for values, _ in groups]
    means = [values.sum(axis=1) / np.maximum(there.sum(axis=1), 1) for values, there in groups]
    return [*nearest, means[0] - means[1]]


def _vectors(texts: Sequence[str]) -> "sparse.csr_matrix":
    from sklearn.feature_extraction.text import TfidfVectorizer

    if not any(words_of(text) for text in texts):
        return sparse.csr_matrix((len(texts), 1))
    return sparse.csr_matrix(TfidfVectorizer(analyzer=words_of, sublinear_tf=True).fit_transform(texts))
