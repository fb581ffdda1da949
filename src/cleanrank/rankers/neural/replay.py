"""Steps on a GPU as CUDA graphs: what is launched for a batch is recorded once, and replayed for its shape.

A step of a small network is a hundred launches, each of which takes the processor longer than the GPU; a
replay is one. The first batch of a shape runs as usual, which also compiles and chooses what there is to
compile and choose; the second is recorded. Buffers of all graphs share one pool of memory, as no two of them
run at a time.
"""

import contextlib
import warnings
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import torch
from torch import Tensor

from cleanrank.rankers.neural.steps import Filled
from cleanrank.types import IntArray


class Replay:
    """Runs steps by bucket.

    Args:
        run: one step of the optimiser on a batch; the mean loss before it. What it launches must depend on
            the shape of the batch alone.
        filled: makes batches.
        device: a GPU.
    """

    def __init__(self, run: Callable[[Any], Tensor], filled: Filled, device: torch.device) -> None:
        self.run, self.filled, self.device = run, filled, device
        # Not the default one, on which nothing can be recorded.
        self.stream: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.pool = torch.cuda.graph_pool_handle()
        self.possible = True
        self.seen: set[Hashable] = set()
        self.graphs: dict[Hashable, tuple[torch.cuda.CUDAGraph, Tensor, Tensor]] = {}

    @contextlib.contextmanager
    def on_its_stream(self) -> Iterator[None]:
        """What is launched inside follows what was launched before and precedes what comes after."""
        outside = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(outside)
        with torch.cuda.stream(self.stream):
            yield
        outside.wait_stream(self.stream)

    def step(self, members: IntArray) -> Tensor:
        """The mean loss of a batch, after a step on it; to be read before the next one."""
        bucket = self.filled.bucket(members)
        here = torch.from_numpy(self.filled.members(members, bucket))
        if bucket not in self.seen:
            self.seen.add(bucket)
            return self.run(self.filled.batch(here.to(self.device, non_blocking=True), bucket))
        if bucket not in self.graphs and not self.record(here, bucket):
            return self.run(self.filled.batch(here.to(self.device, non_blocking=True), bucket))
        graph, inputs, loss = self.graphs[bucket]
        inputs.copy_(here, non_blocking=True)
        graph.replay()
        return loss

    def record(self, members: Tensor, bucket: Hashable) -> bool:
        """Keeps a graph with the tensors that it reads and writes; nothing of it has run. Whether it can."""
        if not self.possible:
            return False
        inputs, graph = members.to(self.device), torch.cuda.CUDAGraph()
        try:
            graph.capture_begin(pool=self.pool, capture_error_mode="thread_local")
            try:
                loss = self.run(self.filled.batch(inputs, bucket))
            finally:
                graph.capture_end()
        except RuntimeError as error:
            self.possible = False
            # A recording that broke off leaves the stream of random numbers waiting for its end.
            drawn = torch.cuda.default_generators[inputs.device.index or 0]
            fresh = torch.Generator(inputs.device).manual_seed(drawn.initial_seed())
            drawn.graphsafe_set_state(fresh.graphsafe_get_state())
            words = " ".join(str(error).split())[:200]
            warnings.warn(f"steps are launched one by one, as they cannot be recorded: {words}", stacklevel=2)
            return False
        self.graphs[bucket] = graph, inputs, loss
        return True
