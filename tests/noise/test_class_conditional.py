"""The test of class-conditional noise: exact under the null, and sharp on errors of each kind."""

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError
from cleanrank.noise.class_conditional import (
    FEWEST_ROWS,
    ClassConditionality,
    class_conditional_test,
)
from cleanrank.noise.estimate import NoiseEstimate
from cleanrank.noise.gold import from_gold

USUAL, RARE = (0.6, 0.2, 0.15, 0.05), (0.88, 0.08, 0.03, 0.01)
MATRIX = np.array(
    [[0.8, 0.12, 0.05, 0.03], [0.2, 0.6, 0.15, 0.05], [0.05, 0.2, 0.6, 0.15], [0, 0.1, 0.3, 0.6]]
)


def drawn(rows, chances, rng):
    return (rng.random(len(rows))[:, None] > np.cumsum(chances[rows], axis=1)).sum(axis=1).clip(max=3)


def judged(rng, n=4000, queries=40, shares=USUAL):
    """True grades whose shares differ by query, a rank and features that follow them."""
    query = rng.integers(0, queries, n)
    true = drawn(query, rng.dirichlet(np.array(shares) * 8, queries), rng)
    rank = 1 / (1 + rng.exponential(5, n) * np.exp(-true))
    return true, query, {"rank": rank, "features": true[:, None] + rng.normal(size=(n, 5))}


def outcome(rows, true, given, query, covariates, seed=0, **options):
    chosen = {name: values[rows] for name, values in covariates.items()}
    return class_conditional_test(true[rows], given[rows], query[rows], chosen, seed=seed, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "shares", "stratified"),
    [(300, USUAL, True), (60, RARE, False)],
)
def test_rejects_at_its_level_however_the_rows_are_chosen(n, shares, stratified):
    p_values = []
    for seed in range(600):
        rng = np.random.default_rng([15, seed])
        true, query, covariates = judged(rng, shares=shares)
        given = drawn(true, MATRIX, rng)
        data = cr.from_arrays(np.zeros((len(true), 0)), given, qid=np.zeros(len(true)))
        rows = cr.sample_gold(data, n, "stratified" if stratified else "random", seed=seed).rows
        p_values.append(outcome(rows, true, given, query, covariates, seed).p_value)
    assert 0.03 <= np.mean(np.array(p_values) <= 0.05) <= 0.07
    assert 0.45 <= np.mean(p_values) <= 0.55


@pytest.mark.parametrize("cause", ["query", "rank", "features"])
def test_names_the_cause_of_errors_that_depend_on_it(cause):
    rng = np.random.default_rng(3)
    true, query, covariates = judged(rng)
    lenient = {"query": query % 2 == 0, "rank": covariates["rank"] > 0.3}
    lenient["features"] = covariates["features"][:, 2] > true
    raised = np.minimum(true + (rng.random(len(true)) < np.where(lenient[cause], 0.7, 0.1)), 3)
    result = outcome(rng.choice(len(true), 300, replace=False), true, raised, query, covariates)
    by_cause = {each.name: each for each in result.causes}
    assert result.rejected()
    assert min(by_cause, key=lambda name: by_cause[name].p_value) == cause
    assert by_cause[cause].effect > 0.1
    if cause == "features":
        assert by_cause[cause].column == 2


def test_errors_of_both_directions_are_found():
    rng = np.random.default_rng(1)
    true, query = rng.integers(0, 2, 400), np.repeat(np.arange(20), 20)
    wrong = rng.random(400) < np.where(query < 10, 0.1, 0.4)
    assert class_conditional_test(true, true ^ wrong, query).p_value < 0.01


def test_the_p_value_is_that_of_all_exchanges_listed_one_by_one():
    """Against a slow version: every exchange within a true grade, one cause, one statistic at a time."""
    rng = np.random.default_rng(8)
    true, query = np.repeat([0, 1], 20), rng.integers(0, 4, 40)
    given = np.where(rng.random(40) < 0.1 + 0.2 * query, 1 - true, true)
    result = class_conditional_test(true, given, query, permutations=4000, seed=1)

    def statistics(answers):
        values = []
        for response in (answers, answers != true):
            residual = response - np.array([response[true == g].mean() for g in true])
            values.append(sum(residual[query == q].sum() ** 2 for q in range(4)))
        return values

    sampled = [statistics(given)]
    for _ in range(4000):
        exchanged = given.copy()
        for grade in (0, 1):
            exchanged[true == grade] = rng.permutation(given[true == grade])
        sampled.append(statistics(exchanged))
    scaled = np.array(sampled)
    scaled = ((scaled - scaled.mean(axis=0)) / scaled.std(axis=0)).sum(axis=1).round(9)
    assert result.p_value == pytest.approx(np.mean(scaled >= scaled[0]), abs=0.02)


def test_does_not_depend_on_the_order_of_rows_or_names_of_queries():
    rng = np.random.default_rng(5)
    true, query, covariates = judged(rng, 500)
    given = drawn(true, MATRIX, rng)
    by_row = outcome(np.arange(500), true, given, query, covariates, permutations=2000)
    mixed = outcome(rng.permutation(500), true, given, 7 * query + 1, covariates, permutations=2000)
    assert by_row.p_value == pytest.approx(mixed.p_value, abs=0.05)
    effects = zip(by_row.causes, mixed.causes, strict=True)
    assert all(a.effect == pytest.approx(b.effect) for a, b in effects)


@pytest.mark.parametrize(
    ("true", "given", "query", "words"),
    [
        ([0, 1] * 5, [0, 1] * 5, range(10), f"{FEWEST_ROWS} are the least"),
        ([0, 1] * 20, [0, 1] * 20, range(40), "all have the same given grade"),
        ([0, 1] * 20, [0, 1, 1, 1] * 10, [1] * 40, "neither queries nor covariates differ"),
    ],
)
def test_says_when_there_is_nothing_to_test(true, given, query, words):
    result = class_conditional_test(true, given, list(query))
    assert not result.checked
    assert not result.rejected()
    assert words in result.words
    assert result.to_json()["p_value"] is None


def test_refuses_what_does_not_fit():
    with pytest.raises(InvalidInputError, match="as many grades as true"):
        class_conditional_test([0, 1], [0])
    with pytest.raises(InvalidInputError, match=r"a value per row \(2\)"):
        class_conditional_test([0, 1], [0, 1], covariates={"rank": [1.0]})
    with pytest.raises(InvalidInputError, match="finite"):
        class_conditional_test([0, 1], [0, 1], covariates={"rank": [1.0, np.nan]})


def test_an_estimate_from_gold_rows_carries_the_test(tmp_path):
    data = cr.make_ranking(40, 5, seed=1)
    noisy = cr.corrupt(data, rate=0.3, seed=2).data
    sheet = cr.sample_gold(noisy, 300, seed=3)
    estimate = from_gold(noisy, sheet.row_ids, data.y[sheet.rows])
    assert estimate.class_conditional is not None
    assert [cause.name for cause in estimate.class_conditional.causes] == ["query", "features"]
    assert estimate.class_conditional.words in repr(estimate)
    estimate.save(tmp_path / "noise.json")
    assert NoiseEstimate.load(tmp_path / "noise.json").class_conditional == estimate.class_conditional
    by_doubt = from_gold(noisy, sheet.row_ids, data.y[sheet.rows], shares=np.full(300, 0.5))
    assert "drawn by doubt" in by_doubt.class_conditional.words


@pytest.mark.data
def test_rejects_for_the_judges_of_a_real_collection(data_root):
    """Most of the judges, 300 gold rows stratified by their grade, several draws each."""
    labels = pd.read_parquet(data_root / "trec-dl-judges" / "dl19.labels.parquet")
    features = pd.read_parquet(data_root / "trec-dl-judges" / "dl19.features.parquet")
    rank = features[[name for name in features if name.startswith("rr:")]].to_numpy().mean(axis=1)
    lexical = features.iloc[:, 2:34].to_numpy(np.float64)
    true, query = labels["nist"].to_numpy(), labels["qid"].astype(str).to_numpy()
    covariates, shares = {"rank": rank, "features": lexical}, {}
    for judge in [name for name in labels if name.startswith("j:") and set(labels[name]) == {0, 1, 2, 3}]:
        given = labels[judge].to_numpy().astype(np.int64)
        data = cr.from_arrays(np.zeros((len(given), 0)), given, qid=np.zeros(len(given)))
        draws = [cr.sample_gold(data, 300, seed=seed).rows for seed in range(20)]
        results = [outcome(rows, true, given, query, covariates) for rows in draws]
        shares[judge] = np.mean([result.rejected() for result in results])
    assert len(shares) >= 8
    assert min(shares.values()) >= 0.9


def test_a_result_reads_as_a_sentence():
    result = ClassConditionality(0.5, (), 30, 3)
    assert result.words.startswith(
        "Errors are compatible with errors that depend on the true grade alone (p = 0.5"
    )
