"""An epoch of the usual network with RankNet and LambdaRank, against what it cannot be faster than.

    python benchmarks/neural_epoch.py --allrank ENV/bin/python
    python benchmarks/neural_epoch.py --device cuda --precision bfloat16

``network`` is the same network on the same batches, forward and backward with a sum as loss: matrix products
with the activations and norms between them, no loss, no optimiser, no gathering. ``products`` leaves the
activations and norms out too. allRank 1.4.3 trains the same network and loss on the same documents in a
process of its own, whose Python is given (``pip install --no-deps allRank==1.4.3`` beside the same torch);
its own functions train: FixLength, LTRModel, the loss and loss_batch. Epochs of all of them take turns.

On a GPU the epoch's documents per second and its share of the roofline are printed: the FLOPs of the matrix
products by the rate of one large product, measured just before. NumPy and torch suffice there.
"""

import argparse
import importlib.util
import itertools
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from timing import RESULTS, Timings, write_result
from torch import nn

LOSSES = {"ranknet": {}, "lambdarank": {"measure": "ndcg"}}
HIDDEN = (512, 256, 128)


def make_data(queries, features, seed=0):
    """Queries of web-search shape: about 120 documents, long ones of 400, five grades."""
    rng = np.random.default_rng(seed)
    lengths = np.clip(rng.lognormal(4.62, 0.6, queries), 5, 400).astype(np.int64)
    n = int(lengths.sum())
    X = rng.normal(size=(n, features)).astype(np.float32)
    worth = X[:, :8].sum(1) / 8**0.5 + rng.normal(size=n)
    return X, np.digitize(worth, [0.3, 1.2, 2.0, 2.8]).astype(np.int32), lengths


def flat_batches(X, lengths, batch_queries, device):
    """The documents of one epoch's batches, gathered beforehand."""
    from cleanrank.ragged import indptr_of
    from cleanrank.rankers.neural.inputs import batch_of, bucketed

    indptr = indptr_of(lengths)
    cut = bucketed(lengths, batch_queries, np.random.default_rng(0))
    return [torch.from_numpy(X[batch_of(indptr, q).rows.numpy()]).to(device) for q in cut]


def plain_products(features):
    sizes = (features, *HIDDEN, 1)
    return nn.Sequential(*(nn.Linear(a, b) for a, b in itertools.pairwise(sizes)))


def floor(network, batches, half, wait_after=True):
    def run():
        for X in batches:
            with torch.autocast(X.device.type, dtype=torch.bfloat16, enabled=half):
                found = network(X)
            network.zero_grad(set_to_none=True)
            found.sum().backward()
        if wait_after:
            wait(batches[0].device)

    return run


def recorded(network, batches, half):
    """The same pass as CUDA graphs, one for each batch: what the GPU needs without waiting for launches."""
    run, graphs, pool = floor(network, batches, half), [], torch.cuda.graph_pool_handle()
    with torch.cuda.stream(torch.cuda.Stream()):
        run()
        for X in batches:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                floor(network, [X], half, wait_after=False)()
            graphs.append(graph)

    def replay():
        for graph in graphs:
            graph.replay()
        wait(batches[0].device)

    return replay


def wait(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def take_turns(data, loss, options, others, repeats, settings):
    """Trains for some epochs; after each one the others run once, in random order."""
    from cleanrank.rankers.neural.ranker import NeuralRanker

    seconds = {name: [] for name in ("epoch", *others)}
    rng, mark = random.Random(0), [time.perf_counter()]

    def turn(epoch, epochs):
        seconds["epoch"].append(time.perf_counter() - mark[0])
        for name in rng.sample(list(others), len(others)):
            start = time.perf_counter()
            taken = others[name]()
            seconds[name].append(taken if isinstance(taken, float) else time.perf_counter() - start)
        mark[0] = time.perf_counter()

    NeuralRanker(loss, loss_options=options or None, epochs=repeats + 1, **settings).fit_data(
        data, progress=turn
    )
    # The first round warms up.
    kept = {name: tuple(times[1:]) for name, times in seconds.items()}
    medians = {name: float(np.median(times)) for name, times in kept.items()}
    ratios = {n: float(np.median(np.divide(kept["epoch"], times))) for n, times in kept.items()}
    return Timings(kept, medians, ratios, repeats)


class AllRank:
    """allRank in its own process: asked for an epoch, it answers with the seconds that took."""

    def __init__(self, python, X, y, lengths, batch_queries, threads):
        self.folder = tempfile.TemporaryDirectory()
        file = Path(self.folder.name) / "data.npz"
        np.savez(file, X=X, y=y, lengths=lengths)
        command = [python, __file__, "--serve", str(file), str(batch_queries), str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = self.process.stdout.readline().strip()

    def epoch(self, loss):
        """A call that trains one epoch."""

        def run():
            self.process.stdin.write(loss + "\n")
            self.process.stdin.flush()
            return float(self.process.stdout.readline())

        return run

    def close(self):
        """Ends the process."""
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()


def serve(file, batch_queries, threads):
    """Runs in allRank's environment; what allRank imports but training does not use is stood in for."""
    import types
    from functools import partial
    from importlib import metadata
    from unittest.mock import MagicMock

    class Compose(list):
        def __call__(self, sample):
            for each in self:
                sample = each(sample)
            return sample

    vision = types.ModuleType("torchvision")
    vision.transforms = types.ModuleType("torchvision.transforms")
    vision.transforms.Compose = Compose
    sys.modules.update({"torchvision": vision, "torchvision.transforms": vision.transforms})
    for name in ("gcsfs", "tensorboardX", "flatten_dict", "attr", "sklearn"):
        if importlib.util.find_spec(name) is None:
            sys.modules[name] = MagicMock()
            sys.modules[f"{name}.datasets"] = MagicMock()
    from allrank.data.dataset_loading import FixLength, LibSVMDataset, ToTensor
    from allrank.models.losses.lambdaLoss import lambdaLoss
    from allrank.models.losses.rankNet import rankNet
    from allrank.models.model import LTRModel, OutputLayer
    from allrank.training.train_utils import loss_batch
    from torch.utils.data import DataLoader

    torch.set_num_threads(threads)
    data = np.load(file)
    X, y, lengths = data["X"], data["y"].astype(np.float32), data["lengths"]
    qid = np.repeat(np.arange(len(lengths)), lengths)
    held = LibSVMDataset(types.SimpleNamespace(toarray=lambda: X), y, qid)
    held.transform = Compose([FixLength(int(lengths.max())), ToTensor()])
    loader = DataLoader(held, batch_size=batch_queries, shuffle=True)
    layers, width = [], X.shape[1]
    for size in HIDDEN:
        layers += [nn.LayerNorm(width), nn.Linear(width, size), nn.ELU()]
        width = size
    model = LTRModel(nn.Sequential(*layers, nn.LayerNorm(width)), None, OutputLayer(width, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = {"ranknet": rankNet, "lambdarank": partial(lambdaLoss, weighing_scheme="lambdaRank_scheme")}
    print(metadata.version("allRank"), flush=True)
    for line in sys.stdin:
        loss = losses[line.strip()]
        start = time.perf_counter()
        model.train()
        for xb, yb, indices in loader:
            loss_batch(model, loss, xb, yb, indices, 5.0, optimizer)
        print(time.perf_counter() - start, flush=True)


def on_processor(arguments):
    import cleanrank as cr
    from cleanrank.rankers.neural.networks import build_network

    X, y, lengths = make_data(arguments.queries, 136)
    data = cr.from_arrays(X, y, group=lengths)
    batches = flat_batches(X, lengths, arguments.batch_queries, torch.device("cpu"))
    torch.set_num_threads(arguments.threads)
    peer = None
    if arguments.allrank:
        peer = AllRank(arguments.allrank, X, y, lengths, arguments.batch_queries, arguments.threads)
    else:
        print("no --allrank PYTHON: not compared with allRank", file=sys.stderr)
    settings = {"batch_queries": arguments.batch_queries, "n_jobs": arguments.threads, "device": "cpu"}
    half = arguments.precision == "bfloat16"
    result = {}
    for loss, options in LOSSES.items():
        others = {
            "network": floor(build_network("mlp", 136), batches, half),
            "products": floor(plain_products(136), batches, half),
        }
        if peer is not None:
            others["allrank"] = peer.epoch(loss)
        found = take_turns(
            data, loss, options, others, arguments.repeats, {**settings, "precision": arguments.precision}
        )
        result[loss] = found.summary() | {
            "epoch_over_network": round(found.ratio("epoch", "network"), 3),
            "epoch_over_products": round(found.ratio("epoch", "products"), 3),
        }
        if peer is not None:
            result[loss]["allrank_over_epoch"] = round(found.ratio("allrank", "epoch"), 2)
    head = {"documents": len(X), "queries": len(lengths), "features": 136, "network": "512-256-128-1"}
    head |= {"batch_queries": arguments.batch_queries, "threads": arguments.threads}
    head |= {"precision": arguments.precision, "torch": torch.__version__}
    head |= {"allrank": peer.version if peer else "absent"}
    if peer is not None:
        peer.close()
    write_result("neural_epoch", {**head, "losses": result}, arguments.out)


def peak(device, precision):
    """FLOP/s of one large product."""
    kind = torch.bfloat16 if precision == "bfloat16" else torch.float32
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    a, b = (torch.randn(8192, 8192, device=device, dtype=kind) for _ in range(2))
    for _ in range(3):
        a @ b
    wait(device)
    start = time.perf_counter()
    for _ in range(10):
        a @ b
    wait(device)
    torch.set_float32_matmul_precision(before)
    return 10 * 2 * 8192**3 / (time.perf_counter() - start)


def on_gpu(arguments):
    import cleanrank as cr
    from cleanrank.rankers.neural.networks import build_network

    device = torch.device(arguments.device)
    X, y, lengths = make_data(arguments.queries, 136)
    data = cr.from_arrays(X, y, group=lengths)
    batches = flat_batches(X, lengths, arguments.batch_queries, device)
    sizes = (136, *HIDDEN, 1)
    # Forward, and backward by weights and by inputs; the first norm's weights need the latter too.
    flops = 6 * len(X) * sum(a * b for a, b in itertools.pairwise(sizes))
    rate = peak(device, arguments.precision)
    settings = {
        "batch_queries": arguments.batch_queries,
        "device": arguments.device,
        "precision": arguments.precision,
    }
    half, result = arguments.precision == "bfloat16", {}
    torch.set_float32_matmul_precision("high" if arguments.precision == "tf32" else "highest")
    for loss, options in LOSSES.items():
        passes = {
            "network": floor(build_network("mlp", 136).to(device), batches, half),
            "recorded network": recorded(build_network("mlp", 136).to(device), batches, half),
        }
        found = take_turns(data, loss, options, passes, arguments.repeats, settings)
        seconds = found.medians["epoch"]
        result[loss] = found.summary() | {
            "documents_per_second": round(len(X) / seconds),
            "share_of_roofline": round(flops / seconds / rate, 4),
            "epoch_over_network": round(found.ratio("epoch", "network"), 3),
            "epoch_over_recorded_network": round(found.ratio("epoch", "recorded network"), 3),
        }
    head = {
        "device": torch.cuda.get_device_name(device),
        "torch": torch.__version__,
        "documents": len(X),
        "queries": len(lengths),
        "batch_queries": arguments.batch_queries,
        "precision": arguments.precision,
        "peak_tflops": round(rate / 1e12, 1),
        "epoch_gflop": round(flops / 1e9, 1),
    }
    name = f"neural_epoch_cuda_{arguments.precision}_{arguments.batch_queries}"
    print(json.dumps({**head, "losses": result}, indent=2))
    write_result(name, {**head, "losses": result}, arguments.out)


def main():
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--allrank", metavar="PYTHON", help="Python of an environment that has allRank 1.4.3")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--batch-queries", type=int, default=64)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    (on_gpu if arguments.device.startswith("cuda") else on_processor)(arguments)


if __name__ == "__main__":
    main()
