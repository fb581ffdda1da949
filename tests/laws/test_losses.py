"""Laws of every binary loss and every robust form of it, over the literal mappings."""

import inspect
from typing import Any

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.losses.binary import LOSSES, BinaryLoss
from cleanrank.losses.robust import backward, bootstrap, clipped, peer, symmetrize
from cleanrank.losses.robust_specs import ROBUST, robust_loss

NOISE = [[0.9, 0.1], [0.3, 0.7]]
OPTIONS = {"forward": {"matrix": NOISE}, "backward": {"matrix": NOISE}, "peer": {"alpha": 0.3, "prior": 0.2}}


def every_loss() -> dict[str, BinaryLoss]:
    found = dict(LOSSES)
    for name in ROBUST:
        found[name] = robust_loss({"name": name, **OPTIONS.get(name, {})})
    for name, base in LOSSES.items():
        found[f"symmetrize {name}"] = symmetrize(base)
        found[f"peer {name}"] = peer(base, 0.4)
        found[f"antisymmetric {name}"] = peer(base, 1.0)
        found[f"backward {name}"] = backward(base, NOISE)
        found[f"bootstrap hard {name}"] = bootstrap(base, 0.7, hard=True)
        found[f"clipped {name}"] = clipped(base, 1.5)
    found["chain"] = robust_loss(
        ["label_smoothing", {"name": "peer", "alpha": 0.2}, {"name": "clipped", "at": 3}]
    )
    return found


EVERY = every_loss()
TRAINABLE = {name: loss for name, loss in EVERY.items() if loss.trainable}
FAR = np.array([-1e4, -700.0, -60.0, 60.0, 700.0, 1e4])
TARGETS = (0.0, 0.3, 1.0)


def smooth_logits(loss: BinaryLoss) -> np.ndarray:
    """Logits in [-6, 6] away from kinks."""
    grid = np.random.default_rng(0).uniform(-6, 6, 200)
    for kink in loss.kinks:
        grid = grid[abs(grid - kink) > 1e-3]
    return grid


@pytest.mark.parametrize("name", TRAINABLE)
def test_the_gradient_is_the_numerical_derivative_of_the_value(name: str) -> None:
    loss, h = EVERY[name], 1e-5
    a = smooth_logits(loss)
    for t in TARGETS:
        found = (loss.value(a + h, t) - loss.value(a - h, t)) / (2 * h)
        np.testing.assert_allclose(loss.gradient(a, t), found, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", TRAINABLE)
def test_the_curvature_is_the_numerical_derivative_of_the_gradient(name: str) -> None:
    loss, h = EVERY[name], 1e-5
    a = smooth_logits(loss)
    for t in TARGETS:
        found = (loss.gradient(a + h, t) - loss.gradient(a - h, t)) / (2 * h)
        np.testing.assert_allclose(loss.curvature(a, t), found, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", EVERY)
def test_a_loss_is_linear_in_its_target(name: str) -> None:
    loss, a = EVERY[name], np.linspace(-6, 6, 25)
    for part in (loss.value, loss.gradient, loss.curvature):
        np.testing.assert_allclose(part(a, 0.3), 0.3 * part(a, 1) + 0.7 * part(a, 0), atol=1e-12)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extreme_logits_stay_finite_and_keep_their_type(name: str, dtype: type) -> None:
    loss = EVERY[name]
    a = FAR.astype(dtype)
    for t in TARGETS:
        for part in (loss.value, loss.gradient, loss.curvature):
            found = part(a, dtype(t))
            assert np.isfinite(found).all()
            assert found.dtype == dtype


@pytest.mark.parametrize("name", EVERY)
def test_the_stated_constant_is_the_sum_over_both_targets(name: str) -> None:
    loss, a = EVERY[name], np.linspace(-6, 6, 2001)
    total = loss.value(a, 1) + loss.value(a, 0)
    if loss.constant is None:
        assert np.ptp(total) > 1e-3
    else:
        np.testing.assert_allclose(total, loss.constant, atol=1e-12)


@pytest.mark.parametrize("name", EVERY)
def test_bounded_losses_have_bounds(name: str) -> None:
    loss = EVERY[name]
    largest = max(abs(loss.value(FAR, t)).max() for t in (0, 1))
    assert loss.bounded == (largest < 100)


@pytest.mark.parametrize("name", TRAINABLE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch_differentiates_the_value_to_the_gradient(name: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    loss = EVERY[name]
    at_kinks = [] if "clipped" in name or name == "chain" else loss.kinks
    far = 1e4 if dtype == "float64" else 1e2
    a = np.concatenate([smooth_logits(loss), [-far, far, 0.0], at_kinks]).astype(dtype)
    tolerance = 1e-6 if dtype == "float64" else 2e-5
    for t in TARGETS:
        x = torch.tensor(a, requires_grad=True)
        value = loss.value(x, torch.full_like(x, t))
        assert value.dtype == x.dtype
        np.testing.assert_allclose(value.detach().numpy(), loss.value(a, t), rtol=tolerance, atol=tolerance)
        value.sum().backward()
        expected = loss.gradient(a, t)
        np.testing.assert_allclose(x.grad.numpy(), expected, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(
            loss.gradient(x.detach(), t).numpy(), expected, rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("name", ROBUST)
def test_a_robust_form_by_name_is_its_function_of_the_loss_and_differs_from_it(name: str) -> None:
    a, options = np.linspace(-6, 6, 25), OPTIONS.get(name, {})
    takes_a_loss = "loss" in inspect.signature(ROBUST[name]).parameters
    any_loss = name in ("symmetrize", "peer", "backward", "clipped")  # others need log-odds
    for base in LOSSES if any_loss else ("logistic",):
        direct = ROBUST[name](**({"loss": LOSSES[base]} if takes_a_loss else {}), **options)
        named = robust_loss({"name": name, **options}, base)
        for t in TARGETS:
            np.testing.assert_array_equal(named.value(a, t), direct.value(a, t))
            np.testing.assert_array_equal(named.gradient(a, t), direct.gradient(a, t))
    logistic = robust_loss({"name": name, **options})
    assert abs(logistic.value(a, 1.0) - LOSSES["logistic"].value(a, 1.0)).max() > 1e-3


def lists() -> tuple[Any, np.ndarray]:
    """Three queries of three grades, one with ties alone, and scores."""
    rng = np.random.default_rng(8)
    lengths = (9, 4, 14)
    qid = np.repeat(np.arange(3), lengths)
    y = rng.integers(0, 3, len(qid))
    y[9:13] = 1
    return cr.from_arrays(np.zeros((len(qid), 1)), y, qid=qid), rng.normal(0, 1.5, len(qid))


def torch_gradient(loss: Any, data: Any, scores: np.ndarray) -> np.ndarray:
    import torch

    places = np.split(np.arange(len(scores)), data.indptr[1:-1])
    longest = max(map(len, places))
    index = np.array([np.pad(p, (0, longest - len(p)), constant_values=-1) for p in places])
    mask = torch.tensor(index >= 0)
    s = torch.tensor(scores[index], requires_grad=True)
    loss(s, torch.tensor(data.y[index].astype(float)), mask).backward()
    assert s.grad is not None
    return s.grad.numpy()[index >= 0]


@pytest.mark.parametrize("name", TRAINABLE)
@pytest.mark.parametrize("pairs", ["strict", "all_ordered"])
def test_torch_and_compiled_gradients_of_pairs_agree(name: str, pairs: str) -> None:
    pytest.importorskip("torch")
    from cleanrank.losses.torch import ranking_loss
    from cleanrank.losses.trees.pairwise import PairwiseObjective

    data, scores = lists()
    compiled = PairwiseObjective(data, EVERY[name], pair_set=pairs, sigmoid=1.3)(scores)[0]
    loss = ranking_loss("pairwise", binary=EVERY[name], pairs=pairs, weighting="micro", sigma=1.3)
    expected = data.n_queries * torch_gradient(loss, data, scores)
    size = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(compiled / size, expected / size, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("weighting", ["sum", "macro", "pooled", "prevalence"])
def test_torch_and_compiled_weightings_agree(weighting: str) -> None:
    pytest.importorskip("torch")
    from cleanrank.losses.torch import ranking_loss
    from cleanrank.losses.trees.pairwise import PairwiseObjective

    data, scores = lists()
    noise = np.full((3, 3), 0.1) + 0.7 * np.eye(3) if weighting == "prevalence" else None
    options = {"weighting": weighting, "noise": noise}
    compiled = PairwiseObjective(data, LOSSES["hinge"], **options)(scores)[0]
    loss = ranking_loss("pairwise", binary="hinge", **options)
    np.testing.assert_allclose(compiled, 3 * torch_gradient(loss, data, scores), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", TRAINABLE)
def test_torch_and_compiled_lambdas_agree(name: str) -> None:
    pytest.importorskip("torch")
    from cleanrank.losses.torch import ranking_loss
    from cleanrank.losses.trees.pairwise import RobustLambdaObjective

    data, scores = lists()
    compiled = RobustLambdaObjective(data, EVERY[name], norm=False, truncation_level=20)(scores)[0]
    loss = ranking_loss("lambdarank", binary=EVERY[name], measure="ndcg")
    expected = data.n_queries * torch_gradient(loss, data, scores)
    size = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(compiled / size, expected / size, rtol=1e-6, atol=1e-6)
