"""Label symmetry: whether equal flips of the labels leave the order of models by a loss as it is."""

import numpy as np

from cleanrank.errors import invalid
from cleanrank.losses.binary import BinaryLoss, binary_loss

# Far beyond |a| = 1, where hinge and l1 still look symmetric, and at logits of no special kind.
PROBES = np.concatenate([np.linspace(-6.0, 6.0, 481), np.geomspace(6.0, 40.0, 20), [-1 / 3, 1 / 7, -40.0]])
TOLERANCE = 1e-9


def is_label_symmetric(loss: str | BinaryLoss) -> bool:
    """Whether l(a, 1) + l(a, 0) is the same for every logit a (Haddad 2022, Definition 3.2).

    The constant that a loss states is checked against its values at |a| up to 40; a loss that states none is
    judged by its values. True for zero_one, ramp, unhinged and sigmoid. Haddad lists hinge and l1 too: their
    sums, 1 + |a| and 2 |a| for |a| > 1, are constant between -1 and 1 only.

    >>> is_label_symmetric("sigmoid"), is_label_symmetric("hinge")
    (True, False)
    """
    found = binary_loss(loss)
    total = found.value(PROBES, 1) + found.value(PROBES, 0)
    flat = bool(np.ptp(total) <= TOLERANCE * (1 + np.abs(total).max()))
    if found.constant is None:
        return flat
    if not flat or not np.isclose(total[0], found.constant, rtol=TOLERANCE, atol=TOLERANCE):
        worst = int(np.abs(total - found.constant).argmax())
        raise invalid(
            f"the constant of loss {found.name!r}",
            "must be l(a, 1) + l(a, 0) for every logit",
            f"{found.constant:g} where the sum is {total[worst]:g}",
            at=f"logit {PROBES[worst]:g}",
            remedy="State constant=None.",
        )
    return True
