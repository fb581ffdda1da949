import numpy as np

from cleanrank.planning.judges import play


def test_queries_are_played_one_after_the_other_with_one_stream_of_draws():
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 4, size=(3, 15))
    draws = rng.random(2000)
    together = np.zeros((3, 4), dtype=np.int64)
    play(grades, 4, 0.2, draws, together)
    used = 0
    for q in range(3):
        alone = np.zeros((1, 4), dtype=np.int64)
        play(grades[q : q + 1], 4, 0.2, draws[used:], alone)
        assert np.array_equal(alone[0], together[q])
        used += int(alone[0, 0])


def test_k_of_all_documents_sorts_them():
    out = np.zeros((1, 4), dtype=np.int64)
    play(np.array([[3, 1, 4, 0, 2]]), 5, 0.0, np.random.default_rng(0).random(200), out)
    assert out[0, 1:].tolist() == [10, 0, 0]
