import numpy as np
import pytest

import cleanrank as cr
from cleanrank.experiments.noises import CLICK_NOISES, NOISES, SPLITS, add_noise


@pytest.fixture(scope="module")
def clean():
    return cr.make_ranking(120, 6, docs_per_query=10, seed=1), cr.make_ranking(
        60, 6, docs_per_query=10, seed=2
    )


@pytest.mark.parametrize("name", sorted(CLICK_NOISES))
def test_labels_become_clicks_with_ranks(clean, name):
    assert name in NOISES
    train, validation = add_noise(name, 0.05, clean, SPLITS, 7)
    again, _ = add_noise(name, 0.05, clean, SPLITS, 7)
    assert set(np.unique(train.y)) == {0, 1}
    assert train.positions.min() == validation.positions.min() == 1
    assert (train.y == again.y).all()
    assert (add_noise(name, 0.05, clean, SPLITS, 8)[0].y != train.y).any()


def test_a_higher_rate_flips_more(clean):
    low, high = (add_noise("pbm", rate, clean, SPLITS, 7)[0].y for rate in (0.01, 0.2))
    assert high.mean() > low.mean() + 0.1


def test_only_what_is_asked_for_changes(clean):
    train, validation = add_noise("pbm", 0.05, clean, ("train",), 7)
    assert validation is clean[1]
    assert train is not clean[0]


def test_quoted_rates_are_those_of_the_paper():
    lost, made_up = CLICK_NOISES["pbm-quoted"].flip(0.05)
    assert (lost, made_up) == pytest.approx((0.5037, 0.0373))
    # .0281 of the documents were clicked before, .0502 are after.
    assert 0.0281 * (1 - lost) + (1 - 0.0281) * made_up == pytest.approx(0.0502, abs=1e-4)


def test_profiles_are_of_flips_alone():
    assert CLICK_NOISES["pbm-quoted"].profile(0.05).matrix[1, 0] == pytest.approx(0.5037)
    assert CLICK_NOISES["ccm-attracted"].profile(0.1) is None
    assert CLICK_NOISES["pbm"].profile(0.0) is None


def test_users_click_more_at_the_top(clean):
    rates = CLICK_NOISES["pbm"].users(0.05, clean).click_rates(sessions=30)
    assert rates[0] > rates[-1]
    # Flips add clicks at every rank, examined or not.
    assert rates[-1] > 0.03
