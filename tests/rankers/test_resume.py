import numpy as np
import pytest
import torch
from torch import nn

from cleanrank.checks import CleanrankError
from cleanrank.rankers.checkpoints import read_tensors, write_tensors
from cleanrank.rankers.loop import OPTIMIZERS
from cleanrank.rankers.resume import Progressed, load_state, save_state


def stepped(optimizer, seed=0):
    torch.manual_seed(seed)
    model = nn.Linear(3, 2)
    made = OPTIMIZERS[optimizer](model.parameters(), lr=0.1)
    for _ in range(3):
        made.zero_grad()
        model(torch.randn(4, 3)).square().sum().backward()
        made.step()
    return model, made


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_state_comes_back_bit_by_bit(tmp_path, optimizer):
    model, made = stepped(optimizer)
    done = Progressed(4, 2, 0.25, [{"epoch": 1, "loss": 0.1 + 0.2}])
    best = {name: 2 * value for name, value in model.state_dict().items()}
    save_state(tmp_path / "c", model, made, done, best, {"seed": 3, "sizes": [1, 2]})
    other, fresh = stepped(optimizer, seed=9)
    found, kept = load_state(tmp_path / "c", other, fresh, {"seed": 3, "sizes": [1, 2]})
    assert found == done
    for a, b in ((model.state_dict(), other.state_dict()), (best, kept)):
        assert all(torch.equal(a[n], b[n]) for n in a)
    for a, b in zip(made.state_dict()["state"].values(), fresh.state_dict()["state"].values(), strict=True):
        for name in a:
            assert a[name] is b[name] is None or torch.equal(a[name], b[name]), name


def test_a_state_without_validation_has_no_best(tmp_path):
    model, made = stepped("adam")
    save_state(tmp_path / "c", model, made, Progressed(1), None, {})
    found, best = load_state(tmp_path / "c", model, made, {})
    assert best is None
    assert found.best_value == -np.inf


def test_other_files_and_other_trainings_are_refused(tmp_path):
    model, made = stepped("adam")
    save_state(tmp_path / "c", model, made, Progressed(1), None, {"seed": 3})
    with pytest.raises(CleanrankError, match="whose seed is 4; got 3"):
        load_state(tmp_path / "c", model, made, {"seed": 4})
    tensors, metadata = read_tensors(tmp_path / "c")
    write_tensors(tmp_path / "d", tensors, {**metadata, "version": 99})
    with pytest.raises(CleanrankError, match="must hold a cleanrank training of version 1"):
        load_state(tmp_path / "d", model, made, {"seed": 3})
