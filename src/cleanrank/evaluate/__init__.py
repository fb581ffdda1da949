"""Measures, significance, comparison, and both under noisy test labels."""

from cleanrank.evaluate.compare import Comparison as Comparison
from cleanrank.evaluate.compare import Evaluation as Evaluation
from cleanrank.evaluate.compare import compare as compare
from cleanrank.evaluate.compare import evaluate as evaluate
from cleanrank.evaluate.compare import evaluate_arrays as evaluate_arrays
from cleanrank.evaluate.corrected import Corrected as Corrected
from cleanrank.evaluate.corrected import corrected as corrected
from cleanrank.evaluate.explain import Explanation as Explanation
from cleanrank.evaluate.explain import explain_ndcg as explain_ndcg
from cleanrank.evaluate.measures import CONVENTIONS as CONVENTIONS
from cleanrank.evaluate.measures import MEASURES as MEASURES
from cleanrank.evaluate.measures import Measure as Measure
from cleanrank.evaluate.order import order_probability as order_probability
from cleanrank.evaluate.risk_control import Cutoff as Cutoff
from cleanrank.evaluate.risk_control import calibrate as calibrate
from cleanrank.evaluate.select import Selection as Selection
from cleanrank.evaluate.select import select as select
from cleanrank.evaluate.significance import bootstrap_interval as bootstrap_interval
from cleanrank.evaluate.significance import fisher_test as fisher_test
from cleanrank.evaluate.significance import holm as holm
from cleanrank.evaluate.significance import paired_t_test as paired_t_test
from cleanrank.verbs import make_callable

make_callable(__name__, evaluate)
