"""The state of a training in one file, from which it goes on as if it had never stopped.

Streams of random numbers start anew in every epoch, from the seed and the number of the epoch, so the epoch
is all that has to be remembered of them.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cleanrank import checks
from cleanrank.checks import BadFileError
from cleanrank.rankers.checkpoints import read_tensors, write_tensors

FORMAT = "cleanrank training"
VERSION = 1
Weights = dict[str, torch.Tensor]


@dataclass
class Progressed:
    """How far a training has come.

    Attributes:
        epoch: epochs done.
        best_epoch: the one that was best on validation data; 0 before there was any.
        best_value: the measure there.
        history: per epoch its number, the mean loss and the value on validation data.
    """

    epoch: int = 0
    best_epoch: int = 0
    best_value: float = -float("inf")
    history: list[dict[str, Any]] = field(default_factory=list)


def save_state(
    path: Path,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    done: Progressed,
    best: Weights | None,
    identity: Mapping[str, Any],
) -> None:
    """Writes everything a training needs to go on; the file is replaced whole."""
    tensors = {f"model/{name}": _array(value) for name, value in model.state_dict().items()}
    tensors |= {f"best/{name}": _array(value) for name, value in (best or {}).items()}
    for place, state in optimizer.state_dict()["state"].items():
        for name, value in state.items():
            if value is not None:
                tensors[f"optimizer/{place}/{name}"] = _array(value)
    metadata = {"format": FORMAT, "version": VERSION, "identity": dict(identity), **asdict(done)}
    # JSON has no infinity.
    metadata["best_value"] = None if done.best_epoch == 0 else done.best_value
    write_tensors(path, tensors, metadata)


def load_state(
    path: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, identity: Mapping[str, Any]
) -> tuple[Progressed, Weights | None]:
    """Puts a saved state into a model and its optimiser; refuses that of another training."""
    tensors, metadata = read_tensors(path)
    if metadata.get("format") != FORMAT or metadata.get("version") != VERSION:
        found = f"{metadata.get('format')!r} {metadata.get('version')}"
        message = checks.complaint(
            f"checkpoint {str(path)!r}", f"must hold a {FORMAT} of version {VERSION}", found
        )
        raise BadFileError(message, str(path))
    _refuse_another(path, metadata["identity"], identity)
    model.load_state_dict(_part(tensors, "model/"))
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, value in _part(tensors, "optimizer/").items():
        place, _, slot = name.partition("/")
        state.setdefault(int(place), {})[slot] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    best_value = metadata["best_value"]
    done = Progressed(
        int(metadata["epoch"]),
        int(metadata["best_epoch"]),
        -float("inf") if best_value is None else float(best_value),
        list(metadata["history"]),
    )
    return done, _part(tensors, "best/") or None


def _refuse_another(path: Path, saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    different = [name for name in {**saved, **wanted} if saved.get(name) != wanted.get(name)]
    if different:
        name = different[0]
        checks.fail(
            f"checkpoint {str(path)!r}",
            f"must belong to this training, whose {name} is {wanted.get(name)!r}",
            repr(saved.get(name)),
            remedy="Name another file, or remove this one to start anew.",
        )


def _part(tensors: Mapping[str, np.ndarray[Any, Any]], prefix: str) -> Weights:
    return {
        name.removeprefix(prefix): torch.from_numpy(value)
        for name, value in tensors.items()
        if name.startswith(prefix)
    }


def _array(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, torch.Tensor):
        found: np.ndarray[Any, Any] = value.detach().cpu().numpy()
        return found
    return np.asarray(value)
