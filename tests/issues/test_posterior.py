"""Posterior doubt against Bayes' rule by hand, other solvers and known truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cleanrank as cr
from cleanrank.issues import posterior as posterior_module
from cleanrank.issues.bayes import bayes, invert_noise, likelihoods
from cleanrank.issues.posterior import (
    _in_both_orders,
    find_posterior,
    posterior_of,
    posterior_table,
    with_expected_gains,
)
from cleanrank.issues.table import read_issues
from cleanrank.noise.profiles import NoiseProfile, make_profile, uniform

T = np.array([[0.8, 0.15, 0.05], [0.3, 0.6, 0.1], [0.2, 0.2, 0.6]])


def true_probabilities(observed, noise, n_jobs=1):
    return invert_noise(np.asarray(observed, dtype=float), NoiseProfile.of(noise).matrix, n_jobs)


def posterior(observed, grades, noise):
    likelihood = likelihoods(np.asarray(grades), NoiseProfile.of(noise).matrix)
    return bayes(true_probabilities(observed, noise), likelihood)


def by_hand(q, m):
    joint = [q[l] * T[l, m] for l in range(3)]
    return [each / sum(joint) for each in joint]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_the_posterior_is_bayes_rule_by_hand(seed):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(3), size=20)
    y = rng.integers(0, 3, size=20)
    found = posterior(q @ T, y, NoiseProfile(T))
    assert found == pytest.approx(np.array([by_hand(*each) for each in zip(q, y, strict=True)]), abs=1e-6)


def test_a_worked_row():
    # q = (.5, .3, .2): P(given 1) = .5*.15 + .3*.6 + .2*.2 = .295.
    q = np.array([[0.5, 0.3, 0.2]])
    assert (q @ T)[0, 1] == pytest.approx(0.295)
    assert posterior(q @ T, [1], T)[0] == pytest.approx([0.075 / 0.295, 0.18 / 0.295, 0.04 / 0.295])


def test_without_noise_the_given_grade_is_certain():
    p = np.random.default_rng(0).dirichlet(np.ones(3), size=5)
    assert posterior(p, [0, 1, 2, 1, 0], np.eye(3)).argmax(axis=1).tolist() == [0, 1, 2, 1, 0]
    assert posterior(p, [0, 1, 2, 1, 0], np.eye(3)).max(axis=1) == pytest.approx(1.0)


def test_outside_the_simplex_the_closest_mixture_is_found():
    from scipy.optimize import minimize

    p = np.array([[0.97, 0.02, 0.01], [0.0, 1.0, 0.0], [0.1, 0.1, 0.8]])
    found = true_probabilities(p, T)
    assert found.min() >= 0
    assert found.sum(axis=1) == pytest.approx(1)
    for row, q in zip(p, found, strict=True):

        def divergence(z, row=row):
            mixed = (np.exp(z) / np.exp(z).sum()) @ T
            return -(row * np.log(mixed)).sum()

        best = min(minimize(divergence, start, method="BFGS").fun for start in np.eye(3))
        assert -(row * np.log(q @ T)).sum() == pytest.approx(best, abs=1e-4)


def test_a_singular_matrix_still_gives_probabilities():
    found = posterior([[0.5, 0.5]], [1], [[0.5, 0.5], [0.5, 0.5]])
    assert found.tolist() == [[0.5, 0.5]]


def test_threads_do_not_change_a_bit():
    p = np.random.default_rng(1).dirichlet(np.full(3, 0.3), size=999)
    assert np.array_equal(true_probabilities(p, T, n_jobs=1), true_probabilities(p, T, n_jobs=2))


def test_impossible_rows_follow_the_likelihood():
    assert bayes(np.array([[1.0, 0.0]]), np.array([[0.0, 0.4]]))[0] == pytest.approx([0.0, 1.0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([[1, 0]] * 2, [0, 1], [[1, 0], [1, 0]]), "got probability 0 for grade 1 at row 1"),
        (([[0.5, 0.5]], [0], {"uniform": 0.2}), "must be a square matrix"),
        (([[0.5, 0.5]], [0], [[0.5, 0.6], [0, 1]]), "rows that sum to 1"),
    ],
)
def test_wrong_input_is_named(arguments, words):
    with pytest.raises(cr.CleanrankError, match=words):
        posterior(*arguments)


@pytest.fixture(scope="module")
def noisy():
    data = cr.make_ranking(60, 8, docs_per_query=20, seed=5)
    return cr.corrupt(data, rate=0.2, seed=6)


@pytest.mark.parametrize("rounds", [1, 2])
def test_doubt_is_what_is_left_of_the_given_grade(noisy, rounds):
    table = find_posterior(noisy.data, noise=noisy.profile, rounds=rounds, folds=3)
    probabilities = table.probabilities()
    y = noisy.data.y
    assert probabilities.sum(axis=1) == pytest.approx(1)
    assert table.doubt == pytest.approx(1 - probabilities[np.arange(len(y)), y])
    likeliest = probabilities.argmax(axis=1)
    plain = posterior_table(noisy.data, probabilities)
    assert plain.suggested_label.tolist() == likeliest.tolist()
    assert plain.is_label_issue.tolist() == (likeliest != y).tolist()
    assert table.is_label_issue.tolist() == ((likeliest != y) & table.signal.is_shown).tolist()
    assert table.average_precision(noisy) > noisy.rate + 0.1


def test_the_same_seed_gives_the_same_table(noisy):
    a, b = (find_posterior(noisy.data, noise=noisy.profile, folds=2, seed=3) for _ in range(2))
    assert a.doubt.tolist() == b.doubt.tolist()


def test_known_rows_are_certain(noisy):
    known = np.full(noisy.data.n_docs, -1)
    known[:30] = noisy.true_labels[:30]
    found = posterior_of(noisy.data, noisy.profile, known=known, folds=2)
    assert found.probabilities[np.arange(30), known[:30]] == pytest.approx(1)
    assert found.probabilities[30:].max(axis=1).min() < 1


def test_a_model_of_ones_own_needs_one_round(noisy):
    def shares(train, rows):
        return np.tile(np.bincount(train.y, minlength=5) / len(train), (len(rows), 1))

    table = find_posterior(noisy.data, noise=noisy.profile, folds=2, fit_predict=shares)
    by_grade = [np.unique(table.doubt[noisy.data.y == g].round(3)) for g in range(5)]
    assert all(len(values) <= 2 for values in by_grade)
    with pytest.raises(cr.CleanrankError, match="goes with rounds=1"):
        posterior_of(noisy.data, noisy.profile, fit_predict=shares)


@pytest.mark.parametrize("rounds", [1, 2])
def test_other_rows_get_a_posterior_too(noisy, rounds):
    rest = cr.corrupt(cr.make_ranking(10, 8, docs_per_query=20, seed=7), rate=0.2, seed=8)
    found = posterior_of(noisy.data, noisy.profile, others=[rest.data], folds=2, rounds=rounds)
    assert found.others[0].shape == (rest.data.n_docs, 5)
    assert found.others[0].sum(axis=1) == pytest.approx(1)


def test_probabilities_survive_a_file(noisy, tmp_path):
    table = posterior_table(noisy.data, np.random.default_rng(0).dirichlet(np.ones(5), noisy.data.n_docs))
    table.save(tmp_path / "doubts.csv")
    assert read_issues(tmp_path / "doubts.csv").probabilities() == pytest.approx(table.probabilities())


def test_tables_of_other_detectors_are_refused(noisy):
    plain = cr.LabelIssues.of(noisy.data, doubt=np.zeros(noisy.data.n_docs), is_label_issue=noisy.changed)
    with pytest.raises(cr.CleanrankError, match="Find them with the detector 'auto' or 'posterior'"):
        plain.probabilities()


def reliability(doubt, wrong, bins=10):
    """The gap between doubt and the share of wrong labels in tenths of the rows by doubt."""
    order = np.argsort(doubt, kind="stable")
    parts = np.array_split(order, bins)
    return max(abs(float(doubt[part].mean() - wrong[part].mean())) for part in parts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rounds", "profile"),
    [
        (1, uniform(0.2, 5)),
        (2, uniform(0.2, 5)),
        (2, make_profile("adjacent", 0.2, 5)),
        (2, make_profile("one-way", 0.1, 5)),
    ],
)
def test_doubt_with_the_true_matrix_is_calibrated_within_three_points(rounds, profile):
    data = cr.make_ranking(1000, 15, docs_per_query=50, seed=11)
    found = cr.corrupt(data, profile, seed=12)
    table = find_posterior(found.data, noise=profile, rounds=rounds, folds=3, seed=13)
    assert reliability(table.doubt, found.changed) <= 0.03
    assert abs(table.doubt.mean() - found.changed.mean()) <= 0.01
    # The measure can fail: doubt of half the rate is far off.
    assert reliability(table.doubt / 2, found.changed) > 0.03


def bayes_by_hand(q, T, given):
    """Bayes' rule with plain loops."""
    found = []
    for row, m in zip(q, given, strict=True):
        joint = [row[l] * T[l][m] for l in range(len(T))]
        found.append([each / sum(joint) for each in joint])
    return found


@pytest.mark.parametrize(
    "T",
    [
        [[0.9, 0.1], [0.3, 0.7]],
        [[1.0, 0.0], [0.2, 0.8]],
        [[0.0, 1.0], [1.0, 0.0]],
        [[0.8, 0.1, 0.1], [0.0, 0.9, 0.1], [0.3, 0.0, 0.7]],
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]],
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    ],
)
def test_matrices_with_zeros_permutations_and_the_identity_by_hand(T):
    C = len(T)
    q = np.random.default_rng(C).dirichlet(np.ones(C), 6)
    given = np.arange(6) % C
    observed = [[sum(row[l] * T[l][m] for l in range(C)) for m in range(C)] for row in q]
    assert true_probabilities(observed, T) == pytest.approx(q)
    assert posterior(observed, given, T) == pytest.approx(np.array(bayes_by_hand(q, T, given)))


def test_a_singular_matrix_by_hand():
    """Grades 1 and 2 are given alike: they share what the given grades leave them."""
    T = [[0.8, 0.1, 0.1], [0.2, 0.4, 0.4], [0.2, 0.4, 0.4]]
    q = np.array([0.5, 0.25, 0.25])
    observed = [list(q @ np.array(T))]
    found = posterior(observed * 3, [0, 1, 2], T)
    assert found == pytest.approx(np.array(bayes_by_hand([q] * 3, T, [0, 1, 2])), abs=1e-4)


def test_inputs_stay_as_they_are():
    observed, given, T = (
        np.array([[0.2, 0.9], [1.0, 0.0]]),
        np.array([0, 1]),
        np.array([[0.9, 0.1], [0.2, 0.8]]),
    )
    before = observed.copy(), given.copy(), T.copy()
    posterior(observed, given, T)
    assert all(np.array_equal(a, b) for a, b in zip(before, (observed, given, T), strict=True))


def test_estimated_shares_of_true_grades_reach_the_default(noisy, monkeypatch):
    estimate = cr.estimate_noise(noisy.data, gold=(np.arange(100), noisy.true_labels[:100]))
    seen = []
    real = posterior_module.fit_true_grades
    monkeypatch.setattr(
        posterior_module, "fit_true_grades", lambda *a, **k: seen.append(k["shares"]) or real(*a, **k)
    )
    cr.find_label_issues(noisy.data, noise=estimate, folds=2)
    np.testing.assert_array_equal(seen[0], estimate.proportions)


def test_probabilities_must_belong_to_all_grades(noisy):
    n = noisy.data.n_docs
    part = {f"p_true_{g}": np.full(n, 0.2) for g in range(3)}
    table = cr.LabelIssues.of(noisy.data, doubt=np.zeros(n), is_label_issue=np.zeros(n, bool), reasons=part)
    with pytest.raises(cr.CleanrankError, match="must be the probabilities of all grades and sum to 1"):
        table.probabilities()
    two = {"p_true_0": np.full(n, 0.5), "p_true_1": np.full(n, 0.5)}
    table = cr.LabelIssues.of(noisy.data, doubt=np.zeros(n), is_label_issue=np.zeros(n, bool), reasons=two)
    with pytest.raises(cr.CleanrankError, match="columns p_true_0 to p_true_1"):
        cr.clean(noisy.data, table, "posterior")


def test_other_rows_must_have_the_features_of_the_data(noisy):
    rest = cr.make_ranking(5, 3, docs_per_query=10, seed=7)
    with pytest.raises(cr.CleanrankError, match="others must have the 8 features"):
        posterior_of(noisy.data, noisy.profile, others=[rest], folds=2)


@pytest.mark.parametrize("rounds", [1, 2])
def test_given_grades_of_further_rows_count(noisy, rounds):
    """The posterior of further rows is Bayes' rule on their own given grades."""
    rest = cr.corrupt(cr.make_ranking(10, 8, docs_per_query=20, seed=7), rate=0.2, seed=8).data
    turned = rest.with_labels(4 - rest.y)
    options = {"folds": 2, "rounds": rounds}
    found = posterior_of(noisy.data, noisy.profile, others=[rest, turned], **options)
    T = noisy.profile.matrix
    # Both have the same prior: what the features say.
    prior = found.others[0] / T.T[rest.y]
    again = prior * T.T[turned.y]
    np.testing.assert_allclose(found.others[1], again / again.sum(axis=1, keepdims=True), atol=1e-9)
    prior /= prior.sum(axis=1, keepdims=True)
    # The prior is that of true grades: with the noise in it, it would be flatter than they are.
    shares = np.bincount(cr.make_ranking(10, 8, docs_per_query=20, seed=7).y, minlength=5) / rest.n_docs
    given_shares = np.bincount(rest.y, minlength=5) / rest.n_docs
    assert abs(prior.mean(axis=0) - shares).sum() < abs(prior.mean(axis=0) - given_shares).sum()


def test_known_rows_teach(noisy):
    """With all true grades known, further rows are predicted by a model that has seen no noise."""
    rest = cr.make_ranking(10, 8, docs_per_query=20, seed=7)
    known = noisy.true_labels.astype(np.int64)
    options = {"others": [rest], "folds": 2}
    told = posterior_of(noisy.data, noisy.profile, known=known, **options)
    assert (told.likelihood == np.eye(5)[known]).all()
    untold = posterior_of(noisy.data, noisy.profile, **options)
    assert (untold.likelihood == noisy.profile.matrix.T[noisy.data.y]).all()
    assert abs(told.others[0] - untold.others[0]).max() > 0.01


def test_errors_by_document_reach_further_rows(noisy, monkeypatch):
    """What gold rows teach about documents is said of validation rows as well."""
    rest = cr.corrupt(cr.make_ranking(10, 8, docs_per_query=20, seed=7), rate=0.2, seed=8).data
    known = np.where(np.arange(noisy.data.n_docs) < 200, noisy.true_labels, -1)
    asked = []
    kind = posterior_module.DocumentNoise
    real = kind.posterior
    monkeypatch.setattr(
        kind, "posterior", lambda self, data, *rest: asked.append(data) or real(self, data, *rest)
    )
    posterior_of(noisy.data, noisy.profile, known=known, others=[rest], folds=2)
    assert [each.n_docs for each in asked] == [noisy.data.n_docs, rest.n_docs]


def test_the_seed_cuts_the_gold_rows_that_teach_errors_by_document(noisy, monkeypatch):
    known = np.where(np.arange(noisy.data.n_docs) < 200, noisy.true_labels, -1)
    p = (np.full((noisy.data.n_docs, 5), 0.2),)
    seeds = []
    real = posterior_module.document_noise
    monkeypatch.setattr(
        posterior_module, "document_noise", lambda *a, **o: seeds.append(o.get("seed")) or real(*a, **o)
    )
    posterior_of(noisy.data, noisy.profile, known=known, probabilities=p, rounds=1, seed=9)
    assert seeds == [9]


def test_probabilities_are_calibrated_unless_told_otherwise(noisy):
    one, two = (
        find_posterior(noisy.data, noise=noisy.profile, folds=2, calibrate=calibrate)
        for calibrate in (True, False)
    )
    assert (one.doubt != two.doubt).any()


def test_ties_go_to_the_given_grade(noisy):
    table = posterior_table(noisy.data, np.full((noisy.data.n_docs, 5), 0.2))
    assert not table.is_label_issue.any()
    np.testing.assert_array_equal(table.suggested_label[table.is_label_issue], [])


def test_without_known_noise_a_grade_keeps_most_of_its_labels(noisy):
    """At most a fifth of a grade without a surplus is doubted enough, the most doubted first."""
    n = noisy.data.n_docs
    rng = np.random.default_rng(0)
    doubt = rng.random(n)
    table = cr.LabelIssues.of(noisy.data, doubt=doubt, is_label_issue=np.ones(n, bool))
    surplus = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    found = posterior_module._most_doubted(table, None, surplus)
    for grade in range(5):
        rows = noisy.data.y == grade
        count = int(found.is_label_issue[rows].sum())
        assert count == (rows.sum() if grade == 0 else int(0.2 * rows.sum()))
        if grade:
            assert doubt[rows & found.is_label_issue].min() > doubt[rows & ~found.is_label_issue].max()


def test_doubts_of_gold_rows_stay_and_the_others_come_in_both_orders():
    """100 gold rows weigh as much as what is known without: a row's place is the geometric mean of both."""
    known = np.concatenate([np.full(3, -1), np.zeros(100, dtype=np.int64)])
    doubt = np.concatenate([[0.2, 0.5, 0.9], np.tile([0.0, 1.0], 50)])
    alone = np.concatenate([[0.6, 0.7, 0.1], np.full(100, 0.5)])
    mixed = _in_both_orders(doubt, alone, known)
    np.testing.assert_array_equal(mixed[3:], doubt[3:])
    # Places with gold 0, 1/2, 1 and without 1/2, 1, 0: products 0, 1/2, 0, so the second comes first.
    np.testing.assert_allclose(mixed[:3], [0.35, 0.9, 0.35])


def test_few_gold_rows_weigh_less_than_what_is_known_without():
    known = np.array([-1, -1, -1, 2])
    doubt, alone = np.array([0.2, 0.5, 0.9, 1.0]), np.array([0.6, 0.7, 0.1, 0.0])
    # The weight of gold is 1/101: places 0^w (1/2)^(1-w), (1/2)^w, 0.
    np.testing.assert_allclose(_in_both_orders(doubt, alone, known), [0.35, 0.9, 0.35, 1.0])
    assert _in_both_orders(np.array([0.3, 0.2, 0.4]), np.array([0.2, 0.4, 0.3]), known[:3]).argmax() == 1


@pytest.mark.slow
def test_a_hundred_gold_rows_find_no_less_than_none():
    gains = []
    for seed in range(3):
        noisy = cr.corrupt(cr.make_ranking(120, 20, docs_per_query=25, seed=seed), rate=0.2, seed=seed + 50)
        sheet = cr.sample_gold(noisy.data, 100, seed=seed)
        gold = sheet.row_ids, noisy.true_labels[sheet.rows]
        with_gold = cr.find_label_issues(noisy.data, gold=gold, seed=seed).average_precision(noisy)
        gains.append(with_gold - cr.find_label_issues(noisy.data, seed=seed).average_precision(noisy))
    assert np.mean(gains) > 0


def test_validation_rows_get_the_gains_of_their_own_posterior(noisy):
    held = cr.corrupt(cr.make_ranking(10, 8, docs_per_query=20, seed=7), rate=0.2, seed=8).data
    options = {"folds": 2, "rounds": 1}
    posterior, train, validation = with_expected_gains(noisy.data, held, noisy.profile, **options)
    gains = posterior.others[0] @ (2.0 ** np.arange(5) - 1)
    np.testing.assert_allclose(validation.gains, gains, rtol=1e-5)
    assert len(train.gains) == noisy.data.n_docs
    assert with_expected_gains(noisy.data, None, noisy.profile, **options)[2] is None
