"""Which labels to buy, for someone about to buy them."""

from cleanrank.plan.options import Option, Order
from cleanrank.plan.planning import Plan, plan
from cleanrank.verbs import make_callable

make_callable(__name__, plan)

__all__ = ["Option", "Order", "Plan", "plan"]
