"""AdaRank against the paper's and RankLib's loops in plain Python; ties, queries left out, ends."""

import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.rankers.classic.ada_rank import AdaRank

FORMS: list[dict[str, Any]] = [
    {"update": update, "repeats": repeats, "directions": directions, "tolerance": tolerance}
    for update, repeats in itertools.product(("combined", "cumulative"), ("keep", "set_aside"))
    for directions, tolerance in (("up", 0.002), ("both", None))
]


def small(seed: int, n_grades: int) -> tuple[Any, Any, Any]:
    """X, y, qid: ties in features, single documents, queries without relevant ones, rows by query."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(9), [1, 5, 4, 5, 2, 5, 3, 5, 4])
    y = rng.integers(0, n_grades, len(qid))
    y[qid == 2] = 0
    y[qid == 5] = np.arange(5) % 2
    X = np.round(2 * rng.normal(size=(len(qid), 5)) + y[:, None]) / 2
    X[:, 4] = rng.integers(0, 2, len(qid))
    return X, y, qid


def precision_at_relevant(grades: tuple[int, ...]) -> float:
    relevant = [rank for rank, grade in enumerate(grades) if grade > 0]
    return sum((k + 1) / (rank + 1) for k, rank in enumerate(relevant)) / len(relevant)


def ndcg(grades: tuple[int, ...]) -> float:
    def dcg(order: Any) -> float:
        return sum((2**g - 1) / math.log2(r + 2) for r, g in enumerate(order[:10]))

    return dcg(grades) / dcg(sorted(grades, reverse=True))


@cache
def mean_over_orders(value: Any, y: tuple[int, ...], scores: tuple[float, ...]) -> float:
    """The value of a ranking, averaged over all orders of tied documents."""
    n, values = len(y), []
    for order in itertools.permutations(range(n)):
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order)):
            values.append(value(tuple(y[d] for d in order)))
    return sum(values) / len(values)


def naive(
    X: Any, y: Any, qid: Any, rounds: int, update: str, repeats: str, directions: str,
    tolerance: float | None, value: Any = precision_at_relevant,
) -> tuple[Any, list[int], list[tuple[float, Any]]]:  # fmt: skip
    """Weights in the end, picks of all rounds, (mean of E, weights) after each; phases as in RankLib."""
    queries = [np.flatnonzero(qid == q) for q in np.unique(qid) if y[qid == q].any()]

    def worth(scores: Any) -> Any:
        scores = np.round(scores, 9)
        return np.array([mean_over_orders(value, tuple(y[q]), tuple(scores[q])) for q in queries])

    weak = [(f, sign) for sign in ((1, -1) if directions == "both" else (1,)) for f in range(X.shape[1])]
    E = [worth(sign * X[:, f]) for f, sign in weak]
    P = np.ones(len(queries)) / len(queries)
    taken: list[tuple[int, float]] = []
    picks: list[int] = []
    aside: list[int] = []
    removed: set[int] = set()
    trail: list[tuple[float, Any]] = []
    trained, before, last, same = -1.0, (-1.0, P), -1, 0

    def combined() -> Any:
        weights = np.zeros(X.shape[1])
        for f, alpha in taken:
            weights[f] += alpha
        return weights

    def learn(enqueue: bool) -> None:
        nonlocal P, trained, before, last, same, removed
        while len(picks) < rounds:
            usable = [k for k in range(len(weak)) if k not in aside and k not in removed]
            most = max((float(E[k] @ P) for k in usable), default=0.0)
            if most <= 1e-10:
                picks.append(-1)
                return
            pick = next(k for k in usable if E[k] @ P >= most - 1e-10)
            picks.append(pick)
            if enqueue and pick == last:
                aside.append(pick)
                taken.pop()
                trained, P = before
                continue
            alpha = 0.5 * math.log(sum(P * (1 + E[pick])) / sum(P * (1 - E[pick])))
            taken.append((weak[pick][0], weak[pick][1] * alpha))
            values = worth(X @ combined())
            if tolerance is not None and values.mean() + tolerance <= trained:
                taken.pop()
                return
            if repeats == "set_aside" and not enqueue:
                if abs(values.mean() - trained) > 1e-10 or pick != last:
                    same, removed = 0, set()
                else:
                    same += 1
                    if same == 5:
                        same = 0
                        removed.add(pick)
            before, last, trained = (trained, P), pick, values.mean()
            P = np.exp(-values) if update == "combined" else P * np.exp(-alpha * values)
            P = P / P.sum()
            trail.append((trained, combined()))

    learn(repeats == "set_aside")
    while aside:
        aside.pop()
        learn(False)
    return trail[-1][1], picks, trail


@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(map(str, form.values())))
def test_equals_plain_loops(form: dict[str, Any]) -> None:
    for seed, n_grades in itertools.product(range(3), (2, 3, 5)):
        X, y, qid = small(seed, n_grades)
        for rounds in (1, 7, 60):
            coef, _, trail = naive(X, y, qid, rounds, **form)
            every = AdaRank(n_estimators=rounds, early_stopping_rounds=None, **form).fit(X, y, qid=qid)
            np.testing.assert_allclose(every.coef_, coef, rtol=1e-8, atol=1e-8)
            most = max(mean for mean, _ in trail)
            step = next(t for t, (mean, _) in enumerate(trail) if mean >= most - 1e-10)
            best = AdaRank(n_estimators=rounds, **form).fit(X, y, qid=qid)
            np.testing.assert_allclose(best.coef_, trail[step][1], rtol=1e-8, atol=1e-8)
            assert best.best_iteration_ == step + 1
    coef, _, trail = naive(X, y, qid, 30, **form, value=ndcg)
    every = AdaRank(n_estimators=30, target="ndcg@10", early_stopping_rounds=None, **form).fit(X, y, qid=qid)
    np.testing.assert_allclose(every.coef_, coef, atol=1e-8)
    assert every.intercept_ == 0


def test_the_comparison_reaches_every_rule() -> None:
    """Features set aside, brought back, passed over; falls; several features in one ranker."""
    rules = set()
    for seed, n_grades in itertools.product(range(3), (2, 3, 5)):
        X, y, qid = small(seed, n_grades)
        _, picks, _ = naive(X, y, qid, 60, "cumulative", "set_aside", "up", 0.002)
        rules |= {"twice"} if any(a == b for a, b in itertools.pairwise(picks)) else set()
        rules |= {"ended"} if len(picks) < 60 else {"all rounds"}
        coef, _, _ = naive(X, y, qid, 60, "combined", "keep", "up", None)
        rules |= {f"{min((coef != 0).sum(), 2)} features"}
    assert {"twice", "ended", "1 features", "2 features"} <= rules


def test_neither_the_order_of_rows_nor_queries_without_relevant_documents_count() -> None:
    X, y, qid = small(1, 3)
    expected = AdaRank(n_estimators=40).fit(X, y, qid=qid).coef_
    order = np.random.default_rng(0).permutation(len(y))
    np.testing.assert_allclose(
        AdaRank(n_estimators=40).fit(X[order], y[order], qid=qid[order]).coef_, expected
    )
    some = qid != 2
    np.testing.assert_array_equal(
        AdaRank(n_estimators=40).fit(X[some], y[some], qid=qid[some]).coef_, expected
    )
    # A feature without any order would be the best one if the order of the rows counted.
    best_first = np.lexsort((-y, qid))
    constant = np.column_stack((np.zeros(len(y)), X[best_first]))
    ranker = AdaRank(n_estimators=1).fit(constant, y[best_first], qid=qid[best_first])
    np.testing.assert_allclose(ranker.coef_[1:], AdaRank(n_estimators=1).fit(X, y, qid=qid).coef_)


def test_a_feature_that_ranks_all_queries_ends_training() -> None:
    X, y, qid = small(1, 3)
    X[:, 3] = y
    ranker = AdaRank().fit(X, y, qid=qid)
    assert ranker.best_iteration_ == 1
    assert np.flatnonzero(ranker.coef_).tolist() == [3]
    X[:, 3] = -y
    reversed_ = AdaRank(directions="both").fit(X, y, qid=qid)
    assert np.flatnonzero(reversed_.coef_).tolist() == [3]
    assert -10 < reversed_.coef_[3] < 0


def test_features_that_are_worth_nothing_leave_scores_equal() -> None:
    X, y, qid = small(1, 3)
    train, held = cr.from_arrays(-y[:, None], y, qid=qid), cr.from_arrays(X[:, :1], y, qid=qid)
    ranker = AdaRank(target="tau").fit_data(train, held)
    assert ranker.coef_.tolist() == [0.0]
    assert ranker.best_iteration_ == 0
    assert 0 < ranker.model_.validation_value < 1


@pytest.mark.parametrize("target", ["tau", "err", "auc", "mrr", "precision@3", "map:ties=worst"])
def test_any_measure_of_a_query_may_be_the_target(target: str) -> None:
    data = cr.make_ranking(30, 5, docs_per_query=12, seed=3)
    ranker = AdaRank(n_estimators=1, target=target, directions="both").fit_data(data)
    X = np.column_stack((data.X, -data.X))
    means = [cr.evaluate(column, data, [target], order="data").means[target] for column in X.T]
    pick = int(np.argmax(means))
    assert np.flatnonzero(ranker.coef_).tolist() == [pick % 5]
    assert (ranker.coef_[pick % 5] > 0) == (pick < 5)


def test_validation_rows_choose_the_number_of_rounds_and_threads_change_nothing() -> None:
    data = cr.make_ranking(60, 6, docs_per_query=20, seed=2)
    train, held = data.select_queries(np.arange(40)), data.select_queries(np.arange(40, 60))
    one, two = (AdaRank(n_estimators=40, n_jobs=n).fit_data(train, held) for n in (1, 2))
    (values,) = one.evals_result_["valid_0"].values()
    assert one.best_iteration_ == int(np.argmax(values)) + 1
    again = cr.evaluate(one.predict(held.X), held, one.measure, order="data").means[one.measure]
    assert again == pytest.approx(max(values), abs=1e-12)
    assert one.coef_.tolist() == two.coef_.tolist()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_estimators": 1.5}, "n_estimators must be an integer >= 1; got 1.5"),
        ({"update": "last"}, "unknown update 'last'.* Known: combined, cumulative"),
        ({"directions": "down"}, "unknown directions 'down'"),
        ({"repeats": "set aside"}, "Did you mean 'set_aside'"),
        ({"tolerance": -0.1}, "tolerance must be a number >= 0; got -0.1"),
        ({"target": "dcg@10"}, "target must be a measure of one query with values from -1 to 1; got 'dcg@10"),
        ({"target": "auc:pooled"}, "target must be .* got 'auc:pooled'. Try 'map'"),
        ({"target": "maps"}, "unknown measure 'maps'"),
        ({"target": "map:relevant=9"}, "training data must have queries on which the target is defined"),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, Any], words: str) -> None:
    X, y, qid = small(0, 3)
    with pytest.raises((InvalidInputError, UnknownNameError), match=words):
        AdaRank(**parameters).fit(X, y, qid=qid)


def test_weights_of_rows_are_refused() -> None:
    X, y, qid = small(0, 3)
    with pytest.raises(InvalidInputError, match=r"sample_weight must be None in AdaRank.* Leave it out"):
        AdaRank().fit(X, y, qid=qid, sample_weight=np.ones(len(y)))
