"""Checks of arguments that many functions share."""

import difflib
import importlib.util
import math
import numbers
import os
import reprlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from cleanrank.errors import MissingExtraError, UnknownNameError, invalid

EXTRAS: dict[str, tuple[str, ...]] = {
    "nn": ("torch", "safetensors"),
    "web": ("fastapi", "uvicorn", "jinja2"),
    "dask": ("dask", "distributed"),
    "ir-datasets": ("ir_datasets",),
}


def one_of(kind: str, name: str, names: Iterable[str]) -> str:
    """Returns ``name`` if it is one of ``names``; else raises with the known ones and the closest.

    >>> one_of("gain", "exp", ["exp", "linear"])
    'exp'
    """
    choices = list(names)
    if isinstance(name, str) and name in choices:
        return name
    close = difflib.get_close_matches(str(name), choices, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise UnknownNameError(f"unknown {kind} {reprlib.repr(name)}.{hint} Known: {', '.join(choices)}.")


def is_integer(value: object) -> TypeGuard[int]:
    """Whether a value is an integer of Python or NumPy, bool excluded.

    >>> is_integer(3), is_integer(3.0), is_integer(True)
    (True, False, False)
    """
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a real number of Python or NumPy, bool excluded; NaN and infinity are numbers.

    >>> is_number(3), is_number(0.5), is_number(True), is_number("3")
    (True, True, False, False)
    """
    return not isinstance(value, bool) and isinstance(value, numbers.Real)


def is_frame(value: Any) -> bool:
    """Whether a value is a table of named columns, as of pandas, polars or pyarrow."""
    kind = type(value)
    return any(hasattr(kind, name) for name in ("columns", "column_names")) and not hasattr(kind, "collect")


def is_table(value: Any) -> bool:
    """Whether a value is a frame, a lazy one, or a stream of Arrow such as a relation of DuckDB."""
    return is_frame(value) or is_lazy_frame(value) or hasattr(value, "__arrow_c_stream__")


def is_lazy_frame(value: Any) -> bool:
    """Whether a value is a table of named columns that must be collected first, as polars' LazyFrame."""
    kind = type(value)
    return hasattr(kind, "columns") and hasattr(kind, "collect")


def check_integer(name: str, value: Any, *, least: int | None = None, most: int | None = None) -> int:
    """Returns ``value`` if it is an integer in [least, most]; else raises.

    >>> check_integer("folds", 5, least=2)
    5
    """
    low = "" if least is None else f" >= {least}"
    high = "" if most is None else f" and <= {most}" if low else f" <= {most}"
    inside = is_integer(value) and (least is None or value >= least) and (most is None or value <= most)
    if not inside:
        raise invalid(name, f"must be an integer{low}{high}", repr(value))
    return int(value)


def check_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> float:
    """Returns ``value`` if it is a finite number > above, >= least, < below, <= most; else raises.

    >>> check_number("rate", 0.25, least=0, most=1)
    0.25
    """
    inside = (
        is_number(value)
        and math.isfinite(value)
        and (above is None or value > above)
        and (least is None or value >= least)
        and (below is None or value < below)
        and (most is None or value <= most)
    )
    if not inside:
        bounds = ((">", above), (">=", least), ("<", below), ("<=", most))
        rule = " and ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)
        raise invalid(name, f"must be a number {rule}".rstrip(), repr(value))
    return float(value)


def check_numbers(name: str, values: Any) -> npt.NDArray[np.float64]:
    """Returns an array of numbers (whatever its shape) as float64; else raises.

    >>> check_numbers("shares", [1, 2]).tolist()
    [1.0, 2.0]
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise invalid(name, "must be numbers", reprlib.repr(values)) from None


def check_path(path: Any) -> Path:
    """Returns a path as such; raises where something else stands in its place.

    >>> check_path("a.csv").suffix
    '.csv'
    """
    if not isinstance(path, str | os.PathLike):
        raise invalid("a path", "must be a string or a Path", f"a {type(path).__name__}")
    return Path(path)


def check_memory(name: str, size: float) -> None:
    """Raises when data of ``size`` bytes cannot fit into the memory of this machine.

    >>> check_memory("n_queries", 1e6)
    """
    pages = os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    memory = pages * os.sysconf("SC_PAGE_SIZE") if pages > 0 else math.inf
    if size > memory:
        rule = f"must give data that fit into memory ({memory / 1e9:,.0f} GB)"
        raise invalid(name, rule, f"about {size / 1e9:,.0f} GB", remedy="Make it smaller.")


def check_seed(seed: Any) -> None:
    """Raises unless ``seed`` is an integer >= 0."""
    check_integer("seed", seed, least=0)


def check_n_jobs(n_jobs: Any) -> None:
    """Raises unless ``n_jobs`` is a positive integer, -1 (all) or None (all)."""
    if n_jobs is not None and (not is_integer(n_jobs) or n_jobs == 0 or n_jobs < -1):
        raise invalid("n_jobs", "must be a positive number, -1 or None", repr(n_jobs))


def require(extra: str) -> None:
    """Raises MissingExtraError with the pip command when the modules of an extra are not installed."""
    modules = EXTRAS[one_of("extra", extra, EXTRAS)]
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    if missing:
        raise MissingExtraError(
            f"this needs {', '.join(missing)}, which is not installed. "
            f"Install it with: pip install 'cleanrank[{extra}]'"
        )
