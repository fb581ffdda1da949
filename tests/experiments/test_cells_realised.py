import numpy as np
import pytest

import cleanrank as cr
from cleanrank.experiments.cells import realised_noise
from cleanrank.experiments.results import REALISED
from cleanrank.noise.profiles import NoiseProfile, uniform


def made(y, sizes):
    return cr.from_arrays(np.zeros((len(y), 1)), y, group=sizes)


def test_counts_by_hand():
    clean = made([0, 0, 1, 0, 1, 1], [3, 3])
    given = clean.with_labels([0, 1, 1, 1, 1, 0])
    found = realised_noise(clean, given, uniform(0.3, 2))
    assert found["train_dnoise"] == pytest.approx(3 / 6)
    # query 1: (0, 0->1) new, (0, 1) correct; query 2: 0->1 above 1->0 inverse, 1 above 1->0 new
    assert found["train_pnoise"] == pytest.approx((1 + 0.5 * 2) / 4)
    assert set(found) == set(REALISED)


def test_closed_forms_are_what_many_draws_come_to():
    rng = np.random.default_rng(0)
    y = np.concatenate([np.repeat([0, 1, 2], c) for c in ((9, 2, 1), (3, 3, 0), (12, 0, 0))])
    clean = made(y, [12, 6, 12])
    profile = uniform(0.2, 3)
    draws = [
        realised_noise(clean, clean.with_labels(profile.sample(clean.y, rng)), profile) for _ in range(600)
    ]
    found = [d["train_pnoise"] for d in draws]
    # a ratio of means against a mean of ratios: close, not equal
    assert np.mean(found) == pytest.approx(draws[0]["expected_pnoise"], abs=0.015)
    assert draws[0]["expected_pnoise"] > draws[0]["overall_pnoise"] + 0.03  # one query is all new-come pairs


def test_what_is_not_defined_is_left_out():
    clean = made([1, 1], [2])
    found = realised_noise(clean, clean, NoiseProfile(np.eye(2)))
    assert found == {"train_dnoise": 0.0}
