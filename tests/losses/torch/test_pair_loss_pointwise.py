import math

import pytest
import torch

from cleanrank.errors import CleanrankError
from cleanrank.losses.binary import LOSSES
from cleanrank.losses.torch import ranking_loss

S = torch.tensor([[0.5, -1.0, 2.0], [1.0, 0.0, 0.0]], dtype=torch.float64)
Y = torch.tensor([[2, 0, 1], [0, 0, 0]])
MASK = torch.tensor([[True, True, True], [True, False, False]])


def logistic(a, t):
    return t * math.log1p(math.exp(-a)) + (1 - t) * math.log1p(math.exp(a))


def test_documents_of_all_lists_count_alike_by_default():
    terms = [logistic(0.5, 1), logistic(-1, 0), logistic(2, 1), logistic(1, 0)]
    assert float(ranking_loss("pointwise")(S, Y, MASK)) == pytest.approx(sum(terms) / 4, rel=1e-12)
    macro = sum(terms[:3]) / 3 / 2 + terms[3] / 2
    found = ranking_loss("pointwise", weighting="macro")(S, Y, MASK)
    assert float(found) == pytest.approx(macro, rel=1e-12)


def test_labels_are_cut_or_scaled():
    cut = [logistic(0.5, 1), logistic(-1, 0), logistic(2, 0), logistic(1, 0)]
    assert float(ranking_loss("pointwise", relevant=2)(S, Y, MASK)) == pytest.approx(sum(cut) / 4, rel=1e-12)
    scaled = [logistic(0.5, 0.5), logistic(-1, 0), logistic(2, 0.25), logistic(1, 0)]
    found = ranking_loss("pointwise", target="scaled", max_grade=4)(S, Y, MASK)
    assert float(found) == pytest.approx(sum(scaled) / 4, rel=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_every_binary_loss_serves(name):
    found = ranking_loss("pointwise", binary=name)(S, Y, MASK)
    target = (Y >= 1).double()
    assert float(found) == pytest.approx(float(LOSSES[name].value(S, target)[MASK].mean()), rel=1e-12)


def test_expected_peers_take_the_share_of_the_batch():
    prior, alpha = 0.5, 0.2
    a, t = S[MASK].tolist(), (Y[MASK] >= 1).int().tolist()
    terms = [logistic(x, y) - alpha * logistic(x, prior) for x, y in zip(a, t, strict=True)]
    found = ranking_loss("pointwise", robust={"name": "peer", "alpha": alpha})(S, Y, MASK)
    assert float(found) == pytest.approx(sum(terms) / 4, rel=1e-12)
    given = ranking_loss("pointwise", robust={"name": "peer", "alpha": alpha, "prior": 0.1})(S, Y, MASK)
    terms = [logistic(x, y) - alpha * logistic(x, 0.1) for x, y in zip(a, t, strict=True)]
    assert float(given) == pytest.approx(sum(terms) / 4, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "scaled"}, "max_grade must be given"),
        ({"max_grade": 4}, "max_grade must be given for target='scaled', and for it alone"),
        ({"target": "scaled", "max_grade": 4, "relevant": 2}, "relevant has no meaning"),
        ({"weighting": "micro"}, "Known: pooled, macro"),
        ({"target": "graded"}, "Known: binary, scaled"),
        ({"pairs": "strict"}, "pairs has no meaning for pointwise"),
    ],
)
def test_what_does_not_fit_is_refused(options, words):
    with pytest.raises(CleanrankError, match=words):
        ranking_loss("pointwise", **options)
