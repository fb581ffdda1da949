"""Tensors in files: models and states of training as safetensors.

A file begins with a JSON header that gives the type, shape and place of each tensor; ``__metadata__`` maps
text to text, here JSON. Nothing in such a file is ever executed.
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from cleanrank.data.files import existing_file, written_whole
from cleanrank.errors import BadFileError, MissingDataError, error_text, invalid
from cleanrank.stored import StoredFeatures
from cleanrank.types import Array
from cleanrank.validation import is_integer, require

ALIGNMENT = 8
# What may change between the parts of an interrupted training.
CHANGEABLE = ("epochs", "early_stopping_rounds", "device", "checkpoint", "n_jobs")


def _safetensors() -> Any:
    """The package; training works without it, saving and loading say how to install it."""
    try:
        import safetensors.numpy
    except ImportError:
        require("nn")
        raise
    return safetensors


def write_tensors(
    path: str | PathLike[str], tensors: Mapping[str, Array], metadata: Mapping[str, Any] | None = None
) -> None:
    """Writes arrays and metadata whole or not at all; values of the metadata are kept as JSON."""
    library = _safetensors()
    texts = None if metadata is None else {name: json.dumps(value) for name, value in metadata.items()}
    arrays = {name: np.ascontiguousarray(value).reshape(np.shape(value)) for name, value in tensors.items()}
    try:
        raw = library.numpy.save(arrays, texts)
    except library.SafetensorError as error:
        raise invalid("tensors", "must be of types that safetensors has", error) from None
    with written_whole(path) as part:
        part.write_bytes(raw if texts is None else _in_order(raw, texts))


def _in_order(raw: bytes, texts: dict[str, str]) -> bytes:
    """The file with its metadata in order: safetensors shuffles them, so that equal models would differ."""
    end = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:end])
    header["__metadata__"] = texts
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    return len(text).to_bytes(8, "little") + text + raw[end:]


def read_tensors(
    path: str | PathLike[str], subject: str = "tensor file", kind: str | None = None, version: int = 1
) -> tuple[dict[str, Array], dict[str, Any]]:
    """Reads arrays and metadata; a file that is damaged or not of its ``kind`` is refused."""
    library = _safetensors()
    file = existing_file(path)
    try:
        with library.safe_open(file, "np") as opened:
            texts = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (no mapping)
    except (library.SafetensorError, LookupError, OSError, TypeError, ValueError) as error:
        rule = "must hold tensors as safetensors, and all of them"
        raise BadFileError(error_text(f"tensor file {str(file)!r}", rule, error), str(file)) from None
    metadata = {name: _json(text) for name, text in texts.items()}
    if kind is not None and (metadata.get("format") != kind or metadata.get("version") != version):
        content = f"{metadata.get('format')!r} {metadata.get('version')}"
        rule = f"must hold a {kind} of version {version}"
        raise BadFileError(error_text(f"{subject} {str(path)!r}", rule, content), str(path))
    return tensors, metadata


def _json(text: str) -> Any:
    """Metadata of other writers is plain text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


FORMAT = "cleanrank training"
VERSION = 1
Weights = dict[str, torch.Tensor]


@dataclass
class TrainingState:
    """How far a training has come."""

    epoch: int = 0  # epochs done
    best_epoch: int = 0  # the one that was best on validation data; 0 before there was any
    best_value: float = -float("inf")  # the measure there
    # Per epoch its number, the mean loss and the value on validation data.
    history: list[dict[str, Any]] = field(default_factory=list)


def save_state(
    path: Path,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    state: TrainingState,
    best: Weights | None,
    identity: Mapping[str, Any],
) -> None:
    """Writes everything a training needs to go on; the file is replaced whole."""
    tensors = {f"model/{name}": _array(value) for name, value in model.state_dict().items()}
    tensors |= {f"best/{name}": _array(value) for name, value in (best or {}).items()}
    for place, slots in optimizer.state_dict()["state"].items():
        for name, value in slots.items():
            if value is not None:
                tensors[f"optimizer/{place}/{name}"] = _array(value)
    metadata = {"format": FORMAT, "version": VERSION, "identity": dict(identity), **asdict(state)}
    # JSON has no infinity.
    metadata["best_value"] = None if state.best_epoch == 0 else state.best_value
    write_tensors(path, tensors, metadata)


def load_state(
    path: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, identity: Mapping[str, Any]
) -> tuple[TrainingState, Weights | None]:
    """Puts a saved state into a model and its optimiser; refuses that of another training."""
    tensors, metadata = read_tensors(path, "checkpoint", FORMAT, VERSION)
    saved = metadata.get("identity")
    if not isinstance(saved, dict):
        _cannot_resume(path, "nothing says of what")
    _refuse_another(path, saved, identity)
    try:
        state = _state_of(metadata)
        best = weights_of(tensors, "best/")
        model.load_state_dict(weights_of(tensors, "model/"))
        shapes = {name: value.shape for name, value in model.state_dict().items()}
        if best and shapes != {name: value.shape for name, value in best.items()}:
            raise ValueError("the weights of its best epoch are not those of its model")
        slots = _slots(tensors, [p for group in optimizer.param_groups for p in group["params"]])
    except (AttributeError, LookupError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        _cannot_resume(path, str(error))
    if state.best_epoch and not best:
        _cannot_resume(path, "the weights of its best epoch are missing")
    optimizer.load_state_dict({"state": slots, "param_groups": optimizer.state_dict()["param_groups"]})
    return state, best or None


def check_place(path: Path) -> None:
    """Refuses a checkpoint that could not be written."""
    _safetensors()
    if not path.parent.is_dir():
        raise MissingDataError(f"the folder {str(path.parent)!r} does not exist. Make it first.")


def _state_of(metadata: Mapping[str, Any]) -> TrainingState:
    epoch, best_epoch, best_value = (metadata[name] for name in ("epoch", "best_epoch", "best_value"))
    history = list(metadata["history"])
    counts = is_integer(epoch) and is_integer(best_epoch) and 0 <= best_epoch <= epoch
    if not counts or not all(isinstance(entry, dict) for entry in history):
        raise ValueError(f"epoch {epoch} and its history do not go together")
    value = -float("inf") if best_value is None else float(best_value)
    return TrainingState(epoch, best_epoch, value, history)


def _slots(tensors: Mapping[str, Array], parameters: Sequence[torch.nn.Parameter]) -> dict[int, Weights]:
    """The optimiser's state of each parameter: numbers, or tensors of its shape, the same of all."""
    state: dict[int, Weights] = {}
    for name, value in weights_of(tensors, "optimizer/").items():
        place, _, slot = name.partition("/")
        if value.ndim and value.shape != parameters[int(place)].shape:
            raise ValueError(f"{slot} of the optimiser has shape {tuple(value.shape)}")
        state.setdefault(int(place), {})[slot] = value
    if len({frozenset(slots) for slots in state.values()}) > 1:
        raise ValueError("a part of the optimiser's state is missing")
    return state


def _cannot_resume(path: Path, why: str) -> NoReturn:
    rule = f"must hold a whole training: {' '.join(why.split())}"
    message = error_text(f"checkpoint {str(path)!r}", rule, remedy="Remove it to start anew.")
    raise BadFileError(message, str(path))


def _refuse_another(path: Path, saved: Mapping[str, Any], current: Mapping[str, Any]) -> None:
    different = [name for name in {**saved, **current} if saved.get(name) != current.get(name)]
    if different:
        name = different[0]
        rule = f"must belong to this training, whose {name} is {current.get(name)!r}"
        remedy = "Name another file, or remove this one to start anew."
        raise invalid(f"checkpoint {str(path)!r}", rule, repr(saved.get(name)), remedy=remedy)


def weights_of(tensors: Mapping[str, Array], prefix: str) -> Weights:
    """The tensors whose names begin with a prefix, without it."""
    return {
        name.removeprefix(prefix): torch.from_numpy(value)
        for name, value in tensors.items()
        if name.startswith(prefix)
    }


def _array(value: Any) -> Array:
    return np.asarray(value.detach().cpu() if isinstance(value, torch.Tensor) else value)


def plain_values(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as JSON gives them back; functions by name, the same in every process."""
    return dict(json.loads(json.dumps(dict(settings), default=_worded)))


def settings_of(estimator: Any) -> dict[str, Any]:
    """The parameters of an estimator that decide its weights, as JSON gives them back."""
    return plain_values({k: v for k, v in estimator.get_params().items() if k not in CHANGEABLE})


def fingerprint(*arrays: Any) -> int:
    """A number that other arrays are unlikely to have; None stands for no array, an iterator for blocks."""
    checksum = 0
    for values in arrays:
        for block in _blocks(values):
            checksum = zlib.crc32(np.ascontiguousarray(block).view(np.uint8).data, checksum)
    return checksum


def _blocks(values: Any) -> Iterable[Array]:
    """The parts of an array that follow one another."""
    if values is None or isinstance(values, Iterator):
        return values or ()
    if isinstance(values, StoredFeatures):
        return (block for _, block in values.blocks())
    return [values.toarray() if hasattr(values, "toarray") else values]


def _worded(value: Any) -> Any:
    """What JSON does not know, in words that are the same in every process."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "matrix"):
        return _worded(value.matrix)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, PathLike):
        return str(value)
    name = getattr(value, "__qualname__", None)
    return type(value).__qualname__ if name is None else f"{value.__module__}.{name}"
