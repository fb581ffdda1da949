"""pNoise of 1.2 million documents against reading the labels once and against compiled pair enumeration.

Also: the extra memory of 30 million documents. Run with ``python benchmarks/pnoise.py [--repeats N]``.
"""

import argparse
import re
import sys
import threading
import time
from pathlib import Path

import numpy as np
from numba import njit
from timing import interleaved, write_result

from cleanrank.noise.pair_noise import pnoise
from cleanrank.noise.profiles import uniform
from cleanrank.ragged import indptr_of

GRADES = (0.517, 0.325, 0.133, 0.017, 0.008)


@njit(nogil=True, error_model="numpy")
def enumerate_pairs(true, given, indptr):
    correct, inverse, new = 0, 0, 0
    for q in range(len(indptr) - 1):
        for i in range(indptr[q], indptr[q + 1]):
            for j in range(indptr[q], i):
                seen = np.int64(given[i]) - np.int64(given[j])
                if seen != 0:
                    meant = np.int64(true[i]) - np.int64(true[j])
                    new += meant == 0
                    correct += seen * meant > 0
                    inverse += seen * meant < 0
    return correct, inverse, new


@njit(nogil=True, error_model="numpy")
def enumerate_pairs_vectorised(true, given, indptr):
    # The best case of enumeration: one document against a slice of others, without branches.
    correct, inverse, new = 0, 0, 0
    for q in range(len(indptr) - 1):
        for i in range(indptr[q], indptr[q + 1]):
            found = _one_against(true[indptr[q] : i], given[indptr[q] : i], true[i], given[i])
            correct += found[0]
            inverse += found[1]
            new += found[2]
    return correct, inverse, new


@njit(nogil=True, error_model="numpy")
def _one_against(true, given, l, a):
    correct, inverse, new = np.int32(0), np.int32(0), np.int32(0)
    for j in range(len(true)):
        correct += np.int32(((l > true[j]) & (a > given[j])) | ((l < true[j]) & (a < given[j])))
        inverse += np.int32(((l > true[j]) & (a < given[j])) | ((l < true[j]) & (a > given[j])))
        new += np.int32((l == true[j]) & (a != given[j]))
    return correct, inverse, new


def make_labels(queries, dtype, seed=0):
    rng = np.random.default_rng(seed)
    indptr = indptr_of(rng.poisson(120, queries))
    true = np.empty(indptr[-1], dtype=dtype)
    given = np.empty(indptr[-1], dtype=dtype)
    profile, steps = uniform(0.2, len(GRADES)), np.cumsum(GRADES)[:-1]
    for start in range(0, len(true), 1 << 20):
        part = slice(start, min(start + (1 << 20), len(true)))
        true[part] = np.searchsorted(steps, rng.random(part.stop - start), side="right")
        given[part] = profile.sample(true[part], rng)
    return true, given, indptr


def time_one_size(dtype, repeats):
    true, given, indptr = make_labels(10_000, dtype)
    found = pnoise(true, given, indptr)
    for count in (enumerate_pairs, enumerate_pairs_vectorised):
        if (found.correct, found.inverse, found.new_come) != count(true, given, indptr):
            sys.exit("the counts differ")
    timings = interleaved(
        {
            "pnoise": lambda: pnoise(true, given, indptr),
            "read both label arrays once (np.sum)": lambda: (np.sum(true), np.sum(given)),
            "enumerate pairs, compiled": lambda: enumerate_pairs(true, given, indptr),
            "enumerate pairs, SIMD": lambda: enumerate_pairs_vectorised(true, given, indptr),
        },
        repeats=repeats,
    )
    return {"documents": len(true), "queries": 10_000, **timings.summary()}


def resident_mib():
    text = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(r"VmRSS:\s+(\d+) kB", text).group(1)) / 1024


def memory_of_a_large_set(queries=250_000):
    true, given, indptr = make_labels(queries, np.int32)
    few = indptr[: queries // 6]
    pnoise(true[: few[-1]], given[: few[-1]], few)
    before, highest, done = resident_mib(), [0.0], threading.Event()

    def watch():
        while not done.is_set():
            highest[0] = max(highest[0], resident_mib())
            time.sleep(0.0005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    found = pnoise(true, given, indptr)
    seconds = time.perf_counter() - start
    done.set()
    watcher.join()
    return {
        "documents": len(true),
        "queries": queries,
        "labels_mib": round((true.nbytes + given.nbytes) / 2**20, 1),
        "result_mib": round(found.counts.nbytes / 2**20, 1),
        "extra_mib": round(max(highest[0], resident_mib()) - before, 1),
        "seconds": round(seconds, 4),
        "pnoise": round(float(found), 6),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=32)
    repeats = parser.parse_args().repeats
    write_result(
        "pnoise",
        {
            "goal": "at most 2x reading, at least 50x faster than enumerating pairs; 30 M in bounded memory",
            "uint8 labels": time_one_size(np.uint8, repeats),
            "int32 labels": time_one_size(np.int32, repeats),
            "int64 labels": time_one_size(np.int64, repeats),
            "30 million documents, int32": memory_of_a_large_set(),
        },
    )


if __name__ == "__main__":
    main()
