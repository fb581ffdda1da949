import subprocess
import sys
from pathlib import Path

import pytest
import torch

from cleanrank.errors import CleanrankError
from cleanrank.losses.torch import RANKING_LOSSES, ranking_loss

SRC = Path(__file__).parents[3] / "src"
PEER = {"name": "peer", "alpha": 0.1}


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("ranknett", {}, "Did you mean 'ranknet'"),
        ("ranknet", {"binary": "hinge"}, "Use 'pairwise'"),
        ("ranknet", {"robust": PEER}, "only shrink the loss by 1 - alpha"),
        ("ranknet", {"robust": [PEER, "label_smoothing"]}, "all_ordered"),
        ("lambdarank", {"robust": {**PEER, "mode": "sampled"}}, "all_ordered"),
        ("ranknet", {"pairs": "strict_positive"}, "Known: strict, strict_both, all_ordered"),
        ("ranknet", {"weighting": "mean"}, "Known: micro, macro, prevalence"),
        ("ranknet", {"weighting": "prevalence"}, "noise must be given"),
        ("ranknet", {"noise": (0.9, 0.9)}, "for it alone"),
        ("ranknet", {"weighting": "prevalence", "noise": (0.9, 0.9), "pairs": "all_ordered"}, "Use 'macro'"),
        ("ranknet", {"measure": "map"}, "measure has no meaning for ranknet"),
        ("lambdarank", {"measure": "tau"}, "unknown measure for a loss 'tau'"),
        ("lambdarank", {"measure": "ndgc@10"}, "ndcg"),
        ("listnet", {"robust": "gce"}, "robust has no meaning for listnet"),
        ("listnet", {"weighting": "macro"}, "weighting has no meaning"),
        ("softmax", {"gain": "square"}, "Known: linear, exp"),
        ("listmle", {"ties": "average"}, "Known: random, index"),
        ("approx_ndcg", {"temperature": 0.0}, "temperature must be a number > 0"),
        ("ranknet", {"sigma": float("nan")}, "sigma must be a number > 0"),
        ("ranknet", {"block": 0}, "block must be an integer >= 1"),
    ],
)
def test_what_does_not_fit_is_refused_when_the_loss_is_made(name, options, words):
    with pytest.raises(CleanrankError, match=words):
        ranking_loss(name, **options)


def test_defaults_are_those_people_expect():
    assert ranking_loss("ranknet").pairs == "strict"
    assert ranking_loss("ranknet").weighting == "macro"
    assert ranking_loss("lambdarank").weighting == "sum"
    assert str(ranking_loss("lambdarank").measure) == "ndcg@10"
    assert ranking_loss("pointwise").weighting == "pooled"


def test_every_name_makes_a_loss_of_that_name():
    assert [ranking_loss(name).name for name in RANKING_LOSSES] == list(RANKING_LOSSES)


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(SRC)}
    )


def test_the_losses_need_numpy_and_torch_alone():
    code = (
        "import sys\n"
        "for name in ('numba', 'scipy', 'pandas', 'sklearn', 'lightgbm', 'pyarrow', 'safetensors'):\n"
        "    sys.modules[name] = None\n"
        "import torch\n"
        "from cleanrank.losses.torch import ranking_loss\n"
        "s = torch.tensor([[1.0, 0.0]], requires_grad=True)\n"
        "for name in ('ranknet', 'lambdarank', 'pointwise', 'softmax'):\n"
        "    ranking_loss(name)(s, torch.tensor([[1, 0]])).backward()\n"
        "print(ranking_loss('ranknet')(s, torch.tensor([[1, 0]])).item())\n"
    )
    done = run(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0.3132")


def test_without_torch_the_error_names_the_extra():
    code = (
        "import importlib.util\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *a: None if name == 'torch' else found(name, *a)\n"
        "import cleanrank.losses.torch\n"
    )
    done = run(code)
    assert "MissingExtraError" in done.stderr
    assert "pip install 'cleanrank[nn]'" in done.stderr


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ranknet", {"sigma": "x"}, "sigma must be a number > 0; got 'x'"),
        ("ranknet", {"block": 2.5}, "block must be an integer >= 1; got 2.5"),
        ("pointwise", {"relevant": "x"}, "relevant must be a number"),
    ],
)
def test_options_of_the_wrong_kind_are_named(name, options, message):
    with pytest.raises(CleanrankError, match=message):
        ranking_loss(name, **options)


@pytest.mark.parametrize("name", ["pairwise", "pointwise"])
def test_the_zero_one_loss_measures_and_does_not_train(name):
    loss = ranking_loss(name, binary="zero_one")
    scores, labels = torch.tensor([[1.0, -2.0]]), torch.tensor([[0, 1]])
    assert loss(scores, labels).item() == 1.0
    with pytest.raises(CleanrankError, match=r"must have a gradient to train on; got 'zero_one'.*'sigmoid'"):
        loss(scores.requires_grad_(), labels)
