"""Compiled sums over all pairs of documents of a query, without a list of pairs.

The loss of a pair whose better document leads by d is

    curvature (upper - d)^2      where lower <= d < upper,
    slope (middle - d)           where d < lower,
    0                            elsewhere,

which is the squared hinge (upper 1, lower -inf, curvature 1), the hinge (upper = lower = middle = 1, slope 1)
and the hinge whose corner is rounded over a width h on both sides (Huber). Documents are sorted by score: the
partners of a document for which d lies between two bounds are those between two positions, and sums over the
ones of lower (higher) grades among them are differences of running sums, one column per grade. That takes
O(n (log n + grades)) time for n documents (Joachims 2006; Lee and Lin 2014).

Pairs count by the product of their rows' weights. Threads take whole chunks of queries and each writes to its
own place, so that results do not depend on their number.
"""

import numpy as np

from cleanrank.jit import kernel, prange
from cleanrank.types import Array


@kernel(fastmath=True)
def dot(x: Array, w: Array) -> float:
    """The sum of products, in an order that depends on the length alone."""
    total = 0.0
    for f in range(len(w)):
        total += x[f] * w[f]
    return total


@kernel()
def add(total: Array, x: Array, factor: float) -> None:
    """Total += factor * x."""
    for f in range(len(x)):
        total[f] += factor * x[f]


@kernel()
def in_order(parts: Array) -> Array:
    """The sum of the rows, from the first to the last."""
    total = np.zeros(parts.shape[1])
    for c in range(len(parts)):
        add(total, parts[c], 1.0)
    return total


@kernel(parallel=True)
def linear_scores(X: Array, w: Array) -> Array:
    """X @ w, with the same bits for any number of threads."""
    out = np.empty(len(X))
    for i in prange(len(X)):
        out[i] = dot(X[i], w)
    return out


@kernel(parallel=True)
def row_sums(X: Array, r: Array, borders: Array) -> Array:
    """X.T @ r, by chunks of rows."""
    parts = np.zeros((len(borders) - 1, X.shape[1]))
    for c in prange(len(borders) - 1):
        for i in range(borders[c], borders[c + 1]):
            add(parts[c], X[i], r[i])
    return in_order(parts)


@kernel()
def sort_again(score: Array, order: Array, spare: Array) -> None:
    """Brings the last ascending order up to date: by insertion, or by merging where the way is long."""
    n = len(order)
    budget = 8 * n + 64
    for k in range(1, n):
        row = order[k]
        m = k - 1
        while m >= 0 and score[order[m]] > score[row]:
            order[m + 1] = order[m]
            m -= 1
        order[m + 1] = row
        budget -= k - m
        if budget < 0:
            break
    width = n if budget >= 0 else 1
    while width < n:
        for first in range(0, n, 2 * width):
            middle, last = min(first + width, n), min(first + 2 * width, n)
            i, j = first, middle
            for k in range(first, last):
                if j >= last or (i < middle and score[order[i]] <= score[order[j]]):
                    spare[k] = order[i]
                    i += 1
                else:
                    spare[k] = order[j]
                    j += 1
        order[:] = spare[:n]
        width *= 2


@kernel()
def running_sums(values: Array, grade: Array, order: Array, table: Array) -> None:
    """table[k, g]: the sum over the first k documents in order whose grade is below g."""
    grades = table.shape[1] - 1
    table[0] = 0.0
    for k in range(len(order)):
        i = order[k]
        for g in range(grades + 1):
            table[k + 1, g] = table[k, g]
        for g in range(grade[i] + 1, grades + 1):
            table[k + 1, g] += values[i]


@kernel()
def find_windows(score: Array, order: Array, lower: float, upper: float, windows: Array) -> None:
    """For the document at each position: where partners with lower <= d < upper begin and end.

    windows[k, :2] are positions of worse documents, windows[k, 2:] positions of better ones.
    """
    n = len(order)
    a = b = c = d = 0
    for k in range(n):
        s = score[order[k]]
        while a < n and s - score[order[a]] >= upper:
            a += 1
        while b < n and s - score[order[b]] >= lower:
            b += 1
        while c < n and score[order[c]] - s < lower:
            c += 1
        while d < n and score[order[d]] - s < upper:
            d += 1
        windows[k, 0] = a
        windows[k, 1] = b
        windows[k, 2] = c
        windows[k, 3] = d


@kernel()
def chunk_losses(
    score: Array,
    grade: Array,
    weight: Array,
    indptr: Array,
    grades: int,
    longest: int,
    shape: Array,
    order: Array,
    windows: Array,
    gradient: Array,
    degree: Array,
    part: Array,
) -> None:
    """``pair_losses`` of the queries that ``indptr`` delimits; ``part`` receives the sums."""
    lower, upper, curvature, slope, middle = shape[0], shape[1], shape[2], shape[3], shape[4]
    counts = np.zeros((longest + 1, grades + 1))
    sums = np.zeros((longest + 1, grades + 1))
    spare = np.zeros(longest, dtype=np.int64)
    centred = np.zeros(longest)
    weighted = np.zeros(longest)
    for q in range(len(indptr) - 1):
        first, last = indptr[q], indptr[q + 1]
        n = last - first
        place, u, y = order[first:last], weight[first:last], grade[first:last]
        sort_again(score[first:last], place, spare)
        middle_score = score[first + place[n // 2]] if n else 0.0
        for i in range(n):
            centred[i] = score[first + i] - middle_score
            weighted[i] = u[i] * centred[i]
        s, window = centred[:n], windows[first:last]
        find_windows(s, place, lower, upper, window)
        running_sums(u, y, place, counts)
        running_sums(weighted, y, place, sums)
        for k in range(n):
            i = place[k]
            a, b, c, d = window[k, 0], window[k, 1], window[k, 2], window[k, 3]
            g = y[i]
            near = counts[b, g] - counts[a, g]
            near_sum = sums[b, g] - sums[a, g]
            far = counts[n, g] - counts[b, g]
            far_sum = sums[n, g] - sums[b, g]
            steep = 2.0 * curvature * (near * (upper - s[i]) + near_sum)
            above = counts[d, grades] - counts[d, g + 1] - counts[c, grades] + counts[c, g + 1]
            above_sum = sums[d, grades] - sums[d, g + 1] - sums[c, grades] + sums[c, g + 1]
            above_far = counts[c, grades] - counts[c, g + 1]
            curved = u[i] * (2.0 * curvature * (above * (upper + s[i]) - above_sum) - steep)
            gradient[first + i] = curved + u[i] * slope * (above_far - far)
            degree[first + i] = 2.0 * curvature * (near + above)
            # On the curved part a loss is slope x (upper - d) / 2, and slopes x d add up to -curved x s.
            part[0] += 0.5 * (u[i] * upper * steep + curved * s[i])
            part[0] += slope * u[i] * (far * (middle - s[i]) + far_sum)
            part[1] += u[i] * (steep + slope * far)
            part[2] += u[i] * near


@kernel(parallel=True)
def pair_losses(
    score: Array,
    grade: Array,
    weight: Array,
    indptr: Array,
    chunks: Array,
    grades: int,
    longest: int,
    shape: Array,
    order: Array,
    windows: Array,
    gradient: Array,
    degree: Array,
) -> Array:
    """(sum of losses, sum of |slopes|, number of pairs on the curved part), and the derivatives by score.

    ``shape`` is (lower, upper, curvature, slope, middle). Updates ``order`` and ``windows``, fills
    ``gradient`` and ``degree``: 2 curvature x the weight of a document's partners on the curved part.
    """
    parts = np.zeros((len(chunks) - 1, 3))
    for c in prange(len(chunks) - 1):
        bounds = indptr[chunks[c] : chunks[c + 1] + 1]
        chunk_losses(
            score, grade, weight, bounds, grades, longest, shape, order, windows, gradient, degree, parts[c]
        )
    return in_order(parts)


@kernel(fastmath=True)
def chunk_product(
    X: Array,
    v: Array,
    grade: Array,
    weight: Array,
    indptr: Array,
    grades: int,
    longest: int,
    curvature: float,
    order: Array,
    windows: Array,
    degree: Array,
    part: Array,
) -> None:
    """``curved_product`` of the queries that ``indptr`` delimits, added to ``part``."""
    sums = np.zeros((longest + 1, grades + 1))
    along = np.zeros(longest)
    weighted = np.zeros(longest)
    for q in range(len(indptr) - 1):
        first, last = indptr[q], indptr[q + 1]
        place, window = order[first:last], windows[first:last]
        for i in range(last - first):
            along[i] = dot(X[first + i], v)
            weighted[i] = weight[first + i] * along[i]
        running_sums(weighted, grade[first:last], place, sums)
        for k in range(last - first):
            row = first + place[k]
            if degree[row] == 0.0:
                continue
            a, b, c, d = window[k, 0], window[k, 1], window[k, 2], window[k, 3]
            g = grade[row]
            partners = sums[b, g] - sums[a, g]
            partners += sums[d, grades] - sums[d, g + 1] - sums[c, grades] + sums[c, g + 1]
            add(part, X[row], weight[row] * (degree[row] * along[place[k]] - 2.0 * curvature * partners))


@kernel(parallel=True)
def curved_product(
    X: Array,
    v: Array,
    grade: Array,
    weight: Array,
    indptr: Array,
    chunks: Array,
    grades: int,
    longest: int,
    curvature: float,
    order: Array,
    windows: Array,
    degree: Array,
) -> Array:
    """The Hessian of the losses by w times v, where ``pair_losses`` was last: one pass over the rows."""
    parts = np.zeros((len(chunks) - 1, X.shape[1]))
    for c in prange(len(chunks) - 1):
        bounds = indptr[chunks[c] : chunks[c + 1] + 1]
        chunk_product(
            X, v, grade, weight, bounds, grades, longest, curvature, order, windows, degree, parts[c]
        )
    return in_order(parts)
