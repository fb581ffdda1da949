"""How noisy the training labels of a cell came out, beside what theory expects."""

import math
from typing import Any

import numpy as np

from cleanrank.diagnosis.fragility import composition, pooled_pnoise
from cleanrank.noise.pair_noise import pnoise, pnoise_expected
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.ragged import query_of_row
from cleanrank.types import IntArray, RankingData

# dNoise and pNoise as counted, the closed form for the queries at hand, and the papers' for overall shares.
REALISED = ("train_dnoise", "train_pnoise", "expected_pnoise", "overall_pnoise")


def realised(clean: RankingData, given: RankingData, profile: NoiseProfile) -> dict[str, Any]:
    """The figures of REALISED for the labels a ranker learns from; one that is not defined is left out."""
    counts = grade_counts(clean, profile.n_grades)
    found = {
        "train_dnoise": float((clean.y != given.y).mean()),
        "train_pnoise": float(pnoise(clean.y, given.y, clean.indptr, n_jobs=1)),
        "expected_pnoise": pooled_pnoise(profile.matrix, *composition(counts)),
        "overall_pnoise": pnoise_expected(profile, counts.sum(axis=0)),
    }
    return {name: value for name, value in found.items() if not math.isnan(value)}


def grade_counts(data: RankingData, n_grades: int) -> IntArray:
    """Documents of each grade in each query, shape (Q, C)."""
    cell = query_of_row(data.indptr) * n_grades + data.y
    return np.bincount(cell, minlength=data.n_queries * n_grades).reshape(data.n_queries, n_grades)
