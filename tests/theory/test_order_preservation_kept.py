import numpy as np
import pytest

from cleanrank.errors import CleanrankError
from cleanrank.theory import order_kept
from cleanrank.theory.order_preservation import _agreement, _signs


def test_more_labels_settle_auc_and_more_issues_settle_dcg():
    few, many = (order_kept(["auc", "dcg@10"], n_docs=n, draws=60) for n in (50, 1000))
    assert many["auc"] > few["auc"] + 0.1
    assert many["dcg@10"] < many["auc"] - 0.15
    often = order_kept(["auc", "dcg@10"], n_docs=1000, issues=20, draws=15)
    assert often["dcg@10"] > many["dcg@10"] + 0.15


def test_without_noise_order_is_kept():
    assert order_kept(["auc", "dcg@10"], 1.0, draws=2) == {"auc": 1.0, "dcg@10": 1.0}


def test_agreement_by_hand():
    clean = _signs(np.array([[3.0, 2.0, 2.0]]))
    assert clean.tolist() == [[1.0, 1.0, 0.0]]
    assert _agreement(clean, _signs(np.array([[1.0, 2.0, 1.0]]))).tolist() == [0.25]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"gamma": 1.5}, "gamma must be a number >= 0 and <= 1; got 1.5"),
        ({"gamma": float("nan")}, "gamma must be"),
        ({"prevalence": 2}, "prevalence must be a number > 0 and < 1"),
        ({"prevalence": float("nan")}, "prevalence must be a number"),
        ({"loudness": (1.0,)}, "loudness must be two positive numbers"),
        ({"loudness": (0.0, 0.0)}, "loudness must be two positive numbers"),
        ({"seed": -1}, "seed must be"),
        ({"gamma": "x"}, "gamma must be a number >= 0 and <= 1; got 'x'"),
    ],
)
def test_what_is_no_trial_is_refused(call, message):
    with pytest.raises(CleanrankError, match=message):
        order_kept(**call)


def test_complaints():
    with pytest.raises(CleanrankError, match="issues must be an integer >= 1"):
        order_kept(issues=0)
