"""Features of pairs of query and text: scores, coverage, positions, lengths; nothing is learnt.

A word is a run of letters and digits in lower case, without a plural s. Frequencies of words are those of the
collection: all different texts that there are. With tf_j the frequency of the j-th of m different query words
in a text of n words, idf_j = log(1 + (N - df_j + 1/2) / (df_j + 1/2)) and p_j its share of the collection:

* bm25: sum idf_j tf_j (k + 1) / (tf_j + k (1 - b + b n / mean n)), k = .9, b = .4;
* lm_dirichlet: mean log(1 + tf_j / (mu p_j)) + log(mu / (mu + n)), mu = 1000;
* lm_jm: mean log(1 + (1 - l) tf_j / (l n p_j)), l = .4;
* coverage, coverage_idf: the share of the query words that occur, and their share of the idf;
* density: the share of the text's words that are query words; missed_idf: the largest idf among words missed;
* bigrams, near: the share of neighbouring query words that occur side by side, or within 8 words;
* window: query words that occur / words of the shortest piece that holds them; first: where the first stands;
* length: log(1 + n); distinct: the share of different words;
* cosine: of tf-idf vectors; feedback: the cosine to the mean of the query's ten best texts by bm25, without
  the text itself (pseudo-relevance feedback, Rocchio 1971).

``bm25``, ``lm_dirichlet`` and ``feedback`` come once more as places within the query, from 0 to 1.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from cleanrank.issues._text_kernels import MOST_WORDS, N_COLUMNS, measure_pairs
from cleanrank.jit import threads
from cleanrank.ragged import indptr_of, query_of_row
from cleanrank.types import FloatArray, IntArray

WORD = re.compile(r"[^\W_]+")
MEASURES = (
    "bm25", "lm_dirichlet", "lm_jm", "coverage", "coverage_idf", "density", "missed_idf", "bigrams", "near",
    "window", "first", "length", "distinct",
)  # fmt: skip
FURTHER = ("cosine", "feedback")
PLACED = ("bm25", "lm_dirichlet", "feedback")
BEST = 10
BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class Words:
    """Texts as numbers of words: text d owns values[indptr[d]:indptr[d + 1]]."""

    values: IntArray
    indptr: IntArray

    def __len__(self) -> int:
        return len(self.indptr) - 1


def words_of(text: str) -> list[str]:
    """The words of a text.

    >>> words_of("Thai people's flags: 5 stripes")
    ['thai', 'people', 's', 'flag', '5', 'stripe']
    """
    return [stem(word) for word in WORD.findall(text.lower())]


def stem(word: str) -> str:
    """A word without a plural s (Harman's S-stemmer, 1991).

    >>> [stem(word) for word in ("flags", "ponies", "glass", "virus", "is")]
    ['flag', 'pony', 'glass', 'virus', 'is']
    """
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us")):
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return word[:-3] + "y"
    return word[:-1]


def numbered(texts: Sequence[str], vocabulary: dict[str, int]) -> Words:
    """The words of texts by their numbers; words that the vocabulary does not hold are added to it."""
    values: list[int] = []
    lengths = np.zeros(len(texts), dtype=np.int64)
    for place, text in enumerate(texts):
        numbers = [vocabulary.setdefault(word, len(vocabulary)) for word in words_of(text)]
        values += numbers
        lengths[place] = len(numbers)
    return Words(np.array(values, dtype=np.int64), indptr_of(lengths))


def text_features(
    queries: Sequence[str],
    texts: Sequence[str],
    indptr: IntArray,
    *,
    beside: Sequence[str] = (),
    n_jobs: int | None = 1,
) -> Mapping[str, FloatArray]:
    """The measures of every row's text for its query; NaN where one of the two is empty.

    Args:
        queries: the text of every query.
        texts: the text of every row.
        indptr: query q owns the rows indptr[q]:indptr[q + 1].
        beside: further texts of the collection.
        n_jobs: threads.

    >>> found = text_features(["red apple"], ["A red apple.", "A green pear."], np.array([0, 2]))
    >>> found["coverage"].tolist(), found["bigrams"].tolist()
    ([1.0, 0.0], [1.0, 0.0])
    """
    place: dict[str, int] = {}
    doc = np.array([place.setdefault(text, len(place)) for text in texts], dtype=np.int64)
    for text in beside:
        place.setdefault(text, len(place))
    vocabulary: dict[str, int] = {}
    words = numbered(list(place), vocabulary)
    query_words = numbered(queries, vocabulary)
    counts = _counts(words, len(vocabulary))
    filled = int((np.diff(words.indptr) > 0).sum())
    df = np.bincount(counts.indices, minlength=len(vocabulary))
    idf = np.log1p((max(filled, 1) - df + 0.5) / (df + 0.5))
    frequency = np.bincount(words.values, minlength=len(vocabulary))
    # A query word that no text holds has a share too: it is missed everywhere.
    share = np.maximum(frequency, 0.5) / max(len(words.values), 1)
    query_words = _different(query_words, idf)
    query = query_of_row(indptr)
    out = np.zeros((len(doc), N_COLUMNS))
    mean_length = len(words.values) / max(filled, 1)
    with threads(n_jobs):
        measure_pairs(
            doc, query, words.values, words.indptr, query_words.values, query_words.indptr,
            idf, share, max(mean_length, 1.0), out,
        )  # fmt: skip
    columns = dict(zip(MEASURES, out.T, strict=True))
    vectors = _vectors(counts, idf)
    columns["cosine"] = _cosines(vectors, doc, _vectors(_counts(query_words, len(vocabulary)), idf), query)
    columns["feedback"] = _feedback(vectors, doc, columns["bm25"], indptr)
    empty = (np.diff(words.indptr)[doc] == 0) | (np.diff(query_words.indptr)[query] == 0)
    for column in columns.values():
        column[empty] = np.nan
    return columns | {f"{name}_place": places_in_query(columns[name], indptr) for name in PLACED}


def places_in_query(values: FloatArray, indptr: IntArray) -> FloatArray:
    """The place of every value among those of its query, from 0 to 1, ties in the middle; NaN stays.

    >>> places_in_query(np.array([3.0, 1.0, 2.0, np.nan]), np.array([0, 3, 4])).tolist()
    [1.0, 0.0, 0.5, nan]
    """
    from scipy.stats import rankdata

    places = np.full(len(values), np.nan)
    for start, end in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True):
        known = np.flatnonzero(~np.isnan(values[start:end])) + start
        if len(known) == 1:
            places[known] = 0.5
        elif len(known):
            places[known] = (rankdata(values[known]) - 1) / (len(known) - 1)
    return places


def _different(query_words: Words, idf: FloatArray) -> Words:
    """Every word of a query once, in its order; of a long query the rarest words."""
    kept = []
    for start, end in zip(query_words.indptr[:-1].tolist(), query_words.indptr[1:].tolist(), strict=True):
        words = list(dict.fromkeys(query_words.values[start:end].tolist()))
        if len(words) > MOST_WORDS:
            rarest = set(sorted(words, key=lambda word: -idf[word])[:MOST_WORDS])
            words = [word for word in words if word in rarest]
        kept.append(words)
    values = np.array([word for words in kept for word in words], dtype=np.int64)
    return Words(values, indptr_of(np.array([len(words) for words in kept], dtype=np.int64)))


def _counts(words: Words, n_words: int) -> "sparse.csr_matrix":
    """How often each text holds each word."""
    ones = np.ones(len(words.values))
    counts = sparse.csr_matrix((ones, words.values, words.indptr), shape=(len(words), n_words))
    counts.sum_duplicates()
    return counts


def _vectors(counts: "sparse.csr_matrix", idf: FloatArray) -> "sparse.csr_matrix":
    """(1 + log tf) idf, of length 1."""
    vectors = counts.copy()
    vectors.data = (1 + np.log(vectors.data)) * idf[vectors.indices]
    return _unit(vectors)


def _unit(vectors: "sparse.csr_matrix") -> "sparse.csr_matrix":
    lengths = np.sqrt(np.asarray(vectors.multiply(vectors).sum(axis=1)).ravel())
    vectors.data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(vectors.indptr))
    return vectors


def _cosines(
    vectors: "sparse.csr_matrix", doc: IntArray, others: "sparse.csr_matrix", query: IntArray
) -> FloatArray:
    """The products of rows ``vectors[doc[i]]`` and ``others[query[i]]``, a block at a time."""
    products = np.zeros(len(doc))
    for start in range(0, len(doc), BLOCK):
        rows = slice(start, start + BLOCK)
        products[rows] = np.asarray(vectors[doc[rows]].multiply(others[query[rows]]).sum(axis=1)).ravel()
    return products


def _feedback(
    vectors: "sparse.csr_matrix", doc: IntArray, scores: FloatArray, indptr: IntArray
) -> FloatArray:
    """The cosine of every text to the mean of the BEST others of its query by score."""
    query = query_of_row(indptr)
    order = np.lexsort((-scores, query))
    place = np.empty(len(doc), dtype=np.int64)
    place[order] = np.arange(len(doc)) - indptr[query]
    best = place < BEST
    shape = (len(indptr) - 1, vectors.shape[0])
    chosen = sparse.csr_matrix((np.ones(int(best.sum())), (query[best], doc[best])), shape=shape)
    sums = sparse.csr_matrix(chosen @ vectors)
    # A text of the ten is compared with the other nine: |s - v|^2 = |s|^2 - 2 s v + |v|^2.
    square = np.asarray(sums.multiply(sums).sum(axis=1)).ravel()[query]
    product = _cosines(vectors, doc, sums, query)
    own = np.where(best & (np.diff(vectors.indptr)[doc] > 0), 1.0, 0.0)
    length = np.sqrt(np.maximum(square - own * (2 * product - 1), 0.0))
    return np.where(length > 1e-9, (product - own) / np.maximum(length, 1e-9), 0.0)
