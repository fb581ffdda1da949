"""An audit of judgements: what is doubted, which queries look misread, and how far to trust the evidence.

``find_label_issues(qrels=...)`` doubts the labels; here is what people need beside them, and the sheet that
they fill in.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cleanrank.issues.by_query import QueryDoubt, doubt_by_query
from cleanrank.issues.features import MOST_PLACED
from cleanrank.issues.table import LabelIssues
from cleanrank.issues.to_judge import next_to_judge, text_columns
from cleanrank.noise.gold import sample_gold
from cleanrank.noise.signal import Signal, signal_of
from cleanrank.ragged import judged_rows, match_rows
from cleanrank.stored import as_array
from cleanrank.types import Array, FloatArray, RankingData
from cleanrank.validation import check_integer

FAR = 2  # grades between two judges who disagree far
SHOWN = ("text:bm25", "text:coverage_idf", "text:feedback", "runs:fusion")


@dataclass(frozen=True)
class Evidence:
    """How one source of evidence goes with the judgements.

    Attributes:
        kind: run, runs, text, score or judge.
        name: of the system, the measure or the judge.
        pairs: judged pairs that it says something about.
        signal: how well it orders the documents of a query by their given grades; above .5 it agrees.
        far: of a judge on the same scale, the share of pairs with FAR grades or more between both; else NaN.
        far_on_top: the same among the most doubted pairs.
    """

    kind: str
    name: str
    pairs: int
    signal: Signal
    far: float = float("nan")
    far_on_top: float = float("nan")


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit says beside the doubts.

    Attributes:
        issues: the doubts.
        data: the pairs with their features and texts.
        queries: every query, the most doubted first.
        evidence: every source, by kind, the one that agrees best first.
    """

    issues: LabelIssues
    data: RankingData
    queries: tuple[QueryDoubt, ...]
    evidence: tuple[Evidence, ...]

    @property
    def suspects(self) -> tuple[QueryDoubt, ...]:
        """Queries that look misread as a whole."""
        return tuple(query for query in self.queries if query.is_suspect)


def audit_of(issues: LabelIssues, *, top: int = 50) -> Audit:
    """What people need beside the doubts of ``find_label_issues(qrels=...)``.

    Args:
        issues: as that returns them.
        top: how many pairs count as the most doubted ones.

    >>> import cleanrank as cr
    >>> qrels = {str(q): {f"d{d}": int(d < 3) for d in range(6)} for q in range(4)}
    >>> runs = {"bm25": {q: {doc: -place for place, doc in enumerate(docs)} for q, docs in qrels.items()}}
    >>> issues = cr.find_label_issues(qrels=qrels, runs=runs, method="confident", folds=2)
    >>> [(each.name, each.signal.auc) for each in audit_of(issues).evidence]
    [('bm25', 1.0), ('fusion', 1.0)]
    """
    check_integer("top", top, least=1)
    assert issues.source is not None
    data = issues.source.data
    rows = judged_rows(data)
    judged, table = data.select(rows), issues.select(rows)
    most = np.zeros(len(table), dtype=np.bool_)
    most[next_to_judge(table, top)] = True
    every = (_evidence(judged, name, column, most) for name, column in _columns(judged))
    known = sorted((each for each in every if each), key=lambda e: (e.kind, -np.nan_to_num(e.signal.auc)))
    return Audit(issues, data, tuple(doubt_by_query(table)), tuple(known))


def sheet_to_judge(audit: Audit, n: int, *, seed: int = 0) -> Any:
    """A sheet to judge again, as a frame: half of it the most doubted rows, half drawn from all others.

    The order is random and given grades are left out, so that nobody sees which rows are doubted; and
    ``stratum_share`` says what each row stands for, so that ``gold read`` can tell from both halves how many
    labels are wrong. ``label``, ``review`` and ``clean --review`` read it too.

    Args:
        audit: of the judgements.
        n: rows, all of them where there are no more.
        seed: for the draw and the order.

    Returns:
        Columns row_id, query_id, doc_id, the texts, stratum_share, and annotator and grade to be filled in.
    """
    import pandas as pd

    check_integer("n", n, least=2)
    data, table = audit.data, audit.issues
    judged = judged_rows(data)
    doubt = np.where(judged, table.doubt, -1.0)
    doubted = np.zeros(data.n_docs, dtype=np.bool_)
    doubted[np.lexsort((table.row_id, -doubt))[: min(-(-n // 2), int(judged.sum()))]] = True
    others = data.select(judged & ~doubted)
    grades = int((np.bincount(others.y) > 0).sum()) if others.n_docs else 0
    drawn = min(n - int(doubted.sum()), others.n_docs)
    ids = data.row_ids[doubted]
    if drawn >= max(grades, 1):
        ids = np.concatenate([ids, sample_gold(others, drawn, seed=seed).row_ids])
    rows = np.random.default_rng([seed, n]).permutation(match_rows(data.row_ids, ids))
    texts: dict[str, Any] = text_columns(data, data.row_ids[rows])
    columns = {"row_id": data.row_ids[rows], "query_id": data.qid[rows]}
    if data.doc_ids is not None:
        columns["doc_id"] = data.doc_ids[rows]
    blank = np.full(len(rows), "", dtype=object)
    share = _shares(data.y, doubted, judged)[rows]
    return pd.DataFrame({**columns, **texts, "stratum_share": share, "annotator": blank, "grade": blank})


def _shares(y: Array, doubted: Array, judged: Array) -> FloatArray:
    """The share of the rows of its given grade that are doubted like the row, or not."""
    part = y.astype(np.int64) * 2 + doubted
    alike = np.bincount(part[judged], minlength=part.max() + 2)
    of_grade = np.bincount(y[judged], minlength=y.max() + 1)
    return np.asarray(alike[part] / np.maximum(of_grade[y], 1))


def _columns(data: RankingData) -> list[tuple[str, FloatArray]]:
    """One column for every source of evidence; the columns of an embedding are none by themselves."""
    names = data.feature_names or ()
    whole = (
        ("judge:", "score:") if sum(each.startswith("score:") for each in names) <= MOST_PLACED else "judge:"
    )
    chosen = []
    beside = [(name, column) for name, column in (data.extra or {}).items() if name.startswith("run:")]
    for name, column in [*zip(names, as_array(data.X).T, strict=True), *beside]:
        is_run = name.startswith("run:") and name.endswith(":score")
        if is_run or name in SHOWN or name.startswith(whole):
            chosen.append((name.removesuffix(":score") if is_run else name, column))
    return chosen


def _evidence(data: RankingData, name: str, column: FloatArray, most: Array) -> Evidence | None:
    known = ~np.isnan(column)
    if not known.any():
        return None
    kind, _, own = name.partition(":")
    part, values = data.select(known), column[known]
    signal = signal_of(part.y, values, part.indptr)
    same_scale = bool((values == np.floor(values)).all()) and FAR <= values.max() <= data.y.max()
    if kind != "judge" or not same_scale:
        return Evidence(kind, own, int(known.sum()), signal)
    far = abs(values - part.y) >= FAR
    on_top = far[most[known]]
    top = float(on_top.mean()) if len(on_top) else float("nan")
    return Evidence(kind, own, int(known.sum()), signal, float(far.mean()), top)
