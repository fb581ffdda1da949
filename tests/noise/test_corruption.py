"""What a Corruption says of itself is what happened to the grades."""

import numpy as np
import pandas as pd

import cleanrank as cr


def test_the_rate_is_counted_and_named():
    clean = cr.make_ranking(30, 4, docs_per_query=12, seed=0)
    noisy = cr.corrupt(clean, rate=0.3, seed=5)
    assert noisy.rate == np.mean(noisy.data.y != clean.y) > 0
    np.testing.assert_array_equal(noisy.changed, noisy.data.y != noisy.true_labels)
    assert repr(noisy) == f"Corruption(uniform 0.3, seed 5: {noisy.rate:.1%} of {clean.n_docs:,} changed)"


def test_a_frame_comes_back_with_the_noisy_grades_and_nothing_else_changed():
    clean = cr.make_ranking(10, 3, docs_per_query=8, seed=1)
    frame = pd.DataFrame(clean.X, columns=list("abc")).assign(qid=clean.qid, label=clean.y)
    noisy = cr.corrupt(frame, rate=0.4, seed=2)
    assert noisy.changed.any()
    np.testing.assert_array_equal(noisy.frame["label"], noisy.data.y)
    pd.testing.assert_frame_equal(noisy.frame.drop(columns="label"), frame.drop(columns="label"))
