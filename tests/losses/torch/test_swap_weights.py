import numpy as np
import pytest
import torch

from cleanrank.errors import CleanrankError, UnknownNameError
from cleanrank.losses.torch.swap_weights import SWAPS, ranking, swap_of
from cleanrank.metrics import _reference
from cleanrank.metrics.measure import Measure

FORMS = [f"{name}{cut}" for name in SWAPS for cut in (("", "@3") if name != "auc" else ("", ":micro"))]


def value(measure, y, s):
    return np.nan_to_num(_reference._value(measure, y, s, None, np.ones(len(y), dtype=bool))[0], nan=0.0)


@pytest.mark.parametrize("text", [*FORMS, "ndcg@3:letor:short=cut", "dcg:haddad"])
def test_a_swap_is_the_difference_of_the_measure_before_and_after(text):
    measure = Measure.parse(text)
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 5, 8):
        for _ in range(6):
            y, s = rng.integers(0, 4, n), rng.permutation(n).astype(float)
            mask = torch.arange(n + 2)[None] < n
            grades = torch.tensor(np.append(y, [3, 3]))[None]
            swap = swap_of(measure, torch.tensor(np.append(s, [99.0, -99.0]))[None], grades, mask)
            found = swap.rows(0, n + 2)[0]
            for i in range(n):
                for j in range(n):
                    swapped = s.copy()
                    swapped[[i, j]] = s[[j, i]]
                    expected = abs(value(measure, y, swapped) - value(measure, y, s))
                    assert float(found[i, j]) == pytest.approx(expected, abs=1e-12)
                    assert float(swap.at(torch.tensor([i]), torch.tensor([j]))) == float(found[i, j])


def test_real_valued_gains_stand_in_for_grades():
    s, y = torch.tensor([[2.0, 1.0]]), torch.tensor([[0, 4]])
    gains = torch.tensor([[0.5, 2.0]])
    mask = torch.ones(1, 2, dtype=torch.bool)
    found = swap_of(Measure("dcg"), s, y, mask, gains).rows(0, 1)[0, 0, 1]
    assert float(found) == pytest.approx(1.5 * (1 - 1 / np.log2(3)))
    with pytest.raises(CleanrankError, match="ndcg and dcg alone"):
        swap_of(Measure("map"), s, y, mask, gains)


def test_a_measure_without_a_swap_is_refused_with_the_known_ones():
    s = torch.zeros(1, 2)
    with pytest.raises(UnknownNameError, match="ndcg, dcg, map"):
        swap_of(Measure("tau"), s, s, torch.ones(1, 2, dtype=torch.bool))


def test_a_grade_beyond_the_scale_of_err_is_refused():
    s = torch.zeros(1, 2)
    with pytest.raises(CleanrankError, match="max_grade=2"):
        swap_of(Measure("err", max_grade=2), s, torch.tensor([[3, 0]]), torch.ones(1, 2, dtype=torch.bool))


def test_ties_keep_the_order_of_documents_and_padding_comes_last():
    scores = torch.tensor([[1.0, -torch.inf, 1.0, 5.0]])
    mask = torch.tensor([[True, True, True, False]])
    assert ranking(scores, mask).tolist() == [[0, 2, 1, 3]]
