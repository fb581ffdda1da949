"""Rows whose clicks follow from what a model can see: every user likes one of three categories of items."""

import numpy as np

from cleanrank.data.behaviours import ClickRows, Layout

LAYOUT = Layout(user={"user": 41}, item={"item": 31, "category": 4}, context={"day": 8})


def planted(n=1500, *, seed=0, history=6, flips=(0.05, 0.05)):
    """Rows that are clicked if the item is of the user's category, apart from (lost, made up) clicks."""
    rng = np.random.default_rng(seed)
    category = np.arange(31) % 3 + 1
    category[0] = 0
    user, item = rng.integers(1, 41, n), rng.integers(1, 31, n)
    taste = user % 3 + 1
    lengths = rng.integers(1, history + 1, n)
    liked = 3 * rng.integers(1, 10, (n, history)) + taste[:, None] - 1
    liked[np.arange(history) >= lengths[:, None]] = 0
    right = category[item] == taste
    flip = rng.random(n) < np.where(right, *flips)
    return ClickRows(
        user=user[:, None],
        item=np.column_stack([item, category[item]]),
        context=rng.integers(1, 8, (n, 1)),
        y=right ^ flip,
        history_of=np.arange(n),
        histories=np.stack([liked, category[liked]], axis=2),
        lengths=lengths,
        layout=LAYOUT,
        users=user,
    )
