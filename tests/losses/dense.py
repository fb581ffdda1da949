"""The pairwise risk written out as an n x n table: the slow oracle of the blocked and compiled ones."""

import torch

# Some of torch's operations wake all threads for tensors of any size; these are tiny.
torch.set_num_threads(1)


def dense_sums(scores, labels, mask, kind, loss, sigma=1.0, weights=None, delta=None):
    """S of every list; autograd keeps every table."""
    s = scores.masked_fill(~mask, 0.0)
    logit = sigma * (s[:, :, None] - s[:, None, :])
    better = labels[:, :, None] > labels[:, None, :]
    chosen = mask[:, :, None] & mask[:, None, :]
    if kind == "strict":
        chosen = chosen & better
    elif kind == "strict_both":
        chosen = chosen & (labels[:, :, None] != labels[:, None, :])
    else:
        chosen = chosen & ~torch.eye(s.shape[1], dtype=torch.bool, device=s.device)
    value = loss.value(logit, better.to(s.dtype))
    if weights is not None:
        value = value * weights[:, :, None] * weights[:, None, :]
    if delta is not None:
        value = value * delta
    return torch.where(chosen, value, 0.0).sum((1, 2))


def batch(lists=3, length=7, seed=0, dtype=torch.float64, grades=4, hidden=0.25):
    """Scores that need a gradient, labels and a mask that keeps some documents of every list."""
    g = torch.Generator().manual_seed(seed)
    scores = torch.randn(lists, length, generator=g, dtype=torch.float64).to(dtype).requires_grad_()
    labels = torch.randint(0, grades, (lists, length), generator=g)
    mask = torch.rand(lists, length, generator=g) >= hidden
    mask[:, :2] = True
    return scores, labels, mask


def value_and_gradient(loss, scores, *args, **kwargs):
    s = scores.detach().clone().requires_grad_()
    value = loss(s, *args, **kwargs)
    (gradient,) = torch.autograd.grad(value.sum(), s)
    return value.detach(), gradient
