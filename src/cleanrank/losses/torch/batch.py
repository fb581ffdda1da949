"""Padded lists as the losses read them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from cleanrank.errors import invalid


@dataclass(frozen=True)
class Batch:
    """B lists padded to L documents, (B, L) tensors: floats of one type, zeros at padding."""

    scores: Tensor
    labels: Tensor
    mask: Tensor
    weights: Tensor
    weighted: bool
    gains: Tensor | None

    def refuse_gains(self, loss: str) -> None:
        """Refuses gains where a loss would not read them."""
        if self.gains is not None:
            remedy = "Pass them as labels: their order counts."
            raise invalid("gains", f"have no meaning for {loss}", remedy=remedy)


class BatchLoss:
    """A loss that is called with padded lists; see ``ranking_loss``."""

    def __call__(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        generator: torch.Generator | None = None,
        *,
        weights: Tensor | None = None,
        gains: Tensor | None = None,
    ) -> Tensor:
        """The risk of a batch of lists."""
        return self.risk(read_batch(scores, labels, mask, weights, gains), generator)

    def risk(self, batch: Batch, generator: torch.Generator | None) -> Tensor:
        """The risk of a batch that has been read."""
        raise NotImplementedError


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
            shape = tuple(scores.shape) if scores.ndim != 2 or tensor is None else tuple(tensor.shape)
            raise invalid(f"scores and {name}", "must be of one shape (lists, documents)", shape)
    inside = torch.ones_like(labels, dtype=torch.bool) if mask is None else mask.bool()
    s = single_precision(scores)

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


def single_precision(scores: Tensor) -> Tensor:
    """Scores in half precision as single precision, others as they are."""
    return scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores


def needs_generator(subject: str, generator: torch.Generator | None) -> torch.Generator:
    """The generator; None is refused."""
    if generator is None:
        remedy = "Pass generator=torch.Generator()."
        raise invalid(subject, "must have a source of randomness", remedy=remedy)
    return generator
