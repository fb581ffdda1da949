"""``estimate_noise``: the noise matrix P(given | true), from whatever is known beside the labels."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy.typing as npt

from cleanrank.data.inputs import as_data
from cleanrank.errors import invalid
from cleanrank.noise.anchors import FitPredict, from_data
from cleanrank.noise.annotators import from_repeated
from cleanrank.noise.estimate import NoiseEstimate
from cleanrank.noise.gold import from_gold
from cleanrank.noise.gold_sheet import gold_answers
from cleanrank.rankers.grade_model import fit_grades
from cleanrank.validation import one_of

SOURCES: dict[str, Callable[..., NoiseEstimate]] = {
    "gold": from_gold,
    "judgements": from_repeated,
    "data": from_data,
}
# Arguments of these that are no options.
OWN = ("data", "row_ids", "true_grades", "shares", "table", "seed", "fit_predict")


def estimate_noise(
    data: Any = None,
    y: npt.ArrayLike | None = None,
    *,
    label: str | None = None,
    qid: Any = None,
    group: npt.ArrayLike | None = None,
    features: Sequence[str] | None = None,
    gold: Any = None,
    judgements: Any = None,
    fit_predict: FitPredict | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    **options: Any,
) -> NoiseEstimate:
    """The noise of the labels of ``data``: a matrix P(given | true) with intervals, or why there is none.

    Args:
        data: rows with given grades; not needed with ``judgements``. A RankingData, a frame with the columns
            ``label`` and ``qid``, or features with ``y``.
        y: with features as ``data``, the grades.
        label: with a frame, its column of grades; "label" when not given.
        qid: with a frame, its column of query ids ("qid" when not given), else the query of every row.
        group: instead of ``qid``, documents per query.
        features: with a frame, its columns of features; else all of numbers and categories.
        gold: rows whose true grade is known, the best source: about 100 rows drawn by ``sample_gold``, or
            true grades from elsewhere. A file (a filled-in sheet, a table, TREC qrels), a frame, Series or
            mapping by row id or by query and document, (row ids, grades), or a grade per row with -1 where it
            is not known; see ``gold_answers``.
        judgements: several judgements of the same items, by equally good judges: a frame or mapping with the
            columns item, grade and, if known, annotator.
        fit_predict: with the data alone, (train, rows) -> (N, C) probabilities of the given grades, in place
            of a small boosted model.
        seed: for everything random.
        n_jobs: threads of that model.
        options: of the source: level, draws, n_grades and assumed (gold), model and family (judgements), or
            probabilities, family, n_folds and strict (the data alone).

    Returns:
        A NoiseEstimate. From the data alone it is often refused: hard documents look like noise.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(30, 5, seed=1)
    >>> noisy = cr.corrupt(data, rate=0.2, seed=2).data
    >>> sheet = cr.sample_gold(noisy, 200, seed=3)
    >>> estimate = cr.estimate_noise(noisy, gold=(sheet.row_ids, data.y[sheet.rows]))
    >>> bool(abs(estimate.rate - 0.2) < 0.1)
    True
    """
    if gold is not None and judgements is not None:
        raise invalid("estimate_noise", "takes either `gold` or `judgements`, not both")
    source = "gold" if gold is not None else "judgements" if judgements is not None else "data"
    names = [name for name in inspect.signature(SOURCES[source]).parameters if name not in OWN]
    for name in options:
        one_of(f"option of an estimate from {source}", name, names)
    if fit_predict is not None and source != "data":
        raise invalid("fit_predict", "goes with the data alone", source)
    if judgements is not None:
        return from_repeated(judgements, seed=seed, **options)
    if data is None:
        raise invalid("data", f"must be given for an estimate from {source}")
    data = as_data(data, y, label=label, qid=qid, group=group, features=features)
    if gold is not None:
        answers = gold_answers(gold, data, n_grades=options.get("n_grades"))
        if answers is None:
            raise invalid("gold", "must hold at least one row of known grade", "none")
        return answers.estimate(data, seed=seed, **options)
    if fit_predict is None and "probabilities" not in options:
        C = max(data.n_grades, 2)
        fit_predict = partial(fit_grades, n_grades=C, seed=seed, n_jobs=n_jobs)
    return from_data(data, fit_predict=fit_predict, seed=seed, **options)
