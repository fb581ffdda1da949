"""Compiled kernels for decimal numbers: text to float, and float32 to the shortest text.

A number is read as w * 10^q with w below 10^19 and becomes the float32 nearest to the float64 nearest to the
text, which is what ``np.float32(float(text))`` gives: one exact operation for short numbers (Clinger 1990);
a product of 128 bits for the rest (Lemire 2021; Mushtak and Lemire 2023 prove that it needs no fallback).
Written numbers have the fewest digits that read back as the same float32.
"""

import math
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from cleanrank.jit import kernel

TEXT, NUMBER, NAN = 0, 1, 2
LF, BLANK, PLUS, MINUS, DOT, COLON = 10, 32, 43, 45, 46, 58
ZERO, TEN, ONE = np.uint64(48), np.uint64(10), np.uint64(1)
EXACT = np.uint64(2**53)
LITTLE_ENDIAN = sys.byteorder == "little"
LOW_BITS, LINE_FEEDS = np.uint64(0x0101010101010101), np.uint64(0x0A0A0A0A0A0A0A0A)
ZEROS = np.uint64(0x3030303030303030)
SEVENTY_SIX, HIGH_BITS = np.uint64(0x7676767676767676), np.uint64(0x8080808080808080)
PAIRS = np.uint64(0x000000FF000000FF)
WHOLE_POWERS = 10 ** np.arange(9)
LOW, HALF = np.uint64(2**32 - 1), np.uint64(32)
POWERS = np.array([float(f"1e{k}") for k in range(60)])
FLOAT32_OVERFLOW = 3.4028235677973366e38
"""The least float64 that rounds to an infinite float32."""
LEAST_POWER, MOST_POWER = -65, 39
"""Below the first, w * 10^q rounds to 0 in float32; above the second, to infinity."""


def _five_powers() -> npt.NDArray[np.uint64]:
    """The leading 128 bits of 5^q for every q in use, as (high, low), rounded as in (Lemire 2021)."""
    powers = []
    for q in range(LEAST_POWER, MOST_POWER + 1):
        if q >= 0:
            bits = 5**q << 128
        else:
            width = (5**-q).bit_length()
            bits = 2 ** (width + 127 if q >= -27 else 2 * width + 128) // 5**-q + 1
        bits >>= bits.bit_length() - 128
        powers.append((bits >> 64, bits & (2**64 - 1)))
    return np.array(powers, dtype=np.uint64)


FIVES = _five_powers()


def _eight_bytes(typing: Any, buf: Any, at: Any) -> Any:
    """The 8 bytes of ``buf`` from ``at`` on as one number, the first byte lowest."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(buf)(context, builder, args[0]).data
        where = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(64).as_pointer())
        return builder.load(where, align=1)

    return types.uint64(buf, types.int64), generate


def _trailing_zeros(typing: Any, x: Any) -> Any:
    """How many low bits of a number are 0; 64 for 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


eight_bytes: Any = intrinsic(_eight_bytes)
trailing_zeros: Any = intrinsic(_trailing_zeros)


@kernel()
def digit_run(x: Any) -> Any:
    """How many of 8 bytes, first ones first, are digits; ``x`` is the bytes XOR ZEROS."""
    # Adding 0x76 carries into the high bit from 10 on. A carry out of a byte only reaches bytes after it.
    return np.int64(trailing_zeros(((x + SEVENTY_SIX) | x) & HIGH_BITS) >> np.uint64(3))


@kernel()
def digits_value(x: Any, n: Any) -> Any:
    """The number that the first ``n`` bytes (1 to 8) spell; ``x`` is the bytes XOR ZEROS (Lemire 2018)."""
    x <<= np.uint64(64 - 8 * n)
    x = x * TEN + (x >> np.uint64(8))
    pairs = (x & PAIRS) * np.uint64(0xF424000000064)
    return np.int64((pairs + ((x >> np.uint64(16)) & PAIRS) * np.uint64(0x271000000001)) >> HALF)


@kernel()
def line_end(buf: Any, i: Any) -> Any:
    """The position of the next line feed from ``i`` on, looked for in steps of 8 bytes."""
    while LITTLE_ENDIAN and i < len(buf) - 8:
        x = eight_bytes(buf, i) ^ LINE_FEEDS
        zeros = (x - LOW_BITS) & ~x & HIGH_BITS
        if zeros != 0:
            return i + np.int64(trailing_zeros(zeros) >> np.uint64(3))
        i += 8
    while buf[i] != LF:
        i += 1
    return i


@kernel()
def short_cell(buf: Any, i: Any, last: Any) -> Any:
    """(end, index, value) of ``index:value`` with few digits and no sign or exponent; end 0 if it is not so.

    Reads up to 32 bytes from ``i`` on. ``last`` is the index before: the length of the next one is guessed
    from it, so that the processor need not wait for the text to know where the value starts.
    """
    x = eight_bytes(buf, i) ^ ZEROS
    n = 1 + (last >= 9) + (last >= 99) + (last >= 999)
    if not LITTLE_ENDIAN or buf[i + n] != COLON or digit_run(x) != n:
        return 0, 0, 0.0
    index = digits_value(x, n)
    i += n + 1
    x = eight_bytes(buf, i) ^ ZEROS
    n = digit_run(x)
    if n == 0 or n == 8:
        return 0, 0, 0.0
    w = digits_value(x, n)
    i += n
    if buf[i] == BLANK or buf[i] == LF:
        return i, index, np.float64(w)
    if buf[i] != DOT:
        return 0, 0, 0.0
    x = eight_bytes(buf, i + 1) ^ ZEROS
    n = digit_run(x)
    i += n + 1
    if n == 0 or n == 8 or not (buf[i] == BLANK or buf[i] == LF):
        return 0, 0, 0.0
    return i, index, np.float64(w * WHOLE_POWERS[n] + digits_value(x, n)) / POWERS[n]


@kernel()
def scan_number(buf: Any, i: Any) -> Any:
    """(kind, negative, w, q, cut, end) of the number at ``i``; ``cut``: digits after the 19th count."""
    negative = buf[i] == MINUS
    if negative or buf[i] == PLUS:
        i += 1
    first = i
    w = np.uint64(0)
    d = np.uint64(buf[i]) - ZERO
    while d < TEN:
        w = w * TEN + d
        i += 1
        d = np.uint64(buf[i]) - ZERO
    digits = i - first
    q: Any = 0
    if buf[i] == DOT:
        i += 1
        fraction = i
        d = np.uint64(buf[i]) - ZERO
        while d < TEN:
            w = w * TEN + d
            i += 1
            d = np.uint64(buf[i]) - ZERO
        q = fraction - i
        digits -= q
    if digits == 0:
        if (buf[i] | 32) == 110 and (buf[i + 1] | 32) == 97 and (buf[i + 2] | 32) == 110 and i == first:
            return NAN, negative, w, 0, False, i + 3
        return TEXT, negative, w, 0, False, i
    cut = False
    if digits > 19:
        w, q, cut = leading_digits(buf, first, i)
    if (buf[i] | 32) == 101:
        i += 1
        down = buf[i] == MINUS
        if down or buf[i] == PLUS:
            i += 1
        if np.uint64(buf[i]) - ZERO >= TEN:
            return TEXT, negative, w, q, cut, i
        e: Any = 0
        while np.uint64(buf[i]) - ZERO < TEN:
            if e < 10**15:
                e = e * 10 + np.int64(buf[i]) - 48
            i += 1
        q += -e if down else e
    return NUMBER, negative, w, q, cut, i


@kernel()
def leading_digits(buf: Any, i: Any, end: Any) -> Any:
    """(w, q, cut) from the first 19 significant digits of a long number without its exponent."""
    w = np.uint64(0)
    taken, q, after_dot = 0, 0, False
    cut: Any = False
    while i < end:
        if buf[i] == DOT:
            after_dot = True
        else:
            d = np.uint64(buf[i]) - ZERO
            if taken < 19:
                w = w * TEN + d
                taken += 1 if w > 0 else 0
                q -= 1 if after_dot else 0
            else:
                cut = cut or d > 0
                q += 0 if after_dot else 1
        i += 1
    return w, q, cut


@kernel()
def high_product(a: Any, b: Any) -> Any:
    """(high, low) 64 bits of the product of two 64-bit numbers."""
    a1, a0, b1, b0 = a >> HALF, a & LOW, b >> HALF, b & LOW
    mid = a1 * b0 + ((a0 * b0) >> HALF)
    low_mid = a0 * b1 + (mid & LOW)
    return a1 * b1 + (mid >> HALF) + (low_mid >> HALF), a * b


@kernel()
def nearest(w: Any, q: Any) -> Any:
    """The float64 nearest to w * 10^q, or 0 and infinity where float32 would be so."""
    if w == 0 or q < LEAST_POWER:
        return 0.0
    if q > MOST_POWER:
        return np.inf
    if w < EXACT and -22 <= q <= 22:
        x = np.float64(np.int64(w))
        return x / POWERS[-q] if q < 0 else x * POWERS[q]
    shift = 0
    while w >> np.uint64(63) == 0:
        w <<= ONE
        shift += 1
    high, low = high_product(w, FIVES[q - LEAST_POWER, 0])
    if (high & np.uint64(0x1FF)) == np.uint64(0x1FF):
        more, _ = high_product(w, FIVES[q - LEAST_POWER, 1])
        low += more
        if low < more:
            high += ONE
    upper = high >> np.uint64(63)
    drop = upper + np.uint64(9)
    m = high >> drop
    if low <= ONE and -4 <= q <= 23 and (m & np.uint64(3)) == ONE and (m << drop) == high:
        m &= ~ONE
    m = (m + (m & ONE)) >> ONE
    power = ((217706 * q) >> 16) + 63 + np.int64(upper) - shift
    return math.ldexp(np.float64(np.int64(m)), power - 52)


@kernel()
def to_float(negative: Any, w: Any, q: Any, cut: Any) -> Any:
    """(value, slow): the float64 whose float32 is right; ``slow`` when only more digits than 19 can tell."""
    x = nearest(w, q)
    slow = False
    if cut:
        slow = np.float32(nearest(w + ONE, q)) != np.float32(x)
    return (-x if negative else x), slow


@kernel()
def put_digits(out: Any, at: Any, m: Any, least: Any) -> Any:
    """Writes a whole number with at least ``least`` digits; returns the position after it."""
    width, rest = 1, m // 10
    while rest > 0:
        width += 1
        rest //= 10
    width = max(width, least)
    for k in range(at + width - 1, at - 1, -1):
        out[k] = 48 + m % 10
        m //= 10
    return at + width


@kernel()
def put_float(out: Any, at: Any, value: Any) -> Any:
    """Writes a finite or missing float32 with the fewest digits; returns the position after it."""
    if value != value:
        out[at], out[at + 1], out[at + 2] = 110, 97, 110
        return at + 3
    x = np.float64(value)
    if x < 0 or (x == 0 and math.copysign(1.0, x) < 0):
        out[at] = MINUS
        at += 1
        x = -x
    if x < 1e9 and x == math.floor(x):
        return put_digits(out, at, np.int64(x), 1)
    if 1e-4 <= x < 1e9:
        for places in range(1, 16):
            m = np.int64(np.rint(x * POWERS[places]))
            if np.float32(np.float64(m) / POWERS[places]) == np.float32(x):
                whole = np.int64(10) ** places
                at = put_digits(out, at, m // whole, 1)
                out[at] = DOT
                return put_digits(out, at + 1, m % whole, places)
    power = np.int64(math.floor(math.log10(x)))
    for places in range(17):
        k = places - power
        m = np.int64(np.rint(x * POWERS[k] if k >= 0 else x / POWERS[-k]))
        if np.float32(nearest(np.uint64(m), -k)) == np.float32(x):
            at = put_digits(out, at, m, 1)
            out[at] = 101
            if k > 0:
                out[at + 1] = MINUS
                at += 1
            return put_digits(out, at + 1, abs(k), 1)
    return at
