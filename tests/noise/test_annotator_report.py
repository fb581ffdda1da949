"""Six judges, four honest, one lenient, one guessing: found out, in long and wide tables, and corrected."""

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.noise.agreement import agreement, cohen_kappa, pair_agreements, with_majority
from cleanrank.noise.annotator_report import annotator_report
from cleanrank.noise.annotators import annotator_noise, from_repeated
from cleanrank.noise.judgement_table import read_judgements


@pytest.fixture(scope="module")
def truth():
    return np.random.default_rng(1).choice(3, 400, p=[0.5, 0.3, 0.2])


@pytest.fixture(scope="module")
def wide(truth):
    rng = np.random.default_rng(2)
    said = {}
    for name, rate in (("A", 0.08), ("B", 0.1), ("C", 0.1), ("D", 0.12)):
        wrong = rng.random(400) < rate
        said[name] = np.where(wrong, (truth + rng.integers(1, 3, 400)) % 3, truth)
    said["E"] = np.where(rng.random(400) < 0.35, np.minimum(truth + 1, 2), truth)
    said["F"] = np.where(rng.random(400) < 0.8, rng.integers(0, 3, 400), truth)
    keys = {"query": np.arange(400) // 20, "doc": [f"d{i % 20}" for i in range(400)]}
    return pd.DataFrame({**keys, **said})


@pytest.fixture(scope="module")
def long(wide):
    table = wide.melt(["query", "doc"], var_name="worker", value_name="label")
    return table.sample(frac=1, random_state=0).reset_index(drop=True)


@pytest.fixture(scope="module")
def report(wide):
    return annotator_report(wide, draws=300)


def test_who_is_unreliable_and_how(report, truth, wide):
    by_name = {each.name: each for each in report.annotators}
    assert [each.name for each in report.annotators[:2]] == ["F", "E"]
    assert by_name["F"].verdict.startswith(("unreliable", "noisier than most"))
    assert by_name["E"].verdict == "noisier than most, lenient"
    assert all(by_name[name].verdict == "" for name in "ABCD")
    for name, each in by_name.items():
        low, high = each.noise.rate_interval
        assert low - 0.03 <= (wide[name] != truth).mean() <= high + 0.03
    bias = (wide["E"] - truth).mean()
    assert by_name["E"].bias_interval[0] < bias < by_name["E"].bias_interval[1]


def test_the_consensus_beats_the_majority_and_knows_how_sure_it_is(report, truth):
    votes = report.judged.judgements.per_item
    assert (report.grades == truth).mean() >= (votes.argmax(axis=1) == truth).mean()
    assert report.certainty.mean() == pytest.approx((report.grades == truth).mean(), abs=0.02)
    frame = report.consensus()
    assert list(frame) == ["query_id", "doc_id", "grade", "probability", "judgements", "votes"]
    assert frame["votes"][0].count(":") == (votes[0] > 0).sum()
    first = report.to_judge_again(40)
    rows = report.order[:40]
    assert first["grade"].tolist() == report.grades[rows].tolist()
    assert (report.grades != truth)[rows].mean() > 3 * (report.grades != truth).mean()


def test_what_one_more_judgement_wins_comes_true(wide, truth):
    """Four judge all items; another judges the ones listed once more."""
    columns = {name: wide[name] for name in "ABCE"}
    report = annotator_report({"item": np.arange(400), **columns}, draws=100)
    plan = report.again(0.5, sizes=[60])[0]
    assert plan.cost == 30.0
    again = report.order[:60]
    more = {"item": again, "annotator": ["D"] * 60, "grade": wide["D"].to_numpy()[again]}
    table = pd.DataFrame({"item": np.arange(400), **columns}).melt(
        "item", var_name="annotator", value_name="grade"
    )
    extended = annotator_report(pd.concat([table, pd.DataFrame(more)]), draws=100)
    names = extended.judged.keys["item"].astype(int)
    wrong = int((report.grades != truth).sum()), int((extended.grades != truth[names]).sum())
    assert plan.wrong_before == pytest.approx(wrong[0], abs=8)
    assert plan.wrong_after < plan.wrong_before
    assert wrong[1] <= wrong[0]


def test_long_and_wide_tables_of_any_kind_are_one(tmp_path, wide, long, report):
    wide.to_excel(tmp_path / "wide.xlsx", index=False)
    long.to_csv(tmp_path / "long.csv", index=False, sep=";")
    item = {"item": (long["query"].astype(str) + "/" + long["doc"]).tolist()}
    others = {
        "long": long,
        "xlsx": tmp_path / "wide.xlsx",
        "csv": tmp_path / "long.csv",
        "by item": {**item, "annotator": long["worker"].tolist(), "grade": long["label"].tolist()},
    }
    key = report.consensus().set_index(["query_id", "doc_id"])["grade"]
    for name, table in others.items():
        judged = read_judgements(table)
        assert len(judged.judgements) == 2400, name
        assert agreement(judged.judgements).alpha == pytest.approx(report.agreement.alpha), name
        if name != "by item":
            found = pd.MultiIndex.from_arrays([judged.keys["query_id"], judged.keys["doc_id"]])
            assert set(found) == set(key.index), name


def test_what_is_no_grade_is_left_out_and_said(long):
    table = pd.concat([long, long.head(3)]).astype({"label": object})
    table.iloc[10:15, 3] = [-2, "", None, "n/a", -1]
    judged = read_judgements(table)
    assert len(judged.judgements) == 2395
    assert any("3 blank grades" in note for note in judged.notes)
    assert any("2 negative grades are no grades" in note for note in judged.notes)
    assert any("3 further judgements" in note for note in judged.notes)
    table.iloc[20, 3] = "good"
    with pytest.raises(CleanrankError, match="a grade must be a whole number; got 'good' at row 20"):
        read_judgements(table)


def test_scales_from_one_and_known_truths(wide, truth):
    table = wide.drop(columns=["query", "doc"]) + 1
    table["gold"] = np.where(np.arange(400) < 100, truth + 1, -1)
    report = annotator_report(table, draws=50)
    assert report.judged.lowest == 1
    assert set(report.grades.tolist()) == {1, 2, 3}
    checked = report.checked()
    assert checked["items"] == 100
    assert checked["consensus"] == (report.grades[:100] == truth[:100] + 1).mean()


def test_items_keep_the_order_of_a_table_with_gaps(wide, truth):
    gaps = np.random.default_rng(3).random((400, 6)).argsort(axis=1) >= 4
    table = wide[list("ABCDEF")].astype("Int64").mask(gaps)
    report = annotator_report({"item": [f"i{i}" for i in range(400)], **table}, draws=50)
    assert report.judged.keys["item"].tolist() == [f"i{i}" for i in range(400)]
    assert report.judged.judgements.per_item.sum(axis=1).tolist() == [4] * 400
    assert (report.grades == truth).mean() > 0.85
    assert not any("blank" in note for note in report.notes)


def test_two_judges_get_votes_and_a_reason(wide):
    report = annotator_report(wide[["query", "doc", "A", "B"]])
    assert not report.is_modelled
    assert "three or more named annotators" in report.notes[-1]
    assert report.again() == []
    assert report.annotators[0].noise is None
    assert report.grades.tolist() == np.minimum(wide["A"], wide["B"]).tolist()


def test_tables_that_are_none_are_refused(wide):
    with pytest.raises(CleanrankError, match=r"must have the columns item .* annotator and grade"):
        read_judgements({"text": ["a", "b"], "grade": [1, 2]})
    with pytest.raises(CleanrankError, match="has no column 'Z'"):
        read_judgements(wide, annotators=["A", "Z"])
    with pytest.raises(CleanrankError, match="must be item, query, doc"):
        read_judgements(wide, columns={"who": "A"})
    assert len(read_judgements(wide, annotators=["A", "E"]).judgements.annotators) == 2


def test_pairs_and_majorities_are_those_counted_one_by_one(wide):
    names = list("ABCDEF")
    table = wide[names].to_numpy()
    judged = read_judgements(wide).judgements
    for pair in pair_agreements(judged):
        a, b = wide[pair.first].to_numpy(), wide[pair.second].to_numpy()
        assert pair.items == 400
        assert pair.share == pytest.approx((a == b).mean())
        assert pair.kappa == pytest.approx(cohen_kappa(a, b))
    shares, kappas = with_majority(judged)
    for place, name in enumerate(names):
        own, majority = [], []
        for row in table:
            counts = np.bincount(np.delete(row, place), minlength=3)
            if (counts == counts.max()).sum() == 1:
                own.append(row[place])
                majority.append(counts.argmax())
        assert shares[place] == pytest.approx(np.mean(np.array(own) == majority)), name
        assert kappas[place] == pytest.approx(cohen_kappa(own, majority)), name


@pytest.mark.data
def test_web_search_workers(data_root):
    """Zhou et al. 2012: the consensus is right more often than the majority, less often than it expects."""
    folder = data_root / "crowd-judges"
    crowd = pd.read_csv(folder / "web_crowd.txt", sep="\t", header=None, names=["item", "worker", "label"])
    gold = pd.read_csv(folder / "web_truth.txt", sep="\t", header=None, index_col=0)[1]
    report = annotator_report(crowd.assign(truth=crowd["item"].map(gold).fillna(-1).astype(int)), draws=100)
    checked = report.checked()
    assert checked["items"] == 2653
    assert report.judged.lowest == 1
    assert checked["consensus"] > checked["majority"] + 0.03
    assert checked["expected"] > checked["consensus"]


def test_every_function_of_judgements_takes_such_tables(tmp_path, long, wide):
    """Also ``from_repeated("x.csv")``; grades keep their numbers, since the matrix goes with data."""
    long.to_csv(tmp_path / "x.csv", index=False)
    usual = long.assign(
        item=long["query"].astype(str) + long["doc"], annotator=long["worker"], grade=long["label"]
    )
    expected = from_repeated(usual, draws=50).matrix
    assert from_repeated(str(tmp_path / "x.csv"), draws=50).matrix == pytest.approx(expected, abs=0.02)
    assert cr.estimate_noise(judgements=wide, draws=50).matrix == pytest.approx(expected, abs=0.02)
    assert from_repeated(long.assign(label=long["label"] + 1), draws=50).n_grades == 4
    assert annotator_noise(long, draws=50).keys() == set("ABCDEF")
    with pytest.raises(CleanrankError, match="must be a table"):
        from_repeated(7)
