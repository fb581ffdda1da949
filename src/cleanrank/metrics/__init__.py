"""Measures, significance, comparison, and both under noisy test labels."""

from cleanrank.metrics.comparison import Comparison as Comparison
from cleanrank.metrics.comparison import compare as compare
from cleanrank.metrics.evaluation import Evaluation as Evaluation
from cleanrank.metrics.evaluation import evaluate as evaluate
from cleanrank.metrics.evaluation import evaluate_arrays as evaluate_arrays
from cleanrank.metrics.explain_ndcg import Explanation as Explanation
from cleanrank.metrics.explain_ndcg import explain_ndcg as explain_ndcg
from cleanrank.metrics.measure import CONVENTIONS as CONVENTIONS
from cleanrank.metrics.measure import MEASURES as MEASURES
from cleanrank.metrics.measure import Measure as Measure
from cleanrank.metrics.noisy_labels import Corrected as Corrected
from cleanrank.metrics.noisy_labels import corrected as corrected
from cleanrank.metrics.noisy_labels import order_probability as order_probability
from cleanrank.metrics.risk_control import Cutoff as Cutoff
from cleanrank.metrics.risk_control import calibrate_cutoff as calibrate_cutoff
from cleanrank.metrics.selection import Selection as Selection
from cleanrank.metrics.selection import select_model as select_model
from cleanrank.metrics.significance import bootstrap_interval as bootstrap_interval
from cleanrank.metrics.significance import fisher_test as fisher_test
from cleanrank.metrics.significance import holm as holm
from cleanrank.metrics.significance import paired_t_test as paired_t_test
