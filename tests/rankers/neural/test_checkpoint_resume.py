import contextlib
import json

import numpy as np
import pytest
import torch
from torch import nn

from cleanrank.errors import BadFileError, CleanrankError
from cleanrank.rankers.neural.checkpoint import (
    TrainingState,
    load_state,
    read_tensors,
    save_state,
    write_tensors,
)
from cleanrank.rankers.neural.loop import OPTIMIZERS


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
    done = TrainingState(4, 2, 0.25, [{"epoch": 1, "loss": 0.1 + 0.2}])
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
    save_state(tmp_path / "c", model, made, TrainingState(1), None, {})
    found, best = load_state(tmp_path / "c", model, made, {})
    assert best is None
    assert found.best_value == -np.inf


def test_other_files_and_other_trainings_are_refused(tmp_path):
    model, made = stepped("adam")
    save_state(tmp_path / "c", model, made, TrainingState(1), None, {"seed": 3})
    with pytest.raises(CleanrankError, match="whose seed is 4; got 3"):
        load_state(tmp_path / "c", model, made, {"seed": 4})
    tensors, metadata = read_tensors(tmp_path / "c")
    write_tensors(tmp_path / "d", tensors, {**metadata, "version": 99})
    with pytest.raises(CleanrankError, match="must hold a cleanrank training of version 1"):
        load_state(tmp_path / "d", model, made, {"seed": 3})


def saved(path):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    done = TrainingState(1, 1, 0.5, [{"epoch": 1, "loss": 0.1, "value": 0.5}])
    save_state(path, model, optimizer, done, model.state_dict(), {"seed": 3})
    return model, optimizer


def rewritten(raw, change):
    end = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:end])
    change(header)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + raw[end:]


def test_every_cut_of_a_checkpoint_is_refused(tmp_path):
    model, optimizer = saved(tmp_path / "c")
    raw = (tmp_path / "c").read_bytes()
    for size in range(0, len(raw), 7):
        (tmp_path / "cut").write_bytes(raw[:size])
        with pytest.raises(BadFileError, match="cut"):
            load_state(tmp_path / "cut", model, optimizer, {"seed": 3})


@pytest.mark.parametrize("value", [None, "null", "3.5", '"a"', "[1]", "NaN", '{"a": 1}'])
@pytest.mark.parametrize("name", ["epoch", "best_epoch", "best_value", "history", "identity"])
def test_a_checkpoint_with_strange_metadata_is_refused(tmp_path, name, value):
    model, optimizer = saved(tmp_path / "c")

    def change(header):
        if value is None:
            del header["__metadata__"][name]
        else:
            header["__metadata__"][name] = value

    (tmp_path / "odd").write_bytes(rewritten((tmp_path / "c").read_bytes(), change))
    fine = name == "best_value" and value in ("null", "3.5", "NaN")
    with contextlib.nullcontext() if fine else pytest.raises(CleanrankError, match="odd"):
        load_state(tmp_path / "odd", model, optimizer, {"seed": 3})


@pytest.mark.parametrize(
    "lost", ["model/weight", "best/bias", "optimizer/0/exp_avg", "optimizer/1/step", "__metadata__"]
)
def test_a_checkpoint_that_lacks_a_part_is_refused(tmp_path, lost):
    model, optimizer = saved(tmp_path / "c")
    (tmp_path / "part").write_bytes(rewritten((tmp_path / "c").read_bytes(), lambda header: header.pop(lost)))
    with pytest.raises(BadFileError, match="part"):
        load_state(tmp_path / "part", model, optimizer, {"seed": 3})


def test_state_of_another_shape_is_refused(tmp_path):
    model, optimizer = saved(tmp_path / "c")

    def change(header):
        header["optimizer/0/exp_avg"]["shape"] = [2]

    (tmp_path / "odd").write_bytes(rewritten((tmp_path / "c").read_bytes(), change))
    with pytest.raises(BadFileError, match="exp_avg of the optimiser has shape"):
        load_state(tmp_path / "odd", model, optimizer, {"seed": 3})
