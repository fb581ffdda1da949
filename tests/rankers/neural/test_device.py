import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cleanrank.errors import CleanrankError
from cleanrank.rankers.neural.device import (
    Processes,
    device_of,
    joined,
    seed_streams,
    settings,
)


@given(st.integers(1, 12), st.integers(1, 5))
def test_shares_are_the_batch_and_weights_make_the_mean_whole(n, world):
    batch = np.arange(n) * 10
    values = np.sin(batch)
    shares = [Processes(rank, world).share(batch) for rank in range(world)]
    assert sorted(i for part, weight in shares if weight for i in part) == batch.tolist()
    mean = np.mean([weight * np.sin(part).mean() for part, weight in shares])
    assert mean == pytest.approx(values.mean())


def test_alone_there_is_one_process_that_agrees_with_itself():
    with joined(torch.device("cpu")) as processes:
        assert (processes.rank, processes.world, processes.first) == (0, 1, True)
        assert processes.agree(0.5, torch.device("cpu")) == 0.5
        processes.wait()


def test_devices_are_found_or_refused():
    assert device_of("cpu").type == "cpu"
    assert device_of("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(CleanrankError, match="device must be 'auto'"):
        device_of("gpu")
    if not torch.cuda.is_available():
        with pytest.raises(CleanrankError, match=r"must exist: .*; got 'cuda'. Use device='auto'"):
            device_of("cuda")


def test_settings_hold_inside_and_are_put_back_even_after_an_error():
    before = torch.get_num_threads(), torch.get_float32_matmul_precision()

    def inside():
        with settings(n_jobs=1, deterministic=True, tf32=True):
            assert torch.get_num_threads() == 1
            assert torch.get_float32_matmul_precision() == "high"
            assert torch.are_deterministic_algorithms_enabled()
            assert os.environ["CUBLAS_WORKSPACE_CONFIG"]
            raise KeyError

    with pytest.raises(KeyError):
        inside()
    assert (torch.get_num_threads(), torch.get_float32_matmul_precision()) == before
    assert not torch.are_deterministic_algorithms_enabled()
    assert "CUBLAS_WORKSPACE_CONFIG" not in os.environ


SCRIPT = """
import os, sys
import numpy as np
import cleanrank as cr
rng = np.random.default_rng(0)
X, y = rng.normal(size=(189, 6)), np.tile(np.arange(9) % 3, 21)
X[:, 0] += y
data = cr.from_arrays(X.astype(np.float32), y, qid=np.repeat(np.arange(21), 9))
train, held = data.select_queries(list(range(15))), data.select_queries(list(range(15, 21)))
ranker = cr.NeuralRanker(
    epochs=3, batch_queries=4, network_options={"hidden": (8,)}, device="cpu", n_jobs=1,
    optimizer="sgd", learning_rate=0.3,  # Adam blows rounding up where a gradient is 0
)
ranker.fit_data(train, held)
ranker.save(sys.argv[1] + "." + os.environ.get("RANK", "alone"))
"""


@pytest.mark.slow
def test_two_processes_learn_what_one_learns(tmp_path):
    """Fifteen queries in batches of four: the last batch is shared out unevenly."""
    from cleanrank.rankers.neural.model import load_network

    (tmp_path / "script.py").write_text(SCRIPT)
    out = str(tmp_path / "model")
    alone = [sys.executable, str(tmp_path / "script.py"), out]
    both = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        *alone[1:],
    ]
    for command in (alone, both):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    first, second, wanted = (load_network(f"{out}.{rank}") for rank in ("0", "1", "alone"))
    for a, b, c in zip(*(m.network.parameters() for m in (first, second, wanted)), strict=True):
        assert torch.equal(a, b)
        torch.testing.assert_close(a, c, rtol=1e-4, atol=1e-6)
    assert first.best_epoch == second.best_epoch == wanted.best_epoch
    assert first.validation_value == pytest.approx(wanted.validation_value)


@pytest.mark.parametrize("name", ["mps", "meta", None, 3.5])
def test_what_is_neither_processor_nor_gpu_is_refused(name):
    with pytest.raises(CleanrankError, match="device must be 'auto', 'cpu', 'cuda' or 'cuda:N'"):
        device_of(name)


def test_a_gpu_beyond_the_last_is_refused():
    with pytest.raises(CleanrankError, match=r"torch can use \d+ GPUs on this machine; got 'cuda:99'"):
        device_of("cuda:99")


def test_seeded_streams_are_those_of_torchs_own_seed():
    with torch.random.fork_rng(devices=[]):
        seed_streams(5, torch.device("cpu"))
        found = torch.rand(3)
        torch.manual_seed(5)
        assert torch.equal(found, torch.rand(3))
