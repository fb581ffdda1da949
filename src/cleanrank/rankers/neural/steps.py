"""A step of training in two halves, so that a batch can be cut into parts without changing what is learnt.

The network sees documents; the loss sees scores, which are small. A batch may therefore be cut into parts,
for several processes or to save memory: each part goes through the network on its own, then the scores of all
of them are put together and *one* loss is taken of the whole batch. Whatever it averages over, the step is
that of the whole batch but for rounding; what a loss or dropout draws is drawn for other places.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
import torch.distributed as distributed
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from cleanrank.rankers.neural.device import Processes
from cleanrank.types import IntArray

# The model as a step calls it: with the precision of the training, results in single precision.
Forward: TypeAlias = Callable[..., Any]
# Of some members: tensors by document, in their order, and scalars that are means over the members.
Outputs: TypeAlias = tuple[Tensor, ...]


@dataclass(frozen=True)
class Step:
    """What a training does with a batch; its members are integers that mean queries, pairs or rows.

    Attributes:
        batch: called with one or more arrays of members; what the other two read of them.
        scores: called with (forward, batch of one part); what the network says of it. ``forward`` stands for
            the model.
        loss: called with (outputs, batch of all parts, generator); the mean loss. ``generator`` is for
            whatever the loss draws.
    """

    batch: Callable[..., Any]
    scores: Callable[[Forward, Any], Outputs]
    loss: Callable[[Outputs, Any, torch.Generator], Tensor]

    def of_one(self, forward: Forward, members: IntArray, generator: torch.Generator) -> Tensor:
        """The loss of a batch that goes through the network at once."""
        batch = self.batch(members)
        return self.loss(self.scores(forward, batch), batch, generator)

    def of_parts(
        self,
        forward: Forward,
        members: IntArray,
        generator: torch.Generator,
        processes: Processes,
        accumulate: int,
    ) -> Tensor:
        """The same loss, known to all processes; gradients flow through the parts of this one alone.

        A process has ``accumulate`` parts, of which the backward pass keeps scores alone: it sends them
        through the network a second time, one after the other.
        """
        parts = cut(members, processes.world * accumulate)
        own = []
        for part in parts[processes.rank :: processes.world]:
            # A part without members has nothing to say but takes part, as all processes wait for each other.
            batch = self.batch(part if len(part) else members[:1])
            if accumulate > 1:
                outputs = checkpoint(self.scores, forward, batch, use_reentrant=False)
            else:
                outputs = self.scores(forward, batch)
            own.append(outputs if len(part) else tuple(x[:0] if x.ndim else x for x in outputs))
        shares = [len(part) / len(members) for part in parts]
        every = gathered(own, processes)
        return self.loss(put_together(every, shares), self.batch(*parts), generator)


def cast(model: nn.Module, half: bool, kind: str) -> Forward:
    """The model with matrix products in 16 bits if ``half``, and results in single precision."""

    def forward(*arguments: Any, **named: Any) -> Any:
        with torch.autocast(kind, dtype=torch.bfloat16) if half else contextlib.nullcontext():
            scores = model(*arguments, **named)
        return scores.float() if isinstance(scores, Tensor) else tuple(each.float() for each in scores)

    return forward


def cut(members: IntArray, n: int) -> list[IntArray]:
    """Members in n parts of about equal size, like lengths in each; some may be empty.

    >>> import numpy as np
    >>> [part.tolist() for part in cut(np.arange(5), 2)]
    [[0, 2, 4], [1, 3]]
    """
    return [members[k::n] for k in range(n)]


def put_together(parts: Sequence[Outputs], shares: Sequence[float]) -> Outputs:
    """The outputs of all parts: documents one part after the other, means weighed by the parts' shares.

    >>> parts = [(torch.tensor([1.0, 2.0]), torch.tensor(0.0)), (torch.tensor([3.0]), torch.tensor(3.0))]
    >>> put_together(parts, [2 / 3, 1 / 3])
    (tensor([1., 2., 3.]), tensor(1.))
    """
    whole = []
    for each in zip(*parts, strict=True):
        if each[0].ndim:
            whole.append(torch.cat(each))
        else:
            whole.append(torch.stack([x * share for x, share in zip(each, shares, strict=True)]).sum())
    return tuple(whole)


def gathered(own: list[Outputs], processes: Processes) -> list[Outputs]:
    """The outputs of all parts of all processes, in their order; gradients flow to the own ones."""
    if processes.world == 1:
        return own
    rank, world = processes.rank, processes.world
    every: list[list[Tensor]] = [[] for _ in range(world * len(own))]
    for mine in zip(*own, strict=True):
        columns = [x.detach() if x.ndim else x.detach()[None] for x in mine]
        sizes = _sizes(columns, world)
        longest = int(sizes.sum(1).max())
        flat = torch.cat(columns)
        padded = flat.new_zeros(longest, *flat.shape[1:])
        padded[: len(flat)] = flat
        received = [torch.empty_like(padded) for _ in range(world)]
        distributed.all_gather(received, padded)
        for other, values in enumerate(received):
            pieces = torch.split(values[: int(sizes[other].sum())], sizes[other].tolist())
            for k, piece in enumerate(pieces):
                shaped = piece if mine[k].ndim else piece[0]
                every[other + k * world].append(mine[k] if other == rank else shaped)
    return [tuple(outputs) for outputs in every]


def _sizes(columns: Sequence[Tensor], world: int) -> Tensor:
    """The lengths of the columns of every process, (world, columns)."""
    mine = torch.tensor([len(x) for x in columns], device=columns[0].device)
    received = [torch.empty_like(mine) for _ in range(world)]
    distributed.all_gather(received, mine)
    return torch.stack(received).cpu()


def sum_gradients(parameters: Sequence[nn.Parameter]) -> None:
    """Adds up the gradients of all processes in every one of them; a parameter without gradient has 0."""
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    gradients = [p.grad for p in parameters if p.grad is not None]
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
    distributed.all_reduce(flat)
    totals = torch.split(flat, [gradient.numel() for gradient in gradients])
    for gradient, total in zip(gradients, totals, strict=True):
        gradient.copy_(total.view_as(gradient))
