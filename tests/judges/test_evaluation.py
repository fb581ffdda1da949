"""evaluate_with_judge and compare_with_judge, from reading labels to intervals."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError, NonRandomGoldWarning, UnknownNameError

Q, LENGTH = 30, 20


def collection(seed=0, leniency=0.6):
    """A frame of pairs with gold grades, a lenient judge's grades and two systems' scores."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(Q), LENGTH)
    relevance = rng.normal(size=Q * LENGTH)
    lenient = leniency * np.abs(rng.normal(size=Q))[query]
    return pd.DataFrame(
        {
            "qid": [f"q{q:02d}" for q in query],
            "docid": [f"d{i}" for i in range(len(query))],
            "gold": np.digitize(relevance, [0.3, 1.0, 1.6]),
            "judge": np.digitize(relevance + lenient + 0.4 * rng.normal(size=len(query)), [0.3, 1.0, 1.6]),
            "good": relevance + 0.7 * rng.normal(size=len(query)),
            "poor": relevance + 2.0 * rng.normal(size=len(query)),
        }
    )


PAIRS = collection()


def labels(name, rows=slice(None)):
    return PAIRS.loc[rows, ["qid", "docid", name]].rename(columns={name: "grade"})


def run(name):
    return PAIRS[["qid", "docid", name]].rename(columns={name: "score"})


def whole(n, seed=0):
    chosen = np.random.default_rng(seed).permutation(PAIRS.qid.unique())[:n]
    return labels("gold", PAIRS.qid.isin(chosen))


def truth(name, measure="ndcg@10"):
    everything = cr.evaluate_with_judge(
        run(name), judge=labels("judge"), gold=labels("gold"), measure=measure
    )
    return everything.mean


def nested(frame, value):
    return {q: dict(zip(part.docid, part[value], strict=True)) for q, part in frame.groupby("qid")}


def test_gold_on_every_query_returns_the_gold_mean():
    estimate = cr.evaluate_with_judge(run("good"), judge=labels("judge"), gold=labels("gold"))
    data = cr.from_arrays(np.zeros((len(PAIRS), 0)), PAIRS.gold, qid=PAIRS.qid, doc_ids=PAIRS.docid)
    values = cr.evaluate(PAIRS.good.to_numpy(), data, "ndcg@10:trec")
    assert estimate.mean == estimate.low == estimate.high
    assert estimate.mean == pytest.approx(values["ndcg@10:trec"].mean())
    assert estimate.gold_only.mean == pytest.approx(estimate.mean)


def test_paths_frames_and_mappings_give_the_same_estimate(tmp_path):
    gold, judge, system = whole(12), labels("judge"), run("good")
    paths = []
    for name, frame in (("gold", gold), ("judge", judge)):
        paths.append(tmp_path / f"{name}.qrels")
        paths[-1].write_text("".join(f"{r.qid} 0 {r.docid} {r.grade}\n" for r in frame.itertuples()))
    paths.append(tmp_path / "good.run")
    paths[-1].write_text("".join(f"{r.qid} Q0 {r.docid} 0 {r.score!r} t\n" for r in system.itertuples()))
    first = cr.evaluate_with_judge(system, judge=judge, gold=gold, seed=0)
    for again in (
        cr.evaluate_with_judge(paths[2], judge=paths[1], gold=str(paths[0])),
        cr.evaluate_with_judge(
            nested(system, "score"), judge=nested(judge, "grade"), gold=nested(gold, "grade")
        ),
    ):
        assert (again.mean, again.low, again.high) == pytest.approx((first.mean, first.low, first.high))
        assert again.gold_only.high == pytest.approx(first.gold_only.high)


@pytest.mark.parametrize("target", ["these queries", "queries like these"])
@pytest.mark.parametrize("measure", ["ndcg@10", "dcg@5", "map", "mrr@10", "precision@5", "err@10"])
def test_whole_queries_serve_any_measure(measure, target):
    estimate = cr.evaluate_with_judge(
        run("good"), judge=labels("judge"), gold=whole(12), measure=measure, target=target
    )
    assert estimate.design == "queries"
    assert estimate.n_gold == 12
    assert estimate.low < estimate.mean <= estimate.high
    assert estimate.low <= truth("good", measure) <= estimate.high


@pytest.mark.parametrize("measure", ["ndcg@10", "dcg@10:lightgbm", "precision@5", "recall@10"])
@pytest.mark.parametrize("stated", [True, False])
def test_sampled_documents_serve_sums_and_ratios(measure, stated):
    rng = np.random.default_rng(5)
    sampled = rng.random(len(PAIRS)) < 0.4
    gold = labels("gold", sampled)
    gold = gold.assign(probability=0.4) if stated else gold
    estimate = cr.evaluate_with_judge(run("good"), judge=labels("judge"), gold=gold, measure=measure)
    assert estimate.design == ("documents" if stated else "stratified")
    assert estimate.n_gold == sampled.sum()
    assert abs(estimate.mean - truth("good", measure)) < estimate.width
    assert estimate.width < 0.5 * (estimate.mean or 1)


def test_scores_of_ranking_data_are_measured_by_their_own_convention():
    data = cr.from_arrays(np.zeros((len(PAIRS), 1)), PAIRS.judge, qid=PAIRS.qid)
    rows = np.flatnonzero(PAIRS.qid.isin(PAIRS.qid.unique()[:15]))
    estimate = cr.evaluate_with_judge(
        PAIRS.good.to_numpy(), judge=data, gold=(rows, PAIRS.gold.to_numpy()[rows]), measure="ndcg@10"
    )
    assert estimate.design == "queries"
    assert estimate.judge_only == pytest.approx(cr.evaluate(PAIRS.good.to_numpy(), data).means["ndcg@10"])


def test_differences_are_paired_and_equal_rankings_are_known_to_be_equal():
    runs = {"poor": run("poor"), "good": run("good"), "copy": run("poor")}
    estimates = cr.compare_with_judge(runs, judge=labels("judge"), gold=whole(12))
    assert list(estimates) == ["good", "copy"]
    assert estimates["good"].system == "good - poor"
    assert estimates["good"].low > 0
    assert estimates["good"].p_value < 0.05
    copy = estimates["copy"]
    assert (copy.mean, copy.low, copy.high, copy.p_value) == (0, 0, 0, 1)
    level = cr.evaluate_with_judge(runs, judge=labels("judge"), gold=whole(12))
    assert estimates["good"].width < level["good"].width + level["poor"].width


def test_a_difference_without_gold_where_it_matters_is_only_bounded():
    gold = whole(5)
    changed = run("poor")
    first = ~changed.qid.isin(gold.qid) & (changed.qid == sorted(set(PAIRS.qid) - set(gold.qid))[0])
    changed.loc[first, "score"] *= -1
    estimate = cr.compare_with_judge(
        {"poor": run("poor"), "other": changed}, judge=labels("judge"), gold=gold
    )
    assert (estimate.low, estimate.high) == (pytest.approx(-1 / Q), pytest.approx(1 / Q))


def test_the_bootstrap_follows_the_seed_and_is_close_to_student():
    arguments = {"judge": labels("judge"), "gold": whole(15)}
    first, again, other = (
        cr.evaluate_with_judge(run("good"), interval="bootstrap-t", seed=seed, **arguments)
        for seed in (0, 0, 1)
    )
    student = cr.evaluate_with_judge(run("good"), **arguments)
    assert first == again
    assert first.low != other.low
    assert first.width == pytest.approx(student.width, rel=0.4)


def test_unjudged_documents_follow_the_policy():
    judge = labels("judge")
    left_out = PAIRS.docid.isin(PAIRS.sort_values("good").groupby("qid").tail(1).docid)
    gold = whole(15)
    few = {"judge": judge[~left_out], "gold": gold[~gold.docid.isin(PAIRS.docid[left_out])]}
    zero = cr.evaluate_with_judge(run("good"), **few)
    drop = cr.evaluate_with_judge(run("good"), unjudged="drop", **few)
    assert zero.mean < drop.mean
    assert f"{Q} retrieved documents that nobody judged count as not relevant" in zero.notes
    assert f"{Q} retrieved documents that nobody judged are taken out of the rankings" in drop.notes


def test_gold_that_was_not_drawn_at_random_is_said():
    best = PAIRS.sort_values("good").groupby("qid").tail(4).index
    with pytest.warns(NonRandomGoldWarning, match="lie at other ranks"):
        estimate = cr.evaluate_with_judge(
            run("good"), judge=labels("judge"), gold=labels("gold", best), measure="dcg@10"
        )
    assert "claim nothing about the rest" in " ".join(estimate.notes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cr.evaluate_with_judge(run("good"), judge=labels("judge"), gold=whole(15))


def test_a_sheet_drawn_for_another_system_is_not_taken_without_a_warning():
    reverse = run("good").assign(score=lambda frame: -frame.score)
    sheet = cr.sample_for_evaluation(
        {"good": run("good")}, labels("judge"), budget=120, measure="dcg@5"
    ).frame
    sheet["true_grade"] = PAIRS.set_index("docid").gold.loc[sheet.docid].to_numpy()
    arguments = {"judge": labels("judge"), "gold": sheet, "measure": "dcg@5"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cr.evaluate_with_judge(run("good"), **arguments)
    with pytest.warns(NonRandomGoldWarning, match="do not fit the ranking"):
        cr.evaluate_with_judge(reverse, **arguments)


def test_gold_of_ranking_data_must_have_a_grade_for_every_row():
    data = cr.from_arrays(np.zeros((len(PAIRS), 1)), PAIRS.judge, qid=PAIRS.qid)
    with pytest.raises(InvalidInputError, match="as many row ids as grades; got 30 and 20"):
        cr.evaluate_with_judge(PAIRS.good.to_numpy(), judge=data, gold=(np.arange(30), np.ones(20)))


def test_results_are_plain_values_and_words():
    estimate = cr.evaluate_with_judge(run("good"), judge=labels("judge"), gold=whole(15))
    record = json.loads(json.dumps(estimate.to_json()))
    assert record["gold_only"]["mean"] == estimate.gold_only.mean
    assert record["width_ratio"] == pytest.approx(estimate.width_ratio)
    assert "15 gold queries count as" in repr(estimate)
    wider = cr.evaluate_with_judge(
        run("good"), judge=labels("judge"), gold=whole(15), target="queries like these"
    )
    assert wider.effective_gold == pytest.approx(15 / wider.width_ratio**2, rel=0.1)
    # Of a finite number of queries, n gold ones leave 1/n - 1/N unknown.
    left = (1 / 15 - 1 / estimate.n_queries) * estimate.width_ratio**2 + 1 / estimate.n_queries
    assert estimate.effective_gold == pytest.approx(1 / left, rel=0.1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gold": {"q00": {"d0": 1}}}, "must be at least 2 for an interval; got 1"),
        ({"gold": {"q00": {"x": 1, "y": 3}}}, "must have pairs in common"),
        (
            {"judge": labels("judge").assign(grade=lambda f: (f.grade > 1).astype(int))},
            "mapping={0: 0, 1: 3}",
        ),
        ({"gold": pd.concat([whole(3), whole(3)])}, "once only"),
        ({"measure": "auc"}, "auc:empty=zero"),
        (
            {"judge": labels("judge").assign(grade=lambda f: f.grade * 33)},
            "mapping={0: 0, 17: 1, 50: 2, 83: 3}",
        ),
        ({"judge": labels("judge").assign(grade=lambda f: f.grade * 10**12)}, "and at most 1,000"),
        ({"mapping": [0, 1]}, "mapping of the judge must be as {"),
        ({"runs": run("good").assign(docid=lambda f: f.docid + "x")}, "documents that have labels"),
        (
            {
                "judge": labels("judge", PAIRS.qid == "q00"),
                "gold": labels("gold", slice(0, 9)),
                "measure": "dcg@10",
                "target": "queries like these",
            },
            "queries must be at least 2",
        ),
        ({"measure": ["ndcg@10", "map"]}, "must be one measure"),
        ({"level": 95}, "level must be a number > 0 and < 1; got 95"),
        ({"design": "documents"}, "must state the probability of every pair"),
        ({"runs": {"q99": {"d1": 1.0}}}, "must share topics with the judgements"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(change, words):
    arguments = {"runs": run("good"), "judge": labels("judge"), "gold": whole(10)} | change
    with pytest.raises(InvalidInputError) as error:
        cr.evaluate_with_judge(arguments.pop("runs"), **arguments)
    assert words in str(error.value)


def test_unknown_names_are_refused():
    arguments = {"judge": labels("judge"), "gold": whole(10)}
    for bad in ({"target": "all"}, {"design": "x"}, {"interval": "normal"}, {"unjudged": "x"}):
        with pytest.raises(UnknownNameError):
            cr.evaluate_with_judge(run("good"), **arguments, **bad)
    with pytest.raises(InvalidInputError, match="two systems or more"):
        cr.compare_with_judge(run("good"), **arguments)
    with pytest.raises(UnknownNameError, match="baseline"):
        cr.compare_with_judge({"a": run("good"), "b": run("poor")}, baseline="c", **arguments)


def test_two_gold_queries_are_no_certainty():
    for interval in ("t", "bootstrap-t"):
        estimate = cr.evaluate_with_judge(
            run("good"), judge=labels("judge"), gold=whole(2), interval=interval
        )
        assert estimate.high - estimate.low > 0.3


def test_a_judge_who_was_right_so_far_may_still_be_wrong():
    gold = labels("judge", PAIRS.qid.isin(whole(15).qid))
    estimate = cr.evaluate_with_judge(run("good"), judge=labels("judge"), gold=gold)
    assert estimate.mean == pytest.approx(estimate.judge_only)
    assert estimate.low < estimate.mean < estimate.high
    assert estimate.effective_gold <= Q


@pytest.mark.parametrize("design", ["queries", "documents"])
def test_a_judge_who_always_says_0_adds_nothing(design):
    gold = whole(15) if design == "queries" else labels("gold", PAIRS.index[::7])
    judge = labels("judge").assign(grade=0)
    estimate = cr.evaluate_with_judge(run("good"), judge=judge, gold=gold, measure="dcg@10")
    assert estimate.judge_only == 0
    assert estimate.mean == pytest.approx(estimate.gold_only.mean, rel=0.1)


def test_queries_without_results_are_said():
    system = run("good")
    estimate = cr.evaluate_with_judge(system[system.qid < "q20"], judge=labels("judge"), gold=whole(15))
    assert "'system' retrieved nothing for 10 of 30 queries" in estimate.notes


def test_rows_of_a_sheet_without_an_answer_do_not_narrow_the_interval():
    runs = {"good": run("good"), "poor": run("poor")}
    sheet = cr.sample_for_evaluation(runs, labels("judge"), budget=120, measure="dcg@10").frame
    grade = dict(zip(zip(PAIRS.qid, PAIRS.docid, strict=True), PAIRS.gold, strict=True))
    sheet["true_grade"] = [float(grade[pair]) for pair in zip(sheet.qid, sheet.docid, strict=True)]
    full = cr.evaluate_with_judge(run("good"), judge=labels("judge"), gold=sheet, measure="dcg@10")
    sheet.loc[np.random.default_rng(0).permutation(120)[:60], "true_grade"] = np.nan
    with pytest.warns(NonRandomGoldWarning, match="60 of 120 drawn pairs have no answer"):
        half = cr.evaluate_with_judge(run("good"), judge=labels("judge"), gold=sheet, measure="dcg@10")
    assert half.width > full.width
    assert half.low < truth("good", "dcg@10") < half.high


def test_probabilities_of_1_beside_documents_that_were_not_drawn_are_said():
    gold = labels("gold", PAIRS.index[::7]).assign(probability=1.0)
    with pytest.warns(NonRandomGoldWarning, match="though probabilities of 1"):
        cr.evaluate_with_judge(run("good"), judge=labels("judge"), gold=gold, measure="dcg@10")
    everything = labels("gold").assign(probability=1.0)
    estimate = cr.evaluate_with_judge(run("good"), judge=labels("judge"), gold=everything, measure="dcg@10")
    assert estimate.mean == pytest.approx(truth("good", "dcg@10"))
