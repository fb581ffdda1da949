"""What features of runs, texts, scores and judges say about a pair, in words that a person can check.

"3 of 37 systems retrieve it, the best at rank 61; without 'daily', 'life' and 'people': “The flag of Thailand
shows five stripes ...”; judge llm gives 0"
"""

from collections.abc import Sequence

import numpy as np

from cleanrank.data.texts import texts_of
from cleanrank.issues.features import is_prose
from cleanrank.issues.text_features import WORD, stem, words_of
from cleanrank.types import IntArray, RankingData

QUOTED = 140  # letters of a text
POSSESSIVE = "s"  # what "medicare's" ends with is no word to look for
MOST_SCORES = 3
MOST_JUDGES = 8


def evidence_words(data: RankingData, rows: IntArray) -> list[dict[str, str]]:
    """For each of some rows its reasons, by where they come from; none for data without such features.

    >>> import cleanrank as cr
    >>> names = ("runs:retrieved", "runs:best", "run:a:rr", "run:b:rr")
    >>> data = cr.from_arrays([[0.5, 0.25, 0.25, 0.0]], [1], qid=["q"], feature_names=names)
    >>> evidence_words(data, np.array([0]))
    [{'runs': '1 of 2 systems retrieve it, the best at rank 4'}]
    """
    place = {name: j for j, name in enumerate(data.feature_names or ())}
    words: list[dict[str, str]] = [{} for _ in rows]
    if "runs:retrieved" in place:
        systems = sum(
            name.startswith("run:") and name.endswith(":rr") for name in (*place, *(data.extra or ()))
        )
        shares, best = (np.asarray(data.X[rows, place[name]]) for name in ("runs:retrieved", "runs:best"))
        for each, share, rr in zip(words, shares.tolist(), best.tolist(), strict=True):
            each["runs"] = _run_words(round(share * systems), systems, rr)
    if "text:coverage" in place:
        for each, sentence in zip(words, _text_words(data, rows), strict=True):
            if sentence:
                each["text"] = sentence
    scored = [name for name in place if name.startswith("place:")]
    if len(scored) <= MOST_SCORES:
        for name in scored:
            _add_places(words, data, rows, name.partition(":")[2], place[name])
    judges = [name for name in place if name.startswith("judge:")]
    if judges and len(judges) <= MOST_JUDGES:
        for each, row in zip(words, rows.tolist(), strict=True):
            given = [(name.partition(":")[2], float(data.X[row, place[name]])) for name in judges]
            said = [f"{name} gives {value:g}" for name, value in given if not np.isnan(value)]
            if said:
                each["judges"] = ", ".join(said)
    return words


def quote(text: str, words: Sequence[str] = (), letters: int = QUOTED) -> str:
    """A piece of a text, of so many letters at the most, from shortly before the first of some words.

    >>> quote("one two three four five six", ["five"], letters=12)
    '... four five ...'
    """
    plain = " ".join(text.split())
    if len(plain) <= letters:
        return plain
    spans = [match.span() for match in WORD.finditer(plain)]
    wanted = set(words)
    hit = next((k for k, (a, b) in enumerate(spans) if stem(plain[a:b].lower()) in wanted), 0)
    first = hit
    while first > 0 and spans[hit][1] - spans[first - 1][0] <= letters // 3 + 8:
        first -= 1
    start = spans[first][0] if spans and first else 0
    last = max((b for a, b in spans if start <= a and b - start <= letters), default=start + letters)
    return ("... " if start else "") + plain[start:last] + (" ..." if last < len(plain) else "")


def _run_words(retrieved: int, systems: int, rr: float) -> str:
    if not retrieved:
        return f"none of {systems} systems retrieves it"
    verb = "retrieves" if systems == 1 else "retrieve"
    best = f"the best at rank {round(1 / rr)}" if systems > 1 else f"at rank {round(1 / rr)}"
    return f"{retrieved} of {systems} systems {verb} it, {best}"


def _text_words(data: RankingData, rows: IntArray) -> list[str]:
    """Which words of the query the text has, which it has not, and a piece of it."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    texts = texts_of(data)
    fields = [cells for name, cells in texts.fields.items() if is_prose(name, cells)]
    queries = data.qid
    sentences = []
    for row in rows.tolist():
        text = " ".join(cells[row] for cells in fields if cells[row])
        query = texts.queries.get(str(queries[row]), "")
        if not text or not query:
            sentences.append("")
            continue
        words = [word for word in WORD.findall(query.lower()) if word != POSSESSIVE]
        telling = [word for word in words if word not in ENGLISH_STOP_WORDS] or words
        spelt = {stem(word): word for word in telling}
        known = set(words_of(text))
        missed = [word for plain, word in spelt.items() if plain not in known]
        found = [plain for plain in spelt if plain in known]
        sentences.append(f"{_missed_words(len(spelt), missed)}: “{quote(text, found)}”")
    return sentences


def _missed_words(n_words: int, missed: Sequence[str]) -> str:
    if not missed:
        return "the text has all words of the query"
    if len(missed) == n_words:
        return "the text has no word of the query"
    return f"the text has no {' and no '.join(repr(word) for word in missed[:4])}"


def _add_places(
    words: list[dict[str, str]], data: RankingData, rows: IntArray, name: str, column: int
) -> None:
    """Where a score places each row among those of its query."""
    query = np.searchsorted(data.indptr, rows, side="right") - 1
    for each, row, q in zip(words, rows.tolist(), query.tolist(), strict=True):
        share = float(data.X[row, column])
        if not np.isnan(share):
            n = int(data.lengths[q])
            each[f"score {name}"] = f"{name} places it {1 + round((1 - share) * (n - 1)):,} of {n:,}"
