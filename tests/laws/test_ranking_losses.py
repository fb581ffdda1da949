"""What holds for every loss in RANKING_LOSSES."""

import pytest
import torch

from cleanrank.losses.binary import LOSSES
from cleanrank.losses.robust_specs import ROBUST
from cleanrank.losses.torch import RANKING_LOSSES, ranking_loss
from tests.losses.dense import batch, value_and_gradient

PAIRED = ("ranknet", "lambdarank", "pairwise")
MATRIX = [[0.9, 0.1], [0.2, 0.8]]


def forms():
    """Every loss with its settings: all pairs, weightings, measures, binary and robust losses."""
    yield from ((name, {}) for name in RANKING_LOSSES)
    for name in PAIRED:
        yield from ((name, {"pairs": pairs}) for pairs in ("strict_both", "all_ordered"))
        yield from ((name, {"weighting": w}) for w in ("macro", "micro", "pooled", "sum"))
        yield name, {"weighting": "prevalence", "noise": [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]}
    for measure in ("ndcg", "dcg@3", "map", "map@3", "mrr", "err", "precision@3", "recall@3", "auc"):
        yield "lambdarank", {"measure": measure}
    for binary in LOSSES:
        if LOSSES[binary].trainable:
            yield "pairwise", {"binary": binary, "pairs": "all_ordered"}
            yield "pointwise", {"binary": binary}
    for robust in ROBUST:
        spec = {"name": robust, "matrix": MATRIX} if robust in ("forward", "backward") else {"name": robust}
        yield "pairwise", {"robust": spec, "pairs": "all_ordered"}
        yield "pointwise", {"robust": spec}
        yield "lambdarank", {"robust": spec, "pairs": "strict_both"}
    for name in ("ranknet", "lambdarank", "pointwise"):
        pairs = {} if name == "pointwise" else {"pairs": "all_ordered"}
        yield name, {"robust": {"name": "peer", "alpha": 0.3, "mode": "sampled"}, **pairs}
    yield "pointwise", {"target": "scaled", "max_grade": 2, "weighting": "macro"}
    yield "softmax", {"gain": "exp"}
    yield "listmle", {"ties": "index"}
    yield "approx_ndcg", {"measure": "ndcg:letor", "temperature": 0.7}


def is_drawn(name, options):
    robust = options.get("robust") or {}
    return robust.get("mode") == "sampled" or (name == "listmle" and not options)


def over(chosen):
    return pytest.mark.parametrize(("name", "options"), chosen, ids=lambda v: str(v).replace(" ", ""))


FORMS = list(forms())
every = over(FORMS)
# Another order of the documents draws others; a copy of one changes the ranking, or the draws.
undrawn = over([form for form in FORMS if not is_drawn(*form)])
copyable = over(
    [f for f in FORMS if not is_drawn(*f) and f[0] not in ("listmle", "approx_ndcg", "lambdarank")]
)


def call(name, options):
    """The loss with the same draws in every call."""
    loss = ranking_loss(name, **options)

    def at(s, *args, **kwargs):
        return loss(s, *args, generator=torch.Generator().manual_seed(0), **kwargs)

    return at


@every
def test_the_gradient_is_that_of_finite_differences(name, options):
    s, y, mask = batch(2, 5, seed=2, grades=3)
    loss = call(name, options)
    assert torch.autograd.gradcheck(lambda s: loss(s, y, mask), s)


@every
def test_padding_is_never_read_and_its_gradient_is_0(name, options):
    s, y, _ = batch(2, 5, grades=3, hidden=0.0)
    loss = call(name, options)
    value, gradient = value_and_gradient(loss, s, y, torch.ones_like(y, dtype=torch.bool))
    wide, labels = torch.full((2, 7), torch.nan, dtype=s.dtype), torch.full((2, 7), 9)
    wide[:, :5], labels[:, :5] = s.detach(), y
    mask = torch.arange(7).expand(2, 7) < 5
    found, padded = value_and_gradient(loss, wide, labels, mask)
    assert torch.isfinite(found)
    assert not padded[:, 5:].any()
    if not is_drawn(name, options):
        torch.testing.assert_close(found, value, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(padded[:, :5], gradient, rtol=1e-10, atol=1e-12)


@undrawn
def test_the_order_of_documents_and_of_lists_does_not_matter(name, options):
    s, y, mask = batch(3, 6, grades=3)
    if name == "listmle":
        y = torch.argsort(torch.rand(3, 6, generator=torch.Generator().manual_seed(0)), 1)
    loss = call(name, options)
    value, gradient = value_and_gradient(loss, s, y, mask)
    order, lists = torch.tensor([3, 0, 5, 1, 4, 2]), torch.tensor([2, 0, 1])
    moved = [t[lists][:, order] for t in (s.detach(), y, mask)]
    found, moved_gradient = value_and_gradient(loss, *moved)
    torch.testing.assert_close(found, value, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(moved_gradient, gradient[lists][:, order], rtol=1e-10, atol=1e-12)


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_scores_stay_finite(name, options, dtype):
    s, y, mask = batch(3, 8, dtype=dtype, grades=3)
    for scale in (1e3, 1e6):
        value, gradient = value_and_gradient(call(name, options), s * scale, y, mask)
        assert torch.isfinite(value)
        assert torch.isfinite(gradient).all()


@every
def test_equal_labels_single_documents_and_empty_lists_are_harmless(name, options):
    loss = call(name, options)
    s, _, mask = batch(3, 4)
    for y in (torch.zeros(3, 4), torch.ones(3, 4)):
        value, gradient = value_and_gradient(loss, s, y, mask)
        assert torch.isfinite(value)
        if name in PAIRED and "robust" not in options and options.get("pairs") != "all_ordered":
            assert value == 0
            assert not gradient.any()
    alone = torch.tensor([[1.5], [-0.5]], dtype=torch.float64)
    value, gradient = value_and_gradient(loss, alone, torch.tensor([[2], [0]]))
    assert torch.isfinite(value)
    if name != "pointwise":
        assert gradient.abs().max() < 1e-15
    nothing = torch.zeros(2, 3, dtype=torch.bool)
    value, gradient = value_and_gradient(loss, torch.zeros(2, 3), torch.zeros(2, 3), nothing)
    assert value == 0
    assert not gradient.any()


@copyable
def test_weight_2_is_twice_the_row(name, options):
    """A copy pairs with its original only where ties count: two further pairs of loss l(0, 0)."""
    loss = call(name, options)
    s, y, _ = batch(1, 4, seed=1, grades=3, hidden=0.0)
    weights = torch.tensor([[1.0, 2.0, 1.0, 1.0]], dtype=s.dtype)
    value, gradient = value_and_gradient(loss, s, y, weights=weights)
    copied, label = torch.cat((s, s[:, 1:2]), 1).detach(), torch.cat((y, y[:, 1:2]), 1)
    found, parts = value_and_gradient(loss, copied, label)
    parts = torch.cat((parts[:, :1], parts[:, 1:2] + parts[:, 4:5], parts[:, 2:4]), 1)
    if options.get("pairs") == "all_ordered":
        self_loss = ranking_loss(name, **options).loss.value(torch.zeros(1, dtype=s.dtype), 0.0)
        found = (found * 20 - 2 * self_loss[0]) / 18
        parts = parts * 20 / 18
    torch.testing.assert_close(found, value, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(parts, gradient, rtol=1e-10, atol=1e-12)


@every
def test_half_precision_scores_train(name, options):
    s, y, mask = batch(2, 5, dtype=torch.bfloat16, grades=3)
    value, gradient = value_and_gradient(call(name, options), s, y, mask)
    assert value.dtype == torch.float32
    assert gradient.dtype == torch.bfloat16
    assert torch.isfinite(gradient).all()
