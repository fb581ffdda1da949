import subprocess
import sys

import numpy as np
import pytest

from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.losses.binary import ALIASES, LOSSES, BinaryLoss, binary_loss, check_trainable, margin_loss

# Values of phi at the margins -2, 0, 1 and 3, expanded by hand.
EXPANDED = {
    "zero_one": [1, 0.5, 0, 0],
    "logistic": [2.1269280110, 0.6931471806, 0.3132616875, 0.0485873516],
    "exponential": [7.3890560989, 1, 0.3678794412, 0.0497870684],
    "hinge": [3, 1, 0, 0],
    "squared_hinge": [9, 1, 0, 0],
    "l1": [3, 1, 0, 2],
    "ramp": [1, 0.5, 0, 0],
    "unhinged": [3, 1, 0, -2],
    "sigmoid": [0.8807970780, 0.5, 0.2689414214, 0.0474258732],
    "squared": [9, 1, 0, 4],
}
MARGINS = np.array([-2.0, 0.0, 1.0, 3.0])


@pytest.mark.parametrize("name", LOSSES)
def test_values_expanded_by_hand(name: str) -> None:
    np.testing.assert_allclose(LOSSES[name].value(MARGINS, 1), EXPANDED[name], rtol=1e-9)
    np.testing.assert_allclose(LOSSES[name].value(-MARGINS, 0), EXPANDED[name], rtol=1e-9)


def test_constants_and_bounds_as_the_table_states() -> None:
    assert {n: loss.constant for n, loss in LOSSES.items() if loss.constant is not None} == {
        "zero_one": 1.0,
        "ramp": 1.0,
        "unhinged": 2.0,
        "sigmoid": 1.0,
    }
    assert {n for n, loss in LOSSES.items() if loss.bounded} == {"zero_one", "ramp", "sigmoid"}
    assert [n for n, loss in LOSSES.items() if not loss.trainable] == ["zero_one"]


def test_logistic_agrees_with_scikit_learn() -> None:
    from sklearn.metrics import log_loss

    rng = np.random.default_rng(3)
    a, t = rng.normal(0, 3, 50), rng.integers(0, 2, 50)
    found = LOSSES["logistic"].value(a, t).mean()
    assert found == pytest.approx(log_loss(t, 1 / (1 + np.exp(-a))), rel=1e-12)


def test_logistic_agrees_with_torch_at_soft_targets() -> None:
    torch = pytest.importorskip("torch")
    a, t = torch.randn(50, dtype=torch.float64), torch.rand(50, dtype=torch.float64)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(a, t, reduction="none")
    torch.testing.assert_close(LOSSES["logistic"].value(a, t), expected)


def test_the_exponential_goes_on_as_its_tangent() -> None:
    loss = LOSSES["exponential"]
    edge = np.exp(50.0)
    assert loss.value(-60.0, 1) == pytest.approx(11 * edge, rel=1e-12)
    assert loss.gradient(-60.0, 1) == pytest.approx(-edge, rel=1e-12)


def test_aliases_and_unknown_names() -> None:
    assert set(ALIASES.values()) <= set(LOSSES)
    assert not set(ALIASES) & set(LOSSES)
    for name in ("symmetrised_logistic", "soft_zero_one"):
        assert binary_loss(name) is LOSSES["sigmoid"]
    assert binary_loss(LOSSES["l1"]) is LOSSES["l1"]
    with pytest.raises(UnknownNameError, match=r"unknown loss \['hinge'\]. .*Known: zero_one"):
        binary_loss(["hinge"])
    with pytest.raises(UnknownNameError, match=r"unknown loss 'logstic'. Did you mean 'logistic'"):
        binary_loss("logstic")


def test_a_loss_of_ones_own() -> None:
    cosh = margin_loss("cosh", lambda m: np.cosh(m) - m, lambda m: np.sinh(m) - 1, np.cosh, kinks=(2.0,))
    assert isinstance(cosh, BinaryLoss)
    assert cosh.value(1.0, 0) == pytest.approx(np.cosh(1.0) + 1)
    assert cosh.gradient(1.0, 0) == pytest.approx(np.sinh(1.0) + 1)
    assert cosh.kinks == (-2.0, 2.0)


def test_whole_numbers_and_lists_are_logits_too() -> None:
    assert LOSSES["hinge"].value([0, 2], [1, 0]).tolist() == [1.0, 3.0]


def test_importing_losses_needs_numpy_alone() -> None:
    code = (
        "import sys, cleanrank.losses.robust_specs;"
        "print([m for m in ('torch', 'numba', 'scipy', 'lightgbm', 'sklearn', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_loss_without_slopes_is_refused_for_training() -> None:
    assert check_trainable(LOSSES["sigmoid"]) is LOSSES["sigmoid"]
    with pytest.raises(InvalidInputError, match="must have a gradient to train on; got 'zero_one'"):
        check_trainable(LOSSES["zero_one"])
