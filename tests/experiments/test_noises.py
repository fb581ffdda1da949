from dataclasses import replace

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError, InvalidInputError
from cleanrank.experiments.cells import score
from cleanrank.experiments.methods import METHODS, Judge, Method, trees
from cleanrank.experiments.noises import (
    INJECTED,
    NOISES,
    SESSIONS,
    add_noise,
    flip_clicks,
    noise_profile,
)
from cleanrank.noise.dependent import DEPENDENT
from cleanrank.noise.profiles import PROFILES, make_profile
from tests.experiments.toys import cell_of

FIVE = [name for name in INJECTED if name != "class-conditional"]  # that one is for two grades


def made(seed, n_queries=60):
    return cr.make_ranking(n_queries, 6, docs_per_query=15, seed=seed)


@pytest.fixture(scope="module")
def clean():
    return made(1), made(2, 20)


@pytest.mark.parametrize("name", FIVE)
def test_labels_stay_on_the_scale_and_the_clean_data_stay_clean(clean, name):
    before = [data.y.copy() for data in clean]
    given = add_noise(name, 0.3, clean, ("train", "validation"), seed=4)
    for data, noisy, y in zip(clean, given, before, strict=True):
        assert (noisy.y >= 0).all()
        assert noisy.y.max() <= 4
        assert (noisy.y != data.y).any()
        assert (data.y == y).all()
        assert (noisy.X == data.X).all()


@pytest.mark.parametrize("name", FIVE)
def test_rate_0_is_no_noise_and_noise_keeps_to_its_splits(clean, name):
    assert add_noise(name, 0.0, clean, ("train", "validation"), seed=4) == clean
    train, validation = add_noise(name, 0.3, clean, ("train",), seed=4)
    assert validation is clean[1]
    again, _ = add_noise(name, 0.3, clean, ("train", "validation"), seed=4)
    assert (train.y == again.y).all()


@pytest.mark.parametrize("name", ["uneven", "missed"])
def test_counted_errors_match_the_matrix(name):
    clean = cr.make_ranking(400, 2, docs_per_query=40, seed=3), made(2, 5)
    train, _ = add_noise(name, 0.2, clean, ("train",), seed=5)
    T = noise_profile(name, 0.2, clean[0], train, 5).matrix
    for grade in range(5):
        rows = train.y[clean[0].y == grade]
        found = np.bincount(rows, minlength=5) / len(rows)
        assert (abs(found - T[grade]) < 4 * np.sqrt(T[grade] * (1 - T[grade]) / len(rows)) + 1e-12).all()


def test_uneven_errs_three_times_as_often_on_the_top_grade_and_keeps_its_mean():
    counts = np.array([500, 300, 150, 30, 20])
    T = make_profile("uneven", 0.15, 5, {"proportions": counts}).matrix
    wrong = 1 - np.diag(T)
    assert wrong[4] / wrong[0] == pytest.approx(3)
    assert wrong @ counts / counts.sum() == pytest.approx(0.15)
    assert T[0, 1] == pytest.approx(2 * T[0, 2])


def test_clicks_give_the_ends_of_the_scale_and_mostly_to_what_deserves_them(clean):
    train, _ = add_noise("clicks", 0.1, clean, ("train",), seed=4)
    assert set(np.unique(train.y)) == {0, 4}
    T = noise_profile("clicks", 0.1, clean[0], train, 5).matrix
    clicked = T[:, 4]
    present = np.bincount(clean[0].y, minlength=5) > 20
    assert (np.diff(clicked[present]) > 0).all()
    # Users who examine everything click grade 0 with probability 1 - (1 - rate)^sessions at the most.
    assert clicked[0] < 1 - 0.9**SESSIONS
    np.testing.assert_allclose(
        T[0], np.bincount(train.y[clean[0].y == 0], minlength=5) / (clean[0].y == 0).sum()
    )


def test_click_labels_follow_the_rate(clean):
    low, high = (add_noise("clicks", rate, clean, ("train",), seed=4)[0].y for rate in (0.01, 0.3))
    assert (low[clean[0].y == 0] > 0).mean() < (high[clean[0].y == 0] > 0).mean()


@pytest.mark.parametrize("name", DEPENDENT)
def test_noise_by_document_or_query_is_that_of_corrupt_and_its_matrix_is_counted(clean, name):
    train, validation = add_noise(name, 0.3, clean, ("train", "validation"), seed=4)
    for data, noisy in zip(clean, (train, validation), strict=True):
        assert (noisy.y != data.y).mean() == pytest.approx(0.3, abs=0.06)
    # Neither split knows the other, but for the scale.
    others = made(9, 7)
    others = others.with_labels(np.arange(others.n_docs) % 5)
    np.testing.assert_array_equal(add_noise(name, 0.3, (clean[0], others), ("train",), seed=4)[0].y, train.y)
    low, _ = add_noise(name, 0.1, clean, ("train",), seed=4)
    changed = low.y != clean[0].y
    assert (low.y == train.y)[changed].all()
    profile = noise_profile(name, 0.3, clean[0], train, 5)
    assert profile.name == f"{name} 0.3, counted"
    assert profile.rate(np.bincount(clean[0].y, minlength=5)) == pytest.approx((train.y != clean[0].y).mean())


def test_every_profile_of_the_house_is_a_noise():
    assert {*PROFILES, *DEPENDENT} < set(NOISES)


def test_the_labels_of_a_real_judge_take_the_place_of_the_references_and_draw_nothing(clean):
    judged = tuple(replace(data, extra={"judge": np.minimum(data.y, 1)}) for data in clean)
    train, validation = add_noise("judge", 1.0, judged, ("train", "validation"), seed=4)
    assert (train.y == np.minimum(clean[0].y, 1)).all()
    assert (validation.y == np.minimum(clean[1].y, 1)).all()
    assert noise_profile("judge", 1.0, clean[0], train, 5).matrix[:, 1].tolist() == [0, 1, 1, 1, 1]
    with pytest.raises(InvalidInputError, match=r"judge' must be 1: all labels are the judge's; got 0\.5"):
        add_noise("judge", 0.5, judged, ("train",), seed=4)
    with pytest.raises(InvalidInputError, match=r"must bring a judge's labels along; got none. Name a judge"):
        add_noise("judge", 1.0, clean, ("train",), seed=4)


def test_a_judge_tells_up_to_its_budget():
    judge = Judge([3, 1, 2, 0], 2)
    assert judge([1, 1]).tolist() == [1, 1]
    assert judge.n_judged == 1
    with pytest.raises(CleanrankError, match="rows to judge must be 2 at the most; got 3"):
        judge([0, 2])
    assert judge.n_judged == 1
    assert Judge([3, 1, 2, 0], -1)([0, 1, 2, 3]).tolist() == [3, 1, 2, 0]


SEEN = {}


def look(task):
    SEEN[task.params["noise"]] = task.profile
    task.judge(range(task.params["gold"]))
    return METHODS["random"].run(task)


def test_only_methods_that_are_told_see_the_matrix_and_answers_are_counted(cells, splits, monkeypatch):
    monkeypatch.setattr(trees, "look", look, raising=False)
    monkeypatch.setitem(METHODS, "look", Method(1, "methods.trees:look", {}, ""))
    inputs = cell_of(cells, rate=0.3).inputs
    for told in ("true", "data"):
        cell = {**inputs, "algorithm": "look", "version": 1, "params": {"noise": told, "gold": 7}}
        assert score(cell, splits).chosen["judgements"] == 7
    assert SEEN["data"] is None
    assert SEEN["true"].matrix[0, 0] == pytest.approx(0.7)


def test_an_unknown_noise_is_named(clean):
    with pytest.raises(CleanrankError, match=r"unknown noise 'unifrom'\. Did you mean 'uniform'"):
        add_noise("unifrom", 0.1, clean, ("train",), seed=4)


@pytest.mark.parametrize("name", ["uniform", "feature", "clicks"])
def test_validation_labels_are_drawn_apart_from_training_labels(clean, name):
    """The same rows as training and as validation data get other errors."""
    if name == "feature":
        name = next(iter(DEPENDENT))
    train, validation = add_noise(name, 0.3, (clean[0], clean[0]), ("train", "validation"), seed=4)
    assert (train.y != validation.y).any()


def test_a_grade_of_validation_data_alone_has_a_row_in_the_matrix(clean):
    low = clean[0].with_labels(np.minimum(clean[0].y, 1))
    train, validation = add_noise("uniform", 0.5, (low, clean[1]), ("train", "validation"), seed=4)
    assert train.y.max() == 4
    assert np.bincount(validation.y[clean[1].y == 4], minlength=5).sum() == (clean[1].y == 4).sum()


def test_a_log_is_flipped_by_its_matrix():
    class Rows:
        def __init__(self, y):
            self.y = y

        def __len__(self):
            return len(self.y)

        def with_labels(self, y):
            return Rows(y)

    y = np.tile([0, 1], 20_000)
    for name, rates in (("lost", (0.0, 0.2)), ("invented", (0.2, 0.0)), ("flips", (0.2, 0.2))):
        train, validation, profile = flip_clicks(name, 0.2, (Rows(y), Rows(y)), ("train",), seed=1)
        flipped = [(train.y != y)[y == grade].mean() for grade in (0, 1)]
        assert flipped == pytest.approx(rates, abs=0.02)
        assert profile.matrix.tolist() == [[1 - rates[0], rates[0]], [rates[1], 1 - rates[1]]]
        assert (validation.y == y).all()
        assert (flip_clicks(name, 0.0, (Rows(y), Rows(y)), ("train",), seed=1)[0].y == y).all()


def test_more_noise_makes_more_clicks_on_grade_0(clean):
    low, high = (add_noise("clicks", rate, clean, ("train",), seed=4)[0] for rate in (0.01, 0.9))
    worthless = clean[0].y == 0
    assert (low.y[worthless] > 0).mean() < 0.5 * (high.y[worthless] > 0).mean()
