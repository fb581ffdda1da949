"""Find, measure and survive label noise in learning to rank.

The public names are loaded when first used, so that importing the package is fast and pulls in neither
torch nor numba.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

PUBLIC: dict[str, str] = {
    "RankingData": "cleanrank.types",
    "CleanrankError": "cleanrank.checks",
    "from_arrays": "cleanrank.data.arrays",
}

if TYPE_CHECKING:
    from cleanrank.checks import CleanrankError as CleanrankError
    from cleanrank.data.arrays import from_arrays as from_arrays
    from cleanrank.types import RankingData as RankingData

__all__ = ["CleanrankError", "RankingData", "__version__", "from_arrays"]


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'cleanrank' has no attribute {name!r}")
    value = getattr(importlib.import_module(PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})
