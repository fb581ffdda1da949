"""What a person should judge next, so that estimates from the labels of a judge get narrower.

Documents are drawn with probabilities that grow with what they decide: the weight that systems give them (the
discount of their rank) times how uncertain the gain is, given the judge's grade. A share of FLOOR is spread
evenly, so that a document counts also where the judge is sure and wrong.

The draw is priority sampling (Duffield, Lund and Thorup 2007): every document has a random number u of its
own, made of the seed and its ids; the budget goes to the smallest u / size. With t the smallest u / size that
was not drawn, min(1, size t) is the probability of a drawn document given the random numbers of all others.
Sums weighted by 1 / probability are exactly unbiased, their terms are uncorrelated, a larger budget holds the
sample of a smaller one, and the order of rows is of no account. Queries are drawn alike, all with one size.

Sizes never depend on the answers of the sample itself: answers that decide which documents are drawn would
bias every later estimate.
"""

import hashlib
import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cleanrank.errors import error_text, invalid
from cleanrank.judges.documents import check_measure
from cleanrank.judges.labels import (
    SUFFIXES,
    Labels,
    Mapped,
    Pool,
    as_labels,
    as_runs,
    check_together,
    numbers,
    pool_of,
    table_of,
)
from cleanrank.judges.sampling_sizes import SAMPLED, counted_documents, document_sizes
from cleanrank.metrics.measure import Measure, MeasureLike, as_measures
from cleanrank.types import FloatArray, IntArray
from cleanrank.validation import check_integer, check_number, check_seed, is_frame, one_of

if TYPE_CHECKING:
    import pandas as pd

    from cleanrank.judges.looks import Look

UNITS = ("documents", "queries")
OWN = ("qid", "docid", "batch", "draw", "probability", "true_grade")
SAME = 1e-6  # spreadsheets round numbers
_Texts: TypeAlias = dict[str, dict[tuple[str, str], str]]  # heading -> text of a pair, or of (query, "")


@dataclass(frozen=True, eq=False)
class EvaluationSample:
    """Rows for a person to judge, with the probabilities that keep estimates unbiased.

    Attributes:
        frame: all rows of the sample, those judged before included: qid, docid, the texts that came with the
            judge's labels, batch, draw (the place in the sequence), of documents their probability, and
            true_grade (NaN: to judge).
        unit: what was drawn, "documents" or "queries".
        measure: what the sample is for.
        systems: whose levels it is for, or the two whose difference it is for.
        difference: whether it is for a difference.
        budget: how many documents or queries it has in all.
        n_pool: how many there are to draw from.
        seed: of the random numbers.
        look: where a width was asked for, the widest interval under the answers so far.
        notes: what to know, in words.
    """

    frame: "pd.DataFrame"
    unit: str
    measure: str
    systems: tuple[str, ...]
    difference: bool
    budget: int
    n_pool: int
    seed: int
    look: "Look | None" = None
    notes: tuple[str, ...] = ()

    @property
    def enough(self) -> bool:
        """Whether the interval is as narrow as was asked for; then nothing is left to judge."""
        return self.look is not None and self.look.enough

    @property
    def new(self) -> "pd.DataFrame":
        """The rows that have no answer yet."""
        return self.frame[self.frame["true_grade"].isna()]

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        what = f"the difference of {' and '.join(self.systems)}" if self.difference else "levels"
        return (
            f"EvaluationSample({self.budget:,} of {self.n_pool:,} {self.unit} for {what} in {self.measure}: "
            f"{len(self):,} rows, {len(self.new):,} to judge)"
        )

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready mapping; the rows stand under "rows"."""
        answers = self.frame.astype({"true_grade": object}).where(self.frame.notna(), None)
        fields = ("unit", "measure", "difference", "budget", "n_pool", "seed")
        return {
            **{name: getattr(self, name) for name in fields},
            "systems": list(self.systems),
            "to_judge": len(self.new),
            "look": None if self.look is None else {**asdict(self.look), "enough": self.enough},
            "notes": list(self.notes),
            "rows": answers.to_dict("records"),
        }

    def write(self, path: str | PathLike[str]) -> None:
        """Writes the sheet to fill in (.csv, .tsv or .xlsx): answers go into its last column, true_grade."""
        from cleanrank.data.spreadsheet import write_frame

        answers = ["" if np.isnan(grade) else int(grade) for grade in self.frame["true_grade"]]
        suffix = one_of("ending of a sheet", Path(path).suffix.lower(), (".csv", ".tsv", ".xlsx"))
        write_frame(self.frame.assign(true_grade=np.array(answers, dtype=object)), path, suffix)


def sample_for_evaluation(
    runs: Any,
    judge: Any,
    budget: int = 100,
    *,
    unit: str = "documents",
    measure: MeasureLike = "dcg@10",
    compare: Sequence[str] | None = None,
    gold: Any = None,
    pilot: Any = None,
    mapping: Mapped = None,
    width: float | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> EvaluationSample:
    """Draws the documents or queries whose true grades would narrow an estimate most.

    Args:
        runs: the systems, as ``evaluate_with_judge`` takes them: a folder, files, frames or mappings.
        judge: the judge's labels; texts of a frame or table go into the sheet, the grades do not.
        budget: how many documents (or queries) are judged in all, those of ``gold`` included.
        unit: "documents", or "queries": all that systems put within the cut-off, of queries drawn at random.
        measure: what is to be estimated; for documents dcg, ndcg, precision or recall.
        compare: names of two systems whose difference is to be estimated, instead of the level of each.
        gold: the sheet of a smaller budget, filled in, which this sample continues.
        pilot: true grades from elsewhere, to learn how uncertain the judge's grades are; without them an
            error by one grade more is taken to be half as likely.
        mapping: the grade of every value of the judge's scale, see ``evaluate_with_judge``.
        width: how wide intervals may be; once those that ``gold`` gives are narrower, ``enough`` is true
            and nothing new is drawn. They hold together at all looks, one after each batch.
        level: of the intervals of all looks together.
        seed: same seed, same sequence.

    Returns:
        The sample; ``write`` makes a sheet of it, which is the ``gold`` of ``evaluate_with_judge``.

    >>> runs = {"bm25": {"q": {"a": 3, "b": 2, "c": 1}}, "new": {"q": {"b": 3, "a": 2, "d": 1}}}
    >>> judge = {"q": {"a": 2, "b": 0, "c": 1, "d": 1}}
    >>> sample_for_evaluation(runs, judge, budget=2)
    EvaluationSample(2 of 4 documents for levels in dcg@10:trec: 2 rows, 2 to judge)
    """
    one_of("unit", unit, UNITS)
    check_integer("budget", budget, least=1)
    check_seed(seed)
    (parsed,) = as_measures([measure], "trec")
    labels, systems = as_labels(judge, "judge", mapping), as_runs(runs)
    if compare is not None:
        systems = {name: systems[name] for name in _pair(compare, systems)}
    pool = pool_of([labels], systems)
    sequence = _sequence(pool, parsed, unit, seed, compare is not None, _pilot_pairs(labels, pilot))
    earlier = _NO_ROWS if gold is None else _earlier_rows(gold, pool, sequence)
    n_pool = len(sequence.draw)
    n = min(budget, n_pool)
    first = int(sequence.place[sequence.member[earlier.row]].max(initial=-1)) + 1
    if n < first:
        rule = f"must count the {unit} of gold in, {first:,} of them"
        raise invalid("budget", rule, budget, remedy="It is the number that is judged in all.")
    notes = _notes(sequence, unit, budget)
    look = None
    if width is not None:
        check_number("width", width, above=0)
        check_number("level", level, above=0, below=1)
    if width is not None and gold is not None:
        from cleanrank.judges.looks import look_at

        look = look_at(
            systems,
            labels,
            as_labels(gold, "gold"),
            parsed,
            number=int(earlier.batch.max()),
            width=width,
            level=level,
            unit=unit,
            difference=compare is not None,
        )
        if look.enough:
            n = first
        elif np.isfinite(look.width):
            needed = min(math.ceil(first * (look.width / width) ** 2), n_pool)
            notes.append(f"about {needed:,} {unit} in all may be needed for intervals {width:g} wide")
    rows = np.flatnonzero((sequence.member >= 0) & (sequence.place[sequence.member] < n))
    frame = _frame(pool, rows, sequence, n, earlier, seed, _texts(judge))
    gaps = int((frame["true_grade"].isna() & (frame["batch"] <= earlier.batch.max(initial=0))).sum())
    if gaps:
        subject, rule = f"{gaps:,} rows of gold", "have no answer and are asked for again"
        remedy = "Estimates without them hold only if rows were not left out for their relevance."
        notes.append(error_text(subject, rule, remedy=remedy))
        warnings.warn(notes[-1], stacklevel=2)
    return EvaluationSample(
        frame, unit, str(parsed), pool.systems, compare is not None, n, n_pool, seed, look, tuple(notes)
    )


def random_numbers(seed: int, ids: Iterable[tuple[str, ...]]) -> FloatArray:
    """A number between 0 and 1 for every id, which depends on the seed and on that id alone.

    >>> random_numbers(0, [("q1", "a"), ("q1", "b")]).round(3).tolist()
    [0.404, 0.932]
    """
    digests = (hashlib.blake2b("\x1f".join((str(seed), *each)).encode(), digest_size=8) for each in ids)
    words = np.frombuffer(b"".join(each.digest() for each in digests), dtype=">u8").astype(np.uint64)
    return np.asarray(((words >> np.uint64(11)) + 0.5) * 2.0**-53)


@dataclass(frozen=True, eq=False)
class _Sequence:
    """Documents or queries (the members) in the order in which they are drawn."""

    member: IntArray  # of every row of the pool; -1: never drawn
    draw: FloatArray  # of every member: its random number / size; the smallest come first
    place: IntArray  # of every member: its place in that order
    size: FloatArray | None  # of every member; None: all alike
    ungraded: int  # documents that would count if the judge had graded them

    def probability(self, n: int) -> FloatArray | None:
        """With which every member is among n drawn ones; None where all have the same."""
        if self.size is None:
            return None
        last = np.inf if n == len(self.draw) else self.draw[self.place == n][0]
        return np.minimum(1.0, self.size * last)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of a sheet that was filled in."""

    row: IntArray  # of the pool
    grade: FloatArray  # NaN: no answer
    batch: IntArray


_NO_ROWS = _Rows(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))


def _sequence(
    pool: Pool, measure: Measure, unit: str, seed: int, difference: bool, pilot: IntArray | None
) -> _Sequence:
    size, ungraded = None, 0
    if unit == "documents":
        if measure.name not in SAMPLED:
            rule = f"must be one of {', '.join(SAMPLED)} where documents are drawn"
            raise invalid("measure", rule, str(measure), remedy="unit='queries' takes any measure.")
        check_measure(measure)
        sizes, ungraded = document_sizes(pool, measure, difference, pilot)
        rows = np.flatnonzero(sizes)
        size = sizes[rows]
        member = np.full(len(sizes), -1)
        member[rows] = np.arange(len(rows))
        draw = random_numbers(seed, _ids(pool, rows)) / size
    else:
        member = np.where(counted_documents(pool, measure), pool.query, -1)
        draw = random_numbers(seed, ((str(qid),) for qid in pool.query_ids))
    place = np.empty(len(draw), dtype=np.int64)
    place[np.argsort(draw, kind="stable")] = np.arange(len(draw))
    return _Sequence(member, draw, place, size, ungraded)


def _notes(sequence: _Sequence, unit: str, budget: int) -> list[str]:
    notes = []
    if sequence.ungraded:
        documents = "1 document" if sequence.ungraded == 1 else f"{sequence.ungraded:,} documents"
        notes.append(
            f"{documents} that systems rank within the cut-off {'has' if sequence.ungraded == 1 else 'have'} "
            "no grade of the judge and cannot be drawn; let the judge grade them first"
        )
    if len(sequence.draw) < budget:
        all_there = f"there are {len(sequence.draw):,} {unit} to judge in all"
        notes.append(f"{all_there}, fewer than the budget of {budget:,}")
    return notes


def _earlier_rows(gold: Any, pool: Pool, sequence: _Sequence) -> _Rows:
    """The rows of a sheet that this sequence gave out; raises where it did not."""
    sheet, headings = table_of(gold, "gold")
    remedy = "Labels from elsewhere go into pilot=."
    if not {"draw", "batch"} <= set(sheet.values):
        columns = ", ".join(sheet.values)
        raise invalid("gold", "must have the columns draw and batch of its sheet", columns, remedy=remedy)
    labels = as_labels(gold, "gold")
    judged = zip(labels.qid.tolist(), labels.docid.tolist(), strict=True)
    answers = dict(zip(judged, labels.grade, strict=True))
    pairs = list(zip(*(sheet.texts(headings[each]) for each in ("query", "doc")), strict=True))
    rows = {pair: row for row, pair in enumerate(_ids(pool, np.arange(len(pool.doc_ids))))}
    row = np.array([rows.get(pair, -1) for pair in pairs])
    member = np.where(row >= 0, sequence.member[row], -1)
    draw = numbers("draw of gold", sheet.values["draw"], comma=True)
    same = (member >= 0) & np.isclose(draw, sequence.draw[member], rtol=SAME, atol=0.0)
    if not same.all():
        at = int(np.argmin(same))
        rule = "must be a sheet of the same runs, judge, measure, unit, pilot and seed"
        value = f"draw {draw[at]:g} for {sequence.draw[member[at]]:g}" if member[at] >= 0 else "another row"
        place = f"query {pairs[at][0]!r}, document {pairs[at][1]!r}"
        raise invalid("gold", rule, value, at=place, remedy=remedy)
    grade = np.array([answers.get(pair, np.nan) for pair in pairs])
    return _Rows(row, grade, numbers("batch of gold", sheet.values["batch"], comma=True).astype(np.int64))


def _frame(
    pool: Pool, rows: IntArray, sequence: _Sequence, n: int, earlier: _Rows, seed: int, texts: _Texts
) -> "pd.DataFrame":
    """The sheet: batch by batch, query by query, documents of a query in random order."""
    import pandas as pd

    grade = np.full(len(pool.doc_ids), np.nan)
    grade[earlier.row] = earlier.grade
    batch = np.full(len(pool.doc_ids), int(earlier.batch.max(initial=0)) + 1)
    batch[earlier.row] = earlier.batch
    shuffled = random_numbers(seed, (("order", *pair) for pair in _ids(pool, rows)))
    rows = rows[np.lexsort((shuffled, pool.query[rows], batch[rows]))]
    ids, member = list(_ids(pool, rows)), sequence.member[rows]
    columns: dict[str, Any] = {"qid": [qid for qid, _ in ids], "docid": [docid for _, docid in ids]}
    for name, text in texts.items():
        columns[name] = [text.get(pair, text.get((pair[0], ""), "")) for pair in ids]
    columns |= {"batch": batch[rows], "draw": sequence.draw[member]}
    probability = sequence.probability(n)
    if probability is not None:
        columns["probability"] = probability[member]
    return pd.DataFrame({**columns, "true_grade": grade[rows]})


def _ids(pool: Pool, rows: IntArray) -> list[tuple[str, str]]:
    return list(zip(pool.query_ids[pool.query[rows]].tolist(), pool.doc_ids[rows].tolist(), strict=True))


def _pair(compare: Sequence[str], systems: Iterable[str]) -> list[str]:
    named = [compare] if isinstance(compare, str) or not isinstance(compare, Sequence) else compare
    pair = [one_of("system", name, systems) for name in named]
    if len(set(pair)) != 2 or len(pair) != 2:
        remedy = "Name the first and the second."
        raise invalid("compare", "must name two different systems", ", ".join(map(repr, pair)), remedy=remedy)
    return pair


def _pilot_pairs(judge: Labels, pilot: Any) -> IntArray | None:
    """(2, P) the judge's grades and the true ones of the pairs that both graded."""
    if pilot is None:
        return None
    truth = as_labels(pilot, "pilot")
    check_together(judge, truth)
    grades = pool_of([judge, truth]).grades
    return grades[:, (grades >= 0).all(0)]


def _texts(judge: Any) -> _Texts:
    """The texts that came with the judge's labels; numbers may be grades and stay hidden."""
    if not (is_frame(judge) or (isinstance(judge, str | PathLike) and str(judge).lower().endswith(SUFFIXES))):
        return {}
    sheet, headings = table_of(judge, "judge")
    pairs = list(zip(*(sheet.texts(headings[each]) for each in ("query", "doc")), strict=True))
    texts: _Texts = {}
    for name in sheet.values:
        cells = sheet.texts(name)
        if name in (*headings.values(), *OWN) or _are_numbers(cells):
            continue
        texts[name] = dict(zip(pairs, cells, strict=True))
        by_query = {(qid, ""): cell for (qid, _), cell in zip(pairs, cells, strict=True)}
        alike = all(by_query[qid, ""] == cell for (qid, _), cell in zip(pairs, cells, strict=True))
        if alike and len(by_query) < len(pairs):
            # The text of the query, which documents without a label of the judge have as well.
            texts[name] |= by_query
    return texts


def _are_numbers(cells: Sequence[str]) -> bool:
    try:
        np.array([cell for cell in cells if cell], dtype=np.float64)
    except ValueError:
        return False
    return True
