import io
import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanrank.errors import InvalidInputError
from cleanrank.experiments.worker import READY, read_frame, resolve, write_frame


@given(st.lists(st.binary(max_size=300)))
def test_frames_come_back_whole(frames):
    stream = io.BytesIO()
    for frame in frames:
        write_frame(stream, frame)
    stream.seek(0)
    assert [read_frame(stream) for _ in frames] == frames
    assert read_frame(stream) is None


@given(st.binary(min_size=1, max_size=50), st.data())
def test_half_a_frame_is_none(frame, data):
    stream = io.BytesIO()
    write_frame(stream, frame)
    cut = data.draw(st.integers(0, len(stream.getvalue()) - 1))
    assert read_frame(io.BytesIO(stream.getvalue()[:cut])) is None


def test_targets_are_module_and_function():
    assert resolve("json:dumps") is json.dumps
    with pytest.raises(InvalidInputError, match="must read module:function"):
        resolve("json")


def test_what_is_printed_stays_out_of_the_frames():
    process = subprocess.Popen(
        [sys.executable, "-m", "cleanrank.experiments.worker", "builtins:print"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    write_frame(process.stdin, b"loud")
    process.wait(timeout=30)  # print gives no bytes to send back, which ends the worker
    out, err = process.communicate()
    assert read_frame(io.BytesIO(out)) == READY
    assert b"loud" not in out
    assert b"loud" in err
