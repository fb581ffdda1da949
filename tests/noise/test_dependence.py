"""Errors of judges: independent ones count one vote each, copies none."""

import json

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError
from cleanrank.noise.agreement import judgements
from cleanrank.noise.annotators import dawid_skene, from_repeated, judged_dependence
from cleanrank.noise.dependence import SHRUNK, effective_votes, error_dependence


def panel(seed, items=1000, judges=8, grades=4, rates=(0.1, 0.6)):
    """True grades and (items, judges) answers with errors of every judge's own."""
    rng = np.random.default_rng([seed, 3])
    truth = rng.choice(grades, items, p=rng.dirichlet(np.full(grades, 3.0)))
    said = np.empty((items, judges), dtype=np.int64)
    for a in range(judges):
        wrong = rng.random(items) < rng.uniform(*rates)
        pattern = rng.dirichlet(np.ones(grades), grades)
        errors = (rng.random(items)[:, None] > np.cumsum(pattern[truth], axis=1)).sum(axis=1)
        said[:, a] = np.where(wrong, np.minimum(errors, grades - 1), truth)
    return truth, said


def on_gold(truth, said, **options):
    item, judge = np.nonzero(said >= 0)
    names = [f"j{a}" for a in range(said.shape[1])]
    known = np.eye(int(truth.max()) + 1)[truth]
    return error_dependence(item, judge, said[item, judge], known, names, **options)


def alone(said):
    item, judge = np.nonzero(said >= 0)
    judged = judgements(item=item, annotator=judge, grade=said[item, judge], n_grades=4)
    return judged_dependence(judged, dawid_skene(judged))


@pytest.mark.parametrize("look", [on_gold, lambda truth, said: alone(said)])
def test_independent_judges_count_one_vote_each(look):
    votes = [look(*panel(seed, judges=31)).votes for seed in range(5)]
    assert min(votes) > 0.9 * 31
    assert max(votes) <= 31


def test_the_correlation_is_the_one_that_was_put_in():
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 4000)
    for rho in (0.1, 0.65):
        shared = rng.normal(size=(4000, 1))
        own = rng.normal(size=(4000, 6))
        spread = rng.uniform(0.3, 2, 6)
        said = truth[:, None] + spread * (np.sqrt(rho) * shared + np.sqrt(1 - rho) * own)
        item, judge = np.divmod(np.arange(24000), 6)
        seen = error_dependence(item, judge, said.ravel(), np.eye(3)[truth], [f"j{a}" for a in range(6)])
        low, high = seen.correlation_interval
        assert low < rho < high < low + 0.08
        assert seen.votes == pytest.approx(6 / (1 + 5 * rho), rel=0.06)
        assert all(pair.low < rho < pair.high for pair in seen.pairs)
        assert seen.is_high


def test_a_copy_adds_no_vote_and_is_named():
    truth, said = panel(1, judges=5)
    before = on_gold(truth, said)
    copied = on_gold(truth, np.column_stack([said, said[:, 2]]))
    assert not before.is_high
    assert copied.votes <= before.votes
    assert (copied.pairs[0].first, copied.pairs[0].second) == ("j2", "j5")
    assert copied.pairs[0].correlation > 0.98
    assert copied.is_high
    assert copied.reasons[1].startswith("j2 and j5 err alike (correlation 1.00")
    assert alone(np.column_stack([said, said[:, 2]])).is_high


def test_order_does_not_matter():
    truth, said = panel(2, items=300, judges=6)
    said[np.random.default_rng(0).random(said.shape) < 0.3] = -1
    query = np.arange(300) // 20
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(300), rng.permutation(6)
    first = on_gold(truth, said, cluster=query)
    second = on_gold(truth[rows], said[rows][:, columns], cluster=query[rows])
    for name in ("correlation", "correlation_interval", "votes", "votes_interval", "judgements"):
        assert getattr(first, name) == pytest.approx(getattr(second, name)), name


def test_pairs_are_those_of_plain_loops():
    truth, said = panel(3, items=120, judges=4)
    said[np.random.default_rng(0).random(said.shape) < 0.4] = -1
    z = np.full(said.shape, np.nan)
    for a in range(4):
        seen = said[:, a] >= 0
        z[seen, a] = said[seen, a]
        for g in range(4):
            rows, every = seen & (truth == g), (said >= 0) & (truth == g)[:, None]
            if every.any():
                prior = said[every].mean()
                z[rows, a] -= (said[rows, a].sum() + SHRUNK * prior) / (rows.sum() + SHRUNK)
    squares, count = np.nansum(z**2, axis=0), (said >= 0).sum(axis=0)
    z /= np.sqrt((squares + SHRUNK * squares.sum() / count.sum()) / (count + SHRUNK))
    products = [z[i, a] * z[i, b] for i in range(120) for a in range(4) for b in range(4) if a != b]
    result = on_gold(truth, said)
    assert result.correlation == pytest.approx(np.nanmean(products))
    for pair in result.pairs:
        a, b = int(pair.first[1]), int(pair.second[1])
        assert pair.items == np.isfinite(z[:, a] * z[:, b]).sum()
        assert pair.correlation == pytest.approx(np.nanmean(z[:, a] * z[:, b]))


@pytest.mark.parametrize(
    ("shape", "rates", "missing"),
    [((150, 6), (0.1, 0.6), 0.0), ((60, 8), (0.01, 0.1), 0.0), ((400, 30), (0.05, 0.4), 0.8)],
)
def test_independent_errors_raise_no_alarm(shape, rates, missing):
    alarms = []
    for seed in range(40):
        _, said = panel(seed, *shape, rates=rates)
        said[np.random.default_rng(seed).random(said.shape) < missing] = -1
        alarms.append(alone(said).is_high)
    assert sum(alarms) <= 2


def test_a_noise_estimate_under_dependence_is_not_trusted():
    _, said = panel(4, judges=6)
    table = {"item": np.repeat(np.arange(1000), 6), "annotator": np.tile(list("abcdef"), 1000)}
    free = cr.estimate_noise(judgements={**table, "grade": said.ravel()}, draws=50)
    assert free.trusted
    family = np.random.default_rng(0).integers(0, 4, (1000, 2))  # two groups that err alike
    together = np.random.default_rng(1).random((1000, 2)) < 0.3
    for a in range(6):
        said[:, a] = np.where(together[:, a % 2], family[:, a % 2], said[:, a])
    for model in ("dawid-skene", "pooled"):
        bound = from_repeated({**table, "grade": said.ravel()}, draws=50, model=model)
        assert not bound.trusted
        assert "count for" in bound.reasons[0]
        assert "as gold" in bound.reasons[-1]


def test_records_and_bad_input():
    truth, said = panel(5, items=50, judges=3)
    record = json.loads(json.dumps(on_gold(truth, said).to_json(), allow_nan=False))
    assert record["source"] == "gold"
    assert len(record["pairs"]) == 3
    assert effective_votes([4], 1.0) == 1.0
    with pytest.raises(InvalidInputError, match="two judgements of some item"):
        on_gold(truth, said[:, :1])


def test_a_grade_that_nobody_gave_is_no_true_grade():
    _, said = panel(6, items=400, judges=5)
    item, judge = np.divmod(np.arange(2000), 5)
    plain, raised = (
        dawid_skene({"item": item, "annotator": judge, "grade": said.ravel() + shift}) for shift in (0, 1)
    )
    assert raised.posterior[:, 0].max() < 1e-6
    assert raised.posterior[:, 1:] == pytest.approx(plain.posterior, abs=1e-3)


def test_known_grades_help_and_are_kept():
    truth, said = panel(7, items=600, judges=3, rates=(0.5, 0.7))
    item, judge = np.divmod(np.arange(1800), 3)
    table = {"item": item, "annotator": judge, "grade": said.ravel()}
    known = np.where(np.arange(600) < 300, truth, -1)
    fit = dawid_skene(table, known=known)
    assert (fit.posterior.argmax(axis=1) == truth)[:300].all()
    free = (dawid_skene(table).posterior.argmax(axis=1) == truth)[300:].mean()
    assert (fit.posterior.argmax(axis=1) == truth)[300:].mean() >= free


@pytest.mark.data
def test_model_judges_are_refused_and_web_workers_are_not(data_root):
    for name in ("dl19", "dl20"):
        table = pd.read_parquet(data_root / "trec-dl-judges" / f"{name}.labels.parquet")
        judges = [c for c in table if c.startswith("j:") and table[c].max() == 3]
        long = table.assign(item=np.arange(len(table))).melt("item", judges, "annotator", "grade").dropna()
        estimate = from_repeated(long, draws=50)
        assert not estimate.trusted
        assert any("err alike" in reason for reason in estimate.reasons)
    names = ["item", "annotator", "grade"]
    crowd = pd.read_csv(data_root / "crowd-judges" / "web_crowd.txt", sep="\t", header=None, names=names)
    assert from_repeated(crowd, draws=50).trusted
