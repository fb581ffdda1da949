import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cleanrank.clicks import _walks, models, simulate_clicks


@given(st.lists(st.integers(0, 6), max_size=8), st.integers(0, 1000))
def test_same_clicks_as_the_compiled_walk(lengths, seed):
    rng = np.random.default_rng(seed)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    n = int(indptr[-1])
    r, look, leave = rng.random(n), rng.random(n), rng.random(n)
    fast, slow = np.zeros(n, dtype=np.bool_), np.ones(n, dtype=np.bool_)
    _walks.walk(r, indptr, look, leave, 0.8, 0.5, 0.2, fast)
    _walks.walk_numpy(r, indptr, look, leave, 0.8, 0.5, 0.2, slow)
    assert (fast == slow).all()


def test_users_click_the_same_without_numba(monkeypatch):
    import cleanrank as cr

    data = cr.make_ranking(30, 4, docs_per_query=12, seed=2)
    with_numba = simulate_clicks(data, "ccm", seed=5, flip=0.1).click
    monkeypatch.setattr(models, "has_numba", lambda: False)
    assert (simulate_clicks(data, "ccm", seed=5, flip=0.1).click == with_numba).all()
