"""Pairwise losses on long lists: peak memory and time against the n x n formulation, on a processor or a GPU.

    python benchmarks/list_losses.py [--device cpu|cuda] [--documents 2700] [--repeats 7]
                                     [--threads N] [--quick]

Both sides compute value and gradient of the same loss on lists of 2,700 documents, five grades, single
precision. ``dense`` is what is usually written: the table of all pairs, masked, and autograd through it.
``blocked`` is what the package does in plain torch, ``compiled`` its kernel on a processor (where numba is),
``fused`` its program on a GPU (where Triton is).

Memory: on a GPU the most that was allocated beyond the inputs; on a processor the growth of the resident set
at its peak, each measured in a process of its own. Time: interleaved runs. A second part times all losses on
batches like those of training (256 lists of 120 documents). Needs numpy and torch alone; run it from a
checkout with PYTHONPATH=src where the package is not installed.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from timing import interleaved, machine_facts, write_result

from cleanrank.jit import has_numba
from cleanrank.losses.torch import RANKING_LOSSES, fused, ranking_loss

GOAL = 4.0
CASES: dict[str, dict[str, Any]] = {
    "ranknet": {"name": "ranknet"},
    "ranknet all_ordered": {"name": "ranknet", "pairs": "all_ordered"},
    "lambdarank ndcg@10": {"name": "lambdarank"},
    "sigmoid pairs": {"name": "pairwise", "binary": "sigmoid"},
}
SIDES = ("dense", "blocked", "compiled", "fused")


def make_batch(lists: int, documents: int, device: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Scores that need a gradient, grades 0..4 in the shares of web search, and a mask without padding."""
    g = torch.Generator().manual_seed(0)
    scores = torch.randn(lists, documents, generator=g)
    shares = torch.tensor([0.52, 0.32, 0.13, 0.02, 0.01])
    labels = torch.multinomial(shares, lists * documents, replacement=True, generator=g)
    mask = torch.ones(lists, documents, dtype=torch.bool, device=device)
    return scores.to(device).requires_grad_(), labels.reshape(lists, documents).to(device), mask


def dense_loss(options: dict[str, Any]) -> Callable[..., torch.Tensor]:
    """The n x n formulation of the same loss; tables stay alive for the backward pass."""
    ours: Any = ranking_loss(**options)

    def loss(scores: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        y = labels.to(scores.dtype)
        d = scores[:, :, None] - scores[:, None, :]
        better = y[:, :, None] > y[:, None, :]
        chosen = mask[:, :, None] & mask[:, None, :]
        if ours.pairs == "strict":
            chosen = chosen & better
        else:
            chosen = chosen & ~torch.eye(scores.shape[1], dtype=torch.bool, device=scores.device)
        target = better.to(d.dtype)
        if options.get("binary") == "sigmoid":
            value = target * torch.sigmoid(-d) + (1 - target) * torch.sigmoid(d)
        else:
            value = torch.nn.functional.binary_cross_entropy_with_logits(d, target, reduction="none")
        if ours.measure is not None:
            value = value * dense_delta(scores.detach(), y, ours.measure.cutoff)
        total = (value * chosen).sum((1, 2))
        return total.mean() if ours.weighting == "sum" else (total / chosen.sum((1, 2))).mean()

    return loss


def dense_delta(scores: torch.Tensor, y: torch.Tensor, cutoff: int) -> torch.Tensor:
    """|delta NDCG@k| of every pair."""
    rank = scores.argsort(dim=1, descending=True, stable=True).argsort(dim=1).to(scores.dtype) + 1
    discount = torch.where(rank <= cutoff, 1.0 / torch.log2(rank + 1), 0.0)
    gain = torch.exp2(y) - 1
    places = torch.arange(2, cutoff + 2, device=y.device, dtype=y.dtype)
    best = gain.sort(1, descending=True).values[:, :cutoff]
    ideal = (best / torch.log2(places[: best.shape[1]])).sum(1)
    change = (gain[:, :, None] - gain[:, None, :]).abs()
    return change * (discount[:, :, None] - discount[:, None, :]).abs() / ideal[:, None, None]


def make_step(
    case: str, side: str, batch: tuple[torch.Tensor, ...]
) -> Callable[[], tuple[float, torch.Tensor]]:
    """One value and one gradient."""
    scores, labels, mask = batch
    if side == "dense":
        loss = dense_loss(CASES[case])
    else:
        made: Any = ranking_loss(**CASES[case])
        loss = replace(made, mixture=None) if side == "blocked" else made

    def step() -> tuple[float, torch.Tensor]:
        value = loss(scores, labels, mask)
        (gradient,) = torch.autograd.grad(value, scores)
        if scores.is_cuda:
            torch.cuda.synchronize()
        return float(value.detach()), gradient

    return step


def peak_bytes(case: str, side: str, documents: int, device: str) -> int:
    """The memory of one step beyond what was held before it."""
    if device == "cuda":
        step = make_step(case, side, make_batch(1, documents, device))
        step()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step()
        return torch.cuda.max_memory_allocated() - before
    command = [sys.executable, __file__, "--probe", case, side, "--documents", str(documents)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout)


def probe(case: str, side: str, documents: int) -> int:
    """Runs in a process of its own: growth of the resident set, at its peak, by one step on long lists.

    A step on short lists loads and compiles everything first.
    """
    make_step(case, side, make_batch(1, 64, "cpu"))()
    step = make_step(case, side, make_batch(1, documents, "cpu"))
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forgets the peak so far
    before = _status("VmHWM")
    step()
    return _status("VmHWM") - before


def _status(key: str) -> int:
    """A size in bytes from the kernel's account of this process; a parent's peak is not part of it."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(key + ":"))


def sides_of(case: str, device: str) -> list[str]:
    """The sides that there are; ``compiled`` knows the logistic loss alone."""
    if device == "cuda":
        own = "fused" if fused.usable(torch.zeros(1, device=device)) else ""
    else:
        known = has_numba() and getattr(ranking_loss(**CASES[case]), "curve", None) == "logistic"
        own = "compiled" if known else ""
    return [side for side in SIDES if side in ("dense", "blocked", own)]


def long_lists(documents: int, device: str, repeats: int) -> dict[str, Any]:
    """Memory, time and agreement of all sides, case by case."""
    found: dict[str, Any] = {}
    for case in CASES:
        sides = sides_of(case, device)
        batch = make_batch(1, documents, device)
        steps = {side: make_step(case, side, batch) for side in sides}
        values = {side: step() for side, step in steps.items()}
        memory = {side: peak_bytes(case, side, documents, device) for side in sides}
        times = interleaved(steps, repeats=repeats)
        least = 2**18  # below this a processor's count of pages says nothing
        found[case] = {
            "peak_mib": {side: round(memory[side] / 2**20, 2) for side in sides},
            "memory_ratio_to_dense": {
                side: round(memory["dense"] / max(memory[side], least), 1) for side in sides[1:]
            },
            "goal": GOAL,
            "milliseconds": {side: round(1e3 * times.medians[side], 2) for side in sides},
            "speed_up_over_dense": {side: round(times.ratio("dense", side), 2) for side in sides[1:]},
            "largest_difference": {side: difference(values["dense"], values[side]) for side in sides[1:]},
        }
        print(case, json.dumps(found[case]), flush=True)
    return found


def difference(a: tuple[float, torch.Tensor], b: tuple[float, torch.Tensor]) -> dict[str, float]:
    """Of values, relative; of gradients, relative to the largest one."""
    scale = float(a[1].abs().max())
    return {
        "value": float(f"{abs(a[0] - b[0]) / abs(a[0]):.2g}"),
        "gradient": float(f"{float((a[1] - b[1]).abs().max()) / scale:.2g}"),
    }


def training_batches(device: str, repeats: int) -> dict[str, Any]:
    """Time of value and gradient of every loss on 256 lists of 120 documents."""
    scores, labels, mask = make_batch(256, 120, device)
    generator = torch.Generator(device).manual_seed(0)
    found = {}
    for name in RANKING_LOSSES:
        loss = ranking_loss(name)

        def step(loss: Any = loss) -> None:
            torch.autograd.grad(loss(scores, labels, mask, generator), scores)
            if device == "cuda":
                torch.cuda.synchronize()

        times = interleaved({name: step}, repeats=repeats)
        milliseconds = 1e3 * statistics.median(times.seconds[name])
        found[name] = {
            "milliseconds": round(milliseconds, 3),
            "documents_per_second": round(scores.numel() / milliseconds * 1e3),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--documents", type=int, default=2700)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, help="of torch; all by default")
    parser.add_argument("--quick", action="store_true", help="3 repeats; nothing is written")
    parser.add_argument("--probe", nargs=2, metavar=("CASE", "SIDE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    if args.probe:
        print(probe(*args.probe, args.documents))
        return
    repeats = 3 if args.quick else args.repeats
    result = {
        "device": torch.cuda.get_device_name() if args.device == "cuda" else "cpu",
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "documents": args.documents,
        "long_lists": long_lists(args.documents, args.device, repeats),
        "batches_of_256_lists_of_120": training_batches(args.device, repeats),
    }
    if args.quick:
        print(json.dumps({**result, "machine": machine_facts()}, indent=2))
    else:
        write_result(f"list_losses_{args.device}", result)


if __name__ == "__main__":
    main()
