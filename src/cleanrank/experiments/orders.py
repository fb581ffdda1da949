"""The study of order preservation: one loss or measure, scorers of known quality, many draws of the noise."""

import numpy as np

from cleanrank.experiments.studies import Inquiry, Measured
from cleanrank.theory.order_preservation import order_preservation

VERDICT_CODES = {"no": 0.0, "affine": 1.0, "strict": 2.0}


def order(asked: Inquiry) -> Measured:
    """Tries the loss on the labels of the test queries under the noise of the cell."""
    test, params = asked.clean.test, asked.params
    found = order_preservation(
        params["loss"],
        noise=asked.profile,
        n_grades=asked.profile.n_grades,
        labels=(test.y, test.indptr),
        scorers=params["scorers"],
        n_scorers=params["n_scorers"],
        draws=params["draws"],
        seed=asked.seed,
    )
    means = {"slope": found.slope, "R2": found.r2, "tau": found.tau, "verdict": VERDICT_CODES[found.verdict]}
    chosen = {"verdict": found.verdict, "signal": found.signal, "theory": found.expected}
    # One fit over all queries: there is no value of a single query.
    return Measured({m: np.array([v]) for m, v in means.items()}, means, ["all queries"], chosen)
