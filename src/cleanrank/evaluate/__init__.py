"""Measures, significance, comparison, and both under noisy test labels."""

from cleanrank.evaluate.compare import Comparison as Comparison
from cleanrank.evaluate.compare import Evaluation as Evaluation
from cleanrank.evaluate.compare import compare as compare
from cleanrank.evaluate.compare import evaluate as evaluate
from cleanrank.evaluate.compare import evaluate_arrays as evaluate_arrays
from cleanrank.evaluate.measures import CONVENTIONS as CONVENTIONS
from cleanrank.evaluate.measures import MEASURES as MEASURES
from cleanrank.evaluate.measures import Measure as Measure
from cleanrank.evaluate.significance import bootstrap_interval as bootstrap_interval
from cleanrank.evaluate.significance import fisher_test as fisher_test
from cleanrank.evaluate.significance import holm as holm
from cleanrank.evaluate.significance import paired_t_test as paired_t_test
