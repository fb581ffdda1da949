import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cleanrank as cr
from cleanrank.data.ratings import combined, gains_of_distribution, to_grades
from cleanrank.errors import BadFileError, InvalidInputError


def test_without_a_rule_small_whole_numbers_are_grades_and_no_more_is_said():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graded = to_grades([0, 3, 10, 1])
    assert graded.grades.tolist() == [0, 3, 10, 1]
    assert graded.gains is None


@pytest.mark.parametrize(
    ("ratings", "grades", "said"),
    [
        ([0, 100, 1, 10], [0, 3, 1, 2], "ratings 0, 1, 10, 100 are grades 0, 1, 2, 3"),
        ([0.5, 0.25], [1, 0], "ratings 0.25, 0.5 are grades 0, 1"),
        (
            np.arange(11) / 10,
            [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4],
            "0 to 1: grades 0 to 4 by cuts at 0.2, 0.4, 0.6, 0.8",
        ),
    ],
)
def test_without_a_rule_other_ratings_are_levels_or_even_classes_and_that_is_said(ratings, grades, said):
    with pytest.warns(UserWarning, match=said):
        graded = to_grades(ratings)
    assert graded.grades.tolist() == grades
    assert graded.gains.tolist() == list(ratings)


def test_rules_by_name_and_by_cuts():
    ratings = [0.0, 1.0, 2.0, 4.0]
    assert to_grades(ratings, "whole").grades.tolist() == [0, 1, 2, 4]
    assert to_grades(ratings, "levels").grades.tolist() == [0, 1, 2, 3]
    assert to_grades(ratings, "even:2").grades.tolist() == [0, 0, 1, 1]
    assert (
        to_grades(ratings, "1,4").grades.tolist()
        == to_grades(ratings, (1, 4)).grades.tolist()
        == [0, 1, 1, 2]
    )


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30), st.sampled_from(["levels", "even:3", (1, 5.5)]))
def test_no_rule_reverses_two_ratings(ratings, rule):
    grades = to_grades(ratings, rule).grades
    assert (np.diff(grades[np.argsort(ratings, kind="stable")]) >= 0).all()


@pytest.mark.parametrize(
    ("ratings", "rule", "said"),
    [
        ([-1, 2], None, "must be finite and not negative; got -1.0 at row 0"),
        ([1, np.nan], "levels", "got nan at row 1"),
        ([0.5], "whole", "must be whole numbers to be grades; got 0.5"),
        ([1], "even", "must be whole, levels, even:N or cuts; got 'even'"),
        ([1], "2,1", "must be rising numbers; got '2,1'"),
        ([1], [], "must be rising numbers"),
        ([1], "even:0", "must be whole, levels"),
    ],
)
def test_what_is_no_rating_or_no_rule_is_refused(ratings, rule, said):
    with pytest.raises(InvalidInputError, match=said):
        to_grades(ratings, rule)


def test_votes_become_a_majority_a_median_or_an_expected_gain():
    votes = [[2, 0, 1], [1, 1, 0], [0, 1, 3], [1, 0, 1]]
    assert combined(votes)[0].tolist() == [0, 0, 2, 0]
    assert combined(votes, "median")[0].tolist() == [0, 0, 2, 0]
    assert combined([[1, 1, 3]], "median")[0].tolist() == combined([[1, 1, 2]], "majority")[0].tolist() == [2]
    grades, gains = combined(votes, "expected")
    assert grades.tolist() == [0, 0, 2, 0]
    np.testing.assert_allclose(gains, [1, 0.5, 2.5, 1.5])


def soft_table():
    rng = np.random.default_rng(0)
    n = 400
    x = rng.normal(size=n)
    high = 1 / (1 + np.exp(-3 * x))
    shares = np.column_stack([(1 - high) ** 2, 2 * high * (1 - high), high**2])
    frame = pd.DataFrame(shares, columns=["p0", "p1", "p2"])
    return frame.assign(qid=np.arange(n) // 20, x=x, z=rng.normal(size=n)), shares


@pytest.mark.parametrize("name", ["soft.csv", "soft.parquet"])
def test_distributions_go_from_a_file_to_the_objective_and_the_measures(tmp_path, name):
    frame, shares = soft_table()
    frame.to_csv(tmp_path / name, index=False) if name.endswith("csv") else frame.to_parquet(tmp_path / name)
    data = cr.read_data(tmp_path / name, distribution=["p0", "p1", "p2"])
    assert data.feature_names == ("x", "z")
    np.testing.assert_allclose(data.gains, gains_of_distribution(shares))
    assert data.y.tolist() == np.argmax(shares, axis=1).tolist()
    settings = {"n_estimators": 20, "num_leaves": 7, "min_child_samples": 5}
    soft = cr.BoostedRanker(**settings).fit_data(data)
    hard = cr.BoostedRanker(**settings).fit_data(data.with_labels(data.y))
    assert soft.predict(data.X).tolist() != hard.predict(data.X).tolist()
    ideal = cr.evaluate(data.gains, data, ["ndcg@10"], order="data")["ndcg@10"]
    np.testing.assert_allclose(ideal, 1)
    # The DCG of one query by hand: gains over log2 of rank + 1.
    scores = soft.predict(data.X)
    order = np.argsort(-scores[:20], kind="stable")
    dcg = (data.gains[:20][order][:10] / np.log2(np.arange(2, 12))).sum()
    assert cr.evaluate(scores, data, ["dcg@10"], order="data")["dcg@10"][0] == pytest.approx(dcg)
    assert cr.evaluate(scores, data, ["ndcg@10"], order="data")["ndcg@10"].mean() > 0.9


def test_a_label_stands_beside_a_distribution(tmp_path):
    frame, _ = soft_table()
    frame.assign(label=2).to_csv(tmp_path / "a.csv", index=False)
    data = cr.read_data(tmp_path / "a.csv", distribution=["p0", "p1", "p2"])
    assert set(data.y.tolist()) == {2}
    assert data.gains.max() < 3


def test_ratings_in_a_table_become_grades_by_a_rule_and_train(tmp_path):
    frame, shares = soft_table()
    frame = frame[["qid", "x", "z"]].assign(rating=shares[:, 1] + 2 * shares[:, 2])
    frame.to_csv(tmp_path / "a.csv", index=False)
    data = cr.read_data(tmp_path / "a.csv", label="rating", ratings=[0.5, 1.5])
    np.testing.assert_allclose(data.gains, frame.rating)
    assert data.y.tolist() == ((frame.rating >= 0.5).astype(int) + (frame.rating >= 1.5)).tolist()
    scores = cr.BoostedRanker(n_estimators=10, min_child_samples=5).fit_data(data).predict(data.X)
    assert cr.evaluate(scores, data, ["ndcg@5"], order="data")["ndcg@5"].mean() > 0.9
    with pytest.raises(BadFileError, match="Give real-valued relevance as gains="):
        cr.read_data(tmp_path / "a.csv", label="rating")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"distribution": ["p0", "p1"]}, r"must have shares from 0 that sum to 1; got \[.*\] at row"),
        ({"distribution": ["p0", "p9"]}, "no column 'p9'"),
        ({"distribution": "p0"}, r"Give \['p0'\]"),
        ({"distribution": ["p0", "p1", "p2"], "gains": "x"}, "gains= must not be given with"),
        ({"label": "z", "ratings": "levels"}, "ratings must be finite and not negative"),
    ],
)
def test_what_is_no_distribution_is_refused(options, said):
    frame, _ = soft_table()
    with pytest.raises(cr.CleanrankError, match=said):
        cr.from_frame(frame, **options)
