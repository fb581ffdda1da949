import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cleanrank.clicks import models
from tests.oracles import walk_numpy

walk, examined_given_clicks = map(models.compiled, (models.walk, models.examined_given_clicks))

# Draws that settle each step: look < r means a click, leave < chance means going on.
ALWAYS, NEVER = 0.0, np.nextafter(1.0, 0.0)


def walked(r, look, leave, alphas, indptr=None):
    out = np.ones(len(r), dtype=np.bool_)
    offsets = np.array([0, len(r)] if indptr is None else indptr)
    walk(np.array(r), offsets, np.array(look), np.array(leave), *alphas, out)
    return out.tolist()


def test_a_walk_by_hand():
    r = [0.5, 0.5, 0.5, 0.5]
    # No click, on; click, on (a2 (1 - r) + a3 r = .4); no click, off; never examined.
    look, leave = [0.6, 0.4, 0.9, ALWAYS], [0.8, 0.39, 0.95, ALWAYS]
    assert walked(r, look, leave, (0.9, 0.6, 0.2)) == [False, True, False, False]
    # One draw higher and the user leaves after the click.
    assert walked(r, look, [0.8, 0.41, 0.0, 0.0], (0.9, 0.6, 0.2)) == [False, True, False, False]
    assert walked(r, [0.6, 0.4, 0.1, 0.1], [0.8, 0.39, 0.39, 0.0], (0.9, 0.6, 0.2)) == [
        False,
        True,
        True,
        True,
    ]


def test_every_list_starts_anew():
    r, look = [1.0, 1.0, 1.0], [ALWAYS] * 3
    assert walked(r, look, [NEVER] * 3, (1, 0, 0)) == [True, False, False]
    assert walked(r, look, [NEVER] * 3, (1, 0, 0), [0, 1, 1, 3]) == [True, True, False]


def test_examination_given_clicks_by_enumeration():
    """Bayes' rule against the sum over all ways a session can go."""
    r, (a1, a2, a3) = np.array([0.3, 0.8, 0.1, 0.6]), (0.9, 0.5, 0.2)
    for clicks in itertools.product([False, True], repeat=4):
        examined = np.empty(4)
        examined_given_clicks(r, np.array(clicks), np.array([0, 4]), a1, a2, a3, examined)
        for k in range(4):
            total = seen = 0.0
            for depth in range(1, 5):  # the user examines ranks 1..depth
                p = _above(r, clicks, depth, k, a1, a2, a3)
                total += p
                seen += p * (depth > k)
            if total > 0:
                assert abs(examined[k] - seen / total) < 1e-12


def _above(r, clicks, depth, k, a1, a2, a3):
    """P(the user examines exactly ``depth`` ranks and clicks ranks below k as given)."""
    p = 1.0
    for i in range(4):
        if i >= depth:
            if i < k and clicks[i]:
                return 0.0
            continue
        if i < k:
            p *= r[i] if clicks[i] else 1 - r[i]
            clicked = [clicks[i]]
        else:
            clicked = [True, False]
        on = sum(
            (1.0 if i < k else (r[i] if c else 1 - r[i])) * (a2 * (1 - r[i]) + a3 * r[i] if c else a1)
            for c in clicked
        )
        if i < 3:
            p *= on if i + 1 < depth else 1 - on
    return p


@given(st.lists(st.integers(0, 6), max_size=8), st.integers(0, 1000))
def test_all_lists_at_once_give_the_same_clicks(lengths, seed):
    rng = np.random.default_rng(seed)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    n = int(indptr[-1])
    r, look, leave = rng.random(n), rng.random(n), rng.random(n)
    clicks = np.zeros(n, dtype=np.bool_)
    walk(r, indptr, look, leave, 0.8, 0.5, 0.2, clicks)
    assert (clicks == walk_numpy(r, indptr, look, leave, 0.8, 0.5, 0.2)).all()
