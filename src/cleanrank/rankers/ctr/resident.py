"""Rows of clicks on the device: moved there once, batches gathered by row."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cleanrank.data.behaviours import ClickRows, Layout
from cleanrank.data.vocabulary import Vocabulary
from cleanrank.errors import invalid
from cleanrank.rankers.neural.steps import cast
from cleanrank.types import FloatArray, IntArray

CODE_ALIKE = (
    "Prepare all rows together, or code a later log with CTRModel.rows_of: other codes are other ids."
)
# Rows scored at a time outside of training.
CHUNK = 8192


@dataclass(frozen=True, eq=False)
class ResidentRows:
    """Rows as two tables of whole numbers, so that a batch takes two gathers."""

    table: Tensor  # (N, Fu + Fi + Fc + 1): codes of user, item and context, then the number of the history
    histories: Tensor  # (H, T * Fi + 1): codes of behaviours, then how many are valid
    y: Tensor  # (N,) targets, single precision
    widths: tuple[int, int, int]  # Fu, Fi, Fc

    def __len__(self) -> int:
        return len(self.y)

    def inputs(self, rows: Tensor | slice) -> tuple[Tensor, ...]:
        """(user, item, context, history, lengths) of some rows, as networks take them."""
        chosen = self.table[rows].long()
        behaviours = self.histories[chosen[:, -1]].long()
        history = behaviours[:, :-1].reshape(len(chosen), -1, self.widths[1])
        return *torch.split(chosen[:, :-1], list(self.widths), dim=1), history, behaviours[:, -1]


def resident(rows: ClickRows, device: torch.device, most: int | None = None) -> ResidentRows:
    """Puts rows on a device; ``most``, if given, is what their histories are filled up to."""
    n_histories, length, width = rows.histories.shape
    behaviours = rows.histories
    if most is not None and length < most:
        behaviours = np.pad(behaviours, ((0, 0), (0, most - length), (0, 0)))
    flat = behaviours.reshape(n_histories, -1)
    table = np.column_stack([rows.user, rows.item, rows.context, rows.history_of]).astype(np.int32)
    return ResidentRows(
        torch.from_numpy(table).to(device),
        torch.from_numpy(np.column_stack([flat, rows.lengths]).astype(np.int32)).to(device),
        torch.from_numpy(rows.y.astype(np.float32)).to(device),
        (rows.user.shape[1], width, rows.context.shape[1]),
    )


def check_click_rows(rows: Any, subject: str) -> None:
    """Refuses anything but ClickRows."""
    if not isinstance(rows, ClickRows):
        remedy = "load_dataset reads logs as ClickRows; prepare_clicks makes them of your own."
        raise invalid(subject, "must be ClickRows", type(rows).__name__, remedy=remedy)


def check_layout(
    rows: ClickRows, layout: Layout, vocabulary: Vocabulary | None, most: int, subject: str = "rows"
) -> None:
    """Refuses rows whose fields, codes or histories are not those of the training rows."""
    check_click_rows(rows, subject)
    for part in ("user", "item", "context"):
        known, present = getattr(layout, part), getattr(rows.layout, part)
        if list(known) != list(present):
            rule = f"must have the {part} fields of the training rows ({', '.join(known) or 'none'})"
            raise invalid(subject, rule, ", ".join(present) or "none")
        for name, size in known.items():
            if present[name] != size:
                rule = f"must be coded as the training rows, with {size:,} codes in field {name!r}"
                raise invalid(subject, rule, f"{present[name]:,}", remedy=CODE_ALIKE)
    if rows.vocabulary is not vocabulary:
        prints = [None if each is None else each.fingerprint[:12] for each in (vocabulary, rows.vocabulary)]
        if prints[0] != prints[1]:
            rule = f"must be coded by the tables of the training rows (fingerprint {prints[0]})"
            raise invalid(subject, rule, prints[1], remedy=CODE_ALIKE)
    if rows.histories.shape[1] > most:
        rule = f"must have histories of at most {most} behaviours, as the training rows"
        raise invalid(subject, rule, rows.histories.shape[1], remedy=f"Prepare them with history={most}.")


def logits(network: nn.Module, rows: ResidentRows, *, half: bool = False, chunk: int = CHUNK) -> FloatArray:
    """Logits of all rows with the network as it stands in evaluation mode."""
    network.eval()
    forward = cast(network, half, rows.table.device.type)
    with torch.inference_mode():
        parts = [forward(*rows.inputs(slice(k, k + chunk))) for k in range(0, len(rows), chunk)]
        scores = torch.cat(parts) if parts else torch.zeros(0)
    return scores.cpu().numpy().astype(np.float64)


def batches(n: int, size: int, rng: np.random.Generator) -> list[IntArray]:
    """All rows in random order, so many at a time."""
    return np.split(rng.permutation(n), range(size, n, size))
