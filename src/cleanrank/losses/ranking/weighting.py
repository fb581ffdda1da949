"""How the pairs of a batch of lists are weighed against each other.

A list of n documents has pairs of total weight N (their number when no document carries a weight) and a pair
sum S; Q lists hold a document at all. The risk of the batch is the sum of c S over its lists, with c

    sum         1 / Q
    macro       1 / (N Q'), Q' the lists with pairs: the mean over lists of the mean over pairs
    micro       1 / (n^2 Q): order preserving under noise for label-symmetric losses, whatever the prevalence
    pooled      1 / (sum of N)
    prevalence  1 / (n^2 h Q), h the share of pairs the list would have without noise

Class-conditional flips multiply the macro risk of a list by a factor that depends on its prevalence p, so
the mean over lists can change the order of two models (the claim of Theorem 4.1 of Haddad 2022 leaves p out).
``micro`` repairs that by weighing lists by their pairs. ``prevalence`` repairs it and keeps lists equal: it
undoes the noise in the grade shares of a list, h = (1 - sum of squared shares) / 2, so that the noisy risk is
gamma0 + gamma1 - 1 times the clean *macro* risk plus a constant. It needs the noise matrix.
"""

import torch
from torch import Tensor

from cleanrank.errors import invalid
from cleanrank.losses.robust.corrections import grade_noise

WEIGHTINGS: dict[str, str] = {
    "macro": "mean over pairs of a list, then mean over lists with pairs",
    "micro": "sum over pairs / n^2, then mean over lists",
    "prevalence": "as macro, with the pairs the list would have without noise; needs the noise matrix",
    "pooled": "mean over all pairs of the batch",
    "sum": "sum over pairs, then mean over lists",
}


def coefficients(weighting: str, n_pairs: Tensor, n_docs: Tensor, clean_share: Tensor | None) -> Tensor:
    """The factor c of every list (B,).

    >>> coefficients("micro", torch.tensor([2.0, 0.0]), torch.tensor([3.0, 1.0]), None).tolist()
    [0.0555..., 0.5]
    """
    present = (n_docs > 0).to(n_pairs.dtype)
    lists = present.sum().clamp(min=1.0)
    if weighting == "sum":
        return present / lists
    if weighting == "macro":
        return _divide(1.0, n_pairs) / (n_pairs > 0).sum().clamp(min=1)
    if weighting == "pooled":
        return torch.ones_like(n_pairs) * _divide(1.0, n_pairs.sum())
    square = n_docs * n_docs
    if weighting == "prevalence" and clean_share is not None:
        square = square * clean_share
    return _divide(1.0, square) / lists


def _divide(a: float, b: Tensor) -> Tensor:
    """The quotient, 0 where b = 0."""
    return torch.where(b > 0, a / torch.where(b > 0, b, 1.0), 0.0)


def pair_weight(kind: str, labels: Tensor, weights: Tensor) -> Tensor:
    """N of every list; ``weights`` (B, L) are 0 at padding.

    >>> pair_weight("strict", torch.tensor([[2.0, 1.0, 1.0]]), torch.ones(1, 3)).tolist()
    [2.0]
    """
    total = weights.sum(1)
    if kind == "all_ordered":
        return (total * total - (weights * weights).sum(1)).clamp(min=0.0)
    ordered, by = labels.sort(dim=1)
    upto = torch.cat((torch.zeros_like(total[:, None]), weights.gather(1, by).cumsum(1)), 1)
    below = torch.searchsorted(ordered, labels.contiguous(), right=False)
    strict = (weights * upto.gather(1, below)).sum(1)
    return strict if kind == "strict" else 2.0 * strict


def clean_pair_share(labels: Tensor, weights: Tensor, noise: Tensor) -> Tensor:
    """h: the share of pairs (y_i > y_j of all n^2) that a list would have without noise, estimated.

    The shares of the given grades are multiplied by the inverse of the noise matrix P(given | true) and put
    back among the shares; h is at least that of one document against all others.

    >>> y, w = torch.tensor([[1.0, 0.0, 0.0, 0.0]]), torch.ones(1, 4)
    >>> clean_pair_share(y, w, torch.eye(2)).tolist()
    [0.1875]
    """
    n = weights.sum(1).clamp(min=1.0)
    grades = torch.arange(len(noise), device=labels.device)
    given = torch.stack([(weights * (labels == g)).sum(1) / n for g in grades], 1)
    if bool(((given.sum(1) < 0.999) & (weights.sum(1) > 0)).any()):
        raise invalid(
            "noise",
            f"must cover every label, the grades 0..{len(noise) - 1}",
            f"labels up to {labels.max():g}",
        )
    true: Tensor = torch.linalg.solve(noise.T.to(given.dtype), given.T).T.clamp(min=0.0)
    true = true / true.sum(1, keepdim=True).clamp(min=torch.finfo(true.dtype).tiny)
    return (0.5 * (1.0 - (true * true).sum(1))).clamp(min=0.0).maximum((n - 1.0) / (n * n))


def noise_matrix(noise: object) -> Tensor:
    """A (C, C) matrix P(given | true), also from the two keep probabilities (gamma0, gamma1).

    >>> noise_matrix((0.9, 0.8)).tolist()
    [[0.9, 0.0999...], [0.1999..., 0.8]]
    """
    return torch.as_tensor(grade_noise(noise))
