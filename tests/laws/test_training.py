"""No training fails: whatever the data, the objective and the limits of leaves, trees grow or are refused."""

import itertools
import re
from collections import Counter
from dataclasses import replace
from inspect import signature

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError
from cleanrank.losses.robust_specs import ROBUST
from cleanrank.rankers.boosted import OBJECTIVES, BoostedRanker
from cleanrank.rankers.grade_model import fit_grades, fit_soft_grades, fit_true_grades, watch_boosting

# What data may be refused for; anything else is a failure.
REFUSALS = re.compile(
    "must differ between documents|two documents of different labels|must have a column that can be split"
)
TREES = 12


def random_data(seed, largest=1200):
    """1 to 200 queries with ties, constant and missing columns, queries of one grade, noise, weights."""
    rng = np.random.default_rng([seed, 7])
    n_queries = int(np.exp(rng.uniform(0, np.log(200))))
    lengths = rng.integers(
        1, 1 + max(2, min(int(np.exp(rng.uniform(0, 5))), largest // n_queries)), n_queries
    )
    n, width = int(lengths.sum()), int(rng.integers(1, 9))
    X = rng.normal(size=(n, width)) * np.exp(rng.uniform(-9, 9, width))
    signal = (X / np.abs(X).max(axis=0)) @ rng.normal(size=width)
    for column in range(width):
        kind = rng.integers(6)
        if kind == 0:
            X[:, column] = rng.integers(0, 3, n)
        elif kind == 1 and width > 1:
            X[:, column] = 1.0
        elif kind == 2:
            X[rng.random(n) < 0.5, column] = rng.choice([0.0, np.nan])
        elif kind == 3:
            X[:, column] = np.exp(rng.normal(size=n) * 3)
    X[rng.random(n) < rng.choice([0.0, 0.5])] = X[0]  # rows that tie
    C = int(rng.integers(2, 6))
    rare = rng.uniform(0.5, 0.99)
    y = np.searchsorted(np.quantile(signal, np.linspace(rare, 1, C)[:-1]), signal + rng.normal(size=n) * 0.1)
    y = np.where(rng.random(n) < rng.choice([0.0, 0.2]), rng.integers(0, C, n), y)
    query = np.repeat(np.arange(n_queries), lengths)
    y[(rng.random(n_queries) < rng.choice([0.0, 0.5]))[query]] = 0
    scale = rng.choice([0.0, 1e-9, 1.0, 1e9])
    heavy = np.exp(3 * rng.normal(size=n)) * (rng.random(n) < 0.8) * scale
    return cr.from_arrays(X, y, group=lengths, weights=heavy if heavy.sum() > 0 else None)


def with_gains(data, seed):
    rng = np.random.default_rng(seed)
    return replace(
        data, gains=np.abs(data.y + 0.3 * rng.normal(size=data.n_docs)) * rng.choice([1e-6, 1, 1e6])
    )


def boosted(gains=False, **options):
    def train(data, params, seed):
        rows = with_gains(data, seed) if gains else data
        ranker = BoostedRanker(**{"n_estimators": TREES, "random_state": seed, "params": params, **options})
        return ranker.fit_data(rows).predict(data.X)

    return train


def sour(variant, **options):
    def train(data, params, seed):
        settings = {"variant": variant, "end": 8, "n_estimators": 9, "kind": "all", "params": params}
        return cr.SOURRanker(**{**settings, "random_state": seed, **options}).fit_data(data).predict(data.X)

    return train


def of_grades(fit):
    def train(data, params, seed):
        C = max(data.n_grades, 2)
        T = np.full((C, C), 0.2 / (C - 1)) + np.eye(C) * (0.8 - 0.2 / (C - 1))
        targets = {fit_true_grades: (T.T[data.y], [data]), fit_soft_grades: (T[data.y], [data])}
        options = {"params": params, "seed": seed, "n_estimators": 4}
        return np.asarray(fit(data, *targets.get(fit, (data,)), **options)).ravel()

    return train


def watched(objective):
    def train(data, params, seed):
        seen = []
        watch_boosting(
            data, None, lambda _, scores: seen.append(scores.copy()), objective=objective, n_estimators=4,
            params=params, seed=seed,
        )  # fmt: skip
        return seen[-1].ravel()

    return train


FORMS = [
    {"name": name, **({"matrix": [[0.9, 0.1], [0.2, 0.8]]} if "matrix" in signature(form).parameters else {})}
    for name, form in ROBUST.items()
    if name != "peer"
]
TRAININGS = {
    **{
        f"{name} {how}": boosted(objective=name, implementation=how)
        for name in ("lambdarank", "lambdamart")
        for how in ("exact", "parity", "builtin")
    },
    **{name: boosted(objective=name) for name in OBJECTIVES if name not in ("lambdarank", "lambdamart")},
    **{
        f"ranknet {pairs} {weighting}": boosted(objective="ranknet", pairs=pairs, weighting=weighting)
        for pairs, weighting in itertools.product(("strict", "all_ordered"), ("sum", "macro", "pooled"))
    },
    **{f"lambdarank {form['name']}": boosted(robust=form) for form in FORMS},
    **{f"ranknet {form['name']}": boosted(objective="ranknet", robust=form) for form in FORMS},
    **{
        f"peers {kind} {within} {alpha}": boosted(robust="peer", peers=kind, within=within, alpha=alpha)
        for kind, within, alpha in (
            ("sampled", "query", 0.1),
            ("sampled", "batch", 1.0),
            ("expected", "query", 0.5),
            ("expected", "query", 3.0),
        )
    },
    "expected peers of a pairwise loss": boosted(objective="ranknet", robust="peer", alpha=0.5),
    "gains": boosted(gains=True),
    "gains lambdamart": boosted(gains=True, objective="lambdamart"),
    "gains ranknet": boosted(gains=True, objective="ranknet"),
    "steep": boosted(sigma=30.0),
    "flat": boosted(sigma=0.01, truncation_level=1),
    **{f"SOUR {variant}": sour(variant) for variant in ("sour", "last")},
    "SOUR curr": sour("curr", ends=(3, 6)),
    "SOUR fly": sour("fly", patience=3),
    "SOUR peers": sour("sour", peers=0.5),
    **{fit.__name__: of_grades(fit) for fit in (fit_grades, fit_true_grades, fit_soft_grades)},
    **{f"watched {name}": watched(name) for name in ("grades", "ranking")},
}
LEAVES = [
    {"min_data_in_leaf": docs, "num_leaves": leaves, **least}
    for docs, leaves, least in itertools.product(
        (1, 5, 20), (4, 15, 63), ({}, {"min_sum_hessian_in_leaf": 0.0}, {"min_sum_hessian_in_leaf": 1e-30})
    )
]


def outcome(seed, name, params, data):
    """Whether it was trained or refused; anything else in words."""
    try:
        scores = TRAININGS[name](data, params, seed)
    except InvalidInputError as error:
        return "refused" if REFUSALS.search(str(error)) else f"seed {seed}, {params}: {error}"
    return "trained" if np.isfinite(scores).all() else f"seed {seed}, {params}: scores are not finite"


def train_all(seeds, a_set, largest=1200):
    """Trains ``a_set`` objectives on each random data set, in turn, each with the next limits of leaves."""
    counts = {name: Counter() for name in TRAININGS}
    turn = itertools.cycle(TRAININGS)
    for seed in seeds:
        data = random_data(seed, largest)
        for k in range(a_set):
            name = next(turn)
            params = LEAVES[(seed * (a_set + 1) + k) % len(LEAVES)]
            counts[name][outcome(seed, name, params, data)] += 1
    return counts


@pytest.mark.parametrize(
    ("seeds", "a_set", "largest"),
    [(range(300), 2, 1200), pytest.param(range(300, 500), 5, 10_000, marks=pytest.mark.slow)],
)
def test_every_objective_trains_on_random_data_sets(seeds, a_set, largest):
    counts = train_all(seeds, a_set, largest)
    failed = {name: set(count) - {"trained", "refused"} for name, count in counts.items()}
    assert not any(failed.values()), {name: words for name, words in failed.items() if words}
    assert all(count["trained"] >= 3 for count in counts.values()), counts
