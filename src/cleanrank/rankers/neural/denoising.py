"""Co-teaching: two networks, each shown the pairs or points that the other finds easy (Han et al. 2018).

In epoch T each network marks, among the strict pairs (or points) of a batch, the share

    R(T) = 1 - forget min(T / ramp, 1)

with the smallest losses, and the other one learns from them. Wrong pairs have large losses before a network
has learnt them by heart; two networks do not share the same mistakes.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cleanrank.errors import invalid
from cleanrank.losses.torch.pair_sums import elementwise
from cleanrank.rankers.neural.inputs import Batch, batch_of, bucketed
from cleanrank.rankers.neural.loop import Training, train
from cleanrank.rankers.neural.model import Task
from cleanrank.rankers.neural.networks import build_network
from cleanrank.rankers.neural.objective import PAIRED
from cleanrank.rankers.neural.ranker import NeuralRanker
from cleanrank.rankers.neural.steps import Forward, Outputs, Step
from cleanrank.types import FloatArray, IntArray, RankingData
from cleanrank.validation import check_integer, check_number

# What the second network's seed differs by.
OTHER = 1_000_003


def coteach(
    ranker: NeuralRanker,
    data: RankingData,
    validation: RankingData | None = None,
    *,
    forget: float = 0.05,
    ramp: int = 15,
) -> NeuralRanker:
    """Trains a NeuralRanker and a second network of its kind on each other's easy pairs; keeps the first.

    Args:
        ranker: with loss "ranknet", "pairwise" or "direct" on strict pairs, and no robust form.
        data: training rows.
        validation: rows by which the first network's best epoch is chosen.
        forget: share of pairs that is left out in the end; about the share of wrong ones.
        ramp: epochs until then.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(20, 5, docs_per_query=10, seed=0)
    >>> ranker = coteach(NeuralRanker(epochs=2, network_options={"hidden": (8,)}), data, forget=0.2)
    >>> ranker.predict(data.X).shape == data.y.shape
    True
    """
    _check(ranker, forget, ramp)
    if data.weights is not None:
        raise invalid("co-teaching", "takes no sample weights", f"{len(data.weights)} weights")
    task = Task(ranker, data.X, data.indptr, data.row_ids, data.feature_names)
    if task.listwise:
        raise invalid("co-teaching", "needs a network that scores documents one by one", repr(ranker.network))
    seed = (ranker.random_state + OTHER) % 2**31
    other = build_network(ranker.network, data.X.shape[1], seed=seed, **(ranker.network_options or {}))
    twins = Twins(task.network, other)
    labels = torch.from_numpy(np.array(data.y, dtype=np.float32)).to(task.device)
    loss, epoch = ranker.loss_config().base, [0]

    def batch(*parts: IntArray) -> Batch:
        return batch_of(data.indptr, np.concatenate(parts), task.device)

    def scores(forward: Forward, batch: Batch) -> Outputs:
        both: Outputs = forward(task.docs.rows(batch.rows))
        return both

    def risk(outputs: Outputs, batch: Batch, generator: torch.Generator) -> Tensor:
        first, second = (batch.pad(each) for each in outputs)
        y = batch.pad(labels[batch.rows])
        lists, i, j = strict_pairs(y, batch.mask)
        logits = [s[lists, i] - s[lists, j] for s in (first, second)]
        losses = [elementwise(d, torch.ones_like(d), loss) for d in logits]
        # Every list counts the same, as in the mean over lists of the mean over pairs.
        weight = 1.0 / torch.bincount(lists, minlength=len(y)).clamp(min=1)[lists]
        return taught(losses, weight, kept_share(epoch[0], forget, ramp))

    def batches(rng: np.random.Generator) -> list[IntArray]:
        epoch[0] += 1
        return bucketed(data.lengths, ranker.batch_queries, rng)

    value_of = None if validation is None else task.validator(validation, ranker.measure)

    def validate(twins: nn.Module) -> float:
        assert isinstance(twins, Twins)
        assert value_of is not None
        return value_of(twins.first)

    ranker.alpha_ = None
    step = Step(batch, scores, risk)
    state = train(twins, step, batches, Training.of(ranker), validate=None if value_of is None else validate)
    return ranker._keep(task, state)


def kept_share(epoch: int, forget: float, ramp: int) -> float:
    """R(T)."""
    return 1.0 - forget * min(epoch / ramp, 1.0)


def strict_pairs(labels: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(list, better document, worse document) of every strict pair of padded lists."""
    inside = mask[:, :, None] & mask[:, None, :]
    better = labels[:, :, None] > labels[:, None, :]
    lists, i, j = (inside & better).nonzero(as_tuple=True)
    return lists, i, j


class Twins(nn.Module):
    """Two networks as one module, so that the one loop trains, saves and restores both."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, *inputs: Tensor, **options: Any) -> tuple[Tensor, ...]:
        """The outputs of the first, then those of the second."""
        both = (self.first(*inputs, **options), self.second(*inputs, **options))
        return tuple(each for out in both for each in (out if isinstance(out, tuple) else (out,)))


def taught(losses: Sequence[Tensor], weight: Tensor, share: float) -> Tensor:
    """What two networks minimise: each the mean loss of the share of members that the other finds easiest.

    >>> first, second = torch.tensor([0.0, 1.0, 4.0]), torch.tensor([3.0, 1.0, 0.0])
    >>> taught([first, second], torch.ones(3), 1 / 3).tolist()  # member 2 for the first, 0 for the second
    7.0
    """
    keep = math.ceil(share * len(weight))
    means = [
        _mean_of(mine, weight, theirs.detach().topk(keep, largest=False, sorted=False).indices)
        for mine, theirs in (losses, losses[::-1])
    ]
    return means[0] + means[1]


def _mean_of(losses: Tensor, weight: Tensor, members: Tensor) -> Tensor:
    w = weight[members]
    return (losses[members] * w).sum() / w.sum().clamp(min=torch.finfo(w.dtype).tiny)


def check_forgetting(forget: float, ramp: int) -> None:
    """Refuses shares and epochs that co-teaching cannot use."""
    check_number("forget", forget, least=0, below=1)
    check_integer("ramp", ramp, least=1)


def _check(ranker: NeuralRanker, forget: float, ramp: int) -> None:
    check_forgetting(forget, ramp)
    if ranker.loss not in PAIRED or ranker.loss == "lambdarank" or ranker.pairs != "strict":
        rule = "picks strict pairs of 'ranknet', 'pairwise' or 'direct'"
        raise invalid("co-teaching", rule, f"loss={ranker.loss!r}, pairs={ranker.pairs!r}")
    for name in ("robust", "checkpoint", "loss_options"):
        if getattr(ranker, name):
            raise invalid("co-teaching", f"takes no {name}=", repr(getattr(ranker, name)))


def agreement_weights(data: RankingData, *, bins: int = 10) -> FloatArray:
    """P(given label | features) of every row, from a naive Bayes model on histograms of the same rows.

    Bins hold about equally many rows each; counts start at 1. With many features the product of their
    likelihoods is over-confident, so the mean of the log-likelihoods per feature is taken times the square
    root of their number.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[0.0], [0.1], [0.9], [1.0], [1.0]], [0, 0, 1, 1, 0], group=[5])
    >>> agreement_weights(data, bins=2).round(2).tolist()
    [0.7..., 0.7..., 0.5..., 0.5..., 0.4...]
    """
    check_integer("bins", bins, least=2)
    X: Any = data.X.toarray() if hasattr(data.X, "toarray") else data.X
    n_features = X.shape[1]
    return _agreement(
        (_binned(np.asarray(X[:, f], dtype=np.float64), bins) for f in range(n_features)), data.y
    )


def code_agreement_weights(codes: Any, y: Any) -> FloatArray:
    """The same for columns of codes, which are bins as they come; a row itself is left out of its counts.

    Without that, a code that few rows have would repeat their labels.

    >>> codes, y = np.array([[0], [0], [0], [1], [1], [1]]), np.array([1, 1, 0, 0, 0, 0])
    >>> code_agreement_weights(codes, y).round(2)
    array([0.55, 0.55, 0.31, 0.8 , 0.8 , 0.8 ])
    """
    return _agreement(codes.T, y, without_itself=True)


def _binned(values: FloatArray, bins: int) -> IntArray:
    """The bin of every value; each holds about equally many."""
    column = np.nan_to_num(values)
    edges = np.unique(np.quantile(column, np.linspace(0, 1, bins + 1)[1:-1]))
    edges = edges[edges > column.min()]  # no bin without rows
    return np.searchsorted(edges, column, side="right")


def _agreement(columns: Iterable[IntArray], labels_of: Any, *, without_itself: bool = False) -> FloatArray:
    """P(given label | bins) of every row by naive Bayes; counts start at 1."""
    y = np.asarray(labels_of, dtype=np.int64)
    n, labels = len(y), int(y.max(initial=0)) + 1
    if not n or labels < 2:
        return np.ones(n)
    counts = np.bincount(y, minlength=labels).astype(np.float64)
    own = (y[:, None] == np.arange(labels)).astype(np.float64) if without_itself else 0.0
    log_likelihood, n_columns = np.zeros((n, labels)), 0
    for place in columns:
        size = int(place.max()) + 1
        table = np.bincount(y * size + place, minlength=labels * size).reshape(labels, size) + 1.0
        totals = table.sum(axis=1)
        log_likelihood += np.log((table.T[place] - own) / (totals - own))
        n_columns += 1
    log_posterior = log_likelihood / max(1.0, n_columns**0.5) + np.log((counts + 1) / (n + labels))
    log_posterior -= log_posterior.max(axis=1, keepdims=True)
    posterior = np.exp(log_posterior)
    posterior /= posterior.sum(axis=1, keepdims=True)
    agreement: FloatArray = posterior[np.arange(n), y]
    return agreement
