"""Sums over the pairs of padded lists by fused programs, on a GPU where Triton is installed.

Value and gradient come from one program that stores numbers by document, never by pair. Ranks are counted,
not sorted: the rank of a document is one more than the number of those above it, at a price that the sums
over pairs pay anyway.
"""

import importlib.util
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from cleanrank.losses.torch.pair_sums import Pairs

# The losses of losses.binary whose curves the programs know; mixtures of them with themselves turned round.
CURVES = (
    "logistic", "sigmoid", "exponential", "hinge", "squared_hinge", "l1", "ramp", "unhinged", "squared",
)  # fmt: skip
# Documents that a program owns, and that it compares them with at a time; measured on an H200.
TILE = {"ROWS": 4, "COLUMNS": 128, "num_warps": 2}
LONGEST = 65_535 * TILE["ROWS"]  # documents of a list: a GPU runs so many programs side by side
LISTS = 1024  # that the program of the risk reads at a time
WEIGHTINGS = ("micro", "macro", "pooled", "sum")


def usable(values: Tensor) -> bool:
    """Whether programs run on these values, lists of numbers."""
    known = values.device.type == "cuda" and values.dtype == torch.float32
    return known and values.shape[-1] <= LONGEST and _compiles(values.device)


@lru_cache
def _compiles(device: torch.device) -> bool:
    if importlib.util.find_spec("triton") is None:
        return False
    try:
        probe = torch.tensor([[0.0, 1.0]], device=device)
        return ranks(probe, torch.ones_like(probe, dtype=torch.bool)).tolist() == [[2.0, 1.0]]
    except Exception as error:
        words = " ".join(str(error).split())[:200]
        warnings.warn(
            f"Triton is installed but compiles nothing here, so losses are slower: {words}", stacklevel=2
        )
        return False


def sums(scores: Tensor, pairs: "Pairs") -> tuple[Tensor, Tensor]:
    """By list S, the weight of its pairs in one order and that of its documents, (3, B); and dS/ds (B, L).

    The loss is a mixture of one of CURVES. Pairs may be weighted by changes of gains, which the weight of
    all pairs leaves out.
    """
    assert pairs.mixture is not None
    (one_f, one_b), (zero_f, zero_b) = pairs.mixture
    if pairs.kind == "strict":
        zero_f = zero_b = 0.0
    ties = pairs.kind == "all_ordered"
    ahead, behind, tie = one_f + zero_b, one_b + zero_f, zero_f + zero_b
    s = scores.detach().contiguous()
    gains, discounts = (s, s) if pairs.swap is None else pairs.swap.columns
    weights = s if pairs.weights is None else pairs.weights.to(s.dtype)
    values, slopes = s.new_empty(3, *s.shape), torch.empty_like(s)
    _launch(
        "pair_sums", s, pairs.labels, pairs.mask, weights, gains, discounts, values, slopes, s.shape[1],
        s.numel(), float(pairs.sigma), float(ahead), float(behind), float(tie), CURVE=pairs.curve,
        BOTH=ties or behind != 0.0, TIES=ties, WEIGHTED=pairs.weights is not None,
        SWAPPED=pairs.swap is not None,
    )  # fmt: skip
    return values.sum(2), slopes


def list_risk(scores: Tensor, pairs: "Pairs", weighting: str) -> tuple[Tensor, Tensor, Tensor]:
    """The risk of all lists under one of WEIGHTINGS, their factors (B,) in it, and dS/ds (B, L)."""
    totals, slopes = sums(scores, pairs)
    factors, risk = torch.empty_like(totals[0]), totals.new_empty(())
    if not len(factors):
        return risk.zero_(), factors, slopes
    from cleanrank.losses.torch import _pair_programs

    orders = 1.0 if pairs.kind == "strict" else 2.0
    options = {"WEIGHTING": weighting, "LISTS": LISTS}
    _pair_programs.list_risk[(1,)](totals, factors, risk, len(factors), orders, **options)
    return risk, factors, slopes


def ranks(keys: Tensor, mask: Tensor, kind: str = "rank", cutoff: int | None = None) -> Tensor:
    """Ranks from 1 by descending key, ties by index, or their discounts; 0 beyond a cut-off and at padding.

    ``kind``: "rank", or the name of a discount, "log2" or "letor".
    """
    found = torch.empty_like(keys)
    most = torch.inf if cutoff is None else float(cutoff)
    _launch("places", keys.contiguous(), mask, found, keys.shape[1], most, KIND=kind)
    return found


def smooth_ranks(scores: Tensor, mask: Tensor) -> Tensor:
    """1 + the sum over other documents of sigmoid(s_j - s_i)."""
    found = torch.empty_like(scores)
    _launch("smooth_places", scores.contiguous(), mask, found, scores.shape[1])
    return found


def smooth_rank_slopes(scores: Tensor, mask: Tensor, upstream: Tensor) -> Tensor:
    """The gradient of ``smooth_ranks`` times ``upstream``."""
    found = torch.empty_like(scores)
    _launch("smooth_slopes", scores.contiguous(), mask, upstream, found, scores.shape[1])
    return found


def _launch(name: str, first: Tensor, *arguments: Any, **options: Any) -> None:
    """Runs a program over all documents of all lists; tensors have one shape and lie row by row."""
    from cleanrank.losses.torch import _pair_programs

    lists, length = first.shape
    if lists and length:
        grid = (lists, -(-length // TILE["ROWS"]))
        plain = (x.contiguous() if isinstance(x, Tensor) else x for x in arguments)
        getattr(_pair_programs, name)[grid](first, *plain, **options, **TILE)
