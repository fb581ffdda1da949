"""Several judges together: laws, real judges, and what is refused."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError, UnknownNameError, UntrustedNoiseWarning


def table(seed=0, queries=20, documents=20, rates=(0.3, 0.4, 0.5, 0.5), grades=4):
    """A frame of pairs with their truth and a column for every judge; errors are independent."""
    rng = np.random.default_rng([seed, 8])
    n = queries * documents
    frame = pd.DataFrame(
        {
            "qid": np.repeat([f"q{q:02}" for q in range(queries)], documents),
            "docid": [f"d{d}" for d in range(n)],
            "truth": rng.choice(grades, n, p=rng.dirichlet(np.full(grades, 5.0))),
        }
    )
    for a, rate in enumerate(rates):
        wrong = rng.random(n) < rate
        frame[f"j{a}"] = np.where(wrong, rng.integers(0, grades, n), frame["truth"])
    return frame


def long(frame):
    judges = [column for column in frame if column.startswith("j")]
    return frame.melt(["qid", "docid"], judges, "judge", "grade").dropna()


def gold_of(frame, n=150, seed=0):
    return frame.sample(n, random_state=seed).rename(columns={"truth": "grade"})[["qid", "docid", "grade"]]


def accuracy(panel, frame, gold=None):
    """On pairs that are no gold rows."""
    both = frame.merge(panel.grades, on=["qid", "docid"])
    if gold is not None:
        both = both[~both["docid"].isin(gold["docid"])]
    return float((both["grade"] == both["truth"]).mean())


def test_independent_judges_together_beat_the_best_alone():
    frame = table(queries=40)
    gold = gold_of(frame)
    panel = cr.combine_judges(long(frame), gold=gold)
    assert panel.method in ("stacking", "dawid-skene")
    assert accuracy(panel, frame, gold) > (frame["j0"] == frame["truth"]).mean() + 0.03
    assert panel.effective_votes == pytest.approx(4, rel=0.1)
    assert panel.probabilities.sum(axis=1) == pytest.approx(np.ones(len(frame)))
    assert (panel.grade == panel.probabilities.argmax(axis=1)).all()
    assert (panel.expected_low <= panel.expected).mean() > 0.99
    assert (panel.expected <= panel.expected_high).mean() > 0.99
    columns = ["qid", "docid", "grade", "p0", "p1", "p2", "p3", "expected", "low", "high"]
    assert list(panel.grades) == columns


def test_the_accuracy_is_that_on_other_rows():
    apart = []
    for seed in range(8):
        frame = table(seed, queries=40)
        gold = gold_of(frame, 150, seed)
        panel = cr.combine_judges(long(frame), gold=gold, seed=seed)
        low, high = panel.accuracy_interval
        assert 0.03 < high - low < 0.2
        apart.append(panel.accuracy - accuracy(panel, frame, gold))
    assert abs(np.mean(apart)) < 0.03


def test_thirty_one_independent_judges_count_thirty_one_votes():
    frame = table(rates=np.linspace(0.2, 0.7, 31), queries=40)
    for gold in (gold_of(frame, 400), None):
        assert cr.combine_judges(long(frame), gold=gold).effective_votes == pytest.approx(31, rel=0.1)


def test_a_perfect_judge_wins_and_a_copy_adds_nothing():
    frame = table(rates=(0.0, 0.5, 0.5, 0.6))
    gold = gold_of(frame)
    panel = cr.combine_judges(long(frame), gold=gold)
    assert accuracy(panel, frame, gold) == 1.0
    assert panel.best_judge == ("j0", 1.0)
    honest = table(rates=(0.3, 0.4, 0.5))
    before = cr.combine_judges(long(honest), gold=gold_of(honest))
    after = cr.combine_judges(long(honest.assign(j3=honest["j2"])), gold=gold_of(honest))
    assert after.effective_votes <= before.effective_votes + 0.05
    assert after.dependence.is_high
    assert not before.dependence.is_high


def test_judges_that_err_together_are_not_trusted_beyond_the_best():
    """Seven copies of a bad judge outvote a good one; gold rows tell them apart."""
    frame = table(rates=(0.2, 0.6), queries=30)
    for a in range(2, 8):
        frame[f"j{a}"] = frame["j1"]
    gold = gold_of(frame)
    panel = cr.combine_judges(long(frame), gold=gold)
    good = frame[~frame["docid"].isin(gold["docid"])]
    assert accuracy(panel, frame, gold) >= (good["j0"] == good["truth"]).mean() - 0.02
    assert panel.effective_votes < 2


def test_without_gold_two_groups_that_err_alike_get_votes_and_a_warning():
    frame = table(rates=(0.4,) * 6, queries=40)
    rng = np.random.default_rng(0)
    for group in range(2):
        together, shared = rng.random(800) < 0.3, rng.integers(0, 4, 800)
        for a in range(group, 6, 2):
            frame[f"j{a}"] = np.where(together, shared, frame[f"j{a}"])
    with pytest.warns(UntrustedNoiseWarning, match="count for"):
        votes = cr.combine_judges(long(frame))
    assert votes.method == "majority"
    assert np.isnan(votes.accuracy)
    assert np.isnan(votes.grades["low"]).all()


def test_without_gold_independent_judges_get_dawid_and_skene():
    frame = table(queries=40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        panel = cr.combine_judges(long(frame))
    assert panel.method == "dawid-skene"
    assert accuracy(panel, frame) > (frame["j0"] == frame["truth"]).mean()
    assert "upper bound" in panel.notes[0]
    two = cr.combine_judges(long(frame[["qid", "docid", "truth", "j0", "j1"]]))
    assert two.method == "majority"


def test_order_and_form_do_not_matter(tmp_path):
    frame = table()
    gold = gold_of(frame)
    judged = long(frame)
    judged.to_csv(tmp_path / "judged.csv", index=False)
    judges = {
        name: {q: dict(zip(part["docid"], part[name], strict=True)) for q, part in frame.groupby("qid")}
        for name in ("j3", "j1", "j0", "j2")
    }
    first = cr.combine_judges(judged, gold=gold)
    shuffled = judged.sample(frac=1, random_state=3)
    for other in (shuffled, tmp_path / "judged.csv", judges):
        panel = cr.combine_judges(other, gold=gold.sample(frac=1, random_state=1))
        pd.testing.assert_frame_equal(panel.grades, first.grades)
        assert panel.dependence.votes == pytest.approx(first.dependence.votes)
    again = cr.combine_judges(judged, gold=gold, seed=1)
    assert not again.grades["low"].equals(first.grades["low"])


def test_scales_of_their_own_need_gold_or_a_mapping():
    frame = table(rates=(), queries=40)
    rng = np.random.default_rng(1)
    for a in range(4):
        frame[f"j{a}"] = (frame["truth"] + rng.normal(0, 0.8, 800)).round().clip(0, 3).astype(int)
    frame["j1"] = (frame["j1"] >= 2).astype(int)
    frame["j2"] = frame["j2"] / 7
    gold = gold_of(frame)
    panel = cr.combine_judges(long(frame), gold=gold)
    assert panel.method == "stacking"
    assert accuracy(panel, frame, gold) > (frame["j0"] == frame["truth"]).mean()
    with pytest.raises(InvalidInputError, match=r"one scale; got 'j2' answered 0\.\d+\. Say which grade"):
        cr.combine_judges(long(frame))
    with pytest.raises(InvalidInputError, match=r"'j1' answers 0 to 1, others to 3"):
        cr.combine_judges(long(frame.drop(columns="j2")))
    mapping = {"j1": {0: 0, 1: 3}, "j2": {0: 0, 0.1: 1, 0.25: 2, 0.4: 3}}
    assert cr.combine_judges(long(frame), mapping=mapping).method in ("dawid-skene", "majority")
    with pytest.raises(UnknownNameError, match="j9"):
        cr.combine_judges(long(frame), mapping={"j9": {0: 0}})
    with pytest.raises(InvalidInputError, match="must hold at least one answer"):
        cr.combine_judges(long(frame)[:0])


def test_missing_answers_and_few_judges_per_pair():
    frame = table(rates=(0.3,) * 12, queries=40)
    judges = [column for column in frame if column.startswith("j")]
    some = np.random.default_rng(0).random((len(frame), 12)).argsort(axis=1) >= 4
    frame[judges] = frame[judges].astype(float).mask(some)
    gold = gold_of(frame)
    panel = cr.combine_judges(long(frame), gold=gold)
    assert panel.method == "dawid-skene"
    assert panel.best_judge is None
    assert panel.effective_votes == pytest.approx(4, rel=0.1)
    assert accuracy(panel, frame, gold) > 0.8
    frame[judges] += 1
    raised = cr.combine_judges(long(frame), gold=gold.assign(grade=gold["grade"] + 1))
    assert raised.probabilities[:, 0].max() == 0
    # Smoothing goes to one grade more.
    assert raised.probabilities[:, 1:] == pytest.approx(panel.probabilities, abs=5e-3)


def test_ids_keep_their_kind():
    frame = table().assign(docid=np.arange(400))
    gold = gold_of(frame)
    panel = cr.combine_judges(long(frame), gold=gold)
    assert panel.grades["docid"].dtype.kind == "i"
    assert len(frame.merge(panel.grades, on=["qid", "docid"])) == 400


def test_what_gold_cannot_tell_is_said():
    frame = table(queries=30)
    gold = gold_of(frame)
    more = pd.concat([gold, pd.DataFrame({"qid": ["q00", "zz"], "docid": ["no", "no"], "grade": [1, 2]})])
    assert (
        "2 gold pairs that no judge answered were left out" in cr.combine_judges(long(frame), gold=more).notes
    )
    one = frame[frame["qid"] == "q00"].rename(columns={"truth": "grade"})
    panel = cr.combine_judges(long(frame), gold=one)
    assert panel.notes[0].startswith("gold rows come from 1 query: cross-validation is over rows")
    alike = frame.assign(j1=frame["j0"], j2=frame["j0"], j3=frame["j0"])
    assert cr.combine_judges(long(alike), gold=one).effective_votes < 1.5
    hard = frame[frame["j0"] + frame["j1"] >= 5].rename(columns={"truth": "grade"})
    assert any("not drawn at random" in note for note in cr.combine_judges(long(frame), gold=hard).notes)
    drawn = cr.combine_judges(long(frame), gold=hard.assign(probability=0.5)).notes
    assert not any("not drawn at random" in note for note in drawn)
    random = [cr.combine_judges(long(frame), gold=gold_of(frame, seed=s)).notes for s in range(5)]
    assert not any("not drawn" in note for notes in random for note in notes)


def test_probabilities_of_drawing_weigh_the_gold_rows():
    """Rows of grade 0 are drawn ten times less often: unweighted, they would look rare."""
    frame = table(queries=60, rates=(0.6, 0.6))
    chance = np.where(frame["j0"] == 0, 0.05, 0.5)
    drawn = np.random.default_rng(0).random(len(frame)) < chance
    gold = frame.assign(probability=chance)[drawn].rename(columns={"truth": "grade"})
    panel = cr.combine_judges(long(frame), gold=gold)
    assert panel.probabilities.mean(axis=0) == pytest.approx(
        np.bincount(frame["truth"]) / len(frame), abs=0.12
    )
    assert accuracy(panel, frame) == pytest.approx(panel.accuracy, abs=0.12)


def test_more_gold_rows_narrow_the_intervals():
    frame = table(queries=60)
    widths = [
        (panel.expected_high - panel.expected_low).mean()
        for panel in (cr.combine_judges(long(frame), gold=gold_of(frame, n)) for n in (60, 600))
    ]
    assert widths[1] < 0.6 * widths[0]


def test_record_and_words():
    frame = table()
    panel = cr.combine_judges(long(frame), gold=gold_of(frame))
    record = json.loads(json.dumps(panel.to_json(), allow_nan=False))
    assert record["gold_rows"] == 150
    assert record["dependence"]["source"] == "gold"
    assert record["judges"][0]["name"] == "j0"
    assert "best single judge" in repr(panel)
    assert "votes" in repr(panel)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda judged, gold: (judged[judged["judge"] == "j0"], gold), "two or more judges; got 1"),
        (
            lambda judged, gold: (judged.drop(columns="judge"), gold),
            "must have the columns qid, docid, judge",
        ),
        (lambda judged, gold: (pd.concat([judged, judged[:1]]), gold), "once only; got query"),
        (lambda judged, gold: (judged.assign(judge=""), gold), "judges must have names"),
        (lambda judged, gold: (judged, gold[:5]), "10 pairs or more that a judge answered; got 5"),
        (lambda judged, gold: (judged, gold.assign(docid="no" + gold["docid"])), "must have pairs in common"),
        (lambda judged, gold: (judged, gold.assign(grade=1)), "two different grades; got 1 alone"),
        (lambda judged, gold: (judged, gold.assign(grade=0.5)), "must be whole numbers"),
        (lambda judged, gold: (judged, pd.concat([gold, gold[:1]])), "once only"),
        (lambda judged, gold: (7, gold), "must be a path, a frame"),
    ],
)
def test_bad_input_is_refused(change, words):
    frame = table(queries=5)
    judged, gold = change(long(frame), gold_of(frame, 40))
    with pytest.raises(InvalidInputError) as error:
        cr.combine_judges(judged, gold=gold)
    assert words in str(error.value)


@pytest.mark.data
@pytest.mark.parametrize("name", ["dl19", "dl20"])
def test_models_together_are_at_least_as_accurate_as_the_best_alone(data_root, name):
    frame = pd.read_parquet(data_root / "trec-dl-judges" / f"{name}.labels.parquet")
    frame = frame.rename(columns={"nist": "truth"})
    judges = [column for column in frame if column.startswith("j:")]
    judged, differences = long(frame), []
    for seed in range(4):
        gold = gold_of(frame, 200, seed)
        rows = frame["docid"].isin(gold["docid"]) & frame["qid"].isin(gold["qid"])
        best = (frame[rows][judges].eq(frame[rows]["truth"], axis=0)).mean().idxmax()
        panel = cr.combine_judges(judged, gold=gold, seed=seed)
        assert panel.effective_votes < 3
        others = frame[~rows].merge(panel.grades, on=["qid", "docid"])
        differences.append(
            (others["grade"] == others["truth"]).mean() - (others[best] == others["truth"]).mean()
        )
    assert min(differences) > -0.005
    assert np.mean(differences) > 0.01


@pytest.mark.data
def test_workers_together_are_better_than_dawid_and_skene(data_root):
    folder = data_root / "crowd-judges"
    crowd = pd.read_csv(folder / "web_crowd.txt", sep="\t", header=None, names=["docid", "judge", "grade"])
    truth = pd.read_csv(folder / "web_truth.txt", sep="\t", header=None, names=["docid", "truth"])
    crowd["qid"], truth["qid"] = crowd["docid"], truth["docid"]
    gold = gold_of(truth, 300)
    panel = cr.combine_judges(crowd, gold=gold)
    alone = cr.combine_judges(crowd)
    assert alone.method == "dawid-skene"
    assert accuracy(alone, truth) > 0.8
    assert accuracy(panel, truth, gold) > accuracy(alone, truth, gold)
    assert panel.effective_votes > 4
