"""What noise does to losses and measures: closed forms, bounds, and trials where there is no closed form."""

from cleanrank.theory.bounds import Bound as Bound
from cleanrank.theory.bounds import deviation_bound as deviation_bound
from cleanrank.theory.bounds import excess_probability as excess_probability
from cleanrank.theory.bounds import excess_risk_bound as excess_risk_bound
from cleanrank.theory.bounds import samples_needed as samples_needed
from cleanrank.theory.order_preservation import OrderPreservation as OrderPreservation
from cleanrank.theory.order_preservation import OrderTable as OrderTable
from cleanrank.theory.order_preservation import order_kept as order_kept
from cleanrank.theory.order_preservation import order_preservation as order_preservation
from cleanrank.theory.order_preservation import order_table as order_table
from cleanrank.theory.peer import optimal_alpha as optimal_alpha
from cleanrank.theory.peer import peer_excess_risk_bound as peer_excess_risk_bound
from cleanrank.theory.peer import peer_imbalance_bound as peer_imbalance_bound
from cleanrank.theory.symmetry import auc_slope as auc_slope
from cleanrank.theory.symmetry import is_label_symmetric as is_label_symmetric
