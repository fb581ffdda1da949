"""Sums of a binary loss over the pairs of padded lists, with memory linear in their length.

Scores s, labels y and weights w are (B, L) tensors with a mask. A list has

    S = sum over its pairs (i, j) of  w_i w_j delta_ij l(sigma (s_i - s_j), 1[y_i > y_j])

over one of PAIR_SETS; ties of all_ordered pairs have the target 0.

S and dS/ds are computed together, some rows of the n x n table at a time, and dS/ds (B, L) is all that is
kept for the backward pass. The second derivative is not available. On a processor, mixtures of the logistic
loss are summed by compiled kernels when numba is there; on a GPU those of any named loss by a fused program
when Triton is.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from cleanrank.jit import has_numba, threads
from cleanrank.losses.binary import BinaryLoss, Formula
from cleanrank.losses.robust_specs import UNMIXED, Mixture
from cleanrank.losses.torch import fused
from cleanrank.losses.torch.swap_weights import Swap, gain_change

# Pairs in memory at a time: on a processor what its cache holds, on an accelerator what keeps it busy.
BLOCK = {"cpu": 1 << 18, "cuda": 1 << 20}
ROWS = 64
SMALL = 1 << 16


@dataclass(frozen=True)
class Pairs:
    """The pairs of padded lists and the loss on them."""

    labels: Tensor  # (B, L), of the type of the scores; only their order counts
    mask: Tensor  # (B, L), False at padding
    kind: str  # one of PAIR_SETS
    loss: BinaryLoss  # l(logit, target)
    sigma: float = 1.0  # factor of score differences
    weights: Tensor | None = None  # (B, L) or None
    swap: Swap | None = None  # delta_ij or None
    # The loss as a mixture of a named loss of a margin, for compiled kernels and programs, or None.
    mixture: Mixture | None = None
    block: int | None = None  # pairs in memory at a time; None for the default of the device
    curve: str = "logistic"  # the loss that ``mixture`` is made of


def applied(function: Any, *arguments: Any) -> Tensor:
    """A torch ``Function`` applied; the one place that crosses into what torch leaves untyped."""
    made: Tensor = function.apply(*arguments)
    return made


def pair_sums(scores: Tensor, pairs: Pairs) -> Tensor:
    """S of every list (B,)."""
    return applied(_PairSums, scores, pairs)


def fused_risk(scores: Tensor, pairs: Pairs, weighting: str) -> Tensor:
    """The risk of all lists by fused programs, under one of their WEIGHTINGS; see ``can_be_fused``."""
    return applied(_FusedRisk, scores, pairs, weighting)


class _PairSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, pairs: Pairs) -> Tensor:
        gradient: Tensor | None
        if can_be_compiled(scores, pairs):
            sums, gradient = compiled_sums(scores, pairs, ctx.needs_input_grad[0])
        elif can_be_fused(scores, pairs):
            (sums, *_), gradient = fused.sums(scores, pairs)
        else:
            sums, gradient = blocked_sums(scores, pairs, ctx.needs_input_grad[0])
        if gradient is not None:
            ctx.save_for_backward(gradient)
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return upstream[:, None] * gradient, None


class _FusedRisk(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, pairs: Pairs, weighting: str) -> Tensor:
        risk, factors, slopes = fused.list_risk(scores, pairs, weighting)
        ctx.save_for_backward(factors, slopes)
        return risk

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None]:
        factors, slopes = ctx.saved_tensors
        return (upstream * factors)[:, None] * slopes, None, None


def blocked_sums(scores: Tensor, pairs: Pairs, with_gradient: bool) -> tuple[Tensor, Tensor | None]:
    """S (B,) and dS/ds (B, L), block by block of rows."""
    s = scores.masked_fill(~pairs.mask, 0.0)
    sums = s.new_zeros(len(s))
    gradient = torch.zeros_like(s) if with_gradient else None
    for start, stop in row_blocks(s.shape, pairs.block or block_size(s)):
        left_out, better = _choose(pairs, start, stop)
        weight = _pair_weights(pairs, start, stop, s)
        logit = pairs.sigma * (s[:, start:stop, None] - s[:, None, :])
        one, zero = pairs.loss.one, pairs.loss.zero
        sums += _of_pairs(one.value, zero.value, logit, better, weight, left_out).sum((1, 2))
        if gradient is not None:
            slope = _of_pairs(one.slope, zero.slope, logit, better, weight, left_out)
            gradient[:, start:stop] += slope.sum(2)
            gradient -= slope.sum(1)
    return sums, None if gradient is None else gradient.mul_(pairs.sigma)


def can_be_compiled(scores: Tensor, pairs: Pairs) -> bool:
    """Whether a compiled kernel computes these pairs."""
    plain = scores.device.type == "cpu" and scores.dtype in (torch.float32, torch.float64)
    return _mixed(pairs, ("logistic",)) and plain and has_numba()


def can_be_fused(scores: Tensor, pairs: Pairs) -> bool:
    """Whether a fused program computes these pairs; who says how many pairs a block has gets blocks."""
    return _mixed(pairs, fused.CURVES) and pairs.block is None and fused.usable(scores)


def _mixed(pairs: Pairs, curves: Sequence[str]) -> bool:
    """Whether pairs are counted by one of some curves, weighted by nothing but changes of gains."""
    plain = pairs.swap is None or pairs.swap.formula is gain_change
    return plain and pairs.mixture is not None and pairs.curve in curves


def compiled_sums(scores: Tensor, pairs: Pairs, with_gradient: bool) -> tuple[Tensor, Tensor | None]:
    """S (B,) and dS/ds (B, L) of a mixture of logistic losses by a compiled kernel, in double precision."""
    from cleanrank.losses.torch import _pair_kernels

    s = scores.detach().contiguous().numpy()
    w = np.ones_like(s) if pairs.weights is None else pairs.weights.to(scores.dtype).contiguous().numpy()
    lengths = pairs.mask.sum(1).numpy()
    sums, gradient = np.zeros(len(s)), np.zeros_like(s)
    mix = np.array(_pair_mixture(pairs))
    with _threads(s.size * s.shape[1]):
        if pairs.swap is None:
            y = pairs.labels.masked_fill(~pairs.mask, -torch.inf)
            order = y.argsort(dim=1, descending=True, stable=True).numpy()
            _pair_kernels.plain_sums(s, y.numpy(), w, lengths, order, pairs.sigma, mix, sums, gradient)
        else:
            gain, discount = (c.contiguous().numpy() for c in pairs.swap.columns)
            assert pairs.swap.order is not None
            order = pairs.swap.order.numpy()
            _pair_kernels.swapped_sums(s, w, gain, discount, lengths, order, pairs.sigma, mix, sums, gradient)
    return torch.from_numpy(sums).to(scores.dtype), torch.from_numpy(gradient) if with_gradient else None


@contextmanager
def _threads(cells: int) -> Iterator[None]:
    """As many threads for compiled kernels as torch has; for a small batch one, as waking more costs more.

    Kernels and torch may share an OpenMP runtime, so torch's own number is put back afterwards.
    """
    before = torch.get_num_threads()
    try:
        with threads(before if cells > SMALL else 1):
            yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)


def _pair_mixture(pairs: Pairs) -> tuple[float, float, float, float]:
    """(a, c) of pairs of different grades and of ties, as the kernels read them."""
    (one_f, one_b), (zero_f, zero_b) = pairs.mixture or UNMIXED
    if pairs.kind == "strict":
        return one_f + one_b, one_b, 0.0, 0.0
    tie = zero_f + zero_b if pairs.kind == "all_ordered" else 0.0
    return one_f + one_b + zero_f + zero_b, one_b + zero_f, 2.0 * tie, tie


def row_blocks(shape: tuple[int, ...], most: int) -> Iterator[tuple[int, int]]:
    """Cuts L rows into blocks of at most about ``most`` pairs over all B lists."""
    lists, length = shape
    rows = max(1, most // max(1, lists * length))
    for start in range(0, length, rows):
        yield start, min(start + rows, length)


def block_size(scores: Tensor) -> int:
    """The pairs in memory at a time; on an accelerator some whole rows at least, as each start costs time."""
    kind = scores.device.type
    return BLOCK["cpu"] if kind == "cpu" else max(BLOCK["cuda"], ROWS * scores.numel())


def _choose(pairs: Pairs, start: int, stop: int) -> tuple[Tensor, Tensor | None]:
    """Which pairs of rows start..stop-1 do not count, and which have target 1; None if all that count."""
    y, mask = pairs.labels, pairs.mask
    better = y[:, start:stop, None] > y[:, None, :]
    inside = mask[:, start:stop, None] & mask[:, None, :]
    if pairs.kind == "strict":
        return inside.logical_and_(better).logical_not_(), None
    if pairs.kind == "strict_both":
        inside.logical_and_(y[:, start:stop, None] != y[:, None, :])
    else:
        rows = torch.arange(start, stop, device=y.device)
        inside[:, rows - start, rows] = False
    return inside.logical_not_(), better


def _pair_weights(pairs: Pairs, start: int, stop: int, like: Tensor) -> Tensor | None:
    change = None if pairs.swap is None else pairs.swap.rows(start, stop)
    if pairs.weights is None:
        return change
    w = pairs.weights.to(like.dtype)
    both = w[:, start:stop, None] * w[:, None, :]
    return both if change is None else change.mul_(both)


def _of_pairs(
    one: Formula, zero: Formula, logit: Tensor, better: Tensor | None, weight: Tensor | None, left_out: Tensor
) -> Tensor:
    """A curve at the pairs of a block, times their weights; 0 where a pair does not count."""
    values: Tensor = one(logit) if better is None else torch.where(better, one(logit), zero(logit))
    if weight is not None:
        values = values * weight
    # Not a product with the mask: a pair that does not count may have an infinite value.
    return values.masked_fill_(left_out, 0.0)


class _Elementwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logit: Tensor, target: Tensor, loss: BinaryLoss) -> Tensor:
        if ctx.needs_input_grad[0]:
            ctx.save_for_backward(loss.gradient(logit, target))
        value: Tensor = loss.value(logit, target)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return upstream * gradient, None, None


def elementwise(logit: Tensor, target: Tensor, loss: BinaryLoss) -> Tensor:
    """l(logit, target) whose backward pass uses the loss's own gradient."""
    return applied(_Elementwise, logit, target, loss)
