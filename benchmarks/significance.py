"""How fast is the randomisation test? 100,000 permutations of 6,306 queries against a matrix product.

    python benchmarks/significance.py

Goal: at least 20x faster than NumPy drawing signs and multiplying, a chunk of permutations at a time.
"""

import numpy as np
from timing import interleaved, write_result

from cleanrank.metrics.significance import bootstrap_interval, fisher_test

QUERIES, PERMUTATIONS, CHUNK = 6306, 100_000, 1000


def by_matrix_product(d, rng):
    """The share of sign vectors whose sum is at least as extreme; signs are drawn as packed bits."""
    observed = abs(d.sum())
    extreme = 0
    for _ in range(PERMUTATIONS // CHUNK):
        bits = np.unpackbits(rng.integers(0, 256, (CHUNK, -(-len(d) // 8)), dtype=np.uint8), axis=1)
        signs = bits[:, : len(d)].astype(np.float32) * 2 - 1
        extreme += int((np.abs(signs @ d) >= observed).sum())
    return (extreme + 1) / (PERMUTATIONS + 1)


def main():
    rng = np.random.default_rng(0)
    a = rng.beta(2, 2, QUERIES)
    b = a + rng.normal(0.001, 0.05, QUERIES)
    d = (a - b).astype(np.float32)
    found = interleaved(
        {
            "matrix_product": lambda: by_matrix_product(d, np.random.default_rng(1)),
            "fisher_test": lambda: fisher_test(a, b, PERMUTATIONS),
            "bootstrap_interval": lambda: bootstrap_interval(a),
        },
        repeats=16,
    )
    faster = found.ratio("matrix_product", "fisher_test")
    write_result(
        "significance",
        {
            "queries": QUERIES,
            "permutations": PERMUTATIONS,
            "times_faster_than_matrix_product": faster,
            "p": {"fisher_test": fisher_test(a, b), "matrix_product": by_matrix_product(d, rng)},
            **found.summary(),
            "goals": {"at_least_20": faster >= 20},
        },
    )


if __name__ == "__main__":
    main()
