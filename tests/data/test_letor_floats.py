import re
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cleanrank.data import _letor_floats as floats

DIGITS = st.text("0123456789", max_size=30)


@st.composite
def decimals(draw):
    """Texts of the number grammar, short and long."""
    whole, fraction = draw(DIGITS), draw(DIGITS)
    if not whole + fraction:
        whole = "0"
    text = draw(st.sampled_from(["", "+", "-"])) + whole
    text += "." + fraction if fraction or draw(st.booleans()) else ""
    if draw(st.booleans()):
        text += draw(st.sampled_from("eE")) + str(draw(st.integers(-70, 70)))
    return text


def read(text):
    """(value, slow) of a text, or None if it is not a number."""
    buf = np.frombuffer(text.encode() + b"\n", np.uint8)
    kind, negative, w, q, cut, end = floats.scan_number(buf, 0)
    if kind != floats.NUMBER or end != len(text):
        return None
    return floats.to_float(negative, np.uint64(w), q, cut)


def float32_of(text):
    with np.errstate(over="ignore"):
        return np.float32(float(text))


def agrees(text):
    value, slow = read(text)
    with np.errstate(over="ignore"):
        return slow or np.float32(value).view(np.int32) == float32_of(text).view(np.int32)


@settings(max_examples=2000, deadline=None)
@given(decimals())
@example("16777217")  # a tie of float32, which goes to even
@example("16777219")
@example("9007199254740993")  # a tie of float64
@example("9007199791611905")  # a tie of float64 next to a tie of float32
@example("1.00000005960464477539062500000000000000001")
@example("0.000000000000000000000000000000000000000000000700649232162408535461864791644958")
@example("3.4028235677973366e38")
@example("3.4028235677973365e38")
@example("1e-400")
@example("0e999999999999999999999999")
@example("1" + "0" * 60 + "e-60")
@example("0." + "0" * 60 + "1e61")
def test_a_text_becomes_the_float32_that_python_and_numpy_give(text):
    assert agrees(text)


@settings(max_examples=1000, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_written_float64_values_are_read_right(value):
    assert agrees(repr(value))
    assert not read(repr(value))[1]


@settings(max_examples=1000, deadline=None)
@given(st.integers(0, 0x7F7FFFFE), st.integers(-2, 2), st.integers(9, 40))
def test_values_next_to_the_border_between_two_float32(bits, off, digits):
    below, above = np.array([bits, bits + 1], np.int32).view(np.float32).astype(np.float64)
    assert agrees(f"{np.nextafter(below / 2 + above / 2, np.inf if off > 0 else -np.inf):.{digits}e}")
    assert agrees(f"{(below + above) / 2:.{digits}e}")


def test_many_random_texts():
    rng = np.random.default_rng(0)
    for _ in range(20_000):
        digits = "".join(map(str, rng.integers(0, 10, rng.integers(1, 22))))
        at = rng.integers(0, len(digits) + 1)
        text = f"{digits[:at]}.{digits[at:]}e{rng.integers(-60, 50)}"
        assert agrees(text), text


def test_numbers_of_more_than_19_digits_are_slow_only_next_to_a_border():
    # Where float64 rounds to the tie between two float32 or to its upper neighbour.
    border = Decimal(1) + Decimal(2) ** -24 + Decimal(2) ** -53
    with localcontext(prec=100):
        assert read(str(border))[1]
        assert read(str(border + Decimal("1e-60")))[1]
    assert not read("0.12345678901234567890123456789")[1]
    assert not read("1.50000000000000000000000000000000000")[1]


@pytest.mark.parametrize("text", ["", "+", "-", ".", "e5", "1e", "1e+", "1.5.5", "1_0", "0x1", "inf", "--1"])
def test_what_is_no_number(text):
    assert read(text) is None


@pytest.mark.parametrize("text", ["nan", "NaN", "+NAN", "-nan"])
def test_nan_in_any_case(text):
    buf = np.frombuffer(text.encode() + b"\n", np.uint8)
    kind, *_, end = floats.scan_number(buf, 0)
    assert (kind, end) == (floats.NAN, len(text))


def written(value):
    out = np.zeros(64, np.uint8)
    return out[: floats.put_float(out, 0, np.float32(value))].tobytes().decode()


@settings(max_examples=3000, deadline=None)
@given(st.floats(width=32, allow_infinity=False, allow_nan=False))
@example(-0.0)
@example(1e-45)
@example(3.4028234663852886e38)
@example(0.0001)
@example(9.999999e-5)
@example(999999999.0)
@example(1.1754943508222875e-38)
def test_written_values_read_back_the_same_with_the_fewest_digits(value):
    value = np.float32(value)
    text = written(value)
    assert np.float32(float(text)).view(np.int32) == value.view(np.int32)
    if value != np.floor(value):
        shortest = np.format_float_scientific(value, unique=True, trim="-")
        assert significant(text) <= significant(shortest), (text, shortest)
    assert len(text) <= 24


def significant(text):
    digits = re.sub(r"[eE].*|[-.]", "", text).lstrip("0")
    return len(digits.rstrip("0"))


def test_every_exponent_and_many_fractions_are_written_exactly():
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 0x7F800000, 20_000).astype(np.int32)
    for value in bits.view(np.float32):
        assert np.float32(float(written(value))) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1, "1"), (-2.5, "-2.5"), (0.1, "0.1"), (1e-7, "1e-7"), (6.553125, "6.553125"),
     (np.nan, "nan"), (1e20, "1e20"), (0.333333, "0.333333"), (16777216, "16777216"), (1.5e-5, "15e-6")],
)  # fmt: skip
def test_how_numbers_look(value, text):
    assert written(value) == text
