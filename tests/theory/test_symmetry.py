from dataclasses import replace

import numpy as np
import pytest

from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.losses.binary import LOSSES, gce, margin_loss
from cleanrank.losses.robust import peer, symmetrize
from cleanrank.theory.symmetry import is_label_symmetric

SYMMETRIC = {"zero_one", "ramp", "unhinged", "sigmoid"}


@pytest.mark.parametrize("name", LOSSES)
def test_four_losses_are_symmetric(name: str) -> None:
    assert is_label_symmetric(name) == (name in SYMMETRIC)


@pytest.mark.parametrize(("name", "inside", "outside"), [("hinge", 2.0, 7.0), ("l1", 2.0, 12.0)])
def test_hinge_and_l1_only_look_symmetric_between_minus_one_and_one(
    name: str, inside: float, outside: float
) -> None:
    loss = LOSSES[name]
    a = np.linspace(-1, 1, 11)
    np.testing.assert_allclose(loss.value(a, 1) + loss.value(a, 0), inside)
    assert loss.value(6.0, 1) + loss.value(6.0, 0) == outside  # 1 + |a| and 2 |a|
    assert not is_label_symmetric(loss)


def test_what_robust_forms_do_to_symmetry() -> None:
    assert is_label_symmetric(symmetrize("hinge"))
    assert is_label_symmetric(peer("logistic", 1.0))
    assert not is_label_symmetric(peer("logistic", 0.9))
    assert is_label_symmetric(gce(1.0))
    assert not is_label_symmetric(gce(0.99))


def test_a_loss_that_states_nothing_is_judged_by_its_values() -> None:
    arc = margin_loss("arc", lambda m: -np.arctan(m), lambda m: -1 / (1 + m * m), np.zeros_like)
    assert is_label_symmetric(arc)


def test_a_false_statement_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"loss 'hinge' must be .* got 2 where the sum is"):
        is_label_symmetric(replace(LOSSES["hinge"], constant=2.0))


def test_an_unknown_loss_names_the_closest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'hinge'"):
        is_label_symmetric("hing")
