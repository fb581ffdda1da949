import os

import pytest
import torch

from cleanrank.errors import CleanrankError
from cleanrank.rankers.neural.device import device_of, joined, seed_streams, settings


def test_alone_there_is_one_process_that_agrees_with_itself():
    processes = joined(torch.device("cpu"))
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
