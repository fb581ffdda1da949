"""Fused programs against the blocked version: on a GPU where there is one, else in Triton's interpreter."""

import os

import pytest
import torch

from cleanrank.losses.binary import LOSSES
from cleanrank.losses.pairs import PAIR_SETS
from cleanrank.losses.robust_specs import read_spec
from cleanrank.losses.torch import fused, lists, pair_loss, pair_sums, ranking_loss
from cleanrank.losses.torch.pair_sums import Pairs, blocked_sums, can_be_fused
from cleanrank.losses.torch.swap_weights import ranking, swap_of
from cleanrank.metrics.measure import Measure
from tests.losses.dense import batch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is imported
pytest.importorskip("triton")
VALUE, GRADIENT = {"rtol": 1e-5, "atol": 1e-6}, {"rtol": 1e-4, "atol": 1e-5}


@pytest.fixture(scope="module", autouse=True)
def device():
    """Where programs run; without a GPU small tiles keep the interpreter quick."""
    if torch.cuda.is_available():
        yield torch.device("cuda")
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fused, "TILE", {"ROWS": 8, "COLUMNS": 16})
        patch.setattr(fused, "usable", lambda values: values.dtype == torch.float32)
        yield torch.device("cpu")


def lists_of(device, kind="strict", measure=None, spec=None, curve="logistic", weighted=True, scale=2.0):
    s, y, mask = batch(5, 23, 0, torch.float32)
    s = (s.detach() * scale).to(device)
    y, mask = y.to(device), mask.to(device)
    mask[3] = False
    mask[4, 1:] = False
    w = torch.rand(s.shape, generator=torch.Generator().manual_seed(1)).to(device) if weighted else None
    swap = None if measure is None else swap_of(Measure.parse(measure), s, y, mask)
    parts = read_spec(spec, curve)
    pairs = Pairs(y.float(), mask, kind, parts.loss, 0.8, w, swap, parts.mixture, curve=parts.base)
    return s.masked_fill(~mask, 0.0), pairs


def check(s, pairs):
    assert can_be_fused(s, pairs)
    ((value, weight, size), slope), (wanted, gradient) = fused.sums(s, pairs), blocked_sums(s, pairs, True)
    w = pairs.mask.float() if pairs.weights is None else pairs.weights * pairs.mask
    counted = pair_loss.pair_weight(pairs.kind, pairs.labels.masked_fill(~pairs.mask, 0.0), w)
    torch.testing.assert_close(weight * (1 if pairs.kind == "strict" else 2), counted, **VALUE)
    torch.testing.assert_close(size, w.sum(1), **VALUE)
    torch.testing.assert_close(value, wanted, **VALUE)
    torch.testing.assert_close(slope, gradient, **GRADIENT)
    assert (slope[~pairs.mask] == 0).all()


@pytest.mark.parametrize("kind", PAIR_SETS)
@pytest.mark.parametrize("measure", [None, "ndcg@10", "dcg:letor", "precision@3"])
def test_sums_are_those_of_blocks(device, kind, measure):
    for spec in (None, {"name": "peer", "alpha": 0.3}):
        check(*lists_of(device, kind, measure, spec))


@pytest.mark.parametrize("curve", fused.CURVES)
@pytest.mark.parametrize("spec", [None, "label_smoothing"])
def test_every_curve_is_the_loss_of_its_name(device, curve, spec):
    check(*lists_of(device, "all_ordered", None, spec, curve, weighted=False))


@pytest.mark.parametrize("scale", [0.0, 1e-3, 60.0, 1e4])
def test_scores_may_be_equal_or_far_apart(device, scale):
    check(*lists_of(device, scale=scale))


def test_all_curves_that_train_are_known():
    assert set(fused.CURVES) == {name for name, loss in LOSSES.items() if loss.trainable}


def test_other_losses_measures_and_types_are_left_to_blocks(device):
    assert not can_be_fused(*lists_of(device, measure="map"))
    assert not can_be_fused(*lists_of(device, spec="gce"))
    s, pairs = lists_of(device)
    assert not can_be_fused(s.double(), pairs)


def test_ranks_are_those_of_a_sort(device):
    s, pairs = lists_of(device)
    s = s.round()  # ties
    found = fused.ranks(s, pairs.mask)
    order = ranking(s, pairs.mask)
    wanted = torch.empty_like(order).scatter_(1, order, torch.arange(s.shape[1], device=device).expand_as(s))
    assert torch.equal(found[pairs.mask], wanted[pairs.mask] + 1.0)
    assert (found[~pairs.mask] == 0).all()


@pytest.mark.parametrize("measure", ["ndcg@3", "ndcg:letor", "dcg"])
@pytest.mark.parametrize("with_gains", [False, True])
def test_counted_changes_are_the_sorted_ones(device, monkeypatch, measure, with_gains):
    s, pairs = lists_of(device)
    gains = torch.rand(s.shape, generator=torch.Generator().manual_seed(2)).to(device) if with_gains else None
    arguments = Measure.parse(measure), s, pairs.labels, pairs.mask, gains
    found = swap_of(*arguments)
    monkeypatch.setattr(fused, "usable", lambda values: False)
    wanted = swap_of(*arguments)
    assert found.order is None
    for a, b in zip(found.columns, wanted.columns, strict=True):
        torch.testing.assert_close(a[pairs.mask], b[pairs.mask], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("pairwise", {"binary": "hinge"}),
        ("approx_ndcg", {}),
        *(("ranknet", {"weighting": weighting, "pairs": "strict_both"}) for weighting in fused.WEIGHTINGS),
        *(("lambdarank", {"weighting": weighting}) for weighting in fused.WEIGHTINGS),
    ],
)
def test_whole_losses_are_the_same(device, monkeypatch, name, options):
    s, pairs = lists_of(device)
    monkeypatch.setattr(fused, "LISTS", 4)  # fewer than there are
    loss = ranking_loss(name, **options)
    monkeypatch.setattr(pair_sums, "can_be_compiled", lambda scores, pairs: False)
    found = []
    for usable in (True, False):
        if not usable:
            monkeypatch.setattr(fused, "usable", lambda values: False)
        scores = s.clone().requires_grad_()
        value = loss(scores, pairs.labels, pairs.mask)
        found.append((value.detach(), *torch.autograd.grad(value, scores)))
    torch.testing.assert_close(found[0][0], found[1][0], **VALUE)
    torch.testing.assert_close(found[0][1], found[1][1], **GRADIENT)


def test_no_lists_and_no_documents_have_no_pairs(device):
    for shape in ((0, 3), (2, 0)):
        empty = torch.zeros(shape, device=device)
        parts = read_spec(None)
        pairs = Pairs(empty, empty.bool(), "strict", parts.loss, mixture=parts.mixture)
        risk, factors, slopes = fused.list_risk(empty, pairs, "macro")
        assert (risk.item(), len(factors), slopes.shape) == (0.0, shape[0], shape)


def test_smooth_ranks_are_replaced_where_no_block_is_given(device):
    s, pairs = lists_of(device)
    ranks = lists.applied(lists._SmoothRanks, s, pairs.mask, None)
    wanted = lists.applied(lists._SmoothRanks, s, pairs.mask, 64)
    torch.testing.assert_close(ranks[pairs.mask], wanted[pairs.mask], **VALUE)
