"""The state of a training in one file, from which it goes on as if it had never stopped.

Streams of random numbers start anew in every epoch, from the seed and the number of the epoch, so the epoch
is all that has to be remembered of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from cleanrank.errors import BadFileError, MissingDataError, error_text, invalid
from cleanrank.rankers.checkpoints import read_tensors, write_tensors
from cleanrank.validation import is_integer

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
        message = error_text(f"checkpoint {str(path)!r}", f"must hold a {FORMAT} of version {VERSION}", found)
        raise BadFileError(message, str(path))
    saved = metadata.get("identity")
    if not isinstance(saved, dict):
        _broken(path, "nothing says of what")
    _refuse_another(path, saved, identity)
    try:
        done = _progressed(metadata)
        best = _part(tensors, "best/")
        model.load_state_dict(_part(tensors, "model/"))
        _match(model, best)
        slots = _slots(tensors, [p for group in optimizer.param_groups for p in group["params"]])
    except (AttributeError, LookupError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        _broken(path, str(error))
    if done.best_epoch and not best:
        _broken(path, "the weights of its best epoch are missing")
    optimizer.load_state_dict({"state": slots, "param_groups": optimizer.state_dict()["param_groups"]})
    return done, best or None


def check_place(path: Path) -> None:
    """Refuses a file in a folder that is not there."""
    if not path.parent.is_dir():
        raise MissingDataError(f"the folder {str(path.parent)!r} does not exist. Make it first.")


def _progressed(metadata: Mapping[str, Any]) -> Progressed:
    best_value = metadata["best_value"]
    done = Progressed(
        int(metadata["epoch"]),
        int(metadata["best_epoch"]),
        -float("inf") if best_value is None else float(best_value),
        list(metadata["history"]),
    )
    whole = is_integer(metadata["epoch"]) and is_integer(metadata["best_epoch"])
    if (
        not whole
        or not 0 <= done.best_epoch <= done.epoch
        or not all(isinstance(told, dict) for told in done.history)
    ):
        raise ValueError(f"epoch {done.epoch} and its history do not go together")
    return done


def _match(model: torch.nn.Module, weights: Weights) -> None:
    """Refuses best weights that are not those of this model."""
    shapes = {name: value.shape for name, value in model.state_dict().items()}
    if weights and shapes != {name: value.shape for name, value in weights.items()}:
        raise ValueError("the weights of its best epoch are not those of its model")


def _slots(
    tensors: Mapping[str, np.ndarray[Any, Any]], parameters: Sequence[torch.nn.Parameter]
) -> dict[int, Weights]:
    """The optimiser's state of each parameter: numbers, or tensors of its shape, the same of all."""
    state: dict[int, Weights] = {}
    for name, value in _part(tensors, "optimizer/").items():
        place, _, slot = name.partition("/")
        if value.ndim and value.shape != parameters[int(place)].shape:
            raise ValueError(f"{slot} of the optimiser has shape {tuple(value.shape)}")
        state.setdefault(int(place), {})[slot] = value
    if len({frozenset(slots) for slots in state.values()}) > 1:
        raise ValueError("a part of the optimiser's state is missing")
    return state


def _broken(path: Path, why: str) -> NoReturn:
    raise BadFileError(
        f"checkpoint {str(path)!r} must hold a whole training: {' '.join(why.split())}. "
        "Remove it to start anew.",
        str(path),
    )


def _refuse_another(path: Path, saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    different = [name for name in {**saved, **wanted} if saved.get(name) != wanted.get(name)]
    if different:
        name = different[0]
        raise invalid(
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
