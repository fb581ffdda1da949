"""Where training runs: on which device, on how many threads, alone or among processes that torchrun started.

Whatever of torch's settings is changed for a training is put back after it.
"""

import atexit
import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as distributed

from cleanrank.errors import invalid
from cleanrank.validation import check_n_jobs, check_seed

PRECISIONS: dict[str, str] = {
    "float32": "single precision throughout",
    "tf32": "single precision, products of matrices on a GPU in 19 bits",
    "bfloat16": "products of matrices in 16 bits; weights, scores and losses in single precision",
}
CUBLAS = "CUBLAS_WORKSPACE_CONFIG"


@dataclass(frozen=True)
class Processes:
    """The processes that train one model together."""

    rank: int = 0  # the number of this one, from 0
    world: int = 1  # how many there are

    @property
    def first(self) -> bool:
        """Whether this is the one that validates, writes and reports."""
        return self.rank == 0

    def agree(self, value: float, device: torch.device) -> float:
        """The first process's value, known to all."""
        if self.world == 1:
            return value
        shared = torch.tensor([value], dtype=torch.float64, device=device)
        distributed.broadcast(shared, src=0)
        return float(shared.item())

    def wait(self) -> None:
        """Returns when all have come here."""
        if self.world > 1:
            distributed.barrier()


def device_of(name: str = "auto") -> torch.device:
    """The device of a name; "auto" is this process's GPU where there is one."""
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if name == "auto":
        return torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise invalid("device", "must be 'auto', 'cpu', 'cuda' or 'cuda:N'", repr(name))
    gpus = torch.cuda.device_count() if device.type == "cuda" and torch.cuda.is_available() else 0
    if device.type == "cuda" and (device.index or 0) >= gpus:
        rule = f"must exist: torch can use {gpus} GPUs on this machine"
        raise invalid("device", rule, repr(name), remedy="Use device='auto' or 'cpu'.")
    return torch.device("cuda", local) if device.type == "cuda" and device.index is None else device


def joined(device: torch.device) -> Processes:
    """The processes that torchrun started, if it started this one; they stay joined for later trainings."""
    if distributed.is_available() and distributed.is_initialized():
        return Processes(distributed.get_rank(), distributed.get_world_size())
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "RANK" not in os.environ:
        return Processes()
    if device.type == "cuda":
        torch.cuda.set_device(device)
    # Not left after a training: those who join a second time read where the others were the first time.
    distributed.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
    atexit.register(_leave)
    return Processes(distributed.get_rank(), distributed.get_world_size())


def _leave() -> None:
    if distributed.is_initialized():
        distributed.destroy_process_group()


def seed_streams(seed: int, device: torch.device) -> None:
    """Seeds torch's streams of the processor and of one GPU; ``torch.manual_seed`` would reach every GPU."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.default_generators[device.index].manual_seed(seed)


@contextlib.contextmanager
def first_weights(seed: int) -> Iterator[None]:
    """Weights made inside are drawn from ``seed``; torch's own stream is untouched."""
    check_seed(seed)
    with torch.random.fork_rng(devices=[]):
        # torch.manual_seed would seed GPUs as well, whose streams are not put back here.
        torch.default_generator.manual_seed(seed % 2**63)
        yield


@contextlib.contextmanager
def settings(*, n_jobs: int | None = None, deterministic: bool = False, tf32: bool = False) -> Iterator[None]:
    """Threads, determinism and the precision of products, for a block."""
    check_n_jobs(n_jobs)
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    try:
        if n_jobs is not None and n_jobs > 0:
            torch.set_num_threads(n_jobs)
        if tf32:
            torch.set_float32_matmul_precision("high")
        with _determinism() if deterministic else contextlib.nullcontext():
            yield
    finally:
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)


@contextlib.contextmanager
def _determinism() -> Iterator[None]:
    was = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    workspace = os.environ.get(CUBLAS)
    memory: Any = torch.utils.deterministic
    filled = memory.fill_uninitialized_memory
    try:
        # Without a workspace of fixed size cuBLAS may choose another algorithm in the next run.
        os.environ.setdefault(CUBLAS, ":4096:8")
        memory.fill_uninitialized_memory = False
        torch.use_deterministic_algorithms(True)
        yield
    finally:
        torch.use_deterministic_algorithms(was[0], warn_only=was[1])
        memory.fill_uninitialized_memory = filled
        if workspace is None:
            os.environ.pop(CUBLAS, None)
