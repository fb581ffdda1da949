import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import cleanrank as cr
from cleanrank.rankers.neural.device import Processes
from cleanrank.rankers.neural.steps import Step, cut, gathered, put_together, sum_gradients
from tests.rankers.neural.parted import CASES, COMMON, rows


@given(st.integers(1, 30), st.integers(1, 9))
def test_parts_are_the_members_and_of_about_equal_size(n, parts):
    found = cut(np.arange(n), parts)
    assert sorted(np.concatenate(found).tolist()) == list(range(n))
    sizes = [len(part) for part in found]
    assert max(sizes) - min(sizes) <= 1


def test_outputs_are_put_together_part_by_part_and_means_by_their_shares():
    parts = [(torch.tensor([[1.0, 2.0]]), torch.tensor(4.0)), (torch.zeros(0, 2), torch.tensor(9.0))]
    rows_of, mean = put_together(parts, [1.0, 0.0])
    assert rows_of.tolist() == [[1.0, 2.0]]
    assert mean.item() == 4.0


def test_a_process_alone_gathers_nothing():
    own = [(torch.ones(2),), (torch.zeros(1),)]
    assert gathered(own, Processes()) is own


def test_a_parameter_without_gradient_adds_none(monkeypatch):
    first, second = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    first.grad = torch.tensor([1.0, 2.0])
    monkeypatch.setattr("torch.distributed.all_reduce", lambda flat: flat.mul_(2))
    sum_gradients([first, second])
    assert first.grad.tolist() == [2.0, 4.0]
    assert second.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", CASES)
def test_a_batch_in_parts_is_learnt_as_a_whole(name):
    train, held = rows()
    settings = {**COMMON, **CASES[name]}
    whole = cr.NeuralRanker(**settings).fit_data(train, held)
    parts = cr.NeuralRanker(**{**settings, "accumulate": 3}).fit_data(train, held)
    for a, b in zip(whole.history_, parts.history_, strict=True):
        assert a["loss"] == pytest.approx(b["loss"], rel=1e-5)
    wanted, found = (each.predict(held.X, qid=held.qid) for each in (whole, parts))
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_the_second_pass_of_a_part_sees_what_dropout_left_in_the_first():
    """Scores are w x m with a random mask m, so the slope of their sum by w is the sum over w."""
    weight, dropout = torch.tensor(3.0, requires_grad=True), torch.nn.Dropout(0.5)
    x = torch.rand(64)
    step = Step(
        lambda *parts: np.concatenate(parts),
        lambda forward, rows: (forward(x[rows]),),
        lambda outputs, rows, generator: outputs[0].sum(),
    )
    total = step.of_parts(lambda x: dropout(weight * x), np.arange(64), torch.Generator(), Processes(), 4)
    torch.rand(5)  # moves the stream on
    total.backward()
    assert 0 < total.item() < 6 * x.sum()
    assert weight.grad.item() == pytest.approx(total.item() / 3, rel=1e-5)


def test_preferences_in_parts_are_learnt_as_a_whole():
    train, _ = rows()
    pairs = np.array([[i, j] for i in range(18) for j in range(18) if train.y[i] > train.y[j]])
    whole, parts = (
        cr.NeuralRanker(**{**COMMON, "accumulate": n}).fit_preferences(train.X, pairs, batch_pairs=16)
        for n in (1, 3)
    )
    np.testing.assert_allclose(parts.predict(train.X), whole.predict(train.X), atol=1e-4)


@pytest.mark.slow
def test_two_processes_learn_what_one_learns_and_go_on_after_a_break(tmp_path):
    """Fifteen queries in batches of seven: the last batch has fewer queries than processes."""
    out = str(tmp_path / "out")
    script = [os.path.join(os.path.dirname(__file__), "parted.py"), out]
    path = os.pathsep.join([os.getcwd(), *sys.path])
    both = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    for command in ([], both):
        done = subprocess.run(
            [sys.executable, *command, *script],
            capture_output=True,
            text=True,
            timeout=200,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert done.returncode == 0, done.stderr
    wanted, first, second = (json.loads((tmp_path / f"out.{rank}").read_text()) for rank in ("alone", 0, 1))
    assert first == second
    for name, (scores, losses) in wanted.items():
        np.testing.assert_allclose(first[name][0], scores, atol=1e-4, err_msg=name)
        np.testing.assert_allclose(first[name][1], losses, rtol=1e-5, err_msg=name)
