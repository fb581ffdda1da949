import pytest

from cleanrank.diagnosis.fragility import KNOWN, known_curves, known_shares


def test_every_known_set_has_shares_that_sum_to_one_and_a_source():
    found = known_shares()
    assert list(found) == list(KNOWN)
    for shares, source in found.values():
        assert sum(shares) == pytest.approx(1, abs=2e-4)
        assert source


def test_shares_counted_in_files_are_near_the_printed_ones():
    found = known_shares()
    assert found["OHSUMED"][0] == pytest.approx((0.70, 0.16, 0.14), abs=0.005)
    assert found["MQ2008"][0] == pytest.approx((12279 / 15211, 2001 / 15211, 931 / 15211), abs=1e-4)
    assert len(found["Yahoo set 1"][0]) == 5


def test_curves_are_the_closed_form():
    curves = {c.dataset: c for c in known_curves((0.1, 0.3), "uniform")}
    assert curves["MSLR"].pnoise == pytest.approx((0.1156, 0.2824), abs=5e-5)
    assert curves["TD2003"].pnoise == pytest.approx((0.4666, 0.4925), abs=5e-5)
