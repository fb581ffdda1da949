"""A worker process: cells come in by stdin, results leave by stdout, and it dies with its driver.

Frames are a 4-byte length and that many bytes. ``python -m cleanrank.experiments.worker MODULE:FUNCTION``
computes each cell with a function from text to bytes.
"""

import importlib
import os
import queue
import struct
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO

from cleanrank.errors import invalid

READY = b"ready"


def write_frame(stream: BinaryIO, frame: bytes) -> None:
    """Writes one frame and sends it off."""
    stream.write(struct.pack("<I", len(frame)) + frame)
    stream.flush()


def read_frame(stream: BinaryIO) -> bytes | None:
    """Reads one frame; None when the other side has gone, be it in the middle of a frame."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    (size,) = struct.unpack("<I", head)
    frame = stream.read(size)
    return frame if len(frame) == size else None


def resolve(target: str) -> Callable[[str], bytes]:
    """The function behind ``module:function``.

    >>> resolve("builtins:len")("abc")
    3
    """
    module, _, name = target.partition(":")
    if not name:
        raise invalid("target", "must read module:function", repr(target))
    function: Callable[[str], bytes] = getattr(importlib.import_module(module), name)
    return function


def main(target: str) -> None:
    """Computes cells until the driver closes the pipe or dies."""
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    # Compiled libraries print to descriptor 1 when they like: keep that out of the frames.
    os.dup2(2, 1)
    inbox: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests, inbox), daemon=True).start()
    compute = resolve(target)
    write_frame(replies, READY)
    while True:
        write_frame(replies, compute(inbox.get()))


def _listen(requests: BinaryIO, inbox: "queue.SimpleQueue[str]") -> None:
    """Receives cells beside the computation, so that the driver's death is noticed at once."""
    while (frame := read_frame(requests)) is not None:
        inbox.put(frame.decode())
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
