import numpy as np
import pytest

from cleanrank.errors import InvalidInputError
from cleanrank.planning.judges import play, play_top_k, top_k_floor


def all_pairs(documents, k):
    return k * (k - 1) // 2 + k * (documents - k)


def pnoise(played):
    return (played.inverse + played.new_come / 2) / sum(played[1:])


def played(grades, k, error=0.0, seed=0):
    grades = np.asarray(grades)
    out = np.zeros((len(grades), 4), dtype=np.int64)
    draws = np.random.default_rng(seed).random(len(grades) * (grades.shape[1] + k) * 12)
    play(grades, k, error, draws, out)
    return out


def naive_order(grades, k, error, draws):
    """The top k in plain words: a heap of the best k, its worst on top."""

    def prefers(a, b):
        u = next(draws)
        return u < 0.5 if grades[a] == grades[b] else (grades[a] > grades[b]) == (u >= error)

    def sift(heap, at, size):
        while 2 * at + 1 < size:
            child = 2 * at + 1
            if child + 1 < size and prefers(heap[child], heap[child + 1]):
                child += 1
            if not prefers(heap[at], heap[child]):
                return
            heap[at], heap[child] = heap[child], heap[at]
            at = child

    heap = list(range(k))
    for at in reversed(range(k // 2)):
        sift(heap, at, k)
    for d in range(k, len(grades)):
        if prefers(d, heap[0]):
            heap[0] = d
            sift(heap, 0, k)
    order = []
    for size in range(k, 0, -1):
        order.append(heap[0])
        heap[0] = heap[size - 1]
        sift(heap, 0, size - 1)
    return order[::-1]


def naive(grades, k, error, draws):
    """Judgements (each takes one draw) and pairs by kind."""
    left = iter(draws)
    order = naive_order(grades, k, error, left)
    rest = [d for d in range(len(grades)) if d not in order]
    pairs = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :] + rest]
    kinds = [np.sign(grades[a] - grades[b]) for a, b in pairs]
    return [len(draws) - len(list(left)), kinds.count(1), kinds.count(-1), kinds.count(0)]


@pytest.mark.parametrize(
    ("n", "k", "error"), [(12, 4, 0.0), (12, 4, 0.2), (9, 9, 0.1), (7, 1, 0.3), (20, 5, 0.5)]
)
def test_the_game_is_the_one_in_plain_words(n, k, error):
    rng = np.random.default_rng(1)
    for seed in range(20):
        grades = rng.integers(0, 3, size=(1, n))
        draws = np.random.default_rng(seed).random((n + k) * 12)
        out = np.zeros((1, 4), dtype=np.int64)
        play(grades, k, error, draws, out)
        assert out[0].tolist() == naive(grades[0].tolist(), k, error, draws)


@pytest.mark.parametrize(
    ("n", "k", "judgements"), [(50, 10, 151), (120, 10, 261), (1000, 10, 1238), (50, 5, 92), (152, 20, 499)]
)
def test_judgements_of_an_exact_judge(n, k, judgements):
    rng = np.random.default_rng(3)
    out = played([rng.permutation(n) for _ in range(300)], k)
    assert out[:, 0].mean() == pytest.approx(judgements, rel=0.02)
    assert (out[:, 1] == all_pairs(n, k)).all()  # every pair is right: the true top k in order


@pytest.mark.parametrize(("relevant", "floor"), [(1, 0.445), (2, 0.392), (5, 0.247), (10, 0.051)])
def test_the_floor_of_a_perfect_judge(relevant, floor):
    assert top_k_floor(50, 10, relevant) == pytest.approx(floor, abs=5e-4)
    rng = np.random.default_rng(relevant)
    grades = rng.permuted(np.tile(np.arange(50) < relevant, (50, 1)).astype(np.int64), axis=1)
    _, correct, inverse, new = played(grades, 10).sum(axis=0)
    assert (inverse + new / 2) / (correct + inverse + new) == pytest.approx(top_k_floor(50, 10, relevant))


def test_a_coin_gives_one_half():
    found = play_top_k(50, 10, (0.7, 0.3), 0.5, queries=2000)
    assert pnoise(found) == pytest.approx(0.5, abs=0.01)
    assert sum(found[1:]) == all_pairs(50, 10)


def test_the_same_seed_plays_the_same_game_and_errors_cost():
    again = play_top_k.__wrapped__(30, 5, (0.6, 0.3, 0.1), 0.1, seed=4)
    assert again == play_top_k(30, 5, (0.6, 0.3, 0.1), 0.1, seed=4)
    values = [pnoise(play_top_k(30, 5, (0.6, 0.3, 0.1), e)) for e in (0.0, 0.1, 0.3, 0.5)]
    assert values == sorted(values)


def test_impossible_sizes_are_refused():
    with pytest.raises(InvalidInputError, match="k must lie between 1 and"):
        play_top_k(5, 6, (0.5, 0.5), 0.1)
    with pytest.raises(InvalidInputError, match="relevant"):
        top_k_floor(50, 10, 11)
