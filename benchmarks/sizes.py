"""Data larger than memory: time and peak memory of every stage, at growing numbers of documents.

    python benchmarks/sizes.py WORK [--documents 1 3 9 27] [--threads 2] [--stages convert train ...]

The data have the shape of Istella-X (220 features, about 2,680 documents a query, grades 0 to 4 with 998 in
1,000 grade 0), made by ``make_ranking_chunks``. They are written as Parquet into WORK, which must lie on a
disk with room for them three times (float32), and every stage runs in a process of its own that opens the
folder of shards. Memory is what the kernel counts as the process's own (RssAnon), looked at every 20 ms;
pages of mapped files, which it may drop at any time, are not in it.

Results are written after every stage, so that a run can be broken off; a stage that is there is not run again
unless --again is given.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from timing import RESULTS, write_result

QUERIES_PER_MILLION = 373.25  # 10,000 queries are 26.8 million documents
TREES = 100
RESULT = "sizes"
# Threads that wait for work must not count as work.
QUIET = os.environ | {"OMP_WAIT_POLICY": "passive"}
SEED = 0
RATE = 0.002  # as many wrong grades as there are relevant documents


def make(work, threads):
    """The input: Parquet files of whole queries."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    from cleanrank.data.frames import to_frame
    from cleanrank.data.synthetic import make_ranking_chunks

    (work / "parquet").mkdir()
    n_queries = round(float((work / "millions").read_text()) * QUERIES_PER_MILLION)
    rows = 0
    for number, piece in enumerate(
        make_ranking_chunks(n_queries, shape="istella", seed=SEED, chunk_queries=64)
    ):
        table = to_frame(piece, "arrow")
        path = work / "parquet" / f"train-{number:05d}-of-{-(-n_queries // 64):05d}.parquet"
        parquet.write_table(table, path, use_dictionary=False, compression="none")
        rows += piece.n_docs
        del table, piece
        pa.default_memory_pool().release_unused()
    return {"documents": rows, "queries": n_queries}


def cat(work, threads):
    """What the conversion is compared with: the same bytes copied by the shell, if there is room."""
    files = sorted((work / "parquet").glob("*.parquet"))
    size = sum(file.stat().st_size for file in files)
    if shutil.disk_usage(work).free < 2.5 * size:
        return {"bytes": 0}
    with (work / "copy").open("wb") as copy:
        subprocess.run(["cat", *files], stdout=copy, check=True)
    (work / "copy").unlink()
    return {"bytes": size}


def convert(work, threads):
    from cleanrank.data.shards import convert as to_shards
    from cleanrank.data.tables import source_of_shards

    to_shards(source_of_shards(work / "parquet", None, {}), work / "data")
    return {"bytes": sum(each.stat().st_size for each in (work / "data").glob("features-*.npy"))}


def opened(work, name="data"):
    import cleanrank as cr

    return cr.read_data(work / name)


def diagnose(work, threads):
    import cleanrank as cr

    return {"features": cr.diagnose(opened(work)).features}


def duplicates(work, threads):
    import cleanrank as cr

    return {"issues": int(cr.find_label_issues(opened(work), method="contradictions").is_label_issue.sum())}


def corrupt(work, threads):
    import cleanrank as cr

    data = opened(work)
    noisy = cr.corrupt(data, rate=RATE, seed=SEED)
    cr.write_data(noisy.data, work / "noisy", form="shards")
    return {"changed": int(noisy.changed.sum()), "pnoise": float(cr.pnoise(data, noisy.data))}


def train(work, threads):
    import cleanrank as cr

    ranker = cr.BoostedRanker(n_estimators=TREES, early_stopping_rounds=None, n_jobs=threads)
    ranker.fit_data(opened(work, "noisy")).save(work / "model.txt")
    return {"trees": ranker.best_iteration_}


def detect(work, threads):
    import cleanrank as cr

    issues = cr.find_label_issues(opened(work, "noisy"), method="sour", end=TREES, n_jobs=threads)
    issues.save(work / "issues.parquet")
    return {"issues": int(issues.is_label_issue.sum())}


def clean(work, threads):
    import cleanrank as cr
    from cleanrank.issues.table import read_issues

    issues = read_issues(work / "issues.parquet")
    # A sample of queries with two relevant documents each does not show what the features tell.
    cleaned = cr.clean(opened(work, "noisy"), issues, min_doubt=0.9)
    cr.write_data(cleaned.data, work / "cleaned", form="shards")
    return {"dropped": int(cleaned.acted.sum())}


def predict(work, threads):
    import cleanrank as cr

    model = cr.load_ranker(work / "model.txt").set_params(n_jobs=threads)
    scores = model.predict(opened(work).X)
    np.save(work / "scores.npy", scores)
    return {}


def evaluate(work, threads):
    import cleanrank as cr

    found = cr.evaluate(np.load(work / "scores.npy"), opened(work), ["ndcg@10"], order="data")
    return {"ndcg@10": float(next(iter(found.means.values())))}


def find_auto(work, threads):
    import cleanrank as cr

    issues = cr.find_label_issues(opened(work, "noisy"), n_jobs=threads)
    return {"issues": int(issues.is_label_issue.sum())}


STAGES = {
    "make": make, "cat": cat, "convert": convert, "diagnose": diagnose, "duplicates": duplicates,
    "corrupt": corrupt, "train": train, "detect": detect, "clean": clean, "predict": predict,
    "evaluate": evaluate,
    "auto": find_auto,
}  # fmt: skip
USUAL = [name for name in STAGES if name != "auto"]
OUTPUTS = {"make": ["parquet"], "convert": ["data"], "corrupt": ["noisy"], "clean": ["cleaned"]}


class Memory(threading.Thread):
    """The highest RssAnon that was seen."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak, self.on = 0, True

    def run(self):
        """Looks until it is told to stop."""
        while self.on:
            self.peak = max(self.peak, status("RssAnon"))
            time.sleep(0.02)


def status(name):
    """A line of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(name)))


def run_stage(name, work, threads):
    """Runs a stage in this process and prints what it took."""
    memory = Memory()
    memory.start()
    start, before = time.perf_counter(), time.process_time()
    facts = STAGES[name](work, threads)
    seconds, processor = time.perf_counter() - start, time.process_time() - before
    memory.on = False
    memory.join()
    peak = {"peak_own_bytes": memory.peak, "peak_with_mapped_files_bytes": status("VmHWM")}
    print(json.dumps({"seconds": round(seconds, 2), "cpu_seconds": round(processor, 2), **peak, **facts}))


def law(sizes, seconds):
    """The exponent b of seconds = a documents^b, by least squares of logs."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(seconds, 1e-3)), 1)[0])


def text_of_sizes():
    """The table of the page: a row for each stage, a column for each size."""
    found = json.loads((RESULTS / f"{RESULT}.json").read_text())["sizes"]
    sizes = {m: found[m]["make"]["documents"] for m in sorted(found, key=float)}
    head = ["stage", *(f"{n / 1e6:.1f} M" for n in sizes.values()), "b", "processor s per million"]
    rows = []
    for stage in STAGES:
        runs = {m: found[m][stage] for m in sizes if stage in found[m]}
        if not runs or stage in ("make", "cat"):
            continue
        cells = [cell(runs[m]) if m in runs else "" for m in sizes]
        documents, seconds = [sizes[m] for m in runs], [run["cpu_seconds"] for run in runs.values()]
        exponent = f"{law(documents, seconds):.2f}" if len(runs) > 1 else ""
        rows.append([NAMES.get(stage, stage), *cells, exponent, f"{seconds[-1] / documents[-1] * 1e6:.1f}"])
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


def cell(run):
    """Seconds by the clock and of the processor, and memory."""
    gib = run["peak_own_bytes"] / 2**30
    return f"{run['seconds']:,.0f} s ({run['cpu_seconds']:,.0f}), {gib:.1f} GiB"


NAMES = {
    "convert": "convert, from Parquet",
    "duplicates": "contradictions",
    "corrupt": "corrupt, write, pNoise",
    "train": f"train {TREES} trees",
    "detect": f"SOUR, {TREES} trees",
    "clean": "clean, write",
    "predict": f"predict, {TREES} trees",
    "auto": "`find_label_issues` as it is",
}
TEXTS = {"sizes": text_of_sizes}
PICTURES = {}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--documents", nargs="+", default=["1", "3", "9", "27"], help="millions")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--stages", nargs="+", default=USUAL, choices=list(STAGES))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        run_stage(given.one, given.work, given.threads)
        return
    file = RESULTS / f"{RESULT}.json"
    sizes = json.loads(file.read_text())["sizes"] if file.is_file() else {}
    for millions in given.documents:
        work = given.work / millions
        work.mkdir(parents=True, exist_ok=True)
        (work / "millions").write_text(millions)
        known = sizes.setdefault(millions, {})
        for stage in given.stages:
            if stage in known and not given.again:
                continue
            for output in OUTPUTS.get(stage, []):
                shutil.rmtree(work / output, ignore_errors=True)
            words = [sys.executable, __file__, str(work), "--one", stage, "--threads", str(given.threads)]
            done = subprocess.run(words, capture_output=True, text=True, check=False, env=QUIET)
            if done.returncode:
                print(f"{millions} M, {stage}: {done.stderr.strip().splitlines()[-1]}")
                break
            known[stage] = json.loads(done.stdout.splitlines()[-1])
            print(f"{millions} M, {stage}: {known[stage]}", flush=True)
            write_result(RESULT, {"sizes": sizes, "threads": given.threads, "trees": TREES, "seed": SEED})
            if stage == "convert":
                shutil.rmtree(work / "parquet")


if __name__ == "__main__":
    main()
