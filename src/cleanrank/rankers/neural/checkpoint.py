"""Tensors in files: the safetensors format, in plain NumPy.

Eight bytes hold the length of a JSON header (little endian), the header says of each tensor its type, shape
and place, and the bytes follow; ``__metadata__`` maps text to text. Nothing in such a file is ever executed.
The ``safetensors`` package reads what is written here and writes what is read here.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from cleanrank.data.files import existing_file, written_whole
from cleanrank.errors import BadFileError, MissingDataError, error_text, invalid
from cleanrank.types import Array
from cleanrank.validation import is_integer

TYPES: dict[str, str] = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U8": "|u1",
    "BOOL": "|b1",
}
_NAMES = {np.dtype(code): name for name, code in TYPES.items()}
ALIGNMENT = 8
MOST_HEADER = 100_000_000


def write_tensors(
    path: str | PathLike[str], tensors: Mapping[str, Array], metadata: Mapping[str, Any] | None = None
) -> None:
    """Writes arrays and metadata whole or not at all; values of the metadata are kept as JSON.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "w.safetensors"
    ...     write_tensors(path, {"w": np.arange(3.0)}, {"epoch": 2})
    ...     tensors, metadata = read_tensors(path)
    >>> tensors["w"].tolist(), metadata
    ([0.0, 1.0, 2.0], {'epoch': 2})
    """
    header: dict[str, Any] = {}
    if metadata is not None:
        header["__metadata__"] = {name: json.dumps(value) for name, value in metadata.items()}
    arrays = {name: _plain(name, values) for name, values in tensors.items()}
    start = 0
    # Wider types first keep every tensor aligned.
    ordered = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    for name in ordered:
        values = arrays[name]
        stop = start + values.nbytes
        header[name] = {
            "dtype": _NAMES[values.dtype],
            "shape": list(values.shape),
            "data_offsets": [start, stop],
        }
        start = stop
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    with written_whole(path) as part, part.open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for name in ordered:
            file.write(arrays[name].tobytes())


def read_tensors(path: str | PathLike[str]) -> tuple[dict[str, Array], dict[str, Any]]:
    """Reads arrays and metadata; a broken file is refused with what is wrong."""
    found = existing_file(path)
    raw = found.read_bytes()
    header = _header(raw, found)
    texts = header.pop("__metadata__", {})
    if not isinstance(texts, dict):
        _broken(found, "must have an object as its metadata", type(texts).__name__)
    metadata = {name: _json(text) for name, text in texts.items()}
    body = memoryview(raw)[8 + int.from_bytes(raw[:8], "little") :]
    return {name: _tensor(name, entry, body, found) for name, entry in header.items()}, metadata


def is_tensor_file(path: str | PathLike[str]) -> bool:
    """Whether a file looks like safetensors: a length, then a JSON object of that length."""
    with Path(path).open("rb") as file:
        start = file.read(9)
    return len(start) == 9 and start[8:] == b"{" and int.from_bytes(start[:8], "little") <= MOST_HEADER


def _plain(name: str, values: Array) -> Array:
    found = np.ascontiguousarray(values).reshape(np.shape(values))
    found = found.astype(found.dtype.newbyteorder("<"), copy=False)
    if found.dtype not in _NAMES:
        raise invalid(f"tensor {name!r}", f"must be of a type among {', '.join(TYPES)}", found.dtype)
    return found


def _header(raw: bytes, path: Path) -> dict[str, Any]:
    length = int.from_bytes(raw[:8], "little")
    if len(raw) < 8 or length > MOST_HEADER or length > len(raw) - 8:
        _broken(path, "must begin with the length of its header", f"{len(raw)} bytes")
    try:
        header: dict[str, Any] = json.loads(raw[8 : 8 + length])
    except ValueError:
        _broken(path, "must have a header of JSON", repr(raw[8:24]))
    if not isinstance(header, dict):
        _broken(path, "must have a JSON object as its header", type(header).__name__)
    return header


def _tensor(name: str, entry: Any, body: memoryview, path: Path) -> Array:
    try:
        dtype, shape = np.dtype(TYPES[entry["dtype"]]), tuple(map(int, entry["shape"]))
        start, stop = map(int, entry["data_offsets"])
    except (KeyError, TypeError, ValueError):
        _broken(path, f"must say type, shape and place of {name!r}", entry)
    if min(shape, default=0) < 0 or not 0 <= start <= stop <= len(body):
        _broken(path, f"must hold the bytes of {name!r}; it may have been cut short", f"{len(body)} bytes")
    if int(np.prod(shape, dtype=np.int64)) * dtype.itemsize != stop - start:
        _broken(path, f"must give {name!r} as many bytes as its shape needs", f"{stop - start}")
    return np.frombuffer(body[start:stop], dtype=dtype).reshape(shape).copy()


def _json(text: Any) -> Any:
    """Metadata of other writers is plain text."""
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text


def _broken(path: Path, rule: str, value: object) -> NoReturn:
    raise BadFileError(error_text(f"tensor file {str(path)!r}", rule, value), str(path))


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
        _cannot_resume(path, "nothing says of what")
    _refuse_another(path, saved, identity)
    try:
        done = _progressed(metadata)
        best = _part(tensors, "best/")
        model.load_state_dict(_part(tensors, "model/"))
        _match(model, best)
        slots = _slots(tensors, [p for group in optimizer.param_groups for p in group["params"]])
    except (AttributeError, LookupError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        _cannot_resume(path, str(error))
    if done.best_epoch and not best:
        _cannot_resume(path, "the weights of its best epoch are missing")
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


def _cannot_resume(path: Path, why: str) -> NoReturn:
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


def plain_values(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as JSON gives them back; functions by name, so that a later process finds them the same.

    >>> plain_values({"hidden": (8, 4), "rate": np.float32(0.5), "loss": max})
    {'hidden': [8, 4], 'rate': 0.5, 'loss': 'builtins.max'}
    """
    return dict(json.loads(json.dumps(dict(settings), default=_worded)))


def fingerprint(*arrays: Any) -> int:
    """A number that other arrays are unlikely to have; None stands for no array.

    >>> fingerprint(np.arange(3), None) == fingerprint(np.arange(3)) != fingerprint(np.arange(4))
    True
    """
    start = 0
    for values in arrays:
        if values is None:
            continue
        dense = values.toarray() if hasattr(values, "toarray") else values
        start = zlib.crc32(np.ascontiguousarray(dense).view(np.uint8).data, start)
    return start


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
