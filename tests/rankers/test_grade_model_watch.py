import lightgbm
import numpy as np
import pytest

import cleanrank as cr
from cleanrank.rankers.grade_model import DEFAULTS, WATCHED, watch_boosting


@pytest.fixture(scope="module")
def parts():
    data = cr.make_ranking(30, 5, docs_per_query=15, seed=0)
    return data.select_queries(np.arange(20)), data.select_queries(np.arange(20, 30))


@pytest.mark.parametrize("objective", WATCHED)
@pytest.mark.parametrize("held", [False, True])
def test_every_stage_is_what_the_model_with_so_many_trees_predicts(parts, objective, held):
    train, rows = parts[0], parts[1] if held else None
    seen = {}
    watch_boosting(
        train,
        rows,
        lambda i, p: seen.__setitem__(i, p.copy()),
        objective=objective,
        n_grades=5,
        n_estimators=6,
    )
    settings = DEFAULTS | WATCHED[objective](5)
    settings |= {"seed": 0, "deterministic": True, "force_row_wise": True, "num_threads": 1, "verbosity": -1}
    group = train.lengths if objective == "ranking" else None
    booster = lightgbm.train(settings, lightgbm.Dataset(train.X, label=train.y, group=group), 6)
    assert list(seen) == [1, 2, 3, 4, 5, 6]
    for i, found in seen.items():
        wanted = booster.predict((rows or train).X, num_iteration=i)
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)
