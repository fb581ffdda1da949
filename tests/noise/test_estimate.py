import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleanrank.errors import BadFileError, InvalidInputError, UnknownNameError
from cleanrank.noise.estimate import (
    NoiseEstimate,
    shortest_interval,
    summarise,
    weak_prior,
)
from cleanrank.noise.pair_noise import expected_pair_noise, pair_shares, pnoise_expected
from cleanrank.noise.profiles import read_matrix


def draw(C=3, S=400, strength=60, seed=0):
    rng = np.random.default_rng(seed)
    T = np.stack([rng.dirichlet(strength * (0.1 + 0.7 * np.eye(C)[l]), size=S) for l in range(C)], axis=1)
    return T, rng.dirichlet(np.arange(C, 0, -1) * 20, size=S)


def estimate(**options):
    T, r = draw(strength=options.pop("strength", 60))
    return summarise("gold", T, r, 100, **options)


@given(st.integers(2, 6), st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_pnoise_of_a_batch_is_the_closed_form_of_each(C, seed):
    T, r = draw(C, 3, seed=seed)
    expected = [pnoise_expected(matrix, shares) for matrix, shares in zip(T, r, strict=True)]
    assert expected_pair_noise(T, *pair_shares(r)) == pytest.approx(expected, abs=1e-12)


def naive_shortest(values, level):
    values = sorted(values)
    n = int(np.ceil(level * len(values)))
    starts = range(len(values) - n + 1)
    best = min(starts, key=lambda i: values[i + n - 1] - values[i])
    return values[best], values[best + n - 1]


def test_shortest_interval_is_the_one_a_search_finds():
    values = np.random.default_rng(1).normal(0.5, 0.05, size=(301, 2))
    low, high = shortest_interval(values, 0.9)
    for column in range(2):
        expected = naive_shortest(values[:, column].tolist(), 0.9)
        assert (low[column], high[column]) == pytest.approx(expected)


def test_shortest_interval_is_closed_where_the_density_is_highest_at_an_edge():
    rng = np.random.default_rng(2)
    small = rng.beta(0.3, 30, size=2000)
    low, high = shortest_interval(np.stack([small, 1 - small], axis=1))
    assert low[0] == 0.0
    assert high[1] == 1.0
    assert high[0] < 0.1


def test_the_matrix_is_the_mean_of_the_draws_and_lies_within_the_interval():
    found = estimate()
    low, high = found.interval
    assert found.matrix == pytest.approx(found.draws.mean(axis=0))
    assert ((low <= found.matrix) & (found.matrix <= high)).all()
    assert found.rate == pytest.approx(
        float((found.proportions * (1 - np.diag(found.matrix))).sum()), abs=0.01
    )
    assert found.pnoise_interval[0] < found.pnoise < found.pnoise_interval[1]


def test_it_stands_where_a_matrix_is_expected():
    found = estimate()
    assert pnoise_expected(found, [0.5, 0.3, 0.2]) == pnoise_expected(found.matrix, [0.5, 0.3, 0.2])


def test_draws_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        estimate().draws[0, 0, 0] = 1.0


def test_a_file_gives_back_the_same_estimate(tmp_path):
    found = estimate(answers=[5, 50, 45], reasons=("a remark",))
    found.save(tmp_path / "noise.json")
    again = NoiseEstimate.load(tmp_path / "noise.json")
    assert np.array_equal(again.draws, found.draws)
    assert np.array_equal(again.matrix, found.matrix)
    assert again.pnoise_interval == found.pnoise_interval
    assert (again.n, again.level, again.reasons, again.trusted) == (100, 0.95, ("a remark",), True)
    assert again.answers.tolist() == [5, 50, 45]
    assert np.array_equal(read_matrix(tmp_path / "noise.json").matrix, found.matrix)


def test_a_refused_estimate_survives_the_file_and_has_no_matrix(tmp_path):
    refused = NoiseEstimate(
        "data", None, np.zeros((0, 3, 3)), np.zeros((0, 3)), 7, trusted=False, reasons=("no anchors",)
    )
    refused.save(tmp_path / "noise.json")
    again = NoiseEstimate.load(tmp_path / "noise.json")
    for each in (refused, again):
        assert each.profile is None
        assert "no anchors" in repr(each)
        assert np.isnan(each.pnoise)
        assert each.too_few()
        with pytest.raises(InvalidInputError, match=r"no anchors.*gold sample"):
            _ = each.matrix


@pytest.mark.parametrize("text", ["[1, 2]", "{}", "no json", '{"format": "cleanrank noise estimate"}'])
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "noise.json").write_text(text)
    with pytest.raises(BadFileError, match="noise estimate written by cleanrank"):
        NoiseEstimate.load(tmp_path / "noise.json")


def test_a_damaged_matrix_in_a_file_is_refused(tmp_path):
    found = estimate().to_json()
    found["matrix"][0][0] += 0.5
    (tmp_path / "noise.json").write_text(json.dumps(found))
    with pytest.raises(BadFileError):
        NoiseEstimate.load(tmp_path / "noise.json")


def test_too_few_tells_how_many_more():
    found = estimate(strength=20)
    low, high = found.pnoise_interval
    short = found.too_few(width=(high - low) / 2)
    assert short
    assert short.more == pytest.approx(3 * 100, abs=2)  # half the width takes four times as many
    assert not found.too_few(width=high - low + 0.01)
    assert "enough" in str(found.too_few(width=1.0))


def test_too_few_names_grades_with_few_answers():
    short = estimate(answers=[60, 37, 3]).too_few(width=1.0)
    assert len(short.reasons) == 1
    assert "answers of true grade 2: 3" in str(short)


def test_repr_shows_intervals_and_reasons():
    text = repr(estimate(reasons=("look twice",)))
    assert "true 2:" in text
    assert "pNoise" in text
    assert "look twice" in text


def test_the_prior_is_weak_and_favours_kept_grades():
    for C in (2, 3, 5):
        prior = weak_prior(C)
        assert prior.sum(axis=1) == pytest.approx(2.5)
        assert np.diag(prior) == pytest.approx(2.0)
        assert prior[~np.eye(C, dtype=bool)].max() < 1


def test_wrong_parts_are_refused():
    T, r = draw()
    with pytest.raises(UnknownNameError, match="gold"):
        summarise("golden", T, r, 1)
    with pytest.raises(InvalidInputError, match="level"):
        summarise("gold", T, r, 1, level=1.0)
    with pytest.raises(InvalidInputError, match="draws"):
        summarise("gold", T, r[:, :2], 1)
