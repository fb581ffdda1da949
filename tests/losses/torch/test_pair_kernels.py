from dataclasses import replace

import numba
import pytest
import torch

from cleanrank.losses.binary import LOSSES
from cleanrank.losses.pairs import PAIR_SETS
from cleanrank.losses.robust_specs import UNMIXED, read_spec
from cleanrank.losses.torch.pair_sums import Pairs, blocked_sums, can_be_compiled, compiled_sums
from cleanrank.losses.torch.swap_weights import swap_of
from cleanrank.metrics.measure import Measure
from tests.losses.dense import batch

SPECS = [None, {"name": "peer", "alpha": 0.3}, ["label_smoothing", {"name": "peer", "alpha": 0.1}]]


def problem(kind, measure, spec, scale, dtype, seed=0):
    s, y, mask = batch(6, 23, seed, dtype)
    s = s.detach() * scale
    mask[4] = False
    mask[5, 1:] = False
    w = torch.rand(s.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(dtype)
    swap = None if measure is None else swap_of(Measure.parse(measure), s, y, mask)
    parts = read_spec(spec)
    return s, Pairs(y.to(dtype), mask, kind, parts.loss, 0.8, w, swap, parts.mixture)


@pytest.mark.parametrize("kind", PAIR_SETS)
@pytest.mark.parametrize("measure", [None, "ndcg@10", "ndcg:letor", "precision@3"])
def test_compiled_sums_equal_those_of_torch(kind, measure):
    for spec in SPECS:
        for scale in (0.0, 1.0, 1e2, 1e4, 1e6):
            s, pairs = problem(kind, measure, spec, scale, torch.float64)
            assert can_be_compiled(s, pairs)
            for ours, theirs in zip(compiled_sums(s, pairs, True), blocked_sums(s, pairs, True), strict=True):
                torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("measure", [None, "ndcg@10"])
def test_they_agree_in_single_precision(measure):
    s, pairs = problem("strict", measure, None, 3.0, torch.float32)
    ours, theirs = compiled_sums(s, pairs, True), blocked_sums(s, pairs, True)
    assert ours[0].dtype == ours[1].dtype == torch.float32
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)


def test_the_bits_do_not_depend_on_the_number_of_threads():
    s, pairs = problem("strict", "ndcg@10", None, 1.0, torch.float32)
    most = torch.get_num_threads()
    found = []
    for threads in (1, numba.config.NUMBA_NUM_THREADS):
        torch.set_num_threads(threads)
        found.append(compiled_sums(s, pairs, True))
    torch.set_num_threads(most)
    for one, several in zip(*found, strict=True):
        assert torch.equal(one, several)


def test_the_threads_of_torch_are_as_many_afterwards():
    """Both may share an OpenMP runtime, whose number of threads a kernel sets."""
    s, y, mask = batch(2, 200, hidden=0.0)
    pairs = Pairs(y.to(s.dtype), mask, "strict", LOSSES["logistic"], mixture=UNMIXED)
    before = torch.get_num_threads()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        compiled_sums(s, pairs, True)
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("measure", [None, "ndcg"])
def test_a_score_that_is_no_number_spoils_its_own_list_alone(measure):
    s, pairs = problem("strict", measure, None, 1.0, torch.float64)
    s[0, 0] = torch.nan
    sums, gradient = compiled_sums(s, pairs, True)
    assert sums.isnan().tolist() == [True, False, False, False, False, False]
    assert gradient[0].isnan().any()
    assert not gradient[1:].isnan().any()


def test_other_losses_and_measures_are_left_to_torch():
    s, pairs = problem("strict", "map", None, 1.0, torch.float64)
    assert not can_be_compiled(s, pairs)
    assert read_spec("gce").mixture is None
    s, pairs = problem("strict", None, None, 1.0, torch.float64)
    assert not can_be_compiled(s, replace(pairs, curve="hinge"))
