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
from cleanrank.validation import check_integer, check_number, one_of, require

if importlib.util.find_spec("torch") is None:
    require("nn")

import torch

from cleanrank.losses.binary import BinaryLoss
from cleanrank.losses.pairs import check_peer_pairs, check_weighting
from cleanrank.losses.robust_specs import Spec, read_spec
from cleanrank.losses.torch.lists import TIES, ListLoss
from cleanrank.losses.torch.pair_loss import PairwiseLoss, PointwiseLoss
from cleanrank.losses.torch.swap_weights import SWAPS
from cleanrank.metrics.measure import Measure

RankingLoss: TypeAlias = Callable[..., torch.Tensor]
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
        pairs: one of PAIR_SETS, "strict" by default. Peers need "all_ordered" (or "strict_both").
        weighting: one of PAIR_WEIGHTINGS; by default "macro", for lambdarank "sum", for points "pooled".
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
    named = {
        "binary": binary, "robust": robust, "pairs": pairs, "weighting": weighting, "measure": measure,
        "noise": noise, "target": target, "relevant": relevant, "max_grade": max_grade, "gain": gain,
        "ties": ties, "temperature": temperature, "block": block,
    }  # fmt: skip
    options = {option: value for option, value in named.items() if value is not None}
    for option, value in options.items():
        if option not in _OPTIONS[name]:
            remedy = f"{name} takes: {', '.join((*_OPTIONS[name], 'sigma'))}."
            raise invalid(option, f"has no meaning for {name}", repr(value), remedy=remedy)
    for option in ("sigma", "temperature", "max_grade"):
        check_number(option, sigma if option == "sigma" else options.get(option, 1), above=0)
    check_integer("block", options.get("block", 1), least=1)
    check_number("relevant", options.get("relevant", 1))
    if name == "pointwise":
        return _pointwise(name, float(sigma), options)
    make = _pairwise if "pairs" in _OPTIONS[name] else _listwise
    return make(name, float(sigma), options)


def _pairwise(name: str, sigma: float, options: dict[str, Any]) -> PairwiseLoss:
    pairs = options.get("pairs", "strict")
    weighting = options.get("weighting", "sum" if name == "lambdarank" else "macro")
    matrix = check_weighting(weighting, pairs, options.get("noise"))
    parts = read_spec(options.get("robust"), options.get("binary", "logistic"))
    if name == "ranknet" and parts.base != "logistic":
        raise invalid("binary", "must be 'logistic' for ranknet", repr(parts.base), remedy="Use 'pairwise'.")
    if parts.has_peers:
        check_peer_pairs(pairs)
    measure = _measure(options.get("measure", "ndcg@10"), SWAPS) if name == "lambdarank" else None
    noise = None if matrix is None else torch.tensor(matrix)
    peers = parts.peers if parts.peers is not None and parts.peers.mode == "sampled" else None
    loss = parts.loss if peers is None else parts.peerless
    return PairwiseLoss(
        name,
        loss,
        pairs,
        weighting,
        measure,
        sigma,
        noise,
        peers,
        parts.mixture,
        options.get("block"),
        parts.base,
    )


def _pointwise(name: str, sigma: float, options: dict[str, Any]) -> PointwiseLoss:
    weighting = one_of("weighting", options.get("weighting", "pooled"), ("pooled", "macro"))
    target = one_of("target", options.get("target", "binary"), TARGETS)
    relevant, max_grade = options.get("relevant"), options.get("max_grade")
    if (target == "scaled") != (max_grade is not None):
        rule = "must be given for target='scaled', and for it alone"
        remedy = "Pass the highest grade of the scale, such as max_grade=4."
        raise invalid("max_grade", rule, max_grade, remedy=remedy)
    if target == "scaled" and relevant is not None:
        raise invalid("relevant", "has no meaning for target='scaled'", relevant)
    parts = read_spec(options.get("robust"), options.get("binary", "logistic"))
    threshold = 1 if relevant is None else relevant
    return PointwiseLoss(name, parts.peerless, weighting, threshold, max_grade, sigma, parts.peers)


def _listwise(name: str, sigma: float, options: dict[str, Any]) -> ListLoss:
    if "gain" in options:
        one_of("gain", options["gain"], ("linear", "exp"))
    if "ties" in options:
        one_of("order of ties", options["ties"], TIES)
    if name == "approx_ndcg":
        options = {**options, "measure": _measure(options.get("measure", "ndcg"), ("ndcg",))}
        if options["measure"].cutoff is not None:
            raise invalid(
                "the measure of approx_ndcg", "must have no cut-off", str(options["measure"]), remedy="'ndcg'"
            )
    return ListLoss(name, sigma=sigma, **options)


def _measure(measure: str | Measure, names: Any) -> Measure:
    parsed = measure if isinstance(measure, Measure) else Measure.parse(measure)
    one_of("measure for a loss", parsed.name, names)
    return parsed


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
