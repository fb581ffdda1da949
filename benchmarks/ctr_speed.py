"""Training steps of DIN and DeepFM against DeepCTR-Torch and torch-rechub, and of all models on a GPU.

    python benchmarks/ctr_speed.py [--repeats 9] [--steps 10] [--batch 512] [--threads 1]
    python benchmarks/ctr_speed.py --device cuda
    python benchmarks/ctr_speed.py --operators

A step is forward, backward and Adam on rows that are ready in memory in the form that each package reads.
Sizes are equal: embeddings of 16, dense layers 200-80, DIN's unit 80-40 with sigmoids (ours as
``unit="dense"``; the default dot product is timed beside it), 20 behaviours of two fields, tables shared
between candidate and history, dropout .2, no regularisation. The packages' own choices stay: torch-rechub has
batch norm in every dense layer and Dice activations in DIN. Two sizes of vocabulary: MovieLens-100K's, and a
larger one, where Adam on dense tables takes most of the time whoever steps. Needs the packages on PYTHONPATH
(``pip install --no-deps --target FOLDER deepctr-torch torch-rechub``); writes ctr_speed.md and .json.

On a GPU no package runs: samples per second of every model, plain and compiled, and their share of the
roofline. The least time of a step is the larger of two: the FLOPs of its products by the rate of a large
product, and the bytes that it cannot do without (weights, moments and gradients of Adam, behaviours gathered
and scattered) by the rate of a large copy, both rates measured just before. NumPy and torch suffice there.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from timing import RESULTS, interleaved, machine_facts, write_result
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from cleanrank.data.behaviours import Layout
from cleanrank.rankers.ctr import MODELS

T, EMBEDDING, LAYERS, UNIT = 20, 16, (200, 80), (80, 40)
VOCABULARIES = {
    "ml-100k": Layout({"user": 944, "age": 8}, {"item": 1683, "genre": 20}, {"weekday": 8}),
    "large": Layout({"user": 50_001, "age": 8}, {"item": 30_001, "genre": 501}, {"weekday": 8}),
}
OPTIONS = {"repeats": 9, "steps": 10, "batch": 512, "threads": 1}
Step = Callable[[], object]


def make_codes(layout: Layout, rows: int, seed: int = 0) -> dict[str, Tensor]:
    """Codes of all fields by name, ``hist_`` in front of a behaviour's, the lengths and the labels."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, T + 1, rows)
    valid = np.arange(T) < lengths[:, None]
    codes = {name: rng.integers(1, size, rows) for part in parts(layout) for name, size in part.items()}
    codes |= {f"hist_{name}": rng.integers(1, n, (rows, T)) * valid for name, n in layout.item.items()}
    tensors = {name: torch.from_numpy(values) for name, values in codes.items()}
    labels = torch.from_numpy(rng.integers(0, 2, rows).astype(np.float32))
    return tensors | {"length": torch.from_numpy(lengths), "y": labels}


def parts(layout: Layout) -> tuple[Mapping[str, int], ...]:
    """The fields of users, items and contexts."""
    return layout.user, layout.item, layout.context


def our_inputs(layout: Layout, codes: Mapping[str, Tensor]) -> list[Tensor]:
    """The five arguments of forward."""
    fields = [torch.stack([codes[name] for name in part], dim=1) for part in parts(layout)]
    history = torch.stack([codes[f"hist_{name}"] for name in layout.item], dim=2)
    return [*fields, history, codes["length"]]


def steps(
    model: nn.Module, batches: list[tuple[Any, Tensor]], loss: Callable[..., Tensor], *, fused: bool = False
) -> Step:
    """A round: one training step on each batch."""
    optimizer = torch.optim.Adam(model.train().parameters(), lr=1e-3, fused=fused)

    def run() -> None:
        for inputs, y in batches:
            optimizer.zero_grad(set_to_none=True)
            output = model(*inputs) if isinstance(inputs, list) else model(inputs)
            loss(output.reshape(-1), y).backward()
            optimizer.step()

    return run


def our_step(name: str, layout: Layout, batches: list[dict[str, Tensor]], **options: Any) -> Step:
    """Ours: logits."""
    network = MODELS[name](layout, embedding=EMBEDDING, layers=LAYERS, history=T, **options)
    return steps(
        network,
        [(our_inputs(layout, codes), codes["y"]) for codes in batches],
        nn.functional.binary_cross_entropy_with_logits,
    )


def deepctr_step(name: str, layout: Layout, batches: list[dict[str, Tensor]]) -> Step:
    """DeepCTR-Torch: one matrix of codes in, probabilities out."""
    from deepctr_torch import models
    from deepctr_torch.inputs import SparseFeat, VarLenSparseFeat

    def columns() -> list[Any]:
        fields = [SparseFeat(key, n, EMBEDDING) for part in parts(layout) for key, n in part.items()]
        for key, n in layout.item.items():
            own = SparseFeat(f"hist_{key}", n, EMBEDDING, embedding_name=key)
            fields.append(VarLenSparseFeat(own, T, combiner="sum", length_name="length"))
        return fields

    common = {"dnn_hidden_units": LAYERS, "dnn_dropout": 0.2, "l2_reg_embedding": 0.0}
    if name == "din":
        unit = {"att_hidden_size": UNIT, "att_activation": "sigmoid", "att_weight_normalization": True}
        model = models.DIN(columns(), list(layout.item), **unit, **common)
    else:
        model = models.DeepFM(columns(), columns(), l2_reg_linear=0.0, **common)

    def matrix(codes: dict[str, Tensor]) -> Tensor:
        values = [codes[key].reshape(len(codes["y"]), -1) for key in model.feature_index]
        return torch.cat(values, dim=1).float()

    prepared = [(matrix(codes), codes["y"]) for codes in batches]
    return steps(model, prepared, nn.functional.binary_cross_entropy)


def rechub_step(name: str, layout: Layout, batches: list[dict[str, Tensor]]) -> Step:
    """torch-rechub: codes by name in, probabilities out."""
    from torch_rechub.basic.features import SequenceFeature, SparseFeature
    from torch_rechub.models.ranking import DIN, DeepFM

    def fields(*chosen: Mapping[str, int]) -> list[Any]:
        return [
            SparseFeature(key, vocab_size=n, embed_dim=EMBEDDING)
            for part in chosen
            for key, n in part.items()
        ]

    def histories(pooling: str) -> list[Any]:
        common = {"embed_dim": EMBEDDING, "pooling": pooling, "padding_idx": 0}
        return [
            SequenceFeature(f"hist_{key}", vocab_size=n, shared_with=key, **common)
            for key, n in layout.item.items()
        ]

    dense = {"dims": list(LAYERS), "dropout": 0.2}
    model: nn.Module
    if name == "din":
        unit = {"dims": list(UNIT), "activation": "sigmoid", "use_softmax": True}
        model = DIN(
            fields(layout.user, layout.context), histories("concat"), fields(layout.item), dense, unit
        )
    else:
        every = [*fields(*parts(layout)), *histories("sum")]
        model = DeepFM(every, every, dense)
    prepared = [(dict(codes), codes["y"]) for codes in batches]
    return steps(model, prepared, nn.functional.binary_cross_entropy)


def compare(arguments: argparse.Namespace) -> None:
    """Rounds of all candidates in turns; a table of samples per second and ratios."""
    torch.set_num_threads(arguments.threads)
    rows = arguments.steps * arguments.batch
    lines, results = [], {}
    for vocabulary, layout in VOCABULARIES.items():
        batches = [make_codes(layout, arguments.batch, seed) for seed in range(arguments.steps)]
        for name in ("din", "deepfm"):
            options = {"unit": "dense"} if name == "din" else {}
            candidates = {
                "cleanrank": our_step(name, layout, batches, **options),
                "DeepCTR-Torch": deepctr_step(name, layout, batches),
                "torch-rechub": rechub_step(name, layout, batches),
            }
            if name == "din":
                candidates["cleanrank, dot product"] = our_step(name, layout, batches)
            timings = interleaved(candidates, repeats=arguments.repeats)
            print(name, vocabulary, dict(timings.medians), file=sys.stderr, flush=True)
            fastest = min(("DeepCTR-Torch", "torch-rechub"), key=timings.medians.__getitem__)
            results[f"{name} {vocabulary}"] = timings.summary() | {
                "samples_per_second": {key: round(rows / s) for key, s in timings.medians.items()},
                "fastest_package": fastest,
                "times_the_fastest": round(1 / timings.ratio("cleanrank", fastest), 2),
            }
            for key in candidates:
                speed, ratio = rows / timings.medians[key], 1 / timings.ratio(key, fastest)
                lines.append(f"| {name} | {vocabulary} | {key} | {speed:,.0f} | {ratio:.2f} |")
    settings = {"batch": arguments.batch, "steps": arguments.steps, "threads": arguments.threads}
    write_result("ctr_speed", {"settings": settings, "results": results})
    write_page(lines, arguments)


def write_page(lines: list[str], arguments: argparse.Namespace) -> None:
    """results/ctr_speed.md."""
    facts = machine_facts(("torch", "deepctr-torch", "torch-rechub"))
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    load = os.getloadavg()[1]
    options = " ".join(f"--{name} {getattr(arguments, name)}" for name in OPTIONS)
    page = f"""# Training steps of DIN and DeepFM

`python benchmarks/ctr_speed.py {options}`

Forward, backward and Adam; medians over rounds in random turns, each round --steps steps of --batch rows;
{facts["processor"]}, {versions}. A ratio is taken within a round,
against the faster package: above 1 is faster than it. Sizes and what differs: the docstring of the script.
Load of the {facts["cores"]} cores at the end: {load:.0f}; where other programs run, trust ratios alone.

| model | vocabulary | package | samples per second | times the fastest package |
|---|---|---|---:|---:|
"""
    (RESULTS / "ctr_speed.md").write_text(page + "\n".join(lines) + "\n", encoding="utf-8")


def count_operators(arguments: argparse.Namespace) -> None:
    """Prints how many calls of torch's operators one training step of every model makes."""
    layout = VOCABULARIES["large"]
    for name in MODELS:
        step = our_step(name, layout, [make_codes(layout, arguments.batch)])
        step()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            step()
        calls = sum(each.count for each in profile.key_averages() if each.key.startswith("aten::"))
        print(f"{name}: {calls:,}", flush=True)


def device_rates(device: torch.device) -> tuple[float, float]:
    """FLOPs per second of a large product and bytes per second of a large copy, in single precision."""
    side, n = 8192, 2**28
    a, b = torch.randn(side, side, device=device), torch.randn(n, device=device)
    product = seconds(lambda: a @ a, 5)
    copied = seconds(b.clone, 5)
    return 2 * side**3 / product, 2 * 4 * n / copied


def seconds(run: Step, repeats: int) -> float:
    """Mean time on the GPU after two warm-up rounds."""
    for _ in range(2):
        run()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeats


def on_gpu(arguments: argparse.Namespace) -> None:
    """Samples per second of every model and the share of the roofline."""
    device, layout = torch.device("cuda"), VOCABULARIES["large"]
    flops_rate, bytes_rate = device_rates(device)
    results = {}
    for name, builder in MODELS.items():
        for batch in (arguments.batch, 8 * arguments.batch):
            codes = {key: value.to(device) for key, value in make_codes(layout, batch).items()}
            inputs, y = our_inputs(layout, codes), codes["y"]
            network = builder(layout, history=T).to(device).train()
            with FlopCounterMode(display=False) as counter:
                network(*inputs).sum().backward()
            weights = sum(part.numel() for part in network.parameters())
            # Adam reads and writes weights and both moments and reads gradients; rows are read and scattered.
            moved = 4 * (7 * weights + 2 * inputs[3].numel() * EMBEDDING)
            least = max(counter.get_total_flops() / flops_rate, moved / bytes_rate)
            line = {"least_ms": 1e3 * least}
            for kind, model in (("plain", network), ("compiled", torch.compile(network))):
                run = steps(model, [(inputs, y)], nn.functional.binary_cross_entropy_with_logits, fused=True)
                taken = seconds(run, 30)
                line |= {f"{kind}_samples_per_second": batch / taken, f"{kind}_share": least / taken}
            results[f"{name} {batch}"] = {key: float(f"{value:.4g}") for key, value in line.items()}
            print(name, batch, results[f"{name} {batch}"], file=sys.stderr, flush=True)
    rates = {"flops": flops_rate, "bytes": bytes_rate, "device": torch.cuda.get_device_name()}
    write_result("ctr_speed_cuda", {"rates": rates, "results": results}, Path(arguments.output))


def main() -> None:
    """Parses and runs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--output", default=str(RESULTS), help="folder of the result of a GPU")
    for name, default in OPTIONS.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--operators", action="store_true", help="count calls of operators, and nothing else")
    arguments = parser.parse_args()
    if arguments.operators:
        count_operators(arguments)
        return
    (on_gpu if arguments.device == "cuda" else compare)(arguments)


if __name__ == "__main__":
    main()
