import json

import numpy as np
import pytest

from tests.frozen.cases import CASES, described, machine
from tests.frozen.record import PATH

KEPT = json.loads(PATH.read_text(encoding="utf-8"))


def test_every_case_is_recorded():
    assert set(KEPT["cases"]) == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_nothing_changed(name):
    kept, now = KEPT["cases"][name], described(CASES[name]())
    if isinstance(kept, str):
        assert now == kept
    elif name.startswith("neural"):  # the order of torch's float32 sums depends on what ran before
        np.testing.assert_allclose(now["first"], kept["first"], rtol=1e-3, atol=1e-5)
    elif KEPT["machine"] == machine():
        assert now == kept
    else:
        assert now["size"] == kept["size"]
        np.testing.assert_allclose([*now["first"], now["sum"]], [*kept["first"], kept["sum"]], rtol=1e-9)
