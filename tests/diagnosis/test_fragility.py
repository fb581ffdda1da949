import numpy as np
import pytest

import cleanrank as cr
from cleanrank.diagnosis.fragility import composition, curves_of, limits_of, pooled_pnoise, query_pnoise
from cleanrank.diagnosis.profile import grade_counts
from cleanrank.errors import UnknownNameError
from cleanrank.noise.pair_noise import pnoise_expected
from cleanrank.noise.profiles import make_profile, one_way

from .sets import plain

PUBLISHED = {
    (70, 16, 14): {"uniform": (0.1237, 0.2939, 0.4146), "geometric": (0.1146, 0.2704, 0.3810)},
    (51.7, 32.5, 13.3, 1.7, 0.8): {
        "uniform": (0.1156, 0.2824, 0.3943),
        "geometric": (0.0926, 0.2345, 0.3358),
        "adjacent": (0.0598, 0.1577, 0.2346),
    },
}


@pytest.mark.parametrize("shares", PUBLISHED)
def test_overall_shares_give_the_published_values(shares):
    counts = np.array([[round(100 * s) for s in shares]])
    curves = curves_of(counts, (0.1, 0.3, 0.5), tuple(PUBLISHED[shares]))
    for curve in curves:
        assert curve.overall == pytest.approx(PUBLISHED[shares][curve.profile], abs=5e-5)


def test_one_query_is_the_finite_closed_form():
    counts = np.array([[8, 8]])
    same, other = composition(counts)
    T = make_profile("uniform", 0.1, 2)
    assert pooled_pnoise(T.matrix, same, other) == pytest.approx(0.0908, abs=5e-5)
    assert pooled_pnoise(T.matrix, same, other) == pytest.approx(pnoise_expected(T, [8, 8], length=16))
    assert pooled_pnoise(T.matrix, *composition(np.array([[14, 2]]))) == pytest.approx(0.2166, abs=5e-5)
    # New-come pairs at full weight give what the paper printed as .16 and .39.
    assert pooled_pnoise(T.matrix, same, other, new_weight=1) == pytest.approx(0.171, abs=5e-4)
    assert pooled_pnoise(T.matrix, *composition(np.array([[14, 2]])), new_weight=1) == pytest.approx(
        0.426, abs=5e-4
    )


@pytest.mark.parametrize("profile", ["uniform", "geometric", "adjacent", "power"])
def test_the_pooled_form_is_what_noise_does_to_real_queries(profile):
    data = plain(seed=2, queries=60)
    T = make_profile(profile, 0.2, 3)
    expected = pooled_pnoise(T.matrix, *composition(grade_counts(data)))
    wrong = every = 0.0
    for seed in range(60):
        noisy = T.apply(data, seed)
        found = cr.pnoise(noisy.true_labels, noisy.data.y, data.indptr)
        wrong += found.inverse + 0.5 * found.new_come
        every += found.total
    # 60 draws of some 10,000 pairs; pairs of one document go wrong together: as if 1,000 were drawn.
    assert wrong / every == pytest.approx(expected, abs=0.006)
    overall = pnoise_expected(T, grade_counts(data).sum(axis=0))
    assert abs(overall - expected) > 0.02


def test_unequal_rows_of_the_matrix_are_taken_as_they_are():
    T = one_way(0.3, 3).matrix
    counts = np.array([[5, 3, 2], [1, 0, 4]])
    wrong = every = 0.0
    for n in counts:
        grades = np.repeat(np.arange(3), n)
        for i in range(len(grades)):
            for j in range(i):
                for a in range(3):
                    for b in range(3):
                        if a != b:
                            p = T[grades[i], a] * T[grades[j], b]
                            every += p
                            true = np.sign(grades[i] - grades[j])
                            wrong += p * (0.5 if true == 0 else float(true != np.sign(a - b)))
    assert pooled_pnoise(T, *composition(counts)) == pytest.approx(wrong / every)


def test_queries_alone_and_pooled_agree_on_equal_queries():
    counts = np.tile([6, 3, 1], (7, 1))
    T = make_profile("geometric", 0.25, 3).matrix
    each = query_pnoise(T, counts)
    assert each == pytest.approx(np.full(7, pooled_pnoise(T, *composition(counts))))
    assert np.isnan(query_pnoise(np.eye(3), np.array([[4, 0, 0]]))[0])


def test_two_grades_have_one_curve_and_one_grade_none():
    assert [c.profile for c in curves_of(np.array([[5, 5]]))] == ["uniform"]
    assert curves_of(np.array([[5, 0, 0]])) == ()
    with pytest.raises(UnknownNameError, match="geometric"):
        curves_of(np.array([[5, 5]]), profiles=["geometrical"])


def test_balanced_pairs_lose_what_labels_lose():
    counts = np.full((4, 2), 10_000)
    (curve,) = curves_of(counts, (0.1, 0.2), ("uniform",))
    assert curve.overall == pytest.approx((0.1, 0.2))
    assert curve.pnoise == pytest.approx((0.1, 0.2), abs=1e-4)
    assert curve.signal_left == pytest.approx((0.8, 0.6), abs=2e-4)
    assert curve.limits.turning_point == pytest.approx(0.4, abs=1e-3)
    assert curve.limits.half == pytest.approx(0.25, abs=1e-3)
    assert curve.limits.bend is None


def test_rare_relevance_bends_early():
    (curve,) = curves_of(np.array([[992_000, 8_000]]), (0.1,), ("uniform",))
    assert curve.overall[0] == pytest.approx(0.4666, abs=5e-5)
    assert curve.limits.turning_point < 0.05
    assert curve.limits.bend < 0.1


def test_limits_by_hand():
    found = limits_of(lambda r: min(r, 0.3), 0.6)
    assert found.half == pytest.approx(0.25, abs=1e-6)
    assert found.turning_point is None
    assert found.bend == pytest.approx(0.3, abs=0.004)  # the corner is farthest above the chord
    assert limits_of(lambda r: r**2, 0.7).bend is None
    assert limits_of(lambda r: r, 0.5, at=0.5).turning_point == pytest.approx(0.5, abs=1e-6)
    assert limits_of(lambda r: float("nan"), 0.5).half is None


def test_the_worst_tenth_leaves_out_queries_without_pairs():
    counts = np.array([[10, 0]] * 50 + [[5, 5]] * 50)
    (curve,) = curves_of(counts, (0.1,), ("uniform",))
    assert curve.worst_tenth[0] < 0.12
    assert curve.pnoise[0] > curve.worst_tenth[0]
