"""What noise does to losses and measures, in closed form."""

from cleanrank.theory.order import auc_slope as auc_slope

__all__ = ["auc_slope"]
