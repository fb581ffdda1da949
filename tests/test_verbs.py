import inspect
import sys
import types

import cleanrank as cr
from cleanrank.verbs import make_callable


def test_a_module_becomes_callable_and_stays_a_module():
    room = types.ModuleType("a_room_for_this_test")
    sys.modules[room.__name__] = room
    try:
        make_callable(room.__name__, lambda x, *, y=1: x + y)
        assert room(2, y=3) == 5
        assert isinstance(room, types.ModuleType)
    finally:
        del sys.modules[room.__name__]


def test_the_signature_shows():
    assert list(inspect.signature(cr.evaluate).parameters)[:3] == ["scores", "data", "measures"]
