"""Triton programs over the pairs of padded lists; ``fused`` launches them.

A program owns ``ROWS`` documents of one list and goes over all documents of that list, ``COLUMNS`` at a time.
It sees each of its pairs from its own side, so that nothing is added up across programs and results repeat;
pairs are never stored. What is not there is read as NaN, which is neither more nor less nor the same; what
lies behind the last document of a list is not visited.
"""

import triton
import triton.language as tl

TERMS = tl.constexpr(8)
STEEPEST = tl.constexpr(50.0)  # that of the exponential loss


@triton.jit
def own_rows(mask, length, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Where the list of a program starts, its documents, and where those that they are compared with end."""
    start = tl.program_id(0).to(tl.int64) * length
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    places = tl.zeros((COLUMNS,), tl.int32)
    for first in range(0, length, COLUMNS):
        j = first + tl.arange(0, COLUMNS)
        there = tl.load(mask + start + j, j < length, 0)
        places = tl.maximum(places, tl.where(there != 0, j + 1, 0))
    end = tl.max(places, axis=0)
    return start, rows, tl.where(tl.program_id(1) * ROWS < end, end, 0)


@triton.jit
def present(values, mask, at, inside):
    """Values of documents that are there, NaN of others."""
    there = tl.load(mask + at, inside, 0)
    return tl.where(there != 0, tl.load(values + at, inside, 0.0), float("nan"))


@triton.jit
def log1p(x):
    """log(1 + x) of x in [0, 1] to single precision, without losing small x: 2 atanh(x / (2 + x))."""
    z = x / (2.0 + x)
    square = z * z
    total = z * 0.0
    for k in tl.static_range(TERMS):
        total = total * square + 1.0 / (2 * (TERMS - k) - 1)
    return 2.0 * z * total


@triton.jit
def curve(m, NAME: tl.constexpr):
    """A loss of a margin of ``losses.binary.LOSSES``, and its slope."""
    if NAME == "logistic":
        x = tl.exp(-tl.abs(m))
        value = tl.maximum(-m, 0.0) + log1p(x)
        slope = -tl.where(m >= 0.0, x, 1.0) / (1.0 + x)
    elif NAME == "sigmoid":
        x = tl.exp(-tl.abs(m))
        value = tl.where(m >= 0.0, x, 1.0) / (1.0 + x)
        slope = -x / ((1.0 + x) * (1.0 + x))
    elif NAME == "exponential":
        near = tl.maximum(m, -STEEPEST)
        slope = -tl.exp(-near)
        value = -slope * (1.0 + (near - m))
    elif NAME == "hinge":
        value = tl.maximum(1.0 - m, 0.0)
        slope = tl.where(m <= 1.0, -1.0, 0.0)
    elif NAME == "squared_hinge":
        short = tl.maximum(1.0 - m, 0.0)
        value = short * short
        slope = -2.0 * short
    elif NAME == "l1":
        value = tl.abs(1.0 - m)
        slope = tl.where(m > 1.0, 1.0, 0.0) - tl.where(m < 1.0, 1.0, 0.0)
    elif NAME == "ramp":
        value = tl.minimum(tl.maximum((1.0 - m) / 2.0, 0.0), 1.0)
        slope = tl.where(tl.abs(m) <= 1.0, -0.5, 0.0)
    elif NAME == "unhinged":
        value = 1.0 - m
        slope = m * 0.0 - 1.0
    else:
        tl.static_assert(NAME == "squared", "unknown curve")
        value = (1.0 - m) * (1.0 - m)
        slope = 2.0 * (m - 1.0)
    return value, slope


@triton.jit
def pair_sums(
    scores, labels, mask, weights, gains, discounts, values, slopes, length, size, sigma, ahead, behind, tie,
    CURVE: tl.constexpr, BOTH: tl.constexpr, TIES: tl.constexpr, WEIGHTED: tl.constexpr,
    SWAPPED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Half the value of every document's pairs, half their weight, the document's own, and the slope.

    The first three lie ``size`` apart. A pair of margin m counts ahead f(m) + behind f(-m), one of equal
    labels tie (f(m) + f(-m)).
    """
    start, i, end = own_rows(mask, length, ROWS, COLUMNS)
    here = i < length
    s_i = tl.load(scores + start + i, here, 0.0) * sigma
    y_i = present(labels, mask, start + i, here)
    value, slope = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
    weight = tl.zeros((ROWS,), tl.float32)
    if SWAPPED:
        g_i = tl.load(gains + start + i, here, 0.0)
        d_i = tl.load(discounts + start + i, here, 0.0)
    for first in range(0, end, COLUMNS):
        j = first + tl.arange(0, COLUMNS)
        there = j < end
        s_j = tl.load(scores + start + j, there, 0.0) * sigma
        y_j = present(labels, mask, start + j, there)
        better, worse = y_i[:, None] > y_j[None, :], y_i[:, None] < y_j[None, :]
        side = tl.where(worse, -1.0, 1.0)
        m = side * (s_i[:, None] - s_j[None, :])
        f, f_slope = curve(m, CURVE)
        v, g = ahead * f, ahead * f_slope
        counts = better | worse
        if BOTH:
            b, b_slope = curve(-m, CURVE)
            v += behind * b
            g -= behind * b_slope
            if TIES:
                same = (y_i[:, None] == y_j[None, :]) & (i[:, None] != j[None, :])
                v = tl.where(same, tie * (f + b), v)
                g = tl.where(same, tie * (f_slope - b_slope), g)
                counts = counts | same
        w = tl.where(counts, 1.0, 0.0)
        if WEIGHTED:
            w *= tl.load(weights + start + j, there, 0.0)[None, :]
            v, g = v * w, g * w
        weight += tl.sum(w, axis=1)
        if SWAPPED:
            g_j = tl.load(gains + start + j, there, 0.0)
            d_j = tl.load(discounts + start + j, there, 0.0)
            change = tl.abs(g_i[:, None] - g_j[None, :]) * tl.abs(d_i[:, None] - d_j[None, :])
            v, g = v * change, g * change
        value += tl.sum(tl.where(counts, v, 0.0), axis=1)
        slope += tl.sum(tl.where(counts, side * g, 0.0), axis=1)
    own = tl.where(y_i == y_i, 1.0, 0.0)
    if WEIGHTED:
        own *= tl.load(weights + start + i, here, 0.0)
    tl.store(values + start + i, 0.5 * value * own, here)
    tl.store(values + size + start + i, 0.5 * weight * own, here)
    tl.store(values + 2 * size + start + i, own, here)
    slope *= sigma * own
    tl.store(slopes + start + i, slope, here)


@triton.jit
def list_risk(totals, factors, risk, lists, orders, WEIGHTING: tl.constexpr, LISTS: tl.constexpr):
    """The factor of every list under a weighting, and the risk; one program reads all lists.

    ``totals`` are values, weights of pairs (of one order, of ``orders``) and weights of documents, by list.
    """
    count = tl.zeros((LISTS,), tl.float32)
    for first in range(0, lists, LISTS):
        q = first + tl.arange(0, LISTS)
        pairs = tl.load(totals + lists + q, q < lists, 0.0) * orders
        documents = tl.load(totals + 2 * lists + q, q < lists, 0.0)
        if WEIGHTING == "pooled":
            count += pairs
        elif WEIGHTING == "macro":
            count += tl.where(pairs > 0.0, 1.0, 0.0)
        else:
            count += tl.where(documents > 0.0, 1.0, 0.0)
    n = tl.sum(count, axis=0)
    n = tl.where(n > 0.0, n, 1.0)
    total = tl.zeros((LISTS,), tl.float32)
    for first in range(0, lists, LISTS):
        q = first + tl.arange(0, LISTS)
        value = tl.load(totals + q, q < lists, 0.0)
        pairs = tl.load(totals + lists + q, q < lists, 0.0) * orders
        documents = tl.load(totals + 2 * lists + q, q < lists, 0.0)
        if WEIGHTING == "macro":
            size = pairs
        elif WEIGHTING == "micro":
            size = documents * documents
        elif WEIGHTING == "sum":
            size = tl.where(documents > 0.0, 1.0, 0.0)
        else:
            tl.static_assert(WEIGHTING == "pooled", "unknown weighting")
            size = pairs * 0.0 + 1.0
        factor = tl.where(size > 0.0, 1.0 / tl.where(size > 0.0, size, 1.0), 0.0) / n
        tl.store(factors + q, factor, q < lists)
        total += factor * value
    tl.store(risk, tl.sum(total, axis=0))


@triton.jit
def places(keys, mask, worth, length, cutoff, KIND: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """What the rank of a document is worth by its key, ties by index: 0 beyond the cut-off and at padding.

    KIND: "rank" itself, or a discount, "log2" or "letor".
    """
    start, i, end = own_rows(mask, length, ROWS, COLUMNS)
    k_i = present(keys, mask, start + i, i < length)
    rank = tl.zeros((ROWS,), tl.float32) + 1.0
    for first in range(0, end, COLUMNS):
        j = first + tl.arange(0, COLUMNS)
        k_j = present(keys, mask, start + j, j < end)
        higher = k_j[None, :] > k_i[:, None]
        earlier = (k_j[None, :] == k_i[:, None]) & (j[None, :] < i[:, None])
        rank += tl.sum(tl.where(higher | earlier, 1.0, 0.0), axis=1)
    if KIND == "rank":
        value = rank
    elif KIND == "log2":
        value = 1.0 / tl.log2(rank + 1.0)
    else:
        tl.static_assert(KIND == "letor", "unknown kind")
        value = 1.0 / tl.log2(tl.maximum(rank, 2.0))
    tl.store(worth + start + i, tl.where((k_i == k_i) & (rank <= cutoff), value, 0.0), i < length)


@triton.jit
def smooth_places(scores, mask, ranks, length, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """1/2 + the sum over all documents of a list of 1 / (1 + exp(s_i - s_j))."""
    start, i, end = own_rows(mask, length, ROWS, COLUMNS)
    s_i = tl.load(scores + start + i, i < length, 0.0)
    rank = tl.zeros((ROWS,), tl.float32) + 0.5
    for first in range(0, end, COLUMNS):
        j = first + tl.arange(0, COLUMNS)
        s_j = present(scores, mask, start + j, j < end)
        above, _ = curve(s_i[:, None] - s_j[None, :], "sigmoid")
        rank += tl.sum(tl.where(s_j[None, :] == s_j[None, :], above, 0.0), axis=1)
    tl.store(ranks + start + i, rank, i < length)


@triton.jit
def smooth_slopes(scores, mask, upstream, slopes, length, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The slope of the sum of ``upstream`` times ``smooth_places`` by every score."""
    start, i, end = own_rows(mask, length, ROWS, COLUMNS)
    s_i = present(scores, mask, start + i, i < length)
    u_i = tl.load(upstream + start + i, i < length, 0.0)
    slope = tl.zeros((ROWS,), tl.float32)
    for first in range(0, end, COLUMNS):
        j = first + tl.arange(0, COLUMNS)
        s_j = present(scores, mask, start + j, j < end)
        u_j = tl.load(upstream + start + j, j < end, 0.0)
        d = s_i[:, None] - s_j[None, :]
        _, bell = curve(d, "sigmoid")
        # bell is -p (1 - p): a higher s_j pushes i down, a higher s_i pushes j down.
        slope += tl.sum(tl.where(d == d, bell * (u_i[:, None] - u_j[None, :]), 0.0), axis=1)
    tl.store(slopes + start + i, slope, i < length)
