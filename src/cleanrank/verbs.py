"""Rooms whose name is a verb: ``cr.evaluate(...)`` beside ``from cleanrank.evaluate import fisher_test``.

A package's attribute for a subpackage is the subpackage itself, so a function of the same name would be there
or not, depending on what was imported before. Such a room is callable instead.
"""

import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def make_callable(module: str, function: Callable[..., Any]) -> None:
    """Makes calling the module of that name call ``function``."""
    room: Any = sys.modules[module]
    room.__class__ = type("Verb", (ModuleType,), {"__call__": staticmethod(function)})
    room.__signature__ = inspect.signature(function)
