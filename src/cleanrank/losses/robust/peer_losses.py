"""Peer losses: a loss less that of peers, which keep their logit and take another one's target."""

from dataclasses import dataclass, replace
from typing import Any, Literal, overload

import numpy as np

from cleanrank.errors import invalid
from cleanrank.losses.binary import BinaryLoss, Values, as_floats, binary_loss, is_tensor, namespace
from cleanrank.losses.robust.transforms import is_number, levels_off, mixed, share
from cleanrank.validation import one_of

MODES: dict[str, str] = {
    "expected": "the mean over all draws of peers; no further variance",
    "sampled": "peers drawn from the batch, as published",
}


@dataclass(frozen=True)
class SampledPeer:
    """Peers drawn from the batch: w_i l(a_i, t_i) - alpha w_j l(a_j, t_k), j and k uniform and independent.

    The mean over the draws of the batch's mean is that of the expected form with the batch's share of
    positive targets as ``prior``. Gradients flow through both terms.

    >>> logits, targets = np.array([0.5, -1.0]), np.array([1, 0])
    >>> SampledPeer(binary_loss("logistic"), 0.1).value(logits, targets, np.random.default_rng(0)).shape
    (2,)
    """

    loss: BinaryLoss
    alpha: float

    @property
    def name(self) -> str:
        """As messages call it."""
        return f"peer({self.loss.name}, alpha={self.alpha:g}, mode=sampled)"

    def expected(self, prior: float = 0.5) -> BinaryLoss:
        """The mean over all draws."""
        return peer(self.loss, self.alpha, prior=prior)

    def value(self, logit: Values, target: Values, generator: Any, weight: Values = 1.0) -> Values:
        """One value per element of a flat batch; ``generator`` is NumPy's or torch's, as the arrays are."""
        a, t = as_floats(logit), target
        j, k = _draw_peers(a, generator)
        w = weight if np.ndim(weight) == 0 else weight[j]
        return weight * self.loss.value(a, t) - self.alpha * w * self.loss.value(a[j], t[k])

    def gradient(self, logit: Values, target: Values, generator: Any, weight: Values = 1.0) -> Values:
        """The derivative of the sum of ``value`` by every logit, for the same state of the generator."""
        a, t = as_floats(logit), target
        j, k = _draw_peers(a, generator)
        w = weight if np.ndim(weight) == 0 else weight[j]
        found = weight * self.loss.gradient(a, t)
        drawn = self.alpha * w * self.loss.gradient(a[j], t[k])
        if is_tensor(a):
            return found.index_add(0, j, -drawn)
        np.subtract.at(found, j, drawn)
        return found


def _draw_peers(a: Values, generator: Any) -> Values:
    n = len(a)
    if is_tensor(a):
        return namespace(a).randint(n, (2, n), generator=generator, device=a.device)
    return generator.integers(n, size=(2, n))


@overload
def peer(
    loss: str | BinaryLoss, alpha: float = ..., mode: Literal["expected"] = ..., prior: float = ...
) -> BinaryLoss: ...
@overload
def peer(
    loss: str | BinaryLoss, alpha: float, mode: Literal["sampled"], prior: float = ...
) -> SampledPeer: ...
def peer(
    loss: str | BinaryLoss, alpha: float = 0.1, mode: str = "expected", prior: float = 0.5
) -> BinaryLoss | SampledPeer:
    """A loss less ``alpha`` times that of peers, which keep their logit and take another one's target.

    Expected: l(a, t) - alpha (prior l(a, 1) + (1 - prior) l(a, 0)). With ``prior`` 1/2, that of all ordered
    pairs, RankNet becomes (1 - alpha) logistic - alpha d / 2, and alpha = e+ + e- undoes clicks that are
    flipped at these rates, whatever the loss. alpha = 1 leaves the antisymmetric part alone, which has no
    lower bound for an unbounded loss; beyond it the loss rewards what it should punish, so it is refused.

    Args:
        loss: any loss.
        alpha: weight of the peers in [0, 1].
        mode: one of MODES.
        prior: the share of targets 1, for points that of the batch; not read by sampled peers.

    >>> round(float(peer("logistic", 1.0).value(3.0, 1)), 6)
    -1.5
    """
    base = binary_loss(loss)
    one_of("mode of peers", mode, MODES)
    if not (is_number(alpha) and 0 <= alpha <= 1):
        raise invalid(
            "alpha",
            "must lie in [0, 1]: beyond 1 a model that ranks backwards has less loss",
            repr(alpha),
            remedy="For pairs the sum of the two flip rates is exact; the papers use .05 to .1.",
        )
    share("prior", prior)
    if mode == "sampled":
        return SampledPeer(base, float(alpha))
    on, off = alpha * prior, alpha * (1 - prior)
    one, zero = mixed(base, 1 - on, -off), mixed(base, -on, 1 - off)
    return replace(
        base,
        name=f"peer({base.name}, alpha={alpha:g})",
        one=one,
        zero=zero,
        bounded=base.bounded or (levels_off(one) and levels_off(zero)),
        constant=_peer_constant(base, alpha, prior),
    )


def _peer_constant(base: BinaryLoss, alpha: float, prior: float) -> float | None:
    if alpha == 0:
        return base.constant
    if prior != 0.5:
        return None
    return 0.0 if alpha == 1 else base.constant and (1 - alpha) * base.constant
