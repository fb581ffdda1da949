"""What is measured: a measure is a value that carries its whole convention and round-trips as text.

Text form: ``name[@cutoff][:convention][:weighting][:part=value ...]``, for example ``ndcg@10``,
``ndcg@10:letor``, ``auc:micro``, ``map:skip:relevant=2``. Without a convention, ``lightgbm`` holds; for TREC
runs ``trec``. The names of trec_eval (``ndcg_cut_10``, ``P_10``, ``recip_rank``) mean ``trec`` everywhere.

Parts of a measure; a part that means nothing for a measure is None:

* gain: ``exp`` 2^y - 1, ``linear`` y. Real-valued gains of the data stand in for both (dcg and ndcg only).
* discount at rank r: ``log2`` 1 / log2(r + 1); ``letor`` 1 for r = 1, 1 / log2(r) for r >= 2.
* empty: the value of a query on which the measure is undefined or without any relevant document:
  ``one``, ``zero`` or ``skip`` (NaN, left out of the mean).
* short: ``cut`` ranks what there is; ``zero`` gives 0 to a query with fewer documents than the cut-off.
* ties: ``stable`` keeps the order of the rows; ``average`` is the exact mean over all orders of tied
  documents; ``worst`` puts the less relevant of them first; ``doc_id`` compares scores as 32-bit floats and
  puts the higher document id first, as trec_eval does (without document ids, the later row).
* weighting over queries: ``macro`` mean of ratios, ``micro`` mean of (pair sum) / n^2, ``pooled`` ratio of
  sums.
* relevant: the lowest grade that counts as relevant in binary measures.
* max_grade: the highest grade of the scale, for the stop probability of ERR.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from cleanrank.errors import invalid
from cleanrank.types import FloatArray
from cleanrank.validation import check_integer, one_of

PARTS = ("gain", "discount", "empty", "short", "ties", "weighting", "relevant", "max_grade")

CHOICES: dict[str, tuple[str, ...]] = {
    "gain": ("exp", "linear"),
    "discount": ("log2", "letor"),
    "empty": ("one", "zero", "skip"),
    "short": ("cut", "zero"),
    "ties": ("stable", "average", "worst", "doc_id"),
    "weighting": ("macro", "micro", "pooled"),
}

DEFAULT_CONVENTION = "lightgbm"
CONVENTIONS: dict[str, dict[str, str]] = {
    "lightgbm": {"gain": "exp", "discount": "log2", "empty": "one", "short": "cut"},
    "skip": {"gain": "exp", "discount": "log2", "empty": "skip", "short": "cut"},
    "letor": {"gain": "exp", "discount": "letor", "empty": "zero", "short": "zero"},
    "linear": {"gain": "linear", "discount": "log2", "empty": "one", "short": "cut"},
    "trec": {"gain": "linear", "discount": "log2", "empty": "zero", "short": "cut", "ties": "doc_id"},
}

# Haddad (2022) measures with linear gains.
CONVENTION_ALIASES: dict[str, str] = {"haddad": "linear"}

ALIASES: dict[str, str] = {
    "ap": "map",
    "p": "precision",
    "prec": "precision",
    "r": "recall",
    "rr": "mrr",
    "roc_auc": "auc",
    "pairwise_accuracy": "pairacc",
    "kendall": "tau",
    "hit": "success",
    "hits": "success",
    "hit_rate": "success",
}

# Names of trec_eval that are not ours; those of the second kind end in _CUTOFF.
TREC_NAMES: dict[str, str] = {"recip_rank": "mrr", "set_p": "precision", "set_recall": "recall"}
TREC_CUT_NAMES: dict[str, str] = {
    "ndcg_cut": "ndcg",
    "map_cut": "map",
    "p": "precision",
    "recall": "recall",
    "success": "success",
}


@dataclass(frozen=True)
class Kind:
    """What one name of a measure stands for."""

    title: str  # its name in words
    formula: str  # the value of one query
    parts: tuple[str, ...]  # the parts that mean something for it
    cutoff: bool  # whether it takes one
    undefined: str  # when the empty policy steps in
    # Whether values lie in [0, 1] with 1 for the best ranking of a query that has relevant documents.
    unit: bool
    defaults: Mapping[str, Any] = field(default_factory=dict)  # parts whose default no convention decides


def _binary(title: str, formula: str, undefined: str) -> Kind:
    parts = ("empty", "ties", "relevant")
    return Kind(title, formula, parts, True, undefined, True, {"ties": "stable", "relevant": 1})


def _gained(title: str, formula: str, *, unit: bool) -> Kind:
    parts = ("gain", "discount", "empty", "short", "ties")
    return Kind(title, formula, parts, True, "no document has a gain", unit, {"ties": "stable"})


_NONE = "no document is relevant"

MEASURES: dict[str, Kind] = {
    "ndcg": _gained(
        "normalised discounted cumulative gain",
        "the sum of gain x discount over the ranks, divided by that of the ideal ranking",
        unit=True,
    ),
    "dcg": _gained("discounted cumulative gain", "the sum of gain x discount over the ranks", unit=False),
    "map": _binary(
        "mean average precision",
        "the precision at the rank of each relevant document, summed and divided by the number of all "
        "relevant documents (also where a cut-off is shorter)",
        _NONE,
    ),
    "mrr": _binary("mean reciprocal rank", "1 / rank of the first relevant document", _NONE),
    "err": Kind(
        "expected reciprocal rank",
        "the mean of 1 / (rank at which a reader stops), who stops at grade y with probability "
        "(2^y - 1) / 2^max_grade",
        ("empty", "ties", "max_grade"),
        True,
        "no document has a grade above 0",
        False,
        {"ties": "stable", "max_grade": 4},
    ),
    "precision": _binary("precision", "the share of relevant documents among the first k ranks", _NONE),
    "recall": _binary("recall", "the share of the relevant documents that the first k ranks hold", _NONE),
    "success": _binary("success", "1 if the first k ranks hold a relevant document, else 0", _NONE),
    "rprec": Kind(
        "R-precision",
        "the share of relevant documents among the first R ranks, R being the number of all relevant ones",
        ("empty", "ties", "relevant"),
        False,
        _NONE,
        True,
        {"ties": "stable", "relevant": 1},
    ),
    "bpref": Kind(
        "binary preference",
        "the mean over the R relevant documents of 1 - min(n, R) / min(N, R), with n of the N documents "
        "judged not relevant above it; documents that nobody judged are passed over",
        ("empty", "ties", "relevant"),
        False,
        _NONE,
        True,
        {"ties": "stable", "relevant": 1},
    ),
    "auc": Kind(
        "area under the ROC curve",
        "the share of (relevant, not relevant) pairs in the right order",
        ("empty", "ties", "weighting", "relevant"),
        False,
        "all documents are of one class",
        True,
        {"ties": "average", "weighting": "macro", "relevant": 1, "empty": "skip"},
    ),
    "pairacc": Kind(
        "pairwise accuracy",
        "the share of pairs of different grades in the right order",
        ("empty", "ties", "weighting"),
        False,
        "all documents have one grade",
        True,
        {"ties": "average", "weighting": "macro", "empty": "skip"},
    ),
    "tau": Kind(
        "Kendall's tau-b",
        "(right - wrong pairs) / sqrt(pairs untied in grade x pairs untied in score)",
        ("empty",),
        False,
        "all grades or all scores are equal",
        False,
        {"empty": "skip"},
    ),
}

# These have a value (0) where nothing is relevant, so "one" would be a falsehood there.
_ZERO_WHERE_EMPTY = ("dcg", "mrr", "err", "precision", "success")

MAX_EXP_GRADE = 60


@dataclass(frozen=True)
class Measure:
    """One measure with its whole convention; hashable, and equal to the parse of its own text.

    Parts left out are those of the ``lightgbm`` convention.

    >>> Measure("ndcg", 10) == Measure.parse("ndcg@10")
    True
    >>> str(Measure("ndcg", 10, discount="letor", empty="zero", short="zero", ties="worst"))
    'ndcg@10:letor:ties=worst'
    """

    name: str
    cutoff: int | None = None
    gain: str | None = None
    discount: str | None = None
    empty: str | None = None
    short: str | None = None
    ties: str | None = None
    weighting: str | None = None
    relevant: int | None = None
    max_grade: int | None = None

    def __post_init__(self) -> None:
        kind = MEASURES[one_of("measure", self.name, MEASURES)]
        for part in ("cutoff", "relevant", "max_grade"):
            if isinstance(getattr(self, part), np.integer):
                object.__setattr__(self, part, int(getattr(self, part)))
        if self.cutoff is not None and not kind.cutoff:
            text = f"{self.name}@{self.cutoff}"
            raise invalid(repr(self.name), "takes no cut-off", text, remedy=f"Write {self.name!r}.")
        if self.cutoff is not None:
            check_integer(f"the cut-off of {self.name!r}", self.cutoff, least=1)
        stated = {part: getattr(self, part) for part in PARTS if getattr(self, part) is not None}
        for part, value in stated.items():
            _check_part(self.name, kind, part, value)
        weighting = stated.get("weighting", kind.defaults.get("weighting"))
        if "empty" in stated and weighting in ("micro", "pooled"):
            rule = "has no meaning where pairs are summed over queries"
            remedy = "Leave it out, or use the weighting macro."
            raise invalid(f"empty={self.empty}", rule, f"{self.name}:{weighting}", remedy=remedy)
        for part, value in _defaults(self.name, DEFAULT_CONVENTION, weighting).items():
            if part not in stated:
                object.__setattr__(self, part, value)

    @classmethod
    def parse(cls, text: str, convention: str = DEFAULT_CONVENTION) -> "Measure":
        """Reads the text form.

        Args:
            text: such as ``ndcg@10``, ``map:trec`` or ``P_10``.
            convention: what holds where the text names none.

        Returns:
            The measure.

        >>> Measure.parse("ndcg_cut_10") == Measure.parse("ndcg@10:trec")
        True
        >>> Measure.parse("p@5") == Measure("precision", 5)
        True
        >>> Measure.parse("auc:micro").weighting
        'micro'
        """
        if not isinstance(text, str):
            raise invalid("a measure", "must be text or a Measure", repr(text), remedy="Try 'ndcg@10'.")
        return _parse(text, one_of("convention", convention, CONVENTIONS))

    def __str__(self) -> str:
        return _text(self)

    def describe(self) -> str:
        """The convention in full.

        >>> print(Measure.parse("recall@5:skip").describe())
        recall@5:skip: recall: the share of the relevant documents that the first k ranks hold; cut-off 5;
        a query is left out where no document is relevant; ties keep the order of the rows; relevant from
        grade 1.
        """
        return f"{self}: {describe_parts(self)}"


MeasureLike: TypeAlias = "str | Measure"


def as_measures(
    measures: "MeasureLike | Iterable[MeasureLike]", convention: str = DEFAULT_CONVENTION
) -> tuple[Measure, ...]:
    """One measure or several, as text or as values, in their order; a repeated one is kept once.

    ``convention`` holds for texts that name none.

    >>> [str(m) for m in as_measures(["ndcg@10", "AP", "ndcg@10"])]
    ['ndcg@10', 'map']
    """
    if isinstance(measures, str | Measure):
        listed: list[MeasureLike] = [measures]
    elif isinstance(measures, Iterable):
        listed = list(measures)
    else:
        raise invalid("a measure", "must be text or a Measure", repr(measures), remedy="Try 'ndcg@10'.")
    if not listed:
        raise invalid("measures", "must name at least one measure", "none", remedy="Try 'ndcg@10'.")
    parsed = (m if isinstance(m, Measure) else Measure.parse(m, convention) for m in listed)
    return tuple(dict.fromkeys(parsed))


def discount(kind: str, n: int) -> FloatArray:
    """Discounts of the ranks 1..n.

    >>> discount("letor", 4).tolist()
    [1.0, 1.0, 0.6309297535714575, 0.5]
    """
    ranks = np.arange(1, n + 1, dtype=np.float64)
    if kind == "log2":
        return 1.0 / np.log2(ranks + 1.0)
    return 1.0 / np.log2(np.maximum(ranks, 2.0))


def describe_parts(measure: Measure) -> str:
    """The sentence of ``describe`` without the text form."""
    kind = MEASURES[measure.name]
    words = [f"{kind.title}: {kind.formula}"]
    if kind.cutoff:
        words.append("no cut-off" if measure.cutoff is None else f"cut-off {measure.cutoff}")
    for part in PARTS:
        value = getattr(measure, part)
        if value is None or (part == "short" and measure.cutoff is None):
            continue
        words.append(_sentence(part, value, kind))
    return "; ".join(words) + "."


_WORDS: dict[tuple[str, str], str] = {
    ("gain", "exp"): "gain 2^y - 1",
    ("gain", "linear"): "gain y",
    ("discount", "log2"): "discount 1/log2(rank + 1)",
    ("discount", "letor"): "discount 1 at rank 1, then 1/log2(rank)",
    ("short", "cut"): "a list shorter than the cut-off is ranked as it is",
    ("short", "zero"): "a list shorter than the cut-off counts 0",
    ("ties", "stable"): "ties keep the order of the rows",
    ("ties", "average"): "ties are averaged over all their orders",
    ("ties", "worst"): "of tied documents the less relevant ranks first",
    ("ties", "doc_id"): "scores are compared as 32-bit floats, of tied documents the higher id ranks first",
    ("weighting", "macro"): "mean over queries",
    ("weighting", "micro"): "pair sum / n^2 of each query, then the mean over queries",
    ("weighting", "pooled"): "sum of pairs over all queries, numerator by denominator",
}


def _sentence(part: str, value: Any, kind: Kind) -> str:
    if part == "empty":
        what = {"one": "counts 1", "zero": "counts 0", "skip": "is left out"}[value]
        return f"a query {what} where {kind.undefined}"
    if part == "relevant":
        return f"relevant from grade {value}"
    if part == "max_grade":
        return f"highest grade {value}"
    if part == "ties" and value == "average" and "weighting" in kind.parts:
        return "ties count half"
    return _WORDS[part, value]


def _check_part(name: str, kind: Kind, part: str, value: Any) -> None:
    if part not in kind.parts:
        remedy = f"It has: {', '.join(kind.parts)}."
        raise invalid(f"{name!r}", f"has no part {part!r}", f"{part}={value}", remedy=remedy)
    if part == "empty" and name in _ZERO_WHERE_EMPTY and value == "one":
        raise invalid(
            f"empty of {name!r}", f"must be zero or skip, for it is 0 where {kind.undefined}", "empty=one"
        )
    if part in CHOICES:
        one_of(part, value, CHOICES[part])
        return
    check_integer(part, value, least=1, most=MAX_EXP_GRADE if part == "max_grade" else 2**31 - 1)


def _defaults(name: str, convention: str, weighting: str | None) -> dict[str, Any]:
    """All parts of a measure under a convention."""
    kind = MEASURES[name]
    parts: dict[str, Any] = {p: v for p, v in CONVENTIONS[convention].items() if p in kind.parts}
    if name in _ZERO_WHERE_EMPTY and parts["empty"] == "one":
        parts["empty"] = "zero"
    ties = parts.get("ties") if kind.defaults.get("ties") == "stable" else None
    parts.update(kind.defaults, **({"ties": ties} if ties else {}))
    if "weighting" in kind.parts:
        parts["weighting"] = weighting or "macro"
        if parts["weighting"] != "macro":
            del parts["empty"]
    return parts


@lru_cache(maxsize=1024)
def _parse(text: str, usual: str) -> Measure:
    head, *rest = (word.strip() for word in text.strip().lower().split(":"))
    name, cutoff, trec = _parse_head(head, text)
    convention, stated = "", {}
    for word in rest:
        part, equals, value = (piece.strip() for piece in word.partition("="))
        part = part if equals else CONVENTION_ALIASES.get(part, part)
        if not equals and part in CONVENTIONS:
            if convention:
                raise invalid("a measure", "takes one convention", repr(text))
            convention = part
            continue
        if not equals:
            one_of("convention or weighting", part, (*CONVENTIONS, *CHOICES["weighting"]))
            part, value = "weighting", part
        one_of("part of a measure", part, PARTS)
        if part in stated:
            raise invalid(f"{part} of a measure", "must be given once", repr(text))
        stated[part] = _parse_value(part, value)
    weighting = stated.get("weighting", MEASURES[name].defaults.get("weighting"))
    convention = convention or ("trec" if trec else usual)
    return Measure(name, cutoff, **{**_defaults(name, convention, weighting), **stated})


def _parse_head(head: str, text: str) -> tuple[str, int | None, bool]:
    """Name, cut-off and whether it is written as in trec_eval."""
    cut = re.fullmatch(rf"({'|'.join(TREC_CUT_NAMES)})_([0-9]{{1,9}})", head)
    if cut:
        return TREC_CUT_NAMES[cut[1]], _cutoff(cut[2], TREC_CUT_NAMES[cut[1]], text), True
    if head in TREC_NAMES:
        return TREC_NAMES[head], None, True
    name, at, digits = (piece.strip() for piece in head.partition("@"))
    name = ALIASES.get(name, name)
    stem = re.sub(r"(_at_|_)?[^a-z_].*", "", name)
    if stem != name and ALIASES.get(stem, stem) in MEASURES:
        rule = "must read name@cutoff:convention, as in 'ndcg@10:letor'"
        cut = re.search("[0-9]+$", name)
        hint = f"Did you mean '{ALIASES.get(stem, stem)}@{cut[0]}'?" if cut else ""
        raise invalid("a measure", rule, repr(text), remedy=hint)
    one_of("measure", name, MEASURES)
    return name, _cutoff(digits, name, text) if at else None, False


def _cutoff(digits: str, name: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", digits) or int(digits) == 0:
        raise invalid("the cut-off", "must be an integer >= 1", repr(text), remedy=f"As in '{name}@10'.")
    return int(digits)


def _parse_value(part: str, value: str) -> Any:
    if part in CHOICES:
        return one_of(part, value, CHOICES[part])
    if not re.fullmatch(r"[0-9]{1,9}", value):
        raise invalid(part, "must be an integer >= 1", value or "nothing")
    return int(value)


@lru_cache(maxsize=1024)
def _text(measure: Measure) -> str:
    def overrides(convention: str) -> list[str]:
        usual = _defaults(measure.name, convention, measure.weighting)
        return [f"{p}={getattr(measure, p)}" for p in PARTS if getattr(measure, p) != usual.get(p)]

    convention = min(CONVENTIONS, key=lambda name: len(overrides(name)))
    words = [measure.name if measure.cutoff is None else f"{measure.name}@{measure.cutoff}"]
    words += [] if convention == DEFAULT_CONVENTION else [convention]
    words += [] if measure.weighting in (None, "macro") else [str(measure.weighting)]
    return ":".join(words + overrides(convention))
