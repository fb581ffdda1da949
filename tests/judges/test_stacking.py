"""Candidates of a panel: folds by query, means over groups, and who is chosen."""

import numpy as np
import pytest

from cleanrank.judges.answers import read_answers
from cleanrank.judges.stacking import candidates, choose, gold_rows, standardised


def rows_of(n=60, queries=12, seed=0):
    rng = np.random.default_rng(seed)
    return gold_rows(
        np.arange(n), rng.integers(0, 3, n), np.ones(n), np.repeat(np.arange(queries), n // queries), 0
    )


def test_queries_stay_together_and_the_order_of_rows_does_not_matter():
    gold = rows_of()
    assert gold.by_query
    assert all(len(np.unique(gold.fold[gold.group == g])) == 1 for g in np.unique(gold.group))
    mixed = np.random.default_rng(1).permutation(60)
    again = gold_rows(mixed, gold.y[mixed], np.ones(60), np.repeat(np.arange(12), 5), 0)
    assert (again.y == gold.y).all()
    assert (again.fold == gold.fold).all()
    few = gold_rows(np.arange(6), np.arange(6) % 2, np.ones(6), np.zeros(6, int), 0)
    assert not few.by_query


def test_the_error_of_a_mean_is_that_over_queries():
    gold = rows_of()
    by_query = np.random.default_rng(2).normal(size=12)
    mean, error = gold.mean(np.repeat(by_query, 5))
    assert mean == pytest.approx(by_query.mean())
    assert error == pytest.approx(by_query.std(ddof=1) / np.sqrt(12))


def test_a_perfect_judge_is_chosen_over_guesses():
    rng = np.random.default_rng(3)
    truth = {f"q{q}": {f"d{d}": int(rng.integers(0, 3)) for d in range(8)} for q in range(12)}

    def guess():
        return {q: {d: int(rng.integers(0, 3)) for d in docs} for q, docs in truth.items()}

    answers = read_answers({"perfect": truth, "x": guess(), "y": guess()}, None)
    y = np.array([truth[q][d] for q, d in zip(answers.qid, answers.docid, strict=True)])
    gold = gold_rows(np.arange(96), y, np.ones(96), answers.query, 0)
    best, single = choose(candidates(answers, gold, True, 0), gold)
    assert single.name == "perfect"
    assert single.accuracy == 1
    assert best.accuracy > 0.95


def test_columns_are_standardised_and_missing_answers_are_means():
    columns = standardised(np.array([[0.0, 1.0], [2.0, np.nan], [4.0, 3.0]]))
    assert np.isfinite(columns).all()
    assert columns[:, 0].mean() == pytest.approx(0)
