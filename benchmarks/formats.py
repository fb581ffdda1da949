"""Reading judgements: ten million lines of TREC qrels, and a BEIR folder whose corpus has a gigabyte.

    python benchmarks/formats.py [--lines 10000000] [--megabytes 1000] [--queries 1000]

Every file is read in a process of its own. Seconds are of the clock and of the processor; memory is the peak
of the process above that of one that has read a small file of the same kind.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from timing import write_result

GOALS = {"qrels_seconds": 10.0, "corpus_peak_mb": 200.0}
BLOCK = 500_000
CHILD = """
import json, sys, time
from pathlib import Path
import cleanrank as cr
small, large = sys.argv[1:]

def peak():
    # Unlike ru_maxrss it does not begin with what the parent process had.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))

cr.read_data(small)
before = peak()
start, used = time.perf_counter(), time.process_time()
data = cr.read_data(large)
seconds, processor = time.perf_counter() - start, time.process_time() - used
found = {"seconds": seconds, "processor_seconds": processor, "rows": data.n_docs, "peak_mb": peak() - before}
print(json.dumps({name: round(value, 2) for name, value in found.items()}))
"""


def write_qrels(path, lines, seed=0):
    rng = np.random.default_rng(seed)
    topics = np.sort(rng.integers(0, max(lines // 100, 1), lines))
    docs, grades = rng.permutation(5 * lines)[:lines], rng.integers(0, 4, lines)
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, lines, BLOCK):
            block = (column[start : start + BLOCK].tolist() for column in (topics, docs, grades))
            file.writelines(
                f"{topic} 0 D{doc:08d} {grade}\n" for topic, doc, grade in zip(*block, strict=True)
            )


def write_folder(folder, megabytes, queries):
    """A corpus of texts of about a kilobyte, ten judgements a query."""
    (folder / "qrels").mkdir(parents=True)
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(5000)])
    texts = [" ".join(words[rng.integers(0, 5000, 120)]) for _ in range(100)]
    documents = size = 0
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as file:
        while size < megabytes * 1e6:
            record = {"_id": f"d{documents}", "title": f"title {documents}", "text": texts[documents % 100]}
            size += file.write(json.dumps(record) + "\n")
            documents += 1
    with (folder / "queries.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"_id": f"q{i}", "text": f"query {i}"}) + "\n" for i in range(queries))
    judged = rng.integers(0, documents, (queries, 10))
    rows = [f"q{i}\td{d}\t{d % 3}\n" for i in range(queries) for d in np.unique(judged[i]).tolist()]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))
    return documents


def measured(small, large):
    words = [sys.executable, "-c", CHILD, str(small), str(large)]
    return json.loads(subprocess.check_output(words, text=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=10_000_000)
    parser.add_argument("--megabytes", type=float, default=1000)
    parser.add_argument("--queries", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_qrels(folder / "small.qrels", 100)
        write_qrels(folder / "large.qrels", options.lines)
        result = {
            "qrels": {"lines": options.lines, **measured(folder / "small.qrels", folder / "large.qrels")}
        }
        (folder / "large.qrels").unlink()
        write_folder(folder / "small", 0.1, 10)
        documents = write_folder(folder / "large", options.megabytes, options.queries)
        size = (folder / "large" / "corpus.jsonl").stat().st_size
        corpus = {"megabytes": round(size / 1e6), "documents": documents}
        result["beir"] = {**corpus, **measured(folder / "small", folder / "large")}
    found = {"qrels_seconds": result["qrels"]["seconds"], "corpus_peak_mb": result["beir"]["peak_mb"]}
    result["goals"] = {
        name: {"goal": goal, "found": found[name], "met": found[name] <= goal} for name, goal in GOALS.items()
    }
    result["load_average"] = [round(each, 1) for each in os.getloadavg()]
    write_result("formats", result)


if __name__ == "__main__":
    main()
