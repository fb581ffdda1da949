import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.experiments.noises import Users, click_data


@pytest.fixture(scope="module")
def whole():
    return cr.make_ranking(300, 8, docs_per_query=12, seed=5)


def test_clicks_stand_for_labels(whole):
    found = click_data(whole, whole, flip=0.05, seed=3)
    for data in (found.train, found.validation):
        assert set(np.unique(data.y)) == {0, 1}
        assert np.shares_memory(data.X, whole.X)
        for a, b in zip(data.indptr, data.indptr[1:], strict=False):
            assert sorted(data.positions[a:b]) == list(range(1, b - a + 1))
    assert (found.train.y != found.validation.y).any()  # each has draws of its own


def test_lists_are_those_of_the_weak_ranker(whole):
    found = click_data(whole, whole, seed=3)
    scores = found.ranker.predict(whole.X)
    a, b = whole.indptr[:2]
    assert (np.argsort(-scores[a:b], kind="stable") == np.argsort(found.train.positions[a:b])).all()


def test_only_the_seen_queries_shape_the_weak_ranker(whole):
    clicked = click_data(whole, whole, share=0.02, seed=4)
    assert len(clicked.seen) == 6
    rows = np.isin(np.repeat(np.arange(whole.n_queries), whole.lengths), clicked.seen)
    other = whole.with_labels(np.where(rows, whole.y, 0))
    again = click_data(other, other, share=0.02, seed=4)
    assert (clicked.ranker.predict(whole.X) == again.ranker.predict(whole.X)).all()


@pytest.mark.parametrize(("share", "fewest", "n"), [(0.001, 1, 1), (0.001, 7, 7), (0.1, 1, 30)])
def test_how_many_are_seen(whole, share, fewest, n):
    assert len(click_data(whole, whole, share=share, fewest=fewest).seen) == n


def test_flips_raise_the_click_rate_as_arithmetic_says(whole):
    rates = [click_data(whole, whole, flip=flip, seed=1).train.y.mean() for flip in (0.0, 0.2)]
    assert rates[1] == pytest.approx(rates[0] * 0.8 + (1 - rates[0]) * 0.2, abs=0.02)


def test_no_flip_and_no_attraction_never_clicks_grade_0(whole):
    found = click_data(whole, whole, flip=0.0, seed=1)
    assert not found.train.y[whole.y == 0].any()
    assert found.train.y.any()


def test_users_keep_their_judgements(whole):
    from cleanrank.clicks import pbm

    rates = Users(whole, pbm(noise=1.0), 0.0, 4).click_rates(ranks=2, sessions=20)
    # Everything attracts, so clicks are examinations: the first rank's, and the mean of all further ones.
    lengths = whole.lengths
    later = sum(pbm().examined(np.arange(2, n + 1)).sum() for n in lengths) / (lengths - 1).sum()
    assert rates == pytest.approx([0.68, later], abs=0.02)


@pytest.mark.parametrize("options", [{"share": 0.0}, {"share": 1.5}, {"fewest": 0}])
def test_bad_shares_are_refused(whole, options):
    with pytest.raises(CleanrankError, match=r"share|fewest"):
        click_data(whole, whole, **options)
