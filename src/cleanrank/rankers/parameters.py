"""Parameters of an estimator that one can read, set and search.

scikit-learn's own base class where it is installed, so that ``clone``, ``GridSearchCV`` and metadata routing
work; a machine with NumPy and torch alone gets the two methods that matter.
"""

import inspect
from typing import TYPE_CHECKING, Any, Self

from cleanrank.validation import one_of


class Parameters:
    """Reads and sets what ``__init__`` takes.

    >>> class Half(Parameters):
    ...     def __init__(self, rate=0.5):
    ...         self.rate = rate
    >>> Half().set_params(rate=0.25).get_params()
    {'rate': 0.25}
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameter -> value."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Sets parameters; returns itself."""
        known = inspect.signature(type(self)).parameters
        for name, value in params.items():
            setattr(self, one_of("parameter", name, known), value)
        return self

    def __repr__(self) -> str:
        usual = inspect.signature(type(self)).parameters
        told = (f"{n}={v!r}" for n, v in self.get_params().items() if v is not usual[n].default)
        return f"{type(self).__name__}({', '.join(told)})"


if TYPE_CHECKING:
    Estimator = Parameters  # scikit-learn has no types; its class has these methods
else:
    try:
        from sklearn.base import BaseEstimator as Estimator
    except ImportError:
        Estimator = Parameters
