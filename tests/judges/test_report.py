"""The report on a judge: figures against oracles, what it refuses, and what it says cannot be claimed."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

import cleanrank as cr
from cleanrank.errors import InvalidInputError
from cleanrank.judges.report import JudgeReports
from cleanrank.metrics.evaluation import evaluate
from cleanrank.noise.agreement import krippendorff_alpha

MATRIX = np.array(
    [[0.8, 0.12, 0.05, 0.03], [0.2, 0.6, 0.15, 0.05], [0.05, 0.2, 0.6, 0.15], [0.0, 0.1, 0.3, 0.6]]
)


def collection(queries=30, documents=40, seed=0, systems=6, matrix=MATRIX):
    """Gold, judge and runs as frames; errors depend on the grade alone."""
    rng = np.random.default_rng(seed)
    n = queries * documents
    true = rng.choice(4, n, p=[0.6, 0.2, 0.15, 0.05])
    given = (rng.random(n)[:, None] > np.cumsum(matrix[true], axis=1)).sum(axis=1).clip(max=3)
    pairs = {
        "qid": np.repeat([f"q{i}" for i in range(queries)], documents),
        "docid": np.tile([f"d{i}" for i in range(documents)], queries),
    }
    noise = np.linspace(0.3, 2.0, systems)
    runs = {
        f"s{k}": pd.DataFrame({**pairs, "score": true + noise[k] * rng.normal(size=n)})
        for k in range(systems)
    }
    return pd.DataFrame({**pairs, "grade": true}), pd.DataFrame({**pairs, "grade": given}), runs


def test_agreement_is_that_of_scikit_learn():
    gold, judge, _ = collection()
    report = cr.judge_report(gold, judge)
    a, b = gold["grade"], judge["grade"]
    agreement = {name: span.value for name, span in report.labels.agreement.items()}
    assert agreement["share"] == pytest.approx((a == b).mean())
    for name, weights in (("kappa", None), ("linear", "linear"), ("quadratic", "quadratic")):
        assert agreement[name] == pytest.approx(cohen_kappa_score(a, b, weights=weights))
    counts = np.eye(4)[a] + np.eye(4)[b]
    assert agreement["alpha"] == pytest.approx(krippendorff_alpha(counts))
    assert report.labels.pnoise.value == pytest.approx(
        float(cr.pnoise(a.to_numpy(), b.to_numpy(), qid=gold["qid"]))
    )
    assert report.labels.leniency.value == pytest.approx((b - a).mean())
    for grade in range(4):
        assert report.labels.by_grade[grade].value == pytest.approx((b - a)[a == grade].mean())
        assert report.labels.by_judge_grade[grade].value == pytest.approx(a[b == grade].mean())
    np.testing.assert_allclose(report.labels.matrix, pd.crosstab(a, b, normalize="index"))


def test_intervals_hold_the_matrix_and_widen_with_queries_that_differ():
    held = []
    for seed in range(40):
        gold, judge, _ = collection(seed=seed, documents=25)
        labels = cr.judge_report(gold, judge, seed=seed).labels
        held.append((labels.matrix_low <= MATRIX) & (labels.matrix_high >= MATRIX))
    assert np.mean(held, axis=0)[:3].mean() >= 0.88  # a nominal .95 from 30 queries
    # A judge who turns wholly lenient in half of the queries: as many wrong pairs, a wider interval.
    gold, judge, _ = collection(documents=25)
    strict = judge["qid"].str[1:].astype(int) % 2 == 0
    judge["grade"] = np.where(strict, gold["grade"], np.minimum(gold["grade"] + 1, 3))
    clustered = cr.judge_report(gold, judge)
    rng = np.random.default_rng(0)
    judge["grade"] = np.minimum(gold["grade"] + (rng.random(len(gold)) < 0.5), 3)
    scattered = cr.judge_report(gold, judge)
    ends = [report.labels.leniency.high - report.labels.leniency.low for report in (clustered, scattered)]
    assert ends[0] > 3 * ends[1]
    assert clustered.class_conditional.rejected()
    assert clustered.labels.query_spread > 3 * scattered.labels.query_spread
    lenient = {each.query for each in clustered.labels.by_query if each.low > 0}
    assert lenient == {f"q{i}" for i in range(1, 30, 2)}


def test_systems_are_measured_as_evaluate_does():
    gold, judge, runs = collection()
    report = cr.judge_report(gold, judge, runs, measures=["ndcg@10", "map", "dcg@5:letor"])
    from cleanrank.judges.labels import as_labels, as_runs, pool_of

    pool = pool_of([as_labels(gold), as_labels(judge)], as_runs(runs))
    for order, measure in zip(report.orders, ["ndcg@10:trec", "map:trec", "dcg@5:letor"], strict=True):
        for k, means in enumerate((order.gold, order.judge)):
            data = pool.data(pool.grades[k])
            for scores, mean in zip(pool.scores, means, strict=True):
                assert evaluate(scores, data, measure, order="data").means == pytest.approx({measure: mean})
    json.dumps(report.to_json(), allow_nan=False)
    assert {v.question for v in report.verdicts} == {"train on", "order systems", "report levels"}
    assert all(verdict.answer in repr(report) for verdict in report.verdicts)


def test_a_perfect_judge_is_good_for_everything():
    gold, _, runs = collection()
    report = cr.judge_report(gold, gold, runs)
    assert [verdict.answer for verdict in report.verdicts] == ["yes", "yes", "yes"]
    assert report.limits == (
        "Whether errors depend on the true grade alone was not tested: rows of the same true grade all have "
        "the same given grade.",
    )
    assert report.orders[0].bias.value == 0


def test_a_judge_who_guesses_is_good_for_nothing():
    gold, judge, runs = collection()
    judge["grade"] = np.random.default_rng(2).permutation(judge["grade"])
    report = cr.judge_report(gold, judge, runs)
    assert [verdict.answer for verdict in report.verdicts] == ["no", "no", "no"]


def test_several_judges_stand_side_by_side_each_with_its_scale():
    gold, judge, _ = collection()
    binary = judge.assign(grade=(judge["grade"] > 1).astype(int))
    reports = cr.judge_report(gold, {"one": judge, "two": binary}, mapping={"two": {0: 0, 1: 2}})
    assert isinstance(reports, JudgeReports)
    assert list(reports) == ["one", "two"]
    assert reports["two"].labels.counts[:, 2].sum() == (binary["grade"] == 1).sum()
    alone = cr.judge_report(gold, judge)
    assert {**alone.to_json(), "judge": "one"} == reports.to_json()["judges"][0]


def test_features_are_looked_at_where_there_are_some(tmp_path):
    gold, judge, _ = collection()
    rng = np.random.default_rng(6)
    length = rng.normal(size=len(gold))
    judge["grade"] = np.minimum(gold["grade"] + (rng.random(len(gold)) < np.where(length > 0, 0.6, 0.1)), 3)
    table = gold[["qid", "docid"]].assign(text="words", noise=rng.normal(size=len(gold)), length=length)
    shuffled = table.sample(frac=0.9, random_state=1)
    shuffled.to_parquet(tmp_path / "features.parquet")
    for features in (shuffled, tmp_path / "features.parquet"):
        causes = {c.name: c for c in cr.judge_report(gold, judge, features=features).class_conditional.causes}
        assert list(causes) == ["query", "features"]
        assert causes["features"].p_value == 0.001
        assert causes["features"].column == 1
        assert causes["features"].effect > 0.3
    for wrong, words in (
        (table[["qid", "docid", "text"]], "must have columns of numbers"),
        (table.assign(qid="x"), "pairs in common with the labels"),
        (table[["qid", "length"]], "must have the columns qid and docid"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            cr.judge_report(gold, judge, features=wrong)


def test_rows_may_stand_in_any_order():
    gold, judge, runs = collection()
    mixed = cr.judge_report(
        gold.sample(frac=1, random_state=1), judge.sample(frac=1, random_state=2), runs
    ).to_json()
    assert mixed == cr.judge_report(gold, judge, runs).to_json()


def test_says_what_cannot_be_claimed():
    gold, judge, runs = collection()
    one = cr.judge_report(gold[gold["qid"] == "q3"], judge, runs)
    assert "Gold labels cover one query" in one.limits[0]
    assert any("29 queries of the judge have no gold" in limit for limit in one.limits)
    assert [verdict.answer for verdict in one.verdicts[1:]] == ["not checked", "not checked"]
    assert np.isnan(one.labels.matrix_low).all()
    json.dumps(one.to_json(), allow_nan=False)
    # Gold where the judge gave something: not a random part.
    chosen = gold[(judge["grade"] > 0) | (np.random.default_rng(3).random(len(gold)) < 0.1)]
    report = cr.judge_report(chosen, judge)
    assert report.coverage.not_random
    assert any("not a random part" in limit for limit in report.limits)
    at_random = cr.judge_report(gold.sample(300, random_state=1), judge)
    assert not at_random.coverage.not_random
    assert any("drawn at random is not known" in limit for limit in at_random.limits)
    half = cr.judge_report(gold, judge.iloc[::2], runs)
    assert any("no grade for 600 of 1,200 gold pairs" in limit for limit in half.limits)
    assert any("in their first 10" in limit for limit in half.limits)


def test_the_check_of_random_gold_errs_at_its_level():
    p_values = []
    gold, judge, _ = collection(queries=15, documents=20)
    for seed in range(200):
        p_values.append(cr.judge_report(gold.sample(60, random_state=seed), judge).coverage.p_random)
    assert np.mean(np.array(p_values) < 0.05) == pytest.approx(0.05, abs=0.04)


def test_pairs_drawn_with_known_probabilities_count_by_their_inverse():
    gold, judge, _ = collection(queries=40, documents=60)
    probability = np.where(judge["grade"] > 0, 0.8, 0.2)
    values = []
    for seed in range(30):
        drawn = np.random.default_rng([9, seed]).random(len(gold)) < probability
        sheet = gold.assign(probability=probability)[drawn]
        report = cr.judge_report(sheet, judge)
        plain = cr.judge_report(sheet.drop(columns="probability"), judge)
        values.append([each.labels.leniency.value for each in (report, plain)])
        assert any("1 / probability" in limit for limit in report.limits)
    truth = (judge["grade"] - gold["grade"]).mean()
    weighted, plain = np.mean(values, axis=0)
    assert weighted == pytest.approx(truth, abs=0.02)
    assert abs(plain - truth) > 0.05


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda judge: judge.assign(qid="x" + judge["qid"]), "must have pairs in common"),
        (lambda judge: judge.assign(grade=judge["grade"] % 2), r"mapping=\{0: 0, 1: 3\}"),
        (lambda judge: pd.concat([judge, judge.head(1)]), "'d0' twice"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(change, words):
    gold, judge, _ = collection()
    with pytest.raises(InvalidInputError, match=words):
        cr.judge_report(gold, change(judge))


@pytest.mark.data
def test_real_judges_of_a_collection(data_root):
    """TREC DL 2019: figures of one judge, and the order of systems as scipy has it."""
    labels = pd.read_parquet(data_root / "trec-dl-judges" / "dl19.labels.parquet")
    runs = pd.read_csv(
        data_root / "trec-dl-judges" / "dl19.runs_top100.txt.gz",
        sep=r"\s+",
        names=["qid", "q0", "docid", "rank", "score", "tag"],
        dtype={"qid": str, "docid": str},
    )
    pairs = labels[["qid", "docid"]].astype(str)
    judge = pairs.assign(grade=labels["j:umbrella_gpt-4_zeroshot"])
    systems = {str(tag): part for tag, part in runs.groupby("tag")}
    report = cr.judge_report(pairs.assign(grade=labels["nist"]), judge, systems)
    first = report.orders[0]
    assert len(systems) == len(first.systems) == 37
    from scipy.stats import kendalltau

    assert first.tau.value == pytest.approx(kendalltau(first.gold, first.judge).statistic)
    assert first.bias.low > 0
    assert report.class_conditional.rejected(0.001)
    rank = next(cause for cause in report.class_conditional.causes if cause.name == "rank")
    assert rank.effect > 0.1  # more lenient where systems rank a document high
    assert [verdict.answer for verdict in report.verdicts] == ["with care", "with care", "no"]


def test_a_judge_who_never_varies_is_nothing_to_train_on():
    gold = {f"q{q}": {f"d{d}": (q + d) % 3 for d in range(5)} for q in range(4)}
    judge = {q: dict.fromkeys(each, 2) for q, each in gold.items()}
    verdict = cr.judge_report(gold, judge).verdicts[0]
    assert (verdict.question, verdict.answer) == ("train on", "no")
    assert "same grade" in verdict.evidence


def test_a_run_without_labelled_documents_is_refused():
    gold = {f"q{q}": {f"d{d}": (q + d) % 3 for d in range(5)} for q in range(4)}
    run = {q: {f"{d}x": 1.0 for d in each} for q, each in gold.items()}
    with pytest.raises(InvalidInputError, match="must retrieve some documents that have labels"):
        cr.judge_report(gold, gold, runs=run)
