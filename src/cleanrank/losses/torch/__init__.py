"""Ranking losses in torch: pairs, points and whole lists, on padded lists with a mask.

Every loss is a value with its settings, made by ``ranking_loss`` and called as

    loss(scores (B, L), labels (B, L), mask (B, L) or None, generator=None, *, weights=None, gains=None)

for a scalar: the risk of B lists. ``weights`` (B, L) say how many copies a document stands for; ``gains``
(B, L) stand in for the gains of labels. Nothing at padding is read, and its gradient is 0. Scores in half
precision are lifted to single precision. ``generator`` feeds what is drawn: sampled peers and random ties.
"""

import importlib.util
from collections.abc import Callable
from typing import Any, TypeAlias

from cleanrank.errors import invalid
from cleanrank.validation import is_integer, one_of, require

if importlib.util.find_spec("torch") is None:
    require("nn")

from torch import Tensor

from cleanrank.losses.binary import BinaryLoss
from cleanrank.losses.robust import Spec, read_robust
from cleanrank.losses.torch import list_loss
from cleanrank.losses.torch.pair_loss import PairwiseLoss, PointwiseLoss
from cleanrank.losses.torch.pair_sums import PAIRS
from cleanrank.losses.torch.weights import SWAPS, WEIGHTINGS, noise_matrix
from cleanrank.losses.transforms import is_number
from cleanrank.metrics.measure import Measure

RankingLoss: TypeAlias = Callable[..., Tensor]
TARGETS = ("binary", "scaled")


# What each kind of loss reads, apart from sigma.
_PAIR_OPTIONS = ("binary", "robust", "pairs", "weighting", "noise", "block")
_OPTIONS: dict[str, tuple[str, ...]] = {
    "ranknet": _PAIR_OPTIONS,
    "lambdarank": (*_PAIR_OPTIONS, "measure"),
    "pairwise": _PAIR_OPTIONS,
    "pointwise": ("binary", "robust", "weighting", "target", "relevant", "max_grade"),
    "listnet": (),
    "softmax": ("gain",),
    "listmle": ("ties",),
    "approx_ndcg": ("measure", "temperature", "block"),
}


def ranking_loss(
    name: str,
    *,
    binary: str | BinaryLoss | None = None,
    robust: Spec = None,
    pairs: str | None = None,
    weighting: str | None = None,
    measure: str | Measure | None = None,
    sigma: float = 1.0,
    noise: Any = None,
    target: str | None = None,
    relevant: float | None = None,
    max_grade: float | None = None,
    gain: str | None = None,
    ties: str | None = None,
    temperature: float | None = None,
    block: int | None = None,
) -> RankingLoss:
    """The loss of a name of RANKING_LOSSES; None means the default, what a loss does not read is refused.

    Args:
        name: one of RANKING_LOSSES.
        binary: loss of points or pairs, "logistic" by default.
        robust: what is made of it, as ``robust_loss`` reads it.
        pairs: one of PAIRS, "strict" by default. Peers need "all_ordered" (or "strict_both").
        weighting: one of WEIGHTINGS; by default "macro", for lambdarank "sum", for points "pooled".
        measure: lambdarank, a measure of SWAPS, "ndcg@10" by default; approx_ndcg, "ndcg" without cut-off.
        sigma: factor of the scores.
        noise: for weighting="prevalence", a matrix P(given | true) or the two keep probabilities.
        target: points, "binary" (label >= ``relevant``) or "scaled" (label / ``max_grade``).
        relevant: 1 by default.
        max_grade: highest grade of the scale.
        gain: softmax, "linear" (default) or "exp".
        ties: listmle, "random" (default) or "index".
        temperature: approx_ndcg, .1 by default.
        block: pairs in memory at a time.

    >>> import torch
    >>> loss = ranking_loss("ranknet")
    >>> loss(torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]]))
    tensor(0.3133)
    """
    one_of("ranking loss", name, RANKING_LOSSES)
    given = {
        "binary": binary, "robust": robust, "pairs": pairs, "weighting": weighting, "measure": measure,
        "noise": noise, "target": target, "relevant": relevant, "max_grade": max_grade, "gain": gain,
        "ties": ties, "temperature": temperature, "block": block,
    }  # fmt: skip
    options = {option: value for option, value in given.items() if value is not None}
    for option, value in options.items():
        if option not in _OPTIONS[name]:
            raise invalid(
                option, f"has no meaning for {name}", repr(value),
                remedy=f"{name} takes: {', '.join((*_OPTIONS[name], 'sigma'))}.",
            )  # fmt: skip
    for option in ("sigma", "temperature", "block", "max_grade"):
        value = sigma if option == "sigma" else options.get(option, 1)
        if not (is_number(value) and value > 0):
            raise invalid(option, "must be a positive number", repr(value))
    if not is_integer(options.get("block", 1)):
        raise invalid("block", "must be a whole number of pairs", repr(block))
    if not is_number(options.get("relevant", 1)):
        raise invalid("relevant", "must be the lowest label that counts as relevant", repr(relevant))
    if name == "pointwise":
        return _pointwise(sigma=float(sigma), **options)
    return (
        _pairwise(name, float(sigma), options)
        if "pairs" in _OPTIONS[name]
        else _listwise(name, sigma, options)
    )


def _pairwise(name: str, sigma: float, options: dict[str, Any]) -> PairwiseLoss:
    kind = one_of("set of pairs", options.get("pairs", "strict"), PAIRS)
    default = "sum" if name == "lambdarank" else "macro"
    weighting = one_of("weighting", options.get("weighting", default), WEIGHTINGS)
    base = options.get("binary", "logistic")
    parts = read_robust(options.get("robust"), base)
    if name == "ranknet" and parts.base != "logistic":
        raise invalid("binary", "must be 'logistic' for ranknet", repr(parts.base), remedy="Use 'pairwise'.")
    if parts.has_peers and kind == "strict":
        raise invalid(
            "pairs", "must be 'all_ordered' with peers: strict pairs all have target 1, as have their peers, "
            "which then only shrink the loss by 1 - alpha", "'strict'",
            remedy="Pass pairs='all_ordered', and compare with a base on the same pairs.",
        )  # fmt: skip
    noise = options.get("noise")
    if (weighting == "prevalence") != (noise is not None):
        raise invalid(
            "noise", "must be given for weighting='prevalence', and for it alone", f"weighting={weighting!r}",
            remedy="Pass noise=(gamma0, gamma1), the probabilities that a label is kept, or a matrix.",
        )  # fmt: skip
    if weighting == "prevalence" and kind == "all_ordered":
        raise invalid(
            "weighting", "must not be 'prevalence' for all_ordered pairs, whose number no label changes",
            "'prevalence'", remedy="Use 'macro'.",
        )  # fmt: skip
    measure = _measure(options.get("measure", "ndcg@10"), SWAPS) if name == "lambdarank" else None
    matrix = None if noise is None else noise_matrix(noise)
    peers = parts.peers if parts.peers is not None and parts.peers.mode == "sampled" else None
    loss = parts.loss if peers is None else parts.peerless
    return PairwiseLoss(
        name, loss, kind, weighting, measure, sigma, matrix, peers, parts.mixture, options.get("block")
    )


def _pointwise(
    *,
    sigma: float,
    binary: str | BinaryLoss = "logistic",
    robust: Spec = None,
    weighting: str = "pooled",
    target: str = "binary",
    relevant: float | None = None,
    max_grade: float | None = None,
) -> PointwiseLoss:
    one_of("weighting", weighting, ("pooled", "macro"))
    one_of("target", target, TARGETS)
    if (target == "scaled") != (max_grade is not None):
        raise invalid(
            "max_grade", "must be given for target='scaled', and for it alone", max_grade,
            remedy="Pass the highest grade of the scale, such as max_grade=4.",
        )  # fmt: skip
    if target == "scaled" and relevant is not None:
        raise invalid("relevant", "has no meaning for target='scaled'", relevant)
    parts = read_robust(robust, binary)
    return PointwiseLoss(
        "pointwise", parts.peerless, weighting, target, 1 if relevant is None else relevant, max_grade, sigma,
        parts.peers,
    )  # fmt: skip


def _listwise(name: str, sigma: float, options: dict[str, Any]) -> list_loss.ListLoss:
    if "gain" in options:
        one_of("gain", options["gain"], ("linear", "exp"))
    if "ties" in options:
        one_of("order of ties", options["ties"], list_loss.TIES)
    if name == "approx_ndcg":
        options = {**options, "measure": _measure(options.get("measure", "ndcg"), ("ndcg",))}
        if options["measure"].cutoff is not None:
            raise invalid(
                "the measure of approx_ndcg", "must have no cut-off", str(options["measure"]), remedy="'ndcg'"
            )
    return list_loss.ListLoss(name, sigma=float(sigma), **options)


def _measure(measure: str | Measure, names: Any) -> Measure:
    found = measure if isinstance(measure, Measure) else Measure.parse(measure)
    one_of("measure for a loss", found.name, names)
    return found


RANKING_LOSSES: dict[str, str] = {
    "ranknet": "logistic loss on pairs (Burges 2005)",
    "lambdarank": "pairs weighted by the change of a measure when they swap (Burges 2006)",
    "pairwise": "any binary loss on pairs",
    "pointwise": "any binary loss on documents",
    "listnet": "cross-entropy of top-one probabilities (Cao 2007)",
    "softmax": "cross-entropy with graded targets (Bruch 2019)",
    "listmle": "likelihood of the ideal order (Xia 2008)",
    "approx_ndcg": "NDCG with smooth ranks (Qin 2010)",
}
