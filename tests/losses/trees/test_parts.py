"""The objective of some of the queries gives the gradients of the whole one."""

import itertools

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError
from cleanrank.issues.outliers import SOUR, Window
from cleanrank.losses.binary import LOSSES
from cleanrank.losses.trees.lambdarank import LambdaRankObjective
from cleanrank.losses.trees.pairwise import PairwiseObjective, RobustLambdaObjective
from cleanrank.losses.trees.peer import PeerObjective, Peers
from cleanrank.ragged import from_arrays
from cleanrank.robust.sour import FilteringObjective


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    made = cr.make_ranking(23, 3, docs_per_query=12, seed=0)
    y = made.y.copy()
    y[made.indptr[9] :] = np.minimum(y[made.indptr[9] :], 1)  # the last part has fewer grades
    return from_arrays(made.X, y, qid=made.qid, weights=rng.random(made.n_docs).astype(np.float32))


OBJECTIVES = {
    "lambdarank": LambdaRankObjective,
    "parity": lambda data: LambdaRankObjective(data, mode="parity"),
    "sampled": lambda data: PeerObjective(data, Peers(0.3, seed=4, permutations=2)),
    "expected": lambda data: PeerObjective(data, Peers(0.3, kind="expected")),
    "robust": lambda data: RobustLambdaObjective(data, LOSSES["sigmoid"]),
    **{
        weighting: lambda data, weighting=weighting: PairwiseObjective(
            data,
            LOSSES["hinge"],
            weighting=weighting,
            noise="uniform:0.2" if weighting == "prevalence" else None,
        )
        for weighting in ("sum", "macro", "pooled", "micro", "prevalence")
    },
    "ties": lambda data: PairwiseObjective(data, LOSSES["logistic"], pair_set="all_ordered"),
    "top": lambda data: PairwiseObjective(data, LOSSES["logistic"], truncation_level=3),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_parts_give_the_gradients_of_the_whole(data, name):
    cuts = [0, 9, 10, 23]
    whole = OBJECTIVES[name](data)
    parts = [whole.part(a, b) for a, b in itertools.pairwise(cuts)]
    rng = np.random.default_rng(1)
    for _ in range(3):
        scores = rng.normal(size=data.n_docs)
        wanted = [each.copy() for each in whole(scores)]
        found = [
            [each.copy() for each in part(scores[data.indptr[a] : data.indptr[b]])]
            for part, (a, b) in zip(parts, itertools.pairwise(cuts), strict=True)
        ]
        for kind in (0, 1):
            assert np.array_equal(np.concatenate([each[kind] for each in found]), wanted[kind])


def test_peers_of_the_whole_batch_have_no_parts(data):
    with pytest.raises(InvalidInputError, match="within must be 'query' on a cluster"):
        PeerObjective(data, Peers(0.3, within="batch")).part(0, 9)


def test_an_observer_without_parts_is_refused(data):
    objective = LambdaRankObjective(data, observer=lambda *_: None)
    with pytest.raises(InvalidInputError, match="observer must be able to watch a part"):
        objective.part(0, 9)


def test_what_observers_of_parts_saw_is_what_one_sees(data):
    window = Window(cutoff=4, end=6, kind="all")
    objectives = [
        lambda detector: LambdaRankObjective(data, observer=detector),
        lambda detector: FilteringObjective(data, detector, 2, 2),
    ]
    for make in objectives:
        whole, gathered = (make(SOUR.of(data, window, keep="streak")) for _ in range(2))
        cuts = [(0, 9), (9, 23)]
        parts = [gathered.part(*cut) for cut in cuts]
        rng = np.random.default_rng(2)
        base = rng.normal(size=data.n_docs)
        for _ in range(5):
            scores = base + 0.2 * rng.normal(size=data.n_docs)
            wanted = [each.copy() for each in whole(scores)]
            for part, (a, b) in zip(parts, cuts, strict=True):
                rows = slice(data.indptr[a], data.indptr[b])
                grad, hess = part(scores[rows])
                assert np.array_equal(grad, wanted[0][rows])
                assert np.array_equal(hess, wanted[1][rows])
        for part, (a, b) in zip(parts, cuts, strict=True):
            gathered.take(slice(data.indptr[a], data.indptr[b]), part)
        assert whole.observer.seen == gathered.observer.seen > 0
        assert np.array_equal(whole.observer.counts, gathered.observer.counts)
        if isinstance(whole, FilteringObjective):
            assert whole.left_out.any()
            assert np.array_equal(whole.left_out, gathered.left_out)
