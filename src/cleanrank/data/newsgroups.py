"""Texts in groups as ranking data: 20 Newsgroups by date (Haddad 2022, Sect. 5.2).

A group is a query, and its list holds the documents of *all* groups: a document is relevant iff it was
posted in the group, so about one in twenty is. The same document thus stands in every list, with the same
features: counts of words, or tf-idf, without headers, footers and quotes. The split is the published one, by
date; validation documents are taken out of the training ones, so every group has documents in all three
parts, and words are those of the documents left for training.
"""

import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.data.split import Splits
from cleanrank.errors import BadFileError, invalid
from cleanrank.ragged import from_arrays
from cleanrank.types import Array, IntArray, RankingData
from cleanrank.validation import check_integer, check_number, one_of

PLACE = re.compile(r"(?:\./)?20news-bydate-(train|test)/(\w[\w.-]*)/(\w[\w.-]*)")
# The largest posting has 160 kB and all have 36 MB: what is far beyond is no posting.
MOST_BYTES, MOST_IN_ALL = 1 << 24, 1 << 29
QUOTED = re.compile(r"writes in|writes:|wrote:|says:|said:|^In article|^Quoted from|^\||^>")


@dataclass(frozen=True)
class Document:
    """A posting: its part ("train" or "test"), group, name within the group, and text."""

    part: str
    group: str
    name: str
    text: str


def read_newsgroups(files: Sequence[Path]) -> list[Document]:
    """All postings of the archive, which is read and never unpacked to disk, or of its two folders."""
    documents: dict[tuple[str, str, str], Document] = {}
    size = 0
    for name, content in _archived(files[0]) if len(files) == 1 else _unpacked(files):
        place = PLACE.fullmatch(name)
        if place is None:
            continue
        size += len(content)
        part, group, number = key = place.groups()
        if key in documents or size > MOST_IN_ALL:
            what = "comes twice" if key in documents else f"passes {MOST_IN_ALL:,} bytes in all"
            raise BadFileError(f"{str(files[0])!r} is not 20 Newsgroups: {name!r} {what}.", str(files[0]))
        documents[part, group, number] = Document(part, group, number, content.decode("latin-1"))
    if {part for part, _, _ in documents} != {"train", "test"}:
        lacks = "holds no 20news-bydate-train/GROUP/NUMBER and 20news-bydate-test/GROUP/NUMBER"
        raise BadFileError(f"{str(files[0])!r} {lacks}. Fetch it again.", str(files[0]))
    return [documents[key] for key in sorted(documents)]


def _archived(archive: Path) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(archive, "r|*") as tar:
            for member in tar:
                # Links are left out: their targets may lie anywhere.
                if not member.isreg():
                    continue
                if member.size > MOST_BYTES:
                    size = f"has {member.size:,} bytes, too many for a posting"
                    raise BadFileError(f"{member.name!r} in {str(archive)!r} {size}.", str(archive))
                content = tar.extractfile(member)
                assert content is not None
                yield member.name, content.read()
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise BadFileError(f"{str(archive)!r} cannot be unpacked: {error}.", str(archive)) from error


def _unpacked(folders: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    for folder in folders:
        for file in sorted(folder.glob("*/*")):
            if file.is_file() and not file.is_symlink() and file.stat().st_size <= MOST_BYTES:
                yield f"{folder.name}/{file.parent.name}/{file.name}", file.read_bytes()


def body_of(text: str) -> str:
    r"""A posting without header, footer and quotes, which would give its group away.

    The header ends at the first empty line; the footer is what follows the last line that is empty or of
    dashes; a quote is a line that starts with ``>`` or ``|`` or says who wrote.

    >>> body_of("From: a\nSubject: b\n\nb writes:\n> no\nYes.\n\n-- \na")
    'Yes.\n'
    """
    _, _, text = text.partition("\n\n")
    lines = text.strip().split("\n")
    bare = [i for i, line in enumerate(lines) if not line.strip().strip("-")]
    if bare and bare[-1] > 0:
        text = "\n".join(lines[: bare[-1]])
    return "\n".join(line for line in text.split("\n") if not QUOTED.search(line))


def make_splits(
    documents: Sequence[Document],
    *,
    terms: int = 5000,
    weighting: str = "counts",
    share: float = 1.0,
    negatives: int = 0,
    validation: float = 0.2,
    seed: int = 0,
) -> Splits:
    """Postings as ranking data, one query a group; documents stand in a random order.

    Args:
        documents: postings of both parts.
        terms: number of words, the most frequent ones of the training documents.
        weighting: "counts" or "tfidf".
        share: the share of every group's training documents that is used, validation ones included.
        negatives: how many documents of other groups a training or validation list holds for each of its own;
            0 keeps all. Test lists are always whole.
        validation: the share of every group's training documents that is taken for validation.
        seed: same seed, same splits.
    """
    check_number("share", share, above=0, most=1)
    check_number("validation", validation, above=0, below=1)
    check_integer("terms", terms, least=1)
    check_integer("negatives", negatives, least=0)
    settings = WEIGHTINGS[one_of("weighting", weighting, WEIGHTINGS)]
    rng = np.random.default_rng(seed)
    train, held_out = _cut(_shuffled(documents, "train", rng), share, validation)
    test = _shuffled(documents, "test", rng)
    groups = sorted({d.group for d in train})
    vectoriser = _fitted(train, terms, settings)
    training, validating, testing = (
        _lists(part, vectoriser, groups, kept, rng)
        for part, kept in ((train, negatives), (held_out, negatives), (test, 0))
    )
    return Splits(training, validating, testing, made_validation=True)


def _shuffled(documents: Sequence[Document], part: str, rng: np.random.Generator) -> list[Document]:
    """The documents of a part in random order, since rankings keep the order of documents that tie."""
    in_order = sorted((d for d in documents if d.part == part), key=lambda d: (d.group, d.name))
    return [in_order[i] for i in rng.permutation(len(in_order))]


def _cut(documents: list[Document], share: float, validation: float) -> tuple[list[Document], list[Document]]:
    group = np.array([d.group for d in documents])
    part = np.zeros(len(group), dtype=np.int8)
    for each in np.unique(group):
        rows = np.flatnonzero(group == each)
        used = max(2, round(share * len(rows)))
        if len(rows) < 2:
            subject, remedy = f"group {str(each)!r}", "One is for training, one for validation."
            raise invalid(subject, "must have two training documents", len(rows), remedy=remedy)
        aside = min(max(1, round(validation * used)), used - 1)
        part[rows[:used]] = 1
        part[rows[:aside]] = 2
    train, held_out = ([d for d, p in zip(documents, part, strict=True) if p == which] for which in (1, 2))
    return train, held_out


def _fitted(train: list[Document], terms: int, settings: Mapping[str, Any]) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectoriser = TfidfVectorizer(max_features=terms, dtype=np.float32, **settings)
    try:
        return vectoriser.fit([body_of(d.text) for d in train])
    except ValueError as error:
        raise invalid("training documents", "must hold words", f"none ({error})") from error


def _lists(
    documents: list[Document], vectoriser: Any, groups: list[str], negatives: int, rng: np.random.Generator
) -> RankingData:
    counted = vectoriser.transform([body_of(d.text) for d in documents])
    group = np.array([d.group for d in documents])
    rows = [_drawn(group == each, negatives, rng) for each in groups]
    everything = np.concatenate(rows)
    relevant: Array = np.concatenate([group[r] == each for r, each in zip(rows, groups, strict=True)])
    return from_arrays(
        counted[everything],
        relevant,
        qid=np.repeat(groups, [len(r) for r in rows]),
        doc_ids=np.array([f"{d.group}/{d.name}" for d in documents])[everything],
        feature_names=tuple(vectoriser.get_feature_names_out()),
    )


def _drawn(relevant: Array, negatives: int, rng: np.random.Generator) -> IntArray:
    others = np.flatnonzero(~relevant)
    size = negatives * int(relevant.sum())
    if negatives and size < len(others):
        others = rng.choice(others, size, replace=False)
    return np.sort(np.concatenate((np.flatnonzero(relevant), others)))


# How a document's words weigh, as settings of scikit-learn's TfidfVectorizer.
WEIGHTINGS: dict[str, Mapping[str, Any]] = {"counts": {"use_idf": False, "norm": None}, "tfidf": {}}
