"""What tells one training from another: its settings in plain values, its data as a number."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from os import PathLike
from typing import Any

import numpy as np


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
