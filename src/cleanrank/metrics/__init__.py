"""Measures, significance, comparison, and both under noisy test labels; most names are in ``cleanrank``."""

from cleanrank.metrics.calibration import fit_calibration as fit_calibration
from cleanrank.metrics.clicks import compare_auc as compare_auc
from cleanrank.metrics.clicks import evaluate_clicks as evaluate_clicks
from cleanrank.metrics.evaluation import evaluate_arrays as evaluate_arrays
from cleanrank.metrics.measure import CONVENTIONS as CONVENTIONS
from cleanrank.metrics.measure import MEASURES as MEASURES
from cleanrank.metrics.noisy_labels import corrected as corrected
from cleanrank.metrics.noisy_order import order_probability as order_probability
from cleanrank.metrics.significance import bootstrap_interval as bootstrap_interval
from cleanrank.metrics.significance import holm as holm
from cleanrank.metrics.significance import paired_t_test as paired_t_test
