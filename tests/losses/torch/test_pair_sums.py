import sys

import pytest
import torch

import cleanrank.losses.torch.pair_sums as module
from cleanrank.losses.binary import LOSSES
from cleanrank.losses.pairs import PAIR_SETS
from cleanrank.losses.robust_specs import UNMIXED, robust_loss
from cleanrank.losses.torch.pair_sums import Pairs, elementwise, pair_sums, row_blocks
from cleanrank.losses.torch.swap_weights import swap_of
from cleanrank.metrics.measure import Measure
from tests.losses.dense import batch, dense_sums, value_and_gradient

ROBUST = {"gce": robust_loss("gce"), "peer": robust_loss({"name": "peer", "alpha": 0.3})}


@pytest.mark.parametrize("kind", PAIR_SETS)
@pytest.mark.parametrize("name", [*(n for n in LOSSES if LOSSES[n].trainable), *ROBUST])
def test_blocks_equal_the_dense_table(name, kind):
    loss = LOSSES.get(name) or ROBUST[name]
    s, y, mask = batch()
    y = y.to(s.dtype)
    w = torch.rand(s.shape, generator=torch.Generator().manual_seed(3), dtype=s.dtype)
    swap = swap_of(Measure.parse("map"), s.detach(), y, mask)
    delta = swap.rows(0, s.shape[1])
    expected = value_and_gradient(lambda s: dense_sums(s, y, mask, kind, loss, 0.7, w, delta), s)
    for block in (1, 40, 10**6):
        pairs = Pairs(y, mask, kind, loss, 0.7, w, swap, block=block)
        found = value_and_gradient(lambda s, pairs=pairs: pair_sums(s, pairs), s)
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def test_no_gradient_is_kept_when_none_is_asked_for():
    s, y, mask = batch()
    pairs = Pairs(y.to(s.dtype), mask, "strict", LOSSES["hinge"])
    assert not pair_sums(s.detach(), pairs).requires_grad
    assert module.blocked_sums(s.detach(), pairs, False)[1] is None


def test_no_table_of_pairs_is_kept_for_the_backward_pass():
    s, y, mask = batch(1, 64, hidden=0.0)
    kept = []

    def pack(tensor):
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        pair_sums(s, Pairs(y.to(s.dtype), mask, "all_ordered", LOSSES["sigmoid"], block=128))
    assert max(kept) <= 64


def test_the_second_derivative_is_refused():
    s, y, mask = batch()
    total = pair_sums(s, Pairs(y.to(s.dtype), mask, "strict", LOSSES["logistic"])).sum()
    (first,) = torch.autograd.grad(total, s, create_graph=True)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(first.sum(), s)


def test_without_numba_the_same_value_comes_from_torch(monkeypatch):
    s, y, mask = batch()
    pairs = Pairs(y.to(s.dtype), mask, "strict", LOSSES["logistic"], mixture=UNMIXED)
    compiled = value_and_gradient(lambda s: pair_sums(s, pairs), s)
    monkeypatch.setattr(module, "has_numba", lambda: False)
    monkeypatch.setitem(sys.modules, "cleanrank.losses.torch._pair_kernels", None)
    torch.testing.assert_close(value_and_gradient(lambda s: pair_sums(s, pairs), s), compiled)


def test_rows_are_cut_without_gaps():
    for lists, length, most in ((1, 1, 1), (3, 10, 25), (2, 7, 10**9), (4, 0, 5)):
        covered = [row for start, stop in row_blocks((lists, length), most) for row in range(start, stop)]
        assert covered == list(range(length))


@pytest.mark.parametrize("name", [n for n in LOSSES if LOSSES[n].trainable])
def test_elementwise_uses_the_losses_own_gradient(name):
    a = torch.linspace(-3.03, 3.01, 9, dtype=torch.float64, requires_grad=True)
    t = torch.linspace(0, 1, 9, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda a: elementwise(a, t, LOSSES[name]), a)
