import numpy as np

import cleanrank as cr
from cleanrank.issues.outliers import SOUR, Window
from cleanrank.issues.sour import outlier_history
from cleanrank.rankers.trees import TreeParams


def test_shares_by_band_and_step_are_those_of_single_forests():
    data = cr.make_ranking(20, 5, docs_per_query=20, seed=0)
    window = Window(5, 0, 12, "all")
    model = TreeParams(params={"num_leaves": 7, "min_data_in_leaf": 5}, n_estimators=12).train(data)
    shares, sizes = outlier_history(data, model, window, bands=4, steps=3)
    flags = np.array(
        [
            SOUR.of(data, Window(5, i - 1, i, "all")).watch([(i, scores)]).outliers()
            for i, scores in model.staged_predict(data.X)
        ]
    )
    frequency = flags.mean(axis=0)
    for band in range(4):
        low, high = band / 4, (band + 1) / 4 if band < 3 else 1.1
        rows = (frequency >= low) & (frequency < high) & (frequency > 0)
        assert sizes[band] == rows.sum()
        if rows.any():
            wanted = [flags[4 * step : 4 * step + 4, rows].mean() for step in range(3)]
            np.testing.assert_allclose(shares[band], wanted)
