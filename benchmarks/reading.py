"""Reading LETOR files: against a plain read of the bytes, scikit-learn, NumPy's own files, and in memory.

    python benchmarks/reading.py [--megabytes 300] [--repeats 16] [--sklearn-repeats 3]

The file has the shape of MSLR-WEB: 136 features, two in five of them counts, the rest decimals of six places,
about 120 documents a query. It lies in a temporary folder and in the page cache.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file
from timing import interleaved, write_result

from cleanrank.data import cache
from cleanrank.data.letor import read_letor, write_letor
from cleanrank.ragged import from_arrays

GOALS = {
    "times_of_plain_read": 5.0,
    "times_faster_than_sklearn": 20.0,
    "peak_memory_of_final_arrays": 1.5,
    "times_of_np_load": 2.0,
}
FEATURES = 136


def web_search_shaped(n, seed=0):
    """Rows with MSLR's mixture of counts, zeros and decimals."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n, FEATURES), np.float32)
    for column in range(FEATURES):
        if column % 5 < 2:
            X[:, column] = rng.poisson(rng.uniform(0.5, 300), n) * (rng.random(n) < 0.7)
        else:
            X[:, column] = np.round(rng.lognormal(0, 2, n) * (rng.random(n) < 0.65), 6)
    lengths = np.clip(rng.lognormal(4.6, 0.6, n // 20 + 2), 5, 900).astype(np.int64)
    lengths = lengths[np.cumsum(lengths) < n]
    lengths = np.append(lengths, n - lengths.sum())
    y = rng.choice(5, n, p=[0.517, 0.325, 0.133, 0.017, 0.008])
    return from_arrays(X, y, group=lengths)


def make_file(path, megabytes):
    """Writes about so many megabytes; returns the number of rows and the seconds that writing took."""
    probe = write_letor(web_search_shaped(2000), path)
    rows = round(megabytes * 1e6 / (probe.stat().st_size / 2000))
    data = web_search_shaped(rows)
    start = time.perf_counter()
    write_letor(data, path)
    return rows, time.perf_counter() - start


def bytes_of(path):
    with path.open("rb") as file:
        return file.read()


def against_plain(path, repeats):
    found = interleaved(
        {"ours": lambda: read_letor(path, cache=False), "plain": partial(bytes_of, path)}, repeats=repeats
    )
    return {**found.summary(), "times_of_plain_read": round(found.ratio("ours", "plain"), 2)}


def against_sklearn(path, repeats):
    found = interleaved(
        {
            "ours": lambda: read_letor(path, cache=False),
            "sklearn": lambda: load_svmlight_file(str(path), query_id=True, dtype=np.float32),
        },
        repeats=repeats,
        warm_up=0,
    )
    return {**found.summary(), "times_faster_than_sklearn": round(found.ratio("sklearn", "ours"), 1)}


def against_np_load(path, repeats):
    """A cached read against np.load of the same arrays; then both with every value of X touched."""
    read_letor(path)
    (entry,) = [each for each in cache.cache_folder().iterdir() if each.is_dir()]
    files = sorted(entry.glob("*.npy"))
    found = interleaved(
        {
            "ours": partial(read_letor, path),
            "np.load": lambda: [np.load(each) for each in files],
            "ours, summed": lambda: float(read_letor(path).X.sum()),
            "np.load, summed": lambda: float(np.load(entry / "X.npy").sum()),
        },
        repeats=repeats,
    )
    return {
        **found.summary(),
        "times_of_np_load": round(found.ratio("ours", "np.load"), 2),
        "times_of_np_load_when_summed": round(found.ratio("ours, summed", "np.load, summed"), 2),
    }


CHILD = """
import sys, numpy as np
from cleanrank.data.letor import read_letor
read_letor(sys.argv[1], cache=False)
print("ready", flush=True); sys.stdin.readline()
data = read_letor(sys.argv[2], cache=False)
arrays = [data.X, data.y, data.indptr, data.query_ids, data.row_ids]
print(sum(a.nbytes for a in arrays), flush=True); sys.stdin.readline()
"""


def anonymous_bytes(pid):
    """Memory of a process that is no mapped file."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("RssAnon"))


def peak_memory(path, small):
    """Peak of anonymous memory above that of a warmed-up process, sampled from outside every millisecond."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(small), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "ready\n"
    before = anonymous_bytes(child.pid)
    child.stdin.write("\n")
    child.stdin.flush()
    peak = before
    os.set_blocking(child.stdout.fileno(), False)
    answer = None
    while not answer:
        peak = max(peak, anonymous_bytes(child.pid))
        time.sleep(0.001)
        answer = child.stdout.readline()
    child.communicate("\n")
    return {
        "final_arrays_mb": round(int(answer) / 1e6, 1),
        "peak_mb": round((peak - before) / 1e6, 1),
        "peak_memory_of_final_arrays": round((peak - before) / int(answer), 3),
    }


def first_call(small, folder):
    """Seconds of the first read in a new process: nothing compiled yet, then compiled before."""
    code = (
        "import time, sys; start = time.perf_counter(); from cleanrank.data.letor import read_letor;"
        "read_letor(sys.argv[1], cache=False); print(time.perf_counter() - start)"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "numba")}
    seconds = [
        float(subprocess.check_output([sys.executable, "-c", code, str(small)], env=environment, text=True))
        for _ in range(2)
    ]
    return {"compiling_s": round(seconds[0], 2), "compiled_before_s": round(seconds[1], 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=300)
    parser.add_argument("--repeats", type=int, default=16)
    parser.add_argument("--sklearn-repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["CLEANRANK_CACHE"] = str(folder / "cache")
        small = write_letor(web_search_shaped(200), folder / "small.txt")
        path = folder / "web.txt"
        rows, writing = make_file(path, options.megabytes)
        result = {
            "file": {"megabytes": round(path.stat().st_size / 1e6), "rows": rows, "features": FEATURES},
            "write_s": round(writing, 2),
            "plain": against_plain(path, options.repeats),
            "memory": peak_memory(path, small),
            "cache": against_np_load(path, options.repeats),
            "first_call": first_call(small, folder),
            "sklearn": against_sklearn(path, options.sklearn_repeats),
        }
    parts = [result[part] for part in ("plain", "memory", "cache", "sklearn")]
    found = {name: value for part in parts for name, value in part.items() if name in GOALS}
    result["goals"] = {
        name: {"goal": goal, "found": found[name], "met": bool((found[name] >= goal) == ("faster" in name))}
        for name, goal in GOALS.items()
    }
    result["load_average"] = [round(each, 1) for each in os.getloadavg()]
    write_result("reading", result)


if __name__ == "__main__":
    main()
