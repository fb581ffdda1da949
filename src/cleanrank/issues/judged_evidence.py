"""What the judged pairs of a query say about its other pairs: how many are relevant, and what they are like.

* judged:share, judged:relevant: the share of the query's judged pairs that are relevant, drawn to that of all
  other queries, and log(1 + their number);
* judged:runs, judged:scores: the mean over systems of reciprocal rank and scaled score, each system weighted
  by the share of its own mass on judged pairs of the query that lies on relevant ones;
* judged:nearest, judged:nearest_other: the largest tf-idf cosine to a relevant text, and to one that is not;
  judged:likeness: the mean cosine to relevant texts minus that to the others (Rocchio 1971).

A pair's own grade must not be in its features. So the pairs of a query are cut into PARTS at random, judged
or not, and a pair sees the grades of the other parts alone. Where all judged pairs are relevant, how many of
them a pair sees would tell that it is one of them: every pair then sees all relevant texts of its query but
one, a relevant pair but its own, and only the likeness of texts is known.
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
    masses: Sequence[FloatArray] = (),
    vectors: "sparse.csr_matrix | None" = None,
    seed: int = 0,
) -> dict[str, FloatArray]:
    """The features of every pair.

    Args:
        data: pairs.
        relevant: (N,) whether a pair is relevant; read where it is known.
        known: (N,) whether that is known.
        masses: what ``rank_masses`` gives, for ``judged:runs`` and ``judged:scores``.
        vectors: what ``text_vectors`` gives, for the likeness of texts.
        seed: decides the parts.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((4, 0)), [0] * 4, qid=["q"] * 4)
    >>> known, vectors = np.arange(4) < 2, text_vectors(["red apple", "a lorry", "green apple", "lorry"])
    >>> found = judged_evidence(data, np.array([1, 0, 0, 0]), known, vectors=vectors, seed=4)
    >>> (found["judged:likeness"][2:] > 0).tolist()
    [True, False]
    """
    random = np.random.default_rng(seed)
    part = random.integers(PARTS, size=data.n_docs)
    y, known = np.where(known, relevant, 0).astype(np.float64), np.asarray(known, dtype=np.bool_)
    if known.any() and (y[known] > 0).all():
        return {} if vectors is None else _without_one(vectors, y > 0, data.indptr, random)
    names = ["share", "relevant", *(("runs", "scores") if len(masses) else ())]
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
    """Reciprocal ranks and scaled scores, (N, S) each; 0 where not retrieved."""
    ranks, scores = rank_table(systems, data)
    return np.nan_to_num(1 / ranks).T, np.nan_to_num(scores).T


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


def _without_one(
    vectors: "sparse.csr_matrix", relevant: Array, indptr: IntArray, random: np.random.Generator
) -> dict[str, FloatArray]:
    """Nearest relevant text and the mean cosine to them, of all but one."""
    nearest, mean = np.zeros((2, len(relevant)))
    for start, end in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True):
        rows = slice(start, end)
        chosen = np.flatnonzero(relevant[rows])
        if len(chosen) < 2:
            continue
        cosine = (vectors[rows] @ vectors[rows][chosen].T).toarray()
        hidden = random.integers(len(chosen), size=end - start)
        hidden[chosen] = np.arange(len(chosen))
        cosine[np.arange(end - start), hidden] = 0.0
        nearest[rows], mean[rows] = cosine.max(axis=1), cosine.sum(axis=1) / (len(chosen) - 1)
    return {f"{PREFIX}nearest": nearest, f"{PREFIX}likeness": mean}


def text_vectors(texts: Sequence[str]) -> "sparse.csr_matrix":
    """(1 + log tf) idf of every text, of length 1.

    >>> text_vectors(["red apple", "a lorry"]).shape
    (2, 4)
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    if not any(words_of(text) for text in texts):
        return sparse.csr_matrix((len(texts), 1))
    return sparse.csr_matrix(TfidfVectorizer(analyzer=words_of, sublinear_tf=True).fit_transform(texts))
