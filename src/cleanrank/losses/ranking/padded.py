"""Padded lists as ranking losses read them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from cleanrank.errors import invalid


@dataclass(frozen=True)
class Batch:
    """Padded lists as the losses read them: floats of one type, zeros at padding."""

    scores: Tensor
    labels: Tensor
    mask: Tensor
    weights: Tensor
    weighted: bool
    gains: Tensor | None


def read_batch(
    scores: Tensor, labels: Tensor, mask: Tensor | None, weights: Tensor | None, gains: Tensor | None
) -> Batch:
    """Checks the shapes of a batch and fills its padding.

    >>> read_batch(torch.ones(1, 2), torch.ones(1, 2), torch.tensor([[True, False]]), None, None).scores
    tensor([[1., 0.]])
    """
    named = {"labels": labels, "mask": mask, "weights": weights, "gains": gains}
    for name, tensor in {"scores": scores, **named}.items():
        if tensor is not None and not isinstance(tensor, Tensor):
            raise invalid(
                name, "must be a torch tensor", type(tensor).__name__, remedy="torch.as_tensor makes one."
            )
    if not scores.is_floating_point():
        raise invalid("scores", "must be of a floating type", scores.dtype)
    for name, tensor in named.items():
        if scores.ndim != 2 or (tensor is not None and tensor.shape != scores.shape):
            found = tuple(scores.shape) if scores.ndim != 2 or tensor is None else tuple(tensor.shape)
            raise invalid(f"scores and {name}", "must be of one shape (lists, documents)", found)
    inside = torch.ones_like(labels, dtype=torch.bool) if mask is None else mask.bool()
    s = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores

    def filled(tensor: Tensor) -> Tensor:
        return tensor.to(s.dtype).masked_fill(~inside, 0.0)

    return Batch(
        s.masked_fill(~inside, 0.0),
        filled(labels),
        inside,
        inside.to(s.dtype) if weights is None else filled(weights),
        weights is not None,
        None if gains is None else filled(gains),
    )


def refuse_gains(name: str, batch: Batch) -> None:
    """Refuses gains where a loss would not read them."""
    if batch.gains is not None:
        raise invalid(
            "gains",
            f"have no meaning for {name}",
            "a tensor",
            remedy="Pass them as labels: their order counts.",
        )
