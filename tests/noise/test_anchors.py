import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.noise.anchors import cross_fit, from_data
from cleanrank.noise.profiles import NoiseProfile, geometric, one_way, uniform

MISSED = NoiseProfile(np.array([[1.0, 0, 0], [0.3, 0.7, 0], [0.3, 0, 0.7]]))
SHARES = {3: [0.6, 0.25, 0.15], 5: [0.45, 0.25, 0.15, 0.1, 0.05]}


def sure_data(noise, doubt=0.0, seed=0, n=12_000, C=3, vague=False):
    """Data with one feature, the true posterior q(x), and the exact p = q T that a perfect model would learn.

    A share ``doubt`` of the rows has a true grade that the feature leaves open between neighbours; with
    ``vague`` it only knows grade 0 from the rest.
    """
    rng = np.random.default_rng([seed, 3])
    seen = rng.choice(C, size=n, p=SHARES[C])
    open_ = rng.random(n) < doubt
    q = np.eye(C)[seen]
    q[open_] = 0.5 * q[open_] + 0.5 * np.eye(C)[np.clip(seen[open_] + 1, 0, C - 1)]
    if vague:
        q[seen > 0] = [0.2, 0.5, 0.3]
    truth = (rng.random(n)[:, None] >= np.cumsum(q, axis=1)).sum(axis=1)
    data = cr.from_arrays(seen[:, None] + 0.1 * open_[:, None], truth, qid=np.arange(n) // 40)
    return noise.apply(data, seed).data, q @ noise.matrix


def exact_shares(train, rows):
    """A perfect learner for one feature with few values: the shares of given grades at each value."""
    keys, values = train.X[:, 0].round(2), rows.X[:, 0].round(2)
    C = 3
    found = np.full((len(rows), C), 1 / C)
    for value in np.unique(values):
        at = keys == value
        if at.any():
            found[values == value] = np.bincount(train.y[at], minlength=C) / at.sum()
    return found


def test_cross_fitting_never_shows_a_row_or_its_query_to_its_model():
    data = cr.make_ranking(23, 3, docs_per_query=8, grades=[0.6, 0.3, 0.1], seed=1)
    seen = []

    def spy(train, rows):
        assert not set(train.query_ids.tolist()) & set(rows.query_ids.tolist())
        seen.extend(rows.row_ids.tolist())
        return np.tile(rows.row_ids[:, None].astype(float), (1, 3))

    found = cross_fit(data, spy, 4)
    assert sorted(seen) == sorted(data.row_ids.tolist())
    assert found[:, 0].tolist() == data.row_ids.tolist()


def test_a_grade_that_a_model_never_saw_has_probability_zero():
    data = cr.from_arrays(np.zeros((40, 1)), [0, 1] * 19 + [0, 2], qid=np.arange(40) // 4)
    found = cross_fit(data, lambda train, rows: np.full((len(rows), 2), 0.5), 2)
    assert found.shape == (40, 3)
    assert (found[:, 2] == 0).all()
    with pytest.raises(InvalidInputError, match="fit_predict"):
        cross_fit(data, lambda train, rows: np.zeros((len(rows), 4)), 2)


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2, 0.35])
def test_uniform_noise_is_read_off_rows_that_are_surely_of_an_end(rate):
    data, p = sure_data(uniform(rate, 3), doubt=0.4)
    found = from_data(data, p, family="uniform")
    assert found.rate == pytest.approx(rate, abs=0.02)
    assert found.rate_interval[0] <= rate <= found.rate_interval[1]
    assert found.proportions == pytest.approx([0.48, 0.32, 0.2], abs=0.03)
    assert any("assumed" in reason for reason in found.reasons)


@pytest.mark.parametrize(
    "noise", [uniform(0.1, 3), one_way(0.15, 3), geometric(0.2, 3)], ids=lambda n: n.name
)
def test_anchors_of_every_grade_give_the_matrix(noise):
    data, p = sure_data(noise)
    found = from_data(data, p)
    assert found.matrix == pytest.approx(noise.matrix, abs=0.03)
    low, high = found.interval
    assert ((low <= noise.matrix) & (noise.matrix <= high)).mean() > 0.6


def test_without_anchors_of_every_grade_the_matrix_is_refused():
    data, p = sure_data(uniform(0.1, 3), doubt=1.0)
    found = from_data(data, p)
    assert found.profile is None
    assert not found.trusted
    assert "has no anchors" in found.reasons[0]
    assert found.rejected is not None
    with pytest.raises(InvalidInputError, match="no anchors"):
        from_data(data, p, strict=True)


def test_one_way_noise_is_not_taken_for_uniform():
    data, p = sure_data(one_way(0.1, 3), doubt=0.4)
    found = from_data(data, p, family="uniform")
    assert found.profile is None
    assert "errors are not uniform" in found.reasons[0]


def test_noise_that_falls_off_with_distance_is_not_taken_for_uniform_on_a_long_scale():
    data, p = sure_data(geometric(0.2, 5), doubt=0.4, C=5, n=40_000)
    assert "errors are not uniform" in " ".join(from_data(data, p, family="uniform").reasons)
    data, p = sure_data(uniform(0.2, 5), doubt=0.4, C=5)
    assert from_data(data, p, family="uniform").rate == pytest.approx(0.2, abs=0.04)


def test_features_that_say_nothing_are_noticed():
    data, _ = sure_data(uniform(0.1, 3))
    blind = np.random.default_rng(0).dirichlet([60, 25, 15], size=len(data))
    found = from_data(data, blind, family="uniform")
    assert found.profile is None
    assert "features" in found.reasons[0]


def test_a_missing_plateau_is_noticed():
    """Surer rows err less and less: no anchors, only degrees of doubt."""
    rng = np.random.default_rng(0)
    q = rng.uniform(0.05, 0.95, size=8000)
    data = cr.from_arrays(q[:, None], (rng.random(8000) < q).astype(int), qid=np.arange(8000) // 40)
    found = from_data(data, np.stack([1 - q, q], axis=1), family="uniform")
    assert found.profile is None
    assert "no plateau" in " ".join(found.reasons)


def test_an_assumed_family_is_never_trusted():
    data, p = sure_data(uniform(0.2, 5), doubt=0.4, C=5)
    found = from_data(data, p, family="uniform")
    assert found.profile is not None
    assert not found.trusted
    assert "cannot prove" in " ".join(found.reasons)


def test_with_two_grades_the_assumption_is_not_trusted():
    rng = np.random.default_rng(0)
    truth = rng.choice(2, size=8000, p=[0.7, 0.3])
    data = cr.from_arrays(truth[:, None], truth, qid=np.arange(8000) // 40)
    noise = uniform(0.1, 2)
    found = from_data(noise.apply(data, 1).data, noise.matrix[truth], family="uniform")
    assert found.rate == pytest.approx(0.1, abs=0.02)
    assert not found.trusted
    assert "two grades" in " ".join(found.reasons)


def test_labels_without_information_are_refused():
    data, _ = sure_data(uniform(0.1, 3))
    y = np.random.default_rng(1).integers(0, 3, len(data))
    found = from_data(data.with_labels(y), np.full((len(y), 3), 1 / 3), family="uniform")
    assert found.profile is None
    assert "cannot be told apart" in " ".join(found.reasons)


def test_a_model_is_checked_against_added_noise():
    data, _ = sure_data(uniform(0.1, 3), doubt=0.3)
    found = from_data(data, fit_predict=exact_shares, family="uniform")
    assert found.rate == pytest.approx(0.1, abs=0.02)
    assert not any("not checked" in reason for reason in found.reasons)


def test_a_model_that_does_not_follow_added_noise_is_refused():
    """This one knows the answers of the first round by heart and is lost when they change."""
    data, p = sure_data(uniform(0.1, 3), doubt=0.3)
    known = dict(zip(data.row_ids.tolist(), p, strict=True))
    first = data.y

    def by_heart(train, rows):
        same = np.array_equal(train.y, first[np.isin(data.row_ids, train.row_ids)])
        found = np.array([known[row] for row in rows.row_ids.tolist()])
        return found if same else found[:, ::-1]

    found = from_data(data, fit_predict=by_heart, family="uniform")
    assert found.profile is None
    assert "not recovered" in found.reasons[-1]


def test_missed_relevant_documents_are_noticed_where_the_top_grade_has_anchors():
    data, p = sure_data(MISSED, doubt=0.3, n=20_000)
    assert "errors are not uniform" in " ".join(from_data(data, p, family="uniform").reasons)


def test_missed_relevant_documents_pass_for_clean_ones_elsewhere():
    """What the uniform family cannot see, kept here so that nobody forgets it."""
    data, p = sure_data(MISSED, vague=True)
    assert from_data(data, p, family="uniform").rate < 0.05


def test_wrong_arguments_are_refused():
    data, p = sure_data(uniform(0.1, 3), n=400)
    with pytest.raises(UnknownNameError, match="uniform"):
        from_data(data, p, family="unifrom")
    with pytest.raises(InvalidInputError, match="either `probabilities` or `fit_predict`"):
        from_data(data)
    with pytest.raises(InvalidInputError, match="shape"):
        from_data(data, p[:-1])
    with pytest.raises(InvalidInputError, match=r"sum to 1.* at row 7 "):
        from_data(data, np.where(np.arange(400)[:, None] == 7, 2 * p, p))


def test_same_seed_same_result():
    data, p = sure_data(uniform(0.1, 3), doubt=0.2, n=4000)
    a, b = from_data(data, p, family="uniform"), from_data(data, p, family="uniform")
    assert np.array_equal(a.draws, b.draws)
