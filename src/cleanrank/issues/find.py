"""``find_label_issues``: one call for every detector, or for several whose doubts are combined."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.cluster.client import on_cluster
from cleanrank.data.inputs import Source
from cleanrank.errors import invalid
from cleanrank.issues.by_grade import find_by_grade
from cleanrank.issues.clicks import find_against_clicks
from cleanrank.issues.confident import find_confident
from cleanrank.issues.contradictions import find_contradictions
from cleanrank.issues.dynamics import find_by_loss, find_forgotten
from cleanrank.issues.feature_signal import feature_signal
from cleanrank.issues.features import judgements_of, pair_features
from cleanrank.issues.isolation import find_isolated
from cleanrank.issues.posterior import find_auto, find_posterior, places
from cleanrank.issues.sour import find_last_sour, find_sour
from cleanrank.issues.table import PROBABILITY, BoolArray, LabelIssues
from cleanrank.noise.gold_sheet import gold_answers, known_grades
from cleanrank.noise.scales import check_few_grades
from cleanrank.ragged import match_rows
from cleanrank.types import Array, FloatArray, RankingData
from cleanrank.validation import check_seed, one_of

HALF = 0.5 - 1e-12
AUDIT_REPEATS = 10


def find_label_issues(
    data: Any = None,
    y: Any = None,
    *,
    qrels: Any = None,
    runs: Any = None,
    texts: Any = None,
    scores: Any = None,
    judges: Any = None,
    method: str | Sequence[str] = "auto",
    label: str | None = None,
    qid: Any = None,
    group: npt.ArrayLike | None = None,
    features: Sequence[str] | None = None,
    noise: Any = None,
    gold: Any = None,
    seed: int = 0,
    client: Any = None,
    **options: Any,
) -> LabelIssues:
    """Doubts the labels of ``data`` with one of DETECTORS.

    The default learns the posterior of the true grade: under ``noise`` where it is known, else under the
    least that can be assumed (``issues/posterior.py``).

    Where there are judgements but no features, give ``qrels`` and what else is known about its pairs; any of
    runs, texts, scores and judges may be missing. An audit of judgements looks for queries that were misread
    as a whole, so the default detector then takes queries to differ in their errors, and its predictions
    are means over AUDIT_REPEATS cuts of the queries.

    Args:
        data: judged rows: a RankingData, a frame with the columns ``label`` and ``qid``, or features with
            ``y``.
        y: with features as ``data``, the grades. (Or the method: ``find_label_issues(data, "sour")``.)
        qrels: instead of ``data``, judged pairs of query and document: TREC qrels, a table or a mapping
            {query: {document: grade}}, as ``issues.features.judgements_of`` takes them.
        runs: with ``qrels``, systems: TREC runs (a file may hold several), tables, a folder or a mapping.
        texts: with ``qrels``, tables with the texts of queries and documents.
        scores: with ``qrels``, tables of numbers by query and document: reranker scores, embeddings.
        judges: with ``qrels``, labels of other judges by name, on any scale.
        method: the detector; several are combined, see ``combine``.
        label: with a frame, its column of grades; "label" when not given.
        qid: with a frame, its column of query ids ("qid" when not given), else the query of every row.
        group: instead of ``qid``, documents per query.
        features: with a frame, its columns of features; else all of numbers and categories.
        noise: P(given | true) as a matrix, NoiseProfile, NoiseEstimate or "uniform:0.2", for detectors that
            can use it.
        gold: rows of known true grade, in any form that ``estimate_noise`` takes: they give the noise, and
            their labels are settled.
        seed: for everything random.
        client: a ``distributed.Client``, whose workers then train the models that the detector needs.
        options: further arguments of the detector; of several, each takes those that it knows.

    Returns:
        A LabelIssues; its ``explain()`` gives reasons in words.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(30, 5, docs_per_query=20, seed=0)
    >>> noisy = cr.corrupt(data, rate=0.1, seed=1)
    >>> issues = cr.find_label_issues(noisy.data, noise=noisy.profile)
    >>> len(issues) == data.n_docs
    True
    """
    check_seed(seed)
    if isinstance(y, str) or (isinstance(y, list | tuple) and all(isinstance(m, str) for m in y)):
        method, y = y, None
    if not isinstance(method, str | list | tuple):
        raise invalid("method", "must name a detector or several", type(method).__name__)
    evidence = {"runs": runs, "texts": texts, "scores": scores, "judges": judges}
    if qrels is not None:
        if data is not None:
            raise invalid("find_label_issues", "takes either `data` or `qrels`, not both")
        data = pair_features(judgements_of(qrels), **evidence, n_jobs=options.get("n_jobs", 1))
        if "auto" in ([method] if isinstance(method, str) else method):
            options = {"queries_differ": "errors", "repeats": AUDIT_REPEATS, **options}
    elif given := [name for name, value in evidence.items() if value is not None]:
        raise invalid(" and ".join(f"{name}=" for name in given), "must go with qrels=", "none")
    source = Source.of(data, y, label=label, qid=qid, group=group, features=features)
    data = source.data if qrels is None else _judged(source.data)
    check_few_grades(data)
    methods = [method] if isinstance(method, str) else list(method)
    if not methods:
        raise invalid("method", "must name at least one detector", "none")
    accepted = {name: options_of(one_of("detector", name, DETECTORS)) for name in methods}
    every = [option for names in accepted.values() for option in names]
    subject = "detector " + " and ".join(repr(name) for name in methods)
    for option in options:
        one_of(f"option of {subject}", option, every)
    answers = None
    if gold is not None:
        if noise is not None:
            raise invalid("find_label_issues", "takes either `noise` or `gold`, not both")
        answers = gold_answers(gold, source.data)
        if answers is not None:
            noise = answers.estimate(source.data, seed=seed)
            options |= {"known": known_grades(source.data, answers)} if "known" in every else {}
    if noise is not None:
        if "noise" not in every:
            users = ", ".join(repr(name) for name in DETECTORS if "noise" in options_of(name))
            argument = "noise" if gold is None else "gold"
            raise invalid(argument, f"goes with the detectors {users}", f"method {method!r}")
        options["noise"] = noise
    for name in methods:
        for option, remedy in NEEDS.items():
            parameter = inspect.signature(DETECTORS[name]).parameters.get(option)
            if parameter and parameter.default is parameter.empty and option not in options:
                raise invalid(f"detector {name!r}", f"needs {option}=", "none", remedy=remedy)
    tables = {}
    for name in methods:
        own = {option: value for option, value in options.items() if option in accepted[name]}
        if name == "auto" and answers is not None:
            own["noise"] = answers  # it knows what to assume where they are few
        with on_cluster(client):
            tables[name] = DETECTORS[name](data, seed=seed, **own)
    if not BROUGHT & options.keys():
        unmeasured = [name for name in tables if name in FROM_FEATURES and tables[name].signal is None]
        if unmeasured:
            signal = feature_signal(data, seed=seed, n_jobs=options.get("n_jobs", 1))
            tables |= {name: tables[name].with_signal(signal) for name in unmeasured}
    table = tables[methods[0]] if isinstance(method, str) else combine(tables)
    return replace(table if data is source.data else _with_unjudged(table, source.data), source=source)


def _judged(data: RankingData) -> RankingData:
    if data.judged is None:
        return data
    if not data.judged.any():
        raise invalid("the judgements", "must hold at least one grade >= 0", "none")
    return data.select(data.judged)


def _with_unjudged(table: LabelIssues, data: RankingData) -> LabelIssues:
    """A table of the judged rows, with all others as rows that nobody doubts."""
    place = match_rows(table.row_id, data.row_ids)

    def every(values: Array, unjudged: Array | float) -> Array:
        return np.where(place >= 0, values[place], unjudged)

    return replace(
        table,
        row_id=data.row_ids,
        query_id=data.qid,
        given_label=data.y,
        doubt=every(table.doubt, 0.0),
        is_label_issue=every(table.is_label_issue, 0.0).astype(np.bool_),
        suggested_label=every(table.suggested_label, data.y),
        reasons={
            name: every(values, float(name == f"{PROBABILITY}0")) for name, values in table.reasons.items()
        },
    )


def options_of(method: str) -> list[str]:
    """The names of a detector's options."""
    return list(inspect.signature(DETECTORS[method]).parameters)[1:]


def combine(
    tables: Mapping[str, LabelIssues], how: str = "rank", *, weights: Mapping[str, float] | None = None
) -> LabelIssues:
    """One table from those of several detectors of the same rows; each keeps its reason column.

    A row is an issue when detectors of at least half of the weight call it one; the suggested grade is the
    one with the most weight among those. Tables are matched by row id, in the order of the first one.

    Args:
        tables: name -> table; the names become the reason columns.
        how: "rank" averages the places of a row in each table, from 0 (least doubted) to 1, ties shared;
            "mean" averages the doubts, which is right for tables whose doubts are probabilities.
        weights: name -> weight; 1 where not given.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((3, 1)), [0, 0, 1], group=[3])
    >>> one = LabelIssues.of(data, doubt=[0.1, 0.2, 0.9], is_label_issue=[False, False, True])
    >>> two = LabelIssues.of(data, doubt=[0.0, 0.4, 0.3], is_label_issue=[False, True, False])
    >>> combine({"one": one, "two": two}).doubt.tolist()
    [0.0, 0.75, 0.75]
    """
    one_of("way of combining", how, ("rank", "mean"))
    if not tables:
        raise invalid("tables", "must hold at least one table", "none")
    for name in weights or {}:
        one_of("table", name, tables)
    share = np.array([float((weights or {}).get(name, 1.0)) for name in tables])
    if not (np.isfinite(share).all() and (share >= 0).all() and share.sum() > 0):
        raise invalid("weights", "must be numbers >= 0, not all of them 0", share.tolist())
    share /= share.sum()
    first = next(iter(tables.values()))
    aligned = {name: _aligned(first, name, table) for name, table in tables.items()}
    doubts = [places(t.doubt) if how == "rank" else t.doubt for t in aligned.values()]
    doubt = sum(w * each for w, each in zip(share, doubts, strict=True))
    against = sum(w * t.is_label_issue for w, t in zip(share, aligned.values(), strict=True))
    issues = np.asarray(against) >= HALF
    reasons: dict[str, Any] = {name: t.doubt for name, t in aligned.items()}
    for t in aligned.values():
        # Probabilities of all grades belong together: those of one table only.
        has_probabilities = any(name.startswith(PROBABILITY) for name in reasons)
        for name, values in t.reasons.items():
            is_probability = name.startswith(PROBABILITY)
            # What a detector measured beside its doubt stays, unless it is the doubt under another name.
            keep = not has_probabilities if is_probability else not np.array_equal(values, t.doubt)
            if keep and name not in reasons:
                reasons[name] = values
    signals = [table.signal for table in aligned.values() if table.signal is not None]
    return replace(
        first,
        signal=max(signals, key=lambda signal: signal.low, default=None),
        doubt=np.clip(np.asarray(doubt), 0.0, 1.0),
        is_label_issue=issues,
        suggested_label=_suggested(list(aligned.values()), share, issues),
        reasons=reasons,
    )


def _aligned(first: LabelIssues, name: str, table: LabelIssues) -> LabelIssues:
    place = match_rows(table.row_id, first.row_id)
    if len(table) != len(first) or (place < 0).any():
        raise invalid(f"table {name!r}", "must have the rows of the first table", f"{len(table)} rows")
    aligned = table.select(place)
    differs = aligned.given_label != first.given_label
    if differs.any():
        row = int(np.argmax(differs))
        rule, at = f"must be that of the first table ({first.given_label[row]})", f"row {first.row_id[row]}"
        raise invalid(f"given_label of table {name!r}", rule, aligned.given_label[row], at=at)
    return aligned


def _suggested(tables: Sequence[LabelIssues], share: FloatArray, issues: BoolArray) -> Array:
    """The grade that detectors of the most weight suggest for an issue; the lower one of two alike."""
    y = tables[0].given_label
    highest = max(int(column.max(initial=0)) for column in (y, *(t.suggested_label for t in tables)))
    votes = np.zeros((len(y), highest + 1))
    for w, table in zip(share, tables, strict=True):
        votes[np.arange(len(y)), table.suggested_label] += w * (table.suggested_label != y)
    voted = issues & (votes.max(axis=1) > 0)
    return np.where(voted, votes.argmax(axis=1), y).astype(y.dtype)


NEEDS = {
    "noise": "A matrix, a text such as uniform:0.2, or an estimate (cleanrank gold read).",
    "clicks": "A ClickLog (clicks_from_log) or ClickEvidence.",
}

# Detectors that learn from features, and the options by which predictions are brought along.
FROM_FEATURES = ("auto", "posterior", "confident", "loss", "forgetting", "sour", "last-sour")
BROUGHT = {"probabilities", "fit_predict", "run", "model"}

DETECTORS: dict[str, Callable[..., LabelIssues]] = {
    "auto": find_auto,
    "posterior": find_posterior,
    "confident": find_confident,
    "loss": find_by_loss,
    "forgetting": find_forgotten,
    "contradictions": find_contradictions,
    "clicks": find_against_clicks,
    "sour": find_sour,
    "last-sour": find_last_sour,
    "isolation": find_isolated,
    "by-grade": find_by_grade,
}
