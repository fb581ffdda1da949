"""Which labels to buy, for someone about to buy them."""

from cleanrank.planning.candidates import Option, Order
from cleanrank.planning.plan import Plan, plan_labels

__all__ = ["Option", "Order", "Plan", "plan_labels"]
