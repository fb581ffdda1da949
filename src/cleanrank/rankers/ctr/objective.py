"""What a model of clicks minimises: a loss of points with its robust form, and the scheme it is trained by.

A spec of a robust form is what ``losses.robust_specs`` reads, and beside it may name one of SCHEMES:

    coteaching  two networks, each shown the rows that the other finds easy
    reweight    rows weighted by P(label | codes) of a naive Bayes model
    sour        rows that every epoch contradicts are left out of a second training
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from cleanrank.errors import invalid
from cleanrank.losses.binary import BinaryLoss, check_trainable
from cleanrank.losses.robust_specs import Peers, read_spec, robust_steps
from cleanrank.losses.torch.pair_loss import point_risk
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.theory.peer import Alpha, point_alpha, stated_alpha
from cleanrank.types import Array
from cleanrank.validation import one_of

SCHEMES: dict[str, dict[str, Any]] = {
    # forget: the share of rows left out in the end; ramp: epochs until then
    "coteaching": {"forget": 0.1, "ramp": 5},
    "reweight": {},
    # start, end: models after epochs start + 1 to end are looked at, 0 standing for the best epoch;
    # kind: "neg" (labels 0), "pos" (labels 1) or "all"
    "sour": {"start": 0, "end": 0, "kind": "all"},
}
KINDS: dict[str, tuple[int, ...]] = {"neg": (0,), "pos": (1,), "all": (0, 1)}
NEEDS_MATRIX = ("forward", "backward")


@dataclass(frozen=True, eq=False)
class Objective:
    """A loss of clicks, and how it is trained."""

    loss: BinaryLoss  # of a logit and a label, without peers
    peers: Peers | None = None
    alpha: Alpha | None = None  # the weight of the peers
    scheme: str = ""  # one of SCHEMES; empty for plain training
    options: Mapping[str, Any] = field(default_factory=dict)  # of the scheme

    def risk(self, logit: Tensor, y: Tensor, weight: Tensor, generator: torch.Generator) -> Tensor:
        """The mean loss of a batch; weights are 1 on average over all rows."""
        return point_risk(logit, y, weight / len(weight), self.loss, self.peers, generator)


def objective(
    robust: Any, alpha: float | str, noise: Any, peers: str, binary: str | BinaryLoss, y: Array
) -> Objective:
    """The objective of CTRModel's parameters on labels y."""
    scheme, options, steps = "", {}, []
    for step in robust_steps(robust):
        if step.get("name") not in SCHEMES:
            steps.append(step)
            continue
        if scheme:
            raise invalid(
                "robust", "must name one scheme of training at the most", f"{scheme} and {step['name']}"
            )
        scheme = step.pop("name")
        for option in step:
            one_of(f"option of {scheme}", option, SCHEMES[scheme])
        options = SCHEMES[scheme] | step
    for step in steps:
        if step.get("name") in NEEDS_MATRIX and "matrix" not in step and noise is not None:
            step["matrix"] = NoiseProfile.of(noise, 2, invertible=True).matrix
    weight = None
    for step in steps:
        if step.get("name") == "peer":
            # Peers apply to what the steps before them make of the loss.
            before = read_spec(steps[: steps.index(step)], binary).peerless
            weight = stated_alpha(step.get("alpha", alpha), noise) or point_alpha(noise, y, before)
            step.update(alpha=float(weight), mode=step.get("mode", peers))
    parts = read_spec(steps, binary)
    if scheme == "coteaching" and parts.has_peers:
        raise invalid("co-teaching", "picks rows by their own loss and takes no peers", repr(robust))
    loss = parts.loss if parts.peers is None else parts.peerless
    return Objective(check_trainable(loss), parts.peers, weight, scheme, options)
