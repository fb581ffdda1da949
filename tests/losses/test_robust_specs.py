import subprocess
import sys

import pytest
import torch

from cleanrank.errors import CleanrankError
from cleanrank.losses.binary import LOSSES, binary_loss, gce
from cleanrank.losses.robust_specs import read_spec

F = LOSSES["logistic"]
A = torch.linspace(-4, 4, 17, dtype=torch.float64)


@pytest.mark.parametrize(
    "spec",
    [
        None,
        "label_smoothing",
        {"name": "label_smoothing", "eps": 0.3},
        {"name": "peer", "alpha": 0.4},
        {"name": "peer", "alpha": 0.4, "prior": 0.2},
        [{"name": "label_smoothing", "eps": 0.1}, {"name": "peer", "alpha": 0.3}],
        [{"name": "peer", "alpha": 0.3, "prior": 0.1}, {"name": "label_smoothing", "eps": 0.1}],
    ],
)
def test_a_mixture_says_what_the_loss_is(spec):
    parts = read_spec(spec)
    for target, (a, b) in zip((1.0, 0.0), parts.mixture, strict=True):
        expected = parts.loss.value(A, torch.full_like(A, target))
        mixed = a * F.value(A, torch.ones_like(A)) + b * F.value(A, torch.zeros_like(A))
        torch.testing.assert_close(mixed, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("spec", ["gce", "symmetrize", {"name": "clipped", "at": 2.0}, "bootstrap"])
def test_what_is_no_mixture_is_said_to_be_none(spec):
    assert read_spec(spec).mixture is None


def test_a_mixture_is_one_of_its_base():
    for parts in (
        read_spec({"name": "peer", "alpha": 0.4}, "hinge"),
        read_spec({"name": "peer", "alpha": 0.4, "loss": "hinge"}),
    ):
        assert parts.base == "hinge"
        f = LOSSES["hinge"].one.value
        for target, (a, b) in zip((1.0, 0.0), parts.mixture, strict=True):
            expected = parts.loss.value(A, torch.full_like(A, target))
            torch.testing.assert_close(a * f(A) + b * f(-A), expected, rtol=1e-12, atol=1e-12)
    assert read_spec(None, gce(0.3)).mixture is None


def test_peers_of_weight_0_leave_the_very_base():
    for mode in ("expected", "sampled"):
        parts = read_spec({"name": "peer", "alpha": 0.0, "mode": mode}, "hinge")
        assert parts.loss is binary_loss("hinge")
        assert parts.peers is None
        assert not parts.has_peers


def test_sampled_peers_are_kept_apart_from_the_loss():
    parts = read_spec(["label_smoothing", {"name": "peer", "alpha": 0.2, "mode": "sampled"}])
    assert parts.loss is parts.peerless
    assert parts.peers.alpha == 0.2
    assert parts.peers.mode == "sampled"
    assert parts.peers.loss.name.startswith("label_smoothing")


def test_robust_losses_stand_on_their_own():
    """They come before ranking losses, in any order of import, and need no torch."""
    code = "import sys, cleanrank.losses.robust_specs as s; print('torch' in sys.modules, s.UNMIXED)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "False ((1.0, 0.0), (0.0, 1.0))", ran.stderr


def test_a_wrong_spec_is_refused_in_the_words_of_robust_losses():
    with pytest.raises(CleanrankError, match="Known"):
        read_spec("peers")
    with pytest.raises(CleanrankError, match="alpha"):
        read_spec({"name": "peer", "alpha": 3.0})
