import numpy as np
import pytest
from benchmarks.cards.recovery import recovery_card

from cleanrank.errors import CleanrankError
from cleanrank.report.summaries import Level
from tests.report.grids import record

UNIFORM, MISSED = Level("uniform", 0.2), Level("missed", 0.3)


def cells(means, *, dataset="A", level=UNIFORM, queries=40, seeds=(1, 2, 3), folds=(1,), spread=0.01, rng=0):
    """Records whose methods have these means, with noise over queries and seeds that methods share."""
    draw = np.random.default_rng(rng)
    found = []
    for fold in folds:
        by_query = draw.normal(scale=0.1, size=queries)
        for seed in seeds:
            for method, mean in means.items():
                own = draw.normal(scale=spread, size=queries)
                values = {"ndcg@10": by_query - by_query.mean() + own - own.mean() + mean}
                chosen = {"judgements": 100} if "rows" in method else {}
                found.append(
                    record(
                        dataset=dataset,
                        noise=level.noise,
                        rate=level.rate,
                        fold=fold,
                        method=method,
                        seed=seed,
                        values=values,
                        chosen=chosen,
                    )
                )
    return found


ENDS = {"clean-trained": 0.6, "noisy-trained": 0.5}


def test_the_share_is_gain_over_loss():
    card = recovery_card(cells({**ENDS, "100 rows": 0.57, "harm": 0.48}), resamples=200)
    (setting,) = card.settings
    assert setting.clear
    assert setting.loss.value == pytest.approx(0.1)
    assert (setting.queries, setting.seeds) == (40, 3)
    row, harm = (card.find("A", UNIFORM, m) for m in ("100 rows", "harm"))
    assert row.share.value == pytest.approx(0.7)
    assert row.judgements == 100
    assert harm.share.value == pytest.approx(-0.2)
    assert row.share.low < 0.7 < row.share.high
    assert card.find("A", UNIFORM, "clean-trained").share.value == pytest.approx(1)


def test_a_loss_that_is_not_clear_gives_no_share():
    found = recovery_card(
        cells({"clean-trained": 0.501, "noisy-trained": 0.5, "m": 0.55}, spread=0.2), resamples=200
    )
    assert not found.settings[0].clear
    assert found.rows[-1].share is None
    assert found.averages[-1].share is None
    assert found.averages[-1].pooled.value == pytest.approx(50)


def test_averages_of_shares_and_pooled_shares():
    records = cells({**ENDS, "m": 0.55}) + cells(
        {"clean-trained": 0.9, "noisy-trained": 0.5, "m": 0.9}, dataset="B", level=MISSED, queries=20
    )
    card = recovery_card(records, resamples=300)
    average = next(a for a in card.averages if a.method == "m")
    assert average.share.value == pytest.approx((0.5 + 1.0) / 2)
    assert average.pooled.value == pytest.approx((0.05 + 0.4) / (0.1 + 0.4))
    assert average.settings == 2
    assert average.worst.dataset == "A"
    assert card.difference("m", "clean-trained").value == pytest.approx(0.9 - 1)


def test_intervals_cover_the_spread_over_queries_by_a_plain_bootstrap():
    rng = np.random.default_rng(5)
    records = cells({**ENDS, "m": 0.56}, spread=0.05, queries=60, seeds=(1,))
    values = {r.cell["method"]: r.values["ndcg@10"] for r in records}
    shares = []
    for _ in range(4000):
        rows = rng.integers(60, size=60)
        clean, noisy, mine = (values[m][rows].mean() for m in ("clean-trained", "noisy-trained", "m"))
        shares.append((mine - noisy) / (clean - noisy))
    wanted = np.quantile(shares, [0.025, 0.975])
    found = recovery_card(records, resamples=4000).find("A", UNIFORM, "m").share
    np.testing.assert_allclose([found.low, found.high], wanted, atol=0.03)


def test_seeds_that_differ_widen_the_interval():
    means = {"clean-trained": 0.6, "noisy-trained": 0.5}
    calm = cells({**means, "m": 0.55}, spread=0)
    wild = [
        r
        for seed, shift in ((1, 0.0), (2, 0.04), (3, -0.04))
        for r in cells({**means, "m": 0.55 + shift}, seeds=(seed,), spread=0)
    ]
    one, two = (recovery_card(r, resamples=400).find("A", UNIFORM, "m").share for r in (calm, wild))
    assert one.high - one.low == pytest.approx(0, abs=1e-9)
    assert two.high - two.low > 0.3
    assert two.value == pytest.approx(0.5)


def test_levels_of_a_data_set_see_the_same_queries():
    """Two levels with the same values have the same draws, so that their average is no surer than each."""
    records = cells({**ENDS, "m": 0.55}, spread=0.05) + cells({**ENDS, "m": 0.55}, spread=0.05, level=MISSED)
    card = recovery_card(records, resamples=300)
    one = card.find("A", UNIFORM, "m").share
    average = next(a for a in card.averages if a.method == "m").share
    assert (average.low, average.high) == pytest.approx((one.low, one.high))


def test_a_method_with_a_gap_has_no_row_there_and_is_named():
    records = cells({**ENDS, "m": 0.55}, folds=(1, 2))
    lost = [
        r for r in records if not (r.cell["method"] == "m" and r.cell["fold"] == 2 and r.cell["seed"] == 3)
    ]
    card = recovery_card(lost, resamples=50)
    assert card.find("A", UNIFORM, "m") is None
    assert card.missing == ("A, uniform 0.2, m: 1 of 6 cells",)


def test_settings_that_are_at_different_seeds_stand_side_by_side():
    records = cells({**ENDS, "m": 0.55}, seeds=(1, 2, 3)) + cells(
        {**ENDS, "m": 0.58}, seeds=(1,), level=MISSED
    )
    card = recovery_card(records, resamples=100)
    assert {s.level: s.seeds for s in card.settings} == {UNIFORM: 3, MISSED: 1}
    assert card.find("A", MISSED, "m").share.value == pytest.approx(0.8)


def test_shares_below_the_limit_beyond_their_interval_are_told():
    card = recovery_card(cells({**ENDS, "bad": 0.45, "so so": 0.499}), resamples=100)
    below = {a.method: [r.level for r in a.below] for a in card.averages}
    assert below["bad"] == [UNIFORM]
    assert below["so so"] == []


def test_without_the_ends_of_the_scale_there_is_no_card():
    with pytest.raises(CleanrankError, match="unknown method 'clean-trained'"):
        recovery_card(cells({"noisy-trained": 0.5, "m": 0.6}))
    with pytest.raises(CleanrankError, match="records must hold cells with ndcg@10"):
        recovery_card([])


def test_settings_without_a_clear_loss_count_in_the_pooled_share():
    """(.07 + .02) of (.1 + .001) lost: the second setting has no share of its own."""
    unclear = {"clean-trained": 0.501, "noisy-trained": 0.5, "m": 0.52}
    records = cells({**ENDS, "m": 0.57}) + cells(unclear, level=MISSED, spread=0.2)
    card = recovery_card(records, resamples=200)
    assert [setting.clear for setting in card.settings] == [True, False]
    average = next(each for each in card.averages if each.method == "m")
    assert average.settings == 1
    assert average.share.value == pytest.approx(0.7)
    assert average.pooled.value == pytest.approx(0.09 / 0.101)


def test_a_share_whose_interval_reaches_the_limit_is_not_below_it():
    card = recovery_card(cells({**ENDS, "m": 0.493}, spread=0.05), resamples=400)
    row = card.find("A", UNIFORM, "m")
    assert row.share.low < -0.05 < row.share.high
    assert next(each for each in card.averages if each.method == "m").below == ()
