"""What to judge next: unbiased estimates, sequences that extend each other, sheets that come back."""

import json

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.judges.labels import as_labels, as_runs, pool_of
from cleanrank.judges.sampling import sample_for_evaluation
from cleanrank.judges.sampling_sizes import document_sizes, gains_of, influence, uncertainty
from cleanrank.metrics.measure import Measure

GRADES = 4


def collection(n_queries=6, n_documents=20, n_systems=3, seed=0):
    """Truth, a judge who is more lenient with documents that systems like, and the systems."""
    rng = np.random.default_rng(seed)
    relevance = rng.normal(size=(n_queries, n_documents))
    truth = np.digitize(relevance, [0.5, 1.0, 1.6])
    scores = relevance + rng.normal(size=(n_systems, n_queries, n_documents))
    judged = np.digitize(
        relevance + 0.4 * scores.mean(0) + 0.5 * rng.normal(size=relevance.shape), [0.5, 1, 1.6]
    )
    qid = np.repeat([f"q{q}" for q in range(n_queries)], n_documents)
    docid = np.tile([f"d{d:02}" for d in range(n_documents)], n_queries)
    frame = pd.DataFrame({"qid": qid, "docid": docid})
    runs = {f"s{k}": frame.assign(score=each.ravel()) for k, each in enumerate(scores)}
    return frame.assign(grade=truth.ravel()), frame.assign(grade=judged.ravel()), runs


def filled(sample, truth):
    """The sheet, filled in by somebody who knows."""
    known = truth.set_index(["qid", "docid"])["grade"]
    pairs = pd.MultiIndex.from_frame(sample.frame[["qid", "docid"]])
    return sample.frame.assign(true_grade=known.reindex(pairs).to_numpy())


def test_estimates_are_unbiased_also_when_the_sample_grew_by_batches():
    truth, judge, runs = collection()
    measure = Measure.parse("dcg@5:gain=exp")
    pool = pool_of([as_labels(judge), as_labels(truth)], as_runs(runs))
    weight = influence(pool, measure)
    gain, judged = gains_of(measure, pool.grades[1]), gains_of(measure, pool.grades[0])
    rows = {pair: i for i, pair in enumerate(zip(pool.query_ids[pool.query], pool.doc_ids, strict=True))}
    weighted, estimates, variances = [], [], []
    for seed in range(400):
        sample = sample_for_evaluation(runs, judge, 15, measure=measure, seed=seed)
        sample = sample_for_evaluation(
            runs, judge, 30, measure=measure, seed=seed, gold=filled(sample, truth)
        )
        row = np.array([rows[pair] for pair in zip(sample.frame["qid"], sample.frame["docid"], strict=True)])
        inverse = np.zeros(len(gain))
        inverse[row] = 1 / sample.frame["probability"]
        weighted.append(inverse)
        residual = (gain - judged) * inverse
        estimates.append(weight @ (judged + residual))
        variances.append(weight**2 @ (residual**2 * np.where(inverse > 0, 1 - 1 / np.maximum(inverse, 1), 0)))
    counts = (weight != 0).any(0)
    weighted = np.array(weighted)[:, counts]
    # 1 / probability where drawn, else 0, has mean 1 for every document.
    error = np.maximum(weighted.std(0), 0.02) / np.sqrt(len(weighted))
    assert np.abs((weighted.mean(0) - 1) / error).max() < 4.5
    estimates = np.array(estimates)
    assert np.abs((estimates.mean(0) - weight @ gain) / (estimates.std(0) / 20)).max() < 3.5
    # Terms are uncorrelated: the variance of Poisson sampling is unbiased.
    assert np.mean(variances, axis=0) == pytest.approx(estimates.var(0), rel=0.25)
    # The plain sample of the documents that count has a larger error.
    n_counted = counts.sum()
    plain = n_counted**2 / 30 * (1 - 30 / n_counted) * ((weight * (gain - judged))[:, counts]).var(1)
    assert (estimates.var(0) < 0.8 * plain).all()


@pytest.mark.parametrize("unit", ["documents", "queries"])
def test_a_larger_budget_continues_a_smaller_one_in_any_order_of_rows(unit):
    truth, judge, runs = collection()
    options = {"unit": unit, "measure": "ndcg@10", "seed": 3}
    small = sample_for_evaluation(runs, judge, 3, **options)
    large = sample_for_evaluation(runs, judge, 5, **options)
    assert set(small.frame["docid"] + small.frame["qid"]) <= set(large.frame["docid"] + large.frame["qid"])
    shuffled = {name: runs[name].sample(frac=1, random_state=1) for name in reversed(runs)}
    judge_again = judge.sample(frac=1, random_state=2)
    gold = filled(small, truth).sample(frac=1, random_state=3)
    grown = sample_for_evaluation(shuffled, judge_again, 5, gold=gold, **options)
    key = ["qid", "docid"]
    columns = [*key, "draw", "probability"] if unit == "documents" else [*key, "draw"]
    one, other = (each.frame.sort_values(key)[columns].reset_index(drop=True) for each in (large, grown))
    pd.testing.assert_frame_equal(one, other)
    assert len(grown.new) == len(large) - len(small)
    assert (grown.new["batch"] == 2).all()
    assert grown.frame["true_grade"].notna().sum() == len(small)
    if unit == "queries":
        assert small.frame["qid"].nunique() == 3
        # Whole queries have no probabilities: gold with some counts as a sample of documents.
        assert "probability" not in small.frame
    else:
        assert len(large) == 5


def test_queries_are_drawn_alike():
    _, judge, runs = collection()
    drawn = [
        set(sample_for_evaluation(runs, judge, 2, unit="queries", seed=s).frame["qid"]) for s in range(300)
    ]
    counts = np.array([sum(f"q{q}" in each for each in drawn) for q in range(6)])
    assert np.abs(counts - 100).max() < 4 * np.sqrt(300 * 1 / 3 * 2 / 3)


def test_whole_queries_hold_all_that_the_measure_counts():
    _, judge, runs = collection()
    pool = pool_of([as_labels(judge)], as_runs(runs))
    top = {
        (q, d)
        for k in range(len(runs))
        for q in range(pool.n_queries)
        for d in np.arange(*pool.indptr[q : q + 2])[
            np.argsort(-pool.scores[k, slice(*pool.indptr[q : q + 2])])[:5]
        ]
    }
    relevant = {(q, d) for d, q in enumerate(pool.query) if pool.grades[0, d] > 0}
    for measure, rows in (("dcg@5", top), ("ndcg@5", top | relevant)):
        sample = sample_for_evaluation(runs, judge, 6, unit="queries", measure=measure)
        expected = {(str(pool.query_ids[q]), str(pool.doc_ids[d])) for q, d in rows}
        assert set(zip(sample.frame["qid"], sample.frame["docid"], strict=True)) == expected
    # A query for which nothing is retrieved is judged by what the judge graded.
    less = {name: run[run["qid"] != "q1"] for name, run in runs.items()}
    sample = sample_for_evaluation(less, judge, 6, unit="queries")
    assert (sample.frame["qid"] == "q1").sum() == 20


@pytest.mark.parametrize("measure", ["dcg@5:gain=exp", "ndcg@5", "ndcg:gain=exp"])
def test_influence_is_the_derivative_of_the_measure(measure):
    _, judge, runs = collection(n_queries=3, n_documents=12)
    pool = pool_of([as_labels(judge)], as_runs(runs))
    parsed = Measure.parse(measure, "trec")
    gain = gains_of(parsed, pool.grades[0])
    step = 1e-6
    data = pool.data(pool.grades[0])

    def means(gains):
        again = cr.from_arrays(data.X, data.y, qid=data.qid, gains=gains, doc_ids=data.doc_ids)
        return np.array([cr.evaluate(s, again, [parsed]).means[str(parsed)] for s in pool.scores])

    # Documents of one grade share their ideal ranks, so they are moved together.
    tied = pool.query * GRADES + pool.grades[0]
    for group in np.unique(tied):
        moved = (means(gain + step * (tied == group)) - means(gain)) / step
        assert moved == pytest.approx(influence(pool, parsed)[:, tied == group].sum(1), abs=1e-5)


def test_precision_and_recall_weigh_relevant_documents():
    judge = {"q": {"a": 1, "b": 0, "c": 1, "d": 1}}
    pool = pool_of([as_labels(judge)], as_runs({"s": {"q": {"a": 3, "b": 2, "d": 1}}}))
    place = {d: i for i, d in enumerate(pool.doc_ids)}
    rows = [place[d] for d in "abcd"]
    assert influence(pool, Measure.parse("precision@2", "trec"))[0, rows].tolist() == [0.5, 0.5, 0, 0]
    recall = influence(pool, Measure.parse("recall@2", "trec"))[0, rows]  # 1 of 3
    assert recall == pytest.approx([2 / 9, 2 / 9, -1 / 9, -1 / 9])


def test_sizes_follow_weight_and_uncertainty_and_leave_nothing_out():
    truth, judge, runs = collection()
    pool = pool_of([as_labels(judge)], as_runs(runs))
    for name in ("dcg@5", "ndcg@5", "recall@5", "precision@5"):
        measure = Measure.parse(name, "trec")
        weight = influence(pool, measure)
        size, _ = document_sizes(pool, measure)
        assert size[size > 0].mean() == pytest.approx(1)
        assert size[size > 0].min() >= 0.15
        assert ((size > 0) == ((weight != 0).any(0) if name[0] in "dp" else True)).all()
    # The difference of two systems: documents on which they agree are of no use.
    two = pool_of([as_labels(judge)], as_runs({name: runs[name] for name in ("s0", "s1")}))
    weight = influence(two, Measure.parse("dcg@5", "trec"))
    size, _ = document_sizes(two, Measure.parse("dcg@5", "trec"), difference=True)
    assert ((size > 0) == (weight[0] != weight[1])).all()
    # A pilot that always agrees with the judge leaves less uncertainty, one that never does more.
    measure = Measure.parse("dcg@5", "trec")
    every = np.ones(len(pool.doc_ids), bool)
    plain = uncertainty(pool, measure, every)
    agreeing = uncertainty(pool, measure, every, np.tile(np.arange(GRADES), (2, 25)))
    assert (agreeing[:GRADES] < 0.6 * plain[:GRADES]).all()
    extremes = np.array([np.repeat(np.arange(GRADES), 50), np.tile([0, GRADES - 1], 100)])
    assert (uncertainty(pool, measure, every, extremes)[:GRADES] > plain[:GRADES]).all()
    pilot = truth.iloc[::3]
    changed = sample_for_evaluation(runs, judge, 20, pilot=pilot).frame["probability"].to_numpy()
    assert not np.array_equal(changed, sample_for_evaluation(runs, judge, 20).frame["probability"].to_numpy())


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx"])
def test_a_sheet_is_filled_in_read_back_and_continued(tmp_path, suffix):
    truth, judge, runs = collection()
    texts = judge.assign(query="what is " + judge["qid"], text="passage " + judge["docid"], second=1)
    sample = sample_for_evaluation(runs, texts, 20)
    path = tmp_path / f"sheet{suffix}"
    sample.write(path)
    from cleanrank.data.spreadsheet import read_frame, write_frame

    sheet = read_frame(path)
    names = ["qid", "docid", "query", "text", "batch", "draw", "probability", "true_grade"]
    assert list(sheet.columns) == names
    assert (sheet["text"] == "passage " + sheet["docid"]).all()
    with pytest.raises(InvalidInputError, match="at least one grade"):
        as_labels(path)
    answers = filled(sample, truth)
    answers.loc[answers.index[:2], "true_grade"] = np.nan
    write_frame(answers, path)
    with pytest.warns(UserWarning, match="2 of 20 drawn pairs have no answer"):
        labels = as_labels(path)
    assert len(labels) == 18
    # 18 of 20 were answered, and speak for all that were drawn.
    assert labels.probability == pytest.approx(0.9 * answers["probability"].to_numpy()[2:])
    with pytest.warns(UserWarning, match="2 rows of gold have no answer and are asked for again"):
        grown = sample_for_evaluation(runs, texts, 30, gold=path)
    assert len(grown) == 30
    assert len(grown.new) == 12
    assert "2 rows of gold" in grown.notes[0]
    if suffix == ".csv":
        # As spreadsheets of many countries save it.
        grown.frame.to_csv(path, sep=";", decimal=",", index=False, float_format="%.12g")
        with pytest.warns(UserWarning, match="12 rows of gold"):
            again = sample_for_evaluation(runs, texts, 30, gold=path)
        assert again.frame["true_grade"].tolist() == pytest.approx(
            grown.frame["true_grade"].tolist(), nan_ok=True
        )
        assert as_labels(path).probability.min() < 1
    record = json.loads(json.dumps(grown.to_json(), allow_nan=False))
    assert record["to_judge"] == 12
    assert sum(row["true_grade"] is None for row in record["rows"]) == 12


def test_the_query_text_is_there_also_for_documents_that_the_judge_did_not_see():
    judge = pd.DataFrame({"qid": "q", "docid": ["a", "c"], "query": "cats", "text": ["x", "y"]})
    sample = sample_for_evaluation({"q": {"a": 2, "b": 1}}, judge.assign(grade=[1, 0]), 1, unit="queries")
    texts = sample.frame.set_index("docid")
    assert texts["query"].tolist() == ["cats", "cats"]
    assert texts.loc[["a", "b"], "text"].tolist() == ["x", ""]


def test_documents_without_a_grade_of_the_judge_are_counted_but_not_drawn():
    sample = sample_for_evaluation({"q": {"a": 2, "b": 1}}, {"q": {"a": 1}}, 5)
    assert sample.frame["docid"].tolist() == ["a"]
    assert "1 document that systems rank within the cut-off has no grade of the judge" in sample.notes[0]


def test_a_budget_beyond_the_pool_takes_all_with_certainty():
    judge = {"q": {"a": 2, "b": 0, "c": 1}}
    sample = sample_for_evaluation({"q": {"a": 3, "b": 2}}, judge, 50)
    assert sorted(sample.frame["docid"]) == ["a", "b"]
    assert (sample.frame["probability"] == 1).all()
    assert sample.notes == ("there are 2 documents to judge in all, fewer than the budget of 50",)
    assert repr(sample) == "EvaluationSample(2 of 2 documents for levels in dcg@10:trec: 2 rows, 2 to judge)"


def test_bad_input_says_what_to_do():
    truth, judge, runs = collection()
    sample = sample_for_evaluation(runs, judge, 20)
    gold = filled(sample, truth)
    with pytest.raises(InvalidInputError, match=r"same runs, judge, measure, unit, pilot and seed; got draw"):
        sample_for_evaluation(runs, judge, 30, gold=gold, seed=1)
    with pytest.raises(
        InvalidInputError, match=r"query 'q\d', document 'd\d\d'\. Labels from elsewhere go into"
    ):
        sample_for_evaluation(runs, judge, 30, gold=gold, measure="precision@10")
    with pytest.raises(InvalidInputError, match="columns draw and batch"):
        sample_for_evaluation(runs, judge, 30, gold=truth)
    with pytest.raises(InvalidInputError, match=r"must count the documents of gold in, 20 of them; got 10"):
        sample_for_evaluation(runs, judge, 10, gold=gold)
    with pytest.raises(InvalidInputError, match="must hold at least one system"):
        sample_for_evaluation({}, judge)
    with pytest.raises(InvalidInputError, match=r"where documents are drawn; got map:trec\. unit='queries'"):
        sample_for_evaluation(runs, judge, measure="map")
    with pytest.raises(UnknownNameError, match="unknown measure"):
        sample_for_evaluation(runs, judge, measure="dgc@10")
    with pytest.raises(InvalidInputError, match="must have graded documents that systems rank"):
        sample_for_evaluation({"q": {"x": 1.0}}, {"q": {"a": 1}})
    with pytest.raises(InvalidInputError, match="must share topics"):
        sample_for_evaluation({"p": {"x": 1.0}}, {"q": {"a": 1}})
    with pytest.raises(UnknownNameError, match="unknown system 's9'"):
        sample_for_evaluation(runs, judge, compare=("s0", "s9"))
    with pytest.raises(InvalidInputError, match=r"two different systems; got 's0', 's0'\. Name"):
        sample_for_evaluation(runs, judge, compare=("s0", "s0"))
    with pytest.raises(InvalidInputError, match="must rank documents differently"):
        sample_for_evaluation({"a": runs["s0"], "b": runs["s0"]}, judge, compare=("a", "b"))
    with pytest.raises(InvalidInputError, match="budget must be an integer >= 1"):
        sample_for_evaluation(runs, judge, 0)
    with pytest.raises(UnknownNameError, match="ending of a sheet"):
        sample.write("sheet.txt")
